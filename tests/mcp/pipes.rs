//! Pipes that nobody writes in the place of definitions and beside skills: whoever opened one to read would wait for
//! ever.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::mcp::client::{Client, json_of, page, text_of};
use crate::workspace::Workspace;

/// What is a pipe, each in the place of a definition.
const DEFINITIONS: [&str; 6] = [
    ".claude/skills/x/SKILL.md",
    "workspace/skills/y.md",
    "workers/v/worker.yaml",
    "workers/w/skills/p.md",
    "workers/w/skills/q/SKILL.md",
    "workers/registry.yaml",
];

const LISTING: &str = "---
name: listing
description: lists a pipe
files:
  - {path: pipe, description: nobody writes it}
  - {path: near.md, description: a file}
---

x
";

fn pipe(workspace: &Workspace, path: &str) {
    let path = workspace.root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
}

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "mcp: {refresh: 100ms}\n");
    workspace.write("workers/w/worker.yaml", "worker: {id: w, name: w}\n");
    let good = "---\nname: good\ndescription: d\n---\n\nx\n";
    workspace.write("workers/w/skills/good/SKILL.md", good);
    workspace.write(".claude/skills/git/SKILL.md", &page("git", "d", "x"));
    workspace.write(".claude/skills/git/near.md", "near");
    workspace.write(".claude/skills/listing/SKILL.md", LISTING);
    workspace.write(".claude/skills/listing/near.md", "near");
    for path in DEFINITIONS {
        pipe(&workspace, path);
    }
    for beside in [
        ".claude/skills/git",
        ".claude/skills/listing",
        "workers/w/skills/good",
    ] {
        pipe(&workspace, &format!("{beside}/pipe"));
    }
    workspace
}

#[test]
fn they_are_told_and_everything_else_is_read() {
    let workspace = workspace();
    let checked = workspace.run(&["check", "--json"]).expect_code(4).value();
    let problems = checked["problems"].as_array().unwrap();
    for path in DEFINITIONS {
        let of_path =
            |one: &&serde_json::Value| one["place"]["path"] == path && one["code"] == "not-a-file";
        let told = problems.iter().find(of_path);
        let told = told.unwrap_or_else(|| panic!("{path}: {checked:#}"));
        let message = told["message"].as_str().unwrap();
        assert!(message.ends_with("is not a regular file"), "{told}");
    }
    let listed = workspace.json(&["skills"]).to_string();
    for name in ["git", "listing", "w/good"] {
        assert!(listed.contains(&format!("\"{name}\"")), "{name}: {listed}");
    }
}

#[test]
fn clients_are_answered_and_given_none_of_them() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let description = client.tool("skill")["description"].to_string();
    assert!(description.contains("<name>git</name>"), "{description}");
    for (name, files) in [
        (
            "git",
            json!([{"path": "near.md", "description": "4 bytes"}]),
        ),
        (
            "listing",
            json!([{"path": "near.md", "description": "a file"}]),
        ),
        ("good", json!([])),
    ] {
        let loaded = client.call("loadSkill", &json!({"skillName": name}));
        assert_eq!(json_of(&loaded)["files"], files, "{loaded}");
        let asked = json!({"skillName": name, "path": "pipe"});
        let refused = client.call("loadSkillFile", &asked);
        let text = text_of(&refused);
        assert!(text.contains("`pipe` is not a regular file"), "{text}");
        assert_eq!(refused["isError"], true);
    }
    let listed = client.call("list_skills", &json!({})).to_string();
    assert!(listed.contains("git"), "{listed}");
    // One that comes while the server runs, and one in the place of the configuration.
    let text = page("git", "another", "x");
    pipe(&workspace, ".claude/skills/later/SKILL.md");
    workspace.write(".claude/skills/git/SKILL.md", &text);
    client.hears_of_changes();
    assert!(
        client
            .text("skill", &json!({"name": "git"}))
            .contains("another")
    );
    assert!(client.leave().success());
}

#[test]
fn a_pipe_in_the_place_of_the_configuration_is_told() {
    let workspace = workspace();
    std::fs::remove_file(workspace.root.join("workerctl.yaml")).unwrap();
    pipe(&workspace, "workerctl.yaml");
    let checked = workspace.run(&["check"]).expect_code(4);
    let told = "`workerctl.yaml` is not a regular file";
    assert!(checked.stdout.contains(told), "{checked:?}");
    let mut client = Client::connect(&workspace);
    // Whom the configuration trusts is not known then, and that is an answer.
    let answered = client.text("skill", &json!({"name": "git"}));
    let why = "`workerctl.yaml` cannot be read: until it is repaired";
    assert!(answered.contains(why), "{answered}");
    assert!(client.leave().success());
}
