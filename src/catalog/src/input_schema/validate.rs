//! Validates a value against a checked schema.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::{Map, Number, Value};

use super::formats::matches_format;
use super::{InputFault, Patterns, resolve};

/// Faults of one value that are reported.
const FAULTS_MAX: usize = 50;

/// Characters of a value that a message shows.
const SHOWN_MAX: usize = 60;

/// One validation of one value.
pub(super) struct Validation<'s> {
    root: &'s Value,
    patterns: &'s Patterns,
    /// How many more times a subschema may be applied. Alternatives that lead back to the schema would otherwise double
    /// the time with each level of the value.
    steps_left: &'s Cell<usize>,
    /// JSON Pointer to the part that is validated.
    at: String,
    faults: Vec<InputFault>,
    faults_max: usize,
}

impl<'s> Validation<'s> {
    pub(super) fn new(
        root: &'s Value,
        patterns: &'s Patterns,
        steps_left: &'s Cell<usize>,
    ) -> Validation<'s> {
        Validation {
            root,
            patterns,
            steps_left,
            at: String::new(),
            faults: Vec::new(),
            faults_max: FAULTS_MAX,
        }
    }

    /// Returns what is wrong with a value; `None` if no steps are left.
    pub(super) fn faults(mut self, value: &Value) -> Option<Vec<InputFault>> {
        self.apply(self.root, value);
        (self.steps_left.get() > 0).then_some(self.faults)
    }

    /// Returns true if a value satisfies a subschema.
    fn is_valid(&self, schema: &'s Value, value: &Value) -> bool {
        let mut trial = Validation::new(self.root, self.patterns, self.steps_left);
        trial.faults_max = 1;
        trial.apply(schema, value);
        trial.faults.is_empty()
    }

    fn refuse(&mut self, message: String) {
        if self.faults.len() < self.faults_max {
            self.faults.push(InputFault {
                at: self.at.clone(),
                message,
            });
        }
    }

    fn apply(&mut self, schema: &'s Value, value: &Value) {
        let steps_left = self.steps_left.get().saturating_sub(1);
        self.steps_left.set(steps_left);
        if self.faults.len() >= self.faults_max || steps_left == 0 {
            return;
        }
        let keys = match schema {
            Value::Object(keys) => keys,
            Value::Bool(false) => return self.refuse(format!("{} is not allowed", shown(value))),
            _ => return,
        };
        for (key, wanted) in keys {
            match value {
                Value::Number(number) => self.number(keys, (key, wanted), number),
                Value::String(text) => self.text((key, wanted), text),
                Value::Array(items) => self.array(keys, (key, wanted), items),
                Value::Object(map) => self.object(keys, (key, wanted), map),
                Value::Null | Value::Bool(_) => {}
            }
            self.any(keys, (key, wanted), value);
        }
    }

    /// Applies a subschema to a part of the value.
    fn part(&mut self, key: &str, schema: &'s Value, value: &Value) {
        let length = self.at.len();
        self.at.push('/');
        self.at += &key.replace('~', "~0").replace('/', "~1");
        self.apply(schema, value);
        self.at.truncate(length);
    }

    /// Applies the keywords that concern values of every type.
    fn any(
        &mut self,
        keys: &'s Map<String, Value>,
        (key, wanted): (&str, &'s Value),
        value: &Value,
    ) {
        let list = || wanted.as_array().map_or(&[][..], Vec::as_slice);
        let valid = |validation: &Self| {
            let valid = list()
                .iter()
                .filter(|schema| validation.is_valid(schema, value));
            valid.count()
        };
        match key {
            "$ref" => {
                if let Some(schema) = wanted
                    .as_str()
                    .and_then(|target| resolve(self.root, target))
                {
                    self.apply(schema, value);
                }
            }
            "type" if !has_type(wanted, value) => {
                self.refuse(format!(
                    "{} is not of type {}",
                    shown(value),
                    listed(wanted)
                ));
            }
            "enum" if !list().iter().any(|allowed| equal(allowed, value)) => {
                self.refuse(format!("{} is not one of {}", shown(value), listed(wanted)));
            }
            "const" if !equal(wanted, value) => {
                self.refuse(format!("{} is not {}", shown(value), shown(wanted)));
            }
            "allOf" => list().iter().for_each(|schema| self.apply(schema, value)),
            "anyOf" if valid(self) == 0 => self.refuse(format!(
                "{} satisfies none of the schemas of `anyOf`",
                shown(value)
            )),
            "oneOf" => match valid(self) {
                1 => {}
                0 => self.refuse(format!(
                    "{} satisfies none of the schemas of `oneOf`",
                    shown(value)
                )),
                several => self.refuse(format!(
                    "{} satisfies {several} schemas of `oneOf` instead of one",
                    shown(value)
                )),
            },
            "not" if self.is_valid(wanted, value) => {
                self.refuse(format!("{} is excluded by `not`", shown(value)));
            }
            "if" => {
                let branch = if self.is_valid(wanted, value) {
                    "then"
                } else {
                    "else"
                };
                if let Some(schema) = keys.get(branch) {
                    self.apply(schema, value);
                }
            }
            _ => {}
        }
    }

    fn number(
        &mut self,
        keys: &Map<String, Value>,
        (key, wanted): (&str, &Value),
        number: &Number,
    ) {
        // Draft 4 has a flag next to `minimum` and `maximum`.
        let flag = |name: &str| keys.get(name) == Some(&Value::Bool(true));
        let Value::Number(limit) = wanted else {
            return;
        };
        let order = compare(number, limit);
        let wrong = match key {
            "minimum" if flag("exclusiveMinimum") && order != Ordering::Greater => "greater than",
            "minimum" if order == Ordering::Less => "at least",
            "maximum" if flag("exclusiveMaximum") && order != Ordering::Less => "less than",
            "maximum" if order == Ordering::Greater => "at most",
            "exclusiveMinimum" if order != Ordering::Greater => "greater than",
            "exclusiveMaximum" if order != Ordering::Less => "less than",
            "multipleOf" if !is_multiple(number, limit) => "a multiple of",
            _ => return,
        };
        self.refuse(format!("{number} is not {wrong} {limit}"));
    }

    fn text(&mut self, (key, wanted): (&str, &Value), text: &str) {
        let length = || count(text.chars().count());
        match (key, wanted) {
            ("minLength", limit) if below(length(), limit) => {
                self.refuse(format!(
                    "{} is shorter than {limit} characters",
                    quoted(text)
                ));
            }
            ("maxLength", limit) if above(length(), limit) => {
                self.refuse(format!(
                    "{} is longer than {limit} characters",
                    quoted(text)
                ));
            }
            ("pattern", Value::String(pattern)) if !self.is_match(pattern, text) => {
                self.refuse(format!(
                    "{} does not match the pattern `{pattern}`",
                    quoted(text)
                ));
            }
            ("format", Value::String(format)) if !matches_format(format, text) => {
                self.refuse(format!("{} is not a valid `{format}`", quoted(text)));
            }
            _ => {}
        }
    }

    fn is_match(&self, pattern: &str, text: &str) -> bool {
        let compiled = self.patterns.get(pattern);
        compiled.is_none_or(|pattern| pattern.is_match(text))
    }

    fn array(
        &mut self,
        keys: &'s Map<String, Value>,
        (key, wanted): (&str, &'s Value),
        items: &[Value],
    ) {
        let prefix = |key: &str| keys.get(key).and_then(Value::as_array).map_or(0, Vec::len);
        match (key, wanted) {
            ("minItems", limit) if below(count(items.len()), limit) => {
                self.refuse(format!("the list has fewer than {limit} items"));
            }
            ("maxItems", limit) if above(count(items.len()), limit) => {
                self.refuse(format!("the list has more than {limit} items"));
            }
            ("uniqueItems", Value::Bool(true)) => {
                let mut seen = HashSet::new();
                if let Some(twice) = items.iter().find(|item| !seen.insert(canonical(item))) {
                    self.refuse(format!("the list contains {} more than once", shown(twice)));
                }
            }
            ("prefixItems" | "items", Value::Array(schemas)) => {
                for (index, (schema, item)) in schemas.iter().zip(items).enumerate() {
                    self.part(&index.to_string(), schema, item);
                }
            }
            ("items", schema) => self.items(prefix("prefixItems"), schema, items),
            ("additionalItems", schema) if keys.get("items").is_some_and(Value::is_array) => {
                self.items(prefix("items"), schema, items);
            }
            ("contains", schema) => {
                let found = count(
                    items
                        .iter()
                        .filter(|item| self.is_valid(schema, item))
                        .count(),
                );
                let least = keys
                    .get("minContains")
                    .and_then(Value::as_f64)
                    .unwrap_or(1.0);
                if found < least {
                    self.refuse(format!("the list contains {found} items that `contains` describes, fewer than {least}"));
                }
                if let Some(limit) = keys.get("maxContains").filter(|limit| above(found, limit)) {
                    self.refuse(format!("the list contains {found} items that `contains` describes, more than {limit}"));
                }
            }
            _ => {}
        }
    }

    fn items(&mut self, skipped: usize, schema: &'s Value, items: &[Value]) {
        for (index, item) in items.iter().enumerate().skip(skipped) {
            self.part(&index.to_string(), schema, item);
        }
    }

    fn object(
        &mut self,
        keys: &'s Map<String, Value>,
        (key, wanted): (&str, &'s Value),
        map: &Map<String, Value>,
    ) {
        match (key, wanted) {
            ("minProperties", limit) if below(count(map.len()), limit) => {
                self.refuse(format!("it has fewer than {limit} properties"));
            }
            ("maxProperties", limit) if above(count(map.len()), limit) => {
                self.refuse(format!("it has more than {limit} properties"));
            }
            ("required", Value::Array(names)) => self.required(names, map),
            ("properties", Value::Object(schemas)) => {
                for (name, schema) in schemas {
                    if let Some(value) = map.get(name) {
                        self.part(name, schema, value);
                    }
                }
            }
            ("patternProperties", Value::Object(schemas)) => {
                for (pattern, schema) in schemas {
                    for (name, value) in map {
                        if self.is_match(pattern, name) {
                            self.part(name, schema, value);
                        }
                    }
                }
            }
            ("additionalProperties", schema) => self.additional(keys, schema, map),
            ("propertyNames", schema) => {
                for name in map.keys() {
                    self.apply(schema, &Value::String(name.clone()));
                }
            }
            ("dependentRequired" | "dependentSchemas" | "dependencies", Value::Object(needed)) => {
                for (_, needed) in needed.iter().filter(|(name, _)| map.contains_key(*name)) {
                    match needed {
                        Value::Array(names) => self.required(names, map),
                        schema => self.apply(schema, &Value::Object(map.clone())),
                    }
                }
            }
            _ => {}
        }
    }

    fn required(&mut self, names: &[Value], map: &Map<String, Value>) {
        for name in names.iter().filter_map(Value::as_str) {
            if !map.contains_key(name) {
                self.refuse(format!("{} is a required property", quoted(name)));
            }
        }
    }

    fn additional(
        &mut self,
        keys: &'s Map<String, Value>,
        schema: &'s Value,
        map: &Map<String, Value>,
    ) {
        let inner = |key: &str| keys.get(key).and_then(Value::as_object);
        let (declared, patterns) = (inner("properties"), inner("patternProperties"));
        for (name, value) in map {
            let is_declared = declared.is_some_and(|declared| declared.contains_key(name))
                || patterns
                    .is_some_and(|all| all.keys().any(|pattern| self.is_match(pattern, name)));
            match schema {
                _ if is_declared => {}
                Value::Bool(false) => {
                    self.refuse(format!("{} is not a declared property", quoted(name)));
                }
                schema => self.part(name, schema, value),
            }
        }
    }
}

/// Returns a count as JSON compares it. Counts of values in memory are far below 2⁵³.
#[expect(
    clippy::cast_precision_loss,
    reason = "no value in memory has 2^53 parts"
)]
fn count(parts: usize) -> f64 {
    parts as f64
}

