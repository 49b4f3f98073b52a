//! Lists of allowed tools.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::tools::Allowed;
use crate::tools::command::simple_command;

fn parse(items: &[&str]) -> Allowed {
    let items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
    Allowed::parse(&items).unwrap()
}

fn call(allowed: &Allowed, tool: &str, arguments: &Value) -> Result<(), String> {
    allowed.allows_call(tool, arguments, Path::new("/w"), Path::new("/w/src"))
}

#[track_caller]
fn commands(items: &[&str], rows: &[&str], expected: bool) {
    let allowed = parse(items);
    for row in rows {
        let answer = call(&allowed, "bash", &json!({"command": row}));
        assert_eq!(
            answer.is_ok(),
            expected,
            "{row:?} under {items:?}: {answer:?}"
        );
        if let Err(text) = answer {
            assert!(text.contains("allowed: `"), "{text}");
        }
    }
}

#[test]
fn tools_are_offered_by_name() {
    let allowed = parse(&[
        "Bash(git add:*)",
        " Read ",
        "edit_file",
        "WebFetch",
        "WebFetch(domain:example.com)",
        "mcp__docs__search",
        "mcp__mail",
        "mcp__wiki__*",
    ]);
    for (name, expected) in [
        ("bash", true),
        ("read_file", true),
        ("edit_file", true),
        ("write_file", false),
        ("Read", false),
        ("WebFetch", false),
        ("mcp__docs__search", true),
        ("mcp__docs__search_all", false),
        ("mcp__docs__delete", false),
        ("mcp__mail__send", true),
        ("mcp__mail__", false),
        ("mcp__mail", false),
        ("mcp__mails__send", false),
        ("mcp__wiki__read", true),
        ("mcp__wikis__read", false),
    ] {
        assert_eq!(allowed.allows_tool(name), expected, "{name}");
        let arguments = json!({"command": "git add x"});
        assert_eq!(call(&allowed, name, &arguments).is_ok(), expected, "{name}");
    }
    let refusal = call(&allowed, "write_file", &json!({})).unwrap_err();
    assert!(
        refusal.starts_with("`write_file` is not allowed here: allowed: `Bash(git add:*)`, `Read`"),
        "{refusal}"
    );
}

#[test]
fn an_empty_list_allows_nothing() {
    for allowed in [parse(&[]), parse(&["WebFetch"]), Allowed::default()] {
        for name in ["read_file", "bash", "mcp__a__b", "WebFetch", ""] {
            assert!(!allowed.allows_tool(name));
            let refusal = call(&allowed, name, &json!({})).unwrap_err();
            assert_eq!(refusal, format!("`{name}` is not allowed here: no tool is"));
        }
    }
}

#[test]
fn items_that_cannot_be_understood_are_named() {
    for item in [
        "",
        "*",
        "Bash(git",
        "Bash(git:*) Read",
        "Bash git",
        "Bash)",
        "Bash()",
        "Bash(:*)",
        "Bash(git*)",
        "Bash(git * status)",
        "Bash(* --version)",
        "Bash(git log | head:*)",
        "Bash(git log; x)",
        "Bash($X:*)",
        "Bash(A=b git:*)",
        "Bash(~/x:*)",
        "Bash('git)",
        "Read()",
        "Read(../x)",
        "Read(//etc/**)",
        "Read(~/x)",
        "Read([a)",
        "mcp__",
        "mcp____x",
        "mcp__a__",
        "mcp__a__get_*",
        "mcp__*__x",
        "mcp__a__b(c)",
        "Read,Write",
        "!Bash",
    ] {
        let parsed = Allowed::parse(&["Read".to_owned(), item.to_owned()]);
        let problem = parsed.err().unwrap_or_else(|| panic!("{item:?}"));
        assert_eq!(problem.item, item);
        assert!(
            problem.to_string().contains(&format!("`{item}`")),
            "{problem}"
        );
    }
}

