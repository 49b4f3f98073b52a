//! What the loop has done for schedules off its thread.

use super::request::Submission;
use super::run_factory::{RunFactory, TriggerOptions};
use super::secrets;
use super::trigger_probe::{self, ProbeResult};
use crate::model::schedule::{Occurrence, Schedule};
use crate::model::{Diagnostic, RunId};

/// What becomes of a slot that is to run: a run that may be accepted, or why there is none.
pub(super) trait Prepares: Send + Sync {
    /// Makes the run of a slot; files are read, nothing is stored but secrets.
    fn prepare(&self, schedule: &Schedule, due: Occurrence) -> Result<Submission, Diagnostic>;
    /// Looks at what a schedule waits for; `seen` is what was seen last. The error says why nothing can be seen.
    fn probe(&self, schedule: &Schedule, seen: Option<&str>) -> Result<ProbeResult, String>;
    /// Forgets what was kept for a run that is not accepted.
    fn forget(&self, run: RunId);
}

impl Prepares for RunFactory {
    fn prepare(&self, schedule: &Schedule, due: Occurrence) -> Result<Submission, Diagnostic> {
        self.due(schedule, due, &TriggerOptions::default())
    }

    fn probe(&self, schedule: &Schedule, seen: Option<&str>) -> Result<ProbeResult, String> {
        trigger_probe::probe(self, schedule, seen)
    }

    fn forget(&self, run: RunId) {
        secrets::forget(&self.state_dir, run);
    }
}
