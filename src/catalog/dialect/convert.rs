//! Writes a skill in another dialect, without losing a key.

use serde_json::{Map, Value};

use super::Keys;
use super::portable::{COMPATIBILITY_CHARS, DESCRIPTION_CHARS, KEYS};

/// Before keys that the specification has no place for, under `metadata`.
const PREFIX: &str = "workerctl.";

/// Keys that restrict: where another program does not see them it would do more than it may.
const RESTRICTING: [&str; 3] = [
    "required_tools",
    "disable-model-invocation",
    "user-invocable",
];

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
    /// The text cannot be written.
    #[error("the keys cannot be written as YAML: {0}")]
    Yaml(String),
}

/// Writes a skill in another dialect; `body` is what it says.
pub fn convert(keys: &Keys, body: &str, target: Target) -> Result<Converted, ConvertError> {
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
    let mut map = unfolded(&keys.written);
    let from_yaml = keys.instructions.as_deref().map(str::trim) == Some(body.trim());
    if from_yaml {
        // What was the body is the body again.
        map.retain(|key, value| {
            !(matches!(key.as_str(), "instructions" | "content")
                && text_of(value).trim() == body.trim())
        });
    }
    rename_tools(keys, target, &mut map);
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
    let (name, body) = (&keys.name, body.trim());
    if target == Target::WorkspaceYaml {
        if ordered.contains_key("instructions") {
            return Err(ConvertError::Clash("instructions".to_owned()));
        }
        ordered.insert(
            "instructions".to_owned(),
            Value::String(format!("{body}\n")),
        );
        return Ok(Converted {
            path: format!("{name}.yaml"),
            text: yaml(&ordered)?,
        });
    }
    if target == Target::Portable {
        let allowed = keys.allowed_tools.as_deref().unwrap_or_default();
        ordered = folded(ordered, allowed)?;
    }
    let path = match target {
        Target::WorkspacePage => format!("{name}.md"),
        _ => format!("{name}/SKILL.md"),
    };
    let front = yaml(&ordered)?;
    Ok(Converted {
        path,
        text: format!("---\n{front}---\n\n{body}\n"),
    })
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

/// Tools under the names that the dialect has for them.
fn rename_tools(keys: &Keys, target: Target, map: &mut Map<String, Value>) {
    let workspace = ["allowed_tools", "tools"];
    let own = workspace.iter().any(|key| map.contains_key(*key));
    let to_workspace = matches!(
        target,
        Target::Workspace | Target::WorkspacePage | Target::WorkspaceYaml
    );
    if !own || to_workspace || keys.allowed_tools.is_none() {
        return;
    }
    for key in workspace {
        map.shift_remove(key);
    }
    let list = |tools: &[String]| tools.iter().cloned().map(Value::String).collect::<Value>();
    if let Some(allowed) = &keys.allowed_tools {
        map.insert("allowed-tools".to_owned(), list(allowed));
    }
    map.insert("required_tools".to_owned(), list(&keys.required_tools));
}

/// Puts keys that the specification has no place for under `metadata`, as JSON.
fn folded(map: Map<String, Value>, allowed: &[String]) -> Result<Map<String, Value>, ConvertError> {
    let mut front = Map::new();
    let mut metadata = Map::new();
    for (key, value) in map {
        match (key.as_str(), &value) {
            ("metadata", Value::Object(own)) => {
                for (inner, value) in own {
                    let (inner, text) = match value {
                        Value::String(text) => (inner.clone(), text.clone()),
                        other => (format!("{PREFIX}metadata.{inner}"), other.to_string()),
                    };
                    metadata.insert(inner, Value::String(text));
                }
            }
            ("allowed-tools", written) => {
                let plain = Value::String(allowed.join(" "));
                if *written != plain {
                    metadata.insert(format!("{PREFIX}{key}"), Value::String(value.to_string()));
                }
                front.insert(key, plain);
            }
            (known, Value::String(text))
                if KEYS.contains(&known)
                    && known != "metadata"
                    && (known != "compatibility"
                        || text.chars().count() <= COMPATIBILITY_CHARS) =>
            {
                front.insert(key.clone(), value);
            }
            (hidden, value) if RESTRICTING.contains(&hidden) && restricts(hidden, value) => {
                return Err(ConvertError::Restriction(key));
            }
            _ => {
                metadata.insert(format!("{PREFIX}{key}"), Value::String(value.to_string()));
            }
        }
    }
    if !metadata.is_empty() {
        front.insert("metadata".to_owned(), Value::Object(metadata));
    }
    Ok(front)
}

fn restricts(key: &str, value: &Value) -> bool {
    match key {
        "disable-model-invocation" => *value != Value::Bool(false),
        "user-invocable" => *value != Value::Bool(true),
        _ => true,
    }
}

/// Takes back what [`folded`] put under `metadata`.
fn unfolded(written: &Map<String, Value>) -> Map<String, Value> {
    let mut map = written.clone();
    let Some(Value::Object(metadata)) = written.get("metadata") else {
        return map;
    };
    let mut kept = Map::new();
    for (key, value) in metadata {
        let original = key
            .strip_prefix(PREFIX)
            .zip(value.as_str())
            .and_then(|(key, text)| Some((key, serde_json::from_str::<Value>(text).ok()?)));
        match original {
            Some((key, original)) => match key.strip_prefix("metadata.") {
                Some(inner) => drop(kept.insert(inner.to_owned(), original)),
                None => drop(map.insert(key.to_owned(), original)),
            },
            None => drop(kept.insert(key.clone(), value.clone())),
        }
    }
    if kept.is_empty() {
        map.shift_remove("metadata");
    } else {
        map.insert("metadata".to_owned(), Value::Object(kept));
    }
    map
}
