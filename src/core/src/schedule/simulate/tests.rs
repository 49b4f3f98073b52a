//! Every number here was counted by hand.

use crate::model::Zone;

use super::*;
use crate::model::schedule::{CatchUp, CatchUpMode, Pause, Policy};

const MINUTE: u64 = 60_000;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn planned(id: &str, cron: &str, policy: Policy) -> Planned {
    Planned {
        id: id.to_owned(),
        skill: id.split('#').next().unwrap().to_owned(),
        trigger: Trigger::Cron {
            expression: cron.into(),
            seconds: false,
            dst: None,
        },
        policy,
        zone: Zone::UTC,
        anchor: at("2026-01-01"),
        actions: 0,
        pause: None,
        blocked: None,
    }
}

fn after(id: &str, skill: &str, when: AfterWhen) -> Planned {
    Planned {
        trigger: Trigger::After {
            skill: Box::new(skill.parse().unwrap()),
            when,
        },
        ..planned(id, "@daily", Policy::default())
    }
}

fn overlap(overlap: Overlap) -> Policy {
    Policy {
        overlap,
        ..Policy::default()
    }
}

/// One hour from midnight, runs last so many minutes.
fn hour(minutes: u64) -> Scenario {
    Scenario {
        from: at("2026-03-02T00:00:00Z"),
        to: at("2026-03-02T01:00:00Z"),
        durations: BTreeMap::new(),
        otherwise_ms: minutes * MINUTE,
        down: Vec::new(),
        active: Vec::new(),
    }
}

fn totals(simulation: &Simulation, index: usize) -> Vec<(SlotStatus, u64)> {
    let totals = simulation.schedules[index].totals.iter();
    totals.map(|(status, count)| (*status, *count)).collect()
}

/// Minutes from midnight at which runs started and ended.
fn spans(simulation: &Simulation) -> Vec<(u64, Option<u64>, Option<u64>)> {
    let minute = |at: Timestamp| at.millis_since(self::at("2026-03-02T00:00:00Z")) / MINUTE;
    let span = |run: &SimulatedRun| {
        (
            minute(run.due),
            run.started_at.map(minute),
            run.ended_at.map(minute),
        )
    };
    simulation.runs.iter().map(span).collect()
}

#[test]
fn both_ends_of_the_range_are_exact() {
    let schedules = [planned("w/a", "*/15 * * * *", Policy::default())];
    let simulation = simulate(&schedules, &hour(15)).unwrap();
    // 0, 15, 30, 45; not 60. A run that ends when the next is due is not met.
    assert_eq!(totals(&simulation, 0), [(SlotStatus::Ran, 4)]);
    assert!(simulation.overlaps.is_empty());
    assert_eq!(spans(&simulation)[3], (45, Some(45), None));
}

#[test]
fn a_due_time_that_meets_a_run_is_skipped() {
    let schedules = [planned("w/a", "*/10 * * * *", Policy::default())];
    let simulation = simulate(&schedules, &hour(25)).unwrap();
    // 0 runs until 25, 30 until 55; 10, 20, 40 and 50 are left out.
    assert_eq!(
        totals(&simulation, 0),
        [(SlotStatus::Ran, 2), (SlotStatus::SkippedOverlap, 4)]
    );
    let met = &simulation.overlaps[2];
    assert_eq!(met.due, at("2026-03-02T00:40:00Z"));
    assert_eq!(met.overlapped, [at("2026-03-02T00:30:00Z")]);
    assert_eq!((met.then, simulation.overlaps.len()), (Met::Skipped, 4));
}

#[test]
fn one_waits_and_the_next_are_skipped() {
    let schedules = [planned("w/a", "*/10 * * * *", overlap(Overlap::BufferOne))];
    let simulation = simulate(&schedules, &hour(25)).unwrap();
    // 0: 0 to 25. 10 waits: 25 to 50. 20 is left out. 30 waits: 50 on. 40 is left out. At 50 nothing waits.
    assert_eq!(
        spans(&simulation),
        [
            (0, Some(0), Some(25)),
            (10, Some(25), Some(50)),
            (30, Some(50), None),
            (50, None, None)
        ]
    );
    assert_eq!(
        totals(&simulation, 0),
        [(SlotStatus::Ran, 4), (SlotStatus::SkippedOverlap, 2)]
    );
}

