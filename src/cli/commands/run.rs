//! `run SKILL`

use std::sync::Arc;

use super::render;
use crate::cli::exit::{Ending, Exit};
use crate::cli::follow::{Follow, Followed, OnInterrupt, SignalListener, Then, follow};
use crate::cli::invocation::Invocation;
use crate::cli::render::line::{BOLD, DIM, Line};
use crate::cli::render::{diagnostic, report, times};
use crate::cli::session::{Accept, Session, zone_of};
use crate::cli::suggest;
use crate::model::{Diagnostic, Kind, Outcome, RunId};
use crate::protocol::{Control, RunDetail, SubmitRequest, Submitted};

/// Code of the refusal where nobody listens at all.
const NO_ENGINE: &str = "no_engine";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    invocation: Invocation,
    /// Idempotency key: a request with the same key within 24 hours returns the same run
    #[arg(long, value_name = "KEY", conflicts_with = "dry_run")]
    key: Option<String>,
    /// Start at this time: `18:00`, `2026-12-24T18:00`; needs a daemon
    #[arg(long, value_name = "TIME", conflicts_with_all = ["dry_run", "quiet", "later"])]
    at: Option<String>,
    /// Delay the start by SPAN: `2h`, `90m`; needs a daemon
    #[arg(long = "in", id = "later", value_name = "SPAN", conflicts_with_all = ["dry_run", "quiet"])]
    later: Option<String>,
    /// Print the run id and exit; needs a daemon
    #[arg(long, conflicts_with_all = ["dry_run", "quiet"])]
    no_wait: bool,
    /// Print exactly what would run, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Print only the outcome
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let mut request = args.invocation.request(session)?;
    if args.dry_run {
        return render::show(session, &request);
    }
    request.key = args.key.clone().or_else(fresh_key);
    request.foreground = !args.no_wait && session.io.has_terminal();
    if args.at.is_some() || args.later.is_some() {
        return later(session, args, request);
    }
    let accept = if args.no_wait {
        Accept::RunningOnly
    } else {
        Accept::RunningElseHosted
    };
    let control = session.connect(accept).map_err(|refused| {
        if args.no_wait && refused.code == NO_ENGINE {
            refused.hint("without `--no-wait` the run is done in this process")
        } else {
            refused
        }
    })?;
    let signals = SignalListener::open(session)?;
    let submitted = control.submit(&request).map_err(|refused| {
        let refused = open(refused, request.key.as_deref());
        suggest::skill_meant(control.as_ref(), &request.skill, refused)
    })?;
    if args.no_wait {
        print_submitted(session, &submitted);
        return Ok(Exit::Ok);
    }
    wait_for_own(session, signals, &control, &submitted, args.quiet)
}

/// Has a run accepted that is to start later; nobody waits for it.
fn later(
    session: &mut Session<'_>,
    args: &Args,
    mut request: SubmitRequest,
) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningOnly)?;
    let zone = zone_of(control.as_ref())?;
    let now = session.clock.now();
    let time = match (&args.at, &args.later) {
        (Some(text), _) => times::parse_future(text, now, zone)?,
        (None, later) => times::after_span(later.as_deref().unwrap_or_default(), now)?,
    };
    if control.status()?.host != "daemon" {
        return Err(Diagnostic::new(
            Kind::Unreachable,
            "no_daemon",
            "a run that starts later needs a daemon, and none runs",
        )
        .hint("`workerctl daemon` starts one"));
    }
    request.not_before = Some(time);
    let submitted = control.submit(&request).map_err(|refused| {
        let refused = open(refused, request.key.as_deref());
        suggest::skill_meant(control.as_ref(), &request.skill, refused)
    })?;
    print_submitted(session, &submitted);
    if !session.json() {
        let starts = format!("it starts {}", time.rfc3339_in(zone));
        diagnostic::hint(&mut session.io.err, &starts);
    }
    Ok(Exit::Ok)
}

/// A key that no other submission has, so that this one can be repeated when nobody knows what became of it.
fn fresh_key() -> Option<String> {
    let mut random = [0_u8; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()).ok()?;
    Some(format!("once-{:016x}", u64::from_be_bytes(random)))
}

