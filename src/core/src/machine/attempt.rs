//! One attempt: executing, recording, verifying, and what follows a failure.

use super::CRASH_ATTEMPTS_MAX;
use super::apply::{cancel, failed};
use super::event::{CancelKind, Event};
use super::state::{AfterRestore, AfterSave, Ending, Goal, Run, State};
use crate::model::Timestamp;
use crate::model::evidence::{CheckRecord, Ended, Execution, Verdict};
use crate::model::outcome::{Failure, Outcome, Step, StepResult};
use crate::model::spec::OnCrash;

/// Why a failed attempt may be followed by another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FailedAt {
    Execution { timed_out: bool },
    Verification,
}

impl Run {
    pub(super) fn start_preparing(&mut self, at: Timestamp) {
        // What changes the repository cannot do without a baseline, whatever its plan says.
        if self.plan.prepares || self.plan.mutating {
            self.facts.touched = true;
            self.state = State::Preparing { ending: None };
        } else {
            self.start_executing(at);
        }
    }

    pub(super) fn start_executing(&mut self, at: Timestamp) {
        self.facts.attempts = self.facts.attempts.saturating_add(1);
        self.facts.recorded = false;
        self.facts.results.execution = StepResult::Pending;
        self.facts.results.verification = StepResult::Pending;
        self.facts.executing_since.get_or_insert(at);
        self.state = State::Executing {
            attempt: self.facts.attempts,
            ending: None,
        };
    }

    pub(super) fn start_verifying(&mut self, at: Timestamp, attempt: u32, reconciling: bool) {
        if self.plan.verifies {
            self.state = State::Verifying {
                attempt,
                reconciling,
                ending: None,
            };
        } else {
            self.facts.results.verification = StepResult::skipped("no_checks");
            self.verified(at, reconciling);
        }
    }

    /// Everything that had to pass has passed.
    fn verified(&mut self, at: Timestamp, reconciling: bool) {
        if reconciling && !self.facts.results.verification.eq(&StepResult::Passed) {
            self.restore_then(at, AfterRestore::Finish(owner_lost()));
            return;
        }
        self.facts.reconciled = reconciling;
        if !self.plan.mutating {
            self.save_then_finish(Outcome::Succeeded);
        } else if self.facts.rounds > 0 && self.facts.results.hook != StepResult::Pending {
            // What the hooks said of this change stands when it is put on another tip.
            self.state = State::Saving {
                next: AfterSave::Commit,
                cancelled: false,
            };
        } else if self.plan.hooks > 0 {
            self.state = State::PostHook {
                index: 0,
                ending: None,
            };
        } else {
            self.facts.results.hook = StepResult::skipped("no_hooks");
            self.state = State::Saving {
                next: AfterSave::Commit,
                cancelled: false,
            };
        }
    }

    pub(super) fn in_executing(
        &mut self,
        at: Timestamp,
        event: &Event,
        due: u32,
        ending: Option<&Ending>,
    ) -> Option<()> {
        match (event, ending) {
            (Event::ExecutionFinished { attempt, execution }, None) if *attempt == due => {
                self.execution_finished(at, execution);
            }
            (Event::ExecutionFinished { attempt, execution }, Some(why)) if *attempt == due => {
                self.facts.results.execution = StepResult::Failed {
                    message: execution.ended.describe(),
                };
                let then = self.after_ending(why);
                self.leave_conversation();
                self.record_then(at, Goal::Restore(then));
            }
            (Event::OwnerLost, Some(why)) => {
                self.facts.results.execution = StepResult::Unknown {
                    why: "owner_lost".to_owned(),
                };
                let then = self.after_ending(why);
                self.leave_conversation();
                self.record_then(at, Goal::Restore(then));
            }
            (Event::OwnerLost, None) => self.owner_lost_executing(at),
            (event, _) if self.in_conversation(event, due).is_some() => {}
            (Event::CancelRequested { kind, .. }, _) => {
                self.state = State::Executing {
                    attempt: due,
                    ending: cancel(ending, *kind),
                };
            }
            (Event::RuntimeExhausted, None) => {
                let ending = Some(Ending::RuntimeExhausted);
                self.state = State::Executing {
                    attempt: due,
                    ending,
                };
            }
            (Event::Interrupted, None) => {
                let ending = Some(Ending::Interrupted);
                self.state = State::Executing {
                    attempt: due,
                    ending,
                };
            }
            _ => return None,
        }
        Some(())
    }

