//! `wait RUN`

use super::run::conclude;
use crate::cli::exit::Exit;
use crate::cli::follow::{Follow, Followed, OnInterrupt, SignalListener, follow};
use crate::cli::session::{Accept, Session, run_named};
use crate::cli::suggest;
use crate::model::duration::parse_millis;
use crate::model::{Diagnostic, Kind, Phase};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run id, any unique prefix or suffix of it, or `latest`
    run: String,
    /// Maximum time to wait, such as `30s` or `10m`
    #[arg(long, value_name = "SPAN", value_parser = span)]
    timeout: Option<u64>,
    /// Print only the outcome
    #[arg(short, long)]
    quiet: bool,
}

fn span(text: &str) -> Result<u64, String> {
    parse_millis(text)
        .map(|(millis, _)| millis)
        .map_err(|error| error.to_string())
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let name = run_named(control.as_ref(), &args.run)?;
    let detail = control.run(&name).map_err(suggest::run_meant)?;
    let run = detail.summary.run;
    if detail.summary.outcome.is_some() {
        let ended = Followed::Ended {
            detail: Box::new(detail),
            interrupted: false,
        };
        return Ok(conclude(session, ended, run, args.quiet));
    }
    let queued = detail.summary.phase == Phase::Queued;
    if queued && control.status()?.pid == std::process::id() {
        return Err(Diagnostic::new(
            Kind::Unreachable,
            "no_engine",
            format!("run {} waits for a daemon, and none runs", run.short()),
        )
        .hint("`workerctl daemon` starts one"));
    }
    let how = Follow {
        on_interrupt: OnInterrupt::Leave,
        until_asked: false,
        quiet: args.quiet,
        lines: true,
        timeout_ms: args.timeout,
    };
    let signals = SignalListener::open(session)?;
    let followed = follow(session, signals, &control, run, how)?;
    Ok(conclude(session, followed, run, args.quiet))
}
