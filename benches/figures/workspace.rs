//! Workspaces to measure in, and engines for them: one in this process, or the real daemon.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use workerctl::daemon::{ConnectMode, ConnectOptions, HttpControl, dial};
use workerctl::engine::{Engine, EngineOptions, Host};
use workerctl::protocol::{Control, SubmitRequest};

use crate::limits::wait_until;

/// The program under measurement.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_workerctl");

/// Tells the listener to a daemon's notices that there will be no more.
const FAREWELL: &str = "BENCH_OVER";

/// Longest wait for anything.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

/// Every workspace's directory. They go at the very end: after many files were removed, ext4 looks long
/// for a free inode, and what is measured next would pay for that.
static MADE: Mutex<Vec<tempfile::TempDir>> = Mutex::new(Vec::new());

/// Removes the directories of all workspaces.
pub(crate) fn remove_all() {
    MADE.lock().unwrap().clear();
}

/// A directory with a workspace, its state and its socket.
pub(crate) struct Workspace {
    directory: PathBuf,
}

impl Workspace {
    /// An empty workspace where at most `parallelism` runs are active, below `WORKERCTL_BENCH_DIR` or
    /// else `/var/tmp`: on a disk, and in no work tree, where trees of runs are refused.
    pub(crate) fn new(parallelism: u64) -> Workspace {
        let place = std::env::var_os("WORKERCTL_BENCH_DIR");
        let place = place.unwrap_or_else(|| "/var/tmp".into());
        let directory = tempfile::tempdir_in(place).unwrap();
        let this = Workspace {
            directory: directory.path().to_owned(),
        };
        MADE.lock().unwrap().push(directory);
        std::fs::create_dir_all(this.root().join("workers")).unwrap();
        std::fs::create_dir_all(this.home()).unwrap();
        this.write(
            "workerctl.yaml",
            &format!("max_parallel: {parallelism}\nqueue: {{max: 100000}}\ncommit: {{author: \"Bench <bench@example.org>\"}}\n"),
        );
        this
    }

    /// A workspace with eight workers whose skill `go` is the program `true`.
    pub(crate) fn of_trivial_skills(parallelism: u64) -> Workspace {
        let this = Workspace::new(parallelism);
        for worker in 0..8 {
            this.worker(
                &format!("w{worker}"),
                "  - {id: go, name: Go, description: d, run: [\"true\"]}\n",
            );
        }
        this
    }

    /// Adds a worker with the given list of skills.
    pub(crate) fn worker(&self, id: &str, skills: &str) {
        let mut text = String::new();
        let _ = write!(
            text,
            "worker: {{id: {id}, name: {id}, description: d}}\nexecution: {{mode: on_demand}}\nskills:\n{skills}"
        );
        self.write(&format!("workers/{id}/worker.yaml"), &text);
    }

