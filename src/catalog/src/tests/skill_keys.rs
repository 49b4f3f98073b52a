//! What a skill declares: interface, command, texts.

use super::super::{Options, TextChecker, TextFinding, TextKind, load};
use super::skills::ids;
use super::{ERROR, WARNING, Workspace, check_worker, codes, expect, show};
use crate::model::Skill;
use crate::model::definition::{InputKind, RunText};
use crate::model::spec::OutputKind;

#[test]
fn interfaces_are_read_in_full() {
    let yaml = "worker: {id: w}\nskills:\n  - id: a\n    description: d\n    run: date\n    interface:\n      inputs:\n        - {name: n, type: integer, min: 1, max: 52, default: 1}\n        - {name: f, type: number, default: 1.50}\n        - {name: s, enum: [1.10, b], default: 1.10, min_length: 1, max_length: 9, pattern: \"[a-z0-9.]+\", sensitive: false, allow_dash: true}\n        - {name: l, type: array, items: {type: number}, required: true}\n        - {name: d, type: date, default: 2026-01-02}\n      outputs:\n        - {name: report, type: markdown, destination: \"workspace/{d}.md\"}\n        - {type: console}\n        - {type: git_commit}\n";
    let catalog = check_worker(yaml, ("type-spelling", WARNING, 8, 27, "type: number"));
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
    let skill = &catalog.workers[0].skills[0];
    let [n, half, s, l, d] = skill.inputs.as_slice() else {
        panic!("five inputs");
    };
    assert!(n.integer && n.kind == InputKind::Number && n.default == Some(1.into()));
    assert_eq!((n.min, n.max), (Some(1.0), Some(52.0)));
    assert_eq!(half.default, Some(1.5.into()));
    assert_eq!(s.allowed, ["1.10", "b"]);
    assert_eq!(s.default, Some("1.10".into()));
    assert_eq!(
        (s.min_length, s.max_length, s.allow_dash),
        (Some(1), Some(9), true)
    );
    assert_eq!((l.items, l.required), (Some(InputKind::Number), true));
    assert_eq!(d.default, Some("2026-01-02".into()));
    let outputs: Vec<_> = skill
        .outputs
        .iter()
        .map(|o| (o.name.as_str(), o.kind))
        .collect();
    assert_eq!(
        outputs,
        [
            ("report", OutputKind::Markdown),
            ("console", OutputKind::Console),
            ("git_commit", OutputKind::GitCommit),
        ]
    );
}

/// A line of an interface, and the code, column and hint of its problem.
const WRONG_INTERFACES: &[(&str, &str, u32, &str)] = &[
    ("inputs: {a: b}", "wrong-type", 15, "`- {name: a, type: b}`"),
    ("inputs: [x]", "wrong-type", 16, "a map with `name`"),
    (
        "inputs: [{type: string}]",
        "missing-key",
        16,
        "add `name: NAME`",
    ),
    (
        "inputs: [{name: 1x}]",
        "name-invalid",
        23,
        "begin with a letter",
    ),
    (
        "inputs: [{name: x, type: date, default: soon}]",
        "wrong-type",
        47,
        "a date",
    ),
    (
        "inputs: [{name: x, type: colour}]",
        "unknown-value",
        32,
        "array, date or path",
    ),
    (
        "inputs: [{name: x, min: 1}]",
        "bound-not-applicable",
        26,
        "correct the type",
    ),
    (
        "inputs: [{name: x, type: number, min: 3, max: 1}]",
        "out-of-range",
        16,
        "swap",
    ),
    (
        "inputs: [{name: x, enum: [a], default: b}]",
        "default-not-allowed",
        46,
        "allowed: `a`",
    ),
    (
        "inputs: [{name: x}, {name: x}]",
        "duplicate-name",
        34,
        "its own `name`",
    ),
    (
        "inputs: [{name: x, required: yes}]",
        "wrong-type",
        36,
        "`true` or `false`",
    ),
    (
        "outputs: [{type: pdf}]",
        "unknown-value",
        24,
        "git_commit or console",
    ),
    (
        "outputs: [{type: json, destination: /etc/x}]",
        "path-outside",
        43,
        "relative",
    ),
    (
        "outputs: [{type: json, destination: ../x}]",
        "path-outside",
        43,
        "relative",
    ),
    (
        "outputs: [{type: json, destination: ~/x}]",
        "path-outside",
        43,
        "relative",
    ),
    (
        "outputs: [{type: json, destination: sub/.GIT/config}]",
        "path-outside",
        43,
        ".git",
    ),
    (
        "outputs: [{type: json, destination: {x}}]",
        "quote-placeholder",
        43,
        "quote",
    ),
];

#[test]
fn wrong_interfaces_are_rejected() {
    for (line, code, column, hint) in WRONG_INTERFACES {
        let yaml = format!(
            "worker: {{id: w}}\nskills:\n  - id: a\n    run: date\n    interface:\n      {line}\n"
        );
        let catalog = check_worker(&yaml, (code, ERROR, 6, *column, hint));
        assert!(ids(&catalog).is_empty(), "{line}");
    }
    check_worker(
        "worker: {id: w}\nskills:\n  - {id: a, run: date, interface: {outputs: [{type: markdown}, {type: console, destination: x}]}}\n",
        ("destination-missing", WARNING, 3, 46, "add `destination`"),
    );
}

