//! `resolve RUN`

use crate::cli::exit::Exit;
use crate::cli::globals::expect_person;
use crate::cli::render::report;
use crate::cli::session::{Accept, Session, run_decided};
use crate::cli::suggest;
use crate::model::Diagnostic;
use crate::protocol::ResolveRequest;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run id, or any unique prefix or suffix of it
    run: String,
    /// Outcome to record
    #[arg(long = "as", value_name = "OUTCOME", value_parser = ["succeeded", "failed"])]
    resolution: String,
    /// Reason to record in the thread
    #[arg(long, value_name = "TEXT")]
    note: String,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    expect_person("workerctl resolve")?;
    let control = session.connect(Accept::RunningElseHosted)?;
    let run = run_decided(control.as_ref(), &args.run)?;
    let request = ResolveRequest {
        resolution: args.resolution.clone(),
        note: args.note.clone(),
        by: session.asked_by(),
    };
    let summary = control.resolve(run, &request).map_err(suggest::run_meant)?;
    if session.json() {
        session.print_json(&summary, "run");
    } else {
        session.io.err.line(report::headline(&summary));
        if let Some(hint) = report::unlanded_hint(&summary) {
            session.io.err.line(hint);
        }
    }
    Ok(Exit::Ok)
}
