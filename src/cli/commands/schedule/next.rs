//! `schedule next`

use serde_json::json;

use super::subject::{Meant, Subject};
use crate::cli::exit::Exit;
use crate::cli::render::diagnostic;
use crate::cli::render::table::{Column, Table};
use crate::cli::session::Session;
use crate::model::{Diagnostic, Timestamp};
use crate::protocol::NextSlot;
use crate::schedule::Fire;
use crate::upcoming::{Upcoming, next_slot, zone_of};

pub(super) fn next(session: &mut Session<'_>, subject: &Subject) -> Result<Exit, Diagnostic> {
    let now = session.clock.now();
    match subject.meant(session)? {
        Meant::Expression(recurrence, zone) => {
            let fires = subject.fires_of(&recurrence, now, zone)?;
            if session.json() {
                let fire = |due: &Timestamp| Fire {
                    due: *due,
                    starts: *due,
                };
                let shown = |due| next_slot(None, zone, fire(due));
                let fires: Vec<NextSlot> = fires.iter().map(shown).collect();
                session.print_json(&json!({ "next": fires }), "next");
            } else {
                for at in fires {
                    session.io.out.line(at.rfc3339_in(zone));
                }
            }
        }
        Meant::Schedules(views) => {
            let next = subject.wanted(now, |wanted| Upcoming::of(&views, wanted))?;
            if session.json() {
                session.print_json(&next.document(), "next");
            } else {
                print(&next, session);
            }
        }
    }
    Ok(Exit::Ok)
}

fn print(next: &Upcoming<'_>, session: &mut Session<'_>) {
    let put_off = next.fires.iter().any(|(_, fire)| fire.due != fire.starts);
    let mut columns = vec![Column::new("DUE")];
    if put_off {
        columns.push(Column::new("STARTS"));
    }
    columns.push(Column::new("SCHEDULE"));
    columns.push(Column::new("ZONE").optional());
    let mut table = Table::new(&columns);
    for (view, fire) in &next.fires {
        let zone = zone_of(view);
        let mut row = vec![fire.due.rfc3339_in(zone).into()];
        if put_off {
            row.push(fire.starts.rfc3339_in(zone).into());
        }
        row.push(view.id.as_str().into());
        row.push(view.timezone.as_str().into());
        table.row(row);
    }
    if !next.fires.is_empty() {
        let width = session.io.table_width();
        table.print(&mut session.io.out, width);
    }
    print_notes(next, session);
}

fn print_notes(next: &Upcoming<'_>, session: &mut Session<'_>) {
    let err = &mut session.io.err;
    if next.fires.is_empty() {
        err.line("nothing is due");
    }
    for (view, row) in &next.omitted {
        let zone = zone_of(view);
        let what = match row.count {
            Some(1) => format!("its slot {} does", row.from.rfc3339_in(zone)),
            count => format!(
                "{} slots from {} to {} do",
                count.map_or_else(|| "many".to_owned(), |count| count.to_string()),
                row.from.rfc3339_in(zone),
                row.to.rfc3339_in(zone)
            ),
        };
        let why = super::slots::meaning(row.status);
        diagnostic::hint(err, &format!("{}: {what} not run: {why}", view.id));
    }
    for (view, at) in &next.given_up {
        let at = at.rfc3339_in(zone_of(view));
        let text = format!(
            "{}: the search stopped at {at}, because too many slots do not run",
            view.id
        );
        diagnostic::warning(err, &text);
    }
    for view in &next.paused {
        let why = view.paused.as_ref().map_or("", |pause| &pause.reason);
        let text = format!("{} is paused, and does not run: {why}", view.id);
        diagnostic::warning(err, &text);
    }
    if let Some(why) = next.held {
        diagnostic::warning(err, why);
    }
    for view in &next.blocked {
        let why = view.plan.blocked.as_deref().unwrap_or_default();
        let text = format!("{} cannot run as it is defined: {why}", view.id);
        diagnostic::warning(err, &text);
    }
    for view in &next.by_events {
        let text = format!("{} follows no clock: {}", view.id, view.when);
        diagnostic::hint(err, &text);
        for event in &view.waiting {
            let zone = zone_of(view);
            diagnostic::hint(err, &super::waits(&view.id, event, zone));
        }
    }
}
