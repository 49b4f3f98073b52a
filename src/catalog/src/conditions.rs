//! What a worker's skill says of who may start it, and of what has to be there before.

use serde_json::Value;

use super::dialect::tools;
use crate::model::Skill;

/// Conditions of a worker's skill. They hold for models and programs that act for one; a person who runs it
/// has decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conditions {
    /// Whether a model may start it by itself.
    pub model_invocable: bool,
    /// Whether it is offered to people.
    pub user_invocable: bool,
    /// Tools that must exist before it starts.
    pub required_tools: Vec<String>,
    /// The only tools that it may use; absent: any.
    pub allowed_tools: Option<Vec<String>>,
    /// Tools that it may not use.
    pub disallowed_tools: Vec<String>,
    /// Tool sets that must exist before it starts.
    pub toolsets: Vec<String>,
}

impl Conditions {
    /// Returns those of a skill.
    pub fn of(skill: &Skill) -> Conditions {
        let mut found = Conditions {
            model_invocable: true,
            user_invocable: true,
            required_tools: Vec::new(),
            allowed_tools: None,
            disallowed_tools: Vec::new(),
            toolsets: Vec::new(),
        };
        for (key, value) in &skill.kept {
            match key.as_str() {
                "disable-model-invocation" => found.model_invocable = *value == Value::Bool(false),
                "user-invocable" => found.user_invocable = *value == Value::Bool(true),
                "disallowed-tools" => found.disallowed_tools = tools::names(value),
                "required_tools" => found.required_tools = tools::names(value),
                "allowed-tools" => found.allowed_tools = Some(tools::names(value)),
                "toolsets" => found.toolsets = tools::names(value),
                _ => {}
            }
        }
        found
    }
}
