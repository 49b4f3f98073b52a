//! What readers see: runs as of the last commit, and who watches them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

use super::changes::Changes;
use super::spending::{LiveRuns, Spending};
use crate::machine::{Entry, Run};
use crate::model::{Diagnostic, RunId, RunSpec};
use crate::protocol::{Change, FailingView, NextDue, OverdueView, RunSummary, WatchEvent};
use crate::store::Shortage;

/// Lines and changes that one watcher may be behind.
const WATCH_BACKLOG_MAX: usize = 4_096;

/// Watchers of all runs together.
const WATCHERS_MAX: usize = 256;

/// One run as of the last commit.
#[derive(Clone)]
pub(super) struct RunSnapshot {
    /// Its specification.
    pub spec: Arc<RunSpec>,
    /// Where it is.
    pub run: Arc<Run>,
    /// Its journal.
    pub entries: Arc<Vec<Arc<Entry>>>,
    /// Its line in lists.
    pub summary: RunSummary,
    /// Whether its thread has been written after its end.
    pub settled: bool,
    /// Whether its owner was lost and nobody has settled it.
    pub lost: bool,
}

/// The runs that have not ended, counted.
#[derive(Default)]
pub(super) struct Open {
    /// Waiting for their turn.
    pub queued: usize,
    /// Waiting for a person.
    pub awaiting: usize,
    /// Waiting for their next attempt.
    pub backing_off: usize,
    /// Under way.
    pub running: usize,
    /// The oldest of all.
    pub first: Vec<RunSummary>,
}

/// In which condition the engine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    /// Accepting and starting runs.
    Ready,
    /// Ending: nothing new starts.
    Draining,
    /// Waiting for space for the store.
    Short(Shortage),
}

impl Condition {
    /// The condition's name in every interface.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Condition::Ready => "ready",
            Condition::Draining => "draining",
            Condition::Short(shortage) => shortage.code(),
        }
    }
}

/// What is due next, and what should have succeeded by now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Agenda {
    /// How many schedules are active.
    pub schedules: usize,
    /// What is due next.
    pub next: Option<NextDue>,
    /// What is overdue, bounded.
    pub overdue: Vec<OverdueView>,
    /// Whose last run did not succeed, bounded.
    pub failing: Vec<FailingView>,
}

/// Told when the agenda has changed.
type Hears = Box<dyn Fn() + Send + Sync>;

struct Watcher {
    channel: SyncSender<WatchEvent>,
    lost: u64,
    /// Lives as long as the other end.
    there: Weak<()>,
}

/// The other end of a watcher; dropping it frees its place.
pub(super) struct Watching {
    /// What happens to the run.
    pub events: Receiver<WatchEvent>,
    _there: Arc<()>,
}

/// The published view.
#[derive(Default)]
pub(super) struct View {
    runs: RwLock<BTreeMap<RunId, Arc<RunSnapshot>>>,
    watchers: Mutex<HashMap<RunId, Vec<Watcher>>>,
    /// Foreground runs that have lost their client.
    left: Mutex<HashSet<RunId>>,
    draining: AtomicBool,
    shortage: Mutex<Option<Shortage>>,
    turned_at_ms: AtomicU64,
    committing_since_ms: AtomicU64,
    ended: OnceLock<Result<(), Diagnostic>>,
    at_end: Mutex<Vec<AtEnd>>,
    agenda: RwLock<Agenda>,
    /// What the runs of the day have spent.
    pub(super) spending: Spending,
    hears: OnceLock<Hears>,
    /// What those are told who follow everything.
    pub(super) changes: Changes,
}

impl LiveRuns for View {
    fn each(&self, see: &mut dyn FnMut(&RunSummary)) {
        for shown in self.runs() {
            see(&shown.summary);
        }
    }
}

/// What is done once the engine has ended.
type AtEnd = Box<dyn FnOnce() + Send>;

