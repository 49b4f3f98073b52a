//! Random batches against a plain model, on sled and in memory, with repetitions and reopenings.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;

use super::sample_runs::{admitted, at, batch, recorded, run, spec, summary};
use crate::machine::Entry;
use crate::model::schedule::{ScheduleState, SlotRow, SlotStatus};
use crate::model::{
    FailedPush, News, Notice, Notices, RunId, RunSpec, Timestamp, WEB_GROUPS_MAX, WebSession,
};
use crate::protocol::{HALF_HOUR_MS, RunSummary, SlotCounts};
use crate::{Batch, MemoryStore, OpenOptions, SledStore, Store, Unreadable, Write};

/// One thing that happens to a run.
#[derive(Debug, Clone)]
enum Step {
    Spec { run: u64, bytes: usize },
    Entries { run: u64, sizes: Vec<usize> },
    Finished { run: u64 },
    Closed { run: u64 },
    Key { name: u8, run: u64 },
    Forget { before: u64 },
    Schedule { name: u8, cursor: i64 },
    Slot { name: u8, from: i64, long: i64 },
    UndoSlot { name: u8, from: i64 },
    Notices { name: u8, waiting: u8 },
    FailedPush { name: u8, begins: bool },
    WebSession { name: u8, begins: bool },
    ForgetRun { run: u64 },
}

/// What is done with a batch.
#[derive(Debug, Clone, Copy)]
enum Way {
    Commit,
    Lazily,
    Twice,
    ThenReopen,
}

/// What a store is to hold.
#[derive(Debug, Default, Clone, PartialEq)]
struct Model {
    specs: BTreeMap<RunId, RunSpec>,
    journals: BTreeMap<RunId, Vec<Entry>>,
    lines: BTreeMap<RunId, RunSummary>,
    active: BTreeSet<RunId>,
    keys: BTreeMap<String, (RunId, Timestamp)>,
    schedules: BTreeMap<String, ScheduleState>,
    slots: BTreeMap<(String, Timestamp), SlotRow>,
    notices: BTreeMap<String, Notices>,
    failed_pushes: BTreeMap<String, FailedPush>,
    web_sessions: BTreeMap<String, WebSession>,
}

/// Instants some half hours apart.
fn minutes(ten: i64) -> Timestamp {
    Timestamp::from_millis(ten * 10 * 60_000)
}

/// Somebody logs in, or out.
fn failed_push(name: u8) -> FailedPush {
    FailedPush {
        repository: "/repository".to_owned(),
        remote: "origin".to_owned(),
        branch: format!("branch-{name}"),
        commit: "c".repeat(40),
        runs: vec![run(u64::from(name))],
        skill: "w/s".parse().unwrap(),
        schedule: None,
        since: at(0),
        tries: 1,
        next_attempt_at: Some(at(1)),
        message: "refused".to_owned(),
        notified: false,
    }
}

fn session(name: u8, begins: bool) -> Write {
    let token_digest = format!("{name:064x}");
    if !begins {
        return Write::EndWebSession(token_digest);
    }
    Write::WebSession(Box::new(WebSession {
        token_digest,
        uid: 1_000,
        groups: vec![u32::MAX; WEB_GROUPS_MAX],
        read_only: false,
        port: 8_930,
        begun_at: at(1),
        expires_at: at(2),
    }))
}

/// One of them begins like another.
fn schedule_id(name: u8) -> String {
    ["w/s", "w/s#2", "w/t"][usize::from(name)].to_owned()
}

