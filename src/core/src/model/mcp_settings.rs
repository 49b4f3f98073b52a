//! What clients of the Model Context Protocol may do, and how much they are told at once.

use serde::{Deserialize, Serialize};

/// The part of the configuration that is about clients of the Model Context Protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpSettings {
    /// Whether they may run skills that change things.
    pub mutating: bool,
    /// Bytes of the list of skills in the description of one tool.
    pub list_bytes: u64,
    /// How long a call waits for its run, in milliseconds.
    pub wait_ms: u64,
    /// How often changed definitions are looked for, in milliseconds.
    pub refresh_ms: u64,
    /// The protocol over HTTP.
    #[serde(default)]
    pub http: McpHttp,
}

/// The protocol over HTTP, on the daemon's socket and where TCP is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpHttp {
    /// `127.0.0.1:8931`: where it is served over TCP too. Always a loopback address.
    pub listen: Option<String>,
    /// The file that holds the bearer token of TCP: absolute, below `~/` or `$CREDENTIALS_DIRECTORY/`.
    pub token_file: Option<String>,
    /// Origins whose pages may ask, such as `http://localhost:6274`.
    pub origins: Vec<String>,
    /// Sessions at once.
    pub sessions: u32,
    /// After how long a session ends that nobody uses, in milliseconds.
    pub idle_ms: u64,
}

impl Default for McpHttp {
    fn default() -> McpHttp {
        McpHttp {
            listen: None,
            token_file: None,
            origins: Vec::new(),
            sessions: 64,
            idle_ms: 30 * 60_000,
        }
    }
}

impl Default for McpSettings {
    fn default() -> McpSettings {
        McpSettings {
            mutating: false,
            list_bytes: 32 * 1024,
            wait_ms: 45_000,
            refresh_ms: 30_000,
            http: McpHttp::default(),
        }
    }
}
