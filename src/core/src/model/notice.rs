//! What people are told without asking: that runs do not succeed, that they do again, that a schedule did not in time.
//!
//! One record of each schedule, and of each skill that is run without one, is written together with what it tells of.
//! It stays until everything is delivered and nothing fails any more.

use serde::{Deserialize, Serialize};

use super::channel::Channel;
use super::ids::{RunId, SkillRef};
use super::outcome::Outcome;
use super::schedule::cut;
use super::threshold::Threshold;
use super::time::Timestamp;

/// Notices of one schedule or skill that may wait to be delivered; one more takes the place of the oldest.
pub const WAITING_MAX: usize = 8;

/// Bytes of a message that are kept, as JSON.
const MESSAGE_BYTES_MAX: usize = 240;

/// Minutes until the next try after so many that failed; the last one counts for all further.
const RETRY_MINUTES: [u64; 4] = [1, 5, 15, 60];

/// Longest wait that a web server may ask for.
const ASKED_WAIT_MS_MAX: u64 = 3_600_000;

/// How people are told of what; each may be named for all, for a worker and for a schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Notify {
    /// That a run did not succeed, the first of a streak, and that a schedule paused itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<Channel>,
    /// That a run succeeded after such a streak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_recovery: Option<Channel>,
    /// That a schedule has not succeeded in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_missed: Option<Channel>,
    /// That a run waits for a person's approval, and that nobody gave it in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_approval: Option<Channel>,
    /// How many of the last runs must have failed; absent: one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Threshold>,
    /// Whether runs that a person follows in the foreground count as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreground: Option<bool>,
}

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum News {
    /// A run did not succeed, the first of a streak.
    Failed,
    /// A run succeeded after that.
    Recovered,
    /// A schedule has not succeeded in time.
    Missed,
    /// A schedule paused itself after failures.
    Paused,
    /// A run waits for a person's approval.
    Awaiting,
    /// Nobody approved one in time.
    Expired,
    /// The result of a run was not pushed.
    PushFailed,
    /// It was pushed later.
    Pushed,
}

impl News {
    /// The name of the event that is told.
    pub const fn event(self) -> &'static str {
        match self {
            News::Failed => "RunFailed",
            News::Recovered => "RunRecovered",
            News::Missed => "ScheduleMissed",
            News::Paused => "SchedulePaused",
            News::Awaiting => "ApprovalRequested",
            News::Expired => "ApprovalExpired",
            News::PushFailed => "PushFailed",
            News::Pushed => "PushRecovered",
        }
    }

    /// The key that says how people are told.
    pub const fn key(self) -> &'static str {
        match self {
            News::Failed | News::Paused | News::PushFailed => "on_failure",
            News::Recovered | News::Pushed => "on_recovery",
            News::Missed => "on_missed",
            News::Awaiting | News::Expired => "on_approval",
        }
    }

    /// How people are told.
    pub const fn channel(self, of: &Notify) -> Option<&Channel> {
        match self {
            News::Failed | News::Paused | News::PushFailed => of.on_failure.as_ref(),
            News::Recovered | News::Pushed => of.on_recovery.as_ref(),
            News::Missed => of.on_missed.as_ref(),
            News::Awaiting | News::Expired => of.on_approval.as_ref(),
        }
    }
}

/// Something to be told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// What.
    pub news: News,
    /// When it happened.
    pub at: Timestamp,
    /// The run by which it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// How that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Runs of the streak that had not succeeded.
    #[serde(default)]
    pub failures: u32,
    /// Runs from the first to the last of them; 0 if an older version wrote the notice.
    #[serde(default)]
    pub runs: u32,
    /// Since when they had not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// By when a schedule was to have succeeded, or a person has to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_by: Option<Timestamp>,
}

impl Notice {
    /// Of what has happened now.
    pub const fn of(news: News, at: Timestamp) -> Notice {
        Notice {
            news,
            at,
            run: None,
            outcome: None,
            message: None,
            failures: 0,
            runs: 0,
            failing_since: None,
            expected_by: None,
        }
    }
}

impl Notify {
    /// Everything that is named.
    pub fn channels(&self) -> impl Iterator<Item = &Channel> {
        let all = [
            &self.on_failure,
            &self.on_recovery,
            &self.on_missed,
            &self.on_approval,
        ];
        all.into_iter().flatten()
    }
}

