//! Sessions of the web page, kept in the store: the loop commits them as it does everything, and knows nothing of them.

use crate::control::EngineControl;
use crate::model::{Diagnostic, WebSession, WebSessionChanges};
use crate::request::Request;

/// Where sessions of the web page are kept.
pub trait WebSessionStore: Send + Sync {
    /// All that have not been ended; one whose record cannot be read has ended.
    ///
    /// # Errors
    /// The store cannot be read.
    fn all(&self) -> Result<Vec<WebSession>, Diagnostic>;
    /// Writes what is different; on return it is durable.
    ///
    /// # Errors
    /// The engine has ended, or its disk is full.
    fn record(&self, changes: WebSessionChanges) -> Result<(), Diagnostic>;
}

impl WebSessionStore for EngineControl {
    fn all(&self) -> Result<Vec<WebSession>, Diagnostic> {
        let mut found = Vec::new();
        self.store.web_sessions(&mut |session| match session {
            Ok(session) => found.push(session),
            Err(error) => tracing::warn!(%error, "a session of the web page cannot be read"),
        })?;
        Ok(found)
    }

    fn record(&self, changes: WebSessionChanges) -> Result<(), Diagnostic> {
        self.ask(Request::WebSessions(changes)).map(drop)
    }
}
