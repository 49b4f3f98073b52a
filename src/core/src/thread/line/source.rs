//! Where lines of output come from.

use crate::protocol::LogStream;

/// Where a line of output comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// Standard output of the skill's command.
    Stdout,
    /// Standard error of the skill's command.
    Stderr,
    /// Output of a check or a hook.
    Check,
    /// What a model calls, and what comes of it.
    Tool,
}

impl Source {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Source::Stdout => "stdout",
            Source::Stderr => "stderr",
            Source::Check => "check",
            Source::Tool => "tool",
        }
    }

    pub(super) fn named(name: &str) -> Option<Source> {
        let all = [Source::Stdout, Source::Stderr, Source::Check, Source::Tool];
        all.into_iter().find(|source| source.name() == name)
    }
}

impl From<Source> for LogStream {
    fn from(source: Source) -> LogStream {
        match source {
            Source::Stdout => LogStream::Stdout,
            Source::Stderr => LogStream::Stderr,
            Source::Check => LogStream::Check,
            Source::Tool => LogStream::Tool,
        }
    }
}
