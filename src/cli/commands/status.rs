//! `status`

use super::check::counted;
use super::runs::table;
use crate::cli::exit::Exit;
use crate::cli::io::Stream;
use crate::cli::render::diagnostic;
use crate::cli::render::line::{BAD, BOLD, CARE, DIM, GOOD, Line};
use crate::cli::render::times;
use crate::cli::session::{Accept, Session};
use crate::model::duration::show_millis;
use crate::model::{Diagnostic, FailedPush, RunId, Zone};
use crate::protocol::{FailingView, RunSummary, Status, TreesView, UndeliveredView};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let Args {} = args;
    let control = session.connect(Accept::RunningElseHosted)?;
    let status = control.status()?;
    if session.json() {
        session.print_json(&status, "status");
        return Ok(exit_of(&status));
    }
    let width = session.io.table_width();
    print(&mut session.io.out, &status, width);
    if status.pid == std::process::id() {
        session.io.out.flush();
        let text = "queued runs start when a daemon is running (`workerctl daemon`)";
        diagnostic::hint(&mut session.io.err, text);
    }
    Ok(exit_of(&status))
}

/// Returns 1 if work is not done that should be: nothing fires the schedules, a due run could not start, a result was
/// not pushed, or none can be committed.
fn exit_of(status: &Status) -> Exit {
    let has_no_daemon = status.schedules > 0 && status.pid == std::process::id();
    let is_blocked = status
        .failing
        .iter()
        .any(|schedule| schedule.blocked.is_some());
    let is_ill = has_no_daemon
        || is_blocked
        || !status.failed_pushes.is_empty()
        || status.git_problem.is_some();
    if is_ill { Exit::Failed } else { Exit::Ok }
}

fn print(out: &mut Stream<'_>, status: &Status, width: Option<usize>) {
    let style = match status.condition.as_str() {
        "ready" => GOOD,
        "draining" => CARE,
        _ => BAD,
    };
    let host = match status.host.as_str() {
        "in_process" => "a command",
        other => other,
    };
    out.prose(
        Line::of(style, &status.condition)
            .text(format!("  {host}, process {}", status.pid))
            .styled(
                DIM,
                format!(
                    "  version {}, up {}",
                    status.version,
                    show_millis(status.uptime_ms)
                ),
            ),
        2,
    );
    let count =
        |count: u32, name: &str| counted(usize::try_from(count).unwrap_or(usize::MAX), name);
    let facts = [
        ("workspace", status.workspace.clone()),
        ("state", status.state_dir.clone()),
        (
            "runs",
            status.counts() + &format!(", at most {} at once", status.max_parallel),
        ),
        (
            "catalog",
            format!(
                "{} and {}, {} and {}",
                count(status.workers, "worker"),
                count(status.skills, "skill"),
                count(status.errors, "error"),
                count(status.warnings, "warning")
            ),
        ),
        ("zone", status.timezone.clone()),
        (
            "store",
            format!(
                "{}, {}",
                count64(status.commits, "commit"),
                count64(status.syncs, "sync")
            ),
        ),
    ];
    for (name, value) in facts.into_iter().chain(where_there_are_any(status)) {
        out.prose(Line::of(BOLD, format!("{name:<10} ")).text(value), 11);
    }
    print_alarms(out, status);
    if !status.active.is_empty() {
        out.line("");
        table(&status.active, times::zone(&status.timezone)).print(out, width);
        for run in &status.active {
            if let Some(spent) = &run.spent {
                out.line(Line::of(
                    DIM,
                    format!("  {}  {}", run.run.short(), spent.show()),
                ));
            }
        }
    }
}

fn print_alarms(out: &mut Stream<'_>, status: &Status) {
    for overdue in &status.overdue {
        let zone = times::zone(&overdue.timezone);
        let by = overdue.expected_by.rfc3339_in(zone);
        let text = format!("{} was expected to succeed by {by}", overdue.schedule);
        out.prose(Line::of(BAD, format!("{:<10} ", "overdue")).text(text), 11);
    }
    for failing in &status.failing {
        let text = told_of_failures(failing);
        out.prose(Line::of(BAD, format!("{:<10} ", "failing")).text(text), 11);
    }
    for undelivered in &status.undelivered {
        let text = told_of_notice(undelivered, times::zone(&status.timezone));
        out.prose(Line::of(BAD, format!("{:<10} ", "notice")).text(text), 11);
    }
    for push in &status.failed_pushes {
        let text = failed_push(push, status);
        let line = Line::of(BAD, format!("{:<10} ", "push")).text(text);
        out.prose(line, 11);
        out.prose(Line::of(DIM, " ".repeat(11)).text(push.hint()), 11);
    }
}

/// How often in a row a schedule has failed, and by which run that can be seen.
pub(super) fn told_of_failures(failing: &FailingView) -> String {
    if let Some(blocked) = &failing.blocked {
        let why = blocked
            .reason
            .as_deref()
            .unwrap_or("its definition has an error");
        return format!(
            "{}, the slot of {} did not run: {why}",
            failing.schedule,
            blocked.at.rfc3339()
        );
    }
    let times = match failing.failures {
        1 => "the last run".to_owned(),
        failures => format!("{failures} runs in a row"),
    };
    let run = failing.run.map(RunId::short);
    let run = run.map_or_else(String::new, |run| format!(": `workerctl show {run}`"));
    let paused = if failing.paused {
        ", and it is paused"
    } else {
        ""
    };
    format!("{}, {times} did not succeed{paused}{run}", failing.schedule)
}

