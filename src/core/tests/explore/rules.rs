//! The design's table of crash, cancel and limits, row by row, and the rules beside it.

mod approval;
mod conversation;
mod later;
mod rate_limit;
mod scenes;
mod stale;
mod tree_lost;

use workerctl_core::machine::*;
use workerctl_core::model::evidence::{CheckRecord, Ended, Verdict};
use workerctl_core::model::outcome::{Outcome, Results, Step, StepResult};
use workerctl_core::model::spec::{OnCrash, Plan};

use crate::page::label;
use crate::representatives::{AT, check};
use scenes::*;

#[test]
fn queued_and_validating() {
    let plan = mutating();
    row(&plan, &[Event::OwnerLost], "`queued`");
    row(&plan, &[cancel()], "`saving` → cancelled");
    let there = way("validated");
    row(
        &plan,
        &with(there.clone(), &[Event::OwnerLost]),
        "`validating`",
    );
    row(
        &plan,
        &with(there.clone(), &[cancel()]),
        "`validating` → ending",
    );
    row(
        &plan,
        &with(there.clone(), &[cancel(), VALIDATED]),
        "`saving` → cancelled",
    );
    row(
        &plan,
        &with(there.clone(), &[cancel(), Event::OwnerLost]),
        "`saving` → cancelled",
    );
    let nothing = Event::NothingToDo { checks: vec![] };
    let idle = with(there.clone(), std::slice::from_ref(&nothing));
    let run = row(&plan, &idle, "`finished` → succeeded");
    assert_eq!(run.next_action(), Some(Action::Close));
    assert_eq!(run.facts.results, Results::nothing_to_do());
    row(
        &plan,
        &with(there.clone(), &[cancel(), nothing]),
        "`saving` → cancelled",
    );
    let limit = Event::ValidationFailed {
        failure: failure(Step::Validate),
        checks: vec![],
    };
    row(
        &retrying(),
        &with(there, &[limit]),
        "`saving` → failed(validate, limit)",
    );
}

#[test]
fn preparing() {
    let plan = mutating();
    let there = way("prepared");
    row(
        &plan,
        &with(there.clone(), &[Event::OwnerLost]),
        "`preparing`",
    );
    row(
        &plan,
        &with(there.clone(), &[cancel(), prepared()]),
        "`restoring` → cancelled",
    );
    let limit = Event::PreparationFailed {
        failure: failure(Step::Prepare),
    };
    let run = with(there, &[limit]);
    row(&plan, &run, "`restoring` → failed(prepare, limit)");
    row(
        &plan,
        &with(run, &[restored(true)]),
        "`saving` → failed(prepare, limit)",
    );
    let mut careless = plan.clone();
    careless.prepares = false;
    row(&careless, &[admitted(), VALIDATED], "`preparing`");
}

#[test]
fn executing_without_an_owner() {
    let there = way("execution_finished");
    let lost = with(there.clone(), &[Event::OwnerLost]);
    let reading_run = row(&reading(), &lost, "`executing`");
    assert_eq!(reading_run.facts.attempts, 2);
    row(&retrying(), &lost, "`recording` → retry");
    row(&mutating(), &lost, "`recording` → reconcile");
    let mut restoring = mutating();
    restoring.on_crash = OnCrash::Restore;
    row(&restoring, &lost, "`recording` → unknown(owner_lost)");

    let three = with(there.clone(), &vec![Event::OwnerLost; 3]);
    let run = row(&reading(), &three, "`saving` → failed(execute, crash_loop)");
    assert_eq!(
        (run.facts.crash_attempts, run.facts.failed_attempts),
        (3, 0)
    );
    let again = |attempt| [Event::OwnerLost, recorded(attempt, true), restored(true)];
    let twice = with(with(there, &again(1)), &again(2));
    row(&retrying(), &twice, "`executing`");
    let third = with(twice, &[Event::OwnerLost]);
    row(
        &retrying(),
        &third,
        "`recording` → failed(execute, crash_loop)",
    );
}

