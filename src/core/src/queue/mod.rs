//! Admission: which waiting run may start now. A pure structure without locks, clocks or effects.
//!
//! Runs of one worker start in order of acceptance; mutating runs go first in, first out per repository;
//! a run that waits for a lease holds up only runs of its own worker and of its own leases.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::model::RunId;

/// What a run needs before it may start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// Its worker: the lane in which order is kept.
    pub worker: String,
    /// The repository that a mutating run changes.
    pub repository: Option<String>,
    /// Resolved destinations of its outputs.
    pub destinations: Vec<String>,
    /// The schedule of whose runs it has to be the only one.
    pub schedule: Option<String>,
}

impl Needs {
    fn leases(&self) -> impl Iterator<Item = Lease> + '_ {
        let repository = self.repository.iter().cloned().map(Lease::Repository);
        let destinations = self.destinations.iter().cloned().map(Lease::Destination);
        let schedule = self.schedule.iter().cloned().map(Lease::Schedule);
        repository.chain(destinations).chain(schedule)
    }
}

/// An exclusive right of one run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lease {
    /// To change a repository.
    Repository(String),
    /// To write a destination.
    Destination(String),
    /// To be the run of a schedule that is under way.
    Schedule(String),
}

/// Why a run is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// As many runs wait as may.
    #[error("{0} runs are waiting already")]
    Full(u32),
    /// The run is known already.
    #[error("the run is queued already")]
    Known,
}

/// What a waiting run waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitingFor {
    /// A free place among the active runs.
    Place,
    /// An earlier run of its worker.
    Worker(RunId),
    /// A lease that another run holds or is to get first.
    Lease(Lease, RunId),
    /// A daemon: this engine starts only runs of its own.
    Daemon,
    /// Its time.
    Time,
}

struct Active {
    needs: Needs,
    parked: bool,
}

/// Waiting and active runs.
pub struct Queue {
    parallel_max: u32,
    waiting_max: u32,
    waiting: BTreeMap<RunId, Needs>,
    held_back: BTreeSet<RunId>,
    early: BTreeSet<RunId>,
    active: HashMap<RunId, Active>,
    leases: HashMap<Lease, RunId>,
    parked: u32,
}

impl Queue {
    /// A queue that lets `parallel_max` runs be active and `waiting_max` wait.
    pub fn new(parallel_max: u32, waiting_max: u32) -> Queue {
        Queue {
            parallel_max: parallel_max.max(1),
            waiting_max,
            waiting: BTreeMap::new(),
            held_back: BTreeSet::new(),
            early: BTreeSet::new(),
            active: HashMap::new(),
            leases: HashMap::new(),
            parked: 0,
        }
    }

    /// Changes the limits; runs that are active stay so.
    pub fn set_limits(&mut self, parallel_max: u32, waiting_max: u32) {
        self.parallel_max = parallel_max.max(1);
        self.waiting_max = waiting_max;
    }

    /// Accepts a run, if there is room.
    pub fn submit(&mut self, run: RunId, needs: Needs) -> Result<(), Refused> {
        if self.waiting.contains_key(&run) || self.active.contains_key(&run) {
            return Err(Refused::Known);
        }
        if self.waiting.len() >= self.waiting_max as usize {
            return Err(Refused::Full(self.waiting_max));
        }
        self.waiting.insert(run, needs);
        Ok(())
    }

    /// Takes in a waiting run whatever the limits: it was accepted before.
    pub fn readmit(&mut self, run: RunId, needs: Needs) {
        self.waiting.insert(run, needs);
    }

    /// Keeps a waiting run from being admitted by this engine.
    pub fn hold_back(&mut self, run: RunId) {
        self.held_back.insert(run);
    }

    /// Somebody waits for a run that was kept back: this engine admits it.
    pub fn want(&mut self, run: RunId) {
        self.held_back.remove(&run);
    }

    /// Keeps a waiting run from being admitted before its time; it stands in nobody's way.
    pub fn hold_until_time(&mut self, run: RunId) {
        self.early.insert(run);
    }

    /// A waiting run's time has come.
    pub fn time_has_come(&mut self, run: RunId) {
        self.early.remove(&run);
    }

    fn is_held(&self, run: RunId) -> bool {
        self.held_back.contains(&run) || self.early.contains(&run)
    }

