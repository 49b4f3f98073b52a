//! One entry in a JSON file of somebody else's: set where it belongs, and every other byte stays.

use std::ops::Range;

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Deserializer, Value, json};

/// What becomes of a file.
#[derive(Debug)]
pub(super) enum Change {
    /// The entry is there already.
    Present,
    /// The whole file with the entry, and what that replaced.
    Written {
        text: String,
        replaced: Option<Value>,
    },
    /// It cannot be rewritten, and why; the entry can be added by hand.
    Unclear(String),
    /// Its author has to mend it, or to edit the entry that it has.
    Unfit { why: String, hint: String },
}

/// Where a member of an object stands in a text.
struct Member {
    key: String,
    value: Range<usize>,
}

/// A file that holds the entry alone.
pub(super) fn document(section: &str, name: &str, entry: &Value) -> String {
    pretty(&json!({section: {name: entry}}), "  ") + "\n"
}

/// The text with `entry` as `name` under `section`, in place of another one too.
pub(super) fn with_entry(text: &str, section: &str, name: &str, entry: &Value) -> Change {
    if text.trim().is_empty() {
        return Change::Written {
            text: document(section, name, entry),
            replaced: None,
        };
    }
    if text.starts_with('\u{feff}') {
        return Change::Unfit {
            why: "it begins with a byte order mark, which is no JSON".to_owned(),
            hint: "save it as UTF-8 without that mark, then install again".to_owned(),
        };
    }
    let root: Value = match serde_json::from_str(text) {
        Ok(root) => root,
        Err(error) => return Change::Unclear(format!("it holds comments, or is no JSON: {error}")),
    };
    let unfit = |what: &str, value: &Value| Change::Unfit {
        why: format!("{what} is {}, and no object", kind(value)),
        hint: "make it an object, `{}` for instance, then install again".to_owned(),
    };
    if !root.is_object() {
        return unfit("what it holds", &root);
    }
    let servers = root.get(section);
    if let Some(servers) = servers.filter(|servers| !servers.is_object()) {
        return unfit(&format!("`{section}` in it"), servers);
    }
    let replaced = servers.and_then(|servers| servers.get(name));
    if replaced == Some(entry) {
        return Change::Present;
    }
    let changed = changed(text, section, name, entry);
    changed.map_or_else(
        || Change::Unclear("its parts are not found".to_owned()),
        |text| Change::Written {
            text,
            replaced: replaced.cloned(),
        },
    )
}

/// What a value is.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn changed(text: &str, section: &str, name: &str, entry: &Value) -> Option<String> {
    let indent = indent(text);
    let within = |depth: usize, value: &Value| {
        let break_line = format!("\n{}", indent.repeat(depth));
        pretty(value, indent).replace('\n', &break_line)
    };
    let root = text.find('{')?;
    let (members, end) = members(text, root)?;
    // Of a key that stands twice the last one counts, for every reader that takes both.
    let named = |members: &[Member], key: &str| {
        let found = members.iter().rev().find(|member| member.key == key);
        found.map(|found| found.value.clone())
    };
    let (place, fresh) = match named(&members, section) {
        None => added(
            root,
            &members,
            end,
            indent,
            section,
            &within(1, &json!({name: entry})),
            "",
        ),
        Some(servers) => {
            let (inner, end) = self::members(text, servers.start)?;
            match named(&inner, name) {
                Some(own) => (own, within(2, entry)),
                None => added(
                    servers.start,
                    &inner,
                    end,
                    &indent.repeat(2),
                    name,
                    &within(2, entry),
                    indent,
                ),
            }
        }
    };
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let fresh = fresh.replace('\n', newline);
    Some([&text[..place.start], &fresh, &text[place.end..]].concat())
}

/// What to put where, so that an object has one member more: behind the last one, or between its braces.
fn added(
    open: usize,
    members: &[Member],
    close: usize,
    indent: &str,
    key: &str,
    value: &str,
    outer: &str,
) -> (Range<usize>, String) {
    let key = json!(key);
    match members.last() {
        Some(last) => {
            let end = last.value.end;
            (end..end, format!(",\n{indent}{key}: {value}"))
        }
        None => (
            open + 1..close,
            format!("\n{indent}{key}: {value}\n{outer}"),
        ),
    }
}

/// The members of the object that begins at `open`, and where its closing brace stands.
fn members(text: &str, open: usize) -> Option<(Vec<Member>, usize)> {
    let mut found = Vec::new();
    let mut at = open + 1;
    loop {
        at += blank(&text[at..], &[',']);
        if text[at..].starts_with('}') {
            return Some((found, at));
        }
        let (key, end): (String, usize) = value_at(text, at)?;
        let start = end + blank(&text[end..], &[':']);
        let (IgnoredAny, end) = value_at(text, start)?;
        found.push(Member {
            key,
            value: start..end,
        });
        at = end;
    }
}

