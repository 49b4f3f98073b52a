//! `write_file`, and the replacement of a file that `edit_file` shares with it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::arguments::CheckedArguments;
use super::reply::ToolError;
use super::reply::{NOT_REGULAR, RefusedPath};
use super::resolve::OpenDirectory;
use super::root::FileRoot;

/// Begins the names of files that are being written. One that a killed process left behind can be deleted.
pub const TEMPORARY_PREFIX: &str = ".workerctl-write-";

pub(super) fn write_file(
    root: &FileRoot,
    arguments: CheckedArguments,
) -> Result<String, ToolError> {
    let path = arguments.text("path");
    let content = arguments.text("content");
    check_size(root, path, content.len())?;
    let place = root.locate(path)?;
    let (Some(above), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(RefusedPath::of(path, Errno::ISDIR).into());
    };
    // Checked before anything is made: parents of a refused file would stay behind.
    root.permit(&place, path)?;
    let directory = root.make_directory(above, path)?;
    let target = Target::find(root, &directory, name, path)?;
    target.replace(content.as_bytes())?;
    let done = match target.mode {
        Some(_) => "replaced",
        None => "created",
    };
    Ok(format!("{done} `{path}`: {} bytes", content.len()))
}

/// Refuses content that could not be read again.
pub(super) fn check_size(root: &FileRoot, path: &str, bytes: usize) -> Result<(), ToolError> {
    let bytes_max = root.bounds().file_bytes_max;
    if bytes as u64 <= bytes_max {
        return Ok(());
    }
    Err(ToolError::TooLarge {
        path: path.to_owned(),
        bytes_max,
        remedy: "write less, or several files",
    })
}

/// The file that a write creates or replaces.
pub(super) struct Target<'a> {
    directory: &'a File,
    name: &'a OsStr,
    shown: &'a str,
    /// Permissions of the file that is there.
    mode: Option<Mode>,
}

impl<'a> Target<'a> {
    /// Looks at what is there. A link is refused, not followed: what it leads to is to be named itself.
    pub(super) fn find(
        root: &FileRoot,
        directory: &'a OpenDirectory,
        name: &'a OsStr,
        shown: &'a str,
    ) -> Result<Self, RefusedPath> {
        root.permit(&directory.path.join(name), shown)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let mode = match rustix::fs::statat(&directory.file, name, flags) {
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(RefusedPath::of(shown, errno)),
            Ok(stat) => {
                root.permit_found(&stat, shown)?;
                let unfit = |what| Err(RefusedPath::Unfit(shown.to_owned(), what));
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::RegularFile => {}
                    FileType::Directory => return Err(RefusedPath::of(shown, Errno::ISDIR)),
                    FileType::Symlink => {
                        return unfit("a symbolic link: write to the file that it leads to");
                    }
                    _ => return unfit(NOT_REGULAR),
                }
                // Without set-user-id and the like: they belong to the content that goes.
                Some(Mode::from_raw_mode(stat.st_mode & 0o777))
            }
        };
        Ok(Self {
            directory: &directory.file,
            name,
            shown,
            mode,
        })
    }

    /// Writes the content beside the file and renames it, so that a reader sees the old or the new one and
    /// whatever took the name meanwhile is replaced, never written through.
    pub(super) fn replace(&self, content: &[u8]) -> Result<(), RefusedPath> {
        let refused = |source: std::io::Error| RefusedPath::of(self.shown, source);
        let temporary = format!("{TEMPORARY_PREFIX}{:016x}", fastrand::u64(..));
        let temporary = Path::new(&temporary);
        let written = self.write_beside(temporary, content).and_then(|()| {
            rustix::fs::renameat(self.directory, temporary, self.directory, self.name)
                .map_err(Into::into)
        });
        written.map_err(|error| {
            // What is refused already stays the answer, even if this fails too.
            _ = rustix::fs::unlinkat(self.directory, temporary, AtFlags::empty());
            refused(error)
        })
    }

    fn write_beside(&self, temporary: &Path, content: &[u8]) -> std::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        // A new file gets what the umask leaves; the copy of a private one is never readable for others.
        let mode = self.mode.map_or(0o666, |_| 0o600);
        let file = rustix::fs::openat(self.directory, temporary, flags, Mode::from_raw_mode(mode))?;
        let mut file = File::from(file);
        file.write_all(content)?;
        if let Some(mode) = self.mode {
            rustix::fs::fchmod(&file, mode)?;
        }
        Ok(())
    }
}
