//! Which skills are offered, under which names, and what a worker's skill says of who may use it.

use serde_json::{Value, json};

use crate::mcp::client::{Client, json_of, page, text_of};
use crate::workspace::Workspace;

fn names(list: &Value) -> Vec<String> {
    let one = |one: &Value| one["name"].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(one).collect()
}

fn prompts(client: &mut Client) -> Vec<String> {
    names(&client.result("prompts/list", &json!({}))["prompts"])
}

fn addresses(client: &mut Client) -> Vec<String> {
    let listed = client.result("resources/list", &json!({}));
    let uri = |one: &Value| one["uri"].as_str().unwrap().to_owned();
    let all = listed["resources"].as_array().unwrap().iter().map(uri);
    all.filter(|uri| uri.starts_with("skill:")).collect()
}

/// What `use_skill` says, and whether it is an error.
fn used(client: &mut Client, skill: &str, input: &Value) -> (String, bool) {
    let result = client.call("use_skill", &json!({"skill": skill, "input": input}));
    (text_of(&result), result["isError"] == true)
}

const RESTRICTED: &str = "
  - {id: open, description: d, run: 'echo open'}
  - {id: people, description: d, run: 'echo ran', disable-model-invocation: true}
  - {id: models, description: d, run: 'echo ran', user-invocable: false}
  - {id: tool, description: d, run: 'echo ran', required_tools: [nosuchtool]}
  - {id: tools, description: d, run: 'echo ran', required_tools: 'nosuchtool, other'}
  - {id: set, description: d, run: 'echo ran', toolsets: [nosuch]}
  - {id: only, description: d, run: 'echo ran', allowed-tools: [Read]}
  - {id: off, description: d, run: 'echo ran', disable-model-invocation: false, required_tools: []}
";

