//! What the runs of some days or hours came to, from the counts that the store keeps of each.

use std::collections::BTreeMap;

use super::control::EngineControl;
use crate::model::retention::{HOURS_MS, STATISTICS_MS};
use crate::model::{Diagnostic, Kind, SkillRef, Timestamp, Zone};
use crate::protocol::{Bucket, Counted, DayCounts, STATS_MAX, StatsBy, StatsLine, StatsQuery};

/// Days that are counted where no first one is named, today included.
const DAYS_DEFAULT: u64 = 30;

const DAY_MS: u64 = 24 * 3_600_000;
const HOUR_MS: u64 = 3_600_000;

impl EngineControl {
    pub(super) fn counted(&self, query: &StatsQuery) -> Result<Vec<StatsLine>, Diagnostic> {
        let catalog = self.factory.definitions.current();
        let zone: Zone = catalog.config.timezone.parse().unwrap_or(Zone::UTC);
        let times = match query.bucket {
            Some(Bucket::Hour) => hours(query, self.clock.now())?,
            Some(Bucket::Day) | None => days(query, self.clock.now(), zone)?,
        };
        // As the schedule is defined: whoever asks may write its id otherwise.
        let schedule = query.schedule.as_ref().map(|wanted| {
            let mut all = catalog.schedules.iter();
            let defined = all.find(|one| one.id.eq_ignore_ascii_case(wanted));
            defined.map_or_else(|| wanted.clone(), |one| one.id.to_string())
        });
        let subjects = subjects(query, schedule);
        let mut lines: BTreeMap<(String, Option<String>), DayCounts> = BTreeMap::new();
        for at in times {
            self.store.counts(&at, &subjects, &mut |of, counts| {
                let name = name_of(query, &at, &of).filter(|_| counts.runs() > 0);
                if let Some(name) = name {
                    let bucket = query.bucket.map(|_| at.clone());
                    lines.entry((name, bucket)).or_default().add(&counts);
                }
            })?;
            if lines.len() > STATS_MAX {
                let message = format!("the result would have more than {STATS_MAX} lines");
                return Err(Diagnostic::new(Kind::Usage, "too_many", message)
                    .hint("request a shorter period, a single worker, or grouping by worker"));
            }
        }
        // An hour is told as the instant of its beginning, a day as it is kept.
        let rest = match query.bucket {
            Some(Bucket::Hour) => ":00:00Z",
            Some(Bucket::Day) | None => "",
        };
        let line = |((name, at), counts): (&(String, Option<String>), &DayCounts)| StatsLine {
            at: at.as_ref().map(|at| format!("{at}{rest}")),
            ..StatsLine::of(name.clone(), counts)
        };
        Ok(lines.iter().map(line).collect())
    }
}

/// With what the keys of all begin that may be wanted; the counts of everything where nothing is asked for apart.
fn subjects(query: &StatsQuery, schedule: Option<String>) -> String {
    let by_schedule = query.by == StatsBy::Schedule;
    let is_of_all =
        matches!(query.by, StatsBy::Day | StatsBy::All) && query.bucket != Some(Bucket::Hour);
    let kind = if by_schedule { "schedule " } else { "skill " };
    match (schedule, &query.skill, &query.worker) {
        (Some(id), ..) => Counted::Schedule(id).key(),
        (None, Some(skill), _) if skill.contains('/') => format!("{kind}{skill}"),
        (None, _, Some(worker)) => format!("{kind}{worker}/"),
        (None, None, None) if is_of_all => Counted::All.key(),
        (None, _, None) => kind.to_owned(),
    }
}

/// The days that are asked for, as `2026-11-25`.
fn days(query: &StatsQuery, now: Timestamp, zone: Zone) -> Result<Vec<String>, Diagnostic> {
    let from = match &query.from {
        Some(day) => checked(day)?,
        None => now.minus_millis((DAYS_DEFAULT - 1) * DAY_MS).date_in(zone),
    };
    let to = match &query.to {
        Some(day) => checked(day)?,
        None => LATEST.to_owned(),
    };
    // A zone that was another one when runs ended may have been ahead. Nothing is kept of earlier and later days.
    let last = to.min(now.plus_millis(DAY_MS).date_in(zone));
    let first = from.max(now.minus_millis(STATISTICS_MS + DAY_MS).date_in(zone));
    let noon = |day: &str| Timestamp::parse(&format!("{day}T12:00:00Z")).unwrap_or_default();
    let (mut at, last, mut days) = (noon(&first), noon(&last), Vec::new());
    while at <= last {
        days.push(at.date_in(Zone::UTC));
        at = at.plus_millis(DAY_MS);
    }
    Ok(days)
}

/// Later than any day that is counted.
const LATEST: &str = "9999-12-31";

/// The hours that are asked for, as `2026-11-25T05`, in UTC.
fn hours(query: &StatsQuery, now: Timestamp) -> Result<Vec<String>, Diagnostic> {
    let begin = |day: &Option<String>| {
        let checked = day.as_ref().map(|day| checked(day)).transpose()?;
        Ok::<_, Diagnostic>(checked.and_then(|day| Timestamp::parse(&format!("{day}T00:00:00Z"))))
    };
    let kept = now.minus_millis(HOURS_MS);
    let first = begin(&query.from)?.map_or(now.minus_millis(DAY_MS - HOUR_MS), |at| at.max(kept));
    let last = begin(&query.to)?.map_or(now, |at| at.plus_millis(DAY_MS - 1).min(now));
    let (mut at, mut hours) = (first, Vec::new());
    while at <= last {
        hours.push(at.hour());
        at = at.plus_millis(HOUR_MS);
    }
    Ok(hours)
}

/// The line that counts belong to, if they are wanted.
fn name_of(query: &StatsQuery, at: &str, of: &Counted) -> Option<String> {
    let (skill, schedule) = match of {
        Counted::All => (None, None),
        Counted::Skill(skill) => (Some(skill.clone()), None),
        // The id of a schedule begins with its skill.
        Counted::Schedule(id) => (Some(id.split('#').next()?.parse().ok()?), Some(id)),
    };
    let is_named = |wanted: &String| schedule.is_some_and(|id| wanted.eq_ignore_ascii_case(id));
    let is_wanted = skill
        .as_ref()
        .is_none_or(|skill| is_asked_for(query, skill))
        && query.schedule.as_ref().is_none_or(is_named);
    let name = match (query.by, skill) {
        (StatsBy::Day, _) => at.to_owned(),
        (StatsBy::All, _) => "all".to_owned(),
        (StatsBy::Skill, Some(skill)) => skill.to_string(),
        (StatsBy::Worker, Some(skill)) => skill.worker,
        (StatsBy::Schedule, Some(_)) => schedule?.clone(),
        (_, None) => return None,
    };
    is_wanted.then_some(name)
}

fn is_asked_for(query: &StatsQuery, skill: &SkillRef) -> bool {
    let is_named = |name: &String| *name == skill.skill || *name == skill.to_string();
    query
        .worker
        .as_ref()
        .is_none_or(|worker| *worker == skill.worker)
        && query.skill.as_ref().is_none_or(is_named)
}

fn checked(day: &str) -> Result<String, Diagnostic> {
    let is_day = day.len() == 10 && Timestamp::parse(day).is_some();
    if is_day {
        return Ok(day.to_owned());
    }
    let message = format!("`{}` is no day", day.escape_debug());
    Err(Diagnostic::new(Kind::Usage, "day", message).hint("write it as `2026-11-25`"))
}
