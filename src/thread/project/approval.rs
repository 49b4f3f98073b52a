//! What a person is asked about a run.

use super::Story;
use crate::model::spec::Gate;
use crate::protocol::ApprovalView;

impl Story<'_> {
    /// What a person is asked, or has said, where one has to approve it.
    pub fn approval(&self) -> Option<ApprovalView> {
        let (run, asked) = (&self.run, self.spec.plan.approval?);
        let given = run.facts.approval.as_ref();
        let people = self
            .spec
            .checks
            .iter()
            .filter(|check| check.program.is_none());
        let command = || self.spec.program.show();
        Some(ApprovalView {
            before: asked.before,
            asked_at: self.asked_at,
            expires_at: run.asked().map(|(at, for_ms)| at.plus_millis(for_ms)),
            digest: given.map(|given| given.digest.clone()),
            command: (asked.before == Gate::Execution).then(command),
            result: run.facts.held.clone(),
            outputs_in: None,
            checkpoints: people.map(|check| check.description.clone()).collect(),
            approved_by: given.map(|given| given.by.clone()),
            approved_at: self.approved_at,
            note: given.and_then(|given| given.note.clone()),
        })
    }
}
