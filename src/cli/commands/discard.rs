//! `discard RUN`

use crate::cli::exit::Exit;
use crate::cli::globals::expect_person;
use crate::cli::render::diagnostic;
use crate::cli::render::report;
use crate::cli::session::{Accept, Session, run_decided};
use crate::cli::suggest;
use crate::model::Diagnostic;
use crate::protocol::SignedRequest;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run id, or any unique prefix or suffix of it
    run: String,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    expect_person("workerctl discard")?;
    let control = session.connect(Accept::RunningElseHosted)?;
    let run = run_decided(control.as_ref(), &args.run)?;
    let request = SignedRequest {
        by: session.asked_by(),
    };
    let discarded = control.discard(run, &request).map_err(suggest::run_meant)?;
    if session.json() {
        session.print_json(&discarded, "discarded");
        return Ok(Exit::Ok);
    }
    let err = &mut session.io.err;
    err.line(report::headline(&discarded.run));
    if discarded.references == 0 {
        err.line("  there was nothing left to discard");
        return Ok(Exit::Ok);
    }
    let commit = &discarded.commit;
    err.line(format!("  its commit {commit} is no longer kept"));
    let text =
        format!("until git deletes it as garbage, you can recover it: `git cherry-pick {commit}`");
    diagnostic::hint(err, &text);
    Ok(Exit::Ok)
}
