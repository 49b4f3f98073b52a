//! What is read of a repository: its checkouts, the branch, and what git has under way.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, Repository, RepositoryOpenFlags};

use crate::branch;
use crate::differences::{MODE_TREE, TreeItem, differences};
use crate::error::{GitError, git, io_at};
use crate::ids::{Oid, RepoPath, RunId};
use crate::open::open;
use crate::outcome::{LandError, Obstacle};
use crate::plan::{
    Change, Checkout, Entry, MODE_COMMIT, MODE_EXECUTABLE, MODE_FILE, MODE_LINK, Plan,
};
use crate::sharing::Sharing;
use crate::worktree::inode;

/// A fresh handle: it caches references and settings, so none outlives a step.
pub(crate) struct Repo {
    pub(crate) inner: Repository,
    pub(crate) common_dir: PathBuf,
}

impl Repo {
    /// Opens the repository that `place` lies in.
    pub(crate) fn find(place: &Path) -> Result<Self, LandError> {
        let found = open(place, RepositoryOpenFlags::empty(), "open the repository")?;
        let common: PathBuf = found.commondir().components().collect();
        if common.to_str().is_none() {
            return Err(LandError::refused(
                "path_not_utf8",
                format!("the path `{}` is not UTF-8", common.display()),
            ));
        }
        let repo = Self::at(&common)?;
        repo.refuse_unnamed_work_tree(&found)?;
        Ok(repo)
    }

    /// A git directory that lies elsewhere seems to belong to the directory around it, where files of a landing
    /// would be written.
    fn refuse_unnamed_work_tree(&self, found: &Repository) -> Result<(), LandError> {
        let Some(around) = self.inner.workdir() else {
            return Ok(());
        };
        let is_named = || {
            let config = self.inner.config().and_then(|mut c| c.snapshot());
            config.is_ok_and(|c| c.get_str("core.worktree").is_ok())
        };
        let is_its_own = match found.workdir() {
            Some(workdir) if !found.is_worktree() => inode(workdir) == inode(around),
            _ => around.join(".git").exists() || is_named(),
        };
        if is_its_own {
            return Ok(());
        }
        let git_dir = self.common_dir.display();
        let message = format!(
            "`{git_dir}` does not name its worktree: run `git --git-dir='{git_dir}' config core.worktree PATH` with the absolute path of the worktree"
        );
        Err(LandError::refused("work_tree_unnamed", message))
    }

    /// Opens the repository with this common directory.
    pub(crate) fn at(common_dir: &Path) -> Result<Self, GitError> {
        Ok(Self {
            inner: open(
                common_dir,
                RepositoryOpenFlags::NO_SEARCH,
                "open the repository",
            )?,
            common_dir: common_dir.to_owned(),
        })
    }

    /// The commit that the branch points at.
    pub(crate) fn tip(&self, target: &str) -> Result<Option<Oid>, LandError> {
        match self.inner.find_reference(target) {
            Err(e) if e.code() == ErrorCode::NotFound => Ok(None),
            Err(e) => Err(git("read the branch")(e).into()),
            Ok(found) => match found.target() {
                Some(oid) => Ok(Some(oid.into())),
                None => Err(LandError::refused(
                    "symbolic_branch",
                    format!("`{target}` is a symbolic reference"),
                )),
            },
        }
    }

