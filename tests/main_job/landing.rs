//! A commit that could not land when its run ended: landed later exactly once, or discarded.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};
use workerctl_landing::{FileJournal, LogLine, Observer, Request, land};

use crate::workspace::daemon::Daemon;
use crate::workspace::gate::Gate;
use crate::workspace::{Workspace, eventually};

const SKILLS: &str = r#"
  - id: change
    description: d
    mutating: true
    run: "echo changed >> tracked.txt"
    hooks: {post_commit: ["echo told >> \"$HOME/told\""]}
  - {id: fails, description: d, mutating: true, run: "echo changed >> tracked.txt; exit 3"}
"#;

const PERSONS: &str = "a person's work\n";

fn workspace() -> Workspace {
    let gated = Gate::text("g");
    let gated = format!("  - {{id: gated, description: d, mutating: true, run: '{gated}'}}\n");
    let workspace = Workspace::with_skills(&(SKILLS.to_owned() + &gated));
    workspace.write("workerctl.yaml", "land_wait: 1s\n");
    workspace.commit_all("configuration");
    workspace
}

/// A run whose commit a changed file keeps off its branch; the file is left as it is.
fn kept_run(workspace: &Workspace) -> String {
    workspace.write("tracked.txt", PERSONS);
    let detail = workspace.run(&["run", "change", "--json"]).expect_code(1);
    let detail = detail.value();
    let failure = &detail["summary"]["outcome"]["failure"];
    assert_eq!(failure["step"], "land", "{failure}");
    assert_eq!(failure["code"], "checkout_dirty", "{failure}");
    assert_eq!(workspace.read("tracked.txt").unwrap(), PERSONS);
    assert_eq!(detail["summary"]["commit"], Value::Null);
    let run = detail["summary"]["run"].as_str().unwrap().to_owned();
    let message = failure["message"].as_str().unwrap();
    for told in ["tracked.txt", "it waited 1.0s", "workerctl land"] {
        assert!(message.contains(told), "{message}");
    }
    assert_eq!(
        detail["summary"]["kept_commit"],
        *commit_of(workspace, &run)
    );
    run
}

fn reference(run: &str) -> String {
    format!("refs/workerctl/runs/{run}/commit")
}

fn commit_of(workspace: &Workspace, run: &str) -> String {
    let commit = workspace.git(&["rev-parse", &reference(run)]);
    commit.trim().to_owned()
}

fn head(workspace: &Workspace) -> String {
    workspace.git(&["rev-parse", "HEAD"]).trim().to_owned()
}

/// The code of a refusal with this exit code.
fn refused(workspace: &Workspace, arguments: &[&str], exit: i32) -> String {
    let done = workspace.run(&[arguments, &["--json"]].concat());
    done.expect_code(exit).refusal()
}

