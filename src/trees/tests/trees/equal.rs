//! A tree is made equal from any state.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use workerctl_trees::TreeError;

use crate::rig::{Rig, git, try_git};

#[test]
fn a_new_tree_is_a_fresh_checkout_in_which_git_works() {
    let rig = Rig::new();
    rig.git(&["remote", "add", "origin", "../origin"]);
    git(rig.root(), &["clone", "-q", "--bare", "repo", "origin"]);
    for n in 0..200 {
        rig.git(&["update-ref", &format!("refs/tags/t{n}"), "HEAD"]);
    }
    rig.git(&["update-ref", "refs/stash", "HEAD"]);
    let mut tree = rig.take("w");
    rig.equal(&mut tree);
    rig.assert_equal(&tree);
    let at = tree.path();
    assert_eq!(git(at, &["tag"]).lines().count(), 200);
    assert!(!try_git(at, &["rev-parse", "--verify", "-q", "refs/stash"]).0);
    assert_eq!(git(at, &["log", "--oneline"]).lines().count(), 1);
    git(at, &["fetch", "-q", "origin"]);
    fs::write(at.join("new"), "1").unwrap();
    git(at, &["add", "-A"]);
    git(at, &["commit", "-q", "-m", "mine"]);
    git(at, &["fsck", "--strict"]);
    assert_eq!(
        git(at, &["config", "user.email"]).trim(),
        "person@example.org"
    );
    // Nothing of it is in the real repository.
    assert_eq!(rig.git(&["log", "--oneline"]).lines().count(), 1);
    rig.equal(&mut tree);
    rig.assert_equal(&tree);
}

/// The run reads its tree.
#[test]
fn a_tree_has_the_remotes_of_the_repository_without_their_passwords() {
    let rig = Rig::new();
    let header = "http.https://example.com/.extraheader";
    for (name, value) in [
        (
            "remote.origin.url",
            "https://ada:secret-1@example.com/r.git",
        ),
        ("remote.plain.url", "ssh://git@example.com/r.git"),
        (
            "url.https://ada:secret-2@example.com/.insteadof",
            "https://example.org/",
        ),
        (header, "AUTHORIZATION: basic secret-3"),
        ("http.proxy", "http://127.0.0.1:3128"),
    ] {
        rig.git(&["config", name, value]);
    }
    let mut tree = rig.take("w");
    rig.equal(&mut tree);
    let settings = git(tree.path(), &["config", "--local", "--list"]);
    assert!(!settings.contains("secret"), "{settings}");
    for kept in [
        "remote.origin.url=https://example.com/r.git",
        "remote.plain.url=ssh://git@example.com/r.git",
        "http.proxy=http://127.0.0.1:3128",
    ] {
        assert!(settings.contains(kept), "{kept}: {settings}");
    }
}

