//! Complete examples of keys, which hints show for values of the wrong type.

use super::tree::{Data, Node};

/// The longest text that an example repeats.
const SHOWN_MAX: usize = 60;

/// What takes the value in a form.
const VALUE: &str = "{}";

/// A value of the wrong type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wrong<'a> {
    pub(crate) key: &'a str,
    /// What is expected, in words.
    pub(crate) expected: &'a str,
    pub(crate) data: &'a Data,
    /// Whether it is an item of a list rather than the value of a key.
    pub(crate) is_item: bool,
}

/// Key; beginning of what is expected; form with the value that is written, whose place is `{}`; form without it.
/// The first row that fits counts. In an empty key any key fits, and `{key}` is its name.
#[rustfmt::skip]
const FORMS: &[(&str, &str, &str, &str)] = &[
    ("enum", "", "enum: [{}]", "enum: [a, b]"),
    ("approval", "", "", "approval: {before: landing}"),
    ("retention", "", "retention: {runs: {}}", "retention: {runs: 30d}"),
    ("queue", "", "queue: {max: {}}", "queue: {max: 100}"),
    ("trees", "", "trees: {max: {}}", "trees: {max: 8}"),
    ("threads", "", "threads: {directory: {}}", "threads: {directory: workspace/threads}"),
    ("metrics", "", "metrics: {directory: {}}", "metrics: {directory: workspace/metrics}"),
    ("workers", "", "workers: {paths: [{}]}", "workers: {paths: [workers]}"),
    ("paths", "", "paths: [{}]", "paths: [workers]"),
    ("commit", "a map with `message`", "commit: {message: {}}", "commit: {message: \"{{skill}}: {{title}}\"}"),
    ("commit", "", "", "commit: {author: \"Repo Steward <steward@example.org>\"}"),
    ("author", "", "", "author: \"Repo Steward <steward@example.org>\""),
    ("mcp", "a map with", "", "mcp: {command: [PROGRAM, ARGUMENT]}"),
    ("mcp", "", "mcp: {mutating: {}}", "mcp: {mutating: ask}"),
    ("http", "", "", "http: {listen: \"127.0.0.1:8931\"}"),
    ("web", "", "", "web: {listen: \"127.0.0.1:8930\"}"),
    ("access", "", "", "access: {read: {users: [alice]}}"),
    ("admin", "a map", "admin: {users: [{}]}", "admin: {users: [alice]}"),
    ("read", "a map", "read: {users: [{}]}", "read: {users: [alice]}"),
    ("users", "a list", "users: [{}]", "users: [alice]"),
    ("groups", "a list", "groups: [{}]", "groups: [staff]"),
    ("skills", "a map with `id`", "", "{id: note, description: TEXT, run: COMMAND}"),
    ("skills", "a map", "", "skills: {roots: [vendor/skills]}"),
    ("skills", "a list such", "skills: [{}]", "skills: [.agents, .claude]"),
    ("skills", "a list", "skills: [{}]", "skills: [{id: note, description: TEXT, run: COMMAND}]"),
    ("roots", "", "roots: [{}]", "roots: [vendor/skills]"),
    ("models", "", "", "models: {default: {provider: anthropic, model: NAME, key: env:ANTHROPIC_API_KEY}}"),
    ("", "a map with `provider`", "", "{key}: {provider: anthropic, model: NAME, key: env:ANTHROPIC_API_KEY}"),
    ("", "a map with `builtin`", "", "{key}: {builtin: [read_file, list_files]}"),
    ("", "a map with `run` and", "{key}: {run: [{}], description: TEXT}", "{key}: {run: [PROGRAM], description: TEXT}"),
    ("agent", "", "agent: {cli: {}}", "agent: {cli: claude}"),
    ("protected_files", "", "protected_files: [{}]", "protected_files: [\"deploy/**\"]"),
    ("human_checkpoints", "", "human_checkpoints: [{}]", "human_checkpoints: [TEXT]"),
    ("verification", "a list", "verification: [{command: {}}]", "verification: [{command: make test}]"),
    ("verification", "", "", "{command: make test}"),
    ("interface", "", "", "interface: {inputs: [{name: title, type: string}]}"),
    ("inputs", "a list", "inputs: [{name: {}, type: string}]", "inputs: [{name: title, type: string}]"),
    ("inputs", "a map with", "{name: {}, type: string}", "{name: title, type: string}"),
    ("inputs", "", "", "inputs: {NAME: VALUE}"),
    ("outputs", "a list", "outputs: [{name: report, type: file, destination: {}}]", "outputs: [{name: report, type: markdown, destination: report.md}]"),
    ("outputs", "", "{name: report, type: file, destination: {}}", "{name: report, type: markdown, destination: report.md}"),
    ("run", "a command", "", "run: COMMAND"),
    ("wake", "", "", "wake: COMMAND"),
    ("hooks", "a map with `post_tools`", "hooks: {post_commit: {}}", "hooks: {post_commit: COMMAND}"),
    ("hooks", "", "", "hooks: {on_error: [log_error]}"),
    ("", "a command or a map with `command`", "", "{key}: COMMAND"),
    ("notify", "", "notify: {on_failure: {}}", "notify: {on_failure: COMMAND}"),
    ("", "a command, or a map with `command`, `webhook`", "", "{key}: COMMAND"),
    ("schedule", "", "schedule: \"{}\"", "schedule: \"0 9 * * 1-5\""),
    ("cron", "text", "cron: \"{}\"", "cron: \"0 9 * * 1-5\""),
    ("catch_up", "", "", "catch_up: {mode: last, window: 1h}"),
    ("blackout", "", "blackout: {dates: [{}]}", "blackout: {hours: \"22-5\", dates: [2026-12-25]}"),
    ("dst", "", "dst: {gap: {}}", "dst: {gap: skip}"),
    ("after", "failures", "", "after: 3` or `after: 2 of 5"),
    ("after", "a skill", "after: {}", "after: SKILL"),
    ("watch", "", "", "watch: {paths: [docs/]}"),
    ("on_commit", "", "", "on_commit: main"),
    ("command", "a list", "command: [{}]", "command: [PROGRAM, ARGUMENT]"),
    ("budget", "", "budget: {tokens: {}}", "budget: {money: 2.50}"),
    ("per_day", "", "per_day: {runs: {}}", "per_day: {runs: 20}"),
    ("limits", "", "", "limits: {processes: 100, written: 1GiB}"),
    ("on_rate_limit", "", "on_rate_limit: {wait: {}}", "on_rate_limit: {wait: 1h}"),
    ("branch", "", "", "branch: main"),
    ("local", "", "local: [{}]", "local: [.env]"),
    ("toolsets", "a list", "toolsets: [{}]", "toolsets: [NAME]"),
    ("env", "a list of names", "", "env: [API_KEY]"),
    ("env", "a map of names", "", "env: {CI: \"1\"}"),
    ("input_schema", "", "", "input_schema: {type: object}"),
    ("execution", "", "", "execution: {timeout: 15m}"),
    ("state_machine", "", "", "state_machine: {max_retries: 2}"),
    ("worker", "", "worker: {id: {}}", "worker: {id: NAME}"),
    ("skill", "a map", "", "skill: {id: note, description: TEXT}"),
    ("done", "", "", "done: {at: type, is: result}"),
    ("usage", "", "", "usage: {input: usage.input_tokens, output: usage.output_tokens}"),
    ("retry", "", "", "retry: {max_attempts: 3}"),
    ("default", "a date", "", "default: 2026-01-23"),
    ("default", "a array", "default: [{}]", "default: [a, b]"),
    ("default", "a boolean", "", "default: true"),
    ("", "a number", "{key}: {}", "{key}: 1"),
    ("", "`true` or `false`", "", "{key}: true` or `{key}: false"),
    ("", "a duration", "", "{key}: 15m"),
    ("", "a list of texts", "{key}: [{}]", "{key}: [TEXT]"),
    ("", "text", "", "{key}: \"TEXT\""),
];