/// How long the white space is, and what else is passed over.
fn blank(text: &str, signs: &[char]) -> usize {
    let rest =
        text.trim_start_matches(|sign: char| sign.is_ascii_whitespace() || signs.contains(&sign));
    text.len() - rest.len()
}

fn value_at<T: DeserializeOwned>(text: &str, at: usize) -> Option<(T, usize)> {
    let mut values = Deserializer::from_str(&text[at..]).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, at + values.byte_offset()))
}

/// What one level is indented by.
fn indent(text: &str) -> &str {
    let first = text.lines().find_map(|line| {
        let rest = line.trim_start_matches([' ', '\t']);
        let indent = &line[..line.len() - rest.len()];
        (rest.starts_with('"') && !indent.is_empty()).then_some(indent)
    });
    first.unwrap_or("  ")
}

fn pretty(value: &Value, indent: &str) -> String {
    let mut text = Vec::new();
    let formatter = PrettyFormatter::with_indent(indent.as_bytes());
    // Writing a value into memory cannot fail.
    let _ = value.serialize(&mut Serializer::with_formatter(&mut text, formatter));
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> String {
        let entry = json!({"command": "w", "args": ["mcp"]});
        match with_entry(text, "mcpServers", "workerctl", &entry) {
            Change::Written { text: written, .. } => {
                let read: Value = serde_json::from_str(&written).unwrap();
                assert_eq!(read["mcpServers"]["workerctl"], entry, "{written}");
                let again = with_entry(&written, "mcpServers", "workerctl", &entry);
                assert!(matches!(again, Change::Present), "{written}");
                written
            }
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn every_other_byte_stays() {
        let servers = "{\n    \"a\": 1.50,\n    \"mcpServers\": {\n        \"x\": {\"args\": [\"}\", \"\\\"{\"]}\n    },\n    \"z\": [1,2]\n}\n";
        let written = set(servers);
        let (before, after) = servers.split_at(servers.find("\n    },\n    \"z\"").unwrap());
        assert!(
            written.starts_with(before) && written.ends_with(after),
            "{written}"
        );
        assert!(
            written.contains(",\n        \"workerctl\": {\n            \"command\": \"w\",\n"),
            "{written}"
        );
        let other = "{\n\t\"a\": true\n}";
        assert_eq!(
            set(other),
            "{\n\t\"a\": true,\n\t\"mcpServers\": {\n\t\t\"workerctl\": {\n\t\t\t\"command\": \"w\",\n\t\t\t\"args\": [\n\t\t\t\t\"mcp\"\n\t\t\t]\n\t\t}\n\t}\n}"
        );
        assert!(set("{\r\n  \"a\": null\r\n}\r\n").lines().count() > 5);
        assert!(
            !set("{\r\n  \"a\": null\r\n}\r\n")
                .replace("\r\n", "")
                .contains('\n')
        );
    }

    #[test]
    fn nothing_and_empty_maps_are_filled() {
        let fresh = set("");
        assert_eq!(
            fresh,
            document(
                "mcpServers",
                "workerctl",
                &json!({"command": "w", "args": ["mcp"]})
            )
        );
        assert_eq!(set("{}"), fresh.trim_end());
        assert_eq!(set(" \n"), fresh);
        assert_eq!(set("{\n  \"mcpServers\": {}\n}\n"), fresh);
        assert_eq!(set("{\n  \"mcpServers\": {\n  }\n}\n"), fresh);
        set("{\"mcpServers\":{\"y\":{}},\"k\":\"mcpServers\"}");
    }

    #[test]
    fn an_entry_of_ours_is_replaced_alone() {
        let text = "{\n  \"mcpServers\": {\n    \"workerctl\": {\"command\": \"old\"},\n    \"b\": {}\n  }\n}\n";
        let written = set(text);
        assert!(
            written.ends_with("},\n    \"b\": {}\n  }\n}\n"),
            "{written}"
        );
        assert!(!written.contains("old"), "{written}");
    }

    #[test]
    fn what_cannot_be_rewritten_is_told() {
        for text in ["// a\n{}", "{\"a\": 1,}", "{"] {
            let told = with_entry(text, "mcpServers", "workerctl", &json!({}));
            assert!(matches!(told, Change::Unclear(_)), "{text}: {told:?}");
        }
        for (text, expected) in [
            ("[]", "what it holds is a list"),
            (" null", "what it holds is null"),
            ("{\"mcpServers\": []}", "`mcpServers` in it is a list"),
            ("{\"mcpServers\": 1}", "`mcpServers` in it is a number"),
            ("\u{feff}{}", "a byte order mark"),
        ] {
            match with_entry(text, "mcpServers", "workerctl", &json!({})) {
                Change::Unfit { why, .. } => assert!(why.contains(expected), "{text}: {why}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
