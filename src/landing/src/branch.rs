//! The branch itself and its reflogs.
//!
//! The branch's log exists before the branch moves, and gets its line after. So whoever moves the branch
//! off the commit later records the commit on the *old* side of a line, even where our own line is missing,
//! and a line that a power cut left of ours alone proves nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::error::{GitError, io_at};
use crate::ids::Oid;
use crate::journal::Observer;
use crate::locks::lock_of;
use crate::plan::{Checkout, LogLine, Plan};
use crate::sharing::Sharing;
use crate::worktree::{make_directories, sync_directory};

fn log_of(home: &Path, name: &str) -> PathBuf {
    home.join("logs").join(name)
}

/// Returns every commit that the branch was moved away from, as its log says, with the time in seconds since 1970.
pub(crate) fn left_commits(common_dir: &Path, target: &str) -> Result<Vec<(Oid, i64)>, GitError> {
    let lines = read_log(&log_of(common_dir, target))?;
    let left = lines.into_iter();
    Ok(left.map(|line| (line.old, line.time_s)).collect())
}

/// What a line of a log says.
struct LoggedMove {
    old: Oid,
    new: Oid,
    /// In seconds since 1970; 0 if it cannot be read.
    time_s: i64,
}

impl LoggedMove {
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(3, ' ');
        let (old, new) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let who = parts.next().and_then(|rest| rest.split('\t').next());
        let time = who.and_then(|who| who.trim_end().rsplit(' ').nth(1));
        let time_s = time.and_then(|time| time.parse().ok()).unwrap_or(0);
        Some(Self { old, new, time_s })
    }
}

/// Reads the lines of a log as text: one broken line must not hide the others.
fn read_log(path: &Path) -> Result<Vec<LoggedMove>, GitError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(e)
            if matches!(
                e.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory
            ) =>
        {
            return Ok(Vec::new());
        }
        Err(e) => return Err(io_at("read", path)(e)),
    };
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().filter_map(LoggedMove::parse).collect())
}

/// Makes sure that the branch has a log, whatever the settings say (git appends to one that exists), and that the
/// logs can be appended to.
pub(crate) fn ensure_logs(plan: &Plan, observer: &dyn Observer) -> Result<(), GitError> {
    let followers = plan.checkouts.iter().filter(|c| c.follows);
    for head in followers.map(|checkout| log_of(&checkout.git_dir, "HEAD")) {
        take_over(&head, plan, observer);
    }
    let log = log_of(&plan.common_dir, &plan.target);
    if log.is_file() {
        take_over(&log, plan, observer);
        return Ok(());
    }
    observer.before("make the branch's log");
    clear_empty_directory(&log);
    drop(open_log(&log, plan.sharing)?);
    log.parent().map_or(Ok(()), sync_directory)
}

/// Puts a copy in the place of a log that another user's git made (`sudo git commit`) and this one may not append to.
/// Nobody appends meanwhile, because the lock of its reference is held. Where it fails the log lacks a line, which is
/// no reason to give the landing up.
fn take_over(log: &Path, plan: &Plan, observer: &dyn Observer) {
    if !log.is_file() || rustix::fs::access(log, Access::WRITE_OK).is_ok() {
        return;
    }
    observer.before("copy a log");
    let copy = plan.staging.join("log");
    let copied = fs::copy(log, &copy).and_then(|_| {
        File::open(&copy)?.sync_all()?;
        fs::rename(&copy, log)
    });
    if copied.is_ok() {
        let _ = log.parent().map_or(Ok(()), sync_directory);
    }
}

/// Renames the branch's lock, which holds the new value, over the branch; `false` where it is gone.
pub(crate) fn move_branch(plan: &Plan, observer: &dyn Observer) -> Result<bool, GitError> {
    let path = plan.common_dir.join(&plan.target);
    clear_empty_directory(&path);
    observer.before("move the branch");
    match fs::rename(lock_of(&path), &path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        other => other.map_err(io_at("move the branch", &path))?,
    }
    observer.before("sync the branch");
    path.parent().map_or(Ok(()), sync_directory)?;
    Ok(true)
}

/// Appends to the logs of the branch and of each `HEAD` that follows it.
pub(crate) fn append_logs(plan: &Plan, observer: &dyn Observer) -> Result<(), GitError> {
    let line = render(plan);
    observer.before("log the branch");
    append(&log_of(&plan.common_dir, &plan.target), &line, plan.sharing)?;
    for checkout in plan.checkouts.iter().filter(|c| c.follows) {
        let log = log_of(&checkout.git_dir, "HEAD");
        if log.is_file() {
            observer.before("log HEAD");
            append(&log, &line, plan.sharing)?;
        }
    }
    Ok(())
}

/// Appends the lines that a crash left out, while the branch is where the landing has put it.
pub(crate) fn complete_logs(
    plan: &Plan,
    now: &[Checkout],
    observer: &dyn Observer,
) -> Result<(), GitError> {
    let line = render(plan);
    let branch = log_of(&plan.common_dir, &plan.target);
    let heads = plan.checkouts.iter().filter(|then| {
        let here = now.iter().find(|now| now.git_dir == then.git_dir);
        then.follows && here.is_some_and(|now| now.follows)
    });
    let heads = heads.map(|checkout| log_of(&checkout.git_dir, "HEAD"));
    for log in std::iter::once(branch).chain(heads) {
        // Only where nothing else has happened since.
        let last = read_log(&log)?.pop().map(|line| line.new);
        if log.is_file() && (last.is_none() || last == plan.from) {
            observer.before("complete a log");
            append(&log, &line, plan.sharing)?;
        }
    }
    Ok(())
}

fn render(plan: &Plan) -> String {
    let LogLine {
        name,
        email,
        time_s,
        offset_min,
        message,
    } = &plan.log;
    let zero = "0".repeat(40);
    let from = plan.from.as_ref().map_or(zero.as_str(), Oid::as_str);
    let clean = |text: &str| -> String {
        let of_identity = |c: &char| !c.is_control() && !matches!(c, '<' | '>');
        text.chars().filter(of_identity).collect()
    };
    let message = message.lines().next().unwrap_or_default();
    let message: String = message.chars().filter(|c| !c.is_control()).collect();
    let sign = if *offset_min < 0 { '-' } else { '+' };
    let (hours, minutes) = (
        offset_min.unsigned_abs() / 60,
        offset_min.unsigned_abs() % 60,
    );
    let (name, email, to) = (clean(name), clean(email), &plan.to);
    format!("{from} {to} {name} <{email}> {time_s} {sign}{hours:02}{minutes:02}\t{message}\n")
}

fn append(path: &Path, line: &str, sharing: Sharing) -> Result<(), GitError> {
    let mut file = open_log(path, sharing)?;
    let written = file.write_all(line.as_bytes());
    written.map_err(io_at("write", path))?;
    file.sync_all().map_err(io_at("sync", path))
}

fn open_log(path: &Path, sharing: Sharing) -> Result<File, GitError> {
    if let Some(dir) = path.parent() {
        make_directories(dir, sharing)?;
    }
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .map_err(io_at("open", path))?;
    // As git does, which ignores it too where the file is another user's.
    let _ = sharing.adjust_file(&file);
    Ok(file)
}

/// Git leaves empty directories where branches with longer names were; a file cannot replace one.
fn clear_empty_directory(path: &Path) {
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            clear_empty_directory(&entry.path());
        }
    }
    // A directory that is not empty stays, and the rename that follows says so.
    let _ = fs::remove_dir(path);
}
