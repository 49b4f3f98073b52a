//! Directories that are nested more deeply than the git library goes.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::{GitError, git, io_at};
use super::exclusions::Exclusions;
use super::ids::{PATH_COMPONENTS_MAX, RepoPath};
use super::open::Handle;

/// The git library opens no directory below this many others.
pub const DIRECTORIES_MAX: usize = 100;

/// Whether a failure of the git library says that it did not go as deep as the directories.
pub(super) fn is_too_deep(error: &git2::Error) -> bool {
    error.message().starts_with("directory nesting too deep")
}

impl Handle {
    /// A tree of directories that is too deep, by the uppermost of them that holds nothing which git knows.
    pub(super) fn too_deep(
        &self,
        index: &git2::Index,
        exclusions: &Exclusions,
    ) -> Result<Option<RepoPath>, GitError> {
        let root = self.workdir();
        let mut open: Vec<(PathBuf, usize)> = vec![(root.to_owned(), 0)];
        while let Some((directory, depth)) = open.pop() {
            if depth >= DIRECTORIES_MAX {
                let below = directory.strip_prefix(root).unwrap_or(&directory);
                return uppermost_unknown(below, index).map(Some);
            }
            // What may not be listed is not looked at by the git library either.
            let Ok(listed) = fs::read_dir(&directory) else {
                continue;
            };
            for entry in listed {
                let entry = entry.map_err(io_at("list", &directory))?;
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let path = entry.path();
                if is_directory
                    && entry.file_name() != ".git"
                    && self.goes_into(&path, exclusions)?
                {
                    open.push((path, depth + 1));
                }
            }
        }
        Ok(None)
    }

    fn goes_into(&self, path: &Path, exclusions: &Exclusions) -> Result<bool, GitError> {
        let below = path.strip_prefix(self.workdir()).unwrap_or(path);
        let Ok(named) = RepoPath::from_bytes(below.as_os_str().as_bytes()) else {
            return Ok(true);
        };
        let ignored = self.repo.is_path_ignored(below.join(""));
        let ignored = ignored.map_err(git("read what is ignored"))?;
        Ok(!ignored && !exclusions.covers(&named) && !path.join(".git").exists())
    }

    /// From now on this handle takes a path for ignored; nothing is written.
    pub(super) fn ignore_for_now(&self, path: &RepoPath) -> Result<(), GitError> {
        let mut rule = String::from("/");
        for part in path.to_string().chars() {
            if matches!(part, '*' | '?' | '[' | ']' | '\\' | ' ' | '!' | '#') {
                rule.push('\\');
            }
            rule.push(part);
        }
        rule.push('/');
        let added = self.repo.add_ignore_rule(&rule);
        added.map_err(git("leave a directory out"))
    }
}

fn uppermost_unknown(deep: &Path, index: &git2::Index) -> Result<RepoPath, GitError> {
    let mut above = PathBuf::new();
    for name in deep.components().take(PATH_COMPONENTS_MAX) {
        above.push(name);
        let with_slash = above.join("");
        if index
            .find_prefix(with_slash.as_os_str().as_bytes())
            .is_err()
        {
            break;
        }
    }
    Ok(RepoPath::from_bytes(above.as_os_str().as_bytes())?)
}
