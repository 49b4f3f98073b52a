//! What a caller gave: `name=value` pairs of a command line, an object of JSON, or both.

use std::fmt;

use serde_json::{Map, Value as Json};

/// What was given, before anything is known about it.
#[derive(Clone, Default, PartialEq)]
pub struct RawInputs {
    /// Pairs in the order of the command line; a list takes its key several times.
    ///
    /// A value is taken as it stands: a leading `@` names no file.
    pub pairs: Vec<(String, String)>,
    /// Members of a JSON object.
    pub json: Option<Map<String, Json>>,
}

/// Names only: which values are secrets is not known yet.
impl fmt::Debug for RawInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs: Vec<&str> = self.pairs.iter().map(|(name, _)| name.as_str()).collect();
        let json: Option<Vec<&String>> = self.json.as_ref().map(|map| map.keys().collect());
        f.debug_struct("Given")
            .field("pairs", &pairs)
            .field("json", &json)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_names_only() {
        let given = RawInputs {
            pairs: vec![("token".to_owned(), "s3cr3t".to_owned())],
            json: Some(Map::from_iter([("other".to_owned(), "s3cr3t".into())])),
        };
        let text = format!("{given:?}");
        assert!(text.contains("token") && text.contains("other"));
        assert!(!text.contains("s3cr3t"), "{text}");
    }
}
