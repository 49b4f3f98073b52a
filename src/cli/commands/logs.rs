//! `logs RUN`

use std::cell::Cell;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use super::threads::verify;
use rustix::io::Errno;

use crate::cli::exit::Exit;
use crate::cli::io::Stream;
use crate::cli::render::line::{BAD, CARE, DIM, Line, PLAIN};
use crate::cli::render::{diagnostic, json, times};
use crate::cli::session::{Accept, Session, run_named, zone_of};
use crate::cli::suggest;
use crate::model::{Diagnostic, Kind, Timestamp, Zone};
use crate::protocol::{Control, LogLine, LogStream, LogsQuery, TAIL_LINES_MAX, WatchEvent};
use crate::thread::filter::LogFilter;

/// Lines that are asked for at once.
const PAGE_LINES: u32 = 5_000;

/// Begins the line of a terminal anew, empty.
const CLEAR: &str = "\r\u{1b}[2K";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run id, any unique prefix or suffix of it, or `latest`
    #[arg(default_value = "latest")]
    run: String,
    /// Follow the log until the run ends
    #[arg(short, long)]
    follow: bool,
    /// Only lines since this time: `5m`, `2026-11-20T09:00`
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only the last N lines
    #[arg(short = 'n', long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(0..=i64::from(TAIL_LINES_MAX)))]
    tail: Option<u32>,
    /// Only this attempt
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Only this stream; repeatable
    #[arg(long, value_name = "STREAM")]
    stream: Vec<StreamChoice>,
}

/// A stream as people name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StreamChoice {
    Stdout,
    Stderr,
    Check,
    Tool,
    Event,
}

impl StreamChoice {
    const fn stream(self) -> LogStream {
        match self {
            StreamChoice::Stdout => LogStream::Stdout,
            StreamChoice::Stderr => LogStream::Stderr,
            StreamChoice::Check => LogStream::Check,
            StreamChoice::Tool => LogStream::Tool,
            StreamChoice::Event => LogStream::Event,
        }
    }
}

/// What is asked for, from its first line on.
fn query_of(args: &Args, since: Option<Timestamp>) -> LogsQuery {
    let streams = args.stream.iter().map(|choice| choice.stream().name());
    let streams: Vec<&str> = streams.collect();
    LogsQuery {
        limit: PAGE_LINES,
        tail: args.tail,
        stream: (!streams.is_empty()).then(|| streams.join(",")),
        attempt: args.attempt,
        since_ms: since.map(Timestamp::millis),
        ..LogsQuery::default()
    }
}

struct Wanted {
    query: LogsQuery,
    /// The same, for lines that come.
    filter: LogFilter,
    zone: Zone,
    json: bool,
    /// Columns of the terminal that a line in rewriting may take; `None`: it is not shown.
    partial_columns: Option<usize>,
    /// Whether such a line is shown.
    partial_shown: Cell<bool>,
}

impl Wanted {
    fn print_held(&self, out: &mut Stream<'_>, line: &LogLine) {
        if self.filter.wants(line) {
            self.print(out, line);
        }
    }

    fn print(&self, out: &mut Stream<'_>, line: &LogLine) {
        if self.json {
            return out.raw(&json::record_line(line));
        }
        out.folded(self.shown(line));
    }

    /// A line that its skill rewrites, in the place of what was shown of it before. The next line clears it.
    fn print_partial(&self, out: &mut Stream<'_>, line: &LogLine) {
        if let (Some(columns), true) = (self.partial_columns, self.filter.wants(line)) {
            // One column is left free: a full line would move the cursor to the next one.
            let shown = self.shown(line).on_one_column_each();
            let text = shown.cut(columns.saturating_sub(1)).paint(out.color);
            out.raw(&format!("{CLEAR}{text}"));
            self.partial_shown.set(true);
        }
    }

    fn clear_partial(&self, out: &mut Stream<'_>) {
        if self.partial_shown.take() {
            out.raw(CLEAR);
        }
    }

