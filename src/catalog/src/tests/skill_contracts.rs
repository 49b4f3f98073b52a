//! What the published formats say of loading, sentence by sentence, where no other test says it.

use super::super::dialect::wave;
use super::super::roots::files;
use super::super::roots::loaded::Withheld;
use super::super::roots::trust::{Trust, TrustFiles};
use super::roots::{found, page};
use super::{Workspace, codes};

/// mcp-skill-tool.md, "Case-Insensitive Matching": "'Git' matches 'git'", "'MCP-Builder' matches
/// 'mcp-builder'", "'POSTGRES' matches 'postgres'".
#[test]
fn names_match_without_regard_to_case() {
    let workspace = Workspace::new(&[
        (".agent/skills/git/SKILL.md", &page("git", "One")),
        (
            ".agent/skills/mcp-builder/SKILL.md",
            &page("mcp-builder", "One"),
        ),
        (".agent/skills/postgres/SKILL.md", &page("Postgres", "One")),
    ]);
    let catalog = workspace.load();
    for (wanted, directory) in [
        ("Git", "git"),
        ("MCP-Builder", "mcp-builder"),
        ("POSTGRES", "postgres"),
    ] {
        let expected = format!(".agent/skills/{directory}/SKILL.md");
        assert_eq!(found(&catalog, wanted), expected);
    }
}

/// mcp-skill-tool.md: "Any characters allowed (spaces, special chars, unicode)", and "`ms-office-suite:pdf`
/// - invoke using fully qualified name".
#[test]
fn names_may_hold_what_is_no_path() {
    for name in ["Größe & Maß", "ms-office-suite:pdf", "git (team)"] {
        let text = page(&format!("\"{name}\""), "One");
        let workspace = Workspace::new(&[(".claude/skills/a/SKILL.md", &text)]);
        assert_eq!(
            found(&workspace.load(), name),
            ".claude/skills/a/SKILL.md",
            "{name}"
        );
    }
}

/// mcp-skill-tool.md, "Required Frontmatter Fields": "Skills missing either field are skipped during scanning.
/// Logged to stderr but don't cause errors", and "Malformed Frontmatter: Skip skill during scanning. Log
/// warning to stderr. Don't break server".
#[test]
fn what_lacks_a_field_or_is_malformed_is_skipped_and_breaks_nothing() {
    let workspace = Workspace::new(&[
        (".agent/skills/a/SKILL.md", "---\nname: a\n---\nx\n"),
        (".agent/skills/b/SKILL.md", "---\ndescription: b\n---\nx\n"),
        (".agent/skills/c/SKILL.md", "---\nname: [c\n---\nx\n"),
        (".agent/skills/d/SKILL.md", &page("d", "One")),
    ]);
    let catalog = workspace.load();
    let visible: Vec<&str> = catalog
        .root_skills
        .visible()
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(visible, ["d"]);
    assert_eq!(catalog.root_skills.refused.len(), 3);
    for refused in &catalog.root_skills.refused {
        let own = |one: &&crate::model::Problem| one.place.path == refused.place.path;
        let mut why = catalog.problems.iter().filter(own);
        assert!(why.any(|one| one.severity == super::ERROR), "{refused:?}");
    }
    // The next one of that name is taken instead: first match among those that are skills.
    workspace.write(".claude/skills/a/SKILL.md", page("a", "One").as_bytes());
    assert_eq!(found(&workspace.load(), "a"), ".claude/skills/a/SKILL.md");
}

/// mcp-skill-tool.md, "Path Traversal Prevention": "Disallow: name: '../../../etc/passwd', name: '.ssh/id_rsa'.
/// Only search in predefined directories. Don't accept path separators in skill names".
#[test]
fn a_name_is_never_a_path() {
    let workspace = Workspace::new(&[(".agent/skills/git/SKILL.md", &page("git", "One"))]);
    let catalog = workspace.load();
    for name in [
        "../../../etc/passwd",
        ".ssh/id_rsa",
        ".agent/skills/git",
        "git/SKILL.md",
        "./git",
        "/git",
        "",
    ] {
        assert_eq!(found(&catalog, name), "unknown", "{name}");
    }
}

/// workspace-skills.md: "Empty workspace/skills/: list_skills returns empty. No error".
#[test]
fn an_empty_directory_of_skills_is_no_error() {
    let workspace = Workspace::new(&[("workspace/skills/.gitkeep", "")]);
    let catalog = workspace.load();
    assert_eq!(codes(&catalog), [] as [&str; 0]);
    assert_eq!(catalog.root_skills.skills.len(), 0);
}

/// workspace-skills.md: "Invalid files skipped with warning", "Missing frontmatter: Logged warning, skill skipped during
/// discovery", and "Default skill name to filename stem if not specified".
#[test]
fn invalid_files_of_a_workspace_are_skipped_and_the_others_load() {
    let workspace = Workspace::new(&[
        (
            "workspace/skills/good.md",
            "---\ndescription: One\n---\nDo it.\n",
        ),
        ("workspace/skills/bad.md", "no frontmatter\n"),
        ("workspace/skills/worse.yaml", ": : :\n"),
        ("workspace/skills/notes.txt", "for people\n"),
    ]);
    let catalog = workspace.load();
    assert_eq!(found(&catalog, "good"), "workspace/skills/good.md");
    assert_eq!(catalog.root_skills.skills.len(), 1);
    assert_eq!(catalog.root_skills.refused.len(), 2);
}

