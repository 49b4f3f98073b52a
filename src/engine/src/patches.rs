//! What a run changed, as a patch.

use std::fmt::Write as _;
use std::path::Path;

use super::baseline::kept_result;
use super::restricted::Restricted;
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

/// Most restricted paths that the view of a run has.
const PROTECTED_MAX: usize = 100;

/// Id of the empty tree, which `git diff` takes for an unborn branch.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// The patch of a run's commit, or of what is kept of a run that was put back: from the base to the result. The commits of
/// its skill follow if the result waits for approval.
///
/// # Errors
/// Nothing is kept, or the repository cannot be read.
pub(super) fn patch(shown: &RunSnapshot, query: &DiffQuery) -> Result<String, Diagnostic> {
    let cwd = Path::new(&shown.spec.cwd);
    let only = query.path.as_deref();
    let span = span(shown)?.ok_or_else(|| no_span(shown))?;
    let patch = git::patch(cwd, &span, only, DIFF_BYTES_MAX).map_err(|error| failed(&error))?;
    let short = shown.spec.run.short();
    if let Some(path) = only.filter(|_| patch.text.is_empty() && !patch.truncated) {
        let message = format!("{short} did not change `{path}`");
        return Err(Diagnostic::new(Kind::NotFound, "path_unchanged", message));
    }
    let mut text = patch.text;
    if patch.truncated {
        let range = range(&span, " ");
        let _ = writeln!(
            text,
            "\n(cut: the patch is larger than 4 MiB; `workerctl diff {short} PATH` shows one path, `git diff {range}` shows all)"
        );
    }
    if only.is_none() {
        add_commits(&mut text, shown, &span)?;
    }
    Ok(text)
}

/// Both ends of a span, for a command of git.
fn range(span: &git::Span, between: &str) -> String {
    let before = span.before.as_ref().map_or(EMPTY_TREE, git::Oid::as_str);
    format!("{before}{between}{}", span.after)
}

/// The paths of that patch, restricted ones first.
///
/// # Errors
/// Nothing is kept, or the repository cannot be read.
pub(super) fn changes(shown: &RunSnapshot, restricted: &Restricted) -> Result<Changes, Diagnostic> {
    let span = span(shown)?.ok_or_else(|| no_span(shown))?;
    let (paths, count) = changed_paths(shown, &span, restricted, PATHS_MAX)?;
    Ok(Changes {
        paths: paths.into_iter().map(change).collect(),
        total: count as u64,
    })
}

/// The restricted paths that a result changes which waits for approval, bounded.
pub(super) fn protected_changes(
    shown: &RunSnapshot,
    restricted: &Restricted,
) -> Result<Vec<String>, Diagnostic> {
    let is_held = shown.summary.phase == Phase::AwaitingApproval && shown.run.facts.held.is_some();
    let Some(span) = is_held.then(|| span(shown)).transpose()?.flatten() else {
        return Ok(Vec::new());
    };
    let (paths, _) = changed_paths(shown, &span, restricted, PROTECTED_MAX)?;
    let paths = paths.into_iter().filter(|path| path.is_first);
    Ok(paths.map(|path| path.path).collect())
}

fn changed_paths(
    shown: &RunSnapshot,
    span: &git::Span,
    restricted: &Restricted,
    paths_max: usize,
) -> Result<(Vec<git::ChangedPath>, usize), Diagnostic> {
    let cwd = Path::new(&shown.spec.cwd);
    let is_first = |path: &Path, mode| restricted.code(path, mode).is_some();
    git::changed_paths(cwd, span, paths_max, &is_first).map_err(|error| failed(&error))
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
        old_mode: octal(found.modes.0),
        mode: octal(found.modes.1),
        protected: found.is_first,
    }
}

fn octal(mode: u32) -> Option<String> {
    (mode != 0).then(|| format!("{mode:06o}"))
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
    // Its first parent need not be the base: the skill may have made many commits, or a merge.
    let recorded = kept_result(&shown.run, &shown.entries);
    let recorded = recorded.filter(|result| {
        result
            .kept
            .as_ref()
            .is_some_and(|kept| kept.as_str() == last)
    });
    let first = summary.commits_made.newest.first().unwrap_or(last);
    let parsed = |oid: &String| oid.parse().map_err(|error: git::NameError| failed(&error));
    let span = git::span_of_commits(cwd, &parsed(first)?, &parsed(last)?);
    let span = span.map_err(|error| failed(&error))?;
    Ok(span.map(|span| match recorded {
        Some(recorded) => git::Span {
            before: recorded.base.start.base,
            ..span
        },
        None => span,
    }))
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

/// Adds the commits of a result that waits for approval, if its skill made some: all of them become history, also what a
/// later one takes back, and none of their authors and messages is ours. Their lines are indented, so that `git apply` takes
/// the patch above and nothing else.
fn add_commits(text: &mut String, shown: &RunSnapshot, span: &git::Span) -> Result<(), Diagnostic> {
    let cwd = Path::new(&shown.spec.cwd);
    let made = &shown.summary.commits_made;
    let held = shown.run.facts.held.as_ref();
    let Some(held) =
        held.filter(|_| shown.summary.phase == Phase::AwaitingApproval && made.count > 0)
    else {
        return Ok(());
    };
    let own = held.commit.iter().filter(|own| !made.newest.contains(own));
    let commits: Vec<_> = made.newest.iter().chain(own).collect();
    let _ = writeln!(text, "\nIf it is approved, these commits become history:");
    let earlier = made.count.saturating_sub(made.newest.len() as u64);
    if earlier > 0 {
        let range = range(span, "..");
        let _ = writeln!(
            text,
            "({earlier} earlier commits are not listed: `git log {range}`)"
        );
    }
    let bytes_max = text.len() + DIFF_BYTES_MAX;
    for oid in &commits {
        let oid: git::Oid = oid
            .parse()
            .map_err(|error: git::NameError| failed(&error))?;
        let commit =
            git::show_commit(cwd, &oid, MESSAGE_BYTES_MAX, 0).map_err(|error| failed(&error))?;
        if let Some(commit) = commit {
            let _ = writeln!(text, "\ncommit {oid}\nAuthor: {}\n", commit.author);
            for line in commit.message.lines() {
                let _ = writeln!(text, "    {line}");
            }
        }
        // The patch of a single commit is shown above.
        let span = git::span_of_commits(cwd, &oid, &oid).map_err(|error| failed(&error))?;
        let Some(span) = span.filter(|_| commits.len() > 1) else {
            continue;
        };
        let left = bytes_max.saturating_sub(text.len());
        let patch = git::patch(cwd, &span, None, left).map_err(|error| failed(&error))?;
        for line in patch.text.lines() {
            let _ = writeln!(text, "  | {line}");
        }
        if patch.truncated {
            text.push_str("\n(cut: the patches of the commits are larger than 4 MiB)\n");
            break;
        }
    }
    Ok(())
}