    fn shown(&self, line: &LogLine) -> Line {
        let (name, style) = match line.stream {
            LogStream::Stdout => ("out  ", PLAIN),
            LogStream::Stderr => ("err  ", BAD),
            LogStream::Check => ("check", CARE),
            LogStream::Tool => ("tool ", CARE),
            LogStream::Event => ("event", DIM),
        };
        let text_style = if line.stream == LogStream::Event {
            DIM
        } else {
            PLAIN
        };
        Line::of(DIM, times::clock_time(line.at, self.zone))
            .text(" ")
            .styled(style, name)
            .styled(DIM, if line.continued { " ┆ " } else { " │ " })
            .output(text_style, &line.text)
    }
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let run = run_named(control.as_ref(), &args.run)?;
    let zone = zone_of(control.as_ref())?;
    let since = args
        .since
        .as_ref()
        .map(|text| times::parse_instant("--since", text, session.clock.now(), zone))
        .transpose()?;
    let query = query_of(args, since);
    let wanted = Wanted {
        filter: LogFilter::of(&query)?,
        query,
        zone,
        json: session.json(),
        partial_columns: (session.io.out.is_terminal && !session.json())
            .then_some(session.io.width),
        partial_shown: Cell::new(false),
    };
    let next = present(session, control.as_ref(), &run, &wanted)?;
    note_damage(session, control.as_ref(), &run);
    if !args.follow || session.io.out.is_closed() {
        return Ok(Exit::Ok);
    }
    session.io.out.flush();
    following(session, &control, &run, &wanted, next)
}

/// Says where what was shown is not what was written. Who may only ask the engine cannot tell.
fn note_damage(session: &mut Session<'_>, control: &dyn Control, run: &str) {
    let Ok(site) = session.site() else { return };
    session.io.out.flush();
    if let Ok((detail, checked)) = verify::of_run(&site, control, run)
        && rustix::fs::access(&detail.log_path, rustix::fs::Access::READ_OK) != Err(Errno::ACCESS)
        && let Some(damage) = checked.damage
    {
        let text = format!("this log is damaged or was modified: {damage}");
        diagnostic::warning(&mut session.io.err, &text);
    }
}

/// Prints the lines that are there; the number of the next one.
fn present(
    session: &mut Session<'_>,
    control: &dyn Control,
    run: &str,
    wanted: &Wanted,
) -> Result<u64, Diagnostic> {
    let out = &mut session.io.out;
    let mut query = wanted.query.clone();
    loop {
        let page = control.logs_page(run, &query).map_err(suggest::run_meant)?;
        for line in &page.lines {
            wanted.print(out, line);
        }
        // A page that does not lead further would be asked for without end.
        match page.next.filter(|next| *next > query.from) {
            Some(next) if !out.is_closed() => (query.from, query.tail) = (next, None),
            _ => return Ok(page.total),
        }
    }
}

/// Prints lines as they come. Ctrl-C ends the process as usual: nothing of the run hangs on it.
fn following(
    session: &mut Session<'_>,
    control: &Arc<dyn Control>,
    run: &str,
    wanted: &Wanted,
    mut next: u64,
) -> Result<Exit, Diagnostic> {
    let detail = control.run(run)?;
    if detail.summary.outcome.is_none() && control.status()?.pid == std::process::id() {
        return Err(Diagnostic::new(
            Kind::Unreachable,
            "no_engine",
            "the run waits for a daemon, and none runs",
        )
        .hint("`workerctl daemon` starts one"));
    }
    let out = &mut session.io.out;
    control.watch(detail.summary.run, &mut |event| {
        // While nothing happens nothing is written, which would tell that the reader has left.
        let abandoned = event == WatchEvent::Lagged { lost: 0 } && out.is_abandoned();
        if let WatchEvent::Partial(line) = &event {
            wanted.print_partial(out, line);
            out.flush();
        }
        if let WatchEvent::Line(line) = event
            && line.line >= next
        {
            wanted.clear_partial(out);
            // What a watcher was not told stands in the thread; until it does, later lines wait there too.
            if line.line > next {
                next = between(out, control.as_ref(), run, wanted, next..line.line);
            }
            if line.line == next {
                next += 1;
                wanted.print_held(out, &line);
            }
            out.flush();
        }
        if abandoned || out.is_closed() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    wanted.clear_partial(out);
    between(out, control.as_ref(), run, wanted, next..u64::MAX);
    Ok(Exit::Ok)
}

/// Prints lines that are in the thread and were not delivered; the number of the next one.
fn between(
    out: &mut Stream<'_>,
    control: &dyn Control,
    run: &str,
    wanted: &Wanted,
    missing: Range<u64>,
) -> u64 {
    let mut next = missing.start;
    while next < missing.end && !out.is_closed() {
        let query = LogsQuery {
            from: next,
            tail: None,
            ..wanted.query.clone()
        };
        // What cannot be read now is left out; `logs` without `--follow` tells why.
        let Ok(page) = control.logs_page(run, &query) else {
            break;
        };
        let lines = page.lines.iter();
        for line in lines.take_while(|line| line.line < missing.end) {
            wanted.print(out, line);
        }
        let looked_at = page.next.unwrap_or(page.total).min(missing.end);
        if looked_at <= next {
            break;
        }
        next = looked_at;
    }
    next
}
