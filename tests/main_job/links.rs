//! Links in place of our files, as a commit can bring them: nothing behind them is touched.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::main_job::misuse::elsewhere;
use crate::workspace::daemon::Daemon;
use crate::workspace::{Done, Workspace};

const SKILLS: &str = r#"
  - {id: good, description: d, run: "true"}
  - {id: change, description: d, mutating: true, run: "echo x >> tracked.txt"}
"#;

/// All that lies below a directory, with what it holds.
fn snapshot(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(snapshot(&path));
            found.push((path, Vec::new()));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// Files of a person whose names are those of files of ours.
fn elsewhere_of(workspace: &Workspace) -> PathBuf {
    let place = workspace.home.join("elsewhere");
    for name in [
        "live/0",
        "0",
        "1",
        "lock",
        "store",
        "db.new/x",
        "scratch/x",
        "T-1.jsonl",
    ] {
        let path = place.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{name} of a person\n")).unwrap();
    }
    place
}

fn done(workspace: &Workspace, arguments: &[&str]) -> Done {
    workspace.start(&mut elsewhere(workspace, arguments)).end()
}

#[test]
fn no_command_follows_a_link_in_place_of_our_files() {
    let table = [
        ("state", ""),
        ("state/live", ""),
        ("state/live/0", "0"),
        ("state/lock", "lock"),
        ("state/run", ""),
        ("state/scratch", ""),
        ("state/secrets", ""),
        ("state/store", ""),
        ("state/store/db", ""),
        ("state/store/db.new", "db.new"),
        ("state/store/id", "0"),
        ("state/store/payload", ""),
        ("state/store/reserve", "0"),
        ("state/store/witness", "0"),
        ("state/trusted-skills", ""),
        ("state/mcp-token", "0"),
        ("state/.gitignore", "none"),
        (".workerctl", ""),
        (".workerctl/lock", "lock"),
        (".workerctl/store", "store"),
    ];
    let refused: [&[&str]; 10] = [
        &["status"],
        &["runs"],
        &["run", "good"],
        &["daemon"],
        &["skills"],
        &["skill", "show", "good"],
        &["store", "info"],
        &["store", "verify"],
        &["store", "rebuild"],
        &["store", "init"],
    ];
    for (turn, (link, target)) in table.into_iter().enumerate() {
        let workspace = Workspace::without_sandbox(SKILLS);
        let place = elsewhere_of(&workspace);
        let link = workspace.root.join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(place.join(target), &link).unwrap();
        let before = (snapshot(&place), snapshot(&workspace.root.join(".git")));
        // Each link meets two of the commands, and each command four links.
        for arguments in [refused[turn % 10], refused[(turn + 1 + turn / 10) % 10]] {
            let done = done(&workspace, arguments).expect_code(6);
            let named = format!("`{}` is a symbolic link", link.display());
            assert!(done.stderr.contains(&named), "{arguments:?}: {done:?}");
            assert!(done.stderr.contains("hint: remove the link"), "{done:?}");
        }
        let doctor = done(&workspace, &["doctor"]).expect_code(1);
        assert!(doctor.stdout.contains("is a symbolic link"), "{doctor:?}");
        for arguments in [&["check"][..], &["config"]] {
            done(&workspace, arguments).expect_code(0);
        }
        let after = (snapshot(&place), snapshot(&workspace.root.join(".git")));
        assert_eq!(before, after, "{}", link.display());
        // What the hint says works.
        fs::remove_file(&link).unwrap();
        done(&workspace, &["run", "good"]).expect_code(0);
        assert_eq!(before.0, snapshot(&place));
    }
}

#[test]
fn a_clone_that_brings_a_link_deletes_nothing() {
    for link in ["state/live", ".workerctl"] {
        let workspace = Workspace::with_skills(SKILLS);
        let place = elsewhere_of(&workspace);
        let before = snapshot(&place);
        let path = workspace.root.join(link);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(&place, &path).unwrap();
        workspace.git(&["add", "-f", link]);
        workspace.git(&["commit", "-qm", "a trap"]);
        let clone = workspace.root.with_file_name("clone");
        let (from, to) = (workspace.root.to_str().unwrap(), clone.to_str().unwrap());
        workspace.git(&["clone", "-q", from, to]);
        assert!(clone.join(link).is_symlink());
        for arguments in [&["status"][..], &["runs"], &["run", "good"]] {
            let mut command = elsewhere(&workspace, arguments);
            workspace
                .start(command.current_dir(&clone))
                .end()
                .expect_code(6);
        }
        assert_eq!(before, snapshot(&place), "{link}");
    }
}

#[test]
fn a_link_that_comes_while_an_engine_runs_leads_it_nowhere() {
    let workspace = Workspace::with_skills(SKILLS);
    let place = elsewhere_of(&workspace);
    let before = snapshot(&place);
    let daemon = Daemon::start(&workspace);
    workspace.run(&["run", "good"]).expect_code(0);
    for name in ["live", "scratch"] {
        let ours = workspace.state().join(name);
        fs::rename(&ours, ours.with_extension("away")).unwrap();
        symlink(&place, &ours).unwrap();
    }
    let ours = workspace.root.join(".workerctl");
    fs::rename(&ours, ours.with_extension("away")).unwrap();
    symlink(&place, &ours).unwrap();
    daemon.stop();
    assert_eq!(before, snapshot(&place));
}

#[test]
fn threads_and_metrics_behind_a_link_are_refused_by_name() {
    for link in ["workspace", "workspace/threads", "workspace/metrics"] {
        let workspace = Workspace::with_skills(SKILLS);
        let place = elsewhere_of(&workspace);
        let before = snapshot(&place);
        let path = workspace.root.join(link);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(&place, &path).unwrap();
        for skill in ["good", "change"] {
            let done = done(&workspace, &["run", skill]).expect_code(6);
            let named = format!("`{}` is a symbolic link", path.display());
            assert!(done.stderr.contains(&named), "{done:?}");
        }
        if link != "workspace/metrics" {
            let done = done(&workspace, &["store", "rebuild"]).expect_code(6);
            assert!(done.stderr.contains("is a symbolic link"), "{done:?}");
        }
        let doctor = done(&workspace, &["doctor"]).expect_code(1);
        assert!(doctor.stdout.contains("is a symbolic link"), "{doctor:?}");
        assert_eq!(before, snapshot(&place), "{link}");
        assert_eq!(workspace.read("tracked.txt").unwrap(), "as committed\n");
    }
}

#[test]
fn a_state_directory_that_the_machine_reaches_by_a_link_is_used() {
    let workspace = Workspace::without_sandbox(SKILLS);
    // As systemd makes it for `DynamicUser=`.
    let lib = workspace.home.join("lib");
    fs::create_dir_all(lib.join("private")).unwrap();
    symlink("private/workerctl", lib.join("workerctl")).unwrap();
    let state = lib.join("workerctl");
    let command = |arguments: &[&str]| {
        let mut command = elsewhere(&workspace, arguments);
        command.env("STATE_DIRECTORY", &state);
        command
    };
    let run = |arguments: &[&str]| workspace.start(&mut command(arguments)).end();
    fs::create_dir(lib.join("private/workerctl")).unwrap();
    let daemon = Daemon::start_by(&workspace, command(&["daemon"]));
    run(&["run", "good"]).expect_code(0);
    let status = run(&["status", "--json"]).expect_code(0).value();
    let real = lib.join("private/workerctl").display().to_string();
    assert_eq!(status["state_dir"], real.as_str(), "{status}");
    daemon.stop();
    let runs = run(&["runs", "--json"]).expect_code(0).value();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
    run(&["doctor"]).expect_code(0);
}
