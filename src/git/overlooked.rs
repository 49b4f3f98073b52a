//! What a status says nothing of although it is there.
//!
//! libgit2 takes a directory that it cannot open, such as for want of file descriptors, for one that is not
//! there. What a person has in it would be new to the next look, and so be committed, or removed, as a
//! run's own. So the directories are listed once more, names only.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Dir, DirEntry, FileType, Mode};
use rustix::io::Errno;

use super::beneath::{DIRECTORY, Worktree};
use super::error::{GitError, git, io_at};
use super::exclusions::Exclusions;
use super::former_rules::RULES;
use super::ids::RepoPath;
use super::open::Handle;

/// What is compared with what a status named.
pub(super) struct Listing<'a> {
    pub(super) handle: &'a Handle,
    pub(super) worktree: &'a Worktree,
    pub(super) exclusions: &'a Exclusions,
    pub(super) index: &'a git2::Index,
    /// Paths that the status named, directories with a slash behind them.
    pub(super) named: &'a HashSet<Vec<u8>>,
    /// Files of ignore rules that are ignored themselves, as they are come by.
    pub(super) hidden_rules: RefCell<Vec<RepoPath>>,
}

impl Listing<'_> {
    /// A file that git does not know, does not ignore, and that the status did not name.
    pub(super) fn overlooked(&self) -> Result<Option<RepoPath>, GitError> {
        self.below(self.worktree.root(), &[])
    }

    /// The same below one directory, whose path ends in a slash unless it is the root.
    fn below(&self, directory: BorrowedFd<'_>, above: &[u8]) -> Result<Option<RepoPath>, GitError> {
        let fail = io_at::<Errno>("list", Path::new(OsStr::from_bytes(above)));
        let listed: Result<Vec<_>, Errno> = Dir::read_from(directory).and_then(Iterator::collect);
        let listed = listed.map_err(&fail)?;
        let is = |entry: &DirEntry, name: &[u8]| entry.file_name().to_bytes() == name;
        if !above.is_empty() && listed.iter().any(|entry| is(entry, b".git")) {
            // Another repository begins here; the status names it as a whole.
            return Ok(None);
        }
        let own = [&b"."[..], b"..", b".git"];
        for entry in &listed {
            let path = [above, entry.file_name().to_bytes()].concat();
            let Ok(path) = RepoPath::from_bytes(&path) else {
                continue;
            };
            if own.iter().any(|name| is(entry, name)) || self.exclusions.covers(&path) {
                continue;
            }
            let found = match entry.file_type() {
                FileType::Directory => self.in_directory(directory, entry, &path)?,
                FileType::RegularFile | FileType::Symlink => {
                    let missing = self.is_missing(&path)?;
                    let is_apart = self.is_tracked(&path) || self.named.contains(path.as_bytes());
                    if !missing && !is_apart && is(entry, RULES) {
                        self.hidden_rules.borrow_mut().push(path.clone());
                    }
                    missing.then_some(path)
                }
                // Where the file system does not tell the kind, libgit2 alone has looked.
                _ => None,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn in_directory(
        &self,
        holder: BorrowedFd<'_>,
        entry: &DirEntry,
        path: &RepoPath,
    ) -> Result<Option<RepoPath>, GitError> {
        let with_slash = [path.as_bytes(), b"/"].concat();
        let is_known = self.index.find_prefix(&with_slash).is_ok();
        // A submodule, another repository, or nothing that git looks into.
        let is_apart = self.is_tracked(path) || self.named.contains(&with_slash);
        if is_apart || (!is_known && self.is_ignored(&with_slash)?) {
            return Ok(None);
        }
        match rustix::fs::openat(holder, entry.file_name(), DIRECTORY, Mode::empty()) {
            Ok(directory) => self.below(directory.as_fd(), &with_slash),
            // It has gone; or, as for git, what may not be listed is not looked at, now or later.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM) => {
                Ok(None)
            }
            Err(error) => Err(io_at("list", path.as_path())(error)),
        }
    }

    fn is_missing(&self, path: &RepoPath) -> Result<bool, GitError> {
        let is_known = self.is_tracked(path) || self.named.contains(path.as_bytes());
        Ok(!is_known && !self.is_ignored(path.as_bytes())?)
    }

    fn is_tracked(&self, path: &RepoPath) -> bool {
        self.index.get_path(path.as_path(), 0).is_some()
    }

    fn is_ignored(&self, path: &[u8]) -> Result<bool, GitError> {
        let path = Path::new(OsStr::from_bytes(path));
        let ignored = self.handle.repo.is_path_ignored(path);
        ignored.map_err(git("read what is ignored"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_git_neither_knows_nor_ignores_has_to_be_named() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let repo = git2::Repository::init(root).unwrap();
        let write = |path: &str| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), path).unwrap();
        };
        for path in [
            "known/a",
            "known/b.o",
            "new/deep/c",
            "built/d",
            "own/e",
            "other/f",
        ] {
            write(path);
        }
        fs::write(root.join(".gitignore"), "*.o\n/built/\n").unwrap();
        git2::Repository::init(root.join("other")).unwrap();
        let mut index = repo.index().unwrap();
        index.add_path(Path::new("known/a")).unwrap();
        index.write().unwrap();
        let handle = Handle::open(root).unwrap();
        let worktree = Worktree::open(handle.workdir()).unwrap();
        let exclusions = Exclusions::new([RepoPath::literal("own").unwrap()]);
        let overlooked = |named: &[&str]| {
            let listing = Listing {
                handle: &handle,
                worktree: &worktree,
                exclusions: &exclusions,
                index: &index,
                named: &named.iter().map(|path| path.as_bytes().to_vec()).collect(),
                hidden_rules: RefCell::default(),
            };
            listing.overlooked().unwrap()
        };
        let all = [".gitignore", "new/deep/c", "other/"];
        assert_eq!(overlooked(&all), None);
        assert_eq!(
            overlooked(&all[1..]),
            Some(RepoPath::literal(".gitignore").unwrap())
        );
        let without_new = [".gitignore", "other/"];
        assert_eq!(
            overlooked(&without_new),
            Some(RepoPath::literal("new/deep/c").unwrap())
        );
        // Nobody can say anything of what has gone, or of what begins another repository.
        assert_eq!(overlooked(&all[..2]), None);
    }
}
