//! Definitions that are edited while a daemon fires their schedules: a broken one keeps what it was, one that
//! is removed goes, and no slot is lost between a break and its repair.

use crate::workspace;

use serde_json::Value;
use workspace::daemon::Daemon;
use workspace::ledger::{millis, rows, view, views, wait_for_rows, without_gap};
use workspace::{Workspace, eventually};

const WORKER: &str = "workers/w/worker.yaml";

/// One skill with a schedule of its own, one that the worker's level schedules.
const GOOD: &str = "
worker: {id: w, name: w, type: OpsWorker}
skills:
  - id: tick
    description: d
    run: 'true'
    schedule: {every: 1s, overlap: allow_all, catch_up: {mode: all, window: 1h}}
  - {id: tock, description: d, run: 'true'}
schedule:
  - {skill: tock, id: own, every: 1s, overlap: allow_all, catch_up: {mode: all, window: 1h}}
";

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.write(WORKER, GOOD);
    workspace
}

fn edit(workspace: &Workspace, text: &str) {
    workspace.write(WORKER, text);
    workspace.run(&["reload"]).expect_code(0);
}

/// The worker without the schedules of its own level.
fn without_own() -> &'static str {
    let from = GOOD.find("schedule:\n").unwrap();
    &GOOD[..from]
}

/// Milliseconds between the last of these rows of `w/tock#own` and the one after it.
fn pause_after(workspace: &Workspace, before: &[Value]) -> i64 {
    let after = rows(workspace, "w/tock#own");
    millis(&after[before.len()], "from") - millis(before.last().unwrap(), "to")
}

fn both_ran_without_gap(workspace: &Workspace) {
    for schedule in ["w/tick", "w/tock#own"] {
        let rows = rows(workspace, schedule);
        without_gap(&rows, 1_000);
        assert!(rows.iter().all(|row| row["run"].is_string()), "{rows:?}");
    }
}

#[test]
fn a_broken_edit_keeps_the_schedules_and_every_due_time_its_row() {
    let workspace = workspace();
    let daemon = Daemon::start(&workspace);
    wait_for_rows(&workspace, "w/tick", 1);
    wait_for_rows(&workspace, "w/tock#own", 1);
    let breaks = [
        "worker: {id: w\n".to_owned(),
        GOOD.replace("id: tick\n", "id: tick\n    timeout: soon\n"),
        GOOD.replacen("every: 1s", "every: soon", 1),
        GOOD.replace("id: own, every: 1s", "id: own, every: soon"),
    ];
    for broken in breaks {
        edit(&workspace, &broken);
        let kept = views(&workspace);
        assert_eq!(kept.len(), 2, "{broken}");
        let error = kept
            .values()
            .find_map(|view| view["fallback_reason"].as_str());
        assert!(
            error.is_some_and(|error| error.contains(WORKER)),
            "{broken}"
        );
        let listed = workspace.run(&["schedule", "list"]).stdout;
        assert!(listed.contains("last valid definition in use"), "{listed}");
        let status = workspace.run(&["status"]).stdout;
        assert!(status.contains("last valid definition"), "{status}");
        let doctor = workspace.run(&["doctor"]).expect_code(1);
        assert!(
            doctor.stdout.contains("last valid definition"),
            "{doctor:?}"
        );
        workspace.run(&["check"]).expect_code(4);
        wait_for_rows(&workspace, "w/tick", 2);
        wait_for_rows(&workspace, "w/tock#own", 2);
    }
    edit(&workspace, GOOD);
    wait_for_rows(&workspace, "w/tick", 2);
    assert!(
        views(&workspace)
            .values()
            .all(|view| view["fallback_reason"].is_null())
    );
    both_ran_without_gap(&workspace);
    daemon.stop();
}

#[test]
fn one_whose_skill_has_gone_says_so_in_its_rows() {
    let workspace = workspace();
    let daemon = Daemon::start(&workspace);
    wait_for_rows(&workspace, "w/tock#own", 1);
    let gone = GOOD.replace("  - {id: tock, description: d, run: 'true'}\n", "");
    edit(&workspace, &gone);
    let row = eventually("a row that says so", || {
        let rows = rows(&workspace, "w/tock#own").into_iter();
        rows.rev().find(|row| row["status"] == "blocked_config")
    });
    let reason = row["reason"].as_str().unwrap();
    assert!(reason.contains("tock"), "{reason}");
    edit(&workspace, GOOD);
    eventually("it runs again", || {
        let rows = rows(&workspace, "w/tock#own");
        rows.last().unwrap()["run"].is_string().then_some(())
    });
    without_gap(&rows(&workspace, "w/tock#own"), 1_000);
    daemon.stop();
}

#[test]
fn one_that_is_removed_goes_and_counts_anew_when_it_comes_back() {
    let workspace = workspace();
    let daemon = Daemon::start(&workspace);
    wait_for_rows(&workspace, "w/tick", 1);
    // Its neighbour is broken, which is no reason to keep it.
    let removed = without_own().replacen("every: 1s", "every: soon", 1);
    edit(&workspace, &removed);
    assert_eq!(
        views(&workspace).into_keys().collect::<Vec<_>>(),
        ["w/tick"]
    );
    wait_for_rows(&workspace, "w/tick", 3);
    let before = rows(&workspace, "w/tock#own");
    edit(&workspace, GOOD);
    wait_for_rows(&workspace, "w/tock#own", 1);
    let pause = pause_after(&workspace, &before);
    assert!(pause > 1_000, "{pause} ms");
    daemon.stop();
}

