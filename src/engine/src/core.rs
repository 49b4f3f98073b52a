//! The core loop: drain the inbox, apply everything, commit once, answer, hand out the actions.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use super::expiry::Expiry;
use super::inbox::{Delivery, Inbox, Mail};
use super::live::Live;
use super::pool::Pool;
use super::prepares::Prepares;
use super::request::{Answer, ENDED_OPEN, Envelope};
use super::scheduler::Scheduler;
use super::stored_schedules::StoredSchedules;
use super::view::{RunSnapshot, View};
use super::work::Effects;
use crate::clock::Clock;
use crate::machine::{Admission, Entry, Event, State};
use crate::model::schedule::{Occurrence, Schedule};
use crate::model::{Diagnostic, Kind, News, RunId, Timestamp};
use crate::protocol::Change;
use crate::queue::Queue;
use crate::store::{Batch, Store, Write};

mod admission;
mod approvals;
mod commit;
mod dispatch;
mod drain;
mod notices;
mod pushes;
mod requests;
mod scheduling;
mod sealing;
#[cfg(test)]
pub(crate) mod tests;
mod timers;

/// Longest wait of the loop: then the wall clock is looked at again.
const TICK: Duration = Duration::from_secs(30);

/// How long more messages are gathered under load before they are committed together.
const GATHER: Duration = Duration::from_micros(1_500);

pub(crate) use admission::{Orphans, RECOVERY_FAILED};
use approvals::deadline;
pub(crate) use notices::Board;
pub(crate) use pushes::FailedPushes;
use sealing::Sealing;

/// What the core loop is built from.
pub(super) struct CoreParts {
    /// Where journals lie.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// By which time things expire.
    pub expiry: Arc<Expiry>,
    /// What readers see.
    pub view: Arc<View>,
    /// Where messages arrive.
    pub inbox: Arc<Inbox>,
    /// What performs actions.
    pub effects: Arc<dyn Effects>,
    /// What makes runs of slots.
    pub prepares: Arc<dyn Prepares>,
    /// What is stored of schedules.
    pub schedules: StoredSchedules,
    /// What the store has to be told.
    pub board: Board,
    /// Branches whose last push failed.
    pub pushes: FailedPushes,
    /// Who this engine is.
    pub admission: Admission,
    /// How many runs may be active.
    pub parallel_max: u32,
    /// How many runs may wait.
    pub waiting_max: u32,
    /// Whether waiting runs of earlier engines are started.
    pub starts_queued: bool,
    /// How long a draining engine waits for running commands, in milliseconds.
    pub drain_grace_ms: u64,
    /// How long rows of slots are kept, in milliseconds.
    pub slots_kept_ms: u64,
}

/// What one turn gathers before it commits.
#[derive(Default)]
struct Turn {
    entries: BTreeMap<RunId, Vec<Entry>>,
    before: Vec<Write>,
    after: Vec<Write>,
    answers: Vec<(Envelope, Reply)>,
    changed: BTreeSet<RunId>,
    lazy: Vec<Write>,
    dropped: Vec<RunId>,
    keys: HashMap<String, (RunId, Timestamp)>,
    /// Who waits until what their run learnt is durable.
    durable: Vec<(RunId, SyncSender<()>)>,
    /// Whether it wrote of schedules or their slots.
    schedules: bool,
    /// Slots whose runs are to be made once what they follow is stored.
    due: Vec<(Arc<Schedule>, Occurrence)>,
}

enum Reply {
    Now(Box<Answer>),
    Summary(RunId),
}

/// The owner of every run: one plain thread.
pub(super) struct Core {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    expiry: Arc<Expiry>,
    view: Arc<View>,
    inbox: Arc<Inbox>,
    pool: Pool,
    admission: Admission,
    starts_queued: bool,
    drain_grace_ms: u64,
    slots_kept_ms: u64,

