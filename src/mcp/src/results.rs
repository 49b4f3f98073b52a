//! A run as the result of a skill: `content`, `is_error`, `iterations`, and which run it was.

use std::collections::VecDeque;
use std::fmt::Write;

use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::answer;
use crate::model::legible::legible_lines;
use crate::model::{Diagnostic, Outcome, Phase};
use crate::protocol::{Control, LogStream, LogsQuery, RunDetail, RunSummary, RunsQuery};
use crate::thread::sgr::without_sgr;

/// Bytes of a command's output that an answer holds, its last ones.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Bytes of what a command that failed wrote to standard error.
const ERROR_BYTES_MAX: usize = 8 * 1024;

/// Runs of one answer of `list_runs`, where no number is asked for, and at most.
const LISTED: u64 = 20;
const LISTED_MAX: u64 = 100;

/// A failure before any run, as `use_skill` tells it.
pub(super) fn error(message: impl Into<String>) -> CallToolResult {
    let message = legible_lines(&message.into()).into_owned();
    let data = json!({"content": message, "is_error": true, "iterations": 0, "run": null});
    answer::structured(message, data, true)
}

/// What is told of a run.
pub(super) struct Told {
    content: String,
    data: Value,
    is_error: bool,
    /// Which run it is about and how that ended, where the content does not say so.
    head: String,
}

impl Told {
    /// As the contract of `use_skill` has it.
    pub(super) fn structured(self) -> CallToolResult {
        answer::structured(self.content, self.data, self.is_error)
    }

    /// As text alone, for tools whose answers have no other form.
    pub(super) fn text(self) -> CallToolResult {
        let text = self.head + &self.content;
        if self.is_error {
            answer::failure(text)
        } else {
            answer::success(text)
        }
    }
}

/// What a run has come to so far, or in the end.
pub(super) fn of_run(control: &dyn Control, run: &str) -> Result<Told, Diagnostic> {
    let detail = control.run(run)?;
    let id = detail.summary.run.to_string();
    let Some(outcome) = detail.summary.outcome.clone() else {
        let what = match detail.summary.phase {
            Phase::AwaitingApproval => "waits for a person to approve it",
            _ => "goes on",
        };
        return Ok(pending(&detail, what));
    };
    let output = tail(
        control,
        &id,
        detail.summary.attempts,
        LogStream::Stdout,
        OUTPUT_BYTES_MAX,
    )?;
    let is_error = outcome != Outcome::Succeeded;
    let mut content = if is_error {
        let why = outcome
            .detail()
            .map_or(String::new(), |why| format!(": {}", without_sgr(&why)));
        format!("{} {}{why}", detail.summary.skill, outcome.name())
    } else if detail.summary.nothing_to_do {
        format!("{} had nothing to do", detail.summary.skill)
    } else if output.trim().is_empty() {
        format!("{} succeeded", detail.summary.skill)
    } else {
        output.trim_end().to_owned()
    };
    if is_error {
        let told = tail(
            control,
            &id,
            detail.summary.attempts,
            LogStream::Stderr,
            ERROR_BYTES_MAX,
        )?;
        for text in [output, told].iter().filter(|text| !text.trim().is_empty()) {
            // Writing into a string cannot fail.
            let _ = write!(content, "\n\n{}", text.trim_end());
        }
    }
    content.push_str(&without_sgr(&remarks(&detail)));
    // What else a terminal would obey is shown, as the command line shows it.
    let content = legible_lines(&content).into_owned();
    let mut data = data(&detail, &content, is_error);
    data["outcome"] = json!(outcome.name());
    data["outputs"] = detail
        .outputs
        .iter()
        .map(|one| json!({"name": one.name, "path": one.path}))
        .collect();
    if let Some(commit) = detail.summary.newest_commit() {
        data["commit"] = json!(commit);
    }
    Ok(Told {
        content,
        data,
        is_error,
        head: format!(
            "Run {id} of {}: {}\n\n",
            detail.summary.skill,
            outcome.name()
        ),
    })
}

fn data(detail: &RunDetail, content: &str, is_error: bool) -> Value {
    let turns = detail.summary.spent.as_ref().map(|spent| spent.turns);
    json!({
        "content": content,
        "is_error": is_error,
        "iterations": turns.unwrap_or(detail.summary.attempts),
        "run": detail.summary.run.to_string(),
        "skill": detail.summary.skill.to_string(),
        "phase": detail.summary.phase.name(),
    })
}

/// A run that was asked to end, and may have done so.
pub(super) fn of_cancelled(control: &dyn Control, run: &str) -> Result<Told, Diagnostic> {
    let detail = control.run(run)?;
    if detail.summary.outcome.is_some() {
        return of_run(control, run);
    }
    Ok(pending(&detail, "is being cancelled"))
}

