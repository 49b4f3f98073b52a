//! What a model is shown: short lists, tools that are chosen, and skills as tools of their own.

use serde_json::{Value, json};

use crate::mcp::client::{Client, json_of, page, text_of};
use crate::workspace::Workspace;

/// What one agent shows of a description.
const DESCRIPTION_CHARS_MAX: usize = 2_000;

/// Bytes of all tools: 2,200 tokens at four bytes each.
const TOOLS_BYTES_MAX: usize = 4 * 2_200;

const FURTHER: &str = "Further skills, equally usable: list_skills\n";

fn tools(client: &mut Client) -> Vec<Value> {
    let listed = client.result("tools/list", &json!({}));
    listed["tools"].as_array().unwrap().clone()
}

fn names(client: &mut Client) -> Vec<String> {
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools(client).iter().map(name).collect()
}

/// The list of skills in the description of a tool.
fn list(client: &mut Client, tool: &str) -> String {
    let description = client.tool(tool)["description"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        description.chars().count() < DESCRIPTION_CHARS_MAX,
        "{description}"
    );
    if tool == "Skill" {
        return description.split_once("Skills: ").unwrap().1.to_owned();
    }
    let (_, rest) = description.split_once("<available_skills>\n").unwrap();
    rest.strip_suffix("\n</available_skills>")
        .unwrap()
        .to_owned()
}

#[test]
fn lists_arrive_whole_with_any_number_of_skills_and_say_first_what_they_leave_out() {
    for (count, first) in [
        (3, "<skill>\n"),
        (10, "Full descriptions: list_skills\n"),
        (100, FURTHER),
        (1_000, FURTHER),
    ] {
        let workspace = Workspace::new();
        for n in 0..count {
            let text = page(&format!("skill-{n:04}"), &"word ".repeat(36), "x");
            workspace.write(&format!(".claude/skills/skill-{n:04}/SKILL.md"), &text);
        }
        workspace.write("workerctl.yaml", "");
        let mut client = Client::connect(&workspace);
        let size = Value::from(tools(&mut client)).to_string().len();
        assert!(size <= TOOLS_BYTES_MAX, "{count}: {size}");
        let told = list(&mut client, "skill");
        assert!(told.starts_with(first), "{count}: {told}");
        let short = list(&mut client, "Skill");
        assert!(short.len() <= 900, "{count}: {short}");
        assert_eq!(short.starts_with(FURTHER), count >= 100, "{short}");
        // Where no description fits, as many names as there is space for.
        assert_eq!(told.contains("word"), count <= 10, "{count}: {told}");
        assert!(told.contains("skill-0002"), "{told}");
        let missing = client.text("skill", &json!({"name": "none"}));
        assert!(missing.len() < 1_100, "{missing}");
        // This list alone is complete.
        let (mut found, mut rest) = (Vec::new(), true);
        while rest {
            let page = client.call("list_skills", &json!({"offset": found.len()}));
            found.extend(json_of(&page).as_array().unwrap().clone());
            rest = !text_of(&page).ends_with("in all.");
        }
        assert_eq!(found.len(), count);
        let one = client.call("list_skills", &json!({"query": "0002 WORD"}));
        assert_eq!(json_of(&one)[0]["name"], "skill-0002");
    }
}

#[test]
fn the_configuration_says_how_long_lists_are_and_which_tools_there_are() {
    let workspace = Workspace::new();
    for n in 0..100 {
        let text = page(&format!("skill-{n:03}"), &"word ".repeat(36), "x");
        workspace.write(&format!(".claude/skills/skill-{n:03}/SKILL.md"), &text);
    }
    workspace.write("workerctl.yaml", "mcp: {list_bytes: 32768, tools: small}\n");
    let mut client = Client::connect(&workspace);
    let small = [
        "skill",
        "loadSkillFile",
        "list_skills",
        "use_skill",
        "list_runs",
        "get_run",
        "read_thread",
        "cancel_run",
    ];
    assert_eq!(names(&mut client), small);
    let description = client.tool("skill")["description"].to_string();
    assert_eq!(description.matches("<description>word ").count(), 100);
    let refused = client.refusal("loadSkill", &json!({"skillName": "skill-000"}));
    assert_eq!(refused, "Unknown tool: loadSkill");
    assert!(client.leave().success());

    workspace.write("workerctl.yaml", "mcp: {tools: [list_skills, skill]}\n");
    assert_eq!(
        names(&mut Client::connect(&workspace)),
        ["skill", "list_skills"]
    );
    workspace.write("workerctl.yaml", "mcp: {tools: [skill, nosuch]}\n");
    let checked = workspace.run(&["check"]).expect_code(4);
    let told = format!("{checked:?}");
    assert!(
        told.contains("`nosuch` is not known") && told.contains("list_runs"),
        "{told}"
    );
}

