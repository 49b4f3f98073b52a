//! A repository, a place for trees, and git to judge them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use workerctl_landing::ids::{Oid, RepoPath};
use workerctl_trees::{Base, Overlay, Owner, PathChange, Start, Tree, Trees};

pub(crate) struct Rig {
    dir: xtest::TempDir,
    pub(crate) keep: Vec<String>,
    pub(crate) overlay: Vec<Overlay>,
    pub(crate) allow_filtered: bool,
}

impl Rig {
    pub(crate) fn empty() -> Self {
        let dir = xtest::tempdir();
        fs::create_dir(dir.path().join("repo")).unwrap();
        let rig = Self {
            dir,
            keep: Vec::new(),
            overlay: Vec::new(),
            allow_filtered: false,
        };
        rig.git(&["init", "-q", "-b", "main"]);
        rig
    }

    /// A repository with files of every kind.
    pub(crate) fn new() -> Self {
        let rig = Self::empty();
        let repo = rig.repo();
        for n in 0..12 {
            let dir = repo.join(format!("d{}", n % 3)).join(format!("e{}", n % 2));
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join(format!("f{n}")), format!("content {n}\n")).unwrap();
        }
        fs::write(repo.join("run.sh"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(repo.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("d0/e0/f0", repo.join("link")).unwrap();
        fs::write(
            repo.join(".gitignore"),
            "*.log\nbuild/\nnode_modules/\n.env\n",
        )
        .unwrap();
        rig.commit("first");
        rig
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn trees(&self) -> Trees {
        Trees::at(&self.dir.path().join("state/trees"))
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.repo(), args)
    }

    pub(crate) fn commit(&self, message: &str) -> Oid {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.head()
    }

    pub(crate) fn head(&self) -> Oid {
        self.git(&["rev-parse", "HEAD"]).trim().parse().unwrap()
    }

    pub(crate) fn take(&self, worker: &str) -> Tree {
        let repository = self.repo().join(".git");
        let owner = Owner {
            worker,
            repository: &repository,
            name: "repo",
            rights: "",
        };
        self.trees().take(&owner).unwrap()
    }

    pub(crate) fn with_base<T>(&self, commit: Option<&Oid>, f: impl FnOnce(&Base<'_>) -> T) -> T {
        f(&Base {
            repository: &self.repo(),
            target: "refs/heads/main",
            commit,
            author: ("A Person", "person@example.org"),
            committer: ("A Person", "person@example.org"),
            keep: &self.keep,
            overlay: &self.overlay,
            allow_filtered: self.allow_filtered,
        })
    }

    pub(crate) fn equal(&self, tree: &mut Tree) -> Start {
        let head = self.head();
        self.with_base(Some(&head), |base| tree.make_equal(base))
            .unwrap()
    }

    /// What a fresh clone holds.
    pub(crate) fn fresh(&self) -> PathBuf {
        let fresh = self.dir.path().join("fresh");
        let _ = fs::remove_dir_all(&fresh);
        git(self.root(), &["clone", "-q", "--no-local", "repo", "fresh"]);
        fresh
    }

    /// The tree that `git add -A` makes of a work tree's files on top of the base.
    pub(crate) fn judged(&self, work: &Path) -> String {
        let fresh = self.fresh();
        let script = "find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} + \
             && (cd \"$0\" && tar --exclude=./.git -cf - .) | tar -xf - && git add -A && git write-tree";
        let done = Command::new("sh")
            .args(["-c", script])
            .arg(work)
            .current_dir(&fresh)
            .output();
        let done = done.unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn assert_equal(&self, tree: &Tree) {
        let fresh = self.fresh();
        assert_eq!(listing(tree.path()), listing(&fresh));
        assert_eq!(git(tree.path(), &["status", "--porcelain"]), "");
        assert_eq!(
            git(tree.path(), &["rev-parse", "HEAD"]).trim(),
            self.head().as_str()
        );
        assert_eq!(
            git(tree.path(), &["symbolic-ref", "HEAD"]).trim(),
            "refs/heads/main"
        );
    }
}

pub(crate) fn try_git(dir: &Path, args: &[&str]) -> (bool, String) {
    let done = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([
            ("GIT_AUTHOR_NAME", "T"),
            ("GIT_AUTHOR_EMAIL", "t@example.org"),
        ])
        .envs([
            ("GIT_COMMITTER_NAME", "T"),
            ("GIT_COMMITTER_EMAIL", "t@example.org"),
        ])
        .output()
        .unwrap();
    let mut text = String::from_utf8_lossy(&done.stdout).into_owned();
    if !done.status.success() {
        text.push_str(&String::from_utf8_lossy(&done.stderr));
    }
    (done.status.success(), text)
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let (done, text) = try_git(dir, args);
    assert!(done, "git {args:?}: {text}");
    text
}

/// Every path with kind, permissions and content, apart from `.git`.
pub(crate) fn listing(root: &Path) -> BTreeMap<OsString, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![PathBuf::new()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(root.join(&dir)).unwrap() {
            let path = dir.join(entry.unwrap().file_name());
            if path == Path::new(".git") {
                continue;
            }
            let meta = root.join(&path).symlink_metadata().unwrap();
            let content = if meta.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else if meta.is_symlink() {
                fs::read_link(root.join(&path))
                    .unwrap()
                    .as_os_str()
                    .as_bytes()
                    .to_vec()
            } else if meta.is_file() {
                fs::read(root.join(&path)).unwrap()
            } else {
                b"neither file nor link".to_vec()
            };
            found.insert(path.into_os_string(), (meta.permissions().mode(), content));
        }
    }
    found
}

pub(crate) fn path(text: &str) -> RepoPath {
    RepoPath::literal(text).unwrap()
}

pub(crate) fn names(changes: &[PathChange]) -> Vec<String> {
    changes
        .iter()
        .map(|change| change.path.to_string())
        .collect()
}