/// A run that was to be asked to end and has ended; `None`: it has not.
pub(super) fn of_ended(control: &dyn Control, run: &str) -> Option<Told> {
    let detail = control.run(run).ok()?;
    let outcome = detail.summary.outcome.as_ref()?.name();
    let content = format!(
        "Run {} of {} has ended ({outcome}). `get_run` gives its result.",
        detail.summary.run, detail.summary.skill
    );
    let mut data = data(&detail, &content, true);
    data["outcome"] = json!(outcome);
    Some(Told {
        content,
        data,
        is_error: true,
        head: String::new(),
    })
}

/// A run that has not ended.
fn pending(detail: &RunDetail, what: &str) -> Told {
    let run = detail.summary.run;
    let waits = detail.summary.waiting_for.as_ref();
    let waits = waits.map_or_else(String::new, |why| format!(", waits for {why}"));
    let content = format!(
        "Run {run} of {} {what} ({}{waits}). `get_run` returns its result, `cancel_run` cancels it.",
        detail.summary.skill, detail.summary.phase
    );
    Told {
        data: data(detail, &content, false),
        content,
        is_error: false,
        head: String::new(),
    }
}

/// What `list_runs` is asked for.
pub(super) fn query(skill: Option<String>, state: Option<String>, limit: Option<u64>) -> RunsQuery {
    let limit = limit.unwrap_or(LISTED).min(LISTED_MAX);
    RunsQuery {
        skill,
        outcome: state,
        limit: u32::try_from(limit).unwrap_or(u32::MAX),
        ..RunsQuery::default()
    }
}

/// The tool `list_runs`: the newest first, a line each.
pub(super) fn list(control: &dyn Control, query: &RunsQuery) -> Result<CallToolResult, Diagnostic> {
    let lines = control.runs(query)?.iter().map(line).collect::<Vec<_>>();
    let text = if lines.is_empty() {
        "There are no such runs.".to_owned()
    } else {
        lines.join("\n")
    };
    Ok(answer::success(text))
}

fn line(run: &RunSummary) -> String {
    let outcome = run.outcome.as_ref();
    let state = if run.nothing_to_do {
        "nothing to do"
    } else {
        outcome.map_or_else(|| run.phase.name(), |outcome| outcome.name())
    };
    format!(
        "{} {} {state}, submitted {}",
        run.run, run.skill, run.submitted_at
    )
}

/// What is worth knowing beside the output.
fn remarks(detail: &RunDetail) -> String {
    let mut lines = Vec::new();
    for output in &detail.outputs {
        if let Some(path) = output.path.as_deref().filter(|_| output.problem.is_none()) {
            lines.push(format!("{}: {path}", output.name));
        }
    }
    let made = &detail.summary.commits_made.newest;
    for commit in made.iter().chain(&detail.summary.commit) {
        lines.push(format!("commit: {commit}"));
    }
    lines.extend(
        detail
            .warnings
            .iter()
            .map(|warning| format!("warning: {warning}")),
    );
    let not_restored = detail.not_restored.iter();
    lines.extend(not_restored.map(|path| format!("not restored: {path}")));
    if lines.is_empty() {
        String::new()
    } else {
        format!("\n\n{}", lines.join("\n"))
    }
}

/// The last bytes that an attempt wrote to one stream.
fn tail(
    control: &dyn Control,
    run: &str,
    attempt: u32,
    stream: LogStream,
    bytes_max: usize,
) -> Result<String, Diagnostic> {
    let mut kept: VecDeque<String> = VecDeque::new();
    let (mut bytes, mut cut) = (0, false);
    let mut query = LogsQuery {
        // No line takes less than a byte, with its end.
        tail: u32::try_from(bytes_max)
            .ok()
            .and_then(|most| most.checked_add(1)),
        stream: Some(stream.name().to_owned()),
        attempt: Some(attempt),
        ..LogsQuery::default()
    };
    loop {
        let page = control.logs_page(run, &query)?;
        for line in &page.lines {
            let end = if line.continued { "" } else { "\n" };
            let text = format!("{}{end}", without_sgr(&line.text));
            bytes += text.len();
            kept.push_back(text);
            // A long line is in several pieces, of which the last ones may be short.
            while let Some(first) = kept.front().filter(|one| bytes - one.len() >= bytes_max) {
                bytes -= first.len();
                kept.pop_front();
                cut = true;
            }
        }
        match page.next {
            Some(next) => (query.from, query.tail) = (next, None),
            None => break,
        }
    }
    let text: String = kept.into_iter().collect();
    let from = text.ceil_char_boundary(text.len().saturating_sub(bytes_max));
    let text = &text[from..];
    let mark = if cut || from > 0 {
        "[the beginning is left out; `read_thread` gives all]\n"
    } else {
        ""
    };
    Ok(format!("{mark}{text}"))
}