    queue: Queue,
    live: HashMap<RunId, Live>,
    /// Runs with a limit of time or a pause between attempts.
    timed: HashSet<RunId>,
    /// Waiting runs whose time has not come.
    early: BTreeSet<(Timestamp, RunId)>,
    /// Until when a person is asked about a run.
    asked: BTreeSet<(Timestamp, RunId)>,
    /// How many actions are under way.
    outstanding: usize,
    sealing: Sealing,

    scheduler: Scheduler,
    /// How many slots are being made into runs.
    preparing: usize,
    /// What is to be told.
    board: Board,
    pushes: FailedPushes,

    /// What earlier engines may have left running, until that is settled.
    unsettled: Option<Box<dyn Orphans>>,
    draining: Option<drain::Draining>,
    keys_forgotten_ms: u64,
    /// Whether something was written that waits for the next sync.
    unsynced: bool,
}

impl Core {
    /// A loop without runs.
    pub(super) fn new(parts: CoreParts) -> Core {
        Core {
            pool: Pool::new(parts.effects, parts.prepares, Arc::clone(&parts.inbox)),
            store: parts.store,
            clock: parts.clock,
            expiry: parts.expiry,
            view: parts.view,
            inbox: parts.inbox,
            admission: parts.admission,
            starts_queued: parts.starts_queued,
            drain_grace_ms: parts.drain_grace_ms,
            slots_kept_ms: parts.slots_kept_ms,
            queue: Queue::new(parts.parallel_max, parts.waiting_max),
            live: HashMap::new(),
            timed: HashSet::new(),
            early: BTreeSet::new(),
            asked: BTreeSet::new(),
            outstanding: 0,
            sealing: Sealing::default(),
            scheduler: Scheduler::new(parts.schedules),
            preparing: 0,
            board: parts.board,
            pushes: parts.pushes,
            unsettled: None,
            draining: None,
            keys_forgotten_ms: 0,
            unsynced: false,
        }
    }

    /// Turns until the engine is drained or its store is broken.
    pub(super) fn run(mut self) -> Result<(), Diagnostic> {
        let result = loop {
            if self.is_done() {
                break Ok(());
            }
            self.inbox.wait(self.next_wait());
            if self.outstanding > 1 {
                self.inbox.gather(self.outstanding.div_ceil(2), GATHER);
            }
            let mail = self.inbox.take();
            if let Err(error) = self.turn(mail) {
                break Err(error);
            }
        };
        // What waits for a sync does not wait for the store to be dropped: somebody else may hold it, too.
        if result.is_ok()
            && self.unsynced
            && let Err(error) = self.store.commit(&Batch { writes: Vec::new() })
        {
            tracing::warn!(%error, "the last that was written is not durable");
        }
        self.report_drained(&result);
        self.inbox.close();
        self.pool.close();
        result
    }

    /// One turn: everything that has arrived, one commit, all answers, all actions.
    pub(super) fn turn(&mut self, mail: Mail) -> Result<(), Diagnostic> {
        self.view.turned(self.clock.monotonic_ms());
        let mut requests = mail.requests.iter();
        if requests.any(|envelope| envelope.request.changes_runs())
            && let Err(refused) = self.settle_now()
        {
            for envelope in mail.requests {
                envelope.answer(Err(refused.clone()));
            }
            return Err(refused);
        }
        let mut turn = Turn::default();
        for delivery in mail.deliveries {
            self.on_delivery(&mut turn, delivery);
        }
        for envelope in mail.requests {
            self.on_request(&mut turn, envelope);
        }
        self.on_time(&mut turn);
        if self.starts_queued && self.draining.is_none() {
            self.ask_scheduler(&mut turn, Scheduler::on_time);
        }
        self.notices_on_time();
        self.admit(&mut turn);
        if let Err(error) = self.commit(&mut turn) {
            for (envelope, _) in turn.answers {
                envelope.answer(Err(open(&error)));
            }
            return Err(error);
        }
        self.publish(&mut turn);
        for (run, waits) in turn.durable {
            if !turn.dropped.contains(&run) {
                let _ = waits.send(());
            }
        }
        self.answer(turn.answers);
        self.dispatch(&turn.changed);
        for (schedule, occurrence) in turn.due {
            self.pool.prepare(&schedule, occurrence);
        }
        if let Some(agenda) = self.scheduler.changed_agenda() {
            self.view.set_agenda(agenda);
        }
        self.tell();
        self.push_again();
        self.evict();
        if self.scheduler.has_seen_many() {
            self.pool.give_back_memory();
        }
        self.seal();
        Ok(())
    }

