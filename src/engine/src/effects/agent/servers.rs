//! Servers of the Model Context Protocol of one attempt: started before its first turn, ended with it.

use std::io::{PipeWriter, Write, pipe};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use workerctl_agent::mcp::{Connection, ServerBounds, ServerDeadlines, ToolServer};
use workerctl_agent::{Halt, Key, Stop};

use super::super::super::work::Work;
use super::super::super::{model_keys, secrets};
use super::super::command::{Invocation, TAIL_BYTES_MAX, Tail};
use super::super::log::RunLog;
use super::super::{Performer, lock};
use crate::model::Diagnostic;
use crate::model::agent::{McpServer, McpTransport, Toolset};
use crate::model::spec::Program;
use crate::process::{self, PipeEnd, Stdin, StopHandle, StopKind, Stream};

/// A server that can be called.
pub(super) struct Running {
    pub(super) set: String,
    /// Dropped before its process, so that it can leave by itself.
    pub(super) server: Option<ToolServer>,
    process: Option<ServerProcess>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.server = None;
        self.process = None;
    }
}

/// The process of a server: a command of the run like any other, whose standard streams are a connection.
struct ServerProcess {
    stop: StopHandle,
    said: Arc<Mutex<Tail>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.stop.stop(StopKind::Now);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Passes on what the process says.
struct Forward {
    output: Option<PipeWriter>,
    said: Arc<Mutex<Tail>>,
}

impl process::OutputSink for Forward {
    fn line(&mut self, stream: Stream, bytes: &[u8], more: bool) {
        if stream == Stream::Stderr {
            lock(&self.said).push(&String::from_utf8_lossy(bytes), more);
            return;
        }
        let Some(output) = &mut self.output else {
            return;
        };
        let end: &[u8] = if more { b"" } else { b"\n" };
        if output
            .write_all(bytes)
            .and_then(|()| output.write_all(end))
            .is_err()
        {
            self.output = None;
        }
    }
}

impl Performer {
    /// Starts the server of a tool set and asks it for its tools.
    ///
    /// # Errors
    /// It cannot be started, or does not answer: with the last that it said.
    pub(super) fn start_server(
        &self,
        work: &Work,
        attempt: u32,
        log: &RunLog,
        set: &Toolset,
        (server, stop): (&McpServer, &Stop),
    ) -> Result<Running, Halt> {
        let halt = |code: &str, why: String| Halt {
            code: code.to_owned(),
            message: format!("tool set `{}`: {why}", set.name),
            again: code != "auth",
        };
        let environment = &self.parts.environment;
        let (connection, process) = match &server.transport {
            McpTransport::Http { url, key } => {
                let value = key.as_ref().map(|key| model_keys::value(key, environment));
                let value = value
                    .transpose()
                    .map_err(|why| halt("auth", format!("the key {why}")))?;
                let headers = key.iter().zip(value).map(|(source, value)| {
                    let bearer = format!("Bearer {}", value.expose());
                    (
                        "authorization".to_owned(),
                        Key::new(source.to_string(), &bearer),
                    )
                });
                let connection = Connection::Http {
                    url: url.clone(),
                    headers: headers.collect(),
                    proxy_from_environment: true,
                };
                (connection, None)
            }
            McpTransport::Stdio { argv, env } => {
                let program = Program::Argv {
                    argv: argv.clone(),
                    attempt_at: Vec::new(),
                };
                let started = self.start_process(work, attempt, log, &program, env);
                let (connection, process) = started.map_err(|why| halt("mcp_connect", why))?;
                (connection, Some(process))
            }
        };
        // A server that never starts takes no more than the time of the attempt.
        let attempt_ms = work.spec.timeout_ms.unwrap_or(u64::MAX);
        let deadlines = ServerDeadlines {
            start: Duration::from_millis(server.start_ms.min(attempt_ms)),
            call: Duration::from_millis(server.call_ms),
        };
        let bounds = ServerBounds::default();
        match ToolServer::start(&set.name, connection, deadlines, bounds, stop) {
            Ok(started) => Ok(Running {
                set: set.name.clone(),
                server: Some(started),
                process,
            }),
            Err(error) => {
                let said = process.map(ServerProcess::last_said).unwrap_or_default();
                let said = log.masker().mask_text(&said).into_owned();
                let hint = error
                    .hint()
                    .map(|hint| format!("; {hint}"))
                    .unwrap_or_default();
                Err(halt(error.code(), format!("{error}{hint}{said}")))
            }
        }
    }

    fn start_process(
        &self,
        work: &Work,
        attempt: u32,
        log: &RunLog,
        program: &Program,
        names: &[String],
    ) -> Result<(Connection, ServerProcess), String> {
        let said = |error: std::io::Error| error.to_string();
        let (their_input, input) = pipe().map_err(said)?;
        let (output, their_output) = pipe().map_err(said)?;
        let uses = crate::model::SecretUses::new();
        let environment = &self.parts.environment;
        let given = names.iter().map(|name| {
            let value = secrets::value(name, &uses, environment, None)?;
            Ok(value.map(|value| (name.clone(), value.expose().to_owned())))
        });
        let given: Result<Vec<_>, Diagnostic> = given.filter_map(Result::transpose).collect();
        let mut invocation = Invocation {
            program,
            stdin: Stdin::Pipe(PipeEnd::new(their_input)),
            timeout_ms: None,
            attempt,
            logged_as: None,
            stdout_file: None,
            noted: false,
            // It sees nothing of the run, and of secrets those that its configuration names.
            more: given.map_err(|missing| missing.message)?,
            sees_run: false,
            ours: false,
            tail_bytes: TAIL_BYTES_MAX,
        };
        let prepared = self.prepared(work, log, &mut invocation);
        let (mut command, _) = prepared.map_err(|ran| ran.ended.describe())?;
        command.limits.grace = Duration::from_secs(1);
        let said_so_far = Arc::new(Mutex::new(Tail::of(TAIL_BYTES_MAX)));
        let mut process = ServerProcess {
            stop: StopHandle::new(),
            said: Arc::clone(&said_so_far),
            thread: None,
        };
        let stop = process.stop.clone();
        let mut sink = Forward {
            output: Some(their_output),
            said: said_so_far,
        };
        let thread = std::thread::Builder::new().name("tool-server".to_owned());
        let thread = thread.spawn(move || {
            if let Err(error) = process::run(&command, &stop, &mut sink) {
                let why = crate::model::diagnostic::chain(&error);
                lock(&sink.said).push(&why, false);
            }
        });
        process.thread = Some(thread.map_err(said)?);
        Ok((Connection::Pipes { input, output }, process))
    }
}

impl ServerProcess {
    /// The last that it wrote to standard error, once it has ended.
    fn last_said(self) -> String {
        let said = Arc::clone(&self.said);
        drop(self);
        let tail = std::mem::replace(&mut *lock(&said), Tail::of(TAIL_BYTES_MAX)).text();
        let tail = tail.trim().to_owned();
        if tail.is_empty() {
            return String::new();
        }
        format!("; it said: {tail}")
    }
}