#[test]
fn run_in_every_form() {
    let workspace = Workspace::new(&[(
        "workers/w/worker.yaml",
        "worker: {id: w}\nskills:\n  - {id: a, description: d, run: {script: x.py, interpreter: python3 -u, args: [\"{n}\"]}}\n  - {id: b, description: d, run: {script: x.py}}\n  - {id: c, description: d, run: {script: gone.py}}\n",
    )]);
    workspace.write("workers/w/x.py", b"print()\n");
    let catalog = workspace.load();
    let skills = &catalog.workers[0].skills;
    assert!(matches!(
        &skills[0].run,
        RunText::Script { path, interpreter, args }
            if path.ends_with("/workers/w/x.py") && interpreter == &["python3", "-u"] && args == &["{n}"]
    ));
    assert!(skills[0].is_available());
    let path = "workers/w/worker.yaml";
    expect(
        &catalog,
        path,
        &("script-not-executable", WARNING, 4, 43, "add `interpreter`"),
    );
    expect(
        &catalog,
        path,
        &("file-missing", WARNING, 5, 43, "correct the path"),
    );
    assert_eq!(skills[2].unavailable[0].code, "file-missing");
    for (run, code, column, hint) in [
        ("\" \"", "blank", 10, ""),
        ("[]", "blank", 10, "program first"),
        ("[\"\"]", "blank", 10, "program first"),
        ("[[a]]", "wrong-type", 11, "text"),
        ("{file: x}", "wrong-type", 10, "`script`"),
        (
            "{script: /bin/x}",
            "path-outside",
            19,
            "relative to the file",
        ),
        ("{topic}", "quote-placeholder", 10, "quote"),
    ] {
        let yaml = format!("worker: {{id: w}}\nskills:\n  - id: a\n    run: {run}\n");
        check_worker(&yaml, (code, ERROR, 4, column, hint));
    }
}

struct Refuses;

impl TextChecker for Refuses {
    fn check(&self, skill: &Skill, texts: &[(TextKind, &str)]) -> Vec<Vec<TextFinding>> {
        assert_eq!(skill.address.worker, "w");
        let bad = |(kind, text): &(TextKind, &str)| {
            let finding = |(offset, _)| TextFinding {
                code: format!("{kind:?}").to_lowercase(),
                severity: ERROR,
                offset,
                message: "bad".to_owned(),
                hint: Some("good".to_owned()),
            };
            text.match_indices("BAD").map(finding).collect()
        };
        texts.iter().map(bad).collect()
    }
}

#[test]
fn what_the_checker_finds_has_its_place_in_the_file() {
    let yaml = "worker: {id: w}\nverification:\n  post_execute:\n    - command: >\n        one\n        two BAD\nskills:\n  - id: a\n    description: d\n    run: |\n      first\n\n        indented BAD\n    commit: {message: 'it''s BAD'}\n    hooks: {post_tools: [\"\\\"\\u00e4\\\" BAD\"]}\n    interface:\n      inputs: [{name: x, pattern: BAD}]\n      outputs:\n        - destination: plain\n            folded BAD\n  - {id: b, description: d, run: [a, \"x BAD\"]}\n";
    let workspace = Workspace::of_worker(yaml);
    let options = Options {
        text_checker: Some(&Refuses),
        ..Options::default()
    };
    let catalog = load(workspace.path(), options);
    for (code, line, column) in [
        ("check", 6, 13),
        ("run", 13, 18),
        ("commitmessage", 14, 30),
        ("hook", 15, 38),
        ("pattern", 17, 35),
        ("destination", 20, 20),
        ("argument", 21, 41),
    ] {
        let expected = (code, ERROR, line, column, "good");
        expect(&catalog, "workers/w/worker.yaml", &expected);
    }
    assert!(ids(&catalog).is_empty());
}

/// dialects.md: "a near miss of a known key (`allowed_tools`, `user-invokable`, `descriptipn`, `Name`): warning with the
/// suggestion".
#[test]
fn a_near_miss_of_a_key_that_is_missing_is_told_too() {
    let path = ".claude/skills/a/SKILL.md";
    let catalog = Workspace::new(&[(path, "---\nName: a\ndescriptipn: d\n---\n\nDo.\n")]).load();
    for expected in [
        ("key-misspelled", WARNING, 2, 1, "`name`"),
        ("key-misspelled", WARNING, 3, 1, "`description`"),
        ("missing-key", ERROR, 2, 1, "write `name: a`"),
        ("missing-key", ERROR, 2, 1, "say in a sentence"),
    ] {
        expect(&catalog, path, &expected);
    }
}

