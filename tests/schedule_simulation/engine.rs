//! An engine that knows what it has committed, and forgets the rest when it is lost.

use std::collections::BTreeMap;

use workerctl::model::Zone;
use workerctl::model::outcome::{Failure, Outcome, Step};
use workerctl::model::schedule::{Overlap, Policy, ScheduleState, SlotRow};
use workerctl::model::{RunId, Timestamp};
use workerctl::schedule::{Moment, Next, Others, Recurrence, settle};

/// One schedule.
pub(crate) struct Definition {
    pub(crate) id: String,
    pub(crate) slots: Recurrence,
    pub(crate) policy: Policy,
    pub(crate) zone: Zone,
}

/// What survives the engine.
#[derive(Default)]
pub(crate) struct Durable {
    pub(crate) states: Vec<ScheduleState>,
    pub(crate) rows: Vec<BTreeMap<Timestamp, SlotRow>>,
    /// Every run that was ever accepted: its schedule and its slot.
    pub(crate) runs: BTreeMap<RunId, (usize, Timestamp)>,
    /// Runs that have not ended, by schedule.
    pub(crate) active: Vec<Vec<Active>>,
    /// The earliest instant to which the clock was set back, by schedule.
    pub(crate) floors: Vec<Timestamp>,
}

/// A run that has not ended.
#[derive(Clone)]
pub(crate) struct Active {
    pub(crate) run: RunId,
    /// When it ends, by the monotonic clock; a waiting one begins when those before it have ended.
    pub(crate) ends_ms: Option<i64>,
    pub(crate) takes_ms: i64,
    pub(crate) fails: bool,
}

/// Where a turn was cut off.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Crash {
    Never,
    BeforeCommit,
    AfterCommit,
}

/// The engine of one life: nothing but the wall times at which schedules are looked at again.
pub(crate) struct Engine {
    wake: Vec<Option<Timestamp>>,
    /// Since when it looks without a break; absent: from its next look on.
    there_since: Option<Timestamp>,
    /// Decisions that led to nothing, since the clock last moved.
    pub(crate) idle_turns: u32,
}

impl Engine {
    /// An engine that has just started: every schedule is looked at.
    pub(crate) fn started(schedules: usize) -> Engine {
        Engine {
            wake: vec![Some(Timestamp::from_millis(i64::MIN)); schedules],
            there_since: None,
            idle_turns: 0,
        }
    }

    /// Every schedule is looked at: the clock was stepped.
    pub(crate) fn look_at_all(&mut self) {
        self.wake.fill(Some(Timestamp::from_millis(i64::MIN)));
    }

    /// The clock was stepped, or the machine was suspended.
    pub(crate) fn was_away(&mut self) {
        self.there_since = None;
    }

    /// The wall time at which something is due.
    pub(crate) fn next_wake(&self) -> Option<Timestamp> {
        self.wake.iter().flatten().min().copied()
    }

    /// Decides about everything that is due; whether the engine survived.
    pub(crate) fn turn(
        &mut self,
        definitions: &[Definition],
        durable: &mut Durable,
        clocks: (Timestamp, i64),
        new_run: &mut dyn FnMut() -> Active,
        crash: &mut dyn FnMut() -> Crash,
    ) -> bool {
        let (now, mono_ms) = clocks;
        let there_since = *self.there_since.get_or_insert(now);
        for (index, definition) in definitions.iter().enumerate() {
            if self.wake[index].is_none_or(|wake| wake > now) {
                continue;
            }
            let mut turn = Turn::begin(definition, index, durable, now);
            let wake = turn.decide((now, there_since), mono_ms, new_run);
            if turn.wrote_nothing() && wake.is_some_and(|wake| wake <= now) {
                self.idle_turns += 1;
            }
            match crash() {
                Crash::BeforeCommit => return false,
                Crash::AfterCommit => {
                    turn.commit(durable, now);
                    return false;
                }
                Crash::Never => turn.commit(durable, now),
            }
            self.wake[index] = wake;
        }
        true
    }

