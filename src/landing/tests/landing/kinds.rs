//! Kinds of commits and files.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use workerctl_landing::{LandError, Outcome};

use crate::rig::{MAIN, Scene, git_ok};

fn put(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn mode(scene: &Scene, path: &str) -> u32 {
    let meta = fs::metadata(scene.repo().join(path)).unwrap();
    meta.permissions().mode() & 0o777
}

/// A repository with these files in its first commit.
fn scene_with(files: &[(&str, &str)]) -> Scene {
    let scene = Scene::empty();
    for (path, text) in files {
        scene.write(path, text);
    }
    scene.git(&["add", "-A"]);
    scene.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    scene
}

fn refused(scene: &Scene) -> &'static str {
    match scene.land_on(MAIN) {
        Err(error) => error.code(),
        Ok(outcome) => unreachable!("{outcome:?}"),
    }
}

#[test]
fn a_commit_lands_and_nothing_else_changes() {
    let scene = Scene::new();
    scene.write("theirs.txt", "edited\n");
    scene.write("second.txt", "staged\n");
    scene.git(&["add", "second.txt"]);
    scene.write("untracked.txt", "untracked\n");
    let before = scene.status();
    let outcome = scene.land_on(MAIN).unwrap();
    assert!(
        matches!(&outcome, Outcome::Landed { late, .. } if late.is_empty()),
        "{outcome:?}"
    );
    assert_eq!(scene.status(), before);
    assert_eq!(scene.read("shared.txt").unwrap(), "one\ntwo\nthree\nRUN\n");
    assert_eq!(scene.read("new/created.txt").unwrap(), "RUN\n");
    assert_eq!(scene.read("gone.txt"), None);
    assert_eq!(mode(&scene, "run.sh") & 0o111, 0o111);
    scene.is_sound().unwrap();
    let log = scene.git(&["reflog", "-2", "--format=%H %gs"]);
    let wanted = format!("{} workerctl: run", scene.to);
    assert!(
        log.starts_with(&wanted) && log.contains(&scene.from.to_string()),
        "{log}"
    );
    assert_eq!(
        log.lines().next(),
        scene
            .git(&["reflog", "-1", "main", "--format=%H %gs"])
            .lines()
            .next()
    );
    let again = scene.land_on(MAIN).unwrap();
    assert!(matches!(again, Outcome::Landed { .. }), "{again:?}");
}

#[test]
fn files_become_directories_links_and_the_other_way_round() {
    let mut scene = scene_with(&[
        ("file", "f\n"),
        ("dir/a", "a\n"),
        ("dir/sub/b", "b\n"),
        ("plain", "plain\n"),
        ("script", "#!/bin/sh\n"),
    ]);
    std::os::unix::fs::symlink("plain", scene.repo().join("link")).unwrap();
    scene.git(&["add", "-A"]);
    scene.git(&["commit", "-q", "-m", "link"]);
    scene.commit_aside(|dir| {
        fs::remove_file(dir.join("file")).unwrap();
        put(dir, "file/inner", "inner\n");
        fs::remove_dir_all(dir.join("dir")).unwrap();
        put(dir, "dir", "now a file\n");
        fs::remove_file(dir.join("link")).unwrap();
        put(dir, "link", "now a file\n");
        fs::remove_file(dir.join("plain")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.join("plain")).unwrap();
        fs::set_permissions(dir.join("script"), PermissionsExt::from_mode(0o755)).unwrap();
        put(dir, "caf\u{e9}/50%.txt", "odd name\n");
    });
    scene.lands();
    assert_eq!(scene.read("file/inner").unwrap(), "inner\n");
    assert_eq!(
        fs::read_link(scene.repo().join("plain")).unwrap(),
        Path::new("nowhere")
    );
    // And back again.
    let (old, new) = (scene.from.clone(), scene.to.clone());
    let tree = format!("{old}^{{tree}}");
    let back = scene.git(&["commit-tree", "-p", new.as_str(), "-m", "back", &tree]);
    (scene.from, scene.to) = (new, back.parse().unwrap());
    scene.lands();
    assert_eq!(scene.read("dir/sub/b").unwrap(), "b\n");
    assert!(
        !scene.repo().join("caf\u{e9}").exists(),
        "an empty directory is left"
    );
}

