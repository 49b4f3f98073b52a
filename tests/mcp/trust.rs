//! What is handed out of skills that are not trusted with their root.

use serde_json::json;

use crate::mcp::client::{Client, json_of, page, text_of};
use crate::workspace::{Workspace, eventually};

#[test]
fn a_trusted_skill_that_changed_is_said_to_have_changed_by_every_tool() {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "skills: {untrusted: [.claude]}\n");
    let own = ".claude/skills/a/SKILL.md";
    workspace.write(own, &page("a", "One", "GOOD"));
    workspace.write(".claude/skills/a/near.md", "near");
    workspace.write(".claude/skills/a/.git/config", "HIDDEN");
    assert_eq!(workspace.run(&["skill", "trust", "a"]).code, 0);
    let mut client = Client::connect(&workspace);
    let calls = [
        ("skill", json!({"name": "a"})),
        ("Skill", json!({"skill_name": "a"})),
        ("loadSkill", json!({"skillName": "a"})),
    ];
    for (tool, arguments) in &calls {
        let text = text_of(&client.call(tool, arguments));
        assert!(text.contains("GOOD"), "{tool}: {text}");
    }
    let mut file = |path: &str| {
        let result = client.call("loadSkillFile", &json!({"skillName": "a", "path": path}));
        text_of(&result)
    };
    assert_eq!(file("near.md"), "near");
    let hidden = file(".git/config");
    assert!(hidden.contains("of which nothing is read"), "{hidden}");
    workspace.write(own, &page("a", "One", "EVIL"));
    let changed = file("near.md");
    assert!(changed.contains("has changed since"), "{changed}");
    for (tool, arguments) in &calls {
        let text = text_of(&client.call(tool, arguments));
        assert!(text.contains("has changed since"), "{tool}: {text}");
        assert!(!text.contains("EVIL") && !text.contains("nobody"), "{text}");
    }
    let used = text_of(&client.call("use_skill", &json!({"skill": "a"})));
    assert!(used.contains("has changed since"), "{used}");
    for path in ["SKILL.md", "near.md"] {
        let address = json!({"uri": format!("skill://a/{path}")});
        let answer = client.ask("resources/read", &address).to_string();
        assert!(answer.contains("has changed since"), "{answer}");
        assert!(!answer.contains("EVIL"), "{answer}");
    }
    let listed = client.call("list_skills", &json!({}));
    let why = json_of(&listed)[0]["unavailable"].clone();
    assert!(why.as_str().unwrap().contains("has changed since"), "{why}");
}

#[test]
fn a_server_that_starts_with_a_broken_configuration_trusts_no_project() {
    let workspace = Workspace::new();
    workspace.write(".claude/skills/git/SKILL.md", &page("git", "d", "x"));
    workspace.write(
        "workerctl.yaml",
        "skills: {untrusted: [.claude]}\nskills: {}\n",
    );
    let mut client = Client::connect(&workspace);
    let why = "`workerctl.yaml` has an error in line 2: until it is repaired, skills of this project are trusted only";
    let refused = text_of(&client.call("skill", &json!({"name": "git"})));
    assert!(refused.contains(why), "{refused}");
    let listed = json_of(&client.call("list_skills", &json!({})));
    let told = listed[0]["unavailable"].as_str().unwrap();
    assert!(told.contains(why), "{listed}");
    let shown = workspace.run(&["skills"]);
    let words = shown.stderr.split_whitespace().collect::<Vec<_>>();
    assert!(words.join(" ").contains(why), "{shown:?}");
    assert_eq!(workspace.run(&["skill", "trust", "git"]).code, 0);
    let handed = text_of(&client.call("skill", &json!({"name": "git"})));
    assert!(handed.starts_with("Loading: git"), "{handed}");
    eventually("log", || {
        let told = client.log();
        told.contains("are not trusted until the file is fixed")
            .then_some(())
    });
}