    fn execution_finished(&mut self, at: Timestamp, execution: &Execution) {
        if execution.ended.is_success() {
            self.facts.results.execution = StepResult::Passed;
            self.record_then(at, Goal::Verify { reconciling: false });
            return;
        }
        let ended = match &execution.ended {
            Ended::TimedOut => {
                let after = crate::model::duration::show_millis(execution.duration_ms);
                format!("time limit reached: its `timeout`, after {after}")
            }
            other => other.describe(),
        };
        let message = match execution
            .stderr_tail
            .lines()
            .rfind(|line| !line.trim().is_empty())
        {
            Some(line) => format!("{ended}: {}", line.trim()),
            None => ended,
        };
        self.facts.results.execution = StepResult::Failed {
            message: message.clone(),
        };
        if self.waits_for_rate_limit(at, &execution.ended) {
            self.record_then(at, Goal::Restore(AfterRestore::Requeue));
            return;
        }
        let code = match &execution.ended {
            Ended::Exited { .. } => "exit_code",
            Ended::Signalled { .. } => "signal",
            Ended::TimedOut => "timeout",
            Ended::LimitReached { resource, .. } => resource.code(),
            Ended::Stopped => "stopped",
            Ended::NotStarted { code, .. }
            | Ended::Unfinished { code, .. }
            | Ended::Failed { code, .. } => code,
            Ended::Answered { .. } => "answered",
        };
        let failure = Failure::new(Step::Execute, code, message);
        if matches!(execution.ended, Ended::Unfinished { .. }) && self.plan.verifies {
            self.facts.unfinished = Some(failure);
            self.record_then(at, Goal::Verify { reconciling: false });
            return;
        }
        let timed_out = execution.ended == Ended::TimedOut;
        let repeatable = !matches!(
            execution.ended,
            Ended::NotStarted { .. } | Ended::Failed { again: false, .. }
        );
        let then =
            self.after_failed_attempt(failure, FailedAt::Execution { timed_out }, repeatable);
        self.record_then(at, Goal::Restore(then));
    }

    fn owner_lost_executing(&mut self, at: Timestamp) {
        self.facts.results.execution = StepResult::Unknown {
            why: "owner_lost".to_owned(),
        };
        self.facts.crash_attempts = self.facts.crash_attempts.saturating_add(1);
        self.leave_conversation();
        if !self.plan.is_repeatable() {
            let goal = if self.plan.can_reconcile() {
                Goal::Verify { reconciling: true }
            } else {
                if self.plan.on_crash == OnCrash::Verify {
                    self.facts.results.verification = StepResult::skipped("nothing_to_prove_it");
                }
                Goal::Restore(AfterRestore::Finish(owner_lost()))
            };
            self.record_then(at, goal);
        } else if self.facts.crash_attempts >= CRASH_ATTEMPTS_MAX {
            let failure = Failure::new(
                Step::Execute,
                "crash_loop",
                format!("the engine was lost {CRASH_ATTEMPTS_MAX} times while this skill ran"),
            );
            self.facts.results.execution = StepResult::Failed {
                message: failure.message.clone(),
            };
            self.record_then(at, Goal::Restore(AfterRestore::Finish(failed(&failure))));
        } else {
            self.record_then(at, Goal::Restore(AfterRestore::Retry { wait_ms: 0 }));
        }
    }

