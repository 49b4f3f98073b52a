//! What people read of a notice.

use std::path::Path;

use super::super::super::work::Telling;
use super::context::RunContext;
use crate::model::{News, Notice, Timestamp, Zone};

/// A notice in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    /// One line without control characters.
    pub title: String,
    /// The rest, in lines.
    pub body: String,
}

impl Message {
    /// Of what is told now; `zone`: where its schedule has none.
    pub(super) fn of(
        telling: &Telling,
        notice: &Notice,
        context: &RunContext,
        workspace: &Path,
        zone: Zone,
    ) -> Message {
        let schedule = telling.schedule.as_ref();
        let zone = schedule.map_or(zone, |one| one.definition.timezone.parse().unwrap_or(zone));
        let words = Words {
            telling,
            notice,
            context,
            zone,
        };
        let mut lines = words.lines();
        lines.push(format!("Workspace: {}", workspace.display()));
        let (test, title) = (telling.is_test, one_line(&words.title()));
        if test {
            let what = "This is a test notification from `workerctl notify test`.";
            lines.insert(0, what.to_owned());
        }
        Message {
            title: if test {
                format!("Test: {title}")
            } else {
                title
            },
            body: lines.iter().map(|line| one_line(line) + "\n").collect(),
        }
    }

    /// All of it as one text.
    pub(super) fn text(&self) -> String {
        format!("{}\n{}", self.title, self.body.trim_end())
    }
}

/// Ids and reasons hold no control characters that would begin a line, or a header, of their own.
fn one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).collect()
}

fn counted_failures(count: u32, runs: u32) -> String {
    match count {
        _ if runs > count => format!("{count} failures in {runs} runs"),
        0 | 1 => "1 failure".to_owned(),
        many => format!("{many} failures in a row"),
    }
}

struct Words<'a> {
    telling: &'a Telling,
    notice: &'a Notice,
    context: &'a RunContext,
    zone: Zone,
}

