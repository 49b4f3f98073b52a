//! `input_schema`: JSON Schema of a skill's input, checked without ever fetching anything.

mod defaults;

use std::collections::HashMap;

use defaults::Filling;
use jsonschema::error::ValidationErrorKind as ErrorKind;
use jsonschema::{FancyRegex, PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::report::Report;
use super::tree::Data;
use super::view::View;

/// Subschemas that one value may have to be checked against: a schema that refers to itself twice would
/// need time that doubles with each step.
const EXPANSION_MAX: u64 = 1_000;

/// Subschemas that may lead to each other in a row for one value.
const CHAIN_MAX: usize = 200;

/// Values that defaults may add to one input: a schema whose defaults lead back to itself would add without end.
const FILLED_MAX: usize = 10_000;

/// Values that defaults may add, and steps that one pattern may take, where a definition is only looked at.
const LOOKED_AT_MAX: usize = 100;
const PATTERN_STEPS: usize = 1_000;

/// Problems of one value that are told.
const PROBLEMS_MAX: usize = 50;

/// A schema that can be applied.
#[derive(Debug)]
pub struct InputSchema {
    schema: Value,
    validator: Validator,
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
    read_as(view, "input_schema", report)
}

/// The same under another key.
pub(crate) fn read_as(view: View<'_>, key: &str, report: &mut Report) -> Option<Value> {
    if !matches!(view.data(), Data::Map(_)) {
        view.wrong_type(key, "a JSON Schema as a map", report);
        return None;
    }
    let schema = view.json();
    let patterns = PatternOptions::fancy_regex().backtrack_limit(PATTERN_STEPS);
    let validator = check(&schema).and_then(|()| compile(&schema, patterns));
    match validator {
        Ok(validator) => report_defaults(view, key, (&schema, &validator), report),
        Err(refusal) => {
            report.error(
                "input-schema",
                at(view, &refusal.at).place(),
                refusal.message.replacen("input_schema", key, 1),
                "write a JSON Schema that refers to nothing outside of it",
            );
            return None;
        }
    }
    Some(schema)
}

/// Says which defaults the schema itself refuses: each call that leaves such a value out would fail.
fn report_defaults(
    view: View<'_>,
    key: &str,
    (schema, validator): (&Value, &Validator),
    report: &mut Report,
) {
    let mut input = Value::Object(serde_json::Map::new());
    let mut filling = Filling {
        root: schema,
        left: LOOKED_AT_MAX,
    };
    // More of them are not looked at here.
    if filling.fill(schema, &mut input, 0).is_err() {
        return;
    }
    for error in validator.iter_errors(&input).take(PROBLEMS_MAX) {
        let pointer = error.instance_path().to_string();
        let in_time = !matches!(error.kind(), ErrorKind::BacktrackLimitExceeded { .. });
        if let Some(path) = pointer.strip_prefix('/').filter(|_| in_time) {
            // Where a default holds others, the outermost one is in question.
            let name = path.split('/').next().unwrap_or(path);
            report.warning(
                "input-schema-default",
                at(view, &format!("/properties/{name}/default")).place(),
                format!("`{key}` refuses its own default of `{path}`: {error}"),
                "write a default that the schema allows, or leave it out",
            );
        }
    }
}

/// The value that a JSON Pointer leads to, or the last one on the way to it.
fn at<'a>(view: View<'a>, pointer: &str) -> View<'a> {
    let mut found = view;
    for part in pointer.split('/').skip(1) {
        let key = part.replace("~1", "/").replace("~0", "~");
        let item = || found.items().nth(key.parse().ok()?);
        match found.get(&key).or_else(item) {
            Some(inner) => found = inner,
            None => break,
        }
    }
    found
}

/// Why a schema is none.
#[derive(Debug)]
struct SchemaRefusal {
    message: String,
    /// JSON Pointer to what is wrong; empty: the whole.
    at: String,
}

impl SchemaRefusal {
    fn of(error: &ValidationError<'_>, at: String) -> SchemaRefusal {
        let place = if at.is_empty() {
            String::new()
        } else {
            format!(" at `{at}`")
        };
        SchemaRefusal {
            message: format!("`input_schema` is no JSON Schema{place}: {error}"),
            at,
        }
    }
}

impl From<String> for SchemaRefusal {
    fn from(message: String) -> SchemaRefusal {
        SchemaRefusal {
            message,
            at: String::new(),
        }
    }
}

/// Whether a schema is one, and needs nothing from elsewhere.
fn check(schema: &Value) -> Result<(), SchemaRefusal> {
    if schema
        .get("$schema")
        .is_some_and(|draft| !draft.as_str().is_some_and(is_known_draft))
    {
        return Err("`$schema` names no draft that is known".to_owned().into());
    }
    let mut weights = HashMap::new();
    local_references(schema, true)?;
    weigh_all(schema, schema, &mut weights)?;
    jsonschema::meta::validate(schema)
        .map_err(|error| SchemaRefusal::of(&error, error.instance_path().to_string()))
}

/// What checks inputs; a pattern that is none is found here.
fn compile(
    schema: &Value,
    patterns: PatternOptions<FancyRegex>,
) -> Result<Validator, SchemaRefusal> {
    let built = jsonschema::options()
        .should_validate_formats(true)
        .with_pattern_options(patterns)
        .build(schema);
    built.map_err(|error| SchemaRefusal::of(&error, error.schema_path().to_string()))
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
        Some(None) => return Err("`$ref` leads back to itself".to_owned()),
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
        let patterns = PatternOptions::fancy_regex();
        let validator = check(schema).and_then(|()| compile(schema, patterns));
        let validator = validator.map_err(|refusal| refusal.message)?;
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
        // Those of a schema that is referred to count, but where the property has its own.
        let behind = json!({
            "properties": {"o": {"$ref": "#/$defs/o"}, "p": {"$ref": "#/$defs/o", "default": 5}},
            "required": ["o", "p"],
            "$defs": {"o": {"$ref": "#/$defs/n"}, "n": {"type": "integer", "default": 4}},
        });
        let behind = InputSchema::new(&behind).unwrap();
        assert_eq!(behind.bind(json!({})), Ok(json!({"o": 4, "p": 5})));
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
