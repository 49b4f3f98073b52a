//! Arguments of a call, held to what the tool takes.

use rmcp::ErrorData;
use rmcp::model::JsonObject;
use serde_json::Value;

/// Arguments of one call.
pub(super) struct Arguments {
    tool: &'static str,
    given: JsonObject,
}

impl Arguments {
    /// Those of `tool`; a name that is not among `known` is refused.
    pub(super) fn read(
        tool: &'static str,
        given: Option<JsonObject>,
        known: &[&str],
    ) -> Result<Arguments, ErrorData> {
        let arguments = Arguments {
            tool,
            given: given.unwrap_or_default(),
        };
        let unknown = arguments
            .given
            .keys()
            .find(|key| !known.contains(&key.as_str()));
        match unknown {
            Some(key) => {
                let key: String = key.escape_debug().take(100).collect();
                Err(arguments.refuse(&format!("Unrecognized key: \"{key}\"")))
            }
            None => Ok(arguments),
        }
    }

    /// A refusal of these arguments.
    pub(super) fn refuse(&self, why: &str) -> ErrorData {
        ErrorData::invalid_params(
            format!("Invalid arguments for tool {}: {why}", self.tool),
            None,
        )
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.given.get(key).filter(|value| !value.is_null())
    }

    /// A text, where it is given.
    pub(super) fn text(&self, key: &str) -> Result<Option<&str>, ErrorData> {
        let wrong = || self.refuse(&format!("`{key}`: expected string"));
        self.get(key)
            .map(|value| value.as_str().ok_or_else(wrong))
            .transpose()
    }

    /// A text that must be given and must not be empty.
    pub(super) fn needed(&self, key: &str) -> Result<&str, ErrorData> {
        match self.text(key)? {
            Some("") => Err(self.refuse(&format!("`{key}` cannot be empty"))),
            Some(text) => Ok(text),
            None => Err(self.refuse(&format!("`{key}` is required"))),
        }
    }

    /// A whole number, where it is given.
    pub(super) fn number(&self, key: &str) -> Result<Option<u64>, ErrorData> {
        let wrong = || self.refuse(&format!("`{key}`: expected a whole number from 0"));
        self.get(key)
            .map(|value| value.as_u64().ok_or_else(wrong))
            .transpose()
    }

    /// Yes or no; no where it is not given.
    pub(super) fn flag(&self, key: &str) -> Result<bool, ErrorData> {
        let wrong = || self.refuse(&format!("`{key}`: expected boolean"));
        self.get(key)
            .map_or(Ok(false), |value| value.as_bool().ok_or_else(wrong))
    }

    /// An object; an empty one where it is not given.
    pub(super) fn object(&self, key: &str) -> Result<JsonObject, ErrorData> {
        match self.get(key) {
            None => Ok(JsonObject::new()),
            Some(Value::Object(map)) => Ok(map.clone()),
            Some(_) => Err(self.refuse(&format!("`{key}`: expected object"))),
        }
    }
}
