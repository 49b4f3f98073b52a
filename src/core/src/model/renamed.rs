//! Stored data with earlier names of fields is read.

use serde_json::{Value, json};

use super::notice::Notices;
use super::push::FailedPush;
use super::schedule::{SlotRow, SlotStatus};
use super::{RunId, SkillRef, Timestamp};

/// Replaces names of fields in stored data.
fn renamed(mut stored: Value, names: &[(&str, &str)]) -> Value {
    let fields = stored.as_object_mut().expect("an object");
    for (now, earlier) in names {
        let value = fields.remove(*now).expect(now);
        fields.insert((*earlier).to_owned(), value);
    }
    stored
}

#[test]
fn earlier_names_are_read() {
    let at = Timestamp::from_millis(1_795_000_000_000);
    let row = SlotRow::one(at, SlotStatus::Ran, at);
    let stored = renamed(json!(row), &[("status", "fate")]);
    assert_eq!(
        serde_json::from_value::<SlotRow>(stored).expect("a row"),
        row
    );

    let notices = json!({
        "skill": {"worker": "w", "skill": "s"}, "schedule": "w/s", "left_out": 3, "next_try": at,
    });
    let read: Notices = serde_json::from_value(notices).expect("notices");
    assert_eq!((read.omitted, read.next_attempt_at), (3, Some(at)));

    let skill = SkillRef {
        worker: "w".to_owned(),
        skill: "s".to_owned(),
    };
    let run = RunId::following(None, at, 1);
    let push = json!({
        "repository": "/r", "remote": "origin", "branch": "main", "commit": "c0ffee", "runs": [run], "skill": skill,
        "since": at, "try_count": 4, "next_try": at, "message": "refused",
    });
    let push: FailedPush = serde_json::from_value(push).expect("a failed push");
    assert_eq!((push.tries, push.next_attempt_at), (4, Some(at)));
}
