//! The tools `loadSkill`, `loadSkillFile` and `list_skills`.

use serde_json::json;

use crate::mcp::client::{Client, json_of, page, text_of};
use crate::workspace::{Workspace, eventually};

const REVIEW: &str = "---
name: code-review
description: Perform comprehensive code reviews
toolsets: [static-analysis]
files:
  - path: guidelines/typescript-style.md
    description: TypeScript coding standards
  - path: guidelines/python-pep8.md
    description: PEP 8 style guide for Python code reviews
  - path: guidelines/absent.md
    description: Not there
---

# Code Review Skill

When reviewing code, you can load language-specific style guides using the `loadSkillFile` tool.
";

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "");
    workspace.write(".claude/skills/code-review/SKILL.md", REVIEW);
    for (path, text) in [
        ("python-pep8.md", "# PEP 8\n"),
        ("typescript-style.md", "# TS\n"),
        ("other.md", "x"),
    ] {
        workspace.write(
            &format!(".claude/skills/code-review/guidelines/{path}"),
            text,
        );
    }
    workspace
}

#[test]
fn a_skill_is_loaded_with_its_list_of_files() {
    // "Returns skill content + files array with metadata".
    let workspace = workspace();
    let mut client = Client::connect(&workspace);
    let result = client.call("loadSkill", &json!({"skillName": "code-review"}));
    let expected = json!({
        "name": "code-review",
        "description": "Perform comprehensive code reviews",
        "toolsets": ["static-analysis"],
        "files": [
            {"path": "guidelines/typescript-style.md", "description": "TypeScript coding standards"},
            {"path": "guidelines/python-pep8.md", "description": "PEP 8 style guide for Python code reviews"},
        ],
        "content": "# Code Review Skill\n\nWhen reviewing code, you can load language-specific style guides using the `loadSkillFile` tool.",
    });
    assert_eq!(json_of(&result), expected);
    assert!(result.get("structuredContent").is_none(), "{result}");
    let missing = client.call("loadSkill", &json!({"skillName": "nope"}));
    assert_eq!(
        (text_of(&missing).as_str(), &missing["isError"]),
        ("Skill 'nope' not found", &json!(true))
    );
}

#[test]
fn a_file_is_loaded_in_full_and_no_other() {
    // "Returns full content of the PEP 8 guide"; "Relative path from skill root directory (no `./` prefix)".
    let workspace = workspace();
    workspace.write("secret.txt", "SECRET");
    workspace.write(
        ".claude/skills/free/SKILL.md",
        &page("free", "lists no files", "x"),
    );
    workspace.write(".claude/skills/free/near.md", "near");
    let secret = workspace.root.join("secret.txt");
    std::os::unix::fs::symlink(&secret, workspace.root.join(".claude/skills/free/link.txt"))
        .unwrap();
    std::fs::write(
        workspace.root.join(".claude/skills/free/raw.bin"),
        [0xff, 0xfe],
    )
    .unwrap();
    let mut client = Client::connect(&workspace);
    let mut load = |skill: &str, path: &str| {
        let result = client.call("loadSkillFile", &json!({"skillName": skill, "path": path}));
        (text_of(&result), result["isError"] == true)
    };
    assert_eq!(
        load("Code-Review", "guidelines/python-pep8.md"),
        ("# PEP 8\n".to_owned(), false)
    );
    assert_eq!(load("free", "near.md"), ("near".to_owned(), false));
    for (skill, path, why) in [
        (
            "code-review",
            "guidelines/other.md",
            "is not listed under `files`",
        ),
        ("code-review", "guidelines/absent.md", "does not exist"),
        (
            "code-review",
            "./guidelines/python-pep8.md",
            "begins with `./`",
        ),
        (
            "free",
            "../../../secret.txt",
            "leaves the skill's directory",
        ),
        ("free", "/etc/hostname", "is not relative"),
        ("free", "link.txt", "leads out"),
        ("free", "raw.bin", "is not text"),
        ("free", "nothing.md", "does not exist"),
        ("nope", "x", "Skill 'nope' not found"),
    ] {
        let (text, is_error) = load(skill, path);
        assert!(is_error && text.contains(why), "{skill} {path}: {text}");
        assert!(!text.contains("SECRET"), "{text}");
    }
}

#[test]
fn workspace_skills_that_say_too_little_are_skipped_with_a_warning() {
    // "Missing frontmatter", "Missing description", "Empty instructions: Logged warning, skill skipped".
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "");
    workspace.write("workspace/skills/bare.md", "Do this.\n");
    workspace.write("workspace/skills/mute.md", "---\nname: mute\n---\n\nDo.\n");
    workspace.write("workspace/skills/empty.md", "---\ndescription: d\n---\n");
    workspace.write(
        "workspace/skills/good.md",
        "---\ndescription: d\n---\n\nDo.\n",
    );
    let mut client = Client::connect(&workspace);
    let listed = client.call("list_skills", &json!({}));
    assert_eq!(json_of(&listed).as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(json_of(&listed)[0]["name"], "good");
    for skipped in ["bare", "mute", "empty"] {
        eventually("log", || {
            client
                .log()
                .contains(&format!("{skipped}.md"))
                .then_some(())
        });
        let used = client.call("use_skill", &json!({"skill": skipped}));
        assert_eq!(used["isError"], true, "{used}");
    }
}

