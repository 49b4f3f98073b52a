//! The Model Context Protocol at the socket, beside the API.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;

use crate::daemon::connections::Waiting;
use crate::daemon::extract;
use crate::daemon::reply::HttpRefusal;
use crate::daemon::state::Desk;
use crate::mcp::{Door, PATH};
use crate::model::AccessRole;

/// Answers a request that came in at the socket.
pub(crate) async fn serve(
    State(desk): State<Arc<Desk>>,
    mut request: Request,
) -> Result<Response, HttpRefusal> {
    let waiting = request.extensions_mut().remove::<Waiting>();
    let (parts, body) = request.into_parts();
    extract::head_within(&parts, desk.limits.head_bytes_max)?;
    extract::peer(&parts)?.may(PATH, AccessRole::Admin)?;
    // An engine that still recovers says so; one in a command serves the API alone.
    desk.control()?;
    let mounted = desk.mounted.get().ok_or_else(HttpRefusal::no_such_path)?;
    let server = mounted.server()?;
    let heard = || {
        if let Some(waiting) = waiting {
            waiting.forget();
        }
    };
    let request = Request::from_parts(parts, body);
    let answer = server.answer(&Door::Socket, request, heard).await;
    Ok(answer.map(Body::new))
}