/// wave-skill-tool.md, "Directory Structure Contract": "SKILL.md (required), reference.md (optional),
/// scripts/ (optional)", personal and project, and "All supporting files must be within skill directory".
#[test]
fn wave_skills_have_supporting_files_within_them() {
    let workspace = Workspace::new(&[
        (
            ".wave/skills/team-skill-1/SKILL.md",
            &page("team-skill-1", "One"),
        ),
        (".wave/skills/team-skill-1/examples.md", "x"),
        (".wave/skills/team-skill-1/templates/a.txt", "x"),
        (
            "home/.wave/skills/skill-name-1/SKILL.md",
            &page("skill-name-1", "One"),
        ),
        ("home/.wave/skills/skill-name-1/reference.md", "x"),
    ]);
    let catalog = workspace.load_with_home();
    let files = |name: &str| -> Vec<String> {
        let skill = catalog.root_skills.find(name).unwrap();
        let keys = skill.load().unwrap().keys;
        let list = files::list(skill, &keys).unwrap();
        list.files.into_iter().map(|file| file.path).collect()
    };
    assert_eq!(files("team-skill-1"), ["examples.md", "templates/a.txt"]);
    assert_eq!(files("skill-name-1"), ["reference.md"]);
}

/// wave-skill-tool.md, "Not Found Error", with the skills that there are.
#[test]
fn the_answer_for_a_skill_that_is_not_there_lists_those_that_are() {
    let workspace = Workspace::new(&[(".wave/skills/git/SKILL.md", &page("git", "Commits"))]);
    let catalog = workspace.load();
    let skills = catalog.root_skills.visible();
    let text = wave::not_found_text(
        "gti",
        skills.map(|s| (s.name.as_str(), s.description.as_str())),
    );
    assert!(text.starts_with("Skill 'gti' not found.\n\nAvailable skills:\n- git: Commits\n\n"));
    assert!(text.contains("1. Create directory ~/.wave/skills/gti/\n"));
}

#[test]
fn only_what_is_valid_and_trusted_is_handed_out() {
    let workspace = Workspace::new(&[
        ("workerctl.yaml", "skills: {untrusted: [.claude]}\n"),
        (".claude/skills/a/SKILL.md", &page("a", "One")),
        (".wave/skills/b/SKILL.md", &page("B", "One")),
        (".agents/skills/c/SKILL.md", &page("c", "One")),
    ]);
    let catalog = workspace.load();
    let trust = TrustFiles::of(&workspace.path().join("state"));
    let out = |name: &str| catalog.root_skills.find(name).unwrap().hand_out(&trust);
    assert!(matches!(out("a"), Err(Withheld::Untrusted(Trust::Missing))));
    assert!(matches!(out("B"), Err(Withheld::Invalid(found)) if found.len() == 2));
    assert_eq!(out("c").unwrap().body, "Do it.");
    trust.give(catalog.root_skills.find("a").unwrap()).unwrap();
    assert_eq!(out("a").unwrap().body, "Do it.");
    workspace.write(".claude/skills/a/SKILL.md", page("a", "Two").as_bytes());
    assert!(matches!(out("a"), Err(Withheld::Untrusted(Trust::Changed))));
    workspace.write(".agents/skills/c/SKILL.md", b"nothing");
    assert!(matches!(out("c"), Err(Withheld::Rejected(_))));
}

/// wave-skill-tool.md, "SKILL.md Contract", "Required Format", word for word, and "Skill Parser Integration": what is
/// read of a file is "frontmatter", "content", "skillMetadata", "validationErrors: string[]", "isValid: boolean".
#[test]
fn a_file_of_the_required_format_is_read_in_full() {
    let frontmatter = "name: skill-name\ndescription: Brief description of what this skill does and when to use it\n";
    let body = "# Skill Content\nMarkdown content with instructions...";
    let text = format!("---\n{frontmatter}---\n\n{body}\n");
    let workspace = Workspace::new(&[(".wave/skills/skill-name/SKILL.md", &text)]);
    let catalog = workspace.load();
    assert_eq!(codes(&catalog), [] as [&str; 0]);
    let skill = catalog.root_skills.find("skill-name").unwrap();
    let loaded = skill.load().unwrap();
    assert_eq!((loaded.body.as_str(), loaded.text), (body, text));
    assert_eq!(loaded.keys.name, "skill-name");
    assert_eq!(loaded.keys.written.len(), 2);
    assert!(skill.valid && loaded.keys.violations.is_empty());
    workspace.write(
        ".wave/skills/skill-name/SKILL.md",
        page("other", "One").as_bytes(),
    );
    let catalog = workspace.load();
    let broken = catalog.root_skills.find("other").unwrap();
    assert!(!broken.valid);
    assert_eq!(broken.load().unwrap().keys.violations.len(), 1);
}