#[test]
fn a_workers_skill_is_held_to_what_it_restricts() {
    let workspace = Workspace::with_skills(RESTRICTED);
    let mut client = Client::connect(&workspace);
    let description = client.tool("skill")["description"].to_string();
    let hidden = "people";
    assert!(!description.contains(&format!("<name>{hidden}</name>")));
    for (tool, key) in [
        ("skill", "name"),
        ("Skill", "skill_name"),
        ("loadSkill", "skillName"),
    ] {
        let said = client.call(tool, &json!({key: hidden})).to_string();
        assert!(said.contains("it is for people"), "{tool} {hidden}: {said}");
    }
    let (said, error) = used(&mut client, hidden, &json!({}));
    assert!(error && said.contains("it is for people"), "{said}");
    let listed = client.call("list_skills", &json!({"query": hidden}));
    let why = &json_of(&listed)[0]["unavailable"].clone();
    assert!(why.to_string().contains("it is for people"), "{listed}");
    let shown = workspace.json(&["skill", "show", hidden]);
    assert_eq!(shown["model_invocable"], false, "{shown}");
    let address = json!({"uri": format!("skill://{hidden}/SKILL.md")});
    let answer = client.ask("resources/read", &address);
    assert_eq!(answer["error"]["code"], -32_002, "{answer}");
    assert!(description.contains("<name>models</name>"), "{description}");
    let expected = ["off", "only", "open", "people", "set", "tool", "tools"];
    assert_eq!(prompts(&mut client), expected);
    let answer = client.ask("prompts/get", &json!({"name": "models"}));
    assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    for (skill, expected) in [
        (
            "tool",
            "Skill requires tool 'nosuchtool' which is not available",
        ),
        (
            "w/tools",
            "Skill requires tool 'nosuchtool' which is not available",
        ),
        (
            "set",
            "Skill requires toolset 'nosuch' which is not available",
        ),
        ("only", "it restricts the tools"),
    ] {
        let (said, error) = used(&mut client, skill, &json!({}));
        assert!(error && said.contains(expected), "{skill}: {said}");
    }
    for skill in ["open", "models", "off"] {
        let (said, error) = used(&mut client, skill, &json!({}));
        assert!(!error, "{skill}: {said}");
    }
    assert!(client.leave().success());
    let runs = workspace.json(&["runs"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 3, "{runs}");
}

#[test]
fn instructions_of_a_worker_are_checked_before_they_are_executed() {
    let workspace = Workspace::with_skills(
        "
  - id: told
    description: d
    instructions: Do it.
    required_tools: [nosuch]
    input_schema: {type: object, properties: {a: {type: string}}, required: [a]}
  - {id: plain, description: d, instructions: Do it.}
  - {id: faced, description: d, instructions: Do it., interface: {inputs: [{name: who, type: string, required: true}]}}
",
    );
    let mut client = Client::connect(&workspace);
    let (said, error) = used(&mut client, "plain", &json!({}));
    let lacks =
        "Skill 'plain' is not run: it has no `run`, and no model is configured. `skill` with";
    assert!(error && said.starts_with(lacks), "{said}");
    assert!(client.leave().success());

    let model = "models: {default: {provider: ollama, model: m}}\n";
    workspace.write("workerctl.yaml", model);
    let mut client = Client::connect(&workspace);
    for (skill, input, expected) in [
        (
            "told",
            json!({}),
            "Invalid input: \"a\" is a required property",
        ),
        (
            "told",
            json!({"a": "x"}),
            "Skill requires tool 'nosuch' which is not available",
        ),
        ("faced", json!({}), "Invalid input: "),
    ] {
        let (said, error) = used(&mut client, skill, &input);
        assert!(error && said.starts_with(expected), "{skill}: {said}");
    }
}

#[test]
fn mutating_skills_are_offered_only_where_they_may_run() {
    let workspace = Workspace::with_skills(
        "  - {id: reads, description: d, run: 'true'}\n  - {id: writes, description: d, run: 'true', mutating: true}\n",
    );
    let mut client = Client::connect(&workspace);
    for tool in ["skill", "Skill"] {
        let description = client.tool(tool)["description"].to_string();
        assert!(!description.contains("writes"), "{description}");
    }
    assert_eq!(prompts(&mut client), ["reads"]);
    assert_eq!(addresses(&mut client), ["skill://reads/SKILL.md"]);
    let answer = client.ask("prompts/get", &json!({"name": "writes"}));
    assert_eq!(answer["error"]["code"], -32_602, "{answer}");
    // Who asks is told of it, and why it does not run.
    let listed = client.call("list_skills", &json!({"query": "writes"}));
    let why = &json_of(&listed)[0]["unavailable"].clone();
    assert!(why.to_string().contains("A user can run it"), "{listed}");
    assert!(client.leave().success());

    workspace.write("workerctl.yaml", "mcp: {mutating: allow}\n");
    let mut client = Client::connect(&workspace);
    let description = client.tool("skill")["description"].to_string();
    assert!(description.contains("<name>writes</name>"), "{description}");
    assert_eq!(prompts(&mut client), ["reads", "writes"]);
    assert_eq!(addresses(&mut client).len(), 2);
}

#[test]
fn a_name_with_a_colon_is_a_workers_skill_first() {
    let workspace = Workspace::with_skills("  - {id: one, description: d, run: 'echo worker'}\n");
    for name in ["w:one", ":", "x:", ":y", "a:b"] {
        let path = format!(".claude/skills/{}/SKILL.md", name.replace(':', "-"));
        let quoted = format!("\"{name}\"");
        workspace.write(&path, &page(&quoted, &format!("of root {name}"), "root"));
    }
    let mut client = Client::connect(&workspace);
    for name in ["w/one", "w:one", "one"] {
        let (said, error) = used(&mut client, name, &json!({}));
        assert_eq!((said.as_str(), error), ("worker", false), "{name}");
    }
    for name in ["w:one", "one"] {
        let text = client.text("skill", &json!({"name": name}));
        assert!(!text.contains("root"), "{name}: {text}");
    }
    // Every name that is listed finds what it is listed with.
    let expected = [".claude:w:one", ":", ":y", "a:b", "one", "x:"];
    assert_eq!(prompts(&mut client), expected);
    for name in expected {
        let text = client.text("skill", &json!({"name": name}));
        assert!(text.starts_with("Loading: "), "{name}: {text}");
        let root = name.strip_prefix(".claude:").unwrap_or(name);
        let own = text.contains(&format!("of root {root}\n"));
        assert_eq!(own, name != "one", "{name}: {text}");
    }
    let (said, _) = used(&mut client, "a/b", &json!({}));
    assert_eq!(said, "Skill 'a/b' not found");
}

#[test]
fn what_was_rejected_keeps_its_name_and_a_rejected_worker_takes_none() {
    let workspace = Workspace::with_skills(
        "  - {id: good, description: d, run: 'echo good'}\n  - {id: bad, description: d, run: 'true', mutating: perhaps}\n",
    );
    workspace.write("workers/gitw/worker.yaml", "worker: {id: gitw, id: x}\n");
    for name in ["bad", "gitw"] {
        let path = format!(".claude/skills/{name}/SKILL.md");
        workspace.write(&path, &page(name, "of a root", "root"));
    }
    let mut client = Client::connect(&workspace);
    for name in ["bad", "w:bad", "gitw:any"] {
        let text = client.text("skill", &json!({"name": name}));
        assert!(text.contains("cannot be loaded: "), "{name}: {text}");
    }
    let (said, error) = used(&mut client, "bad", &json!({}));
    assert!(error && said.contains("`mutating` must be"), "{said}");
    assert_eq!(prompts(&mut client), [".claude:bad", "gitw", "good"]);
    for name in [".claude:bad", "gitw"] {
        let text = client.text("skill", &json!({"name": name}));
        assert!(text.contains("of a root"), "{name}: {text}");
    }
    assert!(client.leave().success());
    // The other face has the same rule.
    let shown = workspace.run(&["skill", "show", "bad", "--json"]);
    assert_eq!(shown.code, 4, "{shown:?}");
    for name in [".claude:bad", "gitw"] {
        let shown = workspace.json(&["skill", "show", name]);
        assert_eq!(shown["description"], "of a root", "{shown}");
    }
    let run = workspace.run(&["run", "gitw/any"]);
    assert_eq!(run.code, 4, "{run:?}");
}

/// What `list_skills` says of one skill.
fn listed(client: &mut Client, name: &str) -> Value {
    let listed = client.call("list_skills", &json!({}));
    let all = json_of(&listed);
    let all = all.as_array().unwrap();
    let own = all.iter().find(|one| one["name"] == name);
    own.unwrap_or_else(|| panic!("no `{name}` in {listed}"))
        .clone()
}

#[test]
fn mutating_skills_of_roots_are_offered_only_where_clients_may_change_things() {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "");
    for (name, key) in [
        ("mutp", "mutating: true"),
        ("near", "mutatng: true"),
        ("calm", "mutating: false"),
        ("odd", "mutating: perhaps"),
    ] {
        let text = format!("---\nname: {name}\ndescription: d\n{key}\n---\n\nDo it.\n");
        workspace.write(&format!(".claude/skills/{name}/SKILL.md"), &text);
    }
    let mut client = Client::connect(&workspace);
    for tool in ["skill", "Skill"] {
        let description = client.tool(tool)["description"].to_string();
        assert!(description.contains("calm"), "{description}");
        for hidden in ["mutp", "near", "odd"] {
            assert!(!description.contains(hidden), "{description}");
        }
    }
    assert_eq!(prompts(&mut client), ["calm"]);
    assert_eq!(addresses(&mut client), ["skill://calm/SKILL.md"]);
    let skills = client.result("skills/list", &json!({}))["skills"].clone();
    assert_eq!(skills.as_array().unwrap().len(), 1, "{skills}");
    for name in ["mutp", "near"] {
        let one = listed(&mut client, name);
        assert_eq!(one["mutating"], true, "{one}");
        assert!(
            one["unavailable"].to_string().contains("A user can run it"),
            "{one}"
        );
        let (said, error) = used(&mut client, name, &json!({}));
        assert!(error && said.contains("A user can run it"), "{said}");
        let uri = json!({"uri": format!("skill://{name}/SKILL.md")});
        for (method, params) in [("prompts/get", json!({"name": name})), ("skills/get", uri)] {
            let answer = client.ask(method, &params);
            assert_eq!(answer["error"]["code"], -32_602, "{answer}");
        }
        // Who knows its name can read it, like a worker's.
        let text = client.text("skill", &json!({"name": name}));
        assert!(text.ends_with("Do it.\n"), "{text}");
    }
    let one = listed(&mut client, "calm");
    assert_eq!(
        (&one["mutating"], one.get("unavailable")),
        (&json!(false), None)
    );
    let text = client.text("skill", &json!({"name": "odd"}));
    assert!(text.contains("`mutating` must be"), "{text}");
    assert!(client.leave().success());
    assert_eq!(workspace.json(&["skill", "show", "mutp"])["mutating"], true);

    workspace.write("workerctl.yaml", "mcp: {mutating: allow}\n");
    let mut client = Client::connect(&workspace);
    assert_eq!(prompts(&mut client), ["calm", "mutp", "near"]);
    assert_eq!(addresses(&mut client).len(), 3);
    assert_eq!(listed(&mut client, "mutp").get("unavailable"), None);
    let (said, _) = used(&mut client, "mutp", &json!({}));
    assert!(said.contains("are read, not executed"), "{said}");
}

