//! Schedules and their slots, as every interface shows them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SchedulePlan;
use crate::model::outcome::Phase;
use crate::model::schedule::{Overlap, Restored, ScheduleState, SlotRow, SlotStatus};
use crate::model::{Notices, RunId, Timestamp};

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ScheduleView {
    /// Its id.
    #[serde(rename = "schedule")]
    pub id: String,
    /// The skill that it runs.
    pub skill: String,
    /// When it is due, in words.
    pub when: String,
    /// IANA zone of its slots.
    pub timezone: String,
    /// Where it stands.
    pub defined_at: String,
    /// Whether the files or the branch that it waits for have been looked at, so that the next change counts.
    pub observed: bool,
    /// The next slot; absent when there is none.
    pub next: Option<Timestamp>,
    /// What has made it due and is not decided yet, in its order: events, or the slot that is next in turn.
    #[serde(default)]
    pub waiting: Vec<WaitingEvent>,
    /// Why nothing is due, and since when.
    pub paused: Option<PauseView>,
    /// What happens while an earlier run has not ended.
    pub overlap: Overlap,
    /// Whether a daemon has taken note of it.
    pub known: bool,
    /// The last run that it led to.
    pub last: Option<LastFire>,
    /// When a run of it last succeeded.
    pub succeeded_at: Option<Timestamp>,
    /// Failures since its last success.
    #[serde(rename = "failure_count")]
    pub failures: u32,
    /// Its newest slot, if that could not become a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<BlockedSlot>,
    /// By when it is to have succeeded; absent: nothing is expected of it.
    pub expected_by: Option<Timestamp>,
    /// Whether it has not succeeded by then.
    #[serde(default)]
    pub overdue: bool,
    /// The error for which it is kept as it was before; absent: it is as its file says it.
    pub fallback_reason: Option<String>,
    /// Why no schedule is fired at all; absent: schedules are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inactive_reason: Option<String>,
    /// That its state was damaged and made anew of its rows; a pause or a resumption acknowledges it.
    pub restored: Option<Restored>,
    /// How many runs it has led to.
    pub actions: u64,
    /// How many slots had which status.
    pub totals: BTreeMap<SlotStatus, u64>,
    /// What its future follows from.
    pub plan: SchedulePlan,
}

/// A slot that could not become a run, for instance because its definition has an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BlockedSlot {
    /// The slot.
    pub at: Timestamp,
    /// Why.
    pub reason: Option<String>,
}

impl BlockedSlot {
    /// Returns the newest slot of a schedule if it was blocked.
    pub fn newest(state: &ScheduleState) -> Option<BlockedSlot> {
        // A slot that led to a run, or had another status, has taken its place as the open row.
        let row = state.open.as_ref();
        let row = row.filter(|row| row.status == SlotStatus::BlockedConfig)?;
        Some(BlockedSlot {
            at: row.to,
            reason: row.reason.clone(),
        })
    }
}

/// The last run that a schedule led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LastFire {
    /// The slot.
    pub slot: Timestamp,
    /// The run.
    pub run: RunId,
    /// How it ended; absent while it has not, or is not kept.
    pub outcome: Option<String>,
    /// Its phase, until it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Whether its wake gate found nothing to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing_to_do: bool,
}

/// An event that has made a schedule due; its run waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WaitingEvent {
    /// When it happened: the slot.
    pub due: Timestamp,
    /// When its run starts: later by its jitter, and not before earlier runs of the schedule let it.
    pub starts: Timestamp,
    /// The run that it follows.
    pub after: Option<RunId>,
}

/// The next slot of all schedules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NextDue {
    /// The schedule.
    pub schedule: String,
    /// When it is due.
    pub at: Timestamp,
    /// IANA zone of its slots.
    pub timezone: String,
}

/// A schedule that has not succeeded in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OverdueView {
    /// The schedule.
    pub schedule: String,
    /// By when it was to have succeeded.
    pub expected_by: Timestamp,
    /// IANA zone of its slots.
    pub timezone: String,
}

/// A schedule whose last run that counts did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FailingView {
    /// The schedule.
    pub schedule: String,
    /// How many runs in a row have not succeeded.
    #[serde(rename = "failure_count")]
    pub failures: u32,
    /// The last run that it led to; absent where it is not known.
    pub run: Option<RunId>,
    /// Whether it is paused, by itself or by a person.
    #[serde(default)]
    pub paused: bool,
    /// Its newest slot, if that could not become a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<BlockedSlot>,
}

