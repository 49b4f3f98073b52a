//! `schedule list`

use super::due;
use crate::cli::commands::runs;
use crate::cli::exit::Exit;
use crate::cli::render::line::{BAD, CARE, DIM, GOOD, Line};
use crate::cli::render::table::{Column, Table};
use crate::cli::render::times;
use crate::cli::session::{Accept, Session};
use crate::model::duration::exact_millis;
use crate::model::outcome::Phase;
use crate::model::schedule::CatchUpMode;
use crate::model::{Diagnostic, Zone};
use crate::protocol::{Control, SCHEDULES_MAX, ScheduleView, SchedulesQuery};

#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct Args {
    /// Only this worker
    #[arg(long, value_name = "WORKER")]
    worker: Option<String>,
    /// Only this skill: `skill` or `worker/skill`
    #[arg(long)]
    skill: Option<String>,
    /// Maximum number of schedules, by id [default: all]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

impl Args {
    /// The schedules that are wanted, asked for page by page.
    fn schedules(&self, control: &dyn Control) -> Result<Vec<ScheduleView>, Diagnostic> {
        let mut query = SchedulesQuery {
            worker: self.worker.clone(),
            skill: self.skill.clone(),
            ..SchedulesQuery::default()
        };
        match self.limit {
            Some(limit) if limit <= SCHEDULES_MAX => {
                query.limit = limit;
                control.schedules(&query)
            }
            limit => {
                let mut all = control.all_schedules(&query)?;
                all.truncate(limit.map_or(usize::MAX, |limit| limit as usize));
                Ok(all)
            }
        }
    }

    /// Whether not all schedules are asked for.
    fn is_part(&self) -> bool {
        self.worker.is_some() || self.skill.is_some()
    }
}

pub(super) fn list(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let schedules = args.schedules(control.as_ref())?;
    if let (true, Some(worker)) = (schedules.is_empty(), &args.worker) {
        runs::refuse_unknown(control.as_ref(), worker)?;
    }
    if session.json() {
        session.print_json(&schedules, "schedules");
        return Ok(Exit::Ok);
    }
    if schedules.is_empty() {
        let none = if args.is_part() {
            "no schedules fit"
        } else {
            "no schedules"
        };
        session.io.err.line(none);
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&[
        Column::new("SCHEDULE"),
        Column::new("NEXT").words(),
        Column::new("LAST").words(),
        Column::new("WHEN").words().optional(),
        Column::new("POLICY").words().optional(),
    ]);
    for view in &schedules {
        let zone = times::zone(&view.timezone);
        table.row(vec![
            view.id.as_str().into(),
            next_of(view, zone),
            last_of(view, zone),
            view.when.as_str().into(),
            policy_of(view).into(),
        ]);
    }
    let width = session.io.table_width();
    table.print(&mut session.io.out, width);
    if control.status()?.host != "daemon" {
        let note = "no daemon is running: schedules fire only while one runs";
        crate::cli::render::diagnostic::warning(&mut session.io.err, note);
    }
    Ok(Exit::Ok)
}

fn next_of(view: &ScheduleView, zone: Zone) -> Line {
    let line = match &view.paused {
        Some(_) => Line::of(CARE, "paused"),
        None if !view.plan.trigger.is_timed() => waiting(view, zone),
        None if view.next.is_none() && !view.waiting.is_empty() => waiting(view, zone),
        None => due(view.next, zone).into(),
    };
    marked(line, view)
}

/// What its policies do, in a few words; `explain` has whole sentences.
fn policy_of(view: &ScheduleView) -> String {
    let policy = &view.plan.policy;
    let window = exact_millis(policy.catch_up.window_ms);
    let catch_up = match policy.catch_up.mode {
        CatchUpMode::Last => format!("catch up the last within {window}"),
        CatchUpMode::All => format!("catch up all within {window}"),
        CatchUpMode::None => "catch up none".to_owned(),
    };
    let is_blocked = !policy.blocked_hours.is_empty() || !policy.blocked_dates.is_empty();
    let parts = [
        Some(policy.overlap.name().to_owned()),
        view.plan.trigger.is_timed().then_some(catch_up),
        (policy.jitter_ms > 0).then(|| format!("jitter {}", exact_millis(policy.jitter_ms))),
        is_blocked.then(|| "blackout".to_owned()),
        policy.start.map(|_| "start".to_owned()),
        policy.end.map(|_| "end".to_owned()),
        policy
            .max_actions
            .map(|most| format!("{} of {most} runs", view.actions)),
        policy
            .pause_on_failure
            .map(|most| format!("pauses after {most} failures")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The first event that waits for its run.
fn waiting(view: &ScheduleView, zone: Zone) -> Line {
    let Some(first) = view.waiting.first() else {
        return Line::of(DIM, "–");
    };
    let line = Line::from(first.starts.rfc3339_in(zone));
    match view.waiting.len() {
        1 => line.styled(CARE, " (waits)"),
        count => line.styled(CARE, format!(" ({count} wait)")),
    }
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
    let line = match &view.plan.blocked {
        Some(_) => line.styled(BAD, " (cannot run)"),
        None => line,
    };
    let line = match &view.inactive_reason {
        Some(_) => line.styled(BAD, " (not fired)"),
        None => line,
    };
    match &view.fallback_reason {
        Some(_) => line.styled(CARE, " (error: last valid definition in use)"),
        None => line,
    }
}

fn last_of(view: &ScheduleView, zone: Zone) -> Line {
    let Some(last) = &view.last else {
        return Line::of(DIM, "–");
    };
    let at = last.slot.rfc3339_in(zone);
    let outcome = match &last.outcome {
        Some(_) if last.nothing_to_do => "nothing to do",
        Some(outcome) => outcome,
        None if last.phase == Some(Phase::BackingOff) => "backing off",
        None => "under way",
    };
    let style = match outcome {
        "succeeded" => GOOD,
        "under way" | "backing off" | "nothing to do" => DIM,
        _ => BAD,
    };
    let line = Line::of(style, outcome).text(format!(" {at}"));
    if view.failures > 1 {
        line.styled(BAD, format!(" ({} failures in a row)", view.failures))
    } else {
        line
    }
}
