//! Lists of tools as people write them: between commas, between blanks, or as a list.

use serde_json::Value;

use crate::model::tool_names::{ToolName, known_names, similar_tool, tool_of_item};
use crate::report::Report;
use crate::tree::Data;
use crate::view::View;

/// Tools that one skill may name.
const TOOLS_MAX: usize = 1_000;

/// Reads the value of a key that restricts which tools there are. A form that cannot be understood is an
/// error: a restriction is never dropped.
pub(crate) fn read(view: View<'_>, key: &str, report: &mut Report) -> Option<Vec<String>> {
    let tools = match view.data() {
        Data::Text(text) => split(text),
        Data::List(_) => view
            .items()
            .map(|item| match item.data() {
                Data::Text(text) if !text.trim().is_empty() && split(text).is_some() => {
                    Some(text.trim().to_owned())
                }
                _ => None,
            })
            .collect(),
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::Map(_) => None,
    };
    let tools = tools.filter(|tools| tools.len() <= TOOLS_MAX);
    if tools.is_none() {
        report.error(
            "restriction-malformed",
            view.place(),
            format!("`{key}` must be a text or a list of texts that names tools"),
            &format!("write `{key}: [Read, \"Bash(git add:*)\"]`"),
        );
    }
    tools
}

/// Reads the value of a key that says which tools alone are allowed. What is empty, and a map that cannot be
/// understood, allows none: other programs read such a skill, and none may have more tools for it here.
pub(crate) fn read_allowed(view: View<'_>, key: &str, report: &mut Report) -> Option<Vec<String>> {
    match view.data() {
        Data::Null => {}
        Data::Text(text) if text.trim().is_empty() => {}
        Data::Map(_) => return Some(of_map(view, key, report)),
        _ => return read(view, key, report),
    }
    report.warning(
        "tools-empty",
        view.place(),
        format!("`{key}` is empty: no tool is allowed"),
        &format!("remove the line to allow all tools, or write `{key}: [Read, Grep]`; `{key}: []` allows none"),
    );
    Some(Vec::new())
}

fn of_map(view: View<'_>, key: &str, report: &mut Report) -> Vec<String> {
    let understood = mapped(view).filter(|tools| tools.len() <= TOOLS_MAX);
    let (message, hint) = match &understood {
        Some(tools) => {
            let line = format!("{key}: {}", Value::from(tools.clone()));
            (
                format!("`{key}` is a map and is read as a list"),
                format!("write `{line}`"),
            )
        }
        None => (
            format!("`{key}` is a map that cannot be understood: no tool is allowed"),
            format!("write a list, such as `{key}: [Read, \"Bash(git add:*)\"]`"),
        ),
    };
    report.warning("tools-as-map", view.place(), message, &hint);
    understood.unwrap_or_default()
}

/// The tools of a map such as `{Read: true, Write: false, Bash: ["git add:*"]}`; `None` where a list could allow more.
fn mapped(view: View<'_>) -> Option<Vec<String>> {
    let mut tools = Vec::new();
    for (name, value) in view.entries() {
        // What only a part of a tool is forbidden for, or tools of a server, a list cannot say.
        let plain = name
            .chars()
            .all(|c| c.is_alphanumeric() || "_-".contains(c));
        if !plain || name.starts_with("mcp__") {
            return None;
        }
        match value.data() {
            Data::Bool(true) => tools.push(name.to_owned()),
            Data::Bool(false) => {}
            Data::List(_) => {
                for item in value.items() {
                    let Data::Text(text) = item.data() else {
                        return None;
                    };
                    tools.push(format!("{name}({})", text.trim()));
                }
            }
            _ => return None,
        }
    }
    let whole = |tool: &String| {
        !tool.ends_with("()") && split(tool).is_some_and(|all| all == [tool.as_str()])
    };
    tools.iter().all(whole).then_some(tools)
}

/// Rejects items that name no tool. What only other programs have is reported, because it allows nothing here.
///
/// With tool sets, a name that is not known may be one of theirs.
pub(crate) fn check_items(
    view: View<'_>,
    key: &str,
    (items, has_sets): (&[String], bool),
    report: &mut Report,
) {
    let mut elsewhere = Vec::new();
    for item in items {
        let refused = match tool_of_item(item) {
            Err(why) => why,
            Ok(ToolName::Unknown) if !has_sets => "there is no tool of this name",
            Ok(ToolName::Elsewhere) => {
                elsewhere.push(format!("`{item}`"));
                continue;
            }
            Ok(ToolName::BuiltIn(_) | ToolName::Server | ToolName::Unknown) => continue,
        };
        report.error(
            "restriction-malformed",
            view.place(),
            format!("`{item}` in `{key}` is not understood: {refused}"),
            &similar_tool(item).map_or_else(
                || {
                    format!(
                        "write {}, `mcp__server__tool`, or their names in Claude Code, Codex, Gemini or opencode",
                        known_names()
                    )
                },
                |near| format!("did you mean `{near}`?"),
            ),
        );
    }
    if key != "disallowed-tools" && !elsewhere.is_empty() {
        report.note(
            "tools-elsewhere",
            view.place(),
            format!(
                "{} in `{key}` exist in other programs only: they allow nothing here",
                elsewhere.join(", ")
            ),
            "remove them if the skill works without them; otherwise it cannot be used here",
        );
    }
}

/// Divides at commas and blanks that stand outside of brackets; `None` when brackets do not close.
fn split(text: &str) -> Option<Vec<String>> {
    let mut tools = Vec::new();
    let mut current = String::new();
    let mut depth = 0_usize;
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 && (character == ',' || character.is_whitespace()) {
            take(&mut current, &mut tools);
        } else {
            current.push(character);
        }
    }
    take(&mut current, &mut tools);
    (depth == 0).then_some(tools)
}

/// The names in a value; what is neither a text nor a list names itself, so that it restricts all the same.
pub(crate) fn names(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => split(text).unwrap_or_else(|| vec![text.clone()]),
        Value::Array(items) => items
            .iter()
            .map(|item| {
                item.as_str()
                    .map_or_else(|| item.to_string(), str::to_owned)
            })
            .collect(),
        other => vec![other.to_string()],
    }
}

fn take(current: &mut String, tools: &mut Vec<String>) {
    if !current.is_empty() {
        tools.push(std::mem::take(current));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_blanks_divide_outside_of_brackets_only() {
        let table: [(&str, Option<&[&str]>); 6] = [
            ("Read, Grep", Some(&["Read", "Grep"])),
            ("Read Grep", Some(&["Read", "Grep"])),
            (
                "Bash(git add:*, -A), Read",
                Some(&["Bash(git add:*, -A)", "Read"]),
            ),
            ("", Some(&[])),
            ("Bash(git", None),
            ("Read)", None),
        ];
        for (text, expected) in table {
            let expected = expected.map(|tools| tools.iter().map(|t| (*t).to_owned()).collect());
            assert_eq!(split(text), expected, "{text}");
        }
    }
}
