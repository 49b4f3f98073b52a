//! A run that merges or rebases: its result is what its own commits have, also where something is laid over the tree.

use std::fs;

use workerctl_landing::ids::Oid;
use workerctl_trees::{Overlay, RunResult, Tree};

use crate::rig::{Rig, git, names, path};

/// A base without the files that a branch adds, changes and removes where the checkout has its own.
struct Scene {
    rig: Rig,
    base: Oid,
    newer: Oid,
}

fn scene() -> Scene {
    let mut rig = Rig::new();
    let base = rig.head();
    let repo = rig.repo();
    fs::create_dir(repo.join("local")).unwrap();
    fs::write(repo.join("local/added"), "as main has it\n").unwrap();
    fs::write(repo.join("d0/e0/f0"), "as main has it\n").unwrap();
    fs::remove_file(repo.join("d1/e1/f1")).unwrap();
    fs::write(repo.join("plain"), "of main\n").unwrap();
    let newer = rig.commit("newer");
    let local = rig.root().join("checkout");
    fs::create_dir_all(local.join("local")).unwrap();
    fs::write(local.join("local/added"), "uncommitted\n").unwrap();
    fs::write(local.join("local/own"), "uncommitted\n").unwrap();
    rig.overlay = vec![Overlay {
        path: path("local"),
        from: local.join("local"),
        link: false,
        optional: true,
        unignored: false,
    }];
    Scene { rig, base, newer }
}

fn started(scene: &Scene) -> (Tree, workerctl_trees::Start) {
    let mut tree = scene.rig.take("w");
    let start = scene
        .rig
        .with_base(Some(&scene.base), |base| tree.make_equal(base))
        .unwrap();
    (tree, start)
}

