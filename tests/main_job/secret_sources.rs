//! Secrets that a command prints or a file holds: asked when the run needs them, and said why where they cannot be had.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::workspace::daemon::Daemon;
use crate::workspace::observed::{files_below, processes_with};
use crate::workspace::{Workspace, eventually};

const PRINTED: &str = "Kanarie-4-0d9c6b5e3f";
const IN_FILE: &str = "Kanarie-5-82f7a1c4e6";

const SKILLS: &str = r#"
  - id: paying
    description: d
    idempotent: true
    retry: {max_attempts: 2, backoff: 1ms}
    env:
      - {name: PRINTED, secret: {command: [/bin/sh, AT/show, stripe key]}}
      - {name: IN_FILE, secret: {file: ~/kept}, as: file}
    run: |
      echo "$PRINTED $(cat "$IN_FILE")" >> "$HOME/seen"; stat -c '%a %n' "$IN_FILE" >> "$HOME/modes"
      echo "printed $PRINTED"; cat "$IN_FILE" >&2
      test "$WORKERCTL_ATTEMPT" = 2
    verification: [{command: 'test "${#PRINTED}" = LENGTH', description: the same}]
"#;

/// Prints what `printed` in the home directory holds, and writes down how it was asked.
const SHOW: &str = r#"cd "$(dirname "$0")"; { echo "$# $1"; cat; env; } >> asked; cat printed"#;

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    let home = workspace.home.to_str().unwrap();
    let skills = SKILLS.replace("AT/", &format!("{home}/"));
    workspace.furnish(&skills.replace("LENGTH", &PRINTED.len().to_string()));
    workspace.lift_sandbox("w");
    fs::write(workspace.home.join("show"), SHOW).unwrap();
    fs::write(workspace.home.join("printed"), format!("{PRINTED}\n")).unwrap();
    let kept = workspace.home.join("kept");
    fs::write(&kept, format!("{IN_FILE}\n")).unwrap();
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o600)).unwrap();
    workspace
}

