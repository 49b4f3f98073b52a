//! Secrets of the environment and of sensitive inputs: nowhere but in the skill.

use std::fs;

use crate::workspace::Workspace;
use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;
use crate::workspace::observed::files_below;

const OF_ENVIRONMENT: &str = "Kanarie-1-4f8e2b7c9d";
const OF_INPUT: &str = "Kanarie-2-1a6d3e5f0b";
/// On a command line, where no test that looks for the others may find it.
const ON_COMMAND_LINE: &str = "Kanarie-3-7c0b9e2d4a";
/// Both in base64, as `base64` writes them without what depends on the end.
const ENCODED: [&str; 2] = ["S2FuYXJpZS0xLTRmOGUyYjdjOW", "S2FuYXJpZS0yLTFhNmQzZTVmMG"];

const SKILLS: &str = r#"
  - id: loud
    description: d
    mutating: true
    env: [API_KEY]
    interface: {inputs: [{name: token, type: string, sensitive: true}]}
    run: |
      printf '%s' "$API_KEY" > "$HOME/seen"; printf '%s' {token} >> "$HOME/seen"
      echo "key $API_KEY"; echo "token" {token} >&2
      printf '%s' "$API_KEY" | base64; printf '%s' {token} | base64 >&2
      echo changed >> tracked.txt
      GATE
    verification: [{command: "echo {token}; echo \"$API_KEY\"; true", description: loud}]
    hooks: {post_tools: ["cat; echo \"$API_KEY\"; exit 1"], post_commit: ["cat; echo \"$API_KEY\"; exit 1"]}
"#;

fn forms() -> Vec<&'static [u8]> {
    [OF_ENVIRONMENT, OF_INPUT]
        .iter()
        .chain(&ENCODED)
        .map(|form| form.as_bytes())
        .collect()
}

fn expect_no_secret(what: &str, bytes: &[u8]) {
    for form in forms() {
        let shown = String::from_utf8_lossy(form);
        assert!(!xtest::contains(bytes, form), "{what} holds `{shown}`");
    }
}

fn command_lines() -> Vec<u8> {
    let lines = fs::read_dir("/proc").unwrap().flatten();
    lines
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .flat_map(|line| [line, b"\n".to_vec()].concat())
        .collect()
}

#[test]
fn secrets_are_nowhere_but_in_the_skill() {
    let workspace = Workspace::with_skills(&SKILLS.replace("GATE", &Gate::text("loud")));
    let mut gate = Gate::new(&workspace, "loud");
    let daemon = Daemon::start_with(&workspace, &[("API_KEY", OF_ENVIRONMENT)]);
    let inputs = workspace.home.join("inputs.json");
    let arguments = ["run", "loud", "--inputs-json", inputs.to_str().unwrap()];
    // It would be masked wherever its letters appear.
    fs::write(&inputs, "{\"token\": \"abc\"}").unwrap();
    let short = workspace.run(&arguments).expect_code(2);
    assert!(short.stderr.contains("`token`"), "{short:?}");
    fs::write(&inputs, format!("{{\"token\": \"{OF_INPUT}\"}}")).unwrap();
    let started = workspace.start(&mut workspace.workerctl(&arguments));
    let (run, _) = gate.reached();
    expect_no_secret("a command line", &command_lines());
    gate.pass();
    let done = started.end().expect_code(0);
    expect_no_secret("what `run` shows", (done.stdout + &done.stderr).as_bytes());
    let seen = fs::read_to_string(workspace.home.join("seen")).unwrap();
    assert_eq!(seen, format!("{OF_ENVIRONMENT}{OF_INPUT}"));

    for arguments in [
        vec!["show", &run],
        vec!["show", &run, "--json"],
        vec!["logs", &run],
        vec!["logs", &run, "--json"],
        vec!["runs", "--json"],
        vec!["diff", &run],
        vec!["threads", "--json"],
    ] {
        let done = workspace.run(&arguments);
        let shown = format!("{arguments:?}");
        expect_no_secret(&shown, (done.stdout + &done.stderr).as_bytes());
    }
    expect_no_secret("the daemon's log", daemon.log().as_bytes());
    daemon.stop();
    expect_no_secret("git", workspace.git(&["log", "--all", "-p"]).as_bytes());
    for directory in [workspace.root.as_path(), workspace.state()] {
        for path in files_below(directory, &|_| true) {
            expect_no_secret(&path.display().to_string(), &fs::read(&path).unwrap());
        }
    }
    // Masked, not lost: the log says that there was something.
    let logs = workspace.run(&["logs", &run]).expect_code(0).stdout;
    assert!(logs.contains("key ***"), "{logs}");
}

