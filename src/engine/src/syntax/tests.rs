use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

fn here() -> Syntax {
    Syntax::new(&std::env::vars().collect())
}

/// A shell that counts how often it is asked.
fn counting(directory: &Path) -> (String, PathBuf) {
    let (shell, count) = (directory.join("counting"), directory.join("count"));
    let text = format!(
        "#!/bin/sh\necho >> '{}'\nexec /bin/sh \"$@\"\n",
        count.display()
    );
    fs::write(&shell, text).unwrap();
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).unwrap();
    (shell.to_str().unwrap().to_owned(), count)
}

fn broken(answer: Answer) -> SyntaxFault {
    match answer {
        Answer::Broken(fault) => fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_good_text_costs_one_process_and_a_broken_one_each_time() {
    let directory = xtest::tempdir();
    let (shell, count) = counting(directory.path());
    let syntax = here();
    let asked = || fs::read_to_string(&count).unwrap().lines().count();
    for _ in 0..3 {
        assert_eq!(syntax.check(&shell, "echo a; exit 1"), Answer::Good);
    }
    assert_eq!(asked(), 1);
    assert_eq!(syntax.check(&shell, "echo b"), Answer::Good);
    assert_eq!(asked(), 2);
    for _ in 0..2 {
        broken(syntax.check(&shell, "for do x"));
    }
    assert_eq!(asked(), 4);
    assert_eq!(syntax.check("/bin/sh", "echo a; exit 1"), Answer::Good);
    assert_eq!(syntax.known().order.len(), 3);
}

#[test]
fn nothing_of_a_text_is_run() {
    let directory = xtest::tempdir();
    let mark = directory.path().join("mark");
    let text = format!("touch '{}'\nexit 3\n", mark.display());
    let long = format!("{text}# {}\n", "x".repeat(ARGUMENT_BYTES_MAX));
    for text in [text, long] {
        assert_eq!(here().check("/bin/sh", &text), Answer::Good);
    }
    assert!(!mark.exists());
}

#[test]
fn a_fault_has_the_line_that_the_shell_names() {
    let text = "echo one\necho two )\necho three\n";
    assert_eq!(broken(here().check("/bin/sh", text)).line, Some(2));
    let long = format!("# {}\n{text}", "x".repeat(ARGUMENT_BYTES_MAX));
    assert_eq!(broken(here().check("/bin/sh", &long)).line, Some(3));
    assert!(matches!(here().check("/bin/sh", "-x )"), Answer::Broken(_)));
    for (said, line, message) in [
        (
            "sh: 4: Syntax error: \")\" unexpected",
            Some(4),
            "syntax error: \")\" unexpected",
        ),
        (
            "bash: -c: line 12: unexpected EOF",
            Some(12),
            "unexpected EOF",
        ),
        ("\n/a b: 3x: what\n", None, "/a b: 3x: what"),
        ("", None, "the shell does not say why"),
    ] {
        let found = fault(said);
        assert_eq!((found.line, found.message.as_str()), (line, message));
    }
}

#[test]
fn a_shell_that_is_not_there_says_nothing_of_the_text() {
    assert_eq!(
        here().check("/no/such/shell", "for do"),
        Answer::ShellMissing
    );
    let ended = here().check("/bin/false", "echo");
    assert!(
        matches!(ended, Answer::Broken(SyntaxFault { line: None, .. })),
        "{ended:?}"
    );
}

#[test]
fn patterns_that_a_text_switches_on_are_read() {
    let text = "shopt -s extglob\nrm -f /nowhere/!(a|b)\n";
    let answer = here().check("bash", text);
    if answer == Answer::ShellMissing {
        xtest::skip("there is no bash");
        return;
    }
    assert_eq!(answer, Answer::Good);
    broken(here().check("bash", "if true; then\n"));
}

#[test]
fn lines_are_found_within_the_text() {
    let text = "a\nbb\n\n";
    let starts: Vec<usize> = [None, Some(0), Some(1), Some(2), Some(3), Some(99)]
        .map(|line| line_start(text, line))
        .to_vec();
    assert_eq!(starts, [0, 0, 0, 2, 2, 2]);
    assert_eq!(line_start("", Some(7)), 0);
}

#[test]
fn what_is_remembered_is_bounded() {
    let syntax = here();
    {
        let mut known = syntax.known();
        for number in 0..KNOWN_MAX {
            let one = digest("x", &number.to_string());
            known.digests.insert(one);
            known.order.push_back(one);
        }
    }
    assert_eq!(syntax.check("/bin/sh", "true"), Answer::Good);
    let known = syntax.known();
    assert_eq!(
        (known.order.len(), known.digests.len()),
        (KNOWN_MAX, KNOWN_MAX)
    );
    assert!(!known.digests.contains(&digest("x", "0")));
}

#[test]
fn an_unclosed_quote_is_found_where_it_is_opened() {
    let said = "unterminated quoted string";
    for (text, wanted) in [
        ("echo one\necho \"two\necho three\n", Some(14)),
        ("echo 'it''s'\necho 'x\n", Some(18)),
        ("# it's\necho \"a\\\"b\necho\n", Some(12)),
        ("echo a#'b\n", Some(7)),
        ("echo \"it's\" done\n", None),
    ] {
        assert_eq!(unclosed_quote(text, said), wanted, "{text}");
    }
    assert_eq!(unclosed_quote("echo \"", "syntax error near `done`"), None);
}
