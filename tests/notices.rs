//! A service manager that does not take the daemon's notices: the daemon works on, ends when it is asked
//! to, and tells the latest on each subject as soon as somebody listens.

use crate::workspace;

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use workspace::daemon::Daemon;
use workspace::{PATIENCE, Started, Workspace, eventually};

const SKILLS: &str = r#"
  - {id: read, description: d, run: "echo read"}
"#;

/// The socket of a service manager that takes nothing until it is told to.
struct Supervisor {
    socket: UnixDatagram,
    address: PathBuf,
}

impl Supervisor {
    /// One whose socket holds as much as it can.
    fn overrun(workspace: &Workspace) -> Supervisor {
        let address = workspace.home.join("notify");
        let supervisor = Supervisor {
            socket: UnixDatagram::bind(&address).unwrap(),
            address,
        };
        while sent(&supervisor.address) {}
        supervisor
    }

    /// Takes notices until one has this line, and answers all of them.
    fn receive(&self, wanted: &str) -> Vec<String> {
        self.socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut received = Vec::new();
        while !received.iter().any(|line| line == wanted) {
            let mut bytes = [0; 4_096];
            let count = self.socket.recv(&mut bytes).unwrap_or_else(|error| {
                panic!("`{wanted}` was not told ({error}), but {received:?}");
            });
            let text = std::str::from_utf8(&bytes[..count]).unwrap();
            received.extend(text.lines().map(str::to_owned));
        }
        received
    }
}

/// Sends one notice that means nothing; false: it would have to wait. From a new socket each time, since a
/// socket's own buffer is full sooner.
fn sent(address: &Path) -> bool {
    let sender = UnixDatagram::unbound().unwrap();
    sender.set_nonblocking(true).unwrap();
    match sender.send_to(b"X_FILLER=1", address) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    }
}

fn daemon(workspace: &Workspace, supervisor: &Supervisor) -> Started {
    let mut command = workspace.workerctl(&["daemon"]);
    command.env("NOTIFY_SOCKET", &supervisor.address);
    let mut daemon = workspace.start(&mut command);
    // Its log tells that it is ready: a command that finds no daemon would host an engine itself.
    eventually("the daemon is ready", || {
        assert!(daemon.ended().is_none(), "{}", daemon.stderr());
        daemon.stderr().contains(" ready ").then_some(())
    });
    daemon
}

fn ends_in_order(mut daemon: Started) {
    daemon.signal(Signal::TERM);
    let ended = daemon.ends_within(Duration::from_mins(1));
    assert!(ended, "it does not end: {}", daemon.stderr());
    let done = daemon.end();
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn a_daemon_that_nobody_hears_works_and_ends_in_order() {
    let workspace = Workspace::with_skills(SKILLS);
    let supervisor = Supervisor::overrun(&workspace);
    let daemon = daemon(&workspace, &supervisor);
    let done = workspace.run(&["run", "read"]);
    assert_eq!(done.code, 0, "{done:?}: {}", daemon.stderr());
    daemon.signal(Signal::HUP);
    eventually("a reload", || {
        daemon
            .stderr()
            .contains("definitions were read again")
            .then_some(())
    });
    ends_in_order(daemon);
}

#[test]
fn what_was_not_heard_is_told_once_somebody_listens() {
    let workspace = Workspace::with_skills(SKILLS);
    let supervisor = Supervisor::overrun(&workspace);
    let daemon = daemon(&workspace, &supervisor);
    assert_eq!(workspace.run(&["run", "read"]).code, 0);
    let said = daemon.stderr();
    assert_eq!(
        said.matches("does not accept notifications").count(),
        1,
        "said once, not for each notice: {said}"
    );
    let received = supervisor.receive("READY=1");
    let told: Vec<_> = received
        .iter()
        .filter(|line| *line != "X_FILLER=1")
        .collect();
    assert!(
        told.len() <= 6,
        "no more than one on each subject: {told:?}"
    );
    // From here on it is received at once again.
    daemon.signal(Signal::HUP);
    supervisor.receive("RELOADING=1");
    supervisor.receive("READY=1");
    daemon.signal(Signal::TERM);
    supervisor.receive("STOPPING=1");
    let done = daemon.end();
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn what_is_heard_at_once_is_not_remarked_on() {
    let workspace = Workspace::with_skills(SKILLS);
    let mut daemon = Daemon::start(&workspace);
    assert_eq!(workspace.run(&["run", "read"]).code, 0);
    daemon.signal(Signal::TERM);
    daemon.wait_for_notice("STOPPING=1");
    let log = daemon.log();
    daemon.ended();
    assert!(!log.contains("service manager"), "{log}");
}
