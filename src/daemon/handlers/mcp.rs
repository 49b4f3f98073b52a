//! The Model Context Protocol at the socket, beside the API.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;

use crate::daemon::extract;
use crate::daemon::mcp;
use crate::daemon::reply::HttpRefusal;
use crate::daemon::state::ApiState;
use crate::daemon::while_allowed::{Reader, while_allowed};
use crate::mcp::{Door, PATH};
use crate::model::AccessRole;

/// Answers a request that came in at the socket.
pub(crate) async fn serve(
    State(state): State<Arc<ApiState>>,
    request: Request,
) -> Result<Response, HttpRefusal> {
    let (parts, body) = request.into_parts();
    extract::head_within(&parts, state.limits.head_bytes_max)?;
    let peer = extract::peer(&parts)?;
    peer.may(PATH, AccessRole::Admin)?;
    // Its calls reach the engine without saying who asks; `workerctl mcp` asks for each at the API.
    peer.needs_person(PATH, "workerctl mcp")?;
    // An engine that still recovers says so; one in a command serves the API alone.
    state.control()?;
    let mounted = state.mounted.get().ok_or_else(HttpRefusal::no_such_path)?;
    let server = mounted.server()?;
    let request = Request::from_parts(parts, body);
    let reader = Reader::from_request(request.extensions(), &state, AccessRole::Admin);
    let response = mcp::answer(&server, &Door::Socket, request).await;
    Ok(while_allowed(response, reader))
}
