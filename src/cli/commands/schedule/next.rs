//! `schedule next`

use serde_json::{Value, json};

use super::subject::{Meant, Subject};
use crate::cli::exit::Exit;
use crate::cli::render::diagnostic;
use crate::cli::render::table::{Column, Table};
use crate::cli::render::times;
use crate::cli::session::Session;
use crate::model::schedule::SlotRow;
use crate::model::{Diagnostic, Timestamp, Zone};
use crate::protocol::ScheduleView;
use crate::schedule::Fire;

/// What the schedules of the definitions do next.
#[derive(Default)]
struct Next<'a> {
    fires: Vec<(&'a ScheduleView, Fire)>,
    left_out: Vec<(&'a ScheduleView, SlotRow)>,
    /// Up to where it was looked, where too many slots do not run.
    given_up: Vec<(&'a ScheduleView, Timestamp)>,
    paused: Vec<&'a ScheduleView>,
    /// Those whose skill cannot run.
    blocked: Vec<&'a ScheduleView>,
    /// Why none of them is fired.
    held: Option<&'a str>,
    by_events: Vec<&'a ScheduleView>,
}

pub(super) fn next(session: &mut Session<'_>, subject: &Subject) -> Result<Exit, Diagnostic> {
    let now = session.clock.now();
    match subject.meant(session)? {
        Meant::Expression(recurrence, zone) => {
            let fires = subject.fires_of(&recurrence, now, zone)?;
            if session.json() {
                let shown = |at: &Timestamp| fire_json(None, zone, *at, *at);
                let fires: Vec<Value> = fires.iter().map(shown).collect();
                session.print_json(&json!({ "next": fires }), "next");
            } else {
                for at in fires {
                    session.io.out.line(at.rfc3339_in(zone));
                }
            }
        }
        Meant::Schedules(views) => {
            let next = of_schedules(&views, subject, now)?;
            if session.json() {
                session.print_json(&next.json(), "next");
            } else {
                next.print(session);
            }
        }
    }
    Ok(Exit::Ok)
}

fn of_schedules<'a>(
    views: &'a [ScheduleView],
    subject: &Subject,
    now: Timestamp,
) -> Result<Next<'a>, Diagnostic> {
    let (mut next, mut until) = (Next::default(), None);
    for view in views {
        if !view.plan.trigger.is_timed() {
            next.by_events.push(view);
        }
        if view.paused.is_some() {
            next.paused.push(view);
        }
        if view.plan.blocked.is_some() {
            next.blocked.push(view);
        }
        // Among others they would crowd out what does run.
        let runs = view.paused.is_none() && view.plan.blocked.is_none();
        if let Some(why) = &view.held {
            next.held = Some(why);
            continue;
        }
        if !view.plan.trigger.is_timed() || !(runs || subject.is_one()) {
            continue;
        }
        let preview = subject.preview_of(view, now, until)?;
        let given_up = preview.given_up.map(|at| (view, at));
        next.given_up.extend(given_up);
        let fires = preview.fires.into_iter();
        next.fires.extend(fires.map(|fire| (view, fire)));
        next.sort();
        next.fires.truncate(subject.count());
        // Nothing behind the last that is shown is of interest.
        if next.fires.len() >= subject.count() {
            until = next.fires.last().map(|(_, fire)| fire.starts);
        }
        let rows = preview.left_out.into_iter();
        next.left_out.extend(rows.map(|row| (view, row)));
    }
    // What lies behind the last that is shown is not of interest; where nothing runs, all of it is.
    if let Some((_, last)) = next.fires.last() {
        let last = last.starts;
        next.left_out.retain(|(_, row)| row.from <= last);
    }
    next.left_out.sort_by_key(|(_, row)| row.from);
    Ok(next)
}

fn fire_json(view: Option<&ScheduleView>, zone: Zone, due: Timestamp, starts: Timestamp) -> Value {
    json!({
        "schedule": view.map(|view| &view.id),
        "due": due,
        "starts": starts,
        "local": due.rfc3339_in(zone),
        "timezone": zone.name(),
    })
}

