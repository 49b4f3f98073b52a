//! `input_schema`: JSON Schema of a skill's input, checked without ever fetching anything.

use std::collections::HashMap;

use serde_json::Value;

use super::report::Report;
use super::tree::Data;
use super::view::View;

/// Subschemas that one value may have to be checked against: a schema that refers to itself twice would
/// need time that doubles with each step.
const EXPANSION_MAX: u64 = 1_000;

/// Subschemas that may lead to each other in a row for one value.
const CHAIN_MAX: usize = 200;

/// References that are followed to find a default.
const DEPTH_MAX: usize = 32;

/// Values that defaults may add to one input: a schema whose defaults lead back to itself would add without end.
const FILLED_MAX: usize = 10_000;

/// Bytes of a text that weigh as much as a value of its own.
const TEXT_WEIGHT: usize = 100;

/// Problems of one value that are told.
const PROBLEMS_MAX: usize = 50;

/// A schema that can be applied.
#[derive(Debug)]
pub struct InputSchema {
    schema: Value,
    validator: jsonschema::Validator,
}

/// What is wrong with one part of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFault {
    /// JSON Pointer to the part; empty: the whole.
    pub at: String,
    /// What is wrong.
    pub message: String,
}

/// Reads `input_schema` of a definition; `None` when an error was reported.
pub(crate) fn read(view: View<'_>, report: &mut Report) -> Option<Value> {
    if !matches!(view.data(), Data::Map(_)) {
        view.wrong_type("input_schema", "a JSON Schema as a map", report);
        return None;
    }
    let schema = view.json();
    let refused = check(&schema).err();
    if let Some(message) = refused {
        report.error(
            "input-schema",
            view.place(),
            message,
            "write a JSON Schema that refers to nothing outside of it",
        );
        return None;
    }
    Some(schema)
}

/// Whether a schema is one, and needs nothing from elsewhere.
fn check(schema: &Value) -> Result<(), String> {
    if schema
        .get("$schema")
        .is_some_and(|draft| !draft.as_str().is_some_and(is_known_draft))
    {
        return Err("`$schema` names no draft that is known".to_owned());
    }
    let mut weights = HashMap::new();
    local_references(schema, true)?;
    weigh_all(schema, schema, &mut weights)?;
    if let Err(error) = jsonschema::meta::validate(schema) {
        return Err(format!("`input_schema` is no JSON Schema: {error}"));
    }
    Ok(())
}

fn is_known_draft(draft: &str) -> bool {
    let draft = draft.trim_end_matches('#');
    [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-04/schema",
    ]
    .contains(&draft)
}