fn below(count: f64, limit: &Value) -> bool {
    limit.as_f64().is_some_and(|limit| count < limit)
}

fn above(count: f64, limit: &Value) -> bool {
    limit.as_f64().is_some_and(|limit| count > limit)
}

fn has_type(wanted: &Value, value: &Value) -> bool {
    let is = |name: &Value| match (name.as_str().unwrap_or_default(), value) {
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("object", Value::Object(_))
        | ("array", Value::Array(_))
        | ("number", Value::Number(_))
        | ("string", Value::String(_)) => true,
        // 1.0 is an integer as well.
        ("integer", Value::Number(number)) => {
            !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        _ => false,
    };
    match wanted {
        Value::Array(names) => names.iter().any(is),
        name => is(name),
    }
}

fn whole(number: &Number) -> Option<i128> {
    let signed = number.as_i64().map(i128::from);
    signed.or_else(|| number.as_u64().map(i128::from))
}

fn compare(one: &Number, other: &Number) -> Ordering {
    if let (Some(one), Some(other)) = (whole(one), whole(other)) {
        return one.cmp(&other);
    }
    let both = one.as_f64().zip(other.as_f64());
    let order = both.and_then(|(one, other)| one.partial_cmp(&other));
    order.unwrap_or(Ordering::Equal)
}

fn is_multiple(number: &Number, of: &Number) -> bool {
    if let (Some(number), Some(of)) = (whole(number), whole(of)) {
        return number % of == 0;
    }
    let Some((number, of)) = number.as_f64().zip(of.as_f64()) else {
        return true;
    };
    // 0.3 is a multiple of 0.1, although no binary fraction is exactly either of them.
    let times = number / of;
    (times - times.round()).abs() <= times.abs().max(1.0) * f64::EPSILON * 4.0
}

fn equal(one: &Value, other: &Value) -> bool {
    one == other || canonical(one) == canonical(other)
}

/// Returns the same text for values that JSON Schema considers equal: 1 and 1.0, and maps in any order.
fn canonical(value: &Value) -> String {
    match value {
        Value::Number(number) => match whole(number) {
            Some(whole) => whole.to_string(),
            None => number.as_f64().unwrap_or_default().to_string(),
        },
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let mut entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}:{}", Value::from(key.as_str()), canonical(value)))
                .collect();
            entries.sort();
            format!("{{{}}}", entries.join(","))
        }
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    shown(&Value::String(text.to_owned()))
}

/// Returns the value as JSON, shortened.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Returns the allowed values, separated by commas.
fn listed(allowed: &Value) -> String {
    match allowed {
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        one => shown(one),
    }
}
