//! Skills: listed, found, inline, in files of their own.

use super::super::Lookup;
use super::{ERROR, NOTE, WARNING, Workspace, check_skill, check_worker, codes, expect, show};
use crate::model::definition::RunText;

pub(super) fn ids(catalog: &super::super::Catalog) -> Vec<String> {
    catalog
        .skills()
        .map(|(_, s)| s.address.skill.clone())
        .collect()
}

#[test]
fn skills_are_listed_in_every_form() {
    let workspace = Workspace::new(&[
        (
            "workers/w/worker.yaml",
            "worker: {id: w}\nskills:\n  - {id: a, file: skills/a.md}\n  - {name: b, path: ./skills/b/SKILL.md, description: own words}\n  - {name: c, description: d, trigger: on request}\n  - d\n  - skills/e.md\n  - {file: skills/f.md}\n",
        ),
        ("workers/w/skills/a.md", "# A title\n\nWhat a does.\n"),
        (
            "workers/w/skills/b/SKILL.md",
            "---\ndescription: other\n---\nbody\n",
        ),
        (
            "workers/w/skills/d.md",
            "---\nskill:\n  id: d\n  name: D\n  description: dd\n  mutating: true\n  run: date\n---\nbody\n",
        ),
        ("workers/w/skills/e.md", "# e\n\ntext\n"),
        ("workers/w/skills/f.md", "# f\n\ntext\n"),
    ]);
    let catalog = workspace.load();
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
    assert_eq!(ids(&catalog), ["a", "b", "c", "d", "e", "f"]);
    let skills = &catalog.workers[0].skills;
    assert_eq!(
        (skills[0].name.as_str(), skills[0].description.as_str()),
        ("A title", "What a does.")
    );
    assert_eq!(skills[1].description, "own words");
    assert!(skills[3].mutating);
    assert_eq!(skills[3].instructions.as_deref(), Some("body"));
    assert_eq!(&*skills[3].place.path, "workers/w/skills/d.md");
    assert!(
        skills[3].directory.ends_with("workers/w/skills"),
        "{}",
        skills[3].directory
    );
    assert_ne!(skills[0].digest, skills[1].digest);
}

#[test]
fn skills_as_a_map_and_missing_files() {
    let catalog = check_worker(
        "worker: {id: w}\nskills:\n  installed: [a, b]\n  capabilities: [c]\n",
        ("skills-as-map", WARNING, 2, 1, "as a list"),
    );
    assert_eq!(ids(&catalog), ["a", "b"]);
    expect(
        &catalog,
        "workers/w/worker.yaml",
        &("skill-file-missing", WARNING, 3, 15, "create the file"),
    );
    let catalog = check_worker(
        "worker: {id: w}\nskills:\n  - {id: a, file: skills/gone.md, description: d}\n",
        ("skill-file-missing", WARNING, 3, 19, "create the file"),
    );
    let unavailable = &catalog.workers[0].skills[0].unavailable;
    assert!(
        unavailable[0].reason.contains("workers/w/skills/gone.md"),
        "{unavailable:?}"
    );
    check_worker(
        "worker: {id: w}\nskills:\n  - {id: a, file: ../../../etc/passwd}\n",
        ("path-outside", ERROR, 3, 19, "relative to worker.yaml"),
    );
    check_worker(
        "worker: {id: w}\nskills:\n  - {description: d}\n",
        ("missing-key", ERROR, 3, 5, "add `id`"),
    );
    check_worker(
        "worker: {id: w}\n",
        ("worker-without-skills", WARNING, 1, 1, "add `skills:`"),
    );
}

#[test]
fn files_that_are_not_listed_are_found_and_told() {
    let workspace = Workspace::new(&[
        (
            "workers/w/worker.yaml",
            "worker: {id: w}\nskills: [{id: a, file: skills/x.md}]\n",
        ),
        ("workers/w/skills/x.md", "# x\n\nt\n"),
        ("workers/w/skills/y.md", "# y\n\nt\n"),
        ("workers/w/skills/README.md", "read me\n"),
    ]);
    let catalog = workspace.load();
    assert_eq!(ids(&catalog), ["a", "y"]);
    let path = "workers/w/worker.yaml";
    expect(
        &catalog,
        path,
        &("skill-id-mismatch", WARNING, 2, 10, "rename the file"),
    );
    expect(
        &catalog,
        "workers/w/skills/README.md",
        &("not-a-skill", NOTE, 0, 0, ""),
    );
}

