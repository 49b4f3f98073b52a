//! One try: a request, and its answer up to its end.

use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime};

use reqwest::{Response, StatusCode};
use tokio::time::timeout;

use crate::answer::{Answer, BrokenAnswer};
use crate::dialect::host;
use crate::error::{Failure, seconds};
use crate::frames::{Frames, may_begin};
use crate::model::Deadlines;
use crate::pace::retry_after;
use crate::status::{self, error_in, is_out_of_quota, message_in, status_of};
use crate::stop::Stop;
use crate::turn::{Delta, RequestUsage};
use crate::wire::Wire;

/// Bytes of a failure's body that are read.
const FAILURE_BYTES_MAX: usize = 64 * 1024;
/// How long it may take.
const FAILURE_BODY: Duration = Duration::from_secs(10);
/// Bytes on the wire for each byte that may be kept: a token of three bytes comes in a frame of hundreds.
const WIRE_FACTOR: usize = 64;
/// How long the rest of a finished body may take to arrive, so that its connection can be reused.
const DRAIN: Duration = Duration::from_secs(1);

/// Messages from a try to its caller; `End` comes last.
pub(crate) enum Progress {
    Delta(Delta),
    End(Box<Result<Answer, FailedTry>>),
}

/// A try that failed.
#[derive(Debug)]
pub(crate) struct FailedTry {
    pub(crate) failure: Failure,
    /// Whether a repetition may help.
    pub(crate) again: bool,
    /// The wait from the server's `retry-after`.
    pub(crate) retry_after: Option<Duration>,
    /// What the request cost all the same.
    pub(crate) usage: RequestUsage,
}

impl FailedTry {
    pub(crate) fn new(failure: Failure, again: bool) -> Self {
        Self {
            failure,
            again,
            retry_after: None,
            usage: RequestUsage::default(),
        }
    }

    fn cut(why: &'static str) -> Self {
        Self::new(Failure::Incomplete(why), true)
    }
}

/// Everything a try needs, to be moved to the I/O thread.
pub(crate) struct Attempt {
    pub(crate) http: reqwest::Client,
    pub(crate) wire: Arc<Wire>,
    pub(crate) deadlines: Deadlines,
    /// What is left of the turn.
    pub(crate) left: Duration,
    pub(crate) answer_bytes_max: usize,
    /// Tokens that the request is expected to have.
    pub(crate) input_tokens: u64,
    pub(crate) now: SystemTime,
    pub(crate) stop: Stop,
    pub(crate) progress: Sender<Progress>,
}

impl Attempt {
    pub(crate) async fn run(self) {
        let mut answer = Answer::new(self.answer_bytes_max);
        let ended = tokio::select! {
            biased;
            () = self.stop.stopped() => Err(FailedTry::new(Failure::Stopped, false)),
            ended = timeout(self.left, self.exchange(&mut answer)) => ended.unwrap_or_else(|_| {
                Err(FailedTry::new(Failure::TurnTimeout(self.deadlines.turn), false))
            }),
        };
        let end = match ended {
            Ok(()) => Ok(answer),
            Err(mut failed) => {
                // A server that refuses a request does not charge for it.
                if answer.has_begun || !failed.failure.is_refusal() {
                    failed.usage = answer.metered(self.input_tokens);
                }
                Err(failed)
            }
        };
        // Fails only if the caller has returned.
        _ = self.progress.send(Progress::End(Box::new(end)));
    }

    async fn exchange(&self, answer: &mut Answer) -> Result<(), FailedTry> {
        let request = self
            .http
            .post(self.wire.url.clone())
            .headers(self.wire.headers.clone())
            .body(self.wire.body.clone());
        let response = match timeout(self.deadlines.headers, request.send()).await {
            Err(_) => {
                return Err(FailedTry::new(
                    Failure::HeadersTimeout(self.deadlines.headers),
                    false,
                ));
            }
            Ok(Err(error)) => return Err(self.not_sent(error)),
            Ok(Ok(response)) => response,
        };
        match response.status() {
            status if status.is_redirection() => {
                let to = redirected_to(&response);
                let status = status.as_u16();
                Err(FailedTry::new(Failure::Redirected { status, to }, false))
            }
            StatusCode::OK => self.read(response, answer).await,
            status if status.is_success() => {
                Err(self.not_a_model_server(format!("status {status} instead of 200")))
            }
            _ => Err(self.refused(response).await),
        }
    }

    fn not_sent(&self, error: reqwest::Error) -> FailedTry {
        if !error.is_connect() {
            return FailedTry::cut("the connection broke before it began");
        }
        let why = why_not_connected(error, self.deadlines.connect);
        FailedTry::new(
            Failure::Connect {
                host: self.wire.host.clone(),
                why,
            },
            true,
        )
    }

    fn not_a_model_server(&self, why: String) -> FailedTry {
        FailedTry::new(
            Failure::NotAModelServer {
                host: self.wire.host.clone(),
                why,
            },
            false,
        )
    }

