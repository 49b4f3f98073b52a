//! `logs RUN`

use std::cell::Cell;
use std::collections::VecDeque;
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
use crate::protocol::{Control, LogLine, LogStream, LogsQuery, WatchEvent};

/// Lines that are asked for at once.
const PAGE_LINES: u32 = 5_000;

/// Begins the line of a terminal anew, empty.
const CLEAR: &str = "\r\u{1b}[2K";

/// Lines that `--tail` keeps at most.
const TAIL_LINES_MAX: u32 = 1_000_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the run, any unique beginning or end of it, or `latest`
    #[arg(default_value = "latest")]
    run: String,
    /// Go on as the run does, until it has ended
    #[arg(short, long)]
    follow: bool,
    /// Only lines since then: `5m`, `2026-11-20T09:00`
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only the last lines
    #[arg(short = 'n', long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(0..=i64::from(TAIL_LINES_MAX)))]
    tail: Option<u32>,
    /// Only of this attempt
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Only of this stream; repeatable
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
    fn is(self, stream: LogStream) -> bool {
        self == match stream {
            LogStream::Stdout => StreamChoice::Stdout,
            LogStream::Stderr => StreamChoice::Stderr,
            LogStream::Check => StreamChoice::Check,
            LogStream::Tool => StreamChoice::Tool,
            LogStream::Event => StreamChoice::Event,
        }
    }
}

struct LogQuery<'a> {
    args: &'a Args,
    since: Option<Timestamp>,
    zone: Zone,
    json: bool,
    /// Columns of the terminal that a line in rewriting may take; `None`: it is not shown.
    partial_columns: Option<usize>,
    /// Whether such a line is shown.
    partial_shown: Cell<bool>,
}

impl LogQuery<'_> {
    fn holds(&self, line: &LogLine) -> bool {
        self.since.is_none_or(|since| line.at >= since)
            && self
                .args
                .attempt
                .is_none_or(|attempt| line.attempt == attempt)
            && (self.args.stream.is_empty()
                || self.args.stream.iter().any(|shown| shown.is(line.stream)))
    }

    fn print_held(&self, out: &mut Stream<'_>, line: &LogLine) {
        if self.holds(line) {
            self.print(out, line);
        }
    }

    fn print(&self, out: &mut Stream<'_>, line: &LogLine) {
        if self.json {
            return out.raw(&json::record_line(line));
        }
        out.line(self.shown(line));
    }

    /// A line that its skill rewrites, in the place of what was shown of it before. The next line clears it.
    fn print_partial(&self, out: &mut Stream<'_>, line: &LogLine) {
        if let (Some(columns), true) = (self.partial_columns, self.holds(line)) {
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
        .map(|text| times::parse_instant(text, session.clock.now(), zone))
        .transpose()?;
    let wanted = LogQuery {
        args,
        since,
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
        let text = format!("this log is not what was written: {damage}");
        diagnostic::warning(&mut session.io.err, &text);
    }
}

/// Prints the lines that are there; the number of the next one.
fn present(
    session: &mut Session<'_>,
    control: &dyn Control,
    run: &str,
    wanted: &LogQuery<'_>,
) -> Result<u64, Diagnostic> {
    let out = &mut session.io.out;
    let mut kept: VecDeque<LogLine> = VecDeque::new();
    let mut from = 0;
    loop {
        let query = LogsQuery {
            from,
            limit: PAGE_LINES,
        };
        let page = control.logs(run, &query).map_err(suggest::run_meant)?;
        let Some(last) = page.last() else { break };
        // A page that does not lead further would be asked for without end.
        let next = last.line.saturating_add(1).max(from.saturating_add(1));
        for line in page.into_iter().filter(|line| wanted.holds(line)) {
            match wanted.args.tail {
                None => wanted.print(out, &line),
                Some(tail) => {
                    kept.push_back(line);
                    if kept.len() > usize::try_from(tail).unwrap_or(usize::MAX) {
                        kept.pop_front();
                    }
                }
            }
        }
        from = next;
        if out.is_closed() {
            break;
        }
    }
    for line in &kept {
        wanted.print(out, line);
    }
    Ok(from)
}

/// Prints lines as they come. Ctrl-C ends the process as usual: nothing of the run hangs on it.
fn following(
    session: &mut Session<'_>,
    control: &Arc<dyn Control>,
    run: &str,
    wanted: &LogQuery<'_>,
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
    wanted: &LogQuery<'_>,
    missing: Range<u64>,
) -> u64 {
    let mut next = missing.start;
    while next < missing.end && !out.is_closed() {
        let query = LogsQuery {
            from: next,
            limit: PAGE_LINES,
        };
        // What cannot be read now is left out; `logs` without `--follow` tells why.
        let Ok(page) = control.logs(run, &query) else {
            break;
        };
        let before = next;
        for line in page.iter().take_while(|line| line.line < missing.end) {
            wanted.print_held(out, line);
            next = next.max(line.line + 1);
        }
        if next == before {
            break;
        }
    }
    next
}
