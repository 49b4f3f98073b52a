//! Commits that are kept of ended runs: landed later, or dropped.

use std::path::Path;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use super::control::{EngineControl, summary_of};
use super::refusals;
use super::request::Request;
use super::view::RunSnapshot;
use super::work::Work;
use crate::git::{self, Oid, RunId as GitRun};
use crate::machine::{Action, Event};
use crate::model::diagnostic::chain;
use crate::model::outcome::Failure;
use crate::model::spec::TreeSpec;
use crate::model::{Diagnostic, Kind, RunId};
use crate::process::StopHandle;
use crate::protocol::{Discarded, Landed};

/// How long what is in the way may go away, in milliseconds.
const PATIENCE_MS: u64 = 3_000;

/// How often it is looked meanwhile.
const RETRY: Duration = Duration::from_millis(100);

/// What is kept of a run.
struct KeptRun<'a> {
    shown: &'a RunSnapshot,
    tree: &'a TreeSpec,
    run: GitRun,
    commit: String,
    parent: Option<String>,
}

impl EngineControl {
    /// Lands the commit that was kept of a run.
    pub(super) fn land_kept(&self, run: RunId, by: Option<String>) -> Result<Landed, Diagnostic> {
        let _one_at_a_time = self.settling();
        let shown = self.shown(run)?;
        let kept = KeptRun::of(&shown)?;
        kept.refuse_gone()?;
        kept.refuse_landed()?;
        let mut notes = kept.omitted()?;
        let commit = match self.tried(&kept)? {
            Event::Committed { oid, warning } => {
                notes.extend(warning);
                oid
            }
            other => return Err(kept.refused(other)),
        };
        let event = Event::LandedLater {
            oid: commit.clone(),
            by,
        };
        let run = summary_of(self.ask(Request::Settled { run, event })?)?;
        if let Err(error) = git::drop_refs(kept.workdir(), &kept.run) {
            tracing::warn!(run = %kept.run, %error, "the kept refs of the run could not be deleted");
        }
        let branch = kept.branch().to_owned();
        Ok(Landed {
            run,
            commit,
            branch,
            notes,
        })
    }

    /// Drops what is kept of a run that has not landed.
    pub(super) fn discard_kept(
        &self,
        run: RunId,
        by: Option<String>,
    ) -> Result<Discarded, Diagnostic> {
        let _one_at_a_time = self.settling();
        let shown = self.shown(run)?;
        let (summary, commit) = match &shown.run.facts.prepared {
            Some(commit) if shown.run.facts.discarded => (shown.summary.clone(), commit.clone()),
            _ => {
                let kept = KeptRun::of(&shown)?;
                kept.refuse_unrecorded()?;
                let commit = kept.commit;
                let event = Event::Discarded { by };
                let answer = self.ask(Request::Settled { run, event })?;
                (summary_of(answer)?, commit)
            }
        };
        let dropped = git::drop_refs(Path::new(tree_of(&shown)?.workdir.as_str()), &named(run)?);
        let references = dropped.map_err(|error| refusals::of_git(&error))?;
        Ok(Discarded {
            run: summary,
            commit,
            references: u32::try_from(references).unwrap_or(u32::MAX),
        })
    }

    /// Returns a run that may be repeated. One whose landing was interrupted before it was recorded is refused, since its
    /// changes would be made twice.
    pub(super) fn repeatable(&self, run: RunId) -> Result<Arc<RunSnapshot>, Diagnostic> {
        let shown = self.shown(run)?;
        if let Ok(kept) = KeptRun::of(&shown) {
            kept.refuse_unrecorded()?;
        }
        Ok(shown)
    }

    fn settling(&self) -> MutexGuard<'_, ()> {
        self.settling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries until it has landed, cannot land, or has waited long enough.
    fn tried(&self, kept: &KeptRun<'_>) -> Result<Event, Diagnostic> {
        let shown = kept.shown;
        let work = Work {
            spec: Arc::clone(&shown.spec),
            entries: Arc::clone(&shown.entries),
            run: Arc::clone(&shown.run),
            action: Action::Close,
            stop: StopHandle::new(),
        };
        let since_ms = self.clock.monotonic_ms();
        loop {
            let tried = self
                .effects
                .land_kept(&work, &kept.commit, kept.parent.as_deref());
            let event = tried.map_err(|failure| kept.failed(failure))?;
            let waited_ms = self.clock.monotonic_ms().saturating_sub(since_ms);
            if !matches!(event, Event::LandingWaiting { .. }) || waited_ms >= PATIENCE_MS {
                return Ok(event);
            }
            std::thread::sleep(RETRY);
        }
    }
}

