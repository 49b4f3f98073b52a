//! What is said of keys that are not known.

use super::places::{is_same, plain};
use super::{Table, foreign, places};
use crate::examples;
use crate::report::Report;
use crate::view::View;

/// What people write for another key, though it looks nothing like it.
const SYNONYMS: &[(&str, &str)] = &[
    ("command", "run"),
    ("cmd", "run"),
    ("checks", "verification"),
    ("tz", "timezone"),
    ("zone", "timezone"),
    ("expression", "cron"),
    ("secrets", "env"),
    ("environment", "env"),
    ("api_key", "key"),
    ("endpoint", "base_url"),
    ("max_tokens", "max_output_tokens"),
    ("trust", "trusted"),
    ("trusted", "untrusted"),
    ("untrusted", "trusted"),
    ("distrusted", "untrusted"),
    ("parameters", "inputs"),
    ("params", "inputs"),
    ("args", "inputs"),
    ("on_fail", "on_failure"),
    ("on_failed", "on_failure"),
    ("on_error", "on_failure"),
    ("failure", "on_failure"),
    ("mail", "sendmail"),
    ("email", "sendmail"),
    ("url", "webhook"),
];

/// What an unknown key most likely means.
enum Meaning {
    /// A key of the same map.
    Key(String),
    /// A word of other systems, with what to write instead.
    Foreign(String),
    /// A key of another place, with the hint that names it.
    Elsewhere(String),
    Nothing,
}

impl Meaning {
    fn find(key: &str, value: View<'_>, map: View<'_>, table: &Table) -> Self {
        let known = table.names();
        if let Some(same) = spelled_alike(key, &known) {
            return Self::Key(same.to_owned());
        }
        if let Some(remedy) = foreign::remedy(key, value, map, table) {
            return Self::Foreign(remedy);
        }
        if let Some(same) = synonym(key, &known).or_else(|| nearest(key, &known)) {
            return Self::Key(same.to_owned());
        }
        if let Some(hint) = elsewhere(key, value, map, table) {
            return Self::Elsewhere(hint);
        }
        let words: Vec<&str> = SYNONYMS.iter().map(|(word, _)| *word).collect();
        match nearest(key, &words).and_then(|word| synonym(word, &known)) {
            Some(near) => Self::Key(near.to_owned()),
            None => Self::Nothing,
        }
    }
}

/// The hint that names the places of a key that is known elsewhere. Synonyms count at the levels of files only.
fn elsewhere(key: &str, value: View<'_>, map: View<'_>, table: &Table) -> Option<String> {
    places::elsewhere((key, value), map, table, |names, is_level| {
        spelled_alike(key, names).or_else(|| synonym(key, names).filter(|_| is_level))
    })
}

/// Reports the keys of a map that have no effect: an error if a known key is meant, otherwise a note.
pub(crate) fn report_unknown(map: View<'_>, table: &Table, report: &mut Report) {
    match table.refuses {
        Some(code) => refuse(map, &table.names(), Some(table), code, report),
        None => report_without_effect(map, table, report),
    }
}

fn report_without_effect(map: View<'_>, table: &Table, report: &mut Report) {
    for (key, value) in map.entries() {
        if table.has(key) || table.removed.contains(&key) || key.starts_with("x-") {
            continue;
        }
        let place = value.key_place();
        match Meaning::find(key, value, map, table) {
            Meaning::Key(meant) => report.error(
                "key-misspelled",
                place,
                format!("`{key}` is not a known key"),
                &examples::certain(&meant, value.data()).map_or_else(
                    || format!("did you mean `{meant}`?"),
                    |form| format!("write `{form}`"),
                ),
            ),
            Meaning::Foreign(remedy) => report.error(
                "key-foreign",
                place,
                format!("`{key}` is not a key of workerctl"),
                &remedy,
            ),
            Meaning::Elsewhere(hint) => report.error(
                "key-misplaced",
                place,
                format!("`{key}` has no effect here"),
                &hint,
            ),
            Meaning::Nothing => report.note(
                "unknown-key",
                place,
                format!("`{key}` has no effect: no such key is known here"),
                "",
            ),
        }
    }
}

