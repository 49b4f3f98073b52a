//! Skills of workers that stand in files of their own: the tools hand them out as those of roots.

use serde_json::{Value, json};

use crate::mcp::client::{Client, json_of, text_of};
use crate::workspace::Workspace;

const REVIEW: &str = "---
name: Review
description: Reviews
toolsets: [static-analysis]
files:
  - {path: guidelines/style.md, description: how it is to look}
  - {path: ../secret.txt, description: not inside}
  - {path: link.md, description: leads out}
---

# Review

Read `guidelines/style.md` first.
";

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.worker(
        "w",
        "  - {id: review, file: skills/review/SKILL.md}\n  - {id: free, file: skills/free/SKILL.md}\n  - {id: page, file: skills/page.md}\n  - {id: inline, description: d, run: 'true', toolsets: [t]}\n",
    );
    let free = "---\nname: Free\ndescription: Lists none\n---\n\nDo.\n";
    for (path, text) in [
        ("review/SKILL.md", REVIEW),
        ("review/guidelines/style.md", "# Style\n"),
        ("review/other.md", "not listed"),
        ("secret.txt", "SECRET"),
        ("free/SKILL.md", free),
        ("free/near.md", "near"),
        ("free/.git/config", "SECRET"),
        ("page.md", free),
    ] {
        workspace.write(&format!("workers/w/skills/{path}"), text);
    }
    let link = workspace.root.join("workers/w/skills/review/link.md");
    std::os::unix::fs::symlink("../secret.txt", link).unwrap();
    workspace
}

#[test]
fn the_whole_file_is_handed_out_with_its_directory() {
    let workspace = workspace();
    let directory = workspace.root.join("workers/w/skills/review");
    let mut client = Client::connect(&workspace);
    let loaded = text_of(&client.call("skill", &json!({"name": "review"})));
    let directory = directory.display();
    assert_eq!(
        loaded,
        format!("Loading: review\nBase directory: {directory}\n\n{REVIEW}")
    );
    let invoked = text_of(&client.call("Skill", &json!({"skill_name": "review"})));
    assert!(invoked.ends_with(REVIEW), "{invoked}");
    assert!(
        invoked.contains(&format!("Path: {directory}\n")),
        "{invoked}"
    );
}

#[test]
fn its_files_are_resources() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let answer = client.ask("resources/list", &json!({}));
    let listed: Vec<&str> = answer["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["uri"].as_str())
        .filter(|uri| uri.starts_with("skill://review/"))
        .collect();
    assert_eq!(
        listed,
        [
            "skill://review/SKILL.md",
            "skill://review/guidelines/style.md"
        ]
    );
    let style = json!({"uri": "skill://review/guidelines/style.md"});
    let read = client.ask("resources/read", &style);
    assert_eq!(read["result"]["contents"][0]["text"], "# Style\n", "{read}");
    for path in ["link.md", "other.md", "../../worker.yaml"] {
        let refused = json!({"uri": format!("skill://review/{path}")});
        let answer = client.ask("resources/read", &refused);
        assert_eq!(answer["error"]["code"], -32_002, "{path}: {answer}");
    }
}

#[test]
fn it_is_loaded_with_the_tool_sets_and_files_that_it_declares() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let mut load = |name: &str| json_of(&client.call("loadSkill", &json!({"skillName": name})));
    let style = json!({"path": "guidelines/style.md", "description": "how it is to look"});
    assert_eq!(
        load("review"),
        json!({
            "name": "review", "description": "Reviews", "toolsets": ["static-analysis"], "files": [style],
            "content": "# Review\n\nRead `guidelines/style.md` first.",
        })
    );
    let near = json!([{"path": "near.md", "description": "4 bytes"}]);
    assert_eq!(load("free")["files"], near);
    assert_eq!(load("page")["files"], json!([]));
    let inline = load("inline");
    assert_eq!(
        (&inline["toolsets"], &inline["files"]),
        (&json!(["t"]), &json!([]))
    );
}

#[test]
fn its_files_are_loaded_and_nothing_outside_of_it() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let mut load = |skill: &str, path: &str| -> (String, Value) {
        let result = client.call("loadSkillFile", &json!({"skillName": skill, "path": path}));
        (text_of(&result), result["isError"].clone())
    };
    let (style, is_error) = load("review", "guidelines/style.md");
    assert_eq!((style.as_str(), is_error), ("# Style\n", json!(false)));
    assert_eq!(load("free", "near.md").0, "near");
    for (skill, path, why) in [
        ("review", "other.md", "is not listed under `files`"),
        ("review", "../secret.txt", "leaves the skill's directory"),
        ("review", "link.md", "leads out"),
        ("free", ".git/config", "of which nothing is read"),
        ("free", "/etc/hostname", "is not relative"),
        ("page", "secret.txt", "is a single file"),
        ("inline", "x", "is defined in worker.yaml"),
    ] {
        let (text, is_error) = load(skill, path);
        assert!(
            is_error == true && text.contains(why),
            "{skill} {path}: {text}"
        );
        assert!(!text.contains("SECRET"), "{text}");
    }
    // The command says the same.
    let listed = workspace.json(&["skill", "files", "w/review"]);
    assert_eq!(
        listed["files"][0]["path"], "guidelines/style.md",
        "{listed}"
    );
    let one = workspace.json(&["skill", "files", "w/review", "guidelines/style.md"]);
    assert_eq!(one["text"], "# Style\n");
    assert_ne!(
        workspace
            .run(&["skill", "files", "w/review", "link.md"])
            .code,
        0
    );
    assert_ne!(workspace.run(&["skill", "files", "w/inline", "x"]).code, 0);
}
