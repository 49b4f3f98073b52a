//! Ignore and attribute files that a command leaves where the git library would wait for them, follow them out of the
//! sandbox or evaluate them for ever.

use std::os::unix::fs::symlink;
use std::time::Duration;

use serde_json::Value;

use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Obstacle;

/// Longest time that such a run may take, far below forever.
const ENOUGH: Duration = Duration::from_secs(100);

/// What a command leaves, and what the message names.
const REFUSED: [(&str, &str); 8] = [
    (
        "mkdir d; mkfifo d/.gitignore; echo x > d/g",
        "`d/.gitignore` is no regular file",
    ),
    (
        "mkfifo .gitattributes; echo x > g",
        "`.gitattributes` is no regular file",
    ),
    (
        "mkfifo p; mkdir d; ln -s ../p d/.gitignore; echo x > d/g",
        "`d/.gitignore` is a symbolic link",
    ),
    (
        "mkdir d; ln -s \"$HOME/key\" d/.gitignore; : > d/PIN-1; : > d/PIN-2",
        "`d/.gitignore` is a symbolic link",
    ),
    (
        "echo '*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*ab' >> .gitignore; touch $(printf %0100d 0 | tr 0 a)c",
        "`.gitignore` line 5 has a pattern with more than 4 wildcards",
    ),
    (
        "echo '*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*ab text eol=crlf' >> .gitattributes; touch $(printf %0100d 0 | tr 0 a)c",
        "`.gitattributes` line 1 has a pattern with more than 4 wildcards",
    ),
    (
        "yes '*a*a*a*ab' | head -n 1000 > .gitignore; touch $(printf %0200d 0 | tr 0 a)c",
        "`.gitignore` has too many patterns with several wildcards",
    ),
    (
        "yes long | head -n 300000 > .gitignore",
        "`.gitignore` is larger than 1 MiB",
    ),
];

/// The failure of a run, which must not take long.
fn failure(workspace: &Workspace, skill: &str) -> Value {
    let seconds = ENOUGH.as_secs().to_string();
    let inner = workspace.workerctl(&["run", skill, "--json"]);
    let mut command = workspace.program("timeout");
    command.args(["-k", "1", &seconds]).arg(inner.get_program());
    let done = command.args(inner.get_args()).output().unwrap();
    let detail: Value = serde_json::from_slice(&done.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(detail["summary"].is_object(), "{skill}: {detail} {said}");
    detail["summary"]["outcome"]["failure"].clone()
}

fn refused(failure: &Value, code: &str, named: &str) {
    assert_eq!(failure["code"], code, "{failure}");
    let message = failure["message"].as_str().unwrap();
    assert!(message.contains(named), "{message}");
}

fn skills(commands: &[&str]) -> String {
    let all = commands.iter().enumerate().map(|(number, command)| {
        let head = format!("  - id: skill-{number}\n    description: d\n    mutating: true\n");
        format!("{head}    run: |\n      {command}\n")
    });
    all.collect()
}

#[test]
fn rule_files_that_cannot_be_read_safely_fail_the_run() {
    let workspace = Workspace::with_skills(&skills(&REFUSED.map(|(command, _)| command)));
    workspace.run(&["check"]).expect_code(0);
    std::fs::write(workspace.home.join("key"), "PIN-1\n").unwrap();
    let before = workspace.git(&["rev-parse", "HEAD"]);
    for (number, (_, named)) in REFUSED.iter().enumerate() {
        let failure = failure(&workspace, &format!("skill-{number}"));
        refused(&failure, "rule_file", named);
    }
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
}

#[test]
fn an_engine_that_starts_again_does_not_wait_for_a_pipe_that_a_run_left() {
    let workspace = Workspace::new();
    let obstacle = Obstacle::configuration(&workspace);
    let stop = obstacle.text();
    workspace.furnish(&skills(&[&format!(
        "mkdir d; mkfifo d/.gitignore; echo x > d/g; {stop}"
    )]));
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["skill-0"]);
    // What is recorded first is read with git's configuration.
    workspace.wait_for_phase(&run, "verifying");
    daemon.kill();
    obstacle.remove();
    let _daemon = Daemon::start(&workspace);
    let (_, detail) = workspace.wait(&run);
    let failure = &detail["summary"]["outcome"]["failure"];
    refused(failure, "rule_file", "`d/.gitignore` is no regular file");
}