#[test]
fn a_file_in_the_way_counts_unless_it_is_the_commits() {
    let mut scene = scene_with(&[(".gitignore", "*.log\n")]);
    scene.commit_aside(|dir| {
        put(dir, "new.txt", "new\n");
        put(dir, "out.log", "log\n");
        put(dir, "deep/er.txt", "deep\n");
    });
    for (path, text) in [
        ("new.txt", "mine\n"),
        ("out.log", "mine\n"),
        ("deep", "mine\n"),
    ] {
        scene.write(path, text);
        let obstacle = scene.waits_for("checkout_dirty");
        assert!(obstacle.to_string().contains(path), "{obstacle}");
        assert_eq!(scene.read(path).unwrap(), text);
        fs::remove_file(scene.repo().join(path)).unwrap();
    }
    scene.write("new.txt/inner", "mine\n");
    scene.waits_for("checkout_dirty");
    fs::remove_file(scene.repo().join("new.txt/inner")).unwrap();
    fs::create_dir_all(scene.repo().join("deep/.git")).unwrap();
    scene.waits_for("checkout_dirty");
    fs::remove_dir_all(scene.repo().join("deep")).unwrap();
    scene.write("out.log", "log\n");
    scene.lands();
}

#[test]
fn what_a_person_has_changed_or_staged_is_waited_for() {
    let scene = Scene::new();
    scene.write("shared.txt", "mine\n");
    scene.waits_for("checkout_dirty");
    scene.git(&["add", "shared.txt"]);
    scene.git(&["restore", "--worktree", "--source=HEAD", "shared.txt"]);
    scene.waits_for("checkout_dirty");
    scene.git(&["reset", "-q", "--hard"]);
    scene.write("new/created.txt", "RUN\n");
    scene.git(&["add", "-N", "new/created.txt"]);
    scene.waits_for("checkout_dirty");
    scene.git(&["rm", "-q", "--cached", "-f", "new/created.txt"]);
    fs::remove_file(scene.repo().join("shared.txt")).unwrap();
    scene.waits_for("checkout_dirty");
    scene.git(&["checkout", "--", "shared.txt"]);
    fs::set_permissions(
        scene.repo().join("shared.txt"),
        PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    scene.waits_for("checkout_dirty");
    scene.git(&["config", "core.fileMode", "false"]);
    scene.lands();
}

#[test]
fn a_private_file_stays_private() {
    let scene = Scene::new();
    let path = scene.repo().join("shared.txt");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let script = scene.repo().join("run.sh");
    fs::set_permissions(&script, PermissionsExt::from_mode(0o640)).unwrap();
    scene.lands();
    assert_eq!(mode(&scene, "shared.txt"), 0o600);
    assert_eq!(mode(&scene, "run.sh"), 0o750);
}

#[test]
fn files_that_a_sparse_checkout_leaves_out_are_changed_in_the_index_only() {
    let scene = Scene::new();
    scene.git(&[
        "sparse-checkout",
        "set",
        "--no-cone",
        "/*",
        "!/dir/",
        "!/gone.txt",
    ]);
    assert!(!scene.repo().join("dir").exists());
    scene.lands();
    assert!(!scene.repo().join("dir").exists());
    scene.git(&["sparse-checkout", "disable"]);
    assert_eq!(scene.status(), "");
    assert_eq!(
        scene.read("dir/deep.txt").unwrap(),
        "RUN\none\ntwo\nthree\n"
    );

    let scene = Scene::new();
    scene.git(&[
        "update-index",
        "--skip-worktree",
        "shared.txt",
        "dir/deep.txt",
    ]);
    scene.write("shared.txt", "kept to myself\n");
    scene.waits_for("checkout_dirty");
    scene.git(&["update-index", "--no-skip-worktree", "shared.txt"]);
    scene.git(&["checkout", "--", "shared.txt"]);
    scene.lands();
    assert!(scene.git(&["ls-files", "-v", "dir"]).starts_with("S "));
}

#[test]
fn an_assumed_unchanged_file_is_compared_nevertheless() {
    let scene = Scene::new();
    scene.git(&["update-index", "--assume-unchanged", "shared.txt"]);
    scene.write("shared.txt", "kept to myself\n");
    scene.waits_for("checkout_dirty");
    assert_eq!(scene.read("shared.txt").unwrap(), "kept to myself\n");
}

#[test]
fn line_ends_are_written_as_git_writes_them() {
    for (attributes, setting) in [
        ("* text=auto\n", "false"),
        ("*.txt text eol=crlf\n", "false"),
        ("", "true"),
    ] {
        let mut scene = scene_with(&[("a.txt", "one\n"), (".gitattributes", attributes)]);
        scene.git(&["config", "core.autocrlf", setting]);
        fs::remove_file(scene.repo().join("a.txt")).unwrap();
        scene.git(&["checkout", "--", "."]);
        scene.commit_aside(|dir| {
            put(dir, "a.txt", "one\ntwo\n");
            put(dir, "b.txt", "b\n");
        });
        scene.lands();
        let landed = scene.read("a.txt").unwrap();
        fs::remove_file(scene.repo().join("a.txt")).unwrap();
        scene.git(&["checkout", "--", "a.txt"]);
        assert_eq!(
            scene.read("a.txt").unwrap(),
            landed,
            "{attributes} {setting}"
        );
    }
}

#[test]
fn what_cannot_be_written_as_git_would_is_refused_by_name() {
    for attribute in ["filter=lfs", "working-tree-encoding=UTF-8", "ident"] {
        let attributes = format!("*.bin {attribute}\n");
        let mut scene = scene_with(&[(".gitattributes", &attributes)]);
        scene.commit_aside(|dir| put(dir, "a.txt", "a\n"));
        scene.lands();
        scene.commit_aside(|dir| put(dir, "a.bin", "a\n"));
        assert_eq!(refused(&scene), "filtered");
    }
    let mut scene = scene_with(&[]);
    scene.commit_aside(|dir| put(dir, ".gitattributes", "*.txt eol=crlf\n"));
    assert_eq!(refused(&scene), "attributes_change");
    let mut scene = scene_with(&[]);
    scene.git(&["config", "core.symlinks", "false"]);
    scene.commit_aside(|dir| std::os::unix::fs::symlink("a", dir.join("l")).unwrap());
    scene.git(&["config", "core.symlinks", "false"]);
    let mode = scene.git(&["ls-tree", scene.to.as_str(), "l"]);
    if mode.starts_with("120000") {
        assert_eq!(refused(&scene), "symlinks_off");
    }
}

/// A repository at `sub` of this directory with a new commit, which no other one is like.
fn commit_in_sub(dir: &Path) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let sub = dir.join("sub");
    if !sub.join(".git").exists() {
        let _ = fs::create_dir(&sub);
        crate::rig::init(&sub);
    }
    let message = COUNT.fetch_add(1, Ordering::Relaxed).to_string();
    git_ok(&sub, &["commit", "-q", "--allow-empty", "-m", &message]);
}

