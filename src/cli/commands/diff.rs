//! `diff RUN`

use crate::cli::exit::Exit;
use crate::cli::io::Stream;
use crate::cli::render::line::{ACTIVE, BAD, BOLD, CARE, DIM, GOOD, Line, PLAIN};
use crate::cli::session::{Accept, Session, run_named};
use crate::cli::suggest;
use crate::model::legible::{exact, marked};
use crate::model::{Diagnostic, RunId};
use crate::protocol::{ChangeStatus, Changes, DiffQuery, PathChange};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run id, any unique prefix or suffix of it, or `latest`
    #[arg(default_value = "latest")]
    run: String,
    /// Only this file or directory, relative to the root of the repository
    path: Option<String>,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let run = run_named(control.as_ref(), &args.run)?;
    let query = DiffQuery {
        path: args.path.clone(),
    };
    let patch = control.diff(&run, &query).map_err(suggest::run_meant)?;
    let whole = args.path.is_none();
    let changes = whole.then(|| control.changes(&run)).transpose()?;
    if session.json() {
        let shown = ShownDiff {
            patch: &patch,
            changes: changes.as_ref().map(|changes| &*changes.paths),
            changed_count: changes.as_ref().map(|changes| changes.total),
        };
        session.print_json(&shown, "patch");
        return Ok(Exit::Ok);
    }
    if let Some(changes) = &changes {
        let id = control.run(&run)?.summary.run;
        list(&mut session.io.out, changes, id);
    }
    if patch.is_empty() {
        session.io.err.line("the run changed nothing");
    } else if session.io.out.is_terminal || session.io.out.color {
        for line in patch.split_terminator('\n') {
            session.io.out.folded(styled(line));
        }
    } else {
        // Another program applies it: not a byte may differ. It passes over the list.
        session.io.out.raw(&patch);
    }
    Ok(Exit::Ok)
}

/// The patch, and all changed paths unless one was asked for.
#[derive(serde::Serialize)]
struct ShownDiff<'a> {
    patch: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<&'a [PathChange]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_count: Option<u64>,
}

/// Lists all changed paths, protected ones first, as no patch can hide one of them then.
fn list(out: &mut Stream<'_>, changes: &Changes, run: RunId) {
    if changes.total == 0 {
        return;
    }
    let count = changes.total;
    out.line(Line::of(BOLD, format!("changed ({count})")));
    for change in &changes.paths {
        out.folded(listed(change));
    }
    let left = count.saturating_sub(changes.paths.len() as u64);
    if left > 0 {
        let refs = format!("refs/workerctl/runs/{run}");
        out.line(Line::of(
            CARE,
            format!("  and {left} more: `git diff --name-status {refs}/base {refs}/commit`"),
        ));
    }
    out.line("");
}

fn listed(change: &PathChange) -> Line {
    let sign = match change.status {
        ChangeStatus::Added => "A",
        ChangeStatus::Modified => "M",
        ChangeStatus::Deleted => "D",
        ChangeStatus::Renamed => "R",
    };
    let modes = match (&change.old_mode, &change.mode) {
        (Some(old), Some(new)) if old != new => format!("{old} -> {new}"),
        (old, new) => new.as_ref().or(old.as_ref()).cloned().unwrap_or_default(),
    };
    let mut line = Line::from(format!("  {sign} {modes} "));
    if let Some(from) = &change.from {
        line = line.text(exact(from)).text(" -> ");
    }
    line = line.text(exact(&change.path));
    if change.protected {
        line = line.styled(CARE, "  (protected)");
    }
    match (change.added, change.removed) {
        (Some(added), Some(removed)) => line.styled(DIM, format!("  +{added} -{removed}")),
        _ if change.binary => line.styled(DIM, "  (binary)"),
        _ => line,
    }
}

fn styled(line: &str) -> Line {
    let header = ["diff ", "index ", "+++", "---"]
        .iter()
        .any(|start| line.starts_with(start));
    let style = match line.as_bytes().first() {
        _ if header => BOLD,
        Some(b'+') => GOOD,
        Some(b'-') => BAD,
        Some(b'@') => ACTIVE,
        _ => PLAIN,
    };
    Line::of(style, marked(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_is_cut_names_the_command_that_shows_all() {
        let run = crate::cli::fake::run_id();
        let mut written = Vec::new();
        let changes = Changes {
            total: 12_000,
            ..Changes::default()
        };
        list(&mut Stream::new(&mut written, false, false), &changes, run);
        let refs = format!("refs/workerctl/runs/{run}");
        let told =
            format!("  and 12000 more: `git diff --name-status {refs}/base {refs}/commit`\n");
        let shown = String::from_utf8(written).unwrap();
        assert!(shown.contains(&told), "{shown}");
    }
}
