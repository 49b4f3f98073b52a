//! What the runs of a day have spent: put together from the store when it is first asked for, kept up to date since.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::agent::{DayBudget, Money};
use crate::model::definition::{RunText, Skill};
use crate::model::{Config, Diagnostic, Kind, RunId, SkillRef, Timestamp, Zone};
use crate::protocol::RunSummary;
use crate::store::Store;

/// Whose runs a limit of a day counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// Those of one skill.
    Skill,
    /// Those of all skills of a worker.
    Worker,
    /// All.
    Workspace,
}

impl Scope {
    /// The three, from the inner one.
    pub(super) const ALL: [Scope; 3] = [Scope::Skill, Scope::Worker, Scope::Workspace];

    fn holds(self, skill: &SkillRef, of: &SkillRef) -> bool {
        match self {
            Scope::Skill => skill == of,
            Scope::Worker => skill.worker == of.worker,
            Scope::Workspace => true,
        }
    }

    fn name(self, skill: &SkillRef) -> String {
        match self {
            Scope::Skill => format!("`{skill}`"),
            Scope::Worker => format!("worker `{}`", skill.worker),
            Scope::Workspace => "this workspace".to_owned(),
        }
    }
}

/// One run of the day.
struct Counted {
    skill: SkillRef,
    money: Money,
    /// What its next turn could cost at most.
    reserved: Money,
}

#[derive(Default)]
struct Day {
    /// As `2026-11-24` in the workspace's zone; empty: nothing is counted yet.
    date: String,
    zone: Option<Zone>,
    runs: HashMap<RunId, Counted>,
}

/// The runs of the present day, by the day in which they were accepted. What runs spent that
/// others started is a part of these once they have ended.
#[derive(Default)]
pub(super) struct Spending {
    day: Mutex<Day>,
}

/// What the sums of a day are made of when they are first asked for: runs that are live, runs that have ended, and
/// the time.
pub(super) type Sources<'a> = (&'a dyn LiveRuns, &'a dyn Store, Timestamp);

/// The runs of which the store has no summary yet, or an older one.
pub(super) trait LiveRuns {
    /// Shows each of them.
    fn each(&self, see: &mut dyn FnMut(&RunSummary));
}

impl Spending {
    /// Takes a run as it is after a commit, once anything is counted.
    pub(super) fn note(&self, summary: &RunSummary) {
        let mut day = self.lock();
        let Some(zone) = day.zone else { return };
        if summary.submitted_at.date_in(zone) == day.date {
            day.take(summary);
        }
    }

    /// Refuses a run of a skill whose budget of the day is spent.
    pub(super) fn admit(
        &self,
        skill: &Skill,
        config: &Config,
        (live, store, now): Sources<'_>,
    ) -> Result<(), Diagnostic> {
        let limits = [
            skill.agent.per_day,
            skill.agent.worker_per_day,
            config.per_day,
        ];
        if limits.iter().all(|limit| *limit == DayBudget::default()) {
            return Ok(());
        }
        let day = self.of_today(config, (live, store, now))?;
        for (scope, limit) in Scope::ALL.into_iter().zip(limits) {
            let (runs, money) = day.sum(scope, &skill.address, None);
            let of = scope.name(&skill.address);
            if let Some(most) = limit.runs.filter(|most| runs >= *most) {
                let why =
                    format!("{of} has had {runs} of {most} runs today (`budget.per_day.runs`)");
                return Err(refused(why, &day));
            }
            let asks = skill.run == RunText::Instructions;
            if let Some(most) = limit.money.filter(|most| asks && money >= *most) {
                let why =
                    format!("{of} has spent {money} of {most} today (`budget.per_day.money`)");
                return Err(refused(why, &day));
            }
        }
        Ok(())
    }

    /// Sets aside what the next turn of a run could cost; `Err`: a budget of the day does not have it.
    pub(super) fn reserve(
        &self,
        (run, skill): (RunId, &SkillRef),
        next: Money,
        limits: [DayBudget; 3],
        config: &Config,
        around: Sources<'_>,
    ) -> Result<(), String> {
        if limits.iter().all(|limit| limit.money.is_none()) {
            return Ok(());
        }
        let mut day = self
            .of_today(config, around)
            .map_err(|refused| refused.message)?;
        for (scope, limit) in Scope::ALL.into_iter().zip(limits) {
            let Some(most) = limit.money else { continue };
            let (_, money) = day.sum(scope, skill, Some(run));
            if money.plus(next) > most {
                let of = scope.name(skill);
                return Err(format!(
                    "{of} has spent {money} of {most} today, and the next turn could cost {next} (`budget.per_day.money`)"
                ));
            }
        }
        if let Some(counted) = day.runs.get_mut(&run) {
            counted.reserved = next;
        }
        Ok(())
    }

    /// The turn has ended: what it cost is known.
    pub(super) fn release(&self, run: RunId) {
        if let Some(counted) = self.lock().runs.get_mut(&run) {
            counted.reserved = Money::default();
        }
    }

    fn of_today(
        &self,
        config: &Config,
        (live, store, now): Sources<'_>,
    ) -> Result<MutexGuard<'_, Day>, Diagnostic> {
        let zone = config.timezone.parse().unwrap_or(Zone::UTC);
        let date = now.date_in(zone);
        let mut day = self.lock();
        if day.date == date && day.zone == Some(zone) {
            return Ok(day);
        }
        let mut found = Day {
            date,
            zone: Some(zone),
            runs: HashMap::new(),
        };
        let read = store.summaries(None, &mut |summary| {
            let of = summary.submitted_at.date_in(zone);
            if of == found.date {
                found.take(&summary);
            }
            // A clock that was set back leaves runs of later days in front.
            if of < found.date {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        read?;
        live.each(&mut |summary| {
            if summary.submitted_at.date_in(zone) == found.date {
                found.take(summary);
            }
        });
        *day = found;
        Ok(day)
    }

    fn lock(&self) -> MutexGuard<'_, Day> {
        self.day.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Day {
    fn take(&mut self, summary: &RunSummary) {
        // It was only asked whether there is anything to do.
        if summary.nothing_to_do {
            self.runs.remove(&summary.run);
            return;
        }
        let of_parent = summary.is_part_of_parent();
        let money = summary
            .spent
            .as_ref()
            .and_then(|spent| spent.money.as_deref());
        // What a run spent that another one started is a part of that one's once it has ended.
        let money = money.filter(|_| !of_parent || summary.outcome.is_none());
        let money = money.and_then(Money::parse).unwrap_or_default();
        let counted = self.runs.entry(summary.run).or_insert_with(|| Counted {
            skill: summary.skill.clone(),
            money,
            reserved: Money::default(),
        });
        counted.money = money;
    }

    /// Runs of a scope and their money, with what turns under way could cost, `but` those of one run.
    fn sum(&self, scope: Scope, skill: &SkillRef, but: Option<RunId>) -> (u32, Money) {
        let runs = self
            .runs
            .iter()
            .filter(|(_, one)| scope.holds(skill, &one.skill));
        runs.fold((0, Money::default()), |(count, sum), (run, one)| {
            let reserved = if Some(*run) == but {
                Money::default()
            } else {
                one.reserved
            };
            (count + 1, sum.plus(one.money).plus(reserved))
        })
    }
}

fn refused(why: String, day: &Day) -> Diagnostic {
    let zone = day.zone.unwrap_or(Zone::UTC);
    Diagnostic::new(Kind::Blocked, "budget_spent", why)
        .hint(format!("a new day begins at midnight, {}", zone.name()))
}
