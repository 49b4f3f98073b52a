//! A full disk under repository and state while runs are under way: the daemon stays, refuses new work and
//! says why, goes on by itself once there is space, and has lost nothing.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` sets how often the disk fills up (2 by default). Without root it is
//! skipped.

use crate::workspace;

use std::collections::BTreeSet;
use std::time::Duration;

use workspace::daemon::Daemon;
use workspace::disk::Small;
use workspace::gate::Gate;
use workspace::{Done, Started, Workspace, eventually, rounds};

const SKILLS: &str = r#"
  - {id: read, description: d, run: "echo read", interface: {inputs: [{name: filler, default: ""}]}}
  - id: gated
    description: d
    mutating: true
    run: 'echo x >> tracked.txt; GATE'
  - id: fails
    description: d
    mutating: true
    run: 'echo x >> tracked.txt; echo new > new.txt; GATE; false'
  - {id: renews, description: d, mutating: true, run: "{ echo $WORKERCTL_RUN; head -c 12000000 /dev/zero; } > renewed.bin"}
  - {id: fills, description: d, mutating: true, run: "head -c 300000000 /dev/zero > big.bin"}
"#;

/// What came of filling the disk.
#[derive(Default)]
struct Filling {
    acknowledged: BTreeSet<String>,
    /// Requests that were being stored when the disk became full: they wait for space.
    waiting: Vec<Started>,
}

impl Filling {
    fn note(&mut self, done: &Done) {
        let run = done.value()["run"].as_str().unwrap().to_owned();
        self.acknowledged.insert(run);
    }

    /// Fills the disk again and again until a request is refused for it.
    fn until_refused(&mut self, workspace: &Workspace, small: &Small) -> Done {
        eventually("a request is refused because the disk is full", || {
            // What the store kept in reserve is given back first, and is taken here as well.
            small.fill();
            let mut command = workspace.workerctl(&["run", "--no-wait", "read", "--json"]);
            let mut started = workspace.start(&mut command);
            if !started.ends_within(Duration::from_secs(3)) {
                self.waiting.push(started);
                return None;
            }
            let done = started.end();
            if done.code == 0 {
                self.note(&done);
                return None;
            }
            Some(done)
        })
    }

    /// There is space again: what waited is accepted after all, or was told how to find out.
    fn accepted(&mut self, workspace: &Workspace) {
        for started in std::mem::take(&mut self.waiting) {
            let done = repeated(workspace, started.end(), &[]);
            self.note(&done.expect_code(0));
        }
    }
}

/// Repeats a submission of which nothing was known with its key, as its hint says.
fn repeated(workspace: &Workspace, done: Done, input: &[&str]) -> Done {
    if done.code == 0 {
        return done;
    }
    assert_eq!(
        (done.code, done.refusal().as_str()),
        (9, "disk_full_open"),
        "{done:?}"
    );
    let (_, rest) = done.stderr.split_once("--key ").unwrap();
    let key = rest.split_once('`').unwrap().0;
    let arguments = ["run", "--no-wait", "read", "--json", "--key", key];
    workspace.run(&[&arguments, input].concat())
}

#[test]
fn a_full_disk_refuses_work_and_loses_nothing() {
    let Some(small) = Small::create(96) else {
        return;
    };
    let workspace = Workspace::on(small.path());
    workspace.furnish(&SKILLS.replace("GATE", &Gate::text("gate")));
    let mut gate = Gate::new(&workspace, "gate");
    let mut daemon = Daemon::start(&workspace);
    let mut filling = Filling::default();
    for round in 0..rounds(2) {
        let gated = workspace.submit(&["gated"]);
        assert_eq!(gate.reached().0, gated);
        let done = filling.until_refused(&workspace, &small);
        assert_eq!(
            (done.code, done.refusal().as_str()),
            (6, "disk_full"),
            "round {round}: {done:?}"
        );
        assert!(daemon.lives(), "{}", daemon.log());
        // What stands at the gate ends while there is no space.
        gate.pass();
        let again = filling.until_refused(&workspace, &small);
        assert_eq!(again.code, 6, "{again:?}: {}", daemon.log());

        small.free();
        eventually("the daemon takes work again", || {
            (workspace.json(&["status"])["condition"] == "ready").then_some(())
        });
        filling.accepted(&workspace);
        filling.acknowledged.insert(workspace.submit(&["read"]));
        let (code, detail) = workspace.wait(&gated);
        let kind = detail["summary"]["outcome"]["kind"].as_str().unwrap();
        assert!(["succeeded", "failed"].contains(&kind), "{code}: {detail}");
        let committed = workspace.committed_runs().contains(&gated);
        assert_eq!(committed, kind == "succeeded", "{detail}");
        // Putting back needs space too, and waits for it.
        assert_eq!(detail["not_restored"], serde_json::json!([]), "{detail}");
        assert_eq!(workspace.git(&["status", "--porcelain"]), "", "{detail}");
        filling.acknowledged.insert(gated);
    }
    workspace.wait_until_idle();
    let runs = workspace.runs();
    let lost: Vec<_> = filling
        .acknowledged
        .iter()
        .filter(|run| !runs.contains_key(*run))
        .collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    workspace.git(&["fsck", "--strict"]);
    assert!(daemon.lives());
    daemon.stop();
    workspace.expect_no_process();
    // The next one finds everything as well.
    let daemon = Daemon::start(&workspace);
    assert_eq!(workspace.runs().len(), runs.len());
    workspace
        .run(&["threads", "verify", "--all"])
        .expect_code(0);
    daemon.stop();
}

