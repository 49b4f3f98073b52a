//! The plan of a run: the part of its specification that the state machine decides by.

use super::Submitting;
use crate::model::definition::RunText;
use crate::model::spec::{OnCrash, OutputKind, OutputSpec, Plan, Retry};

impl Submitting<'_> {
    /// What a child changes is committed, or undone, with the run that started it; nobody retries it but that one.
    fn plan_of_child(&self, outputs: &[OutputSpec], stages: bool) -> Plan {
        let skill = self.skill;
        Plan {
            mutating: false,
            idempotent: false,
            once: false,
            validates: !skill.pre_checks.is_empty() || skill.wake.is_some(),
            prepares: outputs.iter().any(|output| output.path.is_some()),
            verifies: self.verifies(outputs),
            proves: Some(skill.proves()),
            on_crash: self.on_crash(),
            retry: Retry::ONCE,
            hooks: 0,
            post_commit_hooks: 0,
            begins_anew: skill.agent.program.is_some(),
            restores_outputs: stages,
            max_runtime_ms: skill.max_runtime_ms,
            approval: None,
            // Who started it would wait with it, and holds a place.
            on_rate_limit: None,
        }
    }

    /// A conversation that was lost with its engine has not ended, whatever it wrote until then.
    fn on_crash(&self) -> OnCrash {
        match self.skill.run {
            RunText::Instructions => OnCrash::Restore,
            RunText::Shell(_) | RunText::Argv(_) | RunText::Script { .. } => self.skill.on_crash,
        }
    }

    fn verifies(&self, outputs: &[OutputSpec]) -> bool {
        let has_kind = |output: &OutputSpec| output.kind != OutputKind::Console;
        !self.skill.checks.is_empty() || outputs.iter().any(has_kind) || self.is_compared()
    }

    /// Returns the plan of the run; `looks`: its scripts or input paths are checked before it starts, `stages`: its
    /// outputs are written to a directory of its own.
    pub(super) fn plan(&self, outputs: &[OutputSpec], looks: bool, stages: bool) -> Plan {
        let skill = self.skill;
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        if self.around.parent.is_some() {
            return self.plan_of_child(outputs, stages);
        }
        Plan {
            mutating: skill.mutating,
            idempotent: skill.idempotent == Some(true),
            once: skill.idempotent == Some(false),
            // What was approved before the command is looked at once more when it begins.
            validates: looks
                || skill.mutating
                || skill.approval.is_some()
                || skill.wake.is_some()
                || !skill.pre_checks.is_empty(),
            prepares: skill.mutating || outputs.iter().any(|output| output.path.is_some()),
            verifies: self.verifies(outputs),
            proves: Some(skill.proves()),
            on_crash: self.on_crash(),
            retry: if skill.is_repeatable() {
                skill.retry.clone()
            } else {
                Retry::ONCE
            },
            hooks: if skill.mutating {
                count(skill.hooks.len())
            } else {
                0
            },
            post_commit_hooks: if skill.mutating {
                count(self.post_commit().len())
            } else {
                0
            },
            begins_anew: skill.agent.program.is_some(),
            restores_outputs: stages,
            max_runtime_ms: skill.max_runtime_ms,
            approval: skill.approval,
            on_rate_limit: skill.on_rate_limit,
        }
    }
}
