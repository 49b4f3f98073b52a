//! What a person wants of a skill without inputs, in words.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use super::{Rig, outcome, reading, text, text_of};

const TOLD: &str = "The task, in the words of the person who started this run:\nCompare {this} month\nwith the last one.\n";

fn task(rig: &Rig, n: usize) -> String {
    text_of(&rig.server.requests()[n].body["messages"][0]["content"])
}

#[test]
fn a_model_is_told_what_the_person_wants() {
    let rig = Rig::new(&reading(""), vec![text("Done."), text("Again.")]);
    let message = "Compare {this} month\nwith the last one.\n";
    let shown = rig.ran(&["mrr", "-m", message]);
    assert_eq!(outcome(&shown)["kind"], "succeeded", "{shown:#}");
    assert!(task(&rig, 0).contains(TOLD), "{}", task(&rig, 0));
    assert_eq!(shown["message"], message);
    let told = rig.workspace.run(&["show", "latest"]).expect_code(0).stdout;
    assert!(
        told.contains("    Compare {this} month\n    with the last one.\n"),
        "{told}"
    );
    // A run that repeats it has the same task.
    rig.workspace.run(&["retry", "latest"]).expect_code(0);
    assert!(task(&rig, 1).contains(TOLD), "{}", task(&rig, 1));
}

#[test]
fn it_is_read_from_standard_input_and_masked_like_inputs() {
    let skill = reading("    env: [TOKEN]\n");
    let rig = Rig::new(&skill, vec![text("Done.")]);
    let mut command = rig.workspace.workerctl(&["run", "mrr", "-m", "-"]);
    command
        .env("TOKEN", "a-secret-of-some-length")
        .stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input
        .write_all(b"Use a-secret-of-some-length there.\n")
        .unwrap();
    drop(input);
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let task = task(&rig, 0);
    assert!(task.contains("Use ") && task.contains(" there."), "{task}");
    assert!(!task.contains("a-secret"), "{task}");
    let shown = rig.workspace.json(&["show", "latest"]);
    for path in ["thread_path", "log_path"] {
        let kept = std::fs::read_to_string(shown[path].as_str().unwrap()).unwrap();
        assert!(
            kept.contains("there.") && !kept.contains("a-secret"),
            "{kept}"
        );
    }
}

#[test]
fn a_skill_that_is_given_values_refuses_it_and_says_how() {
    let inputs = reading(
        "    interface: {inputs: [{name: month, type: string}, {name: year, type: string}]}\n",
    );
    let schema = reading("    input_schema: {type: object, properties: {month: {type: string}}}\n");
    let command = "  - {id: mrr, description: d, run: date}\n";
    for (skill, why, hint) in [
        (&*inputs, "takes its task as inputs", "-i month=VALUE"),
        (&*schema, "`input_schema`", "--inputs-json FILE"),
        (command, "runs a command", "without `-m`"),
    ] {
        let rig = Rig::new(skill, Vec::new());
        let done = rig.run(&["mrr", "-m", "do it"]).expect_code(2);
        assert!(done.stderr.contains(why), "{done:?}");
        assert!(done.stderr.contains(hint), "{done:?}");
        assert!(
            rig.workspace.json(&["runs"])["runs"]
                .as_array()
                .unwrap()
                .is_empty()
        );
    }
    let rig = Rig::new(&reading(""), Vec::new());
    rig.run(&["mrr", "-m", "  "]).expect_code(2);
    rig.run(&["mrr", "-m", &"x".repeat(64 * 1024 + 1)])
        .expect_code(2);
    rig.run(&["mrr", "-m", "x", "-i", "a=b"]).expect_code(2);
    assert_eq!(rig.asked(), 0);
}

#[test]
fn what_is_rendered_tells_two_messages_apart() {
    let rig = Rig::new(&reading(""), Vec::new());
    let digest = |message: &[&str]| {
        let line = [&["render", "mrr"], message].concat();
        rig.workspace.json(&line)["digest"].clone()
    };
    let told = [&[][..], &["-m", "one"], &["-m", "two"]].map(digest);
    assert!(
        told.iter().all(serde_json::Value::is_string),
        "{}",
        json!(told)
    );
    assert!(told[0] != told[1] && told[1] != told[2], "{}", json!(told));
}
