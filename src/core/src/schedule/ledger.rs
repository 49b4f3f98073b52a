//! The record of slots: rows that grow, a clock that steps back, ends of runs.

use super::recurrence::Recurrence;
use super::settle::COUNT_MAX;
use crate::model::outcome::Outcome;
use crate::model::schedule::{
    FAILURES_IN_A_ROW, Pause, Policy, ScheduleState, SlotRow, SlotStatus,
};
use crate::model::{RunId, Timestamp};

/// A clock that steps back by more than this makes slots come again, in milliseconds.
pub const STEPPED_BACK_MS: u64 = 5 * 60_000;

/// Who pauses after failures.
const OURSELVES: &str = "workerctl";

impl ScheduleState {
    /// Takes a row in, behind all others; answers it as it is to be stored under its first slot.
    pub fn cover(&mut self, row: SlotRow) -> SlotRow {
        if let Some(count) = row.count {
            let total = self.totals.entry(row.status).or_default();
            *total = total.saturating_add(count);
        }
        let open = self.open.take().filter(|open| {
            let ran_between = |ran: &Timestamp| open.to < *ran && *ran < row.from;
            !self.ran_ahead.iter().any(ran_between)
        });
        self.cursor = self.cursor.max(row.to);
        self.forget_ran_until(row.to);
        let row = match open {
            Some(open) if open.status == row.status && open.reason == row.reason => SlotRow {
                from: open.from,
                count: sum(open.count, row.count),
                at: open.at,
                ..row
            },
            _ => {
                self.rows = self.rows.saturating_add(1);
                row
            }
        };
        if !row.status.is_run() {
            self.open = Some(Box::new(row.clone()));
        }
        row
    }

    /// A slot, or an event, leads to a run.
    pub fn fired(
        &mut self,
        slot: Timestamp,
        status: SlotStatus,
        run: RunId,
        at: Timestamp,
    ) -> SlotRow {
        self.has_led_to(slot, run);
        self.cover(SlotRow {
            run: Some(run),
            ..SlotRow::one(slot, status, at)
        })
    }

    /// Counts a run; the one of the newest slot is shown as the last.
    pub(super) fn has_led_to(&mut self, slot: Timestamp, run: RunId) {
        self.actions = self.actions.saturating_add(1);
        if self
            .last
            .is_none_or(|(last, _)| last <= slot || last > self.cursor)
        {
            self.last = Some((slot, run));
        }
    }

    fn forget_ran_until(&mut self, until: Timestamp) {
        self.pending.retain(|one| one.at > until);
        self.ran_ahead.retain(|ran| *ran > until);
        self.has_run_ahead = !self.ran_ahead.is_empty();
    }

    /// Moves on over slots that have run already.
    pub fn advance(&mut self, cursor: Timestamp) {
        if cursor > self.cursor {
            self.cursor = cursor;
            self.open = None;
            self.forget_ran_until(cursor);
        }
    }

    /// A run of the schedule has ended.
    pub fn ended(&mut self, policy: &Policy, outcome: &Outcome, at: Timestamp) {
        match outcome {
            Outcome::Succeeded => {
                self.failures = 0;
                self.succeeded_at = Some(at);
                self.missed = None;
            }
            Outcome::Failed { .. } | Outcome::TimedOut { .. } | Outcome::Unknown { .. } => {
                self.failures = self.failures.saturating_add(1);
                let most = policy.pause_on_failure;
                if most.is_some_and(|most| self.failures >= most) && self.pause.is_none() {
                    self.paused_itself = true;
                    self.pause = Some(Box::new(Pause {
                        reason: format!("{}{FAILURES_IN_A_ROW}", self.failures),
                        by: OURSELVES.to_owned(),
                        at,
                    }));
                }
            }
            Outcome::Cancelled | Outcome::Denied { .. } => {}
        }
    }

