//! JSON that may be stored and shown: secrets masked, nothing in it that steers a terminal.

use std::fmt::Write;

use super::mask::Masker;
use crate::model::value::MASK;

/// Keys whose values are words of ours: masking them would make the record unreadable and hide nothing.
const OUR_WORDS: [&str; 9] = [
    "type", "is", "kind", "step", "verdict", "on_crash", "run", "thread", "retry_of",
];

/// The value with every text in it masked. Keys are names, never values, and stay.
pub fn masked(value: serde_json::Value, masker: &Masker) -> serde_json::Value {
    use serde_json::Value;
    if masker.is_empty() {
        return value;
    }
    match value {
        Value::String(text) => Value::String(masker.mask_text(&text).into_owned()),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| masked(item, masker)).collect())
        }
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(key, value)| {
                    let ours =
                        OUR_WORDS.contains(&key.as_str()) && value.as_str().is_some_and(is_word);
                    let value = if ours { value } else { masked(value, masker) };
                    (key, value)
                })
                .collect(),
        ),
        other => other,
    }
}

fn is_word(text: &str) -> bool {
    text != MASK
        && text.len() <= 200
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The JSON text with every character escaped that ends a line for some reader, steers a terminal or
/// turns the direction of writing. Beyond ASCII such characters stand in strings only.
pub fn inert(json: String) -> String {
    if json.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
        return json;
    }
    let mut text = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        let escape = matches!(
            character,
            '\u{7f}'..='\u{9f}'
                | '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
        );
        if escape {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\u{:04x}", u32::from(character));
        } else {
            text.push(character);
        }
    }
    text
}
