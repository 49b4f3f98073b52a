//! Deadlines: a wall clock that jumps neither shortens nor prolongs a wait.

use std::time::Duration;

use super::{Core, TICK, Turn};
use crate::live::Live;
use crate::machine::{Event, State};
use crate::model::{RunId, Timestamp};

impl Core {
    /// Records what has become due.
    pub(super) fn on_time(&mut self, turn: &mut Turn) {
        let (now, expiry) = (self.clock.now(), self.expiry.now());
        let due: Vec<(RunId, Event)> = self
            .timed
            .iter()
            .filter_map(|run| Some((*run, self.due(*run, expiry)?)))
            .collect();
        for (run, event) in due {
            self.record(turn, run, event);
        }
        self.start_what_was_early(turn, now);
        self.expire_approvals(turn, expiry);
        self.drain_on_time(turn);
    }

    /// Keeps a waiting run back whose time has not come.
    pub(super) fn hold_until_time(&mut self, run: RunId) {
        let time = self.live.get(&run).and_then(Live::early_until);
        if let Some(time) = time.filter(|time| *time > self.clock.now()) {
            self.early.insert((time, run));
            self.queue.hold_until_time(run);
        }
    }

    /// A run is back in the queue, perhaps for a time that has not come; what it waited for before is over.
    pub(super) fn wait_again(&mut self, run: RunId) {
        if let Some(live) = self.live.get_mut(&run) {
            (live.waiting_for, live.waits_in_queue_for) = (None, None);
        }
        self.hold_until_time(run);
    }

    fn start_what_was_early(&mut self, turn: &mut Turn, now: Timestamp) {
        while let Some((time, run)) = self.early.first().copied() {
            if time > now {
                return;
            }
            self.early.remove(&(time, run));
            self.queue.time_has_come(run);
            // One that was cancelled meanwhile is not there any more.
            if self.live.contains_key(&run) {
                turn.changed.insert(run);
            }
        }
    }

    fn due(&self, run: RunId, now: Timestamp) -> Option<Event> {
        let live = self.live.get(&run)?;
        if let Some(timer) = live.run.runtime_limit()
            && self.left(timer, live.timer_since_ms, now) == 0
        {
            return Some(Event::RuntimeExhausted);
        }
        let timer = live.run.backoff()?;
        match &live.run.state {
            State::BackingOff { attempt, .. }
                if self.left(timer, live.timer_since_ms, now) == 0 =>
            {
                Some(Event::BackoffElapsed { attempt: *attempt })
            }
            _ => None,
        }
    }

    /// Milliseconds left of a timer that was set at a wall time and first seen at a monotonic one.
    fn left(&self, (set, length): (Timestamp, u64), seen_ms: u64, expiry: Timestamp) -> u64 {
        let by_wall = expiry.millis_since(set);
        let by_monotonic = self.clock.monotonic_ms().saturating_sub(seen_ms);
        length.saturating_sub(by_wall.max(by_monotonic))
    }

    /// How long the loop may wait for messages.
    pub(super) fn next_wait(&self) -> Duration {
        let (now, expiry) = (self.clock.now(), self.expiry.now());
        let mut wait_ms = u64::try_from(TICK.as_millis()).unwrap_or(u64::MAX);
        for run in &self.timed {
            let Some(live) = self.live.get(run) else {
                continue;
            };
            for timer in [live.run.runtime_limit(), live.run.backoff()]
                .into_iter()
                .flatten()
            {
                wait_ms = wait_ms.min(self.left(timer, live.timer_since_ms, expiry));
            }
        }
        if let Some(left_ms) = self.seals_in_ms() {
            wait_ms = wait_ms.min(left_ms);
        }
        if let Some(wake) = self.next_start() {
            wait_ms = wait_ms.min(wake.millis_since(now));
        }
        if let Some((by, _)) = self.asked.first().filter(|_| self.draining.is_none()) {
            wait_ms = wait_ms.min(by.millis_since(expiry));
        }
        Duration::from_millis(self.drain_wait_ms(wait_ms))
    }

    /// When something is to be started next. An engine that ends starts nothing: a slot that has come would keep
    /// it turning.
    fn next_start(&self) -> Option<Timestamp> {
        if self.draining.is_some() {
            return None;
        }
        let early = self.early.first().map(|(time, _)| *time);
        let told = self.board.next_wake().filter(|_| self.starts_queued);
        let pushed = self.pushes.next_wake().filter(|_| self.starts_queued);
        let wakes = [early, self.scheduler.next_deadline(), told, pushed];
        wakes.into_iter().flatten().min()
    }
}
