//! Declared outputs: resolved below the workspace without following links, stamped, published, verified.

use std::fs::File;
use std::io::{self, Read, Seek as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::model::evidence::OutputState;
use crate::model::legible::hex;
use crate::model::spec::{OutputKind, OutputSpec};
use crate::sandbox;

/// Largest output whose content is looked into, in bytes; larger ones are only weighed.
pub(super) const CONTENT_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What tells whether a file was written since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OutputStamp {
    inode: u64,
    pub(super) bytes: u64,
    modified_ns: i128,
    changed_ns: i128,
}

/// Why a path below the workspace cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutputError {
    /// A symbolic link stands on the way, or the path leaves the workspace.
    #[error("`{path}` leaves the workspace or passes a symbolic link")]
    Escapes {
        /// The path as declared.
        path: String,
    },
    /// Something other than a regular file stands there.
    #[error("`{path}` is not a regular file")]
    NotAFile {
        /// The path as declared.
        path: String,
    },
    /// The file system refused.
    #[error("cannot {step} `{path}`")]
    Io {
        /// What was being done.
        step: &'static str,
        /// The path as declared.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Copies a file and leaves its holes: a run can make a file of terabytes that takes no space.
fn copy_data(from: &mut File, to: &mut File) -> io::Result<()> {
    let length = from.metadata()?.len();
    let mut at = 0;
    while at < length {
        let data = match rustix::fs::seek(&*from, SeekFrom::Data(at)) {
            Ok(data) => data,
            // There is only a hole up to the end.
            Err(Errno::NXIO) => break,
            // The file system has no holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(errno) => return Err(errno.into()),
        };
        let end = rustix::fs::seek(&*from, SeekFrom::Hole(data)).unwrap_or(length);
        from.seek(io::SeekFrom::Start(data))?;
        to.seek(io::SeekFrom::Start(data))?;
        let copied = io::copy(&mut from.take(end - data), to)?;
        if copied == 0 {
            break;
        }
        at = data + copied;
    }
    to.set_len(length)
}

/// A workspace, opened, below which every path is resolved anew for each use.
pub(super) struct SandboxedDir {
    root: OwnedFd,
}

impl SandboxedDir {
    /// Opens the workspace.
    pub(super) fn open(workspace: &Path) -> Result<SandboxedDir, OutputError> {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::open(workspace, flags, Mode::empty())
            .map_err(|errno| refused("open", &workspace.to_string_lossy(), errno))?;
        Ok(SandboxedDir { root })
    }

    /// Stamps a file; `None` when nothing is there.
    pub(super) fn stamp(&self, path: &str) -> Result<Option<OutputStamp>, OutputError> {
        let file = match self.open_at(path, OFlags::PATH) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            Err(errno) => return Err(refused("look at", path, errno)),
        };
        let stat = rustix::fs::fstat(&file).map_err(|errno| refused("look at", path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(OutputError::NotAFile {
                path: path.to_owned(),
            });
        }
        let nanos =
            |seconds: i64, nanos: u64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        Ok(Some(OutputStamp {
            inode: stat.st_ino,
            bytes: stat.st_size.unsigned_abs(),
            modified_ns: nanos(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: nanos(stat.st_ctime, stat.st_ctime_nsec),
        }))
    }

    /// Makes the directories that a file needs.
    pub(super) fn make_parents(&self, path: &str) -> Result<(), OutputError> {
        let (parent, _) = split(path);
        sandbox::make_directories_below(&self.root, Path::new(parent))
            .map_err(|errno| refused("make a directory for", path, errno))
    }

    /// Puts a finished temporary file in its place, durably; both lie in the same directory.
    pub(super) fn publish(&self, temporary: &str, path: &str) -> Result<(), OutputError> {
        let (parent, name) = split(path);
        let directory = self
            .open_at(parent, OFlags::DIRECTORY | OFlags::RDONLY)
            .map_err(|errno| refused("enter the directory of", path, errno))?;
        match self.open_at(temporary, OFlags::RDONLY) {
            Ok(file) => {
                rustix::fs::fdatasync(&file).map_err(|errno| refused("sync", path, errno))?;
            }
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(refused("open", path, errno)),
        }
        let (_, temporary_name) = split(temporary);
        rustix::fs::renameat(&directory, temporary_name, &directory, name)
            .and_then(|()| rustix::fs::fsync(&directory))
            .map_err(|errno| refused("publish", path, errno))
    }

    /// Copies an output of another workspace to a temporary file here.
    pub(super) fn copy_from(
        &self,
        other: &SandboxedDir,
        path: &str,
        temporary: &str,
    ) -> Result<(), OutputError> {
        let io = |step| {
            move |source| OutputError::Io {
                step,
                path: path.to_owned(),
                source,
            }
        };
        let from = other
            .open_at(path, OFlags::RDONLY | OFlags::NONBLOCK)
            .map_err(|errno| refused("read", path, errno))?;
        let mut from = File::from(from);
        let mut mode = from.metadata().map_err(io("read"))?.permissions();
        // A setuid bit would give the engine's user to everybody, and other users must not change the file. Its owner
        // reads it even if the run, as root, took that away.
        mode.set_mode(mode.mode() & 0o775 | 0o400);
        let (parent, name) = split(temporary);
        let directory = self
            .open_at(parent, OFlags::DIRECTORY | OFlags::PATH)
            .map_err(|errno| refused("enter the directory of", path, errno))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let to = rustix::fs::openat(&directory, name, flags, Mode::from_raw_mode(0o600))
            .map_err(|errno| refused("write", path, errno))?;
        let mut to = File::from(to);
        let copied = copy_data(&mut from, &mut to).and_then(|()| to.set_permissions(mode));
        copied.map_err(|error| {
            let _ = rustix::fs::unlinkat(&directory, name, AtFlags::empty());
            io("write")(error)
        })
    }

    /// Removes a temporary file of ours, if it is there.
    pub(super) fn discard(&self, temporary: &str) -> Result<(), OutputError> {
        let (parent, name) = split(temporary);
        let directory = match self.open_at(parent, OFlags::DIRECTORY | OFlags::PATH) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(refused("enter the directory of", temporary, errno)),
        };
        match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(refused("remove", temporary, errno)),
        }
    }

    /// Says what became of a declared output.
    pub(super) fn state(&self, output: &OutputSpec, before: Option<OutputStamp>) -> OutputState {
        let mut state = OutputState {
            name: output.name.clone(),
            path: output.path.clone(),
            bytes: None,
            digest: None,
            written: false,
            problem: None,
            commits: Vec::new(),
        };
        let Some(path) = &output.path else {
            return state;
        };
        match self.stamp(path) {
            Err(error) => state.problem = Some(error.to_string()),
            Ok(None) => state.problem = Some("it was not written".to_owned()),
            Ok(Some(stamp)) => {
                state.bytes = Some(stamp.bytes);
                state.written = before != Some(stamp);
                if state.written {
                    self.look_into(output.kind, path, stamp, &mut state);
                } else {
                    state.problem = Some("it was not written in this run".to_owned());
                }
            }
        }
        state
    }

    fn look_into(&self, kind: OutputKind, path: &str, stamp: OutputStamp, state: &mut OutputState) {
        if stamp.bytes > CONTENT_BYTES_MAX {
            if kind != OutputKind::File {
                state.problem = Some(format!("it exceeds {CONTENT_BYTES_MAX} bytes"));
            }
            return;
        }
        match self.read(path) {
            Ok(content) => {
                state.digest = Some(hex(&Sha256::digest(&content)));
                state.problem = content_problem(kind, &content);
            }
            Err(error) => {
                state.problem = Some(crate::model::diagnostic::chain(&error));
            }
        }
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, OutputError> {
        let mut content = Vec::new();
        self.open_file(path)?
            .take(CONTENT_BYTES_MAX + 1)
            .read_to_end(&mut content)
            .map_err(|source| OutputError::Io {
                step: "read",
                path: path.to_owned(),
                source,
            })?;
        Ok(content)
    }

    /// Opens a regular file; whatever else stands there is neither waited for nor read.
    pub(super) fn open_file(&self, path: &str) -> Result<File, OutputError> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = self
            .open_at(path, flags)
            .map_err(|errno| refused("read", path, errno))?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| refused("read", path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            return Ok(File::from(file));
        }
        let path = path.to_owned();
        Err(OutputError::NotAFile { path })
    }

    fn open_at(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        sandbox::open_below(&self.root, Path::new(path), flags)
    }
}

fn content_problem(kind: OutputKind, content: &[u8]) -> Option<String> {
    match kind {
        OutputKind::Json => serde_json::from_slice::<serde::de::IgnoredAny>(content)
            .err()
            .map(|error| format!("it is not JSON: {error}")),
        OutputKind::Markdown => match std::str::from_utf8(content) {
            Err(error) => Some(format!("it is not UTF-8 from byte {}", error.valid_up_to())),
            Ok(text) if text.trim().is_empty() => Some("it is blank".to_owned()),
            // A power cut leaves them where content did not reach the disk.
            Ok(text) if text.contains('\0') => Some("it holds NUL bytes".to_owned()),
            Ok(_) => None,
        },
        OutputKind::File | OutputKind::GitCommit | OutputKind::Console => None,
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn refused(step: &'static str, path: &str, errno: Errno) -> OutputError {
    match errno {
        Errno::XDEV | Errno::LOOP => OutputError::Escapes {
            path: path.to_owned(),
        },
        _ => OutputError::Io {
            step,
            path: path.to_owned(),
            source: errno.into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(kind: OutputKind, path: &str) -> OutputSpec {
        OutputSpec {
            name: "report".into(),
            kind,
            path: Some(path.into()),
        }
    }

    #[test]
    fn links_that_lead_out_are_refused_at_every_use() {
        let outside = xtest::tempdir();
        let workspace = xtest::tempdir();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), workspace.path().join("link")).unwrap();
        let sandboxed_dir = SandboxedDir::open(workspace.path()).unwrap();
        for path in ["link/secret", "../x", "/etc/passwd", "link/new/file.md"] {
            assert!(
                matches!(sandboxed_dir.stamp(path), Err(OutputError::Escapes { .. })),
                "{path}: {:?}",
                sandboxed_dir.stamp(path)
            );
            assert!(
                sandboxed_dir.make_parents(path).is_err() || !path.contains('/'),
                "{path}"
            );
        }
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn equal_bytes_written_again_count_as_written() {
        let workspace = xtest::tempdir();
        let sandboxed_dir = SandboxedDir::open(workspace.path()).unwrap();
        let spec = output(OutputKind::Markdown, "a/b/report.md");
        sandboxed_dir.make_parents("a/b/report.md").unwrap();
        let file = workspace.path().join("a/b/report.md");
        std::fs::write(&file, "same").unwrap();
        let before = sandboxed_dir.stamp("a/b/report.md").unwrap();
        assert!(!sandboxed_dir.state(&spec, before).written);
        let fresh = workspace.path().join("a/b/.fresh");
        std::fs::write(&fresh, "same").unwrap();
        sandboxed_dir
            .publish("a/b/.fresh", "a/b/report.md")
            .unwrap();
        let state = sandboxed_dir.state(&spec, before);
        assert!(state.written && state.problem.is_none(), "{state:?}");
    }

    #[test]
    fn content_is_held_to_its_kind() {
        let workspace = xtest::tempdir();
        let sandboxed_dir = SandboxedDir::open(workspace.path()).unwrap();
        let table: [(OutputKind, &[u8], Option<&str>); 7] = [
            (OutputKind::Json, b"{\"a\": 1}", None),
            (OutputKind::Json, b"{", Some("not JSON")),
            (OutputKind::Markdown, b"# x", None),
            (OutputKind::Markdown, b" \n", Some("blank")),
            (OutputKind::Markdown, b"\xff", Some("UTF-8")),
            (OutputKind::Markdown, b"# a\n\0\0\n", Some("NUL")),
            (OutputKind::File, b"\xff", None),
        ];
        for (kind, content, expected) in table {
            std::fs::write(workspace.path().join("out"), content).unwrap();
            let problem = sandboxed_dir.state(&output(kind, "out"), None).problem;
            assert_eq!(
                problem.is_some(),
                expected.is_some(),
                "{kind:?} {problem:?}"
            );
            assert!(problem.unwrap_or_default().contains(expected.unwrap_or("")));
        }
        let missing = sandboxed_dir.state(&output(OutputKind::File, "none"), None);
        assert!(missing.problem.is_some());
    }
}