#[test]
fn a_schema_whose_pattern_is_none_is_rejected_where_it_stands() {
    let keys = "description: d\ninput_schema:\n  properties:\n    a:\n      pattern: \"(\"\n";
    let path = "workspace/skills/a.md";
    let text = format!("---\n{keys}---\n\nDo.\n");
    let catalog = Workspace::new(&[(path, &text)]).load();
    let hint = "write a JSON Schema";
    expect(&catalog, path, &("input-schema", ERROR, 6, 16, hint));
    // What is no schema has its place as well.
    let text = text.replace("pattern: \"(\"", "minimum: low");
    let catalog = Workspace::new(&[(path, &text)]).load();
    expect(&catalog, path, &("input-schema", ERROR, 6, 16, hint));
    // The same holds for instructions of a worker; a command is not held to it.
    let yaml = |more: &str| {
        format!(
            "worker: {{id: w}}\nskills:\n  - {{id: a, description: d, {more}, input_schema: {{properties: {{a: {{pattern: '('}}}}}}}}\n"
        )
    };
    let column = u32::try_from(
        "  - {id: a, description: d, instructions: Do, input_schema: {properties: {a: {pattern: '"
            .len(),
    )
    .unwrap();
    check_worker(
        &yaml("instructions: Do"),
        ("input-schema", ERROR, 3, column, hint),
    );
    let catalog = Workspace::of_worker(&yaml("run: 'true'")).load();
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
}

#[test]
fn a_default_that_the_schema_refuses_is_told() {
    let keys = "description: d\ninput_schema:\n  properties:\n    n: {type: integer, default: x}\n    m: {type: integer, default: 3}\n  required: [k]\n";
    let path = "workspace/skills/a.md";
    let text = format!("---\n{keys}---\n\nDo.\n");
    let catalog = Workspace::new(&[(path, &text)]).load();
    let expected = ("input-schema-default", WARNING, 5, 33, "write a default");
    expect(&catalog, path, &expected);
    let told = codes(&catalog);
    let told = told.iter().filter(|code| **code == expected.0).count();
    assert_eq!(told, 1, "{}", show(&catalog.problems));
    assert!(!catalog.has_errors(), "{}", show(&catalog.problems));
}

#[test]
fn hooks_of_a_skill_that_is_not_mutating_are_told_to_be_without_effect() {
    let skill = |more: &str| {
        format!(
            "worker: {{id: w}}\nskills:\n  - {{id: a, description: d, run: date, hooks: {{post_tools: b}}{more}}}\n"
        )
    };
    check_worker(&skill(""), ("hooks-unfired", WARNING, 3, 40, "`notify`"));
    let catalog = Workspace::of_worker(&skill(", mutating: true")).load();
    assert!(codes(&catalog).is_empty(), "{}", show(&catalog.problems));
}

#[test]
fn keys_of_instructions_have_no_effect_on_a_command() {
    for (key, hint) in [
        ("input_schema: {type: object}", "`interface:"),
        ("max_iterations: 3", "`timeout`"),
    ] {
        let skill = format!(
            "worker: {{id: w}}\nskills:\n  - {{id: a, description: d, run: date, {key}}}\n"
        );
        check_worker(&skill, ("instructions-only", WARNING, 3, 40, hint));
    }
}

#[test]
fn lists_of_tools_that_are_not_understood_reject_the_skill() {
    let row = |path: &str, list: &str| {
        let keys = format!("name: a\ndescription: d\n{list}\n");
        let text = if path.ends_with("worker.yaml") {
            format!(
                "worker: {{id: w, name: w, description: d}}\nskills:\n  - {{id: a, description: d, instructions: Do it., {list}}}\n"
            )
        } else {
            format!("---\n{keys}---\n\nDo.\n")
        };
        let catalog = Workspace::new(&[(path, &text)]).load();
        let codes: Vec<_> = catalog
            .problems
            .iter()
            .map(|one| one.code.clone())
            .filter(|code| code != "no-executor")
            .collect();
        let loaded = catalog.skill_count() + catalog.root_skills.skills.len();
        (
            loaded,
            codes.contains(&"restriction-malformed".to_owned()),
            codes,
        )
    };
    for path in ["workers/w/worker.yaml", ".claude/skills/a/SKILL.md"] {
        for key in ["allowed-tools", "disallowed-tools"] {
            for item in ["Raed", "\"Bash(git\"", "\"Bash()\"", "\"*\"", "\"mcp__\""] {
                let (loaded, rejected, codes) = row(path, &format!("{key}: [Read, {item}]"));
                assert!(loaded == 0 && rejected, "{path} {key} {item}: {codes:?}");
            }
            for item in [
                "read",
                "apply_patch",
                "run_shell_command",
                "mcp__a__b",
                "\"Bash(git:*)\"",
            ] {
                let (loaded, _, codes) = row(path, &format!("{key}: [Read, {item}]"));
                assert_eq!(
                    (loaded, codes.len()),
                    (1, 0),
                    "{path} {key} {item}: {codes:?}"
                );
            }
        }
        let (loaded, _, codes) = row(path, "allowed-tools: [Read, WebSearch]");
        assert_eq!(
            (loaded, codes),
            (1, vec!["tools-elsewhere".to_owned()]),
            "{path}"
        );
    }
}
