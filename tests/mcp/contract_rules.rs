//! What the contracts say of the protocol, of listed files and of workspace skills, where no other test quotes it.

use serde_json::{Value, json};

use crate::mcp::client::{Client, json_of, page, text_of};
use crate::workspace::{Workspace, eventually};

const GENERATION: &str = "---
name: code-generation
description: Code generation and synthesis capabilities
toolsets: [python-codegen, typescript-codegen]
files:
  - path: templates/python-function.py
    description: Python function template for code generation
  - path: templates/typescript-class.ts
    description: TypeScript class template for code generation
---

# Code Generation Skill

This skill provides code generation and synthesis capabilities across multiple languages. It bundles together tools for Python and TypeScript code generation.

Use the `loadSkillFile` tool to access code templates when generating code in a specific language.
";

const REVIEW: &str = "---
name: code-review
description: Perform comprehensive code reviews
toolsets: [static-analysis]
files:
  - path: guidelines/python-pep8.md
    description: PEP 8 style guide for Python code reviews
  - path: guidelines/typescript-style.md
    description: TypeScript coding standards
  - path: guidelines/security-checks.md
    description: Security vulnerability checklist
  - path: examples/review-template.md
    description: Template structure for code review reports
---

# Code Review Skill

When reviewing code, you can load language-specific style guides using the `loadSkillFile` tool.
";

/// The files that the examples list, with what is said of each.
const FILES: [(&str, &str, &str); 6] = [
    (
        "code-generation",
        "templates/python-function.py",
        "Python function template for code generation",
    ),
    (
        "code-generation",
        "templates/typescript-class.ts",
        "TypeScript class template for code generation",
    ),
    (
        "code-review",
        "guidelines/python-pep8.md",
        "PEP 8 style guide for Python code reviews",
    ),
    (
        "code-review",
        "guidelines/typescript-style.md",
        "TypeScript coding standards",
    ),
    (
        "code-review",
        "guidelines/security-checks.md",
        "Security vulnerability checklist",
    ),
    (
        "code-review",
        "examples/review-template.md",
        "Template structure for code review reports",
    ),
];

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "");
    workspace
}

/// The two examples of the tool set contract, with their files.
fn with_files() -> Workspace {
    let workspace = workspace();
    for (name, text) in [("code-generation", GENERATION), ("code-review", REVIEW)] {
        workspace.write(&format!(".claude/skills/{name}/SKILL.md"), text);
    }
    for (skill, path, _) in FILES {
        workspace.write(
            &format!(".claude/skills/{skill}/{path}"),
            &inside(skill, path),
        );
    }
    workspace
}

/// What stands in a file.
fn inside(skill: &str, path: &str) -> String {
    format!("# Only in {path} of {skill}\n")
}

/// What `use_skill` says, which must be an error before any run.
fn refused(client: &mut Client, skill: &str) -> String {
    let result = client.call("use_skill", &json!({"skill": skill}));
    let said = &result["structuredContent"];
    assert_eq!(
        (&said["is_error"], &said["iterations"], &said["run"]),
        (&json!(true), &json!(0), &Value::Null),
        "{result}"
    );
    text_of(&result)
}

/// mcp-skill-tool.md, "MCP JSON-RPC Format": "Tool Invocation Request" and "Tool Response", word for word.
#[test]
fn a_call_is_a_line_of_json_rpc_and_so_is_its_answer() {
    let workspace = workspace();
    let git = page("git", "Git workflow", "# Git");
    workspace.write(".claude/skills/git/SKILL.md", &git);
    let mut client = Client::connect(&workspace);
    client.write(
        r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "skill", "arguments": {"name": "git"}}}"#,
    );
    let directory = workspace.root.join(".claude/skills/git");
    let text = format!(
        "Loading: git\nBase directory: {}\n\n{git}",
        directory.display()
    );
    let expected = json!({
        "jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}]},
    });
    assert_eq!(client.answer(1), expected);
}

