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
    keys.named = super::super::executor::Named::default();
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
fn code_at_the_beginning_of_a_body_stays_code() {
    let text = "---\nname: a\ndescription: One\n---\n\n \n    code\n\nprose\n\n";
    let (first, body) = read(".claude/skills/a/SKILL.md", text);
    assert_eq!(body, "    code\n\nprose");
    for (target, root) in TARGETS {
        let there = convert(&first, &body, target).unwrap();
        let (keys, text) = read(&format!("{root}/{}", there.path), &there.text);
        assert_eq!(text, body, "{target:?}\n{}", there.text);
        let back = convert(&keys, &text, Target::Agent).unwrap();
        assert!(
            back.text.ends_with("---\n\n    code\n\nprose\n"),
            "{}",
            back.text
        );
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

/// A skill of `.claude` with these lines among its keys, converted.
fn of_agent(more: &str, target: Target) -> Result<(Keys, String), ConvertError> {
    let text = format!("---\nname: a\ndescription: One\n{more}\n---\nDo it.\n");
    let (keys, body) = read(".claude/skills/a/SKILL.md", &text);
    let there = convert(&keys, &body, target)?;
    let (_, root) = TARGETS.into_iter().find(|(one, _)| *one == target).unwrap();
    let (keys, _) = read(&format!("{root}/{}", there.path), &there.text);
    Ok((keys, there.text))
}

#[test]
fn nothing_under_metadata_takes_the_place_of_a_key() {
    for (more, key) in [
        (
            "disable-model-invocation: true\nmetadata: {workerctl.disable-model-invocation: \"false\"}",
            "disable-model-invocation",
        ),
        (
            "user-invocable: false\nmetadata: {workerctl.user-invokable: \"true\"}",
            "user-invocable",
        ),
        (
            "allowed-tools: Read\nmetadata: {workerctl.allowed-tools: '\"Bash\"'}",
            "allowed-tools",
        ),
        (
            "allowed-tools: Read\nmetadata: {workerctl.allowed_tools: '[\"Bash\"]'}",
            "allowed-tools",
        ),
        (
            "license: MIT\nmetadata: {workerctl.license: '\"GPL\"'}",
            "license",
        ),
        (
            "version: 1\nmetadata: {workerctl.description: '\"Two\"', workerctl.metadata: '{}', x: y}",
            "version",
        ),
    ] {
        for (target, _) in TARGETS {
            let (keys, text) = match of_agent(more, target) {
                Ok(converted) => converted,
                // Refusing loses nothing.
                Err(ConvertError::Restriction(_) | ConvertError::Clash(_))
                    if target == Target::Portable =>
                {
                    continue;
                }
                Err(other) => panic!("{more} {target:?}: {other}"),
            };
            assert_eq!(keys.description, "One", "{more} {target:?}");
            assert_eq!(
                keys.model_invocable,
                key != "disable-model-invocation",
                "{target:?}\n{text}"
            );
            assert_eq!(
                keys.user_invocable,
                key != "user-invocable",
                "{target:?}\n{text}"
            );
            let only = (key == "allowed-tools").then(|| vec!["Read".to_owned()]);
            assert_eq!(keys.allowed_tools, only, "{target:?}\n{text}");
            if key == "license" {
                assert_eq!(keys.written["license"], "MIT", "{target:?}\n{text}");
            }
            // What does not restrict may come back under its key.
            let kept = key == "user-invocable" || text.contains("workerctl.");
            assert!(kept, "{more} {target:?}\n{text}");
        }
    }
}

#[test]
fn a_near_miss_of_a_restriction_is_not_hidden() {
    for more in [
        "user-invokable: false",
        "disable_model_invocation: true",
        "required-tools: [x]",
        "mutating: true",
        "approval-required: true",
    ] {
        let refused = of_agent(more, Target::Portable).unwrap_err();
        assert!(
            matches!(refused, ConvertError::Restriction(_)),
            "{more}: {refused}"
        );
        assert!(of_agent(more, Target::Agent).is_ok(), "{more}");
    }
    for more in [
        "allowedTools: [Read]",
        "allowed_tools: [Read]",
        "allowed_tools: Read",
    ] {
        for (target, _) in TARGETS {
            let (keys, text) = of_agent(more, target).unwrap();
            assert_eq!(
                keys.allowed_tools.unwrap(),
                ["Read"],
                "{more} {target:?}\n{text}"
            );
            assert!(keys.required_tools.is_empty(), "{more} {target:?}\n{text}");
        }
    }
    for more in [
        "user-invokable: true",
        "required_tools: []",
        "mutating: false",
    ] {
        assert!(of_agent(more, Target::Portable).is_ok(), "{more}");
    }
}

#[test]
fn what_would_say_something_else_or_be_rejected_is_refused() {
    for (more, target, key) in [
        ("tools: {a: b}", Target::Workspace, "tools"),
        ("tools: [Read]", Target::WorkspacePage, "tools"),
    ] {
        let refused = of_agent(more, target).unwrap_err();
        assert_eq!(refused, ConvertError::Clash(key.to_owned()), "{more}");
    }
    // What no other dialect knows is kept.
    let (keys, _) = of_agent("tools: {a: b}\nallowed-tools: Read", Target::Agent).unwrap();
    assert_eq!(keys.written["tools"], serde_json::json!({"a": "b"}));
    // A metadata that is a text comes back beside other keys.
    let (keys, text) = of_agent("metadata: plain\nversion: 2", Target::Portable).unwrap();
    let back = convert(&keys, "Do it.", Target::Agent).unwrap();
    let (keys, _) = read(".claude/skills/a/SKILL.md", &back.text);
    assert_eq!(keys.written["metadata"], "plain", "{text}");
    assert_eq!(keys.written["version"], 2, "{text}");
}
