//! Turns over real HTTP, against a server that follows a script in all five dialects.
#![expect(
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it at once"
)]

mod answers;
mod costs;
mod cuts;
mod failures;
mod requests;
mod rig;
#[path = "../server/mod.rs"]
mod server;
mod stopping;
mod stored;
