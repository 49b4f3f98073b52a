//! What keeps a skill from running now, and what a person does about each.

use serde::Serialize;

use super::{Known, Scheduled};
use crate::cli::render::{report, times};
use crate::model::file_size::{FILE_SIZE_LIMIT, FILE_SIZE_REMEDY};
use crate::model::outcome::Phase;
use crate::model::{Diagnostic, Kind, Outcome};
use crate::protocol::RunSummary;

/// One thing in the way.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Obstacle {
    /// Stable code.
    pub(super) code: String,
    /// For people.
    pub(super) message: String,
    /// What to do.
    pub(super) hint: Option<String>,
}

impl Obstacle {
    fn new(code: &str, message: impl Into<String>, hint: impl Into<String>) -> Obstacle {
        Obstacle {
            code: code.to_owned(),
            message: message.into(),
            hint: Some(hint.into()),
        }
    }
}

/// All of them: those of everything, of the skill, of its schedules, of its runs.
pub(super) fn found(known: &Known) -> Vec<Obstacle> {
    let mut found = of_engine(known);
    found.extend(of_skill(known));
    found.extend(
        known
            .schedules
            .iter()
            .flat_map(|one| of_schedule(known, one)),
    );
    found.extend(known.last.iter().flat_map(of_last));
    found.extend(known.active.iter().map(|run| of_active(known, run)));
    found
}

fn of_engine(known: &Known) -> Vec<Obstacle> {
    let status = &known.status;
    let mut found = Vec::new();
    match status.condition.as_str() {
        "ready" => {}
        "disk_full" => {
            let text = format!(
                "the disk of {} is full: no run is accepted",
                status.state_dir
            );
            let hint = "free some space; no restart is needed";
            found.push(Obstacle::new("disk_full", text, hint));
        }
        FILE_SIZE_LIMIT => {
            let text = format!(
                "the store in {} has reached the limit on the size of a file: no run is accepted",
                status.state_dir
            );
            found.push(Obstacle::new(FILE_SIZE_LIMIT, text, FILE_SIZE_REMEDY));
        }
        "draining" => {
            let text = "the engine is drained: nothing new starts";
            let hint = "start the daemon again once it has ended";
            found.push(Obstacle::new("draining", text, hint));
        }
        other => {
            let text = format!("the engine is not ready: {other}");
            found.push(Obstacle::new(other, text, "`workerctl status`"));
        }
    }
    let waits = !known.schedules.is_empty() || !known.active.is_empty();
    if waits && status.pid == std::process::id() {
        let text = "no daemon runs, so nothing starts by itself";
        found.push(Obstacle::new("no_daemon", text, "`workerctl daemon`"));
    }
    found
}

fn of_skill(known: &Known) -> Vec<Obstacle> {
    let rendered = match &known.rendered {
        Ok(rendered) => rendered,
        // A schedule gives inputs, and so does whoever runs it.
        Err(refused) if refused.kind == Kind::Usage => return Vec::new(),
        Err(refused) => return vec![of_refusal(refused)],
    };
    let mut found = Vec::new();
    if let Some(why) = &rendered.budget_spent {
        found.push(Obstacle {
            code: "budget_spent".to_owned(),
            message: why.clone(),
            hint: None,
        });
    }
    if let Some(problem) = known
        .status
        .git_problem
        .as_ref()
        .filter(|_| rendered.mutating)
    {
        found.push(Obstacle::new("git", problem, "`workerctl doctor`"));
    }
    let trees = known.status.trees.as_ref().filter(|_| rendered.mutating);
    if let Some(problem) = trees.and_then(|trees| trees.problem.clone()) {
        found.push(Obstacle::new("trees", problem, "`workerctl doctor`"));
    }
    found
}

fn of_refusal(refused: &Diagnostic) -> Obstacle {
    // The first problem of a definition stands in the message.
    let more = refused.details.iter().skip(1).take(2);
    let lines = std::iter::once(&refused.message).chain(more);
    Obstacle {
        code: refused.code.clone(),
        message: lines.map(String::as_str).collect::<Vec<_>>().join("; "),
        hint: refused.hints.first().cloned(),
    }
}

fn of_schedule(known: &Known, one: &Scheduled) -> Vec<Obstacle> {
    let view = &one.view;
    let mut found = Vec::new();
    if let Some(pause) = &view.paused {
        let at = pause.at.rfc3339_in(times::zone(&view.timezone));
        let text = format!(
            "{} is paused since {at} by {}: {}",
            view.id, pause.by, pause.reason
        );
        let hint = format!("`workerctl schedule resume '{}'`", view.id);
        found.push(Obstacle::new("paused", text, hint));
    }
    let check = "`workerctl check` shows what is wrong";
    if let Some(why) = &view.inactive_reason {
        found.push(Obstacle::new("held", why, check));
    }
    if let Some(error) = &view.fallback_reason {
        let text = format!(
            "{} uses its last valid definition because of an error: {error}",
            view.id
        );
        found.push(Obstacle::new("kept_schedule", text, check));
    }
    // What is wrong with the skill itself is told once.
    if let (Some(why), Ok(_)) = (&view.plan.blocked, &known.rendered) {
        let text = format!("{} cannot run: {why}", view.id);
        found.push(Obstacle::new("schedule_blocked", text, check));
    }
    found
}

fn of_last(last: &RunSummary) -> Vec<Obstacle> {
    let run = last.run.short();
    let mut found = Vec::new();
    if let Some(Outcome::Unknown { .. }) = &last.outcome {
        let text = format!("the outcome of run {run} is unknown");
        let hint = format!("`workerctl resolve {run} --as succeeded|failed --note …`");
        found.push(Obstacle::new("outcome_unknown", text, hint));
    }
    if let Some(error) = &last.push_error {
        let text = format!("the commit of run {run} was not pushed: {error}");
        found.push(Obstacle::new("not_pushed", text, "`workerctl status`"));
    }
    if last.kept_commit.is_some() {
        let text = format!("the commit of run {run} waits on no branch");
        let hint = report::next_step(last).unwrap_or_default();
        found.push(Obstacle::new("kept_commit", text, hint));
    }
    found
}

fn of_active(known: &Known, summary: &RunSummary) -> Obstacle {
    let run = summary.run.short();
    let waits = summary.waiting_for.as_deref();
    match summary.phase {
        Phase::AwaitingApproval => {
            let text = format!("run {run} waits for approval");
            let hint = format!("`workerctl approve {run}` or `workerctl deny {run}`");
            Obstacle::new("awaiting_approval", text, hint)
        }
        Phase::Queued => {
            let why = waits.map(|why| format!(" for {why}")).unwrap_or_default();
            let text = format!("run {run} is queued{why}{}", place(known, summary));
            Obstacle::new("queued", text, "`workerctl status` shows what runs")
        }
        phase => {
            let why = waits.map(|why| format!(", waits for {why}"));
            let text = format!("run {run} is under way: {phase}{}", why.unwrap_or_default());
            Obstacle::new("active", text, format!("`workerctl logs -f {run}`"))
        }
    }
}

/// How many wait longer; what the engine lists of them is bounded.
fn place(known: &Known, summary: &RunSummary) -> String {
    let is_before = |one: &&RunSummary| one.phase == Phase::Queued && one.run < summary.run;
    match known.status.active.iter().filter(is_before).count() {
        0 => String::new(),
        1 => ", one before it".to_owned(),
        many => format!(", {many} before it"),
    }
}
