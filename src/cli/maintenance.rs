//! The store without an engine, and the versions of formats: the one place of the command line that
//! names the store, the machine and the thread room.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::repository::tracked_below;
use crate::machine::Run;
use crate::model::diagnostic::chain;
use crate::model::{Diagnostic, Kind, Timestamp};
use crate::store::lock::{self, LockState};
use crate::store::rebuild::{RestoredRun, ThreadSource, rebuild};
use crate::store::thread_files::{self, Directory};
use crate::store::{OpenOptions, StoreError, identity, maintenance, places};
use crate::thread::line::RECORD_BYTES_MAX;
use crate::thread::project;
use crate::thread::rebuild::Rebuilder;

pub(crate) use crate::store::lock::UNNAMED_HINT;
pub(crate) use crate::store::maintenance::{StoreInfo, VerifyReport};
pub(crate) use crate::store::places::{below as directory_below, state_directory};
pub(crate) use crate::store::rebuild::RebuildReport;
pub(crate) use crate::thread::check::{CheckedThread, Journal, Soundness};

/// Version of what is stored.
pub(crate) const STORE_VERSION: u32 = crate::store::STORE_VERSION;

/// Version of the rules that journals are folded by.
pub(crate) const MACHINE_VERSION: u32 = crate::machine::MACHINE_VERSION;

/// Refuses a state directory in which git tracks files, and a store that is not the one of the workspace.
pub(crate) fn check_identity(workspace: &Path, state_dir: &Path) -> Result<(), Diagnostic> {
    identity::refuse_tracked(state_dir, tracked_below(state_dir).as_deref())?;
    identity::check(workspace, state_dir)
}

/// Where the store lies in a state directory.
fn directory(state_dir: &Path) -> PathBuf {
    state_dir.join("store")
}

/// What lies in the store, as far as files tell; also beside an engine that runs.
pub(crate) fn info(state_dir: &Path) -> Result<StoreInfo, Diagnostic> {
    maintenance::info(&directory(state_dir)).map_err(|error| told(&error))
}

/// Reads everything in the store and tells what is wrong with it.
pub(crate) fn verify(state_dir: &Path) -> Result<VerifyReport, Diagnostic> {
    maintenance::verify(&directory(state_dir)).map_err(|error| told(&error))
}

/// What rebuilding did.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Rebuilding {
    /// Where the former store lies now.
    pub(crate) aside: Option<String>,
    /// What is in the new one.
    pub(crate) report: RebuildReport,
}

/// Moves the store aside and builds it again from the threads.
pub(crate) fn rebuild_from(
    workspace: &Path,
    state_dir: &Path,
    threads: &str,
    now: Timestamp,
) -> Result<Rebuilding, Diagnostic> {
    refuse_where_served(workspace, state_dir)?;
    identity::refuse_tracked(state_dir, tracked_below(state_dir).as_deref())?;
    refuse_store_of_another(workspace, state_dir)?;
    let directory = directory(state_dir);
    let threads = &places::below(workspace, threads)?;
    // Threads are looked for first: nothing is moved for a place that cannot be read.
    let mut source = Threads::below(threads)?;
    let present = info(state_dir)?;
    let aside = if present.database_bytes.is_some() || present.commits.is_some() {
        Some(maintenance::quarantine(&directory, now).map_err(|error| told(&error))?)
    } else {
        None
    };
    // It may be the whole state directory that is lost.
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state_dir)
        .map_err(|error| {
            let message = format!("cannot make `{}`: {error}", state_dir.display());
            Diagnostic::new(Kind::Internal, "state_dir", message)
                .hint("make it by hand, or name another with `--state-dir`")
        })?;
    let report = rebuild(&directory, OpenOptions::default(), &mut source).map_err(|error| {
        let refused = told(&error);
        // The former store may be sound: what could not be made does not replace it.
        match aside
            .as_deref()
            .map(|aside| maintenance::put_back(&directory, aside))
        {
            None => refused,
            Some(Ok(())) => refused.hint("the store is as it was before"),
            Some(Err(error)) => refused.hint(format!(
                "the former store was moved away and could not be restored: {}",
                chain(&error)
            )),
        }
    })?;
    identity::claim(workspace, state_dir)?;
    Ok(Rebuilding {
        aside: aside.map(|path| path.display().to_string()),
        report,
    })
}

/// The threads that have a file in a directory of the workspace.
pub(crate) fn threads_in(workspace: &Path, relative: &str) -> Result<BTreeSet<String>, String> {
    let found = Directory::existing(workspace, relative).and_then(|dir| match dir {
        Some(dir) => thread_files::threads_in(&dir),
        None => Ok(BTreeSet::new()),
    });
    found.map_err(|error| chain(&error))
}

/// Checks a thread by its files, and by its journal where that is known.
pub(crate) fn check_thread(
    workspace: &Path,
    log: &Path,
    journal: Option<&Journal>,
) -> CheckedThread {
    let thread = thread_of(log);
    let checked = directory_of(workspace, log)
        .and_then(|dir| thread_files::check_thread(dir.as_ref(), thread, journal));
    checked.unwrap_or_else(|error| CheckedThread {
        thread: thread.to_owned(),
        state: Soundness::Damaged,
        lines: 0,
        damage: Some(chain(&error)),
    })
}

fn thread_of(log: &Path) -> &str {
    log.file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or_default()
}

