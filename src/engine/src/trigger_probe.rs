//! Looks at what schedules wait for that do not follow the clock: the machine's start, files, a branch.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::run_factory::RunFactory;
use crate::git;
use crate::model::diagnostic::chain;
use crate::model::legible::hex;
use crate::model::schedule::{Schedule, Trigger};
use crate::model::{Diagnostic, RunId, Timestamp};

/// Where Linux tells one start of the machine from another.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Most files and directories that one schedule may watch.
const WATCHED_MAX: usize = 100_000;

/// Most runs of which each followed the one before that are looked through.
const FOLLOWED_MAX: usize = 64;

/// What is seen of a branch that is not there.
const NO_BRANCH: &str = "absent";

/// What a schedule waits for, as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProbeResult {
    /// Stands for all of it; another one: it has changed.
    pub(super) seen: String,
    /// Whether what has changed since the last look makes it due.
    pub(super) counts: bool,
    /// When it was changed last, where that is known.
    pub(super) changed_at: Option<Timestamp>,
}

/// A place whose changes are a hint that a schedule may be due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// The schedule.
    pub schedule: String,
    /// A directory or a file; it need not be there.
    pub place: PathBuf,
    /// Whether everything below it belongs to it.
    pub is_deep: bool,
    /// What does not belong to it.
    pub passed_over: Arc<[PathBuf]>,
}

/// Takes the id of a schedule for which something may have changed; refused once the engine has ended.
pub type Hints = Arc<dyn Fn(&str) -> Result<(), Diagnostic> + Send + Sync>;

/// Where changes hint at something, for every schedule that waits for files or a branch.
pub(super) fn watched(factory: &RunFactory) -> Vec<Watched> {
    let catalog = factory.definitions.current();
    let passed_over: Arc<[PathBuf]> = factory.written_by_engine().into();
    let mut watched = Vec::new();
    let mut common: Option<Option<PathBuf>> = None;
    for schedule in catalog.schedules.iter().filter(|one| !one.disabled) {
        let mut add = |place: PathBuf, is_deep| {
            watched.push(Watched {
                schedule: schedule.id.to_string(),
                place,
                is_deep,
                passed_over: Arc::clone(&passed_over),
            });
        };
        match &*schedule.trigger {
            Trigger::Watch { paths, .. } => {
                for begin in beginnings(paths) {
                    add(factory.workspace.join(begin), true);
                }
            }
            Trigger::OnCommit { .. } => {
                let locate = || {
                    git::locate(&factory.workspace)
                        .ok()
                        .map(|facts| facts.common_dir)
                };
                if let Some(common) = common.get_or_insert_with(locate) {
                    add(common.join("refs/heads"), true);
                    // Packed references are replaced here.
                    add(common.clone(), false);
                }
            }
            _ => {}
        }
    }
    watched
}

/// Looks; the error says why nothing can be seen.
pub(super) fn probe(
    factory: &RunFactory,
    schedule: &Schedule,
    seen: Option<&str>,
) -> Result<ProbeResult, String> {
    match &*schedule.trigger {
        Trigger::Reboot => boot(),
        Trigger::Watch { paths, .. } => files(factory, paths),
        Trigger::OnCommit { branch } => commits(factory, &schedule.id, branch, seen),
        Trigger::After { .. }
        | Trigger::Cron { .. }
        | Trigger::Every { .. }
        | Trigger::At { .. } => Err("it waits for nothing that can be looked at".to_owned()),
    }
}

fn boot() -> Result<ProbeResult, String> {
    let id = fs::read_to_string(BOOT_ID).map_err(|error| format!("{BOOT_ID}: {error}"))?;
    Ok(ProbeResult {
        seen: id.trim().to_owned(),
        counts: true,
        changed_at: None,
    })
}

/// The tip of a branch; commits do not count that runs of the schedule made, or runs that commits or changed files
/// led to: two schedules would start each other for ever.
fn commits(
    factory: &RunFactory,
    id: &str,
    branch: &str,
    seen: Option<&str>,
) -> Result<ProbeResult, String> {
    let tip = git::branch_tip(&factory.workspace, branch).map_err(|error| chain(&error))?;
    let Some(tip) = tip else {
        return Ok(ProbeResult {
            seen: NO_BRANCH.to_owned(),
            counts: false,
            changed_at: None,
        });
    };
    let since = seen.and_then(|seen| seen.parse::<git::Oid>().ok());
    let counts = match since {
        Some(since) => git::arrivals(&factory.workspace, &tip, &since)
            .map_err(|error| chain(&error))?
            .iter()
            .any(|run| !is_of_events(factory, id, run.as_deref())),
        // The branch has come to be.
        None => true,
    };
    Ok(ProbeResult {
        seen: tip.to_string(),
        counts,
        changed_at: None,
    })
}

