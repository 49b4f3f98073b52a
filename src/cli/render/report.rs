//! What happened in a run: the end of `run`, and all of `show`.

mod acts;
mod approval;
mod attempts;
mod commit;
mod next_step;
mod turns;

pub(crate) use approval::asked;
use approval::inputs;
use attempts::{attempts, refused_by_sandbox};
pub(crate) use commit::unlanded_hint;
use commit::{commit, not_landed};
pub(crate) use next_step::next_step;

use super::line::{ACTIVE, BAD, BOLD, CARE, DIM, GOOD, Line, PLAIN};
use super::times;
use crate::cli::io::Stream;
use crate::model::duration::show_millis;
use crate::model::evidence::{CheckRecord, Ended, OutputState, Verdict};
use crate::model::legible::exact;
use crate::model::outcome::Phase;
use crate::model::{Outcome, StepResult, Zone};
use crate::protocol::{RunDetail, RunSummary};

/// Lines of a failed command's output that are shown.
const TAIL_LINES_MAX: usize = 20;

/// Changed paths that are shown.
const PATHS_SHOWN_MAX: usize = 20;

/// The sign, style and word of a run's state.
pub(crate) fn state_of(summary: &RunSummary) -> (&'static str, anstyle::Style, String) {
    match &summary.outcome {
        None if summary.phase == Phase::BackingOff => ("…", CARE, "backing off".to_owned()),
        None => ("…", ACTIVE, summary.phase.name().to_owned()),
        Some(Outcome::Succeeded) if summary.nothing_to_do => ("✓", DIM, "nothing to do".to_owned()),
        Some(Outcome::Succeeded) if summary.unverified => {
            ("✓", CARE, "succeeded, unverified".to_owned())
        }
        Some(Outcome::Succeeded) if summary.reconciled => {
            ("✓", GOOD, "succeeded, reconciled".to_owned())
        }
        Some(Outcome::Succeeded) => ("✓", GOOD, "succeeded".to_owned()),
        Some(Outcome::Failed { failure }) => ("✗", BAD, format!("failed ({})", failure.step)),
        Some(Outcome::Cancelled) => ("✗", CARE, "cancelled".to_owned()),
        Some(Outcome::TimedOut { .. }) => ("✗", BAD, "timed out".to_owned()),
        Some(Outcome::Denied { .. }) => ("✗", BAD, "denied".to_owned()),
        Some(Outcome::Unknown { .. }) => ("?", CARE, "unknown".to_owned()),
    }
}

/// A wait and preparations that take longer are told beside the time of the run itself, in milliseconds.
const WAIT_TOLD_MS: u64 = 1_000;

/// Returns how long a run worked, without its waits, once it has ended.
pub(crate) fn took(summary: &RunSummary) -> Option<String> {
    summary.worked_ms().map(show_millis)
}

/// How long it waited and was prepared, where that is worth telling.
fn waited(summary: &RunSummary) -> Option<String> {
    let waited = summary.started_at?.millis_since(summary.submitted_at);
    (summary.finished_at.is_some() && waited >= WAIT_TOLD_MS).then(|| show_millis(waited))
}

/// One line: which skill, how it ended, how long it took, which run.
pub(crate) fn headline(summary: &RunSummary) -> Line {
    let (sign, style, word) = state_of(summary);
    let mut line = Line::of(style, sign)
        .text(" ")
        .styled(BOLD, summary.skill.to_string())
        .text(" ")
        .styled(style, word);
    if let Some(took) = took(summary) {
        line = line.text(format!(" in {took}"));
    }
    if let Some(waited) = waited(summary) {
        line = line.text(format!(", started after {waited}"));
    }
    line.styled(DIM, format!("  run {}", summary.run.short()))
}