impl Model {
    /// The batch of some steps, as an engine would write it: events go on where the journal ends.
    fn batch(&self, steps: &[Step]) -> Batch {
        let mut after = self.clone();
        let mut writes = Vec::new();
        for step in steps {
            let write = match step {
                // It is never written beside what makes a run.
                Step::ForgetRun { .. } if steps.len() > 1 => continue,
                Step::ForgetRun { run: n } => Write::Forget(run(*n)),
                Step::Spec { run, bytes } => Write::Spec(Arc::new(spec(*run, *bytes))),
                Step::Entries { run: n, sizes } => {
                    let next = after.journals.get(&run(*n)).map_or(0, Vec::len);
                    let entries = (u32::try_from(next).unwrap()..)
                        .zip(sizes)
                        .map(|(seq, size)| match size {
                            0 => admitted(*n, seq),
                            _ => recorded(*n, seq, *size),
                        });
                    Write::Entries {
                        run: run(*n),
                        entries: entries.collect(),
                    }
                }
                Step::Finished { run } => Write::Finished(Box::new(summary(*run))),
                Step::Closed { run: n } => Write::Closed(run(*n)),
                Step::Key { name, run: n } => Write::Key {
                    key: format!("key {name}"),
                    run: run(*n),
                    at: at(*n),
                },
                Step::Forget { before } => Write::ForgetKeys(at(*before)),
                Step::Schedule { name, cursor } => {
                    let cursor = Timestamp::from_millis(*cursor);
                    Write::Schedule {
                        id: schedule_id(*name),
                        state: Box::new(ScheduleState::new("d".to_owned(), cursor)),
                    }
                }
                Step::Slot { name, from, long } => Write::Slot {
                    schedule: schedule_id(*name),
                    row: SlotRow {
                        from: minutes(*from),
                        to: minutes(from + long * 7),
                        count: Some(long.unsigned_abs() * 7 + 1),
                        status: SlotStatus::Paused,
                        run: None,
                        outcome: None,
                        at: Timestamp::from_millis(0),
                        reason: None,
                    },
                },
                Step::Notices { name, waiting } => {
                    let skill = "w/s".parse().unwrap();
                    let mut notices = Notices::new(skill, Some(schedule_id(*name)));
                    for _ in 0..*waiting {
                        notices.add(Notice::of(News::Missed, at(1)));
                    }
                    Write::Notices(Box::new(notices))
                }
                Step::FailedPush { name, begins: true } => {
                    Write::FailedPush(Box::new(failed_push(*name)))
                }
                Step::FailedPush { name, .. } => Write::EndFailedPush(failed_push(*name).key()),
                Step::WebSession { name, begins } => session(*name, *begins),
                Step::UndoSlot { name, from } => Write::UndoSlot {
                    schedule: schedule_id(*name),
                    from: minutes(*from),
                },
            };
            after.apply(&write);
            writes.push(write);
        }
        batch(writes)
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::Spec(spec) => {
                let known = self.specs.contains_key(&spec.run);
                self.specs
                    .entry(spec.run)
                    .or_insert_with(|| spec.as_ref().clone());
                if !known {
                    self.active.insert(spec.run);
                }
            }
            Write::Entries { run, entries } => {
                let journal = self.journals.entry(*run).or_default();
                let told = journal.len();
                journal.extend(
                    entries
                        .iter()
                        .filter(|entry| entry.seq as usize >= told)
                        .cloned(),
                );
            }
            Write::Finished(line) => drop(self.lines.insert(line.run, line.as_ref().clone())),
            Write::Closed(run) => drop(self.active.remove(run)),
            Write::Key { key, run, at } => drop(self.keys.insert(key.clone(), (*run, *at))),
            Write::ForgetKeys(before) => self.keys.retain(|_, (_, at)| *at >= *before),
            Write::Schedule { id, state } => {
                self.schedules.insert(id.clone(), state.as_ref().clone());
            }
            Write::Slot { schedule, row } => {
                self.slots.insert((schedule.clone(), row.from), row.clone());
            }
            Write::Forget(run) if self.active.contains(run) => {}
            Write::Forget(run) => {
                self.specs.remove(run);
                self.journals.remove(run);
                self.lines.remove(run);
            }
            Write::ForgetSchedule(id) => drop(self.schedules.remove(id)),
            Write::ForgetCounts(_) | Write::ForgetHours(_) => {}
            Write::WebSession(session) => {
                let digest = session.token_digest.clone();
                self.web_sessions.insert(digest, session.as_ref().clone());
            }
            Write::FailedPush(push) => {
                let push = push.as_ref().clone();
                self.failed_pushes.insert(push.key(), push);
            }
            Write::EndFailedPush(key) => drop(self.failed_pushes.remove(key)),
            Write::EndWebSession(digest) => drop(self.web_sessions.remove(digest)),
            Write::Notices(notices) if notices.is_over() => {
                self.notices.remove(&notices.subject());
            }
            Write::Notices(notices) => {
                self.notices
                    .insert(notices.subject(), notices.as_ref().clone());
            }
            Write::DropSlot { schedule, from } | Write::UndoSlot { schedule, from } => {
                self.slots.remove(&(schedule.clone(), *from));
            }
        }
    }

    fn assert_held_by(&self, store: &dyn Store) {
        let runs: BTreeSet<RunId> = (0..8).map(run).collect();
        for run in &runs {
            assert_eq!(store.spec(*run).unwrap().as_ref(), self.specs.get(run));
            let journal = self.journals.get(run).cloned().unwrap_or_default();
            assert_eq!(store.journal(*run).unwrap(), journal);
            assert_eq!(store.summary(*run).unwrap().as_ref(), self.lines.get(run));
        }
        let active: Vec<RunId> = self.active.iter().copied().collect();
        assert_eq!(store.active().unwrap(), active);
        let mut lines = Vec::new();
        let mut take = |line: RunSummary| {
            lines.push(line.run);
            ControlFlow::Continue(())
        };
        store.summaries(None, &mut take).unwrap();
        let wanted: Vec<RunId> = self.lines.keys().rev().copied().collect();
        assert_eq!(lines, wanted);
        for name in 0..4 {
            let key = format!("key {name}");
            assert_eq!(store.key(&key).unwrap().as_ref(), self.keys.get(&key));
        }
        let mut notices = Vec::new();
        store
            .notices(&mut |one| notices.push(one.unwrap()))
            .unwrap();
        assert_eq!(notices, self.notices.values().cloned().collect::<Vec<_>>());
        let mut pushes = Vec::new();
        let mut take = |push: Result<FailedPush, Unreadable>| pushes.push(push.unwrap());
        store.failed_pushes(&mut take).unwrap();
        let wanted: Vec<FailedPush> = self.failed_pushes.values().cloned().collect();
        assert_eq!(pushes, wanted);
        self.assert_ledgers_held_by(store);
    }
}

