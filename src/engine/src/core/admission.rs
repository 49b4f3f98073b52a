//! Admission, recovery's entry, and giving a run up.

use super::super::live::Live;
use super::approvals::deadline;
use super::{Core, Turn};
use crate::machine::{CancelKind, Event, State};
use crate::model::outcome::{Outcome, Phase};
use crate::model::{Diagnostic, Kind, RunId};
use crate::queue::{Lease, WaitingFor};
use crate::store::Write;

/// For how many waiting runs the reason is kept up to date.
const REASONS_MAX: usize = 50;

/// Engines that may be lost one after another in the same step of a run. The next one gives the run up: what the run left
/// may be what ends them, and then no engine would start again.
const LOSSES_MAX: usize = 4;

/// Why a run is given up that [`LOSSES_MAX`] engines did not survive.
pub(crate) const RECOVERY_FAILED: &str = "recovery_failed";

/// What earlier engines may have left running.
pub(crate) trait Orphans: Send {
    /// Whether this very process stems from what is left of the run.
    fn hold_us(&self, live: &Live) -> bool;
    /// Ends what is left of the run's processes; false: something could not be ended.
    fn end_of(&self, live: &Live) -> bool;
    /// Ends what is left of runs that are not held, because the store that knew them was lost.
    fn end_of_others(&self, held: &dyn Fn(RunId) -> bool);
}

impl Core {
    /// Admits every run that may start, in the same commit as whatever made room for it.
    pub(super) fn admit(&mut self, turn: &mut Turn) {
        if self.draining.is_some() {
            return;
        }
        let admitted = self.queue.admit();
        for run in &admitted {
            let admission = self.admission.clone();
            self.record(turn, *run, Event::Admitted { admission });
        }
        if !turn.changed.is_empty() {
            self.explain_waiting(turn);
        }
    }

    fn explain_waiting(&mut self, turn: &mut Turn) {
        let waiting: Vec<RunId> = self.queue.first_waiting(REASONS_MAX);
        for run in waiting {
            let reason = self.queue.waiting_for(run);
            if let Some(live) = self.live.get_mut(&run)
                && live.waits_in_queue_for != reason
            {
                let early = live.why_early();
                live.waiting_for = reason.as_ref().map(|reason| describe(reason, early));
                live.waits_in_queue_for = reason;
                turn.changed.insert(run);
            }
        }
    }

    /// Takes in a run of an earlier engine, its processes dead. Its journal is folded already.
    pub(crate) fn recover(&mut self, live: Live) {
        let run = live.spec.run;
        if live.spec.foreground && !live.run.is_finished() {
            self.view.lost_client(run);
        }
        let needs = live.needs();
        let queued = live.run.is_queued();
        let finished = live.run.is_finished();
        let lands = live.run.facts.held.is_some();
        if let Some(by) = live.run.asked() {
            self.asked.insert((deadline(by), run));
            self.live.insert(run, live);
            return;
        }
        self.live.insert(run, live);
        if queued {
            self.queue.readmit(run, needs);
            self.hold_until_time(run);
            // What somebody has approved only has to land.
            if !self.starts_queued && !lands {
                self.queue.hold_back(run);
            }
        } else if !finished {
            self.queue.resume(run, needs);
        }
    }

    /// Whether a run is held by this loop.
    pub(crate) fn holds(&self, run: RunId) -> bool {
        self.live.contains_key(&run)
    }

    /// Settles what earlier engines lost: now, or where only reading is asked for not before somebody
    /// asks for more.
    pub(crate) fn settle(
        &mut self,
        orphans: Box<dyn Orphans>,
        at_once: bool,
    ) -> Result<(), Diagnostic> {
        self.unsettled = Some(orphans);
        if at_once {
            return self.settle_now();
        }
        let mut turn = Turn::default();
        for (run, live) in &mut self.live {
            let is_under_way = !live.run.is_queued() && live.run.asked().is_none();
            live.lost = is_under_way && !live.run.is_finished();
            if live.lost {
                live.waiting_for =
                    Some("an engine to recover it: the engine that executed it crashed".to_owned());
            }
            turn.changed.insert(*run);
        }
        self.explain_waiting(&mut turn);
        self.publish(&mut turn);
        Ok(())
    }

