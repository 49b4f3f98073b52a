//! What a run changed, as a patch.

use std::fmt::Write as _;
use std::path::Path;

use super::view::RunSnapshot;
use crate::git;
use crate::model::outcome::Phase;
use crate::model::{Diagnostic, Kind};
use crate::protocol::{ChangeStatus, Changes, DiffQuery, PathChange};

/// Largest message of a commit that is shown, in bytes.
const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// Largest patch that is answered, in bytes.
const DIFF_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most paths that are told.
const PATHS_MAX: usize = 10_000;

/// The patch of a run's commit, or of what is kept of a run that was put back.
///
/// # Errors
/// Nothing is kept, or the repository cannot be read.
pub(super) fn patch(shown: &RunSnapshot, query: &DiffQuery) -> Result<String, Diagnostic> {
    let cwd = Path::new(&shown.spec.cwd);
    let only = query.path.as_deref();
    if only.is_none()
        && let Some(text) = commit_by_commit(shown, cwd)?
    {
        return Ok(text);
    }
    let span = span(shown)?.ok_or_else(|| no_span(shown))?;
    let patch = git::patch(cwd, &span, only, DIFF_BYTES_MAX).map_err(|error| failed(&error))?;
    if let Some(path) = only.filter(|_| patch.text.is_empty() && !patch.truncated) {
        let message = format!("{} did not change `{path}`", shown.spec.run.short());
        return Err(Diagnostic::new(Kind::NotFound, "path_unchanged", message));
    }
    let note = if patch.truncated {
        "\n(cut: the patch is larger than 4 MiB)\n"
    } else {
        ""
    };
    Ok(patch.text + note)
}

/// The paths of that patch.
///
/// # Errors
/// Nothing is kept, or the repository cannot be read.
pub(super) fn changes(shown: &RunSnapshot) -> Result<Changes, Diagnostic> {
    let span = span(shown)?.ok_or_else(|| no_span(shown))?;
    let (paths, count) = git::changed_paths(Path::new(&shown.spec.cwd), &span, PATHS_MAX)
        .map_err(|error| failed(&error))?;
    Ok(Changes {
        paths: paths.into_iter().map(change).collect(),
        total: count as u64,
    })
}

fn change(found: git::ChangedPath) -> PathChange {
    let (status, from) = match found.change {
        git::PathChange::Added => (ChangeStatus::Added, None),
        git::PathChange::Modified => (ChangeStatus::Modified, None),
        git::PathChange::Deleted => (ChangeStatus::Deleted, None),
        git::PathChange::Renamed { from } => (ChangeStatus::Renamed, Some(from)),
    };
    PathChange {
        path: found.path,
        status,
        from,
        added: found.lines.map(|(came, _)| came),
        removed: found.lines.map(|(_, went)| went),
        binary: found.is_binary,
    }
}

/// From what a run began with to its commit, or to what is kept of a run that was put back.
pub(super) fn span(shown: &RunSnapshot) -> Result<Option<git::Span>, Diagnostic> {
    let cwd = Path::new(&shown.spec.cwd);
    let summary = &shown.summary;
    let run = shown.spec.run.to_string();
    let run: git::RunId = run
        .parse()
        .map_err(|error: git::NameError| failed(&error))?;
    // Another attempt makes it anew, from what its branch holds by then.
    let is_made = !matches!(
        summary.phase,
        Phase::Queued | Phase::Preparing | Phase::Executing | Phase::Verifying
    );
    if summary.commit.is_none() && is_made {
        let kept = git::kept_span(cwd, &run).map_err(|error| failed(&error))?;
        if kept.is_some() {
            return Ok(kept);
        }
    }
    let Some(last) = summary.newest_commit() else {
        return Ok(None);
    };
    let first = summary.commits_made.newest.first().unwrap_or(last);
    let parsed = |oid: &String| oid.parse().map_err(|error: git::NameError| failed(&error));
    git::span_of_commits(cwd, &parsed(first)?, &parsed(last)?).map_err(|error| failed(&error))
}

fn no_span(shown: &RunSnapshot) -> Diagnostic {
    let (summary, short) = (&shown.summary, shown.spec.run.short());
    let (code, message) = match summary.newest_commit() {
        Some(commit) => (
            "commit_gone",
            format!("the commit {commit} of {short} is not in the repository any more"),
        ),
        None if summary.outcome.is_none() => (
            "nothing_kept",
            format!("nothing that {short} changes is kept yet"),
        ),
        None => (
            "nothing_kept",
            format!("nothing that {short} changed is kept"),
        ),
    };
    Diagnostic::new(Kind::NotFound, code, message)
}

fn failed(error: &dyn std::error::Error) -> Diagnostic {
    let message = crate::model::diagnostic::chain(error);
    Diagnostic::new(Kind::Internal, "diff", message)
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
        let span = git::span_of_commits(cwd, &oid, &oid).map_err(|error| failed(&error))?;
        let Some(span) = span else { continue };
        let patch = git::patch(cwd, &span, None, left).map_err(|error| failed(&error))?;
        text.push_str(&patch.text);
        if patch.truncated {
            text.push_str("\n(cut: the patches are larger than 4 MiB)\n");
            break;
        }
        text.push('\n');
    }
    Ok(Some(text))
}
