//! The tools that a server lists, made fit for models and bounded.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{ServerBounds, cut};
use crate::request::ToolSpec;

/// Characters of a name that all dialects accept.
const NAME_CHARS_MAX: usize = 64;
/// Characters that tell names apart which would be equal.
const DIGEST_CHARS: usize = 8;

/// The tools of one server.
#[derive(Debug, Default)]
pub(super) struct Toolbox {
    pub(super) specs: Vec<ToolSpec>,
    /// The server's own name of each tool.
    pub(super) own_names: HashMap<String, String>,
    /// What was left out or cut, for people.
    pub(super) notes: Vec<String>,
}

impl Toolbox {
    /// Takes what a server lists. A tool that cannot be used is left out with a note: it does not keep the
    /// others from being used.
    pub(super) fn new(server: &str, listed: &[Value], bounds: &ServerBounds) -> Self {
        let mut toolbox = Self::default();
        let own_names = listed.iter().filter_map(|tool| tool["name"].as_str());
        let fitted: Vec<_> = own_names.map(|own| fit(&full_name(server, own))).collect();
        let mut taken = HashSet::new();
        for tool in listed.iter().take(bounds.tools_max) {
            let Some(own) = tool["name"].as_str().filter(|own| !own.is_empty()) else {
                toolbox.note("a tool without a name is left out".into());
                continue;
            };
            let schema = match schema(tool, bounds) {
                Ok(schema) => schema,
                Err(why) => {
                    toolbox.note(format!("`{}` is left out: {why}", shown(own)));
                    continue;
                }
            };
            let name = name(server, own, &fitted);
            if !taken.insert(name.clone()) {
                toolbox.note(format!("`{}` is listed twice", shown(own)));
                continue;
            }
            let text = tool["description"].as_str().unwrap_or_default();
            let mut description = cut(text, bounds.description_bytes_max).to_owned();
            if description.len() < text.len() {
                description.push('…');
                toolbox.note(format!("the description of `{}` is cut", shown(own)));
            }
            toolbox.own_names.insert(name.clone(), own.to_owned());
            toolbox.specs.push(ToolSpec {
                name,
                description,
                schema,
            });
        }
        if listed.len() > bounds.tools_max {
            let most = bounds.tools_max;
            toolbox.note(format!(
                "it lists more than {most} tools; the rest is left out"
            ));
        }
        toolbox
    }

    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }
}

/// The schema of the arguments, or why it cannot be used.
fn schema(tool: &Value, bounds: &ServerBounds) -> Result<Value, String> {
    let schema = match &tool["inputSchema"] {
        Value::Null => Map::new(),
        Value::Object(schema) => schema.clone(),
        _ => return Err("its schema is no object".into()),
    };
    let mut schema = Value::Object(schema);
    if schema.to_string().len() > bounds.schema_bytes_max {
        return Err(format!(
            "its schema is larger than {} bytes",
            bounds.schema_bytes_max
        ));
    }
    if depth(&schema) > bounds.schema_depth_max {
        let most = bounds.schema_depth_max;
        return Err(format!("its schema is nested deeper than {most} levels"));
    }
    match &schema["type"] {
        // Models' servers insist on it.
        Value::Null => schema["type"] = json!("object"),
        Value::String(kind) if kind == "object" => {}
        _ => return Err("its schema is not that of an object".into()),
    }
    Ok(schema)
}

