//! What is read of a tree that a run has left, which may be damaged.

use std::collections::BTreeMap;

use std::os::fd::AsFd;

use git2::{Repository, RepositoryOpenFlags};
use rustix::fs::{Mode, openat};
use workerctl_landing::damaged_object;
use workerctl_landing::error::GitError;
use workerctl_landing::ids::{Oid, RepoPath};
use workerctl_landing::open::open;

use super::{Tree, index_stamp};
use crate::error::TreeError;
use crate::keep::Keep;
use crate::known::{Item, Laid, Manifest, raw};
use crate::look::{ChangedPath, GitState, HeadChanges, TreeChanges, TreeWalk};
use crate::model::{ResultProblem, RunResult, Start};
use crate::place::{DIRECTORY, open_root};
use crate::problems;
use crate::record;
use crate::rule_files::RuleFiles;
use crate::small::{damage, drop_torn, put_back};
use crate::submodules::IndexedLinks;

impl Tree {
    /// Whether an earlier process made it, and may have been lost to a power cut.
    pub fn is_retaken(&self) -> bool {
        !self.is_made_here
    }

    /// An error of the tree's own repository, which is no error of the real one.
    pub fn own_error(&self, error: TreeError) -> TreeError {
        let rules = self.dir.join("rules");
        // A file of the work tree that is not there is another matter.
        let is_of_git = |source: &GitError| match source {
            GitError::Io { path, .. } => {
                path.starts_with(self.git_dir()) || path.starts_with(&rules)
            }
            _ => true,
        };
        match error {
            TreeError::Git(source) if source.is_unreadable() && is_of_git(&source) => {
                TreeError::Damaged {
                    path: self.dir.clone(),
                    torn: self.torn.clone(),
                    source,
                }
            }
            error => error,
        }
    }

    /// What the run's index says of submodules; nothing where it is as it was made.
    pub(super) fn indexed_links(&self) -> IndexedLinks {
        let git_dir = self.git_dir();
        if self.index.is_some() && index_stamp(&git_dir) == self.index {
            return IndexedLinks::default();
        }
        IndexedLinks::read(&git_dir)
    }

    /// What is known of what the run started from.
    pub(super) fn manifest_of(&mut self, start: &Start) -> Result<Manifest, TreeError> {
        let tree = raw(&start.tree);
        let held = self.manifest.take().or_else(|| record::read(&self.dir));
        let laid = start.overlaid.len();
        let fits = |m: &Manifest| {
            let count = m
                .known
                .iter()
                .filter(|known| matches!(known.laid, Laid::Over(_)))
                .count();
            m.tree == tree && count == laid
        };
        if let Some(held) = held.filter(fits) {
            return Ok(held);
        }
        let rules = self.dir.join("rules");
        let repo = open(
            &rules,
            RepositoryOpenFlags::NO_SEARCH,
            "read the rules of the tree",
        )?;
        let mut manifest = Manifest::read(&repo, tree)?;
        let mut items = BTreeMap::new();
        for (path, what) in &start.overlaid {
            if let Some((mode, oid)) = what.split_once(' ')
                && let (Ok(mode), Ok(oid)) = (u32::from_str_radix(mode, 8), oid.parse::<Oid>())
            {
                let oid = raw(&oid);
                items.insert(path.as_bytes().to_vec(), Item { oid, mode });
            }
        }
        manifest.lay(&items);
        Ok(manifest)
    }

