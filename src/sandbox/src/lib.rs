//! Paths below a directory: no symbolic link is passed on the way, and nothing outside is reached.
//!
//! Each name is opened from the descriptor of its parent with `O_NOFOLLOW`, so whatever others rename
//! meanwhile, a link is never followed. `openat2` promises the same in one call and is not used: service managers
//! refuse it (`RestrictSUIDSGID=` of systemd with ENOSYS, because a filter cannot see the mode it is given), and a
//! second way that runs only there would be the one that is never tested.

use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::{Errno, Result};

/// How a directory on the way is opened: permission to search it is enough.
const ENTERED: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);

/// Opens what lies at `path` below `root`; the empty path is `root` itself.
///
/// `XDEV` where the path is absolute or has `..`, `LOOP` where a symbolic link stands on the way or at its end,
/// unless `flags` has `PATH`, which opens a link at the end as such.
pub fn open_below(root: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd> {
    let mut names = names(path)?;
    let last = names.pop().unwrap_or(OsStr::new("."));
    let directory = enter_all(root.as_fd(), &names, open)?;
    let directory = directory.as_ref().map_or(root.as_fd(), AsFd::as_fd);
    open(directory, last, flags)
}

/// Makes the directory `path` below `root` and those above it, as far as they are missing.
pub fn make_directories_below(root: impl AsFd, path: &Path) -> Result<()> {
    let open_or_make = |parent: BorrowedFd<'_>, name: &OsStr, flags| {
        let opened = open(parent, name, flags);
        if !matches!(opened, Err(Errno::NOENT)) {
            return opened;
        }
        match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => open(parent, name, flags),
            Err(errno) => Err(errno),
        }
    };
    enter_all(root.as_fd(), &names(path)?, open_or_make).map(drop)
}

fn names(path: &Path) -> Result<Vec<&OsStr>> {
    let name = |part| match part {
        Component::Normal(name) => Some(Ok(name)),
        Component::CurDir => None,
        Component::ParentDir | Component::RootDir | Component::Prefix(_) => Some(Err(Errno::XDEV)),
    };
    path.components().filter_map(name).collect()
}

