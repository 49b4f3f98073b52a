//! Submodules of a tree: the commit that `git add` would record for each.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

use git2::{Index, IndexEntry, IndexTime, Repository, RepositoryOpenFlags, StatusOptions};
use workerctl_landing::open::open;
use workerctl_landing::{damaged_object, remove_derived};

use crate::error::{TreeError, git};
use crate::known::{MODE_COMMIT, raw};
use crate::model::{PathChange, ResultProblem};
use crate::place::open_root;
use crate::problems;
use crate::rule_files::RuleBounds;
use crate::small::{damage, is_sound_index};

/// Largest file of settings of a submodule, in bytes.
const SETTINGS_MAX: u64 = 1 << 20;

/// What the index of the small repository says of submodules and merges.
#[derive(Debug, Default)]
pub(crate) struct IndexedLinks {
    /// The submodules; `None` where the index is as it was made, or cannot be read: then the base says it.
    links: Option<BTreeMap<Vec<u8>, git2::Oid>>,
    /// Whether it has sides of a merge.
    pub(crate) is_unmerged: bool,
}

impl IndexedLinks {
    pub(crate) fn read(git_dir: &Path) -> Self {
        let path = git_dir.join("index");
        // A check or hook may have written it since the repository was looked at.
        let is_sound = open_root(git_dir).is_ok_and(|dir| is_sound_index(dir.as_fd(), b"index"));
        let Some(index) = is_sound.then(|| Index::open(&path).ok()).flatten() else {
            return Self::default();
        };
        let is_link = |entry: &IndexEntry| entry.mode == MODE_COMMIT && entry.flags & 0x3000 == 0;
        let links = index.iter().filter(is_link);
        Self {
            links: Some(links.map(|entry| (entry.path, entry.id)).collect()),
            is_unmerged: index.has_conflicts(),
        }
    }

    /// The commit that is recorded for a path; `base` is that of the base.
    pub(crate) fn recorded(&self, path: &[u8], base: Option<git2::Oid>) -> Option<git2::Oid> {
        match &self.links {
            Some(links) => links.get(path).copied(),
            None => base,
        }
    }
}

/// What lies in the directory of a submodule.
pub(crate) enum SubmoduleState {
    /// No repository: what git takes for a submodule that is not checked out, whatever else is there.
    NotCheckedOut,
    /// A repository.
    At {
        commit: git2::Oid,
        /// Whether there are files that git does not follow.
        has_untracked: bool,
    },
    Refused(ResultProblem),
}

/// Looks at the work tree of a submodule at `place`. Its repository lies in it, or in that of the tree.
pub(crate) fn look(
    (place, path): (&Path, &[u8]),
    tree: &Path,
    base: Option<git2::Oid>,
) -> Result<SubmoduleState, TreeError> {
    let dot = place.join(".git");
    let Ok(found) = fs::symlink_metadata(&dot) else {
        return Ok(SubmoduleState::NotCheckedOut);
    };
    let refused = |why: &str| Ok(SubmoduleState::Refused(problems::submodule(path, why)));
    let broken = if found.is_file() {
        let own = tree.join(".git").canonicalize().ok();
        let is_short = found.len() < 10_000;
        let text = is_short.then(|| fs::read_to_string(&dot).ok()).flatten();
        let text = text.unwrap_or_default();
        let inner = text.trim_end().strip_prefix("gitdir: ");
        let inner = inner.and_then(|inner| place.join(inner).canonicalize().ok());
        let is_inside = inner
            .zip(own)
            .is_some_and(|(inner, own)| inner.starts_with(own));
        if is_inside {
            damage(tree)?
        } else {
            Some("it is outside of the tree".to_owned())
        }
    } else {
        damage(place)?
    };
    if let Some(why) = broken {
        return refused(&why);
    }
    if let Err(why) = make_readable(place) {
        return refused(&why);
    }
    let flags = RepositoryOpenFlags::NO_SEARCH;
    let repo = match open(place, flags, "open a submodule") {
        Ok(repo) => repo,
        Err(error) => return refused(&error.to_string()),
    };
    let is_here = |workdir: &Path| workdir.canonicalize().ok() == place.canonicalize().ok();
    if !repo.workdir().is_some_and(is_here) {
        return refused("its work tree is elsewhere");
    }
    let Some(commit) = repo.head().ok().and_then(|head| head.target()) else {
        return refused("it has no commit");
    };
    let mut options = StatusOptions::new();
    options.include_untracked(true).exclude_submodules(true);
    let statuses = match repo.statuses(Some(&mut options)) {
        Ok(statuses) => statuses,
        Err(error) => return refused(error.message()),
    };
    let untracked = git2::Status::WT_NEW;
    if statuses.iter().any(|found| found.status() != untracked) {
        return Ok(SubmoduleState::Refused(problems::submodule_dirty(path)));
    }
    if Some(commit) != base && !is_published(&repo, commit) {
        return Ok(SubmoduleState::Refused(problems::submodule_unpublished(
            path,
            &commit.to_string(),
        )));
    }
    Ok(SubmoduleState::At {
        commit,
        has_untracked: !statuses.is_empty(),
    })
}

