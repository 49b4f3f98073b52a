//! The tool `skill`: "MCP Tool Contract: skill".

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::mcp::client::{Client, json_of, page, text_of};
use crate::workspace::{Workspace, eventually, skip};

const GIT: &str = "---\nname: git\ndescription: Git deployment workflow skill\n---\n\n# Git Deployment GitOps\n\n## Overview\n";

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "mcp: {refresh: 200ms}\n");
    workspace.write(".claude/skills/git/SKILL.md", GIT);
    let builder = page("mcp-builder", "MCP server development guide", "# Build");
    workspace.write(".agent/skills/mcp-builder/SKILL.md", &builder);
    workspace
}

/// A skill at home.
fn at_home(workspace: &Workspace, path: &str, text: &str) {
    let path = workspace.home.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn load(client: &mut Client, name: &str) -> String {
    client.text("skill", &json!({"name": name}))
}

#[test]
fn the_tool_is_listed_as_its_contract_writes_it() {
    let workspace = workspace();
    let postgres = page("postgres", "PostgreSQL database operations", "x");
    at_home(&workspace, ".claude/skills/postgres/SKILL.md", &postgres);
    let tool = Client::connect(&workspace).tool("skill");
    assert_eq!(tool["title"], "Load Skill");
    let annotations = json!({
        "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false,
    });
    assert_eq!(tool["annotations"], annotations);
    let schema = json!({
        "type": "object",
        "properties": {"name": {
            "type": "string", "minLength": 1,
            "description": "Name of the skill to load (case-insensitive)",
        }},
        "required": ["name"],
        "additionalProperties": false,
    });
    assert_eq!(tool["inputSchema"], schema);
    let expected = r#"Execute a skill within the main conversation

<skills_instructions>
When users ask you to perform tasks, check if any of the available skills below can help complete the task more effectively. Skills provide specialized capabilities and domain knowledge.

How to use skills:
- Invoke skills using this tool with the skill name only (no arguments)
- When you invoke a skill, you will see <command-message>The "{name}" skill is loading</command-message>
- The skill's prompt will expand and provide detailed instructions on how to complete the task
- Examples:
  - `command: "pdf"` - invoke the pdf skill
  - `command: "xlsx"` - invoke the xlsx skill
  - `command: "ms-office-suite:pdf"` - invoke using fully qualified name

Important:
- Only use skills listed in <available_skills> below
- Do not invoke a skill that is already running
- Do not use this tool for built-in CLI commands (like /help, /clear, etc.)
</skills_instructions>

<available_skills>
<skill>
<name>git</name>
<description>Git deployment workflow skill</description>
<location>project</location>
</skill>
<skill>
<name>mcp-builder</name>
<description>MCP server development guide</description>
<location>project</location>
</skill>
<skill>
<name>postgres</name>
<description>PostgreSQL database operations</description>
<location>global</location>
</skill>
</available_skills>"#;
    assert_eq!(tool["description"], expected);
}

#[test]
fn an_existing_skill_is_loaded_whatever_its_case() {
    // "1. Load existing skill: Returns skill content"; "2. Case-insensitive match: "Git" finds "git""; "Example 1:
    // Load git skill"; "Case-insensitive matching (e.g., "Git" matches "git")"; "Example 2: Case-insensitive lookup: Successfully loads "mcp-builder" skill".
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let directory = workspace.root.join(".claude/skills/git");
    let expected = format!(
        "Loading: git\nBase directory: {}\n\n{GIT}",
        directory.display()
    );
    for name in ["git", "Git", "GIT"] {
        let result = client.call("skill", &json!({"name": name}));
        let content = json!([{"type": "text", "text": expected}]);
        assert_eq!(result, json!({"content": content}));
    }
    let builder = load(&mut client, "MCP-Builder");
    assert!(
        builder.starts_with("Loading: mcp-builder\nBase directory: "),
        "{builder}"
    );
    // The description speaks of an argument `command`.
    assert_eq!(client.text("skill", &json!({"command": "git"})), expected);
}

#[test]
fn a_skill_that_is_not_there_is_answered_with_those_that_are() {
    // "3. Skill not found: Returns error with available skills"; "Missing Skill: Return error message with list of
    // available skills. Suggest checking skill name spelling": the last sentence does, in the words of the format. It is
    // a text, without `isError`.
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let expected = "Skill 'nonexistent' not found.\n\nAvailable skills:\n- git: Git deployment workflow skill\n- mcp-builder: MCP server development guide\n\nUse the exact skill name (case-insensitive) to load a skill.";
    let result = client.call("skill", &json!({"name": "nonexistent"}));
    assert_eq!(
        result,
        json!({"content": [{"type": "text", "text": expected}]})
    );
}

#[test]
fn arguments_are_held_to_the_schema() {
    // "4. Empty name: Validation error"; "Skill name cannot be empty"; "Validate `name` parameter is non-empty
    // string", "`name` must be non-empty string"; the schema is strict.
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let refused = client.refusal("skill", &json!({"name": ""}));
    assert_eq!(
        refused,
        "Invalid arguments for tool skill: Skill name cannot be empty"
    );
    for (arguments, expected) in [
        (json!({}), "`name` is required"),
        (json!({"name": 5}), "expected string"),
        (json!({"name": ["git"]}), "expected string"),
        (
            json!({"name": "git", "other": 1}),
            "Unrecognized key: \"other\"",
        ),
    ] {
        let refused = client.refusal("skill", &arguments);
        assert!(refused.contains(expected), "{arguments}: {refused}");
    }
}

#[test]
fn the_first_root_that_has_a_name_wins_it() {
    // "5. Priority resolution: Project skill overrides global", and the order of the four directories.
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "");
    let places = [".agent", "~.agent", ".claude", "~.claude"];
    for (at, place) in places.iter().enumerate() {
        let text = page("same", "d", &format!("from {at}"));
        match place.strip_prefix('~') {
            Some(family) => at_home(&workspace, &format!("{family}/skills/same/SKILL.md"), &text),
            None => workspace.write(&format!("{place}/skills/same/SKILL.md"), &text),
        }
    }
    for at in 0..places.len() {
        let mut client = Client::connect(&workspace);
        let loaded = load(&mut client, "same");
        assert!(loaded.ends_with(&format!("from {at}\n")), "{at}: {loaded}");
        // Those that it stands before have the names of their sources.
        let last = load(&mut client, "~/.claude:same");
        assert!(last.ends_with("from 3\n"), "{last}");
        let path = match places[at].strip_prefix('~') {
            Some(family) => workspace.home.join(family),
            None => workspace.root.join(places[at]),
        };
        if at + 1 < places.len() {
            std::fs::remove_dir_all(path).unwrap();
        }
    }
}

