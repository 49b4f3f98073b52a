//! The tool `Skill`: "Tool API Contract: Skill Tool".

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::mcp::client::{Client, page, text_of};
use crate::workspace::{Workspace, skip};

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "");
    workspace.write(
        ".wave/skills/skill-1/SKILL.md",
        &page("skill-1", "Description of skill 1", "# One"),
    );
    let personal = workspace.home.join(".wave/skills/skill-2");
    std::fs::create_dir_all(&personal).unwrap();
    std::fs::write(
        personal.join("SKILL.md"),
        page("skill-2", "Description of skill 2", "# Two"),
    )
    .unwrap();
    workspace
}

fn invoke(client: &mut Client, name: &str) -> Value {
    client.call("Skill", &json!({"skill_name": name}))
}

#[test]
fn it_is_registered_as_its_contract_writes_it() {
    let workspace = workspace();
    let tool = Client::connect(&workspace).tool("Skill");
    let schema = json!({
        "type": "object",
        "properties": {"skill_name": {
            "type": "string", "description": "Name of the skill to invoke from available skills",
        }},
        "required": ["skill_name"],
        "additionalProperties": false,
    });
    assert_eq!(tool["inputSchema"], schema);
    assert_eq!(
        tool["title"],
        "Invoke a skill to apply specialized expertise and capabilities"
    );
    assert_eq!(
        tool["description"],
        "Invoke skills based on available skill metadata. Skills: - skill-1: Description of skill 1\n- skill-2: Description of skill 2"
    );
}

#[test]
fn success_names_type_and_path() {
    // "Skill: {skill_name} (Type: {personal|project})\nPath: {skillPath}\n\n{SKILL.md content …}"; "Full SKILL.md
    // content with skill path context"; "shortResult: Skill name and brief description".
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let expected = format!(
        "Skill: skill-1 (Type: project)\nPath: {}\n\n{}",
        workspace.root.join(".wave/skills/skill-1").display(),
        page("skill-1", "Description of skill 1", "# One")
    );
    let result = invoke(&mut client, "skill-1");
    assert_eq!(text_of(&result), expected);
    let structured = json!({
        "success": true,
        "content": expected,
        "shortResult": "skill-1: Description of skill 1",
    });
    assert_eq!(result["structuredContent"], structured);
    assert_eq!(result["isError"], false);
    let personal = text_of(&invoke(&mut client, "skill-2"));
    assert!(
        personal.starts_with("Skill: skill-2 (Type: personal)\nPath: "),
        "{personal}"
    );
}

#[test]
fn what_is_not_found_is_answered_with_the_way_to_create_it() {
    // "skill_not_found: Requested skill doesn't exist"; "Skill '{skill_name}' not found.\n\nAvailable skills: …\n\nTo
    // create this skill: …"; "suggestions: Actionable recommendations"; "availableSkills: Alternative skills".
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let result = invoke(&mut client, "other");
    let expected = "Skill 'other' not found.\n\nAvailable skills:\n- skill-1: Description of skill 1\n- skill-2: Description of skill 2\n\nTo create this skill:\n1. Create directory ~/.wave/skills/other/\n2. Add SKILL.md file with proper YAML frontmatter";
    assert_eq!(text_of(&result), expected);
    assert_eq!(result["isError"], true);
    let said = &result["structuredContent"];
    assert_eq!(
        (&said["success"], &said["content"]),
        (&json!(false), &json!(expected))
    );
    assert_eq!(said["error"], "Skill 'other' not found");
    let details = &said["errorDetails"];
    assert_eq!(details["type"], "skill_not_found");
    assert_eq!(details["skillName"], "other");
    assert_eq!(details["availableSkills"], json!(["skill-1", "skill-2"]));
    assert_eq!(
        details["suggestions"][0],
        "Create directory ~/.wave/skills/other/"
    );
}

#[test]
fn an_invalid_skill_is_answered_with_what_repairs_it() {
    // "`name` field must match directory name"; "lowercase letters, numbers, hyphens only"; "1-1024 characters";
    // "skill_invalid: Skill failed validation"; "Skill '{skill_name}' is invalid: {validation_error}\n\nFix by: …".
    let workspace = workspace();
    workspace.write(".wave/skills/mine/SKILL.md", &page("My Skill", "d", "x"));
    workspace.write(
        ".wave/skills/long/SKILL.md",
        &page("long", &"x".repeat(1_025), "x"),
    );
    let mut client = Client::connect(&workspace);
    let result = invoke(&mut client, "My Skill");
    assert_eq!(
        text_of(&result),
        "Skill 'My Skill' is invalid: name `My Skill` does not match its directory `mine`; name `My Skill` holds other than lowercase letters, numbers, hyphens\n\nFix by:\n- write `name: mine`, or rename the directory to `My Skill`\n- use lowercase letters, numbers and hyphens only\n\nSkill will be available after fixing these issues."
    );
    assert_eq!(
        result["structuredContent"]["errorDetails"]["type"],
        "skill_invalid"
    );
    let long = text_of(&invoke(&mut client, "long"));
    assert!(
        long.starts_with("Skill 'long' is invalid: description has 1025 characters\n\nFix by:\n- "),
        "{long}"
    );
}

