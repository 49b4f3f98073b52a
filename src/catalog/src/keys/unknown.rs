//! What is said of keys that are not known.

use super::{CHECK, CONFIG, EXECUTION, SCHEDULE, SKILL, Table, WORKER_FILE};
use crate::report::Report;
use crate::view::View;

/// What people write for another key, though it looks nothing like it.
const SYNONYMS: &[(&str, &str)] = &[
    ("command", "run"),
    ("cmd", "run"),
    ("inputs", "interface"),
    ("outputs", "interface"),
    ("checks", "verification"),
    ("max_retries", "retry"),
    ("retries", "retry"),
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
];

/// Places in definitions: a key of one of them that is written at another is an error.
const LEVELS: [(&Table, &str); 6] = [
    (&SKILL, "in a skill"),
    (&WORKER_FILE, "at the top level of worker.yaml"),
    (&EXECUTION, "in `execution` of worker.yaml"),
    (&SCHEDULE, "in a schedule"),
    (&CHECK, "in a check of `verification`"),
    (&CONFIG, "in workerctl.yaml"),
];

/// Keys that are common in files of other programs too. Elsewhere they say nothing about a place.
pub(crate) const COMMON: [&str; 19] = [
    "id",
    "name",
    "type",
    "version",
    "description",
    "skill",
    "skills",
    "file",
    "files",
    "path",
    "mode",
    "check",
    "command",
    "start",
    "end",
    "when",
    "at",
    "inputs",
    "mcp",
];

/// Words of other systems for a schedule that is off, or has an end, with the key and value to write instead.
const SWITCHES: [(&str, &str); 10] = [
    ("disabled", "enabled: false"),
    ("disable", "enabled: false"),
    ("paused", "enabled: false"),
    ("pause", "enabled: false"),
    ("suspend", "enabled: false"),
    ("suspended", "enabled: false"),
    ("active", "enabled: false"),
    ("enable", "enabled: false"),
    ("until", "end"),
    ("end_date", "end"),
];

/// What an unknown key most likely means.
enum Meaning {
    /// A key of the same map.
    Key(String),
    /// A key of another place.
    Elsewhere(&'static str, &'static str),
    Nothing,
}

impl Meaning {
    fn find(key: &str, table: &Table) -> Self {
        let known = table.names();
        if table.has("enabled")
            && let Some((_, meant)) = SWITCHES.iter().find(|(word, _)| *word == key)
        {
            return Self::Key((*meant).to_owned());
        }
        if let Some(same) = spelled_alike(key, &known).or_else(|| synonym(key, &known)) {
            return Self::Key(same.to_owned());
        }
        let levels = LEVELS.iter().filter(|(level, _)| level.name != table.name);
        for (level, place) in levels {
            let names: Vec<&str> = level.evaluated().collect();
            let same = spelled_alike(key, &names).or_else(|| synonym(key, &names));
            if let Some(same) = same.filter(|name| !COMMON.contains(name)) {
                return Self::Elsewhere(same, place);
            }
        }
        let words: Vec<&str> = SYNONYMS.iter().map(|(word, _)| *word).collect();
        let misspelled = || nearest(key, &words).and_then(|word| synonym(word, &known));
        match nearest(key, &known).or_else(misspelled) {
            Some(near) => Self::Key(near.to_owned()),
            None => Self::Nothing,
        }
    }
}

/// Reports the keys of a map that have no effect: an error if a known key is meant, otherwise a note.
pub(crate) fn report_unknown(map: View<'_>, table: &Table, report: &mut Report) {
    match table.refuses {
        Some(code) => refuse_unknown(map, &table.names(), code, report),
        None => report_without_effect(map, table, report),
    }
}

fn report_without_effect(map: View<'_>, table: &Table, report: &mut Report) {
    for (key, value) in map.entries() {
        if table.has(key) || table.removed.contains(&key) || key.starts_with("x-") {
            continue;
        }
        let place = value.key_place();
        match Meaning::find(key, table) {
            Meaning::Key(meant) => report.error(
                "key-misspelled",
                place,
                format!("`{key}` is not a known key"),
                &format!("did you mean `{meant}`?"),
            ),
            Meaning::Elsewhere(meant, level) => report.error(
                "key-misplaced",
                place,
                format!("`{key}` has no effect here"),
                &format!("`{meant}` belongs {level}"),
            ),
            Meaning::Nothing => report.note(
                "unknown-key",
                place,
                format!("`{key}` is kept and not evaluated"),
                "",
            ),
        }
    }
}

/// Refuses keys that are not known, where one that is misspelt must not be without effect.
pub(crate) fn refuse_unknown(map: View<'_>, known: &[&str], code: &str, report: &mut Report) {
    for (key, value) in map.entries().filter(|(key, _)| !known.contains(key)) {
        let hint = suggest(key, known).map_or_else(
            || format!("known are `{}`", known.join("`, `")),
            |meant| format!("did you mean `{meant}`?"),
        );
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

/// The key that differs only in case, `-`, `_` or spaces.
fn spelled_alike<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let wanted = plain(key);
    known.iter().find(|name| plain(name) == wanted).copied()
}

fn synonym<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let wanted = plain(key);
    let mut meant = SYNONYMS.iter().filter(|(word, _)| plain(word) == wanted);
    meant.find_map(|(_, meant)| known.iter().find(|name| *name == meant).copied())
}

/// The key that is at most one or two typing errors away.
fn nearest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let wanted = plain(key);
    known
        .iter()
        .filter(|name| name.len() >= 4 && wanted.len() >= 4)
        .map(|name| (strsim::osa_distance(&wanted, &plain(name)), *name))
        .filter(|(distance, name)| *distance <= if name.len() >= 7 { 2 } else { 1 })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

fn plain(text: &str) -> String {
    text.to_lowercase().replace(['-', '_', ' '], "")
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