impl Model {
    fn assert_ledgers_held_by(&self, store: &dyn Store) {
        let mut schedules = BTreeMap::new();
        let mut take = |id: &str, state: Result<ScheduleState, Unreadable>| {
            schedules.insert(id.to_owned(), state.unwrap());
        };
        store.schedules(&mut take).unwrap();
        assert_eq!(schedules, self.schedules);
        let mut sessions = Vec::new();
        let mut take = |session: Result<WebSession, Unreadable>| sessions.push(session.unwrap());
        store.web_sessions(&mut take).unwrap();
        let wanted: Vec<WebSession> = self.web_sessions.values().cloned().collect();
        assert_eq!(sessions, wanted);
        for name in 0..3 {
            let id = schedule_id(name);
            let before = minutes(10);
            let mut rows = Vec::new();
            let mut take = |row: Result<SlotRow, Unreadable>| {
                rows.push(row.unwrap());
                ControlFlow::Continue(())
            };
            store.slots(&id, Some(before), &mut take).unwrap();
            let mut of_id = self.slots.iter().filter(|((of, _), _)| *of == id);
            let wanted = of_id.by_ref().rev().filter(|((_, from), _)| *from < before);
            let wanted: Vec<SlotRow> = wanted.map(|(_, row)| row.clone()).collect();
            assert_eq!(rows, wanted);
        }
        self.assert_slots_counted_by(store);
    }

