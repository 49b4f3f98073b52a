//! What `--help` and the manual pages show besides the arguments: groups of commands, and examples.

use std::fmt::Write;

use clap::{Command, CommandFactory};

use super::Cli;

/// A command below `workerctl`, and lines that a person would type.
type Examples = (&'static str, &'static [&'static str]);

const EXAMPLES: &[Examples] = &[
    ("init", &["workerctl init notes", "workerctl init --bare"]),
    ("new worker", &["workerctl new worker tidy"]),
    ("new skill", &["workerctl new skill tidy links"]),
    (
        "check",
        &["workerctl check", "workerctl check workers/tidy --strict"],
    ),
    ("config", &["workerctl config"]),
    (
        "run",
        &[
            "workerctl run tidy/links since=2026-11-01 tag=a tag=b",
            "workerctl run tidy/links since=2026-11-01 --dry-run",
            "workerctl run report --inputs-json - --no-wait",
            "workerctl run report --at 18:00",
        ],
    ),
    (
        "runs",
        &[
            "workerctl runs --failed --since 7d",
            "workerctl runs --skill tidy/links -n 5 --json",
        ],
    ),
    ("why", &["workerctl why tidy/links"]),
    (
        "show",
        &["workerctl show", "workerctl show 7k3pq2sv --json"],
    ),
    (
        "logs",
        &[
            "workerctl logs -f",
            "workerctl logs 7k3pq2sv --stream check",
        ],
    ),
    ("thread verify", &["workerctl thread verify"]),
    ("cancel", &["workerctl cancel 7k3pq2sv"]),
    ("retry", &["workerctl retry latest"]),
    (
        "resolve",
        &["workerctl resolve 7k3pq2sv --as failed --note 'the mail was not sent'"],
    ),
    ("land", &["workerctl land 7k3pq2sv"]),
    ("discard", &["workerctl discard 7k3pq2sv"]),
    (
        "wait",
        &["workerctl wait latest && mail -s done me < report.md"],
    ),
    ("diff", &["workerctl diff latest"]),
    ("worker show", &["workerctl worker show tidy"]),
    (
        "skill",
        &["workerctl skill --json", "workerctl skills --source worker"],
    ),
    ("skill show", &["workerctl skill show tidy/links"]),
    ("status", &["workerctl status", "workerctl status --json"]),
    ("schedule list", &["workerctl schedule list"]),
    (
        "schedule slots",
        &["workerctl schedule slots tidy/links -n 20"],
    ),
    (
        "schedule next",
        &["workerctl schedule next --cron '0 9 * * MON-FRI' --timezone Europe/Berlin"],
    ),
    (
        "schedule explain",
        &["workerctl schedule explain tidy/links"],
    ),
    (
        "schedule simulate",
        &["workerctl schedule simulate --from 2026-12-24 --to +7d --duration tidy/links=5m"],
    ),
    (
        "schedule import-crontab",
        &["crontab -l | workerctl schedule import-crontab - --worker jobs --dry-run"],
    ),
    (
        "schedule pause",
        &["workerctl schedule pause tidy/links --reason 'the server moves'"],
    ),
    ("schedule resume", &["workerctl schedule resume tidy/links"]),
    (
        "schedule trigger",
        &["workerctl schedule trigger tidy/links"],
    ),
    (
        "schedule backfill",
        &["workerctl schedule backfill tidy/links --from 2026-11-01 --to 2026-11-08 --dry-run"],
    ),
    (
        "doctor",
        &["workerctl doctor || mail -s 'workerctl needs care' me"],
    ),
    ("daemon", &["workerctl -C /srv/notes daemon"]),
    ("daemon reload", &["workerctl daemon reload"]),
    (
        "mcp install",
        &[
            "workerctl mcp install --client claude",
            "workerctl mcp install --client codex --print",
        ],
    ),
    ("daemon install", &["workerctl daemon install --user"]),
    ("explain", &["workerctl explain yaml-syntax"]),
    ("store verify", &["workerctl store verify"]),
    ("completions", &["source <(workerctl completions bash)"]),
    (
        "man",
        &[
            "workerctl man run | man -l -",
            "workerctl man --to ~/.local/share/man/man1",
        ],
    ),
];

/// Commands in the groups of the help.
pub(super) const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Getting started",
        &["init", "demo", "new", "check", "doctor", "explain"],
    ),
    (
        "Runs",
        &[
            "run", "runs", "show", "logs", "wait", "diff", "cancel", "retry", "approve", "deny",
            "resolve", "land", "discard", "thread", "stats",
        ],
    ),
    (
        "Definitions",
        &["worker", "skill", "model", "config", "schema"],
    ),
    ("Schedules", &["schedule", "why"]),
    ("Service", &["status", "daemon", "web", "mcp", "notify"]),
    ("Maintenance", &["metrics", "store", "completions", "man"]),
];

