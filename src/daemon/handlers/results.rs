//! What a run left: its patch, the paths that it changed, files of outputs, its thread.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::Answer;
use crate::daemon::description::{Description, Output};
use crate::daemon::extract::{Query, RunFragment, RunOutput};
use crate::daemon::reply::{self, HttpRefusal, Json};
use crate::daemon::state::ApiState;
use crate::daemon::wire::{CHANGED_HEADER, PATH_HEADER, PATHS_HEADER, SOURCE_HEADER};
use crate::daemon::{paths, pieces};
use crate::protocol::{DiffQuery, OutputFile, OutputSource, PathChange};

pub(crate) async fn diff(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
    Query(query): Query<DiffQuery>,
) -> Result<Patch, HttpRefusal> {
    Ok(Patch(state.read(move |c| c.diff(&run, &query)).await?))
}

/// What a run changed.
pub(crate) struct Patch(String);

impl IntoResponse for Patch {
    fn into_response(self) -> Response {
        let kind = "text/x-diff; charset=utf-8";
        reply::answer_of(StatusCode::OK, kind, Body::from(self.0))
    }
}

impl Output for Patch {
    fn describe(operation: &mut Description<'_>) {
        let content = json!({"text/x-diff": {"schema": {"type": "string"}}});
        operation.reply("200", operation.summary, &content);
    }
}

/// The paths that a run changed, and how many there are.
pub(crate) async fn changes(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
) -> Result<(HeaderMap, Json<Vec<PathChange>>), HttpRefusal> {
    let changes = state.read(move |c| c.changes(&run)).await?;
    let total = (PATHS_HEADER, HeaderValue::from(changes.total));
    Ok((HeaderMap::from_iter([total]), Json(changes.paths)))
}

pub(crate) async fn thread(
    State(state): State<Arc<ApiState>>,
    RunFragment(run): RunFragment,
) -> Answer<Value> {
    Ok(Json(state.read(move |c| c.thread(&run)).await?))
}

/// The file of an output, in pieces.
pub(crate) async fn output(
    State(state): State<Arc<ApiState>>,
    RunOutput { run, name }: RunOutput,
) -> Result<Download, HttpRefusal> {
    let place = state.download()?;
    let file = state.read(move |c| c.output(&run, &name)).await?;
    let headers = headers_of(&file);
    let name = file.path.rsplit('/').next().unwrap_or_default().to_owned();
    let mut content = file.content;
    let body = pieces::body(place, move |mut out| {
        io::copy(&mut content, &mut out).map(|_| ())
    })?;
    Ok(Download {
        name,
        headers,
        body,
    })
}

/// How long it is, and where it was read.
fn headers_of(file: &OutputFile) -> HeaderMap {
    let source = match &file.source {
        OutputSource::Commit(oid) => format!("commit {oid}"),
        OutputSource::Held => "held".to_owned(),
        OutputSource::Destination { .. } => "destination".to_owned(),
    };
    let changed = match file.source {
        OutputSource::Destination { changed } => changed,
        OutputSource::Commit(_) | OutputSource::Held => Some(false),
    };
    let source = HeaderValue::try_from(source).ok();
    let path = HeaderValue::try_from(paths::encoded(&file.path).to_string()).ok();
    let changed =
        changed.map(|is_so| HeaderValue::from_static(if is_so { "true" } else { "false" }));
    let length = Some((header::CONTENT_LENGTH, HeaderValue::from(file.bytes)));
    let told = [
        path.map(|path| (PATH_HEADER, path)),
        source.map(|source| (SOURCE_HEADER, source)),
        changed.map(|changed| (CHANGED_HEADER, changed)),
    ];
    length
        .into_iter()
        .chain(told.into_iter().flatten())
        .collect()
}

/// A file for whoever asked.
pub(crate) struct Download {
    name: String,
    headers: HeaderMap,
    body: Body,
}

impl IntoResponse for Download {
    fn into_response(self) -> Response {
        // What a run wrote is never shown as a page of ours.
        let kind = "application/octet-stream";
        let mut response = reply::answer_of(StatusCode::OK, kind, self.body);
        response.headers_mut().extend(self.headers);
        reply::as_attachment(&mut response, &self.name);
        response
    }
}

impl Output for Download {
    fn describe(operation: &mut Description<'_>) {
        let content =
            json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}});
        operation.reply("200", operation.summary, &content);
    }
}