#[test]
fn a_submission_that_meets_the_full_disk_is_told_so_and_repeated_makes_no_second_run() {
    let Some(small) = Small::create(96) else {
        return;
    };
    let workspace = Workspace::on(small.path());
    workspace.furnish(&SKILLS.replace("GATE", &Gate::text("gate")));
    // While one run stands at the gate nothing but submissions is stored.
    workspace.write("workerctl.yaml", "max_parallel: 1\n");
    let mut gate = Gate::new(&workspace, "gate");
    let mut daemon = Daemon::start(&workspace);
    let gated = workspace.submit(&["gated"]);
    assert_eq!(gate.reached().0, gated);
    let mut acknowledged = 0;
    let filler = format!("filler={}", "x".repeat(60_000));
    let open = eventually("a submission is not stored", || {
        small.fill();
        let done = workspace.run(&["run", "--no-wait", "read", "-i", &filler, "--json"]);
        acknowledged += usize::from(done.code == 0);
        (done.code != 0).then_some(done)
    });
    assert!(open.stderr.contains("workerctl runs"), "{open:?}");
    assert!(daemon.lives(), "{}", daemon.log());
    small.free();
    eventually("the daemon takes work again", || {
        (workspace.json(&["status"])["condition"] == "ready").then_some(())
    });
    let done = repeated(&workspace, open, &["-i", &filler]).expect_code(0);
    assert_eq!(done.value()["existing"], true, "{done:?}");
    gate.pass();
    workspace.wait_until_idle();
    assert_eq!(workspace.runs().len(), 1 + acknowledged + 1);
    daemon.stop();
}

#[test]
fn a_command_that_hosts_the_engine_does_not_stay_with_the_full_disk() {
    let Some(small) = Small::create(96) else {
        return;
    };
    let workspace = Workspace::on(small.path());
    workspace.furnish(SKILLS);
    workspace.run(&["run", "read"]).expect_code(0);
    // The store has no reserve, and so meets the full disk with its first record.
    small.fill();
    let done = eventually("the store has given its reserve back", || {
        small.fill();
        let done = workspace.run(&["run", "read", "--json"]);
        (done.code != 0).then_some(done)
    });
    assert!([6, 9].contains(&done.code), "{done:?}");
    assert!(done.refusal().starts_with("disk_full"), "{done:?}");
    small.free();
    workspace.run(&["run", "read"]).expect_code(0);
    workspace.expect_no_process();
}

#[test]
fn a_file_system_without_free_inodes_is_named() {
    let Some(small) = Small::create(96) else {
        return;
    };
    let workspace = Workspace::on(small.path());
    workspace.furnish(SKILLS);
    let renewed = ["run", "renews"];
    workspace.run(&renewed).expect_code(0);
    small.take_inodes();
    // A command that starts an engine, and a run of one that was started before.
    let refused = workspace.run(&renewed);
    small.limit_inodes(100_000);
    let daemon = Daemon::start(&workspace);
    workspace.run(&renewed).expect_code(0);
    small.take_inodes();
    let failed = workspace.run(&renewed);
    small.limit_inodes(100_000);
    for done in [refused, failed] {
        let told = format!("{}{}", done.stdout, done.stderr);
        assert_ne!(done.code, 0, "{told}");
        assert!(told.contains("no free inodes"), "{told}");
        assert!(told.contains("`df -i`"), "{told}");
        assert!(!told.contains("free some space"), "{told}");
    }
    workspace.run(&renewed).expect_code(0);
    daemon.stop();
}

