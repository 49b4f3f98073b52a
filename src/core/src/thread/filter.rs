//! Which lines of a log somebody asked for.

use super::sgr::without_sgr;
use crate::model::{Diagnostic, Kind, Timestamp};
use crate::protocol::{LogLine, LogStream, LogsQuery};

/// Which lines of a log are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter {
    /// Of these streams; none: of all.
    streams: Vec<LogStream>,
    attempt: Option<u32>,
    since: Option<Timestamp>,
    /// In lower case.
    text: Option<String>,
}

impl LogFilter {
    /// What a query asks for, wherever it begins.
    ///
    /// # Errors
    /// It names a stream that there is not.
    pub fn of(query: &LogsQuery) -> Result<LogFilter, Diagnostic> {
        let names = query.stream.iter().flat_map(|names| names.split(','));
        Ok(LogFilter {
            streams: names.map(stream_named).collect::<Result<_, _>>()?,
            attempt: query.attempt,
            since: query.since_ms.map(Timestamp::from_millis),
            text: query.search.as_ref().map(|text| text.to_lowercase()),
        })
    }

    /// Whether a line is wanted.
    pub fn wants(&self, line: &LogLine) -> bool {
        let holds = |text: &String| without_sgr(&line.text).to_lowercase().contains(text);
        (self.streams.is_empty() || self.streams.contains(&line.stream))
            && self.attempt.is_none_or(|attempt| line.attempt == attempt)
            && self.since.is_none_or(|since| line.at >= since)
            && self.text.as_ref().is_none_or(holds)
    }
}

fn stream_named(name: &str) -> Result<LogStream, Diagnostic> {
    let found = LogStream::ALL.iter().find(|one| one.name() == name);
    found.copied().ok_or_else(|| {
        let known: Vec<&str> = LogStream::ALL.iter().map(|one| one.name()).collect();
        Diagnostic::new(Kind::Usage, "stream", format!("`{name}` is no stream"))
            .hint(format!("one of: {}", known.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(stream: LogStream, attempt: u32, at_ms: i64, text: &str) -> LogLine {
        LogLine {
            line: 0,
            at: Timestamp::from_millis(at_ms),
            attempt,
            stream,
            text: text.to_owned(),
            continued: false,
            carriage_returns: 0,
        }
    }

    #[test]
    fn each_part_of_a_query_leaves_lines_out() {
        let lines = [
            line(
                LogStream::Stdout,
                1,
                10,
                "an \u{1b}[31mER\u{1b}[0mROR, Ünsaid",
            ),
            line(LogStream::Stderr, 1, 20, "fine"),
            line(LogStream::Event, 2, 30, "error"),
        ];
        let kept = |query: &LogsQuery| -> Vec<i64> {
            let filter = LogFilter::of(query).unwrap();
            let kept = lines.iter().filter(|line| filter.wants(line));
            kept.map(|line| line.at.millis()).collect()
        };
        let all = LogsQuery::default();
        assert_eq!(kept(&all), [10, 20, 30]);
        let search = |text: &str| LogsQuery {
            search: Some(text.to_owned()),
            ..all.clone()
        };
        assert_eq!(kept(&search("Error")), [10, 30]);
        assert_eq!(kept(&search("üNSAID")), [10]);
        let stream = Some("stdout,stderr".to_owned());
        let of_streams = LogsQuery {
            stream,
            ..all.clone()
        };
        assert_eq!(kept(&of_streams), [10, 20]);
        let attempt = Some(2);
        assert_eq!(
            kept(&LogsQuery {
                attempt,
                ..all.clone()
            }),
            [30]
        );
        let since_ms = Some(20);
        assert_eq!(
            kept(&LogsQuery {
                since_ms,
                ..all.clone()
            }),
            [20, 30]
        );
        for wrong in ["", "stdout,", "Stdout", "stdout, stderr"] {
            let stream = Some(wrong.to_owned());
            let refused = LogFilter::of(&LogsQuery {
                stream,
                ..all.clone()
            });
            assert_eq!(refused.unwrap_err().code, "stream", "{wrong:?}");
        }
    }
}
