//! Trees: one entry, the difference between two, and a tree with some entries replaced.

use std::collections::BTreeMap;

use git2::{DiffOptions, Tree};
use serde::{Deserialize, Serialize};

use super::deadline::Deadline;
use super::error::{GitError, git, git_write};
use super::ids::{Oid, RepoPath};
use super::open::Handle;

/// What a tree holds at a path: a blob, a link's target or a submodule's commit, and its mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeEntry {
    /// The blob, or the commit of a submodule.
    pub oid: Oid,
    /// The git file mode, one of [`MODE_FILE`], [`MODE_EXECUTABLE`], [`MODE_LINK`],
    /// [`MODE_SUBMODULE`].
    pub mode: u32,
}

/// A regular file.
pub const MODE_FILE: u32 = 0o100_644;
/// An executable file.
pub const MODE_EXECUTABLE: u32 = 0o100_755;
/// A symbolic link.
pub const MODE_LINK: u32 = 0o120_000;
/// The commit of a submodule.
pub const MODE_SUBMODULE: u32 = 0o160_000;

/// Entries to put into a tree (`Some`) or to take out of it (`None`).
pub(super) type Overlay = BTreeMap<RepoPath, Option<TreeEntry>>;

/// How a path differs between two trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// It was not there.
    Added,
    /// Its content differs.
    Modified,
    /// It is gone.
    Deleted,
    /// A file became a link or a submodule, or the other way round.
    TypeChanged,
    /// Only the executable bit differs.
    ModeChanged,
}

/// One path that differs between two trees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path.
    pub path: RepoPath,
    /// How it differs.
    pub kind: ChangeKind,
    /// What the older tree holds.
    pub old: Option<TreeEntry>,
    /// What the newer tree holds.
    pub new: Option<TreeEntry>,
}

impl Change {
    /// A change from what the older and the newer tree hold; `None` when they agree.
    pub(super) fn between(
        path: RepoPath,
        old: Option<TreeEntry>,
        new: Option<TreeEntry>,
    ) -> Option<Self> {
        const TYPE: u32 = 0o170_000;
        let kind = match (&old, &new) {
            (a, b) if a == b => return None,
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Deleted,
            (Some(a), Some(b)) if a.mode & TYPE != b.mode & TYPE => ChangeKind::TypeChanged,
            (Some(a), Some(b)) if a.oid == b.oid => ChangeKind::ModeChanged,
            (Some(_), Some(_)) => ChangeKind::Modified,
        };
        Some(Self {
            path,
            kind,
            old,
            new,
        })
    }
}