#[test]
fn all_wait_in_order() {
    let schedules = [planned("w/a", "*/20 * * * *", overlap(Overlap::BufferAll))];
    let simulation = simulate(&schedules, &hour(25)).unwrap();
    assert_eq!(
        spans(&simulation),
        [
            (0, Some(0), Some(25)),
            (20, Some(25), Some(50)),
            (40, Some(50), None)
        ]
    );
    let then: Vec<Met> = simulation.overlaps.iter().map(|met| met.then).collect();
    assert_eq!(then, [Met::Waits, Met::Waits]);
}

#[test]
fn the_next_ends_the_other_or_runs_beside_it() {
    let schedules = [planned(
        "w/a",
        "*/20 * * * *",
        overlap(Overlap::CancelOther),
    )];
    let simulation = simulate(&schedules, &hour(25)).unwrap();
    assert_eq!(
        spans(&simulation),
        [
            (0, Some(0), Some(20)),
            (20, Some(20), Some(40)),
            (40, Some(40), None)
        ]
    );
    assert_eq!(simulation.schedules[0].terminated, 2);
    let schedules = [planned("w/a", "*/20 * * * *", overlap(Overlap::AllowAll))];
    let scenario = hour(45);
    let simulation = simulate(&schedules, &scenario).unwrap();
    assert_eq!(simulation.overlaps[1].overlapped.len(), 2);
    let load = simulation.load(scenario.from, scenario.to);
    assert_eq!(
        load,
        [Busy {
            hour: scenario.from,
            started: 3,
            max_concurrent: 3
        }]
    );
}

#[test]
fn what_follows_runs_when_the_other_has_ended() {
    let ended_other = planned("w/a", "*/20 * * * *", overlap(Overlap::CancelOther));
    let schedules = [
        ended_other,
        after("w/b", "w/a", AfterWhen::Succeeded),
        after("w/c", "w/a", AfterWhen::Failed),
        after("w/d", "w/b", AfterWhen::Always),
        after("w/e", "w/a", AfterWhen::Always),
    ];
    let mut scenario = hour(1);
    scenario.durations.insert("w/a".to_owned(), 30 * MINUTE);
    let simulation = simulate(&schedules, &scenario).unwrap();
    // Runs of `a` at 0 and 20 are ended by the next, that of 40 does not end in this hour.
    assert_eq!(totals(&simulation, 1), []);
    assert_eq!(totals(&simulation, 4), [(SlotStatus::Ran, 2)]);
    scenario.durations.insert("w/a".to_owned(), 5 * MINUTE);
    let simulation = simulate(&schedules, &scenario).unwrap();
    // Each of the three ends after 5 minutes, `b` a minute later.
    assert_eq!(totals(&simulation, 1), [(SlotStatus::Ran, 3)]);
    assert_eq!(totals(&simulation, 2), []);
    assert!(simulation.schedules[2].never_due.is_some());
    assert_eq!(totals(&simulation, 3), [(SlotStatus::Ran, 3)]);
    let follower = simulation.runs.iter().find(|run| run.schedule == "w/d");
    assert_eq!(follower.unwrap().due, at("2026-03-02T00:06:00Z"));
}

#[test]
fn every_policy_is_the_engines_own() {
    let blackout = Policy {
        blocked_hours: vec![2, 3],
        ..Policy::default()
    };
    let twice = Policy {
        max_actions: Some(5),
        start: Some(at("2026-03-02T10:00:00Z")),
        ..Policy::default()
    };
    let mut used = planned("w/b", "0 * * * *", twice);
    used.actions = 3;
    let mut paused = planned("w/c", "0 */6 * * *", Policy::default());
    paused.pause = Some(Pause {
        reason: "holidays".to_owned(),
        by: "ada".to_owned(),
        at: at("2026-03-01"),
    });
    let schedules = [planned("w/a", "30 * * * *", blackout), used, paused];
    let scenario = Scenario {
        to: at("2026-03-03T00:00:00Z"),
        ..hour(1)
    };
    let simulation = simulate(&schedules, &scenario).unwrap();
    assert_eq!(
        totals(&simulation, 0),
        [(SlotStatus::Ran, 22), (SlotStatus::BlockedHours, 2)]
    );
    let row = &simulation.schedules[0].rows[0];
    assert_eq!(
        (row.from, row.to, row.count),
        (
            at("2026-03-02T02:30:00Z"),
            at("2026-03-02T03:30:00Z"),
            Some(2)
        )
    );
    // Two of five are left, the first at 10.
    assert_eq!(totals(&simulation, 1), [(SlotStatus::Ran, 2)]);
    assert_eq!(totals(&simulation, 2), [(SlotStatus::Paused, 4)]);
    assert_eq!(
        simulation.schedules[2].rows[0].reason.as_deref(),
        Some("holidays")
    );
}