    /// Writes a file of the workspace.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Everything of it lies here.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory().join("ws")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.directory().join("state")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory().join("home")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory().join("s")
    }

    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        let path = std::env::var("PATH").unwrap();
        let home = self.home().display().to_string();
        BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), home)])
    }

    /// The program with this workspace's places.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        self.place(&mut command);
        command.args(args);
        command
    }

    /// Gives a command this workspace's places.
    pub(crate) fn place(&self, command: &mut Command) {
        command
            .env_clear()
            .envs(self.environment())
            .env("WORKERCTL_WORKSPACE", self.root())
            .env("WORKERCTL_STATE_DIR", self.state())
            .env("WORKERCTL_SOCKET", self.socket())
            .current_dir(self.root())
            .stdin(Stdio::null());
    }

    /// Performs a command of the program that has to succeed.
    pub(crate) fn cli(&self, args: &[&str]) -> Output {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        output
    }

    /// Performs git in the workspace.
    pub(crate) fn git(&self, args: &[&str]) {
        let output = Command::new("git")
            .args([
                "-c",
                "user.name=Bench",
                "-c",
                "user.email=bench@example.org",
            ])
            .args(args)
            .current_dir(self.root())
            .env("HOME", self.home())
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
    }

    /// Starts an engine in this process that does all that the daemon's does.
    pub(crate) fn engine(&self) -> Hosted {
        let engine = Engine::start(EngineOptions {
            workspace: self.root(),
            state_dir: self.state(),
            socket: None,
            host: Host::Daemon,
            environment: self.environment(),
        })
        .unwrap();
        Hosted {
            control: engine.control(),
            engine,
        }
    }

    /// Starts the real daemon and waits until it says that it is ready.
    pub(crate) fn daemon(&self) -> Daemon {
        let mut command = self.command(&["daemon"]);
        self.started(&mut command)
    }

    /// Starts the real daemon by a command line that ends up in it.
    /// Removes the state and the workspace's note of it: else the next engine would miss it, and say so.
    pub(crate) fn forget_state(&self) {
        let _ = std::fs::remove_dir_all(self.state());
        let _ = std::fs::remove_file(self.root().join(".workerctl/store"));
    }

    pub(crate) fn started(&self, command: &mut Command) -> Daemon {
        let notices = self.directory().join("n");
        let _ = std::fs::remove_file(&notices);
        let heard = UnixDatagram::bind(&notices).unwrap();
        let log = std::fs::File::create(self.directory().join("log")).unwrap();
        command
            .env("NOTIFY_SOCKET", &notices)
            .stdout(Stdio::null())
            .stderr(log);
        let (tell_ready, ready) = channel();
        let begun = Instant::now();
        let child = command.spawn().unwrap();
        // A service manager goes on listening; a daemon that nobody listens to would wait.
        let listener = std::thread::spawn(move || {
            let mut buffer = [0; 4_096];
            while let Ok(length) = heard.recv(&mut buffer) {
                let said = String::from_utf8_lossy(&buffer[..length]);
                if said.lines().any(|line| line == "READY=1") {
                    let _ = tell_ready.send(begun.elapsed());
                }
                if said == FAREWELL {
                    break;
                }
            }
        });
        let ready_after = ready
            .recv_timeout(PATIENCE)
            .expect("the daemon becomes ready");
        Daemon {
            child,
            ready_after,
            listener,
            notices,
        }
    }

    /// The interface to the daemon that runs, through its socket.
    pub(crate) fn dial(&self) -> HttpControl {
        dial(&ConnectOptions {
            workspace: self.root(),
            state_dir: self.state(),
            socket: Some(self.socket()),
            environment: self.environment(),
            mode: ConnectMode::RunningOnly,
        })
        .unwrap()
    }
}

/// An engine in this process.
pub(crate) struct Hosted {
    pub control: Arc<dyn Control>,
    engine: Engine,
}

impl Hosted {
    /// Ends it in order.
    pub(crate) fn end(self) {
        self.control.drain().unwrap();
        self.engine.join().unwrap();
    }
}

/// The real daemon.
pub(crate) struct Daemon {
    child: Child,
    /// From the start of its process until it said so.
    pub ready_after: Duration,
    listener: JoinHandle<()>,
    notices: PathBuf,
}

impl Daemon {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it in order, by a signal to `pid`.
    pub(crate) fn end_by(mut self, pid: u32) {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "the daemon ended with {status}");
        let speaker = UnixDatagram::unbound().unwrap();
        speaker.send_to(FAREWELL.as_bytes(), &self.notices).unwrap();
        self.listener.join().unwrap();
    }

    pub(crate) fn end(self) {
        let pid = self.pid();
        self.end_by(pid);
    }
}

/// Submits one run of the skill with this id of some worker.
pub(crate) fn submit(control: &dyn Control, number: u64, skill: &str) -> workerctl::model::RunId {
    let request = SubmitRequest {
        skill: format!("w{}/{skill}", number % 8),
        ..SubmitRequest::default()
    };
    control.submit(&request).unwrap().run
}

/// Waits until no run is left that has not ended. Looks seldom: each look costs what is measured.
pub(crate) fn settle(control: &dyn Control) {
    wait_until("the runs", PATIENCE, || {
        std::thread::sleep(Duration::from_millis(6));
        let status = control.status().unwrap();
        status.running + status.queued == 0
    });
}
