//! `toolsets` of workerctl.yaml: what models may call.

use super::amounts::is_name;
use super::env::{program, variable_name};
use super::input_schema;
use super::keys::{CONFIG_TOOL, CONFIG_TOOL_MCP, CONFIG_TOOLSET, refuse_unknown, suggest};
use super::models::{key, named, required, url};
use super::report::Report;
use super::tree::Data;
use super::view::View;
use crate::bounds::{CALL_MS, COMMAND_MS, START_MS};
use crate::keys::KEY_REFUSED;
use crate::model::agent::{
    BUILT_IN_TOOLS, CommandTool, McpServer, McpTransport, Toolset, built_in_tool,
};

/// Tool sets, and commands of one of them.
const TOOLSETS_MAX: usize = 64;
const COMMANDS_MAX: usize = 128;

/// Reads all tool sets; those that are rejected are left out.
pub(crate) fn read<'a>(view: View<'a>, report: &mut Report) -> Vec<(View<'a>, Toolset)> {
    let named = named(view, "toolsets", TOOLSETS_MAX, report);
    let read = named.filter_map(|(name, view)| Some((view, toolset(name, view, report)?)));
    read.collect()
}

fn toolset(name: &str, view: View<'_>, report: &mut Report) -> Option<Toolset> {
    let before = report.errors();
    let expected = "a map with `builtin`, `commands` or `mcp`";
    if !CONFIG_TOOLSET.is_map(view, name, expected, report) {
        return None;
    }
    let set = Toolset {
        name: name.to_owned(),
        builtin: view
            .written("builtin")
            .map_or_else(Vec::new, |view| builtin(view, report)),
        commands: view
            .written("commands")
            .map_or_else(Vec::new, |view| commands(view, report)),
        mcp: view.written("mcp").and_then(|view| mcp(view, report)),
        read_only: view
            .written("read_only")
            .and_then(|view| view.texts("read_only", report))
            .unwrap_or_default(),
    };
    if report.errors() > before {
        return None;
    }
    if set.builtin.is_empty() && set.commands.is_empty() && set.mcp.is_none() {
        let message = format!("the tool set `{name}` has no tools");
        let hint = "add `builtin`, `commands` or `mcp`";
        report.error("missing-key", view.key_place(), message, hint);
        return None;
    }
    if let Some(view) = view.written("read_only").filter(|_| set.mcp.is_none()) {
        report_unknown_keys(view, &set, report);
    }
    Some(set)
}

/// Says which tools are to change nothing that the set has not.
fn report_unknown_keys(view: View<'_>, set: &Toolset, report: &mut Report) {
    let commands = set.commands.iter().map(|tool| tool.name.as_str());
    let known: Vec<&str> = set
        .builtin
        .iter()
        .map(String::as_str)
        .chain(commands)
        .collect();
    for name in set
        .read_only
        .iter()
        .filter(|name| !known.contains(&name.as_str()))
    {
        report.warning(
            "read-only-unknown",
            view.place(),
            format!(
                "`read_only` names `{}`, which the tool set has not",
                name.escape_debug()
            ),
            &did_you_mean(name, &known),
        );
    }
}

fn did_you_mean(name: &str, known: &[&str]) -> String {
    suggest(name, known).map_or_else(
        || format!("known are `{}`", known.join("`, `")),
        |meant| format!("did you mean `{meant}`?"),
    )
}

fn builtin(view: View<'_>, report: &mut Report) -> Vec<String> {
    let names = view.texts("builtin", report).unwrap_or_default();
    let known = BUILT_IN_TOOLS.map(|(name, _)| name);
    for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
        let message = format!("`{}` is no built-in tool", name.escape_debug());
        report.error(
            "unknown-value",
            view.place(),
            message,
            &did_you_mean(name, &known),
        );
    }
    names
}

