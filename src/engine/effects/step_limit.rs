//! The limits of steps that run no command: preparing and committing.

use super::super::work::Work;
use super::{Performer, git_failure};
use crate::clock::Clock;
use crate::git::GitError;
use crate::machine::Event;
use crate::model::outcome::{Failure, Step};

/// How long steps may take that run no command, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepLimits {
    /// Of preparing, waiting for another engine's lease on the repository included.
    pub prepare_ms: u64,
    /// Of committing, all rebuilds on a branch that moves on included.
    pub commit_ms: u64,
}

impl Default for StepLimits {
    fn default() -> StepLimits {
        StepLimits {
            prepare_ms: 60_000,
            commit_ms: 60_000,
        }
    }
}

/// The time that one action has left.
pub(super) struct TimeLeft<'a> {
    clock: &'a dyn Clock,
    work: &'a Work,
    until_ms: u64,
    limit_ms: u64,
}

impl TimeLeft<'_> {
    /// Whether the time is up, or the action was told to end.
    pub(super) fn is_over(&self) -> bool {
        self.clock.monotonic_ms() >= self.until_ms || self.work.stop.requested().is_some()
    }

    /// The failure of a step, which is its limit where the time was up.
    pub(super) fn failure(&self, step: Step, error: &GitError) -> Failure {
        match error {
            GitError::OutOfTime => self.exceeded(step),
            _ => git_failure(step, self.work, error),
        }
    }

    /// The failure of a step that took too long.
    pub(super) fn exceeded(&self, step: Step) -> Failure {
        let limit = crate::model::duration::show_millis(self.limit_ms);
        let mut message = format!("it took longer than {limit}");
        if step == Step::Prepare {
            message
                .push_str("; commit large or many uncommitted files, or list them in `.gitignore`");
        }
        Failure::new(step, "time_limit", message)
    }
}

impl Performer {
    /// The time for preparing, which counts from now.
    pub(super) fn time_to_prepare<'a>(&'a self, work: &'a Work) -> TimeLeft<'a> {
        self.time_left(work, self.parts.step_limits.prepare_ms, 0)
    }

    /// What is left of the time for committing, which counts from the end of saving. Time in which there
    /// was no engine does not count.
    pub(super) fn time_to_commit<'a>(&'a self, work: &'a Work) -> TimeLeft<'a> {
        let begins = |event: &Event| matches!(event, Event::Saved | Event::OwnerLost);
        let mut newest = work.entries.iter().rev();
        let since = newest.find(|entry| begins(&entry.event));
        let spent_ms = since.map_or(0, |entry| self.parts.clock.now().millis_since(entry.at));
        self.time_left(work, self.parts.step_limits.commit_ms, spent_ms)
    }

    fn time_left<'a>(&'a self, work: &'a Work, limit_ms: u64, spent_ms: u64) -> TimeLeft<'a> {
        let clock = self.parts.clock.as_ref();
        TimeLeft {
            clock,
            work,
            until_ms: clock
                .monotonic_ms()
                .saturating_add(limit_ms.saturating_sub(spent_ms)),
            limit_ms,
        }
    }
}
