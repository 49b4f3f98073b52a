//! Where skills are found that belong to no worker, and which of several has a name.

use super::super::roots::trust::{Trust, TrustFiles};
use super::super::{Catalog, Lookup, Options, reload};
use super::{ERROR, NOTE, Workspace, codes, expect, show};

/// A page with nothing but what every dialect asks for.
pub(super) fn page(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n\nDo it.\n")
}

/// What a name leads to: the path of its definition, or a word.
pub(super) fn found(catalog: &Catalog, name: &str) -> String {
    match catalog.find(name) {
        Lookup::Found(_, skill) => skill.address.to_string(),
        Lookup::OfRoot(skill) => skill.place.path.to_string(),
        Lookup::Ambiguous(names) => names.join(" or "),
        Lookup::Rejected(..) => "rejected".to_owned(),
        Lookup::Refused(refused, _) => format!("refused {}", refused.place.path),
        Lookup::Unknown(_) => "unknown".to_owned(),
    }
}

const IN_ORDER: [&str; 10] = [
    "workspace/skills/x/SKILL.md",
    ".agents/skills/x/SKILL.md",
    "home/.agents/skills/x/SKILL.md",
    ".agent/skills/x/SKILL.md",
    "home/.agent/skills/x/SKILL.md",
    ".claude/skills/x/SKILL.md",
    "home/.claude/skills/x/SKILL.md",
    ".wave/skills/x/SKILL.md",
    "home/.wave/skills/x/SKILL.md",
    "vendor/skills/x/SKILL.md",
];

/// mcp-skill-tool.md: "Priority Order (first match wins): 1. `./.agent/skills/` 2. `~/.agent/skills/`
/// 3. `./.claude/skills/` 4. `~/.claude/skills/`", and "Priority resolution: Project skill overrides global".
#[test]
fn the_first_root_that_has_a_name_wins_it() {
    let workspace = Workspace::new(&[
        ("workerctl.yaml", "skills: {roots: [vendor/skills]}\n"),
        (
            "workers/w/worker.yaml",
            "worker: {id: w}\nskills: [{id: x, run: 'true'}]\n",
        ),
    ]);
    for path in IN_ORDER {
        workspace.write(path, page("x", "One").as_bytes());
    }
    let catalog = workspace.load_with_home();
    assert_eq!(found(&catalog, "x"), "w/x");
    let shadowed = &catalog.root_skills.skills;
    assert_eq!(shadowed.len(), IN_ORDER.len());
    assert!(shadowed.iter().all(|skill| skill.shadowed_by.is_some()));
    // Each is reported with both paths.
    let notes = catalog
        .problems
        .iter()
        .chain(&catalog.root_skills.problems_outside)
        .filter(|problem| problem.code == "skill-shadowed");
    assert_eq!(notes.count(), IN_ORDER.len(), "{}", show(&catalog.problems));
    let note = catalog
        .problems
        .iter()
        .find(|problem| &*problem.place.path == ".claude/skills/x/SKILL.md")
        .unwrap();
    assert!(
        note.message.contains("workers/w/worker.yaml"),
        "{}",
        note.message
    );

    std::fs::remove_file(workspace.path().join("workers/w/worker.yaml")).unwrap();
    for path in IN_ORDER {
        let catalog = workspace.load_with_home();
        assert!(
            found(&catalog, "X").ends_with(path),
            "{path}: {}",
            found(&catalog, "x")
        );
        std::fs::remove_file(workspace.path().join(path)).unwrap();
    }
    assert_eq!(found(&workspace.load_with_home(), "x"), "unknown");
}

