//! Counts of runs by day, which stay when the runs are forgotten, and what is asked of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RunSummary;
use crate::model::agent::{Money, Tokens};
use crate::model::notice::subject;
use crate::model::{Outcome, SkillRef};

/// Most lines of one answer.
pub const STATS_MAX: usize = 10_000;

/// What the runs of one skill or schedule came to that ended on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayCounts {
    /// How many ended with each outcome, by its name.
    pub outcomes: BTreeMap<String, u32>,
    /// How many succeeded and a check proved it.
    #[serde(default)]
    pub verified: u32,
    /// How many succeeded because there was nothing to do.
    #[serde(default)]
    pub nothing_to_do: u32,
    /// From the start of the command to the end of the run, without the time in which it waited.
    #[serde(default)]
    pub took: Spans,
    /// From acceptance to the start of the command.
    #[serde(default)]
    pub waited: Spans,
    /// Tokens of models; runs that a run started are in its sum.
    #[serde(default)]
    pub tokens: Tokens,
    /// Money, where the model has prices.
    #[serde(default)]
    pub money: Option<Money>,
    /// Requests whose tokens or money are estimated.
    #[serde(default)]
    pub unmeasured: u32,
    /// How much of the money is an estimate.
    #[serde(default)]
    pub estimated_money: Money,
}

impl DayCounts {
    /// What one run counts; nothing while it has not ended.
    pub fn of(run: &RunSummary) -> DayCounts {
        let mut counts = DayCounts::default();
        let Some(outcome) = run.outcome.as_ref().filter(|_| run.finished_at.is_some()) else {
            return counts;
        };
        counts.outcomes.insert(outcome.name().to_owned(), 1);
        let is_proven = *outcome == Outcome::Succeeded && !run.unverified && !run.nothing_to_do;
        counts.verified = u32::from(is_proven);
        counts.nothing_to_do = u32::from(run.nothing_to_do);
        counts.took = run.worked_ms().map(Spans::of).unwrap_or_default();
        if let Some(started) = run.started_at {
            counts.waited = Spans::of(started.millis_since(run.submitted_at));
        }
        // What a run spent that another started is in the sum of that one.
        if let Some(spent) = run.spent.as_ref().filter(|_| !run.is_part_of_parent()) {
            counts.tokens = spent.tokens;
            counts.money = spent.money.as_deref().and_then(Money::parse);
            counts.unmeasured = spent.unmeasured;
            let estimated = spent.estimated_money.as_deref();
            counts.estimated_money = estimated.and_then(Money::parse).unwrap_or_default();
        }
        counts
    }

    /// Adds the counts of a run, of another day or of another subject.
    pub fn add(&mut self, other: &DayCounts) {
        self.combine(other, u32::saturating_add);
        self.tokens = self.tokens.plus(other.tokens);
        if let Some(money) = other.money {
            self.money = Some(self.money.unwrap_or_default().plus(money));
        }
        self.estimated_money = self.estimated_money.plus(other.estimated_money);
    }

    /// Takes back what was added: the run ended otherwise after all, as one whose commit lands later.
    pub fn take_back(&mut self, other: &DayCounts) {
        self.combine(other, u32::saturating_sub);
        self.tokens = self.tokens.minus(other.tokens);
        let money = other.money.unwrap_or_default();
        self.money = self.money.map(|sum| sum.minus(money));
        self.estimated_money = self.estimated_money.minus(other.estimated_money);
    }

    fn combine(&mut self, other: &DayCounts, by: fn(u32, u32) -> u32) {
        combine(&mut self.outcomes, &other.outcomes, by);
        combine(&mut self.took.0, &other.took.0, by);
        combine(&mut self.waited.0, &other.waited.0, by);
        self.verified = by(self.verified, other.verified);
        self.nothing_to_do = by(self.nothing_to_do, other.nothing_to_do);
        self.unmeasured = by(self.unmeasured, other.unmeasured);
    }

    /// How many ended.
    pub fn runs(&self) -> u32 {
        self.outcomes
            .values()
            .fold(0, |sum, one| sum.saturating_add(*one))
    }

    fn with(&self, outcome: &str) -> u32 {
        self.outcomes.get(outcome).copied().unwrap_or(0)
    }
}

