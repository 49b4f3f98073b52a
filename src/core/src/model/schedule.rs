//! Schedules: what makes a skill run without anybody asking, and the record of every slot.

mod alarm;
mod reason;
mod spread;
mod told;
mod trigger;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

pub use alarm::{FAILURES_IN_A_ROW, Missed, Restored};
pub use reason::{REASON_BYTES_MAX, cut, json_bytes};
pub use spread::spread;
pub use told::{DstKind, DstWarning, Sentence};
pub use trigger::{AfterWhen, Dst, Fold, Gap, Trigger};

use super::ids::{RunId, SkillRef};
use super::notice::Notify;
use super::problem::Place;
use super::time::Timestamp;

/// A schedule of one skill, as the catalog hands it out: every default filled in. There may be very many, so that
/// what several say in the same words is there once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Unique in the workspace and the same after a change: `worker/skill`, or `worker/skill#name`.
    pub id: Arc<str>,
    /// What it runs.
    pub skill: Arc<SkillRef>,
    /// When.
    pub trigger: Arc<Trigger>,
    /// IANA zone of its slots.
    pub timezone: Arc<str>,
    /// Inputs of its runs, as JSON.
    #[serde(default)]
    pub inputs: Arc<serde_json::Map<String, serde_json::Value>>,
    /// What becomes of its slots; shared with others that say the same.
    #[serde(default)]
    pub policy: Arc<Policy>,
    /// Whether the definition switches it off.
    #[serde(default)]
    pub disabled: bool,
    /// Where it stands.
    pub place: Place,
}

/// What becomes of slots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Policy {
    /// While an earlier run of the schedule has not ended.
    pub overlap: Overlap,
    /// What happens to a slot at which no daemon ran.
    pub catch_up: CatchUp,
    /// Most milliseconds by which a run starts later than its slot; the same for a slot always.
    pub jitter_ms: u64,
    /// Hours of the schedule's zone in which nothing is due, 0 to 23.
    pub blocked_hours: Vec<u8>,
    /// Dates of the schedule's zone on which nothing is due, `YYYY-MM-DD`.
    pub blocked_dates: Vec<String>,
    /// First instant at which it may be due.
    pub start: Option<Timestamp>,
    /// Last instant at which it may be due.
    pub end: Option<Timestamp>,
    /// How often it runs in all.
    pub max_actions: Option<u64>,
    /// After how many failures in a row it pauses.
    pub pause_on_failure: Option<u32>,
    /// Milliseconds after a slot within which it is to succeed; absent: until an hour after the next one.
    pub expected_within_ms: Option<u64>,
    /// Commands that are told how it goes.
    pub notify: Notify,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            overlap: Overlap::Skip,
            catch_up: CatchUp::default(),
            jitter_ms: 0,
            blocked_hours: Vec::new(),
            blocked_dates: Vec::new(),
            start: None,
            end: None,
            max_actions: None,
            pause_on_failure: None,
            expected_within_ms: None,
            notify: Notify::default(),
        }
    }
}

/// What happens at a slot while an earlier run of the schedule has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// It is left out.
    #[default]
    Skip,
    /// One waits for the end of the other; more are left out.
    BufferOne,
    /// All wait, in order.
    BufferAll,
    /// The other is cancelled, and it starts once that is dead and put back. Earlier versions had another name for
    /// it without grace.
    #[serde(alias = "terminate_other")]
    CancelOther,
    /// It starts beside the other.
    AllowAll,
}

impl Overlap {
    /// All of them.
    pub const ALL: [Overlap; 5] = [
        Overlap::Skip,
        Overlap::BufferOne,
        Overlap::BufferAll,
        Overlap::CancelOther,
        Overlap::AllowAll,
    ];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Overlap::Skip => "skip",
            Overlap::BufferOne => "buffer_one",
            Overlap::BufferAll => "buffer_all",
            Overlap::CancelOther => "cancel_other",
            Overlap::AllowAll => "allow_all",
        }
    }
}

/// What becomes of slots at which no engine was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CatchUp {
    /// How many of them run.
    pub mode: CatchUpMode,
    /// How long after its slot a run may still start, in milliseconds.
    pub window_ms: u64,
}

impl Default for CatchUp {
    fn default() -> CatchUp {
        CatchUp {
            mode: CatchUpMode::Last,
            window_ms: 24 * 3_600_000,
        }
    }
}

/// How many missed slots run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatchUpMode {
    /// The last of them.
    #[default]
    Last,
    /// All, one after the other.
    All,
    /// None.
    None,
}

/// What became of a slot.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SlotStatus {
    /// It led to a run in time.
    Ran,
    /// It led to a run later, because no daemon ran.
    CaughtUp,
    /// A person had it run afterwards.
    Backfilled,
    /// An earlier run had not ended.
    SkippedOverlap,
    /// It did not run in time, or a later slot took its place; the row says which. Rows of earlier versions
    /// have a name for each.
    #[serde(alias = "missed_window", alias = "coalesced")]
    Missed,
    /// The schedule was paused.
    Paused,
    /// It fell into hours or dates in which nothing is due.
    BlockedHours,
    /// The definition could not be run as it was.
    BlockedConfig,
}

impl SlotStatus {
    /// All of them.
    pub const ALL: [SlotStatus; 8] = [
        SlotStatus::Ran,
        SlotStatus::CaughtUp,
        SlotStatus::Backfilled,
        SlotStatus::SkippedOverlap,
        SlotStatus::Missed,
        SlotStatus::Paused,
        SlotStatus::BlockedHours,
        SlotStatus::BlockedConfig,
    ];

