//! Servers of the Model Context Protocol, as sources of tools.
//!
//! A [`ToolServer`] lives as long as one run. It is started, which lists its tools once, called, and closed.
//! All of it blocks; nothing of the outside is asynchronous. The process of a server that is reached through
//! pipes is started and ended by the caller.
//!
//! # Guarantees
//!
//! - **Every wait ends**, by its deadline or at once by [`Stop`]: a silent server, one that writes text
//!   instead of messages, one that exits, and one that breaks off in the middle of an answer end as named
//!   failures. A call that took too long is cancelled, and the server can still be used.
//! - **Everything is bounded**: messages, tools, their descriptions and schemas, and replies.
//! - **A server gains no rights**: requests for sampling, roots and elicitation are declined, what it says
//!   about itself and its tools' side effects is dropped, and its list of tools is fixed at its start.
//! - **Headers never appear in errors.** Redirects are not followed, because the headers would go along.
//! - **What a tool refuses is a reply**, marked as an error, because the model may correct itself. Only what
//!   no model can correct is an [`McpError`].
//!
//! # What is of `rmcp`
//!
//! The types, the handshake and the matching of answers to requests are those of the official SDK. The
//! connections are ours: its own skip messages that are too large, wait for ever where an HTTP server dies in
//! the middle of a call, and put bodies of failures into errors.

mod content;
mod error;
mod http;
mod inbound;
mod pipes;
mod session;
mod tools;

use std::collections::HashMap;
use std::io::{PipeReader, PipeWriter};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::oneshot;
use tokio::time::timeout;

pub use error::{McpError, McpFailure};

use crate::model::Key;
use crate::request::ToolSpec;
use crate::stop::Stop;
use session::{Session, Start};
use tools::Toolbox;

/// How long the end of a session may take.
const CLOSE: Duration = Duration::from_secs(2);

/// How a server is reached.
#[derive(Debug)]
pub enum Connection {
    /// The pipes of a process that was started by the caller.
    Pipes {
        /// Leads to its standard input.
        input: PipeWriter,
        /// Comes from its standard output.
        output: PipeReader,
    },
    /// Streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// Sent with each request; `authorization` needs its scheme, as in `Bearer KEY`.
        headers: Vec<(String, Key)>,
        /// Whether `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are followed.
        proxy_from_environment: bool,
    },
}

/// Bounds in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerDeadlines {
    /// The whole start, with the list of tools.
    pub start: Duration,
    /// One call, unless its caller has less time.
    pub call: Duration,
}

impl Default for ServerDeadlines {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(30),
            call: Duration::from_mins(1),
        }
    }
}

/// Bounds of what a server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerBounds {
    /// Bytes of a message. A larger one ends the connection.
    pub message_bytes_max: usize,
    /// Tools. More are left out.
    pub tools_max: usize,
    /// Bytes of a tool's description. A longer one is cut.
    pub description_bytes_max: usize,
    /// Bytes of a tool's schema. A tool with a larger one is left out.
    pub schema_bytes_max: usize,
    /// Levels of a tool's schema. A tool with a deeper one is left out.
    pub schema_depth_max: usize,
    /// Bytes of a reply. A longer one is cut.
    pub reply_bytes_max: usize,
}

impl Default for ServerBounds {
    fn default() -> Self {
        Self {
            message_bytes_max: 8 * 1024 * 1024,
            tools_max: 256,
            description_bytes_max: 4 * 1024,
            schema_bytes_max: 64 * 1024,
            schema_depth_max: 32,
            reply_bytes_max: 64 * 1024,
        }
    }
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolReply {
    /// What the model gets to read.
    pub content: String,
    /// Whether the call failed.
    pub is_error: bool,
}

/// A server of tools, in use. Any number of threads may call it at once. Dropping it ends its session, which
/// takes at most two seconds.
pub struct ToolServer {
    name: String,
    deadlines: ServerDeadlines,
    bounds: ServerBounds,
    tools: Vec<ToolSpec>,
    own_names: HashMap<String, String>,
    notes: Vec<String>,
    session: Session,
    handle: Handle,
    thread: IoThread,
}

impl ToolServer {
    /// Begins a session and lists the tools.
    ///
    /// # Errors
    /// If there is no session within the deadline.
    pub fn start(
        name: &str,
        connection: Connection,
        deadlines: ServerDeadlines,
        bounds: ServerBounds,
        stop: &Stop,
    ) -> Result<Self, McpError> {
        let start = Start {
            server: name.to_owned(),
            connection,
            deadlines,
            bounds,
            stop: stop.clone(),
        };
        let started = IoThread::start(start).map_err(|failure| McpError {
            server: name.to_owned(),
            failure,
        })?;
        let (thread, handle, session, toolbox) = started;
        Ok(Self {
            name: name.to_owned(),
            deadlines,
            bounds,
            tools: toolbox.specs,
            own_names: toolbox.own_names,
            notes: toolbox.notes,
            session,
            handle,
            thread,
        })
    }