#[test]
fn skills_appear_and_go_with_the_next_refresh() {
    // "6. Refresh detection: New skill appears after 30s"; "Skills are scanned at server startup"; "New skills appear
    // after next refresh cycle"; "Deleted skills removed after next refresh cycle".
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    assert!(
        !client.tool("skill")["description"]
            .as_str()
            .unwrap()
            .contains("fresh")
    );
    workspace.write(
        ".agents/skills/fresh/SKILL.md",
        &page("fresh", "a new one", "x"),
    );
    client.hears_of_changes();
    assert!(load(&mut client, "fresh").starts_with("Loading: fresh\n"));
    assert!(
        client.tool("skill")["description"]
            .as_str()
            .unwrap()
            .contains("<name>fresh</name>")
    );
    std::fs::remove_dir_all(workspace.root.join(".agents")).unwrap();
    client.hears_of_changes();
    assert!(load(&mut client, "fresh").starts_with("Skill 'fresh' not found."));
}

#[test]
fn definitions_are_looked_at_every_30_seconds_where_nothing_else_is_said() {
    // "Automatically refreshed every 30 seconds".
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "");
    let config = workspace.json(&["config"]);
    let values = config["values"].as_array().unwrap();
    let refresh = values
        .iter()
        .find(|one| one["key"] == "mcp.refresh")
        .unwrap();
    assert_eq!(refresh["value"], 30_000);
}

