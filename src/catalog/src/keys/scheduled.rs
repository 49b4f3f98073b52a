//! How a schedule is written into a definition that may have one.

use super::{Table, WORKER_FILE};
use crate::examples;
use crate::tree::Data;
use crate::view::View;

/// Expression of a schedule in examples.
const EXPRESSION: &str = "\"0 9 * * *\"";

/// The hint that puts `policy`, such as `timezone: Europe/Berlin`, which stands in `map` as `key`, into the schedule.
pub(super) fn with(key: &str, policy: &str, map: View<'_>) -> String {
    let mut entries = map.entries();
    let Some((name, schedule)) = entries.find(|(name, _)| matches!(*name, "schedule" | "cron"))
    else {
        return format!("write `schedule: {{cron: {EXPRESSION}, {policy}}}`");
    };
    let own = match schedule.data() {
        Data::Text(_) => schedule.scalar_text(),
        _ => None,
    };
    match (own, schedule.data()) {
        (Some(own), _) if !own.contains(['"', '\n']) => {
            format!(
                "write `schedule: {{cron: \"{own}\", {policy}}}` instead of `{name}` and `{key}`"
            )
        }
        (_, Data::List(_)) => format!("move it to an entry of `{name}`: `{policy}`"),
        _ => format!("move it to `{name}`: `{policy}`"),
    }
}

/// A form with a schedule; at the top level of a worker with several skills it names the first.
pub(super) fn naming(form: &str, map: View<'_>, table: &Table) -> String {
    let begin = "`schedule: ";
    let skills = map.entries().find(|(name, _)| *name == "skills");
    let skills: Vec<_> = skills
        .into_iter()
        .flat_map(|(_, skills)| skills.items())
        .collect();
    let first = skills.first().and_then(|skill| {
        let (_, id) = skill.entries().find(|(name, _)| *name == "id")?;
        examples::shown(id.data())
    });
    let (Some(first), Some(rest)) = (first, form.strip_prefix(begin)) else {
        return form.to_owned();
    };
    if table.name != WORKER_FILE.name || skills.len() < 2 {
        return form.to_owned();
    }
    match rest.strip_prefix('{') {
        Some(rest) => format!("{begin}{{skill: {first}, {rest}"),
        None => rest
            .split_once('`')
            .map_or(form.to_owned(), |(expression, rest)| {
                format!("{begin}{{skill: {first}, cron: {expression}}}`{rest}")
            }),
    }
}
