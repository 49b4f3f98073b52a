//! Skills at every level of walls.

use serde_json::json;

use super::server::script::Reply;
use super::tools::told;
use super::workspace::skip;
use super::{Rig, call, changing, outcome, reading, text};

/// Reads with a tool and with a command.
fn looking() -> Vec<Reply> {
    vec![
        call("read_file", &json!({"path": "tracked.txt"})),
        call("bash", &json!({"command": "cat tracked.txt"})),
        text("Done."),
    ]
}

#[test]
fn at_every_level_files_are_read() {
    if !workerctl::process::walls_stand() || workerctl::process::containers_stand().is_err() {
        skip("the kernel has no walls, or no containers");
        return;
    }
    for level in ["auto", "required", "private", "off"] {
        for mutating in [false, true] {
            let more = format!("    sandbox: {level}\n    max_iterations: 50\n");
            let (skill, name) = if mutating {
                (changing(&more), "change")
            } else {
                (reading(&more), "mrr")
            };
            let rig = Rig::walled(&skill, "", looking());
            let shown = rig.ran(&[name]);
            let at = format!("{level}, mutating: {mutating}");
            assert_eq!(outcome(&shown)["kind"], "succeeded", "{at}: {shown:#}");
            let results = told(&rig);
            assert_eq!(results[0], "as committed\n", "{at}");
            // Without walls a command could change anything.
            if level == "off" && !mutating {
                assert!(
                    results[1].starts_with("!no tool `bash`"),
                    "{at}: {results:?}"
                );
            } else {
                assert_eq!(results[1], "as committed\n", "{at}");
            }
        }
    }
}

#[test]
fn what_is_git_s_and_the_engine_s_is_not_written_by_tools() {
    let paths = [
        ".git/hooks/post-commit",
        ".git/config",
        ".GIT/hooks/post-commit",
        "x/../.git/hooks/post-commit",
        ".workerctl/lock",
        "workspace/threads/x.json",
        "workspace/metrics/metrics.jsonl",
    ];
    // Those of a tree are its own, and no part of its change.
    let of_git = 4;
    for (place, more) in [("in a sandbox", ""), ("without one", "    sandbox: off\n")] {
        let mut script: Vec<Reply> = paths
            .iter()
            .map(|path| call("write_file", &json!({"path": path, "content": "x"})))
            .collect();
        script.push(text("Done."));
        let rig = Rig::walled(
            &changing(&format!("    max_iterations: 50\n{more}")),
            "",
            script,
        );
        let config = rig.workspace.read(".git/config");
        let shown = rig.ran(&["change"]);
        assert_eq!(outcome(&shown)["kind"], "succeeded", "{place}: {shown:#}");
        for (path, result) in paths.iter().zip(told(&rig)).take(of_git) {
            assert!(result.starts_with('!'), "{place}: {path}: {result}");
        }
        assert_eq!(rig.workspace.read(".git/config"), config, "{place}");
        assert_eq!(
            rig.workspace.read(".git/hooks/post-commit"),
            None,
            "{place}"
        );
        let is_theirs = |path: &str| rig.workspace.read(path).as_deref() == Some("x");
        assert!(!paths.iter().any(|path| is_theirs(path)), "{place}");
    }
}