#[test]
fn duplicate_skills_are_both_rejected() {
    let workspace = Workspace::new(&[
        ("workers/w/worker.yaml", "worker: {id: w}\n"),
        ("workers/w/skills/x.md", "# x\n\nt\n"),
        (
            "workers/w/skills/x/SKILL.md",
            "---\nname: X\ndescription: d\n---\nt\n",
        ),
        ("workers/w/skills/z.md", "# z\n\nt\n"),
    ]);
    let catalog = workspace.load();
    assert_eq!(ids(&catalog), ["z"]);
    let path = "workers/w/skills/x.md";
    expect(&catalog, path, &("skill-duplicate", ERROR, 1, 1, "rename"));
    let path = "workers/w/skills/x/SKILL.md";
    expect(&catalog, path, &("skill-duplicate", ERROR, 2, 1, "rename"));
    let named = catalog
        .problems
        .iter()
        .any(|p| p.message.contains("x/SKILL.md:2:1"));
    assert!(named, "{}", show(&catalog.problems));
}

#[test]
fn a_page_without_frontmatter_is_a_skill_that_changes_nothing() {
    let catalog = check_skill(
        "write-test.md",
        "# Write tests\n\nWrites tests\nfor code.\n\n## Arguments\n\n$ARGUMENTS = `--flag <value>`\n\n---\n\n```sh\nrm -rf {{ x }}\n```\n",
        ("no-frontmatter", WARNING, 1, 1, "begin it with `---`"),
    );
    let skill = &catalog.workers[0].skills[0];
    assert_eq!(skill.address.skill, "write-test");
    assert_eq!(skill.description, "Writes tests for code.");
    assert_eq!(skill.run, RunText::Instructions);
    assert_eq!(skill.unavailable[0].code, "no-executor");
    assert!(
        skill
            .instructions
            .as_deref()
            .is_some_and(|text| text.contains("{{ x }}"))
    );
}

#[test]
fn broken_frontmatter_is_rejected_with_its_place() {
    for (text, code, line, column, hint) in [
        (
            "---\nname: a\ndescription: x\n",
            "frontmatter-unterminated",
            1,
            1,
            "after the last key",
        ),
        (
            "---\nname: a\nname: b\n---\nbody\n",
            "duplicate-key",
            3,
            1,
            "keep one",
        ),
        (
            "---\nname: a\nx:\n  y: {z: 1, z: 2}\n---\nb\n",
            "duplicate-key",
            4,
            13,
            "keep one",
        ),
        (
            "---\n- a\n---\nbody\n",
            "definition-shape",
            2,
            1,
            "`skill:`",
        ),
        (
            "---\nskill: a\n---\nbody\n",
            "wrong-type",
            2,
            8,
            "`description`",
        ),
        (
            "---\nname: \"a/b\"\n---\nbody\n",
            "id-invalid",
            2,
            1,
            "lower-case letters",
        ),
    ] {
        let catalog = check_skill("a.md", text, (code, ERROR, line, column, hint));
        assert!(ids(&catalog).is_empty(), "{text}");
    }
    let large = format!(
        "---\nname: a\ndescription: {}\n---\nbody\n",
        "d".repeat(65 * 1_024)
    );
    check_skill(
        "a.md",
        &large,
        ("frontmatter-too-large", ERROR, 2, 1, "into the body"),
    );
}

