//! Every exit code, from the real program.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;

use crate::workspace::daemon::Daemon;
use crate::workspace::disk::Small;
use crate::workspace::gate::Gate;
use crate::workspace::{Done, Workspace};

const SKILLS: &str = r#"
  - {id: good, description: d, run: "true"}
  - {id: bad, description: d, run: "exit 3"}
  - {id: strict, description: d, mutating: true, run: "echo x > new.txt", verification: [{command: "false"}]}
  - {id: number, description: d, run: "true", interface: {inputs: [{name: n, type: number, min: 1}]}}
  - {id: told, description: d, instructions: "write a poem"}
  - {id: slow, description: d, timeout: 1s, run: "sleep 60"}
  - {id: gated, description: d, mutating: true, run: 'GATE'}
"#;

fn workspace() -> Workspace {
    Workspace::with_skills(&SKILLS.replace("GATE", &Gate::text("gated")))
}

#[test]
fn what_ends_by_itself_has_its_code() {
    let workspace = workspace();
    let table: [(&[&str], i32); 11] = [
        (&["run", "good"], 0),
        (&["run", "bad"], 1),
        (&["run"], 2),
        (&["run", "good", "--no-such-option"], 2),
        (&["run", "number", "-i", "n=0"], 2),
        (&["run", "nothing-of-this-name"], 3),
        (&["show", "zzzz"], 3),
        (&["run", "strict"], 5),
        (&["run", "told"], 6),
        (&["run", "good", "--no-wait"], 7),
        (&["run", "slow"], 124),
    ];
    for (arguments, code) in table {
        let done = workspace.run(arguments);
        assert_eq!(done.code, code, "{arguments:?}: {done:?}");
        let panicked = done.stderr.contains("panicked");
        assert!(!panicked, "{arguments:?}: {done:?}");
    }
    workspace.expect_no_process();
}

#[test]
fn a_broken_definition_is_4() {
    let workspace = workspace();
    workspace.worker("broken", "  - {id: b, description: d, run: [1, {a: b}]}\n");
    workspace.run(&["run", "broken/b"]).expect_code(4);
    workspace.run(&["check"]).expect_code(4);
    workspace.run(&["run", "good"]).expect_code(0);
}

#[test]
fn what_is_too_late_or_taken_is_8() {
    let workspace = workspace();
    let done = workspace.run(&["run", "good", "--json"]).expect_code(0);
    let run = done.value()["summary"]["run"].as_str().unwrap().to_owned();
    let late = workspace.run(&["cancel", &run, "--json"]).expect_code(8);
    assert_eq!(late.refusal(), "ended");
    let resolve = ["resolve", &run, "--as", "failed", "--note", "n", "--json"];
    assert_eq!(
        workspace.run(&resolve).expect_code(8).refusal(),
        "not_unknown"
    );

    let keyed = |skill| workspace.run(&["run", skill, "--key", "k1", "--json"]);
    let first = keyed("good").expect_code(0).value();
    let second = keyed("good").expect_code(0).value();
    assert_eq!(first["summary"]["run"], second["summary"]["run"]);
    assert_eq!(keyed("bad").expect_code(8).refusal(), "key_reused");
}

#[test]
fn a_run_does_not_answer_the_key_of_a_user() {
    let program = env!("CARGO_BIN_EXE_workerctl");
    let workspace = Workspace::with_skills(&format!(
        "  - {{id: good, description: d, run: 'true'}}\n  \
         - {{id: asks, description: d, workerctl: true, run: '{program} run good --no-wait --key k1; {program} run good --no-wait --key k1; true'}}\n"
    ));
    let daemon = Daemon::start(&workspace);
    let asked = workspace.run(&["run", "asks", "--json"]).expect_code(0);
    let keyed = ["run", "good", "--key", "k1", "--json"];
    let run = |done: &Done| done.value()["summary"]["run"].clone();
    let first = run(&workspace.run(&keyed).expect_code(0));
    assert_eq!(run(&workspace.run(&keyed).expect_code(0)), first);
    workspace.wait_until_idle();
    let all = workspace.json(&["runs", "--skill", "good"]);
    assert_eq!(all["runs"].as_array().unwrap().len(), 2, "{all} {asked:?}");
    daemon.stop();
}

#[test]
fn a_mutating_run_whose_engine_died_is_9_until_it_is_resolved() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gated");
    let started = workspace.start(&mut workspace.workerctl(&["run", "gated"]));
    let (run, _) = gate.reached();
    started.signal(Signal::KILL);
    started.end().expect_code(-1);

    // The next command takes the run up, and ends what is left of it.
    workspace.run(&["status"]).expect_code(0);
    workspace.run(&["wait", &run]).expect_code(9);
    workspace.expect_no_process();
    let note = ["resolve", &run, "--as", "succeeded", "--note", "seen"];
    workspace.run(&note).expect_code(0);
    workspace.run(&["wait", &run]).expect_code(0);
}

