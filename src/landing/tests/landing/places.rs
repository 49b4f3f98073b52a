//! Kinds of checkouts, branches and indexes, and what git has under way.

use std::fs;
use std::io::Write;
use std::time::{Duration, UNIX_EPOCH};

use workerctl_landing::{Observer, Obstacle, Outcome, Request, clear, land, late_edits};

use crate::rig::{MAIN, RUN, Scene, git_ok, log_line};

#[test]
fn a_branch_that_is_checked_out_nowhere_just_moves() {
    for packed in [false, true] {
        let scene = Scene::new();
        scene.git(&["branch", "team/target", scene.from.as_str()]);
        if packed {
            scene.git(&["pack-refs", "--all", "--prune"]);
        }
        scene.write("shared.txt", "mine\n");
        let before = scene.status();
        let outcome = scene.land_on("refs/heads/team/target").unwrap();
        assert!(matches!(outcome, Outcome::Landed { .. }), "{outcome:?}");
        assert_eq!(scene.tip("team/target"), Some(scene.to.to_string()));
        assert_eq!(scene.tip("main"), Some(scene.from.to_string()));
        assert_eq!(scene.status(), before);
        scene.is_sound().unwrap();
    }
}

#[test]
fn a_packed_branch_a_detached_head_and_a_silenced_log_are_no_hindrance() {
    let scene = Scene::new();
    scene.git(&["pack-refs", "--all", "--prune"]);
    scene.lands();
    let scene = Scene::new();
    scene.git(&["checkout", "-q", "--detach"]);
    let outcome = scene.land_on(MAIN).unwrap();
    assert!(matches!(outcome, Outcome::Landed { .. }), "{outcome:?}");
    assert_eq!(
        (scene.tip("HEAD"), scene.status()),
        (Some(scene.from.to_string()), String::new())
    );
    let scene = Scene::new();
    scene.git(&["config", "core.logAllRefUpdates", "false"]);
    fs::remove_dir_all(scene.repo().join(".git/logs")).unwrap();
    scene.lands();
    scene.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let again = scene.land_on(MAIN).unwrap();
    assert!(
        matches!(again, Outcome::Landed { .. }),
        "taken off since: {again:?}"
    );
    assert_eq!(scene.tip("main"), Some(scene.from.to_string()));
}

#[test]
fn the_first_commit_of_a_repository_lands() {
    for staged in [false, true] {
        let mut scene = Scene::empty();
        let blob = scene.root().join("blob");
        fs::write(&blob, "first\n").unwrap();
        let blob = scene.git(&["hash-object", "-w", "../blob"]);
        let entry = format!("100644,{blob},first.txt");
        scene.git(&["update-index", "--add", "--cacheinfo", &entry]);
        let tree = scene.git(&["write-tree"]);
        fs::remove_file(scene.repo().join(".git/index")).unwrap();
        scene.to = scene
            .git(&["commit-tree", "-m", "first", &tree])
            .parse()
            .unwrap();
        if staged {
            scene.write("mine.txt", "mine\n");
            scene.git(&["add", "mine.txt"]);
        }
        let outcome = scene.land_from(None, MAIN).unwrap();
        assert!(matches!(outcome, Outcome::Landed { .. }), "{outcome:?}");
        assert_eq!(scene.read("first.txt").unwrap(), "first\n");
        assert_eq!(scene.status(), if staged { "A  mine.txt" } else { "" });
        scene.is_sound().unwrap();
        let conflict = scene.land_from(None, "refs/heads/main/below").unwrap_err();
        assert_eq!(conflict.code(), "branch_name");
    }
}

#[test]
fn every_work_tree_that_has_the_branch_follows() {
    let scene = Scene::new();
    scene.git(&["worktree", "add", "-q", "--force", "../second", "main"]);
    scene.git(&["worktree", "add", "-q", "../third", "other"]);
    let (second, third) = (scene.root().join("second"), scene.root().join("third"));
    fs::write(second.join("shared.txt"), "mine\n").unwrap();
    scene.waits_for("checkout_dirty");
    git_ok(&second, &["checkout", "--", "."]);
    scene.lands();
    assert_eq!(git_ok(&second, &["status", "--porcelain"]), "");
    assert_eq!(
        fs::read_to_string(second.join("new/created.txt")).unwrap(),
        "RUN\n"
    );
    let log = git_ok(&second, &["reflog", "-1", "--format=%H %gs"]);
    assert!(log.starts_with(scene.to.as_str()), "{log}");
    assert_eq!(git_ok(&third, &["status", "--porcelain"]), "");
    assert!(!third.join("new").exists());
}

