//! Finds skills whose outputs can have the same path, so that one would overwrite the file of the other.

use std::collections::HashMap;
use std::sync::Arc;

use super::names;
use super::submission::destinations::invented_name;
use crate::catalog::{TextFinding, TextKind};
use crate::model::definition::{Input, InputKind, Output};
use crate::model::{Place, Problem, Severity, Skill, SkillRef, Worker};
use crate::template::{PathPattern, PathValue, Scope};

const CODE: &str = "destination-shared";

/// Pairs of patterns that are compared in full; a workspace with more of them has hundreds of similar destinations.
const COMPARISONS_MAX: u32 = 20_000;

/// One output of a skill, and the paths that it can have.
struct Destination<'a> {
    skill: &'a Skill,
    place: &'a Place,
    text: &'a str,
    patterns: Vec<PathPattern>,
}

/// Returns a warning for each output whose file an output of another skill can be, too.
///
/// Skills may share a file on purpose, such as a log that each of them appends to. Runs that resolve to one path
/// never run at the same time.
pub(super) fn problems(workers: &[Arc<Worker>]) -> Vec<Problem> {
    let mut all = Vec::new();
    for worker in workers.iter().filter(|worker| !worker.template) {
        all.extend(worker.skills.iter().flat_map(|skill| destinations(skill)));
    }
    all.sort_by(|one, other| one.address().cmp(other.address()));
    let shared = shared_with(&all);
    let mut problems = Vec::new();
    for (destination, first) in all.iter().zip(&shared) {
        if let Some(first) = first.and_then(|first| all.get(first)) {
            problems.push(destination.problem(first));
        }
    }
    problems
}

/// Returns, for each destination, an earlier one of another skill that can have the same path.
fn shared_with(all: &[Destination<'_>]) -> Vec<Option<usize>> {
    let mut shared = vec![None; all.len()];
    let mut first_with: HashMap<&[PathPattern], usize> = HashMap::new();
    let mut distinct: Vec<(String, &PathPattern, usize)> = Vec::new();
    for (index, destination) in all.iter().enumerate() {
        let first = *first_with.entry(&destination.patterns).or_insert(index);
        if all[first].address() != destination.address() {
            shared[index] = Some(first);
        } else if first == index {
            let patterns = destination.patterns.iter();
            distinct.extend(patterns.map(|pattern| (pattern.prefix(), pattern, index)));
        }
    }
    // Paths can be the same only if the fixed beginning of one pattern is the beginning of the other's.
    distinct.sort();
    let mut open: Vec<&(String, &PathPattern, usize)> = Vec::new();
    let mut comparisons = 0;
    for candidate in &distinct {
        let (prefix, pattern, index) = candidate;
        while open
            .last()
            .is_some_and(|(begin, ..)| !prefix.starts_with(begin.as_str()))
        {
            open.pop();
        }
        let other = open.iter().find(|(_, other, at)| {
            let is_near =
                all[*at].address() != all[*index].address() && !pattern.ends_differ(other);
            comparisons += u32::from(is_near);
            is_near && comparisons <= COMPARISONS_MAX && pattern.intersects(other)
        });
        if let Some((.., other)) = other {
            let (earlier, later) = (*index.min(other), *index.max(other));
            shared[later].get_or_insert(earlier);
        }
        open.push(candidate);
    }
    shared
}

impl<'a> Destination<'a> {
    fn address(&self) -> &'a SkillRef {
        &self.skill.address
    }

    fn problem(&self, first: &Destination<'_>) -> Problem {
        let (own, other) = (self.address(), first.address());
        let texts = if self.text == first.text {
            format!("`{}`", self.text)
        } else {
            format!("`{}` and `{}`", first.text, self.text)
        };
        let placeholder = if own.worker == other.worker {
            "`{skill}`"
        } else {
            "`{worker}`"
        };
        Problem {
            code: CODE.to_owned(),
            severity: Severity::Warning,
            place: self.place.clone(),
            message: format!(
                "`{own}` can overwrite the output of `{other}` ({}): both can write {texts}",
                first.place
            ),
            hint: Some(format!(
                "put {placeholder} into each destination, or use another directory for each skill; if they share the file on purpose, ignore this warning"
            )),
            worker: Some(own.worker.clone()),
            skill: Some(own.skill.clone()),
        }
    }
}

