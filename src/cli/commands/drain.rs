//! `drain`

use crate::cli::exit::Exit;
use crate::cli::session::{Accept, Session};
use crate::model::Diagnostic;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let Args {} = args;
    session.connect(Accept::RunningOnly)?.drain()?;
    session.io.err.line("drained");
    Ok(Exit::Ok)
}
