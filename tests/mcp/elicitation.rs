//! The question to a person before a skill that changes things runs.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::mcp::client::{Client, text_of};
use crate::workspace::daemon::Daemon;
use crate::workspace::{Workspace, skip};

const SKILLS: &str = "
  - {id: reads, description: d, run: 'echo read'}
  - id: writes
    description: Writes a file
    mutating: true
    hooks: {post_tools: ['true before'], post_commit: ['true after']}
    run: |
      echo {text} > {report}
      true 'branch: other'
    interface:
      inputs: [{name: text, type: string, default: one}, {name: key, type: string, sensitive: true, default: SECRET}]
      outputs: [{name: report, type: file, destination: reports/x.md}]
";

/// A session of a client that can ask its person.
fn connect(workspace: &Workspace) -> Client {
    let mut client = Client::start(workspace);
    client.initialize_with("2025-11-25", &json!({"elicitation": {"form": {}}}));
    client
}

/// Asks for the skill that writes; the question, and the id of the call.
fn submitted(client: &mut Client, text: &str) -> u64 {
    let arguments = json!({"skill": "writes", "input": {"text": text}});
    client.request(
        "tools/call",
        &json!({"name": "use_skill", "arguments": arguments}),
    )
}

fn is_question(message: &Value) -> bool {
    message["method"] == "elicitation/create"
}

fn asked(client: &mut Client, text: &str) -> (Value, u64) {
    let call = submitted(client, text);
    (client.message("question", is_question), call)
}

fn answer(client: &mut Client, question: &Value, action: &str) {
    let result = json!({"action": action, "content": {}});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
}

#[test]
fn a_person_is_shown_what_would_run_and_decides() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut client = connect(&workspace);
    // What may be asked for is offered.
    let offered = client.tool("skill")["description"].to_string();
    assert!(offered.contains("<name>writes</name>"), "{offered}");
    assert_eq!(
        client.tool("use_skill")["annotations"]["destructiveHint"],
        true
    );
    assert_eq!(client.text("use_skill", &json!({"skill": "reads"})), "read");

    let (question, call) = asked(&mut client, "a\nbranch: other");
    let told = question["params"]["message"].as_str().unwrap();
    for line in [
        "Run `w/writes`? It changes things.",
        "input text: a\\nbranch: other",
        "branch: main, where its result lands as a commit",
        "hook: true before",
        "hook: true after",
        "writes: reports/x.md",
        "  true 'branch: other'",
    ] {
        assert!(told.lines().any(|one| one == line), "{line}: {told}");
    }
    assert!(!told.contains("SECRET"), "{told}");
    let schema = &question["params"]["requestedSchema"];
    assert_eq!(
        (&schema["type"], &schema["properties"]),
        (&json!("object"), &json!({}))
    );
    answer(&mut client, &question, "decline");
    let refused = client.answer(call)["result"].clone();
    assert_eq!(
        (text_of(&refused), &refused["isError"]),
        (
            "Skill 'w/writes' is not run: the person who was asked declined".to_owned(),
            &json!(true)
        )
    );
    let (question, call) = asked(&mut client, "two");
    answer(&mut client, &question, "cancel");
    let said = client.answer(call)["result"].to_string();
    assert!(said.contains("gave no answer"), "{said}");
    assert!(workspace.read("reports/x.md").is_none());

    let (question, call) = asked(&mut client, "three");
    answer(&mut client, &question, "accept");
    let done = client.answer(call)["result"].clone();
    assert_eq!(done["structuredContent"]["outcome"], "succeeded", "{done}");
    assert_eq!(workspace.read("reports/x.md").as_deref(), Some("three\n"));
    let runs = workspace.json(&["runs"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2, "{runs}");
}

#[test]
fn an_answer_counts_for_what_was_shown_and_for_nothing_else() {
    let workspace = Workspace::with_skills(SKILLS);
    let daemon = Daemon::start(&workspace);
    let mut client = connect(&workspace);
    // The definition is another one by the time the person agrees.
    let (question, call) = asked(&mut client, "shown");
    workspace.furnish(&SKILLS.replace("echo {text}", "echo other {text}"));
    workspace.run(&["reload"]).expect_code(0);
    answer(&mut client, &question, "accept");
    let refused = client.answer(call)["result"].clone();
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(
        text_of(&refused).contains("changed after they were agreed to"),
        "{refused}"
    );
    // So is the branch.
    let (question, call) = asked(&mut client, "shown");
    workspace.git(&["checkout", "-q", "-b", "elsewhere"]);
    answer(&mut client, &question, "accept");
    let refused = client.answer(call)["result"].clone();
    assert!(
        text_of(&refused).contains("changed after they were agreed to"),
        "{refused}"
    );
    assert!(workspace.read("reports/x.md").is_none());
    daemon.stop();
}