    /// Every checkout, as it is now.
    pub(crate) fn checkouts(&self, target: &str) -> Result<Vec<Checkout>, LandError> {
        let mut found = Vec::new();
        if !self.inner.is_bare() {
            let workdir = self.inner.workdir().map(|dir| dir.components().collect());
            found.push(checkout(&self.common_dir, workdir, target)?);
        }
        let linked = self.common_dir.join("worktrees");
        let listed = match fs::read_dir(&linked) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(found),
            other => other.map_err(io_at("list", &linked))?,
        };
        let mut places = Vec::new();
        for entry in listed {
            places.push(entry.map_err(io_at("list", &linked))?.path());
        }
        places.sort();
        for git_dir in places {
            // One that is being made or removed at this moment lacks one of the two.
            let Ok(text) = fs::read_to_string(git_dir.join("gitdir")) else {
                continue;
            };
            if !git_dir.join("HEAD").exists() {
                continue;
            }
            let link = git_dir.join(text.trim_end());
            let workdir = link.parent().map(Path::to_owned);
            let workdir = workdir.filter(|_| link.exists());
            found.push(checkout(&git_dir, workdir, target)?);
        }
        Ok(found)
    }

    /// The tree of a commit; `None` for no commit.
    pub(crate) fn tree(&self, commit: Option<&Oid>) -> Result<Option<git2::Tree<'_>>, GitError> {
        let Some(oid) = commit else { return Ok(None) };
        let commit = self.inner.find_commit(oid.raw());
        let tree = commit.and_then(|commit| commit.tree());
        tree.map(Some).map_err(git("read a commit"))
    }

    /// The tree of what a checkout has as `HEAD` now.
    pub(crate) fn head_tree(&self, git_dir: &Path) -> Result<Option<git2::Tree<'_>>, LandError> {
        let head = fs::read_to_string(git_dir.join("HEAD")).unwrap_or_default();
        let commit = match head.trim_end().strip_prefix("ref: ") {
            Some(name) => self.tip(name)?,
            None => head.trim_end().parse().ok(),
        };
        Ok(self.tree(commit.as_ref())?)
    }

    /// What differs between two commits.
    pub(crate) fn changes(&self, from: Option<&Oid>, to: &Oid) -> Result<Vec<Change>, LandError> {
        let tree = |commit| Ok::<_, GitError>(self.tree(commit)?.map(|tree| tree.id()));
        let mut found = Vec::new();
        differences(
            &self.inner,
            tree(from)?,
            tree(Some(to))?,
            &mut |path, old, new| {
                let is_subtree = old.or(new).is_some_and(|(_, mode)| mode == MODE_TREE);
                if !is_subtree {
                    found.push((path.to_vec(), old, new));
                }
            },
        )
        .map_err(git("compare two commits"))?;
        let mut changes = Vec::new();
        for (path, old, new) in found {
            let path = RepoPath::from_bytes(&path).map_err(GitError::from)?;
            let (old, new) = (side(&path, old)?, side(&path, new)?);
            let change = Change { path, old, new };
            if change.old != change.new {
                refuse_changed_kind(&change)?;
                changes.push(change);
            }
        }
        Ok(changes)
    }

    /// Returns the commit of the run that the branch has, or had before a user removed it.
    pub(crate) fn landed(&self, plan: &Plan) -> Result<Option<Oid>, LandError> {
        let tip = self.tip(&plan.target)?;
        let left = branch::left_commits(&self.common_dir, &plan.target)?;
        // A result without a commit of ours may be a commit that the branch had before the run, such as a merged one:
        // that it was removed then says nothing of this landing.
        let was_removed = |commit: &Oid| {
            let mut moves = left.iter().filter(|(old, _)| old == commit);
            moves
                .any(|(_, time_s)| *time_s > plan.log.time_s || self.is_made_for(commit, &plan.run))
        };
        for commit in plan.commits() {
            let held = match &tip {
                Some(tip) => self.contains(tip, commit)?,
                // A branch that was renamed took its log along; its commits are on another one.
                None => self.is_on_a_branch(commit)?,
            };
            if held || was_removed(commit) {
                return Ok(Some(commit.clone()));
            }
        }
        Ok(None)
    }

    /// Returns true if the engine made the commit for this run: its message says so.
    fn is_made_for(&self, commit: &Oid, run: &RunId) -> bool {
        let wanted = format!("Run-Id: {run}");
        let found = self.inner.find_commit(commit.raw());
        found.is_ok_and(|commit| String::from_utf8_lossy(commit.message_bytes()).contains(&wanted))
    }

    fn contains(&self, tip: &Oid, commit: &Oid) -> Result<bool, GitError> {
        if tip == commit {
            return Ok(true);
        }
        if self.inner.find_commit(commit.raw()).is_err() {
            return Ok(false);
        }
        let found = self.inner.graph_descendant_of(tip.raw(), commit.raw());
        found.map_err(git("search the commits"))
    }

    fn is_on_a_branch(&self, commit: &Oid) -> Result<bool, GitError> {
        let fail = git("list the branches");
        let branches = self.inner.branches(Some(git2::BranchType::Local));
        for branch in branches.map_err(&fail)? {
            let (branch, _) = branch.map_err(&fail)?;
            if let Some(tip) = branch.get().target()
                && self.contains(&tip.into(), commit)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A branch `a` and a branch `a/b` cannot both exist.
    pub(crate) fn refuse_name_conflict(&self, target: &str) -> Result<(), LandError> {
        let fail = git("list references");
        let within =
            |a: &[u8], b: &[u8]| a.strip_prefix(b).is_some_and(|rest| rest.starts_with(b"/"));
        for found in self.inner.references().map_err(&fail)? {
            let found = found.map_err(&fail)?;
            let name = found.name_bytes();
            if name != target.as_bytes()
                && (within(name, target.as_bytes()) || within(target.as_bytes(), name))
            {
                let message = format!("another branch is named like a directory of `{target}`");
                return Err(LandError::refused("branch_name", message));
            }
        }
        Ok(())
    }

    /// Who may work with the repository.
    pub(crate) fn sharing(&self) -> Result<Sharing, GitError> {
        let config = self.inner.config().and_then(|mut c| c.snapshot());
        Sharing::read(&config.map_err(git("read the configuration"))?)
    }

    /// A boolean setting.
    pub(crate) fn setting(&self, name: &str, default: bool) -> bool {
        let config = self.inner.config().and_then(|mut c| c.snapshot());
        config.and_then(|c| c.get_bool(name)).unwrap_or(default)
    }

    /// Whether the executable bit of files counts.
    pub(crate) fn follows_modes(&self) -> bool {
        self.setting("core.filemode", true)
    }
}

/// What a tree holds at a path, if that is a file or a link.
pub(crate) fn entry_at(
    tree: Option<&git2::Tree<'_>>,
    path: &RepoPath,
) -> Result<Option<Entry>, GitError> {
    let Some(tree) = tree else { return Ok(None) };
    match tree.get_path(path.as_path()) {
        Err(e) if e.code() == ErrorCode::NotFound => Ok(None),
        Err(e) => Err(git("read a tree")(e)),
        Ok(found) if found.kind() == Some(git2::ObjectType::Tree) => Ok(None),
        Ok(found) => {
            let mode = u32::try_from(found.filemode()).unwrap_or(0);
            Ok(Some(Entry {
                oid: found.id().into(),
                mode: plain_mode(mode),
                written: None,
            }))
        }
    }
}

/// Whether two entries hold the same; how they are written to a work tree plays no part.
pub(crate) fn same(a: Option<&Entry>, b: Option<&Entry>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => a.oid == b.oid && a.mode == b.mode,
        _ => false,
    }
}