#[test]
fn a_run_whose_secrets_cannot_be_read_is_not_started() {
    let skills = r#"
  - {id: gated, description: d, run: 'GATE'}
  - id: secretive
    description: d
    interface: {inputs: [{name: token, type: string, sensitive: true}]}
    run: 'echo x >> "$HOME/started"; echo {token}'
"#;
    let workspace = Workspace::with_skills(&skills.replace("GATE", &Gate::text("gate")));
    workspace.write("workerctl.yaml", "max_parallel: 1\n");
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let gated = workspace.submit(&["gated"]);
    assert_eq!(gate.reached().0, gated);
    let input = format!("token={ON_COMMAND_LINE}");
    // All of them wait behind the one at the gate.
    let runs: Vec<String> = (0..4)
        .map(|_| workspace.submit(&["secretive", "-i", &input]))
        .collect();
    let file = |run: &str| workspace.state().join(format!("secrets/{run}.json"));
    let [whole, damaged, newer, gone] = runs.as_slice() else {
        panic!("four runs");
    };
    fs::write(file(damaged), &ON_COMMAND_LINE[..9]).unwrap();
    fs::write(file(newer), r#"{"version": 999}"#).unwrap();
    fs::remove_file(file(gone)).unwrap();
    gate.pass();
    assert_eq!(workspace.wait(whole).0, 0);
    for run in [damaged, newer, gone] {
        let (code, detail) = workspace.wait(run);
        let failure = &detail["summary"]["outcome"]["failure"];
        assert_eq!(
            (code, &failure["code"]),
            (1, &"secrets_unreadable".into()),
            "{detail}"
        );
        let told = detail.to_string();
        assert!(!told.contains(ON_COMMAND_LINE), "{told}");
    }
    let started = fs::read_to_string(workspace.home.join("started")).unwrap();
    assert_eq!(started.lines().count(), 1, "only the whole one was started");
    daemon.stop();
    assert!(runs.iter().all(|run| !file(run).exists()));
}

const WITH_CREDENTIAL: &str = r#"
  - {id: gated, description: d, run: 'GATE'}
  - id: paying
    description: d
    env: [{name: STRIPE_KEY, credential: stripe-key}]
    run: 'printf "%s" "$STRIPE_KEY" >> "$HOME/seen"; echo "key $STRIPE_KEY"'
"#;

#[test]
fn a_credential_whose_name_no_variable_can_have_reaches_the_skill_masked() {
    let skills = WITH_CREDENTIAL.replace("GATE", &Gate::text("gate"));
    let workspace = Workspace::without_sandbox(&skills);
    workspace.write("workerctl.yaml", "max_parallel: 1\n");
    let mut gate = Gate::new(&workspace, "gate");
    let credentials = workspace.home.join("credentials");
    fs::create_dir(&credentials).unwrap();
    let credential = credentials.join("stripe-key");
    let variables = [
        ("CREDENTIALS_DIRECTORY", credentials.to_str().unwrap()),
        // The credential is asked for, so this is not taken in its place.
        ("STRIPE_KEY", "of-the-environment"),
    ];
    let daemon = Daemon::start_with(&workspace, &variables);

    let refused = workspace.run(&["run", "paying"]).expect_code(6);
    assert!(refused.stderr.contains("`stripe-key`"), "{refused:?}");
    let hint = "LoadCredential=stripe-key:/";
    assert!(refused.stderr.contains(hint), "{refused:?}");
    fs::write(&credential, [0xff; 16]).unwrap();
    let refused = workspace.run(&["run", "paying"]).expect_code(6);
    assert!(refused.stderr.contains("cannot be read"), "{refused:?}");

    fs::write(&credential, format!("{OF_ENVIRONMENT}\n")).unwrap();
    let done = workspace.run(&["run", "paying"]).expect_code(0);
    expect_no_secret("what `run` shows", (done.stdout + &done.stderr).as_bytes());
    let seen = workspace.home.join("seen");
    assert_eq!(fs::read_to_string(&seen).unwrap(), OF_ENVIRONMENT);
    let rendered = workspace.run(&["render", "paying"]).expect_code(0).stdout;
    assert!(rendered.contains("STRIPE_KEY  secret"), "{rendered}");
    expect_no_secret("`render`", rendered.as_bytes());

    // It is taken away while a run that was accepted with it waits.
    let gated = workspace.submit(&["gated"]);
    assert_eq!(gate.reached().0, gated);
    let waiting = workspace.submit(&["paying"]);
    fs::remove_file(&credential).unwrap();
    gate.pass();
    let (code, detail) = workspace.wait(&waiting);
    let failure = &detail["summary"]["outcome"]["failure"];
    assert_eq!(
        (code, &failure["code"]),
        (1, &"secrets_unreadable".into()),
        "{detail}"
    );
    assert_eq!(fs::read_to_string(&seen).unwrap(), OF_ENVIRONMENT);
    daemon.stop();
}
