//! A machine with a clock of its own: schedules, and everything that happens to them.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::num::NonZeroU64;

use workerctl::model::Zone;
use workerctl::model::schedule::{
    CatchUp, CatchUpMode, Overlap, Pause, Policy, ScheduleState, SlotRow,
};
use workerctl::model::{RunId, Timestamp};
use workerctl::schedule::{COUNT_MAX, Expression, Recurrence};

use super::engine::{Active, Crash, Definition, Durable, Engine};

/// Slots of one seed at most.
const SLOTS_MAX: i64 = 50_000;

const SECOND: i64 = 1_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
const MONTH: i64 = 28 * DAY;
const YEAR: i64 = 365 * DAY;

/// The engine looks at the wall clock again after so long.
const TICK: i64 = 30 * SECOND;

/// 2026-01-01T00:00:00Z.
const BEGINNING: i64 = 1_767_225_600_000;

/// A small generator: the same numbers on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: i64) -> i64 {
        i64::try_from((self.next() >> 11) % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }

    fn one_in(&mut self, bound: i64) -> bool {
        self.below(bound) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(i64::try_from(of.len()).unwrap())).unwrap()]
    }
}

/// Something that happens to the machine, at an instant of the monotonic clock.
#[derive(Clone, Copy)]
enum Mishap {
    /// The wall clock is moved.
    Step(i64),
    /// The wall clock is set to 1970, as after a lost battery.
    Epoch,
    /// It is set right again.
    Right,
    /// The engine is lost and comes back after so long.
    Crash(i64),
    /// The machine sleeps: the wall clock goes on, nothing runs.
    Sleep(i64),
    /// A person pauses a schedule, or lets it go on.
    Pause,
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// The machine.
pub(crate) struct World {
    seed: u64,
    dice: Dice,
    definitions: Vec<Definition>,
    durable: Durable,
    engine: Engine,
    mishaps: Vec<(i64, Mishap)>,
    /// The monotonic clock.
    mono: i64,
    /// What the wall clock shows beyond it.
    offset: i64,
    horizon: i64,
    runs: u128,
}

impl World {
    /// A machine as this seed has it.
    pub(crate) fn new(seed: u64) -> World {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        dice.next();
        let schedules = 1 + dice.below(100);
        let horizon = DAY + dice.below(10 * YEAR);
        let mishaps = mishaps(&mut dice, horizon);
        let span = span(&mishaps, horizon);
        let least = span / (SLOTS_MAX / schedules) + SECOND;
        let mut world = World {
            seed,
            dice,
            definitions: Vec::new(),
            durable: Durable::default(),
            engine: Engine::started(usize::try_from(schedules).unwrap()),
            mishaps,
            mono: 0,
            offset: BEGINNING,
            horizon,
            runs: 0,
        };
        for index in 0..schedules {
            world.add_schedule(index, least);
        }
        world
    }

    fn add_schedule(&mut self, index: i64, least: i64) {
        let period = least + self.dice.below(least);
        let policy = self.policy(period);
        let zones = [
            Zone::UTC,
            Zone::compiled_in("Europe/Berlin").unwrap(),
            Zone::compiled_in("Australia/Lord_Howe").unwrap(),
        ];
        let zone = self.dice.pick(&zones);
        let slots = self.slots(period, zone);
        self.definitions.push(Definition {
            id: format!("w/s{index}"),
            slots,
            policy,
            zone,
        });
        let state = ScheduleState::new("d".to_owned(), at(BEGINNING));
        self.durable.states.push(state);
        self.durable.rows.push(std::collections::BTreeMap::new());
        self.durable.active.push(Vec::new());
        self.durable.floors.push(at(BEGINNING));
    }

    /// Slots at least so far apart: a period, or a cron expression near a change of clocks.
    fn slots(&mut self, period: i64, zone: Zone) -> Recurrence {
        let expressions = [
            (HOUR, "15 * * * *"),
            (DAY, "30 2 * * *"),
            (WEEK, "30 2 * * 0"),
            (MONTH, "0 3 L * *"),
        ];
        let fits = expressions.iter().find(|(apart, _)| period < *apart);
        // Calendars are slow without optimisation; one in five meets every change of clocks often enough.
        let Some((_, expression)) = fits.filter(|_| self.dice.one_in(5)) else {
            let phase = self.dice.below(period);
            let period = NonZeroU64::new(period.unsigned_abs()).unwrap();
            return Recurrence::every(period, at(phase));
        };
        let expression = Expression::parse(expression, false).unwrap();
        Recurrence::cron(expression, zone, None)
    }

