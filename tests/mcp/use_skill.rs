//! The tool `use_skill`: "Skills", its behaviours and its errors.

use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use crate::mcp::client::{Client, json_of, text_of};
use crate::workspace::Workspace;

const SUMMARIZE: &str = include_str!("../samples/definitions/summarize.md");

const WORKER: &str = "
  - {id: hello, description: d, run: 'echo hello {who}', interface: {inputs: [{name: who, type: string, required: true}]}}
  - {id: fails, description: d, run: 'echo so far; echo the reason >&2; exit 3'}
  - {id: colours, description: d, run: 'printf \"\\033[32mgreen\\033[0m\\n\"; printf \"\\033[31mred\\033[0m\\n\" >&2; exit 3'}
  - {id: writes, description: d, run: 'echo x > f.txt', mutating: true}
  - {id: long, description: d, run: 'head -c 400000 /dev/zero | tr \"\\\\0\" x; echo; echo end'}
";

/// A model that nothing here gets to ask.
const MODEL: &str = "models: {default: {provider: ollama, model: m}}\n";

fn workspace() -> Workspace {
    let workspace = Workspace::with_skills(WORKER);
    workspace.write("workspace/skills/summarize/SKILL.md", SUMMARIZE);
    workspace.write(
        "workspace/skills/plain.md",
        "---\ndescription: d\n---\n\nSay hello to the user.\n",
    );
    workspace
}

fn used(client: &mut Client, skill: &str, input: &Value) -> Value {
    let result = client.call("use_skill", &json!({"skill": skill, "input": input}));
    let said = &result["structuredContent"];
    assert_eq!(said["content"], text_of(&result), "{result}");
    assert_eq!(said["is_error"], result["isError"], "{result}");
    said.clone()
}

/// The content of an error before any run.
fn error(client: &mut Client, skill: &str, input: &Value) -> String {
    let said = used(client, skill, input);
    assert_eq!(said["is_error"], true, "{said}");
    assert_eq!(
        (&said["iterations"], &said["run"]),
        (&json!(0), &Value::Null),
        "{said}"
    );
    said["content"].as_str().unwrap().to_owned()
}

#[test]
fn the_schema_is_the_contracts() {
    let workspace = workspace();
    let tool = Client::connect(&workspace).tool("use_skill");
    let properties = json!({
        "skill": {"type": "string", "description": "Skill name"},
        "input": {"type": "object", "description": "Skill input parameters"},
    });
    assert_eq!(tool["inputSchema"]["properties"], properties);
    assert_eq!(tool["inputSchema"]["required"], json!(["skill"]));
    assert_eq!(tool["annotations"]["readOnlyHint"], false);
}

/// "SkillContext": whose conversation asked for a run can be told from those of others.
#[test]
fn runs_name_the_user_and_the_conversation_that_asked() {
    let workspace = workspace();
    let (mut one, mut other) = (Client::connect(&workspace), Client::connect(&workspace));
    let asked = |client: &mut Client| {
        let said = used(client, "hello", &json!({"who": "you"}));
        let run = said["run"].as_str().unwrap();
        let thread = workspace.show(run)["thread_path"]
            .as_str()
            .unwrap()
            .to_owned();
        let document: Value = serde_json::from_str(&workspace.read(&thread).unwrap()).unwrap();
        let owner = std::fs::metadata(&workspace.home).unwrap().uid();
        assert_eq!(document["run"]["user_id"], owner, "{document:#}");
        document["run"]["chat_id"].as_str().unwrap().to_owned()
    };
    let first = asked(&mut one);
    assert_eq!(asked(&mut one), first);
    assert_ne!(asked(&mut other), first);
}

#[test]
fn errors_before_anything_runs_have_the_contracts_words() {
    let workspace = workspace();
    // Without walls a command of a model could change anything.
    workspace.write("workerctl.yaml", &format!("{MODEL}sandbox: off\n"));
    let mut client = Client::connect(&workspace);
    // "Skill not found: SkillResult.error("Skill 'name' not found")".
    assert_eq!(
        error(&mut client, "name", &json!({})),
        "Skill 'name' not found"
    );
    let missing = client.call("use_skill", &json!({"skill": "name"}));
    assert!(
        missing["content"][1]["text"]
            .as_str()
            .unwrap()
            .contains("`list_skills`"),
        "{missing}"
    );
    // "Invalid input schema: SkillResult.error("Invalid input: <validation error>")".
    let invalid = error(&mut client, "summarize", &json!({"format": "prose"}));
    assert!(invalid.starts_with("Invalid input: "), "{invalid}");
    assert!(
        invalid.contains("\"content\" is a required property") && invalid.contains("/format: "),
        "{invalid}"
    );
    // "Required tool unavailable: SkillResult.error("Skill requires tool 'bash' which is not available")".
    let tool = error(&mut client, "summarize", &json!({"content": "x"}));
    assert_eq!(tool, "Skill requires tool 'bash' which is not available");
    // A worker's inputs are held to its interface.
    for input in [json!({}), json!({"who": "x", "other": 1})] {
        let invalid = error(&mut client, "hello", &input);
        assert!(invalid.starts_with("Invalid input: "), "{invalid}");
    }
    assert!(
        client
            .refusal("use_skill", &json!({}))
            .contains("`skill` is required")
    );
    assert!(
        client
            .refusal("use_skill", &json!({"skill": "hello", "input": []}))
            .contains("expected object")
    );
    client.lives();
}

