//! Walks through directories: sorted, bounded, never through a link.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::resolve::OpenDirectory;
use super::root::FileRoot;

/// Directories within directories; each holds a descriptor open.
const DEPTH_MAX: usize = 64;

/// One entry of a directory, not a directory itself.
pub(super) struct Visited<'a> {
    /// The directory, for opening the entry.
    pub(super) directory: &'a File,
    pub(super) name: &'a OsStr,
    /// Relative to where the walk began.
    pub(super) path: &'a Path,
    pub(super) kind: FileType,
}

/// A walk and what it left out.
pub(super) struct DirectoryWalk<'r, 'v> {
    root: &'r FileRoot<'r>,
    visit: &'v mut dyn FnMut(&Visited) -> ControlFlow<()>,
    visits_left: usize,
    cut: bool,
    too_deep: usize,
    unreadable: usize,
}

impl<'r, 'v> DirectoryWalk<'r, 'v> {
    /// Visits every file in a directory and its subdirectories, in the order of its names, until `visit`
    /// breaks. Returns notices of what was left out.
    pub(super) fn run(
        root: &'r FileRoot<'r>,
        start: &OpenDirectory,
        visit: &'v mut dyn FnMut(&Visited) -> ControlFlow<()>,
    ) -> Vec<String> {
        let visited_max = root.bounds().visited_max;
        let mut walk = Self {
            root,
            visit,
            visits_left: visited_max,
            cut: false,
            too_deep: 0,
            unreadable: 0,
        };
        // Whether it was broken off is known to the visitor.
        _ = walk.enter(start, Path::new(""), 0);
        let mut notices = Vec::new();
        if walk.cut {
            notices.push(format!(
                "the search stopped after {visited_max} entries and is incomplete: narrow `path`"
            ));
        }
        if walk.too_deep > 0 {
            let count = walk.too_deep;
            notices.push(format!("{count} directories are too deep and were skipped"));
        }
        if walk.unreadable > 0 {
            let count = walk.unreadable;
            notices.push(format!("{count} directories could not be read"));
        }
        notices
    }

    fn enter(&mut self, directory: &OpenDirectory, path: &Path, depth: usize) -> ControlFlow<()> {
        let Ok((entries, complete)) = entries(&directory.file, self.visits_left) else {
            self.unreadable += 1;
            return ControlFlow::Continue(());
        };
        self.visits_left -= entries.len();
        self.cut |= !complete;
        for (name, kind) in entries {
            let place = directory.path.join(&name);
            if self.root.permit(&place, "").is_err() {
                continue;
            }
            let path = path.join(&name);
            if kind != FileType::Directory {
                let visited = Visited {
                    directory: &directory.file,
                    name: &name,
                    path: &path,
                    kind,
                };
                (self.visit)(&visited)?;
            } else if depth == DEPTH_MAX {
                self.too_deep += 1;
            } else if let Ok(file) = open_child(&directory.file, &name) {
                if self.is_permitted(&file) {
                    self.enter(&OpenDirectory { file, path: place }, &path, depth + 1)?;
                }
            } else {
                self.unreadable += 1;
            }
        }
        ControlFlow::Continue(())
    }

    fn is_permitted(&self, directory: &File) -> bool {
        rustix::fs::fstat(directory).is_ok_and(|stat| self.root.permit_found(&stat, "").is_ok())
    }
}

fn open_child(directory: impl AsFd, name: &OsStr) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    Ok(opened.into())
}

/// The entries of a directory, sorted by name, and whether these are all: at most `count_max` are read.
pub(super) fn entries(
    directory: &File,
    count_max: usize,
) -> io::Result<(Vec<(OsString, FileType)>, bool)> {
    let mut found = Vec::new();
    let mut complete = true;
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if found.len() == count_max {
            complete = false;
            break;
        }
        let kind = match entry.file_type() {
            // Some file systems do not say; what has gone meanwhile stays unknown.
            FileType::Unknown => rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| {
                    FileType::from_raw_mode(stat.st_mode)
                }),
            kind => kind,
        };
        found.push((name.to_owned(), kind));
    }
    found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok((found, complete))
}

/// A path of a reply: as the model gave the directory, so that it can be used in the next call.
pub(super) fn shown_path(start: &str, path: &Path) -> String {
    let start: PathBuf = Path::new(start)
        .components()
        .filter(|part| part.as_os_str() != ".")
        .collect();
    start.join(path).to_string_lossy().into_owned()
}