/// mcp-skill-tool.md: "Return error message with list of available skills. Suggest checking skill name spelling",
/// and "Example 3: Skill not found".
#[test]
fn a_name_that_is_spelled_wrong_is_answered_with_how_to_spell_it() {
    let workspace = workspace();
    for (name, description) in [("git", "Git workflow"), ("mcp-builder", "MCP development")] {
        let path = format!(".claude/skills/{name}/SKILL.md");
        workspace.write(&path, &page(name, description, "x"));
    }
    let mut client = Client::connect(&workspace);
    for name in ["gti", "mcp_builder", "nonexistent"] {
        assert_eq!(
            client.text("skill", &json!({"name": name})),
            format!(
                "Skill '{name}' not found.\n\nAvailable skills:\n- git: Git workflow\n- mcp-builder: MCP development\n\nUse the exact skill name (case-insensitive) to load a skill."
            )
        );
    }
}

/// mcp-skill-tool.md: "No authentication required (per specification)", "Read-only operations only (safe)".
#[test]
fn what_hands_skills_out_changes_nothing() {
    let workspace = with_files();
    let before = workspace.tree();
    let mut client = Client::connect(&workspace);
    for (tool, arguments) in [
        ("skill", json!({"name": "code-review"})),
        ("skill", json!({"name": "nothing"})),
        ("Skill", json!({"skill_name": "code-review"})),
        ("loadSkill", json!({"skillName": "code-review"})),
        (
            "loadSkillFile",
            json!({"skillName": "code-review", "path": "guidelines/python-pep8.md"}),
        ),
        ("list_skills", json!({})),
    ] {
        client.call(tool, &arguments);
        assert_eq!(client.tool(tool)["annotations"]["readOnlyHint"], true);
    }
    assert!(client.leave().success());
    assert_eq!(workspace.tree(), before);
}

/// toolset-skill-schema.md, "Example Skill" and "Skill with Files - Full Example", word for word, in the steps of "LLM
/// Workflow with Files": "the LLM receives the list of available files with their descriptions. The LLM can then use
/// the `loadSkillFile` tool to fetch specific files as needed"; "Returns skill content + files array with metadata";
/// "Returns full content of the PEP 8 guide". The files are its use cases: "Load language-specific guidelines only when
/// needed", "Fetch templates when generating code", "Load API documentation on-demand", "Access configuration templates
/// when requested"; and the "Description to help LLM decide when to load this file" of each is as it is written.
#[test]
fn the_examples_with_files_are_loaded_in_the_steps_of_their_workflow() {
    let workspace = with_files();
    let mut client = Client::connect(&workspace);
    for (name, text) in [("code-generation", GENERATION), ("code-review", REVIEW)] {
        let loaded = client.call("loadSkill", &json!({"skillName": name}));
        let said = json_of(&loaded);
        // In the order in which the skill lists them.
        let expected: Value = FILES
            .iter()
            .filter(|(skill, ..)| *skill == name)
            .map(|(_, path, described)| json!({"path": path, "description": described}))
            .collect();
        assert_eq!(said["files"], expected);
        let (_, body) = text.rsplit_once("---\n\n").unwrap();
        assert_eq!(said["content"], body.trim_end());
    }
    for (skill, path, _) in FILES {
        let arguments = json!({"skillName": skill, "path": path});
        assert_eq!(
            client.text("loadSkillFile", &arguments),
            inside(skill, path)
        );
    }
}

/// toolset-skill-schema.md, "Benefits": "Keeps skill prompts concise", "LLM loads only what it needs", "Reduces
/// initial context size", "Enables context-aware resource loading".
#[test]
fn files_reach_the_model_only_when_they_are_asked_for() {
    let workspace = with_files();
    let mut client = Client::connect(&workspace);
    let path = "guidelines/typescript-style.md";
    let before = [
        client.result("tools/list", &json!({})),
        client.call("list_skills", &json!({})),
        client.call("skill", &json!({"name": "code-review"})),
        client.call("loadSkill", &json!({"skillName": "code-review"})),
    ];
    for told in before {
        assert!(!told.to_string().contains("Only in"), "{told}");
    }
    let one = client.text(
        "loadSkillFile",
        &json!({"skillName": "code-review", "path": path}),
    );
    assert_eq!(one, inside("code-review", path));
}

