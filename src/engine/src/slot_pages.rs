//! Rows of the ledgers of all schedules in one order, page by page.
//!
//! Each ledger is read row by row, and only when its turn may have come: the state of a schedule that follows the clock
//! says up to where its rows reach. So a page costs about as many rows as it has, however many schedules there are.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::ops::ControlFlow;

use super::run_factory::RunFactory;
use super::schedules::{defined_or_gone, summary_of};
use super::view::View;
use crate::catalog::Catalog;
use crate::model::schedule::{ScheduleState, SlotRow, SlotStatus};
use crate::model::{Diagnostic, Kind, Outcome, Timestamp};
use crate::protocol::{RunSummary, SlotView, SlotsPage, SlotsQuery};
use crate::store::{Store, Unreadable};

/// Most rows that are looked at for one page; a filter may leave few of them.
const LOOKED_AT_MAX: usize = 5_000;

/// Rows of a ledger that are read at once.
const PORTION: usize = 16;

const LATEST: Timestamp = Timestamp::from_millis(i64::MAX);

/// One page of rows, newest first.
pub(super) fn page(
    factory: &RunFactory,
    view: &View,
    store: &dyn Store,
    query: &SlotsQuery,
) -> Result<SlotsPage, Diagnostic> {
    let catalog = factory.definitions.current();
    let filter = Filter::of(query)?;
    let mut walk = Walk {
        store,
        begins: Begins::of(query)?,
        ledgers: wanted(factory, &catalog, store, query)?,
        heads: BinaryHeap::new(),
    };
    walk.begin();
    let since = query
        .since_ms
        .map_or(Timestamp::from_millis(i64::MIN), Timestamp::from_millis);
    let (most, mut looked_at, mut last) = (query.most(), 0, None);
    let mut slots = Vec::new();
    while walk.reaches(since)
        && let Some((at, row)) = walk.next()?
    {
        if at < since {
            break;
        }
        last = Some(Cursor {
            to: at,
            from: row.from,
            schedule: row.schedule.clone(),
        });
        looked_at += 1;
        let row = told(&catalog, view, store, row)?;
        if filter.takes(&row) {
            slots.push(row);
        }
        if slots.len() >= most || looked_at >= LOOKED_AT_MAX {
            break;
        }
    }
    let next = last.filter(|_| walk.reaches(since));
    Ok(SlotsPage {
        slots: newest_first(slots),
        next: next.map(|next| next.to_string()),
    })
}

/// A run that a person asked for may lie within a longer stretch, which ends later and is read after it.
fn newest_first(mut slots: Vec<SlotView>) -> Vec<SlotView> {
    slots.sort_by_key(|row| Reverse(row.to));
    slots
}

/// The row with what became of its run.
fn told(
    catalog: &Catalog,
    view: &View,
    store: &dyn Store,
    mut row: SlotView,
) -> Result<SlotView, Diagnostic> {
    let all = &catalog.schedules;
    let at = all.binary_search_by(|one| (*one.id).cmp(&row.schedule));
    let defined = at.ok().and_then(|at| all.get(at));
    row.timezone = defined.map(|one| one.timezone.to_string());
    if let Some(run) = row.run {
        let summary = summary_of(view, store, run)?;
        row.started_at = summary.as_ref().and_then(|run| run.started_at);
        row.finished_at = summary.as_ref().and_then(|run| run.finished_at);
        row.nothing_to_do = summary.as_ref().is_some_and(|run| run.nothing_to_do);
        row.phase = summary.as_ref().and_then(RunSummary::open_phase);
        let outcome = summary.and_then(|run| run.outcome);
        row.outcome = outcome.map(|outcome| outcome.name().to_owned());
    }
    Ok(row)
}

/// SlotStatuses and outcomes of which any is wanted.
struct Filter<'a>(Option<HashSet<&'a str>>);