#[test]
fn a_bare_name_of_two_workers_finds_no_root_and_a_qualified_one_does() {
    let worker = |id: &str| format!("worker: {{id: {id}}}\nskills: [{{id: x, run: 'true'}}]\n");
    let workspace = Workspace::new(&[
        ("workers/a/worker.yaml", &worker("a")),
        ("workers/b/worker.yaml", &worker("b")),
        (".claude/skills/x/SKILL.md", &page("x", "One")),
        (
            "workers/c/worker.yaml",
            "worker: {id: c}\nskills: [{id: y, mutating: perhaps}]\n",
        ),
        (".claude/skills/y/SKILL.md", &page("y", "One")),
    ]);
    let catalog = workspace.load();
    assert_eq!(found(&catalog, "x"), "a/x or b/x or .claude:x");
    assert_eq!(found(&catalog, ".claude:x"), ".claude/skills/x/SKILL.md");
    // A worker's skill that broke does not hand its name to another.
    assert_eq!(found(&catalog, "y"), "rejected");
}

#[test]
fn the_configuration_says_which_roots_there_are_and_in_which_order() {
    let workspace = Workspace::new(&[
        (".agents/skills/x/SKILL.md", &page("x", "One")),
        (".claude/skills/x/SKILL.md", &page("x", "One")),
        ("home/.claude/skills/y/SKILL.md", &page("y", "One")),
        ("home/team/z/SKILL.md", &page("z", "One")),
        ("other/flat.md", &page("flat", "One")),
    ]);
    workspace.write(
        "workerctl.yaml",
        b"skills:\n  families: [.claude, .agents]\n  personal: false\n  roots: [~/team, {path: other, dialect: workspace}]\n",
    );
    let catalog = workspace.load_with_home();
    assert_eq!(found(&catalog, "x"), ".claude/skills/x/SKILL.md");
    assert_eq!(found(&catalog, "y"), "unknown");
    assert!(found(&catalog, "z").ends_with("home/team/z/SKILL.md"));
    assert_eq!(found(&catalog, "flat"), "other/flat.md");
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));

    workspace.write(
        "workerctl.yaml",
        b"skills:\n  families: [.cloud]\n  untrusted: everything\n  roots: [{path: other, trusted: no}]\n",
    );
    let catalog = workspace.load_with_home();
    expect(
        &catalog,
        "workerctl.yaml",
        &("unknown-value", ERROR, 2, 14, "`.claude`"),
    );
    expect(
        &catalog,
        "workerctl.yaml",
        &("wrong-type", ERROR, 3, 14, "a list"),
    );
    expect(
        &catalog,
        "workerctl.yaml",
        &("restriction-malformed", ERROR, 4, 34, "true"),
    );
    // A restriction that cannot be read holds for all.
    assert!(
        catalog
            .root_skills
            .skills
            .iter()
            .all(|skill| { !skill.root.trusted || skill.root.label.starts_with("~/") })
    );
    workspace.write("workerctl.yaml", b"skills: {roots: [nowhere]}\n");
    let catalog = workspace.load();
    expect(
        &catalog,
        "nowhere",
        &("directory-unreadable", ERROR, 0, 0, "owner"),
    );
    // A root that cannot be read is listed, so that its problem is.
    assert_eq!(catalog.root_skills.roots.last().unwrap().label, "nowhere");
}

/// mcp-skill-tool.md: "Missing Directory: Skip directory silently".
#[test]
fn roots_that_are_not_there_are_no_problem() {
    let catalog =
        Workspace::new(&[("workers/w/worker.yaml", "worker: {id: w}\n")]).load_with_home();
    assert_eq!(codes(&catalog), ["worker-without-skills"]);
    assert!(catalog.root_skills.roots.is_empty());
}