/// The directory of a thread, reached through no link below the workspace.
fn directory_of(
    workspace: &Path,
    log: &Path,
) -> Result<Option<Directory>, thread_files::FileError> {
    let parent = log.parent().unwrap_or(workspace);
    match parent.strip_prefix(workspace) {
        Ok(below) => Directory::existing(workspace, &below.to_string_lossy()),
        Err(_) => Directory::existing(parent, "."),
    }
}

/// Refuses where an engine with another state directory serves the workspace: it would lose its store.
fn refuse_where_served(workspace: &Path, state_dir: &Path) -> Result<(), Diagnostic> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    match holder(workspace)? {
        LockHolder::By {
            state_dir: Some(other),
            ..
        } if real(Path::new(&other)) != real(state_dir) => {
            let message = format!("an engine serves this workspace with its store in `{other}`");
            Err(Diagnostic::new(Kind::Conflict, "engine_running", message)
                .hint("end it with `workerctl daemon drain` first"))
        }
        _ => Ok(()),
    }
}

/// Refuses to replace a store that this workspace does not note as its own.
fn refuse_store_of_another(workspace: &Path, state_dir: &Path) -> Result<(), Diagnostic> {
    match identity::check(workspace, state_dir) {
        Err(refused) if refused.code == identity::OTHER => Err(refused),
        _ => Ok(()),
    }
}

/// Who holds a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LockHolder {
    /// Nobody.
    Free,
    /// A process, with what the lock tells of it.
    By {
        /// Its number.
        pid: Option<u32>,
        /// Its state directory.
        state_dir: Option<String>,
    },
}

/// Who holds the lock of a workspace.
pub(crate) fn holder(workspace: &Path) -> Result<LockHolder, Diagnostic> {
    match lock::inspect_workspace(workspace) {
        Ok(LockState::Free) => Ok(LockHolder::Free),
        Ok(found) => Ok(LockHolder::By {
            pid: found.holder().map(|holder| holder.pid),
            state_dir: found.holder().map(|holder| holder.state_dir.clone()),
        }),
        Err(error) => Err(
            Diagnostic::new(Kind::Internal, "lock_unreadable", chain(&error))
                .hint("move it away: it is created again"),
        ),
    }
}

fn told(error: &StoreError) -> Diagnostic {
    let message = chain(error);
    match error {
        StoreError::Full { shortage, .. } => {
            Diagnostic::new(Kind::Blocked, shortage.code(), message)
                .hint(format!("{} and try again", shortage.remedy()))
        }
        StoreError::Busy { .. } => Diagnostic::new(Kind::Conflict, "store_busy", message)
            .hint("`workerctl daemon drain` ends the daemon that uses it"),
        StoreError::Newer { .. } => Diagnostic::new(Kind::Internal, "store_newer", message)
            .hint("use the newer program, or another `--state-dir`"),
        StoreError::Corrupt { .. } => Diagnostic::new(Kind::Internal, "store_corrupt", message)
            .hint(
                "`workerctl store rebuild` moves the store aside and rebuilds it from the threads",
            ),
        StoreError::Broken { .. } | StoreError::Gone { .. } | StoreError::Refused { .. } => {
            Diagnostic::new(Kind::Internal, "store", message)
        }
    }
}

/// The threads of a workspace, oldest first.
struct Threads {
    logs: std::vec::IntoIter<PathBuf>,
}

impl Threads {
    fn below(directory: &Path) -> Result<Threads, Diagnostic> {
        let unreadable = |error: std::io::Error| {
            let message = format!(
                "threads in `{}` cannot be read: {error}",
                directory.display()
            );
            Diagnostic::new(Kind::NotFound, "threads_unreadable", message)
        };
        let mut logs = Vec::new();
        for entry in fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let log = path
                .extension()
                .is_some_and(|extension| extension == "jsonl");
            if log && stem.is_some_and(|stem| stem.starts_with("T-")) {
                logs.push(path);
            }
        }
        logs.sort();
        Ok(Threads {
            logs: logs.into_iter(),
        })
    }
}

impl ThreadSource for Threads {
    fn next_run(&mut self) -> Option<Result<RestoredRun, String>> {
        let log = self.logs.next()?;
        Some(restored(&log).map_err(|why| format!("`{}`: {why}", log.display())))
    }
}

fn restored(log: &Path) -> Result<RestoredRun, String> {
    let thread = thread_of(log);
    // A skill could have put a link or a pipe there.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(log)
        .map_err(|error| error.to_string())?;
    if !file.metadata().is_ok_and(|found| found.is_file()) {
        return Err("it is not a regular file".to_owned());
    }
    let mut reader = BufReader::new(file);
    let mut rebuilder = Rebuilder::new(thread);
    let line_bytes_max = u64::try_from(RECORD_BYTES_MAX)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut reader)
            .take(line_bytes_max)
            .read_until(b'\n', &mut line)
            .map_err(|error| error.to_string())?;
        if read == 0 {
            break;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        rebuilder.push(&line).map_err(|error| chain(&error))?;
    }
    let rebuilt = rebuilder.finish().map_err(|error| chain(&error))?;
    let run = Run::fold(&rebuilt.entries).map_err(|error| chain(&error))?;
    let summary = project::summary(&rebuilt.spec, &run, &rebuilt.entries);
    Ok(RestoredRun {
        spec: Some(rebuilt.spec),
        entries: rebuilt.entries,
        summary,
    })
}
