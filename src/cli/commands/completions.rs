//! `completions SHELL`

use crate::cli::completion;
use crate::cli::exit::Exit;
use crate::cli::session::Session;
use crate::model::{Diagnostic, Kind};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the shell
    #[arg(value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    shell: String,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let script = completion::script(&args.shell).map_err(|error| {
        let message = format!("the function for {} cannot be made: {error}", args.shell);
        Diagnostic::new(Kind::Internal, "internal", message)
    })?;
    session.io.out.raw(&String::from_utf8_lossy(&script));
    Ok(Exit::Ok)
}
