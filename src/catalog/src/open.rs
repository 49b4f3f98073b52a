//! Opens definition files: regular files inside the workspace, of bounded size, never waiting.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::report::Report;
use super::source::{Source, whole_file};
use workerctl_sandbox as sandbox;

/// Largest definition file in bytes.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What changes when a file changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct DefinitionStamp {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
    device: u64,
}

impl DefinitionStamp {
    fn of(stat: &Stat) -> DefinitionStamp {
        DefinitionStamp {
            size: stat.st_size.cast_unsigned(),
            modified: (stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
            changed: (stat.st_ctime, stat.st_ctime_nsec.cast_signed()),
            inode: stat.st_ino,
            device: stat.st_dev,
        }
    }

    /// Device and inode: the same for every path to one directory.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// Nothing stands at this path, or a link leads nowhere.
    #[error("`{path}` does not exist, or is a link whose target does not exist")]
    Missing { path: String },
    /// A link or `..` leads out of the workspace.
    #[error("`{path}` leads out of the workspace")]
    Outside { path: String },
    /// A directory, pipe, socket or device.
    #[error("`{path}` is not a regular file")]
    NotAFile { path: String },
    /// More than [`FILE_BYTES_MAX`].
    #[error("`{path}` has more than {FILE_BYTES_MAX} bytes")]
    TooLarge { path: String },
    /// The system refuses.
    #[error("`{path}` cannot be read")]
    Unreadable {
        path: String,
        #[source]
        source: std::io::Error,
    },
}

/// What to do about a link that leads to itself.
pub(crate) const LOOP_HINT: &str = "links lead to each other in a circle: correct or remove one";

impl Refusal {
    /// Stable code and remedy.
    pub(crate) fn code_and_hint(&self) -> (&'static str, &'static str) {
        match self {
            Refusal::Missing { .. } => ("file-missing", "create the file or correct the path"),
            Refusal::Outside { .. } => (
                "link-outside",
                "copy the file into the workspace: links may not lead out of it",
            ),
            Refusal::NotAFile { .. } => ("not-a-file", "definitions are regular files"),
            Refusal::TooLarge { .. } => ("file-too-large", "definitions hold at most 1 MiB"),
            Refusal::Unreadable { source, .. }
                if source.raw_os_error() == Some(Errno::LOOP.raw_os_error()) =>
            {
                ("file-unreadable", LOOP_HINT)
            }
            Refusal::Unreadable { .. } => (
                "file-unreadable",
                "check owner and mode of the file and its directories",
            ),
        }
    }
}

/// An open workspace directory; files are opened below it and nowhere else.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    directory: OwnedFd,
}

impl Root {
    /// Opens the workspace.
    pub(crate) fn open(path: &Path) -> std::io::Result<Root> {
        let path = path.canonicalize()?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
        let directory = rustix::fs::open(&path, flags, Mode::empty())?;
        Ok(Root { path, directory })
    }

    /// The same directory, opened once more.
    pub(crate) fn again(&self) -> Option<Root> {
        Some(Root {
            path: self.path.clone(),
            directory: self.directory.try_clone().ok()?,
        })
    }

    /// Absolute path without links.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Stamp of a path, links followed; `None` where nothing is.
    pub(crate) fn stamp(&self, relative: &str) -> Option<DefinitionStamp> {
        // From here, so that the directories above need not be walked for every file.
        let stat = rustix::fs::statat(&self.directory, relative, AtFlags::empty());
        stat.ok().map(|stat| DefinitionStamp::of(&stat))
    }

    /// Path relative to the workspace of what `relative` leads to, when that lies inside.
    pub(crate) fn resolve(&self, relative: &str) -> Result<PathBuf, Refusal> {
        let path = || relative.to_owned();
        let real = self
            .path
            .join(relative)
            .canonicalize()
            .map_err(|source| refusal(relative, source))?;
        real.strip_prefix(&self.path)
            .map(Path::to_path_buf)
            .map_err(|_| Refusal::Outside { path: path() })
    }

