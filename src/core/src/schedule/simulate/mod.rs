//! All schedules on a virtual clock: what would fire, what would meet what, and how much at once.
//!
//! [`settle`] decides about every slot, as it does in the engine. Here are only the clock, which jumps from
//! one instant at which something happens to the next, and runs, which last as long as is assumed.

mod scenario;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::planned::Planned;
use super::recurrence::Recurrence;
use super::settle::{Moment, Next, Others, settle};
use crate::model::schedule::{AfterWhen, Overlap, ScheduleState, SlotRow, SlotStatus, Trigger};
use crate::model::{RunId, Timestamp};
pub use scenario::{
    ActiveRun, Busy, EndedBy, MET_MAX, Met, OverlapMet, RANGE_MAX_MS, SLOTS_MAX, Scenario,
    ScenarioError, Simulated, SimulatedRun, Simulation,
};

/// Lets the time of a scenario pass over schedules that know of no earlier runs but those under way.
///
/// Every run succeeds after the assumed time; it waits for earlier runs of its schedule only. The same arguments
/// lead to the same answer.
///
/// # Errors
/// The scenario is backwards, too long, or has too many slots.
pub fn simulate(schedules: &[Planned], scenario: &Scenario) -> Result<Simulation, ScenarioError> {
    if scenario.to <= scenario.from {
        return Err(ScenarioError::Backwards);
    }
    if scenario.to.millis_since(scenario.from) > RANGE_MAX_MS {
        return Err(ScenarioError::TooLong);
    }
    let mut world = World::new(schedules, scenario);
    world.live()?;
    Ok(world.told())
}

/// A schedule under way.
struct Course<'a> {
    planned: &'a Planned,
    recurrence: Option<Recurrence>,
    state: ScheduleState,
    /// Events that make it due and are not decided, in their order.
    events: VecDeque<Timestamp>,
    last_event: Option<Timestamp>,
    wake: Option<Timestamp>,
    running: BTreeSet<usize>,
    /// In the order in which they were accepted, which is that of their numbers.
    waiting: BTreeSet<usize>,
    rows: BTreeMap<Timestamp, SlotRow>,
    terminated: u64,
}

/// What happens at an instant; ends come first, so that a run that ends when the next is due is not met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    End(usize),
    /// A run under way that belongs to no schedule ends.
    EndOfOther(usize),
    Look(usize),
}

/// Since when a daemon is there without a break.
fn there_since(scenario: &Scenario, now: Timestamp) -> Timestamp {
    let ends = scenario.down.iter().map(|(_, end)| *end);
    let last = ends.filter(|end| *end <= now).max();
    last.unwrap_or(scenario.from)
}

struct World<'a> {
    scenario: &'a Scenario,
    courses: Vec<Course<'a>>,
    /// The schedule of each run.
    owners: Vec<usize>,
    runs: Vec<SimulatedRun>,
    overlaps: Vec<OverlapMet>,
    agenda: BTreeSet<(Timestamp, Happens)>,
    due_times: u64,
}

