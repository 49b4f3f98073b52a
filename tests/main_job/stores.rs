//! Which store is a workspace's: one that was lost is never replaced by an empty one in silence.

use std::fs;
use std::path::Path;

use crate::main_job::misuse::elsewhere;
use crate::workspace::daemon::Daemon;
use crate::workspace::disk::Small;
use crate::workspace::{Done, Workspace, eventually, skip};

const SKILLS: &str = r#"  - {id: good, description: d, run: "true"}"#;

/// Runs the program with a state directory.
fn with(workspace: &Workspace, state: &Path, arguments: &[&str]) -> Done {
    let mut command = elsewhere(workspace, arguments);
    command.env("WORKERCTL_STATE_DIR", state);
    workspace.start(&mut command).end()
}

fn runs(workspace: &Workspace) -> usize {
    workspace.json(&["runs"])["runs"].as_array().unwrap().len()
}

#[test]
fn a_store_that_is_gone_is_missed_by_every_command_that_needs_it() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut daemon = Daemon::start(&workspace);
    workspace.run(&["run", "good"]).expect_code(0);
    fs::remove_dir_all(workspace.state()).unwrap();
    let told = workspace.run(&["run", "good"]);
    assert_ne!(told.code, 0, "{told:?}");
    assert!(!told.stderr.contains("not forgotten"), "{told:?}");
    eventually("the end of the daemon", || (!daemon.lives()).then_some(()));
    let commands: [&[&str]; 7] = [
        &["run", "good"],
        &["runs"],
        &["status"],
        &["retry", "latest"],
        &["threads"],
        &["schedule", "list"],
        &["daemon"],
    ];
    for arguments in commands {
        let missed = workspace.run(arguments).expect_code(6);
        let said = &missed.stderr;
        assert!(
            said.contains("the store of this workspace is missing"),
            "{missed:?}"
        );
        assert!(said.contains("`workerctl store rebuild`"), "{missed:?}");
        assert!(said.contains("`workerctl store init`"), "{missed:?}");
    }
    let doctor = workspace.run(&["doctor"]).expect_code(1);
    assert!(
        doctor
            .stdout
            .contains("the store of this workspace is missing"),
        "{doctor:?}"
    );
    assert!(!workspace.state().exists(), "nothing was made");
    workspace.run(&["store", "rebuild"]).expect_code(0);
    assert_eq!(runs(&workspace), 1);
    let refused = workspace.run(&["store", "init", "--json"]).expect_code(8);
    assert_eq!(refused.refusal(), "store_exists");
    fs::remove_dir_all(workspace.state()).unwrap();
    workspace.run(&["store", "init"]).expect_code(0);
    assert_eq!(runs(&workspace), 0);
    workspace.run(&["run", "good"]).expect_code(0);
    let refused = workspace.run(&["store", "init"]).expect_code(8);
    assert!(refused.stderr.contains("there is a store"), "{refused:?}");
    assert_eq!(runs(&workspace), 1);
}

#[test]
fn a_command_without_the_state_directory_of_the_daemon_is_told_where_that_is() {
    let workspace = Workspace::without_sandbox(SKILLS);
    let daemon = Daemon::start(&workspace);
    let of_daemon = workspace.state().to_path_buf();
    // While it runs, it is found by the lock of the workspace.
    workspace
        .start(&mut elsewhere(&workspace, &["run", "good"]))
        .end()
        .expect_code(0);
    daemon.stop();
    let missed = workspace.start(&mut elsewhere(&workspace, &["runs"])).end();
    let missed = missed.expect_code(6);
    let hint = format!("give `--state-dir {}`", of_daemon.display());
    assert!(missed.stderr.contains(&hint), "{missed:?}");
    assert!(!workspace.root.join("state").exists());
    with(&workspace, &of_daemon, &["runs"]).expect_code(0);
    // A new place that was asked for stays the only one until it is asked for otherwise.
    let other = workspace.home.join("other");
    with(&workspace, &other, &["status"]).expect_code(6);
    with(&workspace, &other, &["store", "init"]).expect_code(0);
    with(&workspace, &other, &["run", "good"]).expect_code(0);
    let former = with(&workspace, &of_daemon, &["runs", "--json"]).expect_code(6);
    assert_eq!(former.refusal(), "store_other");
    fs::remove_file(workspace.root.join(".workerctl/store")).unwrap();
    with(&workspace, &of_daemon, &["runs"]).expect_code(0);
    with(&workspace, &other, &["runs"]).expect_code(6);
    // It is replaced by none either, until it is the workspace's again, as the hint says.
    with(&workspace, &other, &["store", "rebuild"]).expect_code(6);
    fs::remove_file(workspace.root.join(".workerctl/store")).unwrap();
    with(&workspace, &other, &["runs"]).expect_code(0);
    // A store that is moved is known again.
    let moved = workspace.home.join("moved");
    fs::rename(&other, &moved).unwrap();
    with(&workspace, &moved, &["runs"]).expect_code(0);
}

#[test]
fn a_clone_and_a_cleaned_workspace_start_as_ever() {
    let workspace = Workspace::without_sandbox(SKILLS);
    workspace.run(&["run", "good"]).expect_code(0);
    let clone = workspace.root.with_file_name("clone");
    let (from, to) = (workspace.root.to_str().unwrap(), clone.to_str().unwrap());
    workspace.git(&["clone", "-q", from, to]);
    let mut command = elsewhere(&workspace, &["run", "good"]);
    workspace
        .start(command.current_dir(&clone))
        .end()
        .expect_code(0);
    workspace.git(&["clean", "-xfdq"]);
    assert_eq!(runs(&workspace), 1);
    // A store of an earlier version has no id.
    fs::remove_file(workspace.state().join("store/id")).unwrap();
    fs::remove_file(workspace.root.join(".workerctl/store")).unwrap();
    assert_eq!(runs(&workspace), 1);
    let info = workspace.json(&["store", "info"]);
    assert_eq!(info["id"].as_str().unwrap().len(), 32, "{info}");
}

