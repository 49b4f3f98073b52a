//! Roots and files that nobody means well with: named problems within bounds, never a wait.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::super::roots::files::{self, ENTRIES_MAX};
use super::roots::{found, page};
use super::{ERROR, WARNING, Workspace, expect, show};

#[test]
fn pipes_devices_and_links_in_the_place_of_a_skill() {
    let workspace = Workspace::new(&[(".claude/skills/good/SKILL.md", &page("good", "One"))]);
    let root = workspace.path().join(".claude/skills");
    let directory = |name: &str| {
        let path = root.join(name);
        std::fs::create_dir_all(&path).unwrap();
        path.join("SKILL.md")
    };
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, directory("pipe"), mode).unwrap();
    std::fs::create_dir(directory("directory")).unwrap();
    symlink("/dev/zero", directory("device")).unwrap();
    symlink("/etc/passwd", directory("outside")).unwrap();
    symlink("SKILL.md", directory("itself")).unwrap();
    symlink("nowhere", directory("nowhere")).unwrap();
    symlink("../good/SKILL.md", directory("inside")).unwrap();
    let catalog = workspace.load();
    let expected = [
        ("pipe", "not-a-file"),
        ("directory", "not-a-file"),
        ("device", "link-outside"),
        ("outside", "link-outside"),
        ("itself", "file-unreadable"),
        ("nowhere", "file-missing"),
    ];
    for (name, code) in expected {
        let path = format!(".claude/skills/{name}/SKILL.md");
        expect(&catalog, &path, &(code, ERROR, 0, 0, ""));
        assert_eq!(found(&catalog, name), format!("refused {path}"));
    }
    assert_eq!(found(&catalog, "good"), ".claude/skills/good/SKILL.md");
}

/// mcp-skill-tool.md: "Permission Errors: Skip inaccessible files/directories".
#[test]
fn what_may_not_be_read_is_named_and_the_rest_is_read() {
    let workspace = Workspace::new(&[
        (".claude/skills/a/SKILL.md", &page("a", "One")),
        (".claude/skills/b/SKILL.md", &page("b", "One")),
        (".agents/skills/c/SKILL.md", &page("c", "One")),
    ]);
    let locked = workspace.path().join(".claude/skills/a/SKILL.md");
    let root = workspace.path().join(".agents/skills");
    let mode = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&locked, 0);
    mode(&root, 0);
    if std::fs::read(&locked).is_ok() {
        xtest::skip("root reads every file");
        mode(&root, 0o755);
        return;
    }
    let catalog = workspace.load();
    mode(&root, 0o755);
    expect(
        &catalog,
        ".claude/skills/a/SKILL.md",
        &("file-unreadable", ERROR, 0, 0, "mode"),
    );
    expect(
        &catalog,
        ".agents/skills",
        &("directory-unreadable", ERROR, 0, 0, "mode"),
    );
    assert_eq!(found(&catalog, "b"), ".claude/skills/b/SKILL.md");
}

#[test]
fn a_tree_without_end_is_given_up_by_name() {
    let workspace = Workspace::new(&[(".claude/skills/zz/SKILL.md", &page("zz", "One"))]);
    let root = workspace.path().join(".claude/skills/data");
    std::fs::create_dir(&root).unwrap();
    // Names of one file: as many entries as files, and far faster made.
    let first = root.join("f0");
    std::fs::write(&first, "x").unwrap();
    let mut made = 1;
    let mut of = first.clone();
    while made <= 100_000 {
        let next = root.join(format!("f{made}"));
        if std::fs::hard_link(&of, &next).is_err() {
            std::fs::write(&next, "x").unwrap();
            of = next;
        }
        made += 1;
    }
    let catalog = workspace.load();
    expect(
        &catalog,
        ".claude/skills/data",
        &("tree-too-large", ERROR, 0, 0, "out of"),
    );
}

#[test]
fn loops_of_links_end() {
    let workspace = Workspace::new(&[
        (".claude/skills/a/b/x", "x"),
        (".agents/skills/c/SKILL.md", &page("c", "One")),
    ]);
    let skills = workspace.path().join(".claude/skills");
    symlink("../..", skills.join("a/b/up")).unwrap();
    symlink("../../..", skills.join("a/root")).unwrap();
    symlink("one", skills.join("two")).unwrap();
    symlink("two", skills.join("one")).unwrap();
    let catalog = workspace.load();
    assert_eq!(
        catalog.root_skills.visible().count(),
        1,
        "{}",
        show(&catalog.problems)
    );
}

