//! What the loop is told when definitions, or what schedules wait for, may have changed.

use super::control::EngineControl;
use super::host::Host;
use super::request::Request;
use crate::model::Diagnostic;

impl EngineControl {
    /// Hands the schedules of the current definitions to the loop; only a daemon fires them.
    pub(super) fn put_schedules_in_force(&self) -> Result<(), Diagnostic> {
        if self.host != Host::Daemon {
            return Ok(());
        }
        let catalog = self.factory.definitions.current();
        self.ask(Request::Schedules(catalog.fired().to_vec()))?;
        if !catalog.has_errors() {
            self.ask(Request::CloseAbsent)?;
        }
        Ok(())
    }

    /// What a schedule waits for may have changed; without one that of every schedule. The loop has it looked at.
    pub(super) fn hint(&self, schedule: Option<&str>) -> Result<(), Diagnostic> {
        let schedule = schedule.map(str::to_owned);
        self.ask(Request::Hint(schedule)).map(|_| ())
    }
}
