//! What commands see of where, when and for which time they run; who their commits are by.

use std::path::Path;
use std::process::Command;

use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;

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
  - {id: commits, description: d, mutating: true, run: "echo x >> tracked.txt"}
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
fn variables_that_are_no_secrets_reach_the_skill_unmasked() {
    let workspace = Workspace::with_skills(
        r#"
  - id: plain
    description: d
    env:
      - {name: CI, value: "1"}
      - {name: DB_HOST, value: localhost}
      - {name: EDITOR_OF_TEST, plain: true}
    run: 'echo "$CI $DB_HOST $EDITOR_OF_TEST"'
  - {id: absent, description: d, env: [{name: NOT_SET_HERE, plain: true}], run: "true"}
"#,
    );
    let mut command = workspace.workerctl(&["run", "plain", "--json"]);
    command.env("EDITOR_OF_TEST", "a plain value");
    let run = workspace.start(&mut command).end().expect_code(0).value();
    let run = run["summary"]["run"].as_str().unwrap().to_owned();
    let logs = workspace.run(&["logs", &run]).stdout;
    assert!(logs.contains("1 localhost a plain value"), "{logs}");
    let refused = workspace.run(&["run", "absent", "--json"]).expect_code(6);
    assert_eq!(refused.refusal(), "variable_missing");
    let place = "`env` is at workers/w/worker.yaml:12:";
    assert!(refused.stderr.contains(place), "{refused:?}");
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

/// A file with a person in it.
fn person(workspace: &Workspace, path: &str, name: &str) -> String {
    let file = workspace.home.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let text = format!("[user]\n\tname = {name}\n\temail = {name}@example.com\n");
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

fn with(mut command: Command, variables: &[(&str, &str)]) -> Command {
    command
        .env_remove("GIT_CONFIG_GLOBAL")
        .env_remove("GIT_CONFIG_NOSYSTEM")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .envs(variables.iter().copied());
    command
}

/// Asserts that a run's commit is by whom git itself would commit as, if by anybody.
fn expect_as_git(workspace: &Workspace, variables: &[(&str, &str)], expected: Option<&str>) {
    let mut git = with(workspace.program("git"), variables);
    let said = git.args(["config", "user.name"]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let by_git = Some(said.trim()).filter(|name| !name.is_empty());
    assert_eq!(by_git, expected, "{variables:?}: git itself");
    let mut command = with(workspace.workerctl(&["run", "commits"]), variables);
    let done = workspace.start(&mut command).end();
    if let Some(name) = expected {
        assert_eq!(done.code, 0, "{variables:?}: {done:?}");
        let author = workspace.git(&["log", "-1", "--format=%an <%ae>"]);
        assert_eq!(author.trim(), format!("{name} <{name}@example.com>"));
    } else {
        assert_eq!(done.code, 6, "{variables:?}: {done:?}");
        assert!(done.stderr.contains("user.name"), "{done:?}");
    }
}

#[test]
fn the_author_is_whom_git_would_find() {
    let workspace = workspace();
    person(&workspace, ".gitconfig", "home");
    let other = person(&workspace, "other", "other");
    let system = person(&workspace, "system", "system");
    let nobody = "/dev/null";
    let case = |variables: &[(&str, &str)], expected: Option<&str>| {
        expect_as_git(&workspace, variables, expected);
    };
    case(&[], Some("home"));
    case(&[("GIT_CONFIG_GLOBAL", &other)], Some("other"));
    case(&[("GIT_CONFIG_GLOBAL", nobody)], None);
    case(&[("GIT_CONFIG_GLOBAL", "")], None);
    case(&[("GIT_CONFIG_SYSTEM", &system)], Some("home"));
    let both = [
        ("GIT_CONFIG_GLOBAL", nobody),
        ("GIT_CONFIG_SYSTEM", &*system),
    ];
    case(&both, Some("system"));
    let none = [both[0], both[1], ("GIT_CONFIG_NOSYSTEM", "1")];
    case(&none, None);
    // The other file of a person is replaced as well.
    person(&workspace, ".config/git/config", "xdg");
    case(&[("GIT_CONFIG_GLOBAL", nobody)], None);
    std::fs::remove_file(workspace.home.join(".gitconfig")).unwrap();
    case(&[], Some("xdg"));
    // Variables that would lead to another index or repository are not for us.
    let astray = [
        ("GIT_CONFIG_GLOBAL", &*other),
        ("GIT_INDEX_FILE", "/nonexistent/index"),
        ("GIT_OBJECT_DIRECTORY", "/nonexistent/objects"),
    ];
    case(&astray, Some("other"));
    // What a condition includes counts, as git has it.
    let deep = person(&workspace, "deep", "deep");
    let root = workspace.root.display();
    let text = format!("[includeIf \"gitdir:{root}/\"]\n\tpath = {deep}\n");
    std::fs::write(workspace.home.join("conditional"), text).unwrap();
    let conditional = workspace.home.join("conditional").display().to_string();
    assert!(Path::new(&conditional).exists());
    case(&[("GIT_CONFIG_GLOBAL", &conditional)], Some("deep"));
    workspace.git(&["config", "user.name", "local"]);
    workspace.git(&["config", "user.email", "local@example.com"]);
    case(&[("GIT_CONFIG_GLOBAL", &other)], Some("local"));
}

#[test]
fn workerctl_within_a_run_speaks_to_the_checkouts_engine_and_never_waits_for_itself() {
    let program = env!("CARGO_BIN_EXE_workerctl");
    let skills = format!(
        "  - id: inner\n    description: d\n    mutating: true\n    workerctl: true\n    run: '{program} runs --json > seen.json; {program} run other'\n  \
         - {{id: other, description: d, mutating: true, run: 'echo x > x.txt'}}\n"
    );
    let workspace = Workspace::with_skills(&skills);
    let daemon = Daemon::start(&workspace);
    let done = workspace.run(&["run", "inner", "--json"]).expect_code(1);
    let detail = done.value();
    let failure = detail["summary"]["outcome"].to_string();
    assert!(failure.contains("exit code 8"), "{failure}");
    let run = detail["summary"]["run"].as_str().unwrap();
    let said = workspace.run(&["logs", run]).stdout;
    assert!(said.contains("whose command waits for"), "{said}");
    let kept = workspace.run(&["diff", run]).expect_code(0).stdout;
    assert!(
        kept.contains(&format!("\"run\":\"{run}\"")) || kept.contains(run),
        "{kept}"
    );
    workspace.wait_until_idle();
    // What was asked for within it is not lost.
    assert_eq!(workspace.read("x.txt").unwrap(), "x\n");
    daemon.stop();
}