/// The last of these directories, each the child of the one before; `None` where there are none.
fn enter_all(
    root: BorrowedFd<'_>,
    names: &[&OsStr],
    enter: impl Fn(BorrowedFd<'_>, &OsStr, OFlags) -> Result<OwnedFd>,
) -> Result<Option<OwnedFd>> {
    names.iter().try_fold(None, |above: Option<OwnedFd>, name| {
        let parent = above.as_ref().map_or(root, AsFd::as_fd);
        enter(parent, name, ENTERED).map(Some)
    })
}

fn open(parent: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> Result<OwnedFd> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(parent, name, flags, Mode::empty()) {
        // A link where a directory is wanted is reported as "no directory".
        Err(Errno::NOTDIR) if is_link(parent, name) => Err(Errno::LOOP),
        opened => opened,
    }
}

fn is_link(parent: BorrowedFd<'_>, name: &OsStr) -> bool {
    rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use rustix::fs::ResolveFlags;

    use super::*;

    /// A workspace with links of every kind beside a directory that must not be reached.
    fn workspace() -> (xtest::TempDir, OwnedFd) {
        let directory = xtest::tempdir();
        let root = directory.path().join("root");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "inside").unwrap();
        std::fs::create_dir(directory.path().join("outside")).unwrap();
        std::fs::write(directory.path().join("outside/secret"), "x").unwrap();
        symlink("../outside", root.join("out")).unwrap();
        symlink("b", root.join("a/inner")).unwrap();
        symlink("a/b/file", root.join("to-file")).unwrap();
        symlink("/proc/self/cwd", root.join("magic")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        let root = File::open(root).unwrap().into();
        (directory, root)
    }

    /// Device and inode of what was opened.
    fn identity(opened: Result<OwnedFd>) -> Result<(u64, u64)> {
        opened.map(|file| {
            let stat = rustix::fs::fstat(file).unwrap();
            (stat.st_dev, stat.st_ino)
        })
    }

    /// What the kernel itself says to the same question.
    fn by_openat2(root: &OwnedFd, path: &str, flags: OFlags) -> Result<(u64, u64)> {
        let path = if path.is_empty() { "." } else { path };
        // A link at the end is `LOOP` where a directory is wanted, as on the way.
        let nofollow = if flags.contains(OFlags::DIRECTORY) {
            OFlags::empty()
        } else {
            OFlags::NOFOLLOW
        };
        let flags = flags | nofollow | OFlags::CLOEXEC;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        identity(rustix::fs::openat2(
            root,
            path,
            flags,
            Mode::empty(),
            resolve,
        ))
    }

    #[test]
    fn the_walk_answers_as_openat2_does() {
        let (_directory, root) = workspace();
        let read = OFlags::RDONLY | OFlags::NONBLOCK;
        let look = OFlags::PATH;
        let enter = OFlags::RDONLY | OFlags::DIRECTORY;
        let table = [
            ("", enter, None),
            (".", look, None),
            ("a/b", enter, None),
            ("a/b/file", read, None),
            ("./a//b/./file", read, None),
            ("a/none", read, Some(Errno::NOENT)),
            ("none/file", read, Some(Errno::NOENT)),
            ("a/b/file/below", read, Some(Errno::NOTDIR)),
            ("a/b/file", enter, Some(Errno::NOTDIR)),
            ("out", enter, Some(Errno::LOOP)),
            ("out", look, None),
            ("out/secret", read, Some(Errno::LOOP)),
            ("out/none", look, Some(Errno::LOOP)),
            ("a/inner/file", read, Some(Errno::LOOP)),
            ("to-file", read, Some(Errno::LOOP)),
            ("to-file", look, None),
            ("dangling", read, Some(Errno::LOOP)),
            ("magic/a", read, Some(Errno::LOOP)),
            ("..", look, Some(Errno::XDEV)),
            ("../outside/secret", read, Some(Errno::XDEV)),
            ("a/../../outside", look, Some(Errno::XDEV)),
            ("/etc/passwd", read, Some(Errno::XDEV)),
        ];
        let refused = by_openat2(&root, "a", look);
        let has_openat2 = !matches!(refused, Err(Errno::NOSYS | Errno::PERM));
        if !has_openat2 {
            xtest::skip("openat2 cannot be called here, so there is nothing to compare with");
        }
        for (path, flags, expected) in table {
            let walked = identity(open_below(&root, Path::new(path), flags));
            assert_eq!(walked.err(), expected, "`{path}` {flags:?}");
            if has_openat2 {
                let asked = by_openat2(&root, path, flags);
                assert_eq!(walked, asked, "`{path}` {flags:?}");
            }
        }
        // `..` that would stay inside is refused too: the path could not be held to what it says.
        let turned = open_below(&root, Path::new("a/../a/b/file"), read);
        assert_eq!(turned.err(), Some(Errno::XDEV));
    }

    #[test]
    fn directories_are_made_inside_and_nowhere_else() {
        let (directory, root) = workspace();
        let make = |path: &str| make_directories_below(&root, Path::new(path));
        assert_eq!(make("a/new/deep"), Ok(()));
        assert_eq!(make("a/new/deep"), Ok(()));
        assert_eq!(make(""), Ok(()));
        assert!(directory.path().join("root/a/new/deep").is_dir());
        for (path, errno) in [
            ("out/new", Errno::LOOP),
            ("dangling/new", Errno::LOOP),
            ("a/inner/new", Errno::LOOP),
            ("a/b/file/new", Errno::NOTDIR),
            ("../new", Errno::XDEV),
            ("/new", Errno::XDEV),
        ] {
            assert_eq!(make(path), Err(errno), "{path}");
        }
        let outside = std::fs::read_dir(directory.path().join("outside")).unwrap();
        assert_eq!(outside.count(), 1);
        assert!(!directory.path().join("new").exists());
        assert!(!directory.path().join("root/a/b/new").exists());
    }
}