    fn policy(&mut self, period: i64) -> Policy {
        let dice = &mut self.dice;
        let window = dice.pick(&[0, HOUR, DAY, 30 * DAY]);
        let jitter = if dice.one_in(3) {
            dice.below(period)
        } else {
            0
        };
        Policy {
            overlap: dice.pick(&Overlap::ALL),
            catch_up: CatchUp {
                mode: dice.pick(&[CatchUpMode::Last, CatchUpMode::All, CatchUpMode::None]),
                window_ms: u64::try_from(window).unwrap(),
            },
            jitter_ms: u64::try_from(jitter).unwrap(),
            blocked_hours: if dice.one_in(4) {
                vec![2, 3, 23]
            } else {
                Vec::new()
            },
            pause_on_failure: dice.one_in(4).then_some(3),
            ..Policy::default()
        }
    }

    fn now(&self) -> Timestamp {
        at(self.mono + self.offset)
    }

    /// Goes through the whole time.
    pub(crate) fn live(&mut self) {
        let mishaps = std::mem::take(&mut self.mishaps);
        for (when, mishap) in mishaps {
            self.go_on_until(when);
            self.meet(mishap);
        }
        self.go_on_until(self.horizon);
    }

    fn go_on_until(&mut self, when: i64) {
        while self.mono < when {
            let clocks = (self.now(), self.mono);
            self.engine
                .end_runs(&self.definitions, &mut self.durable, clocks);
            self.turn();
            let ends = self.durable.active.iter().flatten();
            let ends = ends.filter_map(|one| one.ends_ms).min();
            let wake = self
                .engine
                .next_wake()
                .map(|wake| wake.millis().saturating_sub(self.offset));
            let next = [ends, wake].into_iter().flatten().min().unwrap_or(i64::MAX);
            if next > self.mono {
                self.engine.idle_turns = 0;
            }
            assert!(
                self.engine.idle_turns < 10,
                "seed {}: it turns in circles",
                self.seed
            );
            self.mono = next.max(self.mono).min(when);
        }
    }

    fn turn(&mut self) {
        let clocks = (self.now(), self.mono);
        let (dice, runs) = (&mut self.dice, &mut self.runs);
        let deaths = std::cell::RefCell::new(Dice(dice.next() | 1));
        let mut new_run = || {
            *runs += 1;
            Active {
                run: RunId::following(None, at(0), *runs),
                ends_ms: None,
                takes_ms: if dice.one_in(10) {
                    dice.below(30 * DAY)
                } else {
                    dice.below(HOUR)
                },
                fails: dice.one_in(4),
            }
        };
        let mut crash = || match deaths.borrow_mut().below(400) {
            0 => Crash::BeforeCommit,
            1 => Crash::AfterCommit,
            _ => Crash::Never,
        };
        let survived = self.engine.turn(
            &self.definitions,
            &mut self.durable,
            clocks,
            &mut new_run,
            &mut crash,
        );
        if !survived {
            self.engine = Engine::started(self.definitions.len());
        }
    }

    fn meet(&mut self, mishap: Mishap) {
        match mishap {
            Mishap::Step(by) => self.offset += by,
            Mishap::Epoch => self.offset = -self.mono,
            Mishap::Right => self.offset = BEGINNING,
            Mishap::Sleep(long) | Mishap::Crash(long) => self.mono += long,
            Mishap::Pause => self.pause_or_resume(),
        }
        if !matches!(mishap, Mishap::Pause) {
            self.engine.was_away();
        }
        if let Mishap::Crash(_) = mishap {
            self.engine = Engine::started(self.definitions.len());
        } else if let Mishap::Step(_) | Mishap::Epoch | Mishap::Right = mishap {
            // It is noticed at the next tick.
            self.mono += self.dice.below(TICK);
            self.engine.look_at_all();
        }
    }

    fn pause_or_resume(&mut self) {
        let now = self.now();
        for state in &mut self.durable.states {
            if state.pause.take().is_none() && self.dice.one_in(5) {
                state.pause = Some(Box::new(Pause {
                    reason: "a holiday".to_owned(),
                    by: "ada".to_owned(),
                    at: now,
                }));
            }
        }
        self.engine.look_at_all();
    }

