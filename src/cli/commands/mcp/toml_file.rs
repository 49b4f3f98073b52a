//! Our table in a TOML file of somebody else's: set where it belongs, and every other byte stays.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::json_file::Change;
use super::toml_reader::{self, Item, What, items, line_of};

/// Our table.
pub(super) const TABLE: &str =
    "[mcp_servers.workerctl]\ncommand = \"workerctl\"\nargs = [\"mcp\"]\n";

/// The same within the table of all servers.
const INLINE: &str = "{ command = \"workerctl\", args = [\"mcp\"] }";

/// The path of our table.
const PATH: [&str; 2] = ["mcp_servers", "workerctl"];

/// What our table says.
pub(super) fn entry() -> Value {
    json!({"command": "workerctl", "args": ["mcp"]})
}

/// The text with our table, in place of another one too.
pub(super) fn with_table(text: &str) -> Change {
    let found = match items(text) {
        Ok(found) => found,
        Err(fault) => {
            return Change::Unfit {
                why: format!("line {} is no TOML: {}", fault.line, fault.why),
                hint: format!("repair line {}, then install again", fault.line),
            };
        }
    };
    let line = |item: &Item| line_of(text, item.range.start);
    // What holds all servers and is no table takes none behind it.
    let closed = found.iter().find(|item| {
        let all = item.path == PATH[..1];
        all && item.what != What::Table
    });
    if let Some(closed) = closed {
        return whole(closed, line(closed));
    }
    let own: Vec<&Item> = found.iter().filter(|item| is_ours(item)).collect();
    let (Some(first), Some(present)) = (own.first(), value_of(&own)) else {
        return match own.first() {
            Some(odd) => Change::Unfit {
                why: format!("`mcp_servers.workerctl` in line {} is a list", line(odd)),
                hint: format!("remove it from line {} on, then install again", line(odd)),
            },
            None => appended(text),
        };
    };
    if present == entry() {
        return Change::Present;
    }
    let replaced = replaced(text, &found, &own).filter(|fresh| is_safe(fresh, &found));
    match replaced {
        Some(text) => Change::Written {
            text,
            replaced: Some(present),
        },
        None => Change::Unfit {
            why: format!("line {} has another entry: {present}", line(first)),
            hint: format!(
                "edit its keys so that they say `command = \"workerctl\"` and `args = [\"mcp\"]`, {}",
                lines(&own, text)
            ),
        },
    }
}

fn is_ours(item: &Item) -> bool {
    item.path.len() >= PATH.len() && item.path.iter().zip(PATH).all(|(own, ours)| own == ours)
}

/// Where all servers stand in one value.
fn whole(closed: &Item, line: usize) -> Change {
    let servers = match &closed.what {
        What::Value(Value::Object(servers)) => servers,
        What::Value(_) | What::OneOfSeveral | What::Table => {
            return Change::Unfit {
                why: format!("`mcp_servers` in line {line} is no table"),
                hint: format!("make it a table in line {line}, or remove it, then install again"),
            };
        }
    };
    match servers.get(PATH[1]) {
        Some(present) if *present == entry() => Change::Present,
        Some(present) => Change::Unfit {
            why: format!("line {line} has another entry: {present}"),
            hint: format!("write `workerctl = {INLINE}` in its place"),
        },
        None => Change::Unfit {
            why: format!("`mcp_servers` in line {line} has all servers in one value"),
            hint: format!("add `workerctl = {INLINE}` between its braces"),
        },
    }
}

/// What ours come to; `None`: they are no table, or none are there.
fn value_of(own: &[&Item]) -> Option<Value> {
    let mut present = Map::new();
    for item in own {
        let path = item.path.get(PATH.len()..)?;
        match (&item.what, path) {
            (What::OneOfSeveral, []) => return None,
            // Several servers' tables of one name are told as the last of them.
            (What::Table | What::OneOfSeveral, _) => {}
            (What::Value(value), []) => return Some(value.clone()),
            (What::Value(value), path) => {
                toml_reader::set(&mut present, path, value.clone());
            }
        }
    }
    (!own.is_empty()).then_some(Value::Object(present))
}