#[test]
fn what_no_daemon_was_there_for_is_caught_up_as_the_policy_says() {
    let mode = |mode, window_ms| Policy {
        catch_up: CatchUp { mode, window_ms },
        ..Policy::default()
    };
    let schedules = [
        planned(
            "w/last",
            "5/10 * * * *",
            mode(CatchUpMode::Last, 60 * MINUTE),
        ),
        planned("w/all", "5/10 * * * *", mode(CatchUpMode::All, 20 * MINUTE)),
        planned(
            "w/none",
            "5/10 * * * *",
            mode(CatchUpMode::None, 60 * MINUTE),
        ),
    ];
    let mut scenario = hour(1);
    // 15, 25 and 35 are missed.
    scenario.down = vec![(at("2026-03-02T00:10:00Z"), at("2026-03-02T00:40:00Z"))];
    let simulation = simulate(&schedules, &scenario).unwrap();
    assert_eq!(
        totals(&simulation, 0),
        [
            (SlotStatus::Ran, 3),
            (SlotStatus::CaughtUp, 1),
            (SlotStatus::Missed, 2)
        ]
    );
    // 15 is older than 20 minutes; 25 and 35 run one after the other.
    assert_eq!(
        totals(&simulation, 1),
        [
            (SlotStatus::Ran, 3),
            (SlotStatus::CaughtUp, 2),
            (SlotStatus::Missed, 1)
        ]
    );
    let late: Vec<_> = simulation
        .runs
        .iter()
        .filter(|run| run.schedule == "w/all" && run.status == SlotStatus::CaughtUp)
        .map(|run| run.started_at.unwrap())
        .collect();
    assert_eq!(
        late,
        [at("2026-03-02T00:40:00Z"), at("2026-03-02T00:41:00Z")]
    );
    assert_eq!(
        totals(&simulation, 2),
        [(SlotStatus::Ran, 3), (SlotStatus::Missed, 3)]
    );
}

#[test]
fn load_is_counted_by_the_hour() {
    let schedules = [
        planned("w/a", "50 0 * * *", Policy::default()),
        planned("w/b", "0 1 * * *", Policy::default()),
    ];
    let mut scenario = hour(20);
    scenario.to = at("2026-03-02T04:00:00Z");
    let simulation = simulate(&schedules, &scenario).unwrap();
    let load: Vec<_> = simulation
        .load(scenario.from, scenario.to)
        .iter()
        .map(|busy| {
            (
                busy.hour.rfc3339()[11..13].to_owned(),
                busy.started,
                busy.max_concurrent,
            )
        })
        .collect();
    assert_eq!(load, [("00".to_owned(), 1, 1), ("01".to_owned(), 1, 2)]);
}

#[test]
fn a_heap_of_runs_is_told_by_its_size() {
    let schedules = [planned("w/a", "* * * * *", overlap(Overlap::BufferAll))];
    let mut scenario = hour(60 * 24 * 365);
    scenario.to = at("2026-05-01T00:00:00Z");
    // 60 days of minutes; each meets all before it.
    let simulation = simulate(&schedules, &scenario).unwrap();
    assert_eq!(simulation.runs.len(), 86_400);
    let last = simulation.overlaps.last().unwrap();
    assert_eq!((last.overlapped.len(), last.others), (MET_MAX, 86_399));
}