impl Wrong<'_> {
    /// Returns what to write instead.
    pub(crate) fn hint(self) -> String {
        if let Some(form) = certain(self.key, self.data) {
            return format!("write `{form}`");
        }
        let Self { key, expected, .. } = self;
        let row = FORMS.iter().find(|(known, begin, ..)| {
            (known.is_empty() || *known == key) && expected.starts_with(begin)
        });
        if let Some(bound) = expected.strip_prefix("a whole number from ") {
            let least = bound.split(' ').next().unwrap_or_default();
            return format!("write {expected}, such as `{key}: {least}`");
        }
        let Some((known, _, with, without)) = row else {
            return format!("write {expected}");
        };
        let fits = |value: &String| expected != "a number" || value.parse::<f64>().is_ok();
        let own = self.value().filter(|value| !with.is_empty() && fits(value));
        let form = if known.is_empty() {
            (with.replace("{key}", key), without.replace("{key}", key))
        } else {
            ((*with).to_owned(), (*without).to_owned())
        };
        let form = own.map_or(form.1, |value| form.0.replace(VALUE, &value));
        if self.is_item && !form.starts_with('{') {
            // An item has no key.
            let begin = format!("{key}: ");
            let value = form.strip_prefix(&begin).unwrap_or_default();
            return if value.is_empty() || value.starts_with('[') {
                format!("write {expected}")
            } else {
                format!("write `{}`", value.replace(&begin, ""))
            };
        }
        format!("write `{form}`")
    }

    /// The value as it is put into a form: items of lists and words of enumerations are separated by commas.
    fn value(self) -> Option<String> {
        let is_expression = matches!(self.key, "cron" | "schedule");
        match self.data {
            Data::List(items) if self.key == "after" => shown(&items.first()?.data),
            Data::List(items) => {
                let is_date =
                    |item: &Node| matches!(&item.data, Data::Text(text) if is_amount(text));
                if self.key == "blackout" && !items.iter().all(is_date) {
                    return None;
                }
                let items: Option<Vec<_>> = items.iter().map(|item| shown(&item.data)).collect();
                let items = items.filter(|items| !items.is_empty())?;
                Some(if is_expression {
                    items.join(" ").replace('"', "")
                } else {
                    items.join(", ")
                })
            }
            Data::Text(text) if self.expected.starts_with("a list") && self.key == "enum" => {
                let words = text.split(',').map(str::trim);
                let words = words.filter(|word| !word.is_empty());
                let words: Option<Vec<_>> = words.map(in_flow).collect();
                words
                    .filter(|words| !words.is_empty())
                    .map(|words| words.join(", "))
            }
            Data::Text(text)
                if self.key == "command" || self.expected.starts_with("a map with `run`") =>
            {
                let words: Option<Vec<_>> = text.split_whitespace().map(in_flow).collect();
                words.map(|words| words.join(", "))
            }
            Data::Text(text) if self.expected == "a number" => Some(text.trim().to_owned()),
            Data::Bool(_) => None,
            data => shown(data),
        }
    }
}

