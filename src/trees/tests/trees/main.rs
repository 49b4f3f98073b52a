//! Run trees with the real git as the judge.
#![expect(
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it at once"
)]

mod equal;
mod kept;
mod merged;
mod pool;
mod random;
mod results;
mod rig;
mod submodules;
