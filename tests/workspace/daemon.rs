//! A real daemon, which tells its readiness as to a service manager.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{PATIENCE, Workspace, pid_of, wait_for};

/// How often it is looked whether a daemon lives that tells nothing.
const LOOK: Duration = Duration::from_millis(500);

/// A daemon that runs; ended with the test.
pub(crate) struct Daemon {
    child: Child,
    log: PathBuf,
    notices: Receiver<String>,
    over: Arc<AtomicBool>,
    /// From the start of its process until it was ready.
    pub(crate) ready_after: Duration,
}

impl Daemon {
    /// Starts a daemon and waits until it is ready.
    pub(crate) fn start(workspace: &Workspace) -> Daemon {
        Daemon::start_with(workspace, &[])
    }

    /// Starts a daemon with more variables and waits until it is ready.
    pub(crate) fn start_with(workspace: &Workspace, more: &[(&str, &str)]) -> Daemon {
        let mut command = workspace.workerctl(&["-v", "daemon"]);
        command.envs(more.iter().copied());
        Daemon::start_by(workspace, command)
    }

    /// Starts a daemon by a command that ends up in it, and waits until it is ready.
    pub(crate) fn start_by(workspace: &Workspace, mut command: Command) -> Daemon {
        let log = workspace.outputs.join("daemon.log");
        let address = workspace.runtime.join("notify");
        let _ = std::fs::remove_file(&address);
        let notices = UnixDatagram::bind(&address).unwrap();
        let (told, over) = listen(notices);
        let written: File = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        command
            .env("NOTIFY_SOCKET", &address)
            .stdout(written.try_clone().unwrap())
            .stderr(written);
        let began = Instant::now();
        let child = command.spawn().unwrap();
        let mut daemon = Daemon {
            child,
            log,
            notices: told,
            over,
            ready_after: Duration::ZERO,
        };
        daemon.wait_for_notice("READY=1");
        daemon.ready_after = began.elapsed();
        daemon
    }

    /// Waits until the daemon has told this to its service manager.
    pub(crate) fn wait_for_notice(&mut self, wanted: &str) {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            match self.notices.recv_timeout(LOOK) {
                Ok(told) if told.lines().any(|line| line.starts_with(wanted)) => return,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("nobody listens to notices"),
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!(
                    "the daemon ended ({status}) before `{wanted}`: {}",
                    self.log()
                );
            }
        }
        panic!("the daemon did not tell `{wanted}`: {}", self.log());
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Pid {
        pid_of(&self.child)
    }

    /// Whether it has not ended.
    pub(crate) fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Asserts that it does not end for so long.
    pub(crate) fn stays_for(&mut self, duration: Duration) {
        let ended = wait_for(&mut self.child, duration);
        assert!(ended.is_none(), "{ended:?}: {}", self.log());
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Kills it, and nothing else: its children live on.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until something has killed it.
    pub(crate) fn killed(mut self) {
        let status = wait_for(&mut self.child, PATIENCE)
            .unwrap_or_else(|| panic!("the daemon was not killed: {}", self.log()));
        assert!(!status.success(), "{status}: {}", self.log());
    }

    /// Waits until it has ended by itself, which must be in order.
    pub(crate) fn ended(mut self) {
        let status = wait_for(&mut self.child, PATIENCE)
            .unwrap_or_else(|| panic!("the daemon did not end: {}", self.log()));
        assert!(status.success(), "{status}: {}", self.log());
    }

    /// Asks it to end, which it must do in order.
    pub(crate) fn stop(self) {
        self.signal(Signal::TERM);
        self.ended();
    }

    /// All that daemons of this workspace have said.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// Takes every notice at once, as a service manager does.
fn listen(notices: UnixDatagram) -> (Receiver<String>, Arc<AtomicBool>) {
    let (sender, receiver) = channel();
    let over = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&over);
    notices.set_read_timeout(Some(LOOK)).unwrap();
    std::thread::spawn(move || {
        let mut bytes = [0; 4_096];
        while !until.load(Ordering::Relaxed) {
            if let Ok(count) = notices.recv(&mut bytes) {
                let told = String::from_utf8_lossy(&bytes[..count]).into_owned();
                // The test may have ended.
                let _ = sender.send(told);
            }
        }
    });
    (receiver, over)
}

impl Drop for Daemon {
    #[expect(
        clippy::print_stderr,
        reason = "why a test failed may stand in the daemon's log, which goes with the workspace"
    )]
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if std::thread::panicking() {
            let ended = self.child.try_wait();
            eprintln!("the daemon ({ended:?}) said:\n{}", self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The answer of the daemon to a GET.
pub(crate) fn get(workspace: &Workspace, path: &str) -> String {
    let lock: Value = serde_json::from_str(&workspace.read(".workerctl/lock").unwrap()).unwrap();
    let mut stream = UnixStream::connect(lock["socket"].as_str().unwrap()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
