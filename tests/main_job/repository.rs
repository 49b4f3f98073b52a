//! What a kill or a power cut leaves in `.git`: locks of ours go, and what is damaged is named with its remedy.

use std::fs;
use std::path::Path;

use crate::main_job::misuse::elsewhere;
use crate::workspace::{Workspace, skip};

const SKILLS: &str = r#"
  - {id: good, description: d, run: "true"}
  - {id: change, description: d, mutating: true, run: "echo x >> tracked.txt"}
"#;

/// A lock of git's as an engine takes it that has ended since.
fn left_lock(path: &Path) {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let note = format!("workerctl pid=1 start=1 boot={} owner=\n", boot.trim());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, note).unwrap();
}

#[test]
fn locks_that_a_killed_engine_left_go_when_the_next_starts_and_those_of_others_are_told() {
    let workspace = Workspace::with_skills(SKILLS);
    let at = |name: &str| workspace.root.join(".git").join(name);
    let names = [
        "index.lock",
        "HEAD.lock",
        "packed-refs.lock",
        "refs/heads/main.lock",
        "refs/heads/a/b.lock",
    ];
    for name in names {
        left_lock(&at(name));
    }
    fs::write(at("config.lock"), "").unwrap();
    fs::write(at("refs/heads/foreign.lock"), "").unwrap();
    let touched = workspace
        .program("touch")
        .args(["-d", "2 hours ago"])
        .arg(at("refs/heads/foreign.lock"))
        .status();
    assert!(touched.unwrap().success());
    let doctor = workspace.run(&["doctor"]).expect_code(1).stdout;
    for name in names {
        assert!(
            doctor.contains(&format!("`{}`", at(name).display())),
            "{doctor}"
        );
    }
    assert!(doctor.contains("the next engine removes it"), "{doctor}");
    let foreign = at("refs/heads/foreign.lock").display().to_string();
    assert!(
        doctor.contains(&format!("`{foreign}` has been there for 2h 0m")),
        "{doctor}"
    );
    assert!(doctor.contains(&format!("`rm '{foreign}'`")), "{doctor}");
    workspace.run(&["runs"]).expect_code(0);
    for name in names {
        assert!(!at(name).exists(), "{name}");
    }
    assert!(at("config.lock").exists() && at("refs/heads/foreign.lock").exists());
    assert!(at("workerctl.lock").exists());
    workspace.git(&["commit", "-q", "--allow-empty", "-m", "a person goes on"]);
}

