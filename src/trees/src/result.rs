//! From what the walk found to a result: where `HEAD` is, commits, the tree object.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use git2::{ErrorCode, ObjectType, Repository, Sort};
use workerctl_landing::ids::{Oid, RepoPath};
use workerctl_landing::{beyond_bounds, borrowed_objects};

use crate::error::{TreeError, git, git_write, io_at};
use crate::keep::Keep;
use crate::known::{Item, MODE_COMMIT, MODE_LINK, Manifest, empty_tree, raw};
use crate::look::{ChangedPath, HeadChanges};
use crate::model::{HeadState, PathChange, ResultProblem, Start};
use crate::problems;
use crate::rule_files::{RuleBounds, is_rule_file};

/// Commits that are told.
const COMMITS_MAX: usize = 100;

/// Where `HEAD` is, and what the run committed.
pub(crate) struct Commits {
    pub(crate) head: HeadState,
    pub(crate) made: Vec<Oid>,
    pub(crate) count: u64,
    pub(crate) is_unrelated: bool,
    /// Why `HEAD` or its branch says nothing.
    pub(crate) unreadable: Option<String>,
}

impl Commits {
    /// Nothing that can be told, because `HEAD` is somewhere else.
    pub(crate) fn moved(found: String) -> Self {
        Self {
            head: HeadState::Moved { found },
            made: Vec::new(),
            count: 0,
            is_unrelated: false,
            unreadable: None,
        }
    }

    fn unreadable(what: String) -> Self {
        Self {
            unreadable: Some(what.clone()),
            ..Self::moved(what)
        }
    }

    pub(crate) fn read(repo: &Repository, start: &Start) -> Result<Self, TreeError> {
        let head = repo.path().join("HEAD");
        let text = match fs::read_to_string(&head) {
            Ok(text) => text,
            Err(e) => return Ok(Self::unreadable(format!("`HEAD` cannot be read: {e}"))),
        };
        let text = text.trim_end();
        if !text.starts_with("ref: ") && text.parse::<Oid>().is_err() {
            return Ok(Self::unreadable("`HEAD` holds no reference".to_owned()));
        }
        if text.strip_prefix("ref: ").map(str::trim) != Some(start.target.as_str()) {
            let found = text.strip_prefix("ref: ").unwrap_or(text);
            return Ok(Self::moved(found.chars().take(300).collect()));
        }
        let tip = match repo.find_reference(&start.target) {
            Err(e) if e.code() == ErrorCode::NotFound => None,
            Err(e) => return Ok(Self::unreadable(format!("`{}`: {e}", start.target))),
            Ok(found) => match found.target() {
                None => {
                    let target =
                        String::from_utf8_lossy(found.symbolic_target_bytes().unwrap_or_default());
                    return Ok(Self::moved(format!("{} -> {target}", start.target)));
                }
                tip => tip,
            },
        };
        let mut commits = Self {
            head: HeadState::OnTarget {
                commit: tip.map(Oid::from),
            },
            made: Vec::new(),
            count: 0,
            is_unrelated: false,
            unreadable: None,
        };
        let base = start.base.as_ref().map(raw);
        if tip == base {
            return Ok(commits);
        }
        let Some(tip) = tip else {
            commits.is_unrelated = true;
            return Ok(commits);
        };
        let fail = git("read the commits of the run");
        let known = borrowed_objects(repo.path()).map_err(&fail)?;
        if let Some(what) = beyond_bounds(repo, &known, tip).map_err(&fail)? {
            return Ok(Self::unreadable(what));
        }
        if let Some(base) = base {
            commits.is_unrelated = !repo.graph_descendant_of(tip, base).map_err(&fail)?;
        }
        let mut walk = repo.revwalk().map_err(&fail)?;
        walk.set_sorting(Sort::TOPOLOGICAL).map_err(&fail)?;
        walk.push(tip).map_err(&fail)?;
        if let Some(base) = base {
            walk.hide(base).map_err(&fail)?;
        }
        for commit in walk {
            let commit = commit.map_err(&fail)?;
            commits.count += 1;
            if commits.made.len() < COMMITS_MAX {
                commits.made.push(commit.into());
            }
        }
        commits.made.reverse();
        Ok(commits)
    }

