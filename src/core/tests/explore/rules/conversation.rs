//! Conversations with a model.

use super::scenes::*;
use workerctl_core::machine::*;
use workerctl_core::model::agent::{Money, Spent, Tokens};

/// A conversation goes on where it was only in a run that changes nothing: there a turn is progress.
#[test]
fn turns_that_are_taken_anew_do_not_excuse_a_crash() {
    let there = way("execution_finished");
    let lost = |attempt: u32, number: u32| [turn_taken(attempt, number), Event::OwnerLost];
    let again = |attempt| [recorded(attempt, true), restored(true)];
    let mut anew = there.clone();
    for attempt in [1, 2] {
        anew = with(with(anew, &lost(attempt, 1)), &again(attempt));
    }
    let looping = with(anew, &lost(3, 1));
    row(
        &retrying(),
        &looping,
        "`recording` → failed(execute, crash_loop)",
    );

    let further: Vec<Event> = (1..=9).flat_map(|turn| lost(turn, turn)).collect();
    row(&reading(), &with(there, &further), "`executing`");
}

fn costs(output: u64) -> Spent {
    let tokens = Tokens {
        output,
        ..Tokens::default()
    };
    Spent::estimated(tokens, Some(Money(output)), 1)
}

fn sent(output: u64) -> Event {
    Event::RequestSent {
        attempt: 1,
        spent: costs(output),
    }
}

/// What may have been spent counts where nothing tells what was.
#[test]
fn a_request_counts_once_whether_its_end_is_known_or_not() {
    let there = way("execution_finished");
    let failed = || Event::TurnFailed {
        attempt: 1,
        code: "incomplete".to_owned(),
        spent: costs(5),
    };
    let given_up = || Event::GivenUp {
        why: "journal".to_owned(),
    };
    for (events, output) in [
        (vec![sent(400)], 0),
        (vec![sent(400), turn_taken(1, 1)], 0),
        (vec![sent(400), failed()], 5),
        (vec![sent(400), Event::OwnerLost], 400),
        (vec![sent(400), failed(), Event::OwnerLost], 5),
        (vec![sent(400), failed(), sent(300), Event::OwnerLost], 305),
        // Of a program only the newest estimate counts.
        (vec![sent(400), sent(500), Event::OwnerLost], 500),
        (vec![sent(400), cancel(), Event::OwnerLost], 400),
        (vec![sent(400), bad(1)], 400),
        (vec![sent(400), given_up()], 400),
    ] {
        for plan in [reading(), retrying()] {
            let run = after(&plan, &with(there.clone(), &events));
            let spent = run.facts.spent;
            assert_eq!(spent.tokens.output, output, "{events:?}");
            assert_eq!(spent.estimated_tokens, output, "{events:?}");
            // The next engine folds the same journal.
            let found = run.facts.in_flight.is_some();
            assert_eq!(found, events == [sent(400)], "{events:?}");
        }
    }
}

#[test]
fn what_was_spent_is_read_as_earlier_versions_wrote_it() {
    let earlier = r#"{"type":"turn_failed","attempt":1,"code":"server","spent":{"tokens":{"input":7,"output":5},"money":12,"unmeasured":1}}"#;
    let event: Event = serde_json::from_str(earlier).unwrap();
    let run = after(&reading(), &with(way("execution_finished"), &[event]));
    let spent = run.facts.spent;
    assert_eq!((spent.tokens.sum(), spent.money), (12, Some(Money(12))));
    assert_eq!((spent.unmeasured, spent.estimated_tokens), (1, 0));
    let written = serde_json::to_value(Spent::default()).unwrap();
    assert_eq!(written["estimated_tokens"], serde_json::Value::Null);
    // The newest form, which a later version has to read too.
    let newest = serde_json::to_value(sent(3)).unwrap();
    let spent = serde_json::json!({
        "tokens": {"input": 0, "output": 3, "cache_read": 0, "cache_write": 0},
        "money": 3, "unmeasured": 1, "estimated_tokens": 3, "estimated_money": 3,
    });
    assert_eq!(
        newest,
        serde_json::json!({"type": "request_sent", "attempt": 1, "spent": spent})
    );
}