/// Returns the form that a value certainly means, although its type is wrong: `retry: 3` are three attempts after the first.
pub(crate) fn certain(key: &str, data: &Data) -> Option<String> {
    let form = match (key, data) {
        ("catch_up", Data::Bool(false)) => "catch_up: none".to_owned(),
        ("untrusted", Data::Bool(_)) => "untrusted: [.agents, .claude]".to_owned(),
        ("catch_up", Data::Bool(true)) => "catch_up: last".to_owned(),
        ("env", Data::List(items)) => {
            // The value may be a secret.
            let Data::Text(first) = &items.first()?.data else {
                return None;
            };
            format!("env: {{{}: TEXT}}", in_flow(first.split_once('=')?.0)?)
        }
        ("approval", Data::Bool(value)) => format!("approval_required: {value}"),
        ("retry", Data::Number(_) | Data::Text(_)) => {
            let repetitions: u32 = shown(data)?.trim_matches('"').parse().ok()?;
            format!("retry: {{max_attempts: {}}}", repetitions.checked_add(1)?)
        }
        ("run" | "wake", Data::Map(entries)) => {
            let command = entries
                .iter()
                .find(|entry| matches!(entry.key.as_str(), "command" | "cmd" | "shell" | "run"))?;
            let form = shown(&command.value.data).unwrap_or_else(|| "COMMAND".to_owned());
            format!("{key}: {form}")
        }
        _ => return None,
    };
    Some(form)
}

/// A short value as it is written in a list or a map; `None` if it is too long or no scalar.
pub(crate) fn shown(data: &Data) -> Option<String> {
    match data {
        Data::Text(text) => in_flow(text),
        Data::Number(number) => Some(super::align::show_number(*number)),
        Data::Bool(value) => Some(value.to_string()),
        Data::Null | Data::List(_) | Data::Map(_) => None,
    }
}

/// A text as it is written in a list or a map; `None` if it is too long, or needs a quote within quotes.
fn in_flow(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./@+".contains(c);
    let begins_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || "./_".contains(c))
        || text.starts_with("--");
    let is_other = matches!(text, "true" | "false" | "null") || text.parse::<f64>().is_ok();
    if text.is_empty()
        || text.len() > SHOWN_MAX
        || text.contains(['\n', '\\', '`'])
        || text.contains("://")
    {
        None
    } else if !is_other && (begins_plain || is_amount(text)) && text.chars().all(is_plain) {
        Some(text.to_owned())
    } else if text.contains('"') {
        (!text.contains('\'')).then(|| format!("'{text}'"))
    } else {
        Some(format!("\"{text}\""))
    }
}

/// Returns true for numbers with letters behind, such as `30d`, and for dates: they need no quotes.
fn is_amount(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}
