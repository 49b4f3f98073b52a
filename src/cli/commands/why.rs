//! `why SKILL|SCHEDULE`

mod obstacles;

use serde_json::{Value, json};

use crate::cli::exit::Exit;
use crate::cli::io::Stream;
use crate::cli::render::line::{BOLD, CARE, DIM, GOOD, Line};
use crate::cli::render::{report, times};
use crate::cli::session::{Accept, Session};
use crate::cli::suggest;
use crate::model::duration::show_millis;
use crate::model::{Diagnostic, Kind, Outcome, Timestamp, Zone};
use crate::protocol::{
    Control, Rendered, RunSummary, RunsQuery, ScheduleView, SchedulesQuery, SlotView, SlotsQuery,
    Status, SubmitRequest,
};
use obstacles::Obstacle;

/// Schedules whose next slot is shown.
const SCHEDULES_SHOWN: usize = 3;
/// Obstacles that are shown for people.
const OBSTACLES_SHOWN: usize = 4;
/// Runs that have not ended and are asked for.
const ACTIVE_MAX: u32 = 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// `worker/skill`, only the skill if it is unique, or the id of a schedule
    #[arg(value_name = "SKILL|SCHEDULE")]
    subject: String,
}

/// Everything that an engine says of one skill.
struct Known {
    skill: String,
    status: Status,
    /// The newest run that has ended.
    last: Option<RunSummary>,
    /// Runs that have not ended, oldest first.
    active: Vec<RunSummary>,
    schedules: Vec<Scheduled>,
    /// What a run now would be, or why there would be none.
    rendered: Result<Rendered, Diagnostic>,
}

/// A schedule, and its newest slot where that led to no run.
struct Scheduled {
    view: ScheduleView,
    passed: Option<SlotView>,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let known = known(control.as_ref(), &args.subject)?;
    let obstacles = obstacles::found(&known);
    if session.json() {
        session.print_json(&known.json(&obstacles), "why");
    } else {
        let now = session.clock.now();
        known.print(&mut session.io.out, &obstacles, now);
    }
    Ok(Exit::Ok)
}

fn known(control: &dyn Control, subject: &str) -> Result<Known, Diagnostic> {
    let one = control.schedules(&SchedulesQuery::one(subject))?.pop();
    let asked = one.as_ref().map_or(subject, |view| &view.skill).to_owned();
    let rendered = control.render(&SubmitRequest {
        skill: asked.clone(),
        ..SubmitRequest::default()
    });
    let skill = rendered.as_ref().map_or(asked, |it| it.skill.clone());
    let runs = |outcome: &str, limit: u32| {
        control.runs(&RunsQuery {
            skill: Some(skill.clone()),
            outcome: Some(outcome.to_owned()),
            limit,
            ..RunsQuery::default()
        })
    };
    let last = runs("finished", 1)?.pop();
    let mut active = runs("active", ACTIVE_MAX)?;
    active.reverse();
    // Of a skill that is gone its runs can still be told.
    let is_unknown = |refused: &Diagnostic| refused.kind == Kind::NotFound;
    let rendered = match rendered {
        Err(refused) if is_unknown(&refused) && last.is_none() && active.is_empty() => {
            return Err(suggest::skill_meant(control, subject, refused));
        }
        rendered => rendered,
    };
    let views = match one {
        Some(view) if view.id != skill => vec![view],
        _ => control.all_schedules(&SchedulesQuery {
            skill: Some(skill.clone()),
            ..SchedulesQuery::default()
        })?,
    };
    let with_slot = |view: ScheduleView| -> Result<Scheduled, Diagnostic> {
        let newest = control.slots(&SlotsQuery {
            schedule: Some(view.id.clone()),
            limit: 1,
            ..SlotsQuery::default()
        })?;
        // A pause is told by itself.
        let is_news = |slot: &SlotView| slot.run.is_none() && view.paused.is_none();
        let passed = newest.into_iter().next().filter(is_news);
        Ok(Scheduled { view, passed })
    };
    let schedules = views.into_iter().map(with_slot).collect::<Result<_, _>>()?;
    Ok(Known {
        skill,
        status: control.status()?,
        last,
        active,
        schedules,
        rendered,
    })
}

