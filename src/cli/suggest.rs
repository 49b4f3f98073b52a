//! What was probably meant.

use crate::model::{Diagnostic, Kind};
use crate::protocol::Control;

/// Names that are offered at once.
const OFFERED_MAX: usize = 3;

/// Those of `known` that look like `wanted`, nearest first.
pub(crate) fn nearest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let allowed = wanted.chars().count() / 3 + 1;
    let mut near: Vec<(usize, &str)> = known
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let bare = lower.rsplit('/').next().unwrap_or(&lower);
            let distance =
                strsim::osa_distance(&wanted, &lower).min(strsim::osa_distance(&wanted, bare));
            (distance <= allowed).then_some((distance, name))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(OFFERED_MAX);
    near.into_iter().map(|(_, name)| name).collect()
}

/// One hint that offers names.
pub(crate) fn did_you_mean(near: &[&str]) -> Option<String> {
    let quoted: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    (!quoted.is_empty()).then(|| format!("did you mean {}?", quoted.join(" or ")))
}

/// Adds what was probably meant to a refusal that knows nothing of `wanted`.
pub(crate) fn skill_meant(control: &dyn Control, wanted: &str, refused: Diagnostic) -> Diagnostic {
    let told = refused
        .hints
        .iter()
        .any(|hint| hint.contains("did you mean"));
    if refused.kind != Kind::NotFound || told {
        return refused;
    }
    let Ok(workers) = control.workers() else {
        return refused;
    };
    let known = workers
        .iter()
        .flat_map(|worker| worker.skills.iter().map(|skill| skill.address.as_str()));
    match did_you_mean(&nearest(wanted, known)) {
        Some(hint) => Diagnostic {
            hints: vec![hint],
            ..refused
        },
        None if refused.hints.is_empty() => {
            refused.hint("`workerctl skills` lists what can be run")
        }
        None => refused,
    }
}

/// A worker that nobody knows.
pub(crate) fn unknown_worker<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Diagnostic {
    let refused = Diagnostic::new(
        Kind::NotFound,
        "worker_unknown",
        format!("no worker is called `{wanted}`"),
    );
    match did_you_mean(&nearest(wanted, known)) {
        Some(hint) => refused.hint(hint),
        None => refused.hint("`workerctl workers` lists them"),
    }
}

/// Says where to look for runs when one was not found.
pub(crate) fn run_meant(refused: Diagnostic) -> Diagnostic {
    if refused.kind == Kind::NotFound && refused.hints.is_empty() {
        refused.hint("`workerctl runs` lists them; any unique beginning or end of an id will do")
    } else {
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_offered_nearest_first() {
        let known = [
            "repo-steward/weekly-changes",
            "host-watch/disk-report",
            "a/b",
        ];
        assert_eq!(
            nearest("weekly-chnages", known.into_iter()),
            ["repo-steward/weekly-changes"]
        );
        assert_eq!(
            nearest("host-watch/disk-reprot", known.into_iter()),
            ["host-watch/disk-report"]
        );
        assert!(nearest("something-else-entirely", known.into_iter()).is_empty());
        assert_eq!(
            did_you_mean(&["a", "b"]).as_deref(),
            Some("did you mean `a` or `b`?")
        );
        assert_eq!(did_you_mean(&[]), None);
    }
}
