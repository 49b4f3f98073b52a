//! A repository in a directory of its own, and a `git` that knows no other configuration.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;

use workerctl::git::{Author, RepoPath, RunId};

pub(crate) const RUN: &str = "01JC0000000000000000000000";

pub(crate) struct Bed {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

impl Bed {
    pub(crate) fn new() -> Self {
        isolate_libgit2();
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("repo");
        fs::create_dir(&root).unwrap();
        let bed = Self { dir, root };
        bed.git(&["init", "-q", "-b", "main", "."]);
        bed.git(&["config", "user.name", "Ada"]);
        bed.git(&["config", "user.email", "ada@example.com"]);
        bed.write("a.txt", "a\n");
        bed.write("dir/c.txt", "c\n");
        bed.commit_all("first");
        bed.write("a.txt", "a2\n");
        bed.commit_all("second");
        bed
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let at = self.at(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, text).unwrap();
    }

    pub(crate) fn commit_all(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    pub(crate) fn try_git(&self, args: &[&str]) -> (bool, String) {
        git_in(&self.root, self.dir.path(), args)
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        let (ok, text) = self.try_git(args);
        assert!(ok, "git {args:?}: {text}");
        text.trim_end().to_owned()
    }

    /// All that a refusal must leave alone.
    pub(crate) fn everything(&self) -> Vec<(String, Vec<u8>)> {
        let mut all = vec![
            (
                "status".to_owned(),
                self.try_git(&["status", "--porcelain"]).1.into_bytes(),
            ),
            (
                "refs".to_owned(),
                self.try_git(&["for-each-ref"]).1.into_bytes(),
            ),
            (
                "reflog".to_owned(),
                self.try_git(&["reflog", "--all"]).1.into_bytes(),
            ),
        ];
        let mut open = vec![self.root.clone()];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(&dir).unwrap() {
                let path = entry.unwrap().path();
                let meta = fs::symlink_metadata(&path).unwrap();
                let name = path.display().to_string();
                if meta.is_dir() {
                    open.push(path);
                } else if meta.is_symlink() {
                    all.push((
                        name,
                        fs::read_link(&path)
                            .unwrap()
                            .into_os_string()
                            .into_encoded_bytes(),
                    ));
                } else {
                    all.push((name, fs::read(&path).unwrap()));
                }
            }
        }
        all.sort();
        all
    }

    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut all = self.everything();
        all.retain(|(name, _)| name.starts_with('/') && !name.contains("/.git/"));
        all
    }
}

pub(crate) fn git_in(dir: &Path, home: &Path, args: &[&str]) -> (bool, String) {
    let output = Command::new("git")
        .args([
            "-c",
            "protocol.file.allow=always",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_EDITOR", "true")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    (output.status.success(), text)
}

/// Keeps the configuration of whoever runs the tests away from libgit2.
#[expect(
    unsafe_code,
    reason = "the search path of a C library is set before it is used"
)]
pub(crate) fn isolate_libgit2() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        use git2::ConfigLevel::{Global, ProgramData, System, XDG};
        for level in [System, Global, XDG, ProgramData] {
            // SAFETY: `Once` lets a single thread through, before any repository is opened.
            unsafe { git2::opts::set_search_path(level, "/nonexistent") }.unwrap();
        }
    });
}

pub(crate) fn path(text: &str) -> RepoPath {
    RepoPath::literal(text).unwrap()
}

pub(crate) fn run() -> RunId {
    RUN.parse().unwrap()
}

pub(crate) fn ada() -> Author {
    Author {
        name: "Ada".to_owned(),
        email: "ada@example.com".to_owned(),
    }
}

pub(crate) fn submodule(bed: &Bed) {
    let other = bed.dir.path().join("other");
    fs::create_dir(&other).unwrap();
    let git = |args: &[&str]| assert!(git_in(&other, bed.dir.path(), args).0, "{args:?}");
    git(&["init", "-q", "."]);
    fs::write(other.join("inner.txt"), "inner\n").unwrap();
    git(&["add", "-A"]);
    git(&[
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@b",
        "commit",
        "-q",
        "-m",
        "inner",
    ]);
    bed.git(&["submodule", "add", "-q", other.to_str().unwrap(), "sub"]);
    bed.commit_all("submodule");
}