/// mcp-skill-tool.md: "New skills appear after next refresh cycle. Deleted skills removed after next
/// refresh cycle".
#[test]
fn a_reload_finds_what_came_went_and_changed_and_reads_nothing_else() {
    let workspace = Workspace::new(&[
        (".claude/skills/a/SKILL.md", &page("a", "One")),
        ("home/.claude/skills/b/SKILL.md", &page("b", "One")),
    ]);
    let first = workspace.load_with_home();
    assert!(!first.is_stale());
    workspace.write(
        "home/.agents/skills/c/SKILL.md",
        page("c", "One").as_bytes(),
    );
    assert!(first.is_stale());
    let home = workspace.path().join("home");
    let options = Options {
        home: Some(&home),
        ..Options::default()
    };
    let second = reload(&first, options);
    assert!(!second.is_stale());
    let kept = |catalog: &Catalog| std::sync::Arc::as_ptr(catalog.root_skills.find("a").unwrap());
    assert_eq!(kept(&first), kept(&second));
    assert_ne!(found(&second, "c"), "unknown");
    workspace.write(
        ".claude/skills/a/SKILL.md",
        page("a", "Another one").as_bytes(),
    );
    std::fs::remove_dir_all(workspace.path().join("home/.claude")).unwrap();
    assert!(second.is_stale());
    let third = reload(&second, options);
    assert_eq!(found(&third, "b"), "unknown");
    assert_eq!(
        third.root_skills.find("a").unwrap().description,
        "Another one"
    );
    workspace.write(".claude/skills/a/SKILL.md", b"nothing");
    let broken = reload(&third, options);
    assert_eq!(found(&broken, "a"), "refused .claude/skills/a/SKILL.md");
}

#[test]
fn skills_of_a_root_that_is_not_trusted_are_listed_until_their_content_is() {
    let workspace = Workspace::new(&[
        (
            "workerctl.yaml",
            "skills: {untrusted: [.claude], roots: [{path: v, trusted: false}]}\n",
        ),
        (".claude/skills/a/SKILL.md", &page("a", "One")),
        (".claude/skills/a/run.sh", "echo\n"),
        (".agents/skills/b/SKILL.md", &page("b", "One")),
        ("v/c/SKILL.md", &page("c", "One")),
        ("home/.claude/skills/d/SKILL.md", &page("d", "One")),
    ]);
    let catalog = workspace.load_with_home();
    let state = workspace.path().join("state");
    let trust = TrustFiles::of(&state);
    let of = |name: &str| trust.state(catalog.root_skills.find(name).unwrap());
    assert_eq!(
        ["a", "b", "c", "d"].map(of),
        [Trust::Missing, Trust::Root, Trust::Missing, Trust::Root]
    );
    let a = catalog.root_skills.find("a").unwrap();
    trust.give(a).unwrap();
    assert_eq!(of("a"), Trust::Content);
    assert_eq!(of("c"), Trust::Missing);
    // Whatever the skill holds counts, the files beside it as well as its own.
    workspace.write(".claude/skills/a/run.sh", b"rm\n");
    assert_eq!(of("a"), Trust::Changed);
    trust.give(a).unwrap();
    workspace.write(".claude/skills/a/more.md", b"x");
    assert_eq!(of("a"), Trust::Changed);
    trust.give(a).unwrap();
    workspace.write(".claude/skills/a/SKILL.md", page("a", "Other").as_bytes());
    assert_eq!(of("a"), Trust::Changed);
    assert!(trust.take(a).unwrap());
    assert!(!trust.take(a).unwrap());
    assert_eq!(of("a"), Trust::Missing);
    // What leads out of the skill cannot be vouched for.
    std::os::unix::fs::symlink(
        "/etc/hostname",
        workspace.path().join(".claude/skills/a/out"),
    )
    .unwrap();
    let refused = trust.give(a).unwrap_err().to_string();
    assert!(refused.starts_with("`out`"), "{refused}");
}

