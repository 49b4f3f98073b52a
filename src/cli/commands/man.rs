//! `man [COMMAND…]`

use std::path::{Path, PathBuf};

use clap::Command;

use crate::cli::exit::Exit;
use crate::cli::session::Session;
use crate::cli::usage;
use crate::model::{Diagnostic, Kind};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Command; by default the page of `workerctl`
    #[arg(value_name = "COMMAND", conflicts_with = "to")]
    path: Vec<String>,
    /// Write all pages into this directory
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let mut root = usage::command();
    root.build();
    if let Some(directory) = &args.to {
        let directory = session.cwd.join(directory);
        written(&root, &directory).map_err(|error| unwritten(&directory, &error))?;
        session.io.out.line(directory.display().to_string());
        return Ok(Exit::Ok);
    }
    let mut command = &root;
    for name in &args.path {
        command = command.find_subcommand(name).ok_or_else(|| {
            let message = format!("there is no command `{}`", args.path.join(" "));
            Diagnostic::new(Kind::Usage, "no_command", message)
                .hint("`workerctl --help` lists them")
        })?;
    }
    session.io.out.raw(&page(command));
    Ok(Exit::Ok)
}

/// The page of one command, in the language of `man`.
fn page(command: &Command) -> String {
    let mut page = Vec::new();
    // A vector takes all that is written.
    let _ = clap_mangen::Man::new(command.clone()).render(&mut page);
    String::from_utf8_lossy(&page).replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n")
}

/// Writes the page of a command and those of the commands below it.
fn written(command: &Command, directory: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    let all = command.get_subcommands();
    for below in all.filter(|below| below.get_name() != "help") {
        written(below, directory)?;
    }
    let name = command.get_display_name().unwrap_or("workerctl");
    std::fs::write(directory.join(format!("{name}.1")), page(command))
}

fn unwritten(directory: &Path, error: &std::io::Error) -> Diagnostic {
    let message = format!(
        "the pages cannot be written to {}: {error}",
        directory.display()
    );
    Diagnostic::new(Kind::Usage, "man_unwritten", message)
        .hint("name a directory that you may write to")
}
