//! What a run holds while it waits, and what a person is shown.

use crate::approval::{asked, bed, ended, outcome, ran, until_asked};
use crate::workspace::daemon::Daemon;

#[test]
fn a_result_waits_outside_of_the_checkout_and_lands_as_it_was_shown() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    let before = workspace.git(&["rev-parse", "HEAD"]);
    let run = asked(&workspace, &["change"]);
    let detail = workspace.show(&run);
    let approval = &detail["approval"];
    assert_eq!(approval["before"], "landing");
    assert_eq!(
        detail["submitted_by"],
        crate::approval::own_name(),
        "one form of a name"
    );
    let checkpoints = serde_json::json!(["the tone is right", "nobody is named"]);
    assert_eq!(approval["checkpoints"], checkpoints);
    let shown = workspace.run(&["show", &run]).stdout;
    assert!(shown.contains("nobody is named"), "{shown}");
    let held = &approval["result"]["outputs"][0];
    assert_eq!(
        (&held["path"], &held["bytes"]),
        (&"ignored/report.md".into(), &8.into())
    );
    let place = std::path::Path::new(approval["outputs_in"].as_str().unwrap());
    assert_eq!(
        std::fs::read_to_string(place.join("ignored/report.md")).unwrap(),
        "# whole\n"
    );
    let diff = workspace.run(&["diff", &run]).expect_code(0).stdout;
    assert!(diff.contains("own.txt"), "{diff}");
    assert_eq!(workspace.git(&["rev-parse", "HEAD"]), before);
    assert_eq!(workspace.read("own.txt"), None);
    assert_eq!(workspace.read("ignored/report.md"), None);
    let status = workspace.json(&["status"]);
    assert_eq!(
        (&status["awaiting_approval_count"], &status["running"]),
        (&1.into(), &0.into()),
        "{status}"
    );
    let listed = workspace.json(&["runs", "--awaiting"]);
    assert_eq!(listed["runs"][0]["run"], run.as_str());
    let done = workspace
        .run(&["approve", &run, "--note", "well said"])
        .expect_code(0);
    assert!(done.stdout.contains("succeeded"), "{done:?}");
    let detail = ended(&workspace, &run);
    assert_eq!(detail["summary"]["commit"], approval["result"]["commit"]);
    assert_eq!(workspace.read("own.txt"), Some(format!("{run}\n")));
    assert_eq!(
        workspace.read("ignored/report.md").as_deref(),
        Some("# whole\n")
    );
    assert_eq!(
        (
            ran(&workspace),
            workspace.git(&["status", "--porcelain"]).as_str()
        ),
        (1, "")
    );
    assert!(!place.exists(), "what was put aside is left");
    // Who and when is kept, in the run and in its thread.
    let thread = std::fs::read_to_string(detail["thread_path"].as_str().unwrap()).unwrap();
    let thread: serde_json::Value = serde_json::from_str(&thread).unwrap();
    for kept in [&detail["approval"], &thread["run"]["approval"]] {
        assert!(
            kept["approved_at"].is_i64() || kept["approved_at"].is_string(),
            "{kept}"
        );
        let by = kept["approved_by"].as_str().unwrap();
        assert_eq!(by, crate::approval::own_name(), "{kept}");
        assert_eq!(kept["note"], "well said");
    }
    daemon.stop();
}

#[test]
fn others_go_on_while_one_waits() {
    let workspace = bed();
    workspace.write("workerctl.yaml", "max_parallel: 1\ntrees: {max: 1}\n");
    workspace.commit_all("one place, one tree");
    let daemon = Daemon::start(&workspace);
    let waiting = [
        asked(&workspace, &["change"]),
        asked(&workspace, &["say"]),
        asked(&workspace, &["change"]),
        asked(&workspace, &["first"]),
    ];
    // Of the same worker, in the same repository, with the one place and the one tree; a checkpoint alone asks nobody.
    let plain = workspace.run(&["run", "plain"]).expect_code(0).stdout;
    assert!(plain.contains("somebody could look"), "{plain}");
    let status = workspace.json(&["status"]);
    assert_eq!(status["awaiting_approval_count"], 4, "{status}");
    assert_eq!(status["trees"]["in_use"], 0, "{status}");
    for run in waiting.iter().rev() {
        workspace.run(&["approve", run, "-q"]);
    }
    let outcomes: Vec<String> = waiting
        .iter()
        .map(|run| outcome(&ended(&workspace, run)).to_owned())
        .collect();
    // Two of them change the same file: the later approval finds it changed.
    assert_eq!(outcomes, ["failed", "succeeded", "succeeded", "succeeded"]);
    daemon.stop();
}

#[test]
fn what_git_ignores_alone_waits_and_is_published() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    let run = asked(&workspace, &["ignored-only"]);
    assert_eq!(workspace.read("ignored/only.md"), None);
    assert!(workspace.show(&run)["approval"]["result"]["commit"].is_null());
    workspace.run(&["approve", &run]).expect_code(0);
    assert_eq!(
        workspace.read("ignored/only.md").as_deref(),
        Some("# only\n")
    );
    let refused = asked(&workspace, &["ignored-only"]);
    workspace.write("ignored/only.md", "a person's\n");
    workspace
        .run(&["deny", &refused, "--note", "no"])
        .expect_code(0);
    assert_eq!(outcome(&ended(&workspace, &refused)), "denied");
    assert_eq!(
        workspace.read("ignored/only.md").as_deref(),
        Some("a person's\n")
    );
    daemon.stop();
}

#[test]
fn a_command_waits_before_it_starts_and_its_values_are_shown() {
    let workspace = bed();
    let daemon = Daemon::start(&workspace);
    let done = workspace
        .run(&["run", "say", "-i", "who=Ada"])
        .expect_code(6);
    for shown in [
        "its command waits for approval",
        "who = Ada",
        "workerctl approve",
    ] {
        assert!(done.stderr.contains(shown), "{shown}: {done:?}");
    }
    assert_eq!(ran(&workspace), 0);
    let run = workspace.json(&["runs", "--awaiting"])["runs"][0]["run"].clone();
    let done = workspace
        .run(&["approve", run.as_str().unwrap()])
        .expect_code(0);
    assert!(done.stderr.contains("hello Ada"), "{done:?}");
    assert_eq!(ran(&workspace), 1);
    daemon.stop();
}

#[test]
fn a_skill_says_whether_its_command_or_its_result_is_approved() {
    let workspace = bed();
    for (skill, said) in [
        ("first", "a person has to approve its command"),
        ("change", "a person has to approve its result"),
    ] {
        let shown = workspace.run(&["skill", "show", skill]).stdout;
        assert!(shown.contains(said), "{shown}");
    }
    let plain = workspace.json(&["skill", "show", "plain"]);
    assert!(plain["approval"].is_null(), "{plain}");
}

#[test]
fn without_a_daemon_it_waits_in_the_store_and_the_command_that_approves_lands_it() {
    let workspace = bed();
    workspace.run(&["run", "change"]).expect_code(6);
    let run = workspace.json(&["runs"])["runs"][0]["run"].clone();
    let run = run.as_str().unwrap();
    until_asked(&workspace, run);
    workspace
        .run(&["wait", run, "--timeout", "1ms"])
        .expect_code(124);
    workspace.run(&["approve", run]).expect_code(0);
    assert_eq!(workspace.read("own.txt"), Some(format!("{run}\n")));
    assert_eq!(workspace.committed_runs(), [run]);
}
