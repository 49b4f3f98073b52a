//! Closed runs: they leave memory once the files of their threads are synced, off the loop and many at once.

use std::collections::BTreeSet;

use super::{Core, Turn};
use crate::machine::{Entry, Event};
use crate::model::RunId;
use crate::store::Write;

/// How long files of threads may be written and not synced.
pub(super) const SEAL_AFTER_MS: u64 = 5_000;

/// How many closed runs may wait for that.
const SEAL_BACKLOG: usize = 512;

/// What waits for a sync.
#[derive(Default)]
pub(super) struct Sealing {
    /// Runs that are closed, each with the entry that says so.
    pub(super) closing: Vec<(RunId, Entry)>,
    /// How many of them the sync covers that is under way.
    pub(super) under_way: Option<usize>,
    /// When the last sync ended, or the first run since then was closed.
    synced_ms: u64,
}

impl Core {
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
                    self.sealing.synced_ms = self.clock.monotonic_ms();
                }
                self.sealing.closing.push((run, entry));
            }
            Err(error) => tracing::error!(%run, %error, "a run could not be closed"),
        }
    }

    /// Everything closed before the sync began leaves memory with the next commit. A run whose files find no space
    /// stays, and is left to the next engine if this one ends: in the store it is not closed.
    pub(super) fn on_sealed(&mut self, turn: &mut Turn, unwritten: &BTreeSet<RunId>) {
        let sealing = &mut self.sealing;
        sealing.synced_ms = self.clock.monotonic_ms();
        let covered = sealing.under_way.take().unwrap_or_default();
        let closed: Vec<(RunId, Entry)> = sealing.closing.drain(..covered).collect();
        for (run, entry) in closed {
            if unwritten.contains(&run) {
                if self.draining.is_none() {
                    self.sealing.closing.push((run, entry));
                }
                continue;
            }
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
        let closing = &mut self.sealing.closing;
        let Some(place) = closing.iter().position(|(closing, _)| *closing == run) else {
            return;
        };
        let (run, entry) = closing.remove(place);
        if let Some(covered) = &mut self.sealing.under_way
            && place < *covered
        {
            *covered -= 1;
        }
        turn.entries.entry(run).or_default().push(entry);
        if let Some(live) = self.live.get_mut(&run) {
            live.settled = false;
        }
    }

    /// Has the files of threads synced, off the loop, when enough time or enough runs have passed.
    pub(super) fn seal(&mut self) {
        let Some(left_ms) = self.seals_in_ms() else {
            return;
        };
        let closing = self.sealing.closing.len();
        let ending = self.draining.is_some() && self.outstanding == 0;
        if ending || left_ms == 0 || closing >= SEAL_BACKLOG {
            self.sealing.under_way = Some(closing);
            self.pool.seal();
        }
    }

    /// After how many milliseconds that is due; `None`: nothing is to be synced, or somebody does it.
    pub(super) fn seals_in_ms(&self) -> Option<u64> {
        let waited = self
            .clock
            .monotonic_ms()
            .saturating_sub(self.sealing.synced_ms);
        let is_due = self.has_unsynced() && self.sealing.under_way.is_none();
        is_due.then(|| SEAL_AFTER_MS.saturating_sub(waited))
    }

    /// Whether files may have been written that are not synced.
    fn has_unsynced(&self) -> bool {
        !self.sealing.closing.is_empty() || self.outstanding > 0
    }
}