/// toolset-skill-schema.md: "`name`: Required: Yes. Unique identifier for the skill", "`description`: Required: Yes.
/// Human-readable description of what this skill provides", "`toolsets`: Default: `[]`. List of toolsets that make up
/// this skill".
#[test]
fn name_and_description_are_required_names_are_unique_and_toolsets_default_to_none() {
    let workspace = workspace();
    for (path, text) in [
        (
            ".agents/skills/same",
            page("same", "What it provides", "first"),
        ),
        (".claude/skills/same", page("same", "Another", "second")),
        (
            ".claude/skills/nameless",
            "---\ndescription: d\n---\nx\n".to_owned(),
        ),
        (
            ".claude/skills/mute",
            "---\nname: mute\n---\nx\n".to_owned(),
        ),
    ] {
        workspace.write(&format!("{path}/SKILL.md"), &text);
    }
    let mut client = Client::connect(&workspace);
    let loaded = client.call("loadSkill", &json!({"skillName": "same"}));
    let expected = json!({
        "name": "same", "description": "What it provides", "toolsets": [], "files": [], "content": "first",
    });
    assert_eq!(json_of(&loaded), expected);
    let listed = client.call("list_skills", &json!({}));
    let listed = json_of(&listed);
    let listed = listed.as_array().unwrap();
    let names: Vec<&Value> = listed.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, [".claude:same", "same"]);
    for missing in ["nameless", "mute"] {
        let result = client.call("loadSkill", &json!({"skillName": missing}));
        assert_eq!(result["isError"], true, "{result}");
    }
}

/// workspace-skills.md: "`list_skills` tool call: JSON list of skill names and descriptions"; "Expose skills to LLM via
/// `list_skills` and `use_skill` tools"; "Load skills from `workspace/skills/` directory"; and its "Verification":
/// "Skills discovered from workspace/skills/", "Directory format `<name>/SKILL.md` loads correctly", "Flat markdown files
/// still supported", "YAML files still supported", "list_skills returns available skills".
#[test]
fn workspace_skills_of_every_form_are_listed_and_can_be_named() {
    let workspace = workspace();
    let said = "---\ndescription: Test skill\n---\n\nSay hello to the user.\n";
    workspace.write("workspace/skills/test/SKILL.md", said);
    workspace.write("workspace/skills/flat.md", said);
    workspace.write(
        "workspace/skills/old.yaml",
        "name: old\ndescription: Test skill\ninstructions: |\n  Say hello to the user.\n",
    );
    let mut client = Client::connect(&workspace);
    let list = client.tool("list_skills");
    let described = list["description"].as_str().unwrap();
    assert!(described.starts_with("List available skills"), "{list}");
    let used = client.tool("use_skill");
    let described = used["description"].as_str().unwrap();
    assert!(described.starts_with("Invoke a skill by name."), "{used}");
    let listed = client.call("list_skills", &json!({}));
    let text = json_of(&listed);
    let mut names: Vec<&str> = Vec::new();
    for one in text.as_array().unwrap() {
        assert_eq!(one["description"], "Test skill");
        assert_eq!(one["source"], "workspace");
        names.push(one["name"].as_str().unwrap());
    }
    assert_eq!(names, ["flat", "old", "test"]);
    // "Use the test skill" with a model: `tests/agent/roots.rs`.
    for name in names {
        let told = refused(&mut client, name);
        assert_eq!(
            told,
            format!(
                "Skill '{name}' is not run: it has no `run`, and no model is configured. `skill` with `name: {name}` gives its instructions."
            )
        );
    }
}

