//! `reload`

use super::check::counted;
use crate::cli::definitions::Weights;
use crate::cli::exit::Exit;
use crate::cli::render::diagnostic;
use crate::cli::session::{Accept, Session};
use crate::model::Diagnostic;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let Args {} = args;
    let report = session.connect(Accept::RunningOnly)?.reload()?;
    let weights = Weights::of(&report.problems);
    if session.json() {
        session.print_json(&report, "reload");
        return Ok(Exit::Ok);
    }
    let size = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    session.io.err.line(format!(
        "{} and {}; {} read again; {}, {}",
        counted(size(report.workers), "worker"),
        counted(size(report.skills), "skill"),
        counted(size(report.reloaded), "file"),
        counted(weights.errors, "error"),
        counted(weights.warnings, "warning"),
    ));
    if weights.errors > 0 {
        let text =
            "`workerctl check` shows the errors; invalid definitions keep their last valid version";
        diagnostic::hint(&mut session.io.err, text);
    }
    Ok(Exit::Ok)
}
