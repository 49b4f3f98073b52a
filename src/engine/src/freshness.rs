//! Whether an engine has the definitions as they are now.

use std::sync::PoisonError;

use super::control::EngineControl;
use super::{Host, definitions};
use crate::model::Diagnostic;
use crate::protocol::Control;

impl EngineControl {
    /// Reads definitions again if any of them changed, or the rules of a zone; answers whether any did.
    pub(super) fn reload_if_stale(&self) -> Result<bool, Diagnostic> {
        let _alone = self
            .rereading
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        definitions::look_at_zones();
        if self.factory.definitions.current().is_stale() {
            self.reload().map(|_| true)
        } else {
            Ok(false)
        }
    }

    /// Nobody watches the files for an engine in a command, which may live for long: other commands and the clients of a
    /// server find it, and know the definitions as they are now.
    pub(super) fn see_changes(&self) -> Result<(), Diagnostic> {
        match self.host {
            Host::InProcess => self.reload_if_stale().map(drop),
            Host::Daemon => Ok(()),
        }
    }
}
