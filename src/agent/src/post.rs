//! One message to a web server of somebody else, such as a webhook. It counts as taken only by an answer of 2xx.

use std::time::{Duration, Instant, SystemTime};

use reqwest::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, Url};
use tokio::time::timeout;

use crate::attempt::{read_at_most, why_not_connected};
use crate::clean;
use crate::client::{Client, NO_TLS};
use crate::error::seconds;
use crate::model::Key;
use crate::pace::retry_after;
use crate::stop::Stop;

/// Name lookup, connection and TLS handshake together.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a message may take that does not have to be quicker.
pub const POST_DEADLINE: Duration = Duration::from_secs(30);
/// For the body of an answer, of which only its first words are shown.
const BODY: Duration = Duration::from_secs(5);
/// Bytes of it that are read.
const BODY_BYTES_MAX: usize = 16 * 1024;
/// Shorter pieces of an address are no secret of their own.
const PIECE_BYTES_MIN: usize = 4;
/// Shorter texts are hidden wherever they stand.
const WORD_BYTES_MIN: usize = 6;

/// A message to be posted.
#[derive(Clone)]
pub struct Post {
    /// The whole address. It is a secret, and so no part of any error.
    pub url: String,
    /// Whether its host is one too.
    pub hides_host: bool,
    /// Headers beside those of every request.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
    /// From the name lookup to the status of the answer.
    pub deadline: Duration,
}

/// The answer of a server that took a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// Its status, one of 2xx.
    pub status: u16,
    /// The first of what it says, without what is secret.
    pub text: String,
}

/// Why a message does not count as taken. It may have been, where no answer came.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// It cannot be sent as it is.
    #[error("it cannot be sent: {0}")]
    Settings(String),
    /// No connection: name, network, TLS, or its deadline.
    #[error("no connection: {0}")]
    Connect(String),
    /// No answer in time.
    #[error("no answer within {}", seconds(*.0))]
    Timeout(Duration),
    /// The connection ended before an answer.
    #[error("the connection broke before an answer")]
    Cut,
    /// A redirect, which is not followed: the message would go to whoever is named there.
    #[error("redirected (status {0}), which is not followed: name the address that it leads to")]
    Redirected(u16),
    /// Another status than 2xx.
    #[error("status {status}{}", after_colon(text))]
    Refused {
        /// The status.
        status: u16,
        /// The first of what the server says, without what is secret.
        text: String,
        /// How long it asks to wait.
        retry_after: Option<Duration>,
    },
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
}

fn after_colon(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}

impl Client {
    /// Posts a message and blocks until it is answered, 30 s at most, or stopped. It is sent once: a repetition is the
    /// caller's.
    ///
    /// # Errors
    /// One [`PostError`] for each way in which it is not taken.
    pub fn post(&self, post: &Post, stop: &Stop) -> Result<Posted, PostError> {
        let settings = |why: &str| PostError::Settings(why.to_owned());
        let url = Url::parse(&post.url).map_err(|_| settings("its URL is invalid"))?;
        let headers = headers(post).ok_or_else(|| settings("one of its headers is invalid"))?;
        let secrets = Secrets::of(&url, post);
        let http = self
            .pool(CONNECT, url.scheme() == "https")
            .map_err(|_| settings(NO_TLS))?;
        let request = http.post(url).headers(headers).body(post.body.clone());
        let (now, stop, whole) = (self.now(), stop.clone(), post.deadline);
        let exchange = async move {
            let began = Instant::now();
            let response = tokio::select! {
                biased;
                () = stop.stopped() => return Err(PostError::Stopped),
                sent = timeout(whole, request.send()) => match sent {
                    Err(_) => return Err(PostError::Timeout(whole)),
                    Ok(sent) => sent.map_err(not_sent)?,
                },
            };
            // Its status has decided already: what follows may be slow, and cut.
            let left = whole.saturating_sub(began.elapsed()).min(BODY);
            judged(response, now, left).await
        };
        let shown = |text: String| secrets.hide(&text);
        match self.wait_for(exchange).unwrap_or(Err(PostError::Cut)) {
            Ok(Posted { status, text }) => Ok(Posted {
                status,
                text: shown(text),
            }),
            Err(PostError::Connect(why)) => Err(PostError::Connect(shown(why))),
            Err(PostError::Refused {
                status,
                text,
                retry_after,
            }) => Err(PostError::Refused {
                status,
                text: shown(text),
                retry_after,
            }),
            Err(other) => Err(other),
        }
    }
}

fn headers(post: &Post) -> Option<HeaderMap> {
    let mut map = HeaderMap::new();
    // Notices are rare: a connection that was kept would be closed by then, and look like a failure.
    map.insert(CONNECTION, HeaderValue::from_static("close"));
    for (name, value) in &post.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        map.insert(name, HeaderValue::from_str(value).ok()?);
    }
    Some(map)
}

/// What an answer may repeat and nobody is shown.
struct Secrets {
    /// Pieces of the address of which no part is shown.
    keys: Vec<Key>,
    /// Words, which are hidden whole: `no_service` says what is wrong, though `services` is in the address.
    words: Vec<String>,
}

impl Secrets {
    /// Path and query, as they are sent and as people read them.
    fn of(url: &Url, post: &Post) -> Secrets {
        let whole = [url.path(), url.query().unwrap_or_default()].join("?");
        let read = percent_encoding::percent_decode_str(&whole).decode_utf8_lossy();
        let host = url.host_str().filter(|_| post.hides_host);
        let mut secrets = Secrets {
            keys: host
                .map(|host| Key::new("host", host))
                .into_iter()
                .collect(),
            words: Vec::new(),
        };
        for text in [&whole, &*read] {
            let text = text.trim_matches(['/', '?']);
            let pieces = text.split(['/', '?', '&']);
            let values =
                pieces.map(|piece| piece.split_once('=').map_or(piece, |(_, value)| value));
            values
                .filter(|one| one.len() >= PIECE_BYTES_MIN)
                .for_each(|one| secrets.add(one));
            secrets.add(text);
        }
        secrets
    }

    fn add(&mut self, text: &str) {
        let is_word = text.bytes().all(|byte| byte.is_ascii_lowercase());
        let is_whole = text.contains(['/', '?']);
        if text.len() >= WORD_BYTES_MIN && (is_word || is_whole) {
            self.words.push(text.to_owned());
        } else if !text.is_empty() {
            self.keys.push(Key::new("address", text));
        }
    }

    fn hide(&self, text: &str) -> String {
        let keys: Vec<&Key> = self.keys.iter().collect();
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        clean::hidden_and_shown(text, &keys, &words)
    }
}

fn not_sent(error: reqwest::Error) -> PostError {
    if error.is_connect() {
        return PostError::Connect(why_not_connected(error, CONNECT));
    }
    PostError::Cut
}

async fn judged(response: Response, now: SystemTime, left: Duration) -> Result<Posted, PostError> {
    let status = response.status();
    if status.is_redirection() {
        return Err(PostError::Redirected(status.as_u16()));
    }
    let retry_after = retry_after(response.headers(), now);
    let kind = response.headers().get(CONTENT_TYPE);
    let is_page = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let body = read_at_most(response, Vec::new(), BODY_BYTES_MAX, left).await;
    // What stands on a page is seldom what was wrong.
    let text = if is_page {
        String::new()
    } else {
        String::from_utf8_lossy(&body).into_owned()
    };
    let status_number = status.as_u16();
    if status.is_success() {
        return Ok(Posted {
            status: status_number,
            text,
        });
    }
    Err(PostError::Refused {
        status: status_number,
        text,
        retry_after,
    })
}