impl View {
    /// Shows runs as they are after a commit; `None` drops one that the store alone holds from now on.
    pub(super) fn publish(&self, changes: Vec<(RunId, Option<Arc<RunSnapshot>>)>) {
        let mut told = Vec::new();
        {
            let mut runs = self.runs.write().unwrap_or_else(PoisonError::into_inner);
            for (run, shown) in changes {
                if let Some(shown) = shown {
                    told.push(Arc::clone(&shown));
                    runs.insert(run, shown);
                } else {
                    runs.remove(&run);
                    self.left().remove(&run);
                }
            }
        }
        for shown in told {
            self.spending.note(&shown.summary);
            self.changed(&shown.summary);
            if shown.settled {
                self.watchers().remove(&shown.summary.run);
            }
        }
    }

    /// One run that the store alone does not hold yet.
    pub(super) fn run(&self, run: RunId) -> Option<Arc<RunSnapshot>> {
        self.runs
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&run)
            .cloned()
    }

    /// Tells everybody that a run is another now.
    fn changed(&self, summary: &RunSummary) {
        if self.is_watched(summary.run) {
            let event = WatchEvent::Changed(Box::new(summary.clone()));
            self.told(summary.run, &event);
        }
        self.changes.run(summary.clone());
    }

    /// All such runs, oldest first.
    pub(super) fn runs(&self) -> Vec<Arc<RunSnapshot>> {
        self.runs
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    /// Such runs that are older than `before`, newest first, at most so many.
    pub(super) fn newest(&self, before: Option<RunId>, most: usize) -> Vec<Arc<RunSnapshot>> {
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        let older = match before {
            Some(before) => runs.range(..before),
            None => runs.range(..),
        };
        older
            .rev()
            .map(|(_, shown)| Arc::clone(shown))
            .take(most)
            .collect()
    }

    /// How many runs have not ended, and the lines of the oldest `shown_max` of them.
    pub(super) fn open(&self, shown_max: usize) -> Open {
        let runs = self.runs.read().unwrap_or_else(PoisonError::into_inner);
        let mut open = Open::default();
        for shown in runs.values().filter(|shown| !shown.run.is_finished()) {
            if shown.run.asked().is_some() {
                open.awaiting += 1;
            } else if shown.run.is_queued() {
                open.queued += 1;
            } else if shown.run.backoff().is_some() {
                open.backing_off += 1;
            } else {
                open.running += 1;
            }
            if open.first.len() < shown_max {
                open.first.push(shown.summary.clone());
            }
        }
        open
    }

    /// Shows what is due next and what is overdue; whoever hears is told where that is news.
    pub(super) fn set_agenda(&self, agenda: Agenda) {
        let mut shown = self.agenda.write().unwrap_or_else(PoisonError::into_inner);
        if *shown == agenda {
            return;
        }
        *shown = agenda;
        drop(shown);
        self.changes.other(Change::Schedules);
        if let Some(hears) = self.hears.get() {
            hears();
        }
    }

    /// What is due next and what is overdue, as of the last commit.
    pub(super) fn agenda(&self) -> Agenda {
        let agenda = self.agenda.read();
        agenda.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has `hears` told, briefly, when the agenda changes; the first who asks is the only one.
    pub(super) fn on_agenda(&self, hears: Hears) {
        let _ = self.hears.set(hears);
    }

    /// Whether anybody watches a run.
    pub(super) fn is_watched(&self, run: RunId) -> bool {
        self.watchers().contains_key(&run)
    }

    /// Notes that a foreground run has lost its client, unless another one watches it.
    pub(super) fn lost_client(&self, run: RunId) {
        let watchers = self.watchers();
        let is_there = |watcher: &Watcher| watcher.there.strong_count() > 0;
        if !watchers
            .get(&run)
            .is_some_and(|list| list.iter().any(is_there))
        {
            tracing::info!(
                run = run.short(),
                "its client disconnected: a notification is sent when the run ends"
            );
            self.left().insert(run);
        }
    }

    /// Whether a foreground run has lost its client.
    pub(super) fn has_lost_client(&self, run: RunId) -> bool {
        self.left().contains(&run)
    }

    fn left(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a run; `None` when too many watch already.
    pub(super) fn watch(&self, run: RunId) -> Option<Watching> {
        let mut watchers = self.watchers();
        // Those that left a silent run have not been told anything since, and so still stand there.
        watchers.retain(|_, list| {
            list.retain(|watcher| watcher.there.strong_count() > 0);
            !list.is_empty()
        });
        if watchers.values().map(Vec::len).sum::<usize>() >= WATCHERS_MAX {
            return None;
        }
        let (channel, events) = sync_channel(WATCH_BACKLOG_MAX);
        let there = Arc::new(());
        watchers.entry(run).or_default().push(Watcher {
            channel,
            lost: 0,
            there: Arc::downgrade(&there),
        });
        Some(Watching {
            events,
            _there: there,
        })
    }

    /// Nothing is published any more: every watcher is let go.
    pub(super) fn end(&self, ended: Result<(), Diagnostic>) {
        // What was told first holds.
        let _ = self.ended.set(ended);
        self.watchers().clear();
        self.changes.close();
        let waiting = std::mem::take(&mut *self.at_end());
        for told in waiting {
            told();
        }
    }

    /// Does this once the engine has ended; at once, if it has already.
    pub(super) fn on_end(&self, told: AtEnd) {
        self.at_end().push(told);
        if let Some(ended) = self.ended() {
            self.end(ended.clone());
        }
    }

    fn at_end(&self) -> MutexGuard<'_, Vec<AtEnd>> {
        self.at_end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the engine has ended, if it has.
    pub(super) fn ended(&self) -> Option<&Result<(), Diagnostic>> {
        self.ended.get()
    }

    /// Tells the watchers of a run.
    pub(super) fn told(&self, run: RunId, event: &WatchEvent) {
        let mut watchers = self.watchers();
        let Some(list) = watchers.get_mut(&run) else {
            return;
        };
        list.retain_mut(|watcher| watcher.tell(event));
        if list.is_empty() {
            watchers.remove(&run);
        }
    }

    fn watchers(&self) -> MutexGuard<'_, HashMap<RunId, Vec<Watcher>>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// In which condition the engine is.
    pub(super) fn condition(&self) -> Condition {
        if let Some(shortage) = *self.shortage() {
            Condition::Short(shortage)
        } else if self.draining.load(Ordering::Relaxed) {
            Condition::Draining
        } else {
            Condition::Ready
        }
    }

    pub(super) fn set_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
        self.changes
            .other(Change::Condition(self.condition().name()));
    }

    fn shortage(&self) -> MutexGuard<'_, Option<Shortage>> {
        self.shortage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_shortage(&self, shortage: Option<Shortage>) {
        let before = std::mem::replace(&mut *self.shortage(), shortage);
        if before != shortage {
            self.changes
                .other(Change::Condition(self.condition().name()));
        }
    }

    pub(super) fn turned(&self, monotonic_ms: u64) {
        self.turned_at_ms.store(monotonic_ms, Ordering::Relaxed);
    }

    pub(super) fn turned_at_ms(&self) -> u64 {
        self.turned_at_ms.load(Ordering::Relaxed)
    }

    /// Milliseconds of the monotonic clock plus one when the commit under way began; 0: none is.
    pub(super) fn set_committing_since(&self, since_ms_plus_1: u64) {
        self.committing_since_ms
            .store(since_ms_plus_1, Ordering::Relaxed);
    }

    pub(super) fn committing_since(&self) -> Option<u64> {
        self.committing_since_ms
            .load(Ordering::Relaxed)
            .checked_sub(1)
    }
}

impl Watcher {
    /// Whether the watcher is still there.
    fn tell(&mut self, event: &WatchEvent) -> bool {
        if self.lost > 0 {
            match self
                .channel
                .try_send(WatchEvent::Lagged { lost: self.lost })
            {
                Ok(()) => self.lost = 0,
                Err(TrySendError::Full(_)) => {
                    self.lost += 1;
                    return true;
                }
                Err(TrySendError::Disconnected(_)) => return false,
            }
        }
        match self.channel.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.lost += 1;
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_left_a_silent_run_takes_no_place() {
        let view = View::default();
        let run: RunId = "01JC0000000000000000000001".parse().unwrap();
        let all: Vec<Watching> = (0..WATCHERS_MAX).filter_map(|_| view.watch(run)).collect();
        assert_eq!(all.len(), WATCHERS_MAX);
        assert!(view.watch(run).is_none());
        drop(all);
        let again = view.watch(run);
        assert!(again.is_some() && view.is_watched(run));
    }
}
