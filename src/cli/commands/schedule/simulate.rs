//! `schedule simulate`

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::subject::ahead;
use crate::cli::exit::Exit;
use crate::cli::io::Stream;
use crate::cli::render::diagnostic;
use crate::cli::render::line::{BOLD, CARE, DIM, Line};
use crate::cli::render::table::{Column, Table};
use crate::cli::session::{Accept, Session, zone_of};
use crate::model::duration::{parse_millis, show_millis};
use crate::model::{Diagnostic, Kind, Outcome, Timestamp, Zone};
use crate::protocol::{Control, RunsQuery, SchedulesQuery};
use crate::schedule::{
    ActiveRun, Busy, Met, Planned, SLOTS_MAX, Scenario, ScenarioError, Simulated, Simulation,
};
use crate::upcoming::planned;

/// How many of a skill's last runs say how long one lasts.
const RUNS_LOOKED_AT: u32 = 20;

/// How long a run is taken to last where nothing says it, in milliseconds.
const ASSUMED_MS: u64 = 60_000;

/// Lines of a list that are shown; JSON has all.
const LINES_MAX: usize = 20;

/// Earlier runs that are named in a line.
const MET_SHOWN: usize = 3;

/// Hours that are shown one by one; more are put together by the hour of the day.
const BARS_MAX: u64 = 48;

const HOUR_MS: u64 = 3_600_000;

/// The longest bar.
const BAR_CHARS: usize = 40;

/// Characters of a line of the load beside the bar: its hour and its numbers.
const LABEL_CHARS: usize = 52;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Start, such as `2026-12-24` or `2026-12-24T18:00`; `now` includes the active runs
    #[arg(long, value_name = "TIME", default_value = "now")]
    from: String,
    /// End; `+7d` counts from the start
    #[arg(long, value_name = "TIME", default_value = "+24h")]
    to: String,
    /// Duration of runs of a skill (`w/backup=45m`), or of all skills without runs (`5m`); repeatable
    #[arg(long = "duration", value_name = "[SKILL=]SPAN")]
    durations: Vec<String>,
    /// Simulate that no daemon runs in this interval; repeatable
    #[arg(long = "down", value_name = "TIME/TIME")]
    down: Vec<String>,
}

/// How long runs of a skill are taken to last.
#[derive(Debug, serde::Serialize)]
struct Lasts {
    skill: String,
    duration_ms: u64,
    /// `given`, `median` or `assumed`.
    source: &'static str,
    /// Of how many runs it is the median.
    #[serde(rename = "run_count")]
    runs: usize,
}

pub(super) fn simulate(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let zone = zone_of(control.as_ref())?;
    let now = session.clock.now();
    let views = control.all_schedules(&SchedulesQuery::default())?;
    let schedules: Vec<Planned> = views.iter().map(|view| planned(view, now)).collect();
    let from = ahead(&args.from, now, zone)?;
    let lasts = durations(control.as_ref(), &schedules, &args.durations)?;
    let scenario = Scenario {
        from,
        to: ahead(&args.to, from, zone)?,
        durations: lasts
            .iter()
            .map(|one| (one.skill.clone(), one.duration_ms))
            .collect(),
        otherwise_ms: ASSUMED_MS,
        down: args
            .down
            .iter()
            .map(|text| stretch(text, from, zone))
            .collect::<Result<_, _>>()?,
        active: active_runs(control.as_ref(), from == now)?,
    };
    let simulation =
        crate::schedule::simulate(&schedules, &scenario).map_err(|error| refused(&error, zone))?;
    let load = simulation.load(hour_of(from, zone), scenario.to);
    for (text, (begins, ends)) in args.down.iter().zip(&scenario.down) {
        if *ends <= scenario.from || *begins >= scenario.to {
            let text = format!("`--down {text}` is outside of what is simulated");
            diagnostic::warning(&mut session.io.err, &text);
        }
    }
    if session.json() {
        let document = json!({
            "from": scenario.from, "to": scenario.to, "timezone": zone.name(), "durations": lasts,
            "schedules": simulation.schedules, "runs": simulation.runs, "overlaps": simulation.overlaps,
            "load": load,
        });
        session.print_json(&document, "simulation");
        return Ok(Exit::Ok);
    }
    if schedules.is_empty() {
        session.io.err.line("no schedules");
        return Ok(Exit::Ok);
    }
    let title = format!(
        "{} to {}, {}",
        from.rfc3339_in(zone),
        scenario.to.rfc3339_in(zone),
        zone.name()
    );
    session.io.out.prose(Line::of(BOLD, title), 2);
    print_schedules(session, &schedules, &simulation, &lasts);
    print_under_way(&mut session.io.out, &simulation, zone);
    print_left_out(&mut session.io.out, &simulation, zone);
    print_overlaps(&mut session.io.out, &simulation, zone);
    let width = session.io.table_width().unwrap_or(BAR_CHARS + LABEL_CHARS);
    let bar_chars = width.saturating_sub(LABEL_CHARS).clamp(1, BAR_CHARS);
    print_load(&mut session.io.out, &load, &scenario, (zone, bar_chars));
    for one in simulation
        .schedules
        .iter()
        .filter(|one| one.never_due.is_some())
    {
        let text = format!("{}: {}", one.id, one.never_due.unwrap_or_default());
        diagnostic::hint(&mut session.io.err, &text);
    }
    Ok(Exit::Ok)
}

