//! JSON values in which no name stands twice: of two values nobody knows which was meant.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A JSON value whose objects hold each name once, at any depth.
#[derive(Debug, Clone, PartialEq)]
pub struct Unique(pub Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Unique, D::Error> {
        source.deserialize_any(AnyValue).map(Unique)
    }
}

/// Reads an object, or nothing, in which each name stands once.
pub(super) fn object<'de, D: Deserializer<'de>>(
    source: D,
) -> Result<Option<Map<String, Value>>, D::Error> {
    match Unique::deserialize(source)?.0 {
        Value::Null => Ok(None),
        Value::Object(map) => Ok(Some(map)),
        _ => Err(D::Error::custom("inputs are not a JSON object")),
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(AnyValue)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Unique(value)) = source.next_element()? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = source.next_key::<String>()? {
            if map.contains_key(&name) {
                let shown: String = name.chars().take(64).collect();
                return Err(A::Error::custom(format_args!("`{shown}` is given twice")));
            }
            let Unique(value) = source.next_value()?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_stands_twice_is_refused_and_all_else_is_read_as_ever() {
        let text =
            r#"{"a": [1, -2, 3.5, "x\n", null, true, {"b": {}}], "c": 18446744073709551615}"#;
        let read: Unique = serde_json::from_str(text).unwrap();
        assert_eq!(read.0, serde_json::from_str::<Value>(text).unwrap());
        for twice in [r#"{"a":"x","a":"y"}"#, r#"{"o":[{"a":1,"b":2,"a":1}]}"#] {
            let error = serde_json::from_str::<Unique>(twice).unwrap_err();
            assert!(error.to_string().contains("`a` is given twice"), "{error}");
        }
    }
}