fn commands(view: View<'_>, report: &mut Report) -> Vec<CommandTool> {
    named(view, "commands", COMMANDS_MAX, report)
        .filter_map(|(name, view)| {
            // Servers of models take fewer signs in the name of a tool than names may have elsewhere.
            if !is_name(name, "") || built_in_tool(name).is_some() {
                let message = format!("no command can be called `{name}`");
                let hint = "write letters, digits, `_` and `-`, and no name of a built-in tool";
                report.error("name-invalid", view.key_place(), message, hint);
                return None;
            }
            command(name, view, report)
        })
        .collect()
}

fn command(name: &str, view: View<'_>, report: &mut Report) -> Option<CommandTool> {
    if !CONFIG_TOOL.is_map(view, name, "a map with `run` and `description`", report) {
        return None;
    }
    let argv =
        required(view, "run", "[./tool, --json]", report).and_then(|view| argv(view, report));
    let description = required(
        view,
        "description",
        "what it does, and when to use it",
        report,
    )
    .and_then(|view| view.filled_text("description", report));
    let schema = match view.written("schema") {
        Some(view) => schema(view, report),
        None => Some(serde_json::json!({"type": "object", "properties": {}})),
    };
    Some(CommandTool {
        name: name.to_owned(),
        timeout_ms: millis(view, "timeout", COMMAND_MS, report)?,
        description: description?,
        schema: schema?,
        argv: argv?,
    })
}

/// A program with its arguments, or text for a shell.
fn argv(view: View<'_>, report: &mut Report) -> Option<Vec<String>> {
    if matches!(view.data(), Data::List(_)) {
        return program(view, "run", report);
    }
    let text = view.filled_text("run", report)?;
    Some(vec!["/bin/sh".to_owned(), "-c".to_owned(), text])
}

fn schema(view: View<'_>, report: &mut Report) -> Option<serde_json::Value> {
    let schema = input_schema::read_as(view, "schema", report)?;
    if schema.get("type").and_then(serde_json::Value::as_str) == Some("object") {
        return Some(schema);
    }
    let message = "`schema` must have `type: object`, because tool arguments are named".to_owned();
    report.error("input-schema", view.place(), message, "add `type: object`");
    None
}

fn millis(view: View<'_>, key: &str, usual: u64, report: &mut Report) -> Option<u64> {
    let written = view.written(key);
    written.map_or(Some(usual), |view| view.millis(key, report))
}

fn variables(view: View<'_>, report: &mut Report) -> Vec<String> {
    if !matches!(view.data(), Data::List(_)) {
        view.wrong_type("env", "a list of names of variables", report);
    }
    view.items()
        .filter_map(|item| variable_name(item, report))
        .collect()
}

fn mcp(view: View<'_>, report: &mut Report) -> Option<McpServer> {
    if !matches!(view.data(), Data::Map(_)) {
        view.wrong_type("mcp", "a map with `command` or `url`", report);
        return None;
    }
    let (not_its_own, transport) = match (view.written("command"), view.written("url")) {
        (Some(command), None) => {
            let argv = program(command, "command", report);
            let env = view
                .written("env")
                .map_or_else(Vec::new, |view| variables(view, report));
            (
                ["url", "key"],
                argv.map(|argv| McpTransport::Stdio { argv, env }),
            )
        }
        (None, Some(address)) => {
            let address = url(address, "url", report);
            let key = view.written("key").and_then(|view| key(view, report));
            (
                ["command", "env"],
                address.map(|url| McpTransport::Http { url, key }),
            )
        }
        (one, _) => {
            let message = if one.is_some() {
                "`mcp` has both `command` and `url`"
            } else {
                "`mcp` has neither `command` nor `url`"
            };
            let hint = "write `command: [program]` for a server that the engine starts, or `url` for one that is already running";
            report.error("missing-key", view.key_place(), message.to_owned(), hint);
            return None;
        }
    };
    let mut known = CONFIG_TOOL_MCP.names();
    known.retain(|key| !not_its_own.contains(key));
    refuse_unknown(view, &known, KEY_REFUSED, report);
    Some(McpServer {
        start_ms: millis(view, "start", START_MS, report)?,
        call_ms: millis(view, "call", CALL_MS, report)?,
        transport: transport?,
    })
}
