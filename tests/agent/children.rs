//! Runs that a model starts.

use serde_json::{Value, json};

use super::{Rig, call, text};

const SKILLS: &str = r#"
  - id: boss
    description: asks others
    instructions: Ask the others.
    mutating: true
    verification: [{command: "grep -q yes made.txt"}]
  - id: reader
    description: asks others and changes nothing
    max_iterations: 10
    instructions: Ask the others.
  - id: maker
    description: makes a file
    instructions: Make it.
    mutating: true
    interface: {inputs: [{name: word, type: string, required: true}]}
    verification: [{command: "test -s made.txt"}]
  - id: count
    description: counts
    run: 'wc -l < tracked.txt; cat made.txt 2>/dev/null || true'
  - id: asked
    description: asks a person
    approval_required: true
    run: 'true'
  - {id: free, description: has no sandbox, sandbox: off, run: './made-by-the-model.sh'}
"#;

fn use_skill(skill: &str, input: &Value) -> super::Reply {
    call("use_skill", &json!({"skill": skill, "input": input}))
}

#[test]
fn a_child_works_in_its_parents_tree_and_is_part_of_its_one_commit() {
    let rig = Rig::new(
        SKILLS,
        vec![
            use_skill("maker", &json!({"word": "yes"})),
            call(
                "write_file",
                &json!({"path": "made.txt", "content": "yes\n"}),
            ),
            text("made"),
            use_skill("count", &json!({})),
            text("all is done"),
        ],
    );
    let shown = rig.ran(&["boss"]);
    assert_eq!(
        shown["summary"]["outcome"]["kind"], "succeeded",
        "{shown:#}"
    );
    assert_eq!(rig.workspace.git(&["show", "HEAD:made.txt"]), "yes\n");
    assert_eq!(
        rig.workspace.committed_runs(),
        [shown["summary"]["run"].as_str().unwrap()]
    );
    assert_eq!(rig.results(3), ["made"]);
    let counted = &rig.results(4)[1];
    assert_eq!(counted, "1\nyes\n[unverified: nothing checked it]");
    let children = shown["children"].as_array().unwrap();
    assert_eq!(children.len(), 2);
    for child in children {
        let child = rig.workspace.show(child.as_str().unwrap());
        assert_eq!(child["summary"]["parent"], shown["summary"]["run"]);
        assert_eq!(
            child["summary"]["outcome"]["kind"], "succeeded",
            "{child:#}"
        );
        assert_eq!(child["summary"]["commit"], Value::Null);
        assert_eq!(child["parent_skill"]["skill"], "boss");
        let id = child["summary"]["run"].as_str().unwrap();
        let told = rig.workspace.run(&["show", id]).stdout;
        let by = format!("run {} (w/boss)", shown["summary"]["run"].as_str().unwrap());
        assert!(told.contains(&by), "{told}");
    }
    let parent = shown["summary"]["run"].as_str().unwrap();
    let told = rig.workspace.run(&["show", parent]).stdout;
    let started = format!("started runs {}, ", children[0].as_str().unwrap());
    assert!(told.contains(&started), "{told}");
    // Five turns of 120 tokens, those of the child included.
    assert_eq!(shown["summary"]["spent"]["tokens"]["input"], 500);
    assert_eq!(shown["summary"]["spent"]["turns"], 5);
}

#[test]
fn what_a_run_may_not_start_is_refused_to_its_model() {
    let attempts = [
        (
            "maker",
            "Skill 'w/maker' is mutating, and this run may not start mutating skills",
        ),
        ("reader", "Skill 'w/reader' is already running"),
        ("nowhere", "Skill 'nowhere' not found"),
        ("asked", "Skill 'w/asked' needs approval"),
        (
            "free",
            "Skill 'w/free' has a weaker sandbox than this run, which may not start it",
        ),
    ];
    let mut script: Vec<_> = attempts
        .iter()
        .map(|(skill, _)| use_skill(skill, &json!({"word": "x"})))
        .collect();
    script.push(text("none of them"));
    let rig = Rig::new(SKILLS, script);
    rig.run(&["reader"]).expect_code(0);
    let told = rig.results(5);
    for ((_, expected), told) in attempts.iter().zip(&told) {
        assert!(told.starts_with(expected), "{told}");
    }
    assert_eq!(rig.workspace.runs().len(), 1);
}

#[test]
fn a_model_sees_the_skills_that_it_may_start() {
    let rig = Rig::new(SKILLS, vec![call("list_skills", &json!({})), text("ok")]);
    rig.run(&["reader"]).expect_code(0);
    let listed: Value = serde_json::from_str(&rig.results(1)[0]).unwrap();
    assert_eq!(
        listed,
        json!([{"name": "w/count", "description": "counts"}])
    );
}

#[test]
fn cancelling_a_run_ends_its_children_first() {
    let slow = "  - {id: slow, description: sleeps, run: 'echo here > \"$HOME/did/here\"; sleep 1000'}\n  - {id: waits, description: waits for it, instructions: Wait.}\n";
    let rig = Rig::new(
        slow,
        vec![use_skill("slow", &json!({})), text("never said")],
    );
    let _daemon = super::workspace::daemon::Daemon::start(&rig.workspace);
    let run = rig.workspace.submit(&["waits"]);
    let here = rig.workspace.home.join("did/here");
    super::workspace::eventually("the child to run", || here.exists().then_some(()));
    rig.workspace.run(&["cancel", &run]).expect_code(0);
    rig.workspace.wait(&run);
    let ended = rig.workspace.runs();
    assert_eq!(ended.len(), 2);
    for (run, shown) in ended {
        assert_eq!(shown["outcome"]["kind"], "cancelled", "{run}: {shown:#}");
    }
    assert_eq!(rig.server.requests().len(), 1);
}