#[test]
fn a_skill_of_a_worker_runs_durably_and_gives_its_result() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    for name in ["hello", "w/hello", "w:hello"] {
        let said = used(&mut client, name, &json!({"who": "a'b; $(x)"}));
        assert_eq!(said["content"], "hello a'b; $(x)", "{said}");
        assert_eq!(
            (&said["is_error"], &said["iterations"]),
            (&json!(false), &json!(1))
        );
        let run = said["run"].as_str().unwrap();
        let again = client.call("get_run", &json!({"run": run}));
        let told = format!("Run {run} of w/hello: succeeded\n\nhello a'b; $(x)");
        assert_eq!(text_of(&again), told);
        assert!(again.get("structuredContent").is_none(), "{again}");
    }
    let failed = used(&mut client, "fails", &json!({}));
    let content = failed["content"].as_str().unwrap();
    assert!(content.starts_with("w/fails failed: "), "{content}");
    assert!(content.contains("\n\nso far\n\nthe reason"), "{content}");
    assert_eq!(
        (&failed["is_error"], &failed["iterations"]),
        (&json!(true), &json!(1))
    );
    assert!(client.leave().success());
    // What was done is there for everybody.
    let runs = workspace.json(&["runs"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 4, "{runs}");
}

#[test]
fn colours_of_a_skill_are_left_out_for_a_model() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let failed = used(&mut client, "colours", &json!({}));
    assert_eq!(
        failed["content"],
        "w/colours failed: execute failed (exit_code): exit code 3: red\n\ngreen\n\nred",
        "{failed}"
    );
    let thread = client.text("read_thread", &json!({"run": failed["run"]}));
    assert!(thread.contains(" out   green\n"), "{thread}");
    assert!(!thread.contains('\u{1b}'), "{thread}");
}

#[test]
fn of_a_long_line_the_last_64_kib_are_kept() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let said = used(&mut client, "long", &json!({}));
    let content = said["content"].as_str().unwrap();
    let (mark, kept) = content.split_once('\n').unwrap();
    assert_eq!(mark, "[the beginning is left out; `read_thread` gives all]");
    // The end of the last line is not shown.
    assert_eq!(kept.len(), 64 * 1024 - 1);
    assert!(kept.starts_with("xxx") && kept.ends_with("x\nend"));
}

#[test]
fn mutating_skills_run_only_where_the_configuration_says_so() {
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let refused = error(&mut client, "writes", &json!({}));
    assert!(
        refused.contains("A user can run it: `workerctl run`")
            && !refused.contains("workerctl.yaml"),
        "{refused}"
    );
    let listed = client.call("list_skills", &json!({"query": "writes"}));
    assert!(json_of(&listed)[0]["unavailable"].is_string(), "{listed}");
    assert!(workspace.read("f.txt").is_none());
    assert!(client.leave().success());

    // What cannot be understood allows nothing, and is an error of `check`.
    workspace.write("workerctl.yaml", "mcp: {mutating: yes please}\n");
    let mut client = Client::connect(&workspace);
    assert!(error(&mut client, "writes", &json!({})).contains("A user can run it"));
    assert!(client.leave().success());
    let checked = workspace.run(&["check"]).expect_code(4);
    assert!(
        format!("{checked:?}").contains("is not known"),
        "{checked:?}"
    );

    workspace.write("workerctl.yaml", "mcp: {mutating: allow}\n");
    workspace.commit_all("allow");
    let mut client = Client::connect(&workspace);
    let said = used(&mut client, "writes", &json!({}));
    assert_eq!(said["is_error"], false, "{said}");
    let commit = said["commit"].as_str().unwrap();
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]).trim(), commit);
    assert!(
        said["content"]
            .as_str()
            .unwrap()
            .contains(&format!("commit: {commit}")),
        "{said}"
    );
    assert_eq!(
        client.tool("use_skill")["annotations"]["destructiveHint"],
        true
    );
    let listed = client.call("list_skills", &json!({"query": "writes"}));
    assert!(json_of(&listed)[0].get("unavailable").is_none(), "{listed}");
}

#[test]
fn defaults_that_lead_back_to_themselves_end_with_an_answer() {
    let workspace = workspace();
    let again = "{$ref: '#', default: {}}";
    let bomb = format!(
        "---\ndescription: d\ninput_schema: {{type: object, properties: {{p0: {again}, p1: {again}, p2: {again}, p3: {again}}}}}\n---\n\nDo.\n"
    );
    workspace.write("workspace/skills/bomb.md", &bomb);
    workspace.write("workerctl.yaml", MODEL);
    let mut client = Client::connect(&workspace);
    let refused = error(&mut client, "bomb", &json!({}));
    assert!(
        refused.starts_with("Invalid input: the defaults of `input_schema` add more than"),
        "{refused}"
    );
    client.lives();
}
