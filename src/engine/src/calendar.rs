//! What became of slots, and how many are to come, by hours or days of a zone.
//!
//! Of one schedule this is read from its rows; of all of them from counts that the store keeps, because rows of many
//! schedules are far too many to be read for one answer.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::control::EngineControl;
use super::due::{self, Due};
use super::schedules::{defined_or_gone, summary_of};
use crate::model::schedule::{Schedule, SlotRow};
use crate::model::{Diagnostic, Kind, Timestamp, Zone};
use crate::protocol::{Bucket, Calendar, CalendarCell, CalendarQuery, HALF_HOUR_MS, SlotCounts};
use crate::schedule::{COUNT_MAX, Expression, Recurrence};

const DAY_MS: u64 = 24 * 3_600_000;

/// Longest stretch of one answer, by days.
const DAYS_MAX: u64 = 800;

/// Longest stretch of one answer by hours, in days.
const DAYS_OF_HOURS_MAX: u64 = 62;

/// The cells of an answer: when each begins, and when the last one ends.
struct Cells {
    borders: Vec<Timestamp>,
    /// The cell that was found last, for what is counted comes in its order.
    last: usize,
    counts: Vec<(SlotCounts, u32)>,
}

impl Cells {
    fn new(
        zone: Zone,
        bucket: Bucket,
        (from, to): (Timestamp, Timestamp),
    ) -> Result<Cells, Diagnostic> {
        let (expression, days_max) = match bucket {
            Bucket::Hour => ("0 * * * *", DAYS_OF_HOURS_MAX),
            Bucket::Day => ("0 0 * * *", DAYS_MAX),
        };
        if to <= from || to.millis_since(from) > days_max * DAY_MS {
            let message =
                format!("with this bucket size, a calendar must cover 1 to {days_max} days");
            return Err(Diagnostic::new(Kind::Usage, "calendar_range", message)
                .hint("request a shorter range, or use `bucket=day`"));
        }
        let expression = Expression::parse(expression, false)
            .map_err(|error| Diagnostic::new(Kind::Internal, "calendar", error.message))?;
        let begins = Recurrence::cron(expression, zone, None);
        let first = begins.last_at_or_before(from, from.minus_millis(2 * DAY_MS));
        let mut borders = vec![first.unwrap_or(from)];
        while let Some(last) = borders.last().filter(|last| **last < to) {
            let next = begins.next_after(*last);
            borders.push(next.unwrap_or(to));
        }
        let counts = vec![(SlotCounts::default(), 0); borders.len() - 1];
        Ok(Cells {
            borders,
            last: 0,
            counts,
        })
    }

    fn from(&self) -> Timestamp {
        self.borders.first().copied().unwrap_or_default()
    }

    fn to(&self) -> Timestamp {
        self.borders.last().copied().unwrap_or_default()
    }

    /// The cell of an instant, and when it ends.
    fn at(&mut self, at: Timestamp) -> Option<(&mut (SlotCounts, u32), Timestamp)> {
        let holds = |index: usize| {
            let borders = self.borders.get(index).zip(self.borders.get(index + 1));
            borders.is_some_and(|(begin, end)| (*begin..*end).contains(&at))
        };
        if !holds(self.last) {
            let behind = self.borders.partition_point(|border| *border <= at);
            self.last = behind.checked_sub(1)?;
        }
        let cell = self.counts.get_mut(self.last)?;
        let end = self.borders.get(self.last + 1)?;
        Some((cell, *end))
    }

    fn add(&mut self, at: Timestamp, counts: &SlotCounts) {
        if let Some(((sum, _), _)) = self.at(at) {
            sum.add(counts);
        }
    }

    /// Counts slots that are to come, which are sorted, from one instant up to, not including, another.
    fn add_due(&mut self, slots: &[Timestamp], (from, until): (Timestamp, Timestamp)) {
        let before = |at: Timestamp| slots.partition_point(|slot| *slot < at.clamp(from, until));
        for (borders, (_, due)) in self.borders.windows(2).zip(&mut self.counts) {
            if let [begin, end] = borders {
                let count = before(*end) - before(*begin);
                *due = u32::try_from(count).unwrap_or(u32::MAX);
            }
        }
    }

    fn told(&self) -> Vec<CalendarCell> {
        let all = self.borders.iter().zip(&self.counts);
        all.filter_map(|(at, (counts, due))| CalendarCell::of(*at, counts, *due))
            .collect()
    }
}

