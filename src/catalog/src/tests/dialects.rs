//! What each dialect asks of a skill, and what is done about what people really write.

use super::super::dialect::{Keys, wave};
use super::super::roots::loaded::LoadedSkill;
use super::roots::{found, page};
use super::{ERROR, Workspace, expect};

/// Loads one file of a root; its keys where it is a skill.
pub(super) fn load(path: &str, text: &str) -> (super::Catalog, Option<LoadedSkill>) {
    let catalog = Workspace::new(&[(path, text)]);
    let loaded = catalog.load();
    let skill = loaded.root_skills.skills.first().map(|skill| {
        let read = skill.load().expect("it was read before");
        assert_eq!(read.keys.name, skill.name);
        read
    });
    (loaded, skill)
}

#[track_caller]
fn keys(path: &str, text: &str) -> Keys {
    let (catalog, skill) = load(path, text);
    let problems = super::show(&catalog.problems);
    skill
        .unwrap_or_else(|| panic!("not loaded: {problems}"))
        .keys
}

pub(super) const CLAUDE: &str = ".claude/skills/a/SKILL.md";
const WAVE: &str = ".wave/skills/a/SKILL.md";
const WORKSPACE: &str = "workspace/skills/a/SKILL.md";

/// A frontmatter with name and description, and more.
pub(super) fn with(more: &str) -> String {
    format!("---\nname: a\ndescription: One\n{more}\n---\nDo it.\n")
}

#[test]
fn not_utf8_and_too_large_are_refused_with_their_place() {
    let workspace = Workspace::new(&[]);
    workspace.write(CLAUDE, b"---\nname: a\ndescription: \xff\n---\nx\n");
    workspace.write(".claude/skills/b/SKILL.md", &vec![b'x'; 1_048_577]);
    workspace.write(".claude/skills/c/SKILL.md", page("c", "One").as_bytes());
    let catalog = workspace.load();
    expect(&catalog, CLAUDE, &("not-utf8", ERROR, 3, 14, "UTF-8"));
    expect(
        &catalog,
        ".claude/skills/b/SKILL.md",
        &("file-too-large", ERROR, 0, 0, "1 MiB"),
    );
    assert_eq!(
        catalog.root_skills.skills.len(),
        1,
        "one broken file hides no other"
    );
}

/// "`{{ … }}` in a skill body stays as it is: bodies are never templates".
#[test]
fn bodies_are_never_templates() {
    let text = "---\nname: a\ndescription: One\n---\n{{#if x}} {date} $ARGUMENTS !`date` ${HOME}\n";
    let (_, skill) = load(CLAUDE, text);
    assert_eq!(
        skill.unwrap().body,
        "{{#if x}} {date} $ARGUMENTS !`date` ${HOME}"
    );
}

/// The keys of the Agent Skills specification and those of vendors are kept as they are written.
#[test]
fn every_key_is_kept() {
    let text = with(
        "license: MIT\ncompatibility: git\nmetadata: {author: me}\nallowed-tools: Bash(git add:*), Read\ncontext: fork\nversion: 1.10\norigin: x",
    );
    let keys = keys(CLAUDE, &text);
    assert_eq!(keys.allowed_tools.unwrap(), ["Bash(git add:*)", "Read"]);
    assert_eq!(keys.written["metadata"]["author"], "me");
    assert_eq!(keys.written["version"], "1.10");
    assert_eq!(keys.written.len(), 9);
}

#[test]
fn who_may_start_a_skill_is_the_stricter_of_what_is_written() {
    let table = [
        ("", (true, true)),
        ("disable-model-invocation: true", (false, true)),
        ("user-invocable: false", (true, false)),
        ("user-invokable: false", (true, false)),
        ("user-invocable: true\nuser-invokable: false", (true, false)),
        ("disable_model_invocation: true", (false, true)),
    ];
    for (more, expected) in table {
        let keys = keys(CLAUDE, &with(more));
        assert_eq!(
            (keys.model_invocable, keys.user_invocable),
            expected,
            "{more}"
        );
    }
    let two = keys_error("allowed-tools: [Read]\nallowed_tools: [Bash]");
    assert!(two.contains("restriction-malformed"), "{two}");
}

