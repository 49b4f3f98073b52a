//! A daemon whose schedules follow other runs, files, a branch and the machine's start; and runs that a person asks
//! for.

use crate::workspace;

use serde_json::Value;
use workspace::daemon::Daemon;
use workspace::ledger::{row, rows, view, wait_until_seen};
use workspace::{Workspace, eventually};

fn log_of(workspace: &Workspace, row: &Value) -> String {
    let run = row["run"].as_str().unwrap();
    workspace.wait_for_event(run, "closed");
    workspace.run(&["logs", run]).stdout
}

#[test]
fn a_run_is_followed_with_its_outputs() {
    let workspace = Workspace::with_skills(
        r#"
  - id: report
    description: writes a report
    run: 'echo text > {report}'
    interface:
      outputs: [{name: report, type: markdown, destination: out/report.md}]
  - id: mail
    description: says what is in the report
    run: 'cat {report}; echo "after $WORKERCTL_AFTER_RUN"'
    interface:
      inputs: [{name: report, type: path, required: true}]
    schedule: {after: w/report}
  - id: fail
    description: fails
    run: 'exit 3'
  - id: alarm
    description: is told of failures
    run: 'echo "after $WORKERCTL_AFTER_RUN"'
    schedule: {after: {skill: w/fail, on: failed}}
"#,
    );
    let daemon = Daemon::start(&workspace);
    let first = workspace.submit(&["w/report"]);
    let followed = row(&workspace, "w/mail", 1);
    assert_eq!(followed["status"], "ran", "{followed}");
    let log = log_of(&workspace, &followed);
    assert!(
        log.contains("text") && log.contains(&format!("after {first}")),
        "{log}"
    );
    let failed = workspace.submit(&["w/fail"]);
    let told = row(&workspace, "w/alarm", 1);
    assert!(log_of(&workspace, &told).contains(&format!("after {failed}")));
    daemon.stop();
    // A run in a process of its own is followed by the daemon that comes next.
    assert_eq!(workspace.run(&["run", "w/fail"]).code, 1);
    let daemon = Daemon::start(&workspace);
    row(&workspace, "w/alarm", 2);
    assert_eq!(rows(&workspace, "w/mail").len(), 1);
    daemon.stop();
}

#[test]
fn changed_files_are_noticed_once_they_have_settled_and_own_changes_are_not() {
    let workspace = Workspace::without_sandbox(
        r"
  - id: build
    description: builds
    run: 'cat docs/* > docs/all.txt; echo built'
    schedule: {watch: {paths: [docs], settle: 300ms}}
",
    );
    workspace.write("docs/a.md", "one\n");
    let daemon = Daemon::start(&workspace);
    wait_until_seen(&workspace, "w/build");
    assert!(rows(&workspace, "w/build").is_empty());
    workspace.write("elsewhere.md", "x");
    workspace.write("docs/deep/.keep", "");
    workspace.write("docs/b.md", "two\n");
    let first = row(&workspace, "w/build", 1);
    assert_eq!(first["status"], "ran");
    assert!(log_of(&workspace, &first).contains("built"));
    let own = row(&workspace, "w/build", 2);
    assert_eq!(own["status"], "skipped_overlap");
    assert!(
        own["reason"]
            .as_str()
            .unwrap()
            .contains("a run of the schedule itself")
    );
    workspace.write("docs/deep/c.md", "three\n");
    let second = row(&workspace, "w/build", 3);
    assert_eq!(second["status"], "ran");
    daemon.stop();
    let before = rows(&workspace, "w/build").len();
    workspace.write("docs/a.md", "changed while nobody was there\n");
    let daemon = Daemon::start(&workspace);
    let third = eventually("it was seen", || {
        let rows = rows(&workspace, "w/build");
        rows.get(before..)?
            .iter()
            .find(|row| row["run"].is_string())
            .cloned()
    });
    assert_eq!(third["status"], "ran");
    daemon.stop();
}