/// Levels of a value. It was parsed, which bounds them.
fn depth(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => fields.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn full_name(server: &str, own: &str) -> String {
    format!("mcp__{server}__{own}")
}

/// The name in the characters that all dialects accept; it may be too long.
fn fit(full: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    full.chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect()
}

/// The name for models. It depends on the other tools, but not on their order: if it had to be changed and is
/// too long or that of another tool, a digest of the true one stands at its end.
fn name(server: &str, own: &str, fitted: &[String]) -> String {
    let full = full_name(server, own);
    let mut name = fit(&full);
    let is_alone = fitted.iter().filter(|other| **other == name).count() <= 1;
    if name.len() <= NAME_CHARS_MAX && (name == full || is_alone) {
        return name;
    }
    let digest = Sha256::digest(&full);
    let hex = |byte: &u8| [byte >> 4, byte & 15].map(|n| char::from_digit(n.into(), 16));
    let digest = digest.iter().flat_map(hex).flatten().take(DIGEST_CHARS);
    name.truncate(NAME_CHARS_MAX - DIGEST_CHARS - 1);
    name.push('_');
    name.extend(digest);
    name
}

/// A name of the server's, for people.
fn shown(own: &str) -> String {
    crate::clean::text(own, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(server: &str, own: &[&str]) -> Vec<String> {
        let listed: Vec<_> = own.iter().map(|own| json!({"name": own})).collect();
        let toolbox = Toolbox::new(server, &listed, &ServerBounds::default());
        toolbox.specs.into_iter().map(|spec| spec.name).collect()
    }

    #[test]
    fn names_fit_and_are_told_apart() {
        let long = "x".repeat(80);
        for (server, own, expect) in [
            ("files", vec!["read"], vec!["mcp__files__read"]),
            ("my files", vec!["a.b/c"], vec!["mcp__my_files__a_b_c"]),
            (
                "s",
                vec!["a_b", "a.b"],
                vec!["mcp__s__a_b", "mcp__s__a_b_dafcaaa7"],
            ),
            ("s", vec!["a", "a"], vec!["mcp__s__a"]),
        ] {
            assert_eq!(names(server, &own), expect, "{own:?}");
        }
        let all = ["a b", "a.b", "ü", &long, &format!("{long}y"), ""];
        let mut forwards = names(&"server ".repeat(9), &all);
        let mut backwards = all;
        backwards.reverse();
        let mut backwards = names(&"server ".repeat(9), &backwards);
        forwards.sort();
        backwards.sort();
        assert_eq!(forwards, backwards);
        forwards.dedup();
        assert_eq!(forwards.len(), 5);
        for name in &forwards {
            assert!(name.len() <= NAME_CHARS_MAX && *name == fit(name), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_left_out_with_a_note() {
        let mut deep = json!({});
        for _ in 0..40 {
            deep = json!({"properties": deep});
        }
        let large = json!({"type": "object", "description": "x".repeat(65 * 1024)});
        let text = "é".repeat(3000);
        let listed = [
            json!({"name": "plain", "description": "Does it.", "inputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": true}}),
            json!({"name": "bare"}),
            json!({"name": "wordy", "description": text, "inputSchema": {}}),
            json!({"name": "deep", "inputSchema": deep}),
            json!({"name": "large", "inputSchema": large}),
            json!({"name": "list", "inputSchema": {"type": "array"}}),
            json!({"name": "text", "inputSchema": "x"}),
            json!({"title": "nameless"}),
            json!("no tool"),
        ];
        let bounds = ServerBounds {
            description_bytes_max: 1001,
            ..ServerBounds::default()
        };
        let toolbox = Toolbox::new("s", &listed, &bounds);
        let object = json!({"type": "object"});
        let expect = [
            ("plain", "Does it."),
            ("bare", ""),
            ("wordy", &format!("{}…", &text[..1000])),
        ]
        .map(|(name, description)| ToolSpec {
            name: format!("mcp__s__{name}"),
            description: description.into(),
            schema: object.clone(),
        });
        assert_eq!(toolbox.specs, expect);
        assert_eq!(
            toolbox.notes,
            [
                "the description of `wordy` is cut",
                "`deep` is left out: its schema is nested deeper than 32 levels",
                "`large` is left out: its schema is larger than 65536 bytes",
                "`list` is left out: its schema is not that of an object",
                "`text` is left out: its schema is no object",
                "a tool without a name is left out",
                "a tool without a name is left out",
            ]
        );
        let few = ServerBounds {
            tools_max: 1,
            ..bounds
        };
        let toolbox = Toolbox::new("s", &listed, &few);
        assert_eq!(toolbox.specs, expect[..1]);
        assert_eq!(
            toolbox.notes,
            ["it lists more than 1 tools; the rest is left out"]
        );
    }
}
