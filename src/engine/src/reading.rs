//! Reads: runs from the published view and the store, lines from thread logs. The core loop has no part in it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::given_up::missing_end;
use super::view::{RunSnapshot, View, Watching};
use crate::machine::{Entry, Run};
use crate::model::{Diagnostic, Kind, RunId, RunSpec};
use crate::protocol::{LogLine, LogsQuery, RunDetail, RunSummary, THREAD_UNREADABLE, WatchEvent};
use crate::store::Store;
use crate::store::thread_files::{Directory, FileError, LogReader};
use crate::thread::project;

/// How many lines of a log are read where the query says nothing, and at most.
const LINES_MAX: usize = 10_000;

/// How often a watcher of a silent run looks whether its run has left the view without a word, and is asked
/// whether anybody still listens to it.
const WATCH_LOOK: Duration = Duration::from_secs(1);

/// A run that the view no longer holds.
pub(super) fn stored(store: &dyn Store, run: RunId) -> Result<Option<RunSnapshot>, Diagnostic> {
    let Some(spec) = store.spec(run)? else {
        return Ok(None);
    };
    let mut entries = store.journal(run)?;
    let mut folded = Run::fold(&entries).map_err(|error| {
        Diagnostic::new(
            Kind::Internal,
            "journal_unreadable",
            crate::model::diagnostic::chain(&error),
        )
        .hint("the thread's log still tells what happened")
    })?;
    let stored = store.summary(run)?;
    entries.extend(missing_end(&mut folded, &entries, stored.as_ref()));
    let summary = stored.unwrap_or_else(|| project::summary(&spec, &folded, &entries));
    Ok(Some(RunSnapshot {
        spec: Arc::new(spec),
        run: Arc::new(folded),
        entries: Arc::new(entries.into_iter().map(Arc::new).collect()),
        summary,
        settled: true,
        lost: false,
    }))
}

/// One run in full.
pub(super) fn detail(shown: &RunSnapshot) -> RunDetail {
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
    let Some(mut reader) = reader_of(spec)? else {
        return Ok(Vec::new());
    };
    reader.skip_to(from).map_err(|e| unreadable_thread(&e))?;
    let mut lines = Vec::new();
    while lines.len() < limit {
        let page = reader
            .page(limit - lines.len())
            .map_err(|e| unreadable_thread(&e))?;
        lines.extend(page.lines);
        if !page.more {
            break;
        }
    }
    Ok(lines)
}

/// The log of a run's thread; `None` where there is none yet.
fn reader_of(spec: &RunSpec) -> Result<Option<LogReader>, Diagnostic> {
    Directory::open(Path::new(&spec.workspace), &spec.threads_dir)
        .and_then(|directory| LogReader::open(&directory, &spec.thread))
        .map_err(|error| unreadable_thread(&error))
}

fn unreadable_thread(error: &FileError) -> Diagnostic {
    let message = crate::model::diagnostic::chain(error);
    Diagnostic::new(Kind::Internal, THREAD_UNREADABLE, message)
        .hint("`workerctl show` still tells how the run ended")
}

/// Tells what happens to a run: its log from the first line, then what follows, until it has ended, or the
/// engine has. An engine that did not end in order is an error, and so, but at the end only, is a log that
/// cannot be read.
pub(super) fn watch(
    view: &View,
    shown: &RunSnapshot,
    watching: &Watching,
    mut told: Delivered<'_>,
) -> Result<(), Diagnostic> {
    let spec = &shown.spec;
    if told.changed(&shown.summary).is_break() || told.catch_up().is_break() {
        return Ok(());
    }
    let mut settled = shown.settled;
    while !settled {
        match watching.events.recv_timeout(WATCH_LOOK) {
            Ok(WatchEvent::Changed(summary)) => {
                settled = summary.outcome.is_some() && is_settled(view, spec.run);
                if settled && told.catch_up().is_break() {
                    return Ok(());
                }
                if told.changed(&summary).is_break() {
                    return Ok(());
                }
            }
            Ok(event @ WatchEvent::Lagged { .. }) => {
                if (told.callback)(event).is_break() || told.catch_up().is_break() {
                    return Ok(());
                }
            }
            Ok(WatchEvent::Line(line)) => {
                if told.line(line).is_break() {
                    return Ok(());
                }
            }
            Ok(partial @ WatchEvent::Partial(_)) => {
                if told.lines && (told.callback)(partial).is_break() {
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
        && (told.catch_up().is_break() || told.changed(&shown.summary).is_break())
    {
        return Ok(());
    }
    match view.ended() {
        Some(Err(broken)) if !is_settled(view, spec.run) => Err(broken.clone()),
        _ => told.unreadable.map_or(Ok(()), Err),
    }
}

fn is_settled(view: &View, run: RunId) -> bool {
    view.run(run).is_none_or(|shown| shown.settled)
}

/// What one watcher is told.
pub(super) struct Delivered<'a> {
    spec: &'a RunSpec,
    /// Whether it is told lines.
    lines: bool,
    next: u64,
    /// Kept, so that what was read is not read again.
    reader: Option<LogReader>,
    /// Why no more lines are told.
    unreadable: Option<Diagnostic>,
    callback: &'a mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
}

impl<'a> Delivered<'a> {
    /// A watcher that has been told nothing yet.
    pub(super) fn new(
        spec: &'a RunSpec,
        lines: bool,
        callback: &'a mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Delivered<'a> {
        Delivered {
            spec,
            lines,
            next: 0,
            reader: None,
            unreadable: None,
            callback,
        }
    }

    fn changed(&mut self, summary: &RunSummary) -> ControlFlow<()> {
        (self.callback)(WatchEvent::Changed(Box::new(summary.clone())))
    }

    /// Delivers a live line, reading from the file whatever lies between.
    fn line(&mut self, line: LogLine) -> ControlFlow<()> {
        if line.line > self.next && self.catch_up().is_break() {
            return ControlFlow::Break(());
        }
        if line.line < self.next || !self.lines {
            return ControlFlow::Continue(());
        }
        self.next = line.line + 1;
        (self.callback)(WatchEvent::Line(line))
    }

    /// Delivers what stands in the log; one that cannot be read is noted, and the run is watched on.
    fn catch_up(&mut self) -> ControlFlow<()> {
        if !self.lines || self.unreadable.is_some() {
            return ControlFlow::Continue(());
        }
        loop {
            let (lines, more) = match self.read() {
                Ok(page) => page,
                Err(unreadable) => {
                    self.unreadable = Some(unreadable);
                    return ControlFlow::Continue(());
                }
            };
            for line in lines {
                self.next = line.line + 1;
                (self.callback)(WatchEvent::Line(line))?;
            }
            if !more {
                return ControlFlow::Continue(());
            }
        }
    }

    /// The next lines of the log, and whether there are more.
    fn read(&mut self) -> Result<(Vec<LogLine>, bool), Diagnostic> {
        if self.reader.is_none() {
            self.reader = reader_of(self.spec)?;
        }
        let Some(reader) = &mut self.reader else {
            return Ok((Vec::new(), false));
        };
        let page = reader
            .skip_to(self.next)
            .and_then(|()| reader.page(LINES_MAX))
            .map_err(|error| unreadable_thread(&error))?;
        Ok((page.lines, page.more))
    }
}
