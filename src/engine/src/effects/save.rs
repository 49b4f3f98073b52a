//! Saving and closing: the thread's summary, metrics, and an end to everything that was temporary.

use super::super::core::RECOVERY_FAILED;
use super::super::secrets;
use super::super::work::Work;
use super::place::{stdout_path, temporary_beside};
use super::{Performer, failure};
use crate::machine::{Entry, Event};
use crate::model::outcome::{Failure, Outcome, Step};
use crate::model::spec::Gate;
use crate::store::thread_files::{FileError, write_document};
use crate::thread::document::{GitFacts, document, document_text};
use crate::thread::line::LogEnd;

impl Performer {
    /// The log is whole on return. Its summary is written now only where something follows that may
    /// look at it, or may fail; else `close` writes it, once and with the run's end.
    pub(super) fn save(&self, work: &Work, last: bool) -> Event {
        // One that was cancelled, or lost its engine too often, ends without anybody having looked at its output.
        if let Some(path) = stdout_path(&work.spec).filter(|_| !self.is_parked(work))
            && let Ok(sandboxed_dir) = self.sandboxed_dir(work)
        {
            let _ = sandboxed_dir.discard(&temporary_beside(path, work.spec.run));
        }
        let log = self.logs.of(work);
        if !log.is_open() {
            self.logs.close(work.spec.run);
            let message = "the thread's log cannot be written";
            return Event::SaveFailed {
                failure: Failure::new(Step::Save, "thread", message),
            };
        }
        let saved = log.written().and_then(|()| {
            if last {
                Ok(())
            } else {
                self.write_thread(work, None)
            }
        });
        match saved {
            // Only once the run cannot fail any more: until then outputs stay as they were.
            Ok(()) => match self.publish_staged(work) {
                Ok(()) => Event::Saved,
                Err(failure) => Event::SaveFailed { failure },
            },
            Err(error) => {
                let FileError::Full { shortage, .. } = &error else {
                    let failure = failure(Step::Save, "thread", &error);
                    return Event::SaveFailed { failure };
                };
                let mut failure = failure(Step::Save, shortage.code(), &error);
                failure.message = format!("{}; {}", failure.message, shortage.remedy());
                Event::SaveFailed { failure }
            }
        }
    }

    /// `end`: where the log ends, when nothing more will be written to it.
    pub(super) fn write_thread(&self, work: &Work, end: Option<&LogEnd>) -> Result<(), FileError> {
        let log = self.logs.of(work);
        let entries = entries(work);
        let document = document(&work.spec, &entries, &git_facts(work), end, log.masker());
        let directory = self.logs.directory(&work.spec.threads_dir)?;
        write_document(&directory, &work.spec.thread, &document_text(&document))
    }

    pub(super) fn close(&self, work: &Work) -> Event {
        let run = work.spec.run;
        self.end_thread(work);
        self.walls.forget(run);
        self.give_back_tree(run);
        if matches!(work.run.outcome(), Some(Outcome::Unknown { why }) if why == RECOVERY_FAILED)
            && work.spec.plan.mutating
        {
            self.retire_trees(work);
        }
        secrets::forget(&self.parts.state_dir, run);
        self.scratch.give_back(run);
        if work.spec.stages_outputs() {
            self.forget_staged(run);
        }
        if work.run.plan.asks_before(Gate::Landing) {
            self.forget_held(run);
        }
        Event::Closed
    }
}

pub(super) fn entries(work: &Work) -> Vec<Entry> {
    let entries = work.entries.iter();
    entries.map(|entry| entry.as_ref().clone()).collect()
}

fn git_facts(work: &Work) -> GitFacts {
    let (Some(spec), Some(base)) = (
        &work.spec.tree,
        work.baseline().and_then(|baseline| baseline.tree),
    ) else {
        return GitFacts::default();
    };
    let name = &spec.target;
    let initial_commit = base.from.map(|oid| oid.as_str().to_owned());
    let commit = work.run.facts.commit.clone();
    let made = work.kept_result().filter(|_| commit.is_some());
    let made = made
        .map(|kept| kept.change.commits_made)
        .unwrap_or_default();
    let mut commits_made: Vec<String> = made.iter().map(|oid| oid.as_str().to_owned()).collect();
    commits_made.extend(commit);
    commits_made.dedup();
    GitFacts {
        branch: Some(name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()),
        remote_url: None,
        current_commit: commits_made
            .last()
            .cloned()
            .or_else(|| initial_commit.clone()),
        initial_commit,
        commits_made,
        dirty: None,
    }
}