fn appended(text: &str) -> Change {
    let gap = match text {
        "" => "",
        _ if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    Change::Written {
        text: format!("{text}{gap}{TABLE}"),
        replaced: None,
    }
}

/// The text with our table where ours stood: as tables, or as one value.
fn replaced(text: &str, found: &[Item], own: &[&Item]) -> Option<String> {
    if let [only] = own
        && matches!(only.what, What::Value(_))
        && only.path.len() == PATH.len()
    {
        let key = text.get(only.range.clone())?.split('=').next()?.trim_end();
        let fresh = format!("{key} = {INLINE}");
        return Some(spliced(text, &[(only.range.clone(), fresh)]));
    }
    // Each header of ours with the keys below it.
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut within = false;
    for item in found {
        if !matches!(item.what, What::Value(_)) {
            within = is_ours(item);
            if within {
                parts.push(item.range.clone());
            }
        } else if let Some(part) = parts.last_mut().filter(|_| within) {
            part.end = item.range.end;
        } else if is_ours(item) {
            return None;
        }
    }
    let table = TABLE.trim_end();
    let fresh: Vec<(Range<usize>, String)> = parts
        .into_iter()
        .enumerate()
        .map(|(nth, part)| {
            let fresh = if nth == 0 { table } else { "" };
            (part, fresh.to_owned())
        })
        .collect();
    Some(spliced(text, &fresh))
}

fn spliced(text: &str, parts: &[(Range<usize>, String)]) -> String {
    let mut fresh = String::new();
    let mut from = 0;
    for (range, part) in parts {
        fresh.push_str(text.get(from..range.start).unwrap_or_default());
        fresh.push_str(part);
        from = range.end;
        // Where nothing takes its place its line goes too.
        if part.is_empty() && text.get(from..).is_some_and(|rest| rest.starts_with('\n')) {
            from += 1;
        }
    }
    fresh.push_str(text.get(from..).unwrap_or_default());
    fresh
}

/// Whether nothing but our entry is another one now.
fn is_safe(fresh: &str, before: &[Item]) -> bool {
    let Ok(after) = items(fresh) else {
        return false;
    };
    let own: Vec<&Item> = after.iter().filter(|item| is_ours(item)).collect();
    let others = |all: &[Item]| -> Vec<(Vec<String>, What)> {
        let others = all.iter().filter(|item| !is_ours(item));
        others
            .map(|item| (item.path.clone(), item.what.clone()))
            .collect()
    };
    value_of(&own) == Some(entry()) && others(before) == others(&after)
}

/// The lines that ours stand in.
fn lines(own: &[&Item], text: &str) -> String {
    let numbers: Vec<String> = own
        .iter()
        .map(|item| line_of(text, item.range.start).to_string())
        .collect();
    let noun = if numbers.len() == 1 { "line" } else { "lines" };
    format!("in {noun} {}", numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        match with_table(text) {
            Change::Written { text, .. } => text,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_table_stands_behind_all_that_is_there() {
        assert_eq!(written(""), TABLE);
        for text in [
            "model = \"x\"",
            "# [mcp_servers.workerctl]\n",
            "[mcp_servers.other]\ncommand = \"workerctl\"\n",
            "[mcp_servers.workerctl2]\n",
            "[mcp_servers]\n",
            "notes = \"\"\"\n[mcp_servers.workerctl]\n\"\"\"\n",
        ] {
            let all = written(text);
            assert!(
                all.starts_with(text) && all.ends_with(&format!("\n\n{TABLE}")),
                "{all}"
            );
        }
    }

    #[test]
    fn one_that_is_there_stays() {
        for text in [
            TABLE.to_owned(),
            written("model = \"x\"\n"),
            format!("{TABLE}\n[mcp_servers.other]\ncommand = \"a\"\n"),
            "[ mcp_servers . \"workerctl\" ] # ours\ncommand='workerctl'\n\nargs=[ \"mcp\" ]\n"
                .to_owned(),
            "mcp_servers = {workerctl = {command = \"workerctl\", args = [\"mcp\",]}}\n".to_owned(),
            "mcp_servers.workerctl.command = \"workerctl\"\nmcp_servers.workerctl.args = [\"mcp\"]\n"
                .to_owned(),
        ] {
            assert!(matches!(with_table(&text), Change::Present), "{text}");
        }
    }

    #[test]
    fn another_one_is_replaced_and_nothing_else() {
        for (text, expected) in [
            (
                "# mine\nmodel = \"x\"\n\n[mcp_servers.workerctl] # old\ncommand = \"workerctl\"\n# of it\nargs = [\n  \"-C\", \"/a\",\n  \"mcp\",\n] # end\n# next\n[mcp_servers.b]\ncommand = \"b\"\n",
                format!(
                    "# mine\nmodel = \"x\"\n\n{} # end\n# next\n[mcp_servers.b]\ncommand = \"b\"\n",
                    TABLE.trim_end()
                ),
            ),
            (
                "[mcp_servers.workerctl]\ncommand = \"w\"\n\n[mcp_servers.b]\n[mcp_servers.workerctl.env]\nA = \"b\"\n[z]\n",
                format!("{TABLE}\n[mcp_servers.b]\n[z]\n"),
            ),
            (
                "[mcp_servers]\n\"workerctl\" = {command = \"a\"} # x\nb = {}\n",
                format!("[mcp_servers]\n\"workerctl\" = {INLINE} # x\nb = {{}}\n"),
            ),
            ("[mcp_servers.workerctl.env]\nA = \"b\"\n", TABLE.to_owned()),
        ] {
            match with_table(text) {
                Change::Written { text, replaced } => {
                    assert_eq!(text, expected);
                    assert!(replaced.is_some(), "{text}");
                    assert!(matches!(with_table(&text), Change::Present), "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_to_be_done_by_hand_is_told() {
        for (text, why, hint) in [
            (
                "a = 1\nmcp_servers.workerctl.command = \"a\"\n",
                "line 2 has another entry: {\"command\":\"a\"}",
                "in line 2",
            ),
            (
                "mcp_servers = {}\n",
                "line 1 has all servers in one value",
                "between its braces",
            ),
            (
                "mcp_servers = {workerctl = {command = \"a\"}}\n",
                "line 1 has another entry: {\"command\":\"a\"}",
                "in its place",
            ),
            ("[[mcp_servers]]\n", "in line 1 is no table", "line 1"),
            ("mcp_servers = 1\n", "in line 1 is no table", "line 1"),
            ("[[mcp_servers.workerctl]]\n", "line 1 is a list", "line 1"),
            ("x = 1\nbad = [\n", "line 2 is no TOML", "repair line 2"),
        ] {
            match with_table(text) {
                Change::Unfit {
                    why: told,
                    hint: remedy,
                } => {
                    assert!(told.contains(why), "{text}: {told}");
                    assert!(remedy.contains(hint), "{text}: {remedy}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
