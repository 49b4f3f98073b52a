//! What a simulation assumes, and what it tells.

use std::collections::BTreeMap;

use crate::model::Timestamp;
use crate::model::schedule::{SlotRow, SlotStatus};

/// The longest time that is simulated, in milliseconds: 366 days.
pub const RANGE_MAX_MS: u64 = 366 * 86_400_000;

/// Most slots of one simulation.
pub const SLOTS_MAX: usize = 100_000;

/// Most earlier runs that are named at a slot that meets them.
pub const MET_MAX: usize = 10;

/// What is assumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// The first instant.
    pub from: Timestamp,
    /// The instant after the last one.
    pub to: Timestamp,
    /// How long a run of a skill lasts, in milliseconds.
    pub durations: BTreeMap<String, u64>,
    /// How long runs of the other skills last, in milliseconds.
    pub otherwise_ms: u64,
    /// Times in which no daemon is there, each from its first instant to the one after its last.
    pub down: Vec<(Timestamp, Timestamp)>,
    /// Runs that are under way at the first instant, oldest first.
    pub active: Vec<ActiveRun>,
}

/// A run that is under way when a simulation begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveRun {
    /// Its skill.
    pub skill: String,
    /// The schedule and the slot that it runs for, if it runs for one.
    pub slot: Option<(String, Timestamp)>,
    /// When it started; `None`: it waits.
    pub started_at: Option<Timestamp>,
}

/// Why nothing is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The end does not lie behind the start.
    #[error("it ends before it begins")]
    Backwards,
    /// More than [`RANGE_MAX_MS`].
    #[error("more than 366 days")]
    TooLong,
    /// More than [`SLOTS_MAX`].
    #[error("more than {SLOTS_MAX} slots, up to {0}")]
    TooMany(Timestamp),
}

/// How a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// By itself, successfully.
    Itself,
    /// The schedule's next slot ended it (`cancel_other`).
    Successor,
}

/// A run that the simulation made, or found under way.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SimulatedRun {
    /// The schedule.
    pub schedule: String,
    /// Its slot.
    pub due: Timestamp,
    /// `ran` or `caught_up`.
    pub status: SlotStatus,
    /// When it started; absent while it waited for an earlier run to the end of the simulation.
    pub started_at: Option<Timestamp>,
    /// When it ended; absent while it was under way at the end of the simulation.
    pub ended_at: Option<Timestamp>,
    /// What ended it.
    pub ended_by: Option<EndedBy>,
    /// Whether it was under way when the simulation began.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub under_way: bool,
}

/// What became of a slot that met an earlier run of its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Met {
    /// It is left out.
    Skipped,
    /// Its run waits for the end of the others.
    Waits,
    /// Its run ends the others.
    Ends,
    /// Its run starts in parallel.
    Concurrent,
}

/// A slot that met an earlier run of its schedule.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct OverlapMet {
    /// The schedule.
    pub schedule: String,
    /// The slot.
    pub due: Timestamp,
    /// Slots of the runs that had not ended, at most [`MET_MAX`].
    pub overlapped: Vec<Timestamp>,
    /// How many had not.
    #[serde(rename = "other_count")]
    pub others: usize,
    /// What became of it.
    pub then: Met,
}

/// What became of one schedule.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Simulated {
    /// Its id.
    #[serde(rename = "schedule")]
    pub id: String,
    /// How many slots had which status.
    pub totals: BTreeMap<SlotStatus, u64>,
    /// How many of its runs the next one ended.
    #[serde(rename = "terminated_count")]
    pub terminated: u64,
    /// Slots that did not run, in stretches of one status.
    pub rows: Vec<SlotRow>,
    /// Why it is never due in a simulation, where an event outside of it makes it due.
    pub never_due: Option<&'static str>,
}

/// How busy one hour is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Busy {
    /// Its first instant.
    pub hour: Timestamp,
    /// Runs that started in it.
    #[serde(rename = "started_count")]
    pub started: u64,
    /// Most runs under way at once.
    pub max_concurrent: u64,
}

/// What would happen.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Simulation {
    /// Schedules, as they were given.
    pub schedules: Vec<Simulated>,
    /// Runs, in the order in which they were accepted.
    pub runs: Vec<SimulatedRun>,
    /// Slots that met an earlier run of their schedule, in their order.
    pub overlaps: Vec<OverlapMet>,
}

impl Simulation {
    /// How busy each hour is from `first` on; hours in which nothing was under way are left out.
    pub fn load(&self, first: Timestamp, to: Timestamp) -> Vec<Busy> {
        const HOUR_MS: u64 = 3_600_000;
        let mut changes: Vec<(Timestamp, bool)> = Vec::new();
        for run in &self.runs {
            if let Some(at) = run.started_at {
                changes.push((at, true));
                changes.extend(run.ended_at.map(|at| (at, false)));
            }
        }
        // At one instant what ends makes room for what starts.
        changes.sort_unstable();
        let before = changes.partition_point(|(at, _)| *at < first);
        let mut now = u64::try_from(before).unwrap_or(u64::MAX);
        let mut changes = changes.into_iter().skip(before).peekable();
        let (mut load, mut hour) = (Vec::new(), first);
        while hour < to {
            let next = hour.plus_millis(HOUR_MS);
            let (mut started, mut at_once) = (0, now);
            while let Some((_, starts)) = changes.next_if(|(at, _)| *at < next) {
                if starts {
                    now += 1;
                    started += 1;
                } else {
                    now = now.saturating_sub(1);
                }
                at_once = at_once.max(now);
            }
            if at_once > 0 {
                load.push(Busy {
                    hour,
                    started,
                    max_concurrent: at_once,
                });
            }
            hour = next;
        }
        load
    }
}
