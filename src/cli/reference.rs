//! `docs/reference/cli.md`, made from the command line.
//!
//! `WORKERCTL_WRITE_PAGES=1 cargo test --lib reference` writes it.

use std::fmt::Write;
use std::path::Path;

use clap::{Arg, Command};

use super::usage;

const BEGIN: &str = "# Command line

Look up every command and option of `workerctl` here. `workerctl COMMAND --help` prints the same with examples.

Top-level verbs act on runs. Nouns such as `schedule` take a verb and list without one. A `RUN` is an id, a unique prefix
or suffix of it, or `latest`, except for decisions, which need the id.

";

/// Returns the options of every command.
fn globals(out: &mut String, root: &Command) {
    out.push_str("## Global options\n\n| option | meaning | variable |\n|---|---|---|\n");
    for arg in root.get_arguments().filter(|arg| arg.is_global_set()) {
        let variable = arg.get_env().map(|name| name.to_string_lossy());
        let variable = variable.map_or_else(String::new, |name| format!("`{name}`"));
        let _ = writeln!(out, "| `{}` | {} | {variable} |", name(arg), help(arg));
    }
}

fn name(arg: &Arg) -> String {
    let value = arg.get_value_names().and_then(|names| names.first());
    let takes_value = arg.get_action().takes_values();
    let value = value
        .filter(|_| takes_value)
        .map(|value| format!(" {value}"));
    let value = value.unwrap_or_default();
    match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}{value}"),
        (None, Some(long)) => format!("--{long}{value}"),
        (Some(short), None) => format!("-{short}{value}"),
        (None, None) => value.trim_start().to_owned(),
    }
}

fn help(arg: &Arg) -> String {
    let text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set() && !matches!(value.get_name(), "true" | "false"))
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if values.is_empty() {
        text
    } else {
        format!("{text}: {}", values.join(", "))
    }
}

/// Adds a command, then those below it.
fn command(out: &mut String, path: &str, command: &Command) {
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let path = format!("{path} {}", command.get_name());
    let aliases: Vec<String> = command
        .get_visible_aliases()
        .map(|alias| format!("`{alias}`"))
        .collect();
    let alias = if aliases.is_empty() {
        String::new()
    } else {
        format!(" Alias: {}.", aliases.join(", "))
    };
    let _ = writeln!(out, "\n### `{path}`\n\n{about}.{alias}");
    let shown =
        |arg: &&Arg| !arg.is_global_set() && !matches!(arg.get_id().as_str(), "help" | "version");
    let rows: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    if !rows.is_empty() {
        out.push_str("\n| argument or option | meaning |\n|---|---|\n");
    }
    for arg in rows {
        let _ = writeln!(
            out,
            "| `{}` | {} |",
            name(arg).replace('|', "\\|"),
            help(arg).replace('|', "\\|")
        );
    }
    for below in command
        .get_subcommands()
        .filter(|below| below.get_name() != "help")
    {
        self::command(out, &path, below);
    }
}

fn page() -> String {
    let root = usage::complete();
    let mut out = BEGIN.to_owned();
    globals(&mut out, &root);
    for (group, names) in usage::GROUPS {
        let _ = writeln!(out, "\n## {group}");
        for name in names {
            command(&mut out, "workerctl", root.find_subcommand(name).unwrap());
        }
    }
    out
}

#[test]
fn the_page_of_the_command_line_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/cli.md");
    let page = page();
    if std::env::var_os("WORKERCTL_WRITE_PAGES").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written == page, "write it with WORKERCTL_WRITE_PAGES=1");
}

#[test]
fn each_command_is_in_one_group() {
    let root = usage::complete();
    let mut visible: Vec<&str> = root
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
        .map(Command::get_name)
        .collect();
    let mut grouped: Vec<&str> = usage::GROUPS
        .iter()
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    visible.sort_unstable();
    grouped.sort_unstable();
    assert_eq!(visible, grouped);
}