impl Words<'_> {
    fn subject(&self) -> String {
        let notices = &self.telling.notices;
        let skill = || notices.skill.to_string();
        notices.schedule.clone().unwrap_or_else(skill)
    }

    fn at(&self, at: Timestamp) -> String {
        at.rfc3339_in(self.zone)
    }

    fn expected_by(&self) -> String {
        let by = self.notice.expected_by;
        by.map_or_else(|| "some time".to_owned(), |by| self.at(by))
    }

    fn title(&self) -> String {
        let subject = self.subject();
        match self.notice.news {
            News::Failed => match self.notice.outcome.as_deref() {
                Some("timed_out") => format!("{subject} reached its time limit"),
                Some("unknown") => format!("{subject} ended, and its outcome is unknown"),
                _ => format!("{subject} failed"),
            },
            News::Recovered => format!("{subject} succeeded again"),
            News::Missed => format!("{subject} has not succeeded in time"),
            News::Paused => format!("{subject} paused itself"),
            News::Awaiting => format!("{subject} waits for approval"),
            News::Expired => format!("{subject} was not approved in time"),
            News::PushFailed => format!("{subject}: a result was not pushed"),
            News::Pushed => format!("{subject}: a result was pushed after all"),
        }
    }

    fn lines(&self) -> Vec<String> {
        let (notices, notice) = (&self.telling.notices, self.notice);
        let mut lines = Vec::new();
        let since = |failures: u32, runs: u32, since: Option<Timestamp>| {
            let begun = self.at(since.unwrap_or(notice.at));
            format!("{} since {begun}", counted_failures(failures, runs))
        };
        let of_notice = || since(notice.failures, notice.runs, notice.failing_since);
        match notice.news {
            // Since it happened there may have been more, where it could not be told at once.
            News::Failed if notices.failing_since.is_some() => {
                let failures = notices.failures.max(notice.failures);
                let begun = notices.failing_since;
                lines.push(format!("{}.", since(failures, notices.runs(), begun)));
            }
            News::Failed => lines.push(format!("{}.", of_notice())),
            News::Recovered if notice.failures > 0 => {
                let at = self.at(notice.at);
                lines.push(format!("At {at}, after {}.", of_notice()));
            }
            News::Recovered | News::PushFailed | News::Pushed => {
                lines.push(format!("At {}.", self.at(notice.at)));
            }
            News::Missed => {
                let succeeded_at = self
                    .telling
                    .schedule
                    .as_ref()
                    .and_then(|one| one.succeeded_at);
                let did = succeeded_at.map_or_else(
                    || "it never did".to_owned(),
                    |at| format!("it last did at {}", self.at(at)),
                );
                lines.push(format!(
                    "It was to succeed by {}; {did}.",
                    self.expected_by()
                ));
            }
            News::Paused => {
                let pause = self
                    .telling
                    .schedule
                    .as_ref()
                    .and_then(|one| one.pause.as_ref());
                let why = pause.map(|pause| format!(": {}", pause.reason));
                lines.push(format!(
                    "At {}{}.",
                    self.at(notice.at),
                    why.unwrap_or_default()
                ));
            }
            News::Awaiting => {
                lines.push(format!("It can be approved until {}.", self.expected_by()));
            }
            News::Expired => {
                lines.push(format!("It was not approved until {}.", self.expected_by()));
            }
        }
        lines.extend(notice.message.iter().map(|why| format!("Why: {why}")));
        lines.extend(self.output_and_branch());
        if notices.omitted > 0 {
            lines.push(format!(
                "{} notices before it were dropped.",
                notices.omitted
            ));
        }
        lines.extend(self.commands());
        lines
    }

    fn output_and_branch(&self) -> Vec<String> {
        let context = self.context;
        let mut lines = Vec::new();
        if !context.output.is_empty() {
            lines.push("Last output:".to_owned());
            lines.extend(context.output.iter().map(|line| format!("  {line}")));
        }
        if let Some(branch) = &context.branch {
            let push = context.push_branch.as_ref();
            let push = push.map(|push| format!(" (push: {push})"));
            lines.push(format!("Branch: {branch}{}", push.unwrap_or_default()));
        }
        lines.extend(context.commit.iter().map(|id| format!("Commit: {id}")));
        let kept = context.kept_commit.iter();
        lines.extend(kept.map(|id| format!("Commit: {id} (on no branch)")));
        lines
    }

    /// What shows more, and what can be done.
    fn commands(&self) -> Vec<String> {
        let notices = &self.telling.notices;
        let mut commands = Vec::new();
        match (self.notice.run, &notices.schedule) {
            (Some(run), _) => commands.push(format!("More: workerctl show {run}")),
            (None, Some(id)) => commands.push(format!("More: workerctl schedule slots '{id}'")),
            (None, None) => {}
        }
        commands.extend(self.context.url.iter().map(|url| format!("Page: {url}")));
        match (self.notice.news, self.notice.run, &notices.schedule) {
            (News::Awaiting, Some(run), _) => {
                commands.push(format!("Answer: workerctl approve {run}"));
            }
            (News::Paused, _, Some(id)) => {
                commands.push(format!("Go on: workerctl schedule resume '{id}'"));
            }
            _ => {}
        }
        commands
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Notices;
    use crate::process::StopHandle;

    fn at(minute: u64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000).plus_millis(minute * 60_000)
    }

    fn message(news: News, happens: impl FnOnce(&mut Notices, &mut Notice)) -> Message {
        message_with(news, &RunContext::default(), happens)
    }

    fn message_with(
        news: News,
        context: &RunContext,
        happens: impl FnOnce(&mut Notices, &mut Notice),
    ) -> Message {
        let mut notices = Notices::new("w/s".parse().unwrap(), None);
        let mut notice = Notice {
            run: Some("01M7Q1GQ0001D8V0000000000A".parse().unwrap()),
            ..Notice::of(news, at(0))
        };
        happens(&mut notices, &mut notice);
        let telling = Telling {
            notices,
            schedule: None,
            stop: StopHandle::new(),
            is_test: false,
        };
        Message::of(
            &telling,
            &notice,
            context,
            Path::new("/srv/notes"),
            Zone::UTC,
        )
    }

    #[test]
    fn a_streak_is_told_with_its_count_its_begin_its_reason_and_what_shows_more() {
        let failed = message(News::Failed, |notices, notice| {
            notices.failing_since = Some(at(0));
            notices.failures = 3;
            notice.failures = 1;
            notice.message = Some("exit code 1\nBcc: x@y".to_owned());
        });
        assert_eq!(failed.title, "w/s failed");
        assert_eq!(
            failed.body,
            "3 failures in a row since 2027-01-15T08:00:00+00:00.\nWhy: exit code 1 Bcc: x@y\n\
             More: workerctl show 01M7Q1GQ0001D8V0000000000A\nWorkspace: /srv/notes\n"
        );
        let recovered = message(News::Recovered, |_, notice| {
            notice.failures = 1;
            notice.at = at(60);
            notice.failing_since = Some(at(0));
        });
        assert_eq!(recovered.title, "w/s succeeded again");
        let first = recovered.body.lines().next().unwrap();
        assert_eq!(
            first,
            "At 2027-01-15T09:00:00+00:00, after 1 failure since 2027-01-15T08:00:00+00:00."
        );
    }

    #[test]
    fn the_context_of_a_run_follows_its_reason() {
        let context = RunContext {
            output: vec!["1 passed".to_owned(), "1 failed".to_owned()],
            branch: Some("main".to_owned()),
            push_branch: Some("origin/main".to_owned()),
            commit: None,
            kept_commit: Some("abc".to_owned()),
            url: Some("http://127.0.0.1:8930/runs/R".to_owned()),
        };
        let failed = message_with(News::Failed, &context, |_, notice| {
            notice.message = Some("exit code 1".to_owned());
        });
        let expected = "\nWhy: exit code 1\nLast output:\n  1 passed\n  1 failed\n\
             Branch: main (push: origin/main)\nCommit: abc (on no branch)\n\
             More: workerctl show 01M7Q1GQ0001D8V0000000000A\nPage: http://127.0.0.1:8930/runs/R\n";
        assert!(failed.body.contains(expected), "{}", failed.body);
    }

    #[test]
    fn an_approval_is_asked_for_with_the_command_that_gives_it() {
        let awaiting = message(News::Awaiting, |_, notice| {
            notice.expected_by = Some(at(60));
        });
        assert!(
            awaiting.body.contains("until 2027-01-15T09:00:00+00:00."),
            "{awaiting:?}"
        );
        assert!(
            awaiting.body.contains("\nAnswer: workerctl approve 01M7"),
            "{awaiting:?}"
        );
    }
}