#[test]
fn what_is_too_much_is_refused_by_name() {
    let schedules = [planned("w/a", "* * * * *", Policy::default())];
    let scenario = |to: &str| Scenario {
        to: at(to),
        ..hour(1)
    };
    let refused = |to: &str| simulate(&schedules, &scenario(to)).unwrap_err();
    assert_eq!(refused("2026-03-02"), ScenarioError::Backwards);
    assert_eq!(refused("2027-03-04"), ScenarioError::TooLong);
    // The slot after the hundred thousandth: 69 days, 10 hours and 40 minutes.
    assert_eq!(
        refused("2026-06-01"),
        ScenarioError::TooMany(at("2026-05-10T10:40:00Z"))
    );
}

#[test]
fn the_same_leads_to_the_same() {
    let jitter = Policy {
        jitter_ms: 5 * MINUTE,
        ..overlap(Overlap::BufferOne)
    };
    let schedules = [
        planned("w/a", "*/3 * * * *", jitter),
        after("w/b", "w/a", AfterWhen::Succeeded),
    ];
    let one = simulate(&schedules, &hour(4)).unwrap();
    assert_eq!(one, simulate(&schedules, &hour(4)).unwrap());
    assert!(one.runs.len() > 10);
}

/// A run under way of such a skill, for the slot of this many minutes before midnight.
fn under_way(skill: &str, slot: Option<u64>, started: bool) -> ActiveRun {
    let due = slot.map(|minutes| hour(0).from.minus_millis(minutes * MINUTE));
    ActiveRun {
        skill: skill.to_owned(),
        slot: due.map(|due| (skill.to_owned(), due)),
        started_at: due.filter(|_| started),
    }
}

#[test]
fn runs_under_way_are_met_until_they_have_lasted_as_long_as_others() {
    let schedules = [planned("w/a", "*/10 * * * *", overlap(Overlap::Skip))];
    let scenario = Scenario {
        active: vec![under_way("w/a", Some(10), true)],
        ..hour(25)
    };
    let simulation = simulate(&schedules, &scenario).unwrap();
    // The one under way ends at 00:15, the run of 00:20 at 00:45.
    assert_eq!(
        totals(&simulation, 0),
        [(SlotStatus::Ran, 2), (SlotStatus::SkippedOverlap, 4)]
    );
    let first = &simulation.runs[0];
    assert!(first.under_way && !simulation.runs[1].under_way);
    assert_eq!(first.ended_at, Some(at("2026-03-02T00:15:00Z")));
    assert_eq!(
        simulation.overlaps[0].overlapped,
        [at("2026-03-01T23:50:00Z")]
    );
    let load = simulation.load(scenario.from, scenario.to);
    assert_eq!((load[0].started, load[0].max_concurrent), (2, 1));
    // It has lasted longer already.
    let scenario = Scenario {
        otherwise_ms: 5 * MINUTE,
        ..scenario
    };
    let simulation = simulate(&schedules, &scenario).unwrap();
    let ended = simulation.runs[0].ended_at;
    assert_eq!(ended, Some(at("2026-03-02T00:00:00.001Z")));
}

#[test]
fn runs_that_wait_follow_the_one_under_way_and_runs_of_no_schedule_are_followed() {
    let buffer = overlap(Overlap::BufferAll);
    let schedules = [
        planned("w/a", "0 12 * * *", buffer),
        after("w/b", "w/a", AfterWhen::Succeeded),
        after("w/c", "w/d", AfterWhen::Succeeded),
    ];
    let scenario = Scenario {
        active: vec![
            under_way("w/a", Some(5), true),
            under_way("w/a", Some(3), false),
            under_way("w/d", None, false),
        ],
        ..hour(10)
    };
    let simulation = simulate(&schedules, &scenario).unwrap();
    let ends = simulation.runs.iter().map(|run| run.ended_at.unwrap());
    let minute = |at: Timestamp| at.millis_since(scenario.from) / MINUTE;
    let ends: Vec<_> = simulation
        .runs
        .iter()
        .map(|run| run.schedule.as_str())
        .zip(ends.map(minute))
        .collect();
    let expected = [
        ("w/a", 5),
        ("w/a", 15),
        ("w/b", 15),
        ("w/c", 20),
        ("w/b", 25),
    ];
    assert_eq!(ends, expected);
    assert_eq!(totals(&simulation, 0), []);
}
