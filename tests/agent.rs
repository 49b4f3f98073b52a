//! Skills that a model executes: the real program, and a model server that follows a script.

use crate::mcp::client;
use crate::server;
use crate::workspace;

mod approvals;
mod attempts;
mod budgets;
mod budgets_of_days;
mod canary;
mod children;
mod contract;
mod conversations;
mod costs;
mod crashes;
mod failures;
mod injections;
mod levels;
mod messages;
mod rate_limits;
mod roots;
mod samples;
mod servers;
mod stops;
mod tools;
mod wake;

use serde_json::Value;
use server::ModelServer;
use server::script::{Reply, Say};
use workspace::{Done, Workspace};

/// What no log, thread or error may ever hold.
const KEY: &str = "sk-test-3f9a77c0d1e2b4a6";

/// A workspace whose default model is a scripted server.
struct Rig {
    workspace: Workspace,
    server: ModelServer,
}

/// Protocols of servers, with what their addresses end in.
const PROVIDERS: [(&str, &str); 5] = [
    ("anthropic", ""),
    ("openai", "/v1"),
    ("openai_responses", "/v1"),
    ("gemini", ""),
    ("ollama", ""),
];

/// The entry of a model in workerctl.yaml; `more` are further keys of it.
fn model(alias: &str, provider: &str, url: &str, more: &str) -> String {
    let found = PROVIDERS.iter().find(|(name, _)| *name == provider);
    let (_, ending) = found.unwrap();
    format!(
        "  {alias}:\n    provider: {provider}\n    model: scripted-1\n    base_url: {url}{ending}\n    key: file:~/key\n{more}"
    )
}

impl Rig {
    /// `skills` is what stands below `skills:` of the worker `w`.
    fn new(skills: &str, script: Vec<Reply>) -> Rig {
        Rig::configured(skills, "", script)
    }

    /// The same with more of workerctl.yaml.
    fn configured(skills: &str, more: &str, script: Vec<Reply>) -> Rig {
        Rig::spoken("anthropic", skills, more, script)
    }

    /// The same with a server of this protocol; `more` begins with further keys of the model.
    fn spoken(provider: &str, skills: &str, more: &str, script: Vec<Reply>) -> Rig {
        let server = ModelServer::start(script);
        let workspace = Workspace::new();
        std::fs::write(workspace.home.join("key"), KEY).unwrap();
        let entry = model("default", provider, &server.url(), more);
        workspace.write("workerctl.yaml", &format!("models:\n{entry}"));
        workspace.furnish(skills);
        let rig = Rig { workspace, server };
        // The home directory holds the key, so all of it is never granted.
        std::fs::create_dir(rig.workspace.home.join("did")).unwrap();
        rig.grant("sandbox: {write: [~/did]}\n");
        rig
    }

    /// The same whose skills may touch nothing besides their own, as nobody grants them more.
    fn walled(skills: &str, more: &str, script: Vec<Reply>) -> Rig {
        let rig = Rig::configured(skills, more, script);
        rig.grant("");
        rig
    }

    /// What its skills are granted instead of what they were.
    fn grant(&self, sandbox: &str) {
        let path = "workers/w/worker.yaml";
        let text = self.workspace.read(path).unwrap();
        let is_grant = |line: &&str| line.starts_with("sandbox: {write");
        let granted = text.lines().find(is_grant).unwrap();
        let text = text.replacen(&format!("{granted}\n"), sandbox, 1);
        self.workspace.write(path, &text);
        let amend = ["commit", "-q", "-a", "--amend", "--no-edit"];
        self.workspace.git(&amend);
    }

    fn run(&self, arguments: &[&str]) -> Done {
        self.workspace.run(&[&["run"], arguments].concat())
    }

    /// Runs to the end and answers the run in full.
    fn ran(&self, arguments: &[&str]) -> Value {
        let done = self.run(&[arguments, &["--json"]].concat());
        let shown = done.value();
        self.holds_no_key(&format!("{done:?}"));
        shown
    }

    /// Nothing that the run left holds the key: neither what was printed nor the thread nor the state.
    fn holds_no_key(&self, said: &str) {
        assert!(!said.contains(KEY), "{said}");
        let base = self.workspace.root.parent().unwrap();
        let key = self.workspace.home.join("key");
        for path in workspace::observed::files_below(base, &|path| path != key) {
            let bytes = std::fs::read(&path).unwrap_or_default();
            let found = xtest::contains(&bytes, KEY.as_bytes());
            assert!(!found, "the key is in {}", path.display());
        }
    }

    /// Runs a skill that must fail; answers the run in full.
    fn fails(&self, arguments: &[&str]) -> Value {
        let done = self.run(&[arguments, &["--json"]].concat());
        assert_ne!(done.code, 0, "{done:?}");
        self.holds_no_key(&format!("{done:?}"));
        done.value()
    }

    /// What the logs of the latest run hold.
    fn logs(&self) -> String {
        let done = self.workspace.run(&["logs", "latest"]).expect_code(0);
        done.stdout + &done.stderr
    }

    /// How many requests came.
    fn asked(&self) -> usize {
        self.server.requests().len()
    }

    /// Names of the tools that the model was told of with its first request.
    fn offered(&self) -> Vec<String> {
        let seen = self.server.requests();
        let tools = seen[0].body["tools"].as_array().cloned();
        let tools = tools.unwrap_or_default().into_iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The texts of the tool results that the model was sent with its request number `n`.
    fn results(&self, n: usize) -> Vec<String> {
        let seen = self.server.requests();
        let mut found = Vec::new();
        for message in seen[n].body["messages"].as_array().unwrap() {
            for part in message["content"].as_array().into_iter().flatten() {
                if part["type"] == "tool_result" {
                    found.push(text_of(&part["content"]));
                }
            }
        }
        found
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        other => other.to_string(),
    }
}

/// A call with arguments.
fn call(name: &str, arguments: &Value) -> Reply {
    Say::nothing()
        .call(name, &arguments.to_string())
        .usage(100, 20, 0, 0)
        .into()
}

fn text(text: &str) -> Reply {
    Say::text(text).usage(100, 20, 0, 0).into()
}

/// How a run ended.
fn outcome(shown: &Value) -> &Value {
    &shown["summary"]["outcome"]
}

/// Why a run failed.
fn failure(shown: &Value) -> &Value {
    let ended = outcome(shown);
    assert_eq!(ended["kind"], "failed", "{shown:#}");
    &ended["failure"]
}

/// A skill `mrr` that changes nothing; `more` are further keys of it.
fn reading(more: &str) -> String {
    format!(
        "
  - id: mrr
    name: MRR Report
    description: Current MRR
    mutating: false
    instructions: Tell the MRR.
{more}"
    )
}

/// A skill `change` that works in a tree of its own and has an output `report`; `more` are further keys of it.
fn changing(more: &str) -> String {
    format!(
        "
  - id: change
    name: Change
    description: Changes something
    mutating: true
    instructions: Change it.
    interface:
      outputs: [{{name: report, type: markdown, destination: report.md}}]
{more}"
    )
}
