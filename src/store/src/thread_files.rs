//! The two files of a thread: the log that grows and the summary that is replaced.
//!
//! Both are created with mode 0600, since commands print what they like; others read through the engine.
//! No symbolic link is followed below the workspace: a skill could have put it there.

mod check;
mod reader;
mod writer;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Shortage;
use crate::model::ThreadId;
use crate::thread::line::{RECORD_BYTES_MAX, RecordError};
use crate::thread::project::ThreadPaths;

pub use check::{check_thread, read_summary, threads_in};
pub use reader::{LogPage, LogReader, Wants};
pub use writer::{PENDING_BYTES_MAX, ThreadWriter};

/// Why a file beside the store could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// No space is left, or a quota is used up; it may be tried again.
    #[error("{shortage}: `{path}` cannot be written")]
    Full {
        /// The file.
        path: PathBuf,
        /// What leaves none.
        shortage: Shortage,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Anything else that the system refused.
    #[error("cannot {doing} `{path}`")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A symbolic link, or something that is no regular file or directory, stands where ours belongs.
    #[error("`{path}` is a link or no regular file; remove it or choose another directory")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A directory that is absolute or leads out of the workspace.
    #[error("`{path}` is no directory below the workspace")]
    Outside {
        /// As configured.
        path: PathBuf,
    },
    /// A record that cannot be written or read.
    #[error("`{path}` cannot take or give the record")]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: RecordError,
    },
}

impl FileError {
    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> FileError {
        let path = path.to_owned();
        match Shortage::of_error(&source, &path) {
            Some(shortage) => FileError::Full {
                path,
                shortage,
                source,
            },
            None => FileError::Io {
                doing,
                path,
                source,
            },
        }
    }

    fn errno(doing: &'static str, path: &Path, errno: Errno) -> FileError {
        match errno {
            Errno::LOOP | Errno::NOTDIR => FileError::Foreign {
                path: path.to_owned(),
            },
            other => FileError::io(doing, path, other.into()),
        }
    }
}

/// A directory below the workspace that holds files of ours.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    handle: OwnedFd,
}

/// Directories below one workspace that stay open: every run needs the same few.
#[derive(Debug)]
pub struct Directories {
    workspace: PathBuf,
    open: Mutex<BTreeMap<String, Arc<Directory>>>,
}

impl Directories {
    /// Nothing is opened yet.
    pub fn new(workspace: &Path) -> Directories {
        Directories {
            workspace: workspace.to_owned(),
            open: Mutex::default(),
        }
    }

    /// As [`Directory::open`]; opened again when another directory stands there by now.
    pub fn get(&self, relative: &str) -> Result<Arc<Directory>, FileError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = open.get(relative)
            && directory.is_in_place()
        {
            return Ok(Arc::clone(directory));
        }
        let directory = Arc::new(Directory::open(&self.workspace, relative)?);
        open.insert(relative.to_owned(), Arc::clone(&directory));
        Ok(directory)
    }
}

impl Directory {
    /// Opens `relative` below `workspace`, step by step without following links; makes what is missing.
    /// What is made is durable with the next sync of the file system.
    pub fn open(workspace: &Path, relative: &str) -> Result<Directory, FileError> {
        Directory::walk(workspace, relative, true)
    }