    /// The status's name in every interface.
    pub const fn name(self) -> &'static str {
        match self {
            SlotStatus::Ran => "ran",
            SlotStatus::CaughtUp => "caught_up",
            SlotStatus::Backfilled => "backfilled",
            SlotStatus::SkippedOverlap => "skipped_overlap",
            SlotStatus::Missed => "missed",
            SlotStatus::Paused => "paused",
            SlotStatus::BlockedHours => "blocked_hours",
            SlotStatus::BlockedConfig => "blocked_config",
        }
    }

    /// Whether it led to a run.
    pub const fn is_run(self) -> bool {
        matches!(
            self,
            SlotStatus::Ran | SlotStatus::CaughtUp | SlotStatus::Backfilled
        )
    }
}

/// One row of the ledger: a slot that led to a run, or consecutive ones of one other status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRow {
    /// The first slot that it covers.
    pub from: Timestamp,
    /// The last one.
    pub to: Timestamp,
    /// How many there are from the first to the last; absent: more than were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// What became of them. Versions before 0.2 stored it as `fate`.
    #[serde(alias = "fate")]
    pub status: SlotStatus,
    /// The run that it led to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// How that ended, by the name of its outcome; absent until then, and in rows of versions that wrote none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// When that was decided.
    pub at: Timestamp,
    /// Why, where the status alone does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl SlotRow {
    /// The row of a single slot that leads to no run.
    pub fn one(slot: Timestamp, status: SlotStatus, at: Timestamp) -> SlotRow {
        SlotRow {
            from: slot,
            to: slot,
            count: Some(1),
            status,
            run: None,
            outcome: None,
            at,
            reason: None,
        }
    }

    /// The same with a reason, cut where it is too long to be kept.
    #[must_use]
    pub fn because(mut self, reason: impl AsRef<str>) -> SlotRow {
        self.reason = Some(cut(reason.as_ref(), REASON_BYTES_MAX).to_owned());
        self
    }
}

/// Why nothing is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// In words.
    pub reason: String,
    /// Who paused it.
    pub by: String,
    /// Since when.
    pub at: Timestamp,
}

/// Most occurrences that may wait for their row; one more takes the place of the oldest.
pub const PENDING_MAX: usize = 16;

/// That a trigger which does not follow the clock has happened; its instant is its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occurrence {
    /// When; no two of a schedule are at the same instant.
    pub at: Timestamp,
    /// The run after which it comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RunId>,
}

/// What is remembered of a schedule; written in the same commit as the rows that it tells of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleState {
    /// What its slots follow from; another one begins anew.
    pub digest: String,
    /// Since when it counts: the origin of `every`.
    pub anchor: Timestamp,
    /// Every slot up to here has its row.
    pub cursor: Timestamp,
    /// Slots after the cursor that have run already, in their order: the clock was stepped back. They
    /// are not stored with it, for their rows tell of them.
    #[serde(skip)]
    pub ran_ahead: Vec<Timestamp>,
    /// Whether there are such.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_run_ahead: bool,
    /// Why nothing is due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Box<Pause>>,
    /// The newest row while it may grow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<Box<SlotRow>>,
    /// How many runs it has led to.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub actions: u64,
    /// Failures since its last success.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// The last run that it led to, and its slot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<(Timestamp, RunId)>,
    /// When a run of it last succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub succeeded_at: Option<Timestamp>,
    /// What happened to a trigger that does not follow the clock, and has no row yet; in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Occurrence>,
    /// What was seen last of what it waits for: the machine's start, the branch's commit, the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// Rows up to here are no longer kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trimmed_until: Option<Timestamp>,
    /// When its definition went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Timestamp>,
    /// Whether it paused itself, after failures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused_itself: bool,
    /// When a person let it go on: what was due before that is expected no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Timestamp>,
    /// That it has not succeeded in time; a success ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<Box<Missed>>,
    /// That it was damaged and made anew; a person's pause or resumption acknowledges it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<Box<Restored>>,
    /// How many rows the ledger holds of it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rows: u64,
    /// How many slots had which status, those whose rows have gone included.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "summed"
    )]
    pub totals: BTreeMap<SlotStatus, u64>,
}

/// Two names of earlier versions mean one status.
fn summed<'de, D: Deserializer<'de>>(reader: D) -> Result<BTreeMap<SlotStatus, u64>, D::Error> {
    struct Totals;
    impl<'de> Visitor<'de> for Totals {
        type Value = BTreeMap<SlotStatus, u64>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a map of statuses")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut totals = BTreeMap::new();
            while let Some((status, count)) = map.next_entry::<SlotStatus, u64>()? {
                let total: &mut u64 = totals.entry(status).or_default();
                *total = total.saturating_add(count);
            }
            Ok(totals)
        }
    }
    reader.deserialize_map(Totals)
}

/// What says nothing is not stored: there may be very many states.
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

impl ScheduleState {
    /// Of a schedule that is seen for the first time.
    pub fn new(digest: String, now: Timestamp) -> ScheduleState {
        ScheduleState {
            digest,
            anchor: now,
            cursor: now,
            ran_ahead: Vec::new(),
            has_run_ahead: false,
            pause: None,
            open: None,
            actions: 0,
            failures: 0,
            last: None,
            succeeded_at: None,
            pending: Vec::new(),
            seen: None,
            trimmed_until: None,
            closed: None,
            paused_itself: false,
            resumed_at: None,
            missed: None,
            restored: None,
            rows: 0,
            totals: BTreeMap::new(),
        }
    }
}