fn refused(error: &ScenarioError, zone: Zone) -> Diagnostic {
    let (code, message, hint) = match error {
        ScenarioError::Backwards => (
            "simulation_backwards",
            "`--to` must be after `--from`".to_owned(),
            "examples: `--to +7d`, `--to 2026-12-24`".to_owned(),
        ),
        ScenarioError::TooLong => (
            "simulation_too_long",
            "a simulation lasts at most 366 days".to_owned(),
            "simulate a part of it".to_owned(),
        ),
        ScenarioError::TooMany(at) => (
            "simulation_too_large",
            format!("more than {SLOTS_MAX} slots, up to {}", at.rfc3339_in(zone)),
            format!("end before: `--to {}`", at.rfc3339_in(zone)),
        ),
    };
    Diagnostic::new(Kind::Usage, code, message).hint(hint)
}

/// Returns the runs that have not ended, oldest first; none if the simulation does not begin now.
fn active_runs(control: &dyn Control, from_now: bool) -> Result<Vec<ActiveRun>, Diagnostic> {
    if !from_now {
        return Ok(Vec::new());
    }
    let query = RunsQuery {
        outcome: Some("active".to_owned()),
        limit: 10_000,
        ..RunsQuery::default()
    };
    let runs = control.runs(&query)?;
    let active = runs.into_iter().rev().map(|run| ActiveRun {
        skill: run.skill.to_string(),
        slot: run.schedule.zip(run.slot),
        started_at: run.started_at,
    });
    Ok(active.collect())
}

/// Reads `FROM/TO`.
fn stretch(text: &str, now: Timestamp, zone: Zone) -> Result<(Timestamp, Timestamp), Diagnostic> {
    let parts = text.split_once('/').ok_or_else(|| {
        let message = format!("`{text}` is not `TIME/TIME`");
        Diagnostic::new(Kind::Usage, "bad_stretch", message)
            .hint("for example: `--down 2026-12-24T18:00/+2h`")
    })?;
    let from = ahead(parts.0, now, zone)?;
    let to = ahead(parts.1, from, zone)?;
    if to <= from {
        let message = format!("`--down {text}` must end after it begins");
        return Err(Diagnostic::new(Kind::Usage, "stretch_backwards", message)
            .hint("write the earlier time first: `--down 2026-12-24T18:00/2026-12-24T20:00`"));
    }
    Ok((from, to))
}

/// How long runs of each skill last: as was said, else the median of its last runs, else an assumption.
fn durations(
    control: &dyn Control,
    schedules: &[Planned],
    given: &[String],
) -> Result<Vec<Lasts>, Diagnostic> {
    let skills: BTreeSet<&str> = schedules.iter().map(|one| one.skill.as_str()).collect();
    let (said, otherwise) = said(given, &skills)?;
    let of = |skill: &str| {
        let skill = skill.to_owned();
        if let Some(millis) = said.get(&skill) {
            return Ok(Lasts {
                skill,
                duration_ms: *millis,
                source: "given",
                runs: 0,
            });
        }
        let mut known = last_durations(control, &skill)?;
        let (duration_ms, source) = match (median(&mut known), otherwise) {
            (Some(median), _) => (median, "median"),
            (None, Some(said)) => (said, "given"),
            (None, None) => (ASSUMED_MS, "assumed"),
        };
        Ok(Lasts {
            skill,
            duration_ms,
            source,
            runs: known.len(),
        })
    };
    skills.into_iter().map(of).collect()
}

fn median(known: &mut [u64]) -> Option<u64> {
    known.sort_unstable();
    let upper = *known.get(known.len() / 2)?;
    let lower = *known.get((known.len() - 1) / 2)?;
    Some(lower.midpoint(upper))
}