fn keys_error(more: &str) -> String {
    let (catalog, skill) = load(CLAUDE, &with(more));
    assert!(skill.is_none());
    super::show(&catalog.problems)
}

/// wave-skill-tool.md, "Validation Contract": "`name` field must match directory name. `name` must be
/// lowercase letters, numbers, hyphens only. `description` must be 1-1024 characters".
#[test]
fn wave_lists_what_breaks_its_contract_and_does_not_hand_it_out() {
    let table = [
        (page("b", "One"), "does not match its directory"),
        (page("A b", "One"), "lowercase letters, numbers, hyphens"),
        (page("a", &"x".repeat(1_025)), "1025 characters"),
    ];
    for (text, expected) in table {
        let (catalog, skill) = load(WAVE, &text);
        expect(&catalog, WAVE, &("skill-invalid", ERROR, 0, 0, ""));
        let skill = skill.expect("it is listed");
        assert!(!skill.is_valid());
        let answer = wave::invalid_text("a", &skill.keys.violations);
        assert!(answer.starts_with("Skill 'a' is invalid: "), "{answer}");
        assert!(answer.contains(expected), "{answer}");
        assert!(answer.contains("\n\nFix by:\n- "), "{answer}");
    }
    // It takes its name from none that is handed out, wherever that stands.
    let workspace = Workspace::new(&[
        ("workerctl.yaml", "skills: {roots: [last]}\n"),
        (WAVE, &page("b", "One")),
        ("last/b/SKILL.md", &page("b", "One")),
    ]);
    assert_eq!(found(&workspace.load(), "b"), "last/b/SKILL.md");
}

/// wave-skill-tool.md: "YAML frontmatter must be valid and parseable", and a missing name or description
/// leaves nothing that could be listed.
#[test]
fn wave_skips_what_has_no_name_and_no_description() {
    for text in [
        "---\nname: a\n---\nx\n",
        "---\ndescription: a\n---\nx\n",
        "---\nname: [\n---\nx\n",
    ] {
        let (catalog, skill) = load(WAVE, text);
        assert!(skill.is_none(), "{text}");
        assert!(catalog.has_errors());
    }
}

/// toolset-skill-schema.md: "`path` (required): Relative path from skill root directory (no `./` prefix).
/// `description` (required)".
#[test]
fn listed_files_are_relative_inside_and_described() {
    let good = with(
        "toolsets: [static-analysis]\nfiles:\n  - path: guidelines/a.md\n    description: When to read it",
    );
    let workspace = Workspace::new(&[(CLAUDE, &good), (".claude/skills/a/guidelines/a.md", "x")]);
    let catalog = workspace.load();
    assert!(
        catalog.problems.is_empty(),
        "{}",
        super::show(&catalog.problems)
    );
    let keys = catalog.root_skills.find("a").unwrap().load().unwrap().keys;
    assert_eq!(keys.toolsets, ["static-analysis"]);
    assert_eq!(keys.files.unwrap()[0].path, "guidelines/a.md");
    for item in [
        "{path: ./a.md, description: d}",
        "{path: ../b/a.md, description: d}",
        "{path: /etc/passwd, description: d}",
        "{path: a//b, description: d}",
        "{path: a.md}",
        "{description: d}",
        "a.md",
    ] {
        let (catalog, skill) = load(CLAUDE, &with(&format!("files: [{item}]")));
        assert_eq!(skill.unwrap().keys.files.unwrap(), [], "{item}");
        assert!(
            super::codes(&catalog).contains(&"skill-file-refused"),
            "{item}"
        );
    }
}

