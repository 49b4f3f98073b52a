//! Executing instructions: a conversation with a model, whose turns are durable before their tools run.

mod brief;
mod host;
mod ledger;
mod login;
pub(crate) mod model;
mod program;
mod servers;
mod telling;
mod tools;
mod watching;

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use workerctl_agent::{
    Client, ClientSettings, End, Past, Stop, ToolResult, Turn, TurnError, converse,
};

use super::super::work::Work;
use super::Performer;
use super::log::RunLog;
use super::place::stdout_path;
use crate::machine::Event;
use crate::model::Timestamp;
use crate::model::agent::{AgentSpec, Executor, Model};
use crate::model::evidence::{Ended, Execution};
use crate::process;
use crate::thread::mask::Masker;
use host::RunHost;
use telling::Telling;
use tools::Tools;

/// Bytes of one answer that are kept.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Time of an attempt whose skill sets none, in milliseconds.
const ATTEMPT_MS: u64 = 3_600_000;

/// What a conversation left.
struct Talked {
    ended: Ended,
    /// The last that the model said.
    text: String,
    level: Option<u32>,
    /// Processes that outlived a program and were ended.
    survivors: u32,
}

impl Talked {
    fn failed(code: &str, message: String, again: bool) -> Talked {
        Talked::ended(Ended::Failed {
            code: code.to_owned(),
            message,
            again,
            until: None,
        })
    }

    fn ended(ended: Ended) -> Talked {
        Talked {
            ended,
            text: String::new(),
            level: None,
            survivors: 0,
        }
    }
}

impl Performer {
    /// Executes the instructions of a skill, or goes on where an earlier attempt was lost.
    pub(super) fn execute_instructions(
        &self,
        work: &Work,
        attempt: u32,
        agent: &AgentSpec,
        stdout_file: Option<&Path>,
    ) -> Execution {
        let begun_ms = self.parts.clock.monotonic_ms();
        let log = self.logs.of(work);
        let mut talked = match (log.refusal(), &agent.executor) {
            (Some(why), _) => Talked::failed("secrets_unreadable", why.to_owned(), false),
            (None, Executor::Model(model)) => {
                self.talk(work, attempt, (agent, model), &log, begun_ms)
            }
            (None, Executor::Program(program)) => {
                self.run_program(work, attempt, (agent, program), &log)
            }
        };
        let (_, omitted) = log.end_output(attempt, None);
        talked.ended = masked(talked.ended, log.masker());
        talked.text = log.masker().mask_text(&talked.text).into_owned();
        if let (Ended::Answered { .. }, Some(file)) = (&talked.ended, stdout_file)
            && let Err(error) = self.keep_answer(work, file, &talked.text)
        {
            talked.ended = Ended::NotStarted {
                code: "output_not_kept".to_owned(),
                message: format!("the answer could not be kept: {error}"),
            };
        }
        let bytes = u64::try_from(talked.text.len()).unwrap_or(u64::MAX);
        Execution {
            ended: talked.ended,
            duration_ms: self.parts.clock.monotonic_ms().saturating_sub(begun_ms),
            stdout_bytes: bytes,
            stderr_bytes: 0,
            dropped_bytes: omitted.bytes,
            survivors_ended: talked.survivors,
            stderr_tail: String::new(),
            sandbox_level: talked.level,
        }
    }

    fn talk(
        &self,
        work: &Work,
        attempt: u32,
        (agent, used): (&AgentSpec, &Model),
        log: &Arc<RunLog>,
        begun_ms: u64,
    ) -> Talked {
        let failed = Talked::failed;
        let model = match model::of(used, &self.parts.environment) {
            Ok(model) => model,
            Err(why) => return failed("auth", why, false),
        };
        let client = match self.client() {
            Ok(client) => client,
            Err(why) => return failed("no_thread", why, true),
        };
        let stop = Stop::new();
        let asked = stop.clone();
        work.stop.when_asked(Box::new(move || asked.stop()));
        let tools = match Tools::open(self, work, attempt, agent, (log, &stop)) {
            Ok(tools) => tools,
            Err(halt) => return failed(&halt.code, halt.message, halt.again),
        };
        let level = Some(tools.level());
        let limit_ms = work.spec.timeout_ms.unwrap_or(ATTEMPT_MS);
        let deadline_ms = begun_ms.saturating_add(limit_ms);
        let brief = brief::of(self, work, agent, &tools);
        let telling = Telling::new(self, work, attempt, log);
        let mut host = RunHost::new(telling, (agent, used), tools, deadline_ms);
        let past = past(work);
        host.begins(past.len());
        let end = converse(&client, &model, brief, past, &mut host, &stop);
        // Ends its tool servers.
        drop(host);
        // Where an earlier attempt was lost after the last turn, only the conversation knows what was said.
        let text = match &end {
            End::Answered { text, .. } | End::TurnLimit { text } => text.clone(),
            End::Failed(_) | End::Halted(_) | End::Stopped => String::new(),
        };
        let ended = match end {
            End::Answered { turns, .. } => Ended::Answered { turns },
            End::TurnLimit { .. } => Ended::Failed {
                code: "iteration_limit".to_owned(),
                message: iteration_limit(agent.max_iterations, &text),
                again: true,
                until: None,
            },
            End::Failed(error) => {
                let is_late = self.parts.clock.monotonic_ms() >= deadline_ms;
                turn_failed(&error, is_late)
            }
            End::Halted(halt) if halt.code == host::TIME_UP => Ended::TimedOut,
            End::Halted(halt) => Ended::Failed {
                code: halt.code,
                message: halt.message,
                again: halt.again,
                until: None,
            },
            End::Stopped => Ended::Stopped,
        };
        Talked {
            text,
            level,
            ..Talked::ended(ended)
        }
    }

