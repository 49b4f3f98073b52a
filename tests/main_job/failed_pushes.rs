//! A push that fails: shown until a later push of the branch succeeds, tried again by a daemon, and in nobody's way.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::workspace::daemon::Daemon;
use crate::workspace::{Done, Workspace, eventually};

const SKILLS: &str = r#"
  - {id: change, description: d, mutating: true, push: true, run: "echo changed >> tracked.txt"}
  - {id: plain, description: d, mutating: true, run: "echo plain >> plain.txt"}
"#;

/// A workspace whose `origin` is a bare repository next to it, with a hook that runs this text before it accepts.
fn workspace(hook: &str) -> Workspace {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.git(&["init", "-q", "--bare", "../remote.git"]);
    workspace.git(&["remote", "add", "origin", "../remote.git"]);
    let path = workspace.root.join("../remote.git/hooks/pre-receive");
    std::fs::write(&path, format!("#!/bin/sh\n{hook}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    workspace
}

fn accept(workspace: &Workspace) {
    std::fs::remove_file(workspace.root.join("../remote.git/hooks/pre-receive")).unwrap();
}

fn remote_tip(workspace: &Workspace) -> String {
    let found = workspace.git(&["ls-remote", "../remote.git", "refs/heads/main"]);
    found.split('\t').next().unwrap_or_default().to_owned()
}

fn local_tip(workspace: &Workspace) -> String {
    workspace.git(&["rev-parse", "main"]).trim().to_owned()
}

/// The branches whose last push failed, of `status`, which says so with its exit code.
fn failed(workspace: &Workspace) -> Vec<Value> {
    let status = workspace.run(&["status", "--json"]);
    let found = status.value()["failed_pushes"].as_array().unwrap().clone();
    status.expect_code(i32::from(!found.is_empty()));
    found
}

/// Runs a skill, which succeeds, and returns the id of the run.
fn changed(workspace: &Workspace) -> String {
    let detail = workspace.json(&["run", "change"]);
    detail["summary"]["run"].as_str().unwrap().to_owned()
}

fn has_finding(doctor: &Done, name: &str) -> bool {
    let value = doctor.value();
    let mut findings = value["findings"].as_array().unwrap().iter();
    findings.any(|finding| finding["name"] == name && finding["state"] == "error")
}

#[test]
fn a_failed_push_is_shown_everywhere_until_a_daemon_has_pushed() {
    let workspace = workspace("echo not today >&2; exit 1");
    let run = changed(&workspace);
    let other = changed(&workspace);
    let [push] = failed(&workspace).try_into().unwrap();
    assert_eq!(
        (&push["remote"], &push["branch"]),
        (&json!("origin"), &json!("main"))
    );
    assert_eq!(
        (&push["runs"], &push["attempt_count"]),
        (&json!([run, other]), &json!(2))
    );
    assert_eq!(push["commit"], local_tip(&workspace));
    let why = push["message"].as_str().unwrap();
    assert!(why.contains("(pre-receive hook declined)"), "{why}");

    for summary in workspace.json(&["runs"])["runs"].as_array().unwrap() {
        assert_eq!(summary["push_error"], why, "{summary}");
    }
    assert!(workspace.run(&["runs"]).stdout.contains(", not pushed"));
    let shown = workspace.run(&["show", &run]).stdout;
    assert!(
        shown.contains("not pushed") && shown.contains(why),
        "{shown}"
    );
    let status = workspace.run(&["status"]).expect_code(1).stdout;
    assert!(
        status.contains(why) && status.contains("once a daemon runs"),
        "{status}"
    );
    let obstacles = workspace.json(&["why", "change"])["obstacles"].clone();
    assert_eq!(obstacles[0]["code"], "not_pushed", "{obstacles}");
    assert!(has_finding(
        &workspace.run(&["doctor", "--json"]).expect_code(1),
        "push"
    ));

    accept(&workspace);
    let daemon = Daemon::start(&workspace);
    eventually("the daemon pushes", || {
        failed(&workspace).is_empty().then_some(())
    });
    assert_eq!(remote_tip(&workspace), local_tip(&workspace));
    for summary in workspace.json(&["runs"])["runs"].as_array().unwrap() {
        assert_eq!(summary["push_error"], Value::Null, "{summary}");
    }
    assert_eq!(workspace.json(&["why", "change"])["obstacles"], json!([]));
    assert!(!has_finding(&workspace.run(&["doctor", "--json"]), "push"));
    daemon.stop();
}

/// One notification when pushes begin to fail, and one when the branch has been pushed.
#[test]
fn a_later_result_of_the_branch_ends_the_failure() {
    let workspace = workspace("exit 1");
    let tell = "cat >> \"$WORKERCTL_WORKSPACE/../events\"";
    workspace.configure(&format!(
        "notify: {{on_failure: {tell:?}, on_recovery: {tell:?}}}\n"
    ));
    let events = || {
        let text = std::fs::read_to_string(workspace.root.join("../events")).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect::<Vec<Value>>()
    };
    let daemon = Daemon::start(&workspace);
    changed(&workspace);
    let metrics = || workspace.run(&["metrics"]).expect_code(0).stdout;
    let sample = "remote=\"origin\",branch=\"main\"} 1\n";
    assert!(metrics().contains(sample), "{}", metrics());
    changed(&workspace);
    eventually("the failure is notified", || {
        (!events().is_empty()).then_some(())
    });
    accept(&workspace);
    changed(&workspace);
    let told = eventually("its end is notified", || {
        Some(events()).filter(|events| events.len() == 2)
    });
    assert_eq!(told[0]["hook_event_name"], "PushFailed");
    assert!(
        told[0]["message"]
            .as_str()
            .unwrap()
            .contains("pre-receive hook declined")
    );
    assert_eq!(told[1]["hook_event_name"], "PushRecovered");
    assert!(failed(&workspace).is_empty());
    assert!(!metrics().contains(sample));
    assert_eq!(remote_tip(&workspace), local_tip(&workspace));
    daemon.stop();
}

/// The user does what the hint says: the commit that could not be pushed exists no more.
#[test]
fn a_branch_that_the_user_rebased_and_pushed_has_been_pushed() {
    let workspace = workspace("exit 0");
    changed(&workspace);
    workspace.git(&["fetch", "-q", "origin"]);
    workspace.git(&["clone", "-q", "../remote.git", "../other"]);
    workspace.git(&["-C", "../other", "commit", "-q", "--allow-empty", "-m", "x"]);
    workspace.git(&["-C", "../other", "push", "-q"]);
    let daemon = Daemon::start(&workspace);
    changed(&workspace);
    let status = workspace.run(&["status"]).expect_code(1).stdout;
    let remedy = "git pull --rebase origin main && git push origin main";
    assert!(status.contains(remedy), "{status}");
    workspace.run(&["reload"]).expect_code(0);
    workspace.git(&["pull", "-q", "--rebase", "origin", "main"]);
    workspace.git(&["push", "-q", "origin", "main"]);
    eventually("the daemon sees that", || {
        workspace.run(&["reload"]).expect_code(0);
        failed(&workspace).is_empty().then_some(())
    });
    assert_eq!(remote_tip(&workspace), local_tip(&workspace));
    daemon.stop();
}

#[test]
fn a_push_that_hangs_holds_no_other_run_and_can_be_cancelled() {
    let workspace = workspace("touch \"$HOME/pushing\"; sleep 600");
    let daemon = Daemon::start(&workspace);
    let submitted = workspace.json(&["run", "change", "--no-wait"]);
    let run = submitted["run"].as_str().unwrap();
    eventually("the push hangs", || {
        workspace.home.join("pushing").exists().then_some(())
    });
    let plain = workspace.json(&["run", "plain"]);
    assert_eq!(plain["summary"]["outcome"]["kind"], "succeeded", "{plain}");

    workspace.run(&["cancel", run]).expect_code(0);
    let detail = workspace
        .run(&["wait", run, "--json"])
        .expect_code(0)
        .value();
    assert!(detail["summary"]["push_error"].is_string(), "{detail}");
    let [push] = failed(&workspace).try_into().unwrap();
    assert_eq!(push["next_attempt_at"], Value::Null, "{push}");
    accept(&workspace);
    workspace.run(&["reload"]).expect_code(0);
    eventually("it is pushed", || {
        failed(&workspace).is_empty().then_some(())
    });
    daemon.stop();
}

#[test]
fn a_push_has_a_limit_of_its_own() {
    let workspace = workspace("sleep 600");
    workspace.configure("push_timeout: 1s\n");
    changed(&workspace);
    let [push] = failed(&workspace).try_into().unwrap();
    let why = push["message"].as_str().unwrap();
    assert!(why.contains("time"), "{why}");
    let config = workspace.json(&["config"]).to_string();
    assert!(config.contains("push_timeout"), "{config}");
}
