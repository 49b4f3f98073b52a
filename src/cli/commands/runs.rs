//! `runs`

use crate::cli::exit::Exit;
use crate::cli::render::line::{CARE, DIM, Line};
use crate::cli::render::table::{Column, Table};
use crate::cli::render::{report, times};
use crate::cli::session::{Accept, Session, zone_of};
use crate::cli::suggest;
use crate::model::outcome::Phase;
use crate::model::{Diagnostic, Kind, Outcome, Timestamp, Zone};
use crate::protocol::{Control, RunSummary, RunsQuery};

/// Characters of a commit id that are shown.
const COMMIT_CHARS: usize = 9;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
}

/// Which runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Filter {
    /// Only this worker
    #[arg(long, value_name = "WORKER")]
    worker: Option<String>,
    /// Only this skill: `skill` or `worker/skill`
    #[arg(long)]
    skill: Option<String>,
    /// Only with these outcomes or in these phases, separated by commas
    #[arg(long, value_delimiter = ',', value_parser = [
        "succeeded", "failed", "cancelled", "timed_out", "denied", "unknown", "unverified", "nothing_to_do", "active",
        "queued", "validating", "awaiting_approval", "preparing", "executing", "verifying", "backing_off", "post_hook",
        "saving", "committing", "restoring", "finished",
    ], hide_possible_values = true)]
    outcome: Vec<String>,
    /// Only failed runs: `failed`, `timed_out` or `unknown`
    #[arg(long, conflicts_with_all = ["outcome", "awaiting"])]
    failed: bool,
    /// Only runs that wait for approval
    #[arg(long, conflicts_with = "outcome")]
    awaiting: bool,
    /// Only runs submitted since this time: `2h`, `3d`, `2026-11-20`, `2026-11-20T09:00`
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only runs submitted before this time
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Maximum number of runs
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

impl Filter {
    /// The runs, newest first, and the zone to show their times in.
    pub(crate) fn runs(
        &self,
        session: &Session<'_>,
        control: &dyn Control,
    ) -> Result<(Vec<RunSummary>, Zone), Diagnostic> {
        let zone = zone_of(control)?;
        let now = session.clock.now();
        let instant = |option: &str, text: &Option<String>| {
            let read = text
                .as_ref()
                .map(|text| times::parse_instant(option, text, now, zone));
            read.transpose().map(|at| at.map(Timestamp::millis))
        };
        let query = RunsQuery {
            worker: self.worker.clone(),
            skill: self.skill.clone(),
            outcome: match (self.awaiting, self.failed) {
                (true, _) => Some(Phase::AwaitingApproval.name().to_owned()),
                (_, true) => Some(Outcome::FAILURES.join(",")),
                _ => (!self.outcome.is_empty()).then(|| self.outcome.join(",")),
            },
            since_ms: instant("--since", &self.since)?,
            until_ms: instant("--until", &self.until)?,
            limit: self.limit,
            ..RunsQuery::default()
        };
        if let (Some(since), Some(until)) = (query.since_ms, query.until_ms)
            && since >= until
        {
            let refused = Diagnostic::new(
                Kind::Usage,
                "empty_span",
                "`--since` must be before `--until`",
            );
            return Err(refused);
        }
        let runs = control.runs(&query)?;
        if let (true, Some(worker)) = (runs.is_empty(), &self.worker) {
            refuse_unknown(control, worker)?;
        }
        Ok((runs, zone))
    }
}

/// Refuses a worker that is neither defined nor has ever had a run.
pub(super) fn refuse_unknown(control: &dyn Control, worker: &str) -> Result<(), Diagnostic> {
    let workers = control.workers()?;
    if workers.iter().any(|known| known.id == worker) {
        return Ok(());
    }
    let any = RunsQuery {
        worker: Some(worker.to_owned()),
        limit: 1,
        ..RunsQuery::default()
    };
    if !control.runs(&any)?.is_empty() {
        return Ok(());
    }
    let known = workers.iter().map(|known| known.id.as_str());
    Err(suggest::unknown_worker(worker, known))
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let (runs, zone) = args.filter.runs(session, control.as_ref())?;
    if session.json() {
        session.print_json(&runs, "runs");
    } else if runs.is_empty() {
        session.io.err.line("no runs");
    } else {
        let width = session.io.table_width();
        table(&runs, zone).print(&mut session.io.out, width);
    }
    Ok(Exit::Ok)
}

/// Runs as a table.
pub(crate) fn table(runs: &[RunSummary], zone: Zone) -> Table {
    let mut table = Table::new(&[
        Column::new("RUN"),
        Column::new("SKILL"),
        Column::new("OUTCOME").words(),
        Column::new("SUBMITTED").optional(),
        Column::new("TOOK").right().optional(),
        Column::new("COMMIT").optional(),
    ]);
    table.retitle("SUBMITTED", &format!("SUBMITTED ({zone})"));
    for run in runs {
        let (_, style, word) = report::state_of(run);
        let mut state = Line::of(style, word);
        if let Some(reason) = &run.waiting_for {
            let waits = if run.phase == Phase::Queued {
                " for"
            } else {
                ", waits for"
            };
            state = state.styled(DIM, format!("{waits} {reason}"));
        }
        if let Some(at) = run.retry_at {
            state = state.styled(DIM, format!(", retries at {}", times::instant(at, zone)));
        }
        if run.kept_commit.is_some() {
            state = state.styled(CARE, ", commit kept");
        }
        if run.push_error.is_some() {
            state = state.styled(CARE, ", not pushed");
        }
        let commit = run.newest_commit().map_or("", String::as_str);
        table.row(vec![
            run.run.short().into(),
            run.skill.to_string().into(),
            state,
            times::instant(run.submitted_at, zone).into(),
            report::took(run).unwrap_or_default().into(),
            Line::of(DIM, commit.chars().take(COMMIT_CHARS).collect::<String>()),
        ]);
    }
    table
}
