//! What has to hold before a run works in a checkout, and what of the index is put back after it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use git2::{Index, IndexEntry, Repository};
use rustix::fs::Stat;
use workerctl_landing::ids::RepoPath;
use workerctl_landing::{Entries, EntryStat, IndexSnapshot as Indexed};

use super::files::{Files, PathContent};
use super::scope::Scope;
use super::{InPlace, RACY_NS, item_of};
use crate::error::{TreeError, git, io_at};
use crate::forms::Rules;
use crate::known::{FileStamp, Item};
use crate::model::{CheckoutState, PathChange};
use crate::problems::escape;
use crate::result::operation;

/// Paths that a message names.
const NAMED_MAX: usize = 5;

/// `HEAD` is to be on the branch, and git to have nothing under way.
pub(super) fn refuse_elsewhere(repo: &Repository, target: &str) -> Result<(), TreeError> {
    let short = |name: &str| name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
    let head = repo.find_reference("HEAD").map_err(git("read `HEAD`"))?;
    let found = match head.symbolic_target_bytes() {
        Some(name) if name == target.as_bytes() => None,
        Some(name) => Some(format!(
            "that is `{}`",
            short(&String::from_utf8_lossy(name))
        )),
        None => Some("`HEAD` is detached".to_owned()),
    };
    let branch = short(target);
    if let Some(found) = found {
        return Err(TreeError::Checkout {
            code: "other_branch",
            message: format!(
                "`in_place` works on the branch that is checked out: {found}, and the run is for `{branch}`"
            ),
            hint: format!(
                "check it out with `git switch {branch}`, or let the skill work in a `worktree`"
            ),
        });
    }
    match operation(repo.path()) {
        None => Ok(()),
        Some(problem) => Err(TreeError::Checkout {
            code: "operation",
            message: problem
                .message
                .replace("the run left", "in the checkout there is"),
            hint: "complete or abort it; `git status` says how".to_owned(),
        }),
    }
}

/// Refuses by name what is not clean; answers what else was there, and notes what was found clean.
pub(super) fn look(
    held: &mut InPlace,
    rules: &Rules,
    Indexed { index, written, .. }: &Indexed,
    scope: &Scope,
    tree: git2::Oid,
) -> Result<CheckoutState, TreeError> {
    let repo = rules.repo();
    let files = Files::open(&held.workdir, repo.path(), rules)?;
    let written = written.as_ref().map_or(0, MetadataExt::mtime);
    let tracked = scope.tracked(repo, tree)?;
    let walked = scope.walk(files.root(), rules, &tracked)?;
    let mut state = CheckoutState {
        directories: walked.directories,
        nested: walked.nested,
        absent: Vec::new(),
    };
    let staged = staged(index, scope);
    let mut paths: BTreeSet<&[u8]> = walked.files.iter().map(Vec::as_slice).collect();
    paths.extend(walked.unreadable.iter().map(Vec::as_slice));
    let named = tracked.items.keys().chain(&staged).chain(&scope.outputs);
    paths.extend(named.map(Vec::as_slice));
    // The moment at which the small repository was written, by the clock that stamps files.
    let made = rustix::fs::stat(held.objects.join("objects/info/alternates"));
    let made = made.map_err(io_at("look at", &held.objects))?;
    let believed_before = FileStamp::of(&made).modified_ns - RACY_NS;
    let mut dirty = Vec::new();
    for path in paths {
        refuse_filtered(rules, path)?;
        if tracked.submodules.contains(path) {
            continue;
        }
        let former = tracked.items.get(path).copied();
        let entry = index.get(path);
        let why = match (is_noted(entry, former), former) {
            _ if tracked.is_in_submodule(path) => Some("lies in a submodule"),
            (true, _) => None,
            (false, None) => Some("is staged"),
            (false, Some(_)) => Some("is changed in the index"),
        };
        if let Some(why) = why {
            dirty.push((path, why));
            continue;
        }
        let stat = files.stat(path);
        let is_sparse = entry.is_some_and(EntryStat::is_skipped);
        if is_sparse && stat.is_none() {
            state.absent.extend(RepoPath::from_bytes(path));
            continue;
        }
        let is_noted = entry.zip(stat).is_some_and(|(entry, stat)| {
            let former_mode = former.map(Item::plain_mode);
            has_noted(entry, written, &stat) && former_mode == Some(files.mode(&stat, former))
        });
        if !is_noted && let Some(why) = differs(&files, rules, path, former)? {
            dirty.push((path, why));
        } else if let (Some(item), Some(stat)) = (former, stat)
            && FileStamp::of(&stat).changed_ns < believed_before
        {
            held.clean
                .insert(path.to_vec(), (FileStamp::of(&stat), item));
        }
    }
    for output in &scope.outputs {
        above(&files, output, &mut state.directories);
    }
    if dirty.is_empty() {
        Ok(state)
    } else {
        Err(not_clean(&dirty))
    }
}

/// Entries that the patterns match. Outputs are looked up one by one: an index can hold many entries.
fn staged(index: &Entries, scope: &Scope) -> BTreeSet<Vec<u8>> {
    let paths = scope.has_patterns().then(|| index.beginning_with(b""));
    let own = paths.into_iter().flatten().filter(|path| scope.owns(path));
    own.map(<[u8]>::to_vec).collect()
}