/// The outputs of a skill whose paths other skills can have.
fn destinations(skill: &Skill) -> Vec<Destination<'_>> {
    if skill
        .outputs
        .iter()
        .all(|output| output.destination.is_none())
    {
        return Vec::new();
    }
    let Ok(names) = names::names(skill) else {
        return Vec::new();
    };
    let destination = |output: &'_ Output| {
        let text = output.destination.as_deref()?;
        let value = |scope, name: &str| path_value(skill, scope, name);
        let mut patterns = PathPattern::expand(text, &names, &value)?;
        for pattern in patterns.iter_mut().filter(|pattern| pattern.is_directory()) {
            let rest = invented_name(&skill.address, output.kind);
            pattern.push(&PathValue::Date);
            pattern.push(&PathValue::OneOf(vec![rest]));
        }
        Some(patterns)
    };
    let outputs = skill.outputs.iter();
    let found = outputs.filter_map(|output| {
        Some(Destination {
            skill,
            place: output.place.as_ref().unwrap_or(&skill.place),
            text: output.destination.as_deref()?,
            patterns: destination(output)?,
        })
    });
    found.collect()
}

/// What a name can become in a path; `None` where it is another one for each run, or cannot be in a path.
fn path_value(skill: &Skill, scope: Scope, name: &str) -> Option<PathValue> {
    let only = |text: &str| Some(PathValue::OneOf(vec![text.to_owned()]));
    match (scope, name) {
        (Scope::Input, _) => {
            let input = skill.inputs.iter().find(|input| input.name == name)?;
            input_value(input)
        }
        (Scope::Builtin, "worker") => only(&skill.address.worker),
        (Scope::Builtin, "skill") => only(&skill.address.skill),
        (Scope::Builtin, "date") => Some(PathValue::Date),
        (Scope::Builtin, "time") => Some(PathValue::Time),
        (Scope::Builtin, "scheduled_at") => Some(PathValue::Any),
        (Scope::Builtin | Scope::Output, _) => None,
    }
}

fn input_value(input: &Input) -> Option<PathValue> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    match input.kind {
        InputKind::Path => None,
        InputKind::Array => Some(PathValue::Any),
        _ if !input.allowed.is_empty() => Some(PathValue::OneOf(input.allowed.clone())),
        InputKind::Boolean => Some(PathValue::OneOf(texts(&["true", "false"]))),
        InputKind::Date => Some(PathValue::Date),
        InputKind::String | InputKind::Number => Some(PathValue::Any),
    }
}

/// Adds an error to each destination of a skill that an earlier output of the same skill has: no run could be accepted.
pub(super) fn add_repeated(
    skill: &Skill,
    texts: &[(TextKind, &str)],
    found: &mut [Vec<TextFinding>],
) {
    let ending = |output: &Output| {
        let text = output.destination.as_deref()?;
        let kind = text.ends_with('/').then(|| output.kind.extension());
        Some((text.strip_prefix("./").unwrap_or(text).to_owned(), kind))
    };
    let own: Vec<_> = skill.outputs.iter().filter_map(ending).collect();
    let of_destinations = texts
        .iter()
        .zip(found)
        .filter(|((kind, _), _)| *kind == TextKind::Destination);
    for (nth, (_, findings)) in of_destinations.enumerate() {
        if own.get(nth).is_some_and(|path| own[..nth].contains(path)) {
            findings.push(TextFinding {
                code: CODE.to_owned(),
                severity: Severity::Error,
                offset: 0,
                message: format!("two outputs of `{}` have this path", skill.address),
                hint: Some("give each output a destination of its own".to_owned()),
            });
        }
    }
}