impl Handle {
    /// Every path that differs between two trees, in the order of their bytes.
    pub(super) fn differences(
        &self,
        old: Option<&Tree<'_>>,
        new: Option<&Tree<'_>>,
    ) -> Result<Vec<Change>, GitError> {
        let mut options = DiffOptions::new();
        options
            .include_typechange(true)
            .ignore_submodules(false)
            .ignore_filemode(false)
            .skip_binary_check(true);
        let diff = self
            .repo
            .diff_tree_to_tree(old, new, Some(&mut options))
            .map_err(git("compare two trees"))?;
        let mut changes = Vec::new();
        for delta in diff.deltas() {
            let (old, new) = (delta.old_file(), delta.new_file());
            let bytes = new.path_bytes().or(old.path_bytes()).unwrap_or_default();
            let path = RepoPath::from_bytes(bytes)?;
            changes.extend(Change::between(path, side(&old), side(&new)));
        }
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    /// Writes the tree `base` with the overlay laid over it. Nothing is written for no overlay.
    pub(super) fn write_tree(
        &self,
        base: Option<&Tree<'_>>,
        overlay: &Overlay,
        written: &mut Vec<Oid>,
        deadline: Deadline<'_>,
    ) -> Result<Oid, GitError> {
        if let (Some(base), true) = (base, overlay.is_empty()) {
            return Ok(base.id().into());
        }
        let edits: Vec<Edit<'_>> = overlay
            .iter()
            .map(|(path, entry)| (path.as_bytes(), entry.as_ref()))
            .collect();
        let (oid, _) = self.write_level(base, &edits, written, deadline)?;
        Ok(oid.into())
    }

    /// Writes one directory: `edits` are sorted and relative to it. Also says how many entries
    /// it has, because git knows no empty directories.
    fn write_level(
        &self,
        base: Option<&Tree<'_>>,
        edits: &[Edit<'_>],
        written: &mut Vec<Oid>,
        deadline: Deadline<'_>,
    ) -> Result<(git2::Oid, usize), GitError> {
        deadline.check()?;
        let fail = git_write("write a tree in", self.repo.commondir());
        let mut builder = self.repo.treebuilder(base).map_err(&fail)?;
        for (name, (here, beneath)) in grouped(edits) {
            if let Some(entry) = here {
                remove_entry(&mut builder, name)?;
                if let Some(entry) = entry {
                    let mode = i32::try_from(entry.mode).unwrap_or(0o100_644);
                    builder.insert(name, entry.oid.raw(), mode).map_err(&fail)?;
                }
            }
            let taken = matches!(here, Some(Some(_)));
            let only_removals = beneath.iter().all(|(_, entry)| entry.is_none());
            if beneath.is_empty() || (taken && only_removals) {
                continue;
            }
            let subtree = match base.and_then(|t| t.get_name_bytes(name)) {
                Some(e) if e.kind() == Some(git2::ObjectType::Tree) => {
                    Some(self.repo.find_tree(e.id()).map_err(&fail)?)
                }
                _ if only_removals => continue,
                _ => None,
            };
            let (oid, count) = self.write_level(subtree.as_ref(), &beneath, written, deadline)?;
            remove_entry(&mut builder, name)?;
            if count > 0 {
                builder.insert(name, oid, 0o040_000).map_err(&fail)?;
            }
        }
        let oid = builder.write().map_err(&fail)?;
        written.push(oid.into());
        Ok((oid, builder.len()))
    }
}

/// What a tree holds at a path, if that is not a directory.
pub(super) fn entry_at(
    tree: Option<&Tree<'_>>,
    path: &RepoPath,
) -> Result<Option<TreeEntry>, GitError> {
    let Some(tree) = tree else { return Ok(None) };
    match tree.get_path(path.as_path()) {
        Err(e) if e.code() == git2::ErrorCode::NotFound => Ok(None),
        Err(e) => Err(git("read a tree")(e)),
        Ok(found) => Ok(entry_of(found.id(), found.filemode())),
    }
}

type Edit<'a> = (&'a [u8], Option<&'a TreeEntry>);

/// What happens to one name: the edit of the name itself, and the edits beneath it.
type Named<'a> = (Option<Option<&'a TreeEntry>>, Vec<Edit<'a>>);

fn grouped<'a>(edits: &[Edit<'a>]) -> BTreeMap<&'a [u8], Named<'a>> {
    let mut groups: BTreeMap<&[u8], Named<'_>> = BTreeMap::new();
    for (path, entry) in edits {
        match path.iter().position(|b| *b == b'/') {
            None => groups.entry(path).or_default().0 = Some(*entry),
            Some(cut) => {
                let group = groups.entry(&path[..cut]).or_default();
                group.1.push((&path[cut + 1..], *entry));
            }
        }
    }
    groups
}

fn remove_entry(builder: &mut git2::TreeBuilder<'_>, name: &[u8]) -> Result<(), GitError> {
    let fail = git("write a tree");
    if builder.get(name).map_err(&fail)?.is_some() {
        builder.remove(name).map_err(fail)?;
    }
    Ok(())
}

fn side(file: &git2::DiffFile<'_>) -> Option<TreeEntry> {
    if !file.exists() || file.id().is_zero() {
        return None;
    }
    entry_of(file.id(), i32::from(file.mode()))
}

fn entry_of(oid: git2::Oid, mode: i32) -> Option<TreeEntry> {
    let mode = match u32::try_from(mode).ok()? {
        // Old repositories hold group-writable files; git has treated them as plain ever since.
        0o100_664 => MODE_FILE,
        mode @ (MODE_FILE | MODE_EXECUTABLE | MODE_LINK | MODE_SUBMODULE) => mode,
        _ => return None,
    };
    Some(TreeEntry {
        oid: oid.into(),
        mode,
    })
}
