//! What a skill takes, as JSON Schema for a model.

use serde_json::{Map, Value, json};

use super::skills::{Entry, Skills, What};
use crate::model::definition::{Input, InputKind};
use crate::model::legible::legible_lines;

/// The schema of a skill's inputs, as it is declared; `None`: it takes none, or only its own text says what.
pub(super) fn of(skills: &Skills, entry: &Entry) -> Option<Value> {
    let mut schema = declared(skills, entry)?;
    make_legible(&mut schema);
    Some(schema)
}

/// Escapes what is hidden in titles and descriptions; values stay what they are.
fn make_legible(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) if matches!(key.as_str(), "title" | "description") => {
                        *text = legible_lines(text).into_owned();
                    }
                    value => make_legible(value),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(make_legible),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn declared(skills: &Skills, entry: &Entry) -> Option<Value> {
    match &entry.what {
        What::Worker(_, skill) if skill.inputs.is_empty() => {
            skill.kept.get("input_schema").cloned()
        }
        What::Worker(_, skill) => Some(of_inputs(&skill.inputs)),
        What::Root(skill) if skill.is_executed() => {
            let loaded = skill.hand_out(skills.trust()).ok()?;
            loaded.keys.input_schema
        }
        What::Root(_) => None,
    }
}

fn of_inputs(inputs: &[Input]) -> Value {
    let properties = inputs
        .iter()
        .map(|input| (input.name.clone(), of_input(input)));
    let properties: Map<String, Value> = properties.collect();
    let required: Vec<&str> = inputs
        .iter()
        .filter(|input| input.required && input.default.is_none())
        .map(|input| input.name.as_str())
        .collect();
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    schema
}

fn of_input(input: &Input) -> Value {
    let mut schema = of_kind(input.kind, input.integer);
    let is_list = input.kind == InputKind::Array;
    let (least, most) = if is_list {
        ("minItems", "maxItems")
    } else {
        ("minLength", "maxLength")
    };
    let bounds = [
        ("minimum", input.min.map(Value::from)),
        ("maximum", input.max.map(Value::from)),
        (least, input.min_length.map(Value::from)),
        (most, input.max_length.map(Value::from)),
        ("description", input.description.clone().map(Value::from)),
        (
            "default",
            input.default.clone().filter(|_| !input.sensitive),
        ),
    ];
    for (key, value) in bounds {
        if let Some(value) = value {
            schema[key] = value;
        }
    }
    // What holds for each item of a list is said there.
    let mut each = match (is_list, input.items) {
        (true, Some(kind)) => of_kind(kind, input.integer),
        (true, None) => json!({}),
        (false, _) => schema.take(),
    };
    if !input.allowed.is_empty() {
        each["enum"] = input
            .allowed
            .iter()
            .map(|text| allowed(input, text))
            .collect();
    }
    if let Some(pattern) = &input.pattern {
        each["pattern"] = json!(format!("^(?:{pattern})$"));
    }
    if is_list {
        schema["items"] = each;
        schema
    } else {
        each
    }
}

fn of_kind(kind: InputKind, integer: bool) -> Value {
    match kind {
        InputKind::Number if integer => json!({"type": "integer"}),
        InputKind::Date => json!({"type": "string", "format": "date"}),
        InputKind::Path => json!({"type": "string"}),
        other => json!({"type": other.name()}),
    }
}

/// An allowed value as JSON: it is kept as text.
fn allowed(input: &Input, text: &str) -> Value {
    let kind = input.items.filter(|_| input.kind == InputKind::Array);
    match kind.unwrap_or(input.kind) {
        InputKind::Number | InputKind::Boolean => {
            serde_json::from_str(text).unwrap_or_else(|_| text.into())
        }
        _ => text.into(),
    }
}
