//! The web page: where it is served, and who has logged in to it.

use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// Groups of a session that count: of more, those beyond give no role.
pub const WEB_GROUPS_MAX: usize = 256;

/// The part of the configuration that is about the web page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebSettings {
    /// `127.0.0.1:8930`: where the daemon serves it. Always a loopback address; absent: only while `workerctl web` runs.
    pub listen: Option<String>,
    /// Whether nobody changes anything there.
    pub read_only: bool,
}

/// Somebody who has logged in. What they may do is worked out anew for each request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebSession {
    /// SHA-256 of the token in hex; the token itself is nowhere.
    pub token_digest: String,
    /// The user who asked for the login.
    pub uid: u32,
    /// Their groups at that time, at most [`WEB_GROUPS_MAX`].
    pub groups: Vec<u32>,
    /// Whether it may change nothing, whatever its user may.
    pub read_only: bool,
    /// The port at which it began, and at no other of which it counts: whoever takes a port that is free again has not
    /// taken the page at another one.
    #[serde(default)]
    pub port: u16,
    /// When it began.
    pub begun_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// What is to be different about sessions, at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebSessionChanges {
    /// One that begins.
    pub begun: Option<WebSession>,
    /// Those that end, by the digests of their tokens.
    pub ended: Vec<String>,
}