#[test]
fn ctrl_c_is_130_and_what_was_changed_is_put_back() {
    let workspace = workspace();
    let mut gate = Gate::new(&workspace, "gated");
    let started = workspace.start(&mut workspace.workerctl(&["run", "gated"]));
    gate.reached();
    started.signal(Signal::INT);
    started.end().expect_code(130);
    workspace.expect_no_process();
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
}

/// Exit codes after which systemd does not start the daemon again, as both units have them.
fn final_codes() -> Vec<i32> {
    let units = ["workerctl.service", "user/workerctl.service"].map(|unit| {
        let path = format!("{}/systemd/{unit}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        let codes = text
            .lines()
            .find_map(|line| line.strip_prefix("RestartPreventExitStatus="));
        let codes = codes.unwrap().split(' ').map(|code| code.parse().unwrap());
        codes.collect::<Vec<i32>>()
    });
    assert_eq!(units[0], units[1]);
    units[0].clone()
}

/// Starts a daemon that cannot serve, and says how it ended.
fn daemon_ends_with(workspace: &Workspace, variables: &[(&str, &str)], place: &Path) -> i32 {
    let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
    command.arg("-C").arg(place).arg("daemon");
    command.env("WORKERCTL_STATE_DIR", workspace.state());
    command.envs(variables.iter().copied());
    let mut started = workspace.start(&mut command);
    assert!(
        started.ends_within(Duration::from_mins(1)),
        "{variables:?} {}",
        place.display()
    );
    let done = started.end();
    assert!(done.stderr.contains("hint:"), "{variables:?}: {done:?}");
    done.code
}

#[test]
fn a_daemon_that_no_restart_can_mend_is_not_started_again_by_the_units() {
    let workspace = workspace();
    workspace.run(&["run", "good"]).expect_code(0);
    let ends =
        |variables: &[(&str, &str)]| daemon_ends_with(&workspace, variables, &workspace.root);
    let open_to_all = workspace.home.join("open");
    std::fs::create_dir(&open_to_all).unwrap();
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&open_to_all, mode).unwrap();
    let socket = open_to_all.join("s");
    let empty = xtest::tempdir();

    let mut found = vec![
        ("a filter", 2, ends(&[("WORKERCTL_LOG", "a=b=c")])),
        (
            "no workspace",
            3,
            daemon_ends_with(&workspace, &[], empty.path()),
        ),
        (
            "a directory that others may write",
            6,
            ends(&[("WORKERCTL_SOCKET", socket.to_str().unwrap())]),
        ),
    ];
    workspace.write(
        "workerctl.yaml",
        "mcp: {http: {listen: '127.0.0.1:0', token_file: /nowhere/token}}\n",
    );
    found.push(("no token", 2, ends(&[])));
    workspace.write("workerctl.yaml", "");

    let in_the_way = workspace.state().join("live");
    std::fs::rename(&in_the_way, workspace.home.join("live")).unwrap();
    std::fs::write(&in_the_way, "x").unwrap();
    found.push(("a file in the way", 6, ends(&[])));
    std::fs::remove_file(&in_the_way).unwrap();

    let witness = workspace.state().join("store/witness");
    let written = std::fs::read(&witness).unwrap();
    std::fs::write(&witness, "workerctl-store 999 of a later version").unwrap();
    found.push(("a newer store", 6, ends(&[])));
    std::fs::write(&witness, written).unwrap();
    std::fs::remove_dir_all(workspace.state().join("store/db")).unwrap();
    found.push(("a damaged store", 6, ends(&[])));

    for (what, expected, code) in found {
        assert_eq!(code, expected, "{what}");
        assert!(final_codes().contains(&code), "{what} is tried again");
    }
}

#[test]
fn a_daemon_that_a_restart_may_mend_is_started_again_by_the_units() {
    let workspace = workspace();
    let daemon = Daemon::start(&workspace);
    let other = [("WORKERCTL_SOCKET", "other.sock")];
    let mut found = vec![(
        "the workspace is taken",
        8,
        daemon_ends_with(&workspace, &other, &workspace.root),
    )];
    daemon.stop();
    if let Some(small) = Small::create(1) {
        small.fill();
        // One that has no store yet: the other would miss its own.
        let workspace = self::workspace();
        let state = small.path().join("state");
        let full = [("WORKERCTL_STATE_DIR", state.to_str().unwrap())];
        let full = daemon_ends_with(&workspace, &full, &workspace.root);
        found.push(("a full disk", 1, full));
        // The token is written before the engine is started.
        let config = "mcp: {http: {listen: '127.0.0.1:0'}}\n";
        workspace.write("workerctl.yaml", config);
        let state = [("WORKERCTL_STATE_DIR", small.path().to_str().unwrap())];
        let token = daemon_ends_with(&workspace, &state, &workspace.root);
        found.push(("a full disk under the token", 1, token));
    }
    for (what, expected, code) in found {
        assert_eq!(code, expected, "{what}");
        assert!(!final_codes().contains(&code), "{what} is not tried again");
    }
}
