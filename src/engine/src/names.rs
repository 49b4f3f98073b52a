//! The names that a skill's texts may mention, and their values in one run.

use crate::inputs::Bound;
use crate::model::definition::{Input, InputKind, Shell, Skill};
use crate::model::spec::OutputSpec;
use crate::model::value::Value;
use crate::template::{self, Dialect, Kind, Name, Names, NamesProblem, Scope, Values};

/// The names of a skill.
pub(super) fn names(skill: &Skill) -> Result<Names, Vec<NamesProblem>> {
    let mut declared: Vec<Name> = skill.inputs.iter().map(input_name).collect();
    let with_path = skill
        .outputs
        .iter()
        .filter(|output| output.destination.is_some());
    declared.extend(
        with_path.map(|output| Name::new(Scope::Output, output.name.clone(), Kind::OutputFile)),
    );
    Names::new(declared, &skill.address.worker, &skill.address.skill)
}

fn input_name(input: &Input) -> Name {
    let kind = match input.kind {
        _ if !input.allowed.is_empty() && input.kind != InputKind::Array => Kind::Enumeration,
        InputKind::String => Kind::Text,
        InputKind::Number if input.integer => Kind::Integer,
        InputKind::Number => Kind::Number,
        InputKind::Boolean => Kind::Boolean,
        InputKind::Array => Kind::List,
        InputKind::Date => Kind::Date,
        InputKind::Path => Kind::Path,
    };
    Name {
        secret: input.sensitive,
        allow_dash: input.allow_dash,
        pattern: input.pattern.clone(),
        ..Name::new(Scope::Input, input.name.clone(), kind)
    }
}

/// The dialect of a definition's shell.
pub(super) fn dialect(shell: Shell) -> Dialect {
    match shell {
        Shell::Sh => Dialect::Sh,
        Shell::Bash => Dialect::Bash,
    }
}

/// The program of a definition's shell: a path, or a name that is looked up in `PATH`.
pub(super) const fn shell_program(shell: Shell) -> &'static str {
    match shell {
        Shell::Sh => "/bin/sh",
        Shell::Bash => "bash",
    }
}

/// What the built-in names stand for in one run.
pub(super) struct Builtins<'a> {
    /// `YYYY-MM-DD` in the run's zone.
    pub date: &'a str,
    /// `HHMMSS` in the run's zone.
    pub time: &'a str,
    /// RFC 3339 of the slot, else of submission.
    pub scheduled_at: &'a str,
    /// The worker's id.
    pub worker: &'a str,
    /// The skill's id.
    pub skill: &'a str,
    /// The run's id in full.
    pub run: &'a str,
    /// Absolute path of the workspace.
    pub workspace: &'a str,
    /// Absolute path where commands run.
    pub cwd: &'a str,
}

/// Values of inputs and built-in names.
pub(super) fn values(bound: &Bound, inputs: &[Input], builtins: &Builtins<'_>) -> Values {
    let mut values = Values::new();
    for input in inputs {
        let Some(value) = bound.values.get(&input.name) else {
            continue;
        };
        if let Some(value) = template_value(input, value, builtins.workspace) {
            values.set(Scope::Input, input.name.clone(), value);
        }
    }
    for (name, value) in [
        ("date", builtins.date),
        ("time", builtins.time),
        ("scheduled_at", builtins.scheduled_at),
        ("worker", builtins.worker),
        ("skill", builtins.skill),
        ("run", builtins.run),
        ("attempt", "1"),
        ("workspace", builtins.workspace),
        ("cwd", builtins.cwd),
    ] {
        values.set(Scope::Builtin, name, template::Value::text(value));
    }
    values
}

/// A `path` reaches commands absolute, so that it is never an option and stays right after `cd`.
fn template_value(input: &Input, value: &Value, workspace: &str) -> Option<template::Value> {
    let absolute = |path: &str| format!("{workspace}/{path}");
    Some(match value {
        Value::Unset => return None,
        Value::Boolean(flag) => template::Value::boolean(*flag),
        Value::List(items) if input.items == Some(InputKind::Path) => {
            template::Value::List(items.iter().map(|item| absolute(item)).collect())
        }
        Value::List(items) => template::Value::List(items.clone()),
        Value::Text(text) if input.kind == InputKind::Path => template::Value::text(absolute(text)),
        Value::Text(text) | Value::Number(text) | Value::Date(text) => template::Value::text(text),
    })
}

/// Adds the paths of outputs, absolute.
pub(super) fn add_outputs(values: &mut Values, outputs: &[OutputSpec], workspace: &str) {
    for output in outputs {
        if let Some(path) = &output.path {
            let path = template::Value::text(format!("{workspace}/{path}"));
            values.set(Scope::Output, output.name.clone(), path);
        }
    }
}
