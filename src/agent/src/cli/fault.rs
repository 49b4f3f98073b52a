//! Why a program's work does not count.

use std::time::SystemTime;

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Its login or key is not accepted, or it asks for one.
    Auth,
    /// Its server refuses the request.
    RequestRefused,
    /// Too many requests, or the allowance of a plan is used up.
    RateLimited,
    /// Its server failed.
    Server,
    /// A stream broke off.
    Incomplete,
    /// The limit of money that it was given is reached.
    Budget,
    /// It ended without the event that ends its work.
    NoResult,
    /// It refused a tool.
    Refused,
    /// It took no turn.
    NoTurns,
    /// It said nothing.
    Empty,
    /// Its result says that it failed, in other ways.
    Failed,
    /// Its result says nothing of a failure, its exit code does.
    Exit,
}

impl FaultKind {
    /// Stable code.
    pub const fn code(self) -> &'static str {
        match self {
            FaultKind::Auth => "auth",
            FaultKind::RequestRefused => "request_refused",
            FaultKind::RateLimited => "rate_limited",
            FaultKind::Server => "server",
            FaultKind::Incomplete => "incomplete",
            FaultKind::Budget => "budget_exhausted",
            FaultKind::NoResult => "no_result",
            FaultKind::Refused => "tool_refused",
            FaultKind::NoTurns => "no_turns",
            FaultKind::Empty => "empty",
            FaultKind::Failed => "agent_failed",
            FaultKind::Exit => "agent_exit",
        }
    }

    /// Whether another attempt may fare better.
    pub const fn may_be_repeated(self) -> bool {
        !matches!(
            self,
            FaultKind::Auth | FaultKind::RequestRefused | FaultKind::Budget | FaultKind::Refused
        )
    }

    /// The kind that a status of HTTP stands for.
    pub(super) const fn of_status(status: u64) -> FaultKind {
        match status {
            401 | 403 => FaultKind::Auth,
            429 => FaultKind::RateLimited,
            400..=499 => FaultKind::RequestRefused,
            500..=599 => FaultKind::Server,
            _ => FaultKind::Failed,
        }
    }

    /// The kind that a program's words stand for, where it gives no status.
    pub(super) fn of_words(words: &str) -> FaultKind {
        if let Some(status) = status_in(words) {
            return FaultKind::of_status(status);
        }
        let lower = words.to_lowercase();
        let has = |any: &[&str]| any.iter().any(|part| lower.contains(part));
        if has(&["usage limit", "rate limit", "hit your limit", "quota"]) {
            FaultKind::RateLimited
        } else if has(&[
            "log in",
            "login",
            "logged in",
            "api key",
            "authenticat",
            "unauthorized",
        ]) {
            FaultKind::Auth
        } else if has(&[
            "stream disconnected",
            "stream closed",
            "connection",
            "timed out",
        ]) {
            FaultKind::Incomplete
        } else if has(&["high demand", "overloaded", "internal server"]) {
            FaultKind::Server
        } else {
            FaultKind::Failed
        }
    }
}

/// The number that follows the word `status`, or stands in brackets: `last status: 429`, `(429)`.
fn status_in(words: &str) -> Option<u64> {
    let numbers = words.split(|c: char| !c.is_ascii_digit());
    let mut at = 0;
    for number in numbers {
        let begin = at;
        at += number.len() + 1;
        if number.len() != 3 {
            continue;
        }
        let before = words
            .get(..begin)
            .unwrap_or_default()
            .trim_end_matches([' ', ':']);
        if before.ends_with("status") || before.ends_with('(') || before.ends_with("Error") {
            return number
                .parse()
                .ok()
                .filter(|status| (400..600).contains(status));
        }
    }
    None
}

/// Why a program's work does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What kind of failure it is.
    pub kind: FaultKind,
    /// For people; may hold what the program said.
    pub message: String,
    /// When the program may be used again, where it says so.
    pub until: Option<SystemTime>,
}

impl Fault {
    pub(super) fn new(kind: FaultKind, message: impl Into<String>) -> Fault {
        let message = message.into();
        let until = (kind == FaultKind::RateLimited)
            .then(|| super::wait::until(&message, SystemTime::now()))
            .flatten();
        Fault {
            kind,
            message,
            until,
        }
    }

    /// One whose kind its words tell.
    pub(super) fn said(words: &str) -> Fault {
        Fault::new(FaultKind::of_words(words), words)
    }
}
