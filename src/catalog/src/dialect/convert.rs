//! Writes a skill in another dialect, without losing a key.

use serde_json::{Map, Value};

use super::agent::restriction;
use super::portable::{COMPATIBILITY_CHARS, DESCRIPTION_CHARS, KEYS};
use super::{Keys, Origin, tools};
use crate::document;
use crate::frontmatter::{of_markdown, without_blank_lines};
use crate::model::{Dialect, Severity};
use crate::report::Report;
use crate::source::{Source, whole_file};
use crate::view::View;

/// Before keys that the specification has no place for, under `metadata`.
const PREFIX: &str = "workerctl.";

/// The key that every dialect has for the only tools that a skill may use.
const ALLOWED: &str = "allowed-tools";

/// How a skill is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// `<name>/SKILL.md` for agent programs.
    Agent,
    /// The same with nothing but the keys of the specification; others go under `metadata`.
    Portable,
    /// `<name>/SKILL.md` under Wave's rules.
    Wave,
    /// `<name>/SKILL.md` of a workspace.
    Workspace,
    /// `<name>.md` of a workspace.
    WorkspacePage,
    /// `<name>.yaml` of a workspace.
    WorkspaceYaml,
}

impl Target {
    /// Whether the result is a directory, so that files beside it can come along.
    pub const fn is_directory(self) -> bool {
        !matches!(self, Target::WorkspacePage | Target::WorkspaceYaml)
    }

    const fn dialect(self) -> Dialect {
        match self {
            Target::Agent | Target::Portable => Dialect::Agent,
            Target::Wave => Dialect::Wave,
            Target::Workspace | Target::WorkspacePage | Target::WorkspaceYaml => Dialect::Workspace,
        }
    }
}

/// A skill in another dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// Path of its file below a root.
    pub path: String,
    /// The file.
    pub text: String,
}

/// Why a skill cannot be written in a dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The dialect does not allow its name.
    #[error(
        "the name `{0}` is not allowed there: use lower-case letters, digits and single dashes"
    )]
    Name(String),
    /// The dialect does not allow its description.
    #[error(
        "the description has {0} characters, more than the {DESCRIPTION_CHARS} that are allowed there"
    )]
    Description(usize),
    /// A restriction would not be seen.
    #[error("`{0}` restricts the skill, and the specification has no place for it")]
    Restriction(String),
    /// A key says something else in that dialect.
    #[error("the key `{0}` would mean something else there")]
    Clash(String),
    /// The dialect would refuse it.
    #[error("it would be refused there: {0}")]
    Refused(String),
    /// The text cannot be written.
    #[error("the keys cannot be written as YAML: {0}")]
    Yaml(String),
}

/// Writes a skill in another dialect; `body` is what it says.
pub fn convert(keys: &Keys, body: &str, target: Target) -> Result<Converted, ConvertError> {
    check_limits(keys, target)?;
    let map = arranged(keys, body, target)?;
    let (name, body) = (&keys.name, without_blank_lines(body));
    let converted = if target == Target::WorkspaceYaml {
        Converted {
            path: format!("{name}.yaml"),
            text: yaml(&map)?,
        }
    } else {
        let path = match target {
            Target::WorkspacePage => format!("{name}.md"),
            _ => format!("{name}/SKILL.md"),
        };
        let front = yaml(&map)?;
        Converted {
            path,
            text: format!("---\n{front}---\n\n{body}\n"),
        }
    };
    verify(keys, &converted, target)?;
    Ok(converted)
}

fn check_limits(keys: &Keys, target: Target) -> Result<(), ConvertError> {
    let strict = matches!(target, Target::Portable | Target::Wave);
    if strict
        && !(super::agent::is_usual(&keys.name) && (target != Target::Wave || keys.name.is_ascii()))
    {
        return Err(ConvertError::Name(keys.name.clone()));
    }
    let characters = keys.description.chars().count();
    if strict && characters > DESCRIPTION_CHARS {
        return Err(ConvertError::Description(characters));
    }
    Ok(())
}