/// What `run` ends with: outcome, checks, files, commit, thread.
pub(crate) fn ending(out: &mut Stream<'_>, detail: &RunDetail) {
    let summary = &detail.summary;
    out.line(headline(summary));
    outcome_detail(out, detail);
    checks(out, detail);
    files(out, detail);
    commit(out, detail);
    for path in &detail.not_restored {
        out.folded(Line::of(BAD, "  not restored  ").text(path));
    }
    warnings(out, detail);
    place(out, "thread", &detail.thread_path);
}

/// Prints warnings. A failed push is shown with the commit.
fn warnings(out: &mut Stream<'_>, detail: &RunDetail) {
    let push = detail.summary.push_error.as_deref();
    let is_shown = |warning: &&String| push.is_none_or(|error| !warning.ends_with(error));
    for warning in detail.warnings.iter().filter(is_shown) {
        out.folded(Line::of(CARE, "  warning  ").output(PLAIN, warning));
    }
}

/// In one line each: why a run did not succeed, and what of it was not put back.
pub(crate) fn what_is_wrong(err: &mut Stream<'_>, detail: &RunDetail) {
    let why = match &detail.summary.outcome {
        Some(Outcome::Unknown { why }) => Some(format!("its outcome is unknown ({why})")),
        Some(outcome) => outcome.detail(),
        None => None,
    };
    if let Some(first) = why.as_deref().and_then(|why| why.lines().next()) {
        err.folded(Line::from("  ").output(BAD, first));
    }
    if !detail.not_restored.is_empty() {
        let paths = detail.not_restored.join(", ");
        err.folded(Line::of(BAD, "  not restored  ").text(paths));
    }
    if let Some(next) = next_step(&detail.summary) {
        hint(err, &next);
    }
}

/// How a run ended and what proves it.
pub(crate) fn proved(out: &mut Stream<'_>, detail: &RunDetail) {
    out.line(headline(&detail.summary));
    outcome_detail(out, detail);
    checks(out, detail);
    warnings(out, detail);
}

/// Everything that is known of a run.
pub(crate) fn full(out: &mut Stream<'_>, detail: &RunDetail, zone: Zone) {
    ending(out, detail);
    let summary = &detail.summary;
    place(out, "log", &detail.log_path);
    field(out, "run", &summary.run.to_string());
    field(out, "title", &detail.title);
    field(out, "by", &detail.submitted_by);
    acts::show(out, &detail.audit);
    if let Some(before) = summary.retry_of {
        field(out, "retry of", &before.to_string());
    }
    acts::relatives(out, detail);
    if let Some(spent) = &summary.spent {
        field(out, "model", &spent.show());
    }
    turns::show(out, &detail.turns);
    if let Some(answer) = &detail.answer {
        out.line(Line::of(BOLD, "  answer"));
        for line in answer.lines().take(TAIL_LINES_MAX) {
            out.folded(Line::from("    ").output(PLAIN, line));
        }
        if answer.lines().nth(TAIL_LINES_MAX).is_some() {
            out.line(Line::of(DIM, "    …"));
        }
    }
    if let Some(reason) = &summary.waiting_for {
        field(out, "waits for", reason);
    }
    if let Some(at) = summary.retry_at {
        field(out, "retries at", &times::instant(at, zone));
    }
    approval::question(out, detail);
    field(out, "definition", &detail.definition_digest);
    inputs(out, detail);
    results(out, detail);
    attempts(out, detail, zone);
    if !detail.timeline.is_empty() {
        out.line(Line::of(BOLD, format!("  timeline ({zone})")));
        for (at, event) in &detail.timeline {
            let at = times::clock_time(*at, zone);
            out.folded(Line::of(DIM, format!("    {at}  ")).text(event));
        }
    }
}

fn field(out: &mut Stream<'_>, name: &str, value: &str) {
    if !value.is_empty() {
        out.folded(Line::of(DIM, format!("  {name:<10} ")).text(value));
    }
}

/// A path of ours, whole, so that it can be copied.
fn place(out: &mut Stream<'_>, name: &str, path: &str) {
    out.line(Line::of(DIM, format!("  {name:<10} ")).text(path));
}