/// Runs the program and kills it at its nth call of a kind; whether it came so far.
fn killed(workspace: &Workspace, call: &str, nth: usize, arguments: &[&str]) -> bool {
    let mut command = workspace.program("strace");
    let inject = format!("inject={call}:signal=KILL:when={nth}");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &inject]);
    command.arg(env!("CARGO_BIN_EXE_workerctl"));
    command
        .arg("--state-dir")
        .arg(workspace.state())
        .args(arguments);
    workspace.start(&mut command).end().code != 0
}

#[test]
fn a_kill_between_the_writes_of_the_id_leaves_a_workspace_that_can_be_used() {
    let traces = Workspace::new();
    let mut tool = traces.program("strace");
    tool.args(["-o", "/dev/null", "true"]);
    if !tool.status().is_ok_and(|status| status.success()) {
        return skip("strace is missing or may not trace");
    }
    for call in ["rename,renameat,renameat2", "fsync"] {
        for nth in 1.. {
            let workspace = Workspace::with_skills(SKILLS);
            let was_killed = killed(&workspace, call, nth, &["runs"]);
            workspace.run(&["run", "good"]).expect_code(0);
            if !was_killed {
                assert!(nth > 3, "{call} {nth}");
                break;
            }
            fs::remove_dir_all(workspace.state()).unwrap();
            // Made on request: there by now, or it can be asked for again.
            killed(&workspace, call, nth, &["store", "init"]);
            if workspace.run(&["runs"]).code != 0 {
                workspace.run(&["store", "init"]).expect_code(0);
            }
            assert_eq!(runs(&workspace), 0);
            killed(&workspace, call, nth, &["store", "rebuild"]);
            if workspace.run(&["runs"]).code != 0 {
                workspace.run(&["store", "rebuild"]).expect_code(0);
            }
            workspace.run(&["run", "good"]).expect_code(0);
        }
    }
}

#[test]
fn a_rebuild_takes_no_store_from_whoever_has_it() {
    let workspace = Workspace::with_skills(SKILLS);
    let daemon = Daemon::start(&workspace);
    workspace.run(&["run", "good"]).expect_code(0);
    // Another state directory, while the daemon serves the workspace.
    let other = workspace.home.join("other");
    let refused = with(&workspace, &other, &["store", "rebuild", "--json"]).expect_code(8);
    assert_eq!(refused.refusal(), "engine_running");
    assert!(!other.exists(), "nothing was made");
    daemon.stop();
    assert_eq!(runs(&workspace), 1);
    // The store of another workspace.
    let neighbour = Workspace::with_skills(SKILLS);
    neighbour.run(&["run", "good"]).expect_code(0);
    let refused = with(
        &workspace,
        neighbour.state(),
        &["store", "rebuild", "--json"],
    );
    assert_eq!(refused.expect_code(6).refusal(), "store_other");
    assert_eq!(runs(&neighbour), 1);
    // A configuration that may name another place of threads.
    workspace.write("workerctl.yaml", "threads: {directory: logs\n");
    let refused = workspace
        .run(&["store", "rebuild", "--json"])
        .expect_code(4);
    assert_eq!(refused.refusal(), "config_unknown");
    workspace.write("workerctl.yaml", "");
    assert_eq!(runs(&workspace), 1);
}

#[test]
fn a_rebuild_for_which_there_is_no_space_leaves_the_store_as_it_was() {
    let Some(small) = Small::create(24) else {
        return;
    };
    let workspace = Workspace::with_skills(SKILLS);
    let state = small.path().join("state");
    with(&workspace, &state, &["run", "good"]).expect_code(0);
    small.fill();
    let refused = with(&workspace, &state, &["store", "rebuild"]).expect_code(6);
    assert!(refused.stderr.contains("as it was before"), "{refused:?}");
    fs::remove_file(small.path().join("filler")).unwrap();
    let listed = with(&workspace, &state, &["runs", "--json"]).expect_code(0);
    assert_eq!(listed.value()["runs"].as_array().unwrap().len(), 1);
    let sound = with(&workspace, &state, &["store", "verify"]).expect_code(0);
    assert!(!sound.stdout.contains("aside"), "{sound:?}");
}

#[test]
fn a_state_directory_around_the_workspace_is_refused() {
    let workspace = Workspace::with_skills(SKILLS);
    let parent = workspace.root.parent().unwrap().to_path_buf();
    for around in [workspace.root.clone(), parent] {
        let refused = with(&workspace, &around, &["run", "good", "--json"]).expect_code(6);
        assert_eq!(refused.refusal(), "state_dir");
        assert!(!around.join("store").exists(), "nothing was made");
    }
    for directory in [".", "./", ".workerctl/threads", "state/live"] {
        let config = format!("threads: {{directory: {directory}}}\n");
        workspace.write("workerctl.yaml", &config);
        let told = workspace.run(&["check"]).expect_code(4);
        assert!(
            told.stderr.contains("other files") || told.stdout.contains("other files"),
            "{told:?}"
        );
    }
}
