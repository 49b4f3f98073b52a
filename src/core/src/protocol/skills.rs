//! Skills of workers and of roots, as they are listed and shown.

use serde::{Deserialize, Serialize};

use super::catalog::SkillView;
use super::{NextDue, RunSummary};
use crate::model::problem::Problem;

/// A skill of any source as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ListedSkill {
    /// What every skill has.
    #[serde(flatten)]
    pub skill: SkillView,
    /// `worker`, or the label of its root.
    pub source: String,
    /// In which way it is written: `worker`, `agent`, `wave`, `workspace`.
    pub dialect: String,
    /// `root`: its root is trusted; `content`: what it holds is; `untrusted`; `changed` since it was trusted.
    pub trust: String,
    /// Names it whatever stands before it.
    pub qualified: String,
    /// `path:line` of the skill that has its name.
    pub shadowed_by: Option<String>,
    /// Problems of its definition.
    pub problems: Vec<Problem>,
}

/// A skill of any source, with its newest run and its next slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SkillWithRuns {
    /// As it is listed.
    #[serde(flatten)]
    pub listed: ListedSkill,
    /// Its newest run that is kept.
    pub last: Option<RunSummary>,
    /// What is due next of its first 100 schedules.
    pub next: Option<NextDue>,
}

/// Skills of one answer, by their qualified names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SkillsPage {
    /// Those that were asked for.
    pub skills: Vec<SkillWithRuns>,
    /// What `after` goes on with; absent: there are no more.
    pub next: Option<String>,
}

/// Which skills are wanted, by their qualified names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkillsQuery {
    /// Only of this worker.
    pub worker: Option<String>,
    /// Only with this text in name, address or description; case does not count.
    pub text: Option<String>,
    /// Only those whose qualified names come after this one.
    pub after: Option<String>,
    /// At most this many; 0: 100; at most 500.
    #[schemars(range(max = 500))]
    pub limit: u32,
}

impl SkillsQuery {
    /// How many skills an answer holds at most.
    pub fn most(&self) -> usize {
        match self.limit {
            0 => 100,
            some => (some as usize).min(500),
        }
    }
}

/// A file that is no skill that can be used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OmittedFile {
    /// The name that its place gives it.
    pub name: String,
    /// Where it stands.
    pub defined_at: String,
    /// `worker`, or the label of its root.
    pub source: String,
    /// Why.
    pub problems: Vec<Problem>,
}

/// A directory of skills.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RootView {
    /// How it is named.
    pub label: String,
    /// Absolute path.
    pub path: String,
    /// `workspace`, `project`, `personal` or `extra`.
    pub scope: String,
    /// In which way its skills are written.
    pub dialect: String,
    /// Whether it is trusted as a whole.
    pub trusted: bool,
    /// Problems of the directory itself.
    pub problems: Vec<Problem>,
}

/// All skills.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SkillList {
    /// Those of workers, then those of roots, in the order in which they win names.
    pub skills: Vec<ListedSkill>,
    /// Files of roots that were left out.
    pub omitted: Vec<OmittedFile>,
    /// Roots that are there.
    pub roots: Vec<RootView>,
}

/// A file beside a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SkillFileView {
    /// Relative to the skill's directory.
    pub path: String,
    /// Its size.
    pub bytes: Option<u64>,
    /// What the skill says of it.
    pub description: Option<String>,
    /// Why it cannot be read.
    pub refused: Option<String>,
}

/// A skill in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ShownSkill {
    /// As it is listed.
    #[serde(flatten)]
    pub listed: ListedSkill,
    /// Absolute directory of its file.
    pub directory: String,
    /// Alias of a model.
    pub model: Option<String>,
    /// Tools that must exist.
    pub required_tools: Vec<String>,
    /// The only tools that it may use; absent: any.
    pub allowed_tools: Option<Vec<String>>,
    /// Tool sets that it brings.
    pub toolsets: Vec<String>,
    /// Turns of a model at most; absent for a skill that runs a command.
    pub max_iterations: Option<u32>,
    /// JSON Schema of its input.
    pub input_schema: Option<serde_json::Value>,
    /// Whether a model may start it by itself.
    pub model_invocable: bool,
    /// Whether a person may start it.
    pub user_invocable: bool,
    /// Files that can be loaded.
    pub files: Vec<SkillFileView>,
    /// Whether there are more files than are looked at.
    pub files_cut: bool,
    /// What it says.
    pub instructions: Option<String>,
    /// Every key as written.
    pub keys: serde_json::Map<String, serde_json::Value>,
}
