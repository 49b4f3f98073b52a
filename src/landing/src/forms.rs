//! Between git's normal form of a file and the form it has in the work tree.

use std::fs;

use git2::build::CheckoutBuilder;
use git2::{AttrCheckFlags, AttrValue, Repository, RepositoryOpenFlags};

use crate::error::{GitError, git, io_at};
use crate::ids::{Oid, RepoPath};
use crate::index::Indexes;
use crate::open::open;
use crate::outcome::LandError;
use crate::plan::{Change, Entry, Follower, MODE_LINK};
use crate::repository::Repo;
use crate::sharing::Sharing;

/// How files of a checkout are written.
pub(crate) struct Forms {
    /// A handle of that checkout, whose attributes count.
    repo: Repository,
    /// Whether the settings alone convert line ends (`core.autocrlf`, `core.eol`).
    converts: bool,
    sharing: Sharing,
}

impl Forms {
    pub(crate) fn of(follower: &Follower<'_>, indexes: &Indexes) -> Result<Self, GitError> {
        let flags = RepositoryOpenFlags::NO_SEARCH;
        let repo = open(follower.workdir, flags, "open the work tree")?;
        let seen = indexes.read(&follower.index())?;
        let attributes = seen.index.attributes();
        attributes
            .and_then(|mut index| repo.set_index(&mut index))
            .map_err(git("read the index"))?;
        let config = repo.config().and_then(|mut c| c.snapshot());
        let text = |name: &str| {
            let value = config.as_ref().ok().and_then(|c| c.get_string(name).ok());
            value.unwrap_or_default().to_ascii_lowercase()
        };
        let crlf = matches!(text("core.autocrlf").as_str(), "true" | "yes" | "on" | "1");
        let converts = crlf || text("core.eol") == "crlf";
        Ok(Self {
            repo,
            converts,
            sharing: follower.plan.sharing,
        })
    }

    /// Refuses what cannot be written as git would write it, and notes what converted files hold.
    pub(crate) fn resolve(
        &self,
        commits: (Option<&Oid>, &Oid),
        changes: &mut [Change],
    ) -> Result<(), LandError> {
        self.refuse_new_rules(changes)?;
        for change in changes.iter_mut().filter(|change| !change.is_submodule()) {
            self.refuse_filtered(&change.path)?;
            self.refuse_links(change)?;
            if !self.may_convert(&change.path)? {
                continue;
            }
            let (from, to) = commits;
            if let (Some(old), Some(from)) = (&mut change.old, from) {
                old.written = self.written(from, &change.path, old)?;
            }
            if let Some(new) = &mut change.new {
                new.written = self.written(to, &change.path, new)?;
            }
        }
        Ok(())
    }

    /// The bytes that a checkout writes for an entry of a commit.
    pub(crate) fn bytes(
        &self,
        repo: &Repo,
        commit: &Oid,
        path: &RepoPath,
        entry: &Entry,
    ) -> Result<Vec<u8>, GitError> {
        if entry.written.is_some() {
            return self.converted(commit, path);
        }
        let blob = repo.inner.find_blob(entry.oid.raw());
        Ok(blob.map_err(git("read a blob"))?.content().to_vec())
    }

    fn written(
        &self,
        commit: &Oid,
        path: &RepoPath,
        entry: &Entry,
    ) -> Result<Option<Oid>, GitError> {
        if entry.mode == MODE_LINK {
            return Ok(None);
        }
        let bytes = self.converted(commit, path)?;
        let oid = git2::Oid::hash_object(git2::ObjectType::Blob, &bytes);
        let oid = Oid::from(oid.map_err(git("hash a file"))?);
        Ok((oid != entry.oid).then_some(oid))
    }

    /// Conversion is part of checking out, so the file is checked out to a place of its own.
    fn converted(&self, commit: &Oid, path: &RepoPath) -> Result<Vec<u8>, GitError> {
        let fail = git("convert a file");
        let place = self.repo.path().join("workerctl-converted");
        let _ = fs::remove_dir_all(&place);
        self.sharing.make_directories(&place)?;
        let mut options = CheckoutBuilder::new();
        options
            .target_dir(&place)
            .path(path.as_bytes())
            .disable_pathspec_match(true)
            .force()
            // The index of this handle has no file.
            .refresh(false)
            .update_index(false);
        let commit = self.repo.find_commit(commit.raw()).map_err(&fail)?;
        let tree = commit.tree().map_err(&fail)?;
        let done = self
            .repo
            .checkout_tree(tree.as_object(), Some(&mut options));
        let file = place.join(path.as_path());
        let bytes = done
            .map_err(fail)
            .and_then(|()| fs::read(&file).map_err(io_at("read", &file)));
        let _ = fs::remove_dir_all(&place);
        bytes
    }

    fn may_convert(&self, path: &RepoPath) -> Result<bool, GitError> {
        if self.converts {
            return Ok(true);
        }
        // `text` alone changes nothing on checkout where lines end as usual here.
        let eol = self.attribute(path, "eol")?;
        Ok(eol.as_deref() == Some(b"crlf"))
    }

    fn refuse_filtered(&self, path: &RepoPath) -> Result<(), LandError> {
        for name in ["filter", "working-tree-encoding", "ident"] {
            if self.attribute(path, name)?.is_some() {
                return Err(LandError::refused(
                    "filtered",
                    format!("`{path}` has the attribute `{name}`, which is not applied here"),
                ));
            }
        }
        Ok(())
    }

    fn refuse_links(&self, change: &Change) -> Result<(), LandError> {
        let config = self.repo.config().and_then(|mut c| c.snapshot());
        let links = config.and_then(|c| c.get_bool("core.symlinks"));
        let is_link = change.new.as_ref().is_some_and(|new| new.mode == MODE_LINK);
        if is_link && !links.unwrap_or(true) {
            return Err(LandError::refused(
                "symlinks_off",
                format!(
                    "`{}` is a symbolic link, and `core.symlinks` is off",
                    change.path
                ),
            ));
        }
        Ok(())
    }

    /// A commit that changes how files are written would need its own rules while it lands.
    fn refuse_new_rules(&self, changes: &[Change]) -> Result<(), LandError> {
        const RULES: [&str; 5] = ["filter", "encoding", "ident", "eol", "crlf"];
        for change in changes {
            if crate::worktree::file_name(&change.path) != ".gitattributes" {
                continue;
            }
            for entry in [&change.old, &change.new].into_iter().flatten() {
                let blob = self.repo.find_blob(entry.oid.raw());
                let blob = blob.map_err(git("read a blob"))?;
                let text = String::from_utf8_lossy(blob.content());
                if self.converts || RULES.iter().any(|rule| text.contains(rule)) {
                    return Err(LandError::refused(
                        "attributes_change",
                        format!("`{}` changes how files are written", change.path),
                    ));
                }
            }
        }
        Ok(())
    }

    /// The value of an attribute; `None` where it is unset or off.
    fn attribute(&self, path: &RepoPath, name: &str) -> Result<Option<Vec<u8>>, GitError> {
        let value = self
            .repo
            .get_attr_bytes(path.as_path(), name, AttrCheckFlags::FILE_THEN_INDEX)
            .map_err(git("read the attributes"))?;
        Ok(match AttrValue::from_bytes(value) {
            AttrValue::Unspecified | AttrValue::False => None,
            AttrValue::True => Some(Vec::new()),
            AttrValue::Bytes(bytes) => Some(bytes.to_vec()),
            AttrValue::String(text) => Some(text.as_bytes().to_vec()),
        })
    }
}