/// wave-skill-tool.md, "SkillManager Interface": "Get all available skills metadata", "Load specific skill content",
/// "loadSkill(skillName: string): Promise<Skill | null>"; and "Skill Discovery Contract": "personalSkills",
/// "projectSkills", and "errors" that each have "skillPath" and "message".
#[test]
fn discovery_gives_personal_and_project_skills_and_errors_with_their_paths() {
    let workspace = Workspace::new(&[
        (".wave/skills/team/SKILL.md", &page("team", "For the team")),
        (".wave/skills/bad/SKILL.md", "---\nname: [\n---\nx\n"),
        ("home/.wave/skills/mine/SKILL.md", &page("mine", "For me")),
        (
            "home/.wave/skills/worse/SKILL.md",
            "---\nname: worse\n---\nx\n",
        ),
    ]);
    let catalog = workspace.load_with_home();
    let skills = &catalog.root_skills;
    let mut metadata: Vec<(&str, &str, &str)> = skills
        .visible()
        .map(|one| {
            (
                one.root.label.as_str(),
                one.name.as_str(),
                one.description.as_str(),
            )
        })
        .collect();
    metadata.sort_unstable();
    let expected = [
        (".wave", "team", "For the team"),
        ("~/.wave", "mine", "For me"),
    ];
    assert_eq!(metadata, expected);
    assert_eq!(skills.find("mine").unwrap().load().unwrap().body, "Do it.");
    assert!(skills.find("none").is_none());
    let problems = || catalog.problems.iter().chain(&skills.problems_outside);
    for path in [".wave/skills/bad/SKILL.md", ".wave/skills/worse/SKILL.md"] {
        let own =
            problems().find(|one| one.place.path.ends_with(path) && one.severity == super::ERROR);
        assert!(!own.unwrap().message.is_empty(), "{path}");
    }
}

/// workspace-skills.md: "Each skill defines: name, description, instructions, preferred_model, required_tools"; the
/// defaults of `SkillDefinition`: "preferred_model: str | None = None", "required_tools: list[str] = []",
/// "input_schema: dict[str, Any] = {}", "max_iterations: int = 5"; and "Allow skills to specify max_iterations
/// independently", "Support skill parameters via input_schema (JSON Schema)".
#[test]
fn a_workspace_skill_defines_what_it_says_and_defaults_for_the_rest() {
    let full = "---\nname: full\ndescription: One\npreferred_model: fast\nrequired_tools: [bash]\nmax_iterations: 3\ninput_schema: {type: object}\n---\nDo it.\n";
    let workspace = Workspace::new(&[
        ("workspace/skills/full.md", full),
        (
            "workspace/skills/bare.md",
            "---\ndescription: Two\n---\nDo less.\n",
        ),
    ]);
    let catalog = workspace.load();
    let read = |name: &str| catalog.root_skills.find(name).unwrap().load().unwrap();
    let full = read("full");
    assert_eq!(
        (full.keys.name.as_str(), full.keys.description.as_str()),
        ("full", "One")
    );
    assert_eq!(
        (full.body.as_str(), full.keys.model.as_deref()),
        ("Do it.", Some("fast"))
    );
    assert_eq!(
        (
            full.keys.required_tools.as_slice(),
            full.keys.max_iterations
        ),
        (&["bash".to_owned()][..], 3)
    );
    assert!(full.keys.input_schema.is_some());
    let bare = read("bare");
    assert_eq!(
        (bare.keys.model, bare.keys.required_tools),
        (None, Vec::new())
    );
    assert_eq!(
        (bare.keys.input_schema, bare.keys.max_iterations),
        (None, 5)
    );
}

/// workspace-skills.md, "Registry": "SkillRegistry discovers and loads skills from workspace", "Load skills from
/// workspace/skills/ (.md, .yaml, .yml)", "Get skill by name. Raises KeyError if not found", "has", "List available skill
/// names", "Get skill definitions for LLM".
#[test]
fn the_catalog_does_what_the_registry_of_a_workspace_does() {
    let yaml = "description: One\ninstructions: Do it.\n";
    let workspace = Workspace::new(&[
        (
            "workspace/skills/a.md",
            "---\ndescription: One\n---\nDo it.\n",
        ),
        ("workspace/skills/b.yaml", yaml),
        ("workspace/skills/c.yml", yaml),
    ]);
    let catalog = workspace.load();
    let visible = catalog.root_skills.visible();
    let mut definitions: Vec<_> = visible
        .map(|one| (one.name.as_str(), one.description.as_str()))
        .collect();
    definitions.sort_unstable();
    assert_eq!(definitions, [("a", "One"), ("b", "One"), ("c", "One")]);
    for name in ["a", "b", "c"] {
        assert!(
            found(&catalog, name).starts_with("workspace/skills/"),
            "{name}"
        );
    }
    assert_eq!(found(&catalog, "d"), "unknown");
}