/// toolset-skill-schema.md: "`content`: Detailed documentation and implementation notes for the skill".
#[test]
fn content_stands_in_for_a_blank_body() {
    let (_, skill) = load(
        CLAUDE,
        "---\nname: a\ndescription: One\ncontent: Do it.\n---\n",
    );
    assert_eq!(skill.unwrap().body, "Do it.");
    let (_, skill) = load(CLAUDE, &with("content: Something else"));
    assert_eq!(skill.unwrap().body, "Do it.");
}

/// workspace-skills.md, "Directory Skill Format (Preferred)", word for word.
#[test]
fn the_example_of_the_workspace_contract_loads() {
    let text = include_str!("../../../../tests/samples/definitions/summarize.md");
    let (catalog, skill) = load("workspace/skills/summarize/SKILL.md", text);
    assert!(
        catalog.problems.is_empty(),
        "{}",
        super::show(&catalog.problems)
    );
    let keys = skill.unwrap().keys;
    // "`name` defaults to the directory name".
    assert_eq!(keys.name, "summarize");
    assert_eq!(keys.model.as_deref(), Some("fast"));
    assert_eq!(keys.required_tools, ["bash"]);
    assert_eq!(keys.allowed_tools, None);
    assert_eq!(keys.max_iterations, 3);
    let schema = super::super::input_schema::InputSchema::new(&keys.input_schema.unwrap()).unwrap();
    let bound = schema.bind(serde_json::json!({"content": "x"})).unwrap();
    assert_eq!(bound["format"], "bullets");
    assert!(schema.bind(serde_json::json!({})).is_err());
}

/// workspace-skills.md: "max_iterations: int = 5", "Skill without `name` in frontmatter: uses filename
/// stem", "Missing description: logged warning, skill skipped", "Empty instructions: skipped".
#[test]
fn workspace_skills_have_defaults_and_newer_names() {
    let bare = keys(
        "workspace/skills/foo.md",
        "---\ndescription: One\n---\nDo it.\n",
    );
    assert_eq!((bare.name.as_str(), bare.max_iterations), ("foo", 5));
    let newer = keys(
        WORKSPACE,
        &with("model: smart\nallowed_tools: [bash, read]"),
    );
    assert_eq!(newer.model.as_deref(), Some("smart"));
    assert_eq!(newer.required_tools, ["bash", "read"]);
    assert_eq!(newer.allowed_tools.unwrap(), ["bash", "read"]);
    let newest = keys(WORKSPACE, &with("tools: [bash]\nrequired_tools: [git]"));
    assert_eq!(newest.required_tools, ["git", "bash"]);
    for (path, text) in [
        (WORKSPACE, "---\nname: a\n---\nDo it.\n"),
        (WORKSPACE, "---\ndescription: One\n---\n\n"),
        (WORKSPACE, "Do it.\n"),
        ("workspace/skills/a.yaml", "description: One\n"),
        ("workspace/skills/a.yaml", "instructions: Do it.\n"),
        (
            "workspace/skills/a.yaml",
            "description: One\ninstructions: a\n---\nmore: x\n",
        ),
    ] {
        let (catalog, skill) = load(path, text);
        assert!(skill.is_none(), "{path} {text}");
        assert!(!catalog.problems.is_empty());
    }
}

/// workspace-skills.md, "YAML Skill Format (Backward Compatibility)".
#[test]
fn a_workspace_skill_of_yaml_alone_loads() {
    let text = "name: summarize\ndescription: Summarize text\npreferred_model: fast\nrequired_tools:\n  - bash\nmax_iterations: 3\ninput_schema:\n  type: object\ninstructions: |\n  You are a summarization assistant.\n";
    let (catalog, skill) = load("workspace/skills/summarize.yaml", text);
    assert!(
        catalog.problems.is_empty(),
        "{}",
        super::show(&catalog.problems)
    );
    let skill = skill.unwrap();
    assert_eq!(skill.body, "You are a summarization assistant.");
    assert_eq!(skill.keys.model.as_deref(), Some("fast"));
}
