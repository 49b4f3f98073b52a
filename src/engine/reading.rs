//! Reads: runs from the published view and the store, lines from thread logs. The core loop has no part in it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::given_up::missing_end;
use super::view::{Shown, View, Watching};
use crate::machine::{Entry, Run};
use crate::model::{Diagnostic, Kind, RunId, RunSpec};
use crate::protocol::{LogLine, LogsQuery, RunDetail, RunSummary, RunsQuery, WatchEvent};
use crate::store::thread_files::{Directory, LogReader};
use crate::store::{Store, StoreError};
use crate::thread::project;

/// How many runs a list has where the query says nothing.
const LIMIT_DEFAULT: usize = 20;

/// Most runs of one list.
const LIMIT_MAX: usize = 10_000;

/// How many lines of a log are read where the query says nothing, and at most.
const LINES_MAX: usize = 10_000;

/// How often a watcher of a silent run looks whether its run has left the view without a word, and is asked
/// whether anybody still listens to it.
const WATCH_LOOK: Duration = Duration::from_secs(1);

/// A store that cannot be read, as the rim tells it.
pub(super) fn unreadable(error: &StoreError) -> Diagnostic {
    Diagnostic::new(
        Kind::Internal,
        "store_unreadable",
        crate::model::diagnostic::chain(error),
    )
    .hint("`workerctl store verify` shows what is damaged")
}

/// A run that the view no longer holds.
pub(super) fn stored(store: &dyn Store, run: RunId) -> Result<Option<Shown>, Diagnostic> {
    let Some(spec) = store.spec(run).map_err(|error| unreadable(&error))? else {
        return Ok(None);
    };
    let mut entries = store.journal(run).map_err(|error| unreadable(&error))?;
    let mut folded = Run::fold(&entries).map_err(|error| {
        Diagnostic::new(
            Kind::Internal,
            "journal_unreadable",
            crate::model::diagnostic::chain(&error),
        )
        .hint("the thread's log still tells what happened")
    })?;
    let stored = store.summary(run).map_err(|error| unreadable(&error))?;
    entries.extend(missing_end(&mut folded, &entries, stored.as_ref()));
    let summary = stored.unwrap_or_else(|| project::summary(&spec, &folded, &entries));
    Ok(Some(Shown {
        spec: Arc::new(spec),
        run: Arc::new(folded),
        entries: Arc::new(entries.into_iter().map(Arc::new).collect()),
        summary,
        settled: true,
        lost: false,
    }))
}

