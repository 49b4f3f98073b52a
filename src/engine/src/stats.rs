//! What the runs of some days came to, from the counts that the store keeps of each day.

use std::collections::BTreeMap;

use super::control::EngineControl;
use crate::model::{Diagnostic, Kind, SkillRef, Timestamp, Zone};
use crate::protocol::{Counted, DayCounts, STATS_MAX, StatsBy, StatsLine, StatsQuery};

/// Days that are counted where no first one is named, today included.
const DAYS_DEFAULT: u64 = 30;

const DAY_MS: u64 = 24 * 3_600_000;

impl EngineControl {
    pub(super) fn counted(&self, query: &StatsQuery) -> Result<Vec<StatsLine>, Diagnostic> {
        let zone = self.factory.definitions.current().config.timezone.clone();
        let zone: Zone = zone.parse().unwrap_or(Zone::UTC);
        let now = self.clock.now();
        let from = match &query.from {
            Some(day) => checked(day)?,
            None => now.minus_millis((DAYS_DEFAULT - 1) * DAY_MS).date_in(zone),
        };
        let to = match &query.to {
            Some(day) => checked(day)?,
            // A zone that was another one when runs ended may have been ahead.
            None => now.plus_millis(DAY_MS).date_in(zone),
        };
        let mut lines: BTreeMap<String, DayCounts> = BTreeMap::new();
        self.store.counts(&from, &to, &mut |day, of, counts| {
            if let Some(name) = name_of(query, day, &of) {
                lines.entry(name).or_default().add(&counts);
            }
        })?;
        lines.retain(|_, counts| counts.runs() > 0);
        if lines.len() > STATS_MAX {
            let message = format!(
                "there are {} lines, and at most {STATS_MAX} are answered",
                lines.len()
            );
            return Err(Diagnostic::new(Kind::Usage, "too_many", message)
                .hint("ask for one worker, or by worker"));
        }
        let lines = lines.iter();
        Ok(lines
            .map(|(name, counts)| StatsLine::of(name.clone(), counts))
            .collect())
    }
}

/// The line that counts belong to, if they are wanted.
fn name_of(query: &StatsQuery, day: &str, of: &Counted) -> Option<String> {
    let skill = match of {
        Counted::Schedule(id) => {
            let wanted = match (&query.schedule, query.by) {
                (Some(wanted), _) => wanted.eq_ignore_ascii_case(id),
                (None, by) => by == StatsBy::Schedule,
            };
            // The id of a schedule begins with its skill.
            let skill: Option<SkillRef> = id.split('#').next()?.parse().ok();
            if !wanted
                || !skill
                    .as_ref()
                    .is_some_and(|skill| is_asked_for(query, skill))
            {
                return None;
            }
            return Some(match query.by {
                StatsBy::Day => day.to_owned(),
                _ => id.clone(),
            });
        }
        Counted::Skill(skill) => skill,
    };
    if query.schedule.is_some() || !is_asked_for(query, skill) {
        return None;
    }
    match query.by {
        StatsBy::Skill => Some(skill.to_string()),
        StatsBy::Worker => Some(skill.worker.clone()),
        StatsBy::Day => Some(day.to_owned()),
        StatsBy::Schedule => None,
    }
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
