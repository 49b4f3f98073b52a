//! Threads whose summary could not be written when their run ended: written later.
//!
//! A run whose files find no space is not closed in the store, so that the next engine knows of it as well.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::reading;
use super::super::work::Work;
use super::{Performer, lock};
use crate::machine::Action;
use crate::model::{Diagnostic, RunId};
use crate::store::thread_files::{FileError, lacks_summary};
use crate::thread::metrics::metrics_line;

/// Ended runs that wait for space, at most: fewer than those that make the loop sync at once. The summaries of others
/// are written by a sweep.
const WAITING_MAX: usize = 256;

/// Threads that one sweep completes.
const COMPLETED_MAX: usize = 1_024;

impl Performer {
    /// Writes the end of a thread: what its log lacks, its summary, and the metrics of the run. `records_end`: whether
    /// the summary says where the log ends.
    fn write_end(&self, work: &Work, records_end: bool) -> Result<(), FileError> {
        if !self.logs.of(work).is_open() {
            // There was no space for it, perhaps.
            self.logs.close(work.spec.run);
        }
        let log = self.logs.of(work);
        log.events(&work.entries, work.run.facts.attempts);
        if let Err(full @ FileError::Full { .. }) = log.written() {
            return Err(full);
        }
        let end = if records_end { log.end() } else { None };
        self.write_thread(work, end.as_ref())?;
        let measured = self
            .logs
            .measured(&metrics_line(&work.spec, &super::save::entries(work)));
        match measured {
            Err(full @ FileError::Full { .. }) => Err(full),
            Err(error) => {
                tracing::warn!(run = %work.spec.run, %error, "the metrics of the run could not be written");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Writes the end of a thread, or keeps the run for when there is space.
    pub(super) fn end_thread(&self, work: &Work) {
        let run = work.spec.run;
        match self.write_end(work, true) {
            Ok(()) => {}
            Err(error @ FileError::Full { .. }) => {
                let mut waiting = lock(&self.unwritten);
                if waiting.len() < WAITING_MAX {
                    waiting.insert(run, work.clone());
                    tracing::warn!(%run, %error, "the thread's summary waits for space");
                    return;
                }
                tracing::warn!(%run, %error, "the thread's summary could not be written");
            }
            Err(error) => {
                tracing::warn!(%run, %error, "the thread's summary could not be written");
            }
        }
        self.logs.close(run);
    }

    /// Tries again what found no space; returns the runs that still wait.
    pub(super) fn write_waiting(&self) -> BTreeSet<RunId> {
        let waiting: Vec<Work> = lock(&self.unwritten).values().cloned().collect();
        for work in waiting {
            let run = work.spec.run;
            match self.write_end(&work, true) {
                // The others find no space either.
                Err(FileError::Full { .. }) => break,
                Ok(()) => tracing::info!(%run, "the thread's summary is written"),
                Err(error) => {
                    tracing::warn!(%run, %error, "the thread's summary could not be written");
                }
            }
            lock(&self.unwritten).remove(&run);
            self.logs.close(run);
        }
        lock(&self.unwritten).keys().copied().collect()
    }

    /// Writes the summaries that threads of closed runs lack, from their journals.
    pub(super) fn complete_threads(&self) {
        if let Err(error) = self.completed() {
            tracing::warn!(%error, "threads without a summary are left as they are");
        }
    }

    fn completed(&self) -> Result<(), Diagnostic> {
        let store = self.parts.store.as_ref();
        let open: BTreeSet<RunId> = store.active()?.into_iter().collect();
        let threads_dir = self.parts.definitions.current().config.threads_dir.clone();
        let Ok(directory) = self.logs.directory(&threads_dir) else {
            return Ok(());
        };
        let mut lacking = Vec::new();
        store.summaries(None, &mut |run| {
            if !open.contains(&run.run) && lacks_summary(&directory, &run.thread) {
                lacking.push(run.run);
            }
            if lacking.len() < COMPLETED_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        let mut count = 0_usize;
        for run in lacking {
            // What cannot be read has no summary.
            let Ok(Some(shown)) = reading::stored(store, run, &self.parts.workspace) else {
                continue;
            };
            let work = Work {
                spec: Arc::clone(&shown.spec),
                entries: Arc::clone(&shown.entries),
                run: Arc::clone(&shown.run),
                action: Action::Close,
                stop: crate::process::StopHandle::new(),
            };
            // Nobody knows any more whether the log was whole when the run ended.
            let written = self.write_end(&work, false);
            self.logs.close(run);
            match written {
                Ok(()) => count += 1,
                Err(error) => {
                    tracing::warn!(%run, %error, "the thread's summary could not be written");
                }
            }
        }
        if count > 0 {
            tracing::info!(count, "summaries that threads lacked are written");
        }
        Ok(())
    }
}
