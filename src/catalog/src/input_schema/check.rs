//! Checks a schema before it is applied: keywords, references and the time that validation may take.

use std::collections::{HashMap, HashSet};
use std::fmt;

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::{Patterns, resolve};

/// Subschemas that may apply to one value: a schema that refers to itself twice would need time that doubles with
/// each step.
const EXPANSION_MAX: u64 = 1_000;

/// Subschemas that may lead to each other in a row for one value.
const CHAIN_MAX: usize = 200;

/// Bytes that one compiled pattern may need.
const PATTERN_MEMORY_MAX: usize = 1024 * 1024;

const DRAFTS: [&str; 5] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
];

const TYPES: [&str; 7] = [
    "null", "boolean", "object", "array", "number", "string", "integer",
];

/// What the value of a keyword must be.
#[derive(Clone, Copy)]
enum Form {
    Schema,
    SchemaList,
    SchemaMap,
    /// As `SchemaMap`, with regular expressions as keys.
    PatternMap,
    /// A schema, or a list of schemas as drafts before 2020-12 have it.
    Items,
    /// A map of schemas or lists of names, as drafts before 2019-09 have it.
    Dependencies,
    Type,
    Names,
    NamesMap,
    List,
    Count,
    Number,
    Positive,
    /// A number, or a boolean as draft 4 has it.
    Limit,
    Flag,
    Text,
    Pattern,
    Reference,
    Unsupported,
}

/// Every keyword that takes part in validation; all others are annotations.
const KEYWORDS: [(&str, Form); 47] = [
    ("$defs", Form::SchemaMap),
    ("$dynamicRef", Form::Unsupported),
    ("$recursiveRef", Form::Unsupported),
    ("$ref", Form::Reference),
    ("additionalItems", Form::Schema),
    ("additionalProperties", Form::Schema),
    ("allOf", Form::SchemaList),
    ("anyOf", Form::SchemaList),
    ("contains", Form::Schema),
    ("definitions", Form::SchemaMap),
    ("dependencies", Form::Dependencies),
    ("dependentRequired", Form::NamesMap),
    ("dependentSchemas", Form::SchemaMap),
    ("else", Form::Schema),
    ("enum", Form::List),
    ("exclusiveMaximum", Form::Limit),
    ("exclusiveMinimum", Form::Limit),
    ("format", Form::Text),
    ("if", Form::Schema),
    ("items", Form::Items),
    ("maxContains", Form::Count),
    ("maxItems", Form::Count),
    ("maxLength", Form::Count),
    ("maxProperties", Form::Count),
    ("maximum", Form::Number),
    ("minContains", Form::Count),
    ("minItems", Form::Count),
    ("minLength", Form::Count),
    ("minProperties", Form::Count),
    ("minimum", Form::Number),
    ("multipleOf", Form::Positive),
    ("not", Form::Schema),
    ("oneOf", Form::SchemaList),
    ("pattern", Form::Pattern),
    ("patternProperties", Form::PatternMap),
    ("prefixItems", Form::SchemaList),
    ("properties", Form::SchemaMap),
    ("propertyNames", Form::Schema),
    ("required", Form::Names),
    ("then", Form::Schema),
    ("type", Form::Type),
    ("unevaluatedItems", Form::Unsupported),
    ("unevaluatedProperties", Form::Unsupported),
    ("uniqueItems", Form::Flag),
    // Annotations whose type is checked, because editors and models read them.
    ("description", Form::Text),
    ("title", Form::Text),
    ("$comment", Form::Text),
];