/// Combines counts by their keys; what comes to nothing is left out.
fn combine<K: Ord + Clone>(
    counts: &mut BTreeMap<K, u32>,
    others: &BTreeMap<K, u32>,
    by: fn(u32, u32) -> u32,
) {
    for (key, other) in others {
        let count = counts.entry(key.clone()).or_default();
        *count = by(*count, *other);
    }
    counts.retain(|_, count| *count > 0);
}

/// How many spans of time were about how long: three classes for each doubling, so that what is told of them is within
/// an eighth of what was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spans(BTreeMap<u8, u32>);

/// The cube roots of 2 and of 4, in ten-thousandths.
const THIRDS: [u128; 2] = [12_599, 15_874];

/// The highest class, of spans of 49 days and more: so few classes fit into a record, whatever their counts.
const CLASS_MAX: u8 = 95;

impl Spans {
    fn of(millis: u64) -> Spans {
        Spans([(class(millis), 1)].into())
    }

    /// The span in milliseconds that so many of a hundred did not exceed, about; `None` where nothing was measured.
    pub fn percentile(&self, percent: u32) -> Option<u64> {
        let all: u64 = self.0.values().map(|count| u64::from(*count)).sum();
        let rank = (all * u64::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        self.0.iter().find_map(|(class, count)| {
            seen += u64::from(*count);
            (seen >= rank).then(|| middle(*class))
        })
    }
}

fn class(millis: u64) -> u8 {
    let value = u128::from(millis) + 1;
    let doublings = value.ilog2();
    // How far it is beyond that power of two, in ten-thousandths of it.
    let beyond = (value * 10_000) >> doublings;
    let third = THIRDS.iter().filter(|third| beyond >= **third).count();
    let class = doublings as usize * 3 + third;
    u8::try_from(class).unwrap_or(CLASS_MAX).min(CLASS_MAX)
}

/// The middle of a class, in milliseconds.
fn middle(class: u8) -> u64 {
    let lower = f64::from(class) / 3.0;
    let middle = (lower + 1.0 / 6.0).exp2() - 1.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 0 and at most 2 to the 33rd"
    )]
    let rounded = middle.round() as u64;
    rounded
}

/// By what runs are counted.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum StatsBy {
    /// By what was invoked.
    #[default]
    Skill,
    /// By the worker that it belongs to.
    Worker,
    /// By the schedule that it ran for; runs without one are left out.
    Schedule,
    /// By the day on which they ended.
    Day,
    /// All of them together.
    All,
}

/// Of how long one count is.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Bucket {
    /// A day of a zone.
    #[default]
    Day,
    /// An hour.
    Hour,
}

/// Which counts are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StatsQuery {
    /// The first day, as `2026-11-25`; absent: 30 days ago.
    pub from: Option<String>,
    /// The last day; absent: today.
    pub to: Option<String>,
    /// What each line is of.
    pub by: StatsBy,
    /// What each line is of besides; absent: one line for the whole time. Hours are those of UTC, of the last eight days.
    pub bucket: Option<Bucket>,
    /// Only of this worker.
    pub worker: Option<String>,
    /// Only of this skill: `skill` or `worker/skill`.
    pub skill: Option<String>,
    /// Only of this schedule.
    pub schedule: Option<String>,
}

/// What runs came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StatsLine {
    /// The skill, worker, schedule or day; `all`.
    pub name: String,
    /// The day, `2026-11-25`, or the hour, `2026-11-25T05:00:00Z`, where they are asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Runs that have ended, those that other runs started included.
    pub run_count: u32,
    /// How many of them succeeded.
    pub succeeded_count: u32,
    /// How many succeeded and a check proved it.
    pub verified_count: u32,
    /// How many succeeded because there was nothing to do.
    pub nothing_to_do_count: u32,
    /// How many failed, reached a limit, or ended as `unknown`.
    pub failed_count: u32,
    /// How many ended with each outcome.
    pub outcomes: BTreeMap<String, u32>,
    /// Half of those that started worked at most about so long, waits excluded; within an eighth.
    pub p50_ms: Option<u64>,
    /// Nine of ten.
    pub p90_ms: Option<u64>,
    /// Nineteen of twenty.
    pub p95_ms: Option<u64>,
    /// Half of them waited at most about so long for their start.
    pub waited_p50_ms: Option<u64>,
    /// Nineteen of twenty.
    pub waited_p95_ms: Option<u64>,
    /// Tokens of models.
    pub tokens: Tokens,
    /// Money, where the model has prices: `0.25`.
    pub money: Option<String>,
    /// Number of requests whose tokens or money are estimated, at least in part.
    #[serde(default)]
    pub unmeasured_count: u32,
    /// How much of the money is an estimate: `0.25`; null: nothing.
    #[serde(default)]
    pub estimated_money: Option<String>,
}