impl FailingView {
    /// What is told of a schedule; nothing while all is well.
    pub fn of(schedule: &str, state: &ScheduleState) -> Option<FailingView> {
        let blocked = BlockedSlot::newest(state);
        (state.failures > 0 || blocked.is_some()).then(|| FailingView {
            schedule: schedule.to_owned(),
            blocked,
            failures: state.failures,
            run: state.last.map(|(_, run)| run),
            paused: state.pause.is_some(),
        })
    }
}

/// A notice that could not be delivered yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct UndeliveredView {
    /// The schedule; absent: of runs without one.
    pub schedule: Option<String>,
    /// The skill.
    pub skill: String,
    /// `RunFailed`, `RunRecovered`, `ScheduleMissed` or `SchedulePaused`.
    pub event: String,
    /// When that happened.
    pub at: Timestamp,
    /// The run by which it happened.
    pub run: Option<RunId>,
    /// How often it was tried in vain.
    #[serde(rename = "attempt_count")]
    pub tries: u32,
    /// When it is tried again, by a daemon.
    pub next_attempt_at: Option<Timestamp>,
    /// How the last try ended.
    pub message: Option<String>,
}

impl UndeliveredView {
    /// What is told of notices whose first has been tried in vain.
    pub fn of(notices: &Notices) -> Option<UndeliveredView> {
        let first = notices.waiting.first().filter(|_| notices.tries > 0)?;
        Some(UndeliveredView {
            schedule: notices.schedule.clone(),
            skill: notices.skill.to_string(),
            event: first.news.event().to_owned(),
            at: first.at,
            run: first.run,
            tries: notices.tries,
            next_attempt_at: notices.next_attempt_at,
            message: notices.why.clone(),
        })
    }
}

impl ScheduleView {
    /// What is told of it where its last run did not succeed.
    pub fn failing(&self) -> Option<FailingView> {
        (self.failures > 0 || self.blocked.is_some()).then(|| FailingView {
            blocked: self.blocked.clone(),
            schedule: self.id.clone(),
            failures: self.failures,
            run: self.last.as_ref().map(|last| last.run),
            paused: self.paused.is_some(),
        })
    }
}

/// Why nothing is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PauseView {
    /// In words.
    pub reason: String,
    /// Who paused it.
    pub by: String,
    /// Since when.
    pub at: Timestamp,
}

/// One row of the ledger of slots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SlotView {
    /// The schedule.
    pub schedule: String,
    /// The first slot that it covers.
    pub from: Timestamp,
    /// The last one.
    pub to: Timestamp,
    /// How many there are; absent: too many to be counted.
    pub count: Option<u64>,
    /// What became of them.
    pub status: SlotStatus,
    /// The run that it led to.
    pub run: Option<RunId>,
    /// When that was decided; of a run: when it was accepted.
    pub at: Timestamp,
    /// When the command of the run first started; absent while it has not, and where the run is not kept any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// How the run ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The phase of the run, until it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Whether the run's wake gate found nothing to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing_to_do: bool,
    /// Why, where the status alone does not say it.
    pub reason: Option<String>,
    /// Whether the row is damaged: what became of the slot is not known, and `reason` says what is wrong.
    #[serde(default)]
    pub unreadable: bool,
    /// IANA zone of the schedule's slots, where it is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

impl SlotView {
    /// A row of this schedule.
    pub fn of(schedule: &str, row: &SlotRow) -> SlotView {
        SlotView {
            schedule: schedule.to_owned(),
            from: row.from,
            to: row.to,
            count: row.count,
            status: row.status,
            run: row.run,
            at: row.at,
            started_at: None,
            finished_at: None,
            outcome: None,
            phase: None,
            nothing_to_do: false,
            reason: row.reason.clone(),
            unreadable: false,
            timezone: None,
        }
    }
}

/// Most schedules of one answer.
pub const SCHEDULES_MAX: u32 = 1_000;

/// Which schedules are wanted, by id. Where as many come as were asked for, `after` the last of them asks for more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SchedulesQuery {
    /// Only this one.
    pub schedule: Option<String>,
    /// Only those whose skill is of this worker.
    pub worker: Option<String>,
    /// Only those of this skill: its id or `worker/skill`.
    pub skill: Option<String>,
    /// Only those whose ids come after this one.
    pub after: Option<String>,
    /// At most this many; 0: 1,000, which is the most.
    #[schemars(range(max = 1_000))]
    pub limit: u32,
}

