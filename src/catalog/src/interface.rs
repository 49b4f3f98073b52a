//! `interface`: what goes into a skill and what comes out.

use super::keys::{INPUT, INTERFACE, OUTPUT, has_near_miss, not_a_list};
use super::report::Report;
use super::settings::inner_path;
use super::texts::{PendingText, TextKind};
use super::tree::Data;
use super::view::View;
use crate::inputs::{self, RawInputs};
use crate::model::definition::{Input, InputKind, Output};
use crate::model::spec::OutputKind;

/// Inputs or outputs of one skill.
const MEMBERS_MAX: usize = 100;

/// Values that one `enum` may list.
const ENUM_MAX: usize = 1_000;

/// What an interface declares.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interface<'a> {
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) texts: Vec<PendingText<'a>>,
}

/// Reads an `interface` map.
pub(crate) fn read<'a>(view: View<'a>, report: &mut Report) -> Interface<'a> {
    let mut found = Interface::default();
    if view.is_null() {
        return found;
    }
    if !INTERFACE.is_map(
        view,
        "interface",
        "a map with `inputs` and `outputs`",
        report,
    ) {
        return found;
    }
    for item in members(view, "inputs", report) {
        if let Some(input) = input(item, &mut found.texts, report) {
            let taken = found.inputs.iter().any(|other| other.name == input.name);
            if taken {
                report_taken(item, "input", &input.name, report);
            }
            found.inputs.push(input);
        }
    }
    for item in members(view, "outputs", report) {
        if let Some(output) = output(item, &mut found.texts, report) {
            let taken = found.outputs.iter().any(|other| other.name == output.name);
            if taken {
                report_taken(item, "output", &output.name, report);
            }
            found.outputs.push(output);
        }
    }
    found
}

fn members<'a>(view: View<'a>, key: &str, report: &mut Report) -> Vec<View<'a>> {
    let Some(list) = view.written(key) else {
        return Vec::new();
    };
    match list.data() {
        Data::List(items) if items.len() > MEMBERS_MAX => {
            let message = format!("more than {MEMBERS_MAX} {key}");
            report.error("too-many", list.place(), message, "take a file instead");
            Vec::new()
        }
        Data::List(_) => list.items().collect(),
        _ => {
            not_a_list(list, key, "name", report);
            Vec::new()
        }
    }
}

fn report_taken(item: View<'_>, what: &str, name: &str, report: &mut Report) {
    let place = item.get("name").unwrap_or(item).place();
    let message = format!("two {what}s are named `{name}`");
    report.error("duplicate-name", place, message, "give each its own `name`");
}

fn name_of(item: View<'_>, what: &str, report: &mut Report) -> Option<String> {
    let view = item.get("name")?;
    let name = view.filled_text("name", report)?;
    let first = name.bytes().next().unwrap_or(b'0');
    let valid = (first.is_ascii_alphabetic() || first == b'_')
        && name.len() <= 64
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if !valid {
        report.error(
            "name-invalid",
            view.place(),
            format!("`{}` cannot name an {what}", name.escape_debug()),
            "begin with a letter, then letters, digits, `_` and `-`, at most 64",
        );
        return None;
    }
    Some(name)
}

fn input<'a>(
    item: View<'a>,
    texts: &mut Vec<PendingText<'a>>,
    report: &mut Report,
) -> Option<Input> {
    let before = report.errors();
    if !INPUT.is_map(item, "inputs", "a map with `name` and `type`", report) {
        return None;
    }
    if item.get("name").is_none_or(|name| name.is_null()) {
        if report.errors() == before {
            let message = "an input has no name".to_owned();
            report.error("missing-key", item.place(), message, "add `name: NAME`");
        }
        return None;
    }
    let before = report.errors();
    let name = name_of(item, "input", report);
    let mut integer = flag(item, "integer", report);
    let kind = match item.written("type") {
        Some(view) => input_kind(view, &mut integer, report),
        None => Some(InputKind::String),
    };
    let items = item
        .written("items")
        .and_then(|view| input_kind(item_kind(view), &mut false, report));
    let mut input = Input {
        name: name.unwrap_or_default(),
        kind: kind.unwrap_or(InputKind::String),
        required: flag(item, "required", report),
        default: item.written("default").map(|view| view.json()),
        description: optional_text(item, "description", report),
        allowed: allowed(item, report),
        pattern: optional_text(item, "pattern", report),
        min: bound(item, "min", report),
        max: bound(item, "max", report),
        integer,
        min_length: length(item, "min_length", report),
        max_length: length(item, "max_length", report),
        items,
        sensitive: flag(item, "sensitive", report),
        allow_dash: flag(item, "allow_dash", report),
    };
    if let (Some(text), Some(view)) = (&input.pattern, item.get("pattern")) {
        texts.push(PendingText {
            kind: TextKind::Pattern,
            text: text.clone(),
            view,
        });
    }
    check_bounds(item, &input, report);
    check_default(item, &mut input, report);
    (report.errors() == before).then_some(input)
}