impl<'a> Filter<'a> {
    fn of(query: &'a SlotsQuery) -> Result<Filter<'a>, Diagnostic> {
        let Some(names) = &query.status else {
            return Ok(Filter(None));
        };
        let known: Vec<&str> = SlotStatus::ALL
            .map(SlotStatus::name)
            .into_iter()
            .chain(Outcome::NAMES)
            .collect();
        let wanted: HashSet<&str> = names.split(',').collect();
        match wanted.iter().find(|name| !known.contains(*name)) {
            None => Ok(Filter(Some(wanted))),
            Some(name) => {
                let shown: String = name.chars().take(64).collect();
                let message = format!("`{}` is no status and no outcome", shown.escape_debug());
                Err(Diagnostic::new(Kind::Usage, "status", message)
                    .hint(format!("one of: {}", known.join(", "))))
            }
        }
    }

    fn takes(&self, row: &SlotView) -> bool {
        self.0.as_ref().is_none_or(|wanted| {
            let outcome = row.outcome.as_deref();
            wanted.contains(row.status.name()) || outcome.is_some_and(|name| wanted.contains(name))
        })
    }
}

/// The last row of a page: where the next one goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cursor {
    /// Where it stood in the order.
    to: Timestamp,
    from: Timestamp,
    schedule: String,
}

impl Cursor {
    fn parse(text: &str) -> Option<Cursor> {
        let mut parts = text.splitn(3, '.');
        let mut instant = || parts.next()?.parse().ok().map(Timestamp::from_millis);
        Some(Cursor {
            to: instant()?,
            from: instant()?,
            schedule: parts.next()?.to_owned(),
        })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (to, from) = (self.to.millis(), self.from.millis());
        write!(f, "{to}.{from}.{}", self.schedule)
    }
}

/// Where a page begins.
enum Begins {
    /// With rows that end before an instant.
    Until(Timestamp),
    /// Behind a row.
    After(Cursor),
}

impl Begins {
    fn of(query: &SlotsQuery) -> Result<Begins, Diagnostic> {
        let Some(text) = &query.before else {
            let until = query.until_ms.map_or(LATEST, Timestamp::from_millis);
            return Ok(Begins::Until(until));
        };
        let cursor = Cursor::parse(text).ok_or_else(|| {
            let message = "`before` is not a cursor from an earlier response";
            Diagnostic::new(Kind::Usage, "before", message)
                .hint("take it from the header `Link` of the page before")
        })?;
        Ok(Begins::After(cursor))
    }

    /// The first instant at which no row of a ledger is wanted any more.
    fn end_of(&self, schedule: &str) -> Timestamp {
        match self {
            Begins::Until(until) => *until,
            // Rows of one instant stand in the order of their schedules.
            Begins::After(cursor) if schedule > cursor.schedule.as_str() => {
                cursor.to.plus_millis(1)
            }
            Begins::After(cursor) => cursor.to,
        }
    }
}

/// The ledger of one schedule.
struct Ledger {
    id: String,
    /// No row reaches beyond.
    reaches: Timestamp,
    /// Rows that were read and have not had their turn.
    rows: VecDeque<SlotView>,
    /// Rows before this first slot are to be read.
    before: Timestamp,
    is_read: bool,
    /// The place of the last row in the order. It never grows, though a stretch may reach beyond a run that a person
    /// asked for within it.
    place: Timestamp,
}

/// A ledger whose turn may have come: the latest first, of one instant those of the first ids.
type Head = (Timestamp, Reverse<usize>);

struct Walk<'a> {
    store: &'a dyn Store,
    begins: Begins,
    ledgers: Vec<Ledger>,
    heads: BinaryHeap<Head>,
}

