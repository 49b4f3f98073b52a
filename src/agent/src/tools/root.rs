//! The directory that a call may touch.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

use super::reply::{IS_DIRECTORY, NOT_REGULAR, RefusedPath, ToolError, cut};
use super::{Bounds, FileCall};

/// Longest path, as the kernel has it, so that what errors quote is bounded.
const PATH_BYTES_MAX: usize = 4096;

/// Names of a path: missing directories are made from each one's beginning, which takes the square of it.
const NAMES_MAX: usize = 256;

/// The root of a call, open. Every path is opened from its descriptor.
#[derive(Debug)]
pub(super) struct FileRoot<'c> {
    directory: OwnedFd,
    /// Where it is, without links.
    real: PathBuf,
    call: &'c FileCall,
    hidden: Vec<HiddenPlace>,
}

/// A path that is refused with everything in it.
#[derive(Debug)]
struct HiddenPlace {
    /// Relative to the root, without links.
    path: PathBuf,
    /// Device and inode, which also hold where names are compared without case, or mounted twice.
    identity: Option<(u64, u64)>,
}

impl<'c> FileRoot<'c> {
    /// Opens the root of a call.
    pub(super) fn open(call: &'c FileCall) -> Result<Self, RefusedPath> {
        let refused = |source| RefusedPath::of(&call.root.to_string_lossy(), source);
        let real = call.root.canonicalize().map_err(refused)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory =
            rustix::fs::open(&real, flags, Mode::empty()).map_err(|errno| refused(errno.into()))?;
        let within = |path: &PathBuf| {
            Some(HiddenPlace {
                path: real_place(path).strip_prefix(&real).ok()?.to_owned(),
                identity: rustix::fs::stat(path).ok().as_ref().map(identity),
            })
        };
        Ok(Self {
            hidden: call.hidden.iter().filter_map(within).collect(),
            directory,
            real,
            call,
        })
    }

    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    pub(super) fn bounds(&self) -> &Bounds {
        &self.call.bounds
    }

    /// Where a path is below the root, by its names alone.
    pub(super) fn locate(&self, path: &str) -> Result<PathBuf, RefusedPath> {
        if path.len() > PATH_BYTES_MAX {
            return Err(RefusedPath::of(cut(path, 100), Errno::NAMETOOLONG));
        }
        let place = [&self.call.root, &self.real]
            .into_iter()
            .find_map(|root| relative_to(root, &self.call.cwd, path))
            .ok_or_else(|| self.outside(path))?;
        if place.iter().count() > NAMES_MAX {
            return Err(RefusedPath::of(cut(path, 100), Errno::NAMETOOLONG));
        }
        Ok(place)
    }

    /// Where an absolute target of a link is below the root, its `..` kept.
    pub(super) fn strip(&self, target: &Path) -> Option<PathBuf> {
        let mut roots = [&self.call.root, &self.real].into_iter();
        roots.find_map(|root| target.strip_prefix(root).ok().map(Path::to_owned))
    }

    pub(super) fn outside(&self, path: &str) -> RefusedPath {
        RefusedPath::Outside(path.to_owned(), self.call.root.display().to_string())
    }

    /// Refuses a place by its path, which is relative to the root and has no links. It need not exist.
    pub(super) fn permit(&self, place: &Path, shown: &str) -> Result<(), RefusedPath> {
        let is_git = |name: Component| name.as_os_str().eq_ignore_ascii_case(".git");
        if place.components().any(is_git) {
            return Err(RefusedPath::Git(shown.to_owned()));
        }
        if self.hidden.iter().any(|one| place.starts_with(&one.path)) {
            return Err(RefusedPath::Hidden(shown.to_owned()));
        }
        Ok(())
    }

    /// Refuses a place by what is there.
    pub(super) fn permit_found(&self, stat: &Stat, shown: &str) -> Result<(), RefusedPath> {
        let found = Some(identity(stat));
        if self.hidden.iter().any(|one| one.identity == found) {
            return Err(RefusedPath::Hidden(shown.to_owned()));
        }
        Ok(())
    }
}

fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// The path without links, as far as it exists.
fn real_place(path: &Path) -> PathBuf {
    let resolved = |above: &Path| {
        let rest = path.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(rest))
    };
    path.ancestors()
        .find_map(resolved)
        .unwrap_or_else(|| path.to_owned())
}

/// Returns where `path`, which starts from `cwd`, is below `root`: by its names, and by what its links lead to. Rules about
/// paths have to consider both. `None` outside.
pub(super) fn places(root: &Path, cwd: &Path, path: &str) -> Option<[PathBuf; 2]> {
    if path.len() > PATH_BYTES_MAX {
        return None;
    }
    let real = real_place(root);
    let mut roots = [root, &real].into_iter();
    let named = roots.find_map(|root| relative_to(root, cwd, path))?;
    let target = real_place(&real.join(&named));
    let target = target.strip_prefix(&real).ok()?.to_owned();
    Some([named, target])
}

/// `path`, which starts from `cwd`, relative to `root`; `None` outside of it. `..` removes the name before
/// it, without a look at links, so that rules about paths and what is opened agree.
pub(super) fn relative_to(root: &Path, cwd: &Path, path: &str) -> Option<PathBuf> {
    let mut whole = PathBuf::new();
    for part in cwd.join(path).components() {
        match part {
            Component::ParentDir => _ = whole.pop(),
            Component::CurDir => {}
            name => whole.push(name),
        }
    }
    whole.strip_prefix(root).ok().map(Path::to_owned)
}

/// Opens the regular file `name` in a directory. Neither a link nor a pipe nor a device is opened for good.
pub(super) fn open_regular(
    directory: impl AsFd,
    name: impl rustix::path::Arg,
    shown: &str,
) -> Result<File, RefusedPath> {
    // A pipe without a writer would be waited for, and a terminal would become that of this process.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::empty())
        .map_err(|errno| RefusedPath::of(shown, errno))?;
    let file = File::from(file);
    let metadata = file
        .metadata()
        .map_err(|source| RefusedPath::of(shown, source))?;
    match metadata.file_type() {
        kind if kind.is_file() => Ok(file),
        kind if kind.is_dir() => Err(RefusedPath::Unfit(shown.to_owned(), IS_DIRECTORY)),
        _ => Err(RefusedPath::Unfit(shown.to_owned(), NOT_REGULAR)),
    }
}

/// The content of a file, if it is within the bound.
pub(super) fn read_whole(file: File, bounds: &Bounds, shown: &str) -> Result<Vec<u8>, ToolError> {
    let bytes_max = bounds.file_bytes_max;
    let mut content = Vec::new();
    let known = file.metadata().map_or(0, |metadata| metadata.len());
    if known <= bytes_max {
        // One byte more shows whether there is more than the system said.
        file.take(bytes_max.saturating_add(1))
            .read_to_end(&mut content)
            .map_err(|source| RefusedPath::of(shown, source))?;
    }
    if known.max(content.len() as u64) > bytes_max {
        return Err(ToolError::TooLarge {
            path: shown.to_owned(),
            bytes_max,
            remedy: "use a command such as `head`, `tail` or `sed` for a part of it",
        });
    }
    Ok(content)
}
