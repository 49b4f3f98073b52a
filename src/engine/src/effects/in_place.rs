//! Runs that work in the checkout itself: let in, recorded, settled for the commit, put back.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use workerctl_trees::{InPlace, InPlaceBase, Start};

use super::super::baseline::{KeptResult, TreeBase};
use super::super::work::Work;
use super::place::{reflog_action, temporary_beside, tree_spec, works_in_place};
use super::record::{keep, no_base, output_paths};
use super::tree::{Held, HeldTree};
use super::tree_failure;
use super::{Performer, failure, git_failure, git_run, lock};
use crate::git::{self, GitError, RepoPath};
use crate::machine::Event;
use crate::model::RunSpec;
use crate::model::evidence::{Ended, RestoreReport};
use crate::model::outcome::{Failure, Step};
use crate::model::spec::TreeSpec;
use crate::protocol::RunSummary;
use crate::store::StoreError;

/// How often it is tried again while another run works in the checkout.
const RETRY: Duration = Duration::from_millis(100);

/// Most ended runs that are asked whether they worked at the same time, newest first.
const ENDED_RUNS_MAX: usize = 1_000;

/// Why a later attempt was not started.
const NOT_LET_IN: &str = "not_let_in";

impl Performer {
    /// Lets a run into the checkout, where its declared paths are clean and no other run works.
    pub(super) fn start_in_place(&self, work: &Work, spec: &TreeSpec) -> Result<TreeBase, Failure> {
        if let Some(held) = self.held_tree(work) {
            let (place, start) = self.look_at_checkout(work, spec)?;
            *lock(&held).checkout()? = place;
            return keep_base(work, start);
        }
        let lease = self.wait_for_checkout(work, spec, Step::Prepare)?;
        let (place, start) = self.look_at_checkout(work, spec)?;
        self.hold_tree(
            work,
            Held::Checkout {
                place,
                _lease: lease,
            },
        );
        keep_base(work, start)
    }

    fn look_at_checkout(&self, work: &Work, spec: &TreeSpec) -> Result<(InPlace, Start), Failure> {
        let refused = |error| tree_failure(Step::Prepare, work, &error);
        let objects = self.small_repository(work)?;
        self.with_own_paths(work, spec, |base| {
            InPlace::start(&objects, base).map_err(refused)
        })
    }

    /// The checkout again, after a crash.
    pub(super) fn return_to_checkout(
        &self,
        work: &Work,
        spec: &TreeSpec,
        start: &Start,
    ) -> Result<HeldTree, Failure> {
        let lease = self.wait_for_checkout(work, spec, Step::Record)?;
        let objects = self.small_repository(work)?;
        let place = self.with_own_paths(work, spec, |base| {
            InPlace::again(&objects, base, start)
                .map_err(|error| tree_failure(Step::Record, work, &error))
        })?;
        Ok(self.hold_tree(
            work,
            Held::Checkout {
                place,
                _lease: lease,
            },
        ))
    }