fn outcome_detail(out: &mut Stream<'_>, detail: &RunDetail) {
    let summary = &detail.summary;
    match &summary.outcome {
        Some(Outcome::Unknown { why }) => {
            out.line(Line::of(CARE, format!("  its outcome is unknown ({why})")));
            if let Some(next) = next_step(summary) {
                hint(out, &next);
            }
        }
        Some(outcome) => {
            if let Some(text) = outcome.detail() {
                for line in text.lines() {
                    out.folded(Line::from("  ").output(BAD, line));
                }
            }
            if matches!(outcome, Outcome::Succeeded) && summary.unverified {
                out.line(Line::of(CARE, "  unverified: no required check ran"));
            }
        }
        None => {}
    }
    let failed_execution = detail
        .attempts
        .last()
        .filter(|attempt| attempt.failure.is_some())
        .and_then(|attempt| attempt.execution.as_ref())
        .filter(|execution| !execution.ended.is_success());
    if let Some(execution) = failed_execution {
        tail(out, &execution.stderr_tail);
        if !execution.stderr_tail.is_empty() || execution.stdout_bytes > 0 {
            hint(
                out,
                &format!("`workerctl logs {}` shows its output", summary.run.short()),
            );
        }
    }
    if summary
        .outcome
        .as_ref()
        .is_some_and(|outcome| *outcome != Outcome::Succeeded)
    {
        refused_by_sandbox(out, detail);
    }
}

fn hint(out: &mut Stream<'_>, text: &str) {
    out.line(Line::of(ACTIVE, "  hint:").text(" ").text(text));
}

fn tail(out: &mut Stream<'_>, text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(TAIL_LINES_MAX);
    if skipped > 0 {
        out.line(Line::of(DIM, format!("      │ ({skipped} lines before)")));
    }
    for line in lines.iter().skip(skipped) {
        out.folded(Line::of(DIM, "      │ ").output(PLAIN, line));
    }
}

fn checks(out: &mut Stream<'_>, detail: &RunDetail) {
    let newest = detail
        .attempts
        .last()
        .map(|attempt| attempt.checks.as_slice());
    let all: Vec<&CheckRecord> = detail
        .pre_checks
        .iter()
        .chain(newest.unwrap_or_default())
        .collect();
    if all.is_empty() {
        return;
    }
    out.line(Line::of(BOLD, "  checks"));
    let mut printed = false;
    let execution = detail
        .attempts
        .last()
        .and_then(|one| one.execution.as_ref());
    let level = execution.and_then(|execution| execution.sandbox_level);
    for check in all {
        printed |= check.verdict == Verdict::Failed && !check.output_tail.is_empty();
        one_check(out, check, level);
    }
    if printed {
        let run = detail.summary.run.short();
        hint(
            out,
            &format!("`workerctl logs {run} --stream check` has all of their output"),
        );
    }
}

/// A check; the level of its walls is shown where it is not that of its attempt.
fn one_check(out: &mut Stream<'_>, check: &CheckRecord, of_attempt: Option<u32>) {
    let (sign, style) = match check.verdict {
        Verdict::Passed => ("✓", GOOD),
        Verdict::Failed => ("✗", BAD),
        Verdict::Warned => ("!", CARE),
        Verdict::NotRun => ("–", DIM),
    };
    let mut line = Line::from("    ")
        .styled(style, sign)
        .text(" ")
        .text(&check.description);
    match check.verdict {
        Verdict::Passed if check.duration_ms > 0 => {
            line = line.styled(DIM, format!("  {}", show_millis(check.duration_ms)));
        }
        Verdict::NotRun => {
            let why = check.message.as_deref().unwrap_or("not run");
            line = line.styled(DIM, format!("  {why}"));
        }
        Verdict::Passed | Verdict::Failed | Verdict::Warned => {}
    }
    let level = check
        .sandbox_level
        .filter(|level| Some(*level) != of_attempt);
    if let Some(level) = level {
        line = line.styled(
            attempts::of_level(level),
            format!("  sandbox level {level}"),
        );
    }
    out.folded(line);
    if !matches!(check.verdict, Verdict::Failed | Verdict::Warned) {
        return;
    }
    for text in check.command.iter().flat_map(|command| command.lines()) {
        out.folded(Line::of(DIM, "      $ ").text(text));
    }
    let ended = check.ended.as_ref().map(Ended::describe);
    for text in ended.iter().chain(&check.message) {
        out.folded(Line::from("      ").output(style, text));
    }
    tail(out, &check.output_tail);
}

