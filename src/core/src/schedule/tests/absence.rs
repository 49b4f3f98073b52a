//! Slots that came less than a minute before an engine was back.

use super::*;

/// Slots come every 20 s. An engine that has covered the one of second 40 was gone until second 95, and looks half
/// a second later.
fn after_absence(
    mode: CatchUpMode,
    overlap: Overlap,
    running: usize,
) -> (Vec<(i64, i64, SlotStatus)>, Next) {
    let slots = Recurrence::every(NonZeroU64::new(20_000).unwrap(), at(0));
    let policy = Policy {
        overlap,
        ..policy(mode, 1)
    };
    let mut state = ScheduleState::new("d".to_owned(), at(40_000));
    let moment = Moment {
        there_since: at(95_000),
        ..moment(95_500, running, 0)
    };
    let (rows, next) = settle(&slots, &policy, &mut state, moment);
    let second = |at: Timestamp| at.millis() / 1_000;
    let rows = rows
        .iter()
        .map(|row| (second(row.from), second(row.to), row.status));
    (rows.collect(), next)
}

#[test]
fn of_due_times_that_came_while_nobody_was_there_at_most_one_is_in_time() {
    let fire = |second: i64, status| Next::Fire {
        slot: at(second * 1_000),
        status,
    };
    let last = after_absence(CatchUpMode::Last, Overlap::Skip, 0);
    assert_eq!(
        last,
        (
            vec![(60, 60, SlotStatus::Missed)],
            fire(80, SlotStatus::Ran)
        )
    );
    let none = after_absence(CatchUpMode::None, Overlap::AllowAll, 0);
    assert_eq!(
        none,
        (
            vec![(60, 60, SlotStatus::Missed)],
            fire(80, SlotStatus::Ran)
        )
    );
    let all = after_absence(CatchUpMode::All, Overlap::Skip, 0);
    assert_eq!(all, (Vec::new(), fire(60, SlotStatus::Ran)));
    let beside = after_absence(CatchUpMode::All, Overlap::AllowAll, 3);
    assert_eq!(beside, (Vec::new(), fire(60, SlotStatus::Ran)));
}

#[test]
fn catching_up_all_loses_no_due_time_to_a_run_that_catches_up_another() {
    let (rows, next) = after_absence(CatchUpMode::All, Overlap::Skip, 1);
    assert_eq!(rows, []);
    assert!(matches!(next, Next::Hold(_)), "{next:?}");
    let (rows, _) = after_absence(CatchUpMode::Last, Overlap::Skip, 1);
    assert_eq!(
        rows,
        [
            (60, 60, SlotStatus::Missed),
            (80, 80, SlotStatus::SkippedOverlap)
        ]
    );
}

#[test]
fn what_is_missed_says_why_and_rows_of_earlier_versions_are_still_read() {
    let mut state = state(0);
    let slots = hourly();
    let now = moment(10 * HOUR + 30 * MINUTE, 0, 0);
    let (rows, _) = settle(&slots, &policy(CatchUpMode::Last, 3), &mut state, now);
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.status, row.reason.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            (SlotStatus::Missed, None),
            (SlotStatus::Missed, Some(OVERTAKEN))
        ]
    );
    for name in ["missed", "missed_window", "coalesced"] {
        let status: SlotStatus = serde_json::from_str(&format!("\"{name}\"")).unwrap();
        assert_eq!((status, status.name()), (SlotStatus::Missed, "missed"));
    }
    let mut stored = serde_json::to_value(&state).unwrap();
    stored["totals"] = serde_json::json!({"missed_window": 7, "ran": 1, "coalesced": 2});
    let read: ScheduleState = serde_json::from_value(stored).unwrap();
    assert_eq!(
        read.totals,
        [(SlotStatus::Ran, 1), (SlotStatus::Missed, 9)].into()
    );
}