#[test]
fn executing_ended_from_outside() {
    let there = way("execution_finished");
    let stopped = ended(1, Ended::Stopped);
    let ending = with(
        there.clone(),
        &[cancel(), stopped.clone(), recorded(1, true)],
    );
    row(&mutating(), &ending, "`restoring` → cancelled");
    row(
        &reading(),
        &with(there.clone(), &[cancel(), stopped.clone()]),
        "`saving` → cancelled",
    );

    let timed_out = with(there.clone(), &[ended(1, Ended::TimedOut)]);
    row(&mutating(), &timed_out, "`recording` → timed_out");
    row(&retrying(), &timed_out, "`recording` → retry");

    let drained = with(there.clone(), &[Event::Interrupted, stopped.clone()]);
    row(&reading(), &drained, "`queued`");
    row(
        &mutating(),
        &drained,
        "`recording` → failed(execute, interrupted)",
    );
    let requeued = with(drained, &[recorded(1, true), restored(true)]);
    let run = row(&retrying(), &requeued, "`queued`");
    assert_eq!(run.facts.executing_since, None);

    let exhausted = with(
        there,
        &[Event::RuntimeExhausted, stopped, recorded(1, true)],
    );
    row(&mutating(), &exhausted, "`restoring` → timed_out");
}

#[test]
fn a_lost_mutating_run_goes_on_only_when_proven() {
    let lost = with(way("execution_finished"), &[Event::OwnerLost]);
    let unknown = "`restoring` → unknown(owner_lost)";
    row(
        &mutating(),
        &with(lost.clone(), &[recorded(1, false)]),
        unknown,
    );
    let written = with(lost.clone(), &[recorded(1, true)]);
    let good = with(written.clone(), &[checked(1, Verdict::Passed)]);
    let run = row(&mutating(), &good, "`post_hook`");
    assert!(run.facts.reconciled);
    assert_eq!(run.facts.results.execution.name(), "unknown");
    for verdict in [Verdict::Failed, Verdict::Warned, Verdict::NotRun] {
        row(
            &mutating(),
            &with(written.clone(), &[checked(1, verdict)]),
            unknown,
        );
    }
    let mut unproven = mutating();
    unproven.verifies = false;
    row(&unproven, &written, unknown);
    let failed = Event::RecordingFailed {
        attempt: 1,
        failure: failure(Step::Verify),
    };
    row(&mutating(), &with(lost.clone(), &[failed]), unknown);
    let late = [Event::RuntimeExhausted, recorded(1, true)];
    row(&mutating(), &with(lost, &late), unknown);
    let late = [Event::RuntimeExhausted, checked(1, Verdict::NotRun)];
    row(&mutating(), &with(written, &late), unknown);
}

#[test]
fn verifying_and_backing_off() {
    let there = way("checks_finished");
    row(
        &mutating(),
        &with(there.clone(), &[Event::OwnerLost]),
        "`verifying`",
    );
    let stop = [cancel(), checked(1, Verdict::NotRun)];
    row(
        &mutating(),
        &with(there.clone(), &stop),
        "`restoring` → cancelled",
    );
    let failed = with(there, &[checked(1, Verdict::Failed)]);
    row(
        &mutating(),
        &failed,
        "`restoring` → failed(verify, check_failed)",
    );
    row(&retrying(), &failed, "`restoring` → retry");

    let waiting = with(failed, &[restored(true)]);
    row(&retrying(), &waiting, "`backing_off`");
    row(
        &retrying(),
        &with(waiting.clone(), &[Event::OwnerLost]),
        "`backing_off`",
    );
    row(
        &retrying(),
        &with(waiting.clone(), &[cancel()]),
        "`restoring` → cancelled",
    );
    let late = with(waiting.clone(), &[Event::RuntimeExhausted]);
    row(&retrying(), &late, "`restoring` → timed_out");
    let next = with(waiting, &[Event::BackoffElapsed { attempt: 2 }]);
    let run = row(&retrying(), &next, "`executing`");
    assert_eq!(run.facts.results.verification, StepResult::Pending);
}