/// Refuses every reference that is not a pointer into the schema itself.
fn local_references(value: &Value, top: bool) -> Result<(), String> {
    match value {
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| local_references(item, false)),
        Value::Object(map) => {
            for (key, inner) in map {
                match (key.as_str(), inner) {
                    ("$ref", Value::String(target))
                        if !(target == "#" || target.starts_with("#/")) =>
                    {
                        return Err(format!("`$ref: {}` leads out of it", target.escape_debug()));
                    }
                    ("$dynamicRef" | "$recursiveRef", Value::String(_)) => {
                        return Err(format!("`{key}` is not supported"));
                    }
                    ("$id" | "id", Value::String(_)) if !top && key == "$id" => {
                        return Err("`$id` below the top is not supported".to_owned());
                    }
                    _ => local_references(inner, false)?,
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Weighs every subschema.
fn weigh_all(
    root: &Value,
    value: &Value,
    weights: &mut HashMap<*const Value, Option<u64>>,
) -> Result<(), String> {
    weigh(root, value, weights, 0)?;
    match value {
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| weigh_all(root, item, weights)),
        Value::Object(map) => map
            .values()
            .try_for_each(|item| weigh_all(root, item, weights)),
        _ => Ok(()),
    }
}

/// How many subschemas a value is checked against where this one is applied to it.
fn weigh(
    root: &Value,
    value: &Value,
    weights: &mut HashMap<*const Value, Option<u64>>,
    depth: usize,
) -> Result<u64, String> {
    let place = std::ptr::from_ref(value);
    match weights.get(&place) {
        Some(Some(weight)) => return Ok(*weight),
        Some(None) => return Err("`$ref` leads back to where it stands".to_owned()),
        None => {}
    }
    if depth > CHAIN_MAX {
        return Err(format!(
            "more than {CHAIN_MAX} subschemas lead to each other"
        ));
    }
    weights.insert(place, None);
    let mut weight = 1_u64;
    for inner in in_place(root, value)? {
        weight = weight.saturating_add(weigh(root, inner, weights, depth + 1)?);
    }
    if weight > EXPANSION_MAX {
        return Err(format!(
            "more than {EXPANSION_MAX} subschemas apply to one value"
        ));
    }
    weights.insert(place, Some(weight));
    Ok(weight)
}

/// Subschemas that apply to the same value.
fn in_place<'v>(root: &'v Value, value: &'v Value) -> Result<Vec<&'v Value>, String> {
    let mut found = Vec::new();
    let Value::Object(map) = value else {
        return Ok(found);
    };
    if let Some(Value::String(target)) = map.get("$ref") {
        found.push(resolve(root, target)?);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        found.extend(map.get(key).and_then(Value::as_array).into_iter().flatten());
    }
    for key in ["not", "if", "then", "else"] {
        found.extend(map.get(key).filter(|inner| inner.is_object()));
    }
    for key in ["dependentSchemas", "dependencies"] {
        let inner = map.get(key).and_then(Value::as_object);
        found.extend(
            inner
                .into_iter()
                .flat_map(serde_json::Map::values)
                .filter(|v| v.is_object()),
        );
    }
    Ok(found)
}

fn resolve<'v>(root: &'v Value, target: &str) -> Result<&'v Value, String> {
    target
        .strip_prefix('#')
        .and_then(|pointer| root.pointer(pointer))
        .ok_or_else(|| format!("`$ref: {}` leads nowhere", target.escape_debug()))
}

impl InputSchema {
    /// Prepares a schema that a definition holds.
    pub fn new(schema: &Value) -> Result<InputSchema, String> {
        check(schema)?;
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(schema)
            .map_err(|error| format!("`input_schema` is no JSON Schema: {error}"))?;
        Ok(InputSchema {
            schema: schema.clone(),
            validator,
        })
    }

    /// Fills in the defaults, then checks: the complete input, or everything that is wrong with it.
    pub fn bind(&self, input: Value) -> Result<Value, Vec<InputFault>> {
        let mut input = input;
        let mut filling = Filling {
            root: &self.schema,
            left: FILLED_MAX,
        };
        if filling.fill(&self.schema, &mut input, 0).is_err() {
            return Err(vec![InputFault {
                at: String::new(),
                message: format!(
                    "the defaults of `input_schema` add more than {FILLED_MAX} values; shorten them, or end what \
                     leads back to itself"
                ),
            }]);
        }
        let faults: Vec<InputFault> = self
            .validator
            .iter_errors(&input)
            .take(PROBLEMS_MAX)
            .map(|error| InputFault {
                at: error.instance_path().to_string(),
                message: error.to_string(),
            })
            .collect();
        if faults.is_empty() {
            Ok(input)
        } else {
            Err(faults)
        }
    }
}

/// The defaults of one schema, being put into one input.
struct Filling<'s> {
    root: &'s Value,
    /// What may still be added.
    left: usize,
}

/// The defaults add more than one input may hold.
struct TooMany;