impl<'a> World<'a> {
    fn new(schedules: &'a [Planned], scenario: &'a Scenario) -> World<'a> {
        let course = |planned: &'a Planned| Course {
            planned,
            recurrence: planned.recurrence(),
            state: planned.state(scenario.from.just_before()),
            events: VecDeque::new(),
            last_event: None,
            wake: None,
            running: BTreeSet::new(),
            waiting: BTreeSet::new(),
            rows: BTreeMap::new(),
            terminated: 0,
        };
        let mut world = World {
            scenario,
            courses: schedules.iter().map(course).collect(),
            owners: Vec::new(),
            runs: Vec::new(),
            overlaps: Vec::new(),
            agenda: BTreeSet::new(),
            due_times: 0,
        };
        for index in 0..scenario.active.len() {
            world.resume(index);
        }
        for index in 0..world.courses.len() {
            world.start_waiting(index, scenario.from);
            world.look_at(index, scenario.from);
        }
        world
    }

    /// Takes in a run that is under way. One that has lasted longer than assumed ends at once.
    fn resume(&mut self, index: usize) {
        let (active, from) = (&self.scenario.active[index], self.scenario.from);
        let started = active.started_at.unwrap_or(from);
        let end = started.plus_millis(self.lasts(&active.skill));
        let end = end.max(from.plus_millis(1));
        let of_schedule = active.slot.as_ref().and_then(|(schedule, due)| {
            let mut courses = self.courses.iter();
            let owner = courses.position(|course| course.planned.id == *schedule)?;
            Some((owner, *due))
        });
        let Some((owner, due)) = of_schedule else {
            self.agenda.insert((end, Happens::EndOfOther(index)));
            return;
        };
        let run = self.add(owner, due, SlotStatus::Ran);
        self.runs[run].under_way = true;
        self.runs[run].started_at = active.started_at;
        if active.started_at.is_some() {
            self.courses[owner].running.insert(run);
            self.agenda.insert((end, Happens::End(run)));
        } else {
            self.courses[owner].waiting.insert(run);
        }
    }

    /// Starts the runs that wait for no other run.
    fn start_waiting(&mut self, index: usize, now: Timestamp) {
        loop {
            let course = &mut self.courses[index];
            let waits = met_then(course.planned.policy.overlap) == Met::Waits;
            if waits && !course.running.is_empty() {
                return;
            }
            let Some(run) = course.waiting.pop_first() else {
                return;
            };
            self.start(run, now);
        }
    }

    fn add(&mut self, owner: usize, due: Timestamp, status: SlotStatus) -> usize {
        self.owners.push(owner);
        self.runs.push(SimulatedRun {
            schedule: self.courses[owner].planned.id.clone(),
            due,
            status,
            started_at: None,
            ended_at: None,
            ended_by: None,
            under_way: false,
        });
        self.runs.len() - 1
    }

    /// How long a run of a skill lasts, in milliseconds.
    fn lasts(&self, skill: &str) -> u64 {
        let assumed = self.scenario.durations.get(skill).copied();
        assumed.unwrap_or(self.scenario.otherwise_ms).max(1)
    }

    fn live(&mut self) -> Result<(), ScenarioError> {
        while let Some((now, what)) = self.agenda.pop_first() {
            if now >= self.scenario.to {
                return Ok(());
            }
            match what {
                Happens::End(run) => self.end(run, EndedBy::Itself, now),
                Happens::EndOfOther(index) => {
                    let skill = &self.scenario.active[index].skill;
                    self.follow(skill, EndedBy::Itself, now);
                }
                Happens::Look(index) => {
                    self.courses[index].wake = None;
                    self.decide(index, now)?;
                }
            }
        }
        Ok(())
    }

    /// The first instant from `at` on at which a daemon is there.
    fn present(&self, at: Timestamp) -> Timestamp {
        let mut at = at;
        let mut gaps: Vec<_> = self.scenario.down.clone();
        gaps.sort_unstable();
        for (from, to) in gaps {
            if from <= at && at < to {
                at = to;
            }
        }
        at
    }

    fn look_at(&mut self, index: usize, at: Timestamp) {
        let at = self.present(at);
        let course = &mut self.courses[index];
        if let Some(earlier) = course.wake.replace(at) {
            self.agenda.remove(&(earlier, Happens::Look(index)));
        }
        self.agenda.insert((at, Happens::Look(index)));
    }

    /// Decides about everything of a schedule that is due.
    fn decide(&mut self, index: usize, now: Timestamp) -> Result<(), ScenarioError> {
        loop {
            let Some(next) = self.settle(index, now)? else {
                return Ok(());
            };
            match next {
                Next::Again => {}
                Next::Fire { slot, status } => {
                    self.count(1, now)?;
                    match &self.courses[index].planned.blocked {
                        Some(why) => self.block(index, slot, why, now),
                        None => self.fire(index, slot, status, now),
                    }
                }
                Next::Wait(Some(at)) | Next::Hold(at) => {
                    self.look_at(index, at);
                    return Ok(());
                }
                Next::Wait(None) => {
                    // The event is decided; the next one is due now or later.
                    if self.courses[index].events.pop_front().is_none() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// One decision; `None` where nothing can be due.
    fn settle(&mut self, index: usize, now: Timestamp) -> Result<Option<Next>, ScenarioError> {
        let course = &mut self.courses[index];
        let event = course.events.front().map(|at| Recurrence::once(*at));
        let Some(slots) = course.recurrence.as_ref().or(event.as_ref()) else {
            return Ok(None);
        };
        let moment = Moment {
            now,
            zone: course.planned.zone,
            there_since: there_since(self.scenario, now),
            id: &course.planned.id,
            others: Others {
                running: course.running.len(),
                waiting: course.waiting.len(),
            },
        };
        let (before, cursor) = (decided(&course.state), course.state.cursor);
        let policy = &course.planned.policy;
        let (rows, next) = settle(slots, policy, &mut course.state, moment);
        let added = decided(&course.state).saturating_sub(before);
        for row in &rows {
            if row.status == SlotStatus::SkippedOverlap {
                let met = met(course, &self.runs);
                let mut slot = slots.next_after(cursor.max(row.from.just_before()));
                while let Some(due) = slot.filter(|due| *due <= row.to) {
                    self.overlaps.push(OverlapMet {
                        schedule: course.planned.id.clone(),
                        due,
                        overlapped: met.clone(),
                        others: course.running.len() + course.waiting.len(),
                        then: Met::Skipped,
                    });
                    slot = slots.next_after(due);
                }
            }
        }
        let by_start = rows.into_iter().map(|row| (row.from, row));
        course.rows.extend(by_start);
        self.count(added, now)?;
        Ok(Some(next))
    }

    fn count(&mut self, due_times: u64, now: Timestamp) -> Result<(), ScenarioError> {
        self.due_times = self.due_times.saturating_add(due_times);
        if usize::try_from(self.due_times).is_ok_and(|count| count <= SLOTS_MAX) {
            Ok(())
        } else {
            Err(ScenarioError::TooMany(now))
        }
    }

    /// A slot whose skill cannot run.
    fn block(&mut self, index: usize, slot: Timestamp, why: &str, now: Timestamp) {
        let course = &mut self.courses[index];
        let row = SlotRow::one(slot, SlotStatus::BlockedConfig, now).because(why);
        let row = course.state.cover(row);
        course.rows.insert(row.from, row);
    }

    fn fire(&mut self, index: usize, slot: Timestamp, status: SlotStatus, now: Timestamp) {
        let course = &mut self.courses[index];
        let nobodys = RunId::from_bytes([0; 16]);
        course.state.fired(slot, status, nobodys, now);
        let then = met_then(course.planned.policy.overlap);
        let others = course.running.len() + course.waiting.len();
        if others > 0 {
            self.overlaps.push(OverlapMet {
                schedule: course.planned.id.clone(),
                due: slot,
                overlapped: met(course, &self.runs),
                others,
                then,
            });
        }
        let run = self.add(index, slot, status);
        if then == Met::Ends {
            let course = &self.courses[index];
            let ended: Vec<usize> = course.running.union(&course.waiting).copied().collect();
            for other in ended {
                self.end(other, EndedBy::Successor, now);
            }
        }
        if then == Met::Waits && others > 0 {
            self.courses[index].waiting.insert(run);
        } else {
            self.start(run, now);
        }
    }

    fn start(&mut self, run: usize, now: Timestamp) {
        let course = &mut self.courses[self.owners[run]];
        course.running.insert(run);
        let planned = course.planned;
        self.runs[run].started_at = Some(now);
        let end = now.plus_millis(self.lasts(&planned.skill));
        self.agenda.insert((end, Happens::End(run)));
    }

    fn end(&mut self, run: usize, by: EndedBy, now: Timestamp) {
        let owner = self.owners[run];
        let course = &mut self.courses[owner];
        let was_running = course.running.contains(&run);
        if self.runs[run].ended_at.is_some() || (by == EndedBy::Itself && !was_running) {
            return;
        }
        course.running.remove(&run);
        course.waiting.remove(&run);
        course.terminated += u64::from(by == EndedBy::Successor);
        self.runs[run].ended_at = Some(now);
        self.runs[run].ended_by = Some(by);
        let planned = course.planned;
        self.follow(&planned.skill, by, now);
        if by == EndedBy::Successor {
            return;
        }
        self.start_waiting(owner, now);
        // What held for its end is looked at again.
        if self.courses[owner].wake.is_some() {
            self.look_at(owner, now);
        }
    }

    /// Makes those due that follow a run of this skill.
    fn follow(&mut self, skill: &str, by: EndedBy, now: Timestamp) {
        let follows = |course: &Course<'_>| match &course.planned.trigger {
            Trigger::After { skill: other, when } if other.to_string() == skill => match when {
                AfterWhen::Always => true,
                AfterWhen::Succeeded => by == EndedBy::Itself,
                AfterWhen::Failed => false,
            },
            _ => false,
        };
        let count = self.courses.len();
        let due: Vec<usize> = (0..count).filter(|i| follows(&self.courses[*i])).collect();
        for index in due {
            let course = &mut self.courses[index];
            // Two ends at one instant are two events.
            let behind = course.last_event.map(|last| last.plus_millis(1));
            let at = behind.map_or(now, |behind| behind.max(now));
            course.last_event = Some(at);
            course.events.push_back(at);
            if course.wake.is_none() {
                self.look_at(index, at);
            }
        }
    }

    fn told(self) -> Simulation {
        let of = |course: Course<'_>| Simulated {
            id: course.planned.id.clone(),
            totals: course.state.totals,
            terminated: course.terminated,
            rows: course.rows.into_values().collect(),
            never_due: match &course.planned.trigger {
                Trigger::Reboot => Some("the machine is not started again in a simulation"),
                Trigger::Watch { .. } => Some("no file changes in a simulation"),
                Trigger::OnCommit { .. } => Some("no commit arrives in a simulation"),
                Trigger::After {
                    when: AfterWhen::Failed,
                    ..
                } => Some("no run fails in a simulation"),
                Trigger::After { .. }
                | Trigger::Cron { .. }
                | Trigger::Every { .. }
                | Trigger::At { .. } => None,
            },
        };
        Simulation {
            schedules: self.courses.into_iter().map(of).collect(),
            runs: self.runs,
            overlaps: self.overlaps,
        }
    }
}

/// What becomes of the run of a slot that meets another run.
fn met_then(overlap: Overlap) -> Met {
    match overlap {
        Overlap::Skip | Overlap::BufferOne | Overlap::BufferAll => Met::Waits,
        Overlap::CancelOther => Met::Ends,
        Overlap::AllowAll => Met::Concurrent,
    }
}

/// Slots of the first runs that have not ended.
fn met(course: &Course<'_>, runs: &[SimulatedRun]) -> Vec<Timestamp> {
    let others = course.running.iter().chain(&course.waiting);
    others.take(MET_MAX).map(|run| runs[*run].due).collect()
}

/// How many slots have a status.
fn decided(state: &ScheduleState) -> u64 {
    state.totals.values().sum()
}