    /// A status that is no success.
    async fn refused(&self, response: Response) -> FailedTry {
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers(), self.now);
        let body = read_some(response, Vec::new()).await;
        let message = message_in(&body).unwrap_or_default();
        let (failure, again) = if is_out_of_quota(&body) {
            (Failure::RequestRefused { status, message }, false)
        } else {
            status::failure(&self.wire, status, message, retry_after.is_some())
        };
        FailedTry {
            failure,
            again,
            retry_after,
            usage: RequestUsage::default(),
        }
    }

    async fn read(&self, mut response: Response, answer: &mut Answer) -> Result<(), FailedTry> {
        let framing = self.wire.dialect.framing();
        let mut frames = Frames::new(framing, self.answer_bytes_max);
        let mut decoder = self.wire.dialect.decoder();
        let mut ended = Vec::new();
        let mut bytes = 0_usize;
        loop {
            let piece = match timeout(self.deadlines.silence, response.chunk()).await {
                Err(_) => {
                    return Err(FailedTry::new(
                        Failure::Silence(self.deadlines.silence),
                        false,
                    ));
                }
                Ok(Err(_)) => return Err(FailedTry::cut("the connection broke")),
                Ok(Ok(piece)) => piece,
            };
            match &piece {
                Some(piece) => {
                    if bytes == 0 && !may_begin(framing, piece) {
                        return Err(self.not_a_stream(response, piece.to_vec()).await);
                    }
                    bytes = bytes.saturating_add(piece.len());
                    let most = self.answer_bytes_max.saturating_mul(WIRE_FACTOR);
                    if bytes > most || frames.push(piece, &mut ended).is_err() {
                        return Err(self.too_large());
                    }
                }
                None => frames.finish(&mut ended),
            }
            for data in ended.drain(..) {
                let done = decoder
                    .frame(&data, answer)
                    .map_err(|broken| self.broken(broken))?;
                answer.has_begun = true;
                self.report(answer)?;
                if done {
                    drain(response);
                    return Ok(());
                }
            }
            if piece.is_none() {
                decoder.end(answer);
                return Ok(());
            }
        }
    }

    /// A success whose body is no stream. It may still be an error object.
    async fn not_a_stream(&self, response: Response, start: Vec<u8>) -> FailedTry {
        let kind = response
            .headers()
            .get("content-type")
            .and_then(|kind| kind.to_str().ok());
        let why = match kind {
            Some(kind) => format!("the answer is `{kind}`"),
            None => "the answer has no type".into(),
        };
        let body = read_some(response, start).await;
        match serde_json::from_slice(&body)
            .ok()
            .as_ref()
            .and_then(error_in)
        {
            Some(error) => {
                let (status, message) = status_of(error);
                let (failure, again) = status::failure(&self.wire, status, message, false);
                FailedTry::new(failure, again)
            }
            None => self.not_a_model_server(why),
        }
    }

    fn broken(&self, broken: BrokenAnswer) -> FailedTry {
        match broken {
            BrokenAnswer::Malformed(why) => FailedTry::cut(why),
            BrokenAnswer::TooLarge => self.too_large(),
            BrokenAnswer::Provider { status, message } => {
                let (failure, again) = status::failure(&self.wire, status, message, false);
                FailedTry::new(failure, again)
            }
        }
    }

    fn too_large(&self) -> FailedTry {
        let limit_bytes = self.answer_bytes_max;
        FailedTry::new(Failure::TooLarge { limit_bytes }, false)
    }

    fn report(&self, answer: &mut Answer) -> Result<(), FailedTry> {
        for delta in answer.deltas.drain(..) {
            let gone = |_| FailedTry::new(Failure::Stopped, false);
            self.progress.send(Progress::Delta(delta)).map_err(gone)?;
        }
        Ok(())
    }
}

/// What failed below a connection that did not come about.
pub(crate) fn why_not_connected(error: reqwest::Error, deadline: Duration) -> String {
    if error.is_timeout() {
        return format!("nothing within {}", seconds(deadline));
    }
    // The innermost cause is the most specific one, and does not contain the address.
    let error = error.without_url();
    let mut cause: &dyn Error = &error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// Scheme, host and port of the place that a redirect leads to.
pub(crate) fn redirected_to(response: &Response) -> String {
    let to = response
        .headers()
        .get("location")
        .and_then(|to| to.to_str().ok());
    let to = to.and_then(|to| response.url().join(to).ok());
    to.map_or_else(
        || "an unknown place".into(),
        |url| format!("{}://{}", url.scheme(), host(&url)),
    )
}

/// As much of a body as a message needs; a failure while reading it is ignored.
pub(crate) async fn read_some(response: Response, body: Vec<u8>) -> Vec<u8> {
    read_at_most(response, body, FAILURE_BYTES_MAX, FAILURE_BODY).await
}

/// So much of a body as comes in time; a failure while reading it is ignored.
pub(crate) async fn read_at_most(
    mut response: Response,
    mut body: Vec<u8>,
    bytes_max: usize,
    limit: Duration,
) -> Vec<u8> {
    let read = async {
        while let Ok(Some(piece)) = response.chunk().await {
            body.extend_from_slice(&piece);
            if body.len() >= bytes_max {
                break;
            }
        }
    };
    _ = timeout(limit, read).await;
    body.truncate(bytes_max);
    body
}

/// Reads what is left of a body, which is usually the end of its last chunk.
pub(crate) fn drain(mut response: Response) {
    tokio::spawn(timeout(DRAIN, async move {
        let mut left = FAILURE_BYTES_MAX;
        while let Ok(Some(piece)) = response.chunk().await {
            left = left.saturating_sub(piece.len());
            if left == 0 {
                break;
            }
        }
    }));
}
