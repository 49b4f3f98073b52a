//! What a person is asked about a run.

use super::Story;
use crate::machine::{Entry, Event, Run};
use crate::model::sandbox::Level;
use crate::model::spec::Gate;
use crate::model::{RunSpec, Timestamp};
use crate::protocol::ApprovalView;

/// When a person was asked about a run, and what they answered: an approval itself is in the run's state.
#[derive(Debug, Clone, Default)]
pub struct PersonAnswer {
    asked_at: Option<Timestamp>,
    approved_at: Option<Timestamp>,
    denied_at: Option<Timestamp>,
    denied_by: Option<String>,
    /// Why they denied it.
    denial: Option<String>,
}

impl PersonAnswer {
    /// Takes the next entry and the run after it.
    pub(super) fn push(&mut self, entry: &Entry, after: &Run) {
        if after.asked().is_some() {
            self.asked_at = Some(entry.at);
        }
        if let Event::Approved { .. } = entry.event {
            self.approved_at = Some(entry.at);
        }
        if let Event::Denied { by, note } = &entry.event {
            self.denied_at = Some(entry.at);
            self.denied_by = Some(by.clone());
            self.denial = Some(note.clone()).filter(|note| !note.is_empty());
        }
    }
}

impl Story<'_> {
    /// What a person is asked, or has said, where one has to approve it.
    pub fn approval(&self) -> Option<ApprovalView> {
        let (run, asked) = (&self.run, self.spec.plan.approval?);
        let given = run.facts.approval.as_ref();
        let answer = &self.answer_of_person;
        let people = self
            .spec
            .checks
            .iter()
            .filter(|check| check.program.is_none());
        let command = || self.spec.program.show();
        Some(ApprovalView {
            before: asked.before,
            asked_at: answer.asked_at,
            expires_at: run.asked().map(|(at, for_ms)| at.plus_millis(for_ms)),
            digest: given.map(|given| given.digest.clone()),
            sandbox: sandbox_of(self.spec),
            command: (asked.before == Gate::Execution).then(command),
            result: run.facts.held.clone(),
            outputs_in: None,
            checkpoints: people.map(|check| check.description.clone()).collect(),
            approved_by: given.map(|given| given.by.clone()),
            approved_at: answer.approved_at,
            denied_by: answer.denied_by.clone(),
            denied_at: answer.denied_at,
            note: given
                .and_then(|given| given.note.clone())
                .or_else(|| answer.denial.clone()),
        })
    }
}

/// Returns what the commands of a run may do, in a line for people.
pub fn sandbox_of(spec: &RunSpec) -> String {
    let off = || Level::Off.name().to_owned();
    let sandbox = spec.sandbox.as_ref().map_or_else(off, ToString::to_string);
    if spec.may_control {
        return format!("{sandbox}; may ask the engine");
    }
    sandbox
}