#[test]
fn commands_that_surely_begin_so_are_allowed() {
    let rows = [
        "git",
        "git status",
        "  git\tstatus ",
        "'git' status",
        "git commit -m 'fix: a; b && c | d > e $(f) `g` \\ !'",
        "git commit -m \"feat(x)!: don't; a & b\"",
        "git commit -m ''",
        "git add Ü 'Übersicht.md'",
        "git diff HEAD~1 HEAD^ -- src/*.rs",
        "git log --format=%H a..b",
        "git push origin +main:refs/heads/main",
        // The limit of rules of words.
        "git -c core.pager=x log",
    ];
    // Outside of quotes only ASCII is sure.
    let (unsure, sure): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.contains(" Ü "));
    commands(&["Bash(git:*)"], &sure, true);
    commands(&["Bash(git *)"], &sure, true);
    commands(&["Shell(git:*)"], &sure, true);
    commands(&["Bash(git:*)"], &unsure, false);
    commands(&["Bash(git:*)", "Bash"], &["git status; rm x"], true);
    commands(&["Bash(*)"], &["git status; rm x"], true);
}

#[test]
fn commands_that_may_do_more_are_refused() {
    let rows = [
        "",
        " ",
        "gitx",
        "gitx status",
        "./git status",
        "/usr/bin/git status",
        "GIT status",
        "g?t status",
        "git; rm x",
        "git status; rm x",
        "git status;rm x",
        "git status && x",
        "git status || x",
        "git status & x",
        "git status &",
        "git status | x",
        "git status |& x",
        "\"git\" status | x",
        "git 'a' ; x",
        "git 'a'';' b; x",
        "git status > f",
        "git status >> f",
        "git status 2>&1",
        "git status < f",
        "git status <<< x",
        "git diff <(x)",
        "git $(x)",
        "git `x`",
        "git \"$(x)\"",
        "git \"`x`\"",
        "git $HOME",
        "git \"${x}\"",
        "git $'a\\nb'",
        "$(x)",
        "`x`",
        "git\nx",
        "git status\n",
        "git status\r\nx",
        "git 'a\nb'",
        "git \\\nstatus",
        "git \\; x",
        "git \"a\\\"; x\"",
        "git 'status",
        "git \"status",
        "git status '",
        "GIT_SSH_COMMAND=x git fetch",
        "A= git status",
        "'A=b' git status",
        "{ git status; }",
        "git {a,b}",
        "(git status)",
        "! git status",
        "if git status",
        "time git status",
        "exec git status",
        "sh -c 'git status'",
        "git status # x",
        "git stash@{0}",
        "git\u{a0}status",
        "git\u{2028}x",
        "git \0",
        "git status \u{1b}[0m",
        "'git status'",
        "'git 'status",
        "\"\" git status",
    ];
    commands(&["Bash(git:*)"], &rows, false);
    commands(&["Bash(git *)"], &rows, false);
    commands(&["Bash(git status)", "Bash(git status:*)"], &rows, false);
}

#[test]
fn words_are_compared_as_a_whole() {
    let exact = ["Bash(git status)"];
    commands(&exact, &["git status", "git  \"status\""], true);
    commands(
        &exact,
        &["git", "git status -s", "git statusx", "git stat*"],
        false,
    );
    let npm = ["Bash(npm run test:*)", "Bash(git add *)"];
    commands(
        &npm,
        &["npm run test", "npm run test -- x", "git add", "git add ."],
        true,
    );
    commands(
        &npm,
        &[
            "npm run test:unit",
            "npm run",
            "npm run build",
            "git commit",
        ],
        false,
    );

    let allowed = parse(&["Bash(git:*)"]);
    for (arguments, problem) in [
        (json!({}), "`command` is missing"),
        (json!({"command": 1}), "`command` has to be a string"),
        (json!({"command": "git", "run": "x"}), "`run` is unknown"),
        (
            json!({"command": "git a;b"}),
            "it has `;` outside of quotes; allowed: `Bash(git:*)`",
        ),
        (
            json!({"command": "git \"$a\""}),
            "it has `$` outside of single quotes",
        ),
        (
            json!({"command": "ls"}),
            "not among those that are allowed; allowed: `Bash(git:*)`",
        ),
    ] {
        let refusal = call(&allowed, "bash", &arguments).unwrap_err();
        assert!(refusal.contains(problem), "{refusal}");
    }
}

/// Items, a tool, paths that they allow it and paths that they do not.
type PathRow = (
    &'static [&'static str],
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

