//! What a run comes to in one sentence, and what a person may do next.

use super::project::Story;
use crate::model::duration::show_millis;
use crate::model::evidence::Verdict;
use crate::model::outcome::{Outcome, StepResult};

/// How many paths `next_steps` names before it counts the rest.
const PATHS_SHOWN_MAX: usize = 10;

/// One honest sentence: what is known, and what is not.
pub(super) fn sentence(story: &Story<'_>) -> String {
    let spec = story.spec;
    let Some(outcome) = story.coming_outcome() else {
        return format!("{} is {}.", spec.skill, story.run.phase());
    };
    let attempts = match story.attempts.len() {
        0 | 1 => String::new(),
        many => format!(" after {many} attempts"),
    };
    let text = match outcome {
        Outcome::Succeeded => succeeded(story),
        Outcome::Failed { failure } => {
            format!(
                "failed{attempts} in step {}: {}",
                failure.step, failure.message
            )
        }
        Outcome::Cancelled => "was cancelled".to_owned(),
        Outcome::TimedOut { message } => format!("timed out{attempts}: {message}"),
        Outcome::Denied { message } => format!("was denied: {message}"),
        Outcome::Unknown { why } => format!("ended with an unknown outcome ({why})"),
    };
    let settled = match &story.resolution_note {
        Some(note) => format!("; a user resolved it: {note}"),
        None => String::new(),
    };
    format!("{} {text}{settled}{}.", spec.skill, put_back(story))
}

fn succeeded(story: &Story<'_>) -> String {
    let facts = &story.run.facts;
    if facts.results.is_nothing_to_do() {
        return "had nothing to do".to_owned();
    }
    let mut text = if facts.reconciled {
        "succeeded (reconciled: the engine was lost while the command ran, its outputs are there \
         and its checks passed)"
            .to_owned()
    } else {
        let passed = story.attempts.last().map_or(0, |attempt| {
            let checks = attempt.checks.iter();
            checks
                .filter(|check| check.must_pass && check.verdict == Verdict::Passed)
                .count()
        });
        match &facts.results.verification {
            StepResult::Passed if passed == 1 => "succeeded, 1 check passed".to_owned(),
            StepResult::Passed => format!("succeeded, {passed} checks passed"),
            StepResult::Pending
            | StepResult::Failed { .. }
            | StepResult::Skipped { .. }
            | StepResult::Unknown { .. } => "ended without an error, unverified".to_owned(),
        }
    };
    let made = story.summary.commits();
    let short = |oid: &String| oid.chars().take(10).collect::<String>();
    match (&facts.commit, &facts.results.commit) {
        (Some(oid), _) => {
            text.push_str(", commit ");
            text.push_str(&short(oid));
        }
        (None, _) if !made.is_none() => {
            text.push_str(", committed by the skill itself: ");
            text.push_str(&made.newest.last().map(short).unwrap_or_default());
        }
        (None, StepResult::Skipped { why }) if why == "nothing_changed" => {
            text.push_str(", nothing had changed and nothing was committed");
        }
        _ => {}
    }
    let duration_ms = story.summary.duration_ms();
    if let (Some(millis), Some(_)) = (duration_ms, story.summary.finished_at()) {
        text.push_str(", in ");
        text.push_str(&show_millis(millis));
    }
    text
}

fn put_back(story: &Story<'_>) -> String {
    let report = &story.not_restored;
    let left = report.edited_since.len() + report.failed.len();
    match (report.put_back, left) {
        (0, 0) => String::new(),
        (paths, 0) => format!("; {paths} changed paths were put back"),
        (paths, left) => format!("; {paths} changed paths were put back, {left} could not be"),
    }
}

/// What a person may do next, most useful first; empty when nothing is left to do.
pub(super) fn next_steps(story: &Story<'_>) -> Vec<String> {
    let run = story.spec.run.short();
    let mut steps = Vec::new();
    match story.coming_outcome() {
        Some(Outcome::Unknown { .. }) => {
            steps.push(format!(
                "look whether the work was done, then settle it: `workerctl resolve {run} --as \
                 succeeded|failed --note \"…\"`"
            ));
        }
        Some(Outcome::Failed { .. } | Outcome::TimedOut { .. }) => {
            steps.extend(failed_checks(story));
            steps.push(format!("read its output: `workerctl logs {run}`"));
            if story.spec.plan.mutating && story.changed_count > 0 {
                steps.push(format!("see what it had changed: `workerctl diff {run}`"));
            }
            steps.push(format!("run it again: `workerctl retry {run}`"));
        }
        Some(Outcome::Cancelled | Outcome::Denied { .. }) => {
            steps.push(format!("run it again: `workerctl retry {run}`"));
        }
        Some(Outcome::Succeeded) => {
            let summary = story.summary.build(story.spec, &story.run, None);
            if summary.unverified || (summary.outcome.is_none() && unproven(story)) {
                steps.push(format!(
                    "review its result yourself, because no check ran: `workerctl show {run}`"
                ));
            }
        }
        None => {}
    }
    let left = story.not_restored_lines();
    if !left.is_empty() {
        let more = left.len().saturating_sub(PATHS_SHOWN_MAX);
        for path in left.iter().take(PATHS_SHOWN_MAX) {
            steps.push(format!("put back by hand: {path}"));
        }
        if more > 0 {
            steps.push(format!(
                "put back by hand: {more} further paths, see `workerctl show {run}`"
            ));
        }
    }
    steps
}

fn unproven(story: &Story<'_>) -> bool {
    matches!(
        story.run.facts.results.verification,
        StepResult::Skipped { .. } | StepResult::Unknown { .. }
    )
}

fn failed_checks(story: &Story<'_>) -> Vec<String> {
    let of_attempt = story
        .attempts
        .last()
        .map_or(&[][..], |attempt| &attempt.checks);
    story
        .pre_checks
        .iter()
        .chain(of_attempt)
        .filter(|check| check.verdict == Verdict::Failed)
        .map(|check| match &check.command {
            Some(command) => format!("check `{}` failed, it ran: {command}", check.description),
            None => match &check.message {
                Some(message) => format!("check `{}` failed: {message}", check.description),
                None => format!("check `{}` failed", check.description),
            },
        })
        .collect()
}
