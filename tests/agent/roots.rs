//! workspace-skills.md: skills of `workspace/skills`, executed. What the contract says is quoted.

use serde_json::{Value, json};

use super::client::{Client, json_of, text_of};
use super::{Rig, call, text};

/// The contract's example.
const SUMMARIZE: &str = include_str!("../samples/definitions/summarize.md");

/// "Say hello to the user."
const HELLO: &str = "---\ndescription: Test skill\n---\n\nSay hello to the user.\n";

fn rig(script: Vec<super::Reply>) -> Rig {
    let rig = Rig::new("  - {id: own, description: d, run: 'true'}\n", script);
    rig.workspace
        .write("workspace/skills/summarize/SKILL.md", SUMMARIZE);
    rig.workspace.write("workspace/skills/test/SKILL.md", HELLO);
    rig
}

/// What the model was told before its turn number `n`.
fn system(rig: &Rig, n: usize) -> String {
    let seen = rig.server.requests();
    seen[n].body["system"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn used(client: &mut Client, skill: &str, input: &Value) -> (String, Value) {
    let result = client.call("use_skill", &json!({"skill": skill, "input": input}));
    (text_of(&result), result["structuredContent"].clone())
}

#[test]
fn a_workspace_skill_runs_under_each_of_its_names() {
    let names = ["test", "workspace:test", "workspace/test", "TEST"];
    let rig = rig(names.map(|_| text("Hello!")).into());
    for (n, name) in names.into_iter().enumerate() {
        let shown = rig.ran(&[name]);
        assert_eq!(
            shown["summary"]["outcome"]["kind"], "succeeded",
            "{shown:#}"
        );
        assert_eq!(
            shown["summary"]["skill"],
            json!({"worker": "workspace", "skill": "test"}),
            "{shown:#}"
        );
        assert_eq!(system(&rig, n), "Say hello to the user.");
    }
    let runs = rig.workspace.json(&["runs"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 4, "{runs}");
    let shown = rig.workspace.json(&["skill", "show", "workspace/test"]);
    assert_eq!(shown["unavailable"], json!([]), "{shown}");
}

#[test]
fn each_form_of_a_workspace_skill_runs() {
    let rig = rig(vec![text("1"), text("2"), text("3")]);
    rig.workspace.write("workspace/skills/flat.md", HELLO);
    rig.workspace.write(
        "workspace/skills/old.yaml",
        "name: old\ndescription: Test skill\ninstructions: |\n  Say hello to the user.\n",
    );
    let mut client = Client::connect(&rig.workspace);
    for (n, name) in ["test", "flat", "old"].into_iter().enumerate() {
        let (content, said) = used(&mut client, name, &json!({}));
        assert_eq!(content, (n + 1).to_string(), "{said}");
        assert_eq!(
            (&said["is_error"], &said["iterations"], &said["skill"]),
            (
                &json!(false),
                &json!(1),
                &json!(format!("workspace/{name}"))
            )
        );
        assert_eq!(system(&rig, n), "Say hello to the user.");
    }
}

/// "Skill not found", "Invalid input schema", and what `input_schema` gives: "default: bullets".
#[test]
fn input_is_held_to_its_schema_and_completed_with_defaults() {
    let rig = rig(vec![text("- short"), text("short")]);
    let mut client = Client::connect(&rig.workspace);
    for (skill, input, expected) in [
        ("name", json!({}), "Skill 'name' not found"),
        (
            "summarize",
            json!({}),
            "Invalid input: \"content\" is a required property",
        ),
        (
            "summarize",
            json!({"content": "x", "format": "prose"}),
            "Invalid input: /format: ",
        ),
    ] {
        let (content, said) = used(&mut client, skill, &input);
        assert!(content.starts_with(expected), "{content}");
        assert_eq!(
            (&said["is_error"], &said["run"]),
            (&json!(true), &Value::Null)
        );
    }
    // "Behaviors: use_skill(summarize, {content: "..."}): SkillResult with summary".
    let (content, _) = used(&mut client, "summarize", &json!({"content": "a text"}));
    assert_eq!(content, "- short");
    let task = rig.server.requests()[0].body["messages"].to_string();
    assert!(
        task.contains("a text") && task.contains("bullets"),
        "{task}"
    );
    assert!(client.leave().success());
    // The same of a person.
    let refused = rig.run(&["summarize"]).expect_code(2).stderr;
    assert!(
        refused.contains("Invalid input: \"content\" is a required property"),
        "{refused}"
    );
    let shown = rig.ran(&["summarize", "-i", "content=x", "-i", "format=tldr"]);
    assert_eq!(shown["summary"]["outcome"]["kind"], "succeeded", "{shown}");
    let rendered = rig
        .workspace
        .run(&["render", "summarize", "-i", "content=x"]);
    rendered.expect_code(0);
}

/// "Skill requires unavailable tool: Error before execution".
#[test]
fn a_tool_that_is_missing_is_told_before_anything_runs() {
    let rig = rig(Vec::new());
    let page = "---\ndescription: d\nrequired_tools: [nosuch]\n---\n\nDo.\n";
    rig.workspace.write("workspace/skills/needs.md", page);
    let told = "Skill requires tool 'nosuch' which is not available";
    let refused = rig.run(&["needs"]).expect_code(6).stderr;
    assert!(refused.contains(told), "{refused}");
    let mut client = Client::connect(&rig.workspace);
    assert_eq!(used(&mut client, "needs", &json!({})).0, told);
    assert!(client.leave().success());
    assert_eq!(rig.workspace.json(&["runs"])["runs"], json!([]));
}

/// "Skill with `preferred_model: fast`: Uses `models.fast` config"; "Skill with unknown model alias: Falls back to
/// default model. Warning logged"; "Skill exceeds max_iterations: Returns partial result. With limit message".
#[test]
fn models_and_turns_are_those_that_a_skill_names() {
    let again = || call("read_file", &json!({"path": "tracked.txt"}));
    let rig = rig(vec![text("one"), text("two"), again(), again()]);
    let url = rig.server.url();
    let config = rig.workspace.read("workerctl.yaml").unwrap();
    let fast = format!(
        "{config}  fast: {{provider: anthropic, model: scripted-fast, base_url: '{url}', key: 'file:~/key'}}\n"
    );
    rig.workspace.write("workerctl.yaml", &fast);
    for (name, keys) in [
        ("quick", "preferred_model: fast"),
        ("lost", "preferred_model: no-such-alias"),
        ("long", "max_iterations: 2"),
    ] {
        let text = format!("---\ndescription: d\n{keys}\n---\n\nDo.\n");
        rig.workspace
            .write(&format!("workspace/skills/{name}.md"), &text);
    }
    let models = |n: usize| rig.server.requests()[n].body["model"].clone();
    let checked = rig.workspace.run(&["check"]);
    assert!(
        format!("{checked:?}").contains("`no-such-alias` is no configured model"),
        "{checked:?}"
    );
    rig.ran(&["quick"]);
    let lost = rig.run(&["lost"]).expect_code(0);
    assert!(
        lost.stderr
            .contains("the model `no-such-alias` is not configured: `default` is used"),
        "{lost:?}"
    );
    assert_eq!(
        (models(0), models(1)),
        (json!("scripted-fast"), json!("scripted-1"))
    );
    let mut client = Client::connect(&rig.workspace);
    let (content, said) = used(&mut client, "long", &json!({}));
    assert!(content.contains("`max_iterations`"), "{content}");
    assert_eq!(
        (&said["is_error"], &said["iterations"]),
        (&json!(true), &json!(2)),
        "{said}"
    );
}

#[test]
fn files_of_a_directory_are_offered_and_loaded() {
    let rig = rig(vec![
        call("loadSkillFile", &json!({"path": "guide/style.md"})),
        text("Done."),
    ]);
    let page = "---\ndescription: d\nfiles:\n  - {path: guide/style.md, description: How to write}\n---\n\nWrite.\n";
    rig.workspace
        .write("workspace/skills/styled/SKILL.md", page);
    rig.workspace
        .write("workspace/skills/styled/guide/style.md", "Be brief.\n");
    let shown = rig.ran(&["styled"]);
    assert_eq!(shown["summary"]["outcome"]["kind"], "succeeded", "{shown}");
    let told = system(&rig, 0);
    assert!(told.contains("- guide/style.md: How to write"), "{told}");
    assert_eq!(rig.results(1), ["Be brief.\n"]);
}

#[test]
fn a_mutating_workspace_skill_lands_and_asks_where_it_says_so() {
    let write = |content: &str| {
        call(
            "write_file",
            &json!({"path": "made.txt", "content": content}),
        )
    };
    let rig = rig(vec![write("a\n"), text("Written."), text("Never said.")]);
    let page = |keys: &str| format!("---\ndescription: d\n{keys}\n---\n\nSecret text.\n");
    rig.workspace
        .write("workspace/skills/writes.md", &page("mutating: true"));
    rig.workspace
        .write("workspace/skills/asks.md", &page("approval_required: true"));
    rig.workspace.commit_all("skills");
    let shown = rig.ran(&["writes"]);
    assert_eq!(shown["summary"]["outcome"]["kind"], "succeeded", "{shown}");
    assert_eq!(rig.workspace.git(&["show", "HEAD:made.txt"]), "a\n");

    // Not handed to a model that would ask nobody.
    let mut client = Client::connect(&rig.workspace);
    for (tool, key) in [
        ("skill", "name"),
        ("Skill", "skill_name"),
        ("loadSkill", "skillName"),
    ] {
        let said = client.call(tool, &json!({key: "asks"}));
        let said = text_of(&said);
        assert!(
            said.contains("a user must approve it") && !said.contains("Secret"),
            "{tool}: {said}"
        );
    }
    let (content, _) = used(&mut client, "writes", &json!({}));
    assert!(content.contains("A user can run it"), "{content}");
    let (content, said) = used(&mut client, "asks", &json!({}));
    assert_eq!(said["phase"], "awaiting_approval", "{content}");
    assert_eq!(rig.server.requests().len(), 2, "nothing was asked yet");
}

/// "Missing frontmatter", "Missing description", "Empty instructions": "Logged warning, skill skipped"; "Empty
/// workspace/skills/: list_skills returns empty. No error".
#[test]
fn what_is_no_skill_is_skipped_with_a_warning() {
    let rig = rig(Vec::new());
    let broken = [
        ("bare", "Say hello.\n"),
        ("undescribed", "---\nname: undescribed\n---\n\nDo.\n"),
        ("empty", "---\ndescription: d\n---\n"),
    ];
    for (name, page) in broken {
        rig.workspace
            .write(&format!("workspace/skills/{name}.md"), page);
    }
    let said = format!("{:?}", rig.workspace.run(&["check"]));
    for (name, _) in broken {
        assert!(
            said.contains(&format!("workspace/skills/{name}.md")),
            "{said}"
        );
        for called in [name.to_owned(), format!("workspace/{name}")] {
            let refused = rig.run(&[&called]).expect_code(4).stderr;
            assert!(
                refused.contains("was rejected: workspace/skills/"),
                "{refused}"
            );
        }
    }
    std::fs::remove_dir_all(rig.workspace.root.join("workspace/skills")).unwrap();
    std::fs::create_dir_all(rig.workspace.root.join("workspace/skills")).unwrap();
    let mut client = Client::connect(&rig.workspace);
    let listed = client.call("list_skills", &json!({}));
    assert_eq!(json_of(&listed).as_array().unwrap().len(), 1, "{listed}");
    client.lives();
}

#[test]
fn runs_that_could_be_taken_for_those_of_a_worker_are_refused() {
    let rig = rig(Vec::new());
    rig.workspace.write(
        "workers/workspace/worker.yaml",
        "worker: {id: workspace}\nskills:\n  - {id: test, description: d, run: 'echo worker'}\n",
    );
    let refused = rig.run(&["workspace:summarize"]).expect_code(2).stderr;
    assert!(refused.contains("Invalid input"), "{refused}");
    // A worker's skill comes first, under each of its names.
    for name in ["test", "workspace/test", "workspace:test"] {
        let done = rig.run(&[name]).expect_code(0);
        assert!(format!("{done:?}").contains("worker"), "{done:?}");
    }
    rig.workspace.write(
        "workers/workspace/worker.yaml",
        "worker: {id: workspace, id: x}\n",
    );
    let refused = rig.run(&["test"]).expect_code(4).stderr;
    assert!(refused.contains("already belongs to a worker"), "{refused}");
    // What stands in another root is read.
    let page = "---\nname: read\ndescription: d\n---\n\nDo.\n";
    rig.workspace.write(".claude/skills/read/SKILL.md", page);
    let refused = rig.run(&["read"]).expect_code(6).stderr;
    assert!(refused.contains("are read, not executed"), "{refused}");
}

#[test]
fn instructions_of_a_worker_run_over_the_protocol_and_are_withheld_where_a_person_is_asked() {
    let rig = Rig::new(
        "
  - {id: asked, description: d, instructions: Secret text., approval_required: true}
  - {id: held, description: d, instructions: Do it., allowed-tools: [Read]}
",
        vec![text("Held."), text("Approved.")],
    );
    let mut client = Client::connect(&rig.workspace);
    let (content, said) = used(&mut client, "held", &json!({}));
    assert_eq!(
        (content.as_str(), &said["is_error"]),
        ("Held.", &json!(false))
    );
    let described = client.tool("skill")["description"].to_string();
    assert!(described.contains("<name>held</name>"), "{described}");
    assert!(!described.contains("<name>asked</name>"), "{described}");
    for (tool, key) in [("skill", "name"), ("loadSkill", "skillName")] {
        let said = text_of(&client.call(tool, &json!({key: "asked"})));
        let told = "a user must approve it; `use_skill` asks for approval";
        assert!(said.contains(told) && !said.contains("Secret"), "{said}");
    }
    let listed = client.call("list_skills", &json!({"query": "asked"}));
    let one = json_of(&listed)[0].clone();
    assert_eq!(
        (&one["name"], one.get("unavailable")),
        (&json!("asked"), None)
    );
    let (_, said) = used(&mut client, "asked", &json!({}));
    assert_eq!(said["phase"], "awaiting_approval", "{said}");
    assert_eq!(rig.server.requests().len(), 1);
}
