//! `retry RUN`

use super::run::{open, print_submitted, wait_for_own};
use crate::cli::exit::Exit;
use crate::cli::follow::SignalListener;
use crate::cli::session::{Accept, Session, run_named};
use crate::cli::suggest;
use crate::model::Diagnostic;
use crate::protocol::SignedRequest;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run id, any unique prefix or suffix of it, or `latest`
    run: String,
    /// Print the new run id and exit; needs a daemon
    #[arg(long, conflicts_with = "quiet")]
    no_wait: bool,
    /// Print only the outcome
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let accept = if args.no_wait {
        Accept::RunningOnly
    } else {
        Accept::RunningElseHosted
    };
    let control = session.connect(accept)?;
    let run = run_named(control.as_ref(), &args.run)?;
    let signals = SignalListener::open(session)?;
    let request = SignedRequest {
        by: session.asked_by(),
    };
    let submitted = control
        .retry(&run, &request)
        .map_err(|refused| open(suggest::run_meant(refused), None))?;
    if args.no_wait {
        print_submitted(session, &submitted);
        return Ok(Exit::Ok);
    }
    wait_for_own(session, signals, &control, &submitted, args.quiet)
}