/// The command line as it is completed: with every option of every command.
pub(super) fn complete() -> Command {
    Cli::command()
}

/// The command line with groups and examples.
pub(super) fn command() -> Command {
    let mut root = Cli::command();
    let help = grouped(&root);
    root = root.help_template(help);
    for (path, lines) in EXAMPLES {
        let words: Vec<&str> = path.split(' ').collect();
        root = with_examples(root, &words, lines);
    }
    root.build();
    let names: Vec<String> = root
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    for name in names {
        root = root.mut_subcommand(name, without_globals);
    }
    root
}

/// Returns the template of the first help, in which commands are in groups.
fn grouped(root: &Command) -> String {
    let mut text = "{about}\n\n{usage-heading} {usage}\n".to_owned();
    for (group, names) in GROUPS {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "\n{group}:");
        for name in names {
            let about = root.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {name:<12} {about}");
        }
    }
    text + "\nOptions:\n{options}{after-help}"
}

/// Hides the options of every command in the help of one, which names them in a line.
fn without_globals(command: Command) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|below| below.get_name().to_owned())
        .collect();
    let mut command = command.mut_args(|arg| {
        let is_global = arg.is_global_set();
        arg.hide(is_global)
    });
    let after = command.get_after_help().map(|text| format!("{text}\n\n"));
    command = command.after_help(format!(
        "{}Global options: -C DIR, --state-dir DIR, --socket PATH, --json, --color WHEN, -v (see `workerctl --help`)",
        after.unwrap_or_default()
    ));
    for name in names {
        command = command.mut_subcommand(name, without_globals);
    }
    command
}

fn with_examples(command: Command, path: &[&'static str], lines: &[&str]) -> Command {
    let Some((name, below)) = path.split_first() else {
        let before = command.get_after_help().map(|text| format!("{text}\n\n"));
        let text = format!(
            "{}Examples:\n  {}",
            before.unwrap_or_default(),
            lines.join("\n  ")
        );
        return command.after_help(text);
    };
    command.mut_subcommand(name, |found| with_examples(found, below, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of the part of a line that calls us.
    fn words(line: &str) -> Vec<String> {
        let (_, ours) = line.split_at(line.find("workerctl ").unwrap());
        let ours = ours.split(['|', '<', '>', '&', ')']).next().unwrap();
        let mut words = vec![String::new()];
        let mut quoted = false;
        for c in ours.trim().chars() {
            match c {
                '\'' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                other => words.last_mut().unwrap().push(other),
            }
        }
        words
    }

    #[test]
    fn every_example_is_read_as_what_it_is_an_example_of() {
        for (path, lines) in EXAMPLES {
            for line in *lines {
                let words = words(line);
                let read = command().try_get_matches_from(&words);
                let read = read.unwrap_or_else(|why| panic!("{line}: {why}"));
                let mut found = Vec::new();
                let mut at = &read;
                while let Some((name, below)) = at.subcommand() {
                    found.push(name);
                    at = below;
                }
                assert_eq!(found.join(" "), *path, "{line}");
                assert!(line.len() <= 98, "{line}");
            }
        }
    }

    #[test]
    fn help_shows_them_and_every_common_command_has_one() {
        let run = command()
            .find_subcommand_mut("run")
            .unwrap()
            .render_help()
            .to_string();
        assert!(
            run.contains("Examples:\n  workerctl run tidy/links"),
            "{run}"
        );
        let land = command()
            .find_subcommand_mut("land")
            .unwrap()
            .render_help()
            .to_string();
        assert!(
            land.contains("verified again") && land.contains("Examples:"),
            "{land}"
        );
    }
}
