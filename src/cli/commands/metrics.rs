//! `metrics`

use std::path::{Path, PathBuf};

use crate::cli::exit::Exit;
use crate::cli::session::{Accept, Session};
use crate::cli::whole_file::write_whole;
use crate::model::{Diagnostic, Kind};
use crate::protocol::{metrics, metrics_of_nobody};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Replace this file atomically instead of printing, for the textfile collector of node_exporter (`*.prom`)
    #[arg(long, value_name = "FILE", value_parser = textfile)]
    textfile: Option<PathBuf>,
}

/// The collector reads nothing else.
fn textfile(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension() {
        Some(ending) if ending == "prom" => Ok(path),
        _ => Err("the collector reads files whose names end in `.prom`".to_owned()),
    }
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let now = session.clock.now();
    // A daemon that is gone is what a monitoring system has to see, so it is no error of this command.
    let text = match session.connect(Accept::RunningOnly) {
        Ok(control) => metrics(control.as_ref(), now)?,
        Err(refused) if refused.kind == Kind::Unreachable => metrics_of_nobody(),
        Err(refused) => return Err(refused),
    };
    let Some(path) = &args.textfile else {
        session.io.out.raw(&text);
        return Ok(Exit::Ok);
    };
    let refused = |why: &str| {
        let message = format!("cannot write `{}`: {why}", path.display());
        Diagnostic::new(Kind::Blocked, "textfile", message)
            .hint("name a file in a directory that is there and that you can write")
    };
    // Nobody collects from a directory that a slip of the pen would make.
    let directory = path.parent().filter(|parent| *parent != Path::new(""));
    if !directory.unwrap_or(Path::new(".")).is_dir() {
        return Err(refused("there is no such directory"));
    }
    write_whole(path, &text, true).map_err(|error| refused(&error.to_string()))?;
    Ok(Exit::Ok)
}
