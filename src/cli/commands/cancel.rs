//! `cancel RUN`

use crate::cli::exit::Exit;
use crate::cli::render::line::{BOLD, Line};
use crate::cli::session::{Accept, Session, run_named};
use crate::cli::suggest;
use crate::model::{Diagnostic, Outcome};
use crate::protocol::CancelRequest;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run id, any unique prefix or suffix of it, or `latest`
    run: String,
    /// Kill its processes instead of sending SIGTERM first
    #[arg(long)]
    now: bool,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let run = run_named(control.as_ref(), &args.run)?;
    let request = CancelRequest {
        now: args.now,
        by: session.asked_by(),
        ..CancelRequest::default()
    };
    let summary = control.cancel(&run, &request).map_err(suggest::run_meant)?;
    if session.json() {
        session.print_json(&summary, "run");
    } else {
        let state = match &summary.outcome {
            Some(Outcome::Succeeded) => "succeeded; its push is not tried again".to_owned(),
            Some(outcome) => outcome.name().to_owned(),
            None => format!("is being cancelled ({})", summary.phase),
        };
        let line = Line::from("run ").styled(BOLD, summary.run.short());
        session
            .io
            .err
            .line(line.text(format!(" of {} {state}", summary.skill)));
    }
    Ok(Exit::Ok)
}