impl EngineControl {
    pub(super) fn calendar_of(&self, query: &CalendarQuery) -> Result<Calendar, Diagnostic> {
        let catalog = self.factory.definitions.current();
        let now = self.clock.now();
        let one = query
            .schedule
            .as_ref()
            .map(|id| defined_or_gone(&self.factory, self.store.as_ref(), id))
            .transpose()?;
        let timezone = match &one {
            Some((_, Some(schedule))) => schedule.timezone.to_string(),
            _ => catalog.config.timezone.clone(),
        };
        let zone: Zone = timezone.parse().unwrap_or(Zone::UTC);
        let from = query
            .from_ms
            .map_or_else(|| now.minus_millis(30 * DAY_MS), Timestamp::from_millis);
        let to = query
            .to_ms
            .map_or_else(|| now.plus_millis(7 * DAY_MS), Timestamp::from_millis);
        let mut cells = Cells::new(zone, query.bucket, (from, to))?;
        let (is_cut, due) = if let Some((id, defined)) = &one {
            self.count_one(&mut cells, id, defined.as_deref(), now)?
        } else {
            self.count_all(&mut cells, query.worker.as_deref())?;
            let kept = now.minus_millis(catalog.config.retention.slots_ms);
            let failing = self.view.agenda().failing;
            let paused = failing.iter().filter(|one| one.paused).count();
            let of = (query.worker.as_ref(), paused);
            let due = self.due.of((&catalog, self.store.as_ref()), of, now)?;
            (cells.from() < kept, due)
        };
        let mut known_until = cells.to();
        if now < cells.to() {
            known_until = due.known_until.min(known_until);
            if now < known_until {
                cells.add_due(&due.slots, (now.plus_millis(1), known_until));
            }
        }
        Ok(Calendar {
            timezone,
            bucket: query.bucket,
            from: cells.from(),
            to: cells.to(),
            cells: cells.told(),
            due_known_until: (now < cells.to()).then_some(known_until),
            incomplete: is_cut || known_until < cells.to(),
        })
    }

    /// Counts of all schedules, or of those of a worker.
    fn count_all(&self, cells: &mut Cells, worker: Option<&str>) -> Result<(), Diagnostic> {
        // Where a border divides a half hour, as a few zones have it, that counts where its middle lies.
        let middle = HALF_HOUR_MS.unsigned_abs() / 2;
        let (from, to) = (
            cells.from().minus_millis(middle),
            cells.to().minus_millis(middle),
        );
        self.store
            .slot_counts(worker, from, to, &mut |at, counts| {
                cells.add(at.plus_millis(middle), &counts);
            })?;
        Ok(())
    }

    /// Counts the rows of one schedule. Answers whether older ones are kept no more, and what is to come.
    fn count_one(
        &self,
        cells: &mut Cells,
        id: &str,
        defined: Option<&Schedule>,
        now: Timestamp,
    ) -> Result<(bool, Arc<Due>), Diagnostic> {
        let state = super::stored_schedules::one(self.store.as_ref(), id, now)?;
        let recurrence = defined.and_then(|defined| {
            let zone = defined.timezone.parse().unwrap_or(Zone::UTC);
            let anchor = state.as_ref().map_or(now, |state| state.anchor);
            Recurrence::of(&defined.trigger, zone, anchor)
        });
        let mut unknown = Vec::new();
        self.store
            .slots(id, Some(cells.to()), &mut |row| match row {
                Ok(row) if row.to < cells.from() => ControlFlow::Break(()),
                Ok(row) => {
                    count_row(cells, &row, recurrence.as_ref());
                    match &row.outcome {
                        Some(outcome) => cells.add(row.from, &SlotCounts::of_outcome(outcome)),
                        None => unknown.extend(row.run.map(|run| (row.from, run))),
                    }
                    ControlFlow::Continue(())
                }
                Err(_) => ControlFlow::Continue(()),
            })?;
        for (slot, run) in unknown {
            let run = summary_of(&self.view, self.store.as_ref(), run)?;
            if let Some(outcome) = run.and_then(|run| run.outcome) {
                cells.add(slot, &SlotCounts::of_outcome(outcome.name()));
            }
        }
        let trimmed = state.as_ref().and_then(|state| state.trimmed_until);
        let catalog = self.factory.definitions.current();
        let until = cells.to();
        let due = match defined {
            Some(defined) => due::of_one(&catalog, defined, state.as_ref(), (now, until)),
            None => Due {
                slots: Vec::new(),
                known_until: until,
            },
        };
        Ok((
            trimmed.is_some_and(|until| cells.from() <= until),
            Arc::new(due),
        ))
    }
}

/// Counts the slots of a row where they were: by what the schedule follows from, or, where that is another one by now,
/// evenly between the first and the last.
fn count_row(cells: &mut Cells, row: &SlotRow, recurrence: Option<&Recurrence>) {
    let counts_of = |count: u64| {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        SlotCounts::of_status(row.status, count)
    };
    if row.from == row.to {
        return cells.add(row.from, &counts_of(row.count.unwrap_or(1)));
    }
    let before = row.from.just_before();
    let own = recurrence.filter(|slots| {
        let count = slots.count_between(before, row.to, COUNT_MAX + 1);
        row.count.is_none_or(|known| known == count)
    });
    let Some(slots) = own else {
        return row.spread(COUNT_MAX + 1, HALF_HOUR_MS, &mut |at, count| {
            cells.add(at.max(row.from), &counts_of(count));
        });
    };
    let mut after = before.max(cells.from().just_before());
    while let Some(slot) = slots.next_after(after).filter(|slot| *slot <= row.to) {
        let Some(((sum, _), end)) = cells.at(slot) else {
            return;
        };
        let last = end.just_before().min(row.to);
        let count = slots.count_between(slot.just_before(), last, COUNT_MAX + 1);
        sum.add(&counts_of(count));
        after = last;
    }
}
