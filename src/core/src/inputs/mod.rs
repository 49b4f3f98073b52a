//! Binds and checks inputs; all problems at once.
//!
//! What a value may look like:
//!
//! | type | on a command line, or as a JSON string | as other JSON |
//! |---|---|---|
//! | `string` | any text without NUL | a whole number, taken as its digits; anything else must be quoted |
//! | `number` | decimal digits, sign, point; no exponent; `08` is 8 | a number that a float held exactly |
//! | `boolean` | `true`, `false` | `true`, `false` |
//! | `date` | `YYYY-MM-DD`, a day of the calendar | – |
//! | `path` | a path inside the workspace, judged by its shape | – |
//! | `array` | one item each time the name is given, or a JSON list where the text begins with `[` | a list |
//!
//! A comma separates nothing, since items may hold one. JSON `null` means *not given*. Patterns and
//! allowed values are held against the canonical text, of a list against each item.

mod decimal;
mod given;
mod path;
mod problem;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value as Json;

pub use given::RawInputs;
pub use path::is_git_directory;
pub use problem::{Code, InputProblem, refusal};

use crate::model::Value;
use crate::model::definition::{Input, InputKind};
use crate::model::value::MASK;
use decimal::Decimal;
use problem::{ValueFault, nearest, printable, shown};
use rules::Rules;

/// Most values that one request may give, items of repeated names included.
pub const GIVEN_MAX: usize = 4_096;

/// Most items of one list.
pub const ITEMS_MAX: usize = 1_000;

/// Most problems that are told of one input.
const PROBLEMS_PER_INPUT_MAX: usize = 10;

/// Most undeclared names that are told one by one.
const UNKNOWN_MAX: usize = 20;

/// Inputs that passed every check: one value for each declared input, none besides.
#[derive(Clone, PartialEq)]
pub struct Bound {
    /// The values; [`Value::Unset`] where an optional input got none.
    pub values: BTreeMap<String, Value>,
    /// Names of the sensitive inputs that have a value, in the order of declaration.
    pub secrets: Vec<String>,
}

impl Bound {
    /// The values with the mask in place of every secret.
    pub fn masked(&self) -> BTreeMap<String, Value> {
        let mut values = self.values.clone();
        for name in &self.secrets {
            values.insert(name.clone(), Value::Text(MASK.to_owned()));
        }
        values
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound")
            .field("values", &self.masked())
            .field("secrets", &self.secrets)
            .finish()
    }
}

/// Binds what was given to what is declared: types, limits, defaults, names.
///
/// # Errors
/// Every problem there is, those of declared inputs in their order first, then undeclared names.
pub fn bind(inputs: &[Input], given: &RawInputs) -> Result<Bound, Vec<InputProblem>> {
    let members = given.json.as_ref().map_or(0, serde_json::Map::len);
    if given.pairs.len().saturating_add(members) > GIVEN_MAX {
        let fault = ValueFault::new(
            Code::TooLarge,
            format!("at most {GIVEN_MAX} values are taken at once"),
        );
        return Err(vec![fault.of("*")]);
    }
    let mut problems = Vec::new();
    let mut bound = Bound {
        values: BTreeMap::new(),
        secrets: Vec::new(),
    };
    for input in inputs {
        match bind_one(input, given) {
            Ok(value) => {
                if input.sensitive && value != Value::Unset {
                    bound.secrets.push(input.name.clone());
                }
                bound.values.insert(input.name.clone(), value);
            }
            Err(faults) => problems.extend(told(&input.name, faults)),
        }
    }
    problems.extend(undeclared(inputs, given));
    if problems.is_empty() {
        Ok(bound)
    } else {
        Err(problems)
    }
}

/// What is wrong with a declaration itself: limits that contradict each other, a pattern that does
/// not compile, allowed values or a default that the declaration refuses.
pub fn check_declaration(input: &Input) -> Vec<InputProblem> {
    let faults = Rules::of(input)
        .and_then(|rules| declared_default(&rules))
        .err()
        .unwrap_or_default();
    told(&input.name, faults)
}

/// At most [`PROBLEMS_PER_INPUT_MAX`] problems, the last one saying how many more there are.
fn told(name: &str, faults: Vec<ValueFault>) -> Vec<InputProblem> {
    let count = faults.len();
    let mut problems: Vec<InputProblem> = faults
        .into_iter()
        .take(PROBLEMS_PER_INPUT_MAX)
        .map(|fault| fault.of(name))
        .collect();
    if count > PROBLEMS_PER_INPUT_MAX
        && let Some(last) = problems.last_mut()
    {
        let more = count - PROBLEMS_PER_INPUT_MAX;
        last.message = format!("{}; and {more} more problems", last.message);
    }
    problems
}