#[test]
fn whatever_a_run_left_goes() {
    let rig = Rig::new();
    let mut tree = rig.take("w");
    rig.equal(&mut tree);
    for is_new in [false, true] {
        let at = tree.path().to_owned();
        fs::write(at.join("d0/e0/f0"), "CONTENT 0\n").unwrap();
        git(&at, &["update-index", "--skip-worktree", "d0/e0/f0"]);
        git(&at, &["update-index", "--assume-unchanged", "d1/e1/f1"]);
        fs::write(at.join("d1/e1/f1"), "x").unwrap();
        git(&at, &["config", "core.worktree", "/nowhere"]);
        rustix::fs::mkfifoat(rustix::fs::CWD, at.join("fifo"), rustix::fs::Mode::RWXU).unwrap();
        fs::write(at.join(std::ffi::OsStr::from_bytes(b"not-\xff-utf8")), "x").unwrap();
        fs::remove_dir_all(at.join("d2")).unwrap();
        symlink("/etc", at.join("d2")).unwrap();
        fs::create_dir_all(at.join("vendored/.git")).unwrap();
        fs::create_dir_all(at.join("closed/inner")).unwrap();
        fs::write(at.join("closed/inner/f"), "x").unwrap();
        fs::set_permissions(at.join("closed/inner"), fs::Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(at.join("closed"), fs::Permissions::from_mode(0o500)).unwrap();
        fs::set_permissions(at.join("d0"), fs::Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(at.join("run.sh"), fs::Permissions::from_mode(0o0)).unwrap();
        fs::remove_file(at.join("link")).unwrap();
        fs::create_dir(at.join("link")).unwrap();
        if is_new {
            drop(tree);
            tree = rig.take("w");
            assert_eq!(tree.number(), 1);
        }
        rig.equal(&mut tree);
        rig.assert_equal(&tree);
    }
}

#[test]
fn a_repository_that_is_replaced_by_a_link_is_neither_followed_nor_harmed() {
    let rig = Rig::new();
    let mut tree = rig.take("w");
    let start = rig.equal(&mut tree);
    fs::remove_dir_all(tree.git_dir()).unwrap();
    symlink(rig.repo().join(".git"), tree.git_dir()).unwrap();
    let before = fs::read(rig.repo().join(".git/config")).unwrap();
    let result = tree.result(&start).unwrap();
    assert_eq!(result.problems[0].code, "repository_damaged");
    rig.equal(&mut tree);
    rig.assert_equal(&tree);
    assert_eq!(fs::read(rig.repo().join(".git/config")).unwrap(), before);
    git(&rig.repo(), &["fsck"]);
}

#[test]
fn another_base_an_unborn_branch_and_back() {
    let rig = Rig::new();
    let mut tree = rig.take("w");
    rig.equal(&mut tree);
    let first = rig.head();
    rig.git(&["rm", "-rq", "d1", "link"]);
    fs::write(rig.repo().join("d1"), "a file now").unwrap();
    fs::write(rig.repo().join("d0/e0/f0"), "changed\n").unwrap();
    rig.commit("second");
    rig.equal(&mut tree);
    rig.assert_equal(&tree);
    let start = rig.with_base(None, |base| tree.make_equal(base)).unwrap();
    assert!(crate::rig::listing(tree.path()).is_empty());
    fs::write(tree.path().join("a"), "1").unwrap();
    let result = tree.result(&start).unwrap();
    assert_eq!(crate::rig::names(&result.changes), ["a"]);
    rig.with_base(Some(&first), |base| tree.make_equal(base))
        .unwrap();
    rig.git(&["reset", "-q", "--hard", "HEAD~"]);
    rig.assert_equal(&tree);
}

#[test]
fn a_record_that_is_torn_or_of_another_start_of_the_machine_is_not_believed() {
    let rig = Rig::new();
    let mut tree = rig.take("w");
    rig.equal(&mut tree);
    let record = tree.path().with_file_name("record");
    let whole = fs::read(&record).unwrap();
    let mut booted = whole.clone();
    booted[30] ^= 1;
    let boots = crc32fast::hash(&booted[..booted.len() - 4]).to_le_bytes();
    let end = booted.len() - 4;
    booted[end..].copy_from_slice(&boots);
    for broken in [whole[..whole.len() / 2].to_vec(), Vec::new(), booted] {
        fs::write(tree.path().join("d0/e0/f0"), "CONTENT 0\n").unwrap();
        drop(tree);
        fs::write(&record, broken).unwrap();
        tree = rig.take("w");
        rig.equal(&mut tree);
        rig.assert_equal(&tree);
    }
}

#[test]
fn line_ends_are_those_of_a_checkout_and_of_an_add() {
    let rig = Rig::new();
    fs::write(
        rig.repo().join(".gitattributes"),
        "*.bat eol=crlf\n*.bin -text\n",
    )
    .unwrap();
    fs::write(rig.repo().join("a.bat"), "one\r\ntwo\r\n").unwrap();
    fs::write(rig.repo().join("a.bin"), "one\r\ntwo\n").unwrap();
    rig.commit("ends");
    let mut tree = rig.take("w");
    let start = rig.equal(&mut tree);
    assert_eq!(
        fs::read(tree.path().join("a.bat")).unwrap(),
        b"one\r\ntwo\r\n"
    );
    rig.assert_equal(&tree);
    assert_eq!(tree.result(&start).unwrap().changes, []);
    fs::write(tree.path().join("a.bat"), "one\r\nthree\r\n").unwrap();
    fs::write(tree.path().join("b.bat"), "b\r\n").unwrap();
    let result = tree.result(&start).unwrap();
    assert_eq!(result.tree.as_str(), rig.judged(tree.path()));
    rig.equal(&mut tree);
    rig.assert_equal(&tree);
}

#[test]
fn a_filtered_base_is_refused_by_name_unless_stored_contents_are_enough() {
    let mut rig = Rig::new();
    fs::write(rig.repo().join(".gitattributes"), "*.dat filter=lfs\n").unwrap();
    fs::write(rig.repo().join("a.dat"), "stored\n").unwrap();
    rig.commit("filtered");
    let mut tree = rig.take("w");
    let head = rig.head();
    let refused = rig
        .with_base(Some(&head), |base| tree.make_equal(base))
        .unwrap_err();
    assert!(matches!(&refused, TreeError::Filtered { path, .. } if path.to_string() == "a.dat"));
    rig.allow_filtered = true;
    let start = rig.equal(&mut tree);
    assert_eq!(fs::read(tree.path().join("a.dat")).unwrap(), b"stored\n");
    fs::write(tree.path().join("a.dat"), "changed\n").unwrap();
    assert_eq!(tree.result(&start).unwrap().problems[0].code, "filtered");
}

#[test]
fn a_run_that_is_killed_at_any_step_is_repaired() {
    let rig = Rig::new();
    let mut tree = rig.take("w");
    for stop_at in 0.. {
        let mut asked = 0;
        tree.observe(move |_| {
            asked += 1;
            asked <= stop_at
        });
        let head = rig.head();
        let stopped = rig
            .with_base(Some(&head), |base| tree.make_equal(base))
            .is_err();
        drop(tree);
        tree = rig.take("w");
        rig.equal(&mut tree);
        rig.assert_equal(&tree);
        if !stopped {
            assert!(stop_at > 10, "only {stop_at} steps");
            break;
        }
        let _ = fs::remove_dir_all(tree.path().join("d1"));
        let _ = fs::write(tree.path().join("d0/e0/f0"), "CONTENT 0\n");
        fs::create_dir_all(tree.path().join("x/y")).unwrap();
    }
}
