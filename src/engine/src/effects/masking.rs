//! What the engine says of a run by itself, such as names of files and messages of git, without the run's secrets.

use serde_json::Value;
use workerctl_trees::RunResult;

use crate::machine::Event;
use crate::model::outcome::{Failure, Step};
use crate::thread::mask::Masker;
use crate::thread::safe::masked;

/// Fields of events that are told to people. All others are ids, codes and what later actions go by.
const TOLD: [&str; 17] = [
    "message",
    "output_tail",
    "stderr_tail",
    "problem",
    "changed",
    "warnings",
    "warning",
    "why",
    "edited_since",
    "failed",
    "notes",
    "wake",
    "command",
    "description",
    "names",
    "found",
    "incomplete",
];

/// The event as it may enter the journal.
pub(super) fn of_event(event: Event, masker: &Masker) -> Event {
    if masker.is_empty() {
        return event;
    }
    let hidden = serde_json::to_value(&event).map(|value| told(value, masker));
    // Texts alone were changed, so it is an event still; what it would be otherwise may hold the secret.
    hidden.and_then(serde_json::from_value).unwrap_or_else(|_| {
        tracing::error!(event = event.name(), "an event could not be masked");
        event
    })
}

fn told(value: Value, masker: &Masker) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| {
                let value = if TOLD.contains(&key.as_str()) {
                    masked(value, masker)
                } else {
                    told(value, masker)
                };
                (key, value)
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.into_iter().map(|item| told(item, masker)).collect(),
        other => other,
    }
}

/// Refuses a change with a secret in the name of a file: it would stand in the repository, in every record and in
/// every notice of the run, where a name without it would be another file's.
pub(super) fn refuse_names(change: &RunResult, masker: &Masker) -> Result<(), Failure> {
    let paths = change.changes.iter().map(|change| change.path.to_string());
    for path in paths {
        let shown = masker.mask_text(&path);
        if shown != path {
            let message = format!(
                "the run made or changed `{shown}`: a secret is in the name of a file, where it cannot be masked; name the file otherwise"
            );
            return Err(Failure::new(Step::Record, "secret_in_path", message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::evidence::{CheckRecord, Recorded, Verdict};

    #[test]
    fn what_is_told_is_masked_and_what_is_gone_by_stays() {
        let masker = Masker::new([("KEY", &b"abc123"[..])]).unwrap();
        let commit = "abc1230000000000000000000000000000000000".to_owned();
        let event = Event::CommitPrepared {
            oid: commit.clone(),
            parent: None,
            reference: "refs/heads/abc123".to_owned(),
        };
        assert_eq!(of_event(event.clone(), &masker), event);
        let event = Event::ChecksFinished {
            attempt: 1,
            checks: vec![CheckRecord {
                description: "of abc123".to_owned(),
                command: None,
                must_pass: true,
                verdict: Verdict::Failed,
                ended: None,
                message: Some("`YWJjMTIz` is there".to_owned()),
                output_tail: "abc123".to_owned(),
                duration_ms: 1,
                sandbox_level: None,
            }],
            failure: Some(Failure::new(
                Step::Verify,
                "abc123",
                "a check changed `abc123`",
            )),
            changed: true,
        };
        let shown = serde_json::to_string(&of_event(event, &masker)).unwrap();
        assert_eq!(
            shown.matches("abc123").count(),
            1,
            "the code alone: {shown}"
        );
        assert!(!shown.contains("YWJj"), "{shown}");
        let event = Event::ResultRecorded {
            attempt: 1,
            result: Recorded {
                outputs: Vec::new(),
                changed: vec!["a/abc123".to_owned()],
                changed_count: 1,
                tree: serde_json::json!({"base": commit, "ignored": {"names": ["abc123/"]}}),
                commits: crate::model::evidence::CommitsMade::default(),
                warnings: vec!["left abc123".to_owned()],
                incomplete: Some("`abc123`, which it changed, is not a declared output".to_owned()),
            },
        };
        let shown = serde_json::to_string(&of_event(event, &masker)).unwrap();
        assert_eq!(
            shown.matches("abc123").count(),
            1,
            "the commit alone: {shown}"
        );
    }
}