#[test]
fn other_errors_have_their_category_and_the_skills_that_there_are() {
    // "Error invoking skill '{skill_name}': {error_message}\n\nAvailable skills:\n- skill-1: …"; "skill_malformed: YAML
    // parsing failed"; "skill_inaccessible: File system access denied".
    let workspace = workspace();
    workspace.write(
        ".wave/skills/broken/SKILL.md",
        "---\nname: broken\nname: broken\n---\nx\n",
    );
    workspace.write("elsewhere/SKILL.md", &page("linked", "d", "x"));
    std::fs::create_dir_all(workspace.root.join(".wave/skills/linked")).unwrap();
    std::os::unix::fs::symlink(
        "/etc/hostname",
        workspace.root.join(".wave/skills/linked/SKILL.md"),
    )
    .unwrap();
    let mut client = Client::connect(&workspace);
    for (name, category) in [
        ("broken", "skill_malformed"),
        ("linked", "skill_inaccessible"),
    ] {
        let result = invoke(&mut client, name);
        let text = text_of(&result);
        assert!(
            text.starts_with(&format!("Error invoking skill '{name}': ")),
            "{text}"
        );
        assert!(text.ends_with("\n\nAvailable skills:\n- skill-1: Description of skill 1\n- skill-2: Description of skill 2"), "{text}");
        assert_eq!(
            result["structuredContent"]["errorDetails"]["type"], category,
            "{result}"
        );
        assert_eq!(result["isError"], true);
    }
    assert!(
        client
            .refusal("Skill", &json!({"skill_name": 1}))
            .contains("expected string")
    );
    assert!(
        client
            .refusal("Skill", &json!({"name": "skill-1"}))
            .contains("Unrecognized key")
    );
}

#[test]
fn access_that_is_denied_has_its_category() {
    // "skill_inaccessible: File system access denied".
    let workspace = workspace();
    workspace.write(".wave/skills/shut/SKILL.md", &page("shut", "d", "x"));
    let path = workspace.root.join(".wave/skills/shut/SKILL.md");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    if std::fs::read(&path).is_ok() {
        skip("whoever runs this may read everything");
        return;
    }
    let result = invoke(&mut Client::connect(&workspace), "shut");
    let details = &result["structuredContent"]["errorDetails"];
    assert_eq!(details["type"], "skill_inaccessible", "{result}");
}

#[test]
fn names_are_judged_by_the_tool_and_not_by_its_schema() {
    // "`skill_name` must exist in discovered skills"; "`skill_name` validation performed in execute() method, not
    // schema"; "Name format and length constraints handled by tool implementation".
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let schema = client.tool("Skill")["inputSchema"]["properties"]["skill_name"].clone();
    for limit in ["minLength", "maxLength", "pattern", "enum"] {
        assert!(schema.get(limit).is_none(), "{schema}");
    }
    for name in ["Not A Name!", "../skill-1", "a\nb", " ", &"x".repeat(5_000)] {
        let result = invoke(&mut client, name);
        let told = &result["structuredContent"];
        assert_eq!(told["success"], false, "{result}");
        assert_eq!(told["errorDetails"]["type"], "skill_not_found", "{result}");
    }
    // An empty one is the difference that `docs/dev/contracts.md` records.
    let refused = client.refusal("Skill", &json!({"skill_name": ""}));
    assert_eq!(
        refused,
        "Invalid arguments for tool Skill: `skill_name` cannot be empty"
    );
}

#[test]
fn every_text_is_markdown_and_handed_out_as_it_is() {
    // "Content body must be valid markdown".
    let workspace = workspace();
    let bodies = [
        "# One\n\nDo it.",
        "[open](\n\n| a |\n|--\n**never `closed\n\n```sh\necho",
        "<b>\n***\n&nope; {{ x }}\n\n---\nname: other\n---",
    ];
    for (at, body) in bodies.iter().enumerate() {
        let name = format!("body-{at}");
        let path = format!(".wave/skills/{name}/SKILL.md");
        workspace.write(&path, &page(&name, "d", body));
    }
    workspace.write(".wave/skills/bytes/SKILL.md", "");
    std::fs::write(
        workspace.root.join(".wave/skills/bytes/SKILL.md"),
        b"---\nname: bytes\ndescription: d\n---\n\n\xff\xfe\n",
    )
    .unwrap();
    let mut client = Client::connect(&workspace);
    for (at, body) in bodies.iter().enumerate() {
        let name = format!("body-{at}");
        let text = text_of(&invoke(&mut client, &name));
        let expected = format!("\n\n{}", page(&name, "d", body));
        assert!(text.ends_with(&expected), "{text}");
    }
    let result = invoke(&mut client, "bytes");
    let details = &result["structuredContent"]["errorDetails"];
    assert_eq!(details["type"], "skill_malformed", "{result}");
}

