//! The table of an index against git's own.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use workerctl_landing::error::GitError;
use workerctl_landing::{Entries, EntryStat};

use crate::rig::git_ok;

/// Numbers that depend on a seed alone.
struct Seeded(u64);

impl Seeded {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

fn repository(version: &str) -> xtest::TempDir {
    let dir = xtest::tempdir();
    let repo = dir.path();
    git_ok(repo, &["init", "-q", "-b", "main"]);
    let long = "n".repeat(200);
    for path in [
        "a",
        "a-b/c",
        "a/.gitattributes",
        "b/c/d",
        "b/c/e",
        "b/cd",
        "b/f",
        "long/x",
        "z",
    ] {
        let path = path.replace("long", &format!("{long}/{long}/{long}"));
        // `a` is a directory too: it is a file in the index alone, later.
        let path = if path == "a" {
            "a.txt".to_owned()
        } else {
            path
        };
        let file = repo.join(&path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, &path).unwrap();
    }
    git_ok(repo, &["add", "-A"]);
    git_ok(repo, &["commit", "-q", "-m", "all"]);
    git_ok(repo, &["update-index", "--index-version", version]);
    git_ok(repo, &["update-index", "--assume-unchanged", "z"]);
    if version != "2" {
        git_ok(repo, &["update-index", "--skip-worktree", "b/f"]);
    }
    dir
}

#[test]
fn what_is_changed_in_the_table_is_what_git_would_have_written() {
    for version in ["2", "3", "4"] {
        let dir = repository(version);
        let repo = dir.path();
        let index = repo.join(".git/index");
        let before = fs::read(&index).unwrap();
        let read = Entries::parse(&before).unwrap();
        assert_eq!(read.encode(), before, "version {version}");
        let blob = git_ok(repo, &["hash-object", "-w", "a.txt"]);
        let oid = git2::Oid::from_str(&blob).unwrap();
        let mut seeded = Seeded(7);
        let paths = [
            "0", "a.txt", "a-b/c", "a-b/d", "a/x/y", "b/c/d", "b/c/e", "b/cd", "b/f", "new/one",
            "z",
        ];
        for round in 0..40 {
            let mut changes: BTreeMap<&[u8], Option<EntryStat>> = BTreeMap::new();
            let table = Entries::parse(&fs::read(&index).unwrap()).unwrap();
            let copy = repo.join(".git/copy");
            fs::copy(&index, &copy).unwrap();
            for _ in 0..=seeded.below(3) {
                let path = paths[seeded.below(paths.len())];
                let former = table.get(path.as_bytes());
                let new =
                    (seeded.below(3) > 0).then(|| EntryStat::new(oid, 0o100_755, None, former));
                changes.insert(path.as_bytes(), new);
            }
            let mut table = table;
            table.change(&changes);
            fs::write(&index, table.encode()).unwrap();
            for (path, new) in &changes {
                let path = std::str::from_utf8(path).unwrap();
                let line = match new {
                    Some(_) => format!("100755,{blob},{path}"),
                    None => String::new(),
                };
                let args: &[&str] = match new {
                    Some(_) => &["update-index", "--add", "--cacheinfo", &line],
                    None => &["update-index", "--force-remove", path],
                };
                with_index(repo, &copy, args);
            }
            let told = format!("version {version}, round {round}");
            // Git's own write has forgotten the marks of the entries that it replaced; names, modes and blobs
            // tell the rest, and the tree that it writes tells whether a cached one was believed wrongly.
            assert_eq!(
                git_ok(repo, &["ls-files", "--stage"]),
                with_index(repo, &copy, &["ls-files", "--stage"]),
                "{told}"
            );
            assert_eq!(
                git_ok(repo, &["write-tree"]),
                with_index(repo, &copy, &["write-tree"]),
                "{told}"
            );
        }
        git_ok(repo, &["fsck", "--strict"]);
    }
}

fn with_index(repo: &Path, index: &Path, args: &[&str]) -> String {
    // `git -C` keeps the rig's own surroundings; the other index is put in place for one command.
    let (place, aside) = (repo.join(".git/index"), repo.join(".git/aside"));
    fs::rename(&place, &aside).unwrap();
    fs::rename(index, &place).unwrap();
    let said = git_ok(repo, args);
    fs::rename(&place, index).unwrap();
    fs::rename(&aside, &place).unwrap();
    said
}

#[test]
fn a_damaged_index_is_refused_and_never_a_reason_to_stop() {
    for version in ["2", "4"] {
        let dir = repository(version);
        let whole = fs::read(dir.path().join(".git/index")).unwrap();
        let mut seeded = Seeded(11);
        for length in 0..whole.len() {
            assert!(Entries::parse(&whole[..length]).is_err(), "{length} bytes");
        }
        for _ in 0..2_000 {
            let mut bytes = whole.clone();
            let at = seeded.below(bytes.len());
            bytes[at] ^= 1 << seeded.below(8);
            let refused = Entries::parse(&bytes);
            assert!(refused.is_err(), "{version}: byte {at}");
            // Without the sum, which `index.skipHash` leaves out, it may be read as another table.
            let sum = bytes.len() - 20;
            bytes[sum..].fill(0);
            if let Ok(table) = Entries::parse(&bytes) {
                assert!(
                    Entries::parse(&table.encode()).is_ok(),
                    "{version}: byte {at}"
                );
            }
        }
    }
    let refused = Entries::parse(b"DIRC\0\0\0\x05\0\0\0\0AAAAAAAAAAAAAAAAAAAA");
    assert!(matches!(refused, Err(GitError::Git { .. })));
}