    fn on_delivery(&mut self, turn: &mut Turn, delivery: Delivery) {
        match delivery {
            Delivery::Result { run, event, then } => {
                self.on_result(turn, run, event);
                self.on_following(turn, run, then.map(|then| *then));
            }
            Delivery::Progress {
                run,
                events,
                durable,
            } => self.on_progress(turn, run, events, durable),
            Delivery::Sealed { unwritten } => self.on_sealed(turn, &unwritten),
            Delivery::Prepared { schedule, made } => {
                self.preparing = self.preparing.saturating_sub(1);
                self.ask_scheduler(turn, |scheduler, context| {
                    scheduler.on_prepared(context, &schedule, *made);
                });
            }
            Delivery::Probed {
                schedule,
                own,
                probe,
            } => self.ask_scheduler(turn, |scheduler, context| {
                scheduler.on_probed(context, &schedule, own, probe);
            }),
            Delivery::Notified { subject, told } => self.on_told(turn, &subject, told),
            Delivery::Pushed { push, result } => self.on_pushed(turn, &push, result),
        }
    }

    fn on_result(&mut self, turn: &mut Turn, run: RunId, event: Event) {
        let Some(live) = self.live.get_mut(&run) else {
            return;
        };
        if live.outstanding.take().is_some() {
            self.outstanding -= 1;
        }
        // Only an engine that ends gives up waiting for space: the next one goes on.
        if matches!(&event, Event::Restored { report } if report.out_of_space) {
            live.lost = true;
            return;
        }
        if self
            .draining
            .as_ref()
            .is_some_and(|draining| draining.drops(&live.run))
        {
            return;
        }
        if let Event::Closed = event {
            self.on_closed(turn, run);
        } else {
            self.run_pushed(turn, run, &event);
            self.record(turn, run, event);
        }
    }

    /// A running action goes on; where the run refuses what it learnt, whoever waits is told that it does not count.
    fn on_progress(
        &mut self,
        turn: &mut Turn,
        run: RunId,
        events: Vec<Event>,
        durable: Option<SyncSender<()>>,
    ) {
        for event in events {
            let known = self.live.get(&run).map(|live| live.run.facts.events);
            self.record(turn, run, event);
            let now = self.live.get(&run).map(|live| live.run.facts.events);
            if known.is_none() || known == now {
                return;
            }
        }
        turn.durable.extend(durable.map(|waits| (run, waits)));
    }

    /// An executor went on before the loop had its say: what it did counts where it is what the run asks
    /// for now, and else it is asked for again.
    fn on_following(&mut self, turn: &mut Turn, run: RunId, then: Option<Event>) {
        let live = self.live.get(&run);
        let asked = live.and_then(|live| live.run.next_action());
        if let Some(event) = then
            && asked.is_some_and(|action| action.may_precede_commit())
        {
            self.record(turn, run, event);
        }
    }

