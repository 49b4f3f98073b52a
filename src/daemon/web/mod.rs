//! The web page: who may log in, what a browser may ask, and the door at which it is served.
//!
//! `secret` → `codes · sessions · slowing` → `logins` (who is logged in) → `doors` (what listens) → `admission · page` →
//! `serve` (what is answered).

mod admission;
mod codes;
pub(super) mod doors;
pub(super) mod logins;
mod page;
mod secret;
pub(super) mod serve;
mod sessions;
mod slowing;
