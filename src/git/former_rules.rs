//! Which files the rules of before a run would have ignored.
//!
//! A run that edits `.gitignore` can hide what it made. So the rules are kept as they were: those that are
//! part of the baseline's tree lie there, those that ignore themselves and `info/exclude` are recorded.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use git2::{Repository, TreeWalkMode, TreeWalkResult};
use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

use super::baseline::Baseline;
use super::beneath::{Observed, Worktree};
use super::durable::temporary_name;
use super::error::{GitError, git, io_at};
use super::exclusions::Exclusions;
use super::ids::{RepoPath, RunId};
use super::open::{Handle, Head};
use super::refs::Kept;
use super::snapshot::{Candidate, size};
use super::tree::{MODE_LINK, entry_at};

/// The name of a file of rules.
pub(super) const RULES: &[u8] = b".gitignore";

/// Most files, and most bytes of them, that a run may hide and have put back: an installed tree of packages
/// would be copied into the repository otherwise.
const FILES_MAX: usize = 1_000;
const BYTES_MAX: u64 = 32 << 20;

/// What a run has hidden by rules of its own, as far as it can be put back.
#[derive(Default)]
pub(super) struct Found {
    pub(super) candidates: Vec<Candidate>,
    /// Where there is more than is recorded: what it lies in, at the top of the work tree.
    pub(super) too_many_in: Vec<RepoPath>,
}

impl Found {
    /// Keeps only what the baseline has where there is too much.
    fn bounded(mut self, before: &git2::Tree<'_>) -> Result<Self, GitError> {
        let bytes = self.candidates.iter().map(|c| match &c.observed {
            Observed::File(stat) => size(stat),
            _ => 0,
        });
        if self.candidates.len() <= FILES_MAX && bytes.sum::<u64>() <= BYTES_MAX {
            return Ok(self);
        }
        let mut kept = Vec::new();
        for candidate in self.candidates {
            if entry_at(Some(before), &candidate.path)?.is_some() {
                kept.push(candidate);
            } else if let Some(top) = candidate.path.components().next() {
                self.too_many_in.push(RepoPath::from_bytes(top)?);
            }
        }
        self.too_many_in.sort();
        self.too_many_in.dedup();
        self.candidates = kept;
        Ok(self)
    }
}

/// Whether a path is that of a file of rules.
pub(super) fn is_rules(path: &RepoPath) -> bool {
    path.components().next_back() == Some(RULES)
}

/// Most files of rules that ignore themselves, and most bytes of one, that are recorded.
const HIDDEN_MAX: usize = 200;
const HIDDEN_BYTES_MAX: u64 = 16 << 10;

/// What a run can hide things by, and git does not show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenRules {
    /// The lines of `info/exclude` that say something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    exclude: Vec<String>,
    /// Files of rules that ignore themselves, and what they hold.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, String>,
    /// Whether there are more than are recorded: then nothing is concluded from them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

impl HiddenRules {
    /// Reads them; `paths` are the files of rules that git does not show.
    pub(super) fn read(handle: &Handle, paths: &[RepoPath]) -> Self {
        let exclude = fs::read(handle.repo.commondir().join("info/exclude")).unwrap_or_default();
        let exclude = String::from_utf8_lossy(&exclude);
        let says = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
        let mut rules = Self {
            exclude: exclude.lines().filter(says).map(str::to_owned).collect(),
            files: BTreeMap::new(),
            incomplete: paths.len() > HIDDEN_MAX,
        };
        for path in paths.iter().take(HIDDEN_MAX) {
            let at = handle.workdir().join(path.as_path());
            let is_small = fs::symlink_metadata(&at)
                .is_ok_and(|meta| meta.is_file() && meta.len() <= HIDDEN_BYTES_MAX);
            match (path.as_path().to_str(), fs::read_to_string(&at)) {
                (Some(name), Ok(text)) if is_small => {
                    rules.files.insert(name.to_owned(), text);
                }
                _ => rules.incomplete = true,
            }
        }
        rules
    }
}

/// When a baseline was complete, by the clock of the file system: what changed before is not the run's.
pub(super) fn taken_at(handle: &Handle, run: &RunId) -> Option<(i64, i64)> {
    let kept = handle.repo.commondir().join(Kept::Baseline.name(run));
    let meta = fs::metadata(kept).ok()?;
    Some((meta.mtime(), meta.mtime_nsec()))
}

/// A repository of nothing but rules, removed in the end.
pub(super) struct FormerRules {
    repo: Repository,
    place: PathBuf,
}

impl Drop for FormerRules {
    fn drop(&mut self) {
        // What cannot be removed now is swept with the next lease.
        let _ = fs::remove_dir_all(&self.place);
    }
}