/// What is to be told of one schedule, or of one skill that is run without one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notices {
    /// The skill.
    pub skill: SkillRef,
    /// The schedule; absent: of runs without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Since when it does not succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// Runs of the streak that did not succeed.
    #[serde(default)]
    pub failures: u32,
    /// Runs between them that succeeded.
    #[serde(default)]
    pub successes: u32,
    /// The last runs of the streak, as many as its threshold looks at: `F` failed, `S` succeeded.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub recent: String,
    /// Whether too few have failed so far to be notified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub below_threshold: bool,
    /// Whether it was notified that the schedule did not succeed in time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missed: bool,
    /// What is to be told, in its order.
    #[serde(default)]
    pub waiting: Vec<Notice>,
    /// How many more there were, which had to go.
    #[serde(default, alias = "left_out")]
    pub omitted: u32,
    /// How often the first of them was tried in vain.
    #[serde(default)]
    pub tries: u32,
    /// When it is tried next.
    #[serde(default, alias = "next_try", skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
    /// Before when it is not tried because more is to be told: a web server has asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    /// How the last try ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Notices {
    /// Nothing is to be told yet.
    pub const fn new(skill: SkillRef, schedule: Option<String>) -> Notices {
        Notices {
            skill,
            schedule,
            failing_since: None,
            failures: 0,
            successes: 0,
            recent: String::new(),
            below_threshold: false,
            missed: false,
            waiting: Vec::new(),
            omitted: 0,
            tries: 0,
            next_attempt_at: None,
            not_before: None,
            why: None,
        }
    }

    /// What it is of, as a key.
    pub fn subject(&self) -> String {
        subject(&self.skill, self.schedule.as_deref())
    }

    /// Whether nothing fails and nothing waits: then there is nothing to remember.
    pub fn is_over(&self) -> bool {
        self.failing_since.is_none() && self.waiting.is_empty()
    }

    /// A run has ended; whether anything is different now.
    ///
    /// A streak begins with a failure and ends with so many successes in a row that no failure before them can count
    /// towards the threshold again. It is notified once, when the threshold is reached, and so is its end.
    pub fn ended(
        &mut self,
        run: RunId,
        outcome: &Outcome,
        at: Timestamp,
        threshold: Threshold,
    ) -> bool {
        let notice = Notice {
            run: Some(run),
            outcome: Some(outcome.name().to_owned()),
            ..Notice::of(News::Recovered, at)
        };
        match outcome {
            Outcome::Succeeded if self.failing_since.is_none() => return false,
            Outcome::Succeeded => self.succeeded(notice, threshold),
            Outcome::Failed { .. } | Outcome::TimedOut { .. } | Outcome::Unknown { .. } => {
                self.failed(notice, outcome, threshold);
            }
            Outcome::Cancelled | Outcome::Denied { .. } => return false,
        }
        true
    }

    fn succeeded(&mut self, notice: Notice, threshold: Threshold) {
        self.remember('S', threshold);
        if self.failures > 0 && self.last_successes() < threshold.successes() {
            return;
        }
        let is_told = !self.below_threshold || self.missed;
        let notice = Notice {
            failures: self.failures,
            runs: self.runs(),
            failing_since: self.failing_since,
            ..notice
        };
        (self.failures, self.successes, self.failing_since) = (0, 0, None);
        (self.below_threshold, self.missed) = (false, false);
        self.recent.clear();
        if is_told {
            self.add(notice);
        }
    }

    fn failed(&mut self, notice: Notice, outcome: &Outcome, threshold: Threshold) {
        self.below_threshold |= self.failures == 0;
        let successes = u32::try_from(self.last_successes()).unwrap_or(u32::MAX);
        self.successes = self.successes.saturating_add(successes);
        self.failures = self.failures.saturating_add(1);
        self.failing_since = self.failing_since.or(Some(notice.at));
        self.remember('F', threshold);
        let failed = self.recent.chars().map(|run| run == 'F');
        if !self.below_threshold || !threshold.is_reached(failed) {
            return;
        }
        self.below_threshold = false;
        self.add(Notice {
            news: News::Failed,
            message: outcome.detail().map(|why| short(&why)),
            failures: self.failures,
            runs: self.runs(),
            failing_since: self.failing_since,
            ..notice
        });
    }

    fn remember(&mut self, run: char, threshold: Threshold) {
        self.recent.push(run);
        let surplus = self.recent.len().saturating_sub(threshold.runs());
        self.recent.drain(..surplus);
    }

    fn last_successes(&self) -> usize {
        let successes = self.recent.chars().rev();
        successes.take_while(|run| *run == 'S').count()
    }

    /// Runs from the first failure of the streak to the last one.
    pub const fn runs(&self) -> u32 {
        self.failures.saturating_add(self.successes)
    }

    /// Something more is to be told.
    pub fn add(&mut self, notice: Notice) {
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.remove(0);
            self.omitted = self.omitted.saturating_add(1);
            self.tries = 0;
        }
        self.next_attempt_at = Some(
            self.not_before
                .map_or(notice.at, |wait| wait.max(notice.at)),
        );
        self.waiting.push(notice);
    }

    /// The first that waits was delivered, or nobody wants it.
    pub fn delivered(&mut self, now: Timestamp) {
        if !self.waiting.is_empty() {
            self.waiting.remove(0);
        }
        (self.tries, self.omitted, self.why) = (0, 0, None);
        self.not_before = None;
        self.next_attempt_at = (!self.waiting.is_empty()).then_some(now);
    }

    /// A try to deliver the first that waits has failed. `wait_ms`: the web server takes none for so long, of which an
    /// hour counts.
    pub fn undelivered(&mut self, why: &str, wait_ms: Option<u64>, now: Timestamp) {
        let minutes = RETRY_MINUTES
            .get(self.tries as usize)
            .or(RETRY_MINUTES.last());
        self.tries = self.tries.saturating_add(1);
        let own_ms = minutes.map_or(0, |minutes| minutes * 60_000);
        let asked_ms = wait_ms.map(|wait| wait.min(ASKED_WAIT_MS_MAX));
        self.not_before = asked_ms.map(|wait| now.plus_millis(wait));
        self.next_attempt_at = Some(now.plus_millis(own_ms.max(asked_ms.unwrap_or(0))));
        self.why = Some(short(why));
    }
}

/// The key of a schedule's notices, or of those of a skill that is run without one.
pub fn subject(skill: &SkillRef, schedule: Option<&str>) -> String {
    match schedule {
        Some(id) => format!("schedule {id}"),
        None => format!("skill {skill}"),
    }
}

fn short(text: &str) -> String {
    cut(text, MESSAGE_BYTES_MAX).to_owned()
}

#[cfg(test)]
mod tests;