/// What keeps a path from being clean.
fn differs(
    files: &Files<'_>,
    rules: &Rules,
    path: &[u8],
    former: Option<Item>,
) -> Result<Option<&'static str>, TreeError> {
    let seen = files.observe(path, former)?;
    let is_ignored = || rules.is_ignored(Path::new(OsStr::from_bytes(path)));
    Ok(match (&seen, former) {
        (PathContent::Blocked(_), _) => Some("lies behind a link, a file or another repository"),
        (PathContent::Unreadable, _) => Some("cannot be read"),
        (PathContent::Absent, None) => None,
        (PathContent::Item(..), None) if is_ignored()? => None,
        (_, None) => Some("is there already and not committed"),
        (PathContent::Absent, Some(_)) => Some("is deleted"),
        (PathContent::Item(item, ..), Some(former)) if item.is_same(former) => None,
        (_, Some(_)) => Some("is changed"),
    })
}

/// Notes the directories above a path that are there.
fn above(files: &Files<'_>, path: &[u8], into: &mut Vec<RepoPath>) {
    for (cut, _) in path.iter().enumerate().filter(|(_, b)| **b == b'/') {
        let dir = path.get(..cut).unwrap_or_default();
        if files.stat(dir).is_none() {
            return;
        }
        if let Ok(dir) = RepoPath::from_bytes(dir)
            && !into.contains(&dir)
        {
            into.push(dir);
        }
    }
}

fn not_clean(dirty: &[(&[u8], &'static str)]) -> TreeError {
    let named = dirty.iter().take(NAMED_MAX);
    let mut named: Vec<String> = named
        .map(|(path, why)| format!("`{}` {why}", escape(path)))
        .collect();
    if dirty.len() > NAMED_MAX {
        named.push(format!("and {} more", dirty.len() - NAMED_MAX));
    }
    TreeError::Checkout {
        code: "not_clean",
        message: format!(
            "what the run may write has to be clean when it starts: {}",
            named.join(", ")
        ),
        hint: "commit it, move it away, or put it aside with `git stash push -u -- PATH`"
            .to_owned(),
    }
}

fn refuse_filtered(rules: &Rules, path: &[u8]) -> Result<(), TreeError> {
    let Ok(place) = RepoPath::from_bytes(path) else {
        return Ok(());
    };
    match rules.filter_of_result(&place)? {
        None => Ok(()),
        Some(attribute) => Err(TreeError::Checkout {
            code: "filtered",
            message: format!(
                "`{place}` has the attribute `{attribute}`, which is not applied to a result"
            ),
            hint: "leave it out of what the run may write, or take the attribute off".to_owned(),
        }),
    }
}

/// Whether the index holds what the commit does.
fn is_entry(entry: Option<&IndexEntry>, former: Option<Item>) -> bool {
    match (entry, former) {
        (None, None) => true,
        (Some(entry), Some(former)) => {
            let held = Item {
                oid: entry.id,
                mode: entry.mode,
            };
            held.is_same(former)
        }
        _ => false,
    }
}

/// The same of an entry of an index that was read here.
fn is_noted(noted: Option<&EntryStat>, former: Option<Item>) -> bool {
    match (noted, former) {
        (None, None) => true,
        (Some(noted), Some(former)) => {
            let (oid, mode) = (noted.oid, noted.mode);
            Item { oid, mode }.is_same(former)
        }
        _ => false,
    }
}

/// Whether an entry has noted these stat data, clearly before the index was written. Git's usual builds
/// compare whole seconds.
fn has_noted(noted: &EntryStat, written: i64, stat: &Stat) -> bool {
    noted.is_looked_at()
        && noted.is_of(stat)
        && i64::from(noted.modified.0) == stat.st_mtime
        && i64::from(noted.changed.0) == stat.st_ctime
        && stat.st_mtime < written
        && stat.st_ctime < written
}

/// Takes what the run has staged out of the index again; names what cannot be taken out.
pub(super) fn unstage(
    repo: &Repository,
    changes: &[(&PathChange, Option<Item>)],
) -> Vec<(RepoPath, String)> {
    let try_to = || -> Result<(), git2::Error> {
        // That of the handle is not the whole one.
        let mut index = Index::open(&repo.path().join("index"))?;
        let mut is_changed = false;
        for (change, item) in changes {
            is_changed |= unstage_one(&mut index, change, *item)?;
        }
        if is_changed { index.write() } else { Ok(()) }
    };
    let Err(error) = try_to() else {
        return Vec::new();
    };
    let first = changes.first().map(|(change, _)| change.path.clone());
    let why = format!(
        "what is staged of it could not be taken out of the index: {}",
        error.message()
    );
    first.map(|path| (path, why)).into_iter().collect()
}

fn unstage_one(
    index: &mut Index,
    change: &PathChange,
    item: Option<Item>,
) -> Result<bool, git2::Error> {
    let path = change.path.as_path();
    let entry = index.get_path(path, 0);
    let left = change.new.as_ref().map(item_of);
    if is_entry(entry.as_ref(), item) || !is_entry(entry.as_ref(), left) {
        return Ok(false);
    }
    match item {
        None => index.remove(path, 0)?,
        Some(item) => index.add(&IndexEntry {
            ctime: git2::IndexTime::new(0, 0),
            mtime: git2::IndexTime::new(0, 0),
            dev: 0,
            ino: 0,
            mode: item.mode,
            uid: 0,
            gid: 0,
            file_size: 0,
            id: item.oid,
            flags: 0,
            flags_extended: 0,
            path: change.path.as_bytes().to_vec(),
        })?,
    }
    Ok(true)
}
