//! Warnings about what a run left, or lacked, in its tree.

use std::path::Path;

use workerctl_trees::RunResult;

use super::super::work::Work;
use super::place::tree_spec;
use super::{Performer, lock};
use crate::git::{self, RepoPath};
use crate::model::outcome::Failure;

/// How many ignored files a note names.
const IGNORED_SHOWN_MAX: usize = 5;

/// How many entries of the checkout a note names.
const LACKING_SHOWN_MAX: usize = 8;

impl Performer {
    /// Returns the warnings about what an attempt left in its tree.
    pub(super) fn result_notes(
        &self,
        work: &Work,
        change: &RunResult,
    ) -> Result<Vec<String>, Failure> {
        let ignored = self.ignored_note(work, change)?.into_iter();
        let notes = ignored.chain(self.script_note(work));
        Ok(notes.chain(unkept_notes(change)).collect())
    }

    /// What was left out of the result because git ignores it, and is not put into the checkout either.
    fn ignored_note(&self, work: &Work, change: &RunResult) -> Result<Option<String>, Failure> {
        let outputs = output_paths(work)?;
        let tree = self.tree(work)?;
        let root = lock(&tree).path().to_owned();
        let seen = &change.ignored.names;
        let mut left = seen.clone();
        left.retain(|name| holds_other(&root, Path::new(name.trim_end_matches('/')), &outputs));
        let published = u64::try_from(seen.len() - left.len()).unwrap_or(u64::MAX);
        let count = change.ignored.count.saturating_sub(published);
        let shown = left.iter().take(IGNORED_SHOWN_MAX);
        let shown: Vec<String> = shown.map(|name| format!("`{name}`")).collect();
        let shown = shown.join(", ");
        Ok(match count {
            0 => None,
            1 => Some(format!(
                "1 path that git ignores is not part of the result: {shown}; list it in `keep` to keep it for the next run"
            )),
            _ => Some(format!(
                "{count} paths that git ignores are not part of the result: {shown}; list them in `keep` to keep them for the next run"
            )),
        })
    }

    /// What the checkout has that a failed run may have missed, with the line that gives it to the next one.
    pub(super) fn lacking_note(&self, work: &Work) -> Option<String> {
        let spec = work.spec.tree.as_ref()?;
        let (workdir, workspace) = (Path::new(&spec.workdir), Path::new(&work.spec.workspace));
        let ours = self.own_places(work);
        let is_lacking = |path: &String| {
            let plain = path.trim_end_matches('/');
            let place = workdir.join(plain);
            let is_ours = ours
                .iter()
                .any(|own| own.starts_with(&place) || place.starts_with(own));
            let is_laid = spec.laid_over.iter().any(|one| one.path == plain);
            !is_ours && !is_laid && !spec.keep.iter().any(|kept| kept == plain)
        };
        // `local` is relative to the workspace, and takes paths without patterns.
        let nameable = |path: String| {
            let inner = workdir.join(&path).strip_prefix(workspace).ok()?.to_owned();
            let mut inner = inner.to_str()?.to_owned();
            if path.ends_with('/') {
                inner.push('/');
            }
            let special = |c: char| c.is_control() || "*?[{}".contains(c);
            (!inner.contains(special)).then(|| in_yaml(&inner))
        };
        let entries = git::ignored_entries(workdir).ok()?.into_iter();
        let lacking = entries.filter(is_lacking).filter_map(nameable);
        let lacking: Vec<String> = lacking.take(LACKING_SHOWN_MAX).collect();
        if lacking.is_empty() {
            return None;
        }
        Some(format!(
            "its tree lacked what git ignores in the checkout; what it needs of that is given to it by \
             `local: [{}]`, and what it makes itself stays with `keep`",
            lacking.join(", ")
        ))
    }
}

/// Names entries of `keep` that the run replaced by something of another type.
fn unkept_notes(change: &RunResult) -> impl Iterator<Item = String> {
    change.unkept.iter().map(|path| {
        format!("`{path}` is not kept for the next run, because the run replaced it with another type of file")
    })
}

/// Whether there is something at a path that is none of the outputs.
fn holds_other(root: &Path, path: &Path, outputs: &[RepoPath]) -> bool {
    let outputs_below = || {
        let mut outputs = outputs.iter().map(RepoPath::as_path);
        outputs.any(|output| output != path && output.starts_with(path))
    };
    if outputs.iter().any(|output| output.as_path() == path) {
        return false;
    }
    match outputs_below().then(|| std::fs::read_dir(root.join(path))) {
        Some(Ok(mut listed)) => listed.any(|entry| {
            let inner = entry.map(|entry| path.join(entry.file_name()));
            inner.is_ok_and(|inner| holds_other(root, &inner, outputs))
        }),
        Some(Err(_)) | None => true,
    }
}

/// A path as it may stand in a list of a definition.
fn in_yaml(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let is_word = path.chars().any(|c| c.is_ascii_alphabetic())
        && path.chars().all(is_plain)
        && !path.starts_with('-')
        && path.parse::<f64>().is_err()
        && !matches!(path, "true" | "false" | "null");
    if is_word {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "''"))
    }
}

/// Declared outputs relative to the repository.
pub(super) fn output_paths(work: &Work) -> Result<Vec<RepoPath>, Failure> {
    let workdir = Path::new(&tree_spec(work)?.workdir);
    let workspace = Path::new(&work.spec.workspace);
    let declared = work.spec.outputs.iter().filter_map(|o| o.path.as_ref());
    let inside = declared.filter_map(|path| {
        let place = workspace.join(path);
        let relative = place.strip_prefix(workdir).ok()?;
        RepoPath::from_bytes(relative.as_os_str().as_encoded_bytes()).ok()
    });
    Ok(inside.collect())
}
