//! A server at the other ends of two pipes: one message on each line.

use std::convert::Infallible;
use std::io::{PipeReader, PipeWriter};
use std::sync::{Arc, OnceLock};

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

use super::error::McpFailure;
use super::inbound::Inbound;
use crate::clean;
use crate::client::Abort;
use crate::frames::{Frames, Framing};

/// Messages that wait for a busy server, or for us.
const QUEUE: usize = 16;
/// Bytes read at once.
const PIECE_BYTES: usize = 16 * 1024;
/// Lines of text that are skipped: banners and stray log lines, which other clients skip too.
const NOISE_LINES_MAX: usize = 1000;

/// What `rmcp` does not hear of: why the connection ended, and what was skipped.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    end: OnceLock<McpFailure>,
    noise: OnceLock<String>,
}

impl Trouble {
    /// Why the connection ended.
    pub(super) fn end(&self) -> McpFailure {
        self.end
            .get()
            .cloned()
            .unwrap_or(McpFailure::Closed("it was given up"))
    }

    /// A failure to start, explained by the text that came instead of messages.
    pub(super) fn explain(&self, failure: McpFailure) -> McpFailure {
        match (&failure, self.noise.get()) {
            (McpFailure::StartTimeout(_) | McpFailure::Closed(_), Some(said)) => {
                McpFailure::NotJson { said: said.clone() }
            }
            _ => failure,
        }
    }
}

/// The client's side of the connection. Reading and writing is done by a task of its own, because `rmcp`
/// drops its calls of [`receive`](Transport::receive) at any point.
pub(super) struct Pipes {
    out: Option<mpsc::Sender<Vec<u8>>>,
    inbox: mpsc::Receiver<ServerJsonRpcMessage>,
    trouble: Arc<Trouble>,
    _task: Abort,
}

impl Pipes {
    /// To be called within the runtime.
    pub(super) fn new(
        input: PipeWriter,
        output: PipeReader,
        limit_bytes: usize,
        trouble: Arc<Trouble>,
    ) -> Result<Self, McpFailure> {
        let unfit = |_| McpFailure::Settings("its standard input or output is not a pipe".into());
        let input = pipe::Sender::from_owned_fd(input.into()).map_err(unfit)?;
        let output = pipe::Receiver::from_owned_fd(output.into()).map_err(unfit)?;
        let (out, queued) = mpsc::channel(QUEUE);
        // A message may be large, so they do not pile up.
        let (answers, inbox) = mpsc::channel(1);
        // Weak, so that the queue ends with ours.
        let replies = out.downgrade();
        let reported = Arc::clone(&trouble);
        let task = tokio::spawn(async move {
            let end = tokio::select! {
                end = read(output, limit_bytes, &answers, replies, &reported) => end,
                never = write(input, queued) => match never {},
            };
            // Before `answers` is dropped, upon which the end is asked for.
            _ = reported.end.set(end);
        });
        Ok(Self {
            out: Some(out),
            inbox,
            trouble,
            _task: Abort(task),
        })
    }
}

impl Transport<RoleClient> for Pipes {
    type Error = McpFailure;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), McpFailure>> + Send + 'static {
        let out = self.out.clone();
        let trouble = Arc::clone(&self.trouble);
        async move {
            let line = serde_json::to_vec(&message)
                .map_err(|_| McpFailure::Settings("a message cannot be written".into()))?;
            let sent = match out {
                Some(out) => out.send(line).await.is_ok(),
                None => false,
            };
            let closed = || McpFailure::Closed("it takes no more messages");
            let end = || trouble.end.get().cloned().unwrap_or_else(closed);
            sent.then_some(()).ok_or_else(end)
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.inbox.recv().await
    }

    /// Ends the server's input, which asks it to exit, and waits for the end of its output.
    async fn close(&mut self) -> Result<(), McpFailure> {
        self.out = None;
        while self.inbox.recv().await.is_some() {}
        Ok(())
    }
}

/// Reads until the output ends or must not be read further.
async fn read(
    mut output: pipe::Receiver,
    limit_bytes: usize,
    answers: &mpsc::Sender<ServerJsonRpcMessage>,
    replies: mpsc::WeakSender<Vec<u8>>,
    trouble: &Trouble,
) -> McpFailure {
    let mut frames = Frames::new(Framing::Lines, limit_bytes);
    let mut lines = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut noise = 0;
    loop {
        let Ok(count @ 1..) = output.read(&mut piece).await else {
            return McpFailure::Closed("it closed its standard output");
        };
        if frames.push(&piece[..count], &mut lines).is_err() {
            return McpFailure::TooLarge { limit_bytes };
        }
        for line in lines.drain(..) {
            match Inbound::read(&line) {
                Inbound::Answer(answer) => _ = answers.send(*answer).await,
                // Not read on before the reply is queued: a server that asks without reading waits for itself.
                Inbound::Asked(reply) => {
                    if let Some(replies) = replies.upgrade() {
                        _ = replies.send(reply).await;
                    }
                }
                Inbound::Notice => {}
                Inbound::Malformed => {
                    return McpFailure::Protocol("an answer cannot be read".into());
                }
                Inbound::Noise => {
                    noise += 1;
                    let said = || clean::text(&String::from_utf8_lossy(&line), &[]);
                    let said = trouble.noise.get_or_init(said);
                    if noise > NOISE_LINES_MAX {
                        return McpFailure::NotJson { said: said.clone() };
                    }
                }
            }
        }
    }
}

/// Writes until nothing more is to come or the server reads no more, and closes its input. The connection
/// ends with the server's output, in which its last words may still be on their way.
async fn write(mut input: pipe::Sender, mut queued: mpsc::Receiver<Vec<u8>>) -> Infallible {
    while let Some(mut line) = queued.recv().await {
        line.push(b'\n');
        if input.write_all(&line).await.is_err() {
            break;
        }
    }
    drop((input, queued));
    std::future::pending().await
}
