//! Handlers of the API, by theme. What each takes and returns is what the document says of its route.

pub(super) mod changes;
pub(super) mod engine;
pub(super) mod events;
pub(super) mod logs;
pub(super) mod mcp;
pub(super) mod results;
pub(super) mod runs;
pub(super) mod schedules;
pub(super) mod web;

use super::reply::{HttpRefusal, Json};

/// An answer in JSON.
type Answer<T> = Result<Json<T>, HttpRefusal>;
