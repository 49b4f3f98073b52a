//! What in a repository cannot be read, with its path and what mends it: the git library says neither.
//!
//! A power cut leaves empty files of what was renamed and not synced, a bad disk other ones. Looked at are `HEAD`,
//! the branch, its commit with all that its tree holds, the index, and whether loose objects are empty; all of it
//! within bounds.

use std::fs;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, ObjectType, Repository};

use super::open::Handle;
use workerctl_landing::error::GitError;
use workerctl_landing::ids::Oid;
use workerctl_landing::is_whole_object;

/// Most objects of the tree, and most loose objects, that are looked at.
const OBJECTS_MAX: usize = 20_000;

/// Most bytes of objects that are read, and of one.
const BYTES_MAX: usize = 64 << 20;
const OBJECT_BYTES_MAX: usize = 8 << 20;

/// Most empty objects that are named one by one.
const NAMED_MAX: usize = 5;

/// A file of a repository that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` {what}", path.display())]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it, after its path.
    pub what: String,
    /// The commands that mend it.
    pub remedy: String,
}

/// What is damaged of the repository that `cwd` lies in, as far as it is looked at.
///
/// # Errors
/// The repository cannot be opened.
pub fn damage(cwd: &Path) -> Result<Vec<Damage>, GitError> {
    damage_with(cwd, None)
}

/// The same, with a commit that need not be that of the branch.
fn damage_with(cwd: &Path, base: Option<&Oid>) -> Result<Vec<Damage>, GitError> {
    let handle = Handle::open(cwd)?;
    let mut looking = Looking {
        repo: &handle.repo,
        found: Vec::new(),
        bytes_left: BYTES_MAX,
        objects_left: OBJECTS_MAX,
    };
    looking.index();
    looking.empty_objects();
    let head = looking.head();
    let base = base.map(Oid::raw).filter(|base| head != Some(*base));
    for commit in head.into_iter().chain(base) {
        looking.commit(commit);
    }
    Ok(looking.found)
}

/// What is damaged where a step failed with this error, if that explains it; `base` is the commit that a run started
/// from.
pub fn damage_behind(cwd: &Path, base: Option<&Oid>, error: &GitError) -> Option<Damage> {
    match error {
        GitError::Git { .. } => damage_with(cwd, base).ok()?.into_iter().next(),
        _ => None,
    }
}

struct Looking<'r> {
    repo: &'r Repository,
    found: Vec<Damage>,
    bytes_left: usize,
    objects_left: usize,
}