#[test]
fn what_was_broken_over_a_restart_goes_on_where_it_was() {
    let workspace = workspace();
    let daemon = Daemon::start(&workspace);
    wait_for_rows(&workspace, "w/tick", 2);
    workspace.write(WORKER, "worker: {id: w\n");
    daemon.stop();
    let daemon = Daemon::start(&workspace);
    assert!(views(&workspace).is_empty());
    let known = rows(&workspace, "w/tick");
    workspace.run(&["reload"]).expect_code(0);
    edit(&workspace, GOOD);
    eventually("slots after the repair", || {
        let rows = rows(&workspace, "w/tick");
        (rows.len() > known.len() + 3).then_some(())
    });
    both_ran_without_gap(&workspace);
    daemon.stop();
}

#[test]
fn what_was_removed_while_no_daemon_ran_is_closed_by_the_next() {
    let workspace = workspace();
    let daemon = Daemon::start(&workspace);
    wait_for_rows(&workspace, "w/tick", 1);
    daemon.stop();
    workspace.write(WORKER, without_own());
    let before = rows(&workspace, "w/tock#own");
    let daemon = Daemon::start(&workspace);
    wait_for_rows(&workspace, "w/tick", 3);
    edit(&workspace, GOOD);
    wait_for_rows(&workspace, "w/tock#own", 1);
    let pause = pause_after(&workspace, &before);
    assert!(pause > 2_000, "{pause} ms");
    daemon.stop();
}

/// The zone of slots may stand in the configuration: without it nothing is fired, and nothing is lost.
fn everybody_says_that_nothing_is_fired(workspace: &Workspace) {
    let why = "no schedule runs until `workerctl.yaml` is fixed";
    let status = workspace.json(&["status"]);
    assert!(status["inactive_reason"].as_str().unwrap().starts_with(why));
    assert!(status["next_due"].is_null(), "{status}");
    assert!(workspace.run(&["status"]).stdout.contains(why));
    let shown = view(workspace, "w/tick");
    assert!(
        shown["inactive_reason"].as_str().unwrap().starts_with(why),
        "{shown}"
    );
    assert!(shown["next"].is_null(), "{shown}");
    assert!(
        workspace
            .run(&["schedule", "list"])
            .stdout
            .contains("(not fired)")
    );
    let doctor = workspace.run(&["doctor"]).expect_code(1);
    assert!(doctor.stdout.contains(why), "{doctor:?}");
    for command in [
        &["schedule", "next"][..],
        &["schedule", "explain", "w/tick"],
    ] {
        let told = workspace.run(command).expect_code(0);
        assert!(told.stderr.contains(why), "{told:?}");
    }
    let pause = ["schedule", "pause", "w/tick", "--reason", "x"];
    let told = workspace.run(&pause).expect_code(8);
    assert!(told.stderr.contains(why), "{told:?}");
    let told = workspace.run(&["schedule", "trigger", "w/tick"]);
    let told = told.expect_code(4).stderr;
    assert!(told.contains("no valid configuration is known"), "{told}");
}

#[test]
fn a_daemon_that_starts_with_a_broken_configuration_fires_nothing_until_it_is_repaired() {
    let workspace = workspace();
    let good = "timezone: Asia/Tokyo\n";
    workspace.write("workerctl.yaml", good);
    let daemon = Daemon::start(&workspace);
    wait_for_rows(&workspace, "w/tick", 1);
    daemon.stop();
    workspace.write("workerctl.yaml", "timezone: Asia/Tokyo\nqueue: [broken\n");
    let daemon = Daemon::start(&workspace);
    let before = rows(&workspace, "w/tick").len();
    // Reading a broken configuration again makes it no better known.
    workspace.run(&["reload"]).expect_code(0);
    let check = workspace.run(&["check"]);
    assert!(
        check.stdout.contains("no schedule runs") || check.stderr.contains("no schedule runs"),
        "{check:?}"
    );
    everybody_says_that_nothing_is_fired(&workspace);
    assert_eq!(rows(&workspace, "w/tick").len(), before);
    workspace.write("workerctl.yaml", good);
    workspace.run(&["reload"]).expect_code(0);
    wait_for_rows(&workspace, "w/tick", 2);
    without_gap(&rows(&workspace, "w/tick"), 1_000);
    daemon.stop();
}

/// Every recipe of `docs/reference/schedule.md` at a skill of its own.
#[test]
fn the_recipes_of_the_page_are_schedules_that_a_daemon_takes() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/docs/reference/schedule.md"
    ));
    let page = page.unwrap();
    let (_, after) = page.split_once("## Recipes").unwrap();
    let (recipes, _) = after.split_once("\n## ").unwrap();
    let written = recipes.lines().filter_map(|line| {
        let (_, cell) = line.strip_prefix("| ")?.split_once(" | `")?;
        cell.strip_suffix("` |")
    });
    let mut skills = "  - {id: build, description: d, run: 'true'}\n".to_owned();
    let mut count = 0;
    for (nth, recipe) in written.enumerate() {
        count += 1;
        let line = format!("  - {{id: r{nth}, description: d, run: 'true', schedule: {recipe}}}\n");
        skills.push_str(&line);
    }
    assert_eq!(count, 10);
    let workspace = Workspace::with_skills(&skills);
    workspace.write("docs/page.md", "text");
    workspace.write("scripts/tell", "#!/bin/sh\n");
    let checked = workspace.json(&["check", "--strict"]);
    assert_eq!(checked["problems"], serde_json::json!([]));
    let daemon = Daemon::start(&workspace);
    let listed = workspace.json(&["schedule", "list"]);
    assert_eq!(listed["schedules"].as_array().unwrap().len(), count);
    for nth in 0..count {
        let id = format!("w/r{nth}");
        workspace.run(&["schedule", "explain", &id]).expect_code(0);
    }
    daemon.stop();
}
