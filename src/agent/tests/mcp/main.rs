//! Sessions with tool servers that follow a script, through pipes and over real HTTP.
#![expect(
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it at once"
)]

mod http;
mod http_rig;
mod pipes;
mod rig;