#[test]
fn a_work_tree_that_is_gone_is_no_hindrance_unless_it_is_locked() {
    let scene = Scene::new();
    scene.git(&["worktree", "add", "-q", "--force", "../second", "main"]);
    scene.git(&["worktree", "lock", "../second"]);
    fs::rename(scene.root().join("second"), scene.root().join("away")).unwrap();
    scene.waits_for("checkout_missing");
    scene.git(&["worktree", "unlock", "../second"]);
    scene.lands();
}

/// Removes a work tree while a landing in it is staged.
struct Removed<'s>(&'s Scene);

impl Observer for Removed<'_> {
    fn before(&self, step: &str) {
        if step == "make the staging folder" {
            self.0.git(&["worktree", "remove", "../second"]);
        }
    }
}

#[test]
fn a_work_tree_that_is_removed_meanwhile_is_waited_for_and_then_no_hindrance() {
    let scene = Scene::new();
    scene.git(&["worktree", "add", "-q", "--force", "../second", "main"]);
    let request = Request {
        repository: &scene.repo(),
        run: &RUN.parse().unwrap(),
        target: MAIN,
        from: Some(&scene.from),
        to: &scene.to,
        earlier: &[],
        log: &log_line(),
    };
    let outcome = land(&request, &mut scene.journal(), &Removed(&scene)).unwrap();
    let obstacle = Obstacle::CheckoutsChanged;
    let left = Vec::new();
    assert_eq!(outcome, Outcome::Waiting { obstacle, left });
    assert_eq!(scene.status(), "");
    scene.lands();
}

#[test]
fn a_repository_without_a_work_tree_of_its_own_lands_in_the_linked_one() {
    let scene = Scene::new();
    scene.git(&["clone", "-q", "--bare", "--template=", ".", "../bare.git"]);
    let bare = scene.root().join("bare.git");
    git_ok(
        &bare,
        &[
            "fetch",
            "-q",
            "../repo",
            "refs/workerctl/*:refs/workerctl/*",
        ],
    );
    fs::remove_dir_all(scene.repo()).unwrap();
    git_ok(&bare, &["worktree", "add", "-q", "../repo", "main"]);
    let outcome = scene.land_on(MAIN).unwrap();
    assert!(matches!(outcome, Outcome::Landed { .. }), "{outcome:?}");
    assert_eq!(scene.status(), "");
    assert_eq!(scene.read("new/created.txt").unwrap(), "RUN\n");
}

#[test]
fn what_git_has_under_way_on_the_branch_is_waited_for() {
    let conflict = |scene: &Scene, args: &[&str]| {
        let (ok, text) = scene.try_git(args);
        assert!(!ok, "{text}");
        let obstacle = scene.waits_for("busy");
        assert!(obstacle.to_string().contains("in progress"), "{obstacle}");
    };
    let scene = Scene::new();
    conflict(&scene, &["merge", "-q", "conflicting"]);
    scene.git(&["merge", "--abort"]);
    conflict(&scene, &["cherry-pick", "conflicting"]);
    scene.git(&["cherry-pick", "--abort"]);
    conflict(&scene, &["revert", "--no-edit", "conflicting"]);
    scene.git(&["revert", "--abort"]);
    conflict(&scene, &["rebase", "-q", "conflicting"]);
    scene.git(&["rebase", "--abort"]);
    scene.git(&["bisect", "start", "HEAD", "HEAD~2"]);
    scene.waits_for("busy");
    scene.git(&["bisect", "reset"]);
    scene.git(&["worktree", "add", "-q", "--force", "../second", "main"]);
    let second = scene.root().join("second");
    let (ok, _) = crate::rig::git_in(&second, &["rebase", "-q", "conflicting"]);
    assert!(!ok);
    scene.waits_for("busy");
    git_ok(&second, &["rebase", "--abort"]);
    scene.lands();
}

