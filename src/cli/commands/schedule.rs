//! `schedule list|slots|next|explain|pause|resume`

use chrono_tz::Tz;

use super::workers::one_line;
use crate::cli::exit::Exit;
use crate::cli::io::Stream;
use crate::cli::render::line::{BAD, BOLD, CARE, DIM, GOOD, Line};
use crate::cli::render::table::{Column, Table};
use crate::cli::render::times;
use crate::cli::session::{Accept, Session, zone_of};
use crate::cli::suggest;
use crate::model::schedule::Fate;
use crate::model::{Diagnostic, Kind, RunId, Timestamp};
use crate::protocol::{PauseRequest, ResumeRequest, ScheduleView, SlotView, SlotsQuery};
use crate::schedule::{Expression, Recurrence, dst_warnings, words};

/// How far ahead changes of the clock are told, in milliseconds: two years.
const WARNED_MS: u64 = 2 * 366 * 24 * 3_600_000;

/// Most due times that are listed at once.
const NEXT_MAX: usize = 10_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List schedules: when each is due next, and how it went last
    List,
    /// Tell what became of due times, newest first: why it ran, or why it did not
    Slots {
        /// Id of the schedule; all without it
        schedule: Option<String>,
        /// Only due times since then, such as `2h`, `yesterday`, `2026-11-20`
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// How many rows
        #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// List the next due times of a cron expression
    Next(Bare),
    /// Explain a cron expression in words, with its next due times and what changes of the clock do
    Explain(Bare),
    /// Pause a schedule; nothing of it runs until it is resumed
    Pause {
        /// Id of the schedule
        schedule: String,
        /// Why
        #[arg(short, long)]
        reason: String,
    },
    /// Let a paused schedule go on, from now
    Resume {
        /// Id of the schedule
        schedule: String,
    },
}

/// A cron expression that stands in no definition.
#[derive(Debug, clap::Args)]
struct Bare {
    /// The expression in quotes: `"0 9 * * 1-5"`, or a nickname such as `@daily`
    expression: String,
    /// IANA zone of its times
    #[arg(short = 'z', long, value_name = "ZONE", default_value = "UTC")]
    timezone: String,
    /// Whether its first field is seconds
    #[arg(long)]
    seconds: bool,
    /// How many due times
    #[arg(short = 'n', long, default_value_t = 5)]
    count: usize,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    match &args.what {
        What::List => list(session),
        What::Slots {
            schedule,
            since,
            limit,
        } => slots(session, schedule.as_deref(), since.as_deref(), *limit),
        What::Next(bare) => next(session, bare),
        What::Explain(bare) => explain(session, bare),
        What::Pause { schedule, reason } => {
            let control = session.connect(Accept::RunningOnly)?;
            let request = PauseRequest {
                schedule: schedule.clone(),
                reason: reason.clone(),
                by: session.asked_by(),
            };
            let paused = control.pause(&request);
            changed(session, control.as_ref(), schedule, paused)
        }
        What::Resume { schedule } => {
            let control = session.connect(Accept::RunningOnly)?;
            let request = ResumeRequest {
                schedule: schedule.clone(),
            };
            let resumed = control.resume(&request);
            changed(session, control.as_ref(), schedule, resumed)
        }
    }
}

fn changed(
    session: &mut Session<'_>,
    control: &dyn crate::protocol::Control,
    schedule: &str,
    answer: Result<ScheduleView, Diagnostic>,
) -> Result<Exit, Diagnostic> {
    let view = answer.map_err(|refused| schedule_meant(control, schedule, refused))?;
    if session.json() {
        session.print_json(&view, "schedule");
        return Ok(Exit::Ok);
    }
    let zone = times::zone(&view.timezone);
    let line = match &view.paused {
        Some(pause) => format!("{} is paused: {}", view.id, pause.reason),
        None => format!("{} is due next {}", view.id, due(view.next, zone)),
    };
    session.io.err.line(line);
    Ok(Exit::Ok)
}

/// Adds what may have been meant to a refusal of an unknown id.
fn schedule_meant(
    control: &dyn crate::protocol::Control,
    given: &str,
    refused: Diagnostic,
) -> Diagnostic {
    if refused.kind != Kind::NotFound {
        return refused;
    }
    let known = control.schedules().unwrap_or_default();
    let ids = known.iter().map(|view| view.id.as_str());
    match suggest::did_you_mean(&suggest::nearest(given, ids)) {
        Some(meant) => refused.hint(meant),
        None => refused,
    }
}