impl Known {
    fn json(&self, obstacles: &[Obstacle]) -> Value {
        let schedules = self.schedules.iter().map(|one| {
            json!({
                "schedule": one.view.id,
                "next": one.view.next,
                "paused": one.view.paused.is_some(),
                "passed": one.passed,
            })
        });
        json!({
            "skill": self.skill,
            "last": self.last,
            "active": self.active,
            "schedules": schedules.collect::<Vec<_>>(),
            "obstacles": obstacles,
        })
    }

    fn print(&self, out: &mut Stream<'_>, obstacles: &[Obstacle], now: Timestamp) {
        out.prose(Line::of(BOLD, &self.skill), 2);
        let zone = times::zone(&self.status.timezone);
        match &self.last {
            None => field(out, "last run", Line::from("there is none")),
            Some(last) => print_last(out, last, zone, now),
        }
        for one in self.schedules.iter().take(SCHEDULES_SHOWN) {
            field(out, "next", Line::from(one.next(now)));
            if let Some(slot) = &one.passed {
                field(out, "passed", Line::of(CARE, one.passed_over(slot)));
            }
        }
        if self.schedules.len() > SCHEDULES_SHOWN {
            let more = self.schedules.len() - SCHEDULES_SHOWN;
            let told = format!("and {more} more: `workerctl schedule list`");
            field(out, "", Line::of(DIM, told));
        }
        for obstacle in obstacles.iter().take(OBSTACLES_SHOWN) {
            let mut line = Line::of(CARE, &obstacle.message);
            if let Some(hint) = &obstacle.hint {
                line = line.text("; ").text(hint);
            }
            field(out, "blocked by", line);
        }
        match obstacles.len() {
            0 => field(out, "blocked by", Line::of(GOOD, "nothing")),
            all if all > OBSTACLES_SHOWN => {
                let told = format!("and {} more: `--json`", all - OBSTACLES_SHOWN);
                field(out, "", Line::of(DIM, told));
            }
            _ => {}
        }
    }
}

fn print_last(out: &mut Stream<'_>, last: &RunSummary, zone: Zone, now: Timestamp) {
    let (sign, style, word) = report::state_of(last);
    let ended = last.finished_at.unwrap_or(last.submitted_at);
    let ago = match round(now.millis_since(ended)) {
        0 => "just now".to_owned(),
        millis => format!("{} ago", show_millis(millis)),
    };
    let run = last.run.short();
    let line = Line::of(style, format!("{sign} {word}"))
        .text(format!(
            " {ago}, at {} ({zone})",
            times::instant(ended, zone)
        ))
        .styled(DIM, format!("  run {run}"));
    field(out, "last run", line);
    let why = last.outcome.as_ref().and_then(Outcome::detail);
    if let Some(first) = why.as_deref().and_then(|why| why.lines().next()) {
        field(out, "", Line::new().output(style, first));
    }
    if last.outcome != Some(Outcome::Succeeded) {
        let more = format!("`workerctl logs {run}` has its output, `workerctl show {run}` all");
        field(out, "", Line::of(DIM, more));
    }
}

impl Scheduled {
    fn next(&self, now: Timestamp) -> String {
        let view = &self.view;
        match view.next {
            _ if view.paused.is_some() => format!("{}: none while it is paused", view.id),
            None => format!("{}: none ({})", view.id, view.when),
            Some(next) => {
                let at = next.rfc3339_in(times::zone(&view.timezone));
                let ahead = show_millis(round(next.millis_since(now)));
                format!("{}: {at}, in {ahead} ({})", view.id, view.when)
            }
        }
    }

    fn passed_over(&self, slot: &SlotView) -> String {
        let at = slot.to.rfc3339_in(times::zone(&self.view.timezone));
        let status = slot.status.name().replace('_', " ");
        let why = slot.reason.as_deref().map(|why| format!(": {why}"));
        format!(
            "{} did not run at {at}, {status}{}",
            self.view.id,
            why.unwrap_or_default()
        )
    }
}

/// Nobody counts the seconds of hours.
fn round(millis: u64) -> u64 {
    match millis {
        0..60_000 => millis / 1_000 * 1_000,
        _ => millis / 60_000 * 60_000,
    }
}

fn field(out: &mut Stream<'_>, name: &str, value: Line) {
    out.prose(Line::of(BOLD, format!("  {name:<10}  ")).then(value), 14);
}
