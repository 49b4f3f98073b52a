//! Why a turn does not count.

use std::time::{Duration, SystemTime};

/// A turn that does not count.
///
/// Neither `Display` nor `Debug` holds a key's value or a text of the request: what a server says is shown
/// only where it helps, cut, cleaned and masked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("model `{model}`: {failure}")]
pub struct TurnError {
    /// The model's alias.
    pub model: String,
    /// What went wrong, in the last try.
    pub failure: Box<Failure>,
    /// Requests sent; 0 if it failed before.
    pub tries: u32,
}

impl TurnError {
    /// A stable code for journals and views.
    pub fn code(&self) -> &'static str {
        self.failure.code()
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        self.failure.hint()
    }
}

/// Why a caller ends a turn or a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Halt {
    /// Stable code.
    pub code: String,
    /// For people.
    pub message: String,
    /// Whether another attempt may fare better.
    pub again: bool,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The model's entry or the request cannot be sent as it is.
    #[error("cannot be used: {0}")]
    Settings(String),
    /// No connection: name, network, TLS, or its deadline.
    #[error("no connection to `{host}`: {why}")]
    Connect {
        /// Host and port.
        host: String,
        /// What failed.
        why: String,
    },
    /// No response headers in time.
    #[error("no answer began within {}", seconds(*.0))]
    HeadersTimeout(Duration),
    /// The answer fell silent.
    #[error("the answer was silent for {}", seconds(*.0))]
    Silence(Duration),
    /// The turn took too long.
    #[error("the turn was not done within {}", seconds(*.0))]
    TurnTimeout(Duration),
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
    /// The caller did not allow another request.
    #[error("{}", .0.message)]
    Halted(Halt),
    /// The answer broke off, or was no whole one.
    #[error("the answer is incomplete: {0}")]
    Incomplete(&'static str),
    /// The answer has neither text nor calls.
    #[error("the answer is empty (stopped by `{stop}`)")]
    Empty {
        /// Why the model stopped.
        stop: String,
    },
    /// The answer reached the limit of its tokens.
    #[error("the answer was cut at its limit (stopped by `{stop}`)")]
    Length {
        /// Why the model stopped.
        stop: String,
    },
    /// The model or a filter refused.
    #[error("the model refused (stopped by `{stop}`)")]
    Refusal {
        /// Why the model stopped.
        stop: String,
    },
    /// More bytes than an answer may have.
    #[error("the answer is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// 401 or 403.
    #[error("{} was not accepted (status {status})", key_name(key.as_deref()))]
    Auth {
        /// The status.
        status: u16,
        /// The key's reference, if one was sent.
        key: Option<String>,
    },
    /// 404.
    #[error("`{host}` does not know the model `{name}`")]
    ModelNotFound {
        /// Host and port.
        host: String,
        /// The model's name there.
        name: String,
    },
    /// 400 and other statuses that a repetition would not change.
    #[error("the request was refused (status {status}): {message}")]
    RequestRefused {
        /// The status, or the one that an error within the stream stands for.
        status: u16,
        /// What the server says.
        message: String,
    },
    /// Too many requests or an overloaded server, and a wait that is too long or did not help.
    #[error("rate limited (status {status})")]
    RateLimited {
        /// The status.
        status: u16,
        /// The time given by the server's `retry-after`, if it sent one.
        until: Option<SystemTime>,
    },
    /// The server failed.
    #[error("the server failed (status {status}): {message}")]
    Server {
        /// The status, or the one that an error within the stream stands for.
        status: u16,
        /// What the server says.
        message: String,
    },
    /// A redirect, which is not followed: the key would go along.
    #[error("redirected to `{to}` (status {status}), which is not followed")]
    Redirected {
        /// The status.
        status: u16,
        /// Scheme, host and port of the new place.
        to: String,
    },
    /// Success, but not in the model's dialect.
    #[error("`{host}` does not answer as a model server: {why}")]
    NotAModelServer {
        /// Host and port.
        host: String,
        /// What it is instead.
        why: String,
    },
}

impl Failure {
    /// A stable code for journals and views.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Settings(_) => "settings",
            Self::Connect { .. } => "connect",
            Self::HeadersTimeout(_) => "headers_timeout",
            Self::Silence(_) => "silence",
            Self::TurnTimeout(_) => "turn_timeout",
            Self::Stopped => "stopped",
            Self::Halted(_) => "halted",
            Self::Incomplete(_) => "incomplete",
            Self::Empty { .. } => "empty",
            Self::Length { .. } => "length",
            Self::Refusal { .. } => "refusal",
            Self::TooLarge { .. } => "too_large",
            Self::Auth { .. } => "auth",
            Self::ModelNotFound { .. } => "model_not_found",
            Self::RequestRefused { .. } => "request_refused",
            Self::RateLimited { .. } => "rate_limited",
            Self::Server { .. } => "server",
            Self::Redirected { .. } => "redirected",
            Self::NotAModelServer { .. } => "not_a_model_server",
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Connect { .. } => "check `base_url` and that its server runs".into(),
            Self::Length { .. } => "raise `max_output_tokens`, or ask for less at once".into(),
            Self::Auth { key: Some(key), .. } => format!("check the value of `{key}`"),
            Self::Auth { key: None, .. } => "give the model a `key`".into(),
            Self::ModelNotFound { .. } => "check its `model` and `base_url`, which usually ends in `/v1` for `openai` and `openai_responses`".into(),
            Self::Redirected { .. } => "set `base_url` to the place it leads to".into(),
            Self::NotAModelServer { .. } => "check its `base_url` and `provider`".into(),
            Self::HeadersTimeout(_) | Self::Silence(_) | Self::TurnTimeout(_) => {
                "raise the deadline, if the model is only slow".into()
            }
            Self::Settings(_)
            | Self::Stopped
            | Self::Halted(_)
            | Self::Incomplete(_)
            | Self::Empty { .. }
            | Self::Refusal { .. }
            | Self::TooLarge { .. }
            | Self::RequestRefused { .. }
            | Self::RateLimited { .. }
            | Self::Server { .. } => return None,
        })
    }
}

impl Failure {
    /// Whether no answer was begun: the request was not sent, or the server did not accept it.
    pub(crate) const fn is_refusal(&self) -> bool {
        match self {
            Self::Settings(_)
            | Self::Connect { .. }
            | Self::Halted(_)
            | Self::Auth { .. }
            | Self::ModelNotFound { .. }
            | Self::RequestRefused { .. }
            | Self::RateLimited { .. }
            | Self::Server { .. }
            | Self::Redirected { .. }
            | Self::NotAModelServer { .. } => true,
            Self::HeadersTimeout(_)
            | Self::Silence(_)
            | Self::TurnTimeout(_)
            | Self::Stopped
            | Self::Incomplete(_)
            | Self::Empty { .. }
            | Self::Length { .. }
            | Self::Refusal { .. }
            | Self::TooLarge { .. } => false,
        }
    }
}

pub(crate) fn seconds(span: Duration) -> String {
    format!("{} s", span.as_secs_f64())
}

fn key_name(reference: Option<&str>) -> String {
    reference.map_or("a request without a key".into(), |name| {
        format!("the key of `{name}`")
    })
}