impl Walk<'_> {
    fn begin(&mut self) {
        for (index, ledger) in self.ledgers.iter_mut().enumerate() {
            let end = self.begins.end_of(&ledger.id);
            ledger.before = end;
            if let Begins::After(cursor) = &self.begins
                && cursor.schedule == ledger.id
            {
                ledger.before = cursor.from;
                ledger.place = cursor.to;
            }
            let at = ledger.reaches.min(end);
            self.heads.push((at, Reverse(index)));
        }
    }

    /// Whether rows may be left that reach an instant.
    fn reaches(&self, since: Timestamp) -> bool {
        self.heads.peek().is_some_and(|(at, _)| *at >= since)
    }

    /// The next row of all, and its place in the order.
    fn next(&mut self) -> Result<Option<(Timestamp, SlotView)>, Diagnostic> {
        while let Some((at, Reverse(index))) = self.heads.pop() {
            let Some(ledger) = self.ledgers.get_mut(index) else {
                continue;
            };
            let row = ledger.rows.front().map(|row| row.to.min(ledger.place));
            match row {
                // It was known already that it is its turn.
                Some(place) if place == at => {
                    ledger.place = place;
                    let row = ledger.rows.pop_front();
                    self.push(index)?;
                    return Ok(row.map(|row| (place, row)));
                }
                _ => self.push(index)?,
            }
        }
        Ok(None)
    }

    /// Queues a ledger for its next row, if it has one.
    fn push(&mut self, index: usize) -> Result<(), Diagnostic> {
        let Some(ledger) = self.ledgers.get_mut(index) else {
            return Ok(());
        };
        let end = self.begins.end_of(&ledger.id);
        let is_own = matches!(&self.begins, Begins::After(cursor) if cursor.schedule == ledger.id);
        loop {
            ledger.read(self.store)?;
            let Some(row) = ledger.rows.front() else {
                return Ok(());
            };
            let place = row.to.min(ledger.place);
            if place < end || is_own {
                self.heads.push((place, Reverse(index)));
                return Ok(());
            }
            // A stretch that reaches beyond was told by an earlier page.
            ledger.place = place;
            ledger.rows.pop_front();
        }
    }
}

impl Ledger {
    fn new(id: &str, reaches: Timestamp) -> Ledger {
        Ledger {
            id: id.to_owned(),
            reaches,
            rows: VecDeque::new(),
            before: LATEST,
            is_read: false,
            place: LATEST,
        }
    }

    /// Reads some rows where none are left.
    fn read(&mut self, store: &dyn Store) -> Result<(), Diagnostic> {
        if self.is_read || !self.rows.is_empty() {
            return Ok(());
        }
        self.is_read = true;
        let (id, rows, is_read) = (&self.id, &mut self.rows, &mut self.is_read);
        store.slots(id, Some(self.before), &mut |row| {
            rows.push_back(shown(id, row));
            if rows.len() < PORTION {
                return ControlFlow::Continue(());
            }
            *is_read = false;
            ControlFlow::Break(())
        })?;
        self.before = self.rows.back().map_or(self.before, |row| row.from);
        Ok(())
    }
}

/// The ledgers that are wanted, by their ids; a schedule whose definition has gone still has its rows.
fn wanted(
    factory: &RunFactory,
    catalog: &Catalog,
    store: &dyn Store,
    query: &SlotsQuery,
) -> Result<Vec<Ledger>, Diagnostic> {
    if let Some(wanted) = &query.schedule {
        let (id, _) = defined_or_gone(factory, store, wanted)?;
        return Ok(vec![Ledger::new(&id, LATEST)]);
    }
    let mut known = Vec::new();
    store.schedules(&mut |id, state| {
        let reaches = state.map_or(LATEST, |state| reach(catalog, id, &state));
        known.push(Ledger::new(id, reaches));
    })?;
    Ok(known)
}

/// Up to where rows of a schedule may reach. Where the clock was stepped back, or events make it due, they may lie beyond
/// its cursor.
fn reach(catalog: &Catalog, id: &str, state: &ScheduleState) -> Timestamp {
    let all = &catalog.schedules;
    let at = all.binary_search_by(|one| (*one.id).cmp(id));
    let is_timed = at.is_ok_and(|at| all.get(at).is_some_and(|one| one.trigger.is_timed()));
    if is_timed && !state.has_run_ahead && state.pending.is_empty() {
        state.cursor
    } else {
        LATEST
    }
}

fn shown(schedule: &str, row: Result<SlotRow, Unreadable>) -> SlotView {
    let unreadable = row.is_err();
    let row = row.unwrap_or_else(|damaged| {
        let from = damaged.from.unwrap_or_default();
        SlotRow {
            count: None,
            ..SlotRow::one(from, SlotStatus::BlockedConfig, from)
        }
        .because(format!("unreadable: {}", damaged.reason))
    });
    SlotView {
        unreadable,
        ..SlotView::of(schedule, &row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let cursor = Cursor {
            to: Timestamp::from_millis(-5),
            from: Timestamp::from_millis(i64::MAX),
            schedule: "w.1/s#a.b".to_owned(),
        };
        assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        for wrong in ["", "1.2", "a.2.w/s", "1..w/s"] {
            assert_eq!(Cursor::parse(wrong), None, "{wrong}");
        }
    }
}
