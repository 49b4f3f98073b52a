//! Executing: the skill's own command.

use super::super::work::Work;
use super::Performer;
use super::command::{Invocation, Ran};
use crate::machine::Event;
use crate::model::evidence::{Ended, Execution};
use crate::model::{RunId, RunSpec};
use crate::process::Stdin;

impl Performer {
    pub(super) fn execute(&self, work: &Work, attempt: u32) -> Event {
        self.announce_destinations(work);
        let execution = match self.make_room(work) {
            Ok(stdout_file) => {
                let mut more = Vec::new();
                if let Some(failure) = &work.facts.last_failure {
                    let mut text = failure.to_string();
                    text.truncate(text.floor_char_boundary(8 * 1024));
                    more.push(("WORKERCTL_LAST_FAILURE".to_owned(), text));
                }
                let ran = self.command(
                    work,
                    Invocation {
                        program: &work.spec.program,
                        stdin: Stdin::Null,
                        timeout_ms: work.spec.timeout_ms,
                        attempt,
                        logged_as: None,
                        stdout_file,
                        noted: true,
                        more,
                    },
                );
                execution(ran)
            }
            Err(message) => execution(Ran {
                ended: Ended::NotStarted {
                    code: "output_path".to_owned(),
                    message,
                },
                finished: None,
                tail: String::new(),
                stderr_tail: String::new(),
            }),
        };
        Event::ExecutionFinished { attempt, execution }
    }

    /// Makes the directories of declared outputs; names the file that standard output becomes.
    fn make_room(&self, work: &Work) -> Result<Option<std::path::PathBuf>, String> {
        let said = |error: &dyn std::error::Error| crate::model::diagnostic::chain(error);
        if work.spec.outputs.iter().all(|output| output.path.is_none()) {
            return Ok(None);
        }
        let beneath = self.beneath().map_err(|error| said(&error))?;
        for path in work
            .spec
            .outputs
            .iter()
            .filter_map(|output| output.path.as_ref())
        {
            beneath.make_parents(path).map_err(|error| said(&error))?;
        }
        let Some(path) = stdout_path(&work.spec) else {
            return Ok(None);
        };
        let temporary = temporary_beside(path, work.spec.run);
        beneath.discard(&temporary).map_err(|error| said(&error))?;
        Ok(Some(self.parts.workspace.join(temporary)))
    }
}

/// The destination that standard output becomes.
pub(super) fn stdout_path(spec: &RunSpec) -> Option<&String> {
    spec.outputs.get(spec.stdout_to?)?.path.as_ref()
}

/// Every path at which a run writes what it declares, those of files that are not whole yet included.
pub(in crate::engine) fn destinations(spec: &RunSpec) -> Vec<String> {
    let declared = spec.outputs.iter().filter_map(|output| output.path.clone());
    let temporary = stdout_path(spec).map(|path| temporary_beside(path, spec.run));
    declared.chain(temporary).collect()
}

/// The name under which a destination is written before it is whole.
pub(super) fn temporary_beside(path: &str, run: RunId) -> String {
    match path.rsplit_once('/') {
        Some((directory, name)) => format!("{directory}/.{name}.{}.part", run.short()),
        None => format!(".{path}.{}.part", run.short()),
    }
}

fn execution(ran: Ran) -> Execution {
    let duration_ms = ran.duration_ms();
    let mut ended = ran.ended;
    let finished = ran.finished.as_ref();
    if let Some(error) = finished.and_then(|finished| finished.stdout_file_error.as_ref())
        && ended.is_success()
    {
        let message = format!("standard output could not be kept: {error}");
        ended = Ended::NotStarted {
            code: "output_not_kept".to_owned(),
            message,
        };
    }
    Execution {
        ended,
        duration_ms,
        stdout_bytes: finished.map_or(0, |finished| finished.stdout_bytes),
        stderr_bytes: finished.map_or(0, |finished| finished.stderr_bytes),
        dropped_bytes: finished.map_or(0, |finished| finished.dropped_bytes),
        survivors_ended: finished.map_or(0, |finished| finished.survivors_ended),
        stderr_tail: ran.stderr_tail,
    }
}