impl FormerRules {
    /// The rules that held for a baseline.
    fn of(handle: &Handle, baseline: &Baseline) -> Result<Self, GitError> {
        let fail = git("read the ignore rules of before the run");
        let place = temporary_name(handle.repo.path());
        let rules = Self {
            repo: Repository::init(&place).map_err(&fail)?,
            place,
        };
        let global = handle
            .repo
            .config()
            .and_then(|config| config.get_path("core.excludesfile"));
        if let (Ok(global), Ok(mut config)) = (global, rules.repo.config()) {
            let path = global.to_string_lossy();
            config.set_str("core.excludesfile", &path).map_err(&fail)?;
        }
        let own = rules.repo.path().join("info/exclude");
        put(&own, baseline.hidden_rules.exclude.join("\n").as_bytes())?;
        for (path, text) in &baseline.hidden_rules.files {
            put(&rules.place.join(path), text.as_bytes())?;
        }
        let mut found = Vec::new();
        let tree = handle.tree(&baseline.tree)?;
        tree.walk(TreeWalkMode::PreOrder, |above, entry| {
            if entry.name_bytes() == RULES
                && entry.filemode() != i32::try_from(MODE_LINK).unwrap_or(0)
            {
                found.push((format!("{above}.gitignore"), entry.id()));
            }
            TreeWalkResult::Ok
        })
        .map_err(&fail)?;
        for (path, oid) in found {
            let blob = handle.repo.find_blob(oid).map_err(&fail)?;
            put(&rules.place.join(path), blob.content())?;
        }
        Ok(rules)
    }

    fn ignores(&self, path: &[u8]) -> Result<bool, GitError> {
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let ignored = self.repo.is_path_ignored(path);
        ignored.map_err(git("read the ignore rules of before the run"))
    }
}

/// What a run has hidden by rules of its own.
pub(super) struct Hidden<'a> {
    pub(super) handle: &'a Handle,
    pub(super) worktree: &'a Worktree,
    pub(super) exclusions: &'a Exclusions,
    pub(super) baseline: &'a Baseline,
    /// What is not looked into at all.
    pub(super) left_out: &'a [RepoPath],
}

impl Hidden<'_> {
    /// Whether commits since the baseline changed files of rules.
    pub(super) fn rules_committed(&self, now: &Head) -> Result<bool, GitError> {
        if self.baseline.head.oid() == now.oid() {
            return Ok(false);
        }
        let then = self.handle.tree_of(self.baseline.head.oid())?;
        let now = self.handle.tree_of(now.oid())?;
        let changed = self.handle.differences(then.as_ref(), now.as_ref())?;
        Ok(changed.iter().any(|change| is_rules(&change.path)))
    }

    /// Files that are ignored now and would not have been: those that the baseline has, and those that
    /// came or changed since. Nothing where the former rules are not known for certain.
    pub(super) fn files(&self) -> Result<Found, GitError> {
        let Some(at) = self.baseline.taken_at else {
            return Ok(Found::default());
        };
        if self.baseline.hidden_rules.incomplete {
            return Ok(Found::default());
        }
        let rules = FormerRules::of(self.handle, self.baseline)?;
        let before = self.handle.tree(&self.baseline.tree)?;
        let index = self.handle.repo.index().map_err(git("read the index"))?;
        // Not a status: that leaves ignored files out where a rule such as `*` covers everything.
        let mut open = self.listed(Path::new(""));
        let mut found = Found::default();
        while let Some(bytes) = open.pop() {
            let is_directory = bytes.ends_with(b"/");
            let Ok(path) = RepoPath::from_bytes(bytes.strip_suffix(b"/").unwrap_or(&bytes)) else {
                continue;
            };
            let left_out = self.left_out.iter().any(|above| path.is_within(above));
            if left_out || self.exclusions.covers(&path) {
                continue;
            }
            if is_directory {
                let known =
                    index.find_prefix(&bytes).is_ok() || before.get_path(path.as_path()).is_ok();
                let is_looked_into = known || !rules.ignores(&bytes)?;
                if is_looked_into && !self.worktree.has_git_inside(&path)? {
                    open.extend(self.listed(path.as_path()));
                }
                continue;
            }
            if index.get_path(path.as_path(), 0).is_some() || !self.is_ignored(&path)? {
                continue;
            }
            let observed = self.worktree.observe(&path)?;
            let is_new = match &observed {
                Observed::File(stat) | Observed::Link(_, stat) => changed_since(stat, at),
                Observed::Absent | Observed::Directory | Observed::Other => continue,
            };
            let had = entry_at(Some(&before), &path)?.is_some();
            if had || (is_new && !rules.ignores(&bytes)?) {
                found.candidates.push(Candidate {
                    filtered: self.handle.is_filtered(&path)?,
                    known_mode: None,
                    untracked: true,
                    staged: false,
                    path,
                    observed,
                });
            }
        }
        found.bounded(&before)
    }

    fn is_ignored(&self, path: &RepoPath) -> Result<bool, GitError> {
        let ignored = self.handle.repo.is_path_ignored(path.as_path());
        ignored.map_err(git("read what is ignored"))
    }

    /// What lies in a directory, directories with a slash behind them.
    fn listed(&self, directory: &Path) -> Vec<Vec<u8>> {
        let listed = fs::read_dir(self.handle.workdir().join(directory));
        let mut found = Vec::new();
        // What may not be listed is not looked at by git either.
        for entry in listed.into_iter().flatten().flatten() {
            if entry.file_name() == ".git" {
                continue;
            }
            let mut path = directory.join(entry.file_name()).into_os_string();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                path.push("/");
            }
            found.push(path.as_bytes().to_vec());
        }
        found
    }
}

fn put(path: &Path, content: &[u8]) -> Result<(), GitError> {
    let fail = || io_at("write", path);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(fail())?;
    }
    fs::write(path, content).map_err(fail())
}

fn changed_since(stat: &Stat, at: (i64, i64)) -> bool {
    (
        stat.st_ctime,
        i64::try_from(stat.st_ctime_nsec).unwrap_or(0),
    ) >= at
}
