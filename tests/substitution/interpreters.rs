//! Commands that read an argument again: each row is refused, and that it must be is shown by what the same text does
//! with an ordinary variable in the place of the placeholder.

use std::path::Path;
use std::process::{Command, Stdio};

use workerctl::template::{Dialect, ShellText};

use crate::names;

/// The program that has to be there, the text, and a value that makes a file where the text is run.
const ROWS: &[(&str, &str, &str)] = &[
    ("prlimit", "prlimit --nofile=64 sh -c {x}", "touch CANARY"),
    ("capsh", "capsh -- -c {x}", "touch CANARY"),
    ("ssh-agent", "ssh-agent sh -c {x}", "touch CANARY"),
    ("faketime", "faketime '1 day ago' sh -c {x}", "touch CANARY"),
    ("env", "env -i PATH=\"$PATH\" sh -c {x}", "touch CANARY"),
    ("timeout", "timeout 9 sh -c {x}", "touch CANARY"),
    ("setsid", "setsid -w sh -c {x}", "touch CANARY"),
    ("xargs", "echo {x} | xargs -I@ sh -c @", "touch CANARY"),
    ("sh", "S=sh; $S -c {x}", "touch CANARY"),
    ("sh", "sh <<E\n{x}\nE", "touch CANARY"),
    ("sh", "sh -c \"$(echo {x})\"", "touch CANARY"),
    ("bash", "eval {x}", "touch CANARY"),
    ("bash", "trap {x} EXIT", "touch CANARY"),
    ("bash", "declare -i n={x}", "a[$(touch CANARY)]"),
    ("bash", "declare -n r={x}; : \"$r\"", "a[$(touch CANARY)]"),
    ("bash", "declare -i n; n={x}", "a[$(touch CANARY)]"),
    (
        "bash",
        "f() { local -i n; n+={x}; }; f",
        "a[$(touch CANARY)]",
    ),
    ("bash", "declare -i n; export n={x}", "a[$(touch CANARY)]"),
    ("bash", "source <(echo {x})", "touch CANARY"),
    ("bash", "bash <(echo {x})", "touch CANARY"),
    ("bash", "bash < <(echo {x})", "touch CANARY"),
    (
        "bash",
        "echo a > f; mapfile -C {x} -c 1 < f",
        "touch CANARY;:",
    ),
    ("bash", "compgen -W {x}", "$(touch CANARY)"),
    (
        "git",
        "git init -q .; git -c alias.z={x} z",
        "!touch CANARY",
    ),
    (
        "git",
        "printf '#!/bin/sh\ntouch CANARY' > f; chmod +x f; git init -q .; git add f; AUTHOR; git commit -qm 1; git commit -qm 2 --allow-empty; git commit -qm 3 --allow-empty; git bisect start HEAD HEAD~2; git bisect run {x}",
        "./f",
    ),
    (
        "git",
        "git init -q .; echo a > f; git add f; git grep -O{x} a",
        "touch CANARY;:",
    ),
    (
        "git",
        "AUTHOR; git init -q .; git commit -qm 1 --allow-empty; git commit -qm 2 --allow-empty; git rebase -q -x {x} HEAD~1",
        "touch CANARY",
    ),
    (
        "git",
        "AUTHOR; git init -q sub; git -C sub commit -qm 1 --allow-empty; git init -q o; cd o; git -c protocol.file.allow=always submodule add -q ../sub; git submodule foreach -q {x}",
        "touch ../../CANARY",
    ),
    ("split", "echo a > f; split --filter={x} f", "touch CANARY"),
    ("sqlite3", "sqlite3 :memory: <<E\n{x}\nE", ".output CANARY"),
    ("sqlite3", "sqlite3 :memory: {x}", ".output CANARY"),
    ("gnuplot", "gnuplot -e {x}", "system('touch CANARY')"),
    ("ed", "touch f; ed -s f <<E\n{x}\nE", "!touch CANARY"),
    (
        "awk",
        "awk {x} /dev/null",
        "BEGIN{system(\"touch CANARY\")}",
    ),
    ("sed", "echo a | sed {x}", "w CANARY"),
    ("perl", "perl -e {x}", "open F, '>CANARY'"),
    ("python3", "python3 -c {x}", "open('CANARY', 'w')"),
    (
        "tar",
        "touch f; tar -cf a --checkpoint=1 --checkpoint-action={x} f",
        "exec=touch CANARY",
    ),
    (
        "find",
        "find . -maxdepth 0 -exec sh -c {x} \\;",
        "touch CANARY",
    ),
];

/// Whether a program is installed.
pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Whom git takes for the author.
const AUTHOR: &str =
    "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b";

/// Runs the text with the value in a variable, where the placeholder stands.
fn leaves_canary(text: &str, value: &str) -> bool {
    let dir = xtest::tempdir();
    let text = text.replace("{x}", "\"$VALUE\"").replace("AUTHOR", AUTHOR);
    let text = text.replace("\n\"$VALUE\"\n", "\n$VALUE\n");
    Command::new("bash")
        .args(["-c", &text])
        .current_dir(dir.path())
        .env("VALUE", value)
        .env("HOME", dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    Path::new(dir.path()).join("CANARY").exists()
}

#[test]
fn what_would_run_a_value_is_refused() {
    for (program, text, value) in ROWS {
        let compiled = ShellText::compile(text, &names(), Dialect::Bash);
        assert!(compiled.is_err(), "not refused: {text}");
        if !is_there(program) || !is_there("bash") {
            println!("skipped what `{program}` does: it is not installed");
            continue;
        }
        assert!(leaves_canary(text, value), "harmless: {text}");
    }
}
