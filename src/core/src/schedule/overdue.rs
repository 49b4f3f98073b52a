//! By when a schedule is to have succeeded, and whether it has not: pure, as everything here.
//!
//! A success, whenever it comes, stands for every slot before it. What counts is the first slot after
//! the last success: after the schedule's beginning where there was none, after a person let it go on.

use super::starts::{Starts, Watched, next_that_counts};
use crate::model::Timestamp;
use crate::model::schedule::{Pause, Policy, ScheduleState};

/// How long after the second slot a success is waited for where the schedule does not say it, in
/// milliseconds.
pub const HOUR_AFTER_MS: u64 = 3_600_000;

/// By when a schedule is to have succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expectation {
    /// From then on it is overdue.
    pub by: Timestamp,
    /// The last instant at which it can be: the schedule's end.
    pub until: Option<Timestamp>,
}

impl Expectation {
    /// Whether it is overdue.
    pub fn is_missed(&self, now: Timestamp) -> bool {
        self.by <= now && self.until.is_none_or(|until| now <= until)
    }

    /// When that is different; `None`: never.
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        if now < self.by {
            return Some(self.by);
        }
        let over = self.until?.plus_millis(1);
        (now < over).then_some(over)
    }
}

/// By when the schedule is to have succeeded; `None`: nothing is expected of it.
///
/// With `expected_within` that is so long after the first slot since the last success. Without it, it is
/// an hour after the slot that follows that one, or after that one where none follows. Slots that are
/// blocked, or lie before the schedule's start or after its end, do not count. Nothing is expected of a
/// schedule that a person has paused, that is closed, that has run as often as it may, or whose end is past.
pub fn expectation(watched: Watched<'_>, state: &ScheduleState) -> Option<Expectation> {
    let policy = watched.policy;
    let is_paused_by_person = state.pause.is_some() && !state.paused_itself;
    let has_run_all = policy.max_actions.is_some_and(|most| state.actions >= most);
    if is_paused_by_person || has_run_all || state.closed.is_some() {
        return None;
    }
    let first = next_that_counts(watched, since(policy, state))?;
    let by = if let Some(within) = policy.expected_within_ms {
        put_off(watched, first).plus_millis(within)
    } else {
        let last = next_that_counts(watched, first).unwrap_or(first);
        put_off(watched, last).plus_millis(HOUR_AFTER_MS)
    };
    let until = policy.end;
    until
        .is_none_or(|until| by <= until)
        .then_some(Expectation { by, until })
}

/// Slots up to here are not waited for.
fn since(policy: &Policy, state: &ScheduleState) -> Timestamp {
    let begun = policy.start.map(Timestamp::just_before);
    // Where the clock was stepped back before its beginning, it is waited for since then.
    let anchor = Some(state.anchor).filter(|anchor| *anchor <= state.cursor);
    let marks = [begun, state.succeeded_at, state.resumed_at, anchor];
    marks.into_iter().flatten().max().unwrap_or(state.anchor)
}

fn put_off(watched: Watched<'_>, slot: Timestamp) -> Timestamp {
    Starts::new(watched.id, watched.slots, watched.policy, watched.zone).of(slot)
}