/// How long the last runs of a skill lasted that ended by themselves.
fn last_durations(control: &dyn Control, skill: &str) -> Result<Vec<u64>, Diagnostic> {
    let query = RunsQuery {
        skill: Some(skill.to_owned()),
        limit: RUNS_LOOKED_AT,
        ..RunsQuery::default()
    };
    let runs = control.runs(&query)?;
    // Where somebody or a limit ended it, nothing is learned of how long it would have lasted.
    let by_itself = runs.iter().filter(|run| match &run.outcome {
        Some(Outcome::Succeeded) => true,
        Some(Outcome::Failed { failure }) => failure.code != "interrupted",
        _ => false,
    });
    let lasted = by_itself.filter_map(|run| {
        run.finished_at
            .zip(run.started_at)
            .map(|(finished, started)| finished.millis_since(started))
    });
    Ok(lasted.collect())
}

/// What was said about skills, and about those of which nothing is known.
fn said(
    given: &[String],
    skills: &BTreeSet<&str>,
) -> Result<(BTreeMap<String, u64>, Option<u64>), Diagnostic> {
    let (mut said, mut otherwise) = (BTreeMap::new(), None);
    for text in given {
        let (skill, span) = match text.rsplit_once('=') {
            Some((skill, span)) => (Some(skill), span),
            None => (None, text.as_str()),
        };
        let (millis, _) = parse_millis(span).map_err(|_| {
            let message = format!("`{span}` is no span of time");
            Diagnostic::new(Kind::Usage, "bad_duration", message)
                .hint("examples: `--duration 5m`, `--duration w/backup=45m`")
        })?;
        let Some(skill) = skill else {
            otherwise = Some(millis);
            continue;
        };
        let matching = |one: &&&str| **one == skill || one.ends_with(&format!("/{skill}"));
        let mut found = skills.iter().filter(matching).copied();
        match (found.next(), found.next()) {
            (Some(one), None) => said.insert(one.to_owned(), millis),
            (None, _) => {
                let message = format!("no schedule runs a skill `{skill}`");
                return Err(Diagnostic::new(Kind::NotFound, "skill_not_found", message)
                    .hint("`workerctl schedule list` lists them"));
            }
            (Some(one), Some(other)) => {
                let message = format!("`{skill}` is ambiguous: it matches `{one}` and `{other}`");
                return Err(Diagnostic::new(Kind::Usage, "skill_ambiguous", message)
                    .hint("write `worker/skill`"));
            }
        };
    }
    Ok((said, otherwise))
}

fn print_schedules(
    session: &mut Session<'_>,
    schedules: &[Planned],
    simulation: &Simulation,
    lasts: &[Lasts],
) {
    let mut table = Table::new(&[
        Column::new("SCHEDULE"),
        Column::new("RUNS"),
        Column::new("A RUN LASTS").words(),
        Column::new("DOES NOT RUN").words(),
    ]);
    for (planned, one) in schedules.iter().zip(&simulation.schedules) {
        let (ran, not): (Vec<_>, Vec<_>) =
            one.totals.iter().partition(|(status, _)| status.is_run());
        let runs: u64 = ran.iter().map(|(_, count)| **count).sum();
        let not = not
            .iter()
            .map(|(status, count)| format!("{count} {}", status.name()));
        let lasts = lasts.iter().find(|lasts| lasts.skill == planned.skill);
        table.row(vec![
            one.id.as_str().into(),
            with_cut_short(runs, one).into(),
            lasts.map(lasts_shown).unwrap_or_default().into(),
            not.collect::<Vec<_>>().join(", ").into(),
        ]);
    }
    let width = session.io.table_width();
    table.print(&mut session.io.out, width);
}

fn with_cut_short(runs: u64, one: &Simulated) -> String {
    match one.terminated {
        0 => runs.to_string(),
        some => format!("{runs} ({some} cut short)"),
    }
}

fn lasts_shown(lasts: &Lasts) -> String {
    let span = show_millis(lasts.duration_ms);
    match (lasts.source, lasts.runs) {
        ("median", 1) => format!("{span} (1 run)"),
        ("median", runs) => format!("{span} (median of {runs})"),
        (source, _) => format!("{span} ({source})"),
    }
}

fn print_under_way(out: &mut Stream<'_>, simulation: &Simulation, zone: Zone) {
    let runs = simulation.runs.iter();
    let runs: Vec<_> = runs.filter(|run| run.under_way).collect();
    heading(out, "under way at the start", runs.len());
    for run in runs.iter().take(LINES_MAX) {
        let due = run.due.rfc3339_in(zone);
        let end = run.ended_at.map_or_else(
            || "does not end in the simulation".to_owned(),
            |at| format!("ends at {}", at.rfc3339_in(zone)),
        );
        out.prose(format!("  {due}  {}  {end}", run.schedule).into(), 4);
    }
    more(out, runs.len());
}

