//! Keys that are declared as evaluated are read, and keys that are read are declared as evaluated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use super::Workspace;
use crate::keys::{CONFIG, Form, Role, SKILL_FILE, Table, WORKER_FILE};
use crate::report::Report;
use crate::source::Source;
use crate::tree::Data;
use crate::view::View;
use crate::{document, frontmatter};

/// In the first lines of files whose readers are listened to.
const MARK: &str = "# listen";

/// By path of the file and place of a map in it, the keys that were asked for.
static ASKED: Mutex<BTreeMap<(String, usize), BTreeSet<String>>> = Mutex::new(BTreeMap::new());

/// Records that a reader asked the map at `start` for a key.
pub(crate) fn record(source: &Source, start: usize, key: &str) {
    let text = source.text().as_bytes();
    let head = &text[..text.len().min(16)];
    if head.windows(MARK.len()).any(|part| part == MARK.as_bytes()) {
        let place = (source.path().to_owned(), start);
        let mut asked = ASKED.lock().expect("the record");
        asked.entry(place).or_default().insert(key.to_owned());
    }
}

const CONFIG_TEXT: &str = r#"# listen
queue: {max: 5}
commit: {message: m}
threads: {directory: a}
metrics: {directory: b}
hooks: {post_tools: {command: x}}
notify: {on_failure: x, on_missed: {webhook: env:HOOK, form: slack}, on_recovery: {command: x, timeout: 9s}, on_approval: {sendmail: root}, after: 2 of 5, foreground: true}
approval: {expires: 1d}
sandbox: {level: auto, network: {tcp: [443]}}
on_rate_limit: {wait: 1h}
branch: {name: r}
trees: {max: 1}
limits: {processes: 9}
retention: {runs: 9d}
workers: {paths: [workers]}
skills: {roots: [{path: more}]}
mcp: {http: {idle: 1m}}
web: {read_only: true}
access: {admin: {users: [0]}, read: {groups: [1]}}
models: {m: {provider: ollama, model: m, timeouts: {turn: 9m}, prices: {input: 1, output: 1}}}
budget: {per_day: {runs: 9}}
agent: {cli: generic, binary: x, output: jsonl, done: {at: /type, is: end}, usage: {input: /in}}
toolsets:
  a: {commands: {lint: {run: [x], description: d}}, mcp: {command: [x]}}
  b: {mcp: {url: "https://x/mcp"}}
"#;

const WORKER_TEXT: &str = r#"# listen
worker: {id: listened}
execution: {mode: on_demand, sandbox: {level: auto}, retry: {max_attempts: 2, backoff: {initial: 1s}}}
state_machine: {hooks: {on_error: [log_error]}}
context: {base: [a.md]}
verification: {pre_execute: [{command: "true"}]}
env: [{name: A, credential: a}, {name: B, secret: {command: [x], timeout: 1s}, as: file}]
hooks: {post_commit: x}
notify: {on_failure: x, on_missed: {webhook: env:HOOK, form: slack}, on_recovery: {command: x, timeout: 9s}, on_approval: {sendmail: root}, after: 2 of 5, foreground: true}
commit: {message: m}
limits: {processes: 9}
on_rate_limit: {wait: 1h, times: 2}
budget: {turns: 9}
branch: {name: r}
local: [{path: a}]
approval: {expires: 1d}
schedule:
  - {id: a, skill: every, cron: "@daily", dst: {gap: skip}, catch_up: {mode: all}, blackout: {hours: [1]}}
  - {id: b, skill: every, after: {skill: asked}}
  - {id: c, skill: every, watch: {paths: [docs/]}}
  - {id: d, skill: every, on_commit: {branch: main}}
skills:
  - id: every
    mutating: true
    run: {script: x}
    wake: {command: "true"}
    on_rate_limit: {wait: 1h, times: 2}
    verification: {post_execute: [{check: c, command: "true"}]}
    interface: {inputs: [{name: n}], outputs: [{type: file, destination: out}]}
  - {id: asked, instructions: i, approval_required: true, approval: {before: execution}}
