//! The tool `Skill`: "Tool API Contract: Skill Tool".

use serde_json::{Value, json};

use crate::client::{Client, page, text_of};
use crate::workspace::Workspace;

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
    // "Skill: {skill_name} (Type: {personal|project})\nPath: {skillPath}\n\n{SKILL.md content …}".
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
    // "`name` field must match directory name"; "lowercase letters, numbers, hyphens only"; "1-1024 characters".
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
    // "Error invoking skill '{skill_name}': {error_message}\n\nAvailable skills:\n- skill-1: …".
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
