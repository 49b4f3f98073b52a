//! `daemon run|status|reload|drain|unit|install`

use super::{drain, reload, status, unit};
use crate::cli::exit::Exit;
use crate::cli::session::Session;
use crate::model::Diagnostic;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Run the daemon in the foreground (the default)
    Run,
    /// Show the state of the engine
    Status(status::Args),
    /// Reload the definitions and the configuration
    Reload(reload::Args),
    /// Finish active runs, start no new ones, and stop the daemon
    Drain(drain::Args),
    /// Print a systemd unit for this workspace
    Unit(unit::PrintArgs),
    /// Install the systemd units for this workspace
    Install(unit::InstallArgs),
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    match &args.verb {
        None | Some(Verb::Run) => {
            session.engines.serve(&session.site()?)?;
            Ok(Exit::Ok)
        }
        Some(Verb::Status(args)) => status::perform(session, args),
        Some(Verb::Reload(args)) => reload::perform(session, args),
        Some(Verb::Drain(args)) => drain::perform(session, args),
        Some(Verb::Unit(args)) => unit::print(session, args),
        Some(Verb::Install(args)) => unit::write_units(session, args),
    }
}
