//! `schedule slots`

use super::schedule_meant;
use crate::cli::commands::workers::one_line;
use crate::cli::exit::Exit;
use crate::cli::render::line::{ACTIVE, BAD, CARE, DIM, GOOD, Line};
use crate::cli::render::table::{Column, Table};
use crate::cli::render::{diagnostic, times};
use crate::cli::session::{Accept, Session, zone_of};
use crate::model::duration::show_millis;
use crate::model::outcome::Phase;
use crate::model::schedule::SlotStatus;
use crate::model::{Diagnostic, RunId, Timestamp, Zone};
use crate::protocol::{Control, SlotView, SlotsQuery};

pub(super) fn slots(
    session: &mut Session<'_>,
    schedule: Option<&str>,
    since: Option<&str>,
    limit: u32,
) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    // Times of one schedule are shown as its definition means them.
    let zone = match schedule {
        Some(id) => zone_shown(control.as_ref(), id)?,
        None => zone_of(control.as_ref())?,
    };
    let now = session.clock.now();
    let since = since.map(|text| times::parse_instant("--since", text, now, zone));
    let query = SlotsQuery {
        schedule: schedule.map(str::to_owned),
        since_ms: since.transpose()?.map(Timestamp::millis),
        limit,
        ..SlotsQuery::default()
    };
    let rows = control.slots(&query).map_err(|refused| {
        schedule_meant(control.as_ref(), schedule.unwrap_or_default(), refused)
    })?;
    if session.json() {
        session.print_json(&rows, "slots");
    } else if rows.is_empty() {
        session.io.err.line("nothing was due yet");
    } else {
        let width = session.io.table_width();
        table_of(&rows, zone).print(&mut session.io.out, width);
    }
    if let Some(id) = schedule.filter(|_| !session.json()) {
        report_waiting(session, control.as_ref(), id, zone)?;
    }
    Ok(Exit::Ok)
}

/// The zone of a schedule, that of the workspace where it is no longer active.
fn zone_shown(control: &dyn Control, id: &str) -> Result<Zone, Diagnostic> {
    match super::one(control, id) {
        Ok(Some(view)) => Ok(times::zone(&view.timezone)),
        _ => zone_of(control),
    }
}

/// Events that have no row yet.
fn report_waiting(
    session: &mut Session<'_>,
    control: &dyn Control,
    id: &str,
    zone: Zone,
) -> Result<(), Diagnostic> {
    let view = super::one(control, id)?;
    for (view, event) in view
        .iter()
        .flat_map(|view| view.waiting.iter().map(move |one| (view, one)))
    {
        diagnostic::hint(&mut session.io.err, &super::waits(&view.id, event, zone));
    }
    Ok(())
}

pub(super) fn table_of(rows: &[SlotView], zone: Zone) -> Table {
    let mut table = Table::new(&[
        Column::new("DUE").words(),
        Column::new("SCHEDULE"),
        Column::new("STATUS"),
        Column::new("RUN").optional(),
        Column::new("OUTCOME"),
        Column::new("STARTED").right().optional(),
        Column::new("WHY").words().optional(),
    ]);
    for row in rows {
        let zone = row.timezone.as_deref().map_or(zone, times::zone);
        let due = if row.from == row.to {
            row.from.rfc3339_in(zone)
        } else {
            let count = row
                .count
                .map_or_else(|| "many".to_owned(), |n| n.to_string());
            format!(
                "{} … {} ({count})",
                row.from.rfc3339_in(zone),
                row.to.rfc3339_in(zone)
            )
        };
        table.row(vec![
            due.into(),
            row.schedule.as_str().into(),
            status(row.status),
            row.run.map(RunId::short).unwrap_or_default().into(),
            outcome(row),
            started(row).into(),
            one_line(why(row)).into(),
        ]);
    }
    table
}

/// How the run ended.
fn outcome(row: &SlotView) -> Line {
    match (row.outcome.as_deref(), row.run) {
        (None, Some(_)) if row.phase == Some(Phase::BackingOff) => Line::of(CARE, "backing off"),
        (None, Some(_)) if row.started_at.is_some() => Line::of(ACTIVE, "running"),
        (None, Some(_)) => Line::of(DIM, "–"),
        (None, None) => Line::new(),
        (Some(_), _) if row.nothing_to_do => Line::of(DIM, "nothing to do"),
        (Some("succeeded"), _) => Line::of(GOOD, "succeeded"),
        (Some("cancelled"), _) => Line::of(CARE, "cancelled"),
        (Some(other), _) => Line::of(BAD, other.replace('_', " ")),
    }
}

/// How long after its slot the command of the run started.
fn started(row: &SlotView) -> String {
    let after = row.started_at.map(|at| at.millis_since(row.from));
    after.map_or_else(String::new, |after| format!("+{}", show_millis(after)))
}

fn why(row: &SlotView) -> &str {
    match &row.reason {
        Some(reason) => reason,
        // Whether it was in time stands beside it.
        None if row.status == SlotStatus::Ran => "",
        None => meaning(row.status),
    }
}

fn status(status: SlotStatus) -> Line {
    let style = match status {
        SlotStatus::Ran | SlotStatus::CaughtUp | SlotStatus::Backfilled => GOOD,
        SlotStatus::BlockedConfig => BAD,
        SlotStatus::SkippedOverlap
        | SlotStatus::Paused
        | SlotStatus::BlockedHours
        | SlotStatus::Missed => CARE,
    };
    Line::of(style, status.name())
}

pub(super) const fn meaning(status: SlotStatus) -> &'static str {
    match status {
        SlotStatus::Ran => "in time",
        SlotStatus::CaughtUp => "it could not run at its slot",
        SlotStatus::Backfilled => "run afterwards by `schedule backfill`",
        SlotStatus::SkippedOverlap => "an earlier run had not ended",
        SlotStatus::Missed => "missed: the daemon was down, or it came too late",
        SlotStatus::Paused => "the schedule was paused",
        SlotStatus::BlockedHours => "it fell into blocked hours or dates",
        SlotStatus::BlockedConfig => "the definition could not be run",
    }
}