    /// As [`Directory::open`], where it is there already; makes nothing.
    pub fn existing(workspace: &Path, relative: &str) -> Result<Option<Directory>, FileError> {
        match Directory::walk(workspace, relative, false) {
            Ok(directory) => Ok(Some(directory)),
            Err(FileError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn walk(workspace: &Path, relative: &str, make: bool) -> Result<Directory, FileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut path = workspace.to_owned();
        let mut handle = rustix::fs::openat(CWD, workspace, flags, Mode::empty())
            .map_err(|errno| FileError::errno("open", &path, errno))?;
        for part in Path::new(relative).components() {
            let name = match part {
                std::path::Component::Normal(name) => name,
                std::path::Component::CurDir => continue,
                _ => {
                    return Err(FileError::Outside {
                        path: relative.into(),
                    });
                }
            };
            path.push(name);
            let open = |within: &OwnedFd| {
                rustix::fs::openat(within, name, flags | OFlags::NOFOLLOW, Mode::empty())
            };
            let mut opened = open(&handle);
            if make && matches!(opened, Err(Errno::NOENT)) {
                match rustix::fs::mkdirat(&handle, name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => opened = open(&handle),
                    Err(errno) => return Err(FileError::errno("make", &path, errno)),
                }
            }
            handle = opened.map_err(|errno| FileError::errno("open", &path, errno))?;
        }
        Ok(Directory { path, handle })
    }

    /// Whether its path still leads to it, and not through a link in the last place.
    fn is_in_place(&self) -> bool {
        let there = rustix::fs::lstat(&self.path);
        let held = rustix::fs::fstat(&self.handle);
        matches!((there, held), (Ok(there), Ok(held))
            if (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino))
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Absolute paths of a thread's two files.
    pub fn paths(&self, thread: &ThreadId) -> ThreadPaths {
        let show = |name: String| self.path.join(name).to_string_lossy().into_owned();
        ThreadPaths {
            document: show(document_name(thread)),
            log: show(log_name(thread)),
        }
    }

    /// Keeps git from the directory's content; what stands in a `.gitignore` already is left alone.
    pub fn ensure_ignored(&self) -> Result<(), FileError> {
        if self.is_ignored()? {
            return Ok(());
        }
        match self.replace(".gitignore", b"*\n", Mode::from_raw_mode(0o644)) {
            // The first runs of a workspace may do this at the same moment.
            Err(_) if self.is_ignored()? => Ok(()),
            done => done,
        }
    }

    fn is_ignored(&self) -> Result<bool, FileError> {
        match rustix::fs::statat(&self.handle, ".gitignore", AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(FileError::errno("look at", &self.path, errno)),
        }
    }

    /// Opens a regular file by its plain name, never through a link.
    pub(super) fn open_file(&self, name: &str, flags: OFlags) -> Result<File, FileError> {
        let path = self.path.join(name);
        // Opening a pipe that somebody put there must not block.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.handle, name, flags, Mode::from_raw_mode(0o600))
            .map_err(|errno| FileError::errno("open", &path, errno))?;
        let stat =
            rustix::fs::fstat(&file).map_err(|errno| FileError::errno("look at", &path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            Ok(File::from(file))
        } else {
            Err(FileError::Foreign { path })
        }
    }

    /// Replaces a file as a whole: no reader ever sees a part of it, whenever this process ends. It is
    /// durable against power loss with the next sync of the file system; until then a power cut may
    /// leave it empty, so whoever needs it keeps what it is made from until that sync.
    pub(super) fn replace(&self, name: &str, bytes: &[u8], mode: Mode) -> Result<(), FileError> {
        let temporary = format!(".{name}.tmp");
        let path = self.path.join(&temporary);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
        let mut file = self.open_file(&temporary, flags)?;
        rustix::fs::fchmod(&file, mode).map_err(|errno| FileError::errno("open", &path, errno))?;
        file.write_all(bytes)
            .map_err(|source| FileError::io("write", &path, source))?;
        self.rename(&temporary, name)
    }

    /// Renames within the directory.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), FileError> {
        let path = self.path.join(to);
        rustix::fs::renameat(&self.handle, from, &self.handle, to)
            .map_err(|errno| FileError::errno("rename", &path, errno))
    }
}

/// Bytes of a thread's files; those that are not there have none.
pub fn thread_bytes(dir: &Directory, thread: &ThreadId) -> u64 {
    let log = log_name(thread);
    let names = [copy_name(&log), log, document_name(thread)];
    let bytes = names.iter().filter_map(|name| {
        let found = rustix::fs::statat(&dir.handle, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        u64::try_from(found.st_size).ok()
    });
    bytes.sum()
}

/// Whether a thread has a log and no summary.
pub fn lacks_summary(dir: &Directory, thread: &ThreadId) -> bool {
    let look = |name: String| rustix::fs::statat(&dir.handle, &name, AtFlags::SYMLINK_NOFOLLOW);
    look(document_name(thread)).is_err_and(|errno| errno == Errno::NOENT)
        && look(log_name(thread)).is_ok()
}

/// Removes a thread's files, as far as they are there; a link in place of one goes, and what it leads to stays.
pub fn remove_thread(dir: &Directory, thread: &ThreadId) -> Result<(), FileError> {
    let log = log_name(thread);
    for name in [document_name(thread), copy_name(&log), log] {
        match rustix::fs::unlinkat(&dir.handle, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(FileError::errno("remove", &dir.path.join(name), errno)),
        }
    }
    Ok(())
}

fn log_name(thread: &(impl Display + ?Sized)) -> String {
    format!("{thread}.jsonl")
}

/// The file that a log is written to again before it takes the log's place.
fn copy_name(log: &str) -> String {
    format!(".{log}.tmp")
}

fn document_name(thread: &(impl Display + ?Sized)) -> String {
    format!("{thread}.json")
}

/// Replaces a thread's summary, durable with the next sync of the file system. Its text is masked
/// already: it comes from `thread::document`.
pub fn write_document(dir: &Directory, thread: &ThreadId, text: &str) -> Result<(), FileError> {
    let mode = Mode::from_raw_mode(0o600);
    dir.replace(&document_name(thread), text.as_bytes(), mode)
}

/// What reading one line came to.
#[derive(Debug, PartialEq, Eq)]
enum LineRead {
    /// A line with its newline; the buffer holds it without.
    Whole,
    /// A line longer than a record may be; it was passed over.
    TooLong,
    /// Bytes without a newline at the end of the file.
    Torn,
    /// Nothing.
    End,
}

/// Reads the next line into `buffer`, bounded; answers how many bytes it took, too.
fn read_line(reader: &mut impl BufRead, buffer: &mut Vec<u8>) -> io::Result<(LineRead, u64)> {
    buffer.clear();
    let (mut taken, mut too_long) = (0u64, false);
    loop {
        let available = match reader.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            let end = if taken == 0 {
                LineRead::End
            } else {
                LineRead::Torn
            };
            return Ok((end, taken));
        }
        let newline = available.iter().position(|byte| *byte == b'\n');
        let part = newline.unwrap_or(available.len());
        if buffer.len() + part > RECORD_BYTES_MAX {
            too_long = true;
            buffer.clear();
        }
        if !too_long {
            buffer.extend_from_slice(&available[..part]);
        }
        let used = newline.map_or(part, |at| at + 1);
        reader.consume(used);
        taken += used as u64;
        if newline.is_some() {
            let read = if too_long {
                LineRead::TooLong
            } else {
                LineRead::Whole
            };
            return Ok((read, taken));
        }
    }
}

#[cfg(test)]
mod tests;
