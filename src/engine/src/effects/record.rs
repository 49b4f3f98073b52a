//! Recording: what an attempt left, once its last process is dead.

use std::collections::HashMap;
use std::path::Path;

use workerctl_landing::{Import, LandError, Unobserved, import};
use workerctl_trees::{HeadState, RunResult, TreeError};

use super::super::baseline::{AttemptBaseline, AttemptTree, KeptResult, TreeBase, head_of};
use super::super::work::Work;
use super::place::{stdout_path, temporary_beside, tree_spec};
use super::prepare::destinations;
use super::result_notes::output_paths;
use super::{Performer, failure, git_failure, git_run, land_failure, lock};
use super::{masking, tree_failure};
use crate::git::{self, GitError, Oid, RepoPath};
use crate::machine::{AfterRestore, Event, Goal, State, TREE_LOST};
use crate::model::evidence::{CHANGES_SHOWN_MAX, CommitsMade, OutputState, Recorded};
use crate::model::outcome::{Failure, Outcome, Step, StepResult};
use crate::model::spec::OutputKind;
use crate::thread::mask::Masker;

impl Performer {
    pub(super) fn record(&self, work: &Work, attempt: u32) -> Event {
        match self.recorded(work) {
            Ok(result) => Event::ResultRecorded { attempt, result },
            Err(failure) => Event::RecordingFailed { attempt, failure },
        }
    }

    fn recorded(&self, work: &Work) -> Result<Recorded, Failure> {
        let mut warnings = Vec::new();
        let is_held = work.run.facts.held.is_some();
        self.forget_script(work);
        let mut result = None;
        // Its tree is another one than that of its attempt.
        if is_held {
            result = Some(self.change(work)?);
            self.bring_back(work)?;
        }
        let mut outputs = self.recorded_outputs(work, &mut warnings)?;
        if work.spec.plan.mutating && !is_held {
            result = Some(self.change(work)?);
        }
        let is_to_be_verified = matches!(
            &work.run.state,
            State::Recording {
                goal: Goal::Verify { .. },
                ..
            }
        );
        let mut commits = CommitsMade::default();
        let (mut changed, mut changed_count) = (Vec::new(), 0);
        if let Some(result) = &result {
            commits = commits_made(&result.change);
            let paths = &result.change.changes;
            let shown = paths.iter().take(CHANGES_SHOWN_MAX);
            changed = shown.map(|change| change.path.to_string()).collect();
            changed_count = u64::try_from(paths.len()).unwrap_or(u64::MAX);
            warnings.extend(self.result_notes(work, &result.change)?);
            for (state, output) in outputs.iter_mut().zip(&work.spec.outputs) {
                if output.kind == OutputKind::GitCommit {
                    state.written = result.kept.is_some() || commits.count > 0;
                    state.problem =
                        (!state.written).then(|| "nothing was changed or committed".to_owned());
                    state.commits.clone_from(&commits.newest);
                }
            }
            if is_to_be_verified {
                if is_destroyed(&result.change) && self.has_retaken(work) {
                    return Err(lost(&result.change));
                }
                refuse(work, &result.change)?;
                self.refuse_changes(work, &result.change, Step::Record)?;
            } else if matches!(work.run.facts.results.execution, StepResult::Failed { .. })
                && !is_cancelled(work)
            {
                warnings.extend(self.lacking_note(work));
            }
        }
        if is_to_be_verified {
            let outputs = work.spec.outputs.iter().zip(&outputs);
            let written = outputs.filter(|(_, state)| state.written);
            let written = written.filter_map(|(output, _)| output.path.as_ref());
            self.refuse_outputs(work, &written.collect::<Vec<_>>(), Step::Record)?;
        }
        let incomplete = is_reconciling(work)
            .then(|| incomplete(work, &outputs, result.as_ref()))
            .transpose()?
            .flatten();
        let tree = serde_json::to_value(AttemptTree { result })
            .map_err(|error| failure(Step::Record, "internal", &error))?;
        Ok(Recorded {
            outputs,
            changed,
            changed_count,
            tree,
            commits,
            warnings,
            incomplete,
        })
    }

