//! A workspace of its own for each test: home, git configuration, socket and repository, and the
//! real program run in it.
//!
//! Nothing of the machine but `PATH` reaches the program. Whatever waits has a deadline, and waits for
//! something that can be seen: a line in a FIFO, a notice of readiness, the state that a command shows.

pub(crate) mod api;
pub(crate) mod daemon;
pub(crate) mod disk;
pub(crate) mod gate;
pub(crate) mod ledger;
pub(crate) mod observed;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;
use xtest::TempDir;

/// How long anything may take that should take moments; a machine under load is given its time.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// `short` rounds, or as many as the environment asks for.
pub(crate) fn rounds(short: usize) -> usize {
    let asked = std::env::var("WORKERCTL_TEST_ROUNDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(short)
}

/// What the skills of tests may do besides.
const GRANTED: &str = "sandbox: {write: [~/]}\n";

pub(crate) use xtest::skip;

/// A repeatable sequence of numbers that looks random.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A fresh repository with the configuration of a person, and nothing in it.
pub(crate) struct Workspace {
    /// The workspace itself, without links.
    pub(crate) root: PathBuf,
    /// Home of every command, outside of the repository; its path marks every process of this test.
    pub(crate) home: PathBuf,
    state: PathBuf,
    runtime: PathBuf,
    outputs: PathBuf,
    serial: AtomicU64,
    _directory: TempDir,
}

impl Workspace {
    /// A workspace in a directory of its own.
    pub(crate) fn new() -> Workspace {
        Workspace::make(xtest::tempdir(), None, None)
    }

    /// A workspace with all that belongs to it below another directory than the usual one.
    pub(crate) fn below(directory: &Path) -> Workspace {
        Workspace::make(xtest::tempdir_in(directory), None, None)
    }

    /// A workspace whose repository and state lie on another file system.
    pub(crate) fn on(place: &Path) -> Workspace {
        Workspace::make(xtest::tempdir(), Some(place), Some(place))
    }

    /// A workspace whose repository alone lies on another file system.
    pub(crate) fn with_repository_on(place: &Path) -> Workspace {
        Workspace::make(xtest::tempdir(), Some(place), None)
    }

    /// A workspace whose state directory lies in the repository.
    pub(crate) fn with_state_inside() -> Workspace {
        let workspace = Workspace::new();
        Workspace {
            state: workspace.root.join("state"),
            ..workspace
        }
    }

    fn make(directory: TempDir, repository: Option<&Path>, state: Option<&Path>) -> Workspace {
        let base = directory.path().canonicalize().unwrap();
        let made = |path: PathBuf| {
            fs::create_dir_all(&path).unwrap();
            path
        };
        let runtime = made(base.join("run"));
        fs::set_permissions(&runtime, fs::Permissions::from_mode(0o700)).unwrap();
        let workspace = Workspace {
            root: made(repository.unwrap_or(&base).join("repository")),
            home: made(base.join("home")),
            state: state.unwrap_or(&base).join("state"),
            runtime,
            outputs: made(base.join("outputs")),
            serial: AtomicU64::new(0),
            _directory: directory,
        };
        let person = "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n[maintenance]\n\tauto = false\n";
        fs::write(workspace.home.join(".gitconfig"), person).unwrap();
        workspace.git(&["init", "-q"]);
        workspace
    }

    /// A workspace with one worker `w` of these skills, committed.
    pub(crate) fn with_skills(skills: &str) -> Workspace {
        let workspace = Workspace::new();
        workspace.furnish(skills);
        workspace
    }

    /// The same whose skills have no sandbox, because they do what it would refuse.
    pub(crate) fn without_sandbox(skills: &str) -> Workspace {
        let workspace = Workspace::with_skills(skills);
        workspace.lift_sandbox("w");
        workspace.git(&["commit", "-q", "-a", "--amend", "--no-edit"]);
        workspace
    }

    /// Takes the sandbox from the skills of a worker.
    pub(crate) fn lift_sandbox(&self, worker: &str) {
        let path = format!("workers/{worker}/worker.yaml");
        let text = self.read(&path).unwrap();
        self.write(&path, &text.replacen(GRANTED, "sandbox: off\n", 1));
    }

    /// Writes the worker `w` with these skills and commits everything.
    pub(crate) fn furnish(&self, skills: &str) {
        self.write(
            ".gitignore",
            "/workspace/threads/\n/workspace/metrics/\n/state/\n/.workerctl/\n",
        );
        self.worker("w", skills);
        self.write("tracked.txt", "as committed\n");
        self.commit_all("begin");
    }

    /// Writes a worker; `skills` is what stands below `skills:`. They may write in the home directory, where tests
    /// look for what they did.
    pub(crate) fn worker(&self, id: &str, skills: &str) {
        let text = format!(
            "worker: {{id: {id}, name: {id}, type: OpsWorker}}\n{GRANTED}skills:\n{skills}"
        );
        self.write(&format!("workers/{id}/worker.yaml"), &text);
    }

    /// Writes a file of the workspace.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Commits this configuration, and only then writes it: whoever watches the file finds it committed.
    pub(crate) fn configure(&self, text: &str) {
        let aside = self.outputs.join("configuration");
        fs::write(&aside, text).unwrap();
        let blob = self.git(&["hash-object", "-w", aside.to_str().unwrap()]);
        let entry = format!("100644,{},workerctl.yaml", blob.trim());
        self.git(&["update-index", "--add", "--cacheinfo", &entry]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "configuration"]);
        self.write("workerctl.yaml", text);
    }

    /// Reads a file of the workspace; `None` where there is none.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    /// Where the engine keeps its state.
    pub(crate) fn state(&self) -> &Path {
        &self.state
    }

    /// A program in this workspace, with nothing of the machine's own settings.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("XDG_RUNTIME_DIR", &self.runtime)
            .env("GIT_CONFIG_GLOBAL", self.home.join(".gitconfig"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("LC_ALL", "C")
            .current_dir(&self.root)
            .stdin(Stdio::null());
        command
    }

    /// The real program, for this workspace.
    pub(crate) fn workerctl(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_workerctl"));
        command.arg("-C").arg(&self.root);
        command.arg("--state-dir").arg(&self.state).args(arguments);
        command
    }

    /// Runs the real program to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        self.start(&mut self.workerctl(arguments)).end()
    }

    /// Runs the real program with `--json` and answers what it printed; it must succeed.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(done.code, 0, "{arguments:?}: {done:?}");
        done.value()
    }

    /// Starts a program whose output goes to files, so that it never waits for a reader.
    pub(crate) fn start(&self, command: &mut Command) -> Started {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let file = |stream: &str| self.outputs.join(format!("{serial}.{stream}"));
        let (stdout, stderr) = (file("out"), file("err"));
        let child = command
            .stdout(File::create(&stdout).unwrap())
            .stderr(File::create(&stderr).unwrap())
            .spawn()
            .unwrap();
        Started {
            child: Some(child),
            stdout,
            stderr,
        }
    }

    /// Runs git in the repository and answers its output; it must succeed.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = self.program("git").args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Commits everything that is not ignored.
    pub(crate) fn commit_all(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    /// The run ids of all commits that can be reached, oldest last.
    pub(crate) fn committed_runs(&self) -> Vec<String> {
        let form = "--format=%(trailers:key=Run-Id,valueonly)";
        // What is excluded has to stand first; hidden references may hold a commit that no branch took.
        let text = self.git(&["log", "--exclude=refs/workerctl/*", "--all", form]);
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// All that is in the work tree beside the thread and the repository itself: path and content.
    pub(crate) fn tree(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let apart = [".git", ".workerctl", "state"].map(|name| self.root.join(name));
        let threads = ["threads", "metrics"].map(|name| self.root.join("workspace").join(name));
        let own = |path: &Path| !apart.iter().chain(&threads).any(|apart| path == apart);
        let files = observed::files_below(&self.root, &own).into_iter();
        let read = |path: PathBuf| (path.clone(), fs::read(&path).unwrap());
        files.map(read).collect()
    }
}

/// A program that runs.
pub(crate) struct Started {
    child: Option<Child>,
    stdout: PathBuf,
    stderr: PathBuf,
}

impl Started {
    /// Its process.
    pub(crate) fn pid(&self) -> Pid {
        pid_of(self.child.as_ref().unwrap())
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.as_mut()?.try_wait().unwrap()
    }

    /// Whether it ends within this time.
    pub(crate) fn ends_within(&mut self, patience: Duration) -> bool {
        wait_for(self.child.as_mut().unwrap(), patience).is_some()
    }

    /// What it has said on standard error so far.
    pub(crate) fn stderr(&self) -> String {
        read_lossy(&self.stderr)
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Done {
        let mut child = self.child.take().unwrap();
        let Some(status) = wait_for(&mut child, PATIENCE) else {
            let _ = child.kill();
            let _ = child.wait();
            panic!(
                "a command did not end within {PATIENCE:?}; it said: {}",
                self.stderr()
            );
        };
        Done {
            code: status.code().unwrap_or(-1),
            stdout: read_lossy(&self.stdout),
            stderr: read_lossy(&self.stderr),
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    /// Its exit code; -1: ended by a signal.
    pub(crate) code: i32,
    /// All that it printed.
    pub(crate) stdout: String,
    /// All that it said.
    pub(crate) stderr: String,
}

impl Done {
    /// What it printed as JSON.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of the refusal that it told as JSON.
    pub(crate) fn refusal(&self) -> String {
        let last = self.stderr.lines().last().unwrap_or_default();
        let value: Value =
            serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_eq!(value["error"]["exit_code"], self.code, "{self:?}");
        value["error"]["code"].as_str().unwrap().to_owned()
    }

    /// Asserts its exit code.
    pub(crate) fn expect_code(self, code: i32) -> Done {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

fn read_lossy(path: &Path) -> String {
    let mut bytes = Vec::new();
    File::open(path).unwrap().read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The process of a child.
pub(crate) fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed()).unwrap()
}

/// Waits for a child's end; `None`: it did not end in time.
pub(crate) fn wait_for(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    if let Ok(Some(status)) = child.try_wait() {
        return Some(status);
    }
    let handle = pidfd_open(pid_of(child), PidfdFlags::empty()).unwrap();
    let readable = wait_readable(&handle, patience);
    readable.then(|| child.wait().unwrap())
}

/// Waits until something can be read; false: not in time.
pub(crate) fn wait_readable(fd: &impl std::os::fd::AsFd, patience: Duration) -> bool {
    let end = Instant::now() + patience;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap();
        let mut fds = [PollFd::new(fd, PollFlags::IN)];
        match poll(&mut fds, Some(&left)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("poll: {error}"),
        }
    }
}

/// Waits until `file` has content: a shell creates it before the program that writes to it starts.
pub(crate) fn eventually_written(what: &str, file: &Path) -> String {
    eventually(what, || {
        let text = fs::read_to_string(file).ok()?;
        (!text.is_empty()).then_some(text)
    })
}

/// Looks again and again until there is something to answer.
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Listens on a port that stays free after this listener is closed: the kernel assigns no port below 32768 by itself, and
/// each test process begins its search elsewhere.
pub(crate) fn listen_on_quiet_port() -> std::net::TcpListener {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    (first..32_768)
        .find_map(|port| std::net::TcpListener::bind(("127.0.0.1", port)).ok())
        .unwrap()
}
