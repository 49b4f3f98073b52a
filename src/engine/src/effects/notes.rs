//! Notes of the processes under way, for the engine that comes after a crash.
//!
//! A file serves one command after the other and is written over, never removed: a note that is out of
//! date names a process that is gone, which its start time tells. So a command costs one small write. Their
//! names can be guessed, so that they are reached through the directory that was opened at the start: a link
//! that takes its name while the engine runs leads nowhere.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, unlinkat};
use rustix::io::Errno;

use super::lock;
use crate::model::RunId;
use crate::process::LiveRecord;

/// The files of the commands under way.
pub(crate) struct Notes {
    directory: Option<OwnedFd>,
    files: Mutex<Files>,
}

struct Files {
    free: Vec<(u32, File)>,
    next: u32,
}

/// A file that one command may write over; free for another when this is dropped.
pub(super) struct Note<'a> {
    notes: &'a Notes,
    file: Option<(u32, File)>,
}

/// What an earlier engine noted of a run.
#[derive(Debug, Clone)]
pub(crate) struct Noted {
    /// The note's file.
    pub path: PathBuf,
    /// What stands in it.
    pub record: LiveRecord,
    /// Whether the file is the one that it was written to, and no copy.
    pub is_original: bool,
}

impl Notes {
    /// Numbers its files behind those of earlier engines, whose notes may still be needed.
    pub(super) fn new(state_dir: &Path) -> Notes {
        let directory = state_dir.join("live");
        let numbers = names(&directory).filter_map(|name| name.parse::<u32>().ok());
        let next = numbers.max().map_or(0, |last| last.saturating_add(1));
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Notes {
            directory: openat(CWD, &directory, flags, Mode::empty()).ok(),
            files: Mutex::new(Files {
                free: Vec::new(),
                next,
            }),
        }
    }

    /// A file for one command.
    pub(super) fn take(&self) -> io::Result<Note<'_>> {
        let number = {
            let mut files = self.files();
            if let Some(file) = files.free.pop() {
                return Ok(Note {
                    notes: self,
                    file: Some(file),
                });
            }
            files.next = files.next.saturating_add(1);
            files.next - 1
        };
        let directory = self.directory.as_ref().ok_or(Errno::NOENT)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let file = openat(directory, number.to_string(), flags, mode)?;
        Ok(Note {
            notes: self,
            file: Some((number, File::from(file))),
        })
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        lock(&self.files)
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        let free = std::mem::take(&mut self.files().free);
        for (number, _) in free {
            let Some(directory) = &self.directory else {
                return;
            };
            let _ = unlinkat(directory, number.to_string(), AtFlags::empty());
        }
    }
}

impl Note<'_> {
    /// Writes `record` over what stood there.
    pub(super) fn write(&self, record: &LiveRecord) -> io::Result<()> {
        match &self.file {
            Some((_, file)) => record.write_over(file),
            None => Ok(()),
        }
    }
}

impl Drop for Note<'_> {
    fn drop(&mut self) {
        self.notes.files().free.extend(self.file.take());
    }
}

/// The notes that earlier engines left, by run. One that ended in order left none.
pub(crate) fn read(state_dir: &Path) -> BTreeMap<RunId, Vec<Noted>> {
    let directory = state_dir.join("live");
    let mut noted = BTreeMap::new();
    for name in names(&directory) {
        let path = directory.join(&name);
        match LiveRecord::read(&path) {
            Ok(Some(record)) => {
                // A file of the first version has the run as its name and not in its text.
                let run = record.run.as_deref().unwrap_or(&name).parse().ok();
                if let Some(run) = run {
                    let of_run: &mut Vec<Noted> = noted.entry(run).or_default();
                    of_run.push(Noted {
                        is_original: record.is_original(&path),
                        path,
                        record,
                    });
                    continue;
                }
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "a note of a process cannot be read");
                continue;
            }
        }
        let _ = fs::remove_file(path);
    }
    noted
}

fn names(directory: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    fn run(number: u128) -> RunId {
        RunId::following(None, Timestamp::from_millis(1_795_000_000_000), number)
    }

    fn record(run: Option<RunId>) -> LiveRecord {
        LiveRecord {
            run: run.map(|run| run.to_string()),
            pid: 77,
            start_time: 5,
            boot_id: "b".into(),
            attempt: 1,
            tag: None,
            engine_tag: None,
            engine: None,
            file: None,
        }
    }

    fn state() -> xtest::TempDir {
        let state = xtest::tempdir();
        fs::create_dir(state.path().join("live")).unwrap();
        state
    }

    #[test]
    fn a_file_serves_one_command_after_the_other() {
        let state = state();
        let notes = Notes::new(state.path());
        for number in 1..4 {
            let note = notes.take().unwrap();
            note.write(&record(Some(run(number)))).unwrap();
        }
        assert_eq!(names(&state.path().join("live")).count(), 1);
        let found = read(state.path());
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), [run(3)]);
        let two = (notes.take().unwrap(), notes.take().unwrap());
        assert_eq!(names(&state.path().join("live")).count(), 2);
        drop(two);
        drop(notes);
        assert_eq!(names(&state.path().join("live")).count(), 0);
    }

    #[test]
    fn notes_of_lost_engines_are_kept_and_not_written_over() {
        let state = state();
        for number in 1..3 {
            let notes = Notes::new(state.path());
            let note = notes.take().unwrap();
            note.write(&record(Some(run(number)))).unwrap();
            std::mem::forget(note);
        }
        let found = read(state.path());
        assert_eq!(found[&run(2)][0].record.run, record(Some(run(2))).run);
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn every_note_of_a_run_is_kept_for_one_of_them_has_the_mark_of_what_is_left() {
        let state = state();
        for (number, attempt) in [1, 2, 2].into_iter().enumerate() {
            let path = state.path().join("live").join(number.to_string());
            let of_attempt = LiveRecord {
                attempt,
                ..record(Some(run(1)))
            };
            of_attempt.write(&path).unwrap();
        }
        let found = &read(state.path())[&run(1)];
        let mut attempts: Vec<u32> = found.iter().map(|noted| noted.record.attempt).collect();
        attempts.sort_unstable();
        assert_eq!(attempts, [1, 2, 2]);
        assert!(found.iter().all(|noted| noted.is_original));
        assert_eq!(names(&state.path().join("live")).count(), 3);
    }

    #[test]
    fn a_note_of_the_first_version_is_found_by_its_name() {
        let state = state();
        let path = state.path().join("live").join(run(1).to_string());
        record(None).write(&path).unwrap();
        assert_eq!(read(state.path())[&run(1)][0].path, path);
    }
}