    /// Puts standard output in its place, and says what became of each declared output. What the command wrote there
    /// itself is the output then.
    fn recorded_outputs(
        &self,
        work: &Work,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<OutputState>, Failure> {
        let refused = |error: &dyn std::error::Error| failure(Step::Verify, "output_path", error);
        let baseline = work.baseline().ok_or_else(|| {
            let message = "what was prepared for the run cannot be read";
            Failure::new(Step::Record, "internal", message)
        })?;
        let sandboxed_dir = self.sandboxed_dir(work)?;
        if let Some(path) = stdout_path(&work.spec) {
            let temporary = temporary_beside(path, work.spec.run);
            let stamp = |path| sandboxed_dir.stamp(path).map_err(|error| refused(&error));
            let before = work
                .spec
                .stdout_to
                .and_then(|place| baseline.outputs.get(place));
            let is_own = stamp(path)?.is_some_and(|now| before.copied().flatten() != Some(now));
            let printed = stamp(&temporary)?.is_some_and(|found| found.bytes > 0);
            let ended = if work.run.facts.results.execution == StepResult::Passed && !is_own {
                sandboxed_dir.publish(&temporary, path)
            } else {
                sandboxed_dir.discard(&temporary)
            };
            ended.map_err(|error| refused(&error))?;
            if is_own && printed {
                warnings.push(format!(
                    "the command wrote `{path}` itself, so that its standard output is only in the log"
                ));
            }
        }
        let mut outputs: Vec<OutputState> = Vec::new();
        for (place, output) in work.spec.outputs.iter().enumerate() {
            let before = baseline.outputs.get(place).copied().flatten();
            outputs.push(sandboxed_dir.state(output, before));
        }
        if !baseline.destinations.is_empty() && work.spec.sandbox.is_none() {
            refuse_written_destinations(work, &baseline, &mut outputs)?;
        }
        Ok(outputs)
    }

    /// What the tree holds otherwise than its base; in the repository, durably, on return.
    fn change(&self, work: &Work) -> Result<KeptResult, Failure> {
        let base = if let Some(tip) = moved_to(work) {
            self.put_on(work, &tip)?
        } else {
            let base = work.baseline().and_then(|found| found.tree);
            base.ok_or_else(no_base)?
        };
        let tree = self.tree(work)?;
        let found = lock(&tree).result(&base.start);
        let change = found.map_err(|error| self.own_failure(work, error))?;
        let own = |error| self.own_failure(work, TreeError::Git(error));
        let source = lock(&tree).git_dir();
        let log = self.logs.of(work);
        if let Some(tip) = moved_to(work) {
            refuse_part(work, &tip, &change)?;
        }
        let kept = keep(work, (&source, &base), &change, log.masker(), &own)?;
        Ok(KeptResult { base, change, kept })
    }

    /// Puts the change of the run on the commit that its branch has moved to.
    fn put_on(&self, work: &Work, tip: &Oid) -> Result<TreeBase, Failure> {
        let kept = work.kept_result().ok_or_else(no_base)?;
        let spec = tree_spec(work)?;
        let workdir = Path::new(&spec.workdir);
        git::keep_base(workdir, &git_run(work)?, tip)
            .map_err(|error| git_failure(Step::Record, work, &error))?;
        let tree = self.tree(work)?;
        let start = self.with_base(work, spec, Some(tip), |base| {
            lock(&tree)
                .make_result(base, &kept.change.changes)
                .map_err(|error| tree_failure(Step::Record, work, &error))
        })?;
        let from = Some(tip.clone());
        Ok(TreeBase { start, from })
    }

    /// Makes the tree hold what was recorded, where a crash or a command has left something else.
    pub(super) fn make_again(
        &self,
        work: &Work,
        base: &TreeBase,
        change: &RunResult,
    ) -> Result<(), Failure> {
        let tree = self.tree(work)?;
        self.with_base(work, tree_spec(work)?, base.start.base.as_ref(), |at| {
            lock(&tree)
                .make_result(at, &change.changes)
                .map_err(|error| tree_failure(Step::Record, work, &error))
        })?;
        Ok(())
    }
}

/// Makes the commit of the change, and imports it as one pack, under a reference, whether it lands or not.
fn keep(
    work: &Work,
    (source, base): (&Path, &TreeBase),
    change: &RunResult,
    masker: &Masker,
    own: &dyn Fn(GitError) -> Failure,
) -> Result<Option<Oid>, Failure> {
    masking::refuse_names(change, masker)?;
    let head = head_of(change);
    let has_commits = head.is_some() && head != base.start.base.as_ref();
    if is_destroyed(change) || change.changes.is_empty() && !has_commits {
        return Ok(None);
    }
    let commit = super::commit::own_commit(work, (source, base), change, masker, own)?;
    let hide: Vec<&Oid> = base.start.base.iter().collect();
    let request = Import {
        repository: Path::new(&tree_spec(work)?.workdir),
        source,
        run: &git_run(work)?,
        hide: &hide,
        commit: &commit,
    };
    import(&request, &Unobserved).map_err(|error| match error {
        LandError::Source(error) => own(error),
        error => land_failure(Step::Record, work, &error),
    })?;
    Ok(Some(commit))
}

/// Whether somebody has ended the run, which then tells nothing of what it lacked.
fn is_cancelled(work: &Work) -> bool {
    matches!(
        &work.run.state,
        State::Recording {
            goal: Goal::Restore(AfterRestore::Finish(Outcome::Cancelled)),
            ..
        }
    )
}

/// Why a change cannot land as it is.
fn refuse(work: &Work, change: &RunResult) -> Result<(), Failure> {
    if !is_destroyed(change) {
        refuse_head(work, change)?;
    }
    match change.problems.first() {
        Some(problem) => {
            let message = format!("{}; {}", problem.message, problem.hint);
            Err(Failure::new(Step::Record, &problem.code, message))
        }
        None => Ok(()),
    }
}

/// A result that cannot be read from a tree that was made by an engine which is gone.
fn lost(change: &RunResult) -> Failure {
    let message = change
        .problems
        .first()
        .map_or("", |problem| &problem.message);
    let message =
        format!("{message}; the next run recreates its worktree; your repository is not damaged");
    Failure::new(Step::Record, TREE_LOST, message)
}

/// Whether the run has destroyed its repository, so that the result cannot be read from it.
fn is_destroyed(change: &RunResult) -> bool {
    let mut problems = change.problems.iter();
    problems.any(|one| one.code == "repository_damaged")
}

fn refuse_head(work: &Work, change: &RunResult) -> Result<(), Failure> {
    if let HeadState::Moved { found } = &change.head {
        let run = work.spec.run.short();
        let message = format!(
            "the run left `HEAD` at {found} instead of its branch, so it is not known what is to land; \
             `workerctl diff {run}` shows what it left"
        );
        return Err(Failure::new(Step::Record, "head_moved", message));
    }
    if change.is_unrelated {
        let message =
            "the run rewrote commits that its branch had before; let it add commits instead";
        return Err(Failure::new(Step::Record, "history_rewritten", message));
    }
    Ok(())
}

fn commits_made(change: &RunResult) -> CommitsMade {
    let ids = change.commits_made.iter();
    CommitsMade {
        count: change.commits_count,
        newest: ids.map(|oid| oid.as_str().to_owned()).collect(),
    }
}

/// Refuses to land a part of a result on the commit that its branch has moved to: there, other ignore patterns or
/// attributes can leave files out or change their content, which was neither verified nor approved.
fn refuse_part(work: &Work, tip: &Oid, change: &RunResult) -> Result<(), Failure> {
    let before = work.kept_result().ok_or_else(no_base)?;
    let workdir = Path::new(&tree_spec(work)?.workdir);
    let changes = change.changes.iter();
    let recorded: HashMap<&RepoPath, _> =
        changes.map(|change| (&change.path, &change.new)).collect();
    for verified in &before.change.changes {
        if recorded.get(&verified.path) == Some(&&verified.new) {
            continue;
        }
        let there = git::commit_entry(workdir, tip, &verified.path)
            .map_err(|error| git_failure(Step::Record, work, &error))?;
        if there == verified.new.as_ref().map(|new| (new.oid.clone(), new.mode)) {
            continue;
        }
        let message = format!(
            "`{}` moved to {tip}, where ignore patterns or attributes of git leave out or change `{}`",
            tree_spec(work)?.branch(),
            verified.path
        );
        return Err(Failure::new(Step::Land, "conflict", message));
    }
    Ok(())
}

/// The commit that the branch was found at, where the result is to be put on it.
fn moved_to(work: &Work) -> Option<Oid> {
    let mut entries = work.entries.iter().rev();
    entries.find_map(|entry| match &entry.event {
        Event::TargetMoved { tip } => Some(tip.parse().ok()),
        Event::ResultRecorded { .. } | Event::Prepared { .. } | Event::Restored { .. } => {
            Some(None)
        }
        _ => None,
    })?
}

fn is_reconciling(work: &Work) -> bool {
    matches!(&work.run.state, State::Recording { goal, .. } if goal.is_reconciling())
}

/// Marks outputs whose destination the command wrote by its path, which nothing keeps it from without a sandbox. What
/// it printed must not replace them.
fn refuse_written_destinations(
    work: &Work,
    baseline: &AttemptBaseline,
    outputs: &mut [OutputState],
) -> Result<(), Failure> {
    let workspace = destinations(work)?;
    for ((state, output), before) in outputs
        .iter_mut()
        .zip(&work.spec.outputs)
        .zip(&baseline.destinations)
    {
        let Some(path) = &output.path else { continue };
        if workspace.stamp(path).ok().is_some_and(|now| now != *before) {
            state.written = false;
            state.problem = Some(format!(
                "`{path}` was written directly during the run; the command must write it through its placeholder, `{{{}}}`",
                output.name
            ));
        }
    }
    Ok(())
}

/// Returns why the change of a command whose end nobody saw cannot be shown to be complete. Only declared outputs can:
/// checks look at them, and at nothing else that a command may have left half done.
fn incomplete(
    work: &Work,
    outputs: &[OutputState],
    result: Option<&KeptResult>,
) -> Result<Option<String>, Failure> {
    let mut missing = outputs.iter().zip(&work.spec.outputs);
    let missing =
        missing.find(|(state, output)| !state.written && output.kind != OutputKind::Console);
    if let Some((_, output)) = missing {
        return Ok(Some(format!(
            "its output `{}` was not written",
            output.name
        )));
    }
    let Some(KeptResult { change, .. }) = result else {
        return Ok(None);
    };
    if change.commits_count > 0 {
        return Ok(Some(
            "its own commits cannot be shown to be complete".to_owned(),
        ));
    }
    let declared = output_paths(work)?;
    let is_declared = |path: &RepoPath| declared.iter().any(|output| path.is_within(output));
    let mut changes = change.changes.iter();
    let other = changes.find(|change| !is_declared(&change.path));
    Ok(other.map(|change| {
        format!(
            "`{}`, which it changed, is not a declared output",
            change.path
        )
    }))
}

fn no_base() -> Failure {
    let message = "what the run started from cannot be read";
    Failure::new(Step::Record, "internal", message)
}
