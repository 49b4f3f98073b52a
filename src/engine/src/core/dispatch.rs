//! Actions: handed out after the commit that asked for them, and ended when the state says so.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::live::Outstanding;
use super::super::work::Work;
use super::{Core, SEAL_AFTER_MS, SEAL_BACKLOG, Turn};
use crate::machine::{Entry, Event, StopKind};
use crate::model::RunId;
use crate::process::StopHandle;
use crate::store::Write;

impl Core {
    /// Hands out the action of every changed run that has none under way; passes on requests to end one.
    pub(super) fn dispatch(&mut self, changed: &BTreeSet<RunId>) {
        for run in changed {
            let Some(live) = self.live.get_mut(run) else {
                continue;
            };
            if live.lost {
                continue;
            }
            if let Some(outstanding) = &live.outstanding {
                match live.run.stop_wanted() {
                    Some(StopKind::Graceful) => {
                        outstanding.stop.stop(crate::process::StopKind::Graceful);
                    }
                    Some(StopKind::Now) => outstanding.stop.stop(crate::process::StopKind::Now),
                    None => {}
                }
                continue;
            }
            let Some(action) = live.run.next_action() else {
                continue;
            };
            if self
                .draining
                .as_ref()
                .is_some_and(|draining| draining.holds(&action))
            {
                continue;
            }
            let stop = StopHandle::new();
            if self.draining.as_ref().is_some_and(|d| d.hurries(&action)) {
                stop.stop(crate::process::StopKind::Graceful);
            }
            live.outstanding = Some(Outstanding {
                action: action.clone(),
                stop: stop.clone(),
            });
            self.outstanding += 1;
            self.pool.dispatch(Work {
                spec: Arc::clone(&live.spec),
                entries: Arc::clone(&live.entries),
                run: Arc::clone(&live.run),
                action,
                stop,
            });
        }
    }

    /// A finished run's files are written: it leaves memory once they are synced.
    pub(super) fn on_closed(&mut self, turn: &mut Turn, run: RunId) {
        let now = self.clock.now();
        let Some(live) = self.live.get_mut(&run) else {
            return;
        };
        match live.record(now, Event::Closed) {
            Ok(entry) => {
                live.settled = true;
                turn.changed.insert(run);
                if !self.has_unsynced() {
                    self.sealed_ms = self.clock.monotonic_ms();
                }
                self.closing.push((run, entry));
            }
            Err(error) => tracing::error!(%run, %error, "a run could not be closed"),
        }
    }

    /// Everything closed before the sync began leaves memory with the next commit.
    pub(super) fn on_sealed(&mut self, turn: &mut Turn) {
        self.sealing = false;
        self.sealed_ms = self.clock.monotonic_ms();
        let sealed: Vec<(RunId, Entry)> = self.closing.drain(..self.sealed_with).collect();
        self.sealed_with = 0;
        for (run, entry) in sealed {
            turn.lazy.push(Write::Entries {
                run,
                entries: vec![entry],
            });
            turn.lazy.push(Write::Closed(run));
            turn.dropped.push(run);
            turn.changed.remove(&run);
            self.live.remove(&run);
        }
    }

    /// Writes the pending `Closed` of one run now, because more is to follow it.
    pub(super) fn flush_closing(&mut self, turn: &mut Turn, run: RunId) {
        let Some(place) = self.closing.iter().position(|(closing, _)| *closing == run) else {
            return;
        };
        let (run, entry) = self.closing.remove(place);
        if place < self.sealed_with {
            self.sealed_with -= 1;
        }
        turn.entries.entry(run).or_default().push(entry);
        if let Some(live) = self.live.get_mut(&run) {
            live.settled = false;
        }
    }

    /// Has the files of threads synced, off the loop, when enough time or enough runs have passed.
    pub(super) fn seal(&mut self) {
        if self.sealing || !self.has_unsynced() {
            return;
        }
        let waited = self.clock.monotonic_ms().saturating_sub(self.sealed_ms);
        let ending = self.draining.is_some() && self.outstanding == 0;
        if ending || waited >= SEAL_AFTER_MS || self.closing.len() >= SEAL_BACKLOG {
            self.sealing = true;
            self.sealed_with = self.closing.len();
            self.pool.seal();
        }
    }

    /// Whether files may have been written that are not synced.
    pub(super) fn has_unsynced(&self) -> bool {
        !self.closing.is_empty() || self.outstanding > 0
    }
}
