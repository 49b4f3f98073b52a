//! Values of inputs.

use serde::{Deserialize, Serialize};

/// What stands wherever a secret would be shown.
pub const MASK: &str = "***";

/// The bound value of one input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Text, also for `path` and enumerations.
    Text(String),
    /// A number in canonical decimal text: `6`, not `6.0`; never an exponent.
    Number(String),
    /// True or false.
    Boolean(bool),
    /// A list of canonical scalars.
    List(Vec<String>),
    /// An ISO date, `YYYY-MM-DD`.
    Date(String),
    /// An optional input that nobody gave: an empty word in shell text, `null` in JSON.
    Unset,
}

impl Value {
    /// The value as JSON, numbers as numbers.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Text(text) | Value::Date(text) => serde_json::Value::String(text.clone()),
            Value::Number(text) => serde_json::from_str(text)
                .unwrap_or_else(|_| serde_json::Value::String(text.clone())),
            Value::Boolean(flag) => serde_json::Value::Bool(*flag),
            Value::List(items) => serde_json::Value::Array(
                items
                    .iter()
                    .cloned()
                    .map(serde_json::Value::String)
                    .collect(),
            ),
            Value::Unset => serde_json::Value::Null,
        }
    }

    /// The value as one string of shell text; lists are joined by newlines.
    pub fn to_text(&self) -> String {
        match self {
            Value::Text(text) | Value::Number(text) | Value::Date(text) => text.clone(),
            Value::Boolean(flag) => flag.to_string(),
            Value::List(items) => items.join("\n"),
            Value::Unset => String::new(),
        }
    }
}