#[test]
fn what_is_no_skill_is_skipped_and_logged_and_nothing_else_suffers() {
    // "7. Missing directory: Continues without error", "Skip directory silently. Continue scanning remaining
    // directories"; "8. Malformed frontmatter: Skips skill, logs warning", "Don't break server"; "9. Missing required
    // field: Skips skill", "Logged to stderr but don't cause errors": one of the eight directories is there.
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "");
    workspace.write(".claude/skills/git/SKILL.md", GIT);
    workspace.write(
        ".claude/skills/open/SKILL.md",
        "---\nname: open\ndescription: d\n\nx\n",
    );
    workspace.write(
        ".claude/skills/twice/SKILL.md",
        "---\nname: twice\nname: twice\ndescription: d\n---\nx\n",
    );
    workspace.write(
        ".claude/skills/nameless/SKILL.md",
        "---\ndescription: d\n---\nx\n",
    );
    workspace.write(".claude/skills/mute/SKILL.md", "---\nname: mute\n---\nx\n");
    let mut client = Client::connect(&workspace);
    let description = client.tool("skill")["description"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(description.matches("<skill>\n").count(), 1, "{description}");
    assert!(load(&mut client, "git").starts_with("Loading: git\n"));
    for broken in ["open", "twice", "nameless", "mute"] {
        let said = load(&mut client, broken);
        assert!(said.contains("cannot be loaded"), "{said}");
        let logged = eventually("log", || {
            Some(client.log()).filter(|log| log.contains(broken))
        });
        assert!(logged.contains(&format!("{broken}/SKILL.md")), "{logged}");
    }
    for absent in [".agent/skills", "wave/skills"] {
        assert!(!client.log().contains(absent), "{}", client.log());
    }
    client.lives();
}

#[test]
fn what_may_not_be_read_is_skipped_and_logged() {
    // "10. Permission denied: Skips skill, logs error"; "Skip inaccessible files/directories. Log error to stderr".
    let workspace = workspace();
    workspace.write(".claude/skills/shut/SKILL.md", &page("shut", "d", "x"));
    let path = workspace.root.join(".claude/skills/shut/SKILL.md");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    if std::fs::read(&path).is_ok() {
        skip("whoever runs this may read everything; a pipe is in for the file");
        std::fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }
    let mut client = Client::connect(&workspace);
    assert!(load(&mut client, "git").starts_with("Loading: git\n"));
    assert!(load(&mut client, "shut").contains("cannot be loaded"));
    eventually("log", || {
        client.log().contains("shut/SKILL.md").then_some(())
    });
}

#[test]
fn names_lead_nowhere_else() {
    // "Don't accept path separators in skill names"; "Any characters allowed (spaces, special chars, unicode)";
    // "Sanitize file paths to prevent directory traversal"; "Restrict access to predefined skill directories only";
    // "Normalize to lowercase for lookup".
    let workspace = workspace();
    let odd = "Ünï code & <b> 'x' \u{1F600}";
    let quoted = serde_json::Value::from(odd).to_string();
    workspace.write(
        ".claude/skills/odd/SKILL.md",
        &page(&quoted, "d", "odd body"),
    );
    workspace.write("secret/SKILL.md", &page("secret", "d", "SECRET"));
    let mut client = Client::connect(&workspace);
    assert!(load(&mut client, &odd.to_uppercase()).ends_with("odd body\n"));
    for name in [
        "../../../etc/passwd",
        ".ssh/id_rsa",
        "../secret",
        "..\\secret",
        "git/../git",
        "/etc/passwd",
        "git\u{0}",
        "a\nb",
        "..",
        ":",
        ".claude:../../secret",
    ] {
        let said = load(&mut client, name);
        assert!(said.starts_with("Skill '"), "{name:?}: {said}");
        assert!(
            said.contains("' not found.\n\nAvailable skills:\n- "),
            "{name:?}: {said}"
        );
        assert!(!said.contains("SECRET"), "{said}");
    }
    let long = "x".repeat(100_000);
    assert!(load(&mut client, &long).len() < 2_000);
    let description = client.tool("skill")["description"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        description.contains("<name>Ünï code &amp; &lt;b&gt; &apos;x&apos; \u{1F600}</name>"),
        "{description}"
    );
    assert_eq!(description.matches("</available_skills>").count(), 1);
}

