//! What is hinted at, and what is not.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::*;

const LONG: Duration = Duration::from_mins(1);

/// A watch whose first hint has come.
fn watched(workspace: &Path, home: Option<&Path>) -> (Watch, Receiver<()>) {
    let (sender, hints) = channel();
    let hint = move || {
        let _ = sender.send(());
    };
    let watch = Watch::start(workspace, home.map(Path::to_owned), hint).unwrap();
    hints.recv_timeout(LONG).unwrap();
    (watch, hints)
}

/// What `change` does is hinted at; nothing that was received before counts.
fn noticed(hints: &Receiver<()>, change: impl FnOnce()) {
    while hints.try_recv().is_ok() {}
    change();
    hints.recv_timeout(LONG).unwrap();
}

#[test]
fn changes_are_noticed_wherever_definitions_may_come_to_stand() {
    let root = xtest::tempdir();
    let (_watch, hints) = watched(root.path(), None);
    let path = |relative: &str| root.path().join(relative);
    noticed(&hints, || fs::create_dir(path("workers")).unwrap());
    let deep = path("workers/w/skills");
    noticed(&hints, || fs::create_dir_all(&deep).unwrap());
    noticed(&hints, || fs::write(deep.join("s.md"), "x").unwrap());
    noticed(&hints, || fs::remove_file(deep.join("s.md")).unwrap());
    noticed(&hints, || fs::write(path(CONFIG_FILE), "x").unwrap());
    let elsewhere = path("made");
    fs::create_dir(&elsewhere).unwrap();
    noticed(&hints, || {
        fs::rename(&elsewhere, path("workers/moved")).unwrap();
    });
    noticed(&hints, || {
        fs::write(path("workers/moved/worker.yaml"), "x").unwrap();
    });
    // Below a directory that was moved, directories are known by where they are now.
    noticed(&hints, || {
        fs::rename(path("workers/moved"), path("workers/again")).unwrap();
    });
    noticed(&hints, || {
        fs::create_dir(path("workers/again/below")).unwrap();
    });
    noticed(&hints, || {
        fs::write(path("workers/again/below/x.md"), "x").unwrap();
    });
}

#[test]
fn skills_are_watched_in_the_workspace_and_at_home_wherever_they_come_to_be() {
    let root = xtest::tempdir();
    let home = xtest::tempdir();
    let elsewhere = xtest::tempdir();
    let (_watch, hints) = watched(root.path(), Some(home.path()));
    for (base, path) in [
        (root.path(), "workspace/skills/a"),
        (root.path(), ".claude/skills/a"),
        (home.path(), ".agents/skills/a"),
    ] {
        let skill = base.join(path);
        noticed(&hints, || fs::create_dir_all(&skill).unwrap());
        let file = skill.join("SKILL.md");
        noticed(&hints, || fs::write(&file, "x").unwrap());
        noticed(&hints, || fs::write(&file, "y").unwrap());
        noticed(&hints, || fs::remove_file(&file).unwrap());
    }
    // A root that is a link, one below a link, and one that the configuration names later.
    fs::create_dir(home.path().join(".claude")).unwrap();
    let link = home.path().join(".claude/skills");
    noticed(&hints, || symlink(elsewhere.path(), link).unwrap());
    noticed(&hints, || {
        fs::write(elsewhere.path().join("x"), "x").unwrap();
    });
    let kept = elsewhere.path().join("kept");
    fs::create_dir_all(kept.join("skills")).unwrap();
    noticed(&hints, || {
        symlink(&kept, home.path().join(".wave")).unwrap();
    });
    noticed(&hints, || fs::write(kept.join("skills/x"), "x").unwrap());
    let named = xtest::tempdir();
    let named = named.path().join("not/there/yet");
    let text = format!("skills: {{roots: ['{}']}}\n", named.display());
    noticed(&hints, || {
        fs::write(root.path().join(CONFIG_FILE), text).unwrap();
    });
    noticed(&hints, || fs::create_dir_all(&named).unwrap());
    noticed(&hints, || fs::write(named.join("x"), "x").unwrap());
}

#[test]
fn workers_are_watched_in_every_directory_that_a_path_may_stand_for() {
    let root = xtest::tempdir();
    let path = |relative: &str| root.path().join(relative);
    let config = "workers: {paths: [core/workers, packages/*/workers]}\n";
    fs::write(path(CONFIG_FILE), config).unwrap();
    let (_watch, hints) = watched(root.path(), None);
    noticed(&hints, || fs::create_dir(path("packages")).unwrap());
    for package in ["packages/a", "packages/b"] {
        noticed(&hints, || fs::create_dir(path(package)).unwrap());
        let workers = path(package).join("workers");
        noticed(&hints, || fs::create_dir(&workers).unwrap());
        noticed(&hints, || fs::create_dir(workers.join("w")).unwrap());
        let file = workers.join("w/worker.yaml");
        noticed(&hints, || fs::write(&file, "x").unwrap());
        noticed(&hints, || fs::write(&file, "y").unwrap());
    }
    fs::create_dir_all(path("elsewhere/workers")).unwrap();
    noticed(&hints, || {
        symlink(path("elsewhere"), path("packages/c")).unwrap();
    });
    noticed(&hints, || {
        fs::write(path("elsewhere/workers/x"), "x").unwrap();
    });
    // The registry has its place though no workers are read there.
    noticed(&hints, || fs::create_dir(path("workers")).unwrap());
    let registry = path("workers/registry.yaml");
    noticed(&hints, || fs::write(&registry, "x").unwrap());
    noticed(&hints, || fs::write(&registry, "y").unwrap());
}

/// What of the changes made by `change` is taken for a change of definitions.
fn received(tree: &mut Tree, inotify: &mut Inotify, last: &str) -> usize {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut received = 0;
    loop {
        let notices: Vec<EventOwned> = inotify
            .read_events_blocking(&mut buffer)
            .unwrap()
            .map(|notice| notice.to_owned())
            .collect();
        for notice in notices {
            received += usize::from(tree.receive(&notice));
            if notice.name.is_some_and(|name| name == last) {
                return received;
            }
        }
    }
}

#[test]
fn reading_and_what_lies_elsewhere_is_no_change() {
    let root = xtest::tempdir();
    let outside = xtest::tempdir();
    let file = root.path().join("workers/w/worker.yaml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "x").unwrap();
    // A root of the workspace that leads out of it is not read either.
    fs::create_dir(root.path().join(".claude")).unwrap();
    symlink(outside.path(), root.path().join(".claude/skills")).unwrap();
    let mut inotify = Inotify::init().unwrap();
    let mut tree = Tree::watch(root.path(), None, inotify.watches());
    fs::read(&file).unwrap();
    fs::read_dir(root.path().join("workers")).unwrap().count();
    fs::write(outside.path().join("x"), "x").unwrap();
    fs::write(root.path().join("other"), "x").unwrap();
    fs::write(root.path().join("last"), "x").unwrap();
    assert_eq!(received(&mut tree, &mut inotify, "last"), 0);
}

#[test]
fn a_watch_that_is_dropped_ends() {
    let root = xtest::tempdir();
    let (watch, hints) = watched(root.path(), None);
    drop(watch);
    fs::write(root.path().join(CONFIG_FILE), "x").unwrap();
    assert!(hints.recv().is_err(), "its thread is gone with its sender");
}
