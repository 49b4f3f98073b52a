//! The tree that a mutating run works in: taken, made equal to its base, given back.

use std::path::Path;
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use workerctl_trees::{Base, Overlay, Owner, Tree, TreeError, Trees};

use super::super::baseline::TreeBase;
use super::super::outputs::{OutputError, SandboxedDir};
use super::super::work::Work;
use super::held::copy;
use super::place::tree_spec;
use super::tree_failure;
use super::{Performer, failure, git_failure, git_run, lock};
use crate::git::{self, Oid, RepoPath};
use crate::machine::TREE_LOST;
use crate::model::RunId;
use crate::model::legible::hex;
use crate::model::outcome::{Failure, Step};
use crate::model::spec::{Program, TreeSpec};

/// The tree of a run, shared by its actions.
pub(super) type HeldTree = Arc<Mutex<Tree>>;

/// Most bytes that are copied from the checkout into a tree.
const LAID_OVER_BYTES_MAX: u64 = 64 * 1024 * 1024;

impl Performer {
    /// Makes the run's tree equal to the tip of its branch.
    pub(super) fn start_tree(&self, work: &Work) -> Result<TreeBase, Failure> {
        let spec = tree_spec(work)?;
        let workdir = Path::new(&spec.workdir);
        let refused = |error: git::GitError| git_failure(Step::Prepare, work, &error);
        let from = git::branch_at(workdir, &spec.target).map_err(refused)?;
        // It would fail the landing: so the skill is not even started.
        git::check_index(workdir, &spec.target).map_err(refused)?;
        let commit = match &from {
            Some(tip) => Some(tip.clone()),
            None => first_commit(workdir, spec).map_err(refused)??,
        };
        if let Some(commit) = &commit {
            git::keep_base(workdir, &git_run(work)?, commit).map_err(refused)?;
        }
        let usable = |tree: &HeldTree| !lock(tree).is_retired();
        let tree = match self.held_tree(work).filter(usable) {
            Some(tree) => tree,
            None => self.take_tree(work, spec)?,
        };
        let start = self.with_base(work, spec, commit.as_ref(), |base| {
            lock(&tree)
                .make_equal(base)
                .map_err(|error| tree_failure(Step::Prepare, work, &error))
        })?;
        Ok(TreeBase { start, from })
    }