#[test]
fn a_submodule_comes_moves_and_goes_and_its_work_tree_stays_as_a_pull_leaves_it() {
    let mut scene = scene_with(&[]);
    scene.commit_aside(commit_in_sub);
    scene.lands();
    let sub = scene.repo().join("sub");
    assert_eq!(fs::read_dir(&sub).unwrap().count(), 0);
    // In the checkout it has a work tree with work of a person in it.
    commit_in_sub(&scene.repo());
    fs::write(sub.join("mine"), "mine").unwrap();
    let here = git_ok(&sub, &["rev-parse", "HEAD"]);
    scene.commit_aside(|dir| {
        commit_in_sub(dir);
        fs::write(dir.join("a"), "another\n").unwrap();
    });
    let outcome = scene.land_on(MAIN).unwrap();
    assert!(matches!(outcome, Outcome::Landed { .. }), "{outcome:?}");
    assert_eq!(git_ok(&sub, &["rev-parse", "HEAD"]), here);
    assert_eq!(fs::read(sub.join("mine")).unwrap(), b"mine");
    // What is staged is the commit of the run; the work tree beside it is the person's to move.
    assert_eq!(scene.git(&["diff", "--cached", "--name-only"]), "");
    assert_eq!(scene.status(), " M sub");
    scene.commit_aside(|dir| {
        let _ = fs::remove_dir_all(dir.join("sub"));
    });
    let outcome = scene.land_on(MAIN).unwrap();
    assert!(matches!(outcome, Outcome::Landed { .. }), "{outcome:?}");
    assert_eq!(scene.git(&["ls-files", "sub"]), "");
    assert_eq!(fs::read(sub.join("mine")).unwrap(), b"mine");
    assert_eq!(scene.locks(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_submodule_without_a_work_tree_goes_with_its_directory() {
    let mut scene = scene_with(&[]);
    scene.commit_aside(commit_in_sub);
    scene.lands();
    scene.commit_aside(|dir| fs::remove_dir(dir.join("sub")).unwrap());
    let outcome = scene.land_on(MAIN).unwrap();
    assert!(matches!(outcome, Outcome::Landed { .. }), "{outcome:?}");
    assert_eq!(scene.status(), "");
    assert!(!scene.repo().join("sub").exists());
}

#[test]
fn what_stands_in_the_place_of_a_submodule_is_waited_for() {
    let mut scene = scene_with(&[]);
    scene.commit_aside(commit_in_sub);
    fs::write(scene.repo().join("sub"), "a person's file").unwrap();
    scene.waits_for("checkout_dirty");
    fs::remove_file(scene.repo().join("sub")).unwrap();
    scene.lands();
    // A submodule that somebody has staged at another commit is as a file that is staged.
    commit_in_sub(&scene.repo());
    scene.git(&["add", "sub"]);
    scene.commit_aside(commit_in_sub);
    let outcome = scene.land_on(MAIN).unwrap();
    assert!(
        matches!(&outcome, Outcome::Waiting { obstacle, .. } if obstacle.code() == "checkout_dirty"),
        "{outcome:?}"
    );
}

#[test]
fn a_file_that_becomes_a_submodule_is_refused_by_name() {
    let mut scene = scene_with(&[("sub", "a file\n")]);
    scene.commit_aside(|dir| {
        fs::remove_file(dir.join("sub")).unwrap();
        commit_in_sub(dir);
    });
    assert_eq!(refused(&scene), "submodule");
}

#[test]
fn repositories_of_other_formats_are_refused_by_name() {
    for format in ["--ref-format=reftable", "--object-format=sha256"] {
        let scene = Scene::new();
        fs::remove_dir_all(scene.repo()).unwrap();
        fs::create_dir(scene.repo()).unwrap();
        scene.git(&["init", "-q", "-b", "main", "--template=", format]);
        scene.git(&["commit", "-q", "--allow-empty", "-m", "first"]);
        let refusal = scene.land_on(MAIN).unwrap_err();
        assert_eq!(refusal.code(), "unsupported_format", "{refusal}");
    }
    let scene = Scene::new();
    scene.git(&["config", "core.repositoryFormatVersion", "1"]);
    scene.git(&["config", "extensions.partialClone", "origin"]);
    assert_eq!(refused(&scene), "unsupported_format");
    let scene = Scene::new();
    scene.git(&["symbolic-ref", "refs/heads/alias", MAIN]);
    let refusal = scene.land_on("refs/heads/alias").unwrap_err();
    assert!(matches!(&refusal, LandError::Refused { code, .. } if *code == "symbolic_branch"));
}
