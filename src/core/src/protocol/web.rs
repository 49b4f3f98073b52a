//! The web page: the door through which it is served, and who logs in.

use serde::{Deserialize, Serialize};

use crate::model::{AccessRole, Diagnostic, Timestamp};

/// Asks to serve the page for as long as the answer is read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebOpenRequest {
    /// The port that is wanted; absent: the one it is served at already, or any that is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// The page is served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WebOpened {
    /// `http://127.0.0.1:8930/`
    pub address: String,
    /// Its port.
    pub port: u16,
    /// Whether the configuration asks for it, so that it stays served.
    pub persistent: bool,
}

/// Asks for a code to log in with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebCodeRequest {
    /// Whether whoever logs in with it may change nothing.
    #[serde(default)]
    pub read_only: bool,
}

/// A code that logs in once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WebCode {
    /// The code.
    pub code: String,
    /// `http://127.0.0.1:8930/`; with `#login=CODE` behind it the page logs in by itself.
    pub address: String,
    /// Until when it can be used.
    pub expires_at: Timestamp,
}

/// Logs in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebLoginRequest {
    /// The code that `workerctl web` was given.
    pub code: String,
}

/// Somebody has logged in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WebLogin {
    /// What goes into `Authorization: Bearer …` of every request.
    pub token: String,
    /// What begins with it.
    #[serde(flatten)]
    pub session: WebSessionView,
}

/// A session of the web page as its page sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WebSessionView {
    /// The user who logged in.
    pub user: String,
    /// What they may do now: `read` or `admin`.
    #[schemars(with = "String")]
    pub role: AccessRole,
    /// Whether the session may change nothing, whatever its user may.
    pub read_only: bool,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// Sessions have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WebLoggedOut {
    /// How many.
    #[serde(rename = "session_count")]
    pub sessions: u64,
}

/// The web page of a daemon, as the command line sees it.
pub trait WebControl: Send + Sync {
    /// Serves the page until it cannot go on, which is told as an error; `opened` is told once where.
    fn open(
        &self,
        request: &WebOpenRequest,
        opened: &mut dyn FnMut(WebOpened),
    ) -> Result<(), Diagnostic>;
    /// Gives a code to log in with.
    fn code(&self, request: &WebCodeRequest) -> Result<WebCode, Diagnostic>;
    /// Ends all sessions that this user may end: their own; every one, for the engine's own user and root.
    fn end_sessions(&self) -> Result<WebLoggedOut, Diagnostic>;
}
