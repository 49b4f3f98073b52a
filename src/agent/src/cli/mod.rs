//! Agent programs that people have a login for: how each is started, and what its events prove.
//!
//! A program's exit code and its own word for success are worth nothing: each of them exits with 0 after a refused tool,
//! and most after an empty answer. So [`Reading`] reads the stream of events, and [`Reading::verdict`] believes in an
//! answer only where the event that ends the work was seen, without an error and a refusal, after at least one turn and
//! with text. Events that nobody here knows are handed on as they are; none of them makes a success.
//!
//! The shapes of the streams were recorded with Claude Code 2.1.332, Codex 0.169.0 and opencode 1.18.33, those of Gemini
//! CLI 0.61.0 and Qwen Code 0.24.4 follow what these programs print.

mod claude;
mod codex;
mod fault;
mod gemini;
mod generic;
mod launch;
mod lines;
mod opencode;
mod reading;
mod wait;

#[cfg(test)]
mod tests;

pub use fault::{Fault, FaultKind};
pub use generic::{Output, Shape};
pub use launch::{Launch, Launched};
pub use reading::{Exit, Reading, Seen};

/// A program whose stream and options are known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Known {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// opencode.
    Opencode,
    /// Gemini CLI.
    Gemini,
    /// Qwen Code, which speaks as Claude Code does.
    Qwen,
}

impl Known {
    /// All of them.
    pub const ALL: [Known; 5] = [
        Known::Claude,
        Known::Codex,
        Known::Opencode,
        Known::Gemini,
        Known::Qwen,
    ];

    /// Its name in definitions, which is also that of its program.
    pub const fn name(self) -> &'static str {
        match self {
            Known::Claude => "claude",
            Known::Codex => "codex",
            Known::Opencode => "opencode",
            Known::Gemini => "gemini",
            Known::Qwen => "qwen",
        }
    }

    /// The program of that name.
    pub fn named(name: &str) -> Option<Known> {
        Known::ALL.into_iter().find(|known| known.name() == name)
    }

    /// The newest version that this was tried with; absent: only its documentation was read.
    pub const fn tried(self) -> Option<&'static str> {
        match self {
            Known::Claude => Some("2.1.332"),
            Known::Codex => Some("0.169.0"),
            Known::Opencode => Some("1.18.33"),
            Known::Gemini | Known::Qwen => None,
        }
    }
}

impl Format {
    /// Whether the program tells the tokens of all of its requests when it ends, and not all of them before.
    pub const fn reports_total(&self) -> bool {
        match self {
            Format::Known(known) => !matches!(known, Known::Opencode),
            Format::Described(_) => false,
        }
    }

    /// Whether the program tells what its work cost.
    pub const fn reports_cost(&self) -> bool {
        match self {
            Format::Known(known) => !matches!(known, Known::Codex | Known::Gemini),
            Format::Described(shape) => shape.cost.is_some(),
        }
    }
}

/// Whose stream is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// A known program's.
    Known(Known),
    /// One that is described.
    Described(Shape),
}