#[test]
fn post_hook_and_saving() {
    let plan = mutating();
    let there = with(way("hook_finished"), &[hooked(0, HookVerdict::Passed)]);
    let run = row(
        &plan,
        &with(there.clone(), &[Event::OwnerLost]),
        "`post_hook`",
    );
    assert_eq!(run.next_action(), Some(Action::RunHook { index: 1 }));
    let stop = [cancel(), hooked(1, HookVerdict::Passed)];
    row(
        &plan,
        &with(there.clone(), &stop),
        "`restoring` → cancelled",
    );
    let message = "no".to_owned();
    let warned = [hooked(
        1,
        HookVerdict::Warned {
            message: message.clone(),
        },
    )];
    let run = row(&plan, &with(there.clone(), &warned), "`saving` → commit");
    assert_eq!(run.facts.warnings.len(), 1);
    let blocked = [hooked(1, HookVerdict::Blocked { message })];
    row(
        &plan,
        &with(there, &blocked),
        "`restoring` → failed(hook, hook_blocked)",
    );

    let there = way("saved");
    row(
        &plan,
        &with(there.clone(), &[Event::OwnerLost]),
        "`saving` → commit",
    );
    row(
        &plan,
        &with(there, &[cancel(), Event::Saved]),
        "`restoring` → cancelled",
    );
    let limit = Event::PreparationFailed {
        failure: failure(Step::Prepare),
    };
    let failed = after(&plan, &with(way("prepared"), &[limit, restored(true)]));
    assert!(
        failed.apply(AT, &cancel()).is_err(),
        "the run has failed already"
    );
}

#[test]
fn committing_restoring_and_finished() {
    let plan = mutating();
    for until in ["commit_prepared", "committed", "nothing"] {
        let run = after(&plan, &way(until));
        assert_eq!(run.phase().name(), "committing");
        // Only what waits to land can still be ended.
        let waits = until == "committed";
        assert_eq!(run.apply(AT, &cancel()).is_ok(), waits, "{until}");
        assert_eq!(run.apply(AT, &Event::OwnerLost).unwrap().state, run.state);
    }
    let limit = Event::CommitFailed {
        failure: failure(Step::Commit),
    };
    let failed = with(way("committed"), &[limit]);
    row(&plan, &failed, "`restoring` → failed(commit, limit)");
    row(
        &plan,
        &with(failed.clone(), &[Event::OwnerLost]),
        "`restoring` → failed(commit, limit)",
    );
    row(
        &plan,
        &with(failed.clone(), &[cancel()]),
        "`restoring` → failed(commit, limit)",
    );
    let run = row(
        &plan,
        &with(failed, &[restored(false)]),
        "`saving` → failed(commit, limit)",
    );
    assert_eq!(run.facts.not_restored, 1);

    let mut events = way("nothing");
    events.push(followed(0, HookVerdict::Passed));
    let run = row(&plan, &events, "`finished` → succeeded");
    assert_eq!(run.next_action(), Some(Action::Close));
    assert!(run.apply(AT, &cancel()).is_err());
    assert_eq!(run.apply(AT, &Event::OwnerLost).unwrap().state, run.state);
}

#[test]
fn what_was_not_put_back_ends_the_retries() {
    let there = with(way("execution_finished"), &[bad(1), recorded(1, true)]);
    let left = with(there, &[restored(false)]);
    row(
        &retrying(),
        &left,
        "`saving` → failed(execute, not_restored)",
    );
}

#[test]
fn a_mutating_command_that_is_not_idempotent_has_one_attempt() {
    let mut plan = retrying();
    plan.idempotent = false;
    let failed = with(way("execution_finished"), &[bad(1)]);
    row(&plan, &failed, "`recording` → failed(execute, exit_code)");
}

#[test]
fn what_says_that_it_may_not_be_repeated_is_not_although_it_changes_nothing() {
    let plan = Plan {
        once: true,
        retry: retrying().retry,
        ..reading()
    };
    assert!(!plan.is_repeatable() && reading().is_repeatable());
    let there = way("execution_finished");
    let lost = with(there.clone(), &[Event::OwnerLost]);
    row(&plan, &lost, "`recording` → reconcile");
    let proven = [recorded(1, true), checked(1, Verdict::Passed)];
    let run = row(&plan, &with(lost.clone(), &proven), "`saving` → succeeded");
    assert!(run.facts.reconciled);
    let not_new = with(lost, &[recorded(1, false)]);
    row(&plan, &not_new, "`saving` → unknown(owner_lost)");
    let drained = with(there.clone(), &[Event::Interrupted, bad(1)]);
    row(&plan, &drained, "`saving` → failed(execute, interrupted)");
    row(
        &plan,
        &with(there, &[bad(1)]),
        "`saving` → failed(execute, exit_code)",
    );
    let silent = Plan {
        prepares: false,
        ..plan
    };
    let lost = [admitted(), VALIDATED, Event::OwnerLost];
    row(&silent, &lost, "`saving` → unknown(owner_lost)");
}