    /// Records for every recovered run that its owner was lost, and goes on from there.
    pub(super) fn settle_now(&mut self) -> Result<(), Diagnostic> {
        let Some(orphans) = &self.unsettled else {
            return Ok(());
        };
        if let Some(live) = self.live.values().find(|live| orphans.hold_us(live)) {
            return Err(within_lost(live.spec.run));
        }
        let Some(orphans) = self.unsettled.take() else {
            return Ok(());
        };
        orphans.end_of_others(&|run| self.live.contains_key(&run));
        let mut turn = Turn::default();
        self.charge_parents(&mut turn);
        let mut runs: Vec<RunId> = self.live.keys().copied().collect();
        runs.sort_unstable();
        for run in runs {
            let Some(live) = self.live.get_mut(&run) else {
                continue;
            };
            turn.changed.insert(run);
            if !orphans.end_of(live) {
                live.lost = true;
                live.waiting_for = Some("its own processes, which cannot be ended".to_owned());
                continue;
            }
            live.lost = false;
            if live.spec.parent.is_some() && !live.run.is_finished() {
                // Nobody waits for it any more: the run that started it was lost too, or starts it again.
                let (kind, by) = (CancelKind::Now, "the loss of the run that started it");
                let by = by.to_owned();
                self.record(&mut turn, run, Event::CancelRequested { kind, by });
            }
            let Some(live) = self.live.get_mut(&run) else {
                continue;
            };
            match &live.run.state {
                State::Queued | State::AwaitingApproval { .. } | State::Finished { .. } => {}
                State::BackingOff { .. } => {
                    live.timer_since_ms = self.clock.monotonic_ms();
                    self.timed.insert(run);
                    self.queue.park(run);
                }
                _ if live.run.facts.commit.is_none() && losses(live) >= LOSSES_MAX => {
                    tracing::error!(%run, losses = LOSSES_MAX, "each engine that went on with the run was lost; its outcome is unknown");
                    let why = RECOVERY_FAILED.to_owned();
                    self.record(&mut turn, run, Event::GivenUp { why });
                }
                _ => self.record(&mut turn, run, Event::OwnerLost),
            }
        }
        self.admit(&mut turn);
        self.commit(&mut turn)?;
        self.publish(&mut turn);
        self.dispatch(&turn.changed);
        Ok(())
    }

    /// What children have spent whose parents were lost with them: nobody else would count it.
    fn charge_parents(&mut self, turn: &mut Turn) {
        let spent = |live: &Live| {
            let parent = live.spec.parent.as_ref()?;
            let of_parent = self.live.get(&parent.run)?;
            let (run, facts) = (live.spec.run, &live.run.facts);
            let is_known = of_parent.entries.iter().any(
                |entry| matches!(&entry.event, Event::ChildEnded { run: known, .. } if *known == run),
            );
            let event = Event::ChildEnded {
                attempt: parent.attempt,
                run,
                turns: facts.all_turns,
                // Its own loss is recorded only after this.
                spent: facts.spent.plus(facts.in_flight.unwrap_or_default()),
                failed: None,
            };
            let executes = matches!(of_parent.run.state, State::Executing { attempt, .. } if attempt == parent.attempt);
            (executes && !is_known).then_some((parent.run, event))
        };
        let charges: Vec<(RunId, Event)> = self.live.values().filter_map(spent).collect();
        for (parent, event) in charges {
            self.record(turn, parent, event);
        }
    }

    /// Ends a run whose journal and machine disagree; its journal is kept for a person.
    pub(super) fn give_up(&mut self, turn: &mut Turn, run: RunId, why: &str) {
        let Some(live) = self.live.remove(&run) else {
            return;
        };
        let mut summary = live.summary();
        summary.phase = Phase::Finished;
        summary.outcome = Some(Outcome::Unknown {
            why: why.to_owned(),
        });
        summary.finished_at = Some(self.clock.now());
        turn.after.push(Write::Finished(Box::new(summary)));
        turn.after.push(Write::Closed(run));
        turn.dropped.push(run);
        turn.changed.remove(&run);
        self.timed.remove(&run);
        self.queue.release(run);
        let outcome = Outcome::Unknown {
            why: why.to_owned(),
        };
        self.scheduled_run_ended(turn, &live.spec, (&outcome, false));
    }
}

/// Returns how many engines were lost one after another without any progress of the run.
fn losses(live: &Live) -> usize {
    let entries = live.entries.iter().rev();
    entries
        .take_while(|entry| entry.event == Event::OwnerLost)
        .count()
}

/// Whoever settled that run would have to end the processes that it stems from itself.
fn within_lost(run: RunId) -> Diagnostic {
    Diagnostic::new(
        Kind::Conflict,
        "within_lost_run",
        format!("this process was started by a command of run {run}, whose engine crashed"),
    )
    .hint("start an engine outside of it, for example the daemon: it ends the command and recovers the run")
}

fn describe(reason: &WaitingFor, early: Option<String>) -> String {
    match reason {
        WaitingFor::Place => "a free place".to_owned(),
        WaitingFor::Worker(run) => format!("{}, an earlier run of its worker", run.short()),
        WaitingFor::Lease(Lease::Repository(_), run) => {
            format!("{}, which changes the same repository", run.short())
        }
        WaitingFor::Lease(Lease::Schedule(id), run) => {
            format!("{}, an earlier run of the schedule `{id}`", run.short())
        }
        WaitingFor::Lease(Lease::Destination(path), run) => {
            format!("{}, which writes `{path}` too", run.short())
        }
        WaitingFor::Time => early.unwrap_or_default(),
        WaitingFor::Daemon => "a daemon".to_owned(),
    }
}