#[test]
fn a_script_that_is_exchanged_after_the_question_does_not_run() {
    let skill = "
  - {id: writes, description: d, mutating: true, run: {script: ./act.sh}, interface: {inputs: [{name: text, type: string}]}}
";
    let workspace = Workspace::with_skills(skill);
    let write = |text: &str| {
        workspace.write(
            "workers/w/act.sh",
            &format!("#!/bin/sh\necho {text} > {text}.txt\n"),
        );
    };
    write("shown");
    workspace.git(&["add", "-A"]);
    workspace.git(&["update-index", "--chmod=+x", "workers/w/act.sh"]);
    workspace.git(&["checkout-index", "-f", "workers/w/act.sh"]);
    workspace.git(&["commit", "-q", "-m", "a script"]);
    let daemon = Daemon::start(&workspace);
    let mut client = connect(&workspace);
    let (question, call) = asked(&mut client, "x");
    write("other");
    answer(&mut client, &question, "accept");
    let refused = client.answer(call)["result"].clone();
    assert!(
        text_of(&refused).contains("changed after they were agreed to"),
        "{refused}"
    );
    assert!(workspace.read("other.txt").is_none());
    // Consent to the script as it is now counts.
    let (question, call) = asked(&mut client, "x");
    answer(&mut client, &question, "accept");
    let done = client.answer(call)["result"].clone();
    assert_eq!(done["structuredContent"]["outcome"], "succeeded", "{done}");
    assert_eq!(workspace.read("other.txt").as_deref(), Some("other\n"));
    daemon.stop();
}

#[test]
fn what_cannot_run_is_refused_and_counted_without_a_question() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut client = connect(&workspace);
    for skill in ["reads", "writes"] {
        let arguments = json!({"skill": skill, "input": {"none": "x"}});
        let refused = client.call("use_skill", &arguments);
        let expected = "Invalid input: input `none`: no such input is declared";
        assert_eq!(text_of(&refused), expected, "{skill}");
    }
    assert!(client.leave().success());
    let metrics = workspace.root.join("workspace/metrics");
    let lines: String = fs::read_dir(metrics)
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    assert_eq!(lines.matches("\"refused\"").count(), 2, "{lines}");
}

#[test]
fn what_a_daemon_knows_as_changing_things_does_not_run_unasked() {
    let is_shown = (0..5).any(|attempt| {
        let workspace = Workspace::with_skills(SKILLS);
        let daemon = Daemon::start(&workspace);
        // It looks at definitions once more as soon as it watches them, and then after 30 s only.
        std::thread::sleep(Duration::from_millis(500) * attempt);
        let is_shown = asks_by_what_the_daemon_knows(&workspace, &daemon);
        daemon.stop();
        is_shown
    });
    if !is_shown {
        skip("the machine is too busy to ask before the daemon reads definitions again");
    }
}

/// Returns false if the daemon has read the definitions again meanwhile.
fn asks_by_what_the_daemon_knows(workspace: &Workspace, daemon: &Daemon) -> bool {
    let has_read_again = || daemon.log().contains("definitions have changed");
    // Only a file that is closed is announced: the daemon has not heard of this change, and a new server reads it.
    let path = "workers/w/worker.yaml";
    let text = workspace.read(path).unwrap();
    let changed = text.replace("mutating: true", "mutating: false");
    let mut file = OpenOptions::new()
        .write(true)
        .open(workspace.root.join(path))
        .unwrap();
    file.write_all(changed.as_bytes()).unwrap();
    file.set_len(changed.len().try_into().unwrap()).unwrap();
    let mut client = Client::connect(workspace);
    let listed = client.text("list_skills", &json!({"query": "writes"}));
    let refused = client.call("use_skill", &json!({"skill": "writes"}));
    let mut other = connect(workspace);
    if has_read_again() {
        return false;
    }
    assert!(!listed.contains("unavailable"), "{listed}");
    assert!(
        text_of(&refused).contains("cannot ask a person"),
        "{refused}"
    );
    // A client that can ask its user does.
    let call = submitted(&mut other, "two");
    let first = other.message("question or answer", |message| {
        is_question(message) || message["id"] == call
    });
    if !is_question(&first) && has_read_again() {
        return false;
    }
    answer(&mut other, &first, "decline");
    assert!(text_of(&other.answer(call)["result"]).contains("declined"));
    assert!(workspace.read("reports/x.md").is_none());
    true
}

#[test]
fn what_the_configuration_says_goes_before_the_question() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.write("workerctl.yaml", "mcp: {mutating: refuse}\n");
    let mut client = connect(&workspace);
    let refused = client.call("use_skill", &json!({"skill": "writes"}));
    assert!(text_of(&refused).contains("A user can run it"), "{refused}");
    assert!(client.leave().success());
    workspace.write("workerctl.yaml", "mcp: {mutating: allow}\n");
    workspace.commit_all("allow");
    let mut client = connect(&workspace);
    let done = client.call("use_skill", &json!({"skill": "writes"}));
    assert_eq!(done["structuredContent"]["outcome"], "succeeded", "{done}");
    assert!(client.leave().success());
    // Who cannot be asked is refused by default.
    workspace.write("workerctl.yaml", "");
    let refused = Client::connect(&workspace).call("use_skill", &json!({"skill": "writes"}));
    let said = text_of(&refused);
    assert!(
        said.contains("this client cannot ask a person first"),
        "{said}"
    );
}