/// Refuses keys that are not known, where one that is misspelt must not be without effect.
pub(crate) fn refuse_unknown(map: View<'_>, known: &[&str], code: &str, report: &mut Report) {
    refuse(map, known, None, code, report);
}

fn refuse(map: View<'_>, known: &[&str], table: Option<&Table>, code: &str, report: &mut Report) {
    for (key, value) in map.entries().filter(|(key, _)| !known.contains(key)) {
        let meant = suggest(key, known).map(|meant| format!("did you mean `{meant}`?"));
        let hint = meant.unwrap_or_else(|| {
            let known = format!("known are `{}`", known.join("`, `"));
            let foreign = table.and_then(|table| foreign::remedy(key, value, map, table));
            let elsewhere = || table.and_then(|table| elsewhere(key, value, map, table));
            let hint = foreign.or_else(elsewhere);
            hint.map_or(known.clone(), |hint| format!("{known}; {hint}"))
        });
        let message = format!("`{}` is not a known key", key.escape_debug());
        report.error(code, value.key_place(), message, &hint);
    }
}

/// The known key that `key` most likely means.
pub(crate) fn suggest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    spelled_alike(key, known)
        .or_else(|| synonym(key, known))
        .or_else(|| nearest(key, known))
}

/// Returns true if a map has a key that is written for `key`, which it lacks: then that key is reported, and not that
/// `key` is missing.
pub(crate) fn has_near_miss(map: View<'_>, key: &str) -> bool {
    map.entries()
        .any(|(written, _)| suggest(written, &[key]).is_some())
}

/// The key that differs only in case, `-`, `_` or spaces.
fn spelled_alike<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    known.iter().find(|name| is_same(name, key)).copied()
}

fn synonym<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let mut meant = SYNONYMS.iter().filter(|(word, _)| is_same(word, key));
    meant.find_map(|(_, meant)| known.iter().find(|name| *name == meant).copied())
}

/// The key that is at most one or two typing errors away, or differs only in the `s` of its plural.
fn nearest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let wanted = plain(key);
    let singular = wanted.strip_suffix('s').filter(|word| word.len() >= 3);
    let plural = known.iter().find(|name| {
        let is_singular = singular.is_some_and(|word| is_same(word, name));
        is_singular
            || name
                .strip_suffix('s')
                .is_some_and(|name| is_same(name, &wanted))
    });
    if let Some(name) = plural {
        return Some(name);
    }
    // Of a word of three letters one that is missing is a typing error, and another one is another word.
    let is_short = |name: &&&str| {
        wanted.len() == 3
            && name.len() == 4
            && name.get(..1) == wanted.get(..1)
            && strsim::osa_distance(&wanted, name) == 1
    };
    if let Some(name) = known.iter().find(is_short) {
        return Some(name);
    }
    known
        .iter()
        .filter(|name| name.len() >= 4 && wanted.len() >= 4)
        .map(|name| (strsim::osa_distance(&wanted, &plain(name)), *name))
        .filter(|(distance, name)| *distance <= if name.len() >= 7 { 2 } else { 1 })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{SCHEDULE, SKILL};

    #[test]
    fn synonyms_stand_for_keys_that_are_declared() {
        let tables = crate::tests::pages::tables();
        for (word, key) in SYNONYMS {
            let known = tables.values().any(|table| table.has(key));
            assert!(known, "{word} stands for {key}");
        }
    }

    #[test]
    fn near_misses_are_recognised_and_strangers_are_not() {
        let table = [
            ("descriptipn", Some("description")),
            ("Name", Some("name")),
            ("allowed_tools", Some("allowed-tools")),
            ("user-invokable", Some("user-invocable")),
            ("mutatng", Some("mutating")),
            ("command", Some("run")),
            ("persona", None),
            ("rum", None),
            ("psh", Some("push")),
            ("envs", Some("env")),
            ("colour", None),
        ];
        for (key, expected) in table {
            assert_eq!(suggest(key, &SKILL.names()), expected, "{key}");
        }
        for key in ["tz", "zone"] {
            assert_eq!(suggest(key, &SCHEDULE.names()), Some("timezone"));
        }
    }
}