#[test]
fn directories_between_a_root_and_a_skill_and_links_between_roots() {
    use std::os::unix::fs::symlink;
    let workspace = Workspace::new(&[
        (".agents/skills/group/deep/a/SKILL.md", &page("a", "One")),
        (
            ".agents/skills/group/deep/a/nested/SKILL.md",
            &page("nested", "One"),
        ),
        (".agents/skills/node_modules/n/SKILL.md", &page("n", "One")),
        (
            ".agents/skills/1/2/3/4/5/6/six/SKILL.md",
            &page("six", "One"),
        ),
        (
            ".agents/skills/1/2/3/4/5/6/7/seven/SKILL.md",
            &page("seven", "One"),
        ),
        (".agents/skills/agents/openai.yaml", "x: 1\n"),
        (".agents/skills/flat.md", &page("flat", "One")),
        ("elsewhere/e/SKILL.md", &page("e", "One")),
        (".claude/skills/own/skill.md", &page("own", "One")),
    ]);
    let claude = workspace.path().join(".claude/skills");
    symlink("../../.agents/skills/group/deep/a", claude.join("again")).unwrap();
    symlink("../../elsewhere/e", claude.join("e")).unwrap();
    symlink("..", claude.join("loop")).unwrap();
    symlink("/usr", claude.join("out")).unwrap();
    symlink("nowhere", claude.join("dangling")).unwrap();
    let catalog = workspace.load();
    assert_eq!(found(&catalog, "a"), ".agents/skills/group/deep/a/SKILL.md");
    assert_eq!(found(&catalog, "e"), ".claude/skills/e/SKILL.md");
    assert_eq!(
        found(&catalog, "six"),
        ".agents/skills/1/2/3/4/5/6/six/SKILL.md"
    );
    for name in ["nested", "n", "seven", "flat"] {
        assert_eq!(found(&catalog, name), "unknown", "{name}");
    }
    let again = ".claude/skills/again";
    expect(&catalog, again, &("link-repeats", NOTE, 0, 0, ""));
    expect(
        &catalog,
        ".claude/skills/out",
        &("link-outside", ERROR, 0, 0, "skills.roots"),
    );
    expect(
        &catalog,
        ".agents/skills/flat.md",
        &("not-a-skill", NOTE, 0, 0, "SKILL.md"),
    );
    expect(
        &catalog,
        ".claude/skills/own/skill.md",
        &("file-name-case", super::WARNING, 0, 0, "SKILL.md"),
    );
    assert_eq!(
        catalog.root_skills.skills.len(),
        4,
        "{:#?}",
        catalog.root_skills.skills
    );
}

#[test]
fn a_root_of_the_project_that_leads_out_of_it_is_not_entered() {
    let outside = xtest::tempdir();
    let skill = outside.path().join("x");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), page("x", "One")).unwrap();
    let workspace = Workspace::new(&[(".claude/other", ""), ("home/.claude/other", "")]);
    let link = |path: &str| {
        std::os::unix::fs::symlink(outside.path(), workspace.path().join(path)).unwrap();
    };
    link(".claude/skills");
    let catalog = workspace.load_with_home();
    expect(
        &catalog,
        ".claude/skills",
        &("link-outside", ERROR, 0, 0, "skills.roots"),
    );
    assert_eq!(found(&catalog, "x"), "unknown");
    // A person may keep skills where it suits them.
    link("home/.claude/skills");
    let catalog = workspace.load_with_home();
    assert_ne!(found(&catalog, "x"), "unknown");
}

/// workspace-skills.md: "Support directory format: `skills/<name>/SKILL.md` (preferred). Support flat
/// markdown: `skills/<name>.md` (convenience). Support pure YAML: `skills/<name>.yaml`".
#[test]
fn workspace_skills_have_three_forms_and_the_directory_is_preferred() {
    let yaml = "description: One\ninstructions: |\n  Do it.\n";
    let workspace = Workspace::new(&[
        (
            "workspace/skills/a/SKILL.md",
            "---\ndescription: One\n---\nDo it.\n",
        ),
        (
            "workspace/skills/b.md",
            "---\ndescription: One\n---\nDo it.\n",
        ),
        ("workspace/skills/c.yaml", yaml),
        ("workspace/skills/d.yml", yaml),
        ("workspace/skills/README.md", "# For people\n"),
    ]);
    let catalog = workspace.load();
    for (name, path) in [
        ("a", "a/SKILL.md"),
        ("b", "b.md"),
        ("c", "c.yaml"),
        ("d", "d.yml"),
    ] {
        assert_eq!(found(&catalog, name), format!("workspace/skills/{path}"));
        let loaded = catalog.root_skills.find(name).unwrap().load().unwrap();
        assert_eq!(loaded.body, "Do it.", "{name}");
    }
    workspace.write("workspace/skills/b/SKILL.md", page("b", "One").as_bytes());
    workspace.write("workspace/skills/b.yaml", yaml.as_bytes());
    let catalog = workspace.load();
    assert_eq!(found(&catalog, "b"), "workspace/skills/b/SKILL.md");
    let shadows = codes(&catalog)
        .iter()
        .filter(|code| **code == "skill-shadowed")
        .count();
    assert_eq!(shadows, 2);
}