    /// Opens a regular file without waiting for a writer or a device.
    fn open_file(&self, relative: &str) -> Result<File, Refusal> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let opened = rustix::fs::openat2(&self.directory, relative, flags, Mode::empty(), beneath);
        let file = match opened {
            Ok(file) => file,
            // An absolute link inside the workspace, or a kernel or filter without this call.
            Err(Errno::XDEV | Errno::NOSYS | Errno::PERM) => {
                let real = self.resolve(relative)?;
                // Its directories hold no link any more, so one that is met was put there since.
                sandbox::open_below(&self.directory, &real, flags)
                    .map_err(|errno| refusal(relative, errno.into()))?
            }
            Err(errno) => return Err(refusal(relative, errno.into())),
        };
        Ok(File::from(file))
    }

    /// Whether a regular file stands at `relative`, inside the workspace; true when it is executable.
    pub(crate) fn find_file(&self, relative: &str) -> Result<bool, Refusal> {
        use std::os::unix::fs::PermissionsExt;
        let real = self.resolve(relative)?;
        let metadata =
            std::fs::metadata(self.path.join(real)).map_err(|source| refusal(relative, source))?;
        if !metadata.is_file() {
            return Err(Refusal::NotAFile {
                path: relative.to_owned(),
            });
        }
        Ok(metadata.permissions().mode() & 0o111 != 0)
    }

    /// Reads a regular file of at most [`FILE_BYTES_MAX`] bytes.
    pub(crate) fn read(&self, relative: &str) -> Result<Vec<u8>, Refusal> {
        let path = || relative.to_owned();
        let unreadable = |source| Refusal::Unreadable {
            path: path(),
            source,
        };
        let file = self.open_file(relative)?;
        let metadata = file.metadata().map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(Refusal::NotAFile { path: path() });
        }
        if metadata.len() > FILE_BYTES_MAX {
            return Err(Refusal::TooLarge { path: path() });
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0) + 1);
        file.take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(Refusal::TooLarge { path: path() });
        }
        Ok(bytes)
    }

    /// Reads a definition's text; what stands against it is reported.
    pub(crate) fn source(&self, relative: &str, report: &mut Report) -> Option<Source> {
        match self.read(relative) {
            Ok(bytes) => decode(relative, bytes, report),
            Err(refusal) => {
                report_refusal(&refusal, relative, report);
                None
            }
        }
    }
}

/// Reports why a file is not read, at the file.
pub(crate) fn report_refusal(refusal: &Refusal, relative: &str, report: &mut Report) {
    let (code, hint) = refusal.code_and_hint();
    let message = crate::model::diagnostic::chain(refusal);
    report.error(code, whole_file(relative), message, hint);
}

fn refusal(relative: &str, source: std::io::Error) -> Refusal {
    let path = relative.to_owned();
    match source.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR) => Refusal::Missing { path },
        Some(Errno::XDEV) => Refusal::Outside { path },
        Some(Errno::NXIO | Errno::NODEV | Errno::ISDIR) => Refusal::NotAFile { path },
        _ => Refusal::Unreadable { path, source },
    }
}

fn decode(relative: &str, bytes: Vec<u8>, report: &mut Report) -> Option<Source> {
    Some(Source::new(relative, text_of(relative, bytes, report)?))
}

/// The text of a definition; what stands against it is reported at the path that is given.
pub(crate) fn text_of(path: &str, bytes: Vec<u8>, report: &mut Report) -> Option<String> {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
            report.error(
                "not-utf8",
                Source::new(path, text).place(valid),
                "the file is not UTF-8 text".to_owned(),
                "save the file as UTF-8",
            );
            return None;
        }
    };
    if let Some(at) = text.find('\0') {
        report.error(
            "nul-byte",
            Source::new(path, text).place(at),
            "the file holds a NUL byte".to_owned(),
            "save the file as plain text",
        );
        return None;
    }
    if text.starts_with('\u{feff}') {
        report.note(
            "byte-order-mark",
            Source::new(path, String::new()).place(0),
            "the file begins with a byte order mark, which is ignored".to_owned(),
            "save the file as UTF-8 without a byte order mark",
        );
    }
    Some(text)
}
