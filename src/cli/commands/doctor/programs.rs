//! Agent programs that are found on the path, and those that skills need.

use super::{Finding, State};
use crate::cli::definitions::Definitions;
use crate::cli::engine::installed_programs;
use crate::cli::globals::Site;

pub(super) fn programs(site: &Site, definitions: &Definitions) -> Vec<Finding> {
    let needed = definitions.agent_programs();
    let found = installed_programs(&site.environment);
    let mut findings = Vec::new();
    for one in &found {
        let version = one.version.as_deref().unwrap_or("of unknown version");
        let at = one.path.display();
        let message = match one.tried {
            Some(tried) if Some(tried) == one.version.as_deref() => {
                format!("`{}` {version} at {at}, a tested version", one.cli)
            }
            Some(tried) => format!(
                "`{}` {version} at {at}; the tested version is {tried}",
                one.cli
            ),
            None => format!(
                "`{}` {version} at {at}; it has not been tested yet",
                one.cli
            ),
        };
        findings.push(Finding::new("agent", State::Good, message));
    }
    for name in needed {
        if !found.iter().any(|one| one.cli == name) {
            let message = format!("skills are executed by `{name}`, which is not on the path");
            findings.push(
                Finding::new("agent", State::Care, message)
                    .hint("install it, or name it with its whole path: `agent: {binary: /…}`")
                    .hint("the path of a service is that of its unit: `Environment=PATH=…`"),
            );
        }
    }
    findings
}
