//! A run while somebody waits for it: one changing line on a terminal, plain lines elsewhere.

use super::line::{ACTIVE, CARE, DIM, Line, PLAIN};
use crate::cli::io::Stream;
use crate::model::Phase;
use crate::model::duration::show_millis;
use crate::protocol::{LogLine, LogStream, RunSummary};

/// Columns of one line of output that are shown while the run goes on; the thread has all.
const LIVE_COLUMNS_MAX: usize = 2_000;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// What is shown of a run that goes on.
pub(crate) struct Progress {
    width: usize,
    quiet: bool,
    phase: Option<(Phase, u32)>,
    since_ms: u64,
    frame: usize,
    note: Option<&'static str>,
    waiting_for: Option<String>,
    /// The line of output that is being rewritten.
    partial: Option<Line>,
    shown: bool,
}

impl Progress {
    /// Nothing is known of the run yet; `now_ms` is of the monotonic clock.
    pub(crate) fn new(width: usize, quiet: bool, now_ms: u64) -> Progress {
        Progress {
            width,
            quiet,
            phase: None,
            since_ms: now_ms,
            frame: 0,
            note: None,
            waiting_for: None,
            partial: None,
            shown: false,
        }
    }

    /// The run is somewhere else now.
    pub(crate) fn changed(&mut self, err: &mut Stream<'_>, summary: &RunSummary, now_ms: u64) {
        let begins_to_wait = self.waiting_for.is_none() && summary.waiting_for.is_some();
        self.waiting_for.clone_from(&summary.waiting_for);
        let phase = (summary.phase, summary.attempts);
        if self.phase == Some(phase) && !begins_to_wait {
            return;
        }
        self.partial = None;
        self.phase = Some(phase);
        self.since_ms = now_ms;
        if err.is_terminal {
            self.draw(err, now_ms);
        } else if !self.quiet && summary.phase != Phase::Finished {
            let mut line = Line::of(ACTIVE, label(phase));
            if let Some(reason) = &self.waiting_for {
                line = line.styled(DIM, format!(" waits for {reason}"));
            }
            err.line(line);
        }
    }

    /// A line of the run's log.
    pub(crate) fn line(&mut self, err: &mut Stream<'_>, line: &LogLine, now_ms: u64) {
        let prefix = match line.stream {
            LogStream::Stdout => "  │ ",
            LogStream::Stderr => "  ┃ ",
            LogStream::Check => "  ┊ ",
            LogStream::Tool => "  › ",
            LogStream::Event => return,
        };
        if self.quiet {
            return;
        }
        self.partial = None;
        self.clear(err);
        let text = Line::of(DIM, prefix).output(DIM, &line.text);
        err.folded(text.cut(LIVE_COLUMNS_MAX));
        self.draw(err, now_ms);
    }

    /// The line of output that the skill rewrites, as it stands now: it is shown in the line that changes.
    pub(crate) fn partial(&mut self, err: &mut Stream<'_>, line: &LogLine, now_ms: u64) {
        self.partial = Some(Line::of(DIM, "  │ ").output(PLAIN, &line.text));
        self.draw(err, now_ms);
    }

    /// Lines that were not delivered; the thread has them.
    pub(crate) fn lagged(&mut self, err: &mut Stream<'_>, lost: u64) {
        if lost > 0 && !self.quiet {
            self.clear(err);
            err.line(Line::of(
                CARE,
                format!("  {lost} lines are not shown here; the thread has them"),
            ));
        }
    }

    /// Says what a signal has led to.
    pub(crate) fn note(&mut self, err: &mut Stream<'_>, note: &'static str) {
        self.note = Some(note);
        self.clear(err);
        err.line(Line::of(CARE, note));
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, err: &mut Stream<'_>, now_ms: u64) {
        self.frame = (self.frame + 1) % FRAMES.len();
        self.draw(err, now_ms);
    }

    /// Takes the changing line away.
    pub(crate) fn clear(&mut self, err: &mut Stream<'_>) {
        if self.shown {
            err.raw("\r\u{1b}[2K");
            err.flush();
            self.shown = false;
        }
    }

