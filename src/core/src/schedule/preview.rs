//! The next runs of a schedule, as if each ended at once.

use super::planned::Planned;
use super::settle::{Moment, Next, Others, settle};
use crate::model::schedule::{SlotRow, SlotStatus};
use crate::model::{RunId, Timestamp};

/// Most runs of one preview.
pub const FIRES_MAX: usize = 10_000;

/// Most decisions of one preview: a schedule whose slots are all blocked comes to an end too.
const STEPS_MAX: usize = 100_000;

/// Which runs of a schedule are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviewQuery {
    /// Only of slots after this one.
    pub after: Timestamp,
    /// Only those that start after this instant.
    pub seen: Timestamp,
    /// Only those that start up to this instant.
    pub until: Option<Timestamp>,
    /// How many.
    pub most: usize,
}

/// A slot that is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fire {
    /// The slot.
    pub due: Timestamp,
    /// When its run starts: later by its jitter.
    pub starts: Timestamp,
}

/// What a schedule does next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    /// Its next runs.
    pub fires: Vec<Fire>,
    /// Slots among them that do not run, in stretches of one status.
    pub omitted: Vec<SlotRow>,
    /// Whether nothing is due behind the last of them.
    pub ends: bool,
    /// Up to where it was looked, where so many slots do not run that it was given up.
    pub given_up: Option<Timestamp>,
}

/// The next runs of a schedule; a pause is taken for ended. Empty where an event makes it due.
pub fn preview(planned: &Planned, wanted: PreviewQuery) -> Preview {
    let mut found = Preview::default();
    let Some(slots) = planned.recurrence() else {
        return found;
    };
    let mut state = planned.state(wanted.after);
    state.pause = None;
    let mut now = wanted.after;
    for _ in 0..STEPS_MAX {
        if found.fires.len() >= wanted.most.min(FIRES_MAX) {
            return found;
        }
        let moment = Moment {
            now,
            zone: planned.zone,
            there_since: wanted.after,
            id: &planned.id,
            others: Others::default(),
        };
        let (rows, next) = settle(&slots, &planned.policy, &mut state, moment);
        for row in rows.into_iter().filter(|row| row.to > wanted.seen) {
            found.omitted.pop_if(|last| last.from == row.from);
            found.omitted.push(row);
        }
        match next {
            Next::Wait(Some(later)) | Next::Hold(later) => {
                if wanted.until.is_some_and(|until| later > until) {
                    return found;
                }
                now = later;
            }
            Next::Again => {}
            Next::Fire { slot, .. } if now <= wanted.seen => state.advance(slot),
            Next::Fire { slot, .. } => {
                found.fires.push(Fire {
                    due: slot,
                    starts: now,
                });
                state.fired(slot, SlotStatus::Ran, RunId::from_bytes([0; 16]), now);
            }
            Next::Wait(None) => {
                found.ends = true;
                return found;
            }
        }
    }
    found.given_up = Some(now);
    found
}

#[cfg(test)]
mod tests {
    use crate::model::Zone;

    use super::*;
    use crate::model::schedule::{Pause, Policy, Trigger};
    use crate::schedule::jitter_ms;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn planned(expression: &str, policy: Policy) -> Planned {
        Planned {
            id: "w/a".to_owned(),
            skill: "w/a".to_owned(),
            trigger: Trigger::Cron {
                expression: expression.into(),
                seconds: false,
                dst: None,
            },
            policy,
            zone: Zone::UTC,
            anchor: at("2026-01-01"),
            actions: 0,
            pause: Some(Pause {
                reason: "holidays".to_owned(),
                by: "ada".to_owned(),
                at: at("2026-01-01"),
            }),
            blocked: None,
        }
    }

    fn wanted(after: Timestamp, seen: Timestamp, most: usize) -> PreviewQuery {
        PreviewQuery {
            after,
            seen,
            until: None,
            most,
        }
    }

    fn due(preview: &Preview) -> Vec<String> {
        let fires = preview.fires.iter();
        fires
            .map(|fire| fire.due.rfc3339()[..16].to_owned())
            .collect()
    }

    #[test]
    fn what_is_blocked_is_left_out_and_told() {
        let policy = Policy {
            blocked_hours: vec![3, 4],
            end: Some(at("2026-03-02T06:30:00Z")),
            ..Policy::default()
        };
        let after = at("2026-03-02T01:00:00Z");
        let found = preview(&planned("0 * * * *", policy), wanted(after, after, 9));
        assert_eq!(
            due(&found),
            ["2026-03-02T02:00", "2026-03-02T05:00", "2026-03-02T06:00"]
        );
        assert!(found.ends);
        let row = &found.omitted[0];
        assert_eq!((row.count, row.status), (Some(2), SlotStatus::BlockedHours));
        assert_eq!(found.omitted.len(), 1);
    }

    #[test]
    fn runs_that_are_used_up_end_it() {
        let policy = Policy {
            max_actions: Some(3),
            start: Some(at("2027-01-01T00:00:00Z")),
            ..Policy::default()
        };
        let mut used = planned("0 9 * * *", policy);
        used.actions = 1;
        let after = at("2026-03-02T01:00:00Z");
        let found = preview(&used, wanted(after, after, 9));
        assert_eq!(due(&found), ["2027-01-01T09:00", "2027-01-02T09:00"]);
        assert!(found.ends);
    }

    #[test]
    fn a_run_that_is_put_off_is_still_to_come() {
        let policy = Policy {
            jitter_ms: 3_600_000,
            ..Policy::default()
        };
        let slot = at("2026-03-02T09:00:00Z");
        let starts = slot.plus_millis(jitter_ms("w/a", slot, 3_600_000));
        let before = starts.just_before();
        let planned = planned("0 9 * * *", policy);
        let found = preview(&planned, wanted(at("2026-03-02T08:00:00Z"), before, 1));
        assert_eq!(found.fires, [Fire { due: slot, starts }]);
        let found = preview(&planned, wanted(at("2026-03-02T08:00:00Z"), starts, 1));
        assert_eq!(due(&found), ["2026-03-03T09:00"]);
        assert!(!found.ends);
    }

    #[test]
    fn a_schedule_that_is_always_blocked_comes_to_an_end() {
        let policy = Policy {
            blocked_hours: (0..24).collect(),
            ..Policy::default()
        };
        let after = at("2026-03-02T08:00:00Z");
        let found = preview(
            &planned("0 0 * * *", policy.clone()),
            wanted(after, after, 1),
        );
        assert!(found.fires.is_empty() && !found.ends);
        assert!(found.given_up.unwrap() > at("2200-01-01"));
        let until = PreviewQuery {
            until: Some(at("2026-03-05T00:00:00Z")),
            ..wanted(after, after, 1)
        };
        let found = preview(&planned("0 0 * * *", policy), until);
        assert_eq!(found.omitted[0].count, Some(3));
        assert_eq!(found.given_up, None);
    }
}