#[test]
fn skills_of_workers_that_cannot_be_used_are_not_offered_and_say_why() {
    let workspace = Workspace::with_skills(
        "
  - {id: gone, file: skills/gone.md}
  - {id: asked, description: d, instructions: Do it., approval_required: true}
  - {id: held, description: d, run: 'true', allowed-tools: [Read]}
  - {id: lacks, description: d, run: 'true', required_tools: [nosuch]}
  - {id: told, description: d, instructions: Do it.}
",
    );
    let mut client = Client::connect(&workspace);
    let description = client.tool("skill")["description"].to_string();
    assert!(description.contains("<name>told</name>"), "{description}");
    let path = "workers/w/skills/gone.md";
    for (name, why) in [("gone", path), ("asked", "approve")] {
        assert!(
            !description.contains(&format!("<name>{name}</name>")),
            "{description}"
        );
        for (tool, key) in [
            ("skill", "name"),
            ("Skill", "skill_name"),
            ("loadSkill", "skillName"),
            ("use_skill", "skill"),
        ] {
            let said = client.call(tool, &json!({key: name}));
            assert!(text_of(&said).contains(why), "{tool} {name}: {said}");
            assert!(tool == "skill" || said["isError"] == true, "{said}");
        }
        assert!(
            listed(&mut client, name)["unavailable"]
                .to_string()
                .contains(why)
        );
        let uri = json!({"uri": format!("skill://{name}/SKILL.md")});
        let answer = client.ask("resources/read", &uri);
        assert!(
            answer["error"]["message"].to_string().contains(why),
            "{answer}"
        );
    }
    assert_eq!(prompts(&mut client), ["held", "lacks", "told"]);
    // A command that no client may run can be read, and says so.
    for (name, why) in [
        ("held", "it restricts the tools"),
        ("lacks", "requires tool 'nosuch'"),
    ] {
        assert!(
            listed(&mut client, name)["unavailable"]
                .to_string()
                .contains(why)
        );
        let text = client.text("skill", &json!({"name": name}));
        assert!(
            text.contains("`use_skill` does not run it: ") && text.contains(why),
            "{text}"
        );
    }
}