const TYPED: &str = "
  - id: greet
    description: Says hello
    run: 'echo hello {who} {often} {loud} {tags}'
    interface:
      inputs:
        - {name: who, type: string, required: true, enum: [you, me], description: Whom}
        - {name: often, type: number, integer: true, min: 1, max: 5, default: 2}
        - {name: loud, type: boolean, default: false}
        - {name: tags, type: array, items: string, pattern: '[a-z]+', default: [a]}
        - {name: day, type: date}
        - {name: key, type: string, sensitive: true, default: SECRET}
  - {id: skill, description: Has the name of a tool, run: 'echo named'}
  - {id: again, description: May be repeated, run: 'echo again', mutating: true, idempotent: true}
  - {id: people, description: For people, run: 'echo ran', disable-model-invocation: true}
  - {id: lacks, description: Cannot run, run: 'echo ran', required_tools: [nosuch]}
";

#[test]
fn skills_that_run_are_tools_of_their_own_where_the_configuration_says_so() {
    let workspace = Workspace::with_skills(TYPED);
    workspace.write(
        ".claude/skills/read/SKILL.md",
        &page("read", "Is read", "x"),
    );
    let own = names(&mut Client::connect(&workspace)).len();
    workspace.write("workerctl.yaml", "mcp: {typed: 9, mutating: allow}\n");
    workspace.commit_all("typed");
    let mut client = Client::connect(&workspace);
    assert_eq!(names(&mut client)[own..], ["again", "greet", "w_skill"]);
    let greet = client.tool("greet");
    assert_eq!(greet["description"], "Says hello");
    let expected = json!({
        "type": "object",
        "properties": {
            "who": {"type": "string", "description": "Whom", "enum": ["you", "me"]},
            "often": {"type": "integer", "minimum": 1.0, "maximum": 5.0, "default": 2},
            "loud": {"type": "boolean", "default": false},
            "tags": {"type": "array", "items": {"type": "string", "pattern": "^(?:[a-z]+)$"}, "default": ["a"]},
            "day": {"type": "string", "format": "date"},
            "key": {"type": "string"},
        },
        "required": ["who"],
        "additionalProperties": false,
    });
    assert_eq!(greet["inputSchema"], expected);
    let listed = client.call("list_skills", &json!({"query": "hello"}));
    assert_eq!(json_of(&listed)[0]["input_schema"], expected);
    // One agent takes an answer that begins with a JSON list for something else.
    assert!(serde_json::from_str::<Value>(&text_of(&listed)).is_err());
    let hints = |tool: &Value| {
        let hint = |name: &str| tool["annotations"][name] == true;
        (
            hint("readOnlyHint"),
            hint("destructiveHint"),
            hint("idempotentHint"),
        )
    };
    assert_eq!(hints(&greet), (true, false, false));
    assert_eq!(hints(&client.tool("again")), (false, true, true));
    let ran = client.call("greet", &json!({"who": "you", "often": 3}));
    assert_eq!(text_of(&ran), "hello you 3 false a");
    assert_eq!(ran["structuredContent"]["skill"], "w/greet", "{ran}");
    assert_eq!(client.text("w_skill", &json!({})), "named");
    let refused = client.call("greet", &json!({"who": "them"}));
    assert!(
        text_of(&refused).starts_with("Invalid input: "),
        "{refused}"
    );
    client.refusal("people", &json!({}));
    assert!(client.leave().success());

    workspace.write("workerctl.yaml", "mcp: {typed: 1}\n");
    let mut client = Client::connect(&workspace);
    assert_eq!(names(&mut client)[own..], ["greet"]);
    client.refusal("again", &json!({}));
}

#[test]
fn a_skill_is_found_by_its_address_in_both_forms_and_a_vanished_one_is_not_offered_instead() {
    let workspace = Workspace::with_skills("  - {id: hello, description: d, run: 'echo hello'}\n");
    workspace.write(
        ".claude/skills/gone/SKILL.md",
        &page("gone", "was here", "x"),
    );
    workspace.write(
        ".claude/skills/stays/SKILL.md",
        &page("stays", "is here", "x"),
    );
    let mut client = Client::connect(&workspace);
    for (tool, key) in [
        ("skill", "name"),
        ("Skill", "skill_name"),
        ("loadSkill", "skillName"),
        ("use_skill", "skill"),
    ] {
        for name in ["w/hello", "W:Hello", "hello"] {
            let said = client.text(tool, &json!({key: name}));
            assert!(
                said.contains("hello") && !said.contains("not found"),
                "{tool} {name}: {said}"
            );
        }
        for name in ["../hello", "w/../hello", "/hello", "x/hello", "w/hello/x"] {
            let said = client.text(tool, &json!({key: name}));
            assert!(said.contains("not found"), "{tool} {name}: {said}");
        }
    }
    // Asked before anybody has noticed, or after: in neither case it is among what there is.
    std::fs::remove_file(workspace.root.join(".claude/skills/gone/SKILL.md")).unwrap();
    for (tool, key) in [("skill", "name"), ("Skill", "skill_name")] {
        let said = client.call(tool, &json!({key: "gone"})).to_string();
        assert!(
            said.contains("not found") && said.contains("stays: is here"),
            "{said}"
        );
        assert!(
            !said.contains("gone: was here") && !said.contains("[\"gone"),
            "{said}"
        );
    }
    let missing = client.call("skill", &json!({"name": "gone"}));
    assert!(missing.get("isError").is_none(), "{missing}");
}