#[test]
fn no_skill_is_found_under_the_qualified_name_of_another() {
    let workspace = Workspace::new(&[
        (
            "workers/w/worker.yaml",
            "worker: {id: w}\nskills: [{id: one, run: 'true'}, {id: '.claude:only', run: 'true'}]\n",
        ),
        (".agents/skills/e1/SKILL.md", &page("\".agent:x\"", "One")),
        (
            ".agents/skills/e2/SKILL.md",
            &page("\".claude:only\"", "One"),
        ),
        (
            ".agents/skills/e3/SKILL.md",
            &page("\"workspace:ws\"", "One"),
        ),
        (
            ".agents/skills/e4/SKILL.md",
            &page("\".claude:git\"", "One"),
        ),
        (".agents/skills/e5/SKILL.md", &page("\"w:one\"", "One")),
        (".agents/skills/git/SKILL.md", &page("git", "One")),
        (
            ".agents/skills/other/SKILL.md",
            &page("\"suite:pdf\"", "One"),
        ),
        (".claude/skills/aa/SKILL.md", &page("git", "One")),
        (".claude/skills/git/SKILL.md", &page("git", "One")),
        (".claude/skills/only/SKILL.md", &page("only", "One")),
        ("workspace/skills/ws.md", &page("ws", "One")),
    ]);
    let catalog = workspace.load();
    for (name, expected) in [
        (".Claude:only", ".claude/skills/only/SKILL.md"),
        (".claude:git", ".claude/skills/git/SKILL.md"),
        ("workspace:ws", "workspace/skills/ws.md"),
        ("w:one", "w/one"),
        ("w:.claude:only", "w/.claude:only"),
        // What reads like one of a root that has none of that name finds nothing, also where there is no such root.
        (".agent:x", "unknown"),
        (".agents:.agent:x", ".agents/skills/e1/SKILL.md"),
        (".agents:.claude:only", ".agents/skills/e2/SKILL.md"),
        (".agents:.claude:git", ".agents/skills/e4/SKILL.md"),
        (".agents:w:one", ".agents/skills/e5/SKILL.md"),
        ("suite:pdf", ".agents/skills/other/SKILL.md"),
    ] {
        assert_eq!(found(&catalog, name), expected, "{name}");
    }
    let told = codes(&catalog)
        .iter()
        .filter(|code| **code == "name-qualified")
        .count();
    assert_eq!(told, 5, "{}", show(&catalog.problems));
    expect(
        &catalog,
        ".agents/skills/e2/SKILL.md",
        &(
            "name-qualified",
            super::WARNING,
            0,
            0,
            "`.agents:.claude:only` names",
        ),
    );
    // Of two in one root only the first has the qualified name.
    expect(
        &catalog,
        ".claude/skills/aa/SKILL.md",
        &("skill-shadowed", NOTE, 0, 0, "rename this one"),
    );
    // What goes does not hand its name to the other.
    std::fs::remove_dir_all(workspace.path().join(".claude/skills/only")).unwrap();
    let catalog = reload(&catalog, Options::default());
    assert_eq!(found(&catalog, ".claude:only"), "unknown");
}