    /// Returns what the run's commits change, merged ones included: from the base's tree to that of `HEAD`.
    pub(crate) fn changes(
        &self,
        repo: &Repository,
        start: &Start,
    ) -> Result<HeadChanges, TreeError> {
        let HeadState::OnTarget { commit: Some(head) } = &self.head else {
            return Ok(HeadChanges::default());
        };
        if self.count == 0 {
            return Ok(HeadChanges::default());
        }
        let fail = git("compare the commits of the run");
        let find = |tree: git2::Oid| repo.find_tree(tree).map_err(&fail);
        let base = raw(&start.tree);
        let base = (base != empty_tree()).then(|| find(base)).transpose()?;
        let head = find(tree_of(repo, Some(head))?)?;
        let diff = repo.diff_tree_to_tree(base.as_ref(), Some(&head), None);
        let diff = diff.map_err(&fail)?;
        let item = |file: git2::DiffFile<'_>| {
            let (oid, mode) = (file.id(), u32::from(file.mode()));
            file.exists().then_some(Item { oid, mode })
        };
        let mut changes = HeadChanges::default();
        for delta in diff.deltas() {
            let (old, new) = (item(delta.old_file()), item(delta.new_file()));
            let path = delta.new_file().path_bytes().map(<[u8]>::to_vec);
            let Some(path) = path else { continue };
            let blob = new.and_then(|new| repo.find_blob(new.oid).ok());
            let bytes = blob.map_or(0, |blob| blob.size() as u64);
            changes.insert(path, ChangedPath { old, new, bytes });
        }
        Ok(changes)
    }
}

/// Returns paths that the run's commits have and its base has not. They belong to the result whether git ignores them
/// or not: a commit on top that left them out would delete them.
pub(crate) fn added(changes: &HeadChanges) -> BTreeSet<Vec<u8>> {
    let added = changes.iter().filter(|(_, change)| change.old.is_none());
    added.map(|(path, _)| path.clone()).collect()
}

/// Refuses commits of the run that track a file below a kept path: the walk passes such paths over.
pub(crate) fn kept_is_tracked(keep: &Keep, changes: &HeadChanges) -> Option<ResultProblem> {
    let mut tracked = changes.iter().filter(|(_, change)| change.new.is_some());
    let (path, _) = tracked.find(|(path, _)| keep.stays(path))?;
    Some(problems::kept_is_tracked(path))
}

/// Refuses rule files that the git library must not read in a checkout either.
///
/// The walk has checked the files of the tree; the others come from commits of the run.
pub(crate) fn changed_rules(
    repo: Option<&Repository>,
    changes: &BTreeMap<Vec<u8>, ChangedPath>,
) -> Result<Option<ResultProblem>, TreeError> {
    let Some(repo) = repo else { return Ok(None) };
    let mut bounds = RuleBounds::default();
    for (path, change) in changes {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let Some(new) = change
            .new
            .filter(|new| is_rule_file(name) && new.mode != MODE_COMMIT)
        else {
            continue;
        };
        let problem = if new.mode == MODE_LINK {
            Some(problems::rule_file(path, None, "is a symbolic link"))
        } else {
            let blob = repo.find_blob(new.oid);
            let blob = blob.map_err(git("read a file of the result"))?;
            bounds.check(path, blob.content())
        };
        if problem.is_some() {
            return Ok(problem);
        }
    }
    Ok(None)
}

/// The tree of a commit; the empty one before the first commit.
pub(crate) fn tree_of(repo: &Repository, commit: Option<&Oid>) -> Result<git2::Oid, TreeError> {
    let Some(commit) = commit else {
        return Ok(empty_tree());
    };
    let commit = repo.find_commit(raw(commit));
    commit
        .map(|commit| commit.tree_id())
        .map_err(git("read the commit of the base"))
}