#[test]
fn a_skill_that_another_stands_before_is_listed_by_its_label() {
    let workspace = Workspace::with_skills("  - {id: both, description: d, run: 'true'}\n");
    workspace.worker("v", "  - {id: both, description: d, run: 'true'}\n");
    workspace.write("workerctl.yaml", "skills: {untrusted: [.agents]}\n");
    for (family, name) in [
        (".agents", "git"),
        (".claude", "git"),
        (".agent", "one"),
        (".claude", "one"),
        (".claude", "both"),
    ] {
        let text = page(name, &format!("of {family}"), "Do it.");
        workspace.write(&format!("{family}/skills/{name}/SKILL.md"), &text);
    }
    // A second one of its root has no name at all.
    workspace.write(
        ".claude/skills/aa/SKILL.md",
        &page("git", "second", "Do it."),
    );
    let mut client = Client::connect(&workspace);
    let all = client.call("list_skills", &json!({}));
    let expected = [
        ".claude:both",
        ".claude:git",
        ".claude:one",
        "git",
        "one",
        "v:both",
        "w:both",
    ];
    assert_eq!(names(&json_of(&all)), expected);
    for name in expected.iter().filter(|name| **name != "git") {
        let text = client.text("skill", &json!({"name": name}));
        assert!(text.starts_with("Loading: "), "{name}: {text}");
        let own = name.starts_with(".claude:");
        assert_eq!(text.contains("of .claude"), own, "{name}: {text}");
    }
    // Elsewhere it stands where nothing is offered under its own name.
    let offered = [".claude:both", ".claude:git", "one", "v:both", "w:both"];
    assert_eq!(prompts(&mut client), offered);
    let description = client.tool("skill")["description"].to_string();
    for name in expected {
        let told = description.contains(&format!("<name>{name}</name>"));
        assert_eq!(told, offered.contains(&name), "{name}: {description}");
    }
    assert_eq!(workspace.run(&["skill", "trust", "git"]).code, 0);
    assert_eq!(
        prompts(&mut client),
        [".claude:both", "git", "one", "v:both", "w:both"]
    );
}