fn list(session: &mut Session<'_>) -> Result<Exit, Diagnostic> {
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

fn due(at: Option<Timestamp>, zone: Tz) -> String {
    at.map_or_else(|| "never".to_owned(), |at| at.rfc3339_in(zone))
}

fn next_of(view: &ScheduleView, zone: Tz) -> Line {
    let line = match &view.paused {
        Some(_) => Line::of(CARE, "paused"),
        None if !view.fires => Line::of(CARE, "not fired yet"),
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

fn slots(
    session: &mut Session<'_>,
    schedule: Option<&str>,
    since: Option<&str>,
    limit: u32,
) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let zone = zone_of(control.as_ref())?;
    let now = session.clock.now();
    let since = since.map(|text| times::parse_instant(text, now, zone));
    let query = SlotsQuery {
        schedule: schedule.map(str::to_owned),
        since_ms: since.transpose()?.map(Timestamp::millis),
        limit,
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
    Ok(Exit::Ok)
}

fn table_of(rows: &[SlotView], zone: Tz) -> Table {
    let mut table = Table::new(&[
        Column::new("DUE"),
        Column::new("SCHEDULE"),
        Column::new("FATE"),
        Column::new("RUN").optional(),
        Column::new("WHY").cut().optional(),
    ]);
    for row in rows {
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
            fate(row.fate),
            row.run.map(RunId::short).unwrap_or_default().into(),
            one_line(row.reason.as_deref().unwrap_or(meaning(row.fate))).into(),
        ]);
    }
    table
}

fn fate(fate: Fate) -> Line {
    let style = match fate {
        Fate::Ran | Fate::CaughtUp | Fate::Backfilled => GOOD,
        Fate::BlockedConfig | Fate::MissedWindow => BAD,
        Fate::SkippedOverlap | Fate::Paused | Fate::BlockedHours | Fate::Coalesced => CARE,
    };
    Line::of(style, fate.name())
}

const fn meaning(fate: Fate) -> &'static str {
    match fate {
        Fate::Ran => "in time",
        Fate::CaughtUp => "no daemon ran at the due time",
        Fate::Backfilled => "a person asked for it afterwards",
        Fate::SkippedOverlap => "an earlier run had not ended",
        Fate::MissedWindow => "no daemon ran in time",
        Fate::Paused => "the schedule was paused",
        Fate::BlockedHours => "it fell into blocked hours or dates",
        Fate::BlockedConfig => "the definition could not be run",
        Fate::Coalesced => "a later due time ran in its place",
    }
}

/// Reads an expression and its zone, with the place of what is wrong.
fn read(bare: &Bare) -> Result<(Recurrence, Tz), Diagnostic> {
    let zone: Tz = bare.timezone.parse().map_err(|_| {
        Diagnostic::new(
            Kind::Usage,
            "timezone_unknown",
            format!("`{}` is no time zone", bare.timezone),
        )
        .hint("write an IANA name such as `Europe/Berlin`")
    })?;
    let expression = Expression::parse(&bare.expression, bare.seconds).map_err(|error| {
        let place = error.at.start + 1;
        let message = format!("`{}`, column {place}: {}", bare.expression, error.message);
        Diagnostic::new(Kind::Usage, "schedule_expression", message).hint(error.hint)
    })?;
    Ok((Recurrence::cron(expression, zone, None), zone))
}

fn fires(recurrence: &Recurrence, from: Timestamp, count: usize) -> Vec<Timestamp> {
    std::iter::successors(recurrence.next_after(from), |last| {
        recurrence.next_after(*last)
    })
    .take(count.min(NEXT_MAX))
    .collect()
}

fn next(session: &mut Session<'_>, bare: &Bare) -> Result<Exit, Diagnostic> {
    let (recurrence, zone) = read(bare)?;
    let fires = fires(&recurrence, session.clock.now(), bare.count);
    if session.json() {
        session.print_json(&fires, "next");
    } else {
        for at in fires {
            session.io.out.line(at.rfc3339_in(zone));
        }
    }
    Ok(Exit::Ok)
}

fn explain(session: &mut Session<'_>, bare: &Bare) -> Result<Exit, Diagnostic> {
    let (recurrence, zone) = read(bare)?;
    let now = session.clock.now();
    let fires = fires(&recurrence, now, bare.count);
    let warnings = dst_warnings(&recurrence, now, now.plus_millis(WARNED_MS));
    if session.json() {
        let explained = serde_json::json!({
            "words": words(&recurrence), "next": fires, "clock_changes": warnings,
        });
        session.print_json(&explained, "explained");
        return Ok(Exit::Ok);
    }
    let out: &mut Stream<'_> = &mut session.io.out;
    out.line(Line::of(BOLD, words(&recurrence)));
    for at in fires {
        out.line(Line::from("  ").text(at.rfc3339_in(zone)));
    }
    for warning in warnings {
        out.line(Line::of(CARE, format!("  {}  ", warning.date)).text(warning.what));
    }
    Ok(Exit::Ok)
}
