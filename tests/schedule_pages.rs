//! More schedules than one answer of the engine holds: whoever asks for all of them sees all of them.

use crate::workspace;

use std::collections::BTreeSet;

use serde_json::Value;
use workspace::Workspace;
use workspace::daemon::{self, Daemon};

fn schedule(workspace: &Workspace, arguments: &[&str]) -> Value {
    workspace.json(&[&["schedule"], arguments].concat())
}

/// What stands in a field of each item.
fn each(list: &Value, key: &str) -> Vec<String> {
    let items = list.as_array().unwrap().iter();
    items
        .map(|item| item[key].as_str().unwrap().to_owned())
        .collect()
}

/// 2,550 schedules: more than one answer of the engine holds.
fn with_very_many() -> Workspace {
    let workspace = Workspace::new();
    for worker in 0..51 {
        let all: Vec<String> = (0..50)
            .map(|nth| format!("{{id: n{nth}, every: {}m}}", 60 + nth))
            .collect();
        let all = all.join(", ");
        let skills = format!("  - {{id: s, description: d, run: 'true', schedule: [{all}]}}\n");
        workspace.worker(&format!("w{worker}"), &skills);
    }
    workspace
}

fn listed(workspace: &Workspace, arguments: &[&str]) -> Vec<String> {
    let line = [&["list"], arguments].concat();
    each(&schedule(workspace, &line)["schedules"], "schedule")
}

#[test]
fn very_many_schedules_are_listed_page_by_page() {
    let workspace = with_very_many();
    let daemon = Daemon::start(&workspace);
    let all = listed(&workspace, &[]);
    assert_eq!(all.len(), 2_550);
    assert!(all.is_sorted_by(|one, other| one < other));
    assert_eq!(listed(&workspace, &["-n", "7"]), all[..7]);
    assert_eq!(listed(&workspace, &["-n", "2001"]), all[..2001]);
    let of_one: Vec<&String> = all.iter().filter(|id| id.starts_with("w7/")).collect();
    assert_eq!(of_one.len(), 50);
    let asked = listed(&workspace, &["--worker", "w7"]);
    assert_eq!(asked.iter().collect::<Vec<_>>(), of_one);
    assert_eq!(listed(&workspace, &["--skill", "w7/s"]), asked);
    assert_eq!(listed(&workspace, &["--skill", "s"]).len(), 2_550);
    let none = workspace.run(&["schedule", "list", "--skill", "nothing"]);
    assert!(none.stderr.contains("no schedules fit"), "{none:?}");
    // The pages of the API: 1,000 where nothing is said, and what comes after an id.
    let page = |query: &str| -> Vec<String> {
        let answer = daemon::get(&workspace, &format!("/v1/schedules{query}"));
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        each(&serde_json::from_str(body).unwrap(), "schedule")
    };
    assert_eq!(page(""), all[..1_000]);
    assert_eq!(page("?limit=5000"), all[..1_000]);
    let after = all[1_203].replace('#', "%23");
    assert_eq!(page(&format!("?limit=3&after={after}")), all[1_204..1_207]);
    assert_eq!(page("?schedule=W7/S%23n3"), ["w7/s#n3"]);
    let last = all[2_549].replace('#', "%23");
    assert!(page(&format!("?after={last}")).is_empty());
    // What looks at all of them sees all of them.
    let metrics = daemon::get(&workspace, "/v1/metrics");
    let told = metrics.matches("workerctl_schedule_paused{").count();
    assert_eq!(told, 2_550);
    let doctor = workspace.run(&["doctor"]);
    assert!(doctor.stdout.contains("2550 schedules"), "{doctor:?}");
    let simulated = schedule(&workspace, &["simulate", "--to", "+2h"]);
    assert_eq!(simulated["schedules"].as_array().unwrap().len(), 2_550);
    let next = schedule(&workspace, &["next", "-n", "10000", "--after", "+1h"]);
    let due: BTreeSet<String> = each(&next["next"], "schedule").into_iter().collect();
    assert_eq!(due.len(), 2_550);
    // One is found among all, whatever page it is on.
    let line = ["schedule", "pause", &all[2_400], "--reason", "a holiday"];
    workspace.run(&line).expect_code(0);
    let one = workspace.run(&["schedule", "next", &all[2_400], "-n", "1"]);
    assert!(one.stderr.contains("a holiday"), "{one:?}");
    let wrong = workspace.run(&["schedule", "next", "w50/s#n490"]);
    assert!(wrong.stderr.contains("did you mean"), "{wrong:?}");
    daemon.stop();
    assert_eq!(listed(&workspace, &[]), all);
}
