//! Size, owner, permissions and space of the place that a repository lies in.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use workerctl::git::{
    Deadline, Exclusions, Limits, Moved, Policy, baseline, preflight, result_tree,
};

use crate::bed::{Bed, git_in, run};
use crate::runs::{End, one_run, out};

#[test]
fn ten_thousand_files_are_one_commit() {
    let bed = Bed::new();
    let end = one_run(
        &bed.root,
        || {
            for n in 0..10_000 {
                bed.write(&format!("many/{}/{n}.txt", n / 100), &format!("{n}\n"));
            }
        },
        || {},
    );
    assert!(matches!(end, End::Committed(Moved::Done { .. })));
    assert_eq!(bed.git(&["status", "--porcelain"]), "");
    assert_eq!(bed.git(&["ls-files"]).lines().count(), 10_002);
    bed.git(&["fsck", "--no-dangling"]);
}

#[test]
fn another_owner_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a repository to another user");
        return;
    }
    let bed = Bed::new();
    let before = bed.git(&["for-each-ref"]);
    let given = Command::new("chown")
        .args(["-R", "65534"])
        .arg(&bed.root)
        .status();
    assert!(given.unwrap().success());
    let refusal = preflight(&bed.root, &Policy::default(), None).unwrap_err();
    assert_eq!(refusal.code, "other_owner");
    assert!(refusal.hint.unwrap().contains("safe.directory"));
    let back = Command::new("chown")
        .args(["-R", "0"])
        .arg(&bed.root)
        .status();
    assert!(back.unwrap().success());
    assert_eq!(bed.git(&["for-each-ref"]), before);
}

/// Runs one test of this file again under a wrapper; `None` when the wrapper does not work here.
fn again_under(wrapper: &[&str], test: &str) -> Option<bool> {
    let this = std::env::current_exe().unwrap();
    let mut probe = Command::new(wrapper[0]);
    probe.args(&wrapper[1..]).arg("true");
    let works = probe.stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !works.is_ok_and(|s| s.success()) {
        return None;
    }
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(this);
    command
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("TMPDIR", "/tmp");
    Some(command.status().unwrap().success())
}

#[test]
fn a_read_only_repository_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return inner_read_only();
    }
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    match again_under(&nobody, "places::inner_read_only") {
        Some(passed) => assert!(passed),
        None => eprintln!("skipped: root ignores permissions, and `setpriv` does not work here"),
    }
}

#[test]
#[ignore = "run as an ordinary user by `a_read_only_repository_is_refused`"]
fn inner_read_only() {
    let bed = Bed::new();
    let modes = |mode| {
        for dir in [".git", ".git/objects"] {
            fs::set_permissions(bed.at(dir), fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    modes(0o555);
    let refusal = preflight(&bed.root, &Policy::default(), None).unwrap_err();
    assert_eq!(refusal.code, "read_only");
    modes(0o755);
    let (exclusions, limits) = (Exclusions::default(), Limits::default());
    out(&bed);
    modes(0o555);
    let error = baseline(&bed.root, &exclusions, &limits, &run(), Deadline::NONE).unwrap_err();
    assert_eq!(error.code(), "read_only", "{error}");
    modes(0o755);
}

#[test]
fn a_full_disk_is_named_and_nothing_is_broken() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a small file system needs root");
        return;
    }
    match again_under(&["unshare", "--mount"], "places::inner_full_disk") {
        Some(passed) => assert!(passed),
        None => eprintln!("skipped: mount namespaces do not work here"),
    }
}

#[test]
#[ignore = "run in a mount namespace by `a_full_disk_is_named_and_nothing_is_broken`"]
fn inner_full_disk() {
    let bed = Bed::new();
    let small = bed.dir.path().join("small");
    fs::create_dir(&small).unwrap();
    let mount = ["-t", "tmpfs", "-o", "size=2m", "none"];
    let mounted = Command::new("mount")
        .args(mount)
        .arg(&small)
        .status()
        .unwrap();
    assert!(mounted.success());
    let root = small.join("repo");
    bed.git(&[
        "clone",
        "-q",
        bed.root.to_str().unwrap(),
        root.to_str().unwrap(),
    ]);
    let (exclusions, limits) = (Exclusions::default(), Limits::default());
    let before = baseline(&root, &exclusions, &limits, &run(), Deadline::NONE).unwrap();
    let noise: Vec<u8> = (0..300_000_u32)
        .map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[1])
        .collect();
    fs::write(root.join("out.bin"), noise).unwrap();
    let filler = small.join("filler");
    let mut full = Vec::new();
    for kib in (0..1_800).rev().step_by(4) {
        fs::write(&filler, []).unwrap();
        if fs::write(&filler, vec![1; kib << 10]).is_err() {
            continue;
        }
        match result_tree(&root, &before, &exclusions, &limits, &[]) {
            Ok(_) => break,
            Err(error) => full.push(if error.code() == "disk_full" {
                "disk_full".to_owned()
            } else {
                error.to_string()
            }),
        }
    }
    assert!(
        !full.is_empty() && full.iter().all(|code| code == "disk_full"),
        "{full:?}"
    );
    fs::remove_file(&filler).unwrap();
    let result = result_tree(&root, &before, &exclusions, &limits, &[]).unwrap();
    assert_eq!(result.changes.len(), 1);
    assert!(git_in(&root, bed.dir.path(), &["fsck", "--no-dangling"]).0);
    let left = Command::new("umount")
        .arg("-l")
        .arg(&small)
        .status()
        .unwrap();
    assert!(left.success());
}
