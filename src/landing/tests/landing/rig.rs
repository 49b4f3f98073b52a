//! A repository with a commit that waits to land, a person at work in it, and a landing in a child process.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, Weak};

use workerctl_landing::ids::{Oid, RunId};
use workerctl_landing::{
    FileJournal, Import, LandError, LogLine, Observer, Obstacle, Outcome, Request, Unobserved, land,
};
use xtest::TempDir;

pub(crate) const RUN: &str = "01JC0000000000000000000000";
pub(crate) const MAIN: &str = "refs/heads/main";
/// What the run's commit changes.
pub(crate) const RUN_PATHS: [&str; 5] = [
    "dir/deep.txt",
    "gone.txt",
    "new/created.txt",
    "run.sh",
    "shared.txt",
];

/// A folder with `repo`, its remote `origin.git`, the run's own repository `run` and a journal.
pub(crate) struct Scene {
    dir: TempDir,
    pub(crate) from: Oid,
    pub(crate) to: Oid,
}

/// Runs git as a person would, without anything of the person who runs the tests.
pub(crate) fn git_in(dir: &Path, args: &[&str]) -> (bool, String) {
    let out = Command::new("git")
        .args(["-c", "core.editor=true"])
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", "/nonexistent")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "Person")
        .env("GIT_AUTHOR_EMAIL", "person@example.org")
        .env("GIT_COMMITTER_NAME", "Person")
        .env("GIT_COMMITTER_EMAIL", "person@example.org")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = [out.stdout, out.stderr].concat();
    (
        out.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

pub(crate) fn git_ok(dir: &Path, args: &[&str]) -> String {
    let (ok, text) = git_in(dir, args);
    assert!(ok, "git {args:?}: {text}");
    text.trim_end().to_owned()
}

impl Scene {
    /// A copy of the repository that every case begins with.
    pub(crate) fn new() -> Self {
        Self::in_directory(xtest::tempdir())
    }

    /// The same in a directory of its own below another.
    pub(crate) fn below(place: &Path) -> Self {
        Self::in_directory(xtest::tempdir_in(place))
    }

    fn in_directory(dir: TempDir) -> Self {
        let template = template();
        let copied = Command::new("cp")
            .args(["-a", "."])
            .arg(dir.path())
            .current_dir(template.dir.path())
            .status();
        assert!(copied.unwrap().success());
        let scene = Self {
            dir,
            from: template.from.clone(),
            to: template.to.clone(),
        };
        scene.git(&["update-index", "-q", "--refresh"]);
        scene
    }

    /// An empty repository of its own, for other kinds of commits.
    pub(crate) fn empty() -> Self {
        let dir = xtest::tempdir();
        let repo = dir.path().join("repo");
        std::fs::create_dir(&repo).unwrap();
        init(&repo);
        // Nothing yet.
        let none: Oid = "0".repeat(40).parse().unwrap();
        Self {
            dir,
            from: none.clone(),
            to: none,
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.dir.path().join("repo")
    }

    pub(crate) fn journal(&self) -> FileJournal {
        FileJournal::new(&self.dir.path().join("journal"))
    }

    /// git in the repository; says whether it succeeded, and what it printed.
    pub(crate) fn try_git(&self, args: &[&str]) -> (bool, String) {
        git_in(&self.repo(), args)
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git_ok(&self.repo(), args)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.repo().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.repo().join(path)).ok()
    }

    pub(crate) fn status(&self) -> String {
        self.git(&["status", "--porcelain", "--untracked-files=all"])
    }

    /// The paths that `git status` names.
    pub(crate) fn changed(&self) -> BTreeSet<String> {
        let status = git_in(
            &self.repo(),
            &[
                "status",
                "--porcelain",
                "--untracked-files=all",
                "--no-renames",
            ],
        );
        assert!(status.0, "{}", status.1);
        let lines = status.1.lines();
        lines
            .filter_map(|line| line.get(3..).map(str::to_owned))
            .collect()
    }

    pub(crate) fn tip(&self, branch: &str) -> Option<String> {
        let (ok, text) = self.try_git(&["rev-parse", "-q", "--verify", branch]);
        ok.then(|| text.trim().to_owned())
    }

    /// What `HEAD` is: a branch, or a commit.
    pub(crate) fn head(&self) -> String {
        std::fs::read_to_string(self.repo().join(".git/HEAD")).unwrap()
    }

    /// Makes the commit that lands on `HEAD`, from what a work tree aside holds after `change`.
    pub(crate) fn commit_aside(&mut self, change: impl FnOnce(&Path)) {
        let aside = self.dir.path().join("aside");
        git_ok(
            &self.repo(),
            &["worktree", "add", "-q", "--detach", "../aside"],
        );
        change(&aside);
        git_ok(&aside, &["add", "-A", "-f"]);
        git_ok(&aside, &["commit", "-q", "--allow-empty", "-m", &message()]);
        self.from = self.tip("HEAD").unwrap().parse().unwrap();
        self.to = git_ok(&aside, &["rev-parse", "HEAD"]).parse().unwrap();
        let kept = "refs/workerctl/runs/x/commit";
        git_ok(&self.repo(), &["update-ref", kept, &self.to.to_string()]);
        git_ok(&self.repo(), &["worktree", "remove", "--force", "../aside"]);
    }

    /// Lands the scene's commit on a branch, from its tip.
    pub(crate) fn land_on(&self, target: &str) -> Result<Outcome, LandError> {
        self.land_from(Some(&self.from), target)
    }

    pub(crate) fn land_from(&self, from: Option<&Oid>, target: &str) -> Result<Outcome, LandError> {
        let request = Request {
            repository: &self.repo(),
            run: &RUN.parse().unwrap(),
            target,
            from,
            to: &self.to,
            earlier: &[],
            log: &log_line(),
        };
        land(&request, &mut self.journal(), &Unobserved)
    }

    /// Lands on `main`, which must succeed and leave nothing to see.
    pub(crate) fn lands(&self) {
        let outcome = self.land_on(MAIN).unwrap();
        assert!(matches!(outcome, Outcome::Landed { .. }), "{outcome:?}");
        assert_eq!(self.tip("main"), Some(self.to.to_string()));
        assert_eq!(self.status(), "");
        self.is_sound().unwrap();
    }

    /// Lands on `main`, which must find something in the way and change nothing.
    pub(crate) fn waits_for(&self, code: &str) -> Obstacle {
        let before = (self.status(), self.tip("main"), self.git(&["diff", "HEAD"]));
        let outcome = self.land_on(MAIN).unwrap();
        let Outcome::Waiting { obstacle, left } = outcome else {
            unreachable!("{outcome:?}")
        };
        assert_eq!((obstacle.code(), left), (code, Vec::new()), "{obstacle}");
        let after = (self.status(), self.tip("main"), self.git(&["diff", "HEAD"]));
        assert_eq!(before, after);
        obstacle
    }

    /// Every lock file of git's.
    pub(crate) fn locks(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        walk(&self.repo().join(".git"), &mut |path| {
            if path.extension().is_some_and(|end| end == "lock") {
                found.push(path.to_owned());
            }
        });
        found
    }

    /// What every case may look at: locks, objects, and how often the run's commit is on branches.
    pub(crate) fn is_sound(&self) -> Result<(), String> {
        if let Some(lock) = self.locks().first() {
            return Err(format!("{} is left", lock.display()));
        }
        let (ok, text) = self.try_git(&["fsck", "--no-dangling", "--no-progress"]);
        if !ok || text.contains("error") {
            return Err(format!("fsck: {text}"));
        }
        let grep = ["rev-list", "--grep=Run-Id", "--branches", "HEAD"];
        let commits = self.git(&grep);
        match commits.lines().count() {
            0 | 1 => Ok(()),
            _ => Err(format!("more than one commit of the run: {commits}")),
        }
    }
}

pub(crate) fn walk(dir: &Path, found: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&path, found);
        } else {
            found(&path);
        }
    }
}

