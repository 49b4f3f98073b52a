//! JSON Schemas of definition files, so that editors complete, explain and check while typing.
//!
//! They are written from the tables of `keys`. The loader reads values by hand, because it reports
//! every problem with its place and accepts more than a schema can say.

use serde_json::{Map, Value, json};

use crate::keys::{CONFIG, Form, Key, SKILL_FILE, Table, WORKER_FILE};

/// Schema of `worker.yaml`.
pub fn worker() -> Value {
    of(&WORKER_FILE, "worker.yaml")
}

/// Schema of a skill file's frontmatter.
pub fn skill() -> Value {
    of(&SKILL_FILE, "frontmatter of a skill file")
}

/// Schema of `workerctl.yaml`.
pub fn config() -> Value {
    of(&CONFIG, "workerctl.yaml")
}

fn of(file: &Table, title: &str) -> Value {
    let mut definitions = Map::new();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
    });
    merge(&mut schema, object(file, &mut definitions));
    merge(&mut schema, json!({"$defs": definitions}));
    schema
}

/// The schema of a map; those of maps in it go to the definitions.
fn object(table: &Table, definitions: &mut Map<String, Value>) -> Value {
    let properties: Map<String, Value> = table
        .keys
        .iter()
        .map(|key| (key.name.to_owned(), property(key, definitions)))
        .collect();
    let mut schema = json!({
        "description": table.what,
        "type": "object",
        "properties": properties,
    });
    let required: Vec<&str> = table
        .keys
        .iter()
        .filter(|key| key.required)
        .map(|key| key.name)
        .collect();
    if !required.is_empty() {
        merge(&mut schema, json!({"required": required}));
    }
    schema
}

fn property(key: &Key, definitions: &mut Map<String, Value>) -> Value {
    let mut schema = json!({"description": explained(key)});
    let value = value(key.form, definitions);
    let accepts_null = matches!(key.form, Form::Anything) || !key.nullable;
    let value = if accepts_null { value } else { or_null(value) };
    merge(&mut schema, value);
    schema
}

/// What editors show: a sentence, and the default.
fn explained(key: &Key) -> String {
    let mut letters = key.what.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    let sentence: String = first.chain(letters).collect();
    match key.default.shown() {
        Some(default) => format!("{sentence}. Default: {default}."),
        None => format!("{sentence}."),
    }
}

fn value(form: Form, definitions: &mut Map<String, Value>) -> Value {
    match form {
        Form::Anything => json!({}),
        Form::Text => json!({"type": ["string", "number", "boolean"]}),
        Form::String => json!({"type": "string"}),
        Form::Pattern(pattern) => json!({"type": "string", "pattern": pattern}),
        Form::Flag => json!({"type": "boolean"}),
        Form::False => json!({"const": false}),
        Form::Whole(least, u64::MAX) => json!({"type": "integer", "minimum": least}),
        Form::Whole(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Form::Number => json!({"type": "number"}),
        Form::NumberIn(least, most) => {
            json!({"type": "number", "minimum": least, "maximum": most})
        }
        Form::Duration => json!({"anyOf": [
            {"type": "string", "pattern": r"^\s*([0-9]+\s*[a-z]*\s*)+$"},
            {"type": "integer", "minimum": 1},
        ]}),
        Form::Size => json!({"anyOf": [
            {"type": "string", "pattern": r"^\s*[0-9]+\s*([KMGT]iB|[kKMGT]?B)?\s*$"},
            {"type": "integer", "minimum": 0},
        ]}),
        Form::Money => json!({"anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "pattern": r"^[0-9_]+(\.[0-9]{0,6})?$"},
        ]}),
        Form::Count => json!({"anyOf": [
            {"type": "integer", "minimum": 1},
            {"type": "string", "pattern": "^[0-9][0-9_]*$"},
        ]}),
        Form::Words(words) => json!({"enum": words}),
        Form::Map(table) => {
            if !definitions.contains_key(table.name) {
                // It is there before its own maps are.
                definitions.insert(table.name.to_owned(), Value::Null);
                let schema = object(table, definitions);
                definitions.insert(table.name.to_owned(), schema);
            }
            json!({"$ref": format!("#/$defs/{}", table.name)})
        }
        Form::Named(each) => {
            json!({"type": "object", "additionalProperties": value(*each, definitions)})
        }
        Form::Object => json!({"type": "object"}),
        Form::List(item) => json!({"type": "array", "items": value(*item, definitions)}),
        Form::Filled(item) => {
            json!({"type": "array", "items": value(*item, definitions), "minItems": 1})
        }
        Form::AnyOf(forms) => {
            let alternatives = forms.iter().map(|form| value(*form, definitions));
            json!({"anyOf": alternatives.collect::<Vec<_>>()})
        }
        Form::Schema(schema) => schema(),
    }
}

/// Accepts null besides.
fn or_null(mut schema: Value) -> Value {
    if let Some(Value::Array(alternatives)) = schema.get_mut("anyOf") {
        alternatives.push(json!({"type": "null"}));
        return schema;
    }
    match schema.get_mut("type") {
        Some(Value::Array(types)) => types.push("null".into()),
        Some(kind) => *kind = json!([kind.take(), "null"]),
        None => schema = json!({"anyOf": [schema, {"type": "null"}]}),
    }
    schema
}

fn merge(schema: &mut Value, more: Value) {
    if let (Value::Object(schema), Value::Object(more)) = (schema, more) {
        schema.extend(more);
    }
}

#[cfg(test)]
mod tests;