fn lines(workspace: &Workspace, file: &str) -> Vec<String> {
    let text = fs::read_to_string(workspace.home.join(file)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn what_a_command_prints_and_a_file_holds_reaches_the_skill_alone() {
    let workspace = workspace();
    let rendered = workspace.run(&["render", "paying"]).expect_code(0);
    assert!(rendered.stdout.contains("PRINTED  secret"), "{rendered:?}");
    assert!(
        lines(&workspace, "asked").is_empty(),
        "nobody needed it yet"
    );

    let shown = workspace.run(&["run", "paying", "--json"]).expect_code(0);
    let both = format!("{PRINTED} {IN_FILE}");
    assert_eq!(lines(&workspace, "seen"), [both.clone(), both]);
    // Once for both attempts and the check; one argument, no input, and of the environment the base alone.
    let asked = lines(&workspace, "asked");
    let (first, environment) = asked.split_first().unwrap();
    assert_eq!(first, "1 stripe key");
    assert!(
        !environment.iter().any(|line| line.starts_with("1 ")),
        "{asked:?}"
    );
    assert!(
        environment.iter().any(|line| line.starts_with("HOME=")),
        "{asked:?}"
    );
    for (mode, path) in lines(&workspace, "modes")
        .iter()
        .map(|line| line.split_once(' ').unwrap())
    {
        assert_eq!(mode, "600");
        assert!(!fs::exists(path).unwrap(), "`{path}` is left");
    }
    let logs = workspace.run(&["logs", "latest"]).expect_code(0);
    let said = logs.stdout + &logs.stderr;
    assert!(said.contains("printed ***"), "{said}");
    for secret in [PRINTED, IN_FILE] {
        assert!(!said.contains(secret) && !shown.stdout.contains(secret));
        for directory in [workspace.root.as_path(), workspace.state()] {
            for path in files_below(directory, &|_| true) {
                let found = xtest::contains(&fs::read(&path).unwrap(), secret.as_bytes());
                assert!(!found, "{}", path.display());
            }
        }
    }
}

/// What a command does, and what is said of it then; the last never ends.
const NO_SECRETS: [(&str, &str); 12] = [
    (
        "echo no-such-entry >&2; exit 3",
        "ended with exit code 3: no-such-entry",
    ),
    (
        "printf '\\033[1mlocked\\n\\n' >&2; exit 1",
        "exit code 1: \\x1b[1mlocked",
    ),
    (
        "echo hunter2-hunter2; echo it is hunter2-hunter2 >&2; exit 1",
        "exit code 1: it is ***",
    ),
    ("kill -KILL $$", "was ended by signal 9"),
    ("exit 0", "printed nothing"),
    ("echo", "printed nothing"),
    (
        "head -c 20000 /dev/zero | tr '\\0' x",
        "printed more than 16 KiB",
    ),
    ("yes", "printed more than 16 KiB"),
    ("printf 'a\\0bcdefg'", "printed a NUL"),
    ("printf '\\377\\376abcdef'", "printed what is no text"),
    ("echo abc", "fewer than 6"),
    ("exec sleep 1000", "did not end within 300ms"),
];

/// A skill whose secret is kept there.
fn skill(id: &str, secret: &str) -> String {
    format!(
        "\n  - {{id: {id}, description: d, env: [{{name: KEY, secret: {secret}}}], run: 'touch \"$HOME/started\"'}}"
    )
}

#[test]
fn a_command_that_prints_no_secret_fails_the_run_with_place_reason_and_remedy() {
    let workspace = Workspace::new();
    let mut skills = skill("absent", "{command: [no-such-program]}");
    let mut expected = vec![("absent".to_owned(), "was not started: ")];
    for (at, (script, why)) in NO_SECRETS.iter().enumerate() {
        let path = workspace.home.join(format!("c{at}"));
        fs::write(&path, script).unwrap();
        let last = at + 1 == NO_SECRETS.len();
        let timeout = if last { "300ms" } else { "60s" };
        let secret = format!(
            "{{command: [/bin/sh, {}], timeout: {timeout}}}",
            path.display()
        );
        skills += &skill(&format!("s{at}"), &secret);
        expected.push((format!("s{at}"), why));
    }
    workspace.furnish(&skills);
    for (skill, why) in expected {
        let done = workspace.run(&["run", &skill, "--json"]).expect_code(1);
        let failure = &done.value()["summary"]["outcome"]["failure"];
        let message = failure["message"].as_str().unwrap();
        assert_eq!(failure["code"], "secrets_unreadable", "{message}");
        assert!(message.contains(why), "{skill}: {message}");
        assert!(!message.contains("hunter2-"), "{message}");
        for said in [
            "workers/w/worker.yaml:",
            "the secret `KEY`: its command `",
            "run it as the engine's user without input",
        ] {
            assert!(message.contains(said) || why == "fewer than 6", "{message}");
        }
    }
    assert!(!fs::exists(workspace.home.join("started")).unwrap());
}

#[test]
fn a_run_whose_file_of_a_secret_cannot_be_used_is_refused() {
    let workspace = Workspace::with_skills(&skill("file", "{file: ~/gone}"));
    let gone = workspace.home.join("gone");
    let refused = |why: &str| {
        let refused = workspace.run(&["run", "file"]).expect_code(6);
        assert!(refused.stderr.contains(why), "{refused:?}");
    };
    refused("the file `~/gone` cannot be read");
    for (content, why) in [("", "is empty"), (&"x".repeat(16_385), "has 16385 bytes")] {
        fs::write(&gone, content).unwrap();
        refused(why);
    }
    fs::remove_file(&gone).unwrap();
    fs::create_dir(&gone).unwrap();
    refused("is no regular file");
    assert!(!fs::exists(workspace.home.join("started")).unwrap());
}

#[test]
fn a_scheduled_run_whose_secret_cannot_be_had_fails_and_is_told() {
    let skills = "
  - {id: other, description: d, run: 'true'}
  - id: nightly
    description: d
    env: [{name: KEY, secret: {command: [/bin/sh, -c, 'echo locked >&2; exit 2']}}]
    run: 'true'
    schedule: {id: nightly, after: w/other}
";
    let workspace = Workspace::with_skills(skills);
    workspace.write("workerctl.yaml", "notify: {on_failure: 'cat >> ../told'}\n");
    let daemon = Daemon::start(&workspace);
    let other = workspace.submit(&["other"]);
    assert_eq!(workspace.wait(&other).0, 0);
    let told = eventually("the notice", || {
        let text = workspace.read("../told")?;
        serde_json::from_str::<Value>(&text).ok()
    });
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("exit code 2: locked"), "{told}");
    assert_eq!(told["schedule"], "w/nightly#nightly", "{told}");
    daemon.stop();
}

#[test]
fn a_command_that_hangs_holds_nobody_up_and_ends_with_its_run() {
    let workspace = Workspace::new();
    let ask = workspace.home.join("ask");
    fs::write(
        &ask,
        "echo x >> \"$(dirname \"$0\")/asked\"; exec sleep 1000",
    )
    .unwrap();
    let secret = format!("{{command: [/bin/sh, {}], timeout: 1h}}", ask.display());
    let other = "\n  - {id: other, description: d, run: 'true'}";
    workspace.furnish(&(skill("hangs", &secret) + other));
    let daemon = Daemon::start(&workspace);
    let until_asked = |count| {
        eventually("it is asked", || {
            (lines(&workspace, "asked").len() == count).then_some(())
        });
    };
    let hangs = workspace.submit(&["hangs"]);
    until_asked(1);
    let passes = workspace.submit(&["other"]);
    assert_eq!(workspace.wait(&passes).0, 0);
    workspace.run(&["cancel", &hangs]).expect_code(0);
    let (_, shown) = workspace.wait(&hangs);
    assert_eq!(
        shown["summary"]["outcome"]["kind"], "cancelled",
        "{shown:#}"
    );
    // An engine that is lost leaves no command, and the next one asks again.
    let lost = workspace.submit(&["hangs"]);
    until_asked(2);
    daemon.kill();
    let daemon = Daemon::start(&workspace);
    until_asked(3);
    // The command becomes the sleeping program shortly after it has been counted.
    eventually("one command, of the engine that is there", || {
        let found = processes_with(workspace.home.to_str().unwrap().as_bytes());
        let sleeping = found
            .iter()
            .filter(|(_, line)| line.starts_with("sleep 1000"));
        (sleeping.count() == 1).then_some(())
    });
    workspace.run(&["cancel", &lost]).expect_code(0);
    let (_, shown) = workspace.wait(&lost);
    assert_eq!(
        shown["summary"]["outcome"]["kind"], "cancelled",
        "{shown:#}"
    );
    assert!(!fs::exists(workspace.home.join("started")).unwrap());
    daemon.stop();
}

const NAMING: &str = r#"
  - id: naming
    description: d
    mutating: true
    env: [API_KEY]
    interface: {outputs: [{name: report, type: markdown, destination: report.md}]}
    run: |
      echo x > report.md; mkdir -p "kept/$(printf '%s' "$API_KEY" | base64)"
      echo x > "kept/$(printf '%s' "$API_KEY" | base64)/file"; END
"#;

#[test]
fn a_secret_in_the_name_of_a_file_does_not_reach_the_repository() {
    for (end, code) in [("true", "secret_in_path"), ("exit 3", "exit_code")] {
        let workspace = Workspace::with_skills(&NAMING.replace("END", end));
        let mut run = workspace.workerctl(&["run", "naming", "--json"]);
        let done = workspace
            .start(run.env("API_KEY", PRINTED))
            .end()
            .expect_code(1);
        let failure = &done.value()["summary"]["outcome"]["failure"];
        assert_eq!(failure["code"], code, "{failure}");
        let encoded = "S2FuYXJpZS00LTBkOWM2YjVlM2";
        if code == "secret_in_path" {
            let message = failure["message"].as_str().unwrap();
            assert!(message.contains("`kept/***"), "{message}");
        }
        assert!(!format!("{done:?}").contains(encoded), "{done:?}");
        let objects = workspace.git(&["cat-file", "--batch-all-objects", "--batch-check"]);
        for line in objects.lines() {
            let object = line.split(' ').next().unwrap();
            let content = workspace.git(&["cat-file", "-p", object]);
            assert!(!content.contains(encoded), "{content}");
        }
        for path in files_below(workspace.state(), &|_| true) {
            let bytes = fs::read(&path).unwrap();
            assert!(
                !xtest::contains(&bytes, encoded.as_bytes()),
                "{}",
                path.display()
            );
        }
    }
}
