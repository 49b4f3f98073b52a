//! Skills as tools of their own, so that a person can approve one of them and not all.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::skills::{Entry, Skills, What};
use super::{answer, input_schema};
use crate::model::MCP_TOOLS;

/// Characters that agents take in the name of a tool, behind the name of its server.
const NAME_CHARS: usize = 48;

/// A skill that is a tool.
pub(super) struct Typed<'a> {
    /// The tool's name.
    pub(super) name: String,
    /// The skill.
    pub(super) entry: &'a Entry,
    /// JSON Schema of what it takes.
    pub(super) input: Value,
}

impl Typed<'_> {
    /// What the tool does, as the skill says it, shortened like every description.
    pub(super) fn description(&self) -> String {
        answer::brief(self.entry.description()).into_owned()
    }

    /// Whether it may be repeated without harm, where its definition says.
    pub(super) fn is_idempotent(&self) -> bool {
        matches!(&self.entry.what, What::Worker(_, skill) if skill.idempotent == Some(true))
    }
}

/// The first runnable skills in the order of their names, as many as the configuration says.
pub(super) fn all(skills: &Skills) -> Vec<Typed<'_>> {
    let most = usize::try_from(skills.catalog.config.mcp.typed).unwrap_or(usize::MAX);
    if most == 0 {
        return Vec::new();
    }
    let mut taken: HashSet<String> = MCP_TOOLS.iter().map(|name| (*name).to_owned()).collect();
    let runnable = skills
        .for_models()
        .filter(|entry| is_runnable(skills, entry));
    let named = runnable.filter_map(|entry| {
        let qualified = format!("{}_{}", entry.source(), bare(entry));
        let names = [tool_name(bare(entry)), tool_name(&qualified)];
        // What neither name tells apart is run by `use_skill`.
        let name = names.into_iter().find(|name| taken.insert(name.clone()))?;
        let input = input_schema::of(skills, entry);
        let input =
            input.unwrap_or_else(|| json!({"type": "object", "additionalProperties": false}));
        Some(Typed { name, entry, input })
    });
    named.take(most).collect()
}

/// The skill that is this tool.
pub(super) fn named(skills: &Skills, tool: &str) -> Option<Entry> {
    let found = all(skills).into_iter().find(|one| one.name == tool)?;
    Some(found.entry.clone())
}

fn is_runnable(skills: &Skills, entry: &Entry) -> bool {
    let executed = match &entry.what {
        What::Worker(..) => true,
        What::Root(skill) => skill.is_executed(),
    };
    executed && entry.lack().is_none() && skills.unavailable(entry).is_none()
}

/// Its name without that of its worker or root.
fn bare(entry: &Entry) -> &str {
    match &entry.what {
        What::Worker(_, skill) => &skill.address.skill,
        What::Root(skill) => &skill.name,
    }
}

/// A name that every agent takes.
fn tool_name(text: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    text.chars().map(plain).take(NAME_CHARS).collect()
}
