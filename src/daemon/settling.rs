//! Requests in which a person decides about a run: approve, deny, resolve.

use axum::body::Body;
use axum::http::request::Parts;
use axum::response::Response;

use super::answer::{Desk, answered};
use super::extract::{self, Checked};
use super::operation::Operation;
use super::reply::HttpRefusal;
use super::server::Waiting;
use crate::model::{Diagnostic, Kind};
use crate::protocol::{ApproveRequest, DenyRequest, ResolveRequest};

/// Approves or denies a run, in the name of whom the system knows behind the connection, or settles an unknown one.
pub(super) async fn settle(
    operation: Operation,
    desk: &Desk,
    run: String,
    parts: &mut Parts,
    body: Body,
) -> Result<Response, HttpRefusal> {
    let limits = desk.body_limits();
    if operation == Operation::ResolveRun {
        let request: ResolveRequest = extract::body(parts, body, limits, false).await?;
        request.check()?;
        Waiting::answering(parts);
        return answered(
            desk.ask(operation, move |c| c.resolve(&run, &request))
                .await,
        );
    }
    let peer = extract::peer(parts)?;
    if peer.within_run {
        return Err(HttpRefusal::from(
            Diagnostic::new(
                Kind::Blocked,
                "person_needed",
                "a person answers, no command of a run",
            )
            .hint("ask for it where you are: `workerctl runs --awaiting`"),
        ));
    }
    let by = Some(peer.name());
    if operation == Operation::DenyRun {
        let mut request: DenyRequest = extract::body(parts, body, limits, false).await?;
        request.check()?;
        request.by = by;
        Waiting::answering(parts);
        return answered(desk.ask(operation, move |c| c.deny(&run, &request)).await);
    }
    let mut request: ApproveRequest = extract::body(parts, body, limits, false).await?;
    request.check()?;
    request.by = by;
    Waiting::answering(parts);
    answered(
        desk.ask(operation, move |c| c.approve(&run, &request))
            .await,
    )
}
