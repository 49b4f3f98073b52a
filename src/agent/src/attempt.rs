//! One try: a request, and its answer up to its end.

use std::error::Error;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime};

use reqwest::{Response, StatusCode, Url};
use tokio::time::timeout;

use crate::answer::{Answer, Broken};
use crate::dialect::{Wire, host};
use crate::error::Failure;
use crate::frames::{Frames, can_begin};
use crate::model::Deadlines;
use crate::pace::asked_for;
use crate::status::{self, error_in, is_out_of_quota, message_in, status_of};
use crate::stop::Stop;
use crate::turn::{Delta, Usage};

/// Bytes of a failure's body that are read.
const FAILURE_BYTES_MAX: usize = 64 * 1024;
/// How long it may take.
const FAILURE_BODY: Duration = Duration::from_secs(10);
/// Bytes on the wire for each byte that may be kept: a token of three bytes comes in a frame of hundreds.
const WIRE_FACTOR: usize = 64;
/// How long the rest of a body may take that has nothing more to say, so that its connection can be used
/// again.
const DRAIN: Duration = Duration::from_secs(1);

/// What a try tells while it goes on; `End` comes last.
pub(crate) enum Told {
    Delta(Delta),
    End(Box<Result<Answer, Failed>>),
}

/// A try that does not count.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) failure: Failure,
    /// Whether a repetition may help.
    pub(crate) again: bool,
    /// The wait that the server asked for.
    pub(crate) asked: Option<Duration>,
    pub(crate) usage: Option<Usage>,
}

impl Failed {
    pub(crate) fn new(failure: Failure, again: bool) -> Self {
        Self {
            failure,
            again,
            asked: None,
            usage: None,
        }
    }

    fn cut(why: &'static str) -> Self {
        Self::new(Failure::Incomplete(why), true)
    }
}

/// All that a try needs, to be moved to the thread of connections.
pub(crate) struct Attempt {
    pub(crate) http: reqwest::Client,
    pub(crate) wire: Arc<Wire>,
    pub(crate) deadlines: Deadlines,
    /// What is left of the turn.
    pub(crate) left: Duration,
    pub(crate) answer_bytes_max: usize,
    pub(crate) now: SystemTime,
    pub(crate) stop: Stop,
    pub(crate) told: Sender<Told>,
}

impl Attempt {
    pub(crate) async fn run(self) {
        let mut answer = Answer::new(self.answer_bytes_max);
        let ended = tokio::select! {
            biased;
            () = self.stop.stopped() => Err(Failed::new(Failure::Stopped, false)),
            ended = timeout(self.left, self.exchange(&mut answer)) => ended.unwrap_or_else(|_| {
                Err(Failed::new(Failure::TurnTimeout(self.deadlines.turn), false))
            }),
        };
        let end = match ended {
            Ok(()) => Ok(answer),
            Err(mut failed) => {
                failed.usage = answer.usage;
                Err(failed)
            }
        };
        // Nobody listens only where the caller is gone.
        _ = self.told.send(Told::End(Box::new(end)));
    }

    async fn exchange(&self, answer: &mut Answer) -> Result<(), Failed> {
        let request = self
            .http
            .post(self.wire.url.clone())
            .headers(self.wire.headers.clone())
            .body(self.wire.body.clone());
        let response = match timeout(self.deadlines.headers, request.send()).await {
            Err(_) => {
                return Err(Failed::new(
                    Failure::HeadersTimeout(self.deadlines.headers),
                    false,
                ));
            }
            Ok(Err(error)) => return Err(self.not_sent(error)),
            Ok(Ok(response)) => response,
        };
        match response.status() {
            status if status.is_redirection() => Err(self.redirected(&response)),
            StatusCode::OK => self.read(response, answer).await,
            status if status.is_success() => {
                Err(self.not_a_model_server(format!("status {status} instead of 200")))
            }
            _ => Err(self.refused(response).await),
        }
    }

