//! `apply`: one total function from state and event to the next state, live and in recovery.

use super::event::{CancelKind, Entry, Event, HookVerdict};
use super::state::{AfterRestore, AfterSave, Ending, Facts, Goal, Run, State};
use super::{IllegalEvent, JOURNAL_EVENTS_MAX, MACHINE_VERSION};
use crate::model::Timestamp;
use crate::model::outcome::{Failure, Outcome, Step, StepResult};

/// Most warnings that a run keeps.
const WARNINGS_MAX: usize = 50;

/// Why a journal does not fold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// No events.
    #[error("the journal is empty")]
    Empty,
    /// Its first event is not `submitted`.
    #[error("the journal does not begin with `submitted`")]
    Headless,
    /// A later machine wrote it.
    #[error("the journal was written under machine version {0}")]
    Newer(u32),
    /// A gap or a repetition in its numbers.
    #[error("event {found} is where {expected} is due")]
    Sequence {
        /// The number that is due.
        expected: u32,
        /// The number that stands there.
        found: u32,
    },
    /// An event that its state does not accept.
    #[error("event {seq}: {source}")]
    Illegal {
        /// Its number.
        seq: u32,
        /// Which event in which state.
        source: IllegalEvent,
    },
}

impl Run {
    /// The run that `Submitted` creates.
    pub fn submitted(event: &Event) -> Result<Run, FoldError> {
        match event {
            Event::Submitted { machine, .. } if *machine > MACHINE_VERSION => {
                Err(FoldError::Newer(*machine))
            }
            Event::Submitted { plan, .. } => Ok(Run {
                plan: plan.clone(),
                state: State::Queued,
                facts: Facts {
                    events: 1,
                    ..Facts::default()
                },
            }),
            _ => Err(FoldError::Headless),
        }
    }

    /// Folds a journal into the run it tells of.
    pub fn fold(entries: &[Entry]) -> Result<Run, FoldError> {
        let (first, rest) = entries.split_first().ok_or(FoldError::Empty)?;
        let mut run = Run::submitted(&first.event)?;
        if first.seq != 0 {
            return Err(FoldError::Sequence {
                expected: 0,
                found: first.seq,
            });
        }
        for (expected, entry) in (1u32..).zip(rest) {
            if entry.seq != expected {
                return Err(FoldError::Sequence {
                    expected,
                    found: entry.seq,
                });
            }
            run = run
                .apply(entry.at, &entry.event)
                .map_err(|source| FoldError::Illegal {
                    seq: entry.seq,
                    source,
                })?;
        }
        Ok(run)
    }

    /// The run after `event`, recorded at `at`; refused events change nothing.
    pub fn apply(&self, at: Timestamp, event: &Event) -> Result<Run, IllegalEvent> {
        let mut run = self.clone();
        run.facts.events = run.facts.events.saturating_add(1);
        if matches!(event, Event::OwnerLost)
            && run.facts.events > JOURNAL_EVENTS_MAX
            && !run.is_finished()
        {
            run.finish(Outcome::Unknown {
                why: "journal_full".to_owned(),
            });
            run.settle_request(event);
            return Ok(run);
        }
        if let Event::GivenUp { why } = event
            && !run.is_finished()
        {
            run.finish(Outcome::Unknown { why: why.clone() });
            run.settle_request(event);
            return Ok(run);
        }
        // A request that is repeated without end must not grow the journal without end.
        if matches!(event, Event::CancelRequested { .. }) && run.facts.events > JOURNAL_EVENTS_MAX {
            return Err(self.refuses(event));
        }
        let next = match &self.state {
            State::Queued => run.in_queued(at, event),
            State::Validating { ending } => run.in_validating(at, event, ending.as_ref()),
            State::AwaitingApproval { for_ms, .. } => run.in_awaiting_approval(event, *for_ms),
            State::Preparing { ending } => run.in_preparing(at, event, ending.as_ref()),
            State::Executing { attempt, ending } => {
                run.in_executing(at, event, *attempt, ending.as_ref())
            }
            State::Recording {
                attempt,
                goal,
                ending,
            } => run.in_recording(at, event, *attempt, goal, ending.as_ref()),
            State::Verifying {
                attempt,
                reconciling,
                ending,
            } => run.in_verifying(at, event, *attempt, *reconciling, ending.as_ref()),
            State::BackingOff { attempt, .. } => run.in_backing_off(at, event, *attempt),
            State::PostHook { index, ending } => {
                run.in_post_hook(at, event, *index, ending.as_ref())
            }
            State::Saving { next, cancelled } => run.in_saving(at, event, next, *cancelled),
            State::Committing { rebuilds } => run.in_committing(at, event, *rebuilds),
            State::Publishing {
                rebuilds,
                cancelled,
                ..
            } => run.in_publishing(at, event, *rebuilds, *cancelled),
            State::Announcing { index } => run.in_announcing(event, *index),
            State::Restoring { then } => run.in_restoring(at, event, then),
            State::Finished { outcome, closed } => run.in_finished(event, outcome, *closed),
        };
        match next {
            Some(()) => {
                run.settle_request(event);
                Ok(run)
            }
            None => Err(self.refuses(event)),
        }
    }