/// Lists runs, newest first.
pub(super) fn runs(
    view: &View,
    store: &dyn Store,
    query: &RunsQuery,
) -> Result<Vec<RunSummary>, Diagnostic> {
    refuse_unknown_outcome(query)?;
    let limit = match query.limit {
        0 => LIMIT_DEFAULT,
        some => (some as usize).min(LIMIT_MAX),
    };
    let live = view.runs();
    let mut found: Vec<RunSummary> = live
        .iter()
        .rev()
        .map(|shown| &shown.summary)
        .filter(|summary| wanted(summary, query))
        .cloned()
        .collect();
    let oldest = query.since_ms.unwrap_or(i64::MIN);
    let mut from_store = 0;
    store
        .summaries(None, &mut |summary| {
            if summary.submitted_at.millis() < oldest {
                return ControlFlow::Break(());
            }
            let known = live.iter().any(|shown| shown.spec.run == summary.run);
            if !known && wanted(&summary, query) {
                found.push(summary);
                from_store += 1;
            }
            if from_store >= limit {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .map_err(|error| unreadable(&error))?;
    found.sort_by_key(|summary| std::cmp::Reverse(summary.run));
    found.truncate(limit);
    Ok(found)
}

fn refuse_unknown_outcome(query: &RunsQuery) -> Result<(), Diagnostic> {
    const OUTCOMES: [&str; 9] = [
        "succeeded",
        "failed",
        "cancelled",
        "timed_out",
        "denied",
        "unknown",
        "active",
        "unverified",
        "reconciled",
    ];
    let Some(outcome) = &query.outcome else {
        return Ok(());
    };
    let phase = crate::model::Phase::ALL
        .iter()
        .any(|phase| phase.name() == outcome);
    if phase || OUTCOMES.contains(&outcome.as_str()) {
        return Ok(());
    }
    Err(Diagnostic::new(
        Kind::Usage,
        "outcome",
        format!("`{outcome}` is no outcome and no phase"),
    )
    .hint(format!("one of: {}", OUTCOMES.join(", "))))
}

fn wanted(summary: &RunSummary, query: &RunsQuery) -> bool {
    let at = summary.submitted_at.millis();
    let outcome = summary.outcome.as_ref();
    let fits_outcome = query.outcome.as_deref().is_none_or(|wanted| match wanted {
        "active" => outcome.is_none(),
        "unverified" => summary.unverified,
        "reconciled" => summary.reconciled,
        name => outcome.is_some_and(|o| o.name() == name) || summary.phase.name() == name,
    });
    fits_outcome
        && query
            .worker
            .as_ref()
            .is_none_or(|worker| *worker == summary.skill.worker)
        && query.skill.as_ref().is_none_or(|skill| {
            *skill == summary.skill.skill || *skill == summary.skill.to_string()
        })
        && query.since_ms.is_none_or(|since| at >= since)
        && query.until_ms.is_none_or(|until| at < until)
}

/// One run in full.
pub(super) fn detail(shown: &Shown) -> RunDetail {
    let entries: Vec<Entry> = shown
        .entries
        .iter()
        .map(|entry| entry.as_ref().clone())
        .collect();
    let threads = Path::new(&shown.spec.workspace).join(&shown.spec.threads_dir);
    let file = |ending: &str| {
        threads
            .join(format!("{}.{ending}", shown.spec.thread))
            .display()
            .to_string()
    };
    let paths = project::ThreadPaths {
        document: file("json"),
        log: file("jsonl"),
    };
    let mut detail = project::detail(&shown.spec, &entries, &paths);
    detail
        .summary
        .waiting_for
        .clone_from(&shown.summary.waiting_for);
    detail
}

/// Reads lines of a run's log.
pub(super) fn lines(spec: &RunSpec, query: &LogsQuery) -> Result<Vec<LogLine>, Diagnostic> {
    let limit = match query.limit {
        0 => LINES_MAX,
        some => (some as usize).min(LINES_MAX),
    };
    read_lines(spec, query.from, limit)
}

fn read_lines(spec: &RunSpec, from: u64, limit: usize) -> Result<Vec<LogLine>, Diagnostic> {
    let unreadable = |error: crate::store::thread_files::FileError| {
        Diagnostic::new(
            Kind::Internal,
            "thread_unreadable",
            crate::model::diagnostic::chain(&error),
        )
    };
    let directory = Directory::open(Path::new(&spec.workspace), &spec.threads_dir);
    let reader = directory.and_then(|directory| LogReader::open(&directory, &spec.thread));
    let Some(mut reader) = reader.map_err(unreadable)? else {
        return Ok(Vec::new());
    };
    reader.skip_to(from).map_err(unreadable)?;
    let mut lines = Vec::new();
    while lines.len() < limit {
        let page = reader.page(limit - lines.len()).map_err(unreadable)?;
        lines.extend(page.lines);
        if !page.more {
            break;
        }
    }
    Ok(lines)
}

/// Tells what happens to a run: its log from the first line, then what follows, until it has ended, or the
/// engine has. An engine that did not end in order is an error.
pub(super) fn watch(
    view: &View,
    shown: &Shown,
    watching: &Watching,
    callback: &mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
) -> Result<(), Diagnostic> {
    let spec = &shown.spec;
    let mut told = Told {
        spec,
        next: 0,
        callback,
    };
    if told.changed(&shown.summary).is_break() || told.catch_up()?.is_break() {
        return Ok(());
    }
    let mut settled = shown.settled;
    while !settled {
        match watching.events.recv_timeout(WATCH_LOOK) {
            Ok(WatchEvent::Changed(summary)) => {
                settled = summary.outcome.is_some() && is_settled(view, spec.run);
                if settled && told.catch_up()?.is_break() {
                    return Ok(());
                }
                if told.changed(&summary).is_break() {
                    return Ok(());
                }
            }
            Ok(event @ WatchEvent::Lagged { .. }) => {
                if (told.callback)(event).is_break() || told.catch_up()?.is_break() {
                    return Ok(());
                }
            }
            Ok(WatchEvent::Line(line)) => {
                if told.line(line)?.is_break() {
                    return Ok(());
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                if (told.callback)(WatchEvent::Lagged { lost: 0 }).is_break() {
                    return Ok(());
                }
                settled = is_settled(view, spec.run) || view.ended().is_some();
            }
            Err(RecvTimeoutError::Disconnected) => settled = true,
        }
    }
    if let Some(shown) = view.run(spec.run)
        && (told.catch_up()?.is_break() || told.changed(&shown.summary).is_break())
    {
        return Ok(());
    }
    match view.ended() {
        Some(Err(broken)) if !is_settled(view, spec.run) => Err(broken.clone()),
        _ => Ok(()),
    }
}

fn is_settled(view: &View, run: RunId) -> bool {
    view.run(run).is_none_or(|shown| shown.settled)
}

struct Told<'a> {
    spec: &'a RunSpec,
    next: u64,
    callback: &'a mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
}

impl Told<'_> {
    fn changed(&mut self, summary: &RunSummary) -> ControlFlow<()> {
        (self.callback)(WatchEvent::Changed(Box::new(summary.clone())))
    }

    /// Delivers a live line, reading from the file whatever lies between.
    fn line(&mut self, line: LogLine) -> Result<ControlFlow<()>, Diagnostic> {
        if line.line > self.next && self.catch_up()?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if line.line < self.next {
            return Ok(ControlFlow::Continue(()));
        }
        self.next = line.line + 1;
        Ok((self.callback)(WatchEvent::Line(line)))
    }

    fn catch_up(&mut self) -> Result<ControlFlow<()>, Diagnostic> {
        loop {
            let lines = read_lines(self.spec, self.next, LINES_MAX)?;
            let full = lines.len() == LINES_MAX;
            for line in lines {
                self.next = line.line + 1;
                if (self.callback)(WatchEvent::Line(line)).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if !full {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }
}
