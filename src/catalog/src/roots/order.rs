//! Which roots there are, and which comes first.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::model::skill_roots::{SkillRoots, WORKSPACE_SKILLS};
use crate::model::{Dialect, Scope};

/// A directory of skills that belong to no worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillRoot {
    /// How it is named: `workspace`, `.claude`, `~/.claude`, or as the configuration writes it.
    pub label: String,
    /// Absolute path, links not resolved.
    pub directory: PathBuf,
    /// Path in places of problems: relative to the workspace where it lies in it.
    pub shown: String,
    /// Whose skills these are.
    pub scope: Scope,
    /// In which way they are written.
    pub dialect: Dialect,
    /// `false`: its skills are listed, and not run until trusted.
    pub trusted: bool,
    /// Line of the error of workerctl.yaml for which it is not known whether it is trusted.
    pub error_line: Option<u32>,
}

impl SkillRoot {
    /// Whether a place of a problem is the root itself or lies below it.
    pub(super) fn holds(&self, path: &str) -> bool {
        Path::new(path).starts_with(&self.shown)
    }

    /// Whether a skill that has no `name` is called as its directory: the contracts of the other families ask for one.
    pub(crate) fn names_by_directory(&self) -> bool {
        let shared = |directory: &Path| directory.ends_with(".agents/skills");
        match self.dialect {
            Dialect::Workspace => true,
            Dialect::Agent => self.directory.ancestors().any(shared),
            Dialect::Wave => false,
        }
    }
}

/// All roots of a workspace: its own skills, each family in the workspace and then at home, those that
/// are added. The first that has a name wins it.
pub(crate) fn in_order(
    workspace: &Path,
    config: &SkillRoots,
    home: Option<&Path>,
) -> Vec<Arc<SkillRoot>> {
    let mut roots = vec![SkillRoot {
        label: "workspace".to_owned(),
        directory: workspace.join(WORKSPACE_SKILLS),
        shown: WORKSPACE_SKILLS.to_owned(),
        scope: Scope::Workspace,
        dialect: Dialect::Workspace,
        trusted: true,
        error_line: None,
    }];
    let home = home.filter(|home| home.is_absolute());
    for family in &config.families {
        let dialect = if family == ".wave" {
            Dialect::Wave
        } else {
            Dialect::Agent
        };
        roots.push(SkillRoot {
            label: family.clone(),
            directory: workspace.join(family).join("skills"),
            shown: format!("{family}/skills"),
            scope: Scope::Project,
            dialect,
            trusted: !config.untrusted.contains(family),
            error_line: config.error_line,
        });
        if let Some(home) = home.filter(|_| config.personal) {
            let directory = home.join(family).join("skills");
            roots.push(SkillRoot {
                label: format!("~/{family}"),
                shown: directory.to_string_lossy().into_owned(),
                directory,
                scope: Scope::Personal,
                dialect,
                trusted: true,
                error_line: None,
            });
        }
    }
    for extra in &config.extra {
        let directory = match (extra.path.strip_prefix("~/"), home) {
            (Some(below), Some(home)) => home.join(below),
            (Some(_), None) => continue,
            (None, _) => workspace.join(&extra.path),
        };
        roots.push(SkillRoot {
            label: extra.path.clone(),
            shown: shown(workspace, &directory),
            directory,
            scope: Scope::Extra,
            dialect: extra.dialect,
            trusted: extra.trusted,
            error_line: config.error_line,
        });
    }
    roots.into_iter().map(Arc::new).collect()
}

/// A path relative to the workspace where it lies in it.
fn shown(workspace: &Path, path: &Path) -> String {
    let plain: PathBuf = path.components().collect();
    plain
        .strip_prefix(workspace)
        .unwrap_or(&plain)
        .to_string_lossy()
        .into_owned()
}
