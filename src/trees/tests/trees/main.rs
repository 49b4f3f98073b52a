//! Run trees with the real git as the judge.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what a test cannot set up fails it at once; what is skipped is said"
)]

mod equal;
mod kept;
mod pool;
mod random;
mod results;
mod rig;