#[test]
fn a_run_that_fills_the_disk_fails_and_leaves_its_space() {
    let Some(small) = Small::create(120) else {
        return;
    };
    let workspace = Workspace::on(small.path());
    workspace.furnish(&SKILLS.replace("GATE", "true"));
    let daemon = Daemon::start(&workspace);
    for _ in 0..2 {
        let run = workspace.submit(&["fills"]);
        let (code, detail) = workspace.wait(&run);
        assert_eq!(code, 1, "{detail}");
        let said = detail["summary"]["outcome"].to_string();
        assert!(said.contains("No space left"), "{said}");
        let good = workspace.submit(&["gated"]);
        assert_eq!(workspace.wait(&good).0, 0);
    }
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    assert_eq!(workspace.committed_runs().len(), 2);
    workspace.git(&["fsck", "--strict"]);
    daemon.stop();
    workspace.expect_no_process();
}

#[test]
fn what_landings_replaced_goes_when_another_one_needs_its_space() {
    let Some(small) = Small::create(120) else {
        return;
    };
    let workspace = Workspace::on(small.path());
    workspace.furnish(&SKILLS.replace("GATE", "true"));
    let daemon = Daemon::start(&workspace);
    for _ in 0..12 {
        let run = workspace.submit(&["renews"]);
        let (code, detail) = workspace.wait(&run);
        assert_eq!(code, 0, "{detail}: {}", daemon.log());
    }
    assert_eq!(workspace.git(&["status", "--porcelain"]), "");
    assert_eq!(workspace.committed_runs().len(), 12);
    daemon.stop();
    workspace.expect_no_process();
}

/// A run that ends while there is no space for its thread, by way of `then`; whether a run has no summary yet.
fn ended_without_space(
    workspace: &Workspace,
    small: &Small,
    then: impl FnOnce(Daemon, &dyn Fn() -> bool),
) {
    workspace.furnish(&format!(
        "  - id: waits\n    description: d\n    run: '{}; echo done'\n  - {{id: read, description: d, run: echo read}}\n",
        Gate::text("gate")
    ));
    let mut gate = Gate::new(workspace, "gate");
    workspace.run(&["run", "read"]).expect_code(0);
    let daemon = Daemon::start(workspace);
    let waits = workspace.submit(&["waits"]);
    assert_eq!(gate.reached().0, waits);
    small.fill();
    gate.pass();
    workspace.wait(&waits);
    let lacks_summary = || {
        let shown = workspace.json(&["show", &waits]);
        !std::path::Path::new(shown["thread_path"].as_str().unwrap()).exists()
    };
    assert!(lacks_summary(), "{}", daemon.log());
    then(daemon, &lacks_summary);
    workspace
        .run(&["threads", "verify", "--all"])
        .expect_code(0);
    let store = workspace.run(&["store", "verify"]).expect_code(0);
    assert!(store.stdout.contains("sound"), "{store:?}");
}

#[test]
fn a_summary_that_found_no_space_is_written_when_there_is_some() {
    let Some(small) = Small::create(96) else {
        return;
    };
    let workspace = Workspace::with_repository_on(small.path());
    ended_without_space(&workspace, &small, |daemon, lacks_summary| {
        small.free();
        eventually("the summary is written", || {
            (!lacks_summary()).then_some(())
        });
        daemon.stop();
    });
}

#[test]
fn a_summary_that_found_no_space_is_written_by_the_next_engine() {
    for is_killed in [false, true] {
        let Some(small) = Small::create(96) else {
            return;
        };
        let workspace = Workspace::with_repository_on(small.path());
        ended_without_space(&workspace, &small, |daemon, lacks_summary| {
            if is_killed {
                daemon.kill();
            } else {
                daemon.stop();
            }
            assert!(lacks_summary());
            small.free();
            workspace.run(&["run", "read"]).expect_code(0);
        });
    }
}

/// A thread that an earlier version left without a summary gets one.
#[test]
fn a_summary_that_is_missing_is_written_by_a_sweep() {
    let workspace = Workspace::with_skills("  - {id: read, description: d, run: echo read}\n");
    let run = workspace.json(&["run", "read"]);
    let id = run["summary"]["run"].as_str().unwrap();
    let shown = workspace.json(&["show", id]);
    let summary = std::path::Path::new(shown["thread_path"].as_str().unwrap());
    std::fs::remove_file(summary).unwrap();
    workspace
        .run(&["threads", "verify", "--all"])
        .expect_code(1);
    std::fs::remove_file(workspace.state().join("forgotten")).unwrap();
    let daemon = Daemon::start(&workspace);
    workspace.run(&["run", "read"]).expect_code(0);
    eventually("the daemon logs that it wrote the summary", || {
        let log = daemon.log();
        log.contains("summaries that threads lacked").then_some(())
    });
    assert!(summary.exists());
    daemon.stop();
    let verified = workspace
        .run(&["threads", "verify", "--all"])
        .expect_code(0);
    assert!(
        verified.stdout.contains("1 without a recorded end"),
        "{verified:?}"
    );
}
