//! Our table in a TOML file of somebody else's: set where it belongs, and nothing else changes.

use serde_json::{Value, json};
use toml_edit::{DocumentMut, Item};

use super::json_file::Change;

/// Our table.
pub(super) const TABLE: &str =
    "[mcp_servers.workerctl]\ncommand = \"workerctl\"\nargs = [\"mcp\"]\n";

/// The table of all servers, and ours in it.
const PATH: [&str; 2] = ["mcp_servers", "workerctl"];

/// What our table says.
pub(super) fn entry() -> Value {
    json!({"command": "workerctl", "args": ["mcp"]})
}

/// The text with our table, in place of another one too.
pub(super) fn with_table(text: &str) -> Change {
    let mut document = match text.parse::<DocumentMut>() {
        Ok(document) => document,
        Err(error) => return broken(text, &error),
    };
    let Some(all) = document.get_mut(PATH[0]) else {
        return appended(text);
    };
    let is_inline = all.is_value();
    let Some(servers) = all.as_table_like_mut() else {
        return Change::Unfit {
            why: "`mcp_servers` in it is no table".to_owned(),
            hint: "make it a table, or remove it, then install again".to_owned(),
        };
    };
    let Some(present) = servers.get_mut(PATH[1]) else {
        if !is_inline {
            return appended(text);
        }
        servers.insert(PATH[1], ours(true));
        return written(&document, None);
    };
    if present.is_array_of_tables() {
        return Change::Unfit {
            why: "`mcp_servers.workerctl` in it is a list".to_owned(),
            hint: "remove it, then install again".to_owned(),
        };
    }
    let before = value(present);
    if before == entry() {
        return Change::Present;
    }
    let is_value = present.is_value();
    replace(present, is_value);
    written(&document, Some(before))
}

fn broken(text: &str, error: &toml_edit::TomlError) -> Change {
    let at = error.span().map_or(text.len(), |span| span.start);
    let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
    Change::Unfit {
        why: format!("line {line} is no TOML: {}", error.message()),
        hint: format!("repair line {line}, then install again"),
    }
}

/// Behind all that is there, no byte of which changes.
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

/// Puts ours in the place of the present one; what stands around it stays.
fn replace(present: &mut Item, is_inline: bool) {
    let mut fresh = ours(is_inline);
    if let (Some(fresh), Some(before)) = (fresh.as_table_mut(), present.as_table()) {
        *fresh.decor_mut() = before.decor().clone();
        if let Some(position) = before.position() {
            fresh.set_position(position);
        }
    }
    if let (Some(fresh), Some(before)) = (fresh.as_value_mut(), present.as_value()) {
        *fresh.decor_mut() = before.decor().clone();
    }
    *present = fresh;
}

fn ours(is_inline: bool) -> Item {
    let mut table = toml_edit::Table::new();
    table.insert("command", toml_edit::value("workerctl"));
    table.insert(
        "args",
        toml_edit::value(toml_edit::Array::from_iter(["mcp"])),
    );
    if is_inline {
        toml_edit::value(table.into_inline_table())
    } else {
        Item::Table(table)
    }
}

fn written(document: &DocumentMut, replaced: Option<Value>) -> Change {
    Change::Written {
        text: document.to_string(),
        replaced,
    }
}

/// An item as it is told to people and compared.
fn value(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        let members = table
            .iter()
            .map(|(key, item)| (key.to_owned(), value(item)));
        return Value::Object(members.collect());
    }
    if let Some(tables) = item.as_array_of_tables() {
        let each = tables
            .iter()
            .map(|table| value(&Item::Table(table.clone())));
        return Value::Array(each.collect());
    }
    if let Some(items) = item.as_array() {
        let each = items.iter().map(|one| value(&Item::Value(one.clone())));
        return Value::Array(each.collect());
    }
    match item.as_value() {
        Some(toml_edit::Value::String(text)) => Value::from(text.value().as_str()),
        Some(toml_edit::Value::Integer(number)) => Value::from(*number.value()),
        Some(toml_edit::Value::Float(number)) => Value::from(*number.value()),
        Some(toml_edit::Value::Boolean(flag)) => Value::from(*flag.value()),
        Some(other) => Value::from(other.to_string().trim()),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str) -> String {
        match with_table(text) {
            Change::Written { text, .. } => text,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_table_stands_behind_all_that_is_there() {
        assert_eq!(changed(""), TABLE);
        for text in [
            "model = \"x\"",
            "# [mcp_servers.workerctl]\n",
            "[mcp_servers.other]\ncommand = \"workerctl\"\n",
            "[mcp_servers.workerctl2]\n",
            "[mcp_servers]\n",
            "notes = \"\"\"\n[mcp_servers.workerctl]\n\"\"\"\n",
        ] {
            let all = changed(text);
            let ends = all.ends_with(&format!("\n\n{TABLE}"));
            assert!(all.starts_with(text) && ends, "{all}");
            assert!(matches!(with_table(&all), Change::Present), "{all}");
        }
        let inline = changed("mcp_servers = {}\nx = 1\n");
        assert!(
            inline.ends_with("x = 1\n") && matches!(with_table(&inline), Change::Present),
            "{inline}"
        );
    }

    #[test]
    fn one_that_is_there_stays() {
        for text in [
            TABLE.to_owned(),
            changed("model = \"x\"\n"),
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
        for (text, kept) in [
            (
                "# mine\nmodel = \"x\"\n\n# of it\n[mcp_servers.workerctl]\ncommand = \"workerctl\"\nargs = [\n  \"-C\", \"/a\",\n  \"mcp\",\n]\n# next\n[mcp_servers.b]\ncommand = \"b\"\n",
                [
                    "# mine\nmodel = \"x\"\n\n# of it\n[mcp_servers.workerctl]\n",
                    "# next\n[mcp_servers.b]\ncommand = \"b\"\n",
                ],
            ),
            (
                "[mcp_servers.workerctl]\ncommand = \"w\"\n\n[mcp_servers.b]\n[mcp_servers.workerctl.env]\nA = \"b\"\n[z]\n",
                [
                    "[mcp_servers.workerctl]\ncommand = \"workerctl\"\n",
                    "\n[mcp_servers.b]\n[z]\n",
                ],
            ),
            (
                "[mcp_servers]\n\"workerctl\" = {command = \"a\"} # x\nb = {}\n",
                ["[mcp_servers]\n\"workerctl\" = ", " # x\nb = {}\n"],
            ),
            (
                "a = 1\nmcp_servers.workerctl.command = \"a\"\n[z]\n",
                ["a = 1\n", "[z]\n"],
            ),
        ] {
            match with_table(text) {
                Change::Written { text, replaced } => {
                    assert!(kept.iter().all(|part| text.contains(part)), "{text}");
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
            ("[[mcp_servers]]\n", "is no table", "make it a table"),
            ("mcp_servers = 1\n", "is no table", "make it a table"),
            ("[[mcp_servers.workerctl]]\n", "is a list", "remove it"),
            ("x = 1\nbad = [\n", "is no TOML", "repair line"),
            ("x = 1\nbad = \n", "line 2 is no TOML", "repair line 2"),
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