    /// Calls with the base of a run's tree on a commit.
    pub(super) fn with_base<T>(
        &self,
        work: &Work,
        spec: &TreeSpec,
        commit: Option<&Oid>,
        act: impl FnOnce(&Base<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let workdir = Path::new(&spec.workdir);
        let identity = super::commit::identity(work, Step::Prepare)?;
        let git::Identity {
            author, committer, ..
        } = &identity;
        let laid_over = laid_over(spec)?;
        // What is copied is read at these very places, where no link leads elsewhere any more.
        let copied = laid_over.iter().filter(|one| !one.link);
        let copied = copied.map(|one| (one.from.clone(), !one.unignored));
        self.refuse_hidden(work, &copied.collect::<Vec<_>>())?;
        refuse_large(&laid_over)?;
        act(&Base {
            repository: workdir,
            target: &spec.target,
            commit,
            author: (&author.name, &author.email),
            committer: (&committer.name, &committer.email),
            keep: &spec.keep,
            overlay: &laid_over,
            allow_filtered: spec.stored_bytes,
        })
    }

    /// The tree of a run: the one it has, or, after a crash, the one that it had.
    pub(super) fn tree(&self, work: &Work) -> Result<HeldTree, Failure> {
        if let Some(tree) = self.held_tree(work) {
            return Ok(tree);
        }
        let spec = tree_spec(work)?;
        let gone = || {
            let message = "the tree that the run worked in is gone";
            Failure::new(Step::Record, TREE_LOST, message)
        };
        let base = work.baseline().and_then(|found| found.tree);
        let base = base.ok_or_else(gone)?;
        // Others may be in the one that it had while a person was asked.
        if work.run.facts.held.is_some() {
            return self.take_tree(work, spec);
        }
        let number = base.start.number;
        let trees = self.trees()?;
        let taken = trees
            .retake(number, &owner(work, spec, &rights(work, spec)))
            .map_err(|error| tree_failure(Step::Record, work, &error))?;
        Ok(self.hold_tree(work, taken.ok_or_else(gone)?))
    }

    fn take_tree(&self, work: &Work, spec: &TreeSpec) -> Result<HeldTree, Failure> {
        let trees = self.trees()?;
        let taken = trees
            .take(&owner(work, spec, &rights(work, spec)))
            .map_err(|error| tree_failure(Step::Prepare, work, &error))?;
        Ok(self.hold_tree(work, taken))
    }

    pub(super) fn held_tree(&self, work: &Work) -> Option<HeldTree> {
        let parent = work.spec.parent.as_ref();
        let run = parent.map_or(work.spec.run, |parent| parent.tree_of);
        lock(&self.trees).get(&run).cloned()
    }

    /// Whether this engine has the tree of a run, so that nobody else was in it.
    pub(super) fn has_tree(&self, run: RunId) -> bool {
        lock(&self.trees).contains_key(&run)
    }

    pub(super) fn hold_tree(&self, work: &Work, tree: Tree) -> HeldTree {
        let tree = Arc::new(Mutex::new(tree));
        lock(&self.trees).insert(work.spec.run, Arc::clone(&tree));
        tree
    }

    /// Keeps later runs and attempts out of the tree of a run whose processes could not be ended.
    pub(super) fn retire_tree(&self, work: &Work) {
        let Some(tree) = self.held_tree(work) else {
            return;
        };
        if let Err(error) = lock(&tree).retire() {
            tracing::warn!(run = %work.spec.run, %error, "processes of the run could not be ended, and a later run may use the same worktree");
        }
    }

    /// Keeps later runs out of the trees of a run that engines did not survive: the files in one of them may be the
    /// cause.
    pub(super) fn retire_trees(&self, work: &Work) {
        let retired = tree_spec(work).and_then(|spec| {
            let rights = rights(work, spec);
            let retired = self.trees()?.retire(&owner(work, spec, &rights));
            retired.map_err(|error| tree_failure(Step::Record, work, &error))
        });
        if let Err(failure) = retired {
            tracing::warn!(run = %work.spec.run, why = failure.message, "a later run may use the worktree of the run that was given up");
        }
    }

    /// Gives the tree of a run back for other runs.
    pub(super) fn give_back_tree(&self, run: RunId) {
        lock(&self.trees).remove(&run);
    }

    /// Gives a tree back without what the run left in it, which may fill the disk.
    pub(super) fn empty_tree(&self, work: &Work) {
        if self.is_parked(work) {
            return;
        }
        let emptied = self.tree(work).and_then(|tree| {
            let base = work.baseline().and_then(|found| found.tree);
            let commit = base.and_then(|base| base.start.base);
            self.with_base(work, tree_spec(work)?, commit.as_ref(), |at| {
                lock(&tree)
                    .make_equal(at)
                    .map_err(|error| tree_failure(Step::Record, work, &error))
            })
        });
        if let Err(failure) = emptied {
            tracing::debug!(run = %work.spec.run, why = failure.message, "the tree is made equal by its next run");
        }
        self.give_back_tree(work.spec.run);
    }

    /// Whether a run has a tree that an earlier engine made, which a power cut may have torn.
    pub(super) fn has_retaken(&self, work: &Work) -> bool {
        let tree = self.held_tree(work);
        tree.is_some_and(|tree| lock(&tree).is_retaken())
    }

    /// A failure of the tree's own repository. Where an engine was lost since, what the attempt left is lost with it.
    pub(super) fn own_failure(&self, work: &Work, error: TreeError) -> Failure {
        let error = match self.held_tree(work) {
            Some(tree) => lock(&tree).own_error(error),
            None => error,
        };
        let mut failure = tree_failure(Step::Record, work, &error);
        if failure.code == error.code()
            && matches!(error, TreeError::Damaged { .. })
            && self.has_retaken(work)
        {
            TREE_LOST.clone_into(&mut failure.code);
        }
        failure
    }

    /// Whether the run left its tree when a person was asked, and has taken none since.
    pub(super) fn is_parked(&self, work: &Work) -> bool {
        work.run.facts.held.is_some() && !self.has_tree(work.spec.run)
    }

    /// What was kept for a run goes with its success, and so does its tree.
    pub(super) fn end_tree(&self, work: &Work) {
        let left = work.kept_result().map(|kept| kept.change.ignored.count);
        match left {
            _ if self.is_parked(work) => {}
            Some(0) => self.give_back_tree(work.spec.run),
            _ => self.empty_tree(work),
        }
        let (Ok(spec), Ok(run)) = (tree_spec(work), git_run(work)) else {
            return;
        };
        if let Err(error) = git::drop_refs(Path::new(&spec.workdir), &run) {
            tracing::warn!(run = %work.spec.run, %error, "the kept refs of the run could not be deleted");
        }
    }

    /// Declared outputs that git ignores are put into the checkout, each by rename.
    pub(super) fn publish_ignored(&self, work: &Work) -> Result<(), Failure> {
        let held = work.run.facts.held.as_ref();
        let paths: Vec<&String> = match held {
            Some(held) => held.outputs.iter().map(|output| &output.path).collect(),
            None => self.ignored_outputs(work)?,
        };
        if paths.is_empty() {
            return Ok(());
        }
        self.refuse_outputs(work, &paths, Step::Land)?;
        let refused = |error: OutputError| failure(Step::Land, "output_not_published", &error);
        let from = match held {
            Some(_) => SandboxedDir::open(&self.held_place(work.spec.run)).map_err(refused)?,
            None => self.sandboxed_dir(work)?,
        };
        let to = SandboxedDir::open(&self.parts.workspace).map_err(refused)?;
        for path in paths {
            copy(&from, &to, path, work.spec.run).map_err(refused)?;
        }
        Ok(())
    }

    fn trees(&self) -> Result<Trees, Failure> {
        match &self.parts.trees {
            Ok(root) => Ok(Trees::at(root)),
            Err(why) => Err(Failure::new(
                Step::Prepare,
                "no_place_for_trees",
                why.clone(),
            )),
        }
    }
}

/// A digest of what the commands of a run may do. Runs share kept files only with those of the same rights.
fn rights(work: &Work, spec: &TreeSpec) -> String {
    if spec.keep.is_empty() {
        return String::new();
    }
    let run = &work.spec;
    let rights = (
        &run.sandbox,
        &run.env_names,
        &run.sensitive,
        run.may_control,
        // A model or an agent program has a key or a login, and acts with the tools that it is given.
        matches!(run.program, Program::Agent(_)),
        run.plan.approval.is_some(),
    );
    let text = serde_json::to_vec(&rights).unwrap_or_default();
    hex(&Sha256::digest(text)).chars().take(16).collect()
}

fn owner<'a>(work: &'a Work, spec: &'a TreeSpec, rights: &'a str) -> Owner<'a> {
    let workdir = Path::new(&spec.workdir);
    let name = workdir.file_name().and_then(|name| name.to_str());
    Owner {
        worker: &work.spec.skill.worker,
        repository: work.spec.repository.as_deref().map_or(workdir, Path::new),
        name: name.unwrap_or("tree"),
        rights,
    }
}

