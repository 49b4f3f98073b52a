//! A person's approval before the command and before the landing.

use super::*;
use workerctl_core::model::evidence::HeldResult;
use workerctl_core::model::spec::{Approving, Gate};

fn asking(plan: Plan, before: Gate) -> Plan {
    let expires_ms = 60_000;
    Plan {
        approval: Some(Approving { before, expires_ms }),
        ..plan
    }
}

fn held() -> Event {
    let commit = Some("a".to_owned());
    let outputs = Vec::new();
    Event::Held {
        result: HeldResult { commit, outputs },
    }
}

fn approved() -> Event {
    let (digest, by, note) = ("d".to_owned(), "me".to_owned(), None);
    Event::Approved {
        approval: Approval { digest, by, note },
    }
}

fn denied() -> Event {
    let (by, note) = ("me".to_owned(), "no".to_owned());
    Event::Denied { by, note }
}

#[test]
fn a_command_waits_validated_and_is_validated_once_more() {
    let plan = asking(reading(), Gate::Execution);
    let there = [admitted(), VALIDATED];
    let run = row(&plan, &there, "`awaiting_approval`");
    assert_eq!((run.next_action(), run.asked()), (None, Some((AT, 60_000))));
    assert!(!run.facts.touched);
    let again = with(there.to_vec(), &[approved()]);
    row(&plan, &again, "`queued`");
    let again = with(again, &[admitted()]);
    row(&plan, &again, "`validating`");
    row(&plan, &with(again, &[VALIDATED]), "`preparing`");
    for (event, expected) in [
        (denied(), "`saving` → denied"),
        (Event::ApprovalExpired, "`saving` → denied"),
        (cancel(), "`saving` → cancelled"),
        (Event::OwnerLost, "`awaiting_approval`"),
    ] {
        row(&plan, &with(there.to_vec(), &[event]), expected);
    }
}

#[test]
fn a_result_waits_verified_and_lands_only_when_it_is_approved() {
    let plan = asking(mutating(), Gate::Landing);
    let there = way("commit_prepared");
    let run = after(&plan, &there);
    assert!(
        run.apply(AT, &committing()).is_err(),
        "nobody has approved it"
    );
    let there = with(there, &[held()]);
    let run = row(&plan, &there, "`awaiting_approval`");
    assert_eq!(run.kept_commit(), None);
    let approved = with(there.clone(), &[approved(), admitted()]);
    row(&plan, &approved, "`committing`");
    let landed = with(approved, &[committing(), committed()]);
    row(&plan, &landed, "`announcing`");
    // What ends before that can never land.
    for event in [denied(), cancel(), Event::ApprovalExpired] {
        let run = after(&plan, &with(there.clone(), &[event, Event::Saved]));
        assert!(run.is_finished());
        assert_eq!(run.kept_commit(), None);
    }
}

#[test]
fn no_attempt_follows_an_approval_of_the_result() {
    let plan = asking(retrying(), Gate::Landing);
    let landing = with(
        way("commit_prepared"),
        &[held(), approved(), admitted(), committing()],
    );
    let tip = "b".to_owned();
    let moved = with(
        landing.clone(),
        &[Event::TargetMoved { tip }, recorded(1, true)],
    );
    let failed = with(moved, &[checked(1, Verdict::Failed)]);
    row(&plan, &failed, "`restoring` → failed(verify, check_failed)");
    let failure = failure(Step::Land);
    let conflict = with(landing, &[Event::Conflicted { failure }]);
    row(&plan, &conflict, "`restoring` → failed(land, limit)");
    let kept = after(&plan, &with(conflict, &[restored(true), Event::Saved]));
    assert_eq!(kept.kept_commit(), Some("a"));
}