#[test]
fn unusual_frontmatter_is_told() {
    for (text, code, line, column, hint) in [
        (
            "<!-- a -->\n---\nname: a\n---\nb\n",
            "comment-before-frontmatter",
            1,
            1,
            "begin the file",
        ),
        (
            "---\nname: a\ndescription: d\n---\n\n",
            "empty-instructions",
            2,
            1,
            "add `run`",
        ),
        (
            "---\nname: other\n---\nbody\n",
            "skill-id-mismatch",
            2,
            1,
            "id: a",
        ),
        (
            "---\nname: a\n---\n\n# only\n",
            "description-missing",
            2,
            1,
            "one sentence",
        ),
        ("---\nname: A a\n---\nb\n", "id-unusual", 2, 1, "at most 64"),
    ] {
        check_skill("a.md", text, (code, WARNING, line, column, hint));
    }
    check_skill(
        "a.md",
        "---\nskill: {id: a, description: d}\nextra: 1\n---\nbody\n",
        ("unknown-key", NOTE, 3, 1, ""),
    );
    check_skill(
        "x/Skill.md",
        "---\nname: x\ndescription: d\n---\nbody\n",
        ("file-name-case", WARNING, 0, 0, "`SKILL.md`"),
    );
    let long = format!(
        "---\nname: a\ndescription: {}\n---\nbody\n",
        "\u{e4}".repeat(1_025)
    );
    check_skill("a.md", &long, ("description-long", WARNING, 3, 14, "1024"));
    let fits = format!(
        "---\nname: a\ndescription: {}\n---\nbody\n",
        "\u{e4}".repeat(1_024)
    );
    assert!(!codes(&Workspace::of_skill("a.md", &fits).load()).contains(&"description-long"));
}

#[test]
fn line_ends_blank_lines_and_marks_do_not_matter() {
    for text in [
        "---\r\nname: a\r\ndescription: d\r\n---\r\nbody\r\n",
        "\n\n---\nname: a\ndescription: d\n---\nbody",
        "---\nname: a\ndescription: d\n---\nbody\n---\nmore\n",
    ] {
        let catalog = Workspace::of_skill("a.md", text).load();
        assert!(
            !catalog.has_errors(),
            "{text:?}: {}",
            show(&catalog.problems)
        );
        assert_eq!(ids(&catalog), ["a"], "{text:?}");
    }
    let marked = "\u{feff}---\nname: a\ndescription: [d\n---\nbody\n";
    check_skill("a.md", marked, ("byte-order-mark", NOTE, 1, 1, "without"));
}

#[test]
fn prose_is_quoted_once_and_told() {
    let catalog = check_skill(
        "a.md",
        "---\nname: a\ndescription: Use when: it rains\n---\nbody\n",
        (
            "prose-quoted",
            WARNING,
            3,
            1,
            "`description: \"Use when: it rains\"`",
        ),
    );
    assert_eq!(
        catalog.workers[0].skills[0].description,
        "Use when: it rains"
    );
    let catalog = check_skill(
        "a.md",
        "---\nname: a\ndescription: `make` everything\nargument-hint: [a] [b]\n---\nbody\n",
        ("prose-quoted", WARNING, 4, 1, "\"[a] [b]\""),
    );
    assert_eq!(
        catalog.workers[0].skills[0].description,
        "`make` everything"
    );
    check_skill(
        "a.md",
        "---\nname: a\ndescription: d\nallowed-tools: *all\n---\nbody\n",
        ("yaml-syntax", ERROR, 4, 16, "in double quotes"),
    );
    check_worker(
        "worker:\n  id: w\n  description: @team: all\n",
        ("prose-quoted", WARNING, 3, 3, "\"@team: all\""),
    );
    check_worker(
        "worker:\n\tid: w\n",
        ("yaml-syntax", ERROR, 2, 1, "with spaces"),
    );
}

#[test]
fn names_lead_to_skills() {
    let workspace = Workspace::new(&[
        (
            "workers/a/worker.yaml",
            "worker: {id: a}\nskills: [{id: weekly, run: date}, {id: both, run: date}]\n",
        ),
        (
            "workers/b/worker.yaml",
            "worker: {id: b}\nskills: [{id: both, run: date}]\n",
        ),
    ]);
    let catalog = workspace.load();
    let found = |name: &str| match catalog.find(name) {
        Lookup::Found(_, skill) => skill.address.to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(found("weekly"), "a/weekly");
    assert_eq!(found("A/Weekly"), "a/weekly");
    assert_eq!(catalog.find("b"), Lookup::Unknown(vec!["b/both".into()]));
    assert_eq!(
        catalog.find("both"),
        Lookup::Ambiguous(vec!["a/both".into(), "b/both".into()])
    );
    assert_eq!(
        catalog.find("wekly"),
        Lookup::Unknown(vec!["a/weekly".into()])
    );
    assert_eq!(
        catalog.find("a"),
        Lookup::Unknown(vec!["a/both".into(), "a/weekly".into()])
    );
    assert_eq!(catalog.find("nothing at all"), Lookup::Unknown(vec![]));
}
