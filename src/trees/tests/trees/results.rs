//! What a run changed is what git would find.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use workerctl_trees::HeadState;

use crate::rig::{Rig, git, names, path};

#[test]
fn a_tree_that_was_not_touched_has_no_result() {
    let rig = Rig::new();
    let mut tree = rig.take("w");
    let start = rig.equal(&mut tree);
    let result = tree.result(&start).unwrap();
    assert_eq!((result.changes.len(), result.problems.len()), (0, 0));
    assert_eq!(result.tree, start.tree);
    assert_eq!(
        result.head,
        HeadState::OnTarget {
            commit: start.base.clone()
        }
    );
}

#[test]
fn changes_of_every_kind_make_the_tree_that_git_would_make() {
    let rig = Rig::new();
    let mut tree = rig.take("w");
    let start = rig.equal(&mut tree);
    let at = tree.path().to_owned();
    fs::write(at.join("d0/e0/f0"), "CONTENT 0\n").unwrap();
    fs::set_permissions(at.join("d1/e1/f1"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(at.join("run.sh")).unwrap();
    fs::rename(at.join("d2"), at.join("moved")).unwrap();
    fs::remove_file(at.join("link")).unwrap();
    fs::create_dir(at.join("link")).unwrap();
    fs::write(at.join("link/inner"), "x").unwrap();
    symlink("nowhere", at.join("dangling")).unwrap();
    fs::create_dir_all(at.join("build")).unwrap();
    fs::write(at.join("build/out"), "x").unwrap();
    fs::write(at.join("a.log"), "x").unwrap();
    let result = tree.result(&start).unwrap();
    assert_eq!(result.problems, []);
    assert_eq!(result.tree.as_str(), rig.judged(&at));
    assert_eq!(result.ignored.names, ["a.log", "build/"]);
    git(
        &at,
        &["cat-file", "-p", &format!("{}^{{tree}}", result.tree)],
    );
    assert_eq!(tree.drift(&start, &result).unwrap(), []);
    fs::write(at.join("link/inner"), "y").unwrap();
    fs::write(at.join("later"), "y").unwrap();
    assert_eq!(
        tree.drift(&start, &result).unwrap(),
        [path("later"), path("link/inner")]
    );
    // The same on another base, in another tree.
    fs::write(rig.repo().join("unrelated"), "u").unwrap();
    let other = rig.commit("second");
    drop(tree);
    let mut tree = rig.take("other");
    git(&rig.repo(), &["fetch", "-q", at.to_str().unwrap(), "HEAD"]);
    import(&rig, &at);
    let second = rig
        .with_base(Some(&other), |base| tree.make_result(base, &result.changes))
        .unwrap();
    let again = tree.result(&second).unwrap();
    assert_eq!(again.changes, result.changes);
}

/// Brings every object of a tree's repository into the real one.
pub(crate) fn import(rig: &Rig, at: &std::path::Path) {
    let from = at.join(".git/objects");
    let to = rig.repo().join(".git/objects");
    let script = "cp -rn \"$0\"/?? \"$1\"/";
    let done = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(from)
        .arg(to)
        .status();
    assert!(done.unwrap().success());
}

#[test]
fn an_edit_of_the_same_size_with_its_time_set_back_is_seen() {
    let rig = Rig::new();
    let mut tree = rig.take("w");
    for _ in 0..20 {
        let start = rig.equal(&mut tree);
        let file = tree.path().join("d0/e0/f0");
        let times = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, "CONTENT 0\n").unwrap();
        fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_modified(times)
            .unwrap();
        assert_eq!(names(&tree.result(&start).unwrap().changes), ["d0/e0/f0"]);
    }
}

#[test]
fn commits_stay_and_the_work_tree_decides() {
    let rig = Rig::new();
    let mut tree = rig.take("w");
    let start = rig.equal(&mut tree);
    let at = tree.path().to_owned();
    for name in ["one", "two"] {
        fs::write(at.join(name), name).unwrap();
        git(&at, &["add", "-A"]);
        git(&at, &["commit", "-q", "-m", name]);
    }
    fs::remove_file(at.join("one")).unwrap();
    git(&at, &["update-index", "--skip-worktree", "two"]);
    fs::write(at.join("two"), "TWO").unwrap();
    let result = tree.result(&start).unwrap();
    assert_eq!(result.commits_count, 2);
    let log = git(&at, &["log", "--reverse", "--format=%H", "HEAD~2.."]);
    let made: Vec<String> = result
        .commits_made
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(made, log.lines().collect::<Vec<_>>());
    assert_eq!(names(&result.changes), ["two"]);
    assert!(!result.is_unrelated);
    git(&at, &["switch", "-q", "-f", "-c", "elsewhere"]);
    let moved = tree.result(&start).unwrap();
    assert_eq!(
        moved.head,
        HeadState::Moved {
            found: "refs/heads/elsewhere".into()
        }
    );
}

#[test]
fn what_cannot_be_committed_is_named() {
    let rig = Rig::new();
    let mut tree = rig.take("w");
    let start = rig.equal(&mut tree);
    let at = tree.path().to_owned();
    fs::create_dir(at.join("inner")).unwrap();
    git(&at.join("inner"), &["init", "-q"]);
    fs::create_dir(at.join(".GIT")).unwrap();
    fs::write(at.join(".GIT/x"), "x").unwrap();
    fs::write(at.join(std::ffi::OsStr::from_bytes(b"\xff")), "x").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at.join("fifo"), rustix::fs::Mode::RWXU).unwrap();
    fs::write(at.join(".git/MERGE_HEAD"), "x").unwrap();
    let result = tree.result(&start).unwrap();
    let mut codes: Vec<&str> = result.problems.iter().map(|p| p.code.as_str()).collect();
    codes.sort_unstable();
    assert_eq!(
        codes,
        ["nested_repository", "operation", "path_name", "path_name"]
    );
    rig.equal(&mut tree);
    rig.assert_equal(&tree);
}

#[test]
fn a_run_cannot_hide_a_change_by_settings_of_its_repository() {
    let rig = Rig::new();
    let mut tree = rig.take("w");
    let start = rig.equal(&mut tree);
    let at = tree.path().to_owned();
    fs::write(at.join("secret"), "x").unwrap();
    fs::write(at.join(".git/info/exclude"), "*\n").unwrap();
    fs::write(at.join("all"), "*\n").unwrap();
    git(
        &at,
        &[
            "config",
            "core.excludesFile",
            at.join("all").to_str().unwrap(),
        ],
    );
    git(&at, &["sparse-checkout", "set", "d0"]);
    let result = tree.result(&start).unwrap();
    assert_eq!(result.tree.as_str(), rig.judged(&at));
    assert!(names(&result.changes).contains(&"secret".to_owned()));
}
