//! What `--help` and the manual pages show beside the arguments: examples.

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
        "render",
        &["workerctl render tidy/links -i since=2026-11-01"],
    ),
    (
        "run",
        &[
            "workerctl run tidy/links -i since=2026-11-01 -i tag=a -i tag=b",
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
    ("threads verify", &["workerctl threads verify"]),
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
    ("workers show", &["workerctl workers show tidy"]),
    ("skills", &["workerctl skills --json"]),
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
    (
        "mcp install",
        &[
            "workerctl mcp install --client claude",
            "workerctl mcp install --client codex --print",
        ],
    ),
    ("unit install", &["workerctl unit install --user"]),
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

/// The command line with its examples.
pub(super) fn command() -> Command {
    let mut root = Cli::command();
    for (path, lines) in EXAMPLES {
        let words: Vec<&str> = path.split(' ').collect();
        root = with_examples(root, &words, lines);
    }
    root
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