/// What a branch begins with that does not exist: nothing on an unborn one, else what is checked out.
fn first_commit(
    workdir: &Path,
    spec: &TreeSpec,
) -> Result<Result<Option<Oid>, Failure>, git::GitError> {
    let head = git::locate(workdir)?.head;
    let is_unborn = matches!(&head, git::Head::Unborn { refname } if *refname == spec.target);
    if is_unborn {
        return Ok(Ok(None));
    }
    if spec.create {
        return Ok(Ok(head.oid().cloned()));
    }
    let short = spec.branch();
    let message = format!(
        "there is no branch `{short}`: make it with `git branch {short}`, name another with `branch: NAME`, \
         or let it be made: `branch: {{name: {short}, create: true}}`"
    );
    Ok(Err(Failure::new(Step::Prepare, "branch_missing", message)))
}

/// What is copied into a tree is copied for each run.
fn refuse_large(laid_over: &[Overlay]) -> Result<(), Failure> {
    let local = laid_over.iter().filter(|one| !one.unignored);
    let measured = local.map(|one| (workerctl_trees::measure([one]), &one.path));
    let measured: Vec<_> = measured.collect();
    let total: u64 = measured.iter().map(|(bytes, _)| bytes).sum();
    match measured.iter().max() {
        Some((bytes, path)) if total > LAID_OVER_BYTES_MAX => {
            let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
            let message = format!(
                "`local` names {} MiB, of which `{path}` has {}; at most {} MiB are copied: \
                 give the tree a link to it instead, `local: [{{path: {path}, link: true}}]`",
                mebibytes(total),
                mebibytes(*bytes),
                mebibytes(LAID_OVER_BYTES_MAX)
            );
            Err(Failure::new(Step::Prepare, "local_too_large", message))
        }
        _ => Ok(()),
    }
}

fn laid_over(spec: &TreeSpec) -> Result<Vec<Overlay>, Failure> {
    let workdir = Path::new(&spec.workdir);
    let refused = |code, message| Err(Failure::new(Step::Prepare, code, message));
    let mut found = Vec::new();
    for one in &spec.laid_over {
        let path = RepoPath::literal(&one.path)
            .map_err(|error| failure(Step::Prepare, "local", &error))?;
        let from = workdir.join(path.as_path());
        let real = std::fs::canonicalize(&from);
        if one.required {
            let Ok(real) = &real else {
                let message = format!(
                    "`local` names `{}`, which is not there: make it, or take it out of `local`",
                    from.display()
                );
                return refused("local", message);
            };
            // A pipe or a socket has nothing that could be copied.
            if !one.link && !real.is_file() && !real.is_dir() {
                let message = format!(
                    "`local` names `{path}`, which is neither a file nor a directory: say that it is a link, \
                     `local: [{{path: {path}, link: true}}]`"
                );
                return refused("local", message);
            }
            // A copy of what lies elsewhere would carry it past whatever keeps the run from there.
            if !one.link && !real.starts_with(workdir) {
                let message = format!(
                    "`local` names `{path}`, which leads to `{}`, out of the repository: copy it into the checkout, \
                     or say that it is a link, `local: [{{path: {path}, link: true}}]`",
                    real.display()
                );
                return refused("local_outside", message);
            }
        }
        found.push(Overlay {
            path,
            from: real.ok().filter(|_| !one.link).unwrap_or(from),
            link: one.link,
            optional: true,
            unignored: !one.required,
        });
    }
    Ok(found)
}