impl SchedulesQuery {
    /// Only the schedule of this id.
    pub fn one(id: &str) -> SchedulesQuery {
        SchedulesQuery {
            schedule: Some(id.to_owned()),
            ..SchedulesQuery::default()
        }
    }

    /// How many schedules an answer holds at most.
    pub fn most(&self) -> usize {
        let most = match self.limit {
            0 => SCHEDULES_MAX,
            some => some.min(SCHEDULES_MAX),
        };
        most as usize
    }
}

/// Which rows are wanted, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SlotsQuery {
    /// The schedule; absent: all.
    pub schedule: Option<String>,
    /// Only rows that reach this instant, in milliseconds since the epoch.
    pub since_ms: Option<i64>,
    /// Only rows that end before this instant.
    pub until_ms: Option<i64>,
    /// Only of these statuses, or whose runs ended with these outcomes: names with commas between.
    pub status: Option<String>,
    /// What goes on with the page before, as its answer named it.
    pub before: Option<String>,
    /// How many at most; 0: the default of 50.
    pub limit: u32,
}

/// Rows that are answered where no number is asked for.
const SLOTS_DEFAULT: usize = 50;

/// Most rows of one answer.
const SLOTS_MAX: usize = 10_000;

impl SlotsQuery {
    /// How many rows an answer holds at most.
    pub fn most(&self) -> usize {
        match self.limit {
            0 => SLOTS_DEFAULT,
            some => (some as usize).min(SLOTS_MAX),
        }
    }
}

/// Rows of one answer, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotsPage {
    /// Those that were asked for; an answer may hold fewer than there are, even none.
    pub slots: Vec<SlotView>,
    /// What `before` goes on with; absent: there are no more.
    pub next: Option<String>,
}

/// A request to pause a schedule.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PauseRequest {
    /// The schedule.
    pub schedule: String,
    /// Why.
    pub reason: String,
    /// Who asks. Read only from the engine's own user and root; of others the name of their user is recorded.
    pub by: Option<String>,
}

/// A request to let a schedule go on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResumeRequest {
    /// The schedule.
    pub schedule: String,
}

/// A policy that a person's run does not respect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyName {
    /// That it is paused.
    Pause,
    /// Hours and dates in which nothing is due.
    Blackout,
    /// Its start.
    Start,
    /// Its end.
    End,
    /// How often it may run.
    MaxActions,
    /// That failures pause it: this run's end is not counted.
    PauseOnFailure,
}

impl PolicyName {
    /// All of them.
    pub const ALL: [PolicyName; 6] = [
        PolicyName::Pause,
        PolicyName::Blackout,
        PolicyName::Start,
        PolicyName::End,
        PolicyName::MaxActions,
        PolicyName::PauseOnFailure,
    ];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyName::Pause => "pause",
            PolicyName::Blackout => "blackout",
            PolicyName::Start => "start",
            PolicyName::End => "end",
            PolicyName::MaxActions => "max_actions",
            PolicyName::PauseOnFailure => "pause_on_failure",
        }
    }
}

/// A request to run a schedule now, or for a past slot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TriggerRequest {
    /// The schedule.
    pub schedule: String,
    /// The past slot that is to run after all; absent: a run for now.
    pub slot: Option<Timestamp>,
    /// Instead of the schedule's own; for a past slot `buffer_all` unless something is said.
    pub overlap: Option<Overlap>,
    /// Policies that are not respected.
    pub despite: Vec<PolicyName>,
    /// Who asks. Read only from the engine's own user and root; of others the name of their user is recorded.
    pub by: Option<String>,
}

/// Which past slots are to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackfillQuery {
    /// The schedule.
    pub schedule: String,
    /// From this instant, in milliseconds since the epoch.
    pub from_ms: i64,
    /// To this instant.
    pub to_ms: i64,
    /// Policies that are not respected, separated by commas.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub despite: String,
}

/// A past slot, and whether it can be run after all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BackfillSlot {
    /// The slot.
    pub slot: Timestamp,
    /// What became of it; absent: nothing, for the schedule was not known yet.
    pub status: Option<SlotStatus>,
    /// The run that it led to.
    pub run: Option<RunId>,
    /// Why it is not run after all.
    pub skip_reason: Option<String>,
}