/// Why a schema cannot be used. Displayed after the key that holds the schema.
#[derive(Debug)]
pub(super) struct SchemaError {
    /// JSON Pointer to the place; empty for the whole schema.
    pub(super) at: String,
    reason: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "is not a valid JSON Schema")?;
        if !self.at.is_empty() {
            write!(f, " at `{}`", self.at.escape_debug())?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// Checks a schema and compiles its patterns.
pub(super) fn check(schema: &Value) -> Result<Patterns, SchemaError> {
    let mut checking = Checking {
        root: schema,
        patterns: Patterns::new(),
        visited: HashSet::new(),
        weights: HashMap::new(),
    };
    if let Some(draft) = schema.get("$schema") {
        let known = |draft: &str| DRAFTS.contains(&draft.trim_end_matches('#'));
        if !draft.as_str().is_some_and(known) {
            return Err(error("/$schema", "`$schema` is not a known draft"));
        }
    }
    checking.schema(schema, "")?;
    Ok(checking.patterns)
}

fn error(at: &str, reason: impl Into<String>) -> SchemaError {
    SchemaError {
        at: at.to_owned(),
        reason: reason.into(),
    }
}

fn below(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

struct Checking<'s> {
    root: &'s Value,
    patterns: Patterns,
    /// Addresses of the subschemas that were reached, so that each is checked once.
    visited: HashSet<*const Value>,
    /// Subschemas that apply with each subschema, by its address; `None` while it is being computed.
    weights: HashMap<*const Value, Option<u64>>,
}

impl<'s> Checking<'s> {
    fn schema(&mut self, schema: &'s Value, at: &str) -> Result<(), SchemaError> {
        let keys = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(keys) => keys,
            _ => return Err(error(at, "a schema is a map, `true` or `false`")),
        };
        if !self.visited.insert(std::ptr::from_ref(schema)) {
            return Ok(());
        }
        if !at.is_empty() && keys.get("$id").is_some_and(Value::is_string) {
            return Err(error(at, "`$id` below the top is not supported"));
        }
        for (key, value) in keys {
            let known = KEYWORDS.iter().find(|(keyword, _)| keyword == key);
            if let Some((_, form)) = known {
                self.keyword(*form, key, value, &below(at, key))?;
            }
        }
        self.weigh(schema, 0).map_err(|reason| error(at, reason))?;
        Ok(())
    }

    fn keyword(
        &mut self,
        form: Form,
        key: &str,
        value: &'s Value,
        at: &str,
    ) -> Result<(), SchemaError> {
        if let Some(expected) = mismatch(form, value) {
            return Err(error(at, format!("`{key}` must be {expected}")));
        }
        match (form, value) {
            (Form::SchemaList | Form::Items, Value::Array(items)) => self.list(items, at),
            (Form::Schema | Form::Items, value) => self.schema(value, at),
            (Form::SchemaMap, Value::Object(map)) => self.map(map, at),
            (Form::PatternMap, Value::Object(map)) => {
                for pattern in map.keys() {
                    self.pattern(pattern, &below(at, pattern))?;
                }
                self.map(map, at)
            }
            (Form::Dependencies, Value::Object(map)) => {
                for (name, needed) in map {
                    if !is_names(needed) {
                        self.schema(needed, &below(at, name))?;
                    }
                }
                Ok(())
            }
            (Form::Pattern, Value::String(pattern)) => self.pattern(pattern, at),
            (Form::Reference, Value::String(target)) => self.reference(target, at),
            (Form::Unsupported, _) => Err(error(at, format!("`{key}` is not supported"))),
            _ => Ok(()),
        }
    }

    fn list(&mut self, items: &'s [Value], at: &str) -> Result<(), SchemaError> {
        for (index, item) in items.iter().enumerate() {
            self.schema(item, &format!("{at}/{index}"))?;
        }
        Ok(())
    }

    fn map(&mut self, map: &'s Map<String, Value>, at: &str) -> Result<(), SchemaError> {
        for (key, item) in map {
            self.schema(item, &below(at, key))?;
        }
        Ok(())
    }

    /// Compiles a regular expression. It matches in time linear to the value, so look-around is not supported.
    fn pattern(&mut self, pattern: &str, at: &str) -> Result<(), SchemaError> {
        if self.patterns.contains_key(pattern) {
            return Ok(());
        }
        let compiled = RegexBuilder::new(pattern)
            .size_limit(PATTERN_MEMORY_MAX)
            .dfa_size_limit(PATTERN_MEMORY_MAX)
            .build()
            .map_err(|fault| {
                // The message draws the pattern over several lines; the last one is the reason.
                let text = fault.to_string();
                let reason = text.lines().last().unwrap_or_default().trim();
                let reason = reason.strip_prefix("error: ").unwrap_or(reason);
                error(
                    at,
                    format!(
                        "`{}` is not a usable pattern: {reason}",
                        pattern.escape_debug()
                    ),
                )
            })?;
        self.patterns.insert(pattern.to_owned(), compiled);
        Ok(())
    }

    fn reference(&mut self, target: &str, at: &str) -> Result<(), SchemaError> {
        let shown = target.escape_debug();
        if target != "#" && !target.starts_with("#/") {
            return Err(error(
                at,
                format!("`$ref: {shown}` refers to something outside of it"),
            ));
        }
        match resolve(self.root, target) {
            Some(referred) => self.schema(referred, target.trim_start_matches('#')),
            None => Err(error(at, format!("`$ref: {shown}` refers to nothing"))),
        }
    }

    /// Returns how many subschemas apply to a value if this one does, itself included.
    fn weigh(&mut self, schema: &'s Value, depth: usize) -> Result<u64, String> {
        let place = std::ptr::from_ref(schema);
        match self.weights.get(&place) {
            Some(Some(weight)) => return Ok(*weight),
            Some(None) => return Err("`$ref` refers back to itself".to_owned()),
            None => {}
        }
        if depth > CHAIN_MAX {
            return Err(format!(
                "more than {CHAIN_MAX} subschemas lead to each other"
            ));
        }
        self.weights.insert(place, None);
        let mut weight = 1_u64;
        for inner in in_place(self.root, schema) {
            weight = weight.saturating_add(self.weigh(inner, depth + 1)?);
        }
        if weight > EXPANSION_MAX {
            return Err(format!(
                "more than {EXPANSION_MAX} subschemas apply to one value"
            ));
        }
        self.weights.insert(place, Some(weight));
        Ok(weight)
    }
}