fn files(out: &mut Stream<'_>, detail: &RunDetail) {
    let written: Vec<&OutputState> = detail
        .outputs
        .iter()
        .filter(|output| output.path.is_some())
        .collect();
    if !written.is_empty() {
        out.line(Line::of(BOLD, "  outputs"));
    }
    for output in &written {
        let path = output.path.as_deref().unwrap_or_default();
        let mut line = Line::from("    ").text(path);
        if let Some(bytes) = output.bytes {
            line = line.styled(DIM, format!("  {}", times::bytes(bytes)));
        }
        if let Some(problem) = &output.problem {
            line = line.styled(BAD, format!("  {problem}"));
        } else if !output.written {
            line = line.styled(DIM, "  not written");
        }
        out.folded(line);
    }
    let protected = &detail.protected_changes;
    let is_written = |path: &&String| {
        written
            .iter()
            .any(|output| output.path.as_ref() == Some(path))
    };
    let changed = detail
        .changed
        .iter()
        .filter(|path| !protected.contains(path));
    let (outputs, others): (Vec<_>, Vec<_>) = changed.partition(is_written);
    let not_landed = not_landed(&detail.summary).filter(|_| detail.changed_count > 0);
    if others.is_empty() && protected.is_empty() && not_landed.is_none() {
        return;
    }
    let heading = Line::of(BOLD, format!("  changed ({})", detail.changed_count));
    out.line(match not_landed {
        Some(diff) => heading.text(format!(", not landed: `{diff}` shows it")),
        None => heading,
    });
    for path in protected {
        let line = Line::from("    ").text(exact(path));
        out.folded(line.styled(CARE, "  definition or protected file"));
    }
    for path in others.iter().take(PATHS_SHOWN_MAX) {
        out.folded(Line::from("    ").text(exact(path)));
    }
    let told = protected.len() + outputs.len() + others.len().min(PATHS_SHOWN_MAX);
    let told = u64::try_from(told).unwrap_or(u64::MAX);
    let more = detail.changed_count.saturating_sub(told);
    if more > 0 {
        let run = detail.summary.run.short();
        out.line(Line::of(
            DIM,
            format!("    and {more} more: `workerctl diff {run}`"),
        ));
    }
}

fn results(out: &mut Stream<'_>, detail: &RunDetail) {
    out.line(Line::of(BOLD, "  results"));
    let results = &detail.results;
    let named = [
        ("execution", &results.execution),
        ("verification", &results.verification),
        ("hook", &results.hook),
        ("save", &results.save),
        ("commit", &results.commit),
    ];
    for (name, result) in named {
        let (style, why) = match result {
            StepResult::Pending => (PLAIN, None),
            StepResult::Passed => (GOOD, None),
            StepResult::Failed { message } => (BAD, Some(message)),
            StepResult::Skipped { why } => (DIM, Some(why)),
            StepResult::Unknown { why } => (CARE, Some(why)),
        };
        let mut line = Line::of(DIM, format!("    {name:<13} ")).styled(style, result.name());
        if let Some(why) = why {
            line = line.output(DIM, &format!("  {why}"));
        }
        out.folded(line);
    }
}

#[cfg(test)]
mod tests;
