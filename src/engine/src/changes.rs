//! What has changed of late, in its order, for readers who follow everything.
//!
//! Writers append under a lock and wait for nobody. Each reader goes on from a number: what it missed of one run comes
//! to the newest state of that run, and what is not kept any more is told as such.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::protocol::{Change, RunSummary};

/// Changes that are kept for readers who are behind, or were cut off and come again.
const KEPT_MAX: usize = 2_048;

/// More changed runs at once are told as a number.
const RUNS_TOLD_MAX: usize = 100;

/// How often a reader is told something at most, on average: often enough for eyes, and seldom enough that many readers
/// cost the engine nothing.
const PACE: Duration = Duration::from_millis(100);

/// How many times a reader may be told something before that pace holds.
const AT_ONCE_MAX: u32 = 25;

/// How often a reader to whom nothing is told is asked whether it is still there.
const LOOK: Duration = Duration::from_secs(5);

/// A run as it was after a commit. Its text is made for the first reader, and serves all.
pub(super) struct ChangedRun {
    summary: RunSummary,
    text: OnceLock<Arc<str>>,
}

impl ChangedRun {
    fn text(&self) -> Arc<str> {
        let text = || {
            serde_json::to_string(&self.summary)
                .unwrap_or_default()
                .into()
        };
        Arc::clone(self.text.get_or_init(text))
    }
}

#[derive(Clone)]
enum Kept {
    Run(Arc<ChangedRun>),
    Other(Change),
}

struct Inner {
    /// Number of the next change.
    next: u64,
    kept: VecDeque<Kept>,
    closed: bool,
}

/// The changes since the engine started.
pub(super) struct Changes {
    /// Tells the numbers of this engine from those of an earlier one.
    engine: String,
    inner: Mutex<Inner>,
    more: Condvar,
}

impl Default for Changes {
    fn default() -> Changes {
        let mut random = [0; 8];
        // A number that is the same again would only tell a reader of an earlier engine less than it should know.
        let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
        Changes {
            engine: format!("{:016x}", u64::from_ne_bytes(random)),
            inner: Mutex::new(Inner {
                next: 0,
                kept: VecDeque::new(),
                closed: false,
            }),
            more: Condvar::new(),
        }
    }
}

impl Changes {
    /// A run is another now.
    pub(super) fn run(&self, summary: RunSummary) {
        self.push(Kept::Run(Arc::new(ChangedRun {
            summary,
            text: OnceLock::new(),
        })));
    }

    /// Something else is.
    pub(super) fn other(&self, change: Change) {
        self.push(Kept::Other(change));
    }

    fn push(&self, change: Kept) {
        let mut inner = self.inner();
        inner.next += 1;
        if inner.kept.len() == KEPT_MAX {
            inner.kept.pop_front();
        }
        inner.kept.push_back(change);
        drop(inner);
        self.more.notify_all();
    }

    /// Nothing changes any more.
    pub(super) fn close(&self) {
        self.inner().closed = true;
        self.more.notify_all();
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells what changes behind `after`, an id that was told earlier, until the engine ends or the callback breaks.
    pub(super) fn follow(
        &self,
        after: Option<&str>,
        tell: &mut dyn FnMut(&str, &[Change]) -> ControlFlow<()>,
    ) {
        let (mut seen, resumed) = self.from(after);
        let mut pace = Pace::new();
        let mut changes = vec![Change::Hello { resumed }];
        loop {
            let id = format!("{}-{seen}", self.engine);
            if tell(&id, &changes).is_break() {
                return;
            }
            if !changes.is_empty() {
                pace.keep();
            }
            let Some((next, kept)) = self.behind(seen) else {
                return;
            };
            changes = told(kept);
            seen = next;
        }
    }

    /// The number behind which a reader goes on, and whether it missed nothing.
    fn from(&self, after: Option<&str>) -> (u64, bool) {
        let inner = self.inner();
        let oldest = inner.next - inner.kept.len() as u64;
        let number = after.and_then(|id| id.strip_prefix(&*self.engine)?.strip_prefix('-'));
        let number = number.and_then(|number| number.parse::<u64>().ok());
        match number.filter(|number| (oldest..=inner.next).contains(number)) {
            Some(number) => (number, true),
            None => (inner.next, false),
        }
    }

    /// What has changed since, once something has, or after a while; `None` where the engine has ended.
    fn behind(&self, seen: u64) -> Option<(u64, Vec<Kept>)> {
        let inner = self.inner();
        let waits = |inner: &mut Inner| inner.next == seen && !inner.closed;
        let (inner, _) = self
            .more
            .wait_timeout_while(inner, LOOK, waits)
            .unwrap_or_else(PoisonError::into_inner);
        if inner.next == seen && inner.closed {
            return None;
        }
        let oldest = inner.next - inner.kept.len() as u64;
        if seen < oldest {
            let lost = Kept::Other(Change::Many {
                count: oldest - seen,
            });
            return Some((inner.next, vec![lost]));
        }
        let passed = usize::try_from(seen - oldest).unwrap_or(usize::MAX);
        Some((
            inner.next,
            inner.kept.iter().skip(passed).cloned().collect(),
        ))
    }
}

/// What is told of changes: of each run its newest state, of everything else that it has changed.
fn told(kept: Vec<Kept>) -> Vec<Change> {
    let mut newest: HashMap<_, usize> = HashMap::new();
    for (at, change) in kept.iter().enumerate() {
        if let Kept::Run(run) = change {
            newest.insert(run.summary.run, at);
        }
    }
    let many = newest.len() > RUNS_TOLD_MAX;
    let mut told = Vec::new();
    if many {
        told.push(Change::Many {
            count: newest.len() as u64,
        });
    }
    for (at, change) in kept.into_iter().enumerate() {
        match change {
            Kept::Run(run) if !many && newest.get(&run.summary.run) == Some(&at) => {
                told.push(Change::Run(run.text()));
            }
            Kept::Run(_) => {}
            // The reader looks at what has changed after what is told before it.
            Kept::Other(change) => {
                told.retain(|one| *one != change);
                told.push(change);
            }
        }
    }
    told
}

/// Holds a reader to its pace.
struct Pace {
    left: u32,
    since: Instant,
}

impl Pace {
    fn new() -> Pace {
        Pace {
            left: AT_ONCE_MAX,
            since: Instant::now(),
        }
    }

