//! `approve RUN`

use super::run::conclude;
use crate::cli::exit::Exit;
use crate::cli::follow::{Follow, OnInterrupt, SignalListener, follow};
use crate::cli::globals::expect_person;
use crate::cli::session::{Accept, Session, run_decided};
use crate::cli::suggest;
use crate::model::{Diagnostic, Kind};
use crate::protocol::{ApproveRequest, RunDetail};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Before: `workerctl show RUN` and `workerctl diff RUN` show what is approved. What has changed \
    since it was shown is not."
)]
pub(crate) struct Args {
    /// Run id, or any unique prefix or suffix of it
    run: String,
    /// Note to record in the thread
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Approve only if `show` prints this digest, or one with this prefix
    #[arg(long, value_name = "HEX")]
    digest: Option<String>,
    /// Exit after the approval without following the run; needs a daemon
    #[arg(long, conflicts_with = "quiet")]
    no_wait: bool,
    /// Print only the outcome
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    expect_person("workerctl approve")?;
    let accept = if args.no_wait {
        Accept::RunningOnly
    } else {
        Accept::RunningElseHosted
    };
    let control = session.connect(accept)?;
    let name = run_decided(control.as_ref(), &args.run)?;
    let detail = control.run(name).map_err(suggest::run_meant)?;
    let request = ApproveRequest {
        digest: digest_of(&detail, args.digest.as_deref())?,
        note: args.note.clone(),
        // The engine knows who asks.
        by: None,
    };
    let run = detail.summary.run;
    let signals = SignalListener::open(session)?;
    let approved = control.approve(&run.to_string(), &request)?;
    if args.no_wait {
        if session.json() {
            session.print_json(&approved, "run");
        } else {
            session.io.err.line(format!("{} is approved", run.short()));
        }
        return Ok(Exit::Ok);
    }
    let how = Follow {
        on_interrupt: OnInterrupt::Leave,
        until_asked: true,
        quiet: args.quiet,
        lines: true,
        timeout_ms: None,
    };
    let followed = follow(session, signals, &control, run, how)?;
    Ok(conclude(session, followed, run, args.quiet))
}

/// The digest that is approved. A run that waits for nobody has none; the engine says what it does instead.
fn digest_of(detail: &RunDetail, given: Option<&str>) -> Result<String, Diagnostic> {
    let shown = detail
        .approval
        .as_ref()
        .and_then(|view| view.digest.clone());
    let shown = shown.unwrap_or_default();
    match given {
        Some(given) if given.len() < DIGEST_CHARS_MIN => {
            let message = format!("a digest has at least {DIGEST_CHARS_MIN} digits");
            Err(Diagnostic::new(Kind::Usage, "digest", message))
        }
        Some(given) if !shown.is_empty() && !shown.starts_with(given) => {
            let short = detail.summary.run.short();
            let message =
                format!("run {short} does not have the digest `{given}`: it may have changed");
            let refused = Diagnostic::new(Kind::Conflict, "approval_changed", message);
            Err(refused.hint(format!("look again: `workerctl show {short}`")))
        }
        _ => Ok(shown),
    }
}

/// Fewer digits of a digest would be met by chance.
const DIGEST_CHARS_MIN: usize = 8;
