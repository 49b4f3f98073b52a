//! A configuration that is broken while no good one is known: nothing is run by defaults.

use crate::workspace::daemon::Daemon;
use crate::workspace::{Workspace, eventually};

const SKILLS: &str = r#"
  - {id: good, description: d, run: "true"}
  - {id: timed, description: d, run: "true", schedule: {cron: "0 3 * * *"}}
"#;
const BROKEN: &str = "timezone: Mars/Olympus\n";

#[test]
fn every_way_in_is_refused_until_it_is_repaired() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.run(&["run", "good"]).expect_code(0);
    workspace.write("workerctl.yaml", BROKEN);
    let ways: [&[&str]; 6] = [
        &["run", "good"],
        &["run", "--dry-run", "good"],
        &["render", "good"],
        &["retry", "latest"],
        &["schedule", "trigger", "w/timed"],
        &[
            "schedule",
            "backfill",
            "w/timed",
            "--from",
            "2026-01-01",
            "--to",
            "now",
        ],
    ];
    let are_refused = |ways: &[&[&str]]| {
        for arguments in ways {
            let refused = workspace.run(arguments).expect_code(4);
            let said = &refused.stderr;
            assert!(said.contains("workerctl.yaml:1:"), "{arguments:?}: {said}");
            assert!(said.contains("no valid configuration"), "{said}");
            assert!(said.contains("hint: repair `workerctl.yaml`"), "{said}");
        }
    };
    // Schedules are the daemon's.
    are_refused(&ways[..4]);
    let daemon = Daemon::start(&workspace);
    are_refused(&ways);
    let no_wait = workspace.run(&["run", "--no-wait", "good", "--json"]);
    assert_eq!(no_wait.expect_code(4).refusal(), "config_unknown");
    assert_eq!(
        workspace.json(&["runs"])["runs"].as_array().unwrap().len(),
        1
    );
    workspace.write("workerctl.yaml", "timezone: Europe/Berlin\n");
    workspace.run(&["reload"]).expect_code(0);
    workspace.run(&["run", "good"]).expect_code(0);
    workspace
        .run(&["schedule", "trigger", "w/timed"])
        .expect_code(0);
    // A good one is known by now, and stays in force.
    workspace.write("workerctl.yaml", BROKEN);
    workspace.run(&["reload"]);
    eventually("the daemon has read it", || {
        let status = workspace.json(&["status"]);
        (status["error_count"] != 0).then_some(())
    });
    workspace.run(&["run", "good"]).expect_code(0);
    assert_eq!(workspace.json(&["status"])["timezone"], "Europe/Berlin");
    daemon.stop();
}
