//! `diff RUN`

use crate::cli::exit::Exit;
use crate::cli::render::line::{ACTIVE, BAD, BOLD, GOOD, Line, PLAIN};
use crate::cli::session::{Accept, Session, run_named};
use crate::cli::suggest;
use crate::model::Diagnostic;
use crate::protocol::DiffQuery;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the run, any unique beginning or end of it, or `latest`
    #[arg(default_value = "latest")]
    run: String,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let run = run_named(control.as_ref(), &args.run)?;
    let patch = control
        .diff(&run, &DiffQuery::default())
        .map_err(suggest::run_meant)?;
    if session.json() {
        session.print_json(&patch, "patch");
    } else if patch.is_empty() {
        session.io.err.line("the run changed nothing");
    } else if session.io.out.is_terminal || session.io.out.color {
        for line in patch.split_terminator('\n') {
            session.io.out.line(styled(line));
        }
    } else {
        // Another program applies it: not a byte may differ.
        session.io.out.raw(&patch);
    }
    Ok(Exit::Ok)
}

fn styled(line: &str) -> Line {
    let header = ["diff ", "index ", "+++", "---"]
        .iter()
        .any(|start| line.starts_with(start));
    let style = match line.as_bytes().first() {
        _ if header => BOLD,
        Some(b'+') => GOOD,
        Some(b'-') => BAD,
        Some(b'@') => ACTIVE,
        _ => PLAIN,
    };
    Line::of(style, line)
}
