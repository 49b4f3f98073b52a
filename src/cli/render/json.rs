//! The JSON of `--json`: an API, described in `docs/reference/json-api.md`.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::line::is_hidden;

/// Version of the JSON forms; it grows when a field changes its meaning or goes, not when one is added.
pub(crate) const JSON_VERSION: u32 = 1;

/// One object with the version in front; what is no object stands under `under`.
pub(crate) fn document<T: Serialize>(value: &T, under: &str) -> String {
    let mut whole = Map::new();
    whole.insert("json_version".to_owned(), json!(JSON_VERSION));
    match record(value) {
        Value::Object(fields) => whole.extend(fields),
        other => {
            whole.insert(under.to_owned(), other);
        }
    }
    // A map of JSON values can always be written.
    escaped(&serde_json::to_string_pretty(&Value::Object(whole)).unwrap_or_default()) + "\n"
}

/// One object in one line, without the version: for streams of records.
pub(crate) fn record_line<T: Serialize>(value: &T) -> String {
    escaped(&record(value).to_string()) + "\n"
}

/// The JSON of a value.
fn record<T: Serialize>(value: &T) -> Value {
    // What is shown consists of names, texts and numbers, which JSON can always hold.
    serde_json::to_value(value).unwrap_or(Value::Null)
}

/// JSON leaves some characters bare that a terminal obeys; they stand only within strings.
pub(crate) fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_hidden(c) {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_tells_its_version() {
        xtest::assert_text!(document(&json!({"running": 1}), "status"), @r#"
        {
          "json_version": 1,
          "running": 1
        }
        "#);
        xtest::assert_text!(document(&json!([1, 2]), "runs"), @r#"
        {
          "json_version": 1,
          "runs": [
            1,
            2
          ]
        }
        "#);
    }

    #[test]
    fn one_record_is_one_line_that_a_terminal_only_shows() {
        let text = "a\u{2028}\n\r\u{1b}\u{7f}\u{9b}\u{202e}\u{e0041}";
        let line = record_line(&json!({"text": text}));
        assert_eq!(
            line.chars().filter(|c| is_hidden(*c)).collect::<String>(),
            "\n"
        );
        let back: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(back["text"], text);
    }
}