impl Filling<'_> {
    /// Puts the defaults of properties where nothing was given; inside objects and lists that were given too.
    fn fill(&mut self, schema: &Value, value: &mut Value, depth: usize) -> Result<(), TooMany> {
        let Value::Object(keys) = schema else {
            return Ok(());
        };
        if depth > DEPTH_MAX {
            return Ok(());
        }
        if let Some(Value::String(target)) = keys.get("$ref")
            && let Ok(target) = resolve(self.root, target)
        {
            self.fill(target, value, depth + 1)?;
        }
        let parts = keys.get("allOf").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.fill(part, value, depth + 1)?;
        }
        match value {
            Value::Object(given) => {
                let properties = keys.get("properties").and_then(Value::as_object);
                for (name, property) in properties.into_iter().flatten() {
                    if !given.contains_key(name)
                        && let Some(default) = property.get("default")
                    {
                        self.take(default)?;
                        given.insert(name.clone(), default.clone());
                    }
                    if let Some(inner) = given.get_mut(name) {
                        self.fill(property, inner, depth + 1)?;
                    }
                }
            }
            Value::Array(items) => {
                if let Some(schema) = keys.get("items") {
                    for item in items {
                        self.fill(schema, item, depth + 1)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes what a default adds from what may still be added.
    fn take(&mut self, default: &Value) -> Result<(), TooMany> {
        let own = match default {
            Value::String(text) => 1 + text.len() / TEXT_WEIGHT,
            _ => 1,
        };
        self.left = self.left.checked_sub(own).ok_or(TooMany)?;
        match default {
            Value::Array(items) => items.iter().try_for_each(|item| self.take(item)),
            Value::Object(map) => map.values().try_for_each(|item| self.take(item)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn defaults_are_filled_in_before_the_input_is_checked() {
        let schema = json!({
            "type": "object",
            "properties": {
                "content": {"type": "string"},
                "format": {"type": "string", "enum": ["bullets", "tldr"], "default": "bullets"},
                "page": {"$ref": "#/$defs/page", "default": {}},
            },
            "required": ["content", "format"],
            "$defs": {"page": {"type": "object", "properties": {"size": {"default": 10}}}},
        });
        let schema = InputSchema::new(&schema).unwrap();
        assert_eq!(
            schema.bind(json!({"content": "x"})),
            Ok(json!({"content": "x", "format": "bullets", "page": {"size": 10}}))
        );
        let faults = schema.bind(json!({"format": "prose"})).unwrap_err();
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults.iter().any(|fault| fault.at == "/format"));
        assert!(faults.iter().any(|fault| fault.message.contains("content")));
    }

    #[test]
    fn defaults_that_lead_back_to_themselves_end_with_a_refusal() {
        let again = json!({"$ref": "#", "default": {}});
        let bomb = json!({"type": "object", "properties": {"p0": again, "p1": again, "p2": again, "p3": again}});
        let bomb = InputSchema::new(&bomb).unwrap();
        let faults = bomb.bind(json!({})).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].message.contains("`input_schema`"), "{faults:?}");
        // Few but long ones weigh as well.
        let long = json!({"default": "x".repeat(60_000)});
        let properties: serde_json::Map<String, Value> =
            (0..20).map(|n| (format!("p{n}"), long.clone())).collect();
        let long = InputSchema::new(&json!({"properties": properties})).unwrap();
        assert!(long.bind(json!({})).is_err());
        // One that ends is filled in full.
        let chain = json!({"properties": {"p": again, "q": {"default": 1}}});
        let chain = InputSchema::new(&chain).unwrap();
        assert_eq!(chain.bind(json!({})).unwrap()["p"]["p"]["q"], 1);
    }

    #[test]
    fn what_leads_out_turns_in_a_circle_or_doubles_is_refused() {
        let chain: serde_json::Map<String, Value> = (0..40)
            .map(|n| {
                let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
                (format!("d{n}"), json!({"allOf": [next, next]}))
            })
            .chain([("d40".to_owned(), json!(true))])
            .collect();
        let table = [
            (json!({"$ref": "https://example.org/s.json"}), "leads out"),
            (
                json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
                "leads out",
            ),
            (json!({"$ref": "#/$defs/none"}), "leads nowhere"),
            (json!({"$ref": "#"}), "leads back"),
            (
                json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
                "leads back",
            ),
            (json!({"$ref": "#/$defs/d0", "$defs": chain}), "subschemas"),
            (json!({"type": 5}), "no JSON Schema"),
            (json!({"$schema": "https://example.org/draft"}), "no draft"),
        ];
        for (schema, expected) in table {
            let refused = InputSchema::new(&schema).unwrap_err();
            assert!(refused.contains(expected), "{schema}: {refused}");
        }
        // A tree refers to itself one level down, which ends with the value.
        let tree = json!({"type": "object", "properties": {"below": {"type": "array", "items": {"$ref": "#"}}}});
        let tree = InputSchema::new(&tree).unwrap();
        assert!(tree.bind(json!({"below": [{"below": []}]})).is_ok());
        assert!(tree.bind(json!({"below": [3]})).is_err());
    }
}
