//! What people and monitoring systems ask every day: counts of runs, and metrics in a file.

use crate::workspace;

use workspace::Workspace;
use workspace::daemon::Daemon;

const SKILLS: &str = "  - {id: fine, description: d, run: 'true', verification: [{command: 'true'}]}\n  - {id: bad, description: d, run: 'false'}\n";

#[test]
fn metrics_are_written_whole_and_tell_where_nobody_answers() {
    let workspace = Workspace::with_skills(SKILLS);
    let file = workspace.home.join("textfile/w.prom");
    let path = file.display().to_string();
    let refused = workspace.run(&["metrics", "--textfile", &path]);
    let refused = refused.expect_code(6).stderr;
    assert!(refused.contains("there is no such directory"), "{refused}");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    let write = || {
        workspace
            .run(&["metrics", "--textfile", &path])
            .expect_code(0);
        std::fs::read_to_string(&file).unwrap()
    };
    let nobody = write();
    assert!(nobody.ends_with("\nworkerctl_up 0\n"), "{nobody}");
    let daemon = Daemon::start(&workspace);
    workspace.run(&["run", "fine"]).expect_code(0);
    workspace.run(&["run", "bad"]).expect_code(1);
    let told = write();
    for line in [
        "workerctl_up 1",
        "workerctl_runs_ended_today{skill=\"w/bad\",outcome=\"failed\"} 1",
        "workerctl_runs_ended_today{skill=\"w/fine\",outcome=\"succeeded\"} 1",
    ] {
        assert!(told.lines().any(|one| one == line), "{line}: {told}");
    }
    assert_eq!(
        workspace.run(&["metrics"]).stdout.lines().count(),
        told.lines().count()
    );
    daemon.stop();
    assert_eq!(write(), nobody);
    let refused = workspace
        .run(&["metrics", "--textfile", "w.txt"])
        .expect_code(2);
    assert!(refused.stderr.contains("`.prom`"), "{refused:?}");
}

#[test]
fn the_default_of_a_sensitive_input_is_masked_where_skills_are_listed() {
    let workspace = Workspace::with_skills(
        "  - {id: s, description: d, run: 'true', interface: {inputs: [{name: pin, type: string, sensitive: true, default: pin-4711}]}}\n",
    );
    for listed in ["workers", "skills"] {
        let told = workspace.run(&[listed, "--json"]).expect_code(0).stdout;
        assert!(told.contains("\"***\"") && told.contains("pin"), "{told}");
        assert!(!told.contains("pin-4711"), "{told}");
    }
}

#[test]
fn stats_count_by_skill_worker_day_and_schedule() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.run(&["run", "fine"]).expect_code(0);
    workspace.run(&["run", "fine"]).expect_code(0);
    workspace.run(&["run", "bad"]).expect_code(1);
    let counts = |by: &str, more: &[&str]| {
        let shown = workspace.json(&[&["stats", "--by", by], more].concat());
        let lines = shown["stats"].as_array().unwrap().clone();
        let count = |line: &serde_json::Value, name: &str| line[name].as_u64().unwrap();
        let of = |line: &serde_json::Value| {
            let names = [
                "run_count",
                "succeeded_count",
                "verified_count",
                "failed_count",
            ];
            names.map(|name| count(line, name))
        };
        lines.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(counts("skill", &[]), [[1, 0, 0, 1], [2, 2, 2, 0]]);
    assert_eq!(counts("worker", &[]), [[3, 2, 2, 1]]);
    assert_eq!(counts("worker", &["--skill", "w/bad"]), [[1, 0, 0, 1]]);
    assert_eq!(counts("day", &["--worker", "w"]), [[3, 2, 2, 1]]);
    assert_eq!(counts("skill", &["--until", "2020-01-01"]), [[0_u64; 4]; 0]);
    assert_eq!(counts("schedule", &[]), [[0_u64; 4]; 0]);
    let shown = workspace.run(&["stats"]).expect_code(0).stdout;
    assert!(
        shown.contains("2 (100%)") && shown.contains('█') && shown.contains('░'),
        "{shown}"
    );
    let refused = workspace
        .run(&["stats", "--until", "yesterday"])
        .expect_code(2);
    assert!(refused.stderr.contains("yesterday"), "{refused:?}");
}
