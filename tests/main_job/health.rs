//! A service that cannot do its work says so: by exit codes, findings, metrics and notifications.

use serde_json::{Value, json};

use crate::workspace::daemon::Daemon;
use crate::workspace::{Workspace, eventually, eventually_written, skip};

/// Messages of the findings of `doctor` that are errors; it exits with 1 because of them.
fn errors_of_doctor(workspace: &Workspace) -> Vec<String> {
    let doctor = workspace.run(&["doctor", "--json"]).expect_code(1).value();
    let findings = doctor["findings"].as_array().unwrap().iter();
    let bad = findings.filter(|finding| finding["state"] == "error");
    bad.map(|finding| finding["message"].as_str().unwrap().to_owned())
        .collect()
}

/// Codes of what `why` lists.
fn obstacles(workspace: &Workspace, skill: &str) -> Vec<Value> {
    let why = workspace.json(&["why", skill]);
    let obstacles = why["obstacles"].as_array().unwrap().iter();
    obstacles.map(|one| one["code"].clone()).collect()
}

#[test]
fn schedules_without_a_daemon_are_an_error() {
    let workspace = Workspace::with_skills(
        "  - {id: nightly, description: d, run: 'true', schedule: {cron: '0 3 * * *'}}\n  - {id: plain, description: d, run: 'true'}\n",
    );
    workspace.run(&["status"]).expect_code(1);
    let errors = errors_of_doctor(&workspace);
    assert!(errors[0].contains("1 schedule will not fire"), "{errors:?}");
    assert_eq!(obstacles(&workspace, "nightly"), [json!("no_daemon")]);
    let metrics = workspace.run(&["metrics"]).expect_code(0).stdout;
    assert!(metrics.contains("workerctl_up 0\n"), "{metrics}");
    let daemon = Daemon::start(&workspace);
    workspace.run(&["status"]).expect_code(0);
    daemon.stop();
}

#[test]
fn a_repository_that_cannot_be_written_is_an_error() {
    let workspace = Workspace::with_skills(
        "  - {id: change, description: d, mutating: true, run: 'echo x > tracked.txt'}\n",
    );
    workspace.configure("notify: {on_failure: 'cat >> \"$WORKERCTL_WORKSPACE/../events\"'}\n");
    let objects = workspace.root.join(".git/objects");
    let chattr = |flag: &str| {
        let mut command = std::process::Command::new("chattr");
        command
            .arg(flag)
            .arg(&objects)
            .output()
            .is_ok_and(|done| done.status.success())
    };
    if !chattr("+i") {
        return skip("no directory can be made immutable");
    }
    let daemon = Daemon::start(&workspace);
    let status = workspace.run(&["status"]);
    let errors = errors_of_doctor(&workspace);
    let obstacles = obstacles(&workspace, "change");
    let metrics = workspace.run(&["metrics"]).stdout;
    workspace.run(&["run", "change", "-q"]);
    let event = eventually_written("the failure", &workspace.root.join("../events"));
    daemon.stop();
    assert!(chattr("-i"));
    let message = "objects` cannot be written";
    assert!(status.expect_code(1).stdout.contains(message));
    assert!(
        errors.iter().any(|error| error.contains(message)),
        "{errors:?}"
    );
    assert_eq!(obstacles, [json!("git")]);
    assert!(metrics.contains("workerctl_git_writable 0\n"), "{metrics}");
    assert!(event.contains("is not writable"), "{event}");
    workspace.run(&["status"]).expect_code(0);
}

#[test]
fn a_slot_that_could_not_become_a_run_is_an_error_until_a_later_one_does() {
    let workspace = Workspace::with_skills(
        "  - {id: tick, description: d, cwd: later, run: 'true', schedule: {every: 1s}}\n",
    );
    std::fs::create_dir(workspace.root.join("later")).unwrap();
    let daemon = Daemon::start(&workspace);
    std::fs::remove_dir(workspace.root.join("later")).unwrap();
    let failing = eventually("a slot is blocked", || {
        let failing = workspace.run(&["status", "--json"]).value()["failing"][0].clone();
        failing["blocked"].is_object().then_some(failing)
    });
    let reason = failing["blocked"]["reason"].as_str().unwrap();
    assert!(reason.contains("cwd: later"), "{failing}");
    workspace.run(&["status"]).expect_code(1);
    let errors = errors_of_doctor(&workspace);
    assert!(
        errors.iter().any(|error| error.contains("did not run")),
        "{errors:?}"
    );
    std::fs::create_dir(workspace.root.join("later")).unwrap();
    eventually("a later slot runs", || {
        let status = workspace.run(&["status", "--json"]);
        (status.value()["failing"] == json!([]) && status.code == 0).then_some(())
    });
    daemon.stop();
}