#[test]
fn commits_of_others_are_noticed_and_own_ones_are_not() {
    let workspace = Workspace::with_skills(
        r"
  - id: stamp
    description: changes a file after each commit
    mutating: true
    run: 'date +%N > stamp.txt'
    schedule: {on_commit: {branch: main}}
",
    );
    let daemon = Daemon::start(&workspace);
    wait_until_seen(&workspace, "w/stamp");
    for number in 1..3 {
        workspace.write("other.txt", &format!("{number}\n"));
        workspace.git(&["add", "other.txt"]);
        workspace.git(&["commit", "-qm", "by hand"]);
        let fired = row(&workspace, "w/stamp", number);
        assert_eq!(fired["status"], "ran");
        workspace.wait_for_event(fired["run"].as_str().unwrap(), "closed");
    }
    workspace.wait_until_idle();
    // A look at everything finds nothing new: what the runs have committed is their own.
    let hinted = workspace.run(&["reload"]);
    assert_eq!(hinted.code, 0);
    assert_eq!(rows(&workspace, "w/stamp").len(), 2);
    let commits = workspace.git(&["log", "--format=%s"]);
    assert_eq!(commits.matches("by hand").count(), 2);
    daemon.stop();
}

#[test]
fn schedules_that_commit_do_not_start_each_other_for_ever() {
    let skill = |id: &str, schedule: &str| {
        format!(
            "\n  - id: {id}\n    description: changes a file\n    mutating: true\n    run: 'date +%N > {id}.txt'\n    schedule: {schedule}"
        )
    };
    let skills = [
        skill("one", "{on_commit: {branch: main}}"),
        skill("other", "{on_commit: {branch: main}}"),
        skill("last", "{after: {skill: one, on: always}}"),
    ];
    let workspace = Workspace::with_skills(&skills.concat());
    let daemon = Daemon::start(&workspace);
    wait_until_seen(&workspace, "w/one");
    wait_until_seen(&workspace, "w/other");
    workspace.write("other.txt", "1\n");
    workspace.git(&["add", "other.txt"]);
    workspace.git(&["commit", "-qm", "by hand"]);
    for id in ["w/one", "w/other", "w/last"] {
        let fired = row(&workspace, id, 1);
        workspace.wait_for_event(fired["run"].as_str().unwrap(), "closed");
    }
    workspace.wait_until_idle();
    // A look at everything finds nothing new.
    workspace.run(&["reload"]).expect_code(0);
    workspace.wait_until_idle();
    for id in ["w/one", "w/other", "w/last"] {
        assert_eq!(rows(&workspace, id).len(), 1, "{id}");
    }
    // What a person has run counts.
    let by_hand = workspace.run(&["run", "w/last"]);
    by_hand.expect_code(0);
    row(&workspace, "w/one", 2);
    daemon.stop();
}

#[test]
fn a_plan_says_what_policies_leave_to_be_run() {
    let workspace = Workspace::with_skills(
        r#"
  - id: tick
    description: ticks
    run: 'true'
    schedule: {cron: "0 4 * * *"}
  - id: few
    description: may run once
    run: 'true'
    schedule: {cron: "0 4 * * *", max_actions: 1, blackout: {dates: [2026-01-01]}}
"#,
    );
    let daemon = Daemon::start(&workspace);
    let plan = |id: &str, more: &[&str]| -> Vec<Option<String>> {
        let line = ["schedule", "backfill", id, "--dry-run"];
        let range = ["--from", "2026-01-01", "--to", "2026-01-03T12:00"];
        let planned = workspace.json(&[&line[..], &range[..], more].concat());
        let slots = planned["slots"].as_array().unwrap().iter();
        slots
            .map(|slot| slot["skip_reason"].as_str().map(str::to_owned))
            .collect()
    };
    assert_eq!(plan("w/tick", &[]), [None, None, None]);
    let line = ["schedule", "pause", "w/tick", "--reason", "a holiday"];
    workspace.run(&line).expect_code(0);
    let paused = plan("w/tick", &[]);
    let is_told = |why: &Option<String>| why.as_ref().is_some_and(|why| why.contains("a holiday"));
    assert!(paused.iter().all(is_told), "{paused:?}");
    let despite = plan("w/tick", &["--despite", "pause"]);
    assert_eq!(despite, [None, None, None]);
    let few = plan("w/few", &[]);
    let why = |at: usize| few[at].as_deref().unwrap_or_default();
    assert!(why(0).contains("blocked hours or dates"), "{few:?}");
    assert_eq!(why(1), "");
    assert!(why(2).contains("it has reached its limit of"), "{few:?}");
    daemon.stop();
}