/// `items` may be a type or, as in JSON Schema, a map with `type`.
fn item_kind(view: View<'_>) -> View<'_> {
    view.get("type").unwrap_or(view)
}

fn input_kind(view: View<'_>, integer: &mut bool, report: &mut Report) -> Option<InputKind> {
    let text = view.text("type", report)?;
    let (kind, usual) = match text.as_str() {
        "string" => (InputKind::String, true),
        "number" => (InputKind::Number, true),
        "boolean" => (InputKind::Boolean, true),
        "array" => (InputKind::Array, true),
        "date" => (InputKind::Date, true),
        "path" => (InputKind::Path, true),
        "str" | "text" => (InputKind::String, false),
        "int" | "integer" => {
            *integer = true;
            (InputKind::Number, false)
        }
        "float" | "num" => (InputKind::Number, false),
        "bool" => (InputKind::Boolean, false),
        "list" => (InputKind::Array, false),
        "file" => (InputKind::Path, false),
        other => {
            let hint = match other {
                "choice" | "choices" | "enum" | "select" | "options" => {
                    "write `type: string` and `enum: [a, b]` with the values that are accepted"
                }
                _ => "write string, number, boolean, array, date or path",
            };
            report.error(
                "unknown-value",
                view.place(),
                format!("`type: {other}` is not a type of inputs"),
                hint,
            );
            return None;
        }
    };
    if !usual {
        let name = kind.name();
        report.warning(
            "type-spelling",
            view.place(),
            format!("`type: {text}` is read as `{name}`"),
            &format!("write `type: {name}`"),
        );
    }
    Some(kind)
}

fn flag(item: View<'_>, key: &str, report: &mut Report) -> bool {
    item.written(key)
        .and_then(|view| view.flag(key, report))
        .unwrap_or(false)
}

fn optional_text(item: View<'_>, key: &str, report: &mut Report) -> Option<String> {
    item.written(key).and_then(|view| view.text(key, report))
}

fn bound(item: View<'_>, key: &str, report: &mut Report) -> Option<f64> {
    item.written(key).and_then(|view| view.number(key, report))
}

fn length(item: View<'_>, key: &str, report: &mut Report) -> Option<u64> {
    item.written(key)
        .and_then(|view| view.whole(key, 0..=1_000_000, report))
}

fn allowed(item: View<'_>, report: &mut Report) -> Vec<String> {
    let Some(view) = item.written("enum") else {
        return Vec::new();
    };
    match view.data() {
        Data::List(items) if !items.is_empty() && items.len() <= ENUM_MAX => {
            view.texts("enum", report).unwrap_or_default()
        }
        _ => {
            let expected = format!("a list of 1 to {ENUM_MAX} values");
            view.wrong_type("enum", &expected, report);
            Vec::new()
        }
    }
}

fn check_bounds(item: View<'_>, input: &Input, report: &mut Report) {
    let counted = matches!(
        input.kind,
        InputKind::String | InputKind::Array | InputKind::Path
    );
    let text = matches!(
        input.kind,
        InputKind::String | InputKind::Array | InputKind::Path
    );
    let table = [
        ("min", input.kind == InputKind::Number),
        ("max", input.kind == InputKind::Number),
        ("integer", input.kind == InputKind::Number),
        ("min_length", counted),
        ("max_length", counted),
        ("pattern", text),
        ("items", input.kind == InputKind::Array),
    ];
    for (key, applies) in table {
        if let (false, Some(view)) = (applies, item.written(key)) {
            report.error(
                "bound-not-applicable",
                view.key_place(),
                format!("`{key}` means nothing for `type: {}`", input.kind.name()),
                "correct the type or remove the key",
            );
        }
    }
    let crossed = matches!((input.min, input.max), (Some(min), Some(max)) if min > max)
        || matches!((input.min_length, input.max_length), (Some(min), Some(max)) if min > max);
    if crossed {
        let message = format!("the bounds of `{}` leave no value", input.name);
        report.error("out-of-range", item.place(), message, "swap them");
    }
}

fn check_default(item: View<'_>, input: &mut Input, report: &mut Report) {
    let Some(view) = item.written("default") else {
        return;
    };
    if input.required {
        report.warning(
            "default-of-required",
            view.key_place(),
            format!("`{}` is required, its default is never used", input.name),
            "remove `default` or `required`",
        );
    }
    if input.sensitive {
        report.warning(
            "secret-in-definition",
            view.key_place(),
            format!(
                "the default of the secret `{}` can be read by everyone",
                input.name
            ),
            "remove `default`, or take the value from `env`",
        );
    }
    let text = view.scalar_text();
    let fits = match input.kind {
        InputKind::String | InputKind::Path => text.is_some(),
        InputKind::Number => matches!(view.data(), Data::Number(_)),
        InputKind::Boolean => matches!(view.data(), Data::Bool(_)),
        InputKind::Array => {
            matches!(view.data(), Data::List(_))
                && view.items().all(|item| item.scalar_text().is_some())
        }
        // A date may hold a placeholder-free ISO date only; the quotes are optional.
        InputKind::Date => text.as_deref().is_some_and(is_date),
    };
    if !fits {
        view.wrong_type("default", &format!("a {}", input.kind.name()), report);
        return;
    }
    // Text types keep what is written: the default `1.10` of a string is those four characters.
    if let (InputKind::String | InputKind::Path | InputKind::Date, Some(text)) = (input.kind, &text)
    {
        input.default = Some(serde_json::Value::String(text.clone()));
    }
    if input.kind == InputKind::Number {
        input.default = view.number_json("default", report);
    }
    report_refused_default(view, input, report);
}

/// Reports a default that the rules of the input refuse. Rules that contradict each other are reported elsewhere.
fn report_refused_default(view: View<'_>, input: &Input, report: &mut Report) {
    let rules = Input {
        default: None,
        ..input.clone()
    };
    if !inputs::check_declaration(&rules).is_empty() {
        return;
    }
    let given = RawInputs {
        pairs: Vec::new(),
        json: Some(
            [(
                input.name.clone(),
                input.default.clone().unwrap_or_default(),
            )]
            .into_iter()
            .collect(),
        ),
    };
    for problem in inputs::bind(&[rules], &given).err().unwrap_or_default() {
        let message = format!(
            "the default of `{}` is refused: {}",
            input.name, problem.message
        );
        let hint = problem.hint.as_deref();
        let hint = hint.unwrap_or("correct the default, or the rules of the input");
        report.error("default-not-allowed", view.place(), message, hint);
    }
}

fn is_date(text: &str) -> bool {
    chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

fn output<'a>(
    item: View<'a>,
    texts: &mut Vec<PendingText<'a>>,
    report: &mut Report,
) -> Option<Output> {
    if !OUTPUT.is_map(
        item,
        "outputs",
        "a map with `name`, `type` and `destination`",
        report,
    ) {
        return None;
    }
    let kind = match item.written("type") {
        Some(view) => output_kind(view, report)?,
        None => OutputKind::File,
    };
    let named = item.get("name").is_some_and(|name| !name.is_null());
    let name = if named {
        name_of(item, "output", report)?
    } else {
        kind.name().to_owned()
    };
    let has_path = !matches!(kind, OutputKind::GitCommit | OutputKind::Console);
    let destination = match item.written("destination") {
        Some(view) if has_path => {
            let path = inner_path(view, "destination", report)?;
            if path.contains("$(") || path.contains('`') {
                report.error(
                    "destination-shell",
                    view.place(),
                    "a destination is a path: no shell reads it".to_owned(),
                    "write placeholders such as `{date}`, or the names of inputs in braces",
                );
                return None;
            }
            texts.push(PendingText {
                kind: TextKind::Destination,
                text: path.clone(),
                view,
            });
            Some(path)
        }
        Some(view) => {
            report.warning(
                "destination-unused",
                view.key_place(),
                format!("an output of `type: {}` has no path", kind.name()),
                "remove `destination` or correct `type`",
            );
            None
        }
        None => {
            if has_path && !has_near_miss(item, "destination") {
                report.warning(
                    "destination-missing",
                    item.place(),
                    format!("the output `{name}` has no destination and is not verified"),
                    "add `destination`",
                );
            }
            None
        }
    };
    Some(Output {
        name,
        kind,
        place: destination.is_some().then(|| item.place()),
        destination,
        description: optional_text(item, "description", report),
    })
}

fn output_kind(view: View<'_>, report: &mut Report) -> Option<OutputKind> {
    let text = view.text("type", report)?;
    match text.as_str() {
        "markdown" => Some(OutputKind::Markdown),
        "json" => Some(OutputKind::Json),
        "file" => Some(OutputKind::File),
        "git_commit" => Some(OutputKind::GitCommit),
        "console" => Some(OutputKind::Console),
        other => {
            report.error(
                "unknown-value",
                view.place(),
                format!("`type: {other}` is not a type of outputs"),
                "write markdown, json, file, git_commit or console",
            );
            None
        }
    }
}