/// Lists the checkouts of the repository that a directory is in, the main one first.
///
/// # Errors
/// There is no repository, or it cannot be read.
pub fn checkouts(directory: &Path) -> Result<Vec<Checkout>, LandError> {
    Repo::find(directory)?.checkouts("")
}

fn checkout(git_dir: &Path, workdir: Option<PathBuf>, target: &str) -> Result<Checkout, LandError> {
    let head = git_dir.join("HEAD");
    if fs::symlink_metadata(&head).is_ok_and(|meta| meta.is_symlink()) {
        return Err(LandError::refused(
            "symlinked_head",
            format!("`{}` is a symbolic link", head.display()),
        ));
    }
    let text = fs::read_to_string(&head).map_err(io_at("read", &head))?;
    let follows = text.trim_end().strip_prefix("ref: ") == Some(target);
    Ok(Checkout {
        git_dir: git_dir.to_owned(),
        workdir,
        follows,
        index_only: BTreeSet::new(),
        staged_before: BTreeSet::new(),
    })
}

/// What git has under way in a checkout that is to end on the branch, or would carry the change off.
pub(crate) fn operation(checkout: &Checkout, target: &str) -> Option<Obstacle> {
    const OF_HEAD: [(&str, &str); 6] = [
        ("MERGE_HEAD", "a merge"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase, or applying a mailbox"),
        ("sequencer", "a cherry-pick or a revert"),
    ];
    const NAMING: [(&str, &str); 4] = [
        ("rebase-merge/head-name", "a rebase"),
        ("rebase-merge/update-refs", "a rebase"),
        ("rebase-apply/head-name", "a rebase"),
        ("BISECT_START", "a bisection"),
    ];
    let short = target.strip_prefix("refs/heads/").unwrap_or(target);
    let names = |file: &str| {
        let text = fs::read(checkout.git_dir.join(file)).unwrap_or_default();
        let mut lines = text.split(|b| *b == b'\n');
        lines.any(|line| line == target.as_bytes() || line == short.as_bytes())
    };
    let exists = |file: &str| checkout.git_dir.join(file).exists();
    let here = OF_HEAD
        .iter()
        .find(|(file, _)| checkout.follows && exists(file));
    let found = here.or_else(|| NAMING.iter().find(|(file, _)| names(file)));
    found.map(|(_, what)| Obstacle::Operation {
        git_dir: checkout.git_dir.clone(),
        what: (*what).to_owned(),
    })
}

fn plain_mode(mode: u32) -> u32 {
    // Old repositories hold group-writable files; git has treated them as plain ever since.
    if mode == 0o100_664 { MODE_FILE } else { mode }
}

fn side(path: &RepoPath, item: Option<TreeItem>) -> Result<Option<Entry>, LandError> {
    let Some((oid, mode)) = item else {
        return Ok(None);
    };
    match plain_mode(mode) {
        mode @ (MODE_FILE | MODE_EXECUTABLE | MODE_LINK | MODE_COMMIT) => Ok(Some(Entry {
            oid: oid.into(),
            mode,
            written: None,
        })),
        mode => Err(LandError::refused(
            "bad_path",
            format!("`{path}` has the mode {mode:o}, which git does not know"),
        )),
    }
}

/// A file in the place of a submodule's work tree would have to remove what is in there.
fn refuse_changed_kind(change: &Change) -> Result<(), LandError> {
    let (Some(old), Some(new)) = (&change.old, &change.new) else {
        return Ok(());
    };
    if (old.mode == MODE_COMMIT) == (new.mode == MODE_COMMIT) {
        return Ok(());
    }
    let path = &change.path;
    Err(LandError::refused(
        "submodule",
        format!(
            "`{path}` is a file on one side and a submodule on the other; remove it in one run and add it in another"
        ),
    ))
}