    fn not_sent(&self, error: reqwest::Error) -> Failed {
        if !error.is_connect() {
            return Failed::cut("the connection broke before it began");
        }
        // The innermost cause says most, and no address with a password is in it.
        let error = error.without_url();
        let mut cause: &dyn Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let why = if error.is_timeout() {
            format!("nothing within {} s", self.deadlines.connect.as_secs_f64())
        } else {
            cause.to_string()
        };
        Failed::new(
            Failure::Connect {
                host: self.wire.host.clone(),
                why,
            },
            true,
        )
    }

    fn redirected(&self, response: &Response) -> Failed {
        let to = response
            .headers()
            .get("location")
            .and_then(|to| to.to_str().ok());
        let to = to.and_then(|to| self.wire.url.join(to).ok());
        let origin = |url: Url| format!("{}://{}", url.scheme(), host(&url));
        let failure = Failure::Redirected {
            status: response.status().as_u16(),
            to: to.map_or_else(|| "an unknown place".into(), origin),
        };
        Failed::new(failure, false)
    }

    fn not_a_model_server(&self, why: String) -> Failed {
        Failed::new(
            Failure::NotAModelServer {
                host: self.wire.host.clone(),
                why,
            },
            false,
        )
    }

    /// A status that is no success.
    async fn refused(&self, response: Response) -> Failed {
        let status = response.status().as_u16();
        let asked = asked_for(response.headers(), self.now);
        let body = read_some(response, Vec::new()).await;
        let message = message_in(&body).unwrap_or_default();
        let (failure, again) = if is_out_of_quota(&body) {
            (Failure::RequestRefused { status, message }, false)
        } else {
            status::failure(&self.wire, status, message, asked.is_some())
        };
        Failed {
            failure,
            again,
            asked,
            usage: None,
        }
    }

    async fn read(&self, mut response: Response, answer: &mut Answer) -> Result<(), Failed> {
        let framing = self.wire.dialect.framing();
        let mut frames = Frames::new(framing, self.answer_bytes_max);
        let mut decoder = self.wire.dialect.decoder();
        let mut ended = Vec::new();
        let mut bytes = 0_usize;
        loop {
            let piece = match timeout(self.deadlines.silence, response.chunk()).await {
                Err(_) => {
                    return Err(Failed::new(Failure::Silence(self.deadlines.silence), false));
                }
                Ok(Err(_)) => return Err(Failed::cut("the connection broke")),
                Ok(Ok(piece)) => piece,
            };
            match &piece {
                Some(piece) => {
                    if bytes == 0 && !can_begin(framing, piece) {
                        return Err(self.nonsense(response, piece.to_vec()).await);
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
                self.tell(answer)?;
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

    /// Success with a body in no dialect. It may be an error in words.
    async fn nonsense(&self, response: Response, start: Vec<u8>) -> Failed {
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
                Failed::new(failure, again)
            }
            None => self.not_a_model_server(why),
        }
    }

    fn broken(&self, broken: Broken) -> Failed {
        match broken {
            Broken::Malformed(why) => Failed::cut(why),
            Broken::TooLarge => self.too_large(),
            Broken::Said { status, message } => {
                let (failure, again) = status::failure(&self.wire, status, message, false);
                Failed::new(failure, again)
            }
        }
    }

    fn too_large(&self) -> Failed {
        let limit_bytes = self.answer_bytes_max;
        Failed::new(Failure::TooLarge { limit_bytes }, false)
    }

    fn tell(&self, answer: &mut Answer) -> Result<(), Failed> {
        for delta in answer.deltas.drain(..) {
            let gone = |_| Failed::new(Failure::Stopped, false);
            self.told.send(Told::Delta(delta)).map_err(gone)?;
        }
        Ok(())
    }
}

/// As much of a body as a message needs; what fails meanwhile changes nothing.
async fn read_some(mut response: Response, mut body: Vec<u8>) -> Vec<u8> {
    let read = async {
        while let Ok(Some(piece)) = response.chunk().await {
            body.extend_from_slice(&piece);
            if body.len() >= FAILURE_BYTES_MAX {
                break;
            }
        }
    };
    _ = timeout(FAILURE_BODY, read).await;
    body.truncate(FAILURE_BYTES_MAX);
    body
}

/// Reads what is left of a body, which is usually the end of its last chunk.
fn drain(mut response: Response) {
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
