//! The run of a notification: what it printed last, the branch that it changes, and its page.

use std::sync::Arc;

use super::super::Performer;
use crate::machine::Event;
use crate::model::{News, Notice, RunId};
use crate::protocol::LogsQuery;
use crate::reading;
use crate::thread::sgr::without_sgr;
use crate::view::RunSnapshot;

/// Lines of output that are quoted.
const LINES_MAX: usize = 5;

/// Lines of the log that are read for them, because blank ones are left out.
const LINES_READ: u32 = 50;

/// Bytes of all quoted lines.
const BYTES_MAX: usize = 1024;

/// What a notification says about its run beyond the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RunContext {
    /// The last lines of standard output of a command that failed and wrote nothing to standard error; masked, without
    /// control characters.
    pub output: Vec<String>,
    /// The short name of the branch that a mutating run changes.
    pub branch: Option<String>,
    /// The remote and the branch that it pushes to: `origin/main`.
    pub push_branch: Option<String>,
    /// Its commit on that branch, in hex.
    pub commit: Option<String>,
    /// Its commit that is on no branch, in hex.
    pub kept_commit: Option<String>,
    /// The run's address on the web page, if the configuration says where the daemon serves it.
    pub url: Option<String>,
}

impl Performer {
    /// Reads the context of a notification's run; what cannot be read is logged and left out.
    pub(super) fn run_context(&self, notice: &Notice) -> RunContext {
        let Some(run) = notice.run else {
            return RunContext::default();
        };
        let listen = &self.parts.definitions.current().config.web.listen;
        let url = listen
            .as_ref()
            .map(|listen| format!("http://{listen}/runs/{run}"));
        let Some(snapshot) = self.snapshot(run) else {
            return RunContext {
                url,
                ..RunContext::default()
            };
        };
        let is_failure = matches!(notice.news, News::Failed | News::Paused);
        let output = is_failure.then(|| self.last_output(&snapshot));
        let (spec, summary) = (&snapshot.spec, &snapshot.summary);
        let tree = spec.tree.as_ref().filter(|_| spec.plan.mutating);
        let push = tree.and_then(|tree| Some(format!("{}/{}", tree.push.as_ref()?, tree.branch())));
        RunContext {
            output: output.unwrap_or_default(),
            branch: tree.map(|tree| tree.branch().to_owned()),
            push_branch: push,
            commit: summary.commit.clone(),
            kept_commit: summary.kept_commit.clone(),
            url,
        }
    }

    fn snapshot(&self, run: RunId) -> Option<Arc<RunSnapshot>> {
        if let Some(snapshot) = self.parts.view.run(run) {
            return Some(snapshot);
        }
        let stored = reading::stored(self.parts.store.as_ref(), run, &self.parts.workspace);
        let stored = stored.inspect_err(|error| {
            let why = &error.message;
            tracing::warn!(run = run.short(), why, "a notification lacks its run");
        });
        stored.ok().flatten().map(Arc::new)
    }

    /// The last lines of standard output, if the last command failed and wrote nothing to standard error, whose last
    /// line is in the reason.
    fn last_output(&self, snapshot: &RunSnapshot) -> Vec<String> {
        let mut events = snapshot.entries.iter().rev().map(|entry| &entry.event);
        let finished = events.find_map(|event| match event {
            Event::ExecutionFinished { attempt, execution } => Some((*attempt, execution)),
            _ => None,
        });
        let silent = finished.filter(|(_, execution)| {
            !execution.ended.is_success() && execution.stderr_tail.trim().is_empty()
        });
        let Some((attempt, _)) = silent else {
            return Vec::new();
        };
        // The log may not have been written up to the end of the command.
        self.logs.flush(snapshot.spec.run);
        let query = LogsQuery {
            tail: Some(LINES_READ),
            stream: Some("stdout".to_owned()),
            attempt: Some(attempt),
            ..LogsQuery::default()
        };
        match reading::page(&snapshot.spec, &query) {
            Ok(page) => last_lines(page.lines.iter().map(|line| line.text.as_str())),
            Err(error) => {
                let (run, why) = (snapshot.spec.run.short(), error.message);
                tracing::warn!(run, why, "a notification lacks the run's output");
                Vec::new()
            }
        }
    }
}

/// Returns the last lines that are not blank, of which the oldest may be cut at its start.
fn last_lines<'a>(lines: impl DoubleEndedIterator<Item = &'a str>) -> Vec<String> {
    let mut room = BYTES_MAX;
    let mut last = Vec::new();
    for line in lines.rev() {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let line: String = without_sgr(line).chars().map(plain).collect();
        let line = line.trim_end();
        if line.is_empty() {
            continue;
        }
        let from = line.ceil_char_boundary(line.len().saturating_sub(room));
        last.push(line[from..].to_owned());
        room = room.saturating_sub(line.len());
        if last.len() == LINES_MAX || room == 0 {
            break;
        }
    }
    last.reverse();
    last
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn the_last_lines_are_few_short_and_without_control_characters() {
        let text = "1\n2\n3\n4\n\u{1b}[31m5\u{1b}[0m\t\u{7}x\n \n6\r\n\n";
        assert_eq!(last_lines(text.lines()), ["2", "3", "4", "5  x", "6"]);
        let long = format!("{}\n{}\nend", "a".repeat(500), "ü".repeat(600));
        let last = last_lines(long.lines());
        assert_eq!(last.len(), 2);
        assert_eq!(last.concat().len(), 1023);
        assert!(last_lines(" \n\n".lines()).is_empty());
    }
}