#[test]
fn skills_of_workers_are_found_by_their_name_and_by_worker_and_name() {
    let workspace = Workspace::new();
    workspace.worker("a", "  - {id: one, description: first, run: 'true'}\n  - {id: both, description: of a, run: 'true'}\n");
    workspace.worker("b", "  - {id: both, description: of b, run: 'true', interface: {inputs: [{name: n, type: number, required: true}]}}\n");
    workspace.write(
        "workers/a/skills/told.md",
        "---\nskill: {id: told, name: Told, description: has a file}\n---\n\nDo this.\n",
    );
    let mut client = Client::connect(&workspace);
    assert!(load(&mut client, "told").ends_with("\n\nDo this.\n"));
    let one = load(&mut client, "one");
    assert!(
        one.contains("name: \"one\"") && one.contains("`use_skill`, `skill: a/one`"),
        "{one}"
    );
    assert_eq!(load(&mut client, "A:One"), one);
    let both = load(&mut client, "both");
    assert_eq!(
        both,
        "Skill 'both' belongs to several workers.\n\nUse one of: a:both, b:both"
    );
    assert!(load(&mut client, "b:both").contains("`n` (number, required)"));
    let description = client.tool("skill")["description"]
        .as_str()
        .unwrap()
        .to_owned();
    for name in ["one", "a:both", "b:both", "told"] {
        assert!(
            description.contains(&format!("<name>{name}</name>")),
            "{name}: {description}"
        );
    }
}

#[test]
fn a_skill_that_vanishes_after_it_was_listed_is_not_found() {
    let workspace = workspace();
    workspace.write("workerctl.yaml", "mcp: {refresh: 30s}\n");
    workspace.write(".claude/skills/gone/SKILL.md", &page("gone", "d", "x"));
    let mut client = Client::connect(&workspace);
    assert!(
        client.tool("skill")["description"]
            .as_str()
            .unwrap()
            .contains("<name>gone</name>")
    );
    std::fs::remove_dir_all(workspace.root.join(".claude/skills/gone")).unwrap();
    assert!(load(&mut client, "gone").starts_with("Skill 'gone' not found."));
    workspace.write(".claude/skills/git/SKILL.md", "---\nname: git\n");
    assert!(load(&mut client, "git").starts_with("Skill 'git' cannot be loaded: "));
    client.lives();
}

#[test]
fn skills_for_people_and_untrusted_ones_are_not_handed_to_a_model() {
    let workspace = workspace();
    workspace.write("workerctl.yaml", "skills: {untrusted: [.claude]}\n");
    let private =
        "---\nname: private\ndescription: d\ndisable-model-invocation: true\n---\n\nFor people.\n";
    workspace.write(".agent/skills/private/SKILL.md", private);
    let mut client = Client::connect(&workspace);
    let description = client.tool("skill")["description"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(description.contains("mcp-builder"));
    assert!(
        !description.contains("<name>git</name>") && !description.contains("private"),
        "{description}"
    );
    assert!(load(&mut client, "git").contains("it is not trusted"));
    assert!(load(&mut client, "private").contains("it is for people"));
    let listed = client.call("list_skills", &json!({"query": "git deploy"}));
    let only = json_of(&listed)[0].clone();
    assert_eq!(only["name"], "git");
    assert!(
        only["unavailable"].as_str().unwrap().contains("trust"),
        "{only}"
    );
    let run = client.call("use_skill", &json!({"skill": "git"}));
    assert_eq!(run["isError"], true);
    assert!(text_of(&run).contains("it is not trusted"), "{run}");
}
