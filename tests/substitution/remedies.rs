//! What the hints say to write instead is followed, and holds for every hostile value.

use std::process::{Command, Stdio};

use workerctl::template::{
    Dialect, Kind, Name, Names, Scope, ShellText, Value, Values, environment,
};

use crate::interpreters::is_there;
use crate::{TEXTS, names};

/// The program, a text that is refused, a part of the hint, the same job done by the hint, and what that prints.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    fn(&str) -> String,
);

const ROWS: &[Row] = &[
    (
        "perl",
        "printf 'a-b' | sed 's/a/{x}/'",
        "perl -pe 's/…/$ENV{WORKERCTL_INPUT_x}/'",
        "printf 'a-b' | perl -pe 's/a/$ENV{WORKERCTL_INPUT_x}/'",
        |v| format!("{v}-b"),
    ),
    (
        "perl",
        "printf 'a-b' > f; sed -i 's/a/{x}/' f; cat f",
        "with `-i` for `sed -i`",
        "printf 'a-b' > f; perl -i -pe 's/a/$ENV{WORKERCTL_INPUT_x}/' f; cat f; rm f",
        |v| format!("{v}-b"),
    ),
    (
        "awk",
        "printf 'a-b' | awk '{ gsub(/a/, \"{x}\"); printf \"%s\", $0 }'",
        r#"gsub(/[\\&]/, "\\\\&", v)"#,
        r#"printf 'a-b' | awk '{ v = ENVIRON["WORKERCTL_INPUT_x"]; gsub(/[\\&]/, "\\\\&", v); gsub(/a/, v); printf "%s", $0 }'"#,
        |v| format!("{v}-b"),
    ),
    (
        "awk",
        "awk -v v={x} 'BEGIN { printf \"%s\", v }'",
        "ENVIRON[\"WORKERCTL_INPUT_x\"]",
        "awk 'BEGIN { printf \"%s\", ENVIRON[\"WORKERCTL_INPUT_x\"] }'",
        str::to_owned,
    ),
    (
        "jq",
        "jq -nj '{k: \"{x}\"} | .k'",
        "jq --arg v {x} '… $v …'",
        "jq -nj --arg v {x} '{k: $v} | .k'",
        str::to_owned,
    ),
    (
        "jq",
        "printf '{\"x\":\"7\"}' | jq -c '{x}'",
        "write `\\{x}` where the braces are those of the program",
        "printf '{\"x\":\"7\"}' | jq -cj '\\{x}'",
        |_| "{\"x\":\"7\"}".to_owned(),
    ),
    (
        "sh",
        "cat <<'E'\n$HOME `a` \\n {x}\nE",
        "a backslash before each `$`, backtick and backslash",
        "cat <<E\n\\$HOME \\`a\\` \\\\n {x}\nE",
        |v| format!("$HOME `a` \\n {v}\n"),
    ),
    (
        "sh",
        "cat <<'E'\n{x}\nE",
        "write `\\{x}` if the braces are meant",
        "cat <<'E'\n\\{x}\nE",
        |_| "{x}\n".to_owned(),
    ),
    (
        "python3",
        "python3 -c 'print(\"{x}\", end=\"\")'",
        "sys.argv[1]",
        "python3 -c 'import sys; sys.stdout.buffer.write(sys.argv[1].encode())' {x}",
        str::to_owned,
    ),
    (
        "sh",
        "sh -c 'printf %s {x}'",
        "sh -c '… \"$1\" …' sh {x}",
        "sh -c 'printf %s \"$1\"' sh {x}",
        str::to_owned,
    ),
    (
        "sh",
        "printf {x}",
        "printf '%s' {x}",
        "printf '%s' {x}",
        str::to_owned,
    ),
];

#[test]
fn what_a_hint_says_to_write_does_the_job() {
    for (program, refused, hint, followed, prints) in ROWS {
        let problems = ShellText::compile(refused, &names(), Dialect::Sh).unwrap_err();
        let hints: Vec<&str> = problems.iter().map(|one| one.hint.as_str()).collect();
        assert!(
            hints.iter().any(|one| one.contains(hint)),
            "{refused}: {hints:?}"
        );
        if !is_there(program) {
            println!("skipped `{program}`: it is not installed");
            continue;
        }
        // Values that may begin with `-` need a `--` more, which is another hint's.
        for value in TEXTS.iter().filter(|value| !value.starts_with('-')) {
            let printed = printed(followed, value);
            assert_eq!(printed, prints(value), "{followed} with {value:?}");
        }
    }
}