#[test]
fn files_beside_a_skill_are_read_within_it_and_nowhere_else() {
    let text = "---\nname: a\ndescription: One\n---\n[x](ref/x.md) [y](../b/y.md) [z](none.md)\n";
    let workspace = Workspace::new(&[
        (".claude/skills/a/SKILL.md", text),
        (".claude/skills/a/ref/x.md", "inside"),
        (".claude/skills/b/y.md", "outside"),
    ]);
    let a = workspace.path().join(".claude/skills/a");
    symlink("../b/y.md", a.join("out")).unwrap();
    symlink("ref/x.md", a.join("in")).unwrap();
    symlink("/etc", a.join("etc")).unwrap();
    workspace.write(".claude/skills/a/large", &vec![0; 1_048_577]);
    let catalog = workspace.load();
    let skill = catalog.root_skills.find("a").unwrap();
    let loaded = skill.load().unwrap();
    let list = files::list(skill, &loaded.keys).unwrap();
    let shown: Vec<(&str, bool)> = list
        .files
        .iter()
        .map(|file| (file.path.as_str(), file.refused.is_none()))
        .collect();
    assert_eq!(
        shown,
        [
            ("etc", false),
            ("in", true),
            ("large", true),
            ("out", false),
            ("ref/x.md", true)
        ]
    );
    assert_eq!(
        files::read(skill, &loaded.keys, "ref/x.md").unwrap(),
        b"inside"
    );
    assert_eq!(files::read(skill, &loaded.keys, "in").unwrap(), b"inside");
    for path in [
        "../b/y.md",
        "./ref/x.md",
        "/etc/passwd",
        "out",
        "etc/passwd",
        "ref/../ref/x.md",
        "ref",
        "",
        "none.md",
        "large",
        "ref//x.md",
    ] {
        assert!(files::read(skill, &loaded.keys, path).is_err(), "{path}");
    }
    // wave-skill-tool.md: "Relative paths in SKILL.md content must resolve within skill directory".
    let bad = super::super::roots::links::bad(skill, &loaded.text, &loaded.body);
    let shown: Vec<(&str, bool)> = bad.iter().map(|l| (l.target.as_str(), l.leaves)).collect();
    assert_eq!(shown, [("../b/y.md", true), ("none.md", false)]);
    assert_eq!(bad[0].line, 5);
}

/// toolset-skill-schema.md: "Files available for on-demand loading by the LLM".
#[test]
fn a_skill_that_lists_files_gives_those_and_no_others() {
    let workspace = Workspace::new(&[
        (
            ".claude/skills/listed/SKILL.md",
            "---\nname: listed\ndescription: One\nfiles: [{path: l.md, description: d}, {path: no.md, description: e}]\n---\nx\n",
        ),
        (".claude/skills/listed/l.md", "listed"),
        (".claude/skills/listed/m.md", "not listed"),
    ]);
    let catalog = workspace.load();
    let listed = catalog.root_skills.find("listed").unwrap();
    let keys = listed.load().unwrap().keys;
    assert_eq!(files::read(listed, &keys, "l.md").unwrap(), b"listed");
    let refused = files::read(listed, &keys, "m.md").unwrap_err();
    assert_eq!(refused.to_string(), "`m.md` is not listed under `files`");
    let list = files::list(listed, &keys).unwrap();
    assert_eq!(list.files[1].path, "no.md");
    assert!(list.files[1].refused.is_some());
    expect(
        &catalog,
        ".claude/skills/listed/SKILL.md",
        &("skill-file-missing", WARNING, 4, 39, "create"),
    );
}

#[test]
fn a_skill_with_more_files_than_are_looked_at_says_so() {
    let workspace = Workspace::new(&[(".claude/skills/a/SKILL.md", &page("a", "One"))]);
    for number in 0..=ENTRIES_MAX {
        workspace.write(&format!(".claude/skills/a/{number}"), b"");
    }
    let catalog = workspace.load();
    let skill = catalog.root_skills.find("a").unwrap();
    let list = files::found(skill).unwrap();
    assert!(list.cut && list.files.len() <= ENTRIES_MAX);
}

#[test]
fn a_skill_whose_directory_was_exchanged_is_not_read_elsewhere() {
    let workspace = Workspace::new(&[
        (".claude/skills/a/SKILL.md", &page("a", "One")),
        (".claude/skills/a/x.md", "x"),
        ("elsewhere/SKILL.md", &page("a", "Other")),
        ("elsewhere/x.md", "secret"),
    ]);
    let catalog = workspace.load();
    let skill = catalog.root_skills.find("a").unwrap();
    let keys = skill.load().unwrap().keys;
    let place = workspace.path().join(".claude/skills/a");
    std::fs::remove_dir_all(&place).unwrap();
    symlink("../../elsewhere", &place).unwrap();
    assert!(skill.load().is_err());
    assert!(files::read(skill, &keys, "x.md").is_err());
}
