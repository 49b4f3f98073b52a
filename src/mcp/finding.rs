//! From a name that a client gives to a skill.

use super::skills::{Entry, Skills, What};
use crate::catalog::Lookup;
use crate::model::Problem;

/// Characters of a name that are repeated in an answer.
const SHOWN_CHARS: usize = 200;

/// What a name leads to.
pub(super) enum Found {
    /// One skill.
    Skill(Entry),
    /// Several workers have it; names that tell them apart.
    Ambiguous(Vec<String>),
    /// Its file is there and was left out.
    Broken(Vec<Problem>),
    /// Nothing.
    Unknown,
}

/// Finds a skill by its name, or by `a:b`: skill `b` of worker or source `a`. Case does not matter. A name
/// with separators, `..` or control characters finds nothing, but that the label of a source may hold them.
pub(super) fn find(skills: &Skills, name: &str) -> Found {
    let wanted = name.trim().to_lowercase();
    let (source, bare) = wanted.rsplit_once(':').unwrap_or(("", &wanted));
    let odd = |text: &str| {
        text.contains(['/', '\\']) || text.contains("..") || text.chars().any(char::is_control)
    };
    if bare.is_empty() || odd(bare) {
        return Found::Unknown;
    }
    if let Some(entry) = skills.named(&wanted) {
        return Found::Skill(entry.clone());
    }
    if odd(source) {
        let of_root = skills.catalog.root_skills.find(&wanted);
        return of_root.map_or(Found::Unknown, |skill| Found::Skill(Entry::of_root(skill)));
    }
    let catalog = &skills.catalog;
    let of_worker = (!source.is_empty())
        .then(|| catalog.find_exactly(&format!("{source}/{bare}")))
        .flatten();
    let Some(found) = of_worker.or_else(|| catalog.find_exactly(&wanted)) else {
        return Found::Unknown;
    };
    match found {
        Lookup::Found(worker, skill) => {
            let address = skill.address.to_string();
            let own = |entry: &&Entry| matches!(&entry.what, What::Worker(_, one) if one.address == skill.address);
            let known = skills.entries.iter().find(own).cloned();
            Found::Skill(known.unwrap_or(Entry {
                name: address.replacen('/', ":", 1),
                what: What::Worker(worker, skill),
            }))
        }
        Lookup::OfRoot(skill) => Found::Skill(Entry::of_root(&skill)),
        Lookup::Ambiguous(addresses) => Found::Ambiguous(
            addresses
                .iter()
                .map(|address| address.replacen('/', ":", 1))
                .collect(),
        ),
        Lookup::Rejected(_, problems) | Lookup::Refused(_, problems) => Found::Broken(problems),
        Lookup::Unknown(_) => Found::Unknown,
    }
}

/// As [`find`], and a worker's skill by its address `worker/skill`.
pub(super) fn find_to_run(skills: &Skills, name: &str) -> Found {
    match name.split_once('/') {
        Some((worker, skill)) if !worker.contains(':') => {
            match find(skills, &format!("{worker}:{skill}")) {
                // The label of a source may hold a separator too.
                Found::Unknown => find(skills, name),
                found => found,
            }
        }
        _ => find(skills, name),
    }
}

/// A name as it is repeated in an answer: bounded, in one line.
pub(super) fn shown(name: &str) -> String {
    let clean = |c: char| {
        if c.is_control() {
            c.escape_debug().collect()
        } else {
            c.to_string()
        }
    };
    let mut shown: String = name.chars().take(SHOWN_CHARS).map(clean).collect();
    if name.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}