/// Describes a branch that could not be pushed.
pub(super) fn failed_push(push: &FailedPush, status: &Status) -> String {
    let zone = times::zone(&status.timezone);
    let next = match push.next_attempt_at {
        _ if status.pid == std::process::id() => "tried again once a daemon runs".to_owned(),
        Some(at) => {
            let at = at.rfc3339_in(zone);
            format!("tried again at {at}, or at once by `workerctl daemon reload`")
        }
        None => {
            "cancelled, not retried until the next result or `workerctl daemon reload`".to_owned()
        }
    };
    let runs: Vec<String> = push.runs.iter().map(|run| run.short()).collect();
    format!(
        "{}; failed {} since {}, {next} (runs: {})",
        FailedPush::describe(&push.remote, &push.branch, &push.message),
        count64(u64::from(push.tries), "time"),
        push.since.rfc3339_in(zone),
        runs.join(", "),
    )
}

/// Which notice was not delivered, and why.
pub(super) fn told_of_notice(notice: &UndeliveredView, zone: Zone) -> String {
    let subject = notice.schedule.as_ref().unwrap_or(&notice.skill);
    let times = counted(usize::try_from(notice.tries).unwrap_or(usize::MAX), "time");
    let why = notice.message.as_deref().unwrap_or("it did not succeed");
    let next = notice
        .next_attempt_at
        .map(|at| format!("; tried again at {}", at.rfc3339_in(zone)));
    format!(
        "{} of {subject} was not delivered, tried {times}: {why}{}",
        notice.event,
        next.unwrap_or_default()
    )
}

/// Remedy that puts a changed configuration in force.
pub(super) const ACCEPT_CONFIG: &str = "commit it, or run `workerctl daemon reload`";

fn where_there_are_any(status: &Status) -> impl Iterator<Item = (&'static str, String)> {
    let scheduled = (status.schedules > 0).then(|| ("schedules", schedules(status)));
    let awaiting = (status.awaiting > 0).then(|| {
        let runs = counted(
            usize::try_from(status.awaiting).unwrap_or(usize::MAX),
            "run",
        );
        let told = format!("{runs} for approval: `workerctl runs --awaiting`");
        ("waiting", told)
    });
    let trees = status
        .trees
        .as_ref()
        .map(|found| ("trees", of_trees(found)));
    let kept = (status.kept_commits > 0).then(|| ("kept", kept(status)));
    let unresolved = (status.unresolved > 0).then(|| ("unknown", unresolved(status)));
    let git = status.git_problem.clone().map(|why| ("git", why));
    let config = status.config_fallback_reason.as_ref();
    let config = config.map(|why| ("config", format!("{why}; {ACCEPT_CONFIG}")));
    [config, git, awaiting, unresolved, scheduled, trees, kept]
        .into_iter()
        .flatten()
}

fn of_trees(trees: &TreesView) -> String {
    match (&trees.problem, &trees.place) {
        (Some(problem), _) => problem.clone(),
        (None, place) => format!(
            "{}, {} in use, {}, in {}",
            trees.count,
            trees.in_use,
            times::bytes(trees.bytes),
            place.as_deref().unwrap_or_default()
        ),
    }
}

/// Commits on no branch, which a user lands or discards.
pub(super) fn kept(status: &Status) -> String {
    format!(
        "{} not on any branch, from {}: `workerctl land RUN` or `discard RUN`",
        count64(u64::from(status.kept_commits), "commit"),
        names(status.kept_commits, &status.kept_runs)
    )
}

/// Runs whose outcome is unknown, which a user resolves.
pub(super) fn unresolved(status: &Status) -> String {
    format!(
        "{} with an unknown outcome, {}: `workerctl diff RUN`, then `workerctl resolve RUN`",
        count64(u64::from(status.unresolved), "run"),
        names(status.unresolved, &status.unresolved_runs)
    )
}

fn names(count: u32, runs: &[RunSummary]) -> String {
    let mut named: Vec<String> = runs.iter().map(|run| run.run.short()).collect();
    if count as usize > named.len() {
        named.push("…".to_owned());
    }
    named.join(", ")
}

fn schedules(status: &Status) -> String {
    let next = match &status.next_due {
        None => "none is due".to_owned(),
        Some(next) => {
            let at = next.at.rfc3339_in(times::zone(&next.timezone));
            format!("next {} at {at}", next.schedule)
        }
    };
    if let Some(why) = &status.inactive_reason {
        return format!("{}, {why}", status.schedules);
    }
    match status.fallback_schedules {
        0 => format!("{}, {next}", status.schedules),
        kept => format!(
            "{} ({kept} with an error, using the last valid definition), {next}",
            status.schedules
        ),
    }
}

fn count64(count: u64, name: &str) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), name)
}