#[test]
fn a_lock_of_somebody_elses_is_waited_for_and_left_alone() {
    for lock in ["index.lock", "HEAD.lock", "refs/heads/main.lock"] {
        let scene = Scene::new();
        let lock = scene.repo().join(".git").join(lock);
        fs::write(&lock, "").unwrap();
        let outcome = scene.land_on(MAIN).unwrap();
        assert!(
            matches!(&outcome, Outcome::Waiting { obstacle, .. } if obstacle.code() == "busy"),
            "{outcome:?}"
        );
        assert_eq!(scene.locks(), std::slice::from_ref(&lock));
        fs::remove_file(lock).unwrap();
        assert_eq!(scene.status(), "");
        scene.lands();
    }
}

#[test]
fn a_branch_that_moved_is_told_with_the_paths_in_conflict() {
    let scene = Scene::new();
    scene.write("theirs.txt", "mine\n");
    scene.git(&["commit", "-q", "-am", "another path"]);
    let tip = scene.tip("main").unwrap();
    let outcome = scene.land_on(MAIN).unwrap();
    let moved = |paths: &[&str]| Outcome::Moved {
        tip: scene.tip("main").map(|tip| tip.parse().unwrap()),
        conflicts: paths.iter().map(|path| path.parse().unwrap()).collect(),
    };
    assert_eq!(outcome, moved(&[]));
    scene.write("shared.txt", "mine\n");
    scene.git(&["commit", "-q", "-am", "the same path"]);
    assert_eq!(scene.land_on(MAIN).unwrap(), moved(&["shared.txt"]));
    scene.git(&["reset", "-q", "--hard", &tip]);
    scene.git(&["cherry-pick", "--no-commit", scene.to.as_str()]);
    scene.git(&["commit", "-q", "-m", "the same by hand"]);
    let tip = scene.tip("main").unwrap().parse().unwrap();
    assert_eq!(scene.land_on(MAIN).unwrap(), Outcome::LandedIn { tip });
    scene.git(&["switch", "-q", "other"]);
    scene.git(&["branch", "-q", "-D", "main"]);
    assert_eq!(scene.land_on(MAIN).unwrap(), moved(&[]));
}

#[test]
fn every_form_of_index_ends_clean() {
    for settings in [
        &["index.version", "4"][..],
        &["core.untrackedCache", "true"],
        &["index.skipHash", "true"],
        &["feature.manyFiles", "true"],
        &["core.fsmonitor", "true"],
    ] {
        let scene = Scene::new();
        scene.git(&[&["config"], settings].concat());
        scene.git(&["read-tree", "HEAD"]);
        let _ = scene.try_git(&["update-index", "--index-version", "4"]);
        scene.git(&["status"]);
        scene.lands();
        scene.write("shared.txt", "one\ntwo\nthree\nMUN\n");
        assert_eq!(scene.status(), " M shared.txt", "{settings:?}");
        let _ = scene.try_git(&["fsmonitor--daemon", "stop"]);
    }
    for form in [
        &["update-index", "--split-index"][..],
        &["sparse-checkout", "set", "--cone", "--sparse-index", "new"],
    ] {
        let scene = Scene::new();
        scene.git(form);
        let refusal = scene.land_on(MAIN).unwrap_err();
        assert_eq!(refusal.code(), "unsupported_format", "{form:?}: {refusal}");
        assert_eq!(scene.status(), "");
    }
}

#[test]
fn times_that_the_index_does_not_trust_are_not_trusted_afterwards() {
    let scene = Scene::new();
    scene.git(&["config", "core.trustctime", "false"]);
    let at = |path: &str, nanoseconds: u32| {
        let time = Duration::new(1_700_000_000, nanoseconds);
        let file = fs::File::options()
            .write(true)
            .open(scene.repo().join(path));
        file.unwrap().set_modified(UNIX_EPOCH + time).unwrap();
    };
    scene.write("theirs.txt", "one\ntwo\nthree\nlost\n");
    at("theirs.txt", 100);
    scene.git(&["add", "theirs.txt"]);
    // The same size in the second of the index: only the index's own time tells that it must be read.
    scene.write("theirs.txt", "one\ntwo\nthree\nkept\n");
    at("theirs.txt", 500);
    at(".git/index", 900);
    let outcome = scene.land_on(MAIN).unwrap();
    assert!(matches!(outcome, Outcome::Landed { .. }), "{outcome:?}");
    let diff = scene.git(&["diff"]);
    assert!(diff.contains("-lost") && diff.contains("+kept"), "{diff}");
}