/// Returns the subschemas that apply to the same value. References to nothing are left out.
fn in_place<'v>(root: &'v Value, schema: &'v Value) -> Vec<&'v Value> {
    let Value::Object(map) = schema else {
        return Vec::new();
    };
    let target = map.get("$ref").and_then(Value::as_str);
    let mut found: Vec<&Value> = target
        .and_then(|target| resolve(root, target))
        .into_iter()
        .collect();
    for key in ["allOf", "anyOf", "oneOf"] {
        found.extend(map.get(key).and_then(Value::as_array).into_iter().flatten());
    }
    found.extend(
        ["not", "if", "then", "else"]
            .iter()
            .filter_map(|key| map.get(*key)),
    );
    for key in ["dependentSchemas", "dependencies"] {
        let inner = map.get(key).and_then(Value::as_object);
        let schemas = inner.into_iter().flat_map(Map::values);
        found.extend(schemas.filter(|inner| inner.is_object()));
    }
    found
}

/// Returns what a keyword of this form must be, if the value is something else.
fn mismatch(form: Form, value: &Value) -> Option<&'static str> {
    let number = value.as_f64();
    let (is_right, expected) = match form {
        Form::Schema | Form::Items | Form::Unsupported => return None,
        Form::SchemaList => (value.is_array(), "a list of schemas"),
        Form::SchemaMap | Form::PatternMap | Form::Dependencies => {
            (value.is_object(), "a map of schemas")
        }
        Form::Type => (
            is_type(value),
            "`null`, `boolean`, `object`, `array`, `number`, `string`, `integer`, or a list of these",
        ),
        Form::Names => (is_names(value), "a list of names"),
        Form::NamesMap => {
            let map = value.as_object();
            let is_right = map.is_some_and(|map| map.values().all(is_names));
            (is_right, "a map of lists of names")
        }
        Form::List => (value.is_array(), "a list"),
        Form::Count => {
            let is_right = number.is_some_and(|number| number >= 0.0 && number.fract() == 0.0);
            (is_right, "a whole number, 0 or greater")
        }
        Form::Number => (value.is_number(), "a number"),
        Form::Positive => (
            number.is_some_and(|number| number > 0.0),
            "a number greater than 0",
        ),
        Form::Limit => (value.is_number() || value.is_boolean(), "a number"),
        Form::Flag => (value.is_boolean(), "`true` or `false`"),
        Form::Text | Form::Pattern | Form::Reference => (value.is_string(), "a text"),
    };
    (!is_right).then_some(expected)
}

fn is_names(value: &Value) -> bool {
    let names = value.as_array();
    names.is_some_and(|names| names.iter().all(Value::is_string))
}

fn is_type(value: &Value) -> bool {
    let known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(known),
        name => known(name),
    }
}
