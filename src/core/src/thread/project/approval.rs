//! What a person is asked about a run.

use super::Story;
use crate::model::RunSpec;
use crate::model::sandbox::Level;
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
            sandbox: sandbox_of(self.spec),
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

fn sandbox_of(spec: &RunSpec) -> String {
    let off = || Level::Off.name().to_owned();
    let sandbox = spec.sandbox.as_ref().map_or_else(off, ToString::to_string);
    if spec.may_control {
        return format!("{sandbox}; may ask the engine");
    }
    sandbox
}