    /// Looks at every slot; answers how many there were.
    pub(crate) fn verify(&self) -> u64 {
        let ledgers = self.definitions.iter().enumerate();
        let slots = ledgers
            .map(|(index, definition)| self.verify_ledger(index, definition))
            .sum();
        let rows = self.durable.rows.iter().flat_map(|rows| rows.values());
        let of_rows: Vec<RunId> = rows.filter_map(|row| row.run).collect();
        let distinct: BTreeSet<RunId> = of_rows.iter().copied().collect();
        assert_eq!(
            distinct.len(),
            of_rows.len(),
            "seed {}: a run has two rows",
            self.seed
        );
        assert_eq!(
            distinct,
            self.durable.runs.keys().copied().collect(),
            "seed {}: a run without a row, or a row without its run",
            self.seed
        );
        slots
    }

    fn verify_ledger(&self, index: usize, definition: &Definition) -> u64 {
        let (seed, id) = (self.seed, &definition.id);
        let rows = &self.durable.rows[index];
        let state = &self.durable.states[index];
        let mut row = rows.values().peekable();
        let mut slot = self.durable.floors[index];
        let mut due_times = 0;
        while let Some(next) = definition
            .slots
            .next_after(slot)
            .filter(|next| *next <= state.cursor)
        {
            slot = next;
            due_times += 1;
            while row.peek().is_some_and(|row| row.to < slot) {
                row.next();
            }
            let covering = row.peek().filter(|row| row.from <= slot);
            assert!(covering.is_some(), "seed {seed}, {id}: {slot:?} has no row");
        }
        let mut last: Option<&SlotRow> = None;
        for row in rows.values() {
            assert!(
                last.is_none_or(|last| last.to < row.from),
                "seed {seed}, {id}: {last:?} and {row:?} overlap"
            );
            let counted =
                definition
                    .slots
                    .count_between(row.from.just_before(), row.to, COUNT_MAX + 1);
            assert_eq!(
                row.count,
                (counted <= COUNT_MAX).then_some(counted),
                "seed {seed}, {id}: {row:?}"
            );
            assert_eq!(
                row.status.is_run(),
                row.run.is_some(),
                "seed {seed}, {id}: {row:?}"
            );
            last = Some(row);
        }
        assert_eq!(
            state.rows,
            rows.len() as u64,
            "seed {seed}, {id}: rows are counted"
        );
        for (status, total) in &state.totals {
            let of_status = rows.values().filter(|row| row.status == *status);
            let sum: u64 = of_status.filter_map(|row| row.count).sum();
            assert_eq!(*total, sum, "seed {seed}, {id}: {status:?} is counted");
        }
        due_times
    }

    /// All rows, in words.
    pub(crate) fn trace(&self) -> String {
        let mut text = String::new();
        for (definition, rows) in self.definitions.iter().zip(&self.durable.rows) {
            for row in rows.values() {
                writeln!(text, "{} {row:?}", definition.id).unwrap();
            }
        }
        text
    }
}

fn mishaps(dice: &mut Dice, horizon: i64) -> Vec<(i64, Mishap)> {
    let many = 5 + dice.below(60);
    let mut whens: Vec<i64> = (0..many).map(|_| dice.below(horizon)).collect();
    whens.sort_unstable();
    let mut mishaps = Vec::new();
    for when in whens {
        let mishap = match dice.below(14) {
            0 => Mishap::Step(SECOND),
            1 => Mishap::Step(-SECOND),
            2 => Mishap::Step(HOUR),
            3 => Mishap::Step(-HOUR),
            4 => Mishap::Step(DAY),
            5 => Mishap::Step(-DAY),
            6 => Mishap::Step(10 * YEAR),
            7 => Mishap::Epoch,
            8 | 9 => Mishap::Pause,
            10 | 11 => Mishap::Sleep(dice.below(3 * DAY)),
            _ => Mishap::Crash(dice.below(3 * DAY)),
        };
        mishaps.push((when, mishap));
        if let Mishap::Step(_) | Mishap::Epoch = mishap
            && dice.one_in(2)
        {
            mishaps.push((when + dice.below(DAY), Mishap::Right));
        }
    }
    mishaps.sort_by_key(|(when, _)| *when);
    mishaps
}

/// How much wall time there may be between the earliest and the latest instant.
fn span(mishaps: &[(i64, Mishap)], horizon: i64) -> i64 {
    let (mut offset, mut earliest, mut latest) = (BEGINNING, BEGINNING, BEGINNING);
    for (when, mishap) in mishaps {
        match mishap {
            Mishap::Step(by) => offset += by,
            Mishap::Epoch => offset = -when,
            Mishap::Right => offset = BEGINNING,
            _ => {}
        }
        earliest = earliest.min(when + offset);
        latest = latest.max(horizon + offset);
    }
    latest.max(BEGINNING + horizon) - earliest + 200 * DAY
}