pub(crate) fn init(dir: &Path) {
    git_ok(dir, &["init", "-q", "-b", "main", "--template="]);
    git_ok(dir, &["config", "gc.auto", "0"]);
}

/// The folder that every scene is a copy of, the tip of `main`, and the run's commit.
pub(crate) struct Template {
    dir: TempDir,
    from: Oid,
    to: Oid,
}

/// One for all who want it at the same time; gone with the last of them.
pub(crate) fn template() -> Arc<Template> {
    static MADE: Mutex<Weak<Template>> = Mutex::new(Weak::new());
    let mut made = MADE.lock().unwrap();
    made.upgrade().unwrap_or_else(|| {
        let dir = xtest::tempdir();
        let (from, to) = make_template(dir.path());
        let template = Arc::new(Template {
            dir,
            from: from.parse().unwrap(),
            to: to.parse().unwrap(),
        });
        *made = Arc::downgrade(&template);
        template
    })
}

fn make_template(dir: &Path) -> (String, String) {
    let repo = dir.join("repo");
    std::fs::create_dir(&repo).unwrap();
    init(&repo);
    let write = |dir: &Path, path: &str, text: &str| {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let commit = |dir: &Path, message: &str| {
        git_ok(dir, &["add", "-A"]);
        git_ok(dir, &["commit", "-q", "-m", message]);
    };
    for path in [
        "shared.txt",
        "dir/deep.txt",
        "gone.txt",
        "run.sh",
        "theirs.txt",
    ] {
        write(&repo, path, "one\ntwo\nthree\n");
    }
    commit(&repo, "first");
    write(&repo, "second.txt", "second\n");
    commit(&repo, "second");
    git_ok(&repo, &["branch", "feature"]);
    git_ok(&repo, &["switch", "-q", "-c", "conflicting", "HEAD~1"]);
    write(&repo, "theirs.txt", "another\n");
    commit(&repo, "conflicting");
    git_ok(&repo, &["switch", "-q", "-c", "other", "main~1"]);
    write(&repo, "on-other.txt", "other\n");
    commit(&repo, "other");
    git_ok(&repo, &["switch", "-q", "main"]);
    write(&repo, "theirs.txt", "one\ntwo\nthree\nlast\n");
    commit(&repo, "third");
    git_ok(
        dir,
        &["clone", "-q", "--bare", "--template=", "repo", "origin.git"],
    );
    git_ok(&repo, &["remote", "add", "origin", "../origin.git"]);
    git_ok(
        dir,
        &["clone", "-q", "--template=", "origin.git", "remote-work"],
    );
    write(&dir.join("remote-work"), "remote.txt", "remote\n");
    commit(&dir.join("remote-work"), "remote");
    git_ok(&dir.join("remote-work"), &["push", "-q", "origin", "main"]);
    std::fs::remove_dir_all(dir.join("remote-work")).unwrap();
    write(&repo, "second.txt", "second\nstashed\n");
    git_ok(&repo, &["stash", "-q"]);
    let from = git_ok(&repo, &["rev-parse", "main"]);
    let run = dir.join("run");
    std::fs::create_dir(&run).unwrap();
    init(&run);
    write(
        &run,
        ".git/objects/info/alternates",
        "../../../repo/.git/objects\n",
    );
    git_ok(&run, &["update-ref", "refs/heads/main", &from]);
    git_ok(&run, &["reset", "-q", "--hard"]);
    write(&run, "shared.txt", "one\ntwo\nthree\nRUN\n");
    write(&run, "dir/deep.txt", "RUN\none\ntwo\nthree\n");
    write(&run, "new/created.txt", "RUN\n");
    std::fs::remove_file(run.join("gone.txt")).unwrap();
    git_ok(&run, &["update-index", "--chmod=+x", "run.sh"]);
    git_ok(&run, &["add", "shared.txt", "dir", "new", "gone.txt"]);
    git_ok(&run, &["commit", "-q", "-m", &message()]);
    let to = git_ok(&run, &["rev-parse", "HEAD"]);
    import(dir, &from, &to, &Unobserved).unwrap();
    (from, to)
}

/// Imports the run's commit of a scene.
pub(crate) fn import(
    dir: &Path,
    from: &str,
    to: &str,
    observer: &dyn Observer,
) -> Result<(), workerctl_landing::LandError> {
    let run: RunId = RUN.parse().unwrap();
    let (from, to): (Oid, Oid) = (from.parse().unwrap(), to.parse().unwrap());
    let request = Import {
        repository: &dir.join("repo"),
        source: &dir.join("run/.git"),
        run: &run,
        hide: &[&from],
        commit: &to,
    };
    workerctl_landing::import(&request, observer)
}

/// The message of the run's commit.
fn message() -> String {
    format!("run\n\nRun-Id: {RUN}")
}

pub(crate) fn log_line() -> LogLine {
    LogLine {
        name: "Worker".into(),
        email: "worker@example.org".into(),
        time_s: 1_790_000_000,
        offset_min: 120,
        message: format!("workerctl: run {RUN}"),
    }
}

/// What a child process does, and where it stops.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Orders {
    pub(crate) task: Task,
    /// Before which step it waits for the person, counted from one.
    pub(crate) pause_at: usize,
    /// Before which step it is killed.
    pub(crate) kill_at: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Task {
    #[default]
    Land,
    Recover,
    Import,
}

pub(crate) const ORDERS: &str = "WORKERCTL_TEST_LANDING";

/// A landing or a recovery in a process of its own.
pub(crate) struct Running {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

/// What a child said last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    Paused(String),
    Done(String),
    Killed,
}

impl Running {
    pub(crate) fn start(scene: &Scene, orders: Orders) -> Self {
        let Orders {
            task,
            pause_at,
            kill_at,
        } = orders;
        let text = format!("{task:?} {pause_at} {kill_at} {} {}", scene.from, scene.to);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::child", "--nocapture", "--test-threads=1"])
            .env(ORDERS, text)
            .current_dir(scene.root())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Waits until it pauses or ends.
    pub(crate) fn wait(&mut self) -> Said {
        let mut line = String::new();
        loop {
            line.clear();
            if self.lines.read_line(&mut line).unwrap() == 0 {
                break;
            }
            if let Some((_, step)) = line.split_once("@pause ") {
                return Said::Paused(step.trim().to_owned());
            }
            if let Some((_, outcome)) = line.split_once("@done ") {
                let outcome = outcome.trim().to_owned();
                self.child.wait().unwrap();
                return Said::Done(outcome);
            }
        }
        let status = self.child.wait().unwrap();
        assert!(!status.success(), "the child ended without a word");
        Said::Killed
    }

    pub(crate) fn go_on(&mut self) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(b"on\n").unwrap();
    }
}