/// The keys as the dialect has them, in the order in which they are written.
fn arranged(keys: &Keys, body: &str, target: Target) -> Result<Map<String, Value>, ConvertError> {
    let mut map = unfolded(keys, target);
    let body = without_blank_lines(body);
    let from_yaml = keys.instructions.as_deref().map(without_blank_lines) == Some(body);
    if from_yaml {
        // What was the body is the body again.
        map.retain(|key, value| {
            !(matches!(key.as_str(), "instructions" | "content")
                && without_blank_lines(&text_of(value)) == body)
        });
    }
    rename_tools(keys, target, &mut map)?;
    let mut ordered = Map::new();
    ordered.insert("name".to_owned(), Value::String(keys.name.clone()));
    ordered.insert(
        "description".to_owned(),
        Value::String(keys.description.clone()),
    );
    for (key, value) in map {
        if key != "name" && key != "description" {
            ordered.insert(key, value);
        }
    }
    match target {
        Target::Portable => folded(ordered, keys),
        Target::WorkspaceYaml => {
            let instructions = Value::String(format!("{body}\n"));
            match ordered.insert("instructions".to_owned(), instructions) {
                None => Ok(ordered),
                Some(_) => Err(ConvertError::Clash("instructions".to_owned())),
            }
        }
        _ => Ok(ordered),
    }
}

/// Reads what would be written as the dialect does: it must load, and be restricted as the skill is.
fn verify(keys: &Keys, converted: &Converted, target: Target) -> Result<(), ConvertError> {
    let mut report = Report::default();
    let read = read_again(keys, converted, target, &mut report);
    let Some(read) = read.filter(|read| read.violations.is_empty()) else {
        let problems = report.finish(whole_file(&converted.path));
        let mut errors = problems
            .into_iter()
            .filter(|one| one.severity == Severity::Error);
        let why = errors.next().map(|one| one.message).unwrap_or_default();
        return Err(ConvertError::Refused(why));
    };
    let within = |some: &[String], all: &[String]| some.iter().all(|tool| all.contains(tool));
    let same_tools = within(&keys.required_tools, &read.required_tools)
        && within(&read.required_tools, &keys.required_tools);
    for (key, same) in [
        ("name", read.name == keys.name),
        ("allowed-tools", read.allowed_tools == keys.allowed_tools),
        ("required_tools", same_tools),
        (
            "disable-model-invocation",
            read.model_invocable == keys.model_invocable,
        ),
        ("user-invocable", read.user_invocable == keys.user_invocable),
    ] {
        if !same {
            return Err(ConvertError::Clash(key.to_owned()));
        }
    }
    Ok(())
}

fn read_again(
    keys: &Keys,
    converted: &Converted,
    target: Target,
    report: &mut Report,
) -> Option<Keys> {
    let source = Source::new(&converted.path, converted.text.clone());
    let yaml = match target {
        Target::WorkspaceYaml => 0..converted.text.len(),
        _ => of_markdown(&source, report).ok()??.0,
    };
    let document = document::read(source, yaml, report)?;
    let origin = Origin {
        dialect: target.dialect(),
        stem: &keys.name,
        name_optional: false,
        yaml: target == Target::WorkspaceYaml,
    };
    super::read(View::root(&document.source, &document.root), origin, report)
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(text_of).collect();
            texts.join("\n")
        }
        other => other.to_string(),
    }
}

fn yaml(map: &Map<String, Value>) -> Result<String, ConvertError> {
    serde_yaml::to_string(map).map_err(|error| ConvertError::Yaml(error.to_string()))
}

/// Tools under the names that the dialect has for them: elsewhere than in a workspace its newer names say less,
/// or nothing.
fn rename_tools(
    keys: &Keys,
    target: Target,
    map: &mut Map<String, Value>,
) -> Result<(), ConvertError> {
    let from_workspace = keys.dialect == Dialect::Workspace;
    let to_workspace = target.dialect() == Dialect::Workspace;
    if from_workspace && to_workspace {
        return Ok(());
    }
    let others = map.keys().filter(|key| {
        *key != ALLOWED && restriction(key, keys.dialect).is_some_and(|meant| meant == ALLOWED)
    });
    let others: Vec<String> = others.cloned().collect();
    let list = |tools: &[String]| tools.iter().cloned().map(Value::String).collect::<Value>();
    if let (Some(allowed), [_, ..]) = (&keys.allowed_tools, others.as_slice()) {
        for key in &others {
            map.shift_remove(key);
        }
        map.insert(ALLOWED.to_owned(), list(allowed));
        if from_workspace && !keys.required_tools.is_empty() {
            map.insert("required_tools".to_owned(), list(&keys.required_tools));
        }
    }
    let clash = |key: &&String| {
        to_workspace
            && *key != ALLOWED
            && restriction(key, Dialect::Workspace).is_some_and(|meant| meant == ALLOWED)
    };
    match map.keys().find(clash) {
        Some(key) => Err(ConvertError::Clash(key.clone())),
        None => Ok(()),
    }
}

