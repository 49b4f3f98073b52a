//! The wake gate: asks before anything executes whether there is anything to do.

use super::super::work::Work;
use super::Performer;
use super::command::{Invocation, Ran};
use crate::machine::Event;
use crate::model::evidence::CheckRecord;
use crate::model::outcome::{Failure, Step};
use crate::model::spec::WakeSpec;
use crate::process::Stdin;
use crate::protocol::LogStream;

/// Most bytes of what a gate found; of more the last are kept.
const FOUND_BYTES_MAX: usize = 64 * 1024;

impl Performer {
    /// What follows good checks: nothing where the gate finds nothing to do.
    pub(super) fn wake(&self, work: &Work, checks: Vec<CheckRecord>) -> Event {
        let Some(wake) = &work.spec.wake else {
            return Event::Validated { checks, wake: None };
        };
        // It is asked once: it may have marked as seen what it found, and a person may have approved the run since.
        if work.found_to_do().is_some() {
            return Event::Validated { checks, wake: None };
        }
        let ran = self.ask(work, wake);
        if !ran.ended.is_success() {
            let failure = failed(&ran);
            return Event::ValidationFailed { failure, checks };
        }
        match ran.printed {
            None => Event::NothingToDo { checks },
            // No variable can hold such a byte, and no text for a model needs it.
            Some(found) => Event::Validated {
                checks,
                wake: Some(found.replace('\0', "")),
            },
        }
    }

    fn ask(&self, work: &Work, wake: &WakeSpec) -> Ran {
        self.command(
            work,
            Invocation {
                program: &wake.program,
                stdin: Stdin::Null,
                timeout_ms: Some(wake.timeout_ms),
                attempt: 1,
                logged_as: Some(LogStream::Check),
                stdout_file: None,
                noted: true,
                more: Vec::new(),
                sees_run: true,
                ours: false,
                tail_bytes: FOUND_BYTES_MAX,
            },
        )
    }
}

fn failed(ran: &Ran) -> Failure {
    let said = ran
        .stderr_tail
        .lines()
        .rfind(|line| !line.trim().is_empty());
    let said = said.map_or_else(String::new, |line| format!(": {}", line.trim()));
    let message = format!(
        "the wake gate did not determine whether there is work: it ended with {}{said}",
        ran.ended.describe()
    );
    Failure::new(Step::Validate, "wake_failed", message)
}
