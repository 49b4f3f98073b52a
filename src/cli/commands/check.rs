//! `check [PATH]`

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::definitions::{Definitions, Weights, keeps_from_running, path_of};
use crate::cli::exit::Exit;
use crate::cli::globals::workspace_above;
use crate::cli::render::line::{BAD, CARE, GOOD, Line};
use crate::cli::render::problem;
use crate::cli::session::Session;
use crate::model::{Diagnostic, Kind, Problem};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only definitions at or below this path
    path: Option<PathBuf>,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let (workspace, below) = places(session, args)?;
    let definitions = Definitions::load_thoroughly(&workspace, session.environment);
    let holds = |path: &str| {
        below
            .as_ref()
            .is_none_or(|below| Path::new(path).starts_with(below))
    };
    let problems: Vec<&Problem> = definitions
        .problems()
        .iter()
        .filter(|problem| holds(&problem.place.path))
        .collect();
    let workers: Vec<_> = definitions
        .workers()
        .into_iter()
        .filter(|worker| {
            let path = path_of(&worker.defined_at);
            let directory = Path::new(path).parent().unwrap_or(Path::new(path));
            holds(path)
                || below
                    .as_ref()
                    .is_some_and(|below| below.starts_with(directory))
        })
        .collect();
    let skills: usize = workers.iter().map(|worker| worker.skills.len()).sum();
    let weights = Weights::of(problems.iter().copied());
    let invalid = weights.errors > 0 || (args.strict && weights.warnings > 0);
    let unready = problems.iter().any(|problem| keeps_from_running(problem));
    if session.json() {
        let found = json!({
            "workspace": workspace.display().to_string(),
            "valid": !invalid,
            "ready": !invalid && !unready,
            "worker_count": workers.len(),
            "skill_count": skills,
            "error_count": weights.errors,
            "warning_count": weights.warnings,
            "note_count": weights.notes,
            "problems": problems,
        });
        session.print_json(&found, "check");
    } else {
        print(session, &definitions, &problems);
        let checked = format!(
            "{} and {}",
            counted(workers.len(), "worker"),
            counted(skills, "skill")
        );
        session.io.out.flush();
        let fails = invalid || unready;
        session.io.err.line(summary(&checked, weights, fails));
    }
    Ok(match (invalid, unready) {
        (true, _) => Exit::InvalidDefinition,
        (false, true) => Exit::Blocked,
        (false, false) => Exit::Ok,
    })
}

/// The workspace, and the path within it that is asked for.
fn places(session: &Session<'_>, args: &Args) -> Result<(PathBuf, Option<PathBuf>), Diagnostic> {
    let Some(asked) = &args.path else {
        return Ok((session.site_as_asked()?.workspace, None));
    };
    let path = session.cwd.join(asked).canonicalize().map_err(|error| {
        let message = format!("`{}` cannot be checked: {error}", asked.display());
        Diagnostic::new(Kind::NotFound, "path_not_found", message)
    })?;
    // A path elsewhere is checked in the workspace that it lies in.
    let workspace = match (&session.globals.workspace, workspace_above(&path)) {
        (None, Some(above)) => above,
        _ => session.site_as_asked()?.workspace,
    };
    match path.strip_prefix(&workspace) {
        Ok(below) if below.as_os_str().is_empty() => Ok((workspace, None)),
        Ok(below) => Ok((workspace.clone(), Some(below.to_owned()))),
        Err(_) => {
            let message = format!(
                "`{}` does not lie in the workspace `{}`",
                asked.display(),
                workspace.display()
            );
            Err(Diagnostic::new(Kind::Usage, "path_outside", message))
        }
    }
}

fn print(session: &mut Session<'_>, definitions: &Definitions, problems: &[&Problem]) {
    let width = session.io.table_width();
    let out = &mut session.io.out;
    for one in problems {
        let source = definitions.source_line(one);
        out.raw(&problem::show(one, source.as_deref(), out.color, width));
        if out.is_closed() {
            return;
        }
    }
}

fn summary(checked: &str, weights: Weights, fails: bool) -> Line {
    if weights == Weights::default() {
        return Line::of(GOOD, "✓").text(format!(" {checked}: no problems"));
    }
    let (sign, style) = match (fails, weights.warnings) {
        (true, _) => ("✗", BAD),
        (false, 0) => ("✓", GOOD),
        (false, _) => ("!", CARE),
    };
    let parts: Vec<String> = [
        (weights.errors, "error"),
        (weights.warnings, "warning"),
        (weights.notes, "note"),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, name)| counted(*count, name))
    .collect();
    Line::of(style, sign).text(format!(" {checked}: {}", parts.join(", ")))
}

/// `1 worker`, `2 workers`.
pub(crate) fn counted(count: usize, name: &str) -> String {
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}