/// Puts keys that the specification has no place for under `metadata`, as JSON.
fn folded(map: Map<String, Value>, keys: &Keys) -> Result<Map<String, Value>, ConvertError> {
    let mut front = Map::new();
    let mut metadata = Map::new();
    let mut hide =
        |key: String, text: String| match metadata.insert(key.clone(), Value::String(text)) {
            None => Ok(()),
            Some(_) => Err(ConvertError::Clash(key)),
        };
    for (key, value) in map {
        match (key.as_str(), value) {
            ("metadata", Value::Object(own)) => {
                for (inner, value) in own {
                    match value {
                        Value::String(text) => hide(inner, text)?,
                        other => hide(format!("{PREFIX}metadata.{inner}"), other.to_string())?,
                    }
                }
            }
            (ALLOWED, written) => {
                let allowed = keys.allowed_tools.as_deref().unwrap_or_default();
                let plain = Value::String(allowed.join(" "));
                if written != plain {
                    hide(format!("{PREFIX}{key}"), written.to_string())?;
                }
                front.insert(key, plain);
            }
            (known, Value::String(text)) if has_place(known, &text) => {
                front.insert(key, Value::String(text));
            }
            (hidden, value) => {
                // Where another program does not see it, the skill would do more than it may.
                if restriction(hidden, keys.dialect).is_some_and(|meant| restricts(meant, &value)) {
                    return Err(ConvertError::Restriction(key));
                }
                hide(format!("{PREFIX}{key}"), value.to_string())?;
            }
        }
    }
    if !metadata.is_empty() {
        front.insert("metadata".to_owned(), Value::Object(metadata));
    }
    Ok(front)
}

/// Whether the specification takes a text under this key.
fn has_place(key: &str, text: &str) -> bool {
    KEYS.contains(&key)
        && key != "metadata"
        && (key != "compatibility" || text.chars().count() <= COMPATIBILITY_CHARS)
}

fn restricts(key: &str, value: &Value) -> bool {
    match key {
        "user-invocable" => *value != Value::Bool(true),
        "required_tools" => !tools::names(value).is_empty(),
        ALLOWED => true,
        _ => *value != Value::Bool(false),
    }
}

/// Takes back what [`folded`] put under `metadata`. What stands among the keys already counts as it stands
/// there, and nothing that restricts ever came from `metadata`.
fn unfolded(keys: &Keys, target: Target) -> Map<String, Value> {
    let mut map = keys.written.clone();
    let Some(Value::Object(metadata)) = keys.written.get("metadata") else {
        return map;
    };
    let mut kept = Map::new();
    let mut whole = None;
    for (key, value) in metadata {
        let original = key
            .strip_prefix(PREFIX)
            .zip(value.as_str())
            .and_then(|(key, text)| Some((key, serde_json::from_str::<Value>(text).ok()?)));
        match original {
            Some(("metadata", original)) => whole = Some((key, value, original)),
            Some((key, original)) if key.starts_with("metadata.") => {
                kept.insert(key.replacen("metadata.", "", 1), original);
            }
            Some((key, original)) if came_from(keys, target, key, &original) => {
                map.insert(key.to_owned(), original);
            }
            _ => drop(kept.insert(key.clone(), value.clone())),
        }
    }
    if let Some((key, value, original)) = whole {
        if kept.is_empty() {
            map.insert("metadata".to_owned(), original);
            return map;
        }
        kept.insert(key.clone(), value.clone());
    }
    if kept.is_empty() {
        map.shift_remove("metadata");
    } else {
        map.insert("metadata".to_owned(), Value::Object(kept));
    }
    map
}

/// Whether `key` may have been put under `metadata` with this value.
fn came_from(keys: &Keys, target: Target, key: &str, value: &Value) -> bool {
    if key == ALLOWED {
        return keys.written.contains_key(key) && keys.allowed_tools == Some(tools::names(value));
    }
    let meant = [keys.dialect, target.dialect()]
        .into_iter()
        .find_map(|dialect| restriction(key, dialect));
    !keys.written.contains_key(key) && !meant.is_some_and(|meant| restricts(meant, value))
}