#[test]
fn a_call_that_waits_for_its_person_says_so() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut client = connect(&workspace);
    let arguments = json!({"skill": "writes"});
    let params =
        json!({"name": "use_skill", "arguments": arguments, "_meta": {"progressToken": "p"}});
    let call = client.request("tools/call", &params);
    let told = client.message("progress", |one| one["method"] == "notifications/progress");
    assert_eq!(
        told["params"]["message"], "waiting for a person's answer",
        "{told}"
    );
    let question = client.message("question", |one| one["method"] == "elicitation/create");
    answer(&mut client, &question, "decline");
    assert_eq!(client.answer(call)["result"]["isError"], true);
}

#[test]
fn cancelling_the_call_ends_the_question_and_nothing_runs() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut client = connect(&workspace);
    let (question, call) = asked(&mut client, "x");
    let params = json!({"requestId": call});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    let withdrawn = client.message("withdrawal", |one| {
        one["method"] == "notifications/cancelled"
    });
    assert_eq!(
        withdrawn["params"]["requestId"], question["id"],
        "{withdrawn}"
    );
    answer(&mut client, &question, "accept");
    client.lives();
    assert!(client.leave().success());
    let runs = workspace.json(&["runs"]);
    assert_eq!(runs["runs"], json!([]), "{runs}");
}

/// Version 2026-07-28 has no requests of the server: the client is told what to ask, and calls again.
#[test]
fn without_a_session_the_client_asks_and_calls_again() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut client = Client::start(&workspace);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    });
    let mut call = |text: &str, more: &Value| {
        let mut params = json!({
            "name": "use_skill",
            "arguments": {"skill": "writes", "input": {"text": text}},
            "_meta": meta,
        });
        for (key, value) in more.as_object().unwrap() {
            params[key] = value.clone();
        }
        client.result("tools/call", &params)
    };
    let first = call("one", &json!({}));
    assert_eq!(first["resultType"], "input_required", "{first}");
    let question = &first["inputRequests"]["run"];
    assert_eq!(question["method"], "elicitation/create", "{first}");
    let told = question["params"]["message"].as_str().unwrap();
    assert!(told.contains("input text: one"), "{told}");
    let accepted = json!({
        "inputResponses": {"run": {"action": "accept", "content": {}}},
        "requestState": first["requestState"],
    });
    // Agreement to one thing is none to another.
    let other = call("two", &accepted);
    assert_eq!(other["resultType"], "input_required", "{other}");
    // The state has been used with that.
    let asked = call("one", &accepted);
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let with = |action: &str, question: &Value| {
        let answer = json!({"run": {"action": action, "content": {}}});
        json!({"inputResponses": answer, "requestState": question["requestState"]})
    };
    let refused = call("one", &with("decline", &asked));
    assert!(text_of(&refused).contains("declined"), "{refused}");
    assert!(workspace.read("reports/x.md").is_none());
    let asked = call("one", &with("accept", &asked));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let done = call("one", &with("accept", &asked));
    assert_eq!(done["structuredContent"]["outcome"], "succeeded", "{done}");
    assert_eq!(workspace.read("reports/x.md").as_deref(), Some("one\n"));
    // One consent starts one run.
    let again = call("one", &with("accept", &asked));
    assert_eq!(again["resultType"], "input_required", "{again}");
    let runs = workspace.json(&["runs"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
}

#[test]
fn different_values_are_asked_about_in_different_words() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut client = connect(&workspace);
    let mut seen = std::collections::HashSet::new();
    let blanks = format!("a{}b", " ".repeat(12));
    let values = [
        "a\nb",
        "a\\nb",
        "a\tb",
        "a\\tb",
        "a\u{ad}b",
        "a\\u{ad}b",
        "a\\\\nb",
    ];
    let values = [
        &values[..],
        &["ab", "a\u{3164}b", "a\u{fe0f}b", &blanks, "a\\{12 blanks}b"],
    ];
    for value in values.concat() {
        let (question, call) = asked(&mut client, value);
        let told = question["params"]["message"].as_str().unwrap().to_owned();
        answer(&mut client, &question, "decline");
        client.answer(call);
        let line = told.lines().find(|line| line.starts_with("input text"));
        let line = line.unwrap().to_owned();
        assert!(seen.insert(line.clone()), "{value:?} is shown as {line}");
    }
}

#[test]
fn what_a_client_says_for_refusing_is_escaped_in_the_log() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut client = connect(&workspace);
    let (question, call) = asked(&mut client, "two");
    let error = json!({"code": -32_000, "message": "no \u{1b}]0;x\u{7}\u{202e}"});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}));
    let refused = client.answer(call);
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let log = client.log();
    assert!(log.contains("no \\x1b]0;x\\x07\\u{202e}"), "{log:?}");
    assert!(!log.contains('\u{1b}'), "{log:?}");
}