/// What git has under way in the small repository.
pub(crate) fn operation(git_dir: &Path) -> Option<ResultProblem> {
    const UNDER_WAY: [(&str, &str); 7] = [
        ("MERGE_HEAD", "a merge"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase"),
        ("sequencer", "a cherry-pick or a revert"),
        ("BISECT_START", "a bisection"),
    ];
    let found = UNDER_WAY
        .iter()
        .find(|(file, _)| git_dir.join(file).exists());
    found.map(|(_, what)| problems::operation(what))
}

/// The changes as they are told.
pub(crate) fn told(changes: &BTreeMap<Vec<u8>, ChangedPath>) -> Result<Vec<PathChange>, TreeError> {
    let one = |(path, seen): (&Vec<u8>, &ChangedPath)| {
        let path = RepoPath::from_bytes(path)
            .map_err(|e| io_at("use the name", Path::new("."))(std::io::Error::other(e)))?;
        Ok(PathChange {
            path,
            old: seen.old.map(Item::entry),
            new: seen.new.map(Item::entry),
            bytes: seen.bytes,
        })
    };
    changes.iter().map(one).collect()
}

/// New paths that differ from another path of the result in case alone.
pub(crate) fn case_collisions(
    manifest: &Manifest,
    changes: &BTreeMap<Vec<u8>, ChangedPath>,
) -> Vec<ResultProblem> {
    let added = || {
        changes
            .iter()
            .filter(|(_, seen)| seen.old.is_none() && seen.new.is_some())
    };
    if added().next().is_none() {
        return Vec::new();
    }
    let fold = |path: &[u8]| String::from_utf8_lossy(path).to_lowercase();
    let mut held: HashMap<String, &[u8]> = HashMap::new();
    for known in manifest.known.iter().filter(|known| known.base.is_some()) {
        if changes
            .get(&known.path)
            .is_none_or(|seen| seen.new.is_some())
        {
            held.insert(fold(&known.path), &known.path);
        }
    }
    let mut found = Vec::new();
    for (path, _) in added() {
        match held.insert(fold(path), path) {
            Some(other) if other != path.as_slice() => {
                found.push(problems::case_collision(path, other));
            }
            _ => {}
        }
    }
    found
}

/// One level of the tree that is built: what changes at a name itself, and below it.
#[derive(Default)]
struct Level<'a> {
    is_named: bool,
    own: Option<Item>,
    below: Vec<(&'a [u8], Option<Item>)>,
}

/// Writes the tree that the changes make of a former one; `None` where nothing is left.
pub(crate) fn build_tree(
    repo: &Repository,
    former: Option<git2::Oid>,
    changes: &[(&[u8], Option<Item>)],
) -> Result<Option<git2::Oid>, TreeError> {
    let fail = git_write("write a tree into the run's repository", repo.path());
    let mut levels: BTreeMap<&[u8], Level<'_>> = BTreeMap::new();
    for (path, new) in changes {
        match path.iter().position(|b| *b == b'/') {
            None => {
                let level = levels.entry(path).or_default();
                (level.is_named, level.own) = (true, *new);
            }
            Some(cut) => {
                let (name, rest) = path.split_at(cut);
                let below = &mut levels.entry(name).or_default().below;
                below.push((rest.get(1..).unwrap_or_default(), *new));
            }
        }
    }
    let former = former
        .map(|oid| repo.find_tree(oid))
        .transpose()
        .map_err(&fail)?;
    let mut builder = repo.treebuilder(former.as_ref()).map_err(&fail)?;
    for (name, level) in levels {
        let held = builder.get(name).map_err(&fail)?;
        let inner = held.filter(|entry| entry.kind() == Some(ObjectType::Tree));
        let inner = inner.map(|entry| entry.id());
        let mut item = level.own;
        let mut is_changed = level.is_named;
        if !level.below.is_empty() {
            let tree = build_tree(repo, inner, &level.below)?;
            // What is below a name and the name itself cannot both be there; the caller's paths say so.
            item = item.or(tree.map(|oid| Item {
                oid,
                mode: 0o040_000,
            }));
            is_changed = true;
        }
        match item {
            Some(item) => {
                let mode = i32::try_from(item.mode).unwrap_or(0o100_644);
                builder.insert(name, item.oid, mode).map_err(&fail)?;
            }
            None if is_changed && builder.get(name).map_err(&fail)?.is_some() => {
                builder.remove(name).map_err(&fail)?;
            }
            None => {}
        }
    }
    if builder.is_empty() {
        return Ok(None);
    }
    builder.write().map(Some).map_err(fail)
}
