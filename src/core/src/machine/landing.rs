//! From the commit to the branch, and what follows it.

use super::apply::failed;
use super::event::{Event, HookVerdict};
use super::state::{AfterRestore, Goal, Run, State};
use super::{COMMIT_REBUILDS_MAX, LANDING_ROUNDS_MAX};
use crate::model::Timestamp;
use crate::model::outcome::{Failure, Outcome, Step, StepResult};
use crate::model::spec::Gate;

impl Run {
    pub(super) fn in_committing(
        &mut self,
        at: Timestamp,
        event: &Event,
        rebuilds: u32,
    ) -> Option<()> {
        match event {
            // Nothing lands that nobody has approved.
            Event::CommitPrepared { .. } if self.is_unapproved(Gate::Landing) => return None,
            Event::Held { result } if self.is_unapproved(Gate::Landing) => {
                self.facts.prepared.clone_from(&result.commit);
                self.facts.held = Some(result.clone());
                self.ask_for_approval(at);
            }
            Event::CommitPrepared {
                oid,
                parent,
                reference,
            } => {
                self.facts.prepared = Some(oid.clone());
                self.state = State::Publishing {
                    oid: oid.clone(),
                    parent: parent.clone(),
                    reference: reference.clone(),
                    rebuilds,
                    cancelled: false,
                };
            }
            Event::NothingToCommit => {
                self.facts.results.commit = StepResult::skipped("nothing_changed");
                self.finish(Outcome::Succeeded);
            }
            Event::CommitFailed { failure } => self.commit_failed(at, failure),
            Event::OwnerLost => {}
            _ => return None,
        }
        Some(())
    }

    pub(super) fn in_publishing(
        &mut self,
        at: Timestamp,
        event: &Event,
        rebuilds: u32,
        cancelled: bool,
    ) -> Option<()> {
        if !matches!(event, Event::OwnerLost | Event::CancelRequested { .. }) {
            self.facts.waits_for = None;
        }
        match event {
            Event::Committed { oid, warning } => {
                self.facts.commit = Some(oid.clone());
                self.facts.results.commit = StepResult::Passed;
                if let Some(warning) = warning {
                    self.warn(warning.clone());
                }
                if self.plan.post_commit_hooks > 0 {
                    self.state = State::Announcing { index: 0 };
                } else {
                    self.finish(Outcome::Succeeded);
                }
            }
            // Of machines that knew no rounds.
            Event::CommitOvertaken if self.facts.rounds > 0 => return None,
            Event::CommitOvertaken if rebuilds < COMMIT_REBUILDS_MAX => {
                self.state = State::Committing {
                    rebuilds: rebuilds + 1,
                };
            }
            Event::CommitOvertaken => {
                let failure = Failure::new(
                    Step::Commit,
                    "branch_contended",
                    format!("the branch moved on {COMMIT_REBUILDS_MAX} times while committing"),
                );
                self.commit_failed(at, &failure);
            }
            Event::Conflicted { failure } => self.conflicted(at, failure, cancelled),
            Event::LandingWaiting { why, .. } => self.facts.waits_for = Some(why.clone()),
            Event::TargetMoved { .. } | Event::LandingStopped if cancelled => {
                self.restore_then(at, AfterRestore::Finish(Outcome::Cancelled));
            }
            Event::TargetMoved { .. } => self.target_moved(at),
            Event::LandedIn { tip } => {
                self.facts.results.commit = StepResult::skipped("landed_in");
                self.warn(format!("the branch holds the same already, in {tip}"));
                self.finish(Outcome::Succeeded);
            }
            Event::CommitFailed { failure } => self.commit_failed(at, failure),
            Event::CancelRequested { .. } => {
                if let State::Publishing { cancelled, .. } = &mut self.state {
                    *cancelled = true;
                }
            }
            Event::OwnerLost => {}
            _ => return None,
        }
        Some(())
    }

    /// The same change is put on the new tip and verified there, because what lands is what was verified.
    fn target_moved(&mut self, at: Timestamp) {
        self.facts.rounds = self.facts.rounds.saturating_add(1);
        if self.facts.rounds < LANDING_ROUNDS_MAX {
            self.facts.prepared = None;
            let reconciling = self.facts.reconciled;
            self.record_then(at, Goal::Verify { reconciling });
            return;
        }
        let message =
            format!("the branch moved {LANDING_ROUNDS_MAX} times before the result could land");
        let failure = Failure::new(Step::Land, "conflict", message);
        self.commit_failed(at, &failure);
    }

    /// Only a run that may be repeated begins anew from the new tip.
    fn conflicted(&mut self, at: Timestamp, failure: &Failure, cancelled: bool) {
        self.facts.rounds = self.facts.rounds.saturating_add(1);
        // Another result would be another than the one that was approved.
        let may_repeat = self.plan.idempotent && !self.plan.asks_before(Gate::Landing);
        if may_repeat && !cancelled && self.facts.rounds < LANDING_ROUNDS_MAX {
            self.facts.last_failure = Some(failure.clone());
            self.facts.prepared = None;
            self.facts.results.hook = StepResult::Pending;
            self.restore_then(at, AfterRestore::Retry { wait_ms: 0 });
        } else {
            self.commit_failed(at, failure);
        }
    }

    fn commit_failed(&mut self, at: Timestamp, failure: &Failure) {
        self.facts.results.commit = StepResult::Failed {
            message: failure.message.clone(),
        };
        self.restore_then(at, AfterRestore::Finish(failed(failure)));
    }

    pub(super) fn in_announcing(&mut self, event: &Event, due: u32) -> Option<()> {
        match event {
            Event::PostCommitHookFinished { index, verdict, .. } if *index == due => {
                if let HookVerdict::Blocked { message }
                | HookVerdict::Changed { message }
                | HookVerdict::Warned { message } = verdict
                {
                    self.warn(message.clone());
                }
                if due + 1 < self.plan.post_commit_hooks {
                    self.state = State::Announcing { index: due + 1 };
                } else {
                    self.finish(Outcome::Succeeded);
                }
            }
            Event::OwnerLost => {}
            _ => return None,
        }
        Some(())
    }
}