    fn refuses(&self, event: &Event) -> IllegalEvent {
        IllegalEvent {
            state: self.state.name(),
            event: event.name(),
        }
    }

    fn in_queued(&mut self, at: Timestamp, event: &Event) -> Option<()> {
        self.facts.waits_until = self
            .facts
            .waits_until
            .filter(|_| *event == Event::OwnerLost);
        match event {
            // What was held is approved: it only has to land.
            Event::Admitted { .. } if self.facts.held.is_some() => {
                self.state = State::Committing { rebuilds: 0 };
            }
            Event::Admitted { .. } if self.plan.validates => {
                self.state = State::Validating { ending: None };
            }
            Event::Admitted { .. } => self.begin(at),
            Event::CancelRequested { .. } => self.save_then_finish(Outcome::Cancelled),
            Event::OwnerLost => {}
            _ => return None,
        }
        Some(())
    }

    fn in_validating(
        &mut self,
        at: Timestamp,
        event: &Event,
        ending: Option<&Ending>,
    ) -> Option<()> {
        match (event, ending) {
            (Event::Validated { .. }, None) => self.begin(at),
            (Event::NothingToDo { .. }, None) => self.nothing_to_do(),
            (Event::ValidationFailed { failure, .. }, None) => {
                self.save_then_finish(Outcome::Failed {
                    failure: failure.clone(),
                });
            }
            (
                Event::Validated { .. }
                | Event::NothingToDo { .. }
                | Event::ValidationFailed { .. }
                | Event::OwnerLost,
                Some(_),
            ) => self.save_then_finish(Outcome::Cancelled),
            (Event::CancelRequested { kind, .. }, _) => {
                self.state = State::Validating {
                    ending: cancel(ending, *kind),
                };
            }
            (Event::OwnerLost, None) => {}
            _ => return None,
        }
        Some(())
    }

    fn in_preparing(
        &mut self,
        at: Timestamp,
        event: &Event,
        ending: Option<&Ending>,
    ) -> Option<()> {
        match (event, ending) {
            (Event::Prepared { .. }, None) => self.start_executing(at),
            (Event::PreparationFailed { failure }, None) => {
                self.restore_then(at, AfterRestore::Finish(failed(failure)));
            }
            (
                Event::Prepared { .. } | Event::PreparationFailed { .. } | Event::OwnerLost,
                Some(_),
            ) => self.restore_then(at, AfterRestore::Finish(Outcome::Cancelled)),
            (Event::CancelRequested { kind, .. }, _) => {
                self.state = State::Preparing {
                    ending: cancel(ending, *kind),
                };
            }
            (Event::OwnerLost, None) => {}
            _ => return None,
        }
        Some(())
    }

    fn in_backing_off(&mut self, at: Timestamp, event: &Event, due: u32) -> Option<()> {
        match event {
            Event::BackoffElapsed { attempt } if *attempt == due => self.start_executing(at),
            Event::CancelRequested { .. } => {
                self.restore_then(at, AfterRestore::Finish(Outcome::Cancelled));
            }
            Event::RuntimeExhausted => {
                let outcome = self.runtime_exhausted();
                self.restore_then(at, AfterRestore::Finish(outcome));
            }
            Event::OwnerLost => {}
            _ => return None,
        }
        Some(())
    }

    fn in_post_hook(
        &mut self,
        at: Timestamp,
        event: &Event,
        due: u32,
        ending: Option<&Ending>,
    ) -> Option<()> {
        match (event, ending) {
            (Event::HookFinished { index, verdict, .. }, Some(_)) if *index == due => {
                let changed = matches!(verdict, HookVerdict::Changed { .. });
                self.put_back_then(at, changed, AfterRestore::Finish(Outcome::Cancelled));
            }
            // What the hook did until it was ended is not known.
            (Event::OwnerLost, Some(_)) => {
                self.put_back_then(at, true, AfterRestore::Finish(Outcome::Cancelled));
            }
            (Event::HookFinished { index, verdict, .. }, None) if *index == due => {
                self.hook_finished(at, *index, verdict);
            }
            (Event::CancelRequested { kind, .. }, _) => {
                self.state = State::PostHook {
                    index: due,
                    ending: cancel(ending, *kind),
                };
            }
            (Event::OwnerLost, None) => {}
            _ => return None,
        }
        Some(())
    }

