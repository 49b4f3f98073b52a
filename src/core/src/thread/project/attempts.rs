//! What each attempt of a run came to.

use super::Story;
use crate::machine::{Ending, Run, State};
use crate::model::Timestamp;
use crate::model::evidence::{CheckRecord, Ended, RestoreReport};
use crate::model::outcome::{Failure, Step};
use crate::protocol::AttemptView;

impl Story<'_> {
    pub(super) fn checked(
        &mut self,
        before: &Run,
        checks: &[CheckRecord],
        failure: Option<&Failure>,
    ) {
        let failed = failure.cloned().or_else(|| self.new_failure(before));
        let reconciled = self.run.facts.reconciled;
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.checks = checks.to_vec();
            if reconciled {
                attempt.failure = None;
            } else if failed.is_some() {
                attempt.failure = failed;
            }
        }
    }

    pub(super) fn begin_attempt(&mut self, before: &Run, at: Timestamp) {
        if self.run.facts.attempts > before.facts.attempts {
            self.outputs.clear();
            self.changed.clear();
            self.changed_count = 0;
            self.not_restored = RestoreReport::default();
            self.attempts.push(AttemptView {
                attempt: self.run.facts.attempts,
                started_at: at,
                execution: None,
                checks: Vec::new(),
                failure: None,
            });
        }
    }

    pub(super) fn owner_lost(&mut self, before: &Run) {
        if !matches!(before.state, State::Executing { .. }) {
            return;
        }
        let failure = ended_because(before).unwrap_or_else(|| {
            let message = "the engine was lost while the command ran";
            Failure::new(Step::Execute, "owner_lost", message)
        });
        if let Some(attempt) = self.attempts.last_mut() {
            attempt.failure = Some(failure);
        }
    }

    /// The failure that the last event added, if it added one.
    fn new_failure(&self, before: &Run) -> Option<Failure> {
        (self.run.facts.failed_attempts > before.facts.failed_attempts)
            .then(|| self.run.facts.last_failure.clone())
            .flatten()
    }

    /// Why the execution did not end well, also where its run waits for the end of a rate limit.
    pub(super) fn why_ended(&self, before: &Run, ended: &Ended) -> Option<Failure> {
        let waits = self.run.facts.rate_waits > before.facts.rate_waits;
        let limited = || Failure::new(Step::Execute, "rate_limited", ended.describe());
        ended_because(before)
            .or_else(|| self.new_failure(before))
            .or_else(|| waits.then(limited))
    }
}

/// Why the command was ended from outside, if it was.
fn ended_because(before: &Run) -> Option<Failure> {
    let State::Executing {
        ending: Some(ending),
        ..
    } = &before.state
    else {
        return None;
    };
    let (code, message) = match ending {
        Ending::Cancelled(_) => ("cancelled", "a user cancelled it"),
        Ending::RuntimeExhausted => ("max_runtime", "the limit of all attempts was reached"),
        Ending::Interrupted => ("interrupted", "the engine was stopped while it ran"),
    };
    Some(Failure::new(Step::Execute, code, message))
}
