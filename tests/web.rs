//! The web page: a real daemon, asked as a browser asks, and as other pages and users of the machine would.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "what prepares a test fails by panicking, and says when it skips"
)]

#[path = "web/admission.rs"]
mod admission;
#[path = "web/bounds.rs"]
mod bounds;
#[path = "web/command.rs"]
mod command;
#[path = "web/headers.rs"]
mod headers;
#[path = "web/host.rs"]
mod host;
#[path = "web/logins.rs"]
mod logins;
#[path = "web/wire.rs"]
mod wire;
#[expect(dead_code, reason = "shared with other tests, which use more of it")]
mod workspace;
