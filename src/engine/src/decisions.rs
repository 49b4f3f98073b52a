//! Which run a caller names, and what people decide about it, on its way to the loop.

use super::control::{EngineControl, refuse_note, summary_of};
use super::refusals::no_such_run;
use super::request::Request;
use crate::machine::Approval;
use crate::model::{Diagnostic, Kind, RunId};
use crate::process::own_name;
use crate::protocol::{ApproveRequest, DenyRequest, LATEST, RunSummary, refuse_latest};

impl EngineControl {
    /// The run that a full id, a unique prefix or suffix, or `latest` names.
    pub(super) fn resolve_id(&self, text: &str) -> Result<RunId, Diagnostic> {
        if text == LATEST {
            return self.latest();
        }
        if let Ok(run) = text.parse::<RunId>() {
            return Ok(run);
        }
        let mut found: Vec<RunId> = self
            .view
            .runs()
            .iter()
            .map(|shown| shown.spec.run)
            .filter(|run| run.matches(text))
            .collect();
        found.extend(self.store.find(text, 10)?);
        found.sort_unstable();
        found.dedup();
        match found.as_slice() {
            [run] => Ok(*run),
            [] => Err(no_such_run(text)),
            several => {
                let mut refused = Diagnostic::new(
                    Kind::Usage,
                    "run_ambiguous",
                    format!("`{text}` names {} runs", several.len()),
                )
                .hint("give more of the id");
                refused.details = several.iter().map(ToString::to_string).collect();
                Err(refused)
            }
        }
    }

    fn latest(&self) -> Result<RunId, Diagnostic> {
        if let Some(shown) = self.view.runs().last() {
            return Ok(shown.spec.run);
        }
        let newest = self.store.newest()?;
        newest
            .ok_or_else(|| Diagnostic::new(Kind::NotFound, "run_not_found", "there is no run yet"))
    }

    /// Returns the run that a decision is about: as [`Self::resolve_id`] does, but `latest` is refused.
    ///
    /// A run may be submitted between the moment in which a person looked at the latest one and their decision.
    pub(super) fn decided_id(&self, text: &str) -> Result<RunId, Diagnostic> {
        let run = self.resolve_id(text)?;
        if text == LATEST {
            return Err(refuse_latest(run));
        }
        Ok(run)
    }

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
