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
    /// Send a test notification through each configured channel
    ///
    /// The engine sends the notifications, with its own environment and network. They are marked as tests. The exit code
    /// is 1 if a channel fails.
    Test {
        /// Skill or schedule whose channels are tested [default: all channels of the workspace]
        #[arg(long = "for", value_name = "SKILL|SCHEDULE")]
        subject: Option<String>,
        /// Event of the notification [default: the first configured one]
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
    let works = probes.iter().all(|probe| probe.ok);
    Ok(if works { Exit::Ok } else { Exit::Failed })
}
