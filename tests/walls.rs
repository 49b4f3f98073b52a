//! Walls around the commands of real runs: what is theirs, what is granted, and what the kernel refuses.

mod around;
mod cases;
mod definitions;
mod escapes;
mod levels;
mod links;
mod own;
mod places;
mod remaining;
mod without;
use crate::workspace;

use serde_json::Value;
use workspace::daemon::Daemon;
use workspace::{Workspace, skip};

/// Whether the kernel has what it takes; says so where it has not.
fn walls_or_skip() -> bool {
    let stand = workerctl::process::walls_stand();
    if !stand {
        skip("the kernel has no Landlock that is a wall");
    }
    stand
}

/// Whether commands can have containers; says so where they cannot.
fn containers_or_skip() -> bool {
    let stand = workerctl::process::containers_stand();
    if let Err(error) = &stand {
        skip(&error.to_string());
    }
    stand.is_ok() && walls_or_skip()
}

/// A workspace with a home that holds a key, and skills whose `run` is one of these texts.
fn bed(skills: &str) -> Workspace {
    let workspace = Workspace::new();
    furnish(&workspace, skills);
    workspace
}

/// The same in a workspace that is there.
fn furnish(workspace: &Workspace, skills: &str) {
    workspace.furnish("");
    for (path, text) in [(".ssh/id", "key\n"), (".cache/kept", "as it was\n")] {
        let path = workspace.home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let worker = format!("worker: {{id: w, name: W, type: OpsWorker}}\nskills:\n{skills}");
    workspace.write("workers/w/worker.yaml", &worker);
    workspace.commit_all("skills");
}

/// Runs a skill and answers the run in full.
fn run(workspace: &Workspace, skill: &str) -> Value {
    workspace.run(&["run", skill, "--json"]).value()
}

fn outcome(detail: &Value) -> &str {
    detail["summary"]["outcome"]["kind"].as_str().unwrap()
}

#[test]
fn in_a_container_home_and_temporary_files_are_its_own() {
    if !containers_or_skip() {
        return;
    }
    let workspace = bed(r##"
  - id: own
    description: d
    sandbox: private
    interface: {outputs: [{name: r, type: markdown, destination: "reports/r.md"}]}
    run: 'test "$(ls -A $HOME)" = "" && test ! -e /tmp/workspace-probe && echo x > $HOME/x && echo x > /tmp/x && echo x > $TMPDIR/x && test "$(ls /proc | grep -c "^[0-9]")" -lt 9 && cat tracked.txt > /dev/null && ! chmod 600 tracked.txt && echo "# done" > {r}'
    verification: [{command: 'grep -q done {r}'}]
  - id: granted
    description: d
    sandbox: {level: private, write: [~/.cache], reads: [/, ~/.ssh]}
    run: 'cat $HOME/.ssh/id && echo own >> $HOME/.cache/new'
  - id: change
    description: d
    mutating: true
    sandbox: {level: private, network: none}
    run: 'echo x > own.txt && git add own.txt && git commit -q -m own && git log --oneline && echo y >> tracked.txt && test "$(grep -c : /proc/net/dev)" = 1'
  - {id: ends, description: d, sandbox: private, run: 'kill -9 $$'}
  - {id: code, description: d, sandbox: private, run: [/bin/sh, -c, 'exit 7']}
  - {id: stays, description: d, sandbox: private, timeout: 1s, run: 'setsid sleep 100000 & sleep 100000'}
"##);
    let daemon = Daemon::start(&workspace);
    for skill in ["own", "granted", "change"] {
        let detail = run(&workspace, skill);
        assert_eq!(outcome(&detail), "succeeded", "{skill}: {detail}");
        let level = &detail["attempts"][0]["execution"]["sandbox_level"];
        assert_eq!(level, 2, "{skill}: {detail}");
    }
    assert_eq!(workspace.read("reports/r.md").as_deref(), Some("# done\n"));
    assert_eq!(workspace.read("own.txt").as_deref(), Some("x\n"));
    assert!(!workspace.home.join("x").exists());
    assert!(workspace.home.join(".cache/new").exists());
    for (skill, code) in [("ends", 137), ("code", 7)] {
        let ended = &run(&workspace, skill)["attempts"][0]["execution"]["ended"];
        assert_eq!(ended["code"], code, "{skill}: {ended}");
    }
    assert_eq!(outcome(&run(&workspace, "stays")), "timed_out");
    daemon.stop();
}

/// What is refused looks like a matter of modes; whoever wrote the skill is told what it may be.
#[test]
fn the_default_is_level_1_and_a_refusal_says_how_to_grant() {
    if !walls_or_skip() {
        return;
    }
    let workspace = bed(
        "  - {id: cache, description: d, run: 'echo x >> $HOME/.cache/kept'}\n  - {id: free, description: d, sandbox: off, run: 'echo x >> $HOME/.cache/kept'}\n",
    );
    let refused = workspace.run(&["run", "cache"]).expect_code(1);
    assert!(refused.stdout.contains("sandbox (level 1)"), "{refused:?}");
    let shown = workspace.run(&["show", "latest"]).stdout;
    assert!(shown.contains("sandbox level 1"), "{shown}");
    let free = run(&workspace, "free");
    assert_eq!(outcome(&free), "succeeded");
    assert_eq!(free["attempts"][0]["execution"]["sandbox_level"], 0);
    let shown = workspace.run(&["skill", "show", "free"]).stdout;
    assert!(
        shown.contains("sandbox") && shown.contains("off"),
        "{shown}"
    );
    workspace.write(
        "workerctl.yaml",
        "sandbox: {level: required, write: [~/.cache]}\n",
    );
    let granted = run(&workspace, "cache");
    assert_eq!(outcome(&granted), "succeeded", "{granted}");
    workspace.write("workerctl.yaml", "sandbox: loose\n");
    let wrong = workspace.run(&["check"]).expect_code(4);
    assert!(wrong.stdout.contains("workerctl.yaml:1"), "{wrong:?}");
}

#[test]
fn what_leads_to_the_engines_own_is_refused_before_anything_starts() {
    let workspace = bed(r"
  - {id: above, description: d, sandbox: {write: [/]}, run: 'true'}
  - {id: state, description: d, sandbox: {write: [~/../state]}, run: 'true'}
  - {id: reads, description: d, sandbox: {reads: [~/link]}, run: 'true'}
  - {id: linked, description: d, sandbox: {write: [~/git]}, run: 'true'}
");
    std::os::unix::fs::symlink(workspace.state(), workspace.home.join("link")).unwrap();
    std::os::unix::fs::symlink(workspace.root.join(".git"), workspace.home.join("git")).unwrap();
    let daemon = Daemon::start(&workspace);
    for skill in ["above", "reads", "linked"] {
        let refused = workspace.run(&["run", skill, "--json"]).expect_code(4);
        assert_eq!(refused.refusal(), "sandbox_grant", "{skill}");
        for said in [
            "never granted",
            "workers/w/worker.yaml:",
            "grant another directory",
        ] {
            assert!(refused.stderr.contains(said), "{said}: {refused:?}");
        }
    }
    workspace.run(&["check"]).expect_code(4);
    daemon.stop();
}