impl Looking<'_> {
    fn tell(&mut self, path: PathBuf, what: impl Into<String>, remedy: String) {
        if self.found.iter().all(|known| known.path != path) {
            let what = what.into();
            self.found.push(Damage { path, what, remedy });
        }
    }

    fn index(&mut self) {
        let path = self.repo.path().join("index");
        let is_empty = fs::metadata(&path).is_ok_and(|found| found.len() == 0);
        let read = self.repo.index().and_then(|mut index| index.read(true));
        let what = match read {
            _ if is_empty => "is empty".to_owned(),
            Err(error) => format!("cannot be read: {}", error.message()),
            Ok(()) => return,
        };
        let shown = path.display();
        let remedy = format!(
            "`rm '{shown}' && git reset` restores it from the last commit: files stay as they are, and what was staged has to be staged again"
        );
        self.tell(path, what, remedy);
    }

    /// The commit of the branch, where there is one.
    fn head(&mut self) -> Option<git2::Oid> {
        let head = match self.repo.find_reference("HEAD") {
            Ok(head) => head,
            Err(error) => {
                let path = self.repo.path().join("HEAD");
                let remedy = format!(
                    "`echo 'ref: refs/heads/BRANCH' > '{}'` with the branch that is checked out",
                    path.display()
                );
                self.tell(path, format!("cannot be read: {}", error.message()), remedy);
                return None;
            }
        };
        let Ok(Some(name)) = head.symbolic_target().map(|name| name.map(str::to_owned)) else {
            return head.target();
        };
        match self.repo.find_reference(&name) {
            Ok(branch) => branch.target(),
            Err(error) if error.code() == ErrorCode::NotFound => None,
            Err(error) => {
                let path = self.repo.commondir().join(&name);
                let last = self.last_logged(&name);
                let remedy = match &last {
                    Some(oid) => format!(
                        "`rm '{}' && git update-ref {name} {oid}`: its log names that commit last",
                        path.display()
                    ),
                    None => format!(
                        "`rm '{}' && git update-ref {name} COMMIT`; `git fsck --lost-found` lists commits",
                        path.display()
                    ),
                };
                self.tell(path, format!("cannot be read: {}", error.message()), remedy);
                last.and_then(|oid| oid.parse().ok())
            }
        }
    }

    fn last_logged(&self, reference: &str) -> Option<String> {
        let log = self.repo.commondir().join("logs").join(reference);
        let log = fs::read_to_string(log).ok()?;
        let oid = log.lines().last()?.split(' ').nth(1)?;
        git2::Oid::from_str(oid).ok().map(|oid| oid.to_string())
    }

    /// A power cut leaves these; each stands in the way of writing its object again.
    fn empty_objects(&mut self) {
        let objects = self.repo.commondir().join("objects");
        let fans = (0..=u8::MAX).map(|fan| objects.join(format!("{fan:02x}")));
        let mut looked_at = 0;
        for fan in fans {
            for entry in fs::read_dir(fan).into_iter().flatten().flatten() {
                looked_at += 1;
                if looked_at > OBJECTS_MAX || self.found.len() > NAMED_MAX {
                    return;
                }
                if entry
                    .metadata()
                    .is_ok_and(|found| found.is_file() && found.len() == 0)
                {
                    let path = entry.path();
                    let remedy = format!("`rm -f '{}'`, {FSCK}", path.display());
                    self.tell(path, "is an empty object", remedy);
                }
            }
        }
    }

    /// Reads a commit and all that its tree holds.
    fn commit(&mut self, commit: git2::Oid) {
        if !self.reads(commit, "the commit of the branch", FETCH) {
            return;
        }
        let Ok(tree) = self.repo.find_commit(commit).map(|found| found.tree_id()) else {
            return;
        };
        let mut trees = vec![(tree, String::new())];
        let mend = self.repo.path().join("index.mend");
        let mend = format!("GIT_INDEX_FILE='{}'", mend.display());
        // A tree that the index believes to be written already is not written by `git write-tree` alone.
        let write = format!(
            "then where nothing is staged `git ls-files -s | {mend} git update-index --index-info && {mend} git write-tree`, else `git fetch --refetch` from a clone that has it"
        );
        while let Some((oid, prefix)) = trees.pop() {
            let shown = if prefix.is_empty() { "/" } else { &prefix };
            if !self.reads(oid, &format!("the tree of `{shown}`"), &write) {
                continue;
            }
            let Ok(tree) = self.repo.find_tree(oid) else {
                continue;
            };
            for entry in &tree {
                if self.objects_left == 0 {
                    return;
                }
                let path = format!("{prefix}{}", String::from_utf8_lossy(entry.name_bytes()));
                match entry.kind() {
                    Some(ObjectType::Tree) => trees.push((entry.id(), format!("{path}/"))),
                    Some(ObjectType::Blob) => self.blob(entry.id(), &path),
                    _ => {}
                }
            }
        }
    }

    fn blob(&mut self, oid: git2::Oid, path: &str) {
        let what = format!("the content of `{path}`");
        let file = self.repo.workdir().map(|workdir| workdir.join(path));
        let is_same = |file: PathBuf| {
            git2::Oid::hash_file(ObjectType::Blob, file).is_ok_and(|hashed| hashed == oid)
        };
        if self.can_read(oid).is_ok() {
            return;
        }
        if file.is_some_and(is_same) {
            let remedy =
                format!("then `git hash-object -w '{path}'`: the file still has that content");
            self.reads(oid, &what, &remedy);
        } else {
            self.reads(oid, &what, FETCH);
        }
    }

    fn can_read(&mut self, oid: git2::Oid) -> Result<(), git2::Error> {
        self.objects_left = self.objects_left.saturating_sub(1);
        let file = self.loose(oid);
        // The git library would read one that is cut off without end.
        if file.exists() && !is_whole_object(&file, oid) {
            let message = "its content is not what was written";
            return Err(git2::Error::new(
                ErrorCode::GenericError,
                git2::ErrorClass::Odb,
                message,
            ));
        }
        let odb = self.repo.odb()?;
        let (bytes, _) = odb.read_header(oid)?;
        if bytes <= self.bytes_left.min(OBJECT_BYTES_MAX) {
            self.bytes_left -= bytes;
            odb.read(oid)?;
        }
        Ok(())
    }

    /// Where an object is that is in no pack.
    fn loose(&self, oid: git2::Oid) -> PathBuf {
        let name = oid.to_string();
        let (fan, rest) = name.split_at(2);
        self.repo.commondir().join("objects").join(fan).join(rest)
    }

    /// Whether an object can be read; one that cannot is told.
    fn reads(&mut self, oid: git2::Oid, what: &str, anew: &str) -> bool {
        let Err(error) = self.can_read(oid) else {
            return true;
        };
        let path = self.loose(oid);
        // What was found to be empty is told again, with what it is.
        self.found.retain(|known| known.path != path);
        let how = match fs::metadata(&path) {
            Ok(found) if found.len() == 0 => "is empty".to_owned(),
            Ok(_) => format!("is damaged ({})", error.message()),
            Err(_) => format!("is missing ({})", error.message()),
        };
        let remedy = format!("`rm -f '{}'`, {anew}; {FSCK}", path.display());
        self.tell(path, format!("{how}: {what}"), remedy);
        false
    }
}

/// What tells the whole of it.
const FSCK: &str = "`git fsck --full` lists all that is damaged or missing";
/// What brings an object back that only other clones have.
const FETCH: &str =
    "then `git fetch --refetch` from a clone that has it, or `git reset --soft` to an older commit";