fn kept_runs(workspace: &Workspace) -> Vec<String> {
    let status = workspace.json(&["status"]);
    let kept = status["kept_runs"].as_array().unwrap().iter();
    let kept: Vec<_> = kept
        .map(|one| one["run"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(status["kept_commit_count"], kept.len());
    kept
}

#[test]
fn quiet_or_not_a_run_names_its_branch_and_what_can_be_done_with_what_was_kept() {
    let workspace = workspace();
    let done = workspace.run(&["run", "change"]).expect_code(0).stdout;
    let head = workspace.git(&["rev-parse", "HEAD"]);
    assert!(
        done.contains(&format!("{}  on main", head.trim())),
        "{done}"
    );
    workspace.write("tracked.txt", PERSONS);
    let quiet = workspace.run(&["run", "change", "-q"]).expect_code(1);
    let run = &quiet.stdout[quiet.stdout.rfind("run ").unwrap() + 4..].trim();
    assert!(
        quiet.stderr.contains(&format!("`workerctl land {run}`")),
        "{}",
        quiet.stderr
    );
}

#[test]
fn a_commit_that_a_changed_file_kept_off_its_branch_lands_later_exactly_once() {
    let workspace = workspace();
    let before = head(&workspace);
    let run = kept_run(&workspace);
    let commit = commit_of(&workspace, &run);
    assert_eq!(kept_runs(&workspace), [run.as_str()]);
    let listed = workspace.run(&["runs"]).stdout;
    assert!(listed.contains("failed (land), commit kept"), "{listed}");
    let shown = workspace.run(&["show", &run]).stdout;
    for told in ["on no branch", "`workerctl land ", "`workerctl discard "] {
        assert!(shown.contains(told), "{shown}");
    }
    let status = workspace.run(&["status"]).stdout;
    assert!(status.contains("1 commit not on any branch"), "{status}");
    let doctor = workspace.run(&["doctor"]).expect_code(1).stdout;
    assert!(doctor.contains("1 commit not on any branch"), "{doctor}");

    assert_eq!(refused(&workspace, &["land", &run], 6), "checkout_dirty");
    assert_eq!(workspace.read("tracked.txt").unwrap(), PERSONS);
    assert_eq!(head(&workspace), before);

    workspace.git(&["stash"]);
    let landed = workspace.json(&["land", &run]);
    assert_eq!(
        (&landed["commit"], &landed["branch"]),
        (&json!(commit), &json!("main"))
    );
    assert_eq!(landed["run"]["outcome"]["kind"], "succeeded", "{landed}");
    let notes = json!(["its `post_commit` hook was not run"]);
    assert_eq!(landed["notes"], notes);
    assert!(!workspace.home.join("told").exists());
    assert_eq!(head(&workspace), commit);
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    assert_eq!(
        workspace.read("tracked.txt").unwrap(),
        "as committed\nchanged\n"
    );
    assert_eq!(workspace.committed_runs(), [run.as_str()]);
    assert_eq!(workspace.git(&["for-each-ref", "refs/workerctl"]), "");

    let detail = workspace.json(&["show", &run]);
    assert_eq!(detail["summary"]["commit"], *commit);
    assert_eq!(detail["summary"]["kept_commit"], Value::Null);
    assert_eq!(detail["results"]["commit"]["is"], "passed");
    let thread = std::fs::read_to_string(detail["thread_path"].as_str().unwrap()).unwrap();
    let thread: Value = serde_json::from_str(&thread).unwrap();
    assert_eq!(thread["git"]["current_commit"], *commit, "{thread}");
    workspace.run(&["threads", "verify", &run]).expect_code(0);
    workspace.run(&["store", "verify"]).expect_code(0);

    for command in ["land", "discard"] {
        assert_eq!(refused(&workspace, &[command, &run], 8), "landed_already");
    }
    assert!(kept_runs(&workspace).is_empty());
    workspace.git(&["fsck", "--strict"]);
}

/// A `land` that was killed after it had moved the branch has recorded nothing.
#[test]
fn a_commit_that_is_on_its_branch_is_neither_discarded_nor_made_again() {
    let workspace = workspace();
    let run = kept_run(&workspace);
    let commit = commit_of(&workspace, &run);
    workspace.git(&["checkout", "tracked.txt"]);
    workspace.git(&["merge", "-q", "--ff-only", &commit]);
    for command in ["discard", "retry"] {
        assert_eq!(refused(&workspace, &[command, &run], 8), "landed_already");
    }
    workspace.run(&["land", &run]).expect_code(0);
    assert_eq!(head(&workspace), commit);
    assert!(kept_runs(&workspace).is_empty());
    workspace.run(&["retry", &run]).expect_code(0);
}

#[test]
fn a_commit_that_is_discarded_no_longer_lands() {
    let workspace = workspace();
    let before = head(&workspace);
    let run = kept_run(&workspace);
    let commit = commit_of(&workspace, &run);
    let done = workspace.run(&["discard", &run]).expect_code(0);
    assert!(done.stderr.contains(&commit), "{done:?}");
    assert_eq!(workspace.git(&["for-each-ref", "refs/workerctl"]), "");
    let again = workspace.json(&["discard", &run]);
    assert_eq!(again["reference_count"], 0);
    assert_eq!(again["commit"], *commit);
    assert_eq!(again["run"]["outcome"]["kind"], "failed");
    assert!(kept_runs(&workspace).is_empty());
    workspace.git(&["checkout", "tracked.txt"]);
    assert_eq!(refused(&workspace, &["land", &run], 8), "discarded");
    assert_eq!(head(&workspace), before);
    // The hint of that refusal works as long as git has the commit.
    workspace.git(&["cherry-pick", &commit]);
    workspace.run(&["threads", "verify", &run]).expect_code(0);
}

#[test]
fn a_commit_whose_branch_has_moved_is_left_to_the_person() {
    let workspace = workspace();
    let run = kept_run(&workspace);
    workspace.git(&["checkout", "tracked.txt"]);
    workspace.write("other.txt", "other\n");
    workspace.commit_all("other");
    let moved = head(&workspace);
    let done = workspace.run(&["land", &run]).expect_code(8);
    let picks = format!("git cherry-pick {}", reference(&run));
    for told in [&moved, &picks, "workerctl diff ", "workerctl retry "] {
        assert!(done.stderr.contains(told), "{done:?}");
    }
    assert_eq!(refused(&workspace, &["land", &run], 8), "conflict");
    assert_eq!(head(&workspace), moved);
    assert_eq!(kept_runs(&workspace), [run.as_str()]);

    workspace.git(&["cherry-pick", &reference(&run)]);
    workspace.write("tracked.txt", "and on\n");
    workspace.commit_all("on");
    assert_eq!(refused(&workspace, &["land", &run], 8), "landed_already");
    workspace.git(&["reset", "-q", "--hard", &moved]);
    assert_eq!(refused(&workspace, &["land", &run], 8), "landed_already");
    workspace.run(&["discard", &run]).expect_code(0);

    let run = kept_run(&workspace);
    workspace.commit_all("the same file");
    let done = workspace.run(&["land", &run]).expect_code(8);
    assert!(
        done.stderr
            .contains("which changed what the run changed: `tracked.txt`"),
        "{done:?}"
    );
}

#[test]
fn a_run_that_is_cancelled_while_it_waits_to_land_can_land_later() {
    let workspace = workspace();
    workspace.write("workerctl.yaml", "land_wait: 1h\n");
    workspace.commit_all("a long wait");
    workspace.write("tracked.txt", PERSONS);
    let daemon = Daemon::start(&workspace);
    let run = workspace.json(&["run", "change", "--no-wait"]);
    let run = run["run"].as_str().unwrap();
    eventually("it waits to land", || {
        let timeline = workspace.json(&["show", run])["timeline"].to_string();
        timeline.contains("landing_waiting").then_some(())
    });
    workspace.run(&["cancel", run]).expect_code(0);
    workspace.run(&["wait", run]).expect_code(130);
    assert_eq!(kept_runs(&workspace), [run]);
    workspace.git(&["checkout", "tracked.txt"]);
    let landed = workspace.json(&["land", run]);
    assert_eq!(landed["run"]["outcome"]["kind"], "succeeded");
    assert_eq!(workspace.committed_runs(), [run]);
    daemon.stop();
}

#[test]
fn a_commit_whose_branch_is_gone_lands_once_the_branch_is_made_again() {
    let workspace = workspace();
    let run = kept_run(&workspace);
    workspace.git(&["checkout", "tracked.txt"]);
    let before = head(&workspace);
    workspace.git(&["switch", "-q", "-c", "elsewhere"]);
    workspace.git(&["branch", "-D", "main"]);
    assert_eq!(refused(&workspace, &["land", &run], 8), "branch_gone");
    let done = workspace.run(&["land", &run]);
    let remedy = format!("git branch main {before}");
    assert!(done.stderr.contains(&remedy), "{done:?}");
    workspace.git(&["branch", "main", &before]);
    let landed = workspace.json(&["land", &run]);
    assert_eq!(
        workspace.git(&["rev-parse", "main"]).trim(),
        landed["commit"]
    );
    // A checkout of another branch is left as it is.
    assert_eq!(head(&workspace), before);
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_is_at_work_in_the_repository_is_waited_for_and_named() {
    let workspace = workspace();
    let run = kept_run(&workspace);
    workspace.git(&["checkout", "tracked.txt"]);
    workspace.write(".git/index.lock", "");
    let done = workspace.run(&["land", &run]).expect_code(8);
    assert!(done.stderr.contains("index.lock` exists"), "{done:?}");
    assert_eq!(workspace.read(".git/index.lock").unwrap(), "");
    std::fs::remove_file(workspace.root.join(".git/index.lock")).unwrap();
    let daemon = Daemon::start(&workspace);
    let done = workspace.run(&["land", &run]).expect_code(0);
    daemon.stop();
    let told = format!("{} on `main`", head(&workspace));
    assert!(done.stderr.contains(&told), "{done:?}");
    assert_eq!(workspace.committed_runs(), [run]);
}

#[test]
fn runs_without_a_commit_that_waits_are_refused_by_name() {
    let workspace = workspace();
    let succeeded = workspace.json(&["run", "change"]);
    let succeeded = succeeded["summary"]["run"].as_str().unwrap();
    let failed = workspace.run(&["run", "fails", "--json"]).expect_code(1);
    let failed = failed.value()["summary"]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let swept = kept_run(&workspace);
    workspace.git(&["update-ref", "-d", &reference(&swept)]);
    let before = head(&workspace);
    for command in ["land", "discard"] {
        assert_eq!(
            refused(&workspace, &[command, succeeded], 8),
            "landed_already"
        );
        assert_eq!(refused(&workspace, &[command, &failed], 3), "nothing_kept");
        assert_eq!(
            refused(&workspace, &[command, "ZZZZZZZZ"], 3),
            "run_not_found"
        );
    }
    assert_eq!(refused(&workspace, &["land", &swept], 3), "nothing_kept");
    workspace.run(&["discard", &swept]).expect_code(0);

    let mut gate = Gate::new(&workspace, "g");
    let daemon = Daemon::start(&workspace);
    let run = workspace.json(&["run", "gated", "--no-wait"]);
    let run = run["run"].as_str().unwrap();
    gate.reached();
    for command in ["land", "discard"] {
        assert_eq!(refused(&workspace, &[command, run], 8), "under_way");
    }
    gate.pass();
    workspace.run(&["wait", run]).expect_code(0);
    assert_eq!(head(&workspace), before);
    daemon.stop();
}

/// Panics before a step, as a kill would end it there.
struct KilledBefore(&'static str);

impl Observer for KilledBefore {
    fn before(&self, step: &str) {
        assert!(!step.starts_with(self.0), "killed");
    }
}

/// The reflog entry of a landing.
pub(crate) fn log_line() -> LogLine {
    LogLine {
        name: "Ada".to_owned(),
        email: "ada@example.com".to_owned(),
        time_s: 1_795_000_000,
        offset_min: 0,
        message: "workerctl".to_owned(),
    }
}

/// Lands as `land` does, and is killed.
fn land_and_die(workspace: &Workspace, run: &str, step: &'static str) {
    let landings = workspace.state().join("landings");
    let from = head(workspace).parse().unwrap();
    let to = commit_of(workspace, run).parse().unwrap();
    let log = log_line();
    let request = Request {
        repository: &workspace.root,
        run: &run.parse().unwrap(),
        target: "refs/heads/main",
        from: Some(&from),
        to: &to,
        earlier: &[],
        log: &log,
    };
    let mut journal = FileJournal::new(&landings.join(run));
    let killed = catch_unwind(AssertUnwindSafe(|| {
        land(&request, &mut journal, &KilledBefore(step))
    }));
    assert!(killed.is_err(), "{step}");
}

#[test]
fn a_landing_that_was_killed_is_named_and_ended_by_the_next_command_and_recorded_once() {
    for step in ["exchange a file", "log the branch"] {
        let workspace = workspace();
        let run = kept_run(&workspace);
        let commit = commit_of(&workspace, &run);
        workspace.git(&["checkout", "tracked.txt"]);
        land_and_die(&workspace, &run, step);
        let lock = workspace.root.join(".git/index.lock");
        assert!(lock.exists(), "{step}");

        let done = workspace.run(&["doctor", "--json"]).expect_code(1).value();
        let findings = done["findings"].as_array().unwrap();
        let left: Vec<&Value> = findings
            .iter()
            .filter(|one| one["name"] == "landing")
            .collect();
        assert_eq!(left.len(), 1, "{done}");
        let message = left[0]["message"].as_str().unwrap();
        assert!(
            message.contains(&run) && message.contains(lock.to_str().unwrap()),
            "{message}"
        );
        assert!(
            left[0]["hints"][0]
                .as_str()
                .unwrap()
                .contains("`workerctl status`")
        );
        assert!(
            findings.iter().all(|one| one["name"] != "git lock"),
            "{done}"
        );

        workspace.json(&["status"]);
        assert!(!lock.exists(), "{step}");
        assert_eq!(workspace.git(&["status", "--porcelain"]), "", "{step}");
        assert_eq!(head(&workspace), commit, "{step}");
        let landed = workspace.json(&["land", &run]);
        assert_eq!(landed["commit"], *commit);
        assert_eq!(workspace.committed_runs(), [run.as_str()]);
        assert_eq!(refused(&workspace, &["land", &run], 8), "landed_already");
        let done = workspace.run(&["doctor", "--json"]).value();
        assert!(!done.to_string().contains("\"landing\""), "{done}");
    }
}

#[test]
fn status_and_doctor_tell_of_the_trees_and_of_a_place_that_cannot_be_used() {
    let workspace = workspace();
    workspace.json(&["run", "change"]);
    let place = workspace.state().join("trees");
    let trees = workspace.json(&["status"])["trees"].clone();
    assert_eq!(trees["place"], *place.to_str().unwrap(), "{trees}");
    assert_eq!((&trees["count"], &trees["in_use"]), (&json!(1), &json!(0)));
    assert!(trees["bytes"].as_u64().unwrap() > 0, "{trees}");
    let told = workspace.run(&["doctor"]).stdout;
    assert!(told.contains("1 tree, 0 in use"), "{told}");

    std::fs::remove_dir_all(&place).unwrap();
    std::fs::write(&place, "in the way").unwrap();
    let trees = workspace.json(&["status"])["trees"].clone();
    let problem = trees["problem"].as_str().unwrap();
    assert!(problem.contains("is not a directory"), "{problem}");
    let told = workspace.run(&["doctor"]).expect_code(1).stdout;
    assert!(told.contains("is not a directory"), "{told}");

    std::fs::remove_file(&place).unwrap();
    workspace.write("workerctl.yaml", "trees: {min_free: 1000TiB}\n");
    let trees = workspace.json(&["status"])["trees"].clone();
    let problem = trees["problem"].as_str().unwrap();
    assert!(problem.contains("`trees.min_free`"), "{problem}");
}

#[test]
fn a_schedule_whose_run_lands_later_has_succeeded() {
    let skill = r#"
  - id: due
    description: d
    mutating: true
    run: "echo changed >> tracked.txt"
    schedule: {every: 1s, max_actions: 1}
"#;
    let workspace = Workspace::with_skills(skill);
    workspace.write("workerctl.yaml", "land_wait: 1s\n");
    workspace.commit_all("configuration");
    workspace.write("tracked.txt", PERSONS);
    let daemon = Daemon::start(&workspace);
    let schedule = || workspace.json(&["schedule", "list"])["schedules"][0].clone();
    eventually("its run has failed", || {
        (schedule()["failure_count"] == 1).then_some(())
    });
    let run = kept_runs(&workspace).remove(0);
    workspace.git(&["checkout", "tracked.txt"]);
    workspace.json(&["land", &run]);
    let seen = schedule();
    assert_eq!(seen["failure_count"].as_u64().unwrap_or(0), 0, "{seen}");
    assert!(!seen["succeeded_at"].is_null(), "{seen}");
    daemon.stop();
}