#[test]
fn locks_of_a_linked_work_tree_go_as_well_and_a_pipe_in_git_is_not_waited_for() {
    let workspace = Workspace::with_skills(SKILLS);
    let linked = workspace.root.with_file_name("linked");
    workspace.git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
    let at = |name: &str| workspace.root.join(".git").join(name);
    let names = ["worktrees/linked/index.lock", "refs/heads/linked.lock"];
    for name in names {
        left_lock(&at(name));
    }
    fs::rename(at("config"), at("config.away")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(at("config"))
        .status();
    assert!(made.unwrap().success());
    let mut command = elsewhere(&workspace, &["runs"]);
    let runs = workspace.start(command.current_dir(&linked)).end();
    runs.expect_code(0);
    for name in names {
        assert!(!at(name).exists(), "{name}");
    }
}

#[test]
fn a_run_that_is_killed_under_its_locks_leaves_none_to_people() {
    let workspace = Workspace::with_skills(SKILLS);
    let traced = |when: &str, lock: Option<&str>, arguments: &[&str]| {
        let mut command = workspace.program("strace");
        let inject = format!("inject=unlink:signal=KILL:when={when}");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", &inject]);
        if let Some(lock) = lock {
            command
                .arg("-P")
                .arg(workspace.root.join(".git").join(lock));
        }
        command.arg(env!("CARGO_BIN_EXE_workerctl"));
        command
            .arg("--state-dir")
            .arg(workspace.state())
            .args(arguments);
        command
    };
    if !traced("9999", None, &["version"])
        .output()
        .is_ok_and(|done| done.status.success())
    {
        return skip("strace is missing or may not trace");
    }
    let killed = |when: &str, lock: Option<&str>| {
        let mut command = traced(when, lock, &["run", "change"]);
        let is_killed = workspace.start(&mut command).end().code != 0;
        let left = workspace.locks();
        workspace.run(&["runs"]).expect_code(0);
        let still = workspace.locks();
        assert!(still.is_empty(), "kill {when} {lock:?}: {still:?}");
        // Settles what was lost.
        workspace.run(&["run", "good"]).expect_code(0);
        (is_killed, left.len())
    };
    for lock in ["HEAD.lock", "index.lock"] {
        let (is_killed, left) = killed("1", Some(lock));
        assert!(is_killed && left >= 1, "the kill at `{lock}` left none");
    }
    // Threads count their calls apart, so that this meets other places from time to time.
    for nth in (1..=40).step_by(4) {
        if !killed(&nth.to_string(), None).0 {
            break;
        }
    }
}

/// Damages a repository; answers the file.
type Break = fn(&Workspace) -> String;

fn emptied(workspace: &Workspace, name: &str) -> String {
    let path = workspace.root.join(".git").join(name);
    fs::remove_file(&path).unwrap();
    fs::write(&path, "").unwrap();
    path.display().to_string()
}

fn object(workspace: &Workspace, revision: &str) -> String {
    let oid = workspace.git(&["rev-parse", revision]);
    let (fan, rest) = oid.trim().split_at(2);
    format!("objects/{fan}/{rest}")
}

#[test]
fn what_is_damaged_is_named_and_mended_by_the_command_that_is_told() {
    let table: [(&str, Break); 7] = [
        ("the content of `tracked.txt`", |w| {
            emptied(w, &object(w, "HEAD:tracked.txt"))
        }),
        ("the tree of `workers/w/`", |w| {
            emptied(w, &object(w, "HEAD:workers/w"))
        }),
        ("the tree of `/`", |w| {
            let path = w.root.join(".git").join(object(w, "HEAD^{tree}"));
            fs::remove_file(&path).unwrap();
            fs::write(&path, "garbage").unwrap();
            path.display().to_string()
        }),
        ("is empty", |w| emptied(w, "index")),
        ("cannot be read", |w| {
            let path = w.root.join(".git/index");
            fs::write(
                &path,
                "garbage, and more of it than a header of an index has",
            )
            .unwrap();
            path.display().to_string()
        }),
        ("cannot be read", |w| emptied(w, "refs/heads/main")),
        ("cannot be read", |w| emptied(w, "HEAD")),
    ];
    for (what, damage) in table {
        let workspace = Workspace::with_skills(SKILLS);
        workspace.run(&["run", "change"]).expect_code(0);
        // What landed lies in a pack; what a person commits does not.
        workspace.write("tracked.txt", "a person's\n");
        workspace.commit_all("a person's");
        let path = damage(&workspace);
        let doctor = workspace.run(&["doctor", "--json"]).expect_code(1).value();
        let findings = doctor["findings"].as_array().unwrap();
        let is_it = |one: &&serde_json::Value| {
            let message = one["message"].as_str().unwrap();
            message.contains(&path) && message.contains(what)
        };
        let found = findings.iter().find(is_it);
        let found = found.unwrap_or_else(|| panic!("{path}: {doctor:#}"));
        let remedy = found["hints"][0].as_str().unwrap();
        // Neither the former content of a file that changes nor a tree in which nothing does is read by a run.
        if !what.contains("tracked.txt") && !what.contains("workers/w") {
            let refused = workspace.run(&["run", "change"]);
            assert_ne!(refused.code, 0, "{path}");
            let said = format!("{}{}", refused.stdout, refused.stderr);
            assert!(said.contains(&path), "{remedy}: {refused:?}");
        }
        // The commands in backticks up to the first that only looks or needs another clone.
        let commands = remedy.split('`').skip(1).step_by(2);
        let commands = commands.take_while(|one| !one.contains("fsck") && !one.contains("fetch"));
        for command in commands {
            let command = command.replace("BRANCH", "main");
            let done = workspace
                .program("sh")
                .args(["-c", &command])
                .output()
                .unwrap();
            assert!(done.status.success(), "{command}: {done:?}");
        }
        workspace.git(&["fsck", "--strict"]);
        workspace.run(&["run", "change"]).expect_code(0);
    }
}

/// What `init` writes is what people read and what `config` shows, whatever the branch is called.
#[test]
fn init_names_the_branch_that_is_checked_out() {
    let workspace = Workspace::new();
    let config = || workspace.read("workerctl.yaml").unwrap();
    workspace.run(&["init", "--bare"]).expect_code(0);
    assert!(config().contains("\nbranch: main\n"), "{}", config());
    workspace.commit_all("begin");
    for name in [
        "feature/a-b",
        "2026",
        "true",
        "#1",
        "'q",
        "käse",
        "\"x",
        "{x}",
    ] {
        workspace.git(&["switch", "--quiet", "-c", name]);
        fs::remove_file(workspace.root.join("workerctl.yaml")).unwrap();
        workspace.run(&["init", "--bare"]).expect_code(0);
        let shown = workspace.json(&["config"]);
        let values = shown["values"].as_array().unwrap();
        let branch = values.iter().find(|one| one["key"] == "branch").unwrap();
        let chosen = serde_json::json!({"name": name, "create": false});
        assert_eq!(branch["value"], chosen, "{}", config());
    }
    // What is there stays as it is.
    let before = config();
    workspace.git(&["switch", "--quiet", "main"]);
    workspace.write("workerctl.yaml", &before);
    workspace.run(&["init", "--bare"]).expect_code(0);
    assert_eq!(config(), before);
    // Where no branch is checked out, none is named.
    workspace.git(&["switch", "--quiet", "--detach"]);
    fs::remove_file(workspace.root.join("workerctl.yaml")).unwrap();
    workspace.run(&["init", "--bare"]).expect_code(0);
    assert!(config().contains("\n# branch:\n"), "{}", config());
    let shown = workspace.run(&["config"]).expect_code(0).stdout;
    assert!(
        shown.contains("trees.min_free  ") && shown.contains("1.0 GiB"),
        "{shown}"
    );
}

/// `check` takes the names of branches that git takes, and no others.
#[test]
fn names_of_branches_are_those_of_git() {
    let workspace = Workspace::new();
    for name in [
        "a", "a/b", "käse", "a.", "a./b", ".a", "a/.b", "a..b", "a.lock", "a.lock/b", "a.LOCK",
        "a b", "a\tb", "a\u{7f}", "a\u{a0}b", "a\u{85}", "a~", "a^", "a:b", "a?", "a*", "a[b",
        "a]", "a\\b", "a@{b", "a@b", "{a}", "/a", "a/", "a//b", "-a", "a-", "a/-b", "HEAD",
        "a/HEAD", "head",
    ] {
        let by_git = workspace
            .program("git")
            .args(["check-ref-format", "--branch", name])
            .output()
            .unwrap();
        let ours = workerctl::model::isolation::branch_name(name);
        assert_eq!(ours.is_ok(), by_git.status.success(), "{name:?}: {ours:?}");
    }
}
