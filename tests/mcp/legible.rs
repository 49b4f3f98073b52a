//! What a definition or a command writes and a terminal would obey, or a reader would not see: shown, and never as it is.

use serde_json::{Value, json};

use crate::mcp::client::{Client, json_of, page, text_of};
use crate::workspace::Workspace;

/// In the words of YAML, and what a client must not be sent.
const WRITTEN: &str = r"\e]0;x\a\e[2J\0\x9b\u202e\u2066\u200b";
const HIDDEN: [char; 7] = [
    '\u{1b}', '\u{7}', '\0', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200b}',
];

/// The names of the two skills as clients have them.
const OF_ROOT: &str = r"odd\u{202e}gpj";
const OF_WORKER: &str = "prints";

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "mcp: {typed: 5}\n");
    workspace.write(
        "workers/w/worker.yaml",
        &format!(
            "worker: {{id: w, description: d}}
skills:
  - id: {OF_WORKER}
    description: \"Prints {WRITTEN}\\n  twice\"
    run: 'printf \"\\033[31mred\\033[0m\\033[2J\\033]0;t\\007end\\r\\nlast\\n\"'
    interface: {{inputs: [{{name: who, type: string, default: x, description: \"Who {WRITTEN}\"}}]}}
"
        ),
    );
    let own = ".claude/skills/odd";
    workspace.write(
        &format!("{own}/SKILL.md"),
        &format!(
            "---\nname: \"odd\\u202egpj\"\ndescription: \"Odd {WRITTEN}\"\nfiles:\n  - {{path: near.md, description: \"Near {WRITTEN}\"}}\n  - {{path: \"n\\u202el.md\", description: d}}\n---\n\nRAW \u{202e}\n"
        ),
    );
    workspace.write(&format!("{own}/near.md"), "near");
    workspace.write(&format!("{own}/n\u{202e}l.md"), "hidden name");
    workspace
}

/// Fails where a text of a value is one that must not be sent.
fn expect_legible(what: &str, value: &Value) {
    match value {
        Value::String(text) => assert!(!text.contains(HIDDEN), "{what}: {text:?}"),
        Value::Array(all) => all.iter().for_each(|one| expect_legible(what, one)),
        Value::Object(all) => {
            for (key, one) in all {
                assert!(!key.contains(HIDDEN), "{what}: {key:?}");
                expect_legible(what, one);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn names_and_descriptions_are_escaped_in_every_list_and_lead_to_their_skills() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    for list in [
        "tools/list",
        "prompts/list",
        "resources/list",
        "skills/list",
    ] {
        expect_legible(list, &client.result(list, &json!({})));
    }
    let tools = client.result("tools/list", &json!({})).to_string();
    assert!(
        tools.contains(r"odd\\u{202e}gpj") && tools.contains(r"Who \\x1b]0;x\\x07"),
        "{tools}"
    );
    let listed = client.call("list_skills", &json!({}));
    expect_legible("list_skills", &listed);
    let listed = json_of(&listed);
    expect_legible("list_skills", &listed);
    let described = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == OF_WORKER);
    let described = described.unwrap()["description"].as_str().unwrap();
    assert!(described.ends_with("\n  twice"), "{described:?}");
    let loaded = client.call("loadSkill", &json!({"skillName": OF_ROOT}));
    let mut loaded = json_of(&loaded);
    // The text itself is handed out as it stands.
    assert!(
        loaded["content"]
            .take()
            .as_str()
            .unwrap()
            .contains("RAW \u{202e}")
    );
    expect_legible("loadSkill", &loaded);
    for file in loaded["files"].as_array().unwrap() {
        let asked = json!({"skillName": OF_ROOT, "path": file["path"]});
        let text = client.text("loadSkillFile", &asked);
        assert!(
            ["near", "hidden name"].contains(&text.as_str()),
            "{file}: {text}"
        );
    }
    assert_eq!(loaded["files"].as_array().unwrap().len(), 2);
    let read = client.text("skill", &json!({"name": OF_ROOT}));
    assert!(read.starts_with(&format!("Loading: {OF_ROOT}\n")), "{read}");
    assert!(read.contains("RAW \u{202e}"), "{read:?}");
    let raw = client.text("skill", &json!({"name": "odd\u{202e}gpj"}));
    assert_eq!(read, raw);
    let got = client.result("prompts/get", &json!({"name": OF_ROOT}));
    expect_legible("prompts/get", &got["description"]);
    let resources = client.result("resources/list", &json!({}));
    for one in resources["resources"].as_array().unwrap() {
        client.result("resources/read", &json!({"uri": one["uri"]}));
    }
}

#[test]
fn errors_and_what_commands_print_are_escaped() {
    let workspace = workspace();
    workspace.write(".claude/skills/e\u{1b}[31m/SKILL.md", "---\nname: [\n---\n");
    let mut client = Client::connect(&workspace);
    let bad = "a\u{1b}[2J\u{202e}\u{9b}";
    for (tool, arguments) in [
        ("skill", json!({"name": bad})),
        ("Skill", json!({"skill_name": bad})),
        ("Skill", json!({"skill_name": "e\u{1b}[31m"})),
        ("skill", json!({"name": ".claude:e\u{1b}[31m"})),
        ("loadSkill", json!({"skillName": bad})),
        ("loadSkillFile", json!({"skillName": OF_ROOT, "path": bad})),
        ("use_skill", json!({"skill": bad})),
        ("get_run", json!({"run": bad})),
        ("list_runs", json!({"state": bad})),
    ] {
        expect_legible(tool, &client.call(tool, &arguments));
    }
    let ran = client.call("use_skill", &json!({"skill": OF_WORKER}));
    expect_legible("use_skill", &ran);
    assert_eq!(text_of(&ran), "red\\x1b[2J\\x1b]0;t\\x07end\nlast");
    let run = json!({"run": ran["structuredContent"]["run"]});
    let log = client.call("read_thread", &run);
    expect_legible("read_thread", &log);
    assert!(text_of(&log).contains("red\\x1b[2J"), "{log}");
    expect_legible("get_run", &client.call("get_run", &run));
}

#[test]
fn where_there_is_no_skill_that_is_said_in_a_word() {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "skills: {untrusted: [.claude]}\n");
    let mut client = Client::connect(&workspace);
    let description = client.tool("skill")["description"].clone();
    assert_eq!(
        description,
        "Execute a skill within the main conversation\n\n<available_skills>\nThere are no skills here.\n</available_skills>"
    );
    let described = client.tool("Skill")["description"].to_string();
    assert!(
        described.contains("There are no skills here."),
        "{described}"
    );
    let missing = client.text("skill", &json!({"name": "x"}));
    assert_eq!(missing, "Skill 'x' not found.\n\nThere are no skills here.");
    let missing = client.text("Skill", &json!({"skill_name": "x"}));
    assert!(missing.contains("There are no skills here."), "{missing}");
    // One that may not be used is no reason to say that there is none.
    workspace.write(".claude/skills/a/SKILL.md", &page("a", "d", "x"));
    client.hears_of_changes();
    let missing = client.text("skill", &json!({"name": "x"}));
    assert!(missing.contains("`list_skills` says why"), "{missing}");
}

#[test]
fn of_many_workers_that_share_a_name_the_first_are_named() {
    let workspace = Workspace::new();
    for nth in 0..30 {
        workspace.write(
            &format!("workers/w{nth:02}/worker.yaml"),
            &format!("worker: {{id: w{nth:02}, description: d}}\nskills: [{{id: same, description: d, run: 'true'}}]\n"),
        );
    }
    let mut client = Client::connect(&workspace);
    for (tool, arguments) in [
        ("skill", json!({"name": "same"})),
        ("Skill", json!({"skill_name": "same"})),
        ("loadSkill", json!({"skillName": "same"})),
        ("use_skill", json!({"skill": "same"})),
    ] {
        let told = client.text(tool, &arguments);
        assert!(
            told.contains("w00:same") && !told.contains("w25:same,"),
            "{told}"
        );
        assert!(
            told.contains("or another one; `list_skills` lists them"),
            "{told}"
        );
    }
    let loaded = client.text("skill", &json!({"name": "w29:same"}));
    assert!(loaded.starts_with("Loading: w29:same\n"), "{loaded}");
    let refused = client.refusal("list_runs", &json!({"limit": 0}));
    assert!(refused.contains("`limit`"), "{refused}");
}
