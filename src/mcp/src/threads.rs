//! Threads of runs: the tool `read_thread`, and threads as resources.

use std::fmt::Write;

use rmcp::model::{CallToolResult, ContentBlock};

use super::answer;
use crate::model::legible::legible;
use crate::model::{Diagnostic, diagnostic};
use crate::protocol::{Control, LogLine, LogStream, LogsQuery, RunsQuery};
use crate::thread::sgr::without_sgr;

/// Lines that one answer holds.
const LINES_MAX: u64 = 1_000;

/// Bytes of text that one answer holds.
const BYTES_MAX: usize = 256 * 1024;

/// Runs whose threads are listed as resources.
const LISTED: u32 = 50;

/// The tool `read_thread`: lines of a run's log from `from` on.
pub(super) fn read(
    control: &dyn Control,
    run: &str,
    from: u64,
    limit: u64,
) -> Result<CallToolResult, Diagnostic> {
    // Asked first: what is written before a run ends is in what is read after.
    let summary = control.run(run)?.summary;
    let goes_on = summary.outcome.is_none();
    let run = summary.run.to_string();
    let (text, next, done) = lines(control, &run, from, limit)?;
    let phase = summary.phase.name();
    let more = match (done, goes_on) {
        (false, _) => format!("the log continues: call again with `from: {next}`"),
        (true, true) => {
            format!(
                "the run continues ({phase}): call again with `from: {next}` for what comes next"
            )
        }
        (true, false) => return Ok(answer::success(text)),
    };
    let mut result = answer::success(text);
    result.content.push(ContentBlock::text(more));
    Ok(result)
}

/// Text of lines, the number of the one behind them, and whether that was all.
fn lines(
    control: &dyn Control,
    run: &str,
    from: u64,
    limit: u64,
) -> Result<(String, u64, bool), Diagnostic> {
    let wanted = if limit == 0 {
        LINES_MAX
    } else {
        limit.min(LINES_MAX)
    };
    let limit = u32::try_from(wanted).unwrap_or(u32::MAX);
    let query = LogsQuery {
        from,
        limit,
        ..LogsQuery::default()
    };
    let page = control.logs_page(run, &query)?;
    let (mut text, mut next) = (String::new(), from);
    for line in &page.lines {
        if text.len() + line.text.len() > BYTES_MAX && next > from {
            return Ok((text, next, false));
        }
        text.push_str(&shown(line));
        next = line.line + 1;
    }
    Ok((text, next, page.next.is_none()))
}

fn shown(line: &LogLine) -> String {
    let stream = match line.stream {
        LogStream::Stdout => "out",
        LogStream::Stderr => "err",
        LogStream::Check => "check",
        LogStream::Tool => "tool",
        LogStream::Event => "event",
    };
    let end = if line.continued { " …" } else { "" };
    let plain = without_sgr(&line.text);
    format!("{} {stream:5} {}{end}\n", line.at, legible(&plain))
}

/// A thread as one text, bounded: what the run came to, then its log.
pub(super) fn whole(control: &dyn Control, run: &str) -> Result<String, Diagnostic> {
    let detail = control.run(run)?;
    let outcome = detail.summary.outcome.as_ref();
    let state = if detail.summary.nothing_to_do {
        "nothing to do"
    } else {
        outcome.map_or_else(|| detail.summary.phase.name(), |outcome| outcome.name())
    };
    let mut text = format!(
        "run: {}\nskill: {}\nstate: {state}\nthread: {}\n\n",
        detail.summary.run, detail.summary.skill, detail.summary.thread
    );
    let (log, next, done) = lines(control, run, 0, 0)?;
    text.push_str(&log);
    if !done {
        // Writing into a string cannot fail.
        let _ = writeln!(
            text,
            "[the log continues: `read_thread` with `from: {next}`]"
        );
    }
    Ok(text)
}

/// The newest runs: id, skill and state.
pub(super) fn newest(control: &dyn Control) -> Vec<(String, String)> {
    let query = RunsQuery {
        limit: LISTED,
        ..RunsQuery::default()
    };
    match control.runs(&query) {
        Ok(runs) => runs
            .iter()
            .map(|run| {
                let state = run
                    .outcome
                    .as_ref()
                    .map_or(run.phase.name(), |one| one.name());
                (run.run.to_string(), format!("{}, {state}", run.skill))
            })
            .collect(),
        Err(error) => {
            let why = diagnostic::chain(&error);
            tracing::warn!(%why, "threads cannot be listed");
            Vec::new()
        }
    }
}
