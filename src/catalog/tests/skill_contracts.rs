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

/// workspace-skills.md: "Invalid files skipped with warning", and "Default skill name to filename stem if not
/// specified".
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
