//! `mcp [install]`

mod clients;
mod install;
mod json_file;
mod toml_file;

use crate::cli::exit::Exit;
use crate::cli::session::Session;
use crate::model::Diagnostic;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Add this server to the configuration of a client
    Install(install::Args),
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let site = session.site_anywhere()?;
    match &args.what {
        None => session.engines.speak_mcp(&site)?,
        Some(What::Install(args)) => install::perform(session, &site, args)?,
    }
    Ok(Exit::Ok)
}
