//! Paths of the API as a client writes them.

use std::fmt::Display;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use crate::model::{Diagnostic, Kind};
use crate::protocol::API_VERSION;

/// What stands in percent form in a value: all that RFC 3986 does not call unreserved.
const OUTSIDE_OF_VALUES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A path with the fields of a query's type as parameters; those without a value are left out.
pub(super) fn with_query(path: &str, query: &impl Serialize) -> String {
    // These types hold texts and numbers only, so that none of them is no object.
    let fields = serde_json::to_value(query).unwrap_or_default();
    let fields = fields.as_object().into_iter().flatten();
    let parameters = fields
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| {
            let number = value.to_string();
            format!("{name}={}", encoded(value.as_str().unwrap_or(&number)))
        });
    format!("{path}?{}", parameters.collect::<Vec<_>>().join("&"))
}

/// What names the next page of a list: the header `Link`, as RFC 8288 has it.
pub(super) fn link_to_next(path: &str, query: &impl Serialize) -> String {
    format!("<{}>; rel=\"next\"", with_query(path, query))
}

/// A parameter of the address that such a header names.
pub(super) fn parameter_of_next(link: &str, name: &str) -> Option<String> {
    let (address, _) = link.strip_prefix('<')?.split_once(">; rel=\"next\"")?;
    let (_, query) = address.split_once('?')?;
    let mut parameters = query.split('&').filter_map(|one| one.split_once('='));
    let (_, value) = parameters.find(|(found, _)| *found == name)?;
    Some(decoded(value))
}

/// A value as it was before it was put into percent form.
pub(super) fn decoded(text: &str) -> String {
    let decoded = percent_encoding::percent_decode_str(text);
    decoded.decode_utf8_lossy().into_owned()
}

/// The path of a run, or of something of it. The same grammar as the server's, so that no text gets further.
pub(super) fn of_run(run: &str, rest: &str) -> Result<String, Diagnostic> {
    if run.is_empty() || run.len() > 26 || !run.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Diagnostic::new(
            Kind::Usage,
            "bad_run_id",
            "a run id, or its beginning or end, must have 1 to 26 letters and digits",
        ));
    }
    Ok(format!("/{API_VERSION}/runs/{run}{rest}"))
}

/// A text as a value of a query: everything but letters, digits and `-._~` in percent form.
pub(super) fn encoded(text: &str) -> impl Display {
    utf8_percent_encode(text, OUTSIDE_OF_VALUES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{BackfillQuery, LogsQuery, RunsQuery, SlotsQuery};

    #[test]
    fn parameters_are_the_fields_that_have_a_value_in_their_order() {
        let runs = RunsQuery {
            worker: Some("a b/ü".to_owned()),
            skill: Some(String::new()),
            since_ms: Some(-1),
            limit: 5,
            ..RunsQuery::default()
        };
        assert_eq!(
            with_query("/v1/runs", &runs),
            "/v1/runs?worker=a%20b%2F%C3%BC&skill=&since_ms=-1&limit=5"
        );
        let mut backfill = BackfillQuery {
            schedule: "w/s".to_owned(),
            from_ms: 0,
            to_ms: 1,
            despite: String::new(),
        };
        let path = "/v1/schedules/backfill?schedule=w%2Fs&from_ms=0&to_ms=1";
        assert_eq!(with_query("/v1/schedules/backfill", &backfill), path);
        backfill.despite = "a,b".to_owned();
        let path = format!("{path}&despite=a%2Cb");
        assert_eq!(with_query("/v1/schedules/backfill", &backfill), path);
        let logs = LogsQuery {
            from: u64::MAX,
            ..LogsQuery::default()
        };
        assert_eq!(
            with_query("x", &logs),
            "x?from=18446744073709551615&limit=0"
        );
        assert_eq!(with_query("x", &SlotsQuery::default()), "x?limit=0");
    }

    #[test]
    fn what_names_the_next_page_is_read_as_it_is_written() {
        let run: crate::model::RunId = "01JC0000000000000000000001".parse().unwrap();
        let query = RunsQuery {
            text: Some("a&before=<b>; rel=\"next\"".to_owned()),
            before: Some(run),
            ..RunsQuery::default()
        };
        let link = link_to_next("/v1/runs", &query);
        assert_eq!(parameter_of_next(&link, "before"), Some(run.to_string()));
        assert_eq!(parameter_of_next(&link, "text"), query.text);
        assert_eq!(parameter_of_next(&link, "worker"), None);
        assert_eq!(
            parameter_of_next("</v1/runs>; rel=\"next\"", "before"),
            None
        );
    }

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
