//! Paths of the API as a client writes them.

use std::fmt::{Display, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::model::{Diagnostic, Kind};
use crate::protocol::{API_VERSION, BackfillQuery, RunsQuery, SchedulesQuery, SlotsQuery};

/// What stands in percent form in a value: all that RFC 3986 does not call unreserved.
const OUTSIDE_OF_VALUES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The path that lists runs.
pub(super) fn runs(query: &RunsQuery) -> String {
    let number = |value: Option<i64>| value.map(|value| value.to_string());
    with_query(
        "/v1/runs",
        [
            ("worker", query.worker.clone()),
            ("skill", query.skill.clone()),
            ("outcome", query.outcome.clone()),
            ("since_ms", number(query.since_ms)),
            ("until_ms", number(query.until_ms)),
            ("before", query.before.map(|run| run.to_string())),
            ("limit", Some(query.limit.to_string())),
        ],
    )
}

/// The path that lists schedules.
pub(super) fn schedules(query: &SchedulesQuery) -> String {
    with_query(
        "/v1/schedules",
        [
            ("schedule", query.schedule.clone()),
            ("worker", query.worker.clone()),
            ("skill", query.skill.clone()),
            ("after", query.after.clone()),
            ("limit", Some(query.limit.to_string())),
        ],
    )
}

/// The path that tells what became of slots.
pub(super) fn slots(query: &SlotsQuery) -> String {
    with_query(
        "/v1/slots",
        [
            ("schedule", query.schedule.clone()),
            ("since_ms", query.since_ms.map(|since| since.to_string())),
            ("limit", Some(query.limit.to_string())),
        ],
    )
}

pub(super) fn backfill(query: &BackfillQuery) -> String {
    with_query(
        "/v1/schedules/backfill",
        [
            ("schedule", Some(query.schedule.clone())),
            ("from_ms", Some(query.from_ms.to_string())),
            ("to_ms", Some(query.to_ms.to_string())),
            (
                "despite",
                Some(query.despite.clone()).filter(|names| !names.is_empty()),
            ),
        ],
    )
}

fn with_query<const N: usize>(path: &str, parameters: [(&str, Option<String>); N]) -> String {
    let mut path = format!("{path}?");
    for (name, value) in parameters {
        if let Some(value) = value {
            path.push_str(name);
            path.push('=');
            let _ = write!(path, "{}", encoded(&value));
            path.push('&');
        }
    }
    path.pop();
    path
}

/// The path of a run, or of something of it. The same grammar as the server's, so that no text gets further.
pub(super) fn of_run(run: &str, rest: &str) -> Result<String, Diagnostic> {
    if run.is_empty() || run.len() > 26 || !run.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Diagnostic::new(
            Kind::Usage,
            "bad_run_id",
            "a run is named by 1 to 26 letters and digits of its id",
        ));
    }
    Ok(format!("/{API_VERSION}/runs/{run}{rest}"))
}

/// A text as a value of a query: everything but letters, digits and `-._~` in percent form.
fn encoded(text: &str) -> impl Display {
    utf8_percent_encode(text, OUTSIDE_OF_VALUES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_place_in_a_path() {
        assert_eq!(
            encoded("a/../b?x#y z\0ü").to_string(),
            "a%2F..%2Fb%3Fx%23y%20z%00%C3%BC"
        );
        for hostile in ["", "..", "a/b", "%2e", "a?b", "a\0", "a b", &"A".repeat(27)] {
            assert!(of_run(hostile, "/logs").is_err(), "{hostile:?}");
        }
        assert_eq!(
            of_run("01ABC", "/logs").as_deref(),
            Ok("/v1/runs/01ABC/logs")
        );
    }
}
