//! Draining: nothing new starts; what still runs after the grace is ended.

use super::super::request::{Answer, Envelope};
use super::{Core, Turn};
use crate::machine::{Action, Event, Run, State};
use crate::model::{Diagnostic, RunId};

/// An engine that is ending.
pub(super) struct Draining {
    since_ms: u64,
    grace_over: bool,
    /// Who asked for it, and is answered when the loop has ended.
    asked_by: Vec<Envelope>,
}

impl Draining {
    /// Whether an action is left to the next engine: it runs commands and may be repeated, or waits for what
    /// is in the way of a landing.
    pub(super) fn holds(&self, action: &Action) -> bool {
        self.grace_over && (is_repeatable(action) || is_landing(action))
    }

    /// Whether an action is told to end from its start: a restore is then tried once and does not wait.
    pub(super) fn hurries(&self, action: &Action) -> bool {
        self.grace_over && *action == Action::Restore
    }

    /// Whether a result is dropped, because its commands were ended half-way by us.
    pub(super) fn drops(&self, run: &Run) -> bool {
        self.grace_over
            && run
                .next_action()
                .is_some_and(|action| is_repeatable(&action))
    }
}

/// Actions that run commands other than the skill's own, or wait for another run in a checkout, and that
/// recovery performs again.
fn is_repeatable(action: &Action) -> bool {
    matches!(
        action,
        Action::Validate
            | Action::Prepare
            | Action::Verify { .. }
            | Action::RunHook { .. }
            | Action::RunPostCommitHook { .. }
    )
}

/// What may wait for minutes, and whose result counts all the same: it may have landed.
fn is_landing(action: &Action) -> bool {
    matches!(action, Action::PublishCommit { .. })
}

impl Core {
    pub(super) fn start_draining(&mut self, asked: Envelope) {
        if let Some(draining) = &mut self.draining {
            draining.asked_by.push(asked);
            return;
        }
        self.draining = Some(Draining {
            since_ms: self.clock.monotonic_ms(),
            grace_over: false,
            asked_by: vec![asked],
        });
        self.view.set_draining();
    }

    /// Tells everybody who asked for it that the engine is drained, or why it ended otherwise.
    pub(super) fn report_drained(&mut self, ended: &Result<(), Diagnostic>) {
        let draining = self.draining.iter_mut();
        for envelope in draining.flat_map(|draining| draining.asked_by.drain(..)) {
            envelope.answer(ended.clone().map(|()| Answer::Done));
        }
    }

    pub(super) fn drain_on_time(&mut self, turn: &mut Turn) {
        let Some(draining) = &mut self.draining else {
            return;
        };
        let waited = self.clock.monotonic_ms().saturating_sub(draining.since_ms);
        if draining.grace_over || waited < self.drain_grace_ms {
            return;
        }
        draining.grace_over = true;
        let busy: Vec<RunId> = self
            .live
            .iter()
            .filter(|(_, live)| live.outstanding.is_some())
            .map(|(run, _)| *run)
            .collect();
        for run in busy {
            let Some(live) = self.live.get(&run) else {
                continue;
            };
            if matches!(live.run.state, State::Executing { ending: None, .. }) {
                self.record(turn, run, Event::Interrupted);
            } else if let Some(outstanding) = &live.outstanding
                && (is_repeatable(&outstanding.action)
                    || is_landing(&outstanding.action)
                    || outstanding.action == Action::Restore)
            {
                outstanding.stop.stop(crate::process::StopKind::Graceful);
            }
        }
    }

    pub(super) fn drain_wait_ms(&self, wait_ms: u64) -> u64 {
        match &self.draining {
            Some(draining) if !draining.grace_over => {
                let waited = self.clock.monotonic_ms().saturating_sub(draining.since_ms);
                wait_ms.min(self.drain_grace_ms.saturating_sub(waited))
            }
            _ => wait_ms,
        }
    }

    /// Whether a draining engine does not wait for space on a full disk any more: its grace is over, or nothing
    /// that happened would be lost. What it could not store was told to nobody; the next engine recovers from
    /// what it could.
    pub(super) fn gives_up(&self, holds_new_runs_only: bool) -> bool {
        self.draining.as_ref().is_some_and(|draining| {
            let waited = self.clock.monotonic_ms().saturating_sub(draining.since_ms);
            waited >= self.drain_grace_ms || (holds_new_runs_only && self.outstanding == 0)
        })
    }

    /// Whether a draining engine has nothing left to do.
    pub(super) fn is_done(&self) -> bool {
        self.draining.is_some()
            && self.outstanding == 0
            && self.preparing == 0
            && self.board.is_silent()
            && self.pushes.is_idle()
            && self.sealing.closing.is_empty()
            && (self.unsettled.is_some() || self.rests())
    }

    fn rests(&self) -> bool {
        self.live
            .values()
            .filter(|live| !live.lost)
            .all(|live| match live.run.next_action() {
                None => true,
                Some(action) => self.draining.as_ref().is_some_and(|d| d.holds(&action)),
            })
    }
}
