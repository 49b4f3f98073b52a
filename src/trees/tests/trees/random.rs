//! Random work of a skill: what is found is what git finds, and everything is repaired.
//!
//! `WORKERCTL_TEST_ROUNDS` is the number of seeds (30 without it).

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::rig::{Rig, try_git};

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    fn path(&mut self, at: &Path) -> PathBuf {
        const NAMES: [&str; 9] = ["d0", "d1", "e0", "e1", "f0", "f1", "new", "a.log", "build"];
        let mut path = at.to_owned();
        for _ in 0..=self.below(3) {
            path.push(NAMES[usize::try_from(self.below(9)).unwrap()]);
        }
        path
    }
}

fn act(random: &mut Random, at: &Path) {
    const GIT: [&[&str]; 9] = [
        &["add", "-A"],
        &["commit", "-q", "-a", "-m", "of the run"],
        &["stash", "-q"],
        &["reset", "-q", "--hard"],
        &["config", "core.fileMode", "false"],
        &["update-index", "--skip-worktree", "d0/e0/f0"],
        &["update-index", "--assume-unchanged", "d1/e1/f1"],
        &["sparse-checkout", "set", "d0"],
        &["rm", "-q", "--cached", "-r", "."],
    ];
    let path = random.path(at);
    let mode = |mode| fs::Permissions::from_mode(mode);
    match random.below(10) {
        0 => drop(fs::write(&path, "content 9\n")),
        1 => drop(fs::remove_file(&path)),
        2 => drop(fs::set_permissions(&path, mode(0o755))),
        3 => drop(fs::rename(&path, random.path(at))),
        4 => drop(symlink("somewhere", &path)),
        5 => drop(fs::create_dir_all(&path)),
        6 => drop(fs::remove_dir_all(&path)),
        7 => drop(fs::write(at.join(".gitignore"), "f1\n*.log\n")),
        8 => drop(fs::hard_link(&path, random.path(at))),
        _ => {
            let which = usize::try_from(random.below(9)).unwrap();
            let _ = try_git(at, GIT[which]);
        }
    }
}

#[test]
fn whatever_a_run_does_git_would_find_the_same() {
    let rounds = std::env::var("WORKERCTL_TEST_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok());
    let rig = Rig::new();
    let mut tree = rig.take("w");
    for seed in 1..=rounds.unwrap_or(30_u64) {
        let start = rig.equal(&mut tree);
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for _ in 0..20 {
            act(&mut random, tree.path());
        }
        if seed % 3 == 0 {
            drop(tree);
            tree = rig.take("w");
        }
        let result = tree.result(&start).unwrap();
        if result.problems.is_empty() {
            assert_eq!(result.tree.as_str(), rig.judged(tree.path()), "seed {seed}");
        }
        assert_eq!(tree.drift(&start, &result).unwrap(), [], "seed {seed}");
        rig.equal(&mut tree);
        rig.assert_equal(&tree);
    }
    println!("{} seeds", rounds.unwrap_or(30));
}