    /// The client of all runs; made when the first one needs it.
    pub(super) fn client(&self) -> Result<Arc<Client>, String> {
        let mut kept = super::lock(&self.client);
        if let Some(client) = &*kept {
            return Ok(Arc::clone(client));
        }
        let settings = ClientSettings {
            answer_bytes_max: ANSWER_BYTES_MAX,
            ..ClientSettings::default()
        };
        let made = Client::new(settings).map_err(|error| error.to_string())?;
        let made = Arc::new(made);
        *kept = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Keeps the last answer as the output that standard output of a command would become, unless the model has
    /// written that itself.
    fn keep_answer(&self, work: &Work, file: &Path, text: &str) -> std::io::Result<()> {
        let written = stdout_path(&work.spec).is_some_and(|path| self.is_written(work, path));
        if written {
            return Ok(());
        }
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(file)?;
        file.write_all(text.trim_end().as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    }

    /// Whether a declared output is another file than before the attempt.
    fn is_written(&self, work: &Work, path: &str) -> bool {
        let before = work.baseline().and_then(|found| {
            let place = work.spec.stdout_to?;
            found.outputs.get(place).copied().flatten()
        });
        let now = self.sandboxed_dir(work).ok();
        let now = now.and_then(|sandboxed_dir| sandboxed_dir.stamp(path).ok().flatten());
        now.is_some() && now != before
    }

    /// Hands in an output: it is whole, or what was there stays.
    fn submit(&self, work: &Work, path: &str, content: &str) -> Result<(), String> {
        let said = |error: &dyn std::error::Error| crate::model::diagnostic::chain(error);
        let root: PathBuf = self.outputs_root(work).map_err(|failure| failure.message)?;
        let sandboxed_dir = self
            .sandboxed_dir(work)
            .map_err(|failure| failure.message)?;
        sandboxed_dir
            .make_parents(path)
            .map_err(|error| said(&error))?;
        let temporary = super::place::temporary_beside(path, work.spec.run);
        sandboxed_dir
            .discard(&temporary)
            .map_err(|error| said(&error))?;
        let mut options = std::fs::OpenOptions::new();
        let written = options
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(root.join(&temporary))
            .and_then(|mut file| {
                file.write_all(content.as_bytes())?;
                file.sync_all()
            });
        written.map_err(|error| said(&error))?;
        sandboxed_dir
            .publish(&temporary, path)
            .map_err(|error| said(&error))
    }
}

/// How an attempt ends whose turn failed.
fn turn_failed(error: &TurnError, is_late: bool) -> Ended {
    let code = error.code();
    if code == "turn_timeout" && is_late {
        return Ended::TimedOut;
    }
    let mut message = error.to_string();
    let until = limited_until(error);
    if let Some(until) = until {
        message = format!("{message}, until {}", until.rfc3339());
    }
    if let Some(hint) = error.hint() {
        message = format!("{message}; {hint}");
    }
    let repeated_alike = [
        "auth",
        "model_not_found",
        "request_refused",
        "settings",
        "redirected",
        "not_a_model_server",
    ];
    Ended::Failed {
        again: !repeated_alike.contains(&code),
        code: code.to_owned(),
        message,
        until,
    }
}

/// When the server takes requests again, where it says so.
fn limited_until(error: &TurnError) -> Option<Timestamp> {
    let workerctl_agent::Failure::RateLimited { until, .. } = &*error.failure else {
        return None;
    };
    let until = until.as_ref()?.duration_since(std::time::UNIX_EPOCH);
    let millis = until.unwrap_or_default().as_millis();
    Some(Timestamp::from_millis(
        i64::try_from(millis).unwrap_or(i64::MAX),
    ))
}

/// Servers may repeat what they were sent, in any form.
fn masked(ended: Ended, masker: &Masker) -> Ended {
    let mask = |message: String| masker.mask_text(&message).into_owned();
    match ended {
        Ended::Failed {
            code,
            message,
            again,
            until,
        } => Ended::Failed {
            code,
            message: mask(message),
            again,
            until,
        },
        other => other,
    }
}

/// What people read where no turns are left.
fn iteration_limit(limit: u32, text: &str) -> String {
    let mut message = format!("no turns left: the skill has {limit} (`max_iterations`)");
    if let Some(line) = text.lines().rfind(|line| !line.trim().is_empty()) {
        let line = line.trim();
        let cut = line.floor_char_boundary(line.len().min(200));
        message.push_str("; the last that the model said: ");
        message.push_str(&line[..cut]);
    }
    message
}

/// The turns that earlier attempts took and this one goes on with.
fn past(work: &Work) -> Vec<Past> {
    let mut past: Vec<Past> = Vec::new();
    for entry in work.entries.iter() {
        match &entry.event {
            Event::TurnTaken { turn, .. } => {
                if turn.number == 1 {
                    past.clear();
                }
                if let Ok(turn) = serde_json::from_value::<Turn>(turn.answer.clone()) {
                    past.push(Past {
                        turn,
                        results: None,
                    });
                }
            }
            Event::ToolsFinished { results, .. } => {
                let results = serde_json::from_value::<Vec<ToolResult>>(results.clone()).ok();
                if let Some(last) = past.last_mut() {
                    last.results = results;
                }
            }
            _ => {}
        }
    }
    past.truncate(usize::try_from(work.run.facts.turns).unwrap_or(usize::MAX));
    past
}

/// The level of the walls of what a run starts.
fn level_of(wall: Option<&Arc<process::RaisedWall>>) -> u32 {
    wall.map_or(0, |wall| wall.level())
}
