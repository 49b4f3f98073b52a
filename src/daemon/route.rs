//! One route of the API: declared once, for the router, the document and tests.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::http::Method;
use axum::response::IntoResponse;
use axum::routing::{MethodFilter, MethodRouter, on};
use tracing::Instrument;

use super::connections::Waiting;
use super::description::{Description, Endpoint, Input, Output};
use super::extract;
use super::reply::HttpRefusal;
use super::state::ApiState;
use super::while_allowed::{Reader, while_allowed};
use crate::model::AccessRole;

/// One method on one path of the API.
pub struct Route {
    /// Its name in the document.
    pub id: &'static str,
    /// One sentence for people.
    pub summary: &'static str,
    /// Its method.
    pub method: Method,
    /// Its path; `{run}` stands for a run's id or a unique prefix or suffix of it.
    pub path: &'static str,
    /// Who may ask for it.
    pub role: AccessRole,
    /// The command with which a person asks for it. `None`: commands of runs may ask for it too.
    pub by_person: Option<&'static str>,
    /// What its handler's types say in the document.
    pub(super) describe: fn(&mut Description<'_>),
    /// Its handler, behind what is checked of every request.
    pub(super) handler: MethodRouter<Arc<ApiState>>,
}

/// A route that lacks its handler.
pub(super) struct Operation {
    method: Method,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    for_anybody: bool,
    by_person: Option<&'static str>,
}

/// Begins to declare a route.
pub(super) fn operation(method: Method, path: &'static str, id: &'static str) -> Operation {
    Operation {
        method,
        path,
        id,
        summary: "",
        for_anybody: false,
        by_person: Some("workerctl"),
    }
}

impl Operation {
    /// One sentence for people.
    pub(super) fn summary(mut self, summary: &'static str) -> Operation {
        self.summary = summary;
        self
    }

    /// Asked for before anybody is known, at the door of the web page.
    pub(super) fn for_anybody(mut self) -> Operation {
        self.for_anybody = true;
        self
    }

    /// Lets commands of runs ask for it, if their skill may ask the engine at all. Every other operation is refused to
    /// them, so a new one is for people until it is allowed here.
    pub(super) fn for_runs(mut self) -> Operation {
        self.by_person = None;
        self
    }

    /// Names the command with which a person asks for it.
    pub(super) fn by_person(mut self, command: &'static str) -> Operation {
        self.by_person = Some(command);
        self
    }

    /// The route: who may ask for it, and who answers.
    pub(super) fn handler<H, M, A>(self, role: AccessRole, handler: H) -> Route
    where
        H: Handler<M, Arc<ApiState>> + Endpoint<A>,
        M: 'static,
    {
        let Operation {
            method,
            path,
            id,
            summary,
            for_anybody,
            by_person,
        } = self;
        let needed = (!for_anybody).then_some(Needed { role, by_person });
        let serve = move |State(state): State<Arc<ApiState>>, request: Request| async move {
            let response = match admitted(request, &state, id, needed, H::Inputs::READS_QUERY) {
                Ok(request) => {
                    let reader = Reader::from_request(request.extensions(), &state, role);
                    let span = tracing::error_span!("request", operation = id);
                    let response = handler.call(request, state).instrument(span).await;
                    while_allowed(response, reader)
                }
                Err(refusal) => refusal.into_response(),
            };
            let status = response.status().as_u16();
            tracing::debug!(operation = id, status, "answered");
            response
        };
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
        Route {
            id,
            summary,
            method,
            path,
            role,
            by_person,
            describe: |description| {
                H::Inputs::describe(description);
                H::Output::describe(description);
            },
            handler: on(filter, serve),
        }
    }
}

/// What an operation needs of whoever asks for it.
#[derive(Clone, Copy)]
struct Needed {
    role: AccessRole,
    by_person: Option<&'static str>,
}

/// The request, where its sender may ask for this and its head says nothing that nobody reads.
fn admitted(
    request: Request,
    state: &ApiState,
    id: &str,
    needed: Option<Needed>,
    reads_query: bool,
) -> Result<Request, HttpRefusal> {
    let (mut parts, body) = request.into_parts();
    // What was read at once may exceed the buffer that bounds the reading.
    extract::head_within(&parts, state.limits.head_bytes_max)?;
    if let Some(needed) = needed {
        let peer = extract::peer(&parts)?;
        peer.may(id, needed.role)?;
        if let Some(by_person) = needed.by_person {
            peer.needs_person(id, by_person)?;
        }
    }
    if !reads_query {
        extract::no_query(&parts.uri)?;
    }
    if parts.method != Method::POST {
        // Nothing more of it is read.
        Waiting::answering(&mut parts);
    }
    Ok(Request::from_parts(parts, body))
}