#[test]
fn paths_are_compared_from_the_root() {
    // The working directory is `src`.
    let rows: [PathRow; 9] = [
        (
            &["Read(src/**)"],
            "read_file",
            &[
                "a",
                "a/b",
                "./a",
                "/w/src/a",
                "../src/a",
                "../docs/../src/.x",
            ],
            &[
                "../a",
                "/w/a",
                "../srcx/a",
                "/etc/src/a",
                "../../src/a",
                "a/../../a",
                "",
            ],
        ),
        (
            &["Edit(/docs/**)"],
            "edit_file",
            &["../docs/a", "/w/docs/a/b"],
            &["docs/a", "../a"],
        ),
        (
            &["Write(src/*.rs)"],
            "write_file",
            &["a.rs"],
            &["b/a.rs", "a.txt", "../a.rs"],
        ),
        (
            &["Write(src/)", "Write(README.md)"],
            "write_file",
            &["a/b", "../README.md"],
            &["../README", "../x"],
        ),
        (
            &["Grep(src/**)"],
            "grep",
            &["", ".", "a", "../src"],
            &["..", "../docs"],
        ),
        (&["Grep(src/*)"], "grep", &[], &["", "a", "a.rs"]),
        (
            &["Glob(src/a)", "Glob(**/b/**)"],
            "glob",
            &["a", "b", "../x/b/c"],
            &["", "a/c"],
        ),
        (&["LS(src/*)"], "list_directory", &["a"], &["", "a/b"]),
        (&["Grep(**)"], "grep", &["", "..", "/w"], &["../..", "/"]),
    ];
    for (items, tool, allowed, refused) in rows {
        let list = parse(items);
        assert!(list.allows_tool(tool));
        let arguments = |path: &str| match tool {
            "write_file" => json!({"path": path, "content": ""}),
            "edit_file" => json!({"path": path, "old_text": "a", "new_text": "b"}),
            "grep" | "glob" => json!({"path": path, "pattern": "x"}),
            _ => json!({"path": path}),
        };
        for path in allowed {
            assert_eq!(
                call(&list, tool, &arguments(path)),
                Ok(()),
                "{items:?} {path}"
            );
        }
        for path in refused {
            let refusal = call(&list, tool, &arguments(path)).err();
            let refusal = refusal.unwrap_or_else(|| panic!("{items:?} allow {path}"));
            assert!(refusal.contains("allowed: `"), "{refusal}");
        }
    }
    let list = parse(&["Read(src/**)", "Read"]);
    assert_eq!(call(&list, "read_file", &json!({"path": "/w/x"})), Ok(()));
    let list = parse(&["Grep(src/**)"]);
    assert_eq!(call(&list, "grep", &json!({"pattern": "x"})), Ok(()));
}

/// What is taken for one simple command is one, with the same words, for the shells that are here.
#[test]
fn shells_read_the_same_words() {
    const PIECES: [&str; 40] = [
        "a", "b", "-", "=", " ", " ", "\t", "'", "'", "'", "\"", "\"", "\"", "''", "\"\"", "' '",
        "\" \"", "$", "$a", "$(", "`", "\\", ";", "&", "|", ">", "<", "(", ")", "{", "}", "#", "!",
        "%", "^", "@", ",", ":", "\n", "ü",
    ];
    let directory = xtest::tempdir();
    let mut random = fastrand::Rng::with_seed(7);
    let mut accepted = 0;
    while accepted < 150 {
        let pieces = (0..random.usize(1..9)).map(|_| PIECES[random.usize(..PIECES.len())]);
        let line = format!("printf '<%s>' x {}", pieces.collect::<String>());
        let Ok(words) = simple_command(&line) else {
            continue;
        };
        accepted += 1;
        let expected = format!("<{}>", words[2..].join("><"));
        for shell in ["sh", "bash"] {
            let mut command = Command::new(shell);
            command.arg("-c").arg(&line).current_dir(directory.path());
            match command.output() {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                output => {
                    let output = output.unwrap();
                    let printed = String::from_utf8(output.stdout).unwrap();
                    assert_eq!(printed, expected, "{shell} reads {line:?}");
                    assert!(output.stderr.is_empty(), "{shell} complains of {line:?}");
                }
            }
        }
    }
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
}
