//! `deny RUN`

use crate::cli::exit::Exit;
use crate::cli::globals::expect_person;
use crate::cli::render::report;
use crate::cli::session::{Accept, Session, run_decided};
use crate::cli::suggest;
use crate::model::Diagnostic;
use crate::protocol::DenyRequest;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run id, or any unique prefix or suffix of it
    run: String,
    /// Reason to record in the thread
    #[arg(long, value_name = "TEXT")]
    note: String,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    expect_person("workerctl deny")?;
    let control = session.connect(Accept::RunningElseHosted)?;
    let run = run_decided(control.as_ref(), &args.run)?;
    let request = DenyRequest {
        note: args.note.clone(),
        // The engine knows who asks.
        by: None,
    };
    let denied = control.deny(run, &request).map_err(suggest::run_meant)?;
    if session.json() {
        session.print_json(&denied, "run");
    } else {
        session.io.err.line(report::headline(&denied));
    }
    Ok(Exit::Ok)
}
