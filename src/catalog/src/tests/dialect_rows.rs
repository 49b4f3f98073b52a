//! What people really write, and the rule for each case.

use super::dialects::{CLAUDE, load, with};
use super::roots::{found, page};
use super::{ERROR, Expected, NOTE, WARNING, expect};
use crate::model::Severity;

struct Row {
    case: &'static str,
    text: String,
    loads: bool,
    problem: Option<Expected<'static>>,
}

fn row(case: &'static str, text: &str, loads: bool, problem: Option<Expected<'static>>) -> Row {
    Row {
        case,
        text: text.to_owned(),
        loads,
        problem,
    }
}

#[expect(clippy::too_many_lines, reason = "a table")]
/// The rows of the list of real files, one after the other.
fn rows() -> Vec<Row> {
    let long = "x".repeat(1_025);
    let exact = "ä".repeat(1_024);
    vec![
        row(
            "unknown key",
            &with("persona: b"),
            true,
            Some(("unknown-key", NOTE, 4, 1, "")),
        ),
        row(
            "near miss of a restriction",
            &with("allowed_tools: [Read]"),
            true,
            Some(("key-misspelled", WARNING, 4, 1, "allowed-tools")),
        ),
        row(
            "near miss",
            &with("licence: MIT"),
            true,
            Some(("key-misspelled", WARNING, 4, 1, "license")),
        ),
        row(
            "description missing",
            "---\nname: a\n---\nDo it.\n",
            false,
            Some(("missing-key", ERROR, 2, 1, "when to use")),
        ),
        row(
            "description blank",
            "---\nname: a\ndescription: ' '\n---\nDo it.\n",
            false,
            Some(("blank", ERROR, 3, 14, "")),
        ),
        row(
            "listed file missing",
            &with("files: [{path: no.md, description: d}]"),
            true,
            Some(("skill-file-missing", WARNING, 4, 9, "create")),
        ),
        row(
            "unknown toolset",
            &with("toolsets: [none-such]"),
            true,
            None,
        ),
        row(
            "name differs",
            &page("b", "One"),
            true,
            Some(("name-directory", WARNING, 2, 7, "same name")),
        ),
        row(
            "odd name",
            &page("Notion:tasks", "One"),
            true,
            Some(("name-unusual", WARNING, 2, 7, "dashes")),
        ),
        row(
            "name over 64",
            &page(&"n".repeat(65), "One"),
            true,
            Some(("name-unusual", WARNING, 2, 7, "64")),
        ),
        row(
            "name with a backslash",
            &page("'a\\b'", "One"),
            false,
            Some(("name-forbidden", ERROR, 2, 7, "")),
        ),
        row(
            "name with a control character",
            &page("\"a\\tb\"", "One"),
            false,
            Some(("name-forbidden", ERROR, 2, 7, "")),
        ),
        row(
            "description over 1024",
            &page("a", &long),
            true,
            Some(("description-long", WARNING, 3, 14, "1024")),
        ),
        row(
            "1024 characters in more bytes",
            &page("a", &exact),
            true,
            None,
        ),
        row(
            "unquoted colon",
            &page("a", "Use when: it rains"),
            true,
            Some(("prose-quoted", WARNING, 3, 1, "\"Use when: it rains\"")),
        ),
        row(
            "value begins with a bracket",
            &page("a", "[beta] does it"),
            true,
            Some(("prose-quoted", WARNING, 3, 1, "\"[beta]")),
        ),
        row(
            "value is nothing but a bracket",
            &page("a", "[WIP]"),
            true,
            Some(("prose-quoted", WARNING, 3, 1, "description: \"[WIP]\"")),
        ),
        row(
            "a list that is no prose",
            "---\nname: a\ndescription: [one,\n  two]\n---\nDo it.\n",
            false,
            Some(("wrong-type", ERROR, 3, 14, "")),
        ),
        row(
            "licence with a colon",
            &with("license: Foo: bar"),
            true,
            Some(("prose-quoted", WARNING, 4, 1, "\"Foo: bar\"")),
        ),
        row(
            "restriction unbalanced",
            &with("allowed-tools: Bash(git"),
            false,
            Some(("restriction-malformed", ERROR, 4, 16, "")),
        ),
        row(
            "flag malformed",
            &with("disable-model-invocation: perhaps"),
            false,
            Some(("restriction-malformed", ERROR, 4, 27, "true")),
        ),
        row(
            "misspelled flag malformed",
            &with("user-invokable: 0"),
            false,
            Some(("restriction-malformed", ERROR, 4, 17, "true")),
        ),
        row(
            "mutating malformed",
            &with("mutating: perhaps"),
            false,
            Some(("restriction-malformed", ERROR, 4, 11, "true")),
        ),
        row(
            "approval malformed",
            &with("approval_required: maybe"),
            false,
            Some(("restriction-malformed", ERROR, 4, 20, "true")),
        ),
        row(
            "near miss of mutating malformed",
            &with("mutatng: 5"),
            false,
            Some(("restriction-malformed", ERROR, 4, 10, "true")),
        ),
        row(
            "restrictions that can be understood",
            &with("mutating: true\napproval_required: false"),
            true,
            None,
        ),
        row(
            "required tools malformed",
            &with("required_tools: [1]"),
            false,
            Some(("restriction-malformed", ERROR, 4, 17, "")),
        ),
        row(
            "carriage returns",
            &page("a", "One").replace('\n', "\r\n"),
            true,
            None,
        ),
        row("no final newline", page("a", "One").trim_end(), true, None),
        row(
            "blank lines before it",
            &format!("\n\n{}", page("a", "One")),
            true,
            None,
        ),
        row(
            "byte order mark",
            &format!("\u{feff}{}", page("a", "One")),
            true,
            Some(("byte-order-mark", NOTE, 1, 1, "")),
        ),
        row(
            "NUL",
            &with("x-a: \0"),
            false,
            Some(("nul-byte", ERROR, 4, 6, "")),
        ),
        row(
            "a rule in the body",
            "---\nname: a\ndescription: One\n---\nDo it.\n---\nname: b\n",
            true,
            None,
        ),
        row(
            "frontmatter over 64 KiB",
            &with(&format!("x-a: {}", "y".repeat(70_000))),
            false,
            Some(("frontmatter-too-large", ERROR, 2, 1, "body")),
        ),
        row(
            "over 500 lines",
            &format!("{}{}", page("a", "One"), "line\n".repeat(500)),
            true,
            Some(("skill-long", NOTE, 0, 0, "next to it")),
        ),
        row(
            "max_iterations as text",
            &with("max_iterations: '7'"),
            true,
            Some(("number-as-text", WARNING, 4, 17, "7")),
        ),
        row(
            "max_iterations zero",
            &with("max_iterations: 0"),
            false,
            Some(("out-of-range", ERROR, 4, 17, "")),
        ),
        row(
            "run",
            &with("run: rm -rf /"),
            true,
            Some(("run-outside-worker", WARNING, 4, 1, "workers/")),
        ),
        row(
            "cron",
            &with("cron: {schedule: '0 9 * * 1'}"),
            true,
            Some(("schedule-not-fired", WARNING, 4, 1, "workers/")),
        ),
        row(
            "metadata of any shape",
            &with(
                "metadata: {a: 2026-01-01, b: [1], c: {d: ~}}\nversion: 1.10\nargument-hint: [a]",
            ),
            true,
            None,
        ),
        row(
            "input_schema that fetches",
            &with("input_schema: {$ref: 'https://example.org'}"),
            false,
            Some(("input-schema", ERROR, 4, 22, "only to itself")),
        ),
        row(
            "frontmatter is no map",
            "---\n- a\n---\nDo it.\n",
            false,
            Some(("definition-shape", ERROR, 2, 1, "")),
        ),
    ]
}

#[test]
fn every_row_of_real_files_has_its_rule() {
    for row in rows() {
        let (catalog, skill) = load(CLAUDE, &row.text);
        let problems = super::show(&catalog.problems);
        assert_eq!(skill.is_some(), row.loads, "{}:\n{problems}", row.case);
        match row.problem {
            Some(expected) => expect(&catalog, CLAUDE, &expected),
            None => assert!(catalog.problems.is_empty(), "{}:\n{problems}", row.case),
        }
        let rejected = catalog
            .problems
            .iter()
            .any(|one| one.severity == Severity::Error);
        assert!(!(rejected && row.loads), "{}:\n{problems}", row.case);
        if !row.loads {
            assert_eq!(
                found(&catalog, "a"),
                format!("refused {CLAUDE}"),
                "{}",
                row.case
            );
        }
    }
}