/// workspace-skills.md: "Skills can reference model aliases (e.g., "fast", "default")"; "Skill with `preferred_model:
/// fast`: Uses `models.fast` config"; "Skill with unknown model alias: Falls back to default model"; "Provide clear
/// error when referenced model alias not found". Where no model is configured an alias leads to none; where one is, see
/// `tests/agent/roots.rs`.
#[test]
fn model_aliases_are_kept_and_lead_to_no_model() {
    let workspace = workspace();
    for alias in ["fast", "default", "no-such-alias"] {
        let text = format!("---\ndescription: d\npreferred_model: {alias}\n---\n\nDo.\n");
        workspace.write(&format!("workspace/skills/{alias}.md"), &text);
    }
    let mut client = Client::connect(&workspace);
    for alias in ["fast", "default", "no-such-alias"] {
        let shown = workspace.json(&["skill", "show", alias]);
        assert_eq!(shown["model"], alias, "{shown}");
        let told = refused(&mut client, alias);
        assert!(told.contains("no model is configured"), "{told}");
    }
}

/// workspace-skills.md: "Validate required_tools exist before skill execution"; "Skill requires unavailable tool: Error
/// before execution. Validation fails"; "Missing tools detected before execution".
#[test]
fn nothing_runs_of_a_skill_whose_tool_is_missing() {
    let workspace = Workspace::with_skills(
        "  - {id: needs, description: d, run: 'echo ran > ran.txt', required_tools: [nosuch]}\n",
    );
    let mut client = Client::connect(&workspace);
    assert_eq!(
        refused(&mut client, "needs"),
        "Skill requires tool 'nosuch' which is not available"
    );
    assert!(client.leave().success());
    assert!(workspace.read("ran.txt").is_none());
    assert_eq!(workspace.json(&["runs"])["runs"], json!([]));
}

/// workspace-skills.md: "Pass skill results back to parent agent"; "Log skill execution with duration and iteration
/// count"; "Track skill usage statistics": attempts are the iterations of a command.
#[test]
fn an_execution_gives_its_result_and_is_logged_with_duration_and_iterations() {
    let workspace = Workspace::with_skills(
        "  - {id: hello, description: d, run: 'echo hello'}\n  - {id: fails, description: d, run: 'exit 3', retry: {max_attempts: 2, backoff: 1ms}}\n",
    );
    let mut client = Client::connect(&workspace);
    let hello = client.call("use_skill", &json!({"skill": "hello"}))["structuredContent"].clone();
    assert_eq!(
        (&hello["content"], &hello["is_error"]),
        (&json!("hello"), &json!(false))
    );
    let fails = client.call("use_skill", &json!({"skill": "fails"}))["structuredContent"].clone();
    assert_eq!(
        (&fails["is_error"], &fails["iterations"]),
        (&json!(true), &json!(2))
    );
    assert!(client.leave().success());
    let metrics = workspace.read("workspace/metrics/metrics.jsonl").unwrap();
    let lines: Vec<Value> = metrics
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for said in [hello, fails] {
        let line = lines
            .iter()
            .find(|line| line["run"] == said["run"])
            .unwrap();
        assert_eq!(line["attempts"], said["iterations"], "{line}");
        for span in ["execution_ms", "total_ms"] {
            assert!(line[span].is_u64(), "{span}: {line}");
        }
    }
}

/// workspace-skills.md: "Watch workspace/skills/ for changes and reload".
#[test]
fn a_change_below_workspace_skills_is_taken_up() {
    let workspace = workspace();
    let text = |said: &str| format!("---\ndescription: {said}\n---\n\nDo.\n");
    workspace.write("workspace/skills/one.md", &text("before"));
    let mut client = Client::connect(&workspace);
    let mut list = || client.call("list_skills", &json!({})).to_string();
    assert!(list().contains("before"));
    workspace.write("workspace/skills/one.md", &text("after it"));
    eventually("the change", || list().contains("after it").then_some(()));
    std::fs::remove_file(workspace.root.join("workspace/skills/one.md")).unwrap();
    eventually("the end of it", || {
        (list().contains("0 in all.")).then_some(())
    });
    client.hears_of_changes();
}