impl<'a> KeptRun<'a> {
    /// What is kept of a run that ended before its commit was on the branch.
    fn of(shown: &'a RunSnapshot) -> Result<KeptRun<'a>, Diagnostic> {
        let (run, short) = (shown.spec.run, shown.spec.run.short());
        let facts = &shown.run.facts;
        let refused = |code: &str, message| Err(Diagnostic::new(Kind::Conflict, code, message));
        if !shown.run.is_finished() {
            let under_way = refused("under_way", format!("{short} has not ended"));
            return under_way.map_err(|told| told.hint(format!("wait: `workerctl wait {short}`")));
        }
        if let Some(commit) = &facts.commit {
            return refused("landed_already", format!("{short} has landed, as {commit}"));
        }
        if let (true, Some(commit)) = (facts.discarded, &facts.prepared) {
            let message = format!("the commit of {short} was discarded");
            return refused("discarded", message).map_err(|told| {
                told.hint(format!(
                    "git still has it until its next garbage collection: `git cherry-pick {commit}`"
                ))
                .hint(format!("run it again: `workerctl retry {short}`"))
            });
        }
        let Some(commit) = shown.run.kept_commit() else {
            return Err(nothing_kept(shown));
        };
        let prepared = shown.entries.iter().rev().find_map(|e| match &e.event {
            Event::CommitPrepared { parent, .. } => Some(parent.clone()),
            _ => None,
        });
        Ok(KeptRun {
            shown,
            tree: tree_of(shown)?,
            run: named(run)?,
            commit: commit.to_owned(),
            parent: prepared.flatten(),
        })
    }

    fn workdir(&self) -> &Path {
        Path::new(&self.tree.workdir)
    }

    fn branch(&self) -> &str {
        self.tree.branch()
    }

    /// The reference that keeps it is dropped after a time, and anybody can drop it.
    fn refuse_gone(&self) -> Result<(), Diagnostic> {
        let reference = self.reference();
        match git::branch_at(self.workdir(), &reference) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(nothing_kept(self.shown)),
            Err(error) => Err(refusals::of_git(&error)),
        }
    }

    /// A person may have put it on the branch by hand; our own commit there is what is recorded.
    fn refuse_landed(&self) -> Result<(), Diagnostic> {
        let since = self.parent.as_ref().and_then(|parent| parent.parse().ok());
        let found =
            git::commit_of_run(self.workdir(), &self.tree.target, since.as_ref(), &self.run)
                .map_err(|error| refusals::of_git(&error))?;
        let is_ours = |found: &Oid| {
            self.shown.entries.iter().any(|entry| {
                matches!(&entry.event, Event::CommitPrepared { oid, .. } if oid == found.as_str())
            })
        };
        match found {
            Some(found) if !is_ours(&found) => Err(self.landed_by_hand(&found)),
            _ => Ok(()),
        }
    }

    /// Refuses if the commit is on the branch although no landing was recorded, because `land` was interrupted.
    fn refuse_unrecorded(&self) -> Result<(), Diagnostic> {
        let Ok(commit) = self.commit.parse() else {
            return Ok(());
        };
        let has = git::has_commit(self.workdir(), &self.tree.target, &commit);
        if !has.map_err(|error| refusals::of_git(&error))? {
            return Ok(());
        }
        let (short, branch) = (self.shown.spec.run.short(), self.branch());
        let message = format!(
            "`{branch}` already has the commit {commit} of {short}, but this is not recorded"
        );
        let refused = Diagnostic::new(Kind::Conflict, "landed_already", message);
        Err(refused.hint(format!("record it: `workerctl land {short}`")))
    }

    fn landed_by_hand(&self, found: &Oid) -> Diagnostic {
        let (short, branch) = (self.shown.spec.run.short(), self.branch());
        let message =
            format!("the history of `{branch}` already contains the change of {short}, in {found}");
        Diagnostic::new(Kind::Conflict, "landed_already", message).hint(format!(
            "discard its kept commit: `workerctl discard {short}`"
        ))
    }

