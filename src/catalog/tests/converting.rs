//! Skills written in another dialect and back: nothing is lost on the way.

use super::super::dialect::Keys;
use super::super::dialect::convert::{ConvertError, Target, convert};
use super::Workspace;

const TARGETS: [(Target, &str); 6] = [
    (Target::Agent, ".claude/skills"),
    (Target::Portable, ".claude/skills"),
    (Target::Wave, ".wave/skills"),
    (Target::Workspace, "workspace/skills"),
    (Target::WorkspacePage, "workspace/skills"),
    (Target::WorkspaceYaml, "workspace/skills"),
];

/// Keys and body of one file.
fn read(path: &str, text: &str) -> (Keys, String) {
    let workspace = Workspace::new(&[(path, text)]);
    let catalog = workspace.load();
    let Some(skill) = catalog.root_skills.skills.first() else {
        panic!("{path}\n{text}\n{}", super::show(&catalog.problems));
    };
    let loaded = skill.load().expect("it was read before");
    (loaded.keys, loaded.body)
}

/// What a skill means, without the way in which it is written.
fn meaning(keys: &Keys) -> Keys {
    let mut keys = keys.clone();
    keys.written.clear();
    keys.instructions = None;
    for file in keys.files.iter_mut().flatten() {
        file.place.line = 0;
        file.place.column = 0;
        file.place.path = "".into();
    }
    keys
}

/// Keys that are no other name of something that is evaluated.
fn others(keys: &Keys) -> serde_json::Map<String, serde_json::Value> {
    let mut written = keys.written.clone();
    for key in [
        "name",
        "allowed-tools",
        "allowed_tools",
        "tools",
        "required_tools",
        "instructions",
    ] {
        written.shift_remove(key);
    }
    written
}

const FULL: &str = "---\nname: full\ndescription: \"Everything: that there is\"\nlicense: MIT\ncompatibility: git\nmetadata: {author: me, date: 2026-01-01, list: [1, two], map: {a: ~}}\nallowed-tools: Bash(git add:*), Read\nversion: 1.10\nargument-hint: [a, b]\nmodel: opus\ncontext: fork\nhooks: {x: [1]}\nmax_iterations: 7\ninput_schema: {type: object, properties: {n: {type: integer, default: 3}}}\ntoolsets: [one]\nfiles: [{path: a.md, description: d}]\norigin: somewhere\n'yes': 'no'\n---\n\n# Body\n\n{{ not a template }}\n\n---\n\nafter a rule\n";

#[test]
fn a_skill_goes_through_every_dialect_and_comes_back_with_every_key() {
    let (first, body) = read(".claude/skills/full/SKILL.md", FULL);
    for (target, root) in TARGETS {
        let there = convert(&first, &body, target).unwrap();
        let (keys, text) = read(&format!("{root}/{}", there.path), &there.text);
        assert_eq!(text, body, "{target:?}");
        let back = convert(&keys, &text, Target::Agent).unwrap();
        let (last, text) = read(&format!(".claude/skills/{}", back.path), &back.text);
        assert_eq!(text, body, "{target:?}");
        assert_eq!(others(&last), others(&first), "{target:?}");
        assert_eq!(meaning(&last), meaning(&first), "{target:?}");
    }
}

#[test]
fn newer_names_of_a_workspace_restrict_elsewhere_too() {
    let text = "---\ndescription: One\ntools: [bash, read]\nrequired_tools: [git]\n---\nDo it.\n";
    let (keys, body) = read("workspace/skills/a.md", text);
    let there = convert(&keys, &body, Target::Agent).unwrap();
    let (keys, _) = read(&format!(".claude/skills/{}", there.path), &there.text);
    assert_eq!(keys.allowed_tools.unwrap(), ["bash", "read"]);
    assert_eq!(keys.required_tools, ["git", "bash", "read"]);
}

#[test]
fn what_a_dialect_cannot_say_is_refused_and_not_dropped() {
    let of = |more: &str| {
        let text = format!("---\nname: a\ndescription: One\n{more}\n---\nDo it.\n");
        read(".claude/skills/a/SKILL.md", &text)
    };
    for key in [
        "disable-model-invocation: true",
        "user-invocable: false",
        "required_tools: [x]",
    ] {
        let (keys, body) = of(key);
        let refused = convert(&keys, &body, Target::Portable).unwrap_err();
        assert!(matches!(refused, ConvertError::Restriction(_)), "{key}");
        assert!(convert(&keys, &body, Target::Agent).is_ok(), "{key}");
    }
    let (keys, body) = of("user-invocable: true");
    assert!(convert(&keys, &body, Target::Portable).is_ok());
    let (keys, body) = of("instructions: Something else");
    let refused = convert(&keys, &body, Target::WorkspaceYaml).unwrap_err();
    assert_eq!(refused, ConvertError::Clash("instructions".to_owned()));
    let (mut keys, body) = of("x-a: b");
    keys.name = "My Skill".to_owned();
    assert!(matches!(
        convert(&keys, &body, Target::Wave),
        Err(ConvertError::Name(_))
    ));
}
