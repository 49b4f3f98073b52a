//! The room against real repositories that the `git` command builds.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::*;

mod creating;
mod damaged;
mod locking;

/// A repository in a directory of its own, with a `git` that knows no other configuration.
struct Bed {
    dir: xtest::TempDir,
}

impl Bed {
    fn new() -> Self {
        let bed = Self {
            dir: xtest::tempdir(),
        };
        fs::create_dir(bed.dir.path().join("repo")).unwrap();
        bed.git(&["init", "-q", "-b", "main", "."]);
        bed.git(&["config", "user.name", "Ada"]);
        bed.git(&["config", "user.email", "ada@example.com"]);
        bed
    }

    /// With one commit of `a.txt`, `b.txt` and `dir/c.txt`.
    fn with_commit() -> Self {
        let bed = Self::new();
        bed.write("a.txt", "a\n");
        bed.write("b.txt", "b\n");
        bed.write("dir/c.txt", "c\n");
        bed.commit_all("first");
        bed
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    fn at(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let at = self.at(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, text).unwrap();
    }

    fn try_git(&self, args: &[&str]) -> (bool, String) {
        let output = Command::new("git")
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_EDITOR", "true")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            text.push_str(&String::from_utf8_lossy(&output.stderr));
        }
        (output.status.success(), text)
    }

    fn git(&self, args: &[&str]) -> String {
        let (ok, text) = self.try_git(args);
        assert!(ok, "git {args:?}: {text}");
        text.trim_end().to_owned()
    }

    fn commit_all(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn status(&self) -> String {
        self.git(&["status", "--porcelain"])
    }

    fn fsck(&self) {
        self.git(&["fsck", "--strict", "--no-dangling"]);
    }
}

fn path(text: &str) -> RepoPath {
    RepoPath::literal(text).unwrap()
}

fn ada() -> Identity {
    Identity::from(Author {
        name: "Ada".to_owned(),
        email: "ada@example.com".to_owned(),
    })
}

/// Every file of the work tree with its mode and content, for before and after.
fn files(root: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if path.file_name().unwrap() == ".git" {
                continue;
            }
            if meta.is_dir() {
                open.push(path);
            } else if meta.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                found.push((path, 0, target.into_os_string().into_encoded_bytes()));
            } else {
                let bytes = fs::read(&path).unwrap();
                found.push((path, meta.permissions().mode(), bytes));
            }
        }
    }
    found.sort();
    found
}
