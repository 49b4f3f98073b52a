//! Recovery: every run that was not closed is folded; what is left of its processes is ended.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::core::{Core, Orphans};
use super::effects::notes::Noted;
use super::live::Live;
use super::relocation::relocated;
use crate::machine::{Run, State};
use crate::model::evidence::CommitsMade;
use crate::model::outcome::{Outcome, Phase};
use crate::model::{Diagnostic, Kind, RunId, RunSpec, SkillRef, ThreadId, Timestamp};
use crate::process::{LiveRecord, Owner, find_and_end_orphans, is_within};
use crate::protocol::RunSummary;
use crate::store::{Batch, Store, Write};

/// Why the outcome of a run is unknown that was under way in the workspace from which the state was copied or
/// moved.
const ANOTHER_WORKSPACE: &str = "another_workspace";

/// Why the outcome of a mutating run is unknown that an older version left under way.
const OLDER_VERSION: &str = "older_version";

/// What recovery needs.
pub(super) struct Recovery<'a> {
    /// Where journals lie.
    pub store: &'a dyn Store,
    /// Absolute path of the workspace.
    pub workspace: &'a Path,
    /// Absolute path of the state directory.
    pub state_dir: &'a Path,
    /// The present.
    pub now: Timestamp,
}

impl Recovery<'_> {
    /// Hands every run that was not closed to the loop; a run that cannot be read is ended as unknown.
    pub(super) fn recover(&self, core: &mut Core) -> Result<usize, Diagnostic> {
        let active = self.store.active()?;
        let mut recovered = 0;
        for run in active {
            match self.fold(run) {
                Ok(live) if !self.is_ours(&live) => self.leave(&live, ANOTHER_WORKSPACE)?,
                Ok(live) if is_of_older_version(&live) => self.leave(&live, OLDER_VERSION)?,
                Ok(live) => {
                    if live.spec.plan.mutating {
                        super::clear_git_locks(Path::new(&live.spec.cwd));
                    }
                    core.recover(live);
                    recovered += 1;
                }
                Err(why) => {
                    tracing::error!(%run, why, "a run cannot be read and ends as unknown; its journal is kept");
                    self.give_up(run)?;
                }
            }
        }
        self.sweep_scratch(core);
        super::secrets::sweep(self.state_dir, |run| core.holds(run));
        Ok(recovered)
    }

    fn fold(&self, run: RunId) -> Result<Live, String> {
        let said = |error: &dyn std::error::Error| crate::model::diagnostic::chain(error);
        let spec = self.store.spec(run).map_err(|error| said(&error))?;
        let spec = spec.ok_or_else(|| "its specification is missing".to_owned())?;
        let entries = self.store.journal(run).map_err(|error| said(&error))?;
        let folded = Run::fold(&entries).map_err(|error| said(&error))?;
        // What is left to do for a run that has ended is to be done where the workspace is now.
        let spec = if folded.is_finished() {
            relocated(spec, self.workspace)
        } else {
            spec
        };
        Ok(Live::new(Arc::new(spec), folded, entries))
    }

    /// Whether a run is of this workspace. The state may have been copied or moved with a workspace whose runs were
    /// under way: whatever were done for them would be done at the place that they were submitted for.
    fn is_ours(&self, live: &Live) -> bool {
        is_same_directory(Path::new(&live.spec.workspace), self.workspace)
    }

    /// Closes a run that nothing can be done for here, without touching anything.
    fn leave(&self, live: &Live, why: &str) -> Result<(), Diagnostic> {
        let run = live.spec.run;
        let mut summary = live.summary();
        if !live.run.is_finished() {
            let workspace = &live.spec.workspace;
            tracing::error!(%run, workspace, why, "the run was active and cannot be recovered here");
            summary.phase = Phase::Finished;
            summary.finished_at = Some(self.now);
            summary.outcome = Some(Outcome::Unknown {
                why: why.to_owned(),
            });
        }
        self.close(summary)
    }

    fn give_up(&self, run: RunId) -> Result<(), Diagnostic> {
        let spec = self.store.spec(run).ok().flatten();
        self.close(unreadable_summary(run, spec.as_ref(), self.now))
    }

    fn close(&self, summary: RunSummary) -> Result<(), Diagnostic> {
        let run = summary.run;
        let writes = vec![Write::Finished(Box::new(summary)), Write::Closed(run)];
        self.store.commit(&Batch { writes }).map_err(|error| {
            Diagnostic::new(
                Kind::Internal,
                "store_broken",
                crate::model::diagnostic::chain(&error),
            )
        })
    }

    /// Scratch directories of runs that have ended belong to nobody.
    fn sweep_scratch(&self, core: &Core) {
        let Ok(entries) = std::fs::read_dir(self.state_dir.join("scratch")) else {
            return;
        };
        for entry in entries.flatten() {
            let run = entry.file_name().to_string_lossy().parse::<RunId>();
            if run.is_ok_and(|run| !core.holds(run)) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// What earlier engines left running, by the notes of its processes.
pub(super) struct LeftBehind {
    notes: BTreeMap<RunId, Vec<Noted>>,
    grace: Duration,
}

impl LeftBehind {
    pub(super) const fn new(notes: BTreeMap<RunId, Vec<Noted>>, grace: Duration) -> LeftBehind {
        LeftBehind { notes, grace }
    }

    /// Whether nothing was left.
    pub(super) fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    fn of(&self, run: RunId) -> &[Noted] {
        self.notes.get(&run).map_or(&[], Vec::as_slice)
    }
}

impl Orphans for LeftBehind {
    fn hold_us(&self, live: &Live) -> bool {
        let run = live.spec.run;
        !live.run.is_finished() && is_within(&records(self.of(run)), &run.to_string())
    }

    fn end_of(&self, live: &Live) -> bool {
        let run = live.spec.run;
        let waits = matches!(
            live.run.state,
            State::Queued
                | State::AwaitingApproval { .. }
                | State::BackingOff { .. }
                | State::Finished { .. }
        );
        let notes = self.of(run);
        if waits && notes.is_empty() {
            return true;
        }
        // Where the same path leads to another directory, as in a container, the state may have been copied.
        let is_copy = |noted: &Noted| !noted.is_original && noted.record.engine_lives();
        if notes.iter().any(is_copy) {
            leave_alone(notes, run);
            return true;
        }
        end_processes(notes, run, live.run.facts.attempts.max(1), self.grace)
    }

    fn end_of_others(&self, held: &dyn Fn(RunId) -> bool) {
        for (run, notes) in self.notes.iter().filter(|(run, _)| !held(**run)) {
            if notes.iter().all(|noted| noted.is_original) {
                end_processes(notes, *run, 1, self.grace);
            } else {
                leave_alone(notes, *run);
            }
        }
    }
}

fn records(notes: &[Noted]) -> Vec<&LiveRecord> {
    notes.iter().map(|noted| &noted.record).collect()
}

/// The notes were copied with the state, and the processes that they name are of the original.
fn leave_alone(notes: &[Noted], run: RunId) {
    tracing::warn!(%run, "this state directory is a copy: processes of the run belong to the original and are not ended");
    remove(notes);
}

fn remove(notes: &[Noted]) {
    for noted in notes {
        let _ = std::fs::remove_file(&noted.path);
    }
}

/// Ends what is left of a run; false: something could not be ended.
fn end_processes(notes: &[Noted], run: RunId, attempt: u32, grace: Duration) -> bool {
    let owner = Owner {
        run: run.to_string(),
        attempt,
    };
    match find_and_end_orphans(&records(notes), &owner, grace) {
        Ok(found) => {
            if found.ended > 0 {
                tracing::warn!(%run, ended = found.ended, "processes of a lost run were ended");
            }
            remove(notes);
            true
        }
        Err(error) => {
            tracing::error!(%run, %error, "the run is left as it is until its processes are gone");
            false
        }
    }
}

/// Whether two paths lead to one directory.
fn is_same_directory(one: &Path, other: &Path) -> bool {
    let place = |path| std::fs::metadata(path).map(|found| (found.dev(), found.ino()));
    one == other || matches!((place(one), place(other)), (Ok(one), Ok(other)) if one == other)
}

/// Whether a mutating run was under way that an older version accepted: it worked in the checkout, and what it
/// had recorded of that means nothing here. Its references stay.
fn is_of_older_version(live: &Live) -> bool {
    let tree = live.spec.tree.as_ref();
    let in_checkout = tree.is_none_or(|tree| tree.in_place.is_some());
    live.spec.plan.mutating && in_checkout && !live.run.is_finished()
}

fn unreadable_summary(run: RunId, spec: Option<&RunSpec>, now: Timestamp) -> RunSummary {
    let nobody = || SkillRef {
        worker: "unknown".to_owned(),
        skill: "unknown".to_owned(),
    };
    let skill = spec.map_or_else(nobody, |spec| spec.skill.clone());
    let submitted_at = spec.map_or_else(|| run.timestamp(), |spec| spec.submitted_at);
    RunSummary {
        run,
        phase: Phase::Finished,
        outcome: Some(Outcome::Unknown {
            why: "journal".to_owned(),
        }),
        unverified: true,
        nothing_to_do: false,
        reconciled: false,
        mutating: spec.is_some_and(|spec| spec.plan.mutating),
        attempts: 0,
        submitted_at,
        started_at: None,
        finished_at: Some(now),
        duration_ms: None,
        working_since: None,
        retry_at: None,
        commit: None,
        commits_made: CommitsMade::default(),
        kept_commit: None,
        push_error: None,
        spent: None,
        parent: None,
        by_command: false,
        thread: ThreadId::of(run, &skill, submitted_at),
        waiting_for: None,
        retry_of: None,
        schedule: spec.and_then(|spec| Some(spec.scheduled.as_ref()?.schedule.clone())),
        slot: spec.and_then(|spec| Some(spec.scheduled.as_ref()?.slot)),
        title: spec.map_or_else(String::new, |spec| spec.title.clone()),
        by: spec.map_or_else(String::new, |spec| spec.submitted_by.clone()),
        decided: false,
        day: None,
        skill,
    }
}
