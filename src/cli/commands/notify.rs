//! `notify test`

use super::models::print;
use crate::cli::exit::Exit;
use crate::cli::session::{Accept, Session};
use crate::model::Diagnostic;
use crate::protocol::{NotifyEvent, NotifyTest, ProbeRequest};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Send a test notice in each configured way, and say what was answered
    ///
    /// Each command, webhook and mail of `notify` is told once, by the engine, so that its environment and its network
    /// count. What is sent says that it is a test. Exits with 1 if one of them fails.
    Test {
        /// Skill or schedule whose notices are tested [default: all of the workspace]
        #[arg(long = "for", value_name = "SKILL|SCHEDULE")]
        subject: Option<String>,
        /// What the notice is of [default: the first that is configured]
        #[arg(long, value_enum)]
        event: Option<Event>,
    },
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Event {
    Failure,
    Recovery,
    Missed,
    Approval,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let What::Test { subject, event } = &args.what;
    let test = NotifyTest {
        subject: subject.clone(),
        event: event.map(|event| match event {
            Event::Failure => NotifyEvent::Failure,
            Event::Recovery => NotifyEvent::Recovery,
            Event::Missed => NotifyEvent::Missed,
            Event::Approval => NotifyEvent::Approval,
        }),
    };
    let control = session.connect(Accept::RunningElseHosted)?;
    let probes = control.probe(&ProbeRequest {
        notify: Some(test),
        ..ProbeRequest::default()
    })?;
    if session.json() {
        session.print_json(&probes, "notices");
    } else {
        for probe in &probes {
            print(session, probe);
        }
    }
    let works = probes.iter().all(|probe| probe.works);
    Ok(if works { Exit::Ok } else { Exit::Failed })
}
