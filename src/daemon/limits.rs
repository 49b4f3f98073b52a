//! Bounds of the server.

use std::time::Duration;

/// Bounds of the server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Runs watched at once.
    pub watchers: usize,
    /// Questions to the engine at once, in each of the lanes of reading and of changing.
    pub calls: usize,
    /// How long a request waits for its lane before it is told `busy`.
    pub call_patience: Duration,
    /// Bytes of a body.
    pub body_bytes_max: usize,
    /// Bytes of a request's head.
    pub head_bytes_max: usize,
    /// How long a head may take, and how long a body.
    pub read_patience: Duration,
    /// How long a write may make no progress.
    pub write_patience: Duration,
    /// After how long a silent stream of events sends a comment.
    pub keep_alive: Duration,
    /// How long requests under way may take to end once the server stops.
    pub stop_patience: Duration,
}

impl Limits {
    /// Bounds of the door of the web page: beside those of the socket, so that it takes nothing from that.
    pub(super) fn of_page(&self) -> Limits {
        Limits {
            connections: (self.connections / 2).max(1),
            watchers: (self.watchers / 2).max(1),
            calls: (self.calls / 2).max(1),
            ..self.clone()
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 256,
            watchers: 64,
            calls: 32,
            call_patience: Duration::from_secs(5),
            body_bytes_max: 1024 * 1024,
            head_bytes_max: 32 * 1024,
            read_patience: Duration::from_secs(10),
            write_patience: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            stop_patience: Duration::from_secs(2),
        }
    }
}