    /// The definition changes or goes: what was due and is not decided does not run. Answers its row.
    pub fn close_gap(
        &mut self,
        slots: &Recurrence,
        policy: &Policy,
        now: Timestamp,
        why: &str,
    ) -> Option<SlotRow> {
        let until = policy.end.map_or(now, |end| end.min(now));
        let begin = policy
            .start
            .map_or(self.cursor, |start| self.cursor.max(start.just_before()));
        let is_used_up = policy.max_actions.is_some_and(|most| self.actions >= most);
        let first = slots
            .next_after(begin)
            .filter(|first| *first <= until && !is_used_up)?;
        // What ran ahead of a clock that was stepped back divides the row; it keeps its own.
        let until = self
            .ran_ahead
            .first()
            .map_or(until, |ran| until.min(ran.just_before()));
        let to = slots.last_at_or_before(until, first)?;
        let count = slots.count_between(first.just_before(), to, COUNT_MAX + 1);
        let row = SlotRow {
            to,
            count: (count <= COUNT_MAX).then_some(count),
            ..SlotRow::one(first, SlotStatus::BlockedConfig, now)
        };
        Some(self.cover(row.because(why)))
    }

    /// Whether the clock stands so far before the cursor that slots come again.
    pub fn is_behind(&self, now: Timestamp) -> bool {
        self.cursor.millis_since(now) > STEPPED_BACK_MS
    }

    /// The clock was stepped back: a success later than now would stand for slots that are still to come.
    /// Answers whether it changed anything.
    pub fn forget_the_future(&mut self, now: Timestamp) -> bool {
        let is_later = |at: Timestamp| at.millis_since(now) > STEPPED_BACK_MS;
        let begins_later = is_later(self.anchor) && self.resumed_at.is_none();
        if begins_later {
            self.resumed_at = Some(now);
        }
        let marks = [&mut self.succeeded_at, &mut self.resumed_at];
        let later = marks.into_iter().filter(|mark| mark.is_some_and(is_later));
        later.map(|mark| *mark = Some(now)).count() > 0 || begins_later
    }

    /// The clock was stepped back: slots after `now` come again, but for those that have run.
    ///
    /// `after` are the stored rows that reach beyond `now`. Answers the rows to be removed, by their first
    /// slot, and the one that is shortened.
    pub fn rewind(
        &mut self,
        slots: &Recurrence,
        after: Vec<SlotRow>,
        now: Timestamp,
    ) -> (Vec<Timestamp>, Option<SlotRow>) {
        let (mut gone, mut shortened) = (Vec::new(), None);
        let mut ahead: Vec<Timestamp> = Vec::new();
        for row in after {
            if row.status.is_run() {
                ahead.extend((row.from > now).then_some(row.from));
                continue;
            }
            let kept = slots.last_at_or_before(now, row.from);
            self.uncount(row.status, row.count);
            let Some(to) = kept else {
                self.rows = self.rows.saturating_sub(1);
                gone.push(row.from);
                continue;
            };
            let count = slots.count_between(row.from.just_before(), to, COUNT_MAX + 1);
            let count = (count <= COUNT_MAX).then_some(count);
            let total = self.totals.entry(row.status).or_default();
            *total = total.saturating_add(count.unwrap_or(0));
            shortened = Some(SlotRow { to, count, ..row });
        }
        ahead.extend(self.ran_ahead.iter().filter(|ran| **ran > now));
        ahead.sort_unstable();
        ahead.dedup();
        self.has_run_ahead = !ahead.is_empty();
        self.ran_ahead = ahead;
        self.cursor = now;
        self.open = None;
        (gone, shortened)
    }

    pub(super) fn uncount(&mut self, status: SlotStatus, count: Option<u64>) {
        let total = self.totals.entry(status).or_default();
        *total = total.saturating_sub(count.unwrap_or(0));
    }

    /// The definition was changed: it counts from now on, and what is past stays as it is.
    pub fn re_anchor(&mut self, digest: String, now: Timestamp) {
        self.digest = digest;
        self.anchor = now;
        self.cursor = self.cursor.max(now);
        self.open = None;
        self.closed = None;
        self.seen = None;
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    let both = one?.saturating_add(other?);
    (both <= COUNT_MAX).then_some(both)
}
