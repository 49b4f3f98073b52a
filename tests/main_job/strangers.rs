//! What is not this engine's own: a copy of a workspace, an engine within what a lost one left, a process number
//! of another namespace.

use std::fs;
use std::process::Command;

use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;
use crate::workspace::{Workspace, eventually, eventually_written, skip};

const SKILLS: &str = r#"
  - {id: good, description: d, run: "true"}
  - {id: waits, description: d, run: 'echo $$ >> "$HOME/pids"; GATE'}
  - {id: writes, description: d, mutating: true, run: 'echo by the skill > made.txt; echo more >> tracked.txt; GATE'}
  - id: hosts
    description: d
    idempotent: true
    run: |
      [ -f "$HOME/code" ] && exit 0
      touch "$HOME/began"; until [ -f "$HOME/go" ]; do sleep 0.05; done
      PROGRAM run good > "$HOME/told" 2>&1; echo $? > "$HOME/code.new"; mv "$HOME/code.new" "$HOME/code"
      sleep 600
"#;

fn skills(gate: &str) -> String {
    SKILLS.replace("GATE", &Gate::text(gate))
}

/// Copies the workspace and its state, as `cp` does; what follows works on the copy.
fn copied(workspace: &Workspace) -> impl Fn(&[&str]) -> Command {
    let beside = workspace.root.parent().unwrap();
    let (root, state) = (beside.join("copy"), beside.join("state-of-copy"));
    for (from, to) in [
        (workspace.root.as_path(), &root),
        (workspace.state(), &state),
    ] {
        let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
        assert!(copied.unwrap().success());
    }
    move |arguments| {
        let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
        command.arg("-C").arg(&root).arg("--state-dir").arg(&state);
        command.args(arguments);
        command
    }
}

#[test]
fn a_daemon_of_a_copy_leaves_alone_what_the_original_runs() {
    let workspace = Workspace::with_skills(&skills("gate"));
    let mut gate = Gate::new(&workspace, "gate");
    let mut daemon = Daemon::start(&workspace);
    let started = workspace.start(&mut workspace.workerctl(&["run", "waits", "--json"]));
    let (run, _) = gate.reached();
    let copy = copied(&workspace);
    let of_copy = Daemon::start_by(&workspace, copy(&["daemon"]));
    let log = of_copy.log();
    assert!(
        log.contains("the run was active and cannot be recovered here"),
        "{log}"
    );
    let shown = workspace.start(&mut copy(&["show", &run, "--json"])).end();
    let outcome = &shown.value()["summary"]["outcome"];
    assert_eq!(outcome["kind"], "unknown", "{shown:?}");
    assert_eq!(outcome["why"], "another_workspace", "{shown:?}");
    workspace
        .start(&mut copy(&["run", "good"]))
        .end()
        .expect_code(0);
    of_copy.stop();
    gate.pass();
    let ended = started.end().expect_code(0);
    assert_eq!(ended.value()["summary"]["attempts"], 1, "{ended:?}");
    let pids = fs::read_to_string(workspace.home.join("pids")).unwrap();
    assert_eq!(pids.lines().count(), 1, "it began once");
    assert!(daemon.lives(), "{}", daemon.log());
    daemon.stop();
}

#[test]
fn a_daemon_of_a_copy_puts_nothing_back_in_the_original() {
    let workspace = Workspace::with_skills(&skills("gate"));
    let mut gate = Gate::new(&workspace, "gate");
    let daemon = Daemon::start(&workspace);
    let started = workspace.start(&mut workspace.workerctl(&["run", "writes"]));
    gate.reached();
    let copy = copied(&workspace);
    gate.pass();
    started.end().expect_code(0);
    daemon.stop();
    workspace.write("tracked.txt", "by a person\n");
    workspace.write("work.txt", "by a person, too\n");
    let before = (
        workspace.tree(),
        workspace.git(&["log", "--all", "--oneline"]),
    );
    let of_copy = Daemon::start_by(&workspace, copy(&["daemon"]));
    of_copy.stop();
    let after = (
        workspace.tree(),
        workspace.git(&["log", "--all", "--oneline"]),
    );
    assert_eq!(before, after);
}

#[test]
fn a_copy_is_worked_in_while_the_engine_of_the_original_runs() {
    let workspace = Workspace::without_sandbox(&skills("gate"));
    let mut daemon = Daemon::start(&workspace);
    workspace.run(&["run", "good"]).expect_code(0);
    drop(copied(&workspace));
    let copy = workspace.root.with_file_name("copy");
    let in_copy = |arguments: &[&str]| {
        let mut command = super::misuse::elsewhere(&workspace, arguments);
        command.current_dir(&copy);
        workspace.start(&mut command).end()
    };
    let drained = in_copy(&["drain"]).expect_code(7);
    assert!(drained.stderr.contains("no engine"), "{drained:?}");
    in_copy(&["status"]).expect_code(0);
    in_copy(&["run", "good"]).expect_code(0);
    let runs = in_copy(&["runs", "--json"]).expect_code(0).value();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
    assert!(daemon.lives());
    daemon.stop();
}

#[test]
fn an_engine_within_what_a_lost_one_left_settles_nothing() {
    let workspace = Workspace::without_sandbox(&skills("gate"));
    let program = format!(
        "{} -C '{}' --state-dir '{}'",
        env!("CARGO_BIN_EXE_workerctl"),
        workspace.root.display(),
        workspace.state().display()
    );
    workspace.furnish(&skills("gate").replace("PROGRAM", &program));
    workspace.lift_sandbox("w");
    let at_home = |name: &str| workspace.home.join(name);
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["hosts"]);
    eventually("the skill begins", || {
        at_home("began").exists().then_some(())
    });
    daemon.kill();
    fs::write(at_home("go"), "").unwrap();
    let code = eventually_written("the command within", &at_home("code"));
    let told = fs::read_to_string(at_home("told")).unwrap();
    // It hosts no engine itself; one that it hosted would refuse to settle the run that it is part of.
    match code.trim() {
        "7" => assert!(told.contains("no engine listens"), "{told}"),
        code => {
            assert_eq!(code, "8", "{told}");
            assert!(told.contains("whose engine was lost"), "{told}");
        }
    }
    let daemon = Daemon::start(&workspace);
    assert!(daemon.log().contains("were ended"), "{}", daemon.log());
    let (code, detail) = workspace.wait(&run);
    assert_eq!(
        (code, &detail["summary"]["attempts"]),
        (0, &2.into()),
        "{detail}"
    );
    daemon.stop();
}

#[test]
fn a_process_group_of_another_namespace_is_no_fault() {
    let unshared = |command: &mut Command| {
        let mut outer = Command::new("unshare");
        outer.args(["--pid", "--fork", "--mount-proc"]);
        outer.arg(command.get_program()).args(command.get_args());
        outer
    };
    let permitted = unshared(&mut Command::new("true")).status();
    if !permitted.is_ok_and(|status| status.success()) {
        return skip("a pid namespace cannot be made here");
    }
    let workspace = Workspace::with_skills(&skills("gate"));
    let mut command = workspace.program("unshare");
    let run = unshared(&mut workspace.workerctl(&["run", "good"]));
    command.args(run.get_args());
    workspace.start(&mut command).end().expect_code(0);
}
