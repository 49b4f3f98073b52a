//! What a run may do to its own tree, and what it leaves behind.

use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use crate::walls::{bed, containers_or_skip, outcome, run, walls_or_skip};
use crate::workspace::daemon::Daemon;

/// The levels that can be had here, by the word that asks for them.
fn levels() -> Vec<(&'static str, u32)> {
    let mut levels = vec![("off", 0)];
    if walls_or_skip() {
        levels.push(("required", 1));
        if containers_or_skip() {
            levels.push(("private", 2));
        }
    }
    levels
}

/// What follows a run would work on something else under the name of its tree.
#[test]
fn a_tree_stays_where_it_is() {
    for (sandbox, level) in levels() {
        let workspace = bed(&format!(
            "  - {{id: moves, description: d, mutating: true, sandbox: {sandbox}, run: 'mv \"$PWD\" \"$PWD-moved\" && exit 7 || exit 3'}}\n"
        ));
        let detail = run(&workspace, "moves");
        let execution = &detail["attempts"][0]["execution"];
        assert_eq!(execution["sandbox_level"], level, "{detail}");
        // Without walls it can, which is why it has to be refused.
        let wanted = if level == 0 { 7 } else { 3 };
        assert_eq!(execution["ended"]["code"], wanted, "{detail}");
    }
}

/// The first thread of a process has ended, and another one goes on: to `ps` it is a zombie.
#[test]
fn a_process_whose_first_thread_has_ended_is_ended_with_the_run() {
    let python = std::process::Command::new("python3")
        .arg("--version")
        .output();
    if !walls_or_skip() || !python.is_ok_and(|done| done.status.success()) {
        return xtest::skip("it takes Landlock and python3");
    }
    let program = "import ctypes, os, threading, time\ndef late():\n    open(os.path.expanduser(\"~/.cache/begun\"), \"w\")\n    time.sleep(2)\n    open(os.path.expanduser(\"~/.cache/late\"), \"w\")\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        threading.Thread(target=late).start()\n        ctypes.CDLL(None).syscall(60, 0)\n    os._exit(0)\n";
    let workspace = bed(
        "  - {id: leaves, description: d, sandbox: {level: required, write: [~/.cache]}, run: 'python3 workers/w/leaves.py > /dev/null 2>&1; until [ -e ~/.cache/begun ]; do sleep 0.05; done'}\n",
    );
    workspace.write("workers/w/leaves.py", program);
    workspace.commit_all("program");
    let daemon = Daemon::start(&workspace);
    let detail = run(&workspace, "leaves");
    assert_eq!(outcome(&detail), "succeeded", "{detail}");
    std::thread::sleep(Duration::from_millis(2_500));
    assert!(!workspace.home.join(".cache/late").exists());
    daemon.stop();
}

/// A child in a session of its own is ended with the run, before it has done what it may do.
#[test]
fn nothing_is_left_running_that_writes_later() {
    for (sandbox, level) in levels() {
        let late = "setsid sh -c \"sleep 1; echo x > $HOME/.cache/late; echo x > $WORKERCTL_WORKSPACE/late\" > /dev/null 2>&1 & touch $HOME/.cache/begun";
        let skill = |id: &str, keys: &str| {
            let walls = match level {
                0 => "off".to_owned(),
                _ => format!("{{level: {sandbox}, write: [~/.cache]}}"),
            };
            format!("  - {{id: {id}, description: d, {keys}sandbox: {walls}, run: '{late}'}}\n")
        };
        let skills = [skill("read", ""), skill("write", "mutating: true, ")];
        let workspace = bed(&skills.concat());
        let daemon = Daemon::start(&workspace);
        for skill in ["read", "write"] {
            let detail = run(&workspace, skill);
            assert_eq!(outcome(&detail), "succeeded", "{detail}");
            let reached = &detail["attempts"][0]["execution"]["sandbox_level"];
            assert_eq!(reached, level, "{detail}");
        }
        std::thread::sleep(Duration::from_millis(1_500));
        assert!(workspace.home.join(".cache/begun").exists());
        assert!(!workspace.home.join(".cache/late").exists(), "{sandbox}");
        assert_eq!(workspace.read("late"), None, "{sandbox}");
        daemon.stop();
    }
}

/// A command can read its workspace, so it can lock files there. It gets their locks when its engine is killed.
#[test]
fn a_command_that_waits_for_a_lock_keeps_no_engine_from_starting() {
    let wait = "test \"$WORKERCTL_ATTEMPT\" = 1 || exit 0; for file in . .workerctl/lock; do flock \"$WORKERCTL_WORKSPACE/$file\" sleep 300 & done; wait";
    for (sandbox, _) in levels() {
        let workspace = bed(&format!(
            "  - {{id: waits, description: d, sandbox: {sandbox}, run: {wait:?}}}\n  - {{id: works, description: d, run: 'true'}}\n"
        ));
        let daemon = Daemon::start(&workspace);
        workspace.submit(&["waits"]);
        let deadline = Instant::now() + Duration::from_mins(1);
        for file in [".", ".workerctl/lock"] {
            let inode = std::fs::metadata(workspace.root.join(file)).unwrap().ino();
            let inode = format!(":{inode} ");
            let waits = |line: &str| line.contains("-> FLOCK") && line.contains(&inode);
            let locks = || std::fs::read_to_string("/proc/locks").unwrap();
            while !locks().lines().any(waits) {
                assert!(Instant::now() < deadline, "{}", locks());
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        daemon.kill();
        workspace.run(&["run", "works"]).expect_code(0);
    }
}
