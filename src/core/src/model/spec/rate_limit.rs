//! What a run does when the server of its model takes no more requests for a while.

use serde::{Deserialize, Serialize};

/// How long, and how often, a run waits in the queue for the end of a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RateLimitWait {
    /// The longest wait in milliseconds; a limit that ends later fails the attempt.
    pub wait_ms: u64,
    /// How many such waits there may be.
    pub times: u32,
}