#[test]
fn a_person_triggers_backfills_and_asks_for_later() {
    let workspace = Workspace::with_skills(
        r#"
  - id: tick
    description: says what is due
    run: 'echo "{scheduled_at}"'
    schedule: {cron: "0 4 * * *", timezone: Asia/Tokyo}
  - id: later
    description: says when it was to start
    run: 'echo "at {scheduled_at} $WORKERCTL_SCHEDULED_AT"'
"#,
    );
    let refused = workspace.run(&["schedule", "trigger", "w/tick"]);
    assert_eq!(refused.code, 7, "{refused:?}");
    let daemon = Daemon::start(&workspace);
    let row = workspace.json(&["schedule", "trigger", "w/tick"]);
    assert_eq!(row["status"], "ran");
    log_of(&workspace, &row);
    let rows_of = ["schedule", "slots", "w/tick"];
    assert_eq!(
        workspace.json(&rows_of)["slots"][0]["timezone"],
        "Asia/Tokyo"
    );
    assert!(workspace.run(&rows_of).stdout.contains("+09:00"));
    let line = ["schedule", "pause", "w/tick", "--reason", "a holiday"];
    assert_eq!(workspace.run(&line).code, 0);
    let refused = workspace.run(&["schedule", "trigger", "w/tick"]);
    assert_eq!(refused.code, 6, "{refused:?}");
    assert!(refused.stderr.contains("a holiday"), "{refused:?}");
    let line = ["schedule", "trigger", "w/tick", "--despite", "pause"];
    assert_eq!(workspace.run(&line).code, 0);
    assert_eq!(workspace.run(&["schedule", "resume", "w/tick"]).code, 0);

    let range = ["--from", "2026-01-01", "--to", "2026-01-03T12:00"];
    let plan = [&["schedule", "backfill", "w/tick", "--dry-run"], &range[..]].concat();
    let planned = workspace.json(&plan);
    assert_eq!(planned["slots"].as_array().unwrap().len(), 3, "{planned}");
    let fill = [&["schedule", "backfill", "w/tick"], &range[..]].concat();
    let filled = workspace.json(&fill);
    let rows = filled["slots"].as_array().unwrap();
    assert_eq!(rows.len(), 3, "{filled}");
    let log = log_of(&workspace, &rows[0]);
    assert!(log.contains("2026-01-01T04:00:00+09:00"), "{log}");
    let again = workspace.run(&fill);
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.stderr.contains("no slot"), "{again:?}");

    let submitted = workspace.json(&["run", "w/later", "--in", "2s"]);
    let run = submitted["run"].as_str().unwrap().to_owned();
    let shown = workspace.json(&["show", &run]);
    let waits = shown["waiting_for"].as_str().unwrap_or_default().to_owned();
    assert!(waits.is_empty() || waits.starts_with("its time"), "{waits}");
    workspace.wait_for_event(&run, "closed");
    let log = workspace.run(&["logs", &run]).stdout;
    let words: Vec<&str> = log.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "at").unwrap();
    assert_eq!(words[at + 1], words[at + 2], "{log}");
    let past = workspace.run(&["run", "w/later", "--at", "2026-01-01T00:00"]);
    assert_eq!(past.code, 2, "{past:?}");
    daemon.stop();
}

#[test]
fn what_leads_out_of_the_workspace_or_is_written_by_the_engine_cannot_be_watched() {
    let workspace = Workspace::with_skills(
        r"
  - id: outside
    description: follows a link
    run: 'true'
    schedule: {watch: docs/there}
  - id: own
    description: watches what the engine writes
    run: 'true'
    schedule: {watch: [state]}
",
    );
    workspace.write("../elsewhere/a.md", "x");
    std::fs::create_dir(workspace.root.join("docs")).unwrap();
    std::os::unix::fs::symlink("../../elsewhere", workspace.root.join("docs/there")).unwrap();
    let check = workspace.run(&["check"]).expect_code(0);
    let told = format!("{}{}", check.stdout, check.stderr);
    assert!(
        told.contains("`state` is the default state directory"),
        "{told}"
    );
    // Its state lies where it does unless it is told otherwise.
    let mut command = workspace.program(env!("CARGO_BIN_EXE_workerctl"));
    command
        .arg("-C")
        .arg(&workspace.root)
        .args(["-v", "daemon"]);
    let daemon = Daemon::start_by(&workspace, command);
    for (schedule, why) in [
        ("w/outside", "leads out of the workspace"),
        ("w/own", "is written by the engine itself"),
    ] {
        let row = row(&workspace, schedule, 1);
        assert_eq!(row["status"], "blocked_config", "{row}");
        let reason = row["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{reason}");
    }
    daemon.stop();
}

