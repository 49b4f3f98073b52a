//! `schedule list`

use chrono_tz::Tz;

use super::due;
use crate::cli::exit::Exit;
use crate::cli::render::line::{BAD, CARE, DIM, GOOD, Line};
use crate::cli::render::table::{Column, Table};
use crate::cli::render::times;
use crate::cli::session::{Accept, Session};
use crate::model::Diagnostic;
use crate::protocol::ScheduleView;

pub(super) fn list(session: &mut Session<'_>) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let schedules = control.schedules()?;
    if session.json() {
        session.print_json(&schedules, "schedules");
        return Ok(Exit::Ok);
    }
    if schedules.is_empty() {
        session.io.err.line("no schedules");
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&[
        Column::new("SCHEDULE"),
        Column::new("NEXT"),
        Column::new("LAST"),
        Column::new("WHEN").cut().optional(),
    ]);
    for view in &schedules {
        let zone = times::zone(&view.timezone);
        table.row(vec![
            view.id.as_str().into(),
            next_of(view, zone),
            last_of(view, zone),
            view.when.as_str().into(),
        ]);
    }
    let width = session.io.table_width();
    table.print(&mut session.io.out, width);
    if control.status()?.host != "daemon" {
        let note = "no daemon runs: nothing is due until one does";
        crate::cli::render::diagnostic::warning(&mut session.io.err, note);
    }
    Ok(Exit::Ok)
}

fn next_of(view: &ScheduleView, zone: Tz) -> Line {
    let line = match &view.paused {
        Some(_) => Line::of(CARE, "paused"),
        None if !view.plan.trigger.is_timed() => Line::of(DIM, "–"),
        None => due(view.next, zone).into(),
    };
    marked(line, view)
}

/// Says that it is overdue, or as it was before an error.
fn marked(line: Line, view: &ScheduleView) -> Line {
    let line = if view.overdue {
        line.styled(BAD, " overdue")
    } else {
        line
    };
    let line = match &view.restored {
        Some(_) => line.styled(CARE, " (its state was damaged)"),
        None => line,
    };
    match &view.kept {
        Some(_) => line.styled(CARE, " (kept from before an error)"),
        None => line,
    }
}

fn last_of(view: &ScheduleView, zone: Tz) -> Line {
    let Some(last) = &view.last else {
        return Line::of(DIM, "–");
    };
    let at = last.slot.rfc3339_in(zone);
    let outcome = last.outcome.as_deref().unwrap_or("under way");
    let style = match outcome {
        "succeeded" => GOOD,
        "under way" => DIM,
        _ => BAD,
    };
    let line = Line::of(style, outcome).text(format!(" {at}"));
    if view.failures > 1 {
        line.styled(BAD, format!(" ({} failures in a row)", view.failures))
    } else {
        line
    }
}
