//! Checks that commits are connected to the history of the real repository, by the parents that the commits name.

use std::collections::HashSet;
use std::fs;

use git2::{ObjectType, Repository};

use crate::error::{GitError, git};
use crate::ids::Oid;
use crate::repository::Repo;

/// Returns a parent that would be missing if these commits were imported; `None` if there is none.
///
/// Parents are read from the content of each commit, because files such as `shallow` make the library report other
/// ones. A parent must be imported too, or be reachable in the real repository from a commit that it keeps. Otherwise
/// `git gc` would fail there.
pub(crate) fn missing_parent(
    source: &Repository,
    real: &Repo,
    commits: &[git2::Oid],
    kept: &[&Oid],
) -> Result<Option<git2::Oid>, GitError> {
    let fail = git("collect the run's objects");
    let odb = source.odb().map_err(&fail)?;
    let imported: HashSet<git2::Oid> = commits.iter().copied().collect();
    let shallow = fs::read_to_string(real.common_dir.join("shallow")).unwrap_or_default();
    let shallow: HashSet<&str> = shallow.lines().collect();
    let mut seen = HashSet::new();
    for commit in commits {
        // The real repository does not have the parents of these either.
        if shallow.contains(commit.to_string().as_str()) {
            continue;
        }
        let object = odb.read(*commit).map_err(&fail)?;
        if object.kind() != ObjectType::Commit {
            return Ok(Some(*commit));
        }
        for parent in parents(object.data()) {
            if !imported.contains(&parent) && seen.insert(parent) && !is_kept(real, parent, kept) {
                return Ok(Some(parent));
            }
        }
    }
    Ok(None)
}

/// The header of a commit has one line for its tree, and then one for each parent.
pub(crate) fn parents(content: &[u8]) -> impl Iterator<Item = git2::Oid> {
    let lines = content.split(|byte| *byte == b'\n').skip(1);
    lines.map_while(|line| {
        let id = std::str::from_utf8(line.strip_prefix(b"parent ")?).ok()?;
        git2::Oid::from_str(id).ok()
    })
}

fn is_kept(real: &Repo, commit: git2::Oid, kept: &[&Oid]) -> bool {
    let is_below = |tip: &&Oid| {
        let found = real.inner.graph_descendant_of(tip.raw(), commit);
        tip.raw() == commit || found.unwrap_or(false)
    };
    real.inner.find_commit(commit).is_ok() && kept.iter().any(is_below)
}
