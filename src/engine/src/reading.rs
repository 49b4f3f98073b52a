//! Reads: runs from the published view and the store, lines from thread logs. The core loop has no part in it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use serde_json::Value;

use super::given_up::missing_end;
use super::relocation::relocated;
use super::view::{RunSnapshot, View, Watching};
use crate::machine::{Entry, Run};
use crate::model::{Diagnostic, Kind, RunId, RunSpec};
use crate::protocol::{
    LogLine, LogsPage, LogsQuery, RunDetail, RunSummary, TAIL_LINES_MAX, THREAD_UNREADABLE,
    WatchEvent,
};
use crate::store::Store;
use crate::store::thread_files::{Directory, FileError, LogReader, read_summary};
use crate::thread::filter::LogFilter;
use crate::thread::project;

/// How many lines a watcher is told at once.
const LINES_MAX: usize = 10_000;

/// How many lines are read before it is looked how long their texts are.
const LINES_AT_ONCE: usize = 1_000;

/// Texts of one answer in bytes, beyond which no further lines are read.
const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How much of a log is looked through for one answer, in bytes.
const LOOKED_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// How often a watcher of a silent run looks whether its run has left the view without a word, and is asked
/// whether anybody still listens to it.
const WATCH_LOOK: Duration = Duration::from_secs(1);

/// A run that the view no longer holds, with its paths in the workspace as that is now.
pub(super) fn stored(
    store: &dyn Store,
    run: RunId,
    workspace: &Path,
) -> Result<Option<RunSnapshot>, Diagnostic> {
    let Some(spec) = store.spec(run)? else {
        return Ok(None);
    };
    let spec = relocated(spec, workspace);
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

/// Reads lines of a run's log: a bounded part of it, and says where that ended.
pub(super) fn page(spec: &RunSpec, query: &LogsQuery) -> Result<LogsPage, Diagnostic> {
    let filter = LogFilter::of(query)?;
    let wants = |line: &LogLine| filter.wants(line);
    let Some(mut reader) = reader_of(spec)? else {
        return Ok(LogsPage::default());
    };
    let unreadable = |error: FileError| unreadable_thread(&error);
    let found = match query.tail {
        Some(count) => reader.skip_to_last(count.min(TAIL_LINES_MAX) as usize, &wants),
        None => reader.skip_to(query.from),
    };
    found.map_err(unreadable)?;
    let (begin, most) = (reader.offset(), query.most());
    let (mut page, mut more, mut bytes) = (LogsPage::default(), true, 0);
    while more
        && page.lines.len() < most
        && bytes < TEXT_BYTES_MAX
        && reader.offset() - begin < LOOKED_BYTES_MAX
    {
        let wanted = (most - page.lines.len()).min(LINES_AT_ONCE);
        let read = reader.select(wanted, &wants).map_err(unreadable)?;
        more = read.more;
        bytes += read.lines.iter().map(|line| line.text.len()).sum::<usize>();
        page.lines.extend(read.lines);
    }
    let next = reader.line();
    if more {
        reader.skip_to_end().map_err(unreadable)?;
    }
    page.total = reader.line();
    page.next = (next < page.total).then_some(next);
    Ok(page)
}

/// The summary file of a run's thread.
pub(super) fn thread(spec: &RunSpec) -> Result<Value, Diagnostic> {
    let read = Directory::existing(Path::new(&spec.workspace), &spec.threads_dir)
        .and_then(|directory| match directory {
            Some(directory) => read_summary(&directory, spec.thread.as_str()),
            None => Ok(None),
        })
        .map_err(|error| unreadable_thread(&error))?;
    match read {
        Some(Ok(document)) => Ok(document),
        Some(Err(why)) => {
            let message = format!("the summary of thread {} is no JSON: {why}", spec.thread);
            Err(Diagnostic::new(Kind::Internal, THREAD_UNREADABLE, message))
        }
        None => {
            let message = format!("thread {} has no summary", spec.thread);
            let hint = "it is written when the run ends";
            Err(Diagnostic::new(Kind::NotFound, "no_thread_yet", message).hint(hint))
        }
    }
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
                // Lines that were dropped because the backlog was full are noticed by the next event. There may be none.
                let lagged = WatchEvent::Lagged { lost: 0 };
                if (told.callback)(lagged).is_break() || told.catch_up().is_break() {
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
    /// A watcher that has been told nothing yet, and wants lines from that one on, or none.
    pub(super) fn new(
        spec: &'a RunSpec,
        lines_from: Option<u64>,
        callback: &'a mut dyn FnMut(WatchEvent) -> ControlFlow<()>,
    ) -> Delivered<'a> {
        Delivered {
            spec,
            lines: lines_from.is_some(),
            next: lines_from.unwrap_or_default(),
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
        // A log of which the middle was left out meanwhile is another file.
        if self.reader.as_ref().is_none_or(LogReader::is_replaced) {
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