#[test]
fn relative_paths_resolve_from_the_path_that_is_told() {
    // "Supporting files are included in skill path context for relative resolution"; "Users can organize additional
    // resources as needed (documentation, scripts, templates, etc.)".
    let workspace = workspace();
    let beside = ["reference.md", "scripts/run.sh", "templates/deep/page.html"];
    let body = beside.map(|path| format!("[{path}]({path})")).join("\n");
    workspace.write(
        ".wave/skills/team/SKILL.md",
        &page("team", "With files", &body),
    );
    for path in beside {
        workspace.write(&format!(".wave/skills/team/{path}"), path);
    }
    let text = text_of(&invoke(&mut Client::connect(&workspace), "team"));
    let directory = text.lines().find_map(|line| line.strip_prefix("Path: "));
    for path in beside {
        assert!(text.contains(&format!("]({path})")), "{text}");
        let read = std::fs::read_to_string(format!("{}/{path}", directory.unwrap())).unwrap();
        assert_eq!(read, path);
    }
}

#[test]
fn simultaneous_invocations_are_answered_each_with_its_own_skill() {
    // "Multiple simultaneous skill invocations supported"; "Thread-safe skill loading and caching"; "Non-blocking
    // file system operations": a pipe that nobody writes would block whoever reads it.
    let workspace = workspace();
    let name = |at: usize| format!("many-{}", at % 8);
    let path = |at: usize| {
        workspace
            .root
            .join(format!(".wave/skills/{}/SKILL.md", name(at)))
    };
    let text = |at: usize, round: usize| page(&name(at), "d", &format!("round {round}"));
    for at in 0..8 {
        workspace.write(&format!(".wave/skills/{}/SKILL.md", name(at)), &text(at, 0));
    }
    let pipe = workspace.root.join(".wave/skills/pipe/SKILL.md");
    std::fs::create_dir_all(pipe.parent().unwrap()).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let mut client = Client::connect(&workspace);
    let ask = |client: &mut Client, name: &str| {
        let call = json!({"name": "Skill", "arguments": {"skill_name": name}});
        client.request("tools/call", &call)
    };
    let stuck = ask(&mut client, "pipe");
    let mut calls = Vec::new();
    for at in 0..96 {
        calls.push((at, ask(&mut client, &name(at))));
        // Files are replaced while they are asked for: an answer holds one version of them, whole.
        let fresh = path(at).with_extension("new");
        std::fs::write(&fresh, text(at, at / 8 + 1)).unwrap();
        std::fs::rename(fresh, path(at)).unwrap();
    }
    for (at, id) in calls {
        let told = text_of(&client.answer(id)["result"]);
        let begin = format!("Skill: {} (Type: project)\nPath: ", name(at));
        assert!(told.starts_with(&begin), "{told}");
        let whole = (0..=12).any(|round| told.ends_with(&format!("\n\n{}", text(at, round))));
        assert!(whole, "{told}");
    }
    let stuck = &client.answer(stuck)["result"]["structuredContent"];
    assert_eq!(
        stuck["errorDetails"]["type"], "skill_inaccessible",
        "{stuck}"
    );
}

#[test]
fn a_name_that_no_skill_can_have_is_not_to_be_created_and_one_of_several_is_not_invalid() {
    let workspace = workspace();
    for worker in ["a", "b"] {
        workspace.worker(worker, "  - {id: both, description: d, run: 'true'}\n");
    }
    let mut client = Client::connect(&workspace);
    let result = invoke(&mut client, "a/b");
    assert!(!result.to_string().contains("Create directory"), "{result}");
    let details = &result["structuredContent"]["errorDetails"];
    assert_eq!(details["type"], "skill_not_found", "{result}");
    assert!(
        details["suggestions"][0]
            .to_string()
            .contains("holds no `/`"),
        "{result}"
    );
    let result = invoke(&mut client, "both");
    let details = &result["structuredContent"]["errorDetails"];
    assert_eq!(details["type"], "skill_not_found", "{result}");
    assert_eq!(
        details["suggestions"],
        json!(["a:both", "b:both"]),
        "{result}"
    );
    assert!(
        text_of(&result).contains("name one of a:both, b:both"),
        "{result}"
    );
}