fn bind_one(input: &Input, given: &RawInputs) -> Result<Value, Vec<ValueFault>> {
    let rules = Rules::of(input)?;
    let texts: Vec<&str> = given
        .pairs
        .iter()
        .filter(|(name, _)| *name == input.name)
        .map(|(_, text)| text.as_str())
        .collect();
    let json = given
        .json
        .as_ref()
        .and_then(|map| map.get(&input.name))
        .filter(|value| !value.is_null());
    match (texts.as_slice(), json) {
        ([], None) => default_of(&rules),
        ([], Some(json)) => from_json(&rules, json),
        (_, Some(_)) => Err(vec![ValueFault::new(
            Code::Duplicate,
            "given both as `name=value` and in the JSON object",
        )]),
        (texts, None) if input.kind == InputKind::Array => list_from_texts(&rules, texts),
        ([text], None) => scalar(&rules, text),
        (several, None) => Err(vec![
            ValueFault::new(
                Code::Duplicate,
                format!("given {} times, and it takes one value", several.len()),
            )
            .hint("only an input of type `array` may be repeated"),
        ]),
    }
}

fn default_of(rules: &Rules<'_>) -> Result<Value, Vec<ValueFault>> {
    let input = rules.input;
    match declared_default(rules)? {
        Some(value) => Ok(value),
        None if input.required => {
            let what = input.description.as_deref().unwrap_or_default().trim();
            let call = format!("give it as `-i {}=…`", printable(&input.name));
            let hint = match what {
                "" => call,
                what => format!("{call}: {}", printable(what)),
            };
            Err(vec![
                ValueFault::new(Code::Missing, "a value is required").hint(hint),
            ])
        }
        None => Ok(Value::Unset),
    }
}

/// The default under the same rules as a given value; its refusal is the definition's fault.
fn declared_default(rules: &Rules<'_>) -> Result<Option<Value>, Vec<ValueFault>> {
    let Some(default) = rules.input.default.as_ref().filter(|json| !json.is_null()) else {
        return Ok(None);
    };
    from_json(rules, default).map(Some).map_err(|faults| {
        faults
            .into_iter()
            .map(|fault| ValueFault {
                code: Code::BadDefinition,
                message: format!("its default is refused: {}", fault.message),
                hint: fault.hint,
            })
            .collect()
    })
}

fn scalar(rules: &Rules<'_>, text: &str) -> Result<Value, Vec<ValueFault>> {
    let text = rules.check(text)?;
    Ok(match rules.scalar() {
        InputKind::Number => Value::Number(text),
        InputKind::Boolean => Value::Boolean(text == "true"),
        InputKind::Date => Value::Date(text),
        InputKind::String | InputKind::Path | InputKind::Array => Value::Text(text),
    })
}

fn from_json(rules: &Rules<'_>, json: &Json) -> Result<Value, Vec<ValueFault>> {
    match (rules.input.kind, json) {
        (InputKind::Array, Json::Array(items)) => list_from_json(rules, items),
        (InputKind::Array, other) => Err(vec![
            wrong_json("a list", other).hint("write a list, also for one item: `[\"a\"]`"),
        ]),
        (_, json) => {
            let text = scalar_text(rules, json).map_err(|fault| vec![fault])?;
            scalar(rules, &text)
        }
    }
}

/// The text that a JSON scalar stands for where its one form is certain.
fn scalar_text(rules: &Rules<'_>, json: &Json) -> Result<String, ValueFault> {
    let kind = rules.scalar();
    match (kind, json) {
        (_, Json::String(text)) => Ok(text.clone()),
        (InputKind::Boolean, Json::Bool(flag)) => Ok(flag.to_string()),
        (InputKind::Number, Json::Number(number)) => Decimal::from_json(number)
            .map(|decimal| decimal.to_string())
            .map_err(|error| {
                let what = shown(rules.input, &number.to_string());
                ValueFault::new(
                    Code::WrongType,
                    format!("expected a number, got {what}: {error}"),
                )
                .hint(error.hint())
            }),
        (InputKind::String, Json::Number(number)) if !number.is_f64() => Ok(number.to_string()),
        (InputKind::String, Json::Number(_) | Json::Bool(_)) => {
            Err(wrong_json("a string", json).hint("put the value in quotes"))
        }
        (kind, other) => Err(wrong_json(&format!("a {}", kind.name()), other)),
    }
}