impl Next<'_> {
    fn sort(&mut self) {
        self.fires
            .sort_by(|(one, a), (other, b)| (a.starts, &one.id).cmp(&(b.starts, &other.id)));
    }

    fn json(&self) -> Value {
        let fires = self.fires.iter().map(|(view, fire)| {
            let zone = times::zone(&view.timezone);
            fire_json(Some(view), zone, fire.due, fire.starts)
        });
        let left_out = self.left_out.iter().map(|(view, row)| {
            json!({
                "schedule": view.id, "from": row.from, "to": row.to, "count": row.count, "fate": row.fate,
            })
        });
        let ids = |views: &[&ScheduleView]| -> Vec<String> {
            views.iter().map(|view| view.id.clone()).collect()
        };
        json!({
            "next": fires.collect::<Vec<_>>(),
            "left_out": left_out.collect::<Vec<_>>(),
            "looked_until": self.given_up.iter().map(|(view, at)| json!({"schedule": view.id, "until": at})).collect::<Vec<_>>(),
            "paused": ids(&self.paused),
            "held": self.held,
            "blocked": self.blocked.iter().map(|view| json!({"schedule": view.id, "reason": view.plan.blocked})).collect::<Vec<_>>(),
            "by_events": ids(&self.by_events),
        })
    }

    fn print(&self, session: &mut Session<'_>) {
        let put_off = self.fires.iter().any(|(_, fire)| fire.due != fire.starts);
        let mut columns = vec![Column::new("DUE")];
        if put_off {
            columns.push(Column::new("STARTS"));
        }
        columns.push(Column::new("SCHEDULE"));
        columns.push(Column::new("ZONE").optional());
        let mut table = Table::new(&columns);
        for (view, fire) in &self.fires {
            let zone = times::zone(&view.timezone);
            let mut row = vec![fire.due.rfc3339_in(zone).into()];
            if put_off {
                row.push(fire.starts.rfc3339_in(zone).into());
            }
            row.push(view.id.as_str().into());
            row.push(view.timezone.as_str().into());
            table.row(row);
        }
        if !self.fires.is_empty() {
            let width = session.io.table_width();
            table.print(&mut session.io.out, width);
        }
        self.print_notes(session);
    }

    fn print_notes(&self, session: &mut Session<'_>) {
        let err = &mut session.io.err;
        if self.fires.is_empty() {
            err.line("nothing is due");
        }
        for (view, row) in &self.left_out {
            let zone = times::zone(&view.timezone);
            let what = match row.count {
                Some(1) => format!("its slot {} does", row.from.rfc3339_in(zone)),
                count => format!(
                    "{} slots from {} to {} do",
                    count.map_or_else(|| "many".to_owned(), |count| count.to_string()),
                    row.from.rfc3339_in(zone),
                    row.to.rfc3339_in(zone)
                ),
            };
            let why = super::slots::meaning(row.fate);
            diagnostic::hint(err, &format!("{}: {what} not run: {why}", view.id));
        }
        for (view, at) in &self.given_up {
            let at = at.rfc3339_in(times::zone(&view.timezone));
            let text = format!(
                "{}: only looked up to {at}, for so much does not run",
                view.id
            );
            diagnostic::warning(err, &text);
        }
        for view in &self.paused {
            let why = view.paused.as_ref().map_or("", |pause| &pause.reason);
            let text = format!("{} is paused, and does not run: {why}", view.id);
            diagnostic::warning(err, &text);
        }
        if let Some(why) = self.held {
            diagnostic::warning(err, why);
        }
        for view in &self.blocked {
            let why = view.plan.blocked.as_deref().unwrap_or_default();
            let text = format!("{} cannot run as it is defined: {why}", view.id);
            diagnostic::warning(err, &text);
        }
        for view in &self.by_events {
            let text = format!("{} follows no clock: {}", view.id, view.when);
            diagnostic::hint(err, &text);
            for event in &view.waiting {
                let zone = times::zone(&view.timezone);
                diagnostic::hint(err, &super::waits(&view.id, event, zone));
            }
        }
    }
}
