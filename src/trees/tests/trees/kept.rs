//! Caches that stay, and what is laid over the base.

use std::fs;
use std::path::PathBuf;

use workerctl_trees::{Overlay, TreeError, measure};

use crate::rig::{Rig, git, names, path};

fn over(at: &str, from: PathBuf) -> Overlay {
    Overlay {
        path: path(at),
        from,
        link: false,
        optional: false,
        unignored: false,
    }
}

#[test]
fn kept_caches_stay_and_nothing_else_does() {
    let mut rig = Rig::new();
    rig.keep = vec!["node_modules/".into(), "pkg/a/node_modules/".into()];
    let mut tree = rig.take("w");
    let start = rig.equal(&mut tree);
    let at = tree.path().to_owned();
    for dir in ["node_modules/x", "pkg/a/node_modules/y", "pkg/b"] {
        fs::create_dir_all(at.join(dir)).unwrap();
        fs::write(at.join(dir).join("f"), "x").unwrap();
    }
    let result = tree.result(&start).unwrap();
    assert_eq!(names(&result.changes), ["pkg/b/f"]);
    assert_eq!(result.ignored.count, 0);
    rig.equal(&mut tree);
    assert!(at.join("node_modules/x/f").exists() && at.join("pkg/a/node_modules/y/f").exists());
    assert!(!at.join("pkg/b").exists());
    assert_eq!(git(&at, &["status", "--porcelain"]), "");
    rig.keep.clear();
    rig.equal(&mut tree);
    rig.assert_equal(&tree);
    rig.keep = vec!["d0/".into()];
    let head = rig.head();
    let refused = rig
        .with_base(Some(&head), |base| tree.make_equal(base))
        .unwrap_err();
    assert!(
        matches!(refused, TreeError::KeptIsTracked { .. }),
        "{refused}"
    );
}

#[test]
fn what_is_laid_over_is_there_and_hidden_and_must_not_change() {
    let mut rig = Rig::new();
    let repo = rig.repo();
    fs::write(repo.join(".env"), "SECRET=1").unwrap();
    fs::write(repo.join("d0/e0/f0"), "uncommitted\n").unwrap();
    fs::create_dir(repo.join("workers")).unwrap();
    fs::write(repo.join("workers/new"), "w").unwrap();
    fs::create_dir(repo.join("linked")).unwrap();
    rig.overlay = vec![
        over(".env", repo.join(".env")),
        over("d0", repo.join("d0")),
        over("workers", repo.join("workers")),
        Overlay {
            link: true,
            ..over("shared", repo.join("linked"))
        },
        Overlay {
            optional: true,
            unignored: false,
            ..over("missing", repo.join("missing"))
        },
    ];
    assert!(measure(&rig.overlay) > 10);
    let mut tree = rig.take("w");
    let start = rig.equal(&mut tree);
    let at = tree.path().to_owned();
    assert_eq!(fs::read(at.join("d0/e0/f0")).unwrap(), b"uncommitted\n");
    assert!(at.join("shared").is_symlink() && at.join("workers/new").exists());
    let laid: Vec<String> = start
        .overlaid
        .iter()
        .map(|(path, _)| path.to_string())
        .collect();
    assert_eq!(laid, [".env", "d0/e0/f0", "shared", "workers/new"]);
    assert_eq!(git(&at, &["status", "--porcelain"]), "");
    fs::write(at.join("mine"), "m").unwrap();
    git(&at, &["add", "-A"]);
    git(&at, &["commit", "-q", "-a", "-m", "mine"]);
    assert_eq!(
        git(&at, &["show", "--name-only", "--format="]).trim(),
        "mine"
    );
    let result = tree.result(&start).unwrap();
    assert_eq!(names(&result.changes), ["mine"]);
    assert_eq!(result.problems, []);
    // A process that starts anew finds the same.
    drop(tree);
    let mut tree = rig.take("w");
    assert_eq!(tree.result(&start).unwrap(), result);
    fs::write(at.join("d0/e0/f0"), "by the run\n").unwrap();
    fs::remove_file(at.join(".env")).unwrap();
    let result = tree.result(&start).unwrap();
    let codes: Vec<&str> = result.problems.iter().map(|p| p.code.as_str()).collect();
    assert_eq!(codes, ["overlay_changed", "overlay_changed"]);
    rig.git(&["checkout", "-q", "--", "d0"]);
    rig.overlay.clear();
    rig.equal(&mut tree);
    rig.assert_equal(&tree);
}
