//! `thread list|show|verify`

mod show;
pub(crate) mod verify;

use serde_json::json;

use super::runs::Filter;
use crate::cli::definitions::Definitions;
use crate::cli::exit::Exit;
use crate::cli::render::line::{DIM, Line};
use crate::cli::render::report;
use crate::cli::render::table::{Column, Table};
use crate::cli::session::{Accept, Session};
use crate::model::Diagnostic;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// List threads (the default)
    List(Filter),
    /// Show the summary of a thread, and whether its log is intact
    Show(show::Args),
    /// Verify the hash chains of logs and the digests of summaries
    Verify(verify::Args),
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    match &args.what {
        None => list(session, &args.filter),
        Some(What::List(filter)) => list(session, filter),
        Some(What::Show(args)) => show::perform(session, args),
        Some(What::Verify(args)) => verify::perform(session, args),
    }
}

fn list(session: &mut Session<'_>, filter: &Filter) -> Result<Exit, Diagnostic> {
    let site = session.site()?;
    let control = session.connect(Accept::RunningElseHosted)?;
    let (runs, _) = filter.runs(session, control.as_ref())?;
    let definitions = Definitions::load(&site.workspace);
    let directory = site.workspace.join(&definitions.config().threads_dir);
    let path_of = |thread: &str| {
        directory
            .join(format!("{thread}.json"))
            .display()
            .to_string()
    };
    if session.json() {
        let threads: Vec<_> = runs
            .iter()
            .map(|run| {
                json!({
                    "thread": run.thread,
                    "run": run.run,
                    "skill": run.skill.to_string(),
                    "outcome": run.outcome,
                    "path": path_of(run.thread.as_str()),
                })
            })
            .collect();
        session.print_json(&threads, "threads");
        return Ok(Exit::Ok);
    }
    if runs.is_empty() {
        session.io.err.line("no threads");
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&[
        Column::new("THREAD"),
        Column::new("RUN"),
        Column::new("OUTCOME").words(),
    ]);
    for run in &runs {
        let (_, style, word) = report::state_of(run);
        let id = Line::from(run.run.short());
        table.row(vec![run.thread.as_str().into(), id, Line::of(style, word)]);
    }
    let width = session.io.table_width();
    table.print(&mut session.io.out, width);
    session
        .io
        .err
        .line(Line::of(DIM, format!("in {}", directory.display())));
    Ok(Exit::Ok)
}