    fn keep(&mut self) {
        let passed = self.since.elapsed().as_millis() / PACE.as_millis();
        let gained = u32::try_from(passed).unwrap_or(AT_ONCE_MAX);
        if gained > 0 {
            self.left = self.left.saturating_add(gained).min(AT_ONCE_MAX);
            self.since = Instant::now();
        }
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => std::thread::sleep(PACE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RunId, Timestamp};

    fn summary_of(n: u64) -> RunSummary {
        let run = RunId::lowest_of(Timestamp::from_millis(i64::try_from(n).unwrap()));
        let summary = serde_json::json!({
            "run": run, "skill": {"worker": "w", "skill": "s"}, "phase": "queued", "outcome": null,
            "unverified": false, "reconciled": false, "mutating": false, "attempts": 0,
            "submitted_at": "2026-11-26T05:00:00.000Z", "started_at": null, "finished_at": null,
            "commit": null, "thread": "T-20261126-050000-w-s-00000000"
        });
        serde_json::from_value(summary).unwrap()
    }

    /// What a reader behind this id is told first, and the id of it.
    fn first(changes: &Changes, after: Option<&str>) -> (String, Vec<Change>) {
        let mut told = None;
        changes.follow(after, &mut |id, changes| {
            told = Some((id.to_owned(), changes.to_vec()));
            ControlFlow::Break(())
        });
        told.unwrap()
    }

    /// Everything that a reader behind this id is told until the engine ends.
    fn all(changes: &Changes, after: &str) -> Vec<Change> {
        let mut told = Vec::new();
        changes.close();
        changes.follow(Some(after), &mut |_, changes| {
            told.extend(changes.to_vec());
            ControlFlow::Continue(())
        });
        told
    }

    #[test]
    fn a_reader_that_comes_again_is_told_the_newest_of_what_it_missed() {
        let changes = Changes::default();
        let (id, hello) = first(&changes, None);
        assert_eq!(hello, [Change::Hello { resumed: false }]);
        let mut summary = summary_of(1);
        changes.run(summary.clone());
        changes.other(Change::Schedules);
        summary.attempts += 1;
        changes.run(summary.clone());
        changes.other(Change::Schedules);
        let text = serde_json::to_string(&summary).unwrap();
        let expected = [
            Change::Hello { resumed: true },
            Change::Run(text.into()),
            Change::Schedules,
        ];
        assert_eq!(all(&changes, &id), expected);
        // Another engine counts anew.
        let other = Changes::default();
        assert_eq!(
            first(&other, Some(&id)).1,
            [Change::Hello { resumed: false }]
        );
    }

    #[test]
    fn more_than_is_kept_or_told_is_a_number() {
        let changes = Changes::default();
        let (id, _) = first(&changes, None);
        for n in 0..=RUNS_TOLD_MAX as u64 {
            changes.run(summary_of(n));
        }
        let (later, _) = first(&changes, None);
        let many = |count| [Change::Hello { resumed: true }, Change::Many { count }];
        assert_eq!(all(&changes, &id), many(RUNS_TOLD_MAX as u64 + 1));
        for _ in 0..=KEPT_MAX {
            changes.other(Change::Definitions);
        }
        assert_eq!(
            first(&changes, Some(&later)).1,
            [Change::Hello { resumed: false }]
        );
    }
}