fn print_left_out(out: &mut Stream<'_>, simulation: &Simulation, zone: Zone) {
    let all = simulation.schedules.iter();
    let mut rows: Vec<_> = all
        .flat_map(|one| one.rows.iter().map(|row| (one.id.as_str(), row)))
        .collect();
    rows.sort_by_key(|(id, row)| (row.from, *id));
    heading(out, "does not run", rows.len());
    for (id, row) in rows.iter().take(LINES_MAX) {
        let why = row
            .reason
            .as_deref()
            .unwrap_or(super::slots::meaning(row.status));
        let due = if row.from == row.to {
            row.from.rfc3339_in(zone)
        } else {
            let count = row
                .count
                .map_or_else(|| "many".to_owned(), |n| n.to_string());
            let (from, to) = (row.from.rfc3339_in(zone), row.to.rfc3339_in(zone));
            format!("{from} … {to} ({count})")
        };
        let line = Line::from(format!("  {due}  {id}  ")).styled(CARE, row.status.name());
        out.prose(line.text(format!(": {why}")), 4);
    }
    more(out, rows.len());
}

fn print_overlaps(out: &mut Stream<'_>, simulation: &Simulation, zone: Zone) {
    let overlaps = &simulation.overlaps;
    heading(
        out,
        "overlaps an earlier run of its schedule",
        overlaps.len(),
    );
    for overlap in overlaps.iter().take(LINES_MAX) {
        let then = match overlap.then {
            Met::Skipped => "is left out",
            Met::Waits => "waits",
            Met::Ends => "ends it",
            Met::Concurrent => "runs in parallel",
        };
        let met = overlap.overlapped.iter().map(|due| due.rfc3339_in(zone));
        let mut met: Vec<String> = met.take(MET_SHOWN).collect();
        if overlap.others > met.len() {
            met.push(format!("{} more", overlap.others - met.len()));
        }
        let due = overlap.due.rfc3339_in(zone);
        let line = format!(
            "  {due}  {}  overlaps that of {}, and {then}",
            overlap.schedule,
            met.join(", ")
        );
        out.prose(line.into(), 4);
    }
    more(out, overlaps.len());
}

fn heading(out: &mut Stream<'_>, text: &str, count: usize) {
    if count > 0 {
        out.line("");
        out.line(Line::of(BOLD, text));
    }
}

fn more(out: &mut Stream<'_>, count: usize) {
    if count > LINES_MAX {
        let rest = count - LINES_MAX;
        out.line(Line::of(
            DIM,
            format!("  … and {rest} more; `--json` has all"),
        ));
    }
}

/// The first instant of a local hour.
fn hour_of(at: Timestamp, zone: Zone) -> Timestamp {
    let offset = i64::from(at.offset_minutes_in(zone)) * 60_000;
    let local = at.millis().saturating_add(offset);
    Timestamp::from_millis(at.millis().saturating_sub(local.rem_euclid(3_600_000)))
}

/// Runs that start in each hour in which something runs; of more than two days, in each hour of the day.
fn print_load(
    out: &mut Stream<'_>,
    load: &[Busy],
    scenario: &Scenario,
    (zone, bar_chars): (Zone, usize),
) {
    let first = hour_of(scenario.from, zone);
    let hours = scenario.to.millis_since(first).div_ceil(HOUR_MS);
    let by_day = hours > BARS_MAX;
    let mut bars: BTreeMap<(i64, String), (u64, u64)> = BTreeMap::new();
    for busy in load {
        let bar = bars.entry(bar_of(busy.hour, zone, by_day)).or_default();
        bar.0 += busy.started;
        bar.1 = bar.1.max(busy.max_concurrent);
    }
    let title = if by_day {
        "runs that start, by the hour of the day"
    } else {
        "runs that start, by the hour"
    };
    heading(out, title, load.len());
    let most = bars.values().map(|bar| bar.0).max().unwrap_or(0).max(1);
    for ((_, label), (started, at_once)) in bars {
        let length = (started * u64::try_from(bar_chars).unwrap_or(1)).div_ceil(most);
        let bar = "#".repeat(usize::try_from(length).unwrap_or(0));
        let told = if at_once == 0 {
            String::new()
        } else {
            format!("{started}, {at_once} at once")
        };
        let parts = [label, bar, told];
        let shown = parts.iter().filter(|part| !part.is_empty());
        let shown: Vec<&str> = shown.map(String::as_str).collect();
        out.line(format!("  {}", shown.join("  ")));
    }
}

/// The bar that an hour belongs to, by its place and its label.
fn bar_of(hour: Timestamp, zone: Zone, by_day: bool) -> (i64, String) {
    let local = hour.time_in(zone);
    match local.get(..2).filter(|_| by_day) {
        Some(of_day) => (0, format!("{of_day}:00")),
        // In the night of a change two hours have the same name.
        None => (hour.millis(), hour.rfc3339_in(zone)),
    }
}
