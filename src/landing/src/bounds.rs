//! Limits on what a run may commit.
//!
//! The git library reads an object into memory as a whole, and a compressed object of some megabytes can unpack to
//! gigabytes. Trees can be nested deeper than a path can be long.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use git2::{ObjectType, Odb, Oid, Repository};

use crate::connected::parents;
use crate::differences::{ENTRIES_MAX, MODE_TREE, differences_within};
use crate::plan::MODE_COMMIT;

/// Largest commit, in bytes.
const COMMIT_BYTES_MAX: usize = 16 << 20;

/// Largest file, in bytes.
pub const FILE_BYTES_MAX: u64 = 512 << 20;

/// The modes that git writes. The library panics at others, and servers refuse them.
const MODES: [u32; 6] = [
    0o040_000, 0o100_644, 0o100_664, 0o100_755, 0o120_000, 0o160_000,
];

/// Returns what is too large or too deep in the commits that lead to `tip`; `None` if nothing is.
///
/// Commits and files that `known` has are not looked at.
///
/// # Errors
/// An object of the run cannot be read.
pub fn beyond_bounds(
    source: &Repository,
    known: &Odb<'_>,
    tip: Oid,
) -> Result<Option<String>, git2::Error> {
    let odb = source.odb()?;
    let (mut seen, mut left, mut commits) = (HashSet::from([tip]), vec![tip], Vec::new());
    while let Some(commit) = left.pop() {
        if known.exists(commit) {
            continue;
        }
        let Ok((size, kind)) = odb.read_header(commit) else {
            continue;
        };
        if kind != ObjectType::Commit {
            return Ok(Some(format!("{commit} is not a commit")));
        }
        if size > COMMIT_BYTES_MAX {
            return Ok(Some(format!("the commit {commit} is larger than 16 MiB")));
        }
        let object = odb.read(commit)?;
        left.extend(parents(object.data()).filter(|parent| seen.insert(*parent)));
        commits.push(commit);
    }
    let (mut problem, mut left) = (None, ENTRIES_MAX);
    for commit in commits {
        let commit = source.find_commit(commit)?;
        let former = commit.parents().next().map(|parent| parent.tree_id());
        let trees = (former, Some(commit.tree_id()));
        let compared = differences_within(source, trees, &mut left, &mut |path, _, new| {
            let Some((oid, mode)) = new.filter(|_| problem.is_none()) else {
                return;
            };
            let is_file = ![MODE_TREE, MODE_COMMIT].contains(&mode);
            let size = || {
                let size = odb.read_header(oid).map_or(0, |(size, _)| size);
                u64::try_from(size).unwrap_or(u64::MAX)
            };
            let why = if !MODES.contains(&mode) {
                "has an unknown mode"
            } else if is_file && !known.exists(oid) && size() > FILE_BYTES_MAX {
                "is larger than 512 MiB"
            } else {
                return;
            };
            let path = String::from_utf8_lossy(path).escape_debug().to_string();
            problem = Some(format!("`{path}` in a commit {why}"));
        });
        if let Err(error) = compared {
            let id = commit.id();
            return Ok(Some(format!("the commit {id}: {}", error.message())));
        }
    }
    Ok(problem)
}

/// Opens the objects that a repository of a run borrows.
///
/// # Errors
/// The git library has no memory for it.
pub fn borrowed_objects(git_dir: &Path) -> Result<Odb<'static>, git2::Error> {
    let odb = Odb::new()?;
    let objects = git_dir.join("objects/info/alternates");
    for line in fs::read_to_string(objects).unwrap_or_default().lines() {
        odb.add_disk_alternate(line)?;
    }
    Ok(odb)
}