#[test]
fn list_skills_is_a_json_list_of_names_and_descriptions() {
    // "JSON list of skill names and descriptions"; "Empty workspace/skills/: list_skills returns empty, no error".
    let empty = Workspace::new();
    empty.write("workerctl.yaml", "");
    let none = Client::connect(&empty).call("list_skills", &json!({}));
    assert_eq!(
        (json_of(&none), &none["isError"]),
        (json!([]), &json!(false))
    );
    assert!(none.get("structuredContent").is_none(), "{none}");

    let workspace = workspace();
    workspace.write(
        "workspace/skills/foo.md",
        "---\ndescription: A flat file\n---\n\nDo.\n",
    );
    workspace.write(
        "workspace/skills/old.yaml",
        "description: Pure YAML\ninstructions: Do.\n",
    );
    let mut client = Client::connect(&workspace);
    let listed = client.call("list_skills", &json!({}));
    let text = json_of(&listed);
    let names: Vec<(&str, &str)> = text
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["name"].as_str().unwrap(),
                one["description"].as_str().unwrap(),
            )
        })
        .collect();
    // "Skill without `name` in frontmatter: uses filename stem".
    let expected = [
        ("code-review", "Perform comprehensive code reviews"),
        ("foo", "A flat file"),
        ("old", "Pure YAML"),
    ];
    assert_eq!(names, expected);
    let found = client.call("list_skills", &json!({"query": "FLAT"}));
    assert_eq!(json_of(&found).as_array().unwrap().len(), 1);
    let rest = client.call("list_skills", &json!({"offset": 2}));
    assert_eq!(json_of(&rest)[0]["name"], "old");
    let schema = &client.tool("list_skills")["inputSchema"];
    assert!(schema.get("required").is_none(), "{schema}");
}

#[test]
fn list_skills_is_bounded_in_bytes_and_says_what_it_shortens() {
    let workspace = Workspace::new();
    workspace.write("workerctl.yaml", "");
    let long = "word ".repeat(1_600);
    for n in 0..100 {
        let text = page(&format!("skill-{n:03}"), &long, "x");
        workspace.write(&format!(".claude/skills/skill-{n:03}/SKILL.md"), &text);
    }
    let mut client = Client::connect(&workspace);
    let mut names = Vec::new();
    let mut offset = 0;
    loop {
        let listed = client.call("list_skills", &json!({"offset": offset}));
        let size = json_of(&listed).to_string().len();
        assert!(size <= 8 * 1_024, "{size}");
        assert!(listed["content"].to_string().contains("are shortened here"));
        for one in json_of(&listed).as_array().unwrap() {
            names.push(one["name"].as_str().unwrap().to_owned());
        }
        let more = listed["content"][0]["text"].as_str().unwrap();
        let next = more.split_once("`offset: ").map(|(_, rest)| rest);
        match next.and_then(|rest| rest.split('`').next()) {
            Some(next) => offset = next.parse().unwrap(),
            None => break,
        }
    }
    let expected: Vec<String> = (0..100).map(|n| format!("skill-{n:03}")).collect();
    assert_eq!(names, expected);
    let invoked = client.call("Skill", &json!({"skill_name": "skill-007"}));
    let short = &invoked["structuredContent"]["shortResult"];
    assert!(short.to_string().len() < 1_100, "{short}");
    // What fits is told in full.
    let one = client.call("list_skills", &json!({"query": "skill-007"}));
    let said = json_of(&one)[0]["description"].clone();
    assert_eq!(said.as_str().unwrap(), long.trim_end());
    assert_eq!(text_of(&one), "1 in all.");
    assert_eq!(one["content"].as_array().unwrap().len(), 2);
}

#[test]
fn a_list_of_files_that_is_cut_says_so() {
    let workspace = workspace();
    let many = ".claude/skills/many";
    workspace.write(&format!("{many}/SKILL.md"), &page("many", "a lot", "x"));
    for n in 0..2_100 {
        std::fs::write(workspace.root.join(format!("{many}/{n}.md")), "x").unwrap();
    }
    let mut client = Client::connect(&workspace);
    let loaded = client.call("loadSkill", &json!({"skillName": "many"}));
    assert_eq!(json_of(&loaded)["cut"], true);
    let said = loaded["content"][1]["text"].as_str().unwrap();
    assert!(said.starts_with("Not all files are listed"), "{said}");
    let listed = client.result("resources/list", &json!({}));
    let description = |name: &str| {
        let all = listed["resources"].as_array().unwrap();
        let own = all.iter().find(|one| one["name"] == name).unwrap();
        own["description"].as_str().unwrap().to_owned()
    };
    assert_eq!(description("many"), format!("a lot {said}"));
    assert!(!description("code-review").contains("Not all"));
}