#[test]
fn a_link_that_the_base_has_as_a_rule_file_is_not_followed_and_fails_no_run() {
    let workspace = Workspace::with_skills(&skills(&[
        "echo x > a.log; echo y > a.txt",
        "rm rules; mkfifo rules; echo x > b.log",
        "ln -sf elsewhere .gitignore; echo x > c.log",
    ]));
    workspace.write("rules", "*.log\n");
    let _ = std::fs::remove_file(workspace.root.join(".gitignore"));
    symlink("rules", workspace.root.join(".gitignore")).unwrap();
    workspace.commit_all("a link, which git does not follow");
    for (number, new) in [(0, "a.log"), (1, "b.log")] {
        let failure = failure(&workspace, &format!("skill-{number}"));
        assert_eq!(failure, Value::Null, "{number}");
        workspace.git(&["cat-file", "-e", &format!("HEAD:{new}")]);
    }
    let failure = failure(&workspace, "skill-2");
    refused(&failure, "rule_file", "`.gitignore` is a symbolic link");
}

#[test]
fn patterns_that_a_user_committed_may_have_more_wildcards() {
    let workspace = Workspace::with_skills(&skills(&["echo x > a.log; echo y > a.txt"]));
    workspace.write(".gitignore", "*a*b*c*d*e*f*.tmp\n*.log\n");
    workspace.commit_all("rules");
    assert_eq!(failure(&workspace, "skill-0"), Value::Null);
    assert_eq!(workspace.git(&["ls-tree", "HEAD", "a.log"]), "");
    workspace.git(&["cat-file", "-e", "HEAD:a.txt"]);
    workspace.write(".gitignore", "ok\n*a*b*c*d*e*f*g*h*i\n");
    workspace.commit_all("more rules");
    let named = "`.gitignore` line 2 has a pattern with more than 8 wildcards";
    refused(&failure(&workspace, "skill-0"), "rule_file", named);
}

#[test]
fn settings_of_the_runs_repository_that_a_check_changed_are_not_read() {
    let workspace = Workspace::with_skills(
        r#"
  - id: skill-0
    description: d
    mutating: true
    run: "echo x > out.log; echo y > y.txt"
    interface: {outputs: [{name: r, type: file, destination: "out.log"}]}
    verification: [{command: "mkfifo .git/pipe && git config core.excludesFile $PWD/.git/pipe"}]
"#,
    );
    workspace.write(".gitignore", "*.log\n");
    workspace.commit_all("rules");
    assert_eq!(failure(&workspace, "skill-0"), Value::Null);
    assert_eq!(workspace.read("out.log").unwrap(), "x\n");
}

#[test]
fn the_repository_of_a_submodule_leads_the_engine_to_no_other_file() {
    let begin = "git init -q sub && git -C sub commit -q --allow-empty -m one && git add sub 2> \"$TMPDIR/said\"";
    let cases = [
        ("mkfifo sub/.gitignore", "no regular file"),
        ("ln -s ../../secret sub/.gitignore", "no regular file"),
        ("mkfifo sub/.gitmodules", "no regular file"),
        (
            "mkfifo p; git -C sub config include.path \"$PWD/p\"",
            "[include",
        ),
        (
            "mkfifo p; git -C sub config core.excludesFile \"$PWD/p\"",
            "excludesfile",
        ),
        (
            "echo '*a*a*a*a*a*a*a*ab' > sub/.git/info/exclude",
            "wildcards",
        ),
    ];
    let commands = cases.map(|(command, _)| format!("{begin}; {command}"));
    let workspace = Workspace::with_skills(&skills(&commands.each_ref().map(String::as_str)));
    for (number, (_, named)) in cases.iter().enumerate() {
        let failure = failure(&workspace, &format!("skill-{number}"));
        refused(&failure, "submodule", named);
    }
}

/// A file without content can be as long as its author likes.
#[test]
fn files_of_git_that_are_read_at_once_are_bounded() {
    let files = [
        "HEAD",
        "packed-refs",
        "refs/heads/x",
        "info/attributes",
        "index",
    ];
    let commands = files.map(|file| format!("echo x > x; truncate -s 1T .git/{file}"));
    let workspace = Workspace::with_skills(&skills(&commands.each_ref().map(String::as_str)));
    for (number, file) in files.iter().enumerate() {
        let named = format!("`.git/{file}` is too large");
        let failure = failure(&workspace, &format!("skill-{number}"));
        refused(&failure, "repository_damaged", &named);
    }
}
