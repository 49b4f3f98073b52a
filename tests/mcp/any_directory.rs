//! A client may start the server anywhere: what can be read is served, and nothing is written.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::mcp::client::{Client, page, text_of};
use crate::workspace::{Workspace, skip};

/// A user who may read nothing but what all may.
const STRANGER: u32 = 54_001;

/// Writes a skill below a directory.
fn skill(directory: &Path, name: &str) {
    let own = directory.join(".claude/skills").join(name);
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("SKILL.md"), page(name, "d", "Do it.")).unwrap();
}

/// The server as a client starts it there, with no option at all.
fn command(bed: &Workspace, directory: &Path) -> Command {
    let mut command = bed.program(env!("CARGO_BIN_EXE_workerctl"));
    command.arg("mcp").current_dir(directory);
    for variable in ["STATE", "CONFIG", "DATA", "CACHE"] {
        let place = bed.home.join(format!("xdg-{variable}"));
        command.env(format!("XDG_{variable}_HOME"), place);
    }
    command
}

/// A session with it.
fn connected(command: &mut Command) -> (Client, xtest::TempDir) {
    let aside = xtest::tempdir();
    let mut client = Client::of(command, aside.path().join("log"));
    client.initialize("2025-06-18");
    (client, aside)
}

/// Everything below a directory: path, kind, size and time of change.
fn listing(directory: &Path) -> Vec<(PathBuf, u32, u64, i64, i64)> {
    let mut all = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        let found = next.symlink_metadata().unwrap();
        if found.is_dir() {
            let entries = fs::read_dir(&next).unwrap();
            open.extend(entries.map(|entry| entry.unwrap().path()));
        }
        let (mode, size) = (found.mode(), found.size());
        all.push((next, mode, size, found.mtime(), found.mtime_nsec()));
    }
    all.sort();
    all
}

/// What is offered in the description of the tool.
fn offers(client: &mut Client, name: &str) -> bool {
    let tool = client.tool("skill");
    let text = tool["description"].as_str().unwrap();
    text.contains(&format!("<name>{name}</name>"))
}

/// Directories of each kind, with the skill of the project that is served there.
fn places(bed: &Workspace) -> Vec<(PathBuf, Option<&'static str>)> {
    let base = bed.root.parent().unwrap();
    skill(&bed.home, "at-home");
    let made = |path: &str| {
        let path = base.join(path);
        fs::create_dir_all(&path).unwrap();
        path
    };

    skill(&bed.root, "top");
    bed.write("a/b/file.txt", "x");
    bed.commit_all("begin");
    let linked = base.join("linked");
    bed.git(&[
        "worktree",
        "add",
        "-q",
        linked.to_str().unwrap(),
        "-b",
        "other",
    ]);
    let allowed = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
    let own = bed.root.to_str().unwrap();
    bed.git(&[allowed.as_slice(), &["--", own, "a/module"]].concat());
    skill(&bed.root.join("a/module"), "of-module");
    let store = made("bare.git");
    bed.git(&["init", "-q", "--bare", store.to_str().unwrap()]);
    skill(&store, "of-bare");
    // A bare repository within a work tree is none of that work tree.
    let inner = bed.root.join("inner.git");
    bed.git(&["init", "-q", "--bare", inner.to_str().unwrap()]);
    skill(&inner, "of-inner");
    let plain = made("plain/below");
    skill(&plain, "of-plain");
    // Nothing of a project that happens to be called like our own directories is in the way.
    std::os::unix::fs::symlink("/etc", plain.join("state")).unwrap();
    fs::create_dir(bed.root.join("state")).unwrap();
    let empty = made("empty");

    vec![
        (bed.root.clone(), Some("top")),
        (bed.root.join("a/b"), Some("top")),
        (linked, Some("top")),
        (bed.root.join("a/module"), Some("of-module")),
        (bed.root.join("a/module/a/b"), Some("of-module")),
        (store, Some("of-bare")),
        (inner, Some("of-inner")),
        (plain, Some("of-plain")),
        (empty, None),
        (bed.home.clone(), None),
        (PathBuf::from("/"), None),
    ]
}