    /// What a landing of a run at work does besides, and this one does not.
    fn omitted(&self) -> Result<Vec<String>, Diagnostic> {
        let spec = &self.shown.spec;
        let mut notes = Vec::new();
        let mut hooks = spec.plan.post_commit_hooks;
        if let Some(remote) = &self.tree.push {
            // The push is the first of them.
            hooks = hooks.saturating_sub(1);
            let branch = self.branch();
            notes.push(format!(
                "`{branch}` was not pushed to `{remote}`: `git push {remote} {branch}`"
            ));
        }
        match hooks {
            0 => {}
            1 => notes.push("its `post_commit` hook was not run".to_owned()),
            hooks => notes.push(format!("its {hooks} `post_commit` hooks were not run")),
        }
        let facts = git::locate(self.workdir()).map_err(|error| refusals::of_git(&error))?;
        for path in spec.outputs.iter().filter_map(|o| o.path.as_ref()) {
            let place = Path::new(&spec.workspace).join(path);
            let Ok(inside) = place.strip_prefix(self.workdir()) else {
                continue;
            };
            if git::is_ignored(&facts.git_dir, inside).map_err(|error| refusals::of_git(&error))? {
                notes.push(format!("`{path}` is ignored by git and was not kept"));
            }
        }
        Ok(notes)
    }

    fn reference(&self) -> String {
        workerctl_landing::kept_reference(&self.run)
    }

    /// Why it has not landed, after an attempt that changed nothing.
    fn refused(&self, event: Event) -> Diagnostic {
        let (short, branch) = (self.shown.spec.run.short(), self.branch());
        let again = format!("then run this again: `workerctl land {short}`");
        match event {
            Event::LandingWaiting { code, why } => {
                let (kind, helps) = match code.as_str() {
                    "checkout_dirty" => (
                        Kind::Blocked,
                        "commit them, or put them aside with `git stash -u`",
                    ),
                    "checkout_missing" => (
                        Kind::Blocked,
                        "bring them back, or `git worktree unlock` it and `git worktree prune`",
                    ),
                    _ => (Kind::Conflict, "wait until it has ended"),
                };
                Diagnostic::new(kind, &code, why).hint(format!("{helps}; {again}"))
            }
            Event::LandedIn { tip } => {
                let message = format!("`{branch}` already contains the same change, in {tip}");
                Diagnostic::new(Kind::Conflict, "landed_already", message).hint(format!(
                    "discard its kept commit: `workerctl discard {short}`"
                ))
            }
            Event::TargetMoved { tip } => {
                let message = format!(
                    "`{branch}` moved to {tip}, and the change of {short} was not verified on top of it"
                );
                self.conflict("conflict", message)
            }
            Event::Conflicted { failure } => self.failed(failure),
            other => {
                let message = format!("the landing ended with `{}`", other.name());
                Diagnostic::new(Kind::Internal, "internal", message)
            }
        }
    }

    fn failed(&self, failure: Failure) -> Diagnostic {
        match failure.code.as_str() {
            "conflict" => self.conflict("conflict", failure.message),
            "branch_gone" => {
                let at = self.parent.as_deref().unwrap_or("COMMIT");
                let hint = format!("make it again: `git branch {} {at}`", self.branch());
                Diagnostic::new(Kind::Conflict, "branch_gone", failure.message).hint(hint)
            }
            code => Diagnostic::new(Kind::Blocked, code, failure.message),
        }
    }

    /// What was verified cannot land any more; a person can put it on the branch all the same.
    fn conflict(&self, code: &str, message: String) -> Diagnostic {
        let short = self.shown.spec.run.short();
        Diagnostic::new(Kind::Conflict, code, message)
            .hint(format!("look at it: `workerctl diff {short}`"))
            .hint(format!(
                "put it on the branch yourself: `git cherry-pick {}`",
                self.reference()
            ))
            .hint(format!("or run it again: `workerctl retry {short}`"))
    }
}

fn nothing_kept(shown: &RunSnapshot) -> Diagnostic {
    let short = shown.spec.run.short();
    let message = format!("no commit of {short} is kept that could land");
    Diagnostic::new(Kind::NotFound, "nothing_kept", message).hint(format!(
        "`workerctl show {short}` tells how it ended; `workerctl retry {short}` runs it again"
    ))
}

fn tree_of(shown: &RunSnapshot) -> Result<&TreeSpec, Diagnostic> {
    let tree = shown.spec.tree.as_ref();
    tree.ok_or_else(|| nothing_kept(shown))
}

fn named(run: RunId) -> Result<GitRun, Diagnostic> {
    let parsed = run.to_string().parse();
    parsed
        .map_err(|error: git::NameError| Diagnostic::new(Kind::Internal, "internal", chain(&error)))
}