    fn hook_finished(&mut self, at: Timestamp, index: u32, verdict: &HookVerdict) {
        match verdict {
            HookVerdict::Blocked { message } | HookVerdict::Changed { message } => {
                self.facts.results.hook = StepResult::Failed {
                    message: message.clone(),
                };
                let changed = matches!(verdict, HookVerdict::Changed { .. });
                let code = if changed {
                    "hook_changed_result"
                } else {
                    "hook_blocked"
                };
                let failure = Failure::new(Step::Hook, code, message.clone());
                self.put_back_then(at, changed, AfterRestore::Finish(failed(&failure)));
                return;
            }
            HookVerdict::Warned { message } => self.warn(format!("hook {}: {message}", index + 1)),
            HookVerdict::Passed => {}
        }
        if index + 1 < self.plan.hooks {
            self.state = State::PostHook {
                index: index + 1,
                ending: None,
            };
        } else {
            self.facts.results.hook = StepResult::Passed;
            self.state = State::Saving {
                next: AfterSave::Commit,
                cancelled: false,
            };
        }
    }

    fn in_saving(
        &mut self,
        at: Timestamp,
        event: &Event,
        next: &AfterSave,
        cancelled: bool,
    ) -> Option<()> {
        match (event, next) {
            (Event::Saved, AfterSave::Commit) if cancelled => {
                self.facts.results.save = StepResult::Passed;
                self.restore_then(at, AfterRestore::Finish(Outcome::Cancelled));
            }
            (Event::Saved, AfterSave::Commit) => {
                self.facts.results.save = StepResult::Passed;
                self.state = State::Committing { rebuilds: 0 };
            }
            (Event::Saved, AfterSave::Finish(outcome)) => {
                self.facts.results.save = StepResult::Passed;
                let undone = cancelled && *outcome == Outcome::Succeeded;
                self.finish(if undone {
                    Outcome::Cancelled
                } else {
                    outcome.clone()
                });
            }
            (Event::SaveFailed { failure }, AfterSave::Commit) => {
                self.facts.results.save = StepResult::Failed {
                    message: failure.message.clone(),
                };
                self.restore_then(at, AfterRestore::Finish(failed(failure)));
            }
            (Event::SaveFailed { failure }, AfterSave::Finish(outcome)) => {
                self.facts.results.save = StepResult::Failed {
                    message: failure.message.clone(),
                };
                let succeeded = *outcome == Outcome::Succeeded;
                self.finish(if succeeded {
                    failed(failure)
                } else {
                    outcome.clone()
                });
            }
            (
                Event::CancelRequested { .. },
                AfterSave::Commit | AfterSave::Finish(Outcome::Succeeded),
            ) => {
                self.state = State::Saving {
                    next: next.clone(),
                    cancelled: true,
                };
            }
            (Event::OwnerLost, AfterSave::Commit | AfterSave::Finish(_)) => {}
            _ => return None,
        }
        Some(())
    }

    pub(super) fn warn(&mut self, warning: String) {
        if self.facts.warnings.len() < WARNINGS_MAX {
            self.facts.warnings.push(warning);
        }
    }

    /// What each attempt may say again.
    pub(super) fn warn_once(&mut self, warnings: &[String]) {
        for warning in warnings {
            if !self.facts.warnings.contains(warning) {
                self.warn(warning.clone());
            }
        }
    }

    /// Records the result of the newest attempt first where there is something to record.
    pub(super) fn record_then(&mut self, at: Timestamp, goal: Goal) {
        let attempt = self.facts.attempts;
        match goal {
            Goal::Verify { .. } if self.plan.prepares || self.plan.mutating => {
                self.state = State::Recording {
                    attempt,
                    goal,
                    ending: None,
                };
            }
            Goal::Verify { reconciling } => self.start_verifying(at, attempt, reconciling),
            Goal::Restore(_) if self.plan.mutating => {
                self.state = State::Recording {
                    attempt,
                    goal,
                    ending: None,
                };
            }
            Goal::Restore(then) => self.restore_then(at, then),
        }
    }
}

/// The stronger of the present reason and a request to cancel.
pub(super) fn cancel(present: Option<&Ending>, kind: CancelKind) -> Option<Ending> {
    match present {
        Some(Ending::Cancelled(CancelKind::Now)) => present.cloned(),
        _ => Some(Ending::Cancelled(kind)),
    }
}

pub(super) fn failed(failure: &Failure) -> Outcome {
    Outcome::Failed {
        failure: failure.clone(),
    }
}