/// As root every directory can be looked at.
#[test]
fn a_directory_without_permission_is_told_and_ends_no_watching() {
    if rustix::process::geteuid().is_root() {
        workspace::skip("root may look at everything");
        return;
    }
    let workspace = Workspace::with_skills(
        r"
  - id: build
    description: builds
    run: 'true'
    schedule: {watch: {paths: [docs], settle: 100ms}}
  - id: other
    description: watches another directory
    run: 'true'
    schedule: {watch: {paths: [src], settle: 100ms}}
",
    );
    workspace.write("docs/locked/a.md", "x");
    workspace.write("src/a.rs", "x");
    let locked = workspace.root.join("docs/locked");
    let allow = |mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&locked, mode).unwrap();
    };
    allow(0o000);
    let daemon = Daemon::start(&workspace);
    let blind = row(&workspace, "w/build", 1);
    assert_eq!(blind["status"], "blocked_config", "{blind}");
    assert!(
        blind["reason"].as_str().unwrap().contains("docs/locked"),
        "{blind}"
    );
    wait_until_seen(&workspace, "w/other");
    workspace.write("src/b.rs", "y");
    assert_eq!(row(&workspace, "w/other", 1)["status"], "ran");
    allow(0o755);
    workspace.run(&["reload"]).expect_code(0);
    daemon.stop();
}

#[test]
fn an_event_that_waits_for_its_jitter_is_shown() {
    let workspace = Workspace::with_skills(
        r"
  - {id: first, description: d, run: 'true'}
  - id: second
    description: follows some hours later
    run: 'true'
    schedule: {after: w/first, jitter: 300d}
",
    );
    let daemon = Daemon::start(&workspace);
    let run = workspace.submit(&["w/first"]);
    let waiting = eventually("it waits", || {
        let view = view(&workspace, "w/second");
        view["waiting"].as_array().unwrap().first().cloned()
    });
    assert_eq!(waiting["after"], run.as_str());
    let (due, starts) = (
        waiting["due"].as_str().unwrap(),
        waiting["starts"].as_str().unwrap(),
    );
    assert!(due < starts, "{waiting}");
    let list = workspace.run(&["schedule", "list"]).stdout;
    assert!(list.contains("(waits)"), "{list}");
    let slots = workspace.run(&["schedule", "slots", "w/second"]);
    assert!(slots.stderr.contains("is still pending"), "{slots:?}");
    let next = workspace.run(&["schedule", "next", "w/second"]);
    assert!(next.stderr.contains("is still pending"), "{next:?}");
    daemon.stop();
}

/// Starts a daemon that takes the machine's start for the one of this id; `None` where that is not allowed here.
fn daemon_after_start(workspace: &Workspace, id: &str) -> Option<Daemon> {
    let file = workspace.home.join("boot_id");
    std::fs::write(&file, format!("{id}\n")).unwrap();
    let script = "mount --bind \"$0\" /proc/sys/kernel/random/boot_id || exit 75; exec \"$@\"";
    let in_namespace = |arguments: &[&std::ffi::OsStr]| {
        let mut command = workspace.program("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
        command.arg(&file).args(arguments);
        command
    };
    let tried = in_namespace(&["true".as_ref()]).status();
    if !tried.is_ok_and(|status| status.success()) {
        workspace::skip("no mount namespace can be made here");
        return None;
    }
    let daemon = workspace.workerctl(&["-v", "daemon"]);
    let line: Vec<_> = std::iter::once(daemon.get_program())
        .chain(daemon.get_args())
        .collect();
    Some(Daemon::start_by(workspace, in_namespace(&line)))
}

#[test]
fn a_start_of_the_machine_fires_once() {
    let workspace = Workspace::with_skills(
        "
  - id: greet
    description: greets
    run: 'echo hello'
    schedule: '@reboot'
",
    );
    let Some(daemon) = daemon_after_start(&workspace, "first") else {
        return;
    };
    // When it is first seen, the machine has started long ago.
    wait_until_seen(&workspace, "w/greet");
    daemon.stop();
    let again = daemon_after_start(&workspace, "first").unwrap();
    wait_until_seen(&workspace, "w/greet");
    assert!(rows(&workspace, "w/greet").is_empty());
    again.kill();
    for _ in 0..2 {
        let daemon = daemon_after_start(&workspace, "second").unwrap();
        let fired = row(&workspace, "w/greet", 1);
        assert_eq!(fired["status"], "ran");
        daemon.stop();
    }
    assert_eq!(rows(&workspace, "w/greet").len(), 1);
}
