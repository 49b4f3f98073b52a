//! `schedule list|slots|next|explain|simulate|import-crontab|pause|resume|trigger|backfill`

mod backfill;
mod explain;
mod import;
mod list;
mod next;
mod pause;
mod simulate;
mod slots;
mod subject;
mod trigger;

use crate::cli::exit::Exit;
use crate::cli::render::times;
use crate::cli::session::Session;
use crate::cli::suggest;
use crate::model::{Diagnostic, Kind, Timestamp, Zone};
use crate::protocol::{Control, ScheduleView, SchedulesQuery, WaitingEvent};

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: list::Args,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List schedules with their next and last runs (the default)
    List(list::Args),
    /// Show the history of slots, newest first: what ran, and why others did not
    Slots {
        /// Id of the schedule [default: all schedules]
        schedule: Option<String>,
        /// Only slots since this time, such as `2h`, `2026-11-20`, `2026-11-20T09:00`
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Maximum number of rows
        #[arg(short = 'n', long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
    },
    /// List the next slots of a schedule, of an expression, or of all schedules
    Next(subject::Subject),
    /// Explain a schedule or an expression in words
    Explain(subject::Subject),
    /// Simulate all schedules: runs, overlaps and load
    Simulate(simulate::Args),
    /// Convert a crontab to a worker
    ImportCrontab(import::Args),
    /// Pause a schedule until it is resumed
    Pause {
        /// Id of the schedule
        schedule: String,
        /// Why
        #[arg(short, long)]
        reason: String,
    },
    /// Resume a paused schedule from now on
    Resume {
        /// Id of the schedule
        schedule: String,
    },
    /// Run a schedule now, and record the run in its history
    Trigger {
        /// Id of the schedule
        schedule: String,
        #[command(flatten)]
        asked: trigger::TriggerArgs,
    },
    /// Run missed slots of the past, oldest first
    Backfill(backfill::Args),
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let Some(what) = &args.what else {
        return list::list(session, &args.filter);
    };
    match what {
        What::List(args) => list::list(session, args),
        What::Slots {
            schedule,
            since,
            limit,
        } => slots::slots(session, schedule.as_deref(), since.as_deref(), *limit),
        What::Next(subject) => next::next(session, subject),
        What::Explain(subject) => explain::explain(session, subject),
        What::Simulate(args) => simulate::simulate(session, args),
        What::ImportCrontab(args) => import::import(session, args),
        What::Pause { schedule, reason } => pause::pause(session, schedule, reason),
        What::Resume { schedule } => pause::resume(session, schedule),
        What::Trigger { schedule, asked } => trigger::trigger(session, schedule, asked),
        What::Backfill(args) => backfill::backfill(session, args),
    }
}

/// Adds what may have been meant to a refusal of an unknown id.
fn schedule_meant(control: &dyn Control, given: &str, refused: Diagnostic) -> Diagnostic {
    if refused.kind != Kind::NotFound {
        return refused;
    }
    let every = SchedulesQuery::default();
    let known = control.all_schedules(&every).unwrap_or_default();
    let ids = known.iter().map(|view| view.id.as_str());
    match suggest::did_you_mean(&suggest::nearest(given, ids)) {
        Some(meant) => refused.hint(meant),
        None => refused,
    }
}

/// The schedule of this id.
fn one(control: &dyn Control, id: &str) -> Result<Option<ScheduleView>, Diagnostic> {
    let found = control.schedules(&SchedulesQuery::one(id))?;
    Ok(found.into_iter().next())
}

/// The zone of a schedule's slots; UTC where there is none of this id.
fn zone_of_schedule(control: &dyn Control, id: &str) -> Result<Zone, Diagnostic> {
    let view = one(control, id)?;
    Ok(times::zone(
        view.as_ref().map_or("UTC", |view| &view.timezone),
    ))
}

/// That an event, or a slot, has no row yet.
fn waits(id: &str, event: &WaitingEvent, zone: Zone) -> String {
    let (due, starts) = (event.due.rfc3339_in(zone), event.starts.rfc3339_in(zone));
    format!(
        "{id}: the slot or event due at {due} is still pending; it runs at {starts} at the earliest"
    )
}

fn due(at: Option<Timestamp>, zone: Zone) -> String {
    at.map_or_else(|| "never".to_owned(), |at| at.rfc3339_in(zone))
}
