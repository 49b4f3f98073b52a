//! Workers and skills as they are listed.

use serde::{Deserialize, Serialize};

use crate::model::definition::{Skill, Unavailable, Worker};
use crate::model::problem::Problem;
use crate::model::sandbox::Level;
use crate::model::spec::Gate;
use crate::model::value::MASK;

/// An input as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InputView {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether a value must be given.
    pub required: bool,
    /// Value where none is given.
    pub default: Option<serde_json::Value>,
    /// For people.
    pub description: Option<String>,
    /// Allowed values; empty: any.
    pub allowed: Vec<String>,
    /// Whether the value is a secret.
    pub sensitive: bool,
}

/// An output as it is listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OutputView {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Pattern of its path.
    pub destination: Option<String>,
}

/// A skill as it is listed.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SkillView {
    /// `worker/skill`.
    #[serde(rename = "skill")]
    pub address: String,
    /// For people.
    pub name: String,
    /// For people.
    pub description: String,
    /// Whether it ends in a commit.
    pub mutating: bool,
    /// Whether the definition says that its command may be repeated without harm.
    pub idempotent: bool,
    /// Whether its command is started again after a crash.
    #[serde(default)]
    pub repeatable: bool,
    /// `path:line` of its definition.
    pub defined_at: String,
    /// Inputs.
    pub inputs: Vec<InputView>,
    /// Outputs.
    pub outputs: Vec<OutputView>,
    /// How many checks follow its execution.
    #[serde(rename = "check_count")]
    pub checks: u32,
    /// What its commands may touch, in words; `off`: whatever their user may.
    #[serde(default)]
    pub sandbox: String,
    /// Whether a person may say in words what they want of it: `message` of a request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_message: bool,
    /// Before what a person has to approve each of its runs; absent where nobody is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Gate>,
    /// Why it may not run; empty: it may.
    pub unavailable: Vec<Unavailable>,
}

/// A worker as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkerView {
    /// Its id.
    pub id: String,
    /// For people.
    pub name: String,
    /// `CodeWorker` and so on.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// As written.
    pub version: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// `path:line` of its definition.
    pub defined_at: String,
    /// Whether its id holds a placeholder.
    pub template: bool,
    /// Its skills.
    pub skills: Vec<SkillView>,
    /// Keys that are kept and not evaluated.
    #[serde(rename = "recorded_only")]
    pub kept: serde_json::Map<String, serde_json::Value>,
    /// Problems of its definition.
    pub problems: Vec<Problem>,
}

impl From<&Skill> for SkillView {
    fn from(skill: &Skill) -> SkillView {
        SkillView {
            address: skill.address.to_string(),
            name: skill.name.clone(),
            description: skill.description.clone(),
            mutating: skill.mutating,
            idempotent: skill.idempotent == Some(true),
            repeatable: skill.is_repeatable(),
            defined_at: skill.place.to_string(),
            inputs: skill
                .inputs
                .iter()
                .map(|input| InputView {
                    name: input.name.clone(),
                    kind: input.kind.name().to_owned(),
                    required: input.required,
                    // Who may read the API may have no right to read the file.
                    default: input.default.clone().map(|default| {
                        if input.sensitive {
                            MASK.into()
                        } else {
                            default
                        }
                    }),
                    description: input.description.clone(),
                    allowed: input.allowed.clone(),
                    sensitive: input.sensitive,
                })
                .collect(),
            outputs: skill
                .outputs
                .iter()
                .map(|output| OutputView {
                    name: output.name.clone(),
                    kind: output.kind.name().to_owned(),
                    destination: output.destination.clone(),
                })
                .collect(),
            checks: u32::try_from(skill.checks.len()).unwrap_or(u32::MAX),
            sandbox: skill
                .sandbox
                .as_ref()
                .map_or_else(|| Level::Off.name().to_owned(), ToString::to_string),
            takes_message: skill.takes_message(),
            approval: skill.approval.map(|asked| asked.before),
            unavailable: skill.unavailable.clone(),
        }
    }
}

impl WorkerView {
    /// The worker with those of `problems` that belong to it.
    pub fn of(worker: &Worker, problems: &[Problem]) -> WorkerView {
        WorkerView {
            id: worker.id.clone(),
            name: worker.name.clone(),
            kind: worker.kind.clone(),
            version: worker.version.clone(),
            description: worker.description.clone(),
            defined_at: worker.place.to_string(),
            template: worker.template,
            skills: worker
                .skills
                .iter()
                .map(|skill| SkillView::from(skill.as_ref()))
                .collect(),
            kept: worker.kept.clone(),
            problems: problems
                .iter()
                .filter(|problem| problem.worker.as_deref() == Some(&worker.id))
                .cloned()
                .collect(),
        }
    }
}