    /// Applies an event and puts it into the turn's batch. A refused result would leave the run stuck,
    /// so such a run is given up and its journal kept.
    fn record(&mut self, turn: &mut Turn, run: RunId, event: Event) {
        let now = self.clock.now();
        let Some(live) = self.live.get_mut(&run) else {
            return;
        };
        let was_finished = live.run.is_finished();
        let was_queued = live.run.is_queued();
        let was_asked = live.run.asked();
        let name = event.name();
        match live.record(now, event) {
            Ok(entry) => turn.entries.entry(run).or_default().push(entry),
            Err(refused) => {
                tracing::error!(%run, event = name, error = %refused, "an event was refused");
                if live.outstanding.is_none() && live.run.next_action().is_some() {
                    self.give_up(turn, run, "machine");
                }
                return;
            }
        }
        turn.changed.insert(run);
        match &live.run.state {
            State::BackingOff { .. } => self.queue.park(run),
            // It holds nothing while it waits for a person, and has its turn again when they have answered.
            State::AwaitingApproval { .. } => self.queue.release(run),
            State::Queued if was_asked.is_some() => {
                let needs = live.needs();
                self.queue.readmit(run, needs);
            }
            State::Queued if !was_queued => self.queue.requeue(run),
            State::Announcing { .. } if live.pushes() => self.queue.release_repository(run),
            State::Finished { .. } => {
                turn.after.push(Write::Finished(Box::new(live.summary())));
                if !was_finished {
                    self.queue.release(run);
                }
            }
            _ => self.queue.unpark(run),
        }
        if live.run.asked() != was_asked {
            let is_asked = live.run.asked();
            if let Some(by) = was_asked {
                self.asked.remove(&(deadline(by), run));
            }
            self.asked.extend(is_asked.map(|by| (deadline(by), run)));
        }
        let begins_to_wait = live.run.is_queued() && !was_queued;
        let has_ended = live.run.is_finished() && !was_finished;
        let asks = live.run.asked().filter(|_| was_asked.is_none());
        let asks = asks.map(|by| (Arc::clone(&live.spec), by));
        if live.is_timed() {
            if self.timed.insert(run) || matches!(live.run.state, State::BackingOff { .. }) {
                live.timer_since_ms = self.clock.monotonic_ms();
            }
        } else {
            self.timed.remove(&run);
        }
        if let Some((spec, by)) = asks {
            self.notice_approval(turn, &spec, News::Awaiting, by);
        }
        if begins_to_wait {
            self.wait_again(run);
        }
        let Some(live) = self.live.get(&run).filter(|_| has_ended) else {
            return;
        };
        if let Some(outcome) = live.run.outcome().cloned() {
            let spec = Arc::clone(&live.spec);
            let nothing_to_do = live.run.facts.results.is_nothing_to_do();
            self.notice_end(turn, &spec, &outcome);
            self.scheduled_run_ended(turn, &spec, (&outcome, nothing_to_do));
        }
    }

    fn publish(&mut self, turn: &mut Turn) {
        let shown = |run: &RunId| (*run, self.live.get(run).map(Live::shown));
        let mut changes: Vec<(RunId, Option<Arc<RunSnapshot>>)> =
            turn.changed.iter().map(shown).collect();
        changes.extend(turn.dropped.iter().map(|run| (*run, None)));
        if !changes.is_empty() {
            self.view.publish(changes);
        }
        if turn.schedules {
            self.view.changes.other(Change::Schedules);
        }
    }

    fn answer(&self, answers: Vec<(Envelope, Reply)>) {
        for (envelope, reply) in answers {
            let answer = match reply {
                Reply::Now(answer) => Ok(*answer),
                Reply::Summary(run) => match self.view.run(run) {
                    Some(shown) => Ok(Answer::Run(Box::new(shown.summary.clone()))),
                    None => Err(Diagnostic::new(
                        Kind::NotFound,
                        "run_not_found",
                        "no such run",
                    )),
                },
            };
            envelope.answer(answer);
        }
    }
}

/// What a request is told that was being stored when the engine had to end: after a restart it is there or not.
fn open(ended: &Diagnostic) -> Diagnostic {
    let message = format!(
        "it is unknown whether the request was accepted: {}",
        ended.message
    );
    let mut open = Diagnostic::new(Kind::Open, ENDED_OPEN, message);
    open.hints.clone_from(&ended.hints);
    open
}
