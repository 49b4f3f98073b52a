//! The ways to an end: restoring, saving, finished.

use super::apply::failed;
use super::attempt::owner_lost;
use super::event::{Event, Resolution};
use super::state::{AfterRestore, AfterSave, Ending, Goal, Run, State};
use super::{CRASH_ATTEMPTS_MAX, TREE_LOST};
use crate::model::Timestamp;
use crate::model::evidence::RestoreReport;
use crate::model::outcome::{Failure, Outcome, Results, Step, StepResult};

impl Run {
    /// Reverts what a mutating run changed, and the outputs of another run before its next attempt.
    pub(super) fn restore_then(&mut self, at: Timestamp, then: AfterRestore) {
        let is_retry = matches!(then, AfterRestore::Retry { .. });
        let restores = self.plan.mutating || self.plan.restores_outputs && is_retry;
        if restores && self.facts.touched {
            self.state = State::Restoring { then };
        } else {
            self.after_restore(at, then);
        }
    }

    pub(super) fn after_restore(&mut self, at: Timestamp, then: AfterRestore) {
        match then {
            AfterRestore::Retry { wait_ms: 0 } => self.start_executing(at),
            AfterRestore::Retry { wait_ms } => {
                let attempt = self.facts.attempts.saturating_add(1);
                self.state = State::BackingOff {
                    attempt,
                    since: at,
                    for_ms: wait_ms,
                };
            }
            AfterRestore::Requeue => {
                // Waiting in the queue is no part of the limit of all attempts: it counts anew.
                self.facts.executing_since = None;
                self.state = State::Queued;
            }
            AfterRestore::Finish(outcome) => self.save_then_finish(outcome),
        }
    }

    /// Ends an attempt whose result could not be recorded.
    pub(super) fn recording_failed(
        &mut self,
        at: Timestamp,
        failure: &Failure,
        goal: &Goal,
        ending: Option<&Ending>,
    ) {
        if self.plan.mutating && failure.code == TREE_LOST && ending.is_none() {
            return self.tree_lost(at, failure, goal);
        }
        self.facts.results.verification = StepResult::Failed {
            message: failure.message.clone(),
        };
        let outcome = match (goal, ending) {
            (Goal::Restore(AfterRestore::Finish(outcome)), _) => outcome.clone(),
            (_, Some(Ending::Cancelled(_))) => Outcome::Cancelled,
            _ if goal.is_reconciling() => owner_lost(),
            _ => failed(failure),
        };
        self.restore_then(at, AfterRestore::Finish(outcome));
    }

    /// What the attempt did went with its tree, which a power cut has torn. So it is as if the engine had been lost
    /// while the skill ran; an attempt that ends anyhow loses only what people would have been shown of it.
    fn tree_lost(&mut self, at: Timestamp, failure: &Failure, goal: &Goal) {
        let attempts = self.facts.crash_attempts + 1;
        // Another attempt would leave another result than the one that was approved.
        let repeats = self.plan.is_repeatable() && self.facts.held.is_none();
        let then = match goal {
            Goal::Restore(then) => then.clone(),
            Goal::Verify { .. } if repeats && attempts < CRASH_ATTEMPTS_MAX => {
                self.facts.crash_attempts = attempts;
                self.facts.last_failure = Some(failure.clone());
                AfterRestore::Retry { wait_ms: 0 }
            }
            Goal::Verify { .. } => {
                self.facts.results.verification = StepResult::Failed {
                    message: failure.message.clone(),
                };
                let why = TREE_LOST.to_owned();
                AfterRestore::Finish(Outcome::Unknown { why })
            }
        };
        self.restore_then(at, then);
    }

    pub(super) fn save_then_finish(&mut self, outcome: Outcome) {
        self.state = State::Saving {
            next: AfterSave::Finish(outcome),
            cancelled: false,
        };
    }

    /// Ends a run whose wake gate found nothing to do. There is nothing to save but the line that says so, which
    /// closing writes: most runs of such a schedule end here.
    pub(super) fn nothing_to_do(&mut self) {
        self.facts.results = Results::nothing_to_do();
        self.finish(Outcome::Succeeded);
    }

    /// Ends the run; steps that were never reached are skipped.
    pub(super) fn finish(&mut self, outcome: Outcome) {
        let why = match &outcome {
            Outcome::Succeeded if !self.plan.mutating => "non_mutating",
            _ => "not_reached",
        };
        let results = &mut self.facts.results;
        for result in [
            &mut results.execution,
            &mut results.verification,
            &mut results.hook,
            &mut results.save,
            &mut results.commit,
        ] {
            if *result == StepResult::Pending {
                *result = StepResult::skipped(why);
            }
        }
        self.state = State::Finished {
            outcome,
            closed: false,
        };
    }

    pub(super) fn in_restoring(
        &mut self,
        at: Timestamp,
        event: &Event,
        then: &AfterRestore,
    ) -> Option<()> {
        match event {
            Event::Restored { report } => self.restored(at, report, then),
            Event::CancelRequested { .. } => {
                if !matches!(then, AfterRestore::Finish(_)) {
                    let then = AfterRestore::Finish(Outcome::Cancelled);
                    self.state = State::Restoring { then };
                }
            }
            Event::OwnerLost => {}
            _ => return None,
        }
        Some(())
    }

    fn restored(&mut self, at: Timestamp, report: &RestoreReport, then: &AfterRestore) {
        let left = report.edited_since.len() + report.failed.len();
        for note in &report.notes {
            self.warn(note.clone());
        }
        self.facts.not_restored = u32::try_from(left).unwrap_or(u32::MAX);
        if !report.is_complete() {
            self.warn(format!("{left} paths could not be put back"));
            if !matches!(then, AfterRestore::Finish(_)) {
                let failure = Failure::new(
                    Step::Execute,
                    "not_restored",
                    "what the attempt changed could not be put back, so no other attempt was made",
                );
                self.save_then_finish(failed(&failure));
                return;
            }
        }
        self.after_restore(at, then.clone());
    }

    pub(super) fn in_finished(
        &mut self,
        event: &Event,
        outcome: &Outcome,
        closed: bool,
    ) -> Option<()> {
        match (event, outcome) {
            (Event::Closed, _) if !closed => {
                self.state = State::Finished {
                    outcome: outcome.clone(),
                    closed: true,
                };
            }
            (Event::OwnerLost, _) if !closed => {}
            (
                Event::Resolved {
                    resolution, note, ..
                },
                Outcome::Unknown { .. },
            ) => {
                self.facts.resolution = Some(*resolution);
                let outcome = match resolution {
                    Resolution::Succeeded => Outcome::Succeeded,
                    Resolution::Failed => failed(&Failure::new(
                        Step::Execute,
                        "resolved_failed",
                        note.clone(),
                    )),
                };
                self.state = State::Finished {
                    outcome,
                    closed: false,
                };
            }
            (Event::LandedLater { oid, .. }, _) if self.kept_commit().is_some() => {
                self.facts.commit = Some(oid.clone());
                self.facts.results.commit = StepResult::Passed;
                self.state = State::Finished {
                    outcome: Outcome::Succeeded,
                    closed: false,
                };
            }
            (Event::Discarded { .. }, _) if self.kept_commit().is_some() => {
                self.facts.discarded = true;
                self.state = State::Finished {
                    outcome: outcome.clone(),
                    closed: false,
                };
            }
            _ => return None,
        }
        Some(())
    }
}
