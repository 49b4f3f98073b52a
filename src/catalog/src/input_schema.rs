//! `input_schema`: a JSON Schema of a skill's input.
//!
//! Supports the keywords of [draft 2020-12](https://json-schema.org/draft/2020-12/schema) and what older drafts wrote
//! differently, except those that depend on other documents or on what other keywords evaluated. A schema that uses
//! one of these is refused, because its validation would not mean what it says. Nothing is ever fetched.

mod check;
mod defaults;
mod formats;
mod validate;

use std::cell::Cell;
use std::collections::HashMap;

use regex::Regex;
use serde_json::Value;

use self::check::{SchemaError, check};
use self::defaults::Filling;
use self::validate::Validation;
use super::report::Report;
use super::tree::Data;
use super::view::View;

/// Values that defaults may add to one input: a schema whose defaults lead back to itself would add without end.
const FILLED_MAX: usize = 10_000;

/// Values that defaults may add while a definition is checked.
const CHECKED_FILL_MAX: usize = 100;

/// How often subschemas may be applied to one input and its parts. A list of 300,000 items with two alternatives each
/// needs 900,000.
const STEPS_MAX: usize = 2_000_000;

/// Regular expressions of a schema, by their text.
type Patterns = HashMap<String, Regex>;

/// A schema that can be applied.
#[derive(Debug)]
pub struct InputSchema {
    schema: Value,
    patterns: Patterns,
}

/// What is wrong with one part of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputFault {
    /// JSON Pointer to the part; empty for the whole input.
    pub at: String,
    /// What is wrong.
    pub message: String,
}

/// Reads `input_schema` of a definition; `None` if an error was reported.
pub(crate) fn read(view: View<'_>, report: &mut Report) -> Option<Value> {
    read_as(view, "input_schema", report)
}

/// Reads a schema that has another key.
pub(crate) fn read_as(view: View<'_>, key: &str, report: &mut Report) -> Option<Value> {
    if !matches!(view.data(), Data::Map(_)) {
        view.wrong_type(key, "a JSON Schema as a map", report);
        return None;
    }
    match InputSchema::checked(view.json()) {
        Ok(schema) => {
            schema.report_defaults(view, key, report);
            Some(schema.schema)
        }
        Err(error) => {
            report.error(
                "input-schema",
                find(view, &error.at).place(),
                format!("`{key}` {error}"),
                "write a JSON Schema that uses supported keywords and refers only to itself",
            );
            None
        }
    }
}

/// Returns the value that a JSON Pointer leads to, or the last one on the way to it.
fn find<'a>(view: View<'a>, pointer: &str) -> View<'a> {
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

/// Returns a fault of the schema rather than of a part of the input.
fn of_schema(message: &str) -> InputFault {
    InputFault {
        at: String::new(),
        message: message.to_owned(),
    }
}

/// Returns the subschema that a local reference leads to.
fn resolve<'v>(root: &'v Value, target: &str) -> Option<&'v Value> {
    root.pointer(target.strip_prefix('#')?)
}

impl InputSchema {
    /// Prepares the schema of a definition; the error names the place and the reason.
    pub fn new(schema: &Value) -> Result<InputSchema, String> {
        InputSchema::checked(schema.clone()).map_err(|error| format!("`input_schema` {error}"))
    }

    fn checked(schema: Value) -> Result<InputSchema, SchemaError> {
        let patterns = check(&schema)?;
        Ok(InputSchema { schema, patterns })
    }

    /// Fills in the defaults, then validates: returns the complete input, or everything that is wrong with it.
    pub fn bind(&self, input: Value) -> Result<Value, Vec<InputFault>> {
        let mut input = input;
        if !self.fill(&mut input, FILLED_MAX) {
            return Err(vec![of_schema(&format!(
                "the defaults of `input_schema` add more than {FILLED_MAX} values; shorten them, or remove the default \
                 that leads back to itself"
            ))]);
        }
        let faults = self.faults(&input);
        if faults.is_empty() {
            Ok(input)
        } else {
            Err(faults)
        }
    }

    fn faults(&self, input: &Value) -> Vec<InputFault> {
        let steps_left = Cell::new(STEPS_MAX);
        let validation = Validation::new(&self.schema, &self.patterns, &steps_left);
        validation.faults(input).unwrap_or_else(|| {
            vec![of_schema(
                "validation with `input_schema` takes too long; use fewer alternatives that refer back to the schema",
            )]
        })
    }

    /// Fills in the defaults; false if they add more than `values_max` values.
    fn fill(&self, input: &mut Value, values_max: usize) -> bool {
        let mut filling = Filling {
            root: &self.schema,
            left: values_max,
            steps_left: STEPS_MAX,
        };
        filling.fill(&self.schema, input, 0).is_ok()
    }

    /// Warns of defaults that the schema itself refuses: each call that relies on one of them would fail.
    fn report_defaults(&self, view: View<'_>, key: &str, report: &mut Report) {
        let mut input = Value::Object(serde_json::Map::new());
        if !self.fill(&mut input, CHECKED_FILL_MAX) {
            return;
        }
        for fault in self.faults(&input) {
            if let Some(path) = fault.at.strip_prefix('/') {
                // If a default contains others, the outermost one is named.
                let name = path.split('/').next().unwrap_or(path);
                report.warning(
                    "input-schema-default",
                    find(view, &format!("/properties/{name}/default")).place(),
                    format!(
                        "`{key}` refuses its own default of `{path}`: {}",
                        fault.message
                    ),
                    "write a default that the schema allows, or remove it",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
