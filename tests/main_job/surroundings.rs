//! What commands see of where, when and for which time they run.

use crate::workspace::Workspace;

const SKILLS: &str = r#"
  - id: argv
    description: d
    retry: {max_attempts: 3, backoff: 10ms}
    run: [sh, -c, 'echo "$1 $2 $WORKERCTL_ATTEMPT" >> "$HOME/seen"; test "$1" = 3', sh, "{attempt}", "a{attempt}-{attempt}"]
  - id: script
    description: d
    retry: {max_attempts: 2, backoff: 10ms}
    run: {script: attempts.sh, interpreter: sh, args: [first, "n{attempt}"]}
  - id: shell
    description: d
    retry: {max_attempts: 2, backoff: 10ms}
    run: 'echo {attempt} >> "$HOME/seen"; test {attempt} = 2'
"#;

fn workspace() -> Workspace {
    let workspace = Workspace::with_skills(SKILLS);
    let script = "echo \"$1 $2\" >> \"$HOME/seen\"\ntest \"$2\" = n2\n";
    workspace.write("workers/w/attempts.sh", script);
    workspace.commit_all("script");
    workspace
}

#[test]
fn each_attempt_is_told_its_own_number() {
    for (skill, seen) in [
        ("argv", "1 a1-1 1\n2 a2-2 2\n3 a3-3 3\n"),
        ("script", "first n1\nfirst n2\n"),
        ("shell", "1\n2\n"),
    ] {
        let workspace = workspace();
        workspace.run(&["run", skill]).expect_code(0);
        let found = std::fs::read_to_string(workspace.home.join("seen")).unwrap();
        assert_eq!(found, seen, "{skill}");
    }
}

#[test]
fn what_serves_all_attempts_does_not_name_one() {
    let workspace = Workspace::with_skills(
        r#"
  - id: named
    description: d
    interface: {outputs: [{name: r, type: markdown, destination: "r-{attempt}.md"}]}
    run: "echo x"
"#,
    );
    let done = workspace.run(&["check", "--json"]).expect_code(4);
    assert!(done.stdout.contains("attempt-in-text"), "{done:?}");
}
