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
        Lookup::OfRoot(skill) => of_root(catalog, &skill),
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

/// A skill of a root as it is executed.
fn of_root(catalog: &Catalog, skill: &RootSkill) -> Result<Arc<Skill>, Diagnostic> {
    let (name, address) = (&skill.name, skill.run_address().to_string());
    if let Some(lack) = skill.lack() {
        let message = format!("`{name}` is unavailable: {lack}");
        let shown = format!(
            "`workerctl skill show {}` shows what it says",
            skill.address()
        );
        return Err(Diagnostic::new(Kind::Blocked, "unavailable", message).hint(shown));
    }
    // Whoever runs it again, or asks for its runs, knows this address alone.
    if !matches!(catalog.find(&address), Lookup::OfRoot(one) if one.place == skill.place) {
        let message = format!(
            "`{name}` cannot run: the address of its runs, `{address}`, already belongs to a worker"
        );
        let refused = Diagnostic::new(Kind::Definition, "address_taken", message);
        let hint = format!(
            "rename the worker, or move the skill at {} to it",
            skill.place
        );
        return Err(refused.hint(hint));
    }
    let runnable = skill.runnable(&catalog.config).map(Arc::new);
    runnable.map_err(|problems| rejected(name, &problems))
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
        .skip(1)
        .map(|p| format!("{}: {}", p.place, p.message))
        .collect();
    refused
}