#[test]
fn outputs_that_are_there_prove_nothing_after_a_crash() {
    let lost = with(way("execution_finished"), &[Event::OwnerLost]);
    let unproven = Plan {
        proves: Some(false),
        ..mutating()
    };
    let run = row(&unproven, &lost, "`recording` → unknown(owner_lost)");
    let why = StepResult::skipped("nothing_to_prove_it");
    assert_eq!(run.facts.results.verification, why);
    let of_outputs = Event::ChecksFinished {
        attempt: 1,
        checks: vec![CheckRecord {
            command: None,
            ..check(Verdict::Passed)
        }],
        failure: None,
        changed: false,
    };
    let checked = with(lost, &[recorded(1, true), of_outputs]);
    row(&mutating(), &checked, "`restoring` → unknown(owner_lost)");
    // A journal of the first version goes on from here to its commit, and has to fold for ever.
    let stored = serde_json::json!({
        "mutating": true, "idempotent": false, "validates": true, "prepares": true, "verifies": true,
        "on_crash": mutating().on_crash, "retry": mutating().retry, "hooks": 2, "post_commit_hooks": 1,
        "max_runtime_ms": 1_000,
    });
    let first: Plan = serde_json::from_value(stored).unwrap();
    assert!(!first.once && first.proves.is_none());
    row(&first, &checked, "`post_hook`");
}

#[test]
fn only_an_unknown_outcome_is_settled_and_only_once() {
    let mut plan = mutating();
    plan.on_crash = OnCrash::Restore;
    let lost = [
        Event::OwnerLost,
        recorded(1, true),
        restored(true),
        Event::Saved,
    ];
    let run = row(
        &plan,
        &with(way("execution_finished"), &lost),
        "`finished` → unknown(owner_lost)",
    );
    let settle = later::resolved(Resolution::Succeeded);
    let run = run.apply(AT, &Event::Closed).unwrap();
    let settled = run.apply(AT, &settle).unwrap();
    assert_eq!(settled.outcome(), Some(&Outcome::Succeeded));
    assert_eq!(settled.next_action(), Some(Action::Close));
    assert!(settled.apply(AT, &settle).is_err());
}

#[test]
fn a_run_is_given_up_wherever_it_is_and_can_be_settled_then() {
    let give_up = Event::GivenUp {
        why: "store_rebuilt".into(),
    };
    let settle = later::resolved(Resolution::Failed);
    for event in ["submitted", "execution_finished", "saved", "committed"] {
        let run = after(&mutating(), &way(event));
        let Ok(ended) = run.apply(AT, &give_up) else {
            assert!(run.is_finished(), "{event}");
            continue;
        };
        assert_eq!(
            label(&ended.state),
            "`finished` → unknown(store_rebuilt)",
            "{event}"
        );
        assert!(ended.apply(AT, &give_up).is_err());
        assert!(ended.apply(AT, &settle).is_ok());
    }
}

#[test]
fn a_full_journal_ends_the_run_and_takes_no_more_wishes() {
    let mut run = after(&mutating(), &way("execution_finished"));
    run.facts.events = JOURNAL_EVENTS_MAX;
    assert!(run.apply(AT, &cancel()).is_err());
    let lost = run.apply(AT, &Event::OwnerLost).unwrap();
    assert_eq!(label(&lost.state), "`finished` → unknown(journal_full)");
}

#[test]
fn journals_that_are_not_journals_are_refused() {
    let entry = |seq, event| Entry { seq, at: AT, event };
    let submitted = |machine| Event::Submitted {
        machine,
        plan: mutating(),
    };
    let good = entry(0, submitted(MACHINE_VERSION));
    assert_eq!(Run::fold(&[]), Err(FoldError::Empty));
    assert_eq!(
        Run::fold(&[entry(0, Event::Saved)]),
        Err(FoldError::Headless)
    );
    assert_eq!(
        Run::fold(&[entry(0, submitted(MACHINE_VERSION + 1))]),
        Err(FoldError::Newer(MACHINE_VERSION + 1))
    );
    let gap = Run::fold(&[good.clone(), entry(2, admitted())]);
    assert_eq!(
        gap,
        Err(FoldError::Sequence {
            expected: 1,
            found: 2
        })
    );
    let illegal = Run::fold(&[good, entry(1, Event::Saved)]);
    assert!(matches!(illegal, Err(FoldError::Illegal { seq: 1, .. })));
}