    /// The name given to [`start`](Self::start).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its tools, named `mcp__SERVER__TOOL` in characters and a length that all models accept.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    /// What was left out or cut at the start, for people.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Calls the tool with this name of [`tools`](Self::tools), and blocks until it answers. `left` is the
    /// time that the caller has; the server's own deadline may be shorter.
    ///
    /// # Errors
    /// If it is stopped or there is no answer. What the tool or the server refuses is a reply.
    pub fn call(
        &self,
        tool: &str,
        arguments: &Value,
        left: Duration,
        stop: &Stop,
    ) -> Result<ToolReply, McpError> {
        let refused = |content: String| ToolReply {
            content,
            is_error: true,
        };
        let Some(own) = self.own_names.get(tool) else {
            return Ok(refused(format!("there is no tool `{tool}`")));
        };
        let Value::Object(arguments) = arguments else {
            return Ok(refused("the arguments are no object".into()));
        };
        let limit = left.min(self.deadlines.call);
        let call = self.session.call(own, arguments.clone(), limit, stop);
        match self.handle.block_on(call) {
            Ok(Ok(result)) => Ok(content::reply(&result, self.bounds.reply_bytes_max)),
            Ok(Err(error)) => Ok(content::refusal(&error, self.bounds.reply_bytes_max)),
            Err(failure) => Err(McpError {
                server: self.name.clone(),
                failure,
            }),
        }
    }

    /// Ends the session: its input is closed, which asks a process to exit, and its output is read to its end.
    /// It takes at most two seconds, after which the connection is given up.
    pub fn close(self) {
        drop(self.thread);
    }
}

/// The thread that drives the connection. Dropping it ends the session.
struct IoThread {
    /// Dropping it ends the thread.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl IoThread {
    /// Returns when the session has begun. A thread of its own: a server may ping at any time, and one whose
    /// log nobody reads would wait for ever.
    fn start(start: Start) -> Result<(Self, Handle, Session, Toolbox), McpFailure> {
        let unable = |_| McpFailure::Settings("its I/O thread cannot be started".into());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build()
            .map_err(unable)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("mcp-io".into())
            .spawn(move || drive(runtime, start, &tell, ended))
            .map_err(unable)?;
        let thread = Self {
            end: Some(end),
            thread: Some(thread),
        };
        let (session, toolbox) = told
            .recv()
            .unwrap_or(Err(McpFailure::Closed("its I/O thread ended")))?;
        Ok((thread, handle, session, toolbox))
    }
}

fn drive(
    runtime: Runtime,
    start: Start,
    tell: &mpsc::Sender<Result<(Session, Toolbox), McpFailure>>,
    ended: oneshot::Receiver<()>,
) {
    runtime.block_on(async {
        match start.run().await {
            // It fails only if the caller is gone, which drops the other channel too.
            Err(failure) => _ = tell.send(Err(failure)),
            Ok((mut running, session, toolbox)) => {
                _ = tell.send(Ok((session, toolbox)));
                _ = ended.await;
                _ = timeout(CLOSE, running.close()).await;
            }
        }
    });
    // A plain drop would wait for name lookups that hang.
    runtime.shutdown_background();
}

impl Drop for IoThread {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // The caller cannot do anything about a panic of that thread.
            _ = thread.join();
        }
    }
}

/// The longest beginning of at most so many bytes that ends between two characters.
fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
