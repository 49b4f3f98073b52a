//! Checks the files of threads against each other, beside an engine that may be writing them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read};

use rustix::fs::OFlags;
use serde::de::DeserializeOwned;

use super::{Directory, FileError, LineRead, document_name, log_name, read_line};
use crate::thread::check::{CheckedThread, Journal, ThreadCheck};

/// Most bytes of a summary that is read; ours are far shorter.
const SUMMARY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How often a log is read again that changed while it was read.
const ROUNDS_MAX: u32 = 3;

/// Checks a thread, as far as its files and the journal tell.
pub fn check_thread(
    dir: Option<&Directory>,
    thread: &str,
    journal: Option<&Journal>,
) -> Result<CheckedThread, FileError> {
    let Some(dir) = dir else {
        return Ok(ThreadCheck::new(thread, None, journal).finish(None));
    };
    let mut round = 1;
    loop {
        let before = stamp(dir, thread);
        let checked = check_once(dir, thread, journal)?;
        // A writer may have cut off what it could not write whole while we were reading that.
        let changed = before != stamp(dir, thread);
        if checked.damage.is_none() || !changed || round == ROUNDS_MAX {
            return Ok(checked);
        }
        round += 1;
    }
}

/// The threads that have a file here, by name, which is oldest first.
pub fn threads_in(dir: &Directory) -> Result<BTreeSet<String>, FileError> {
    let failed = |errno| FileError::errno("list", &dir.path, errno);
    let mut threads = BTreeSet::new();
    for entry in rustix::fs::Dir::read_from(&dir.handle).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        let stem = name
            .strip_suffix(".jsonl")
            .or_else(|| name.strip_suffix(".json"));
        threads.extend(
            stem.filter(|stem| stem.starts_with("T-"))
                .map(str::to_owned),
        );
    }
    Ok(threads)
}

fn stamp(dir: &Directory, thread: &str) -> Option<(i64, i64, i64)> {
    let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
    let found = rustix::fs::statat(&dir.handle, log_name(thread), flags).ok()?;
    let nanoseconds = i64::try_from(found.st_mtime_nsec).unwrap_or_default();
    Some((found.st_size, found.st_mtime, nanoseconds))
}

fn check_once(
    dir: &Directory,
    thread: &str,
    journal: Option<&Journal>,
) -> Result<CheckedThread, FileError> {
    // The summary first: what is written meanwhile makes the log longer than it says, never shorter.
    let mut check = match read_summary(dir, thread)?.transpose() {
        Ok(summary) => ThreadCheck::new(thread, summary, journal),
        Err(why) => {
            let mut check = ThreadCheck::new(thread, None, None);
            check.damaged(format!("its summary cannot be read: {why}"));
            check
        }
    };
    let Some(log) = existing(dir, &log_name(thread))? else {
        return Ok(check.finish(None));
    };
    let mut reader = BufReader::with_capacity(64 * 1024, log);
    let mut line = Vec::new();
    loop {
        let (read, _) = read_line(&mut reader, &mut line)
            .map_err(|source| FileError::io("read", &dir.path.join(log_name(thread)), source))?;
        match read {
            LineRead::Whole => check.line(&line),
            LineRead::TooLong => check.too_long(),
            LineRead::Torn => return Ok(check.finish(Some(true))),
            LineRead::End => return Ok(check.finish(Some(false))),
        }
    }
}

/// What a thread's summary tells; `Err` within says why it tells nothing.
pub fn read_summary<T: DeserializeOwned>(
    dir: &Directory,
    thread: &str,
) -> Result<Option<Result<T, String>>, FileError> {
    let name = document_name(thread);
    let Some(file) = existing(dir, &name)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    file.take(SUMMARY_BYTES_MAX)
        .read_to_end(&mut bytes)
        .map_err(|source| FileError::io("read", &dir.path.join(&name), source))?;
    Ok(Some(
        serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
    ))
}

fn existing(dir: &Directory, name: &str) -> Result<Option<File>, FileError> {
    match dir.open_file(name, OFlags::RDONLY) {
        Ok(file) => Ok(Some(file)),
        Err(FileError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
