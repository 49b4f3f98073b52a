//! The lists of tools of a skill, understood.

use std::sync::Arc;

use workerctl_agent::tools::{Allowed, Disallowed};

use crate::catalog::Conditions;
use crate::model::tool_names::with_own_name;
use crate::model::{Problem, Severity, Worker};

/// Reads `allowed-tools` and `disallowed-tools`, whose items may have the names that other programs give to tools.
///
/// # Errors
/// An item cannot be understood; nothing is started then.
pub(super) fn tool_rules(
    allowed: Option<&[String]>,
    disallowed: &[String],
) -> Result<(Option<Allowed>, Disallowed), String> {
    let own = |items: &[String]| -> Vec<String> {
        items.iter().map(|item| with_own_name(item)).collect()
    };
    let allowed = allowed.map(|items| Allowed::parse(&own(items))).transpose();
    let allowed = allowed.map_err(|error| format!("`allowed-tools`: {error}"))?;
    let disallowed = Disallowed::parse(&own(disallowed));
    let disallowed = disallowed.map_err(|error| format!("`disallowed-tools`: {error}"))?;
    Ok((allowed, disallowed))
}

/// What is wrong with the lists of all skills of workers.
pub(super) fn problems(workers: &[Arc<Worker>]) -> Vec<Problem> {
    let skills = workers.iter().flat_map(|worker| &worker.skills);
    let found = skills.filter_map(|skill| {
        let conditions = Conditions::of(skill);
        let allowed = conditions.allowed_tools.as_deref();
        let message = tool_rules(allowed, &conditions.disallowed_tools).err()?;
        Some(Problem {
            code: "restriction-malformed".to_owned(),
            severity: Severity::Error,
            place: skill.place.clone(),
            message,
            hint: Some("until then every run of the skill is refused".to_owned()),
            worker: Some(skill.address.worker.clone()),
            skill: Some(skill.address.skill.clone()),
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use workerctl_agent::tools::BuiltIn;

    use super::*;
    use crate::model::tool_names::{ToolName, tool_of_item};

    #[test]
    fn the_names_of_tools_are_those_of_the_tools_that_there_are() {
        for tool in BuiltIn::ALL {
            let named = tool_of_item(tool.name());
            assert_eq!(named, Ok(ToolName::BuiltIn(tool.name())));
        }
        let other = [
            "Read",
            "Write",
            "Edit",
            "MultiEdit",
            "LS",
            "Glob",
            "Grep",
            "Bash",
            "Shell",
        ];
        for name in other {
            let own = BuiltIn::parse_alias(name).unwrap().name();
            assert_eq!(with_own_name(name), own, "{name}");
        }
        let lists = [
            vec!["run_shell_command(git:*)".to_owned()],
            vec!["apply_patch".to_owned()],
        ];
        let (allowed, disallowed) = tool_rules(Some(&lists[0]), &lists[1]).unwrap();
        assert!(allowed.unwrap().allows_tool("bash") && disallowed.forbids_tool("edit_file"));
        let refused = tool_rules(None, &["Bash(git && ls)".to_owned()]).unwrap_err();
        assert!(
            refused.starts_with("`disallowed-tools`: `bash(git && ls)`"),
            "{refused}"
        );
    }
}