fn printed(text: &str, value: &str) -> String {
    let compiled = ShellText::compile(text, &names(), Dialect::Sh)
        .unwrap_or_else(|problems| panic!("{text}: {problems:#?}"))
        .template;
    let mut values = Values::new();
    values.set(Scope::Input, "x", Value::text(value));
    let mut variables = environment(&names(), &values, compiled.uses()).unwrap();
    // What a hint says to read in a program is there, whether a placeholder names it or not.
    variables.push(("WORKERCTL_INPUT_x".to_owned(), value.to_owned()));
    let dir = xtest::tempdir();
    let output = Command::new("/bin/sh")
        .args(["-c", &compiled.render(&values.lengths())])
        .current_dir(dir.path())
        .envs(variables)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text} with {value:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Codes of what is said of a text.
fn said(text: &str, names: &Names) -> Vec<&'static str> {
    match ShellText::compile(text, names, Dialect::Sh) {
        Ok(compiled) => compiled.notes.iter().map(|one| one.code).collect(),
        Err(problems) => problems.iter().map(|one| one.code).collect(),
    }
}

#[test]
fn built_in_names_between_single_quotes_are_text() {
    let texts = [
        ("jq -c '{date}'", &[][..]),
        ("python3 -c 'print(f\"{date}\")'", &[]),
        ("awk '{run}'", &[]),
        ("printf '%s' '{date}'", &["text_in_single_quotes"]),
        ("printf '%s' '\\{date}'", &[]),
    ];
    for (text, codes) in texts {
        assert_eq!(said(text, &names()), codes, "{text}");
    }
    assert_eq!(
        printed("printf '%s' '{date} \\{date} {x}'", "v"),
        "{date} {date} v"
    );
    let date = |text: &str| {
        let compiled = ShellText::compile(text, &names(), Dialect::Sh).unwrap();
        compiled.template.uses().len()
    };
    assert_eq!(date("printf '%s' \"{date}\" '{builtin.date}' {date}"), 3);
}

#[test]
fn a_word_in_braces_that_nothing_is_named_is_told() {
    let told = [
        "cp {folder} b",
        "echo \"GET /apps/{id}\"",
        "cat {input.folder}",
    ];
    for text in told {
        let text = format!("{text} {{x}}");
        assert!(said(&text, &names()).contains(&"undeclared_name"), "{text}");
    }
    let syntax = [
        "git log HEAD@{upstream} \"$A^{commit}\"",
        "curl -w '%{http_code}' \"%{http_code}\" a",
        "docker ps --format \"{{.Names}} {{Names}}\"",
        "awk '{print}'",
        "jq '{name}'",
        "cat {a,b} {1..3} {}",
        "exec {fd}>f",
        "echo ${HOME} '{word}'",
    ];
    for text in syntax {
        let text = format!("{text}; : {{x}}");
        assert!(
            !said(&text, &names()).contains(&"undeclared_name"),
            "{text}"
        );
    }
}

#[test]
fn inert_values_may_stand_where_programs_read_them() {
    let input = |kind, pattern: Option<&str>| {
        let mut name = Name::new(Scope::Input, "x", kind);
        name.pattern = pattern.map(str::to_owned);
        Names::new(vec![name], "worker", "skill").unwrap()
    };
    let passing = [
        input(Kind::Integer, None),
        input(Kind::Boolean, None),
        input(Kind::Enumeration, None),
        input(Kind::Text, Some("[A-Za-z0-9_.]+")),
        input(Kind::Text, Some("^(main|release/[0-9.]+)$")),
    ];
    let refused = [input(Kind::Text, None), input(Kind::Text, Some(".*"))];
    let texts = [
        "sed 's/a/{x}/' f",
        "awk -v v={x} '{print v}' f",
        "perl -pe 's/a/{x}/' f",
        "make V={x}",
        "sh -c 'echo {x}'",
        "psql -c \"select '{x}'\"",
    ];
    for text in texts {
        for names in &passing {
            assert_eq!(said(text, names), <[&str; 0]>::default(), "{text}");
        }
        for names in &refused {
            let problems = ShellText::compile(text, names, Dialect::Sh).unwrap_err();
            assert!(
                problems[0].hint.contains("`pattern` such as"),
                "{text}: {problems:?}"
            );
        }
    }
}
