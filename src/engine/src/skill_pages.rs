//! Skills of workers and of roots, page by page, with their newest runs and next slots.

use std::collections::HashMap;

use super::control::EngineControl;
use super::schedules::{next_due, summary_of};
use super::stored_schedules;
use crate::catalog::Catalog;
use crate::catalog::roots::trust::TrustFiles;
use crate::catalog::roots::{self, RootSkill};
use crate::model::schedule::ScheduleState;
use crate::model::{Diagnostic, Problem, RunId, Skill, SkillRef, Timestamp, Zone};
use crate::protocol::{NextDue, RunSummary, SkillWithRuns, SkillsPage, SkillsQuery};
use crate::schedule::Recurrence;

/// Schedules of a skill that are looked at for what is due next.
const SCHEDULES_MAX: usize = 100;

/// A skill of either source.
enum Found<'a> {
    OfWorker(&'a Skill),
    OfRoot(&'a RootSkill),
}

impl Found<'_> {
    /// Whether these words stand in what it says of itself; they are in lower case.
    fn holds(&self, text: &str, qualified: &str) -> bool {
        let (name, description) = match self {
            Found::OfWorker(skill) => (&skill.name, &skill.description),
            Found::OfRoot(skill) => (&skill.name, &skill.description),
        };
        let texts = [qualified, name, description];
        texts.iter().any(|own| own.to_lowercase().contains(text))
    }

    /// The name of its runs.
    fn run_address(&self) -> SkillRef {
        match self {
            Found::OfWorker(skill) => skill.address.clone(),
            Found::OfRoot(skill) => skill.run_address(),
        }
    }
}

impl EngineControl {
    pub(super) fn skills_of(&self, query: &SkillsQuery) -> Result<SkillsPage, Diagnostic> {
        let catalog = self.factory.definitions.current();
        let most = query.most();
        let mut page = wanted(&catalog, query);
        page.sort_by(|(one, _), (other, _)| one.cmp(other));
        let is_last = page.len() <= most;
        page.truncate(most);
        let next = page
            .last()
            .filter(|_| !is_last)
            .map(|(name, _)| name.clone());
        let running = self.newest_running();
        let trust = TrustFiles::of(&self.factory.state_dir);
        let now = self.clock.now();
        let skills = page.into_iter().map(|(_, found)| {
            let address = found.run_address();
            Ok(SkillWithRuns {
                listed: match found {
                    Found::OfWorker(skill) => {
                        let own = |problem: &&Problem| {
                            problem.worker.as_deref() == Some(&*skill.address.worker)
                        };
                        let problems = catalog.problems.iter().filter(own).cloned();
                        roots::of_worker(skill.into(), &problems.collect::<Vec<_>>())
                    }
                    Found::OfRoot(skill) => roots::of_root(skill, &catalog, &trust),
                },
                last: self.last_of(&address, running.get(&address))?,
                next: self.next_of(&catalog, &address, now)?,
            })
        });
        Ok(SkillsPage {
            skills: skills.collect::<Result<_, Diagnostic>>()?,
            next,
        })
    }

    fn last_of(
        &self,
        skill: &SkillRef,
        running: Option<&RunId>,
    ) -> Result<Option<RunSummary>, Diagnostic> {
        // One that is older may still go on.
        let newest = self.store.newest_of(skill)?.max(running.copied());
        let run = newest.map(|run| summary_of(&self.view, self.store.as_ref(), run));
        Ok(run.transpose()?.flatten())
    }

    /// The newest run of each skill among those that go on or have just ended.
    fn newest_running(&self) -> HashMap<SkillRef, RunId> {
        let live = self.view.runs();
        let runs = live
            .iter()
            .map(|shown| (shown.spec.skill.clone(), shown.spec.run));
        // They come by their ids.
        runs.collect()
    }

    /// What is due next of a skill's schedules, which are sorted and begin with its address.
    fn next_of(
        &self,
        catalog: &Catalog,
        skill: &SkillRef,
        now: Timestamp,
    ) -> Result<Option<NextDue>, Diagnostic> {
        if catalog.schedules_held().is_some() {
            return Ok(None);
        }
        let address = skill.to_string();
        let first = catalog.schedules.partition_point(|one| *one.id < *address);
        let own = catalog.schedules.iter().skip(first);
        let own = own
            .take_while(|one| one.id.starts_with(&address))
            .take(SCHEDULES_MAX);
        let mut next: Option<NextDue> = None;
        for schedule in own.filter(|one| *one.skill == *skill && !one.disabled) {
            let state = stored_schedules::one(self.store.as_ref(), &schedule.id, now)?;
            let state = state.unwrap_or_else(|| ScheduleState::new(String::new(), now));
            let zone = schedule.timezone.parse().unwrap_or(Zone::UTC);
            let slots = Recurrence::of(&schedule.trigger, zone, state.anchor);
            let at = slots
                .filter(|_| state.pause.is_none())
                .and_then(|slots| next_due(schedule, &slots, &state, now));
            if let Some(at) = at.filter(|at| next.as_ref().is_none_or(|next| *at < next.at)) {
                next = Some(NextDue {
                    schedule: schedule.id.to_string(),
                    at,
                    timezone: schedule.timezone.to_string(),
                });
            }
        }
        Ok(next)
    }
}

/// Skills that a query names, with their qualified names.
fn wanted<'a>(catalog: &'a Catalog, query: &SkillsQuery) -> Vec<(String, Found<'a>)> {
    let of_workers = catalog.workers.iter().flat_map(|worker| {
        let skills = worker.skills.iter();
        skills.map(|skill| (skill.address.to_string(), Found::OfWorker(skill)))
    });
    let of_roots = catalog.root_skills.skills.iter();
    let of_roots = of_roots.map(|skill| (skill.qualified(), Found::OfRoot(skill)));
    let text = query.text.as_ref().map(|text| text.to_lowercase());
    of_workers
        .chain(of_roots)
        .filter(|(name, found)| {
            let worker = match found {
                Found::OfWorker(skill) => Some(&skill.address.worker),
                Found::OfRoot(_) => None,
            };
            query.after.as_ref().is_none_or(|after| name > after)
                && query
                    .worker
                    .as_ref()
                    .is_none_or(|wanted| worker == Some(wanted))
                && text.as_ref().is_none_or(|text| found.holds(text, name))
        })
        .collect()
}
