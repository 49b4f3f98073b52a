//! What a caller gave: `name=value` pairs of a command line, an object of JSON, or both.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value as Json};

/// Largest JSON object of inputs that is read, in bytes.
pub const OBJECT_BYTES_MAX: usize = 4 * 1024 * 1024;

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

/// Why a command line's input could not be read. The text is not quoted: it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GivenError {
    /// No `=`.
    #[error("an input is written `name=value`, and there is no `=` here")]
    NoEquals,
    /// Nothing before the `=`.
    #[error("an input is written `name=value`, and there is no name before the `=`")]
    NoName,
    /// Blanks around the name.
    #[error("an input is written `name=value` without blanks around the name")]
    BlankInName,
    /// Not JSON.
    #[error("the inputs are not JSON: line {line}, column {column}")]
    Syntax {
        /// Line from 1.
        line: usize,
        /// Column from 1.
        column: usize,
    },
    /// JSON, but no object.
    #[error("the inputs must be one JSON object such as `{{\"weeks\": 2}}`")]
    NotAnObject,
    /// A member stands twice, so that one value would be lost.
    #[error("the member `{0}` stands twice in the inputs")]
    DoubledMember(String),
    /// Larger than [`OBJECT_BYTES_MAX`].
    #[error("the inputs exceed 4 MiB")]
    TooLarge,
}

/// Splits `name=value` at the first `=`; the value is everything behind it, byte for byte.
pub fn parse_pair(text: &str) -> Result<(String, String), GivenError> {
    let (name, value) = text.split_once('=').ok_or(GivenError::NoEquals)?;
    if name.trim().is_empty() {
        return Err(GivenError::NoName);
    }
    if name.trim() != name {
        return Err(GivenError::BlankInName);
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads one JSON object in which no member stands twice.
pub fn parse_object(text: &str) -> Result<Map<String, Json>, GivenError> {
    if text.len() > OBJECT_BYTES_MAX {
        return Err(GivenError::TooLarge);
    }
    let mut doubled = None;
    let mut reader = serde_json::Deserializer::from_str(text);
    let visitor = ObjectVisitor {
        doubled: &mut doubled,
    };
    let read = reader
        .deserialize_map(visitor)
        .and_then(|map| reader.end().map(|()| map));
    match (read, doubled) {
        (_, Some(name)) => Err(GivenError::DoubledMember(super::problem::printable(&name))),
        (Ok(map), None) => Ok(map),
        (Err(error), None) if error.is_data() => Err(GivenError::NotAnObject),
        (Err(error), None) => Err(GivenError::Syntax {
            line: error.line(),
            column: error.column(),
        }),
    }
}

struct ObjectVisitor<'a> {
    doubled: &'a mut Option<String>,
}

impl<'de> Visitor<'de> for ObjectVisitor<'_> {
    type Value = Map<String, Json>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut map = Map::new();
        while let Some((name, value)) = access.next_entry::<String, Json>()? {
            if map.contains_key(&name) {
                self.doubled.get_or_insert(name);
            } else {
                map.insert(name, value);
            }
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_split_at_the_first_equals() {
        let table = [
            ("a=b", Ok(("a", "b"))),
            ("a=", Ok(("a", ""))),
            ("a=b=c", Ok(("a", "b=c"))),
            ("a= b ", Ok(("a", " b "))),
            ("a=@/etc/passwd", Ok(("a", "@/etc/passwd"))),
            ("a=x\ny=z", Ok(("a", "x\ny=z"))),
            ("", Err(GivenError::NoEquals)),
            ("s3cr3t", Err(GivenError::NoEquals)),
            ("=b", Err(GivenError::NoName)),
            (" =b", Err(GivenError::NoName)),
            ("a =b", Err(GivenError::BlankInName)),
        ];
        for (text, expected) in table {
            let expected = expected.map(|(n, v): (&str, &str)| (n.to_owned(), v.to_owned()));
            assert_eq!(parse_pair(text), expected, "{text:?}");
        }
    }

    #[test]
    fn objects_are_read_without_losing_or_telling_anything() {
        let map = parse_object(r#"{"b": 1, "a": [true]}"#).unwrap();
        assert_eq!(map.keys().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(
            parse_object(r#"{"a": 1, "b": 2, "a": 3}"#),
            Err(GivenError::DoubledMember("a".to_owned()))
        );
        for text in [r#""s3cr3t""#, "[1]", "null", "7"] {
            assert_eq!(parse_object(text), Err(GivenError::NotAnObject), "{text}");
        }
        for text in ["", "{", r#"{"a": s3cr3t}"#, "{} {}", r#"{"a" 1}"#] {
            let error = parse_object(text).unwrap_err();
            assert!(matches!(error, GivenError::Syntax { .. }), "{text}");
            assert!(!error.to_string().contains("s3cr3t"));
        }
        let deep = format!("{}{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
        assert!(parse_object(&deep).is_err(), "nesting is bounded");
        let large = format!(r#"{{"a": "{}"}}"#, "x".repeat(OBJECT_BYTES_MAX));
        assert_eq!(parse_object(&large), Err(GivenError::TooLarge));
    }

    #[test]
    fn debug_shows_names_only() {
        let given = RawInputs {
            pairs: vec![("token".to_owned(), "s3cr3t".to_owned())],
            json: Some(parse_object(r#"{"other": "s3cr3t"}"#).unwrap()),
        };
        let text = format!("{given:?}");
        assert!(text.contains("token") && text.contains("other"));
        assert!(!text.contains("s3cr3t"), "{text}");
    }
}