/// Says how to find out what became of a submission of which that is not known, and how to repeat it.
pub(crate) fn open(refused: Diagnostic, key: Option<&str>) -> Diagnostic {
    if refused.kind != Kind::Open {
        return refused;
    }
    let look = "`workerctl runs` shows whether the run was accepted".to_owned();
    let repeat = key.map(|key| {
        format!(
            "you can safely repeat the command with `--key {key}`: it does not start a second run"
        )
    });
    Diagnostic {
        hints: std::iter::once(look).chain(repeat).collect(),
        ..refused
    }
}

/// Prints the id, and nothing else, of a run that nobody waits for.
pub(crate) fn print_submitted(session: &mut Session<'_>, submitted: &Submitted) {
    if session.json() {
        session.print_json(submitted, "submitted");
    } else {
        session.io.out.line(submitted.run.to_string());
    }
}

/// Waits for a run that this command has submitted.
pub(crate) fn wait_for_own(
    session: &mut Session<'_>,
    signals: SignalListener,
    control: &Arc<dyn Control>,
    submitted: &Submitted,
    quiet: bool,
) -> Result<Exit, Diagnostic> {
    if !quiet && !session.json() {
        let err = &mut session.io.err;
        if submitted.existing {
            diagnostic::warning(err, "an earlier request with this key had made the run");
        }
        let line = Line::of(BOLD, format!("run {}", submitted.run.short()));
        err.line(line.styled(DIM, format!("  {}", submitted.thread)));
    }
    let how = Follow {
        on_interrupt: OnInterrupt::Cancel,
        until_asked: true,
        quiet,
        lines: true,
        timeout_ms: None,
    };
    let followed = follow(session, signals, control, submitted.run, how)?;
    Ok(conclude(session, followed, submitted.run, quiet))
}

/// Shows how the waiting ended.
pub(crate) fn conclude(
    session: &mut Session<'_>,
    followed: Followed,
    run: RunId,
    quiet: bool,
) -> Exit {
    let goes_on = format!(
        "the run continues: wait for it with `workerctl wait {}`",
        run.short()
    );
    match followed {
        Followed::Ended {
            detail,
            interrupted,
        } => {
            print_ending(session, &detail, quiet);
            exit_of(detail.summary.outcome.as_ref(), interrupted)
        }
        Followed::Left { then } => {
            let left = match then {
                Then::GoesOn => goes_on,
                Then::IsCancelled => {
                    format!("it is being cancelled: `workerctl wait {}`", run.short())
                }
                Then::EndsWithUs => format!(
                    "the engine ends with this command, and the next engine recovers the run: see `workerctl show {}`",
                    run.short()
                ),
            };
            diagnostic::hint(&mut session.io.err, &left);
            Exit::Interrupted
        }
        Followed::Asked(detail) => {
            if session.json() {
                session.print_json(&detail, "run");
            } else {
                report::asked(&mut session.io.err, &detail);
            }
            Exit::Blocked
        }
        Followed::TimedOut => {
            let late = Diagnostic::new(
                Kind::Conflict,
                "wait_timed_out",
                "the run has not ended in time",
            )
            .hint(goes_on);
            diagnostic::print(&mut session.io.err, &late);
            Exit::TimedOut
        }
    }
}

fn print_ending(session: &mut Session<'_>, detail: &RunDetail, quiet: bool) {
    if session.json() {
        session.print_json(detail, "run");
    } else if quiet {
        session.io.out.line(report::headline(&detail.summary));
        // Standard error is not buffered: without this its lines precede the headline.
        session.io.out.flush();
        report::what_is_wrong(&mut session.io.err, detail);
    } else {
        report::ending(&mut session.io.out, detail);
    }
}

/// The exit code of a run that has ended; Ctrl-C counts unless the run succeeded or cannot be told.
pub(crate) fn exit_of(outcome: Option<&Outcome>, interrupted: bool) -> Exit {
    match outcome.map_or(Exit::Unknown, |outcome| Exit::of(Ending::Outcome(outcome))) {
        kept @ (Exit::Ok | Exit::Unknown) => kept,
        _ if interrupted => Exit::Interrupted,
        own => own,
    }
}