    /// Takes in an active run whatever the limits: an earlier engine had admitted it.
    pub fn resume(&mut self, run: RunId, needs: Needs) {
        for lease in needs.leases() {
            self.leases.insert(lease, run);
        }
        self.active.insert(
            run,
            Active {
                needs,
                parked: false,
            },
        );
    }

    /// Admits every run that may start now, in order of acceptance.
    pub fn admit(&mut self) -> Vec<RunId> {
        let mut free = self.free_places();
        let mut admitted = Vec::new();
        if free == 0 {
            return admitted;
        }
        let mut lanes: HashSet<&str> = HashSet::new();
        let mut claimed: HashSet<Lease> = HashSet::new();
        for (run, needs) in &self.waiting {
            if free == 0 {
                break;
            }
            let blocked = lanes.contains(needs.worker.as_str())
                || needs
                    .leases()
                    .any(|l| self.leases.contains_key(&l) || claimed.contains(&l));
            if self.is_held(*run) {
                continue;
            }
            claimed.extend(needs.leases());
            if blocked {
                lanes.insert(&needs.worker);
            } else {
                admitted.push(*run);
                free -= 1;
            }
        }
        for run in &admitted {
            if let Some(needs) = self.waiting.remove(run) {
                self.resume(*run, needs);
            }
        }
        admitted
    }

    /// Takes a run out, waiting or active, and gives its leases back.
    pub fn release(&mut self, run: RunId) {
        self.waiting.remove(&run);
        self.held_back.remove(&run);
        self.early.remove(&run);
        if let Some(active) = self.active.remove(&run) {
            self.parked -= u32::from(active.parked);
            for lease in active.needs.leases() {
                if self.leases.get(&lease) == Some(&run) {
                    self.leases.remove(&lease);
                }
            }
        }
    }

    /// Gives back the repository of an active run, which goes on without changing it.
    pub fn release_repository(&mut self, run: RunId) {
        let Some(active) = self.active.get_mut(&run) else {
            return;
        };
        if let Some(repository) = active.needs.repository.take() {
            let lease = Lease::Repository(repository);
            if self.leases.get(&lease) == Some(&run) {
                self.leases.remove(&lease);
            }
        }
    }

    /// Puts an active run back among the waiting ones, in its old place.
    pub fn requeue(&mut self, run: RunId) {
        if let Some(needs) = self.active.get(&run).map(|active| active.needs.clone()) {
            self.release(run);
            self.readmit(run, needs);
        }
    }

    /// Frees the place of an active run that only waits for time; its leases stay.
    pub fn park(&mut self, run: RunId) {
        if let Some(active) = self.active.get_mut(&run)
            && !active.parked
        {
            active.parked = true;
            self.parked += 1;
        }
    }

    /// Takes the place of a parked run again, even beyond the limit: its turn came long ago.
    pub fn unpark(&mut self, run: RunId) {
        if let Some(active) = self.active.get_mut(&run)
            && active.parked
        {
            active.parked = false;
            self.parked -= 1;
        }
    }

    /// What a waiting run waits for; `None` when it is not waiting.
    pub fn waiting_for(&self, run: RunId) -> Option<WaitingFor> {
        let needs = self.waiting.get(&run)?;
        if self.held_back.contains(&run) {
            return Some(WaitingFor::Daemon);
        }
        if self.early.contains(&run) {
            return Some(WaitingFor::Time);
        }
        for lease in needs.leases() {
            if let Some(holder) = self.leases.get(&lease) {
                return Some(WaitingFor::Lease(lease, *holder));
            }
        }
        for (earlier, other) in self.waiting.range(..run) {
            if self.is_held(*earlier) {
                continue;
            }
            if other.worker == needs.worker {
                return Some(WaitingFor::Worker(*earlier));
            }
            if let Some(lease) = needs.leases().find(|l| other.leases().any(|o| o == *l)) {
                return Some(WaitingFor::Lease(lease, *earlier));
            }
        }
        Some(WaitingFor::Place)
    }

    /// The first waiting runs, oldest first.
    pub fn first_waiting(&self, most: usize) -> Vec<RunId> {
        self.waiting.keys().take(most).copied().collect()
    }

    /// How many runs wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// How many runs are active, parked ones included.
    pub fn active(&self) -> usize {
        self.active.len()
    }

    fn free_places(&self) -> usize {
        let busy = self.active.len() - self.parked as usize;
        (self.parallel_max as usize).saturating_sub(busy)
    }
}
