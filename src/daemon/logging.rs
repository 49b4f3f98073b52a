//! The daemon's own log: standard error, in a form that the journal understands where it reads along.

use std::collections::BTreeMap;
use std::fmt;
use std::io::IsTerminal;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::model::{Diagnostic, Kind};

/// Form of the log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people: with times, in colour on a terminal.
    People,
    /// For the journal: a priority in front, times left to the journal.
    Journal,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// The form that fits: `WORKERCTL_LOG_FORMAT`, else the journal's where standard error goes there.
    fn fitting(environment: &BTreeMap<String, String>) -> Result<LogFormat, Diagnostic> {
        match environment.get("WORKERCTL_LOG_FORMAT").map(String::as_str) {
            Some("people") => Ok(LogFormat::People),
            Some("journal") => Ok(LogFormat::Journal),
            Some("json") => Ok(LogFormat::Json),
            Some(other) => Err(Diagnostic::new(
                Kind::Usage,
                "bad_log_format",
                format!("`WORKERCTL_LOG_FORMAT={other}` is not `people`, `journal` or `json`"),
            )),
            None if goes_to_journal(environment) => Ok(LogFormat::Journal),
            None => Ok(LogFormat::People),
        }
    }
}

/// Starts the log of this process: `WORKERCTL_LOG` filters it, such as `debug` or `workerctl::engine=trace`.
pub fn start_logging(environment: &BTreeMap<String, String>) -> Result<(), Diagnostic> {
    let wanted = environment
        .get("WORKERCTL_LOG")
        .map_or("info", String::as_str);
    let filter = EnvFilter::try_new(wanted).map_err(|error| {
        Diagnostic::new(
            Kind::Usage,
            "bad_log_filter",
            format!("`WORKERCTL_LOG={wanted}` is not a filter: {error}"),
        )
        .hint("examples: `info`, `debug`, `workerctl::engine=trace,info`")
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // They would be printed to standard error too, and a thread that cannot print there panics.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let started = match LogFormat::fitting(environment)? {
        LogFormat::People => builder
            .with_ansi(std::io::stderr().is_terminal())
            .try_init(),
        LogFormat::Journal => builder
            .with_ansi(false)
            .event_format(ForJournal(
                Format::default().without_time().with_level(false),
            ))
            .try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    // A second start in one process keeps the first log.
    if started.is_err() {
        tracing::debug!("the log had been started before");
    }
    Ok(())
}

/// Whether standard error is the very stream that the journal reads.
fn goes_to_journal(environment: &BTreeMap<String, String>) -> bool {
    let Some((device, inode)) = environment
        .get("JOURNAL_STREAM")
        .and_then(|stream| stream.split_once(':'))
    else {
        return false;
    };
    rustix::fs::fstat(std::io::stderr())
        .is_ok_and(|found| found.st_dev.to_string() == device && found.st_ino.to_string() == inode)
}

/// A line with the priority prefix of `sd-daemon(3)`.
struct ForJournal(Format<Full, ()>);

impl<S, N> FormatEvent<S, N> for ForJournal
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let priority = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            Level::DEBUG | Level::TRACE => 7,
        };
        write!(writer, "<{priority}>")?;
        self.0.format_event(context, writer, event)
    }
}
