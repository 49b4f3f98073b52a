//! Finds what people name.

use std::sync::Arc;

use crate::catalog::{Catalog, Lookup, RootSkill};
use crate::model::{Diagnostic, Kind, Problem, Skill};

/// Finds a skill by the name that somebody gave.
pub(super) fn find_skill(catalog: &Catalog, name: &str) -> Result<Arc<Skill>, Diagnostic> {
    match catalog.find(name) {
        Lookup::Found(_, skill) => Ok(skill),
        Lookup::Ambiguous(addresses) => {
            let mut refused = Diagnostic::new(
                Kind::NotFound,
                "skill_ambiguous",
                format!("several workers have a skill `{name}`"),
            )
            .hint(format!("write one of: {}", addresses.join(", ")));
            refused.details = addresses;
            Err(refused)
        }
        Lookup::OfRoot(skill) => Err(without_model(&skill)),
        Lookup::Rejected(_, problems) | Lookup::Refused(_, problems) => {
            Err(rejected(name, &problems))
        }
        Lookup::Unknown(near) => {
            let refused = Diagnostic::new(
                Kind::NotFound,
                "skill_not_found",
                format!("no skill `{name}`"),
            );
            Err(match near.first() {
                Some(first) => refused.hint(format!("did you mean `{first}`?")),
                None => refused.hint("`workerctl skills` lists them"),
            })
        }
    }
}

/// A skill of a root is instructions for a model, whatever else it says.
fn without_model(skill: &RootSkill) -> Diagnostic {
    Diagnostic::new(
        Kind::Blocked,
        "unavailable",
        format!(
            "`{}` is unavailable: it has no `run`, and nothing executes instructions",
            skill.name
        ),
    )
    .hint(format!(
        "`workerctl skill show {}` shows what it says",
        skill.address()
    ))
}

fn rejected(name: &str, problems: &[Problem]) -> Diagnostic {
    let message = problems.first().map_or_else(String::new, |problem| {
        format!(": {}: {}", problem.place, problem.message)
    });
    let mut refused = Diagnostic::new(
        Kind::Definition,
        "definition",
        format!("the definition of `{name}` was rejected{message}"),
    )
    .hint("`workerctl check` shows every problem with its line");
    refused.details = problems
        .iter()
        .map(|p| format!("{}: {}", p.place, p.message))
        .collect();
    refused
}
