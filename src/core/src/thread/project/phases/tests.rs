//! Phases of whole journals, whose entries are one second apart.

use crate::machine::{Approval, CancelKind, Entry, Event, Resolution};
use crate::model::RunSpec;
use crate::model::evidence::{HeldResult, RestoreReport, Verdict};
use crate::model::outcome::{Failure, Step};
use crate::model::spec::{Approving, Gate};
use crate::thread::project::Story;
use crate::thread::samples::{self, START, admitted, checked, executed, journal, prepared};
use crate::thread::samples::{recorded, submitted, validated};

/// Each phase with its attempt, its begin and end in seconds, and what is special about it.
fn phases(spec: &RunSpec, entries: &[Entry]) -> String {
    let seconds = |at: crate::model::Timestamp| (at.millis() - START) / 1_000;
    let story = Story::of(spec, entries);
    let lines = story.phases.iter().map(|one| {
        let end = one
            .end
            .map_or("…".to_owned(), |end| seconds(end).to_string());
        let (begin, mut text) = (seconds(one.begin), String::new());
        for (is_so, word) in [(one.waiting, " waits"), (one.owner_lost, " lost")] {
            text.push_str(if is_so { word } else { "" });
        }
        if let Some(reason) = &one.waiting_for {
            text = format!("{text} for {reason}");
        }
        format!("{} {} {begin}-{end}{text}", one.attempt, one.phase)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(spec: &RunSpec, events: Vec<Event>, expected: &[&str]) {
    let entries = journal(events);
    assert_eq!(phases(spec, &entries), expected.join("\n"));
    let story = Story::of(spec, &entries);
    let since_start = story.phases.iter().skip_while(|one| one.attempt == 0);
    let worked = since_start.filter(|one| !one.waiting).filter_map(|one| {
        let end = one.end?;
        Some(end.millis_since(one.begin))
    });
    let started = story.summary.started_at();
    assert_eq!(
        story.summary.duration_ms(),
        started.map(|_| worked.sum::<u64>())
    );
}

/// A specification without hooks, whose runs a person has to approve.
fn spec(before: Option<Gate>) -> RunSpec {
    let mut spec = samples::spec();
    spec.hooks.clear();
    spec.plan.hooks = 0;
    let expires_ms = 60_000;
    spec.plan.approval = before.map(|before| Approving { before, expires_ms });
    spec
}

fn restored() -> Event {
    let report = RestoreReport::default();
    Event::Restored { report }
}

fn approved() -> Event {
    let approval = Approval {
        digest: "d".to_owned(),
        by: "ada".to_owned(),
        note: None,
    };
    Event::Approved { approval }
}

fn ready(oid: &str) -> Event {
    Event::CommitPrepared {
        oid: oid.to_owned(),
        parent: None,
        reference: "refs/heads/main".to_owned(),
    }
}

fn committed() -> Event {
    Event::Committed {
        oid: "a".to_owned(),
        warning: None,
    }
}

fn done(attempt: u32) -> Vec<Event> {
    let passed = checked(attempt, Verdict::Passed);
    vec![
        executed(attempt, 0),
        recorded(attempt),
        passed,
        Event::Saved,
    ]
}

fn begun(spec: &RunSpec) -> Vec<Event> {
    vec![submitted(spec), admitted(), validated(), prepared()]
}

const BEGUN: [&str; 3] = ["0 queued 0-1 waits", "0 validating 1-2", "0 preparing 2-3"];

#[test]
fn a_run_that_is_retried_has_the_phases_of_each_attempt() {
    let spec = samples::spec();
    let told = phases(&spec, &samples::succeeded(&spec));
    let expected = [
        &BEGUN[..],
        &[
            "1 executing 3-4",
            "1 verifying 4-5",
            "1 restoring 5-6",
            "1 backing_off 6-7 waits",
            "2 executing 7-8",
            "2 verifying 8-10",
            "2 post_hook 10-11",
            "2 saving 11-12",
            "2 committing 12-14",
        ],
    ];
    assert_eq!(told, expected.concat().join("\n"));
}

#[test]
fn a_phase_that_lasts_has_no_end() {
    let spec = spec(None);
    let expected = [&BEGUN[..], &["1 executing 3-…"]].concat();
    check(&spec, begun(&spec), &expected);
    check(&spec, vec![submitted(&spec)], &["0 queued 0-… waits"]);
}

#[test]
fn a_run_that_a_person_approves_waits_for_them_and_for_its_turn_once_more() {
    let before = spec(Some(Gate::Execution));
    let events = [
        vec![
            submitted(&before),
            admitted(),
            validated(),
            approved(),
            admitted(),
        ],
        vec![validated(), prepared()],
        done(1),
    ];
    let expected = [
        "0 queued 0-1 waits",
        "0 validating 1-2",
        "0 awaiting_approval 2-3 waits",
        "0 queued 3-4 waits",
        "0 validating 4-5",
        "0 preparing 5-6",
        "1 executing 6-7",
        "1 verifying 7-9",
        "1 saving 9-10",
        "1 committing 10-…",
    ];
    check(&before, events.concat(), &expected);

    let landing = spec(Some(Gate::Landing));
    let result = HeldResult {
        commit: Some("a".to_owned()),
        outputs: Vec::new(),
    };
    let held = vec![Event::Held { result }, approved(), admitted(), ready("a")];
    let events = [begun(&landing), done(1), held, vec![committed()]];
    let expected = [
        &BEGUN[..],
        &[
            "1 executing 3-4",
            "1 verifying 4-6",
            "1 saving 6-7",
            "1 committing 7-8",
            "1 awaiting_approval 8-9 waits",
            "1 queued 9-10 waits",
            "1 committing 10-12",
        ],
    ];
    check(&landing, events.concat(), &expected.concat());
}

#[test]
fn a_run_that_is_cancelled_in_the_queue_was_only_queued_and_saved() {
    let spec = spec(None);
    let cancelled = Event::CancelRequested {
        kind: CancelKind::Graceful,
        by: "ada".to_owned(),
    };
    let events = vec![submitted(&spec), cancelled, Event::Saved, Event::Closed];
    check(&spec, events, &["0 queued 0-1 waits", "0 saving 1-2"]);
}

#[test]
fn what_a_lost_engine_did_ends_when_the_next_one_finds_it() {
    let mut spec = spec(None);
    spec.plan.mutating = false;
    spec.plan.prepares = false;
    let lost = || Event::OwnerLost;
    let events = vec![
        submitted(&spec),
        // Who waits goes on waiting.
        lost(),
        admitted(),
        validated(),
        lost(),
        executed(2, 0),
        lost(),
        checked(2, Verdict::Passed),
        Event::Saved,
    ];
    let expected = [
        "0 queued 0-2 waits",
        "0 validating 2-3",
        "1 executing 3-4 lost",
        "2 executing 4-5",
        "2 verifying 5-6 lost",
        "2 verifying 6-7",
        "2 saving 7-8",
    ];
    check(&spec, events, &expected);
}

#[test]
fn a_landing_that_waits_is_told_apart_and_one_that_comes_later_is_an_act() {
    let spec = spec(None);
    let waiting = |why: &str| Event::LandingWaiting {
        code: "checkout_dirty".to_owned(),
        why: why.to_owned(),
    };
    let failure = Failure::new(Step::Land, "checkout_dirty", "x");
    let after = vec![
        ready("a"),
        waiting("x"),
        waiting("x"),
        waiting("y"),
        Event::CommitFailed { failure },
        restored(),
        Event::Saved,
        Event::Closed,
        Event::LandedLater {
            oid: "a".to_owned(),
            by: Some("ada".to_owned()),
        },
        Event::Closed,
    ];
    let events = [begun(&spec), done(1), after].concat();
    let expected = [
        &BEGUN[..],
        &[
            "1 executing 3-4",
            "1 verifying 4-6",
            "1 saving 6-7",
            "1 committing 7-9",
            "1 committing 9-11 waits for x",
            "1 committing 11-12 waits for y",
            "1 restoring 12-13",
            "1 saving 13-14",
        ],
    ];
    check(&spec, events.clone(), &expected.concat());
    let acts = Story::of(&spec, &journal(events)).audit;
    let told = acts
        .iter()
        .map(|act| (act.action.as_str(), act.by.as_deref()));
    let expected = [("submitted", Some("cli uid 1000")), ("landed", Some("ada"))];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn acts_have_who_did_them_and_what_they_added_and_old_journals_lack_some() {
    let spec = spec(None);
    let old = r#"{"type":"resolved","resolution":"failed","note":"looked"}"#;
    let resolved: Event = serde_json::from_str(old).unwrap();
    assert_eq!(serde_json::to_string(&resolved).unwrap(), old);
    let discarded: Event = serde_json::from_str(r#"{"type":"discarded"}"#).unwrap();
    assert_eq!(discarded, Event::Discarded { by: None });
    let given_up = Event::GivenUp {
        why: "store_rebuilt".to_owned(),
    };
    let events = vec![submitted(&spec), given_up.clone(), resolved];
    let act = Story::of(&spec, &journal(events)).audit.pop().unwrap();
    assert_eq!((act.action.as_str(), act.by), ("resolved", None));
    assert_eq!(act.note.as_deref(), Some("looked"));
    let resolved = Event::Resolved {
        resolution: Resolution::Succeeded,
        note: "looked".to_owned(),
        by: Some("ada".to_owned()),
    };
    let events = vec![submitted(&spec), given_up, resolved];
    let act = Story::of(&spec, &journal(events)).audit.pop().unwrap();
    assert_eq!(act.by.as_deref(), Some("ada"));
}
