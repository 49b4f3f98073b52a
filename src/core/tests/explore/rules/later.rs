//! Commits that are kept of ended runs.

use super::*;

const LATER: fn() -> Event = || Event::LandedLater {
    oid: "a".to_owned(),
    by: None,
};

const DISCARDED: Event = Event::Discarded { by: None };

/// A person looked, and settled it.
pub(super) fn resolved(resolution: Resolution) -> Event {
    let note = "looked".into();
    let by = None;
    Event::Resolved {
        resolution,
        note,
        by,
    }
}

fn landing() -> Vec<Event> {
    way("committed")
}

fn land_failed() -> Vec<Event> {
    let failure = failure(Step::Land);
    let ended = [
        Event::CommitFailed { failure },
        restored(true),
        Event::Saved,
    ];
    with(landing(), &ended)
}

#[test]
fn a_run_that_failed_to_land_lands_later_once() {
    let plan = mutating();
    let failed = row(&plan, &land_failed(), "`finished` → failed(land, limit)");
    assert_eq!(failed.kept_commit(), Some("a"));
    for closed in [vec![], vec![Event::Closed]] {
        let way = with(land_failed(), &with(closed, &[LATER()]));
        let landed = row(&plan, &way, "`finished` → succeeded");
        assert_eq!(landed.next_action(), Some(Action::Close));
        assert_eq!(landed.facts.commit.as_deref(), Some("a"));
        assert_eq!(landed.facts.results.commit, StepResult::Passed);
        assert_eq!(landed.kept_commit(), None);
        assert!(landed.apply(AT, &LATER()).is_err());
        assert!(landed.apply(AT, &DISCARDED).is_err());
    }
}

#[test]
fn what_is_discarded_stays_failed_and_no_longer_lands() {
    let plan = mutating();
    let way = with(land_failed(), &[Event::Closed, DISCARDED]);
    let run = row(&plan, &way, "`finished` → failed(land, limit)");
    assert_eq!(run.next_action(), Some(Action::Close));
    assert_eq!(run.kept_commit(), None);
    assert!(run.apply(AT, &LATER()).is_err());
    assert!(run.apply(AT, &DISCARDED).is_err());
}

#[test]
fn a_run_that_was_cancelled_while_it_waited_to_land_is_kept() {
    let waited = Event::LandingWaiting {
        code: "busy".to_owned(),
        why: "w".to_owned(),
    };
    let ended = [
        waited,
        cancel(),
        Event::LandingStopped,
        restored(true),
        Event::Saved,
    ];
    let way = with(landing(), &ended);
    let run = row(&mutating(), &way, "`finished` → cancelled");
    assert_eq!(run.kept_commit(), Some("a"));
    row(
        &mutating(),
        &with(way, &[LATER()]),
        "`finished` → succeeded",
    );
}

#[test]
fn what_was_to_be_verified_again_is_not_kept() {
    let moved = Event::TargetMoved {
        tip: "b2".to_owned(),
    };
    let way = with(
        landing(),
        &[
            moved,
            cancel(),
            recorded(1, true),
            restored(true),
            Event::Saved,
        ],
    );
    let run = row(&mutating(), &way, "`finished` → cancelled");
    assert_eq!(run.kept_commit(), None);
    assert!(run.apply(AT, &LATER()).is_err());
}

#[test]
fn runs_without_a_commit_that_waits_take_neither() {
    let plan = mutating();
    let failed = [bad(1), recorded(1, true), restored(true), Event::Saved];
    for events in [
        vec![],
        landing(),
        with(landing(), &[committed()]),
        with(way("execution_finished"), &failed),
    ] {
        let run = after(&plan, &events);
        assert!(run.apply(AT, &LATER()).is_err(), "{:?}", run.state);
        assert!(run.apply(AT, &DISCARDED).is_err(), "{:?}", run.state);
    }
}
