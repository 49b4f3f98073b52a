//! What a careless person, or a careless skill, does to the files of the program.

use std::time::Instant;

use crate::workspace::daemon::Daemon;
use crate::workspace::{PATIENCE, Workspace, eventually};

const SKILLS: &str = r#"
  - {id: good, description: d, run: "true"}
  - {id: slow, description: d, timeout: 3s, run: "rm -rf workspace; touch workspace; sleep 60"}
  - {id: lines, description: d, run: "yes | head -c 20000000"}
  - {id: number, description: d, run: 'test "{n}" = 99999999999999999999999', interface: {inputs: [{name: n, type: number}]}}
  - {id: bad, description: d, run: "echo because >&2; exit 3"}
"#;

#[test]
fn how_a_run_ended_is_told_though_its_thread_cannot_be_read() {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.run(&["run", "slow"]).expect_code(124);
    std::fs::remove_file(workspace.root.join("workspace")).unwrap();
    let daemon = Daemon::start(&workspace);
    let submitted = workspace.json(&["run", "--no-wait", "slow"]);
    let run = submitted["run"].as_str().unwrap();
    eventually("the thread's loss", || {
        workspace.root.join("workspace").is_file().then_some(())
    });
    workspace.run(&["wait", run]).expect_code(124);
    daemon.stop();
}

#[test]
fn the_bound_of_output_holds_for_what_is_written() {
    let workspace = Workspace::with_skills(SKILLS);
    let began = Instant::now();
    let done = workspace.run(&["run", "--json", "lines"]).expect_code(0);
    let took = began.elapsed();
    assert!(took < PATIENCE, "{took:?}");
    let log = done.value()["log_path"].as_str().unwrap().to_owned();
    let written = std::fs::metadata(&log).unwrap().len();
    assert!(written < 15 * 1024 * 1024, "{written}");
    let lines = std::fs::read_to_string(&log).unwrap().lines().count();
    assert!(lines > 50_000, "{lines}");
}
