//! The calendar of schedules against slow enumerators and another implementation.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` sets how many fires of each expression are compared (30 by default, 1,000
//! before a release); with it every zone of the data is looked at as well.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "what is not as expected fails the test, and what is skipped is said"
)]

#[path = "schedule_calendar/clocks.rs"]
mod clocks;
#[path = "schedule_calendar/fires.rs"]
mod fires;
#[path = "schedule_calendar/machine.rs"]
mod machine;
#[path = "schedule_calendar/oracle.rs"]
mod oracle;
#[path = "schedule_calendar/texts.rs"]
mod texts;
#[path = "schedule_calendar/traps.rs"]
mod traps;
#[path = "schedule_calendar/written.rs"]
mod written;

use workerctl::model::Timestamp;
use workerctl::model::Zone;
use workerctl::schedule::{Expression, Recurrence};

/// What the environment asks for.
pub(crate) fn rounds() -> Option<usize> {
    std::env::var("WORKERCTL_TEST_ROUNDS").ok()?.parse().ok()
}

/// A repeatable sequence of numbers that looks random.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(bound)).unwrap()
    }

    /// A number from `low` to `high`.
    pub(crate) fn from(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high - low + 1)
    }
}

pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// An expression of five fields, or of six with seconds, in a zone.
pub(crate) fn cron(text: &str, zone: Zone) -> Recurrence {
    let seconds = text.split_ascii_whitespace().count() == 6;
    let expression = Expression::parse(text, seconds).unwrap_or_else(|why| panic!("{text}: {why}"));
    Recurrence::cron(expression, zone, None)
}

/// The first `count` slots after `from`, as seconds since the epoch.
pub(crate) fn slots(recurrence: &Recurrence, from: Timestamp, count: usize) -> Vec<i64> {
    std::iter::successors(recurrence.next_after(from), |slot| {
        recurrence.next_after(*slot)
    })
    .take(count)
    .map(|slot| slot.millis() / 1_000)
    .collect()
}