/// Whether a commit's trailer names a run of the schedule, or one that commits or changed files led to. A run that
/// follows others is what the first of them is.
fn is_of_events(factory: &RunFactory, id: &str, run: Option<&str>) -> bool {
    let mut run = run.and_then(|run| run.parse::<RunId>().ok());
    for _ in 0..FOLLOWED_MAX {
        let spec = run.and_then(|run| factory.store.spec(run).ok().flatten());
        let Some(due) = spec.and_then(|spec| spec.scheduled) else {
            return false;
        };
        if due.schedule == id || follows_changes(factory, &due.schedule) {
            return true;
        }
        run = due.after;
    }
    true
}

/// Whether commits or changed files make the schedule of this id due.
fn follows_changes(factory: &RunFactory, id: &str) -> bool {
    let catalog = factory.definitions.current();
    let all = &catalog.schedules;
    let found = all.binary_search_by(|one| (*one.id).cmp(id));
    let trigger = found
        .ok()
        .and_then(|at| all.get(at))
        .map(|one| &*one.trigger);
    matches!(
        trigger,
        Some(Trigger::OnCommit { .. } | Trigger::Watch { .. })
    )
}

/// All files that the patterns name, by their names, sizes and times; no link is followed.
fn files(factory: &RunFactory, paths: &[String]) -> Result<ProbeResult, String> {
    let patterns = git::PathPatterns::new(paths).map_err(|error| chain(&error))?;
    let mut walk = FileWalk {
        root: &factory.workspace,
        passed_over: factory.written_by_engine(),
        patterns,
        visited: 0,
        found: Vec::new(),
    };
    for begin in beginnings(paths) {
        let begin = factory.workspace.join(begin);
        stay_inside(&factory.workspace, &begin)?;
        let own = walk.passed_over.iter().find(|own| begin.starts_with(own));
        if let Some(own) = own {
            let own = own.display();
            return Err(format!(
                "{own} is written by the engine itself, so that changes there never trigger a schedule: watch another directory"
            ));
        }
        walk.visit(&begin)?;
    }
    walk.found.sort_unstable();
    walk.found.dedup();
    let newest = walk.found.iter().map(|file| file.modified_ns).max();
    let mut digest = Sha256::new();
    for file in &walk.found {
        digest.update(file.path.as_bytes());
        digest.update([0]);
        for number in [
            file.modified_ns,
            i128::from(file.inode),
            i128::from(file.bytes),
        ] {
            digest.update(number.to_be_bytes());
        }
    }
    let millis = newest.map(|ns| i64::try_from(ns / 1_000_000).unwrap_or(i64::MAX));
    Ok(ProbeResult {
        seen: hex(&digest.finalize()),
        counts: true,
        changed_at: millis.map(Timestamp::from_millis),
    })
}

/// A link on the way may lead out of the workspace.
fn stay_inside(workspace: &Path, begin: &Path) -> Result<(), String> {
    let (Ok(real), Ok(root)) = (fs::canonicalize(begin), fs::canonicalize(workspace)) else {
        // What is not there leads nowhere.
        return Ok(());
    };
    if real.starts_with(&root) {
        return Ok(());
    }
    Err(format!("{} leads out of the workspace", begin.display()))
}

/// The directories below which patterns look, none below another.
fn beginnings(paths: &[String]) -> Vec<PathBuf> {
    let is_plain = |part: &&str| !part.contains(['*', '?', '[', '\\']);
    let mut begins: Vec<PathBuf> = paths
        .iter()
        .map(|path| {
            path.split('/')
                .take_while(is_plain)
                .filter(|part| *part != ".")
                .collect()
        })
        .collect();
    begins.sort();
    begins.dedup_by(|later, earlier| later.starts_with(earlier));
    begins
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct PathDigests {
    path: String,
    modified_ns: i128,
    inode: u64,
    bytes: u64,
}

struct FileWalk<'a> {
    root: &'a Path,
    passed_over: Vec<PathBuf>,
    patterns: git::PathPatterns,
    visited: usize,
    found: Vec<PathDigests>,
}

impl FileWalk<'_> {
    fn visit(&mut self, begin: &Path) -> Result<(), String> {
        let mut open = vec![begin.to_owned()];
        while let Some(path) = open.pop() {
            self.visited += 1;
            if self.visited > WATCHED_MAX {
                return Err(format!("more than {WATCHED_MAX} files are watched"));
            }
            let is_git = path.file_name().is_some_and(|name| name == ".git");
            if is_git || self.passed_over.contains(&path) {
                continue;
            }
            // What goes while it is looked at is not there.
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            if !metadata.is_dir() {
                self.take(&path, &metadata);
                continue;
            }
            match fs::read_dir(&path) {
                Ok(entries) => open.extend(entries.flatten().map(|entry| entry.path())),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("{}: {error}", path.display())),
            }
        }
        Ok(())
    }

    fn take(&mut self, path: &Path, metadata: &Metadata) {
        let relative = path.strip_prefix(self.root).unwrap_or(path);
        if !self.patterns.match_path(relative) {
            return;
        }
        let seconds = i128::from(metadata.mtime()) * 1_000_000_000;
        self.found.push(PathDigests {
            path: relative.to_string_lossy().into_owned(),
            modified_ns: seconds + i128::from(metadata.mtime_nsec()),
            inode: metadata.ino(),
            bytes: metadata.len(),
        });
    }
}
