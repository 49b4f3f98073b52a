//! What people decide about a run that waits for them, on its way to the loop.

use super::control::{EngineControl, refuse_note, summary_of};
use super::request::Request;
use crate::machine::Approval;
use crate::model::{Diagnostic, RunId};
use crate::process::own_name;
use crate::protocol::{ApproveRequest, DenyRequest, RunSummary};

impl EngineControl {
    /// Takes somebody's approval to the loop.
    pub(super) fn approve_run(
        &self,
        run: RunId,
        request: &ApproveRequest,
    ) -> Result<RunSummary, Diagnostic> {
        self.shown(run)?;
        let note = request.note.clone();
        if let Some(note) = &note {
            refuse_note(note)?;
        }
        let approval = Approval {
            digest: request.digest.clone(),
            by: request.by.clone().unwrap_or_else(own_name),
            note,
        };
        summary_of(self.ask(Request::Approve { run, approval })?)
    }

    /// Takes somebody's refusal to the loop.
    pub(super) fn deny_run(
        &self,
        run: RunId,
        request: &DenyRequest,
    ) -> Result<RunSummary, Diagnostic> {
        self.shown(run)?;
        refuse_note(&request.note)?;
        let by = request.by.clone().unwrap_or_else(own_name);
        let note = request.note.clone();
        summary_of(self.ask(Request::Deny { run, by, note })?)
    }
}
