//! Every state a repository can be in when a run begins, changes it or ends: each is either
//! refused by a named code with nothing changed, or done right.
//!
//! The states are built by the real `git`; what this program may have broken is looked for with
//! it afterwards.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod bed;
mod begun;
mod ends;
mod ordinary;
mod places;
mod runs;
