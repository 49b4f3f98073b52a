//! `mcp`

use crate::cli::exit::Exit;
use crate::cli::session::Session;
use crate::model::Diagnostic;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let Args {} = args;
    session.engines.speak_mcp(&session.site_anywhere()?)?;
    Ok(Exit::Ok)
}