impl ScheduleState {
    /// A person pauses it, or lets it go on.
    pub fn set_pause(&mut self, pause: Option<Pause>, now: Timestamp) {
        if pause.is_none() {
            self.failures = 0;
            if self.pause.is_some() {
                self.resumed_at = Some(now);
            }
        }
        self.pause = pause.map(Box::new);
        self.paused_itself = false;
        self.restored = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RunId;
    use crate::model::Zone;
    use crate::model::outcome::Outcome;
    use crate::schedule::{Expression, Recurrence, jitter_ms};

    const HOUR: u64 = 3_600_000;

    /// So many hours after Monday, 2026-11-16 00:00 UTC.
    fn at(hours: u64) -> Timestamp {
        Timestamp::parse("2026-11-16T00:00:00Z")
            .unwrap()
            .plus_millis(hours * HOUR)
    }

    fn begun(hours: u64) -> ScheduleState {
        ScheduleState::new(String::new(), at(hours))
    }

    fn cron(text: &str) -> Recurrence {
        let expression = Expression::parse(text, false).unwrap();
        Recurrence::cron(expression, Zone::UTC, None)
    }

    fn by(slots: &Recurrence, policy: &Policy, state: &ScheduleState) -> Option<Timestamp> {
        let watched = Watched {
            id: "w/s",
            slots,
            policy,
            zone: Zone::UTC,
        };
        expectation(watched, state).map(|expected| expected.by)
    }

    #[test]
    fn a_clock_that_is_set_back_disarms_nothing() {
        let daily = cron("0 9 * * *");
        let policy = Policy::default();
        // It succeeded, and began, while the clock was 100 days ahead.
        let mut state = begun(100 * 24);
        state.ended(&policy, &Outcome::Succeeded, at(101 * 24));
        assert!(state.forget_the_future(at(0)));
        state.cursor = at(0);
        assert_eq!(by(&daily, &policy, &state), Some(at(9 + 24 + 1)));
        assert!(!state.forget_the_future(at(1)));
        state.ended(&policy, &Outcome::Succeeded, at(10));
        assert_eq!(by(&daily, &policy, &state), Some(at(9 + 48 + 1)));
    }

    #[test]
    fn without_a_span_it_is_an_hour_after_the_second_due_time() {
        let daily = cron("0 9 * * *");
        let policy = Policy::default();
        let mut state = begun(0);
        assert_eq!(by(&daily, &policy, &state), Some(at(9 + 24 + 1)));
        state.ended(&policy, &Outcome::Succeeded, at(10));
        assert_eq!(by(&daily, &policy, &state), Some(at(9 + 48 + 1)));
        // Weekends are no slots of this one.
        let weekdays = cron("0 9 * * 1-5");
        state.succeeded_at = Some(at(4 * 24 + 9));
        assert_eq!(by(&weekdays, &policy, &state), Some(at(8 * 24 + 10)));
    }

    #[test]
    fn a_span_counts_from_the_first_due_time_without_success() {
        let daily = cron("0 9 * * *");
        let policy = Policy {
            expected_within_ms: Some(2 * HOUR),
            ..Policy::default()
        };
        let mut state = begun(0);
        assert_eq!(by(&daily, &policy, &state), Some(at(11)));
        state.ended(&policy, &Outcome::Cancelled, at(9));
        assert_eq!(by(&daily, &policy, &state), Some(at(11)));
        state.ended(&policy, &Outcome::Succeeded, at(14));
        assert_eq!(by(&daily, &policy, &state), Some(at(24 + 11)));
        let late = Policy {
            jitter_ms: HOUR,
            ..policy
        };
        let slot = at(24 + 9);
        let expected = slot.plus_millis(jitter_ms("w/s", slot, HOUR) + 2 * HOUR);
        assert_eq!(by(&daily, &late, &state), Some(expected));
    }

    #[test]
    fn what_is_blocked_or_before_the_start_is_not_expected() {
        let hourly = cron("0 * * * *");
        let mut policy = Policy {
            expected_within_ms: Some(HOUR),
            blocked_hours: vec![1, 2, 3],
            blocked_dates: vec!["2026-11-17".to_owned()],
            ..Policy::default()
        };
        assert_eq!(by(&hourly, &policy, &begun(0)), Some(at(5)));
        assert_eq!(by(&hourly, &policy, &begun(23)), Some(at(49)));
        policy.start = Some(at(100));
        assert_eq!(by(&hourly, &policy, &begun(0)), Some(at(101)));
        policy.blocked_hours = (0..24).collect();
        assert_eq!(by(&hourly, &policy, &begun(0)), None);
    }

    #[test]
    fn a_person_s_pause_silences_it_and_its_own_does_not() {
        let hourly = cron("0 * * * *");
        let policy = Policy {
            expected_within_ms: Some(HOUR),
            pause_on_failure: Some(1),
            ..Policy::default()
        };
        let mut state = begun(0);
        let failed = Outcome::Unknown {
            why: "journal".to_owned(),
        };
        state.ended(&policy, &failed, at(1));
        assert!(state.pause.is_some() && state.paused_itself);
        assert_eq!(by(&hourly, &policy, &state), Some(at(2)));
        let pause = Pause {
            reason: "a holiday".to_owned(),
            by: "workerctl".to_owned(),
            at: at(3),
        };
        state.set_pause(Some(pause), at(3));
        assert_eq!(by(&hourly, &policy, &state), None);
        state.set_pause(None, at(72));
        assert_eq!(by(&hourly, &policy, &state), Some(at(74)));
        state.closed = Some(at(73));
        assert_eq!(by(&hourly, &policy, &state), None);
    }

    #[test]
    fn what_has_ended_is_not_overdue_and_a_single_moment_is() {
        let daily = cron("0 9 * * *");
        let mut policy = Policy {
            end: Some(at(9 + 24)),
            max_actions: Some(1),
            ..Policy::default()
        };
        // The second slot is there; the hour after it is not.
        assert_eq!(by(&daily, &policy, &begun(0)), None);
        policy.end = Some(at(40));
        let watched = Watched {
            id: "w/s",
            slots: &daily,
            policy: &policy,
            zone: Zone::UTC,
        };
        let expected = expectation(watched, &begun(0)).unwrap();
        let over = at(40).plus_millis(1);
        assert_eq!(expected.next_change(at(0)), Some(at(34)));
        assert_eq!(expected.next_change(at(34)), Some(over));
        assert_eq!(expected.next_change(over), None);
        assert!(!expected.is_missed(at(33)) && expected.is_missed(at(34)));
        assert!(expected.is_missed(at(40)) && !expected.is_missed(over));
        let mut state = begun(0);
        let run = RunId::following(None, at(9), 1);
        let _ = state.fired(at(9), crate::model::schedule::SlotStatus::Ran, run, at(9));
        assert_eq!(by(&daily, &policy, &state), None);
        let once = Recurrence::once(at(9));
        assert_eq!(by(&once, &Policy::default(), &begun(0)), Some(at(10)));
        assert_eq!(by(&once, &Policy::default(), &begun(9)), None);
    }
}
