//! What is said of keys that are not known.

use super::Table;
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
];

/// Says which keys of a map are not known, and which of them look like one that is.
pub(crate) fn report_unknown(map: View<'_>, table: &Table, report: &mut Report) {
    match table.refuses {
        Some(code) => refuse_unknown(map, &table.names(), code, report),
        None => report_unknown_beside(map, table, &[], report),
    }
}

/// The same, but for keys that are told already.
pub(crate) fn report_unknown_beside(
    map: View<'_>,
    table: &Table,
    told: &[&str],
    report: &mut Report,
) {
    let known = table.names();
    for (key, value) in map.entries() {
        let is_removed = table.removed.contains(&key);
        if known.contains(&key) || told.contains(&key) || is_removed || key.starts_with("x-") {
            continue;
        }
        let mut restricting = table.keys.iter().filter(|known| known.restricts);
        if let Some(meant) = restricting.find(|known| may_mean(key, known.name)) {
            let meant = meant.name;
            report.error(
                "restriction-malformed",
                value.key_place(),
                format!("`{key}` is not a known key: what it is to restrict is not known"),
                &format!("did you mean `{meant}`?"),
            );
        } else if let Some(suggestion) = suggest(key, &known) {
            report.warning(
                "key-misspelled",
                value.key_place(),
                format!("`{key}` is not a known key and has no effect"),
                &format!("did you mean `{suggestion}`?"),
            );
        } else {
            report.note(
                "unknown-key",
                value.key_place(),
                format!("`{key}` is kept and not evaluated"),
                "",
            );
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

/// Whether a key may be another one that restricts, misspelt or under another name.
fn may_mean(key: &str, restricting: &str) -> bool {
    let of_trust = |text: &str| text.to_lowercase().contains("trust");
    suggest(key, &[restricting]).is_some() || (of_trust(restricting) && of_trust(key))
}

/// The known key that `key` most likely means.
pub(crate) fn suggest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let wanted = plain(key);
    if let Some(same) = known.iter().find(|name| plain(name) == wanted) {
        return Some(same);
    }
    if let Some((_, meant)) = SYNONYMS.iter().find(|(word, _)| plain(word) == wanted) {
        return known.iter().find(|name| *name == meant).copied();
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
