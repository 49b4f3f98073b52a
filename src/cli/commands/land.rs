//! `land RUN`

use crate::cli::exit::Exit;
use crate::cli::globals::expect_person;
use crate::cli::render::line::{CARE, DIM, Line, PLAIN};
use crate::cli::render::report;
use crate::cli::session::{Accept, Session, run_decided};
use crate::cli::suggest;
use crate::model::Diagnostic;
use crate::protocol::SignedRequest;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Nothing that the run changed is verified again: a branch that has moved since is refused. \
    Hooks that follow a commit are not run."
)]
pub(crate) struct Args {
    /// Run id, or any unique prefix or suffix of it
    run: String,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    expect_person("workerctl land")?;
    let control = session.connect(Accept::RunningElseHosted)?;
    let run = run_decided(control.as_ref(), &args.run)?;
    let request = SignedRequest {
        by: session.asked_by(),
    };
    let landed = control.land(run, &request).map_err(suggest::run_meant)?;
    if session.json() {
        session.print_json(&landed, "landed");
        return Ok(Exit::Ok);
    }
    let err = &mut session.io.err;
    err.line(report::headline(&landed.run));
    let text = format!("{} on `{}`", landed.commit, landed.branch);
    err.line(Line::of(DIM, "  commit     ").text(text));
    for note in &landed.notes {
        err.line(Line::of(CARE, "  note  ").output(PLAIN, note));
    }
    Ok(Exit::Ok)
}
