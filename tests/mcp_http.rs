//! The Model Context Protocol over HTTP: a real daemon, spoken to on its socket and over TCP.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "what prepares a test fails by panicking, and says when it skips"
)]

#[path = "mcp_http/bounds.rs"]
mod bounds;
#[path = "mcp_http/doors.rs"]
mod doors;
#[path = "mcp_http/ends.rs"]
mod ends;
#[path = "mcp_http/host.rs"]
mod host;
#[path = "mcp_http/protocol.rs"]
mod protocol;
#[path = "mcp_http/runs.rs"]
mod runs;
#[path = "mcp_http/session.rs"]
mod session;
#[path = "mcp_http/wire.rs"]
mod wire;
#[expect(dead_code, reason = "shared with other tests, which use more of it")]
mod workspace;
