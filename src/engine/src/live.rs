//! One run that has not been closed, as the core loop holds it.

use std::sync::Arc;

use crate::machine::{Action, Entry, Event, IllegalEvent, Run, State};
use crate::model::{RunSpec, Timestamp};
use crate::process::StopHandle;
use crate::protocol::RunSummary;
use crate::queue::{Needs, WaitingFor};
use crate::thread::project::SummaryBuilder;

use super::view::RunSnapshot;

/// An action that an executor thread is performing.
pub(super) struct Outstanding {
    /// Which.
    pub action: Action,
    /// Ends its processes.
    pub stop: StopHandle,
}

/// One run that has not been closed.
pub(super) struct Live {
    /// Its specification.
    pub spec: Arc<RunSpec>,
    /// Where it is.
    pub run: Arc<Run>,
    /// Its journal.
    pub entries: Arc<Vec<Arc<Entry>>>,
    /// The action under way.
    pub outstanding: Option<Outstanding>,
    /// Why it waits, in words.
    pub waiting_for: Option<String>,
    /// Why the queue holds it back, as of the last look.
    pub waits_in_queue_for: Option<WaitingFor>,
    /// When its present timer was first seen, in milliseconds of the monotonic clock.
    pub timer_since_ms: u64,
    /// Whether its thread has been written after its end.
    pub settled: bool,
    /// Whether its owner was lost and this engine has not settled it.
    pub lost: bool,
    /// Whether a user has cancelled the push of its result.
    pub push_cancelled: bool,
    instants: SummaryBuilder,
}

impl Live {
    /// A run whose journal is `entries`.
    pub(super) fn new(spec: Arc<RunSpec>, run: Run, entries: Vec<Entry>) -> Live {
        let instants = instants(&entries);
        Live {
            spec,
            run: Arc::new(run),
            entries: Arc::new(entries.into_iter().map(Arc::new).collect()),
            outstanding: None,
            waiting_for: None,
            waits_in_queue_for: None,
            timer_since_ms: 0,
            settled: false,
            lost: false,
            push_cancelled: false,
            instants,
        }
    }

    /// Applies an event and appends it to the journal in memory.
    pub(super) fn record(&mut self, at: Timestamp, event: Event) -> Result<Entry, IllegalEvent> {
        self.run = Arc::new(self.run.apply(at, &event)?);
        let seq = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let entry = Entry { seq, at, event };
        self.instants.push(&entry, &self.run);
        Arc::make_mut(&mut self.entries).push(Arc::new(entry.clone()));
        Ok(entry)
    }

    /// What the run needs before it may start.
    pub(super) fn needs(&self) -> Needs {
        let mut needs = needs(&self.spec);
        // Its result has landed: other runs may change the repository while it is pushed.
        if matches!(self.run.state, State::Announcing { .. }) && self.pushes() {
            needs.repository = None;
        }
        needs
    }

    /// Returns whether the first hook after its commit is the push that its definition asks for.
    pub(super) fn pushes(&self) -> bool {
        let tree = self.spec.tree.as_ref();
        tree.is_some_and(|tree| tree.push.is_some())
    }

    /// The run as readers see it.
    pub(super) fn shown(&self) -> Arc<RunSnapshot> {
        Arc::new(RunSnapshot {
            spec: Arc::clone(&self.spec),
            run: Arc::clone(&self.run),
            entries: Arc::clone(&self.entries),
            summary: self.summary(),
            settled: self.settled,
            lost: self.lost,
        })
    }

    /// The run's line in lists.
    pub(super) fn summary(&self) -> RunSummary {
        let explained = self.run.is_queued() || self.lost;
        let waiting_for = match &self.run.state {
            State::Publishing { .. } if !explained => {
                let why = self.run.facts.waits_for.as_ref();
                why.map(|why| format!("its commit to land: {why}"))
            }
            State::AwaitingApproval { since, for_ms } => Some(format!(
                "a person's approval until {}",
                since.plus_millis(*for_ms).rfc3339()
            )),
            State::Queued if self.run.facts.waits_until.is_some() => {
                self.waiting_for.clone().or_else(|| self.why_early())
            }
            _ => self.waiting_for.clone().filter(|_| explained),
        };
        self.instants.build(&self.spec, &self.run, waiting_for)
    }

    /// Until when the queue holds it back.
    pub(super) fn early_until(&self) -> Option<Timestamp> {
        self.spec.not_before.max(self.run.facts.waits_until)
    }

    /// Why the queue holds it back until its time, in words.
    pub(super) fn why_early(&self) -> Option<String> {
        if let Some(until) = self.run.facts.waits_until {
            let until = until.rfc3339();
            return Some(format!("the rate limit of its model to end: {until}"));
        }
        let time = self.spec.not_before?;
        Some(format!("its time: {}", time.rfc3339()))
    }

    /// Whether the run waits for time or has a limit that counts.
    pub(super) fn is_timed(&self) -> bool {
        matches!(self.run.state, State::BackingOff { .. }) || self.run.runtime_limit().is_some()
    }
}

/// What a run needs before it may start.
pub(super) fn needs(spec: &RunSpec) -> Needs {
    Needs {
        worker: spec.skill.worker.clone(),
        repository: spec
            .plan
            .mutating
            .then(|| spec.repository.clone())
            .filter(|_| spec.tree.as_ref().is_none_or(|tree| !tree.parallel))
            .flatten(),
        destinations: spec
            .outputs
            .iter()
            .filter_map(|output| output.path.clone())
            .collect(),
        schedule: spec
            .scheduled
            .as_ref()
            .filter(|due| !due.beside)
            .map(|due| due.schedule.clone()),
    }
}

/// The instants that a journal tells of, as far as it folds.
fn instants(entries: &[Entry]) -> SummaryBuilder {
    let mut instants = SummaryBuilder::new();
    let mut run: Option<Run> = None;
    for entry in entries {
        run = match run {
            None => Run::submitted(&entry.event).ok(),
            Some(run) => run.apply(entry.at, &entry.event).ok(),
        };
        match &run {
            Some(run) => instants.push(entry, run),
            None => break,
        }
    }
    instants
}