    pub(super) fn in_recording(
        &mut self,
        at: Timestamp,
        event: &Event,
        due: u32,
        goal: &Goal,
        ending: Option<&Ending>,
    ) -> Option<()> {
        match event {
            Event::ResultRecorded { attempt, result } if *attempt == due => {
                self.facts.recorded = true;
                self.warn_once(&result.warnings);
                let written = result.outputs.iter().any(|output| output.written);
                match (goal, ending) {
                    (Goal::Restore(AfterRestore::Finish(outcome)), _) => {
                        self.restore_then(at, AfterRestore::Finish(outcome.clone()));
                    }
                    (_, Some(why)) => {
                        let then = self.after_stop(goal.is_reconciling(), why);
                        self.restore_then(at, then);
                    }
                    (Goal::Restore(then), None) => self.restore_then(at, then.clone()),
                    (Goal::Verify { reconciling: true }, None)
                        if !written || result.incomplete.is_some() =>
                    {
                        let why = if written {
                            "change_incomplete"
                        } else {
                            "no_output_written"
                        };
                        self.facts.results.verification = StepResult::skipped(why);
                        if let Some(why) = &result.incomplete {
                            self.warn(format!(
                                "the engine was lost while the skill ran, and {why}"
                            ));
                        }
                        self.restore_then(at, AfterRestore::Finish(owner_lost()));
                    }
                    (Goal::Verify { reconciling }, None) => {
                        self.start_verifying(at, due, *reconciling);
                    }
                }
            }
            Event::RecordingFailed { attempt, failure } if *attempt == due => {
                self.recording_failed(at, failure, goal, ending);
            }
            Event::CancelRequested { kind, .. } => {
                let ending = cancel(ending, *kind);
                self.state = State::Recording {
                    attempt: due,
                    goal: goal.clone(),
                    ending,
                };
            }
            Event::RuntimeExhausted if ending.is_none() => {
                let ending = Some(Ending::RuntimeExhausted);
                self.state = State::Recording {
                    attempt: due,
                    goal: goal.clone(),
                    ending,
                };
            }
            Event::OwnerLost => {}
            _ => return None,
        }
        Some(())
    }

    pub(super) fn in_verifying(
        &mut self,
        at: Timestamp,
        event: &Event,
        due: u32,
        reconciling: bool,
        ending: Option<&Ending>,
    ) -> Option<()> {
        match (event, ending) {
            (
                Event::ChecksFinished {
                    attempt,
                    checks,
                    failure,
                    changed,
                },
                None,
            ) if *attempt == due => {
                if let Some(then) = self.checks_finished(at, reconciling, checks, failure.as_ref())
                {
                    self.put_back_then(at, *changed, then);
                }
            }
            (
                Event::ChecksFinished {
                    attempt, changed, ..
                },
                Some(why),
            ) if *attempt == due => {
                self.facts.results.verification = StepResult::skipped("ended_before");
                let then = self.after_stop(reconciling, why);
                self.put_back_then(at, *changed, then);
            }
            (Event::OwnerLost, Some(why)) => {
                let then = self.after_stop(reconciling, why);
                self.restore_then(at, then);
            }
            (Event::CancelRequested { kind, .. }, _) => {
                let ending = cancel(ending, *kind);
                self.state = State::Verifying {
                    attempt: due,
                    reconciling,
                    ending,
                };
            }
            (Event::RuntimeExhausted, None) => {
                let ending = Some(Ending::RuntimeExhausted);
                self.state = State::Verifying {
                    attempt: due,
                    reconciling,
                    ending,
                };
            }
            (Event::OwnerLost, None) => {}
            _ => return None,
        }
        Some(())
    }

    /// Puts back what the attempt changed; with what commands changed after it was recorded.
    pub(super) fn put_back_then(&mut self, at: Timestamp, changed: bool, then: AfterRestore) {
        if changed {
            self.record_then(at, Goal::Restore(then));
        } else {
            self.restore_then(at, then);
        }
    }

