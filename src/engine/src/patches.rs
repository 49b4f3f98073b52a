//! What a run changed, as a patch.

use std::fmt::Write as _;
use std::path::Path;

use super::view::RunSnapshot;
use crate::git;
use crate::model::outcome::Phase;
use crate::model::{Diagnostic, Kind};

/// Largest message of a commit that is shown, in bytes.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// Largest patch that is answered, in bytes.
const DIFF_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The patch of a run's commit, or of what is kept of a run that was put back.
///
/// # Errors
/// Nothing is kept, or the repository cannot be read.
pub(super) fn patch(shown: &RunSnapshot) -> Result<String, Diagnostic> {
    let failed = |error: &dyn std::error::Error| {
        let message = crate::model::diagnostic::chain(error);
        Diagnostic::new(Kind::Internal, "diff", message)
    };
    let cwd = Path::new(&shown.spec.cwd);
    let id: git::RunId = shown
        .spec
        .run
        .to_string()
        .parse()
        .map_err(|error: git::NameError| failed(&error))?;
    let parsed = |oid: &String| oid.parse().map_err(|error: git::NameError| failed(&error));
    if let Some(text) = commit_by_commit(shown, cwd)? {
        return Ok(text);
    }
    let of_commits = || match shown.summary.newest_commit() {
        Some(last) => {
            let first = shown.summary.commits_made.newest.first().unwrap_or(last);
            let (first, last) = (parsed(first)?, parsed(last)?);
            git::diff_of_commits(cwd, &first, &last, DIFF_BYTES_MAX).map_err(|error| failed(&error))
        }
        None => Ok(None),
    };
    let patch = if shown.summary.commit.is_some() {
        of_commits()?
    } else {
        match git::diff(cwd, &id, DIFF_BYTES_MAX).map_err(|error| failed(&error))? {
            None => of_commits()?,
            kept => kept,
        }
    };
    let Some(patch) = patch else {
        return Err(Diagnostic::new(
            Kind::NotFound,
            "nothing_kept",
            format!("nothing that {} changed is kept", shown.spec.run.short()),
        ));
    };
    let note = if patch.truncated {
        "\n(cut: the patch is larger than 4 MiB)\n"
    } else {
        ""
    };
    Ok(patch.text + note)
}

/// The commits of a result that waits for a person, where its skill made some: all of them become history, also what a
/// later one takes back, and none of their authors and messages is ours.
fn commit_by_commit(shown: &RunSnapshot, cwd: &Path) -> Result<Option<String>, Diagnostic> {
    let made = &shown.summary.commits_made;
    let held = shown.run.facts.held.as_ref();
    let Some(held) =
        held.filter(|_| shown.summary.phase == Phase::AwaitingApproval && made.count > 0)
    else {
        return Ok(None);
    };
    let failed = |error: &dyn std::error::Error| {
        let message = crate::model::diagnostic::chain(error);
        Diagnostic::new(Kind::Internal, "diff", message)
    };
    let mut text = String::new();
    let earlier = made.count.saturating_sub(made.newest.len() as u64);
    if earlier > 0 {
        let _ = writeln!(
            text,
            "({earlier} earlier commits of the skill are not shown)\n"
        );
    }
    let own = held.commit.iter().filter(|own| !made.newest.contains(own));
    for oid in made.newest.iter().chain(own) {
        let oid: git::Oid = oid
            .parse()
            .map_err(|error: git::NameError| failed(&error))?;
        let commit =
            git::show_commit(cwd, &oid, MESSAGE_BYTES_MAX, 0).map_err(|error| failed(&error))?;
        if let Some(commit) = commit {
            let _ = writeln!(text, "commit {oid}\nAuthor: {}\n", commit.author);
            for line in commit.message.lines() {
                let _ = writeln!(text, "    {line}");
            }
            text.push('\n');
        }
        let left = DIFF_BYTES_MAX.saturating_sub(text.len());
        let patch = git::diff_of_commits(cwd, &oid, &oid, left).map_err(|error| failed(&error))?;
        let Some(patch) = patch else { continue };
        text.push_str(&patch.text);
        if patch.truncated {
            text.push_str("\n(cut: the patches are larger than 4 MiB)\n");
            break;
        }
        text.push('\n');
    }
    Ok(Some(text))
}
