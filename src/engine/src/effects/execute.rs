//! Executing: the skill's own command.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::work::Work;
use super::Performer;
use super::command::{Invocation, Ran, TAIL_BYTES_MAX, not_started};
use super::place::{stdout_path, temporary_beside};
use crate::machine::Event;
use crate::model::evidence::{Ended, Execution};
use crate::model::file_size::{FILE_SIZE_LIMIT, FILE_SIZE_REMEDY, exceeds_file_size};
#[cfg(feature = "llm")]
use crate::model::spec::Program;
use crate::process::Stdin;

impl Performer {
    pub(super) fn execute(&self, work: &Work, attempt: u32) -> Event {
        if attempt > 1
            && !work.run.continues_conversation()
            && let Err(message) = self.scratch.empty(work.spec.run)
        {
            let execution = execution(not_started("scratch", &message));
            return Event::ExecutionFinished { attempt, execution };
        }
        self.watch_checkout(work);
        let execution = match self.make_room(work) {
            Ok(stdout_file) => {
                #[cfg(feature = "llm")]
                if let Program::Agent(agent) = &work.spec.program {
                    let mut execution =
                        self.execute_instructions(work, attempt, agent, stdout_file.as_deref());
                    if let Err(ended) = self.sync_written(work, &execution.ended) {
                        execution.ended = ended;
                    }
                    return Event::ExecutionFinished { attempt, execution };
                }
                let mut more = Vec::new();
                if let Some(failure) = &work.run.facts.last_failure {
                    let mut text = failure.to_string();
                    text.truncate(text.floor_char_boundary(8 * 1024));
                    more.push(("WORKERCTL_LAST_FAILURE".to_owned(), text));
                }
                let program = match self.program(work) {
                    Ok(program) => program,
                    Err(failure) => {
                        let execution = execution(not_started(&failure.code, &failure.message));
                        return Event::ExecutionFinished { attempt, execution };
                    }
                };
                let ran = self.command(
                    work,
                    Invocation {
                        program: &program,
                        stdin: Stdin::Null,
                        timeout_ms: work.spec.timeout_ms,
                        attempt,
                        logged_as: None,
                        stdout_file,
                        noted: true,
                        more,
                        sees_run: true,
                        ours: false,
                        tail_bytes: TAIL_BYTES_MAX,
                    },
                );
                let synced = self.sync_written(work, &ran.ended);
                execution(match synced {
                    Ok(()) => ran,
                    Err(ended) => Ran { ended, ..ran },
                })
            }
            Err(message) => execution(not_started("output_path", &message)),
        };
        Event::ExecutionFinished { attempt, execution }
    }

    /// A command has succeeded only once what it wrote is on disk: after a power cut the next engine
    /// would take files without their content for its result.
    fn sync_written(&self, work: &Work, ended: &Ended) -> Result<(), Ended> {
        let writes =
            work.spec.may_change() || work.spec.outputs.iter().any(|output| output.path.is_some());
        if !writes || !ended.is_success() {
            return Ok(());
        }
        let sync = |place: &Path| -> std::io::Result<()> {
            rustix::fs::syncfs(File::open(place)?)?;
            Ok(())
        };
        let Ok(place) = self.place(work) else {
            return Ok(());
        };
        let places = [&work.spec.workspace, &work.spec.cwd].map(|path| place.of(path));
        let device = |place: &Path| std::fs::metadata(place).map(|found| found.dev()).ok();
        // A command may remove the directory that it ran in.
        let apart = device(&places[1]).is_some_and(|own| Some(own) != device(&places[0]));
        let synced = sync(&places[0]).and_then(|()| if apart { sync(&places[1]) } else { Ok(()) });
        synced.map_err(|error| Ended::NotStarted {
            code: "output_not_kept".to_owned(),
            message: format!("what it wrote could not be synced: {error}"),
        })
    }

    /// Makes the directories of declared outputs; names the file that standard output becomes.
    fn make_room(&self, work: &Work) -> Result<Option<std::path::PathBuf>, String> {
        let said = |error: &dyn std::error::Error| crate::model::diagnostic::chain(error);
        if work.spec.outputs.iter().all(|output| output.path.is_none()) {
            return Ok(None);
        }
        let workspace = self.outputs_root(work).map_err(|failure| failure.message)?;
        let sandboxed_dir = self
            .sandboxed_dir(work)
            .map_err(|failure| failure.message)?;
        for path in work
            .spec
            .outputs
            .iter()
            .filter_map(|output| output.path.as_ref())
        {
            sandboxed_dir
                .make_parents(path)
                .map_err(|error| said(&error))?;
        }
        let Some(path) = stdout_path(&work.spec) else {
            return Ok(None);
        };
        let temporary = temporary_beside(path, work.spec.run);
        sandboxed_dir
            .discard(&temporary)
            .map_err(|error| said(&error))?;
        Ok(Some(workspace.join(temporary)))
    }
}

fn execution(ran: Ran) -> Execution {
    let duration_ms = ran.duration_ms();
    let mut ended = ran.ended;
    let finished = ran.finished.as_ref();
    if let Some(error) = finished.and_then(|finished| finished.stdout_file_error.as_ref())
        && ended.is_success()
    {
        // Without a number it is the bound of ours.
        let is_limit = exceeds_file_size(error) && error.raw_os_error().is_some();
        let (code, remedy) = if is_limit {
            (FILE_SIZE_LIMIT, format!("; {FILE_SIZE_REMEDY}"))
        } else {
            ("output_not_kept", String::new())
        };
        ended = Ended::NotStarted {
            code: code.to_owned(),
            message: format!("standard output could not be kept: {error}{remedy}"),
        };
    }
    Execution {
        ended,
        duration_ms,
        stdout_bytes: finished.map_or(0, |finished| finished.stdout_bytes),
        stderr_bytes: finished.map_or(0, |finished| finished.stderr_bytes),
        dropped_bytes: ran.omitted_bytes,
        survivors_ended: finished.map_or(0, |finished| finished.survivors_ended),
        stderr_tail: ran.stderr_tail,
        sandbox_level: ran.level,
    }
}