#[test]
fn an_edit_through_an_open_file_is_named() {
    let scene = Scene::new();
    let path = scene.repo().join("shared.txt");
    let mut open = fs::OpenOptions::new().append(true).open(&path).unwrap();
    scene.lands();
    let plan = match scene.journal().records().unwrap().remove(0) {
        workerctl_landing::Record::LandingStarted { plan } => plan,
        other => unreachable!("{other:?}"),
    };
    assert_eq!(late_edits(&plan).unwrap(), []);
    open.write_all(b"late\n").unwrap();
    let late = late_edits(&plan).unwrap();
    let replaced = late[0].replaced.as_ref().unwrap();
    assert_eq!(late[0].path.to_string(), "shared.txt");
    assert_eq!(
        fs::read_to_string(replaced).unwrap(),
        "one\ntwo\nthree\nlate\n"
    );
    clear(&plan).unwrap();
    assert!(!plan.staging.exists());
}

#[test]
fn a_commit_whose_editor_is_open_meanwhile_is_refused_by_git_and_then_succeeds() {
    let scene = Scene::new();
    scene.write("theirs.txt", "mine\n");
    scene.git(&["add", "theirs.txt"]);
    let waits = "core.editor=touch ../open; while [ ! -e ../go ]; do sleep 0.01; done; echo mine >";
    std::thread::scope(|scope| {
        let commit = scope.spawn(|| scene.try_git(&["-c", waits, "commit", "-q"]));
        while !scene.root().join("open").exists() && !commit.is_finished() {
            std::thread::yield_now();
        }
        let outcome = scene.land_on(MAIN).unwrap();
        assert!(matches!(outcome, Outcome::Landed { .. }), "{outcome:?}");
        fs::write(scene.root().join("go"), "").unwrap();
        let (ok, text) = commit.join().unwrap();
        assert!(!ok && text.contains("but expected"), "{text}");
    });
    scene.git(&["commit", "-q", "-m", "mine"]);
    let changed = scene.git(&["diff", "--name-only", "HEAD~1", "HEAD"]);
    assert_eq!(changed, "theirs.txt");
    scene.is_sound().unwrap();
}

/// Makes a file or directory immutable, which keeps even root from writing; `false` where that is not possible.
fn set_immutable(path: &std::path::Path, on: bool) -> bool {
    let flag = if on { "+i" } else { "-i" };
    let mut command = std::process::Command::new("chattr");
    let done = command
        .arg(flag)
        .arg(path)
        .stderr(std::process::Stdio::null());
    done.status().is_ok_and(|status| status.success())
}

#[test]
fn what_may_not_be_written_goes_back_and_holds_no_lock() {
    for place in ["shared.txt", ".git/refs/heads", ".git/index"] {
        let scene = Scene::new();
        let path = scene.repo().join(place);
        if !set_immutable(&path, true) {
            println!("skipped: nothing can be made immutable here");
            return;
        }
        let waits = scene.land_on(MAIN);
        let (locks, status) = (scene.locks(), scene.status());
        assert!(set_immutable(&path, false));
        match waits {
            Ok(Outcome::Waiting { obstacle, .. }) => assert_eq!(obstacle.code(), "read_only"),
            Err(error) => assert_eq!(error.code(), "read_only", "{place}: {error}"),
            other => panic!("{place}: {other:?}"),
        }
        assert_eq!(locks, Vec::<std::path::PathBuf>::new(), "{place}");
        assert_eq!(status, "", "{place}");
        scene.lands();
        scene.is_sound().unwrap();
    }
}

#[test]
fn a_log_that_may_not_be_written_keeps_no_commit_from_landing() {
    let scene = Scene::new();
    let log = scene.repo().join(".git/logs/refs/heads/main");
    if !set_immutable(&log, true) {
        println!("skipped: nothing can be made immutable here");
        return;
    }
    let landed = scene.land_on(MAIN);
    assert!(set_immutable(&log, false));
    assert!(matches!(landed, Ok(Outcome::Landed { .. })), "{landed:?}");
    assert_eq!(scene.locks(), Vec::<std::path::PathBuf>::new());
    assert_eq!(scene.status(), "");
}