    /// Runs that have ended by now; their schedules are looked at again.
    pub(crate) fn end_runs(
        &mut self,
        definitions: &[Definition],
        durable: &mut Durable,
        clocks: (Timestamp, i64),
    ) {
        let (now, mono_ms) = clocks;
        for (index, definition) in definitions.iter().enumerate() {
            let is_over = |one: &Active| one.ends_ms.is_some_and(|ends| ends <= mono_ms);
            let active = &mut durable.active[index];
            if !active.iter().any(is_over) {
                continue;
            }
            for one in active.iter().filter(|one| is_over(one)) {
                let outcome = if one.fails {
                    let failure = Failure::new(Step::Execute, "exit_code", "1");
                    Outcome::Failed { failure }
                } else {
                    Outcome::Succeeded
                };
                durable.states[index].ended(&definition.policy, &outcome, now);
            }
            active.retain(|one| !is_over(one));
            if let Some(first) = active.first_mut() {
                first.ends_ms.get_or_insert(mono_ms + first.takes_ms);
            }
            self.wake[index] = Some(Timestamp::from_millis(i64::MIN));
        }
    }
}

/// What one turn gathers for one schedule before it commits.
struct Turn<'a> {
    definition: &'a Definition,
    index: usize,
    state: ScheduleState,
    rows: Vec<SlotRow>,
    gone: Vec<Timestamp>,
    rewound: bool,
    runs: Vec<(RunId, Timestamp)>,
    active: Vec<Active>,
}

impl<'a> Turn<'a> {
    fn begin(
        definition: &'a Definition,
        index: usize,
        durable: &Durable,
        now: Timestamp,
    ) -> Turn<'a> {
        let mut turn = Turn {
            definition,
            index,
            state: durable.states[index].clone(),
            rows: Vec::new(),
            gone: Vec::new(),
            rewound: false,
            runs: Vec::new(),
            active: durable.active[index].clone(),
        };
        if turn.state.is_behind(now) {
            let rows = durable.rows[index].values();
            let after = rows.filter(|row| row.to > now).cloned().collect();
            let (gone, shortened) = turn.state.rewind(&definition.slots, after, now);
            turn.rewound = true;
            turn.gone = gone;
            turn.rows.extend(shortened);
        }
        turn
    }

    fn wrote_nothing(&self) -> bool {
        self.rows.is_empty() && self.runs.is_empty() && !self.rewound
    }

    fn decide(
        &mut self,
        (now, there_since): (Timestamp, Timestamp),
        mono_ms: i64,
        new_run: &mut dyn FnMut() -> Active,
    ) -> Option<Timestamp> {
        loop {
            let running = self.active.iter().filter(|one| one.ends_ms.is_some());
            let running = running.count();
            let moment = Moment {
                now,
                zone: self.definition.zone,
                there_since,
                id: &self.definition.id,
                others: Others {
                    running,
                    waiting: self.active.len() - running,
                },
            };
            let policy = &self.definition.policy;
            let (rows, next) = settle(&self.definition.slots, policy, &mut self.state, moment);
            self.rows.extend(rows);
            match next {
                Next::Wait(wake) => return wake,
                Next::Hold(until) => return Some(until),
                Next::Again => {}
                Next::Fire { slot, status } => {
                    let active = self.start(new_run(), mono_ms);
                    self.rows.push(self.state.fired(slot, status, active, now));
                    self.runs.push((active, slot));
                }
            }
        }
    }

    fn start(&mut self, mut new: Active, mono_ms: i64) -> RunId {
        if self.definition.policy.overlap == Overlap::CancelOther {
            self.active.clear();
        }
        let beside = self.definition.policy.overlap == Overlap::AllowAll;
        if beside || self.active.is_empty() {
            new.ends_ms = Some(mono_ms + new.takes_ms);
        }
        let run = new.run;
        self.active.push(new);
        run
    }

    fn commit(self, durable: &mut Durable, now: Timestamp) {
        let rows = &mut durable.rows[self.index];
        for gone in self.gone {
            rows.remove(&gone);
        }
        for row in self.rows {
            rows.insert(row.from, row);
        }
        for (run, slot) in self.runs {
            let before = durable.runs.insert(run, (self.index, slot));
            assert_eq!(before, None, "a run was accepted twice");
        }
        if self.rewound {
            let floor = &mut durable.floors[self.index];
            *floor = (*floor).min(now);
        }
        durable.active[self.index] = self.active;
        durable.states[self.index] = self.state;
    }
}
