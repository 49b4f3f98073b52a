//! What the contract of workspace skills promises: behaviours and errors.

use serde_json::{Value, json};

use super::server::script::{Reply, Say};
use super::workspace::daemon::Daemon;
use super::{Rig, call, changing, failure, model, reading, text};

/// A refusal before anything is stored: alone and by a daemon.
fn refused(rig: &Rig, skill: &str, code: i32, says: &[&str]) {
    let expect = |name: &str| {
        let done = rig.workspace.run(&["run", skill]).expect_code(code);
        for said in says {
            assert!(done.stderr.contains(said), "{name}, {skill}: {done:?}");
        }
        assert!(rig.workspace.runs().is_empty(), "{name}, {skill}");
    };
    expect("alone");
    let daemon = Daemon::start(&rig.workspace);
    expect("by a daemon");
    daemon.stop();
    assert_eq!(rig.asked(), 0, "{skill}");
}

#[test]
fn an_alias_that_is_not_configured_stands_for_the_default() {
    let skill = reading("    preferred_model: fast\n");
    let rig = Rig::new(&skill, vec![text("42")]);
    let done = rig.run(&["mrr"]).expect_code(0);
    assert_eq!(rig.asked(), 1);
    let warning = "the model `fast` is not configured: `default` is used";
    assert!(rig.logs().contains(warning), "{}", rig.logs());
    assert!(done.stderr.contains(warning), "{done:?}");
}

#[test]
fn an_alias_that_is_configured_is_asked() {
    let skill = reading("    preferred_model: fast\n");
    let fast = super::ModelServer::start(vec![text("42")]);
    let entry = model("fast", "ollama", &fast.url(), "");
    let rig = Rig::configured(&skill, &entry, vec![text("never")]);
    rig.run(&["mrr"]).expect_code(0);
    assert_eq!(rig.asked(), 0);
    assert_eq!(fast.requests().len(), 1);
}

#[test]
fn without_a_model_nothing_is_stored() {
    let rig = Rig::new(&reading(""), vec![text("never")]);
    rig.workspace.write("workerctl.yaml", "timezone: UTC\n");
    refused(&rig, "mrr", 6, &["no `run`, and no model is configured"]);
    let checked = rig.workspace.run(&["check"]);
    let both = checked.stdout + &checked.stderr;
    for way in ["models: {default: {provider:", "give the skill a `run`"] {
        assert!(both.contains(way), "{way}: {both}");
    }
}

#[test]
fn a_tool_that_is_not_there_is_told_before_anything_is_stored() {
    let with_command = reading("    required_tools: [browser]\n")
        .replace("instructions: Tell the MRR.", "run: echo 42");
    let without_walls = reading("    required_tools: [bash]\n    sandbox: off\n");
    let rows: [(&str, String, &str); 5] = [
        (
            "no such tool",
            reading("    required_tools: [browser]\n"),
            "browser",
        ),
        ("with a command", with_command, "browser"),
        (
            "one that changes files",
            reading("    required_tools: [Write]\n"),
            "Write",
        ),
        ("bash without walls", without_walls, "bash"),
        (
            "no such set",
            reading("    toolsets: [tracker]\n"),
            "tracker",
        ),
    ];
    for (name, skill, tool) in rows {
        let rig = Rig::new(&skill, vec![text("never")]);
        let kind = if name == "no such set" {
            "toolset"
        } else {
            "tool"
        };
        let says = format!("Skill requires {kind} '{tool}' which is not available");
        refused(&rig, "mrr", 6, &[&says]);
    }
}

#[test]
fn input_that_its_schema_refuses_is_told_before_anything_is_stored() {
    let schema = "    input_schema: {type: object, properties: {content: {type: string}}, required: [content]}\n";
    let rig = Rig::new(&reading(schema), vec![text("never")]);
    refused(&rig, "mrr", 2, &["Invalid input: "]);
}

#[test]
fn a_skill_that_is_not_there_is_told() {
    let rig = Rig::new(&reading(""), vec![text("never")]);
    refused(&rig, "nothing", 3, &["no skill `nothing`"]);
}

/// Says something and calls a tool.
fn working(said: &str) -> Reply {
    let call = Say::text(said).call("list_directory", "{}");
    call.usage(100, 20, 0, 0).into()
}

#[test]
fn at_the_limit_of_turns_what_was_said_is_told_with_the_limit() {
    let skill = reading("    max_iterations: 2\n");
    let rig = Rig::new(&skill, vec![working("So far 41."), working("")]);
    let shown = rig.fails(&["mrr"]);
    let ended = failure(&shown);
    assert_eq!(ended["code"], "iteration_limit");
    assert_eq!(ended["step"], "execute");
    let message = ended["message"].as_str().unwrap();
    assert!(message.contains("So far 41."), "{message}");
    assert!(
        message.contains("the skill has 2 (`max_iterations`)"),
        "{message}"
    );
    assert_eq!(rig.asked(), 2);
    assert!(rig.logs().contains("So far 41."), "{}", rig.logs());
}

#[test]
fn five_turns_are_the_limit_where_nothing_is_said() {
    let rig = Rig::new(&reading(""), vec![working("on")]);
    let shown = rig.fails(&["mrr"]);
    assert_eq!(failure(&shown)["code"], "iteration_limit");
    assert_eq!(rig.asked(), 5);
}

#[test]
fn at_the_turn_limit_an_attempt_fails_whatever_its_checks_say() {
    let more = "    max_iterations: 2\n    verification: [{command: grep -q whole report.md}]\n";
    let submit = |text: &str| call("submit_output", &json!({"name": "report", "content": text}));
    for (name, first) in [
        ("whole", submit("whole\n")),
        ("half", submit("half\n")),
        ("none", working("")),
    ] {
        let rig = Rig::new(&changing(more), vec![first, working("more")]);
        let shown = rig.fails(&["change"]);
        assert_eq!(
            failure(&shown)["code"],
            "iteration_limit",
            "{name}: {shown:#}"
        );
        assert!(rig.workspace.committed_runs().is_empty(), "{name}");
        // What it wrote is not lost.
        if name != "none" {
            let run = shown["summary"]["run"].as_str().unwrap();
            let kept = rig.workspace.run(&["diff", run]).expect_code(0).stdout;
            assert!(kept.contains(&format!("+{name}")), "{kept}");
        }
    }
}

#[test]
fn a_page_without_a_name_is_called_like_its_file() {
    let rig = Rig::new("", vec![text("A summary.")]);
    let schema = "input_schema: {type: object, properties: {content: {type: string}, format: {type: string, default: bullets}}, required: [content]}";
    let page =
        format!("---\ndescription: Summarizes text\nmutating: false\n{schema}\n---\nSummarize.\n");
    rig.workspace.write(
        "workers/p/worker.yaml",
        "worker: {id: p, name: P, type: OpsWorker}\n",
    );
    rig.workspace
        .write("workers/p/skills/summarize/SKILL.md", &page);
    rig.workspace.write("workers/p/skills/flat.md", &page);
    rig.workspace.commit_all("pages");
    for skill in ["p/summarize", "p/flat"] {
        let before = rig.asked();
        rig.run(&[skill, "-i", "content=long"]).expect_code(0);
        let seen = &rig.server.requests()[before].body;
        assert_eq!(seen["system"][0]["text"], "Summarize.", "{skill}");
        let task = task(seen);
        for part in ["\"content\": \"long\"", "\"format\": \"bullets\""] {
            assert!(task.contains(part), "{skill}: {task}");
        }
    }
}

/// The first message of a request.
fn task(body: &Value) -> String {
    super::text_of(&body["messages"][0]["content"])
}
