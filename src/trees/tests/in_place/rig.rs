//! A checkout in which runs work, and the real git beside it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use workerctl_landing::ids::RepoPath;
use workerctl_trees::{InPlace, InPlaceBase, PutBack, RunResult, Start, TreeError};

/// A checkout with a few committed files, on `main`.
pub(crate) struct Checkout {
    pub(crate) dir: TempDir,
    pub(crate) outputs: Vec<RepoPath>,
    pub(crate) writes: Vec<String>,
    pub(crate) root: Option<RepoPath>,
    pub(crate) except: Vec<RepoPath>,
    pub(crate) target: String,
}

impl Checkout {
    pub(crate) fn new(outputs: &[&str], writes: &[&str]) -> Self {
        let made = Self {
            dir: tempfile::tempdir().unwrap(),
            outputs: outputs.iter().map(|path| path_of(path)).collect(),
            writes: writes.iter().map(|text| (*text).to_owned()).collect(),
            root: None,
            except: Vec::new(),
            target: "refs/heads/main".to_owned(),
        };
        fs::create_dir(made.workdir()).unwrap();
        made.git(&["init", "-q", "-b", "main"]);
        made.git(&["config", "user.name", "Ada"]);
        made.git(&["config", "user.email", "ada@example.com"]);
        for path in [
            "docs/a.md",
            "docs/deep/b.md",
            "report.md",
            "other.txt",
            "lib/c.rs",
        ] {
            made.write(path, &format!("{path}\n"));
        }
        made.write(".gitignore", "*.log\n");
        made.commit("first");
        made
    }

    pub(crate) fn workdir(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.dir.path().join("objects")
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.workdir().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    pub(crate) fn chmod(&self, path: &str, mode: u32) {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.workdir(), args)
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-qm", message]);
    }

    pub(crate) fn status(&self) -> String {
        self.git(&["status", "--porcelain", "-uall"])
    }

    pub(crate) fn base<'a>(&'a self, workdir: &'a Path) -> InPlaceBase<'a> {
        InPlaceBase {
            repository: workdir,
            target: &self.target,
            outputs: &self.outputs,
            writes: &self.writes,
            root: self.root.as_ref(),
            except: &self.except,
        }
    }

    pub(crate) fn start(&self) -> Result<(InPlace, Start), TreeError> {
        InPlace::start(&self.objects(), &self.base(&self.workdir()))
    }

    /// What a run changed that does this.
    pub(crate) fn run(&self, act: impl FnOnce()) -> Ran {
        let (mut held, start) = self.start().unwrap();
        act();
        let (result, compared) = held.result(&start).unwrap();
        Ran {
            held,
            start,
            result,
            compared,
        }
    }

    /// The tree that git makes of `HEAD` with these paths added.
    pub(crate) fn tree_with(&self, paths: &[&str]) -> String {
        let index = self.dir.path().join("index");
        let git = |args: &[&str]| {
            output(
                command(&self.workdir())
                    .env("GIT_INDEX_FILE", &index)
                    .args(args),
            )
        };
        git(&["read-tree", "HEAD"]);
        git(&[&["add", "-A", "--"], paths].concat());
        git(&["write-tree"])
    }

    pub(crate) fn refused(&self, code: &str) -> String {
        let before = (self.status(), self.git(&["rev-parse", "HEAD"]));
        let Err(error) = self.start() else {
            panic!("the run was let in");
        };
        assert_eq!(error.code(), code, "{error}");
        assert!(error.hint().is_some());
        assert_eq!((self.status(), self.git(&["rev-parse", "HEAD"])), before);
        error.to_string()
    }
}

pub(crate) struct Ran {
    pub(crate) held: InPlace,
    pub(crate) start: Start,
    pub(crate) result: RunResult,
    /// What the result was compared with.
    pub(crate) compared: Start,
}

impl Ran {
    pub(crate) fn paths(&self) -> Vec<String> {
        assert!(
            self.result.problems.is_empty(),
            "{:?}",
            self.result.problems
        );
        self.result
            .changes
            .iter()
            .map(|change| change.path.to_string())
            .collect()
    }

    pub(crate) fn problems(&self) -> Vec<&str> {
        self.result
            .problems
            .iter()
            .map(|problem| problem.code.as_str())
            .collect()
    }

    pub(crate) fn put_back(&mut self) -> PutBack {
        self.held.put_back(&self.start, &self.result).unwrap()
    }

    pub(crate) fn put_back_all(&mut self) {
        let done = self.put_back();
        assert_eq!((done.edited_since, done.failed), (vec![], vec![]));
    }
}

pub(crate) fn path_of(path: &str) -> RepoPath {
    RepoPath::literal(path).unwrap()
}

pub(crate) fn command(workdir: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(workdir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    command
}

pub(crate) fn output(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(
        done.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}

pub(crate) fn git(workdir: &Path, args: &[&str]) -> String {
    output(command(workdir).args(args))
}

pub(crate) fn hash_of(workdir: &Path, text: &str) -> String {
    let mut hash = command(workdir);
    hash.args(["hash-object", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = hash.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let done = child.wait_with_output().unwrap();
    String::from_utf8(done.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}