    /// Each slot counts in its half hour, once, whatever batches were repeated.
    fn assert_slots_counted_by(&self, store: &dyn Store) {
        let mut wanted: BTreeMap<i64, u32> = BTreeMap::new();
        for row in self.slots.values() {
            for slot in 0..row.count.unwrap() {
                let at = row.from.plus_millis(slot * 600_000).millis();
                *wanted.entry(at.div_euclid(HALF_HOUR_MS)).or_default() += 1;
            }
        }
        for worker in [None, Some("w")] {
            let mut counted: BTreeMap<i64, u32> = BTreeMap::new();
            let mut take = |at: Timestamp, counts: SlotCounts| {
                let sum = counts.statuses().values().sum();
                counted.insert(at.millis() / HALF_HOUR_MS, sum);
            };
            let all = (minutes(-1_000), minutes(1_000));
            store.slot_counts(worker, all.0, all.1, &mut take).unwrap();
            assert_eq!(counted, wanted);
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let run = 0..8_u64;
    let size = prop_oneof![
        4 => Just(0_usize),
        3 => 1..3_000_usize,
        1 => 3_000..6_000_usize,
    ];
    let sizes = proptest::collection::vec(size, 1..6);
    prop_oneof![
        3 => (run.clone(), 0..6_000_usize).prop_map(|(run, bytes)| Step::Spec { run, bytes }),
        5 => (run.clone(), sizes).prop_map(|(run, sizes)| Step::Entries { run, sizes }),
        1 => run.clone().prop_map(|run| Step::Finished { run }),
        1 => run.clone().prop_map(|run| Step::Closed { run }),
        1 => (0..4_u8, run.clone()).prop_map(|(name, run)| Step::Key { name, run }),
        1 => run.prop_map(|before| Step::Forget { before }),
        1 => (0..3_u8, -9..9_i64).prop_map(|(name, cursor)| Step::Schedule { name, cursor }),
        2 => (0..3_u8, -20..20_i64, 0..3_i64)
            .prop_map(|(name, from, long)| Step::Slot { name, from, long }),
        1 => (0..3_u8, -20..20_i64).prop_map(|(name, from)| Step::UndoSlot { name, from }),
        1 => (0..3_u8, any::<bool>()).prop_map(|(name, begins)| Step::FailedPush { name, begins }),
        1 => (0..3_u8, 0..12_u8).prop_map(|(name, waiting)| Step::Notices { name, waiting }),
        1 => (0..3_u8, any::<bool>()).prop_map(|(name, begins)| Step::WebSession { name, begins }),
    ]
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        4 => Just(Way::Commit),
        2 => Just(Way::Lazily),
        2 => Just(Way::Twice),
        1 => Just(Way::ThenReopen),
    ]
}

/// Steps of one batch; a run is forgotten by itself.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop_oneof![
        5 => proptest::collection::vec(step(), 1..8),
        1 => (0..8_u64).prop_map(|run| vec![Step::ForgetRun { run }]),
    ]
}

/// Plays the batches on a store that `open` opens anew, and compares it with the model at the end.
fn play(history: &[(Vec<Step>, Way)], open: &mut dyn FnMut() -> Box<dyn Store>) {
    let mut model = Model::default();
    let mut store = open();
    for (steps, way) in history {
        let batch = model.batch(steps);
        match way {
            Way::Lazily => store.commit_lazily(&batch).unwrap(),
            Way::Commit | Way::ThenReopen => store.commit(&batch).unwrap(),
            Way::Twice => {
                store.commit(&batch).unwrap();
                store.commit(&batch).unwrap();
            }
        }
        let is_spec = |write: &&Write| matches!(write, Write::Spec(_));
        let (specs, others): (Vec<_>, Vec<_>) = batch.writes.iter().partition(is_spec);
        for write in specs.into_iter().chain(others) {
            model.apply(write);
        }
        // What was counted is held from here on, and follows what is written.
        model.assert_slots_counted_by(store.as_ref());
        if matches!(way, Way::ThenReopen) {
            drop(store);
            store = open();
        }
    }
    model.assert_held_by(store.as_ref());
    drop(store);
    model.assert_held_by(open().as_ref());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_store_holds_what_the_model_holds(
        history in proptest::collection::vec(
            (steps(), way()), 1..14),
    ) {
        let memory = MemoryStore::new();
        play(&history, &mut || Box::new(memory.clone()));
        let dir = xtest::tempdir();
        let options = OpenOptions { reserve_bytes: 0, ..OpenOptions::default() };
        play(&history, &mut || Box::new(SledStore::open(dir.path(), options).unwrap()));
        let report = crate::maintenance::verify(dir.path()).unwrap();
        // Random journals do not fold; nothing else may be wrong.
        let unexpected: Vec<_> = report
            .faults
            .iter()
            .filter(|fault| !fault.reason.contains("event") && !fault.reason.contains("begin"))
            .collect();
        assert_eq!(unexpected, Vec::<&crate::maintenance::StoreDamage>::new());
    }
}