    /// Refuses commits of the run with a copy of an uncommitted file: it is no part of a result, and may be a secret.
    pub(super) fn committed_copy(
        &self,
        manifest: &Manifest,
        head: &HeadChanges,
    ) -> Result<Option<ResultProblem>, TreeError> {
        let is_copy = |(path, change): &(&Vec<u8>, &ChangedPath)| {
            let known = manifest.find(path).ok();
            let known = known.and_then(|at| manifest.known.get(at));
            let Some(Laid::Over(laid)) = known.map(|known| known.laid) else {
                return false;
            };
            change.new.is_some_and(|new| new.oid == laid.oid)
        };
        let mut copies = head.iter().filter(is_copy).peekable();
        if copies.peek().is_none() {
            return Ok(None);
        }
        // This repository sees the objects of the real one, and none of the run's.
        let rules = self.dir.join("rules");
        let flags = RepositoryOpenFlags::NO_SEARCH;
        let repo = open(&rules, flags, "read the rules of the tree")?;
        let is_uncommitted = |(_, change): &(&Vec<u8>, &ChangedPath)| {
            change
                .new
                .is_some_and(|new| repo.find_blob(new.oid).is_err())
        };
        let found = copies.find(is_uncommitted);
        Ok(found.map(|(path, _)| problems::overlay_committed(path)))
    }

    pub(super) fn look(
        &self,
        start: &Start,
        manifest: &Manifest,
        into: Option<&Repository>,
        git: GitState<'_>,
    ) -> Result<TreeChanges, TreeError> {
        let keep = Keep::read(&start.keep, &self.dir)?;
        let walk = |is_limited: bool| {
            let files = RuleFiles::new(&self.dir.join("rules"))?;
            let mut rules = self.rules()?.in_shadow(&files)?;
            if is_limited {
                rules.limit_to(&manifest.known)?;
            }
            TreeWalk::new(manifest, (&rules, files), &keep, &self.path, into, git).all()
        };
        let found = walk(true)?;
        // Attribute files of the run decide as git would have it, so all attributes are asked for then.
        if found
            .changes
            .keys()
            .any(|path| path.ends_with(b".gitattributes"))
        {
            return walk(false);
        }
        Ok(found)
    }

    /// Returns true if git ignores a file of the tree that neither the base nor the result has.
    ///
    /// The rules are those of the engine and of the files that are in the tree now. Nothing of the run's repository is
    /// read, because a check may have changed its settings.
    pub fn is_ignored(
        &mut self,
        start: &Start,
        result: &RunResult,
        path: &RepoPath,
    ) -> Result<bool, TreeError> {
        let manifest = self.manifest_of(start)?;
        let is_tracked = manifest.find(path.as_bytes()).is_ok()
            || result.changes.iter().any(|change| change.path == *path);
        let ignored = if is_tracked {
            Ok(false)
        } else {
            self.is_ignored_file(&manifest, path)
        };
        self.manifest = Some(manifest);
        ignored
    }

    fn is_ignored_file(&self, manifest: &Manifest, path: &RepoPath) -> Result<bool, TreeError> {
        let mut files = RuleFiles::new(&self.dir.join("rules"))?;
        let rules = self.rules()?.in_shadow(&files)?;
        let mut dir = open_root(&self.path)?;
        let mut above = Vec::new();
        for part in path.as_bytes().split(|byte| *byte == b'/') {
            // One that cannot be used was refused in the result, or has come since and is refused as a change.
            let at = [above.as_slice(), b".gitignore"].concat();
            files.copy(dir.as_fd(), b".gitignore", &at, manifest)?;
            match openat(&dir, part, DIRECTORY, Mode::empty()) {
                Ok(inner) => dir = inner,
                Err(_) => break,
            }
            above.extend_from_slice(part);
            above.push(b'/');
        }
        rules.is_ignored(path.as_path())
    }

    pub(super) fn open_repository(&mut self) -> Result<Result<Repository, String>, TreeError> {
        if let Some(what) = damage(&self.path)? {
            return Ok(Err(what));
        }
        let git_dir = self.git_dir();
        put_back(&git_dir, &self.dir.join("rules"))?;
        if self.is_retaken() && self.torn.is_none() {
            self.torn = drop_torn(&git_dir)?;
        }
        if let Some(what) = damaged_object(&git_dir) {
            return Ok(Err(what));
        }
        let flags = RepositoryOpenFlags::NO_SEARCH;
        Ok(open(&self.path, flags, "open the run's repository").map_err(|e| e.to_string()))
    }
}
