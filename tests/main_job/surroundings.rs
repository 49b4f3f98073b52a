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
  - id: today
    description: d
    run: 'echo "$(date +%F) {date} $TZ"'
    verification: [{command: 'test "$(date +%F)" = {date}'}]
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

#[test]
fn the_zone_of_a_command_is_that_of_its_date() {
    // Of these two zones at least one has another date than the machine, at any time of the day.
    for zone in ["Pacific/Kiritimati", "Pacific/Pago_Pago"] {
        let workspace = workspace();
        workspace.write("workerctl.yaml", &format!("timezone: {zone}\n"));
        let mut command = workspace.workerctl(&["run", "today", "--json"]);
        let done = workspace.start(command.env("TZ", "UTC")).end();
        let detail = done.expect_code(0).value();
        let log = workspace.run(&["logs", "--stream", "stdout"]).stdout;
        assert!(log.contains(zone), "{log}: {detail}");
    }
}