/// Prepares the repository of a submodule, which a command has written, so that the git library can read it: it would
/// follow settings that name other files, wait for a FIFO in the work tree, believe a commit graph, and read a damaged object in
/// an endless loop.
fn make_readable(place: &Path) -> Result<(), String> {
    let dot = place.join(".git");
    let git_dir = if dot.is_dir() {
        dot
    } else {
        let text = fs::read_to_string(&dot).unwrap_or_default();
        let inner = text.trim_end().strip_prefix("gitdir: ");
        place.join(inner.unwrap_or_default())
    };
    let read = |name: &str| {
        let path = git_dir.join(name);
        let length = fs::symlink_metadata(&path).map_or(0, |found| found.len());
        if length > SETTINGS_MAX {
            return Err(format!("its `{name}` is too large"));
        }
        Ok(fs::read(&path).unwrap_or_default())
    };
    for name in ["config", "config.worktree"] {
        let mut text = read(name)?.to_ascii_lowercase();
        text.retain(|byte| !byte.is_ascii_whitespace());
        let text = String::from_utf8_lossy(&text);
        let others = ["[include", "excludesfile", "attributesfile"];
        if let Some(other) = others.iter().find(|other| text.contains(*other)) {
            let why = "which may lead to other files";
            return Err(format!("its `{name}` has `{other}`, {why}"));
        }
    }
    if git_dir.join("commondir").exists() {
        return Err("it shares the repository of another work tree".to_owned());
    }
    let mut bounds = RuleBounds::default();
    for name in ["info/exclude", "info/attributes"] {
        if let Some(problem) = bounds.check(name.as_bytes(), &read(name)?) {
            return Err(problem.message);
        }
    }
    let root = open_root(place).map_err(|error| error.to_string())?;
    if let Some(why) = bounds.check_below(root.as_fd(), &mut Vec::new()) {
        return Err(why);
    }
    remove_derived(&git_dir).map_err(|error| error.to_string())?;
    if git_dir.join("objects/info/alternates").exists() {
        return Err("it borrows objects from another repository".to_owned());
    }
    damaged_object(&git_dir).map_or(Ok(()), Err)
}

/// Whether a remote has a commit, as far as the repository knows: its own goes with the tree.
fn is_published(repo: &Repository, commit: git2::Oid) -> bool {
    let tips = repo.references_glob("refs/remotes/*").into_iter().flatten();
    let mut tips = tips.flatten().filter_map(|tip| tip.target());
    tips.any(|tip| tip == commit || repo.graph_descendant_of(tip, commit).unwrap_or(false))
}

/// Records the submodules of a result in an index; says whether there were any.
pub(crate) fn record(git_dir: &Path, changes: &[PathChange]) -> Result<bool, TreeError> {
    let is_link = |change: &&PathChange| {
        let mut sides = [&change.old, &change.new].into_iter().flatten();
        sides.any(|entry| entry.mode == MODE_COMMIT)
    };
    let mut links = changes.iter().filter(is_link).peekable();
    if links.peek().is_none() {
        return Ok(false);
    }
    let fail = git("record the submodules of the result");
    let mut index = Index::open(&git_dir.join("index")).map_err(&fail)?;
    for change in links {
        match &change.new {
            Some(new) if new.mode == MODE_COMMIT => index.add(&IndexEntry {
                ctime: IndexTime::new(0, 0),
                mtime: IndexTime::new(0, 0),
                dev: 0,
                ino: 0,
                mode: MODE_COMMIT,
                uid: 0,
                gid: 0,
                file_size: 0,
                id: raw(&new.oid),
                flags: 0,
                flags_extended: 0,
                path: change.path.as_bytes().to_vec(),
            }),
            _ => index.remove(change.path.as_path(), 0),
        }
        .map_err(&fail)?;
    }
    index.write().map_err(fail)?;
    Ok(true)
}
