//! Why a tool server cannot be used.

use std::time::Duration;

use crate::error::seconds;

/// A tool server that cannot be used, or a call that it did not answer.
///
/// Neither `Display` nor `Debug` holds a header's value; what a server says is cut, cleaned and masked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tool server `{server}`: {failure}")]
pub struct McpError {
    /// The server's name.
    pub server: String,
    /// What went wrong.
    pub failure: McpFailure,
}

impl McpError {
    /// A stable code for journals and views.
    pub fn code(&self) -> &'static str {
        self.failure.code()
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        self.failure.hint()
    }
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpFailure {
    /// The server's entry cannot be used as it is.
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
    /// It did not start in time.
    #[error("it did not start within {}", seconds(*.0))]
    StartTimeout(Duration),
    /// A call took too long. The server can still be used.
    #[error("`{tool}` was not done within {}", seconds(*.after))]
    CallTimeout {
        /// The tool, as the server names it.
        tool: String,
        /// The deadline.
        after: Duration,
    },
    /// The caller stopped it.
    #[error("stopped")]
    Stopped,
    /// It ended the connection.
    #[error("the connection ended: {0}")]
    Closed(&'static str),
    /// It writes text instead of messages.
    #[error("it writes text instead of JSON: {said}")]
    NotJson {
        /// The first of it.
        said: String,
    },
    /// A message is larger than one may be.
    #[error("a message of it is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
    },
    /// An HTTP status that is no success.
    #[error("it refused the request (status {status}): {message}")]
    Refused {
        /// The status.
        status: u16,
        /// What the server says; for 401 and 403, what was sent.
        message: String,
    },
    /// A redirect, which is not followed: the headers would go along.
    #[error("redirected to `{to}` (status {status}), which is not followed")]
    Redirected {
        /// The status.
        status: u16,
        /// Scheme, host and port of the new place.
        to: String,
    },
    /// It does not keep to the protocol.
    #[error("it does not keep to the protocol: {0}")]
    Protocol(String),
}

impl McpFailure {
    /// A stable code for journals and views.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Settings(_) => "settings",
            Self::Connect { .. } => "mcp_connect",
            Self::StartTimeout(_) => "mcp_start_timeout",
            Self::CallTimeout { .. } => "mcp_call_timeout",
            Self::Stopped => "stopped",
            Self::Closed(_) => "mcp_closed",
            Self::NotJson { .. } => "mcp_not_json",
            Self::TooLarge { .. } => "mcp_too_large",
            Self::Refused { .. } => "mcp_refused",
            Self::Redirected { .. } => "redirected",
            Self::Protocol(_) => "mcp_protocol",
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Connect { .. } => "check the server's `url` and that it runs",
            Self::StartTimeout(_) => "run its command by hand to see what it waits for",
            Self::CallTimeout { .. } => "raise the deadline, if the tool is only slow",
            Self::Closed(_) => "read what the server wrote to its standard error",
            Self::NotJson { .. } => "make the server log to its standard error",
            Self::Refused {
                status: 401 | 403, ..
            } => "check the values of the server's headers",
            Self::Refused { status: 404, .. } => "check the server's `url`",
            Self::Redirected { .. } => "set the server's `url` to the place it leads to",
            Self::Settings(_)
            | Self::Stopped
            | Self::TooLarge { .. }
            | Self::Refused { .. }
            | Self::Protocol(_) => return None,
        })
    }
}