"#;

const FLAT_TEXT: &str = "# listen\nname: flat\nskills: {installed: [{id: a, run: x}]}\n";

const SKILL_TEXT: &str = "---\n# listen\nskill: {id: own, run: x}\n---\n";

/// What is read although it is not declared as evaluated, or declared so and read elsewhere.
const BESIDES: &[(&str, &str)] = &[
    // Where it stands beside `after` it is told to stand inside.
    ("ScheduleMap", "on"),
    // Those who load files look at the data that is kept.
    ("SkillKeys", "files"),
];

/// Adds the keys that each map in `view` was asked for, by the table that declares it.
fn collect(
    view: View<'_>,
    form: Form,
    path: &str,
    asked: &mut BTreeMap<&'static str, BTreeSet<String>>,
) {
    match (form, view.data()) {
        (Form::Map(table), Data::Map(_)) => {
            let record = ASKED.lock().expect("the record");
            let keys = record.get(&(path.to_owned(), view.start()));
            let of_table = asked.entry(table.name).or_default();
            of_table.extend(keys.into_iter().flatten().cloned());
            drop(record);
            for (name, value) in view.entries() {
                if let Some(key) = table.keys.iter().find(|key| key.name == name) {
                    collect(value, key.form, path, asked);
                }
            }
        }
        (Form::Named(inner), Data::Map(_)) => {
            let values = view.entries().map(|(_, value)| value);
            values.for_each(|value| collect(value, *inner, path, asked));
        }
        (Form::List(inner) | Form::Filled(inner), Data::List(_)) => {
            view.items()
                .for_each(|item| collect(item, *inner, path, asked));
        }
        (Form::AnyOf(forms), _) => forms
            .iter()
            .for_each(|form| collect(view, *form, path, asked)),
        _ => {}
    }
}

#[test]
fn keys_that_are_declared_as_evaluated_are_those_that_are_read() {
    let files: [(&str, &str, &'static Table); 4] = [
        ("workerctl.yaml", CONFIG_TEXT, &CONFIG),
        ("workers/listened/worker.yaml", WORKER_TEXT, &WORKER_FILE),
        ("workers/flat/worker.yaml", FLAT_TEXT, &WORKER_FILE),
        ("workers/own/skills/own.md", SKILL_TEXT, &SKILL_FILE),
    ];
    let workspace = Workspace::new(&files.map(|(path, text, _)| (path, text)));
    workspace.write("workers/own/worker.yaml", b"worker: {id: own}\n");
    let catalog = workspace.load();
    let mut asked = BTreeMap::new();
    for (path, text, table) in files {
        let source = Source::new(path, text.to_owned());
        let mut report = Report::default();
        let yaml = match frontmatter::of_markdown(&source, &mut report) {
            Ok(Some((yaml, _))) => yaml,
            _ => 0..text.len(),
        };
        let document = document::read(source, yaml, &mut report).expect("a document");
        let view = View::root(&document.source, &document.root);
        collect(view, Form::Map(table), path, &mut asked);
    }
    let mut wrong = Vec::new();
    for table in super::pages::tables().into_values() {
        let read = asked.remove(table.name).unwrap_or_default();
        let evaluated = table.keys.iter().filter(|key| key.role != Role::Kept);
        let names = evaluated
            .map(|key| key.name)
            .chain(table.removed.iter().copied());
        let evaluated: BTreeSet<String> = names.map(ToOwned::to_owned).collect();
        let differ = read.symmetric_difference(&evaluated);
        let differ = differ.filter(|key| !BESIDES.contains(&(table.name, key)));
        wrong.extend(differ.map(|key| {
            let what = if read.contains(key) {
                "read"
            } else {
                "not read"
            };
            format!("{}.{key} is {what}", table.name)
        }));
    }
    let problems = super::show(&catalog.problems);
    assert!(wrong.is_empty(), "{}\n{problems}", wrong.join("\n"));
}
