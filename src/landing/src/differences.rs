//! What differs between two trees. Only subtrees that differ are read, which the git library's own comparison
//! does not spare: in a repository of 50,000 files it takes longer than everything else at a landing.

use std::cmp::Ordering;
use std::iter::Peekable;

use git2::{Oid, Repository, Tree, TreeEntry};

use crate::ids::PATH_COMPONENTS_MAX;

/// Largest tree that is read, in bytes. It unpacks to that, whatever its size on disk is.
const TREE_BYTES_MAX: usize = 64 << 20;

/// Most entries that may differ.
pub(crate) const ENTRIES_MAX: usize = 300_000;

/// The mode of a subtree.
pub const MODE_TREE: u32 = 0o040_000;

/// An entry: what it names, and its mode as it is stored.
pub type TreeItem = (Oid, u32);

/// Told of a path, and of what the two trees hold there.
type TreeVisitor<'a> = &'a mut dyn FnMut(&[u8], Option<TreeItem>, Option<TreeItem>);

/// Tells of each entry in which two trees differ, in the order of git: a subtree before what it holds, and a file
/// and a subtree of one name apart.
///
/// # Errors
/// A tree cannot be read, is larger than 64 MiB, or is nested more than [`PATH_COMPONENTS_MAX`] deep; or more than
/// 300,000 entries differ, as a few trees that contain each other many times can have any number of paths.
pub fn differences(
    repo: &Repository,
    old: Option<Oid>,
    new: Option<Oid>,
    told: TreeVisitor<'_>,
) -> Result<(), git2::Error> {
    let mut left = ENTRIES_MAX;
    differences_within(repo, (old, new), &mut left, told)
}

/// Does the same for several pairs of trees, which have `left` entries together.
pub(crate) fn differences_within(
    repo: &Repository,
    (old, new): (Option<Oid>, Option<Oid>),
    left: &mut usize,
    told: TreeVisitor<'_>,
) -> Result<(), git2::Error> {
    subtree(repo, (old, new), (&mut Vec::new(), left), told)
}

fn subtree(
    repo: &Repository,
    (old, new): (Option<Oid>, Option<Oid>),
    (path, left): (&mut Vec<u8>, &mut usize),
    told: TreeVisitor<'_>,
) -> Result<(), git2::Error> {
    if old == new {
        return Ok(());
    }
    if path.split(|byte| *byte == b'/').count() > PATH_COMPONENTS_MAX + 1 {
        return Err(git2::Error::from_str(
            "a tree is nested more than 256 levels deep",
        ));
    }
    let odb = repo.odb()?;
    let find = |oid: Oid| match odb.read_header(oid)? {
        (size, _) if size > TREE_BYTES_MAX => {
            Err(git2::Error::from_str("a tree is larger than 64 MiB"))
        }
        _ => repo.find_tree(oid),
    };
    let read = |oid: Option<Oid>| oid.map(find).transpose();
    let (old, new) = (read(old)?, read(new)?);
    let (mut old, mut new) = (entries(old.as_ref()), entries(new.as_ref()));
    let length = path.len();
    while let Some(order) = next(&mut old, &mut new) {
        let before = old.next_if(|_| order.is_le());
        let after = new.next_if(|_| order.is_ge());
        let (was, is) = (before.as_ref().map(item), after.as_ref().map(item));
        if was == is {
            continue;
        }
        let Some(entry) = before.as_ref().or(after.as_ref()) else {
            continue;
        };
        let too_many = || git2::Error::from_str("more than 300,000 paths differ");
        *left = left.checked_sub(1).ok_or_else(too_many)?;
        path.extend_from_slice(entry.name_bytes());
        told(path, was, is);
        if is_tree(entry) {
            path.push(b'/');
            let ids = (was.map(|(oid, _)| oid), is.map(|(oid, _)| oid));
            subtree(repo, ids, (path, left), told)?;
        }
        path.truncate(length);
    }
    Ok(())
}

fn entries<'a>(tree: Option<&'a Tree<'_>>) -> Peekable<impl Iterator<Item = TreeEntry<'a>>> {
    tree.into_iter().flat_map(Tree::iter).peekable()
}

/// Whose entry comes first; `None` after the last.
fn next<'a>(
    old: &mut Peekable<impl Iterator<Item = TreeEntry<'a>>>,
    new: &mut Peekable<impl Iterator<Item = TreeEntry<'a>>>,
) -> Option<Ordering> {
    match (old.peek(), new.peek()) {
        (None, None) => None,
        (Some(_), None) => Some(Ordering::Less),
        (None, Some(_)) => Some(Ordering::Greater),
        (Some(old), Some(new)) => Some(sorted_name(old).cmp(sorted_name(new))),
    }
}

/// Git sorts a subtree as if its name ended with a slash.
fn sorted_name<'a>(entry: &'a TreeEntry<'_>) -> impl Iterator<Item = u8> + use<'a> {
    let slash = is_tree(entry).then_some(b'/');
    entry.name_bytes().iter().copied().chain(slash)
}

fn item(entry: &TreeEntry<'_>) -> TreeItem {
    (entry.id(), entry.filemode_raw().cast_unsigned())
}

fn is_tree(entry: &TreeEntry<'_>) -> bool {
    entry.filemode_raw().cast_unsigned() == MODE_TREE
}