#[test]
fn every_kind_of_place_serves_its_skills_and_leaves_no_trace() {
    let bed = Workspace::new();
    let base = bed.root.parent().unwrap();
    let places = places(&bed);
    let before = listing(base);
    for (directory, expected) in places {
        let (mut client, _aside) = connected(&mut command(&bed, &directory));
        for name in expected.into_iter().chain(["at-home"]) {
            assert!(offers(&mut client, name), "{directory:?}: {name}");
            let told = client.text("skill", &json!({"name": name}));
            assert!(told.starts_with(&format!("Loading: {name}\n")), "{told}");
        }
        for tool in ["get_run", "read_thread", "cancel_run"] {
            let told = client.call(tool, &json!({"run": "latest-of-all"}));
            assert_eq!(told["isError"], true, "{told}");
            let text = text_of(&told);
            assert!(
                text.starts_with("nothing runs here: `")
                    && text.contains("for a person: `workerctl init` makes it one"),
                "{text}"
            );
        }
        let told = client.call("list_runs", &json!({}));
        let text = text_of(&told);
        assert!(
            text.contains("is not a workspace, and has no runs"),
            "{text}"
        );
        let told = client.call("list_runs", &json!({"state": "bogus"}));
        let text = text_of(&told);
        assert!(
            text.starts_with("`bogus` is no outcome and no phase"),
            "{text}"
        );
        let told = client.text("use_skill", &json!({"skill": "at-home", "input": {}}));
        assert!(told.contains("are read, not executed"), "{told}");
        let resources = client.result("resources/list", &json!({})).to_string();
        assert!(
            resources.contains("skill://at-home/SKILL.md"),
            "{resources}"
        );
        assert!(!resources.contains("thread://"), "{resources}");
        assert_eq!(client.log(), "", "{directory:?}");
        assert!(client.leave().success());
    }
    assert_eq!(listing(base), before);
    for ours in ["/state", "/.workerctl"] {
        assert!(!Path::new(ours).exists(), "{ours}");
    }
}

#[test]
fn what_is_missing_or_closed_keeps_nothing_else_back() {
    let bed = Workspace::new();
    skill(&bed.root, "of-project");
    for home in [None, Some(bed.home.join("nowhere")), Some(bed.home.clone())] {
        let mut command = command(&bed, &bed.root);
        match &home {
            None => command.env_remove("HOME"),
            Some(home) => command.env("HOME", home),
        };
        let (mut client, _aside) = connected(&mut command);
        assert!(offers(&mut client, "of-project"), "{home:?}");
    }
    if !rustix::process::geteuid().is_root() {
        skip("only root can be somebody else");
        return;
    }
    for open in [bed.root.parent().unwrap(), &bed.root, &bed.home] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let closed = bed.root.join(".agents/skills");
    fs::create_dir_all(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let log = xtest::tempdir();
    let mut command = command(&bed, &bed.root);
    command.uid(STRANGER).gid(STRANGER);
    if bed
        .program(env!("CARGO_BIN_EXE_workerctl"))
        .uid(STRANGER)
        .arg("version")
        .output()
        .is_err()
    {
        skip("the program cannot be reached by others");
        return;
    }
    let mut client = Client::of(&mut command, log.path().join("log"));
    client.initialize("2025-06-18");
    assert!(offers(&mut client, "of-project"));
    client.lives();
}

#[test]
fn a_workspace_that_comes_to_be_is_served_and_the_first_run_writes_its_state() {
    let bed = Workspace::new();
    bed.write("a/file.txt", "x");
    bed.commit_all("begin");
    let (mut client, _aside) = connected(&mut command(&bed, &bed.root.join("a")));
    let refused = client.text("use_skill", &json!({"skill": "w/hello", "input": {}}));
    assert_eq!(refused, "Skill 'w/hello' not found");
    bed.write(
        "workers/w/worker.yaml",
        "worker: {id: w, description: d}
skills: [{id: hello, description: d, run: 'echo good morning'}]
",
    );
    client.hears_of_changes();
    assert!(offers(&mut client, "hello"));
    assert!(!bed.root.join("state").exists() && !bed.root.join(".workerctl").exists());
    let told = client.text("use_skill", &json!({"skill": "w/hello", "input": {}}));
    assert!(told.contains("good morning"), "{told}\n{}", client.log());
    assert!(bed.root.join("state/store").is_dir());
}
