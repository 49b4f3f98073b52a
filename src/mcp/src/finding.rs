//! From a name that a client gives to a skill.

use super::skills::{Entry, Lists, Skills, What, lookup, odd};
use crate::catalog::{ALTERNATIVES_MAX, Lookup};
use crate::model::Problem;
use crate::model::legible::legible;

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

/// Finds a skill by its name, or by `a:b`: skill `b` of worker or source `a`, where a worker's may be written `a/b`. Case
/// does not matter. Any other name with separators, `..` or control characters finds nothing, but that the label of a
/// source may hold them.
pub(super) fn find(skills: &Skills, name: &str) -> Found {
    let of_worker = match name.trim().split_once('/') {
        Some((worker, skill)) if !odd(worker) && !odd(skill) => {
            skills.catalog.find_exactly(&format!("{worker}/{skill}"))
        }
        _ => None,
    };
    let found = of_worker.or_else(|| lookup(&skills.catalog, name));
    match found {
        Some(found) => entry(skills, found),
        None => escaped(skills, name).map_or(Found::Unknown, |entry| Found::Skill(entry.clone())),
    }
}

/// The skill that is listed under this name since its own holds something hidden.
fn escaped<'s>(skills: &'s Skills, name: &str) -> Option<&'s Entry> {
    let escape = name.contains('\\').then(|| name.trim().to_lowercase())?;
    skills.named(&escape)
}

/// Names of several workers' skills, one of which may be meant.
pub(super) fn alternatives(names: &[String]) -> String {
    let more = if names.len() < ALTERNATIVES_MAX {
        ""
    } else {
        " or another one; `list_skills` lists them"
    };
    format!("{}{more}", names.join(", "))
}

/// What is listed where a name leads to nothing: also where the file that it leads to has vanished.
pub(super) fn listed_beside(skills: &Skills, name: &str) -> Lists {
    match find(skills, name) {
        Found::Skill(gone) => skills.listed_without(&gone),
        _ => skills.listed().into_owned(),
    }
}

/// Whether a skill may have this name.
pub(super) fn may_be_a_name(name: &str) -> bool {
    !name.trim().is_empty() && !odd(name)
}

/// The skill as clients know it.
fn entry(skills: &Skills, found: Lookup) -> Found {
    let qualified = |addresses: &[String]| {
        // What has a colon is a skill of a root, whose label may hold a separator.
        let one = |address: &String| {
            if address.contains(':') {
                address.clone()
            } else {
                address.replacen('/', ":", 1)
            }
        };
        addresses.iter().map(one).collect()
    };
    match found {
        Lookup::Found(worker, skill) => {
            let address = skill.address.to_string().replacen('/', ":", 1);
            let own = |entry: &&Entry| matches!(&entry.what, What::Worker(_, one) if one.address == skill.address);
            let known = [&skill.address.skill, &address]
                .into_iter()
                .filter_map(|name| skills.named(&name.to_lowercase()))
                .find(own)
                .cloned();
            Found::Skill(known.unwrap_or_else(|| Entry::of_worker(address, &worker, &skill)))
        }
        Lookup::OfRoot(skill) => Found::Skill(Entry::of_root(&skills.catalog, &skill)),
        Lookup::Ambiguous(addresses) => Found::Ambiguous(qualified(&addresses)),
        Lookup::Rejected(_, problems) | Lookup::Refused(_, problems) => Found::Broken(problems),
        Lookup::Unknown(_) => Found::Unknown,
    }
}

/// A name as it is repeated in an answer: bounded, in one line.
pub(super) fn shown(name: &str) -> String {
    let end = name.char_indices().nth(SHOWN_CHARS).map(|(end, _)| end);
    let mut shown = legible(&name[..end.unwrap_or(name.len())]).replace('\t', "\\t");
    if end.is_some() {
        shown.push('…');
    }
    shown
}