    /// Answers what follows the restore where the attempt has failed.
    fn checks_finished(
        &mut self,
        at: Timestamp,
        reconciling: bool,
        checks: &[CheckRecord],
        failure: Option<&Failure>,
    ) -> Option<AfterRestore> {
        let broken = checks.iter().find(|check| check.verdict == Verdict::Failed);
        let failure = match (failure, broken) {
            (Some(failure), _) => Some(failure.clone()),
            (None, Some(check)) => Some(Failure::new(
                Step::Verify,
                check.failed_code("check_failed"),
                describe_failed(check),
            )),
            (None, None) => None,
        };
        // That outputs are there says nothing of a command whose end nobody saw.
        let by_command = reconciling && self.plan.proves.is_some();
        let proven = checks.iter().any(|c| {
            let counts = c.must_pass && (c.command.is_some() || !by_command);
            counts && c.verdict == Verdict::Passed
        });
        if let Some(limit) = self.facts.unfinished.take() {
            if failure.is_some() || !proven {
                self.left_unfinished(failure);
                let at = FailedAt::Execution { timed_out: false };
                return Some(self.after_failed_attempt(limit, at, true));
            }
            self.facts.results.execution = StepResult::Passed;
            self.warn(format!(
                "{}; what is checked holds all the same",
                limit.message
            ));
        }
        let Some(failure) = failure else {
            self.facts.results.verification = if proven {
                StepResult::Passed
            } else {
                StepResult::skipped("nothing_must_pass")
            };
            for check in checks
                .iter()
                .filter(|check| check.verdict == Verdict::Warned)
            {
                self.warn(format!(
                    "check `{}` failed, though it need not pass",
                    check.description
                ));
            }
            self.verified(at, reconciling);
            return None;
        };
        self.facts.results.verification = StepResult::Failed {
            message: failure.message.clone(),
        };
        Some(if reconciling {
            AfterRestore::Finish(owner_lost())
        } else {
            self.after_failed_attempt(failure, FailedAt::Verification, true)
        })
    }

    fn after_failed_attempt(
        &mut self,
        failure: Failure,
        at: FailedAt,
        repeatable: bool,
    ) -> AfterRestore {
        self.facts.failed_attempts = self.facts.failed_attempts.saturating_add(1);
        self.facts.last_failure = Some(failure.clone());
        self.facts.turns = 0;
        let retry = &self.plan.retry;
        let wanted = match at {
            FailedAt::Execution { .. } => retry.on_execution,
            FailedAt::Verification => retry.on_verification,
        };
        // Another attempt would leave another result than the one that was approved.
        let safe = self.plan.is_repeatable() && self.facts.held.is_none();
        if repeatable && wanted && safe && self.facts.failed_attempts < retry.max_attempts {
            return AfterRestore::Retry {
                wait_ms: retry.wait_ms(self.facts.failed_attempts),
            };
        }
        AfterRestore::Finish(match at {
            FailedAt::Execution { timed_out: true } => Outcome::TimedOut {
                message: failure.message,
            },
            FailedAt::Execution { timed_out: false } | FailedAt::Verification => failed(&failure),
        })
    }

    /// What follows checks that were stopped. What could not be reconciled in time stays unknown: a limit
    /// of time says nothing about whether the lost command had done its work.
    fn after_stop(&self, reconciling: bool, why: &Ending) -> AfterRestore {
        match why {
            Ending::RuntimeExhausted if reconciling => AfterRestore::Finish(owner_lost()),
            Ending::RuntimeExhausted | Ending::Cancelled(_) | Ending::Interrupted => {
                self.after_ending(why)
            }
        }
    }

    fn after_ending(&self, why: &Ending) -> AfterRestore {
        match why {
            Ending::Cancelled(CancelKind::Graceful | CancelKind::Now) => {
                AfterRestore::Finish(Outcome::Cancelled)
            }
            Ending::RuntimeExhausted => AfterRestore::Finish(self.runtime_exhausted()),
            Ending::Interrupted if self.plan.is_repeatable() => AfterRestore::Requeue,
            Ending::Interrupted => {
                let message = "the engine was stopped while the skill ran";
                AfterRestore::Finish(failed(&Failure::new(Step::Execute, "interrupted", message)))
            }
        }
    }

    pub(super) fn runtime_exhausted(&self) -> Outcome {
        let limit = self.plan.max_runtime_ms.unwrap_or(0);
        let shown = crate::model::duration::show_millis(limit);
        Outcome::TimedOut {
            message: format!("`max_runtime` of {shown} was reached"),
        }
    }
}

fn describe_failed(check: &CheckRecord) -> String {
    let ended = check.ended.as_ref().map(Ended::describe);
    let why = ended.or_else(|| check.message.clone());
    match why {
        Some(why) => format!("check `{}` failed: {why}", check.description),
        None => format!("check `{}` failed", check.description),
    }
}

pub(super) fn owner_lost() -> Outcome {
    Outcome::Unknown {
        why: "owner_lost".to_owned(),
    }
}
