//! `completions SHELL`

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::cli::exit::Exit;
use crate::cli::session::Session;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "workerctl", &mut script);
    session.io.out.raw(&String::from_utf8_lossy(&script));
    Exit::Ok
}