/// Names the type that was found, never the value.
fn wrong_json(expected: &str, found: &Json) -> ValueFault {
    let found = match found {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    };
    ValueFault::new(Code::WrongType, format!("expected {expected}, got {found}"))
}

fn list_from_json(rules: &Rules<'_>, items: &[Json]) -> Result<Value, Vec<ValueFault>> {
    let texts = items.iter().map(|item| scalar_text(rules, item));
    list(rules, texts.collect())
}

fn list_from_texts(rules: &Rules<'_>, texts: &[&str]) -> Result<Value, Vec<ValueFault>> {
    let mut items = Vec::new();
    for text in texts {
        let trimmed = text.trim_start();
        if trimmed.is_empty() {
            let fault = ValueFault::new(Code::WrongType, "an empty text could mean two things");
            items.push(Err(fault.hint(
                "write `[]` for an empty list, `[\"\"]` for a list of one empty item",
            )));
        } else if trimmed.starts_with('[') {
            match serde_json::from_str::<Vec<Json>>(trimmed) {
                Ok(list) => items.extend(list.iter().map(|item| scalar_text(rules, item))),
                Err(error) => {
                    let column = error.column();
                    let message = format!("begins with `[` and is no JSON list: column {column}");
                    let hint =
                        "write `[\"a\", \"b\"]`; an item that begins with `[` needs this form";
                    items.push(Err(ValueFault::new(Code::WrongType, message).hint(hint)));
                }
            }
        } else {
            items.push(Ok((*text).to_owned()));
        }
    }
    list(rules, items)
}

fn list(
    rules: &Rules<'_>,
    items: Vec<Result<String, ValueFault>>,
) -> Result<Value, Vec<ValueFault>> {
    if items.len() > ITEMS_MAX {
        return Err(vec![ValueFault::new(
            Code::TooLarge,
            format!(
                "a list has at most {ITEMS_MAX} items, this one has {}",
                items.len()
            ),
        )]);
    }
    let mut faults: Vec<ValueFault> = Vec::new();
    faults.extend(rules.against_length(items.len(), "item"));
    let mut values = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        let checked = item
            .map_err(|fault| vec![fault])
            .and_then(|text| rules.check(&text));
        match checked {
            Ok(value) => values.push(value),
            Err(of_item) => faults.extend(of_item.into_iter().map(|f| f.of_item(index + 1))),
        }
    }
    if faults.is_empty() {
        Ok(Value::List(values))
    } else {
        Err(faults)
    }
}

/// Names that were given and are not declared, each once.
fn undeclared(inputs: &[Input], given: &RawInputs) -> Vec<InputProblem> {
    let declared: BTreeSet<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    let pairs = given.pairs.iter().map(|(name, _)| name.as_str());
    let members = given.json.iter().flat_map(serde_json::Map::keys);
    let mut seen = BTreeSet::new();
    let unknown: Vec<&str> = pairs
        .chain(members.map(String::as_str))
        .filter(|name| !declared.contains(name) && seen.insert(*name))
        .collect();
    let mut problems: Vec<InputProblem> = unknown
        .iter()
        .take(UNKNOWN_MAX)
        .map(|name| {
            ValueFault::new(Code::Unknown, "no such input is declared")
                .hint(declared_hint(name, inputs))
                .of(name)
        })
        .collect();
    if unknown.len() > UNKNOWN_MAX
        && let Some(last) = problems.last_mut()
    {
        let more = unknown.len() - UNKNOWN_MAX;
        last.message = format!("{}, nor are {more} more", last.message);
    }
    problems
}

fn declared_hint(name: &str, inputs: &[Input]) -> String {
    const LISTED_MAX: usize = 12;
    let names = || inputs.iter().map(|input| input.name.as_str());
    if inputs.is_empty() {
        return "this skill takes no inputs".to_owned();
    }
    if let Some(near) = nearest(name, names()) {
        return format!("did you mean `{}`?", printable(near));
    }
    let mut listed: Vec<String> = names()
        .take(LISTED_MAX)
        .map(|one| format!("`{}`", printable(one)))
        .collect();
    if inputs.len() > LISTED_MAX {
        listed.push(format!("and {} more", inputs.len() - LISTED_MAX));
    }
    format!("it takes {}", listed.join(", "))
}