/// The tree of the run's `HEAD` with one more file in it.
fn head_with_own(tree: &Tree) -> String {
    let at = tree.path();
    let index = at.join(".git/judge");
    let script = "git read-tree HEAD && git update-index --add --cacheinfo \
                  100644,$(git hash-object -w mine),mine && git write-tree";
    let done = std::process::Command::new("sh")
        .args(["-c", script])
        .env("GIT_INDEX_FILE", &index)
        .current_dir(at)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

fn assert_is_head_with_own(tree: &Tree, result: &RunResult) {
    assert_eq!(result.problems, []);
    assert_eq!(result.tree.as_str(), head_with_own(tree));
}

fn identified(at: &std::path::Path) {
    git(at, &["config", "user.name", "T"]);
    git(at, &["config", "user.email", "t@example.org"]);
}

#[test]
fn a_merge_in_a_run_lands_what_it_brings_below_paths_that_are_laid_over() {
    let scene = scene();
    let (mut tree, start) = started(&scene);
    let at = tree.path().to_owned();
    assert_eq!(fs::read(at.join("local/own")).unwrap(), b"uncommitted\n");
    identified(&at);
    git(&at, &["merge", "-q", "--no-edit", scene.newer.as_str()]);
    fs::write(at.join("mine"), "m\n").unwrap();
    let result = tree.result(&start).unwrap();
    assert_is_head_with_own(&tree, &result);
    assert_eq!(
        names(&result.changes),
        ["d0/e0/f0", "d1/e1/f1", "local/added", "mine", "plain"]
    );
    // Another process finds the same, and nothing has changed since.
    drop(tree);
    let mut tree = scene.rig.take("w");
    assert_eq!(tree.result(&start).unwrap(), result);
    assert_eq!(tree.drift(&start, &result).unwrap(), []);
}

#[test]
fn a_rebase_in_a_run_lands_what_it_brings_below_paths_that_are_laid_over() {
    let scene = scene();
    let (mut tree, start) = started(&scene);
    let at = tree.path().to_owned();
    identified(&at);
    fs::write(at.join("mine"), "m\n").unwrap();
    git(&at, &["add", "mine"]);
    git(&at, &["commit", "-q", "-m", "mine"]);
    git(&at, &["rebase", "-q", scene.newer.as_str()]);
    let result = tree.result(&start).unwrap();
    assert_is_head_with_own(&tree, &result);
}

#[test]
fn a_file_that_replaces_a_directory_that_is_laid_over_lands() {
    let scene = scene();
    let (mut tree, start) = started(&scene);
    let at = tree.path().to_owned();
    identified(&at);
    let blob = git(&at, &["hash-object", "-w", "link"]);
    let entry = format!("100644,{},local", blob.trim());
    git(&at, &["update-index", "--add", "--cacheinfo", &entry]);
    git(
        &at,
        &["commit", "-q", "-m", "a file in the place of the directory"],
    );
    fs::write(at.join("mine"), "m\n").unwrap();
    let result = tree.result(&start).unwrap();
    assert_is_head_with_own(&tree, &result);
    assert_eq!(names(&result.changes), ["local", "mine"]);
}

#[test]
fn what_a_merge_brought_is_put_on_another_tip_with_the_rest() {
    let scene = scene();
    let (mut tree, start) = started(&scene);
    let at = tree.path().to_owned();
    identified(&at);
    git(&at, &["merge", "-q", "--no-edit", scene.newer.as_str()]);
    let result = tree.result(&start).unwrap();
    // The branch has moved on: the same changes are put on its new tip.
    let repo = scene.rig.repo();
    git(
        &repo,
        &["checkout", "-q", "-B", "moved", scene.base.as_str()],
    );
    fs::write(repo.join("other"), "o\n").unwrap();
    let tip = scene.rig.commit("other");
    let again = scene
        .rig
        .with_base(Some(&tip), |base| tree.make_result(base, &result.changes))
        .unwrap();
    let moved = tree.result(&again).unwrap();
    assert_eq!(moved.problems, []);
    assert_eq!(names(&moved.changes), names(&result.changes));
    assert_eq!(tree.drift(&again, &moved).unwrap(), []);
    assert_eq!(
        fs::read(at.join("local/added")).unwrap(),
        b"as main has it\n"
    );
    assert_eq!(fs::read(at.join("local/own")).unwrap(), b"uncommitted\n");
}

#[test]
fn commits_that_track_a_kept_path_are_refused_and_not_undone() {
    let mut scene = scene();
    scene.rig.overlay.clear();
    scene.rig.keep = vec!["build/".into()];
    let (mut tree, start) = started(&scene);
    let at = tree.path().to_owned();
    identified(&at);
    fs::create_dir(at.join("build")).unwrap();
    fs::write(at.join("build/out"), "o\n").unwrap();
    git(&at, &["add", "-f", "build/out"]);
    git(&at, &["commit", "-q", "-m", "build"]);
    let result = tree.result(&start).unwrap();
    let codes: Vec<&str> = result.problems.iter().map(|p| p.code.as_str()).collect();
    assert_eq!(codes, ["kept_is_tracked"]);
}

/// It may be a secret, and it is no part of a result.
#[test]
fn commits_with_a_copy_of_an_uncommitted_file_are_refused() {
    let scene = scene();
    let (mut tree, start) = started(&scene);
    let at = tree.path().to_owned();
    identified(&at);
    git(&at, &["add", "-f", "local/own"]);
    git(&at, &["commit", "-q", "-m", "a copy"]);
    let result = tree.result(&start).unwrap();
    let codes: Vec<&str> = result.problems.iter().map(|p| p.code.as_str()).collect();
    assert_eq!(codes, ["overlay_changed"]);
    assert!(result.problems[0].message.contains("local/own"));
}

#[test]
fn a_file_that_is_too_large_is_refused_and_not_read() {
    let scene = scene();
    let (mut tree, start) = started(&scene);
    let large = fs::File::create(tree.path().join("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    let result = tree.result(&start).unwrap();
    let codes: Vec<&str> = result.problems.iter().map(|p| p.code.as_str()).collect();
    assert_eq!(codes, ["file_too_large"]);
}