    fn draw(&mut self, err: &mut Stream<'_>, now_ms: u64) {
        let Some(phase) = self.phase.filter(|(phase, _)| *phase != Phase::Finished) else {
            return;
        };
        if !err.is_terminal || self.quiet {
            return;
        }
        let mut line = Line::of(ACTIVE, FRAMES[self.frame % FRAMES.len()])
            .text(" ")
            .text(label(phase))
            .styled(
                DIM,
                format!("  {}", show_millis(now_ms.saturating_sub(self.since_ms))),
            );
        if let Some(reason) = &self.waiting_for {
            line = line.styled(DIM, format!("  waits for {reason}"));
        }
        if let Some(note) = self.note {
            line = line.styled(CARE, format!("  {note}"));
        }
        if let Some(partial) = &self.partial {
            line = line.then(partial.clone().on_one_column_each());
        }
        // One column is left free: a full line would move the cursor to the next one.
        let text = line.cut(self.width.saturating_sub(1)).paint(err.color);
        err.raw(&format!("\r\u{1b}[2K{text}"));
        err.flush();
        self.shown = true;
    }
}

fn label((phase, attempt): (Phase, u32)) -> String {
    let name = match phase {
        Phase::AwaitingApproval => "parked",
        Phase::BackingOff => "waiting before the next attempt",
        Phase::PostHook => "running hooks",
        other => other.name(),
    };
    if attempt > 1 && matches!(phase, Phase::Executing | Phase::Verifying) {
        format!("{name} (attempt {attempt})")
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fake;
    use crate::model::Timestamp;

    fn told(terminal: bool, quiet: bool) -> String {
        let mut text = Vec::new();
        let mut err = Stream::new(&mut text, terminal, false);
        let mut progress = Progress::new(40, quiet, 0);
        let mut summary = fake::summary();
        for (phase, at) in [
            (Phase::Queued, 0),
            (Phase::Executing, 10),
            (Phase::Executing, 20),
        ] {
            summary.phase = phase;
            progress.changed(&mut err, &summary, at);
        }
        let line = LogLine {
            line: 0,
            at: Timestamp::from_millis(0),
            attempt: 1,
            stream: LogStream::Stdout,
            text: "a\u{1b}]0;x\u{7}b".to_owned(),
            continued: false,
            carriage_returns: 0,
        };
        progress.line(&mut err, &line, 1_500);
        progress.tick(&mut err, 2_500);
        summary.phase = Phase::Executing;
        summary.attempts = 2;
        progress.changed(&mut err, &summary, 3_000);
        progress.lagged(&mut err, 3);
        progress.clear(&mut err);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn without_a_terminal_there_are_plain_lines() {
        xtest::assert_text!(told(false, false), @r"
        queued
        executing
          │ a\x1b]0;x\x07b
        executing (attempt 2)
          3 lines are not shown here; the thread has them
        ");
        assert_eq!(told(false, true), "");
    }

    #[test]
    fn on_a_terminal_one_line_changes() {
        xtest::assert_text!(told(true, false).replace('\u{1b}', "␛").replace('\r', "␍"), @r"
        ␍␛[2K⠋ queued  0ms␍␛[2K⠋ executing  0ms␍␛[2K  │ a\x1b]0;x\x07b
        ␍␛[2K⠋ executing  1.4s␍␛[2K⠙ executing  2.4s␍␛[2K⠙ executing (attempt 2)  0ms␍␛[2K  3 lines are not shown here; the thread has them
        ");
    }

    #[test]
    fn a_line_that_is_rewritten_moves_beside_the_phase() {
        let mut text = Vec::new();
        let mut err = Stream::new(&mut text, true, true);
        let mut progress = Progress::new(40, false, 0);
        let mut summary = fake::summary();
        summary.phase = Phase::Executing;
        progress.changed(&mut err, &summary, 0);
        let mut line = fake::log_line(0, LogStream::Stdout, "\u{1b}[32m40%\u{1b}[2J");
        progress.partial(&mut err, &line, 0);
        line.text = "100%".to_owned();
        progress.line(&mut err, &line, 0);
        let shown = String::from_utf8(text).unwrap();
        let forms: Vec<&str> = shown.split("\r\u{1b}[2K").skip(1).collect();
        let beside = "\u{1b}[2m  │ \u{1b}[0m\u{1b}[32m40%\\x1b[2J\u{1b}[0m";
        assert!(
            !forms[0].contains('│') && forms[1].ends_with(beside),
            "{forms:?}"
        );
        assert!(
            forms[2].contains("100%") && forms[2].ends_with('\n'),
            "{forms:?}"
        );
        assert!(!forms[3].contains('│'), "{forms:?}");
    }
}