    /// One run at a time works in a checkout: other engines' are waited for as long as a landing waits.
    fn wait_for_checkout(
        &self,
        work: &Work,
        spec: &TreeSpec,
        step: Step,
    ) -> Result<git::RepositoryLease, Failure> {
        let facts = git::locate(Path::new(&spec.workdir))
            .map_err(|error| git_failure(step, work, &error))?;
        let owner = format!("{} run {}", self.parts.owner, work.spec.run);
        let since = self.parts.clock.now();
        let mut is_told = false;
        loop {
            let error = match git::RepositoryLease::of_checkout(&facts, &owner) {
                Ok(lease) => {
                    if is_told {
                        self.parts.view.explain(work.spec.run, None);
                    }
                    return Ok(lease);
                }
                Err(error @ GitError::Locked { .. }) => error,
                Err(error) => return Err(git_failure(step, work, &error)),
            };
            if !is_told {
                let why = format!("the checkout: {error}");
                self.parts.view.explain(work.spec.run, Some(why));
                is_told = true;
            }
            let is_over = self.parts.clock.now().millis_since(since) >= spec.land_wait_ms;
            if is_over || work.stop.requested().is_some() {
                let why = crate::model::diagnostic::chain(&error);
                let waited = crate::model::duration::show_millis(spec.land_wait_ms);
                let message = format!(
                    "another run works in the checkout, and it waited {waited} for it: {why}"
                );
                return Err(Failure::new(step, "busy", message));
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Where the run's blobs and trees are written before they are imported.
    fn small_repository(&self, work: &Work) -> Result<PathBuf, Failure> {
        let scratch = self.scratch.of(work.spec.run);
        let scratch = scratch.map_err(|why| Failure::new(Step::Prepare, "scratch", why))?;
        Ok(scratch.join("workerctl-result"))
    }

    fn with_own_paths<T>(
        &self,
        work: &Work,
        spec: &TreeSpec,
        act: impl FnOnce(&InPlaceBase<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let writes = spec.in_place.as_ref().map(|in_place| &in_place.writes);
        act(&InPlaceBase {
            repository: Path::new(&spec.workdir),
            target: &spec.target,
            outputs: &output_paths(work)?,
            writes: writes.map_or(&[], Vec::as_slice),
            root: inside(spec, Path::new(&work.spec.workspace)).as_ref(),
            except: &self.left_out(work, spec)?,
        })
    }

    /// What `writes` never covers: where the engine writes, and outputs of runs that are not mutating and worked
    /// at the same time.
    fn left_out(&self, work: &Work, spec: &TreeSpec) -> Result<Vec<RepoPath>, Failure> {
        let mut places = self.own_places(work);
        let mut admitted = work.entries.iter().rev();
        let admitted = admitted.find(|entry| matches!(entry.event, Event::Admitted { .. }));
        let since = admitted.map_or(work.spec.submitted_at, |entry| entry.at);
        let was_beside = |other: &RunSummary| {
            !other.mutating && other.finished_at.is_none_or(|finished| finished >= since)
        };
        let mut others: Vec<Arc<RunSpec>> = Vec::new();
        for shown in self.parts.view.runs() {
            if was_beside(&shown.summary) && !shown.run.is_queued() {
                others.push(Arc::clone(&shown.spec));
            }
        }
        let (mut ended, mut count) = (Vec::new(), 0);
        let unreadable = |error: StoreError| failure(Step::Record, "store", &error);
        let store = &self.parts.store;
        let listed = store.summaries(None, &mut |other| {
            ended.extend(was_beside(&other).then_some(other.run));
            count += 1;
            if count < ENDED_RUNS_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        listed.map_err(unreadable)?;
        for run in ended {
            others.extend(store.spec(run).map_err(unreadable)?.map(Arc::new));
        }
        for other in others {
            for path in other.outputs.iter().filter_map(|one| one.path.as_ref()) {
                let workspace = Path::new(&other.workspace);
                places.push(workspace.join(path));
                places.push(workspace.join(temporary_beside(path, other.run)));
            }
        }
        Ok(places
            .iter()
            .filter_map(|path| inside(spec, path))
            .collect())
    }

    /// Before each attempt: the checkout is the run's. What a person changed in the wait before a later one
    /// must not be taken for the run's.
    pub(super) fn enter_checkout(&self, work: &Work, attempt: u32) -> Result<(), Failure> {
        if !works_in_place(work) {
            return Ok(());
        }
        let enter = || {
            let held = self.tree(work)?;
            if attempt > 1 {
                let (place, _) = self.look_at_checkout(work, tree_spec(work)?)?;
                *lock(&held).checkout()? = place;
            }
            Ok(())
        };
        enter().map_err(|failure: Failure| Failure {
            code: NOT_LET_IN.to_owned(),
            ..failure
        })
    }

    /// What the run changed, on the commit that the branch is at by now; in the repository, durably, on return.
    pub(super) fn change_in_place(&self, work: &Work) -> Result<KeptResult, Failure> {
        let base = work.baseline().and_then(|found| found.tree);
        let base = base.ok_or_else(no_base)?;
        let refused = |error| tree_failure(Step::Record, work, &error);
        let held = self.tree(work)?;
        let mut held = lock(&held);
        let left_out = self.left_out(work, tree_spec(work)?)?;
        held.checkout()?.leave_out(left_out);
        let place = held.checkout()?;
        let (mut change, start) = place.result(&base.start).map_err(refused)?;
        if was_not_let_in(work) {
            change.changes.clear();
            change.problems.clear();
            change.tree = start.tree.clone();
        }
        // In a checkout where people work, the log of `HEAD` alone tells whose a commit is.
        let workdir = Path::new(&tree_spec(work)?.workdir);
        let own = git::commits_logged_as(workdir, &reflog_action(work))
            .map_err(|error| git_failure(Step::Record, work, &error))?;
        change.commits_made.retain(|commit| own.contains(commit));
        change.commits_count = u64::try_from(change.commits_made.len()).unwrap_or(u64::MAX);
        let source = place.git_dir();
        let base = keep_base(work, start)?;
        let kept = keep(work, (&source, &base), &change, self.logs.of(work).masker())?;
        Ok(KeptResult { base, change, kept })
    }

    /// Gives the changed files the line ends that a checkout of the commit has.
    pub(super) fn settle_in_place(&self, work: &Work, kept: &KeptResult) -> Result<(), Failure> {
        let held = self.tree(work)?;
        let mut held = lock(&held);
        held.checkout()?
            .settle(&kept.change)
            .map_err(|error| tree_failure(Step::Commit, work, &error))
    }

    /// Puts back what the last attempt changed in the checkout; nothing that is not kept in the repository.
    pub(super) fn put_back_in_place(&self, work: &Work) -> RestoreReport {
        if !works_in_place(work) || !has_run(work) {
            return RestoreReport::default();
        }
        let put_back = || {
            let base = work.baseline().and_then(|found| found.tree);
            let base = base.ok_or_else(no_base)?;
            let kept = match work.kept_result() {
                Some(kept) => kept,
                None => self.change_in_place(work)?,
            };
            let held = self.tree(work)?;
            let mut held = lock(&held);
            held.checkout()?
                .put_back(&base.start, &kept.change)
                .map_err(|error| tree_failure(Step::Record, work, &error))
        };
        match put_back() {
            Ok(done) => {
                let failed = done.failed.iter();
                RestoreReport {
                    put_back: done.put_back,
                    edited_since: done.edited_since.iter().map(RepoPath::to_string).collect(),
                    failed: failed.map(|(path, why)| format!("{path}: {why}")).collect(),
                    ..RestoreReport::default()
                }
            }
            Err(failure) => RestoreReport {
                failed: vec![failure.message],
                ..RestoreReport::default()
            },
        }
    }
}

/// A path relative to the repository.
fn inside(spec: &TreeSpec, path: &Path) -> Option<RepoPath> {
    let relative = path.strip_prefix(&spec.workdir).ok()?;
    RepoPath::from_bytes(relative.as_os_str().as_encoded_bytes()).ok()
}

/// Keeps the commit that the run is on from any cleaning of the repository.
fn keep_base(work: &Work, start: Start) -> Result<TreeBase, Failure> {
    if let Some(commit) = &start.base {
        let workdir = Path::new(&tree_spec(work)?.workdir);
        git::keep_base(workdir, &git_run(work)?, commit)
            .map_err(|error| git_failure(Step::Prepare, work, &error))?;
    }
    Ok(TreeBase {
        from: start.base.clone(),
        start,
    })
}

/// Whether the newest attempt ran, so that there may be something to put back.
fn has_run(work: &Work) -> bool {
    let mut entries = work.entries.iter().rev();
    let found = entries.find_map(|entry| match &entry.event {
        Event::ExecutionFinished { .. }
        | Event::ResultRecorded { .. }
        | Event::RecordingFailed { .. } => Some(true),
        Event::Prepared { .. } | Event::PreparationFailed { .. } | Event::Restored { .. } => {
            Some(false)
        }
        _ => None,
    });
    found.unwrap_or(false)
}

/// Whether the newest attempt was not started, so that nothing in the checkout is its own.
fn was_not_let_in(work: &Work) -> bool {
    let mut entries = work.entries.iter().rev();
    let ended = entries.find_map(|entry| match &entry.event {
        Event::ExecutionFinished { execution, .. } => Some(&execution.ended),
        _ => None,
    });
    matches!(ended, Some(Ended::NotStarted { code, .. }) if code == NOT_LET_IN)
}
