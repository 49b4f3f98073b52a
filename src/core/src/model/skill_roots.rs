//! Where skills are that belong to no worker, and in which way they are written there.

use serde::{Deserialize, Serialize};

/// Directories of the workspace and of the home directory that hold `skills/`, in their order.
pub const FAMILIES: [&str; 4] = [".agents", ".agent", ".claude", ".wave"];

/// Directory of workspace skills, relative to the workspace.
pub const WORKSPACE_SKILLS: &str = "workspace/skills";

/// A way to write skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `<name>/SKILL.md` as agent programs read it, tool sets and listed files included.
    Agent,
    /// The same under the stricter rules of Wave.
    Wave,
    /// `<name>/SKILL.md`, `<name>.md`, `<name>.yaml` or `<name>.yml`; the name may be left out.
    Workspace,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Dialect; 3] = [Dialect::Agent, Dialect::Wave, Dialect::Workspace];

    /// Its name in configurations and views.
    pub const fn name(self) -> &'static str {
        match self {
            Dialect::Agent => "agent",
            Dialect::Wave => "wave",
            Dialect::Workspace => "workspace",
        }
    }
}

/// Whose skills a root holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// `workspace/skills`.
    Workspace,
    /// A family in the workspace.
    Project,
    /// A family in the home directory.
    Personal,
    /// A root that the configuration adds.
    Extra,
}

impl Scope {
    /// Its name in views.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Workspace => "workspace",
            Scope::Project => "project",
            Scope::Personal => "personal",
            Scope::Extra => "extra",
        }
    }
}

/// A root that the configuration adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtraRoot {
    /// Relative to the workspace, absolute, or below `~/`.
    pub path: String,
    /// In which way its skills are written.
    pub dialect: Dialect,
    /// `false`: listed, not run until trusted.
    pub trusted: bool,
}

/// The part of the configuration that says where skills are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillRoots {
    /// Families that are read, in their order.
    pub families: Vec<String>,
    /// Whether those of the home directory are read.
    pub personal: bool,
    /// Further roots, after all others.
    pub extra: Vec<ExtraRoot>,
    /// Families whose skills in the workspace are not run until trusted.
    pub untrusted: Vec<String>,
    /// Line of the error for which it is not known what the file leaves untrusted; 0 where it has none.
    #[serde(skip)]
    pub error_line: Option<u32>,
}

impl SkillRoots {
    /// Trusts none of the roots that may be left untrusted, those of projects and those that are added, for an error in
    /// this line.
    pub fn trust_none(&mut self, error_line: u32) {
        self.error_line = Some(error_line);
        self.untrusted = FAMILIES.map(str::to_owned).to_vec();
        for root in &mut self.extra {
            root.trusted = false;
        }
    }
}

impl Default for SkillRoots {
    fn default() -> SkillRoots {
        SkillRoots {
            families: FAMILIES.map(str::to_owned).to_vec(),
            personal: true,
            extra: Vec::new(),
            untrusted: Vec::new(),
            error_line: None,
        }
    }
}