impl StatsLine {
    /// The line of these counts.
    pub fn of(name: String, counts: &DayCounts) -> StatsLine {
        StatsLine {
            name,
            at: None,
            run_count: counts.runs(),
            succeeded_count: counts.with("succeeded"),
            verified_count: counts.verified,
            nothing_to_do_count: counts.nothing_to_do,
            failed_count: Outcome::FAILURES
                .iter()
                .fold(0, |sum, name| sum.saturating_add(counts.with(name))),
            outcomes: counts.outcomes.clone(),
            p50_ms: counts.took.percentile(50),
            p90_ms: counts.took.percentile(90),
            p95_ms: counts.took.percentile(95),
            waited_p50_ms: counts.waited.percentile(50),
            waited_p95_ms: counts.waited.percentile(95),
            tokens: counts.tokens,
            money: counts.money.map(|money| money.to_string()),
            unmeasured_count: counts.unmeasured,
            estimated_money: (!counts.estimated_money.is_zero())
                .then(|| counts.estimated_money.to_string()),
        }
    }
}

/// Of what runs are counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// Every run.
    All,
    /// A skill.
    Skill(SkillRef),
    /// A schedule.
    Schedule(String),
}

impl Counted {
    /// What a run counts for.
    pub fn of(run: &RunSummary) -> impl Iterator<Item = Counted> {
        let schedule = run.schedule.clone().map(Counted::Schedule);
        [Counted::All, Counted::Skill(run.skill.clone())]
            .into_iter()
            .chain(schedule)
    }

    /// As a part of a key.
    pub fn key(&self) -> String {
        match self {
            Counted::All => "all ".to_owned(),
            Counted::Skill(skill) => subject(skill, None),
            Counted::Schedule(id) => format!("schedule {id}"),
        }
    }

    /// Reads [`Counted::key`].
    pub fn parse(key: &str) -> Option<Counted> {
        match key.split_once(' ')? {
            ("all", _) => Some(Counted::All),
            ("skill", skill) => Some(Counted::Skill(skill.parse().ok()?)),
            ("schedule", id) => Some(Counted::Schedule(id.to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_spans_is_within_an_eighth() {
        for exact in [0, 1, 7, 99, 1_000, 61_234, 3_600_000, 86_400_000, 1 << 31] {
            let spans = Spans::of(exact);
            let told = spans.percentile(50).unwrap();
            assert!(
                told.abs_diff(exact) * 8 <= exact + 8,
                "{told} is told of {exact}"
            );
        }
        assert_eq!(Spans::default().percentile(50), None);
    }

    #[test]
    fn percentiles_are_the_nearest_rank() {
        let counts = [(10, 1), (1_000, 3), (100_000, 1)];
        let spans = Spans(counts.map(|(millis, count)| (class(millis), count)).into());
        let near = |percent, exact: u64| {
            let told = spans.percentile(percent).unwrap();
            told.abs_diff(exact) * 8 <= exact + 8
        };
        assert!(near(20, 10) && near(21, 1_000) && near(80, 1_000) && near(81, 100_000));
    }

    #[test]
    fn the_largest_counts_fit_into_a_record() {
        let full = Spans((0..=CLASS_MAX).map(|class| (class, u32::MAX)).collect());
        let outcomes = [
            "succeeded",
            "failed",
            "cancelled",
            "timed_out",
            "denied",
            "unknown",
        ];
        let most = Tokens {
            input: u64::MAX,
            output: u64::MAX,
            cache_read: u64::MAX,
            cache_write: u64::MAX,
        };
        let counts = DayCounts {
            outcomes: outcomes.map(|name| (name.to_owned(), u32::MAX)).into(),
            verified: u32::MAX,
            nothing_to_do: u32::MAX,
            took: full.clone(),
            waited: full,
            tokens: most,
            money: Some(Money(u64::MAX)),
            unmeasured: u32::MAX,
            estimated_money: Money(u64::MAX),
        };
        let bytes = serde_json::to_vec(&counts).unwrap().len();
        assert!(bytes <= 4_000, "{bytes}");
    }
}
