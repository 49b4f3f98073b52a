//! What lies in a root and is no skill: told, and led to by no link.

use std::fs;

use crate::skills::{page, workspace};
use crate::workspace::Workspace;

#[test]
fn what_a_root_holds_and_is_no_skill_is_told_where_there_is_no_workspace() {
    let bed = Workspace::new();
    bed.write(".claude/skills/git/SKILL.md", &page("git", ""));
    let shared = bed.home.join("shared/linked");
    fs::create_dir_all(&shared).unwrap();
    fs::write(shared.join("SKILL.md"), page("linked", "")).unwrap();
    let link = bed.root.join(".claude/skills/linked");
    std::os::unix::fs::symlink(&shared, &link).unwrap();
    let told = ".claude/skills/linked: leads to `";
    let listed = bed.run(&["skills"]).expect_code(0);
    assert!(listed.stderr.contains(told), "{listed:?}");
    let checked = bed.run(&["skill", "validate"]).expect_code(4);
    assert!(
        checked.stdout.contains("error[link-outside]"),
        "{checked:?}"
    );
    // Of one skill only what is its own is told.
    bed.run(&["skill", "validate", "git"]).expect_code(0);
    let list = bed.json(&["skills"]);
    let root = &list["roots"][0];
    assert_eq!(root["problems"][0]["code"], "link-outside", "{list}");
    fs::remove_file(&link).unwrap();
    bed.run(&["skill", "validate"]).expect_code(0);
}

#[test]
fn a_link_in_a_root_that_leads_nowhere_is_told() {
    let workspace = workspace();
    for (name, target) in [("gone", "../none"), ("round", "round")] {
        let link = workspace.root.join(".claude/skills").join(name);
        std::os::unix::fs::symlink(target, link).unwrap();
    }
    let listed = workspace.run(&["skills"]).expect_code(0);
    let told = listed.stderr.split_whitespace().collect::<Vec<_>>();
    let told = told.join(" ");
    for expected in [
        ".claude/skills/gone: leads to `../none`, which is not there",
        ".claude/skills/round: leads to `round`, in a circle",
    ] {
        assert!(told.contains(expected), "{told}");
    }
    let list = workspace.json(&["skills"]);
    let roots = list["roots"].as_array().unwrap();
    let root = roots
        .iter()
        .find(|root| root["label"] == ".claude")
        .unwrap();
    let codes = root["problems"].as_array().unwrap().iter();
    let codes: Vec<&str> = codes.map(|one| one["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["link-dangling", "link-dangling"], "{root}");
    // The file of a skill that leads to itself is nobody's fault of rights.
    let own = workspace.root.join(".claude/skills/ring");
    fs::create_dir(&own).unwrap();
    std::os::unix::fs::symlink("SKILL.md", own.join("SKILL.md")).unwrap();
    let validated = workspace.run(&["skill", "validate"]);
    assert!(
        validated
            .stdout
            .contains("in a circle: correct or remove one"),
        "{validated:?}"
    );
    assert!(
        !validated.stdout.contains("owner and mode"),
        "{validated:?}"
    );
}
