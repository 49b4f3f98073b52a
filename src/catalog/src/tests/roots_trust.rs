//! What is trusted, and what is not: nothing by a slip, and nothing that trust does not cover.

use super::super::roots::files;
use super::super::roots::loaded::Withheld;
use super::super::roots::trust::{Trust, TrustFiles};
use super::super::{Catalog, Options, reload};
use super::roots::page;
use super::{ERROR, WARNING, Workspace, expect, show};

/// A workspace with a skill in every kind of root, and this configuration.
fn of_config(config: &[u8]) -> Workspace {
    let workspace = Workspace::new(&[
        ("workspace/skills/own/SKILL.md", &page("own", "One")),
        (".claude/skills/a/SKILL.md", &page("a", "One")),
        (".agents/skills/b/SKILL.md", &page("b", "One")),
        ("v/c/SKILL.md", &page("c", "One")),
        ("home/.claude/skills/d/SKILL.md", &page("d", "One")),
    ]);
    workspace.write("workerctl.yaml", config);
    workspace
}

/// Skills that may be handed out, by name.
fn trusted(catalog: &Catalog) -> Vec<&str> {
    let skills = catalog.root_skills.skills.iter();
    let mut names: Vec<&str> = skills
        .filter(|skill| skill.root.trusted)
        .map(|skill| skill.name.as_str())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn a_configuration_that_cannot_be_read_trusts_nothing_that_it_may_have_left_untrusted() {
    const GOOD: &str = "skills: {untrusted: [.claude]}\n";
    let table: [(&str, Vec<u8>); 7] = [
        ("broken", format!("{GOOD}a: [\n").into_bytes()),
        ("second key", format!("{GOOD}skills: {{}}\n").into_bytes()),
        ("tab", format!("{GOOD}a:\n\tb: 1\n").into_bytes()),
        ("documents", format!("---\n{GOOD}---\na: 1\n").into_bytes()),
        ("not UTF-8", [GOOD.as_bytes(), b"# \xff\n"].concat()),
        ("no map", b"skills: nonsense\n".to_vec()),
        (
            "another value",
            format!("{GOOD}timezone: Nowhere\n").into_bytes(),
        ),
    ];
    for (what, config) in table {
        let catalog = of_config(&config).load_with_home();
        assert!(!catalog.config_is_known, "{what}");
        assert_eq!(trusted(&catalog), ["d", "own"], "{what}");
        expect(
            &catalog,
            "workerctl.yaml",
            &("config-unknown", WARNING, 0, 0, "`workerctl daemon reload`"),
        );
        let told = show(&catalog.problems);
        assert!(told.contains("skills of `.agents`, `.claude`"), "{told}");
    }
    let pipe = of_config(b"");
    let path = pipe.path().join("workerctl.yaml");
    std::fs::remove_file(&path).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
    assert_eq!(trusted(&pipe.load_with_home()), ["d", "own"]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(trusted(&pipe.load_with_home()), ["a", "b", "d", "own"]);
}

#[test]
fn a_configuration_that_breaks_leaves_trust_as_it_was_and_its_repair_gives_it_back() {
    let workspace = of_config(b"skills: {untrusted: [.claude], roots: [v]}\n");
    let home = workspace.path().join("home");
    let options = Options {
        home: Some(&home),
        ..Options::default()
    };
    let good = workspace.load_with_home();
    assert_eq!(trusted(&good), ["b", "c", "d", "own"]);
    workspace.write("workerctl.yaml", b"skills: [\n");
    assert_eq!(trusted(&reload(&good, options)), ["b", "c", "d", "own"]);
    let fresh = workspace.load_with_home();
    assert_eq!(trusted(&fresh), ["d", "own"]);
    workspace.write("workerctl.yaml", b"skills: {roots: [v]}\n");
    let repaired = reload(&fresh, options);
    assert_eq!(trusted(&repaired), ["a", "b", "c", "d", "own"]);
}

#[test]
fn a_near_miss_of_a_key_that_restricts_is_an_error() {
    let table = [
        ("skills: {untrustd: [.claude]}\n", 10, "`untrusted`"),
        ("skills: {Untrusted: [.claude]}\n", 10, "`untrusted`"),
        ("skills: {distrusted: [.claude]}\n", 10, "`untrusted`"),
        ("skills: {trusted: [.agents]}\n", 10, "`untrusted`"),
        (
            "skills: {roots: [{path: v, truste: false}]}\n",
            28,
            "`trusted`",
        ),
        (
            "skills: {roots: [{path: v, trust: false}]}\n",
            28,
            "`trusted`",
        ),
        (
            "skills: {roots: [{path: v, untrusted: true}]}\n",
            28,
            "`trusted`",
        ),
        ("skils: {untrusted: [.claude]}\n", 1, "`skills`"),
    ];
    for (config, column, hint) in table {
        let catalog = of_config(config.as_bytes()).load_with_home();
        let expected = ("key-misspelled", ERROR, 1, column, hint);
        expect(&catalog, "workerctl.yaml", &expected);
        assert_eq!(trusted(&catalog), ["d", "own"], "{config}");
    }
    // Keys that resemble nothing restrict nothing.
    let catalog =
        of_config(b"skills: {colour: [], x-trust: 1, roots: [{path: v, shade: agent}]}\n");
    assert!(catalog.load_with_home().config_is_known);
}

#[test]
fn what_trust_does_not_cover_is_not_read() {
    let workspace = Workspace::new(&[
        ("workerctl.yaml", "skills: {untrusted: [.claude]}\n"),
        (".claude/skills/a/SKILL.md", &page("a", "One")),
        (".claude/skills/a/sub/near.md", "near"),
        (".claude/skills/a/.git/config", "hidden"),
        (".claude/skills/a/sub/node_modules/x/y.md", "hidden"),
        (
            ".claude/skills/l/SKILL.md",
            "---\nname: l\ndescription: d\nfiles: [{path: .git/config, description: d}]\n---\nx\n",
        ),
        (".claude/skills/l/.git/config", "hidden"),
    ]);
    let catalog = workspace.load();
    let skill = catalog.root_skills.find("a").unwrap();
    let keys = skill.load().unwrap().keys;
    assert_eq!(files::read(skill, &keys, "sub/near.md").unwrap(), b"near");
    for path in [".git/config", "sub/node_modules/x/y.md"] {
        let refused = files::read(skill, &keys, path).unwrap_err().to_string();
        assert!(refused.contains("of which nothing is read"), "{refused}");
    }
    let listing = catalog.root_skills.find("l").unwrap();
    let keys = listing.load().unwrap().keys;
    assert!(files::read(listing, &keys, ".git/config").is_err());
    assert!(
        files::list(listing, &keys).unwrap().files[0]
            .refused
            .is_some()
    );
    let expected = ("skill-file-missing", WARNING, 4, 9, "create");
    expect(&catalog, ".claude/skills/l/SKILL.md", &expected);
}

/// The file as it was read counts, not as it is at the moment in which trust is looked up.
#[test]
fn a_skill_that_flips_between_reading_and_trust_is_handed_out_as_it_was_trusted_only() {
    let workspace = Workspace::new(&[
        ("workerctl.yaml", "skills: {untrusted: [.claude]}\n"),
        (".claude/skills/a/SKILL.md", &page("a", "One")),
        (".claude/skills/a/x.md", "good"),
    ]);
    let own = |description: &str| {
        workspace.write(
            ".claude/skills/a/SKILL.md",
            page("a", description).as_bytes(),
        );
    };
    let catalog = workspace.load();
    let skill = catalog.root_skills.find("a").unwrap();
    let trust = TrustFiles::of(&workspace.path().join("state"));
    trust.give(skill).unwrap();
    let good = skill.load().unwrap();
    own("Evil");
    let evil = skill.load().unwrap();
    // What was trusted lies there again when trust is looked up.
    own("One");
    assert_eq!(trust.state(skill), Trust::Content);
    let refused = skill.vouched(evil, &trust).unwrap_err();
    assert_eq!(refused, Withheld::Untrusted(Trust::Changed));
    // The other way round what was read is what was trusted.
    own("Evil");
    assert!(skill.vouched(good.clone(), &trust).is_ok());
    own("One");
    let file = |bytes: &[u8]| skill.vouched_file(&good, "x.md", bytes.to_vec(), &trust);
    assert_eq!(file(b"good").unwrap(), b"good");
    let refused = file(b"evil").unwrap_err().to_string();
    assert!(
        refused.contains("has changed since it was trusted"),
        "{refused}"
    );
    // Its own file is what was read before, whatever it holds by now.
    let own = skill.vouched_file(&good, "SKILL.md", b"evil".to_vec(), &trust);
    assert_eq!(own.unwrap(), good.text.as_bytes());
}

#[test]
fn nothing_is_told_of_what_an_untrusted_skill_holds() {
    let workspace = Workspace::new(&[
        ("workerctl.yaml", "skills: {untrusted: [.claude]}\n"),
        (".claude/skills/a/SKILL.md", &page("a", "One")),
    ]);
    let catalog = workspace.load();
    let skill = catalog.root_skills.find("a").unwrap();
    let trust = TrustFiles::of(&workspace.path().join("state"));
    workspace.write(".claude/skills/a/SKILL.md", b"---\nDo evil: [\n---\n");
    let refused = skill.hand_out(&trust).unwrap_err();
    assert_eq!(refused, Withheld::Untrusted(Trust::Missing));
}
