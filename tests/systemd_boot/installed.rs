//! The program and its units, installed in a guest as `docs/installation.md` says.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::systemd_boot::guest::Guest;
use crate::workspace::{Done, Workspace, eventually};

/// The service's user and group.
pub(crate) const USER: &str = "workerctl";
/// Its unit.
pub(crate) const SERVICE: &str = "workerctl.service";
/// The unit of its socket.
pub(crate) const SOCKET: &str = "workerctl.socket";
/// The socket that the socket unit opens.
pub(crate) const ACTIVATED: &str = "/run/workerctl.sock";
/// The service's state directory.
pub(crate) const STATE: &str = "/var/lib/workerctl";
/// Its workspace.
pub(crate) const WORKSPACE: &str = "/srv/workerctl";
/// Lists all runs.
pub(crate) const LISTING: [&str; 4] = ["runs", "-n", "1000", "--json"];
/// Settings of a phase of the test.
const DROP_IN: &str = "/etc/systemd/system/workerctl.service.d/phase.conf";

/// The installation, and what was submitted to it.
pub(crate) struct Installed<'a> {
    pub(crate) guest: &'a Guest<'a>,
    /// The socket that commands are told of.
    socket: Option<&'static str>,
    submitted: BTreeSet<String>,
}

impl<'a> Installed<'a> {
    /// Installs program, user, workspace and service unit; starts nothing.
    pub(crate) fn new(guest: &'a Guest<'a>, source: &Workspace) -> Installed<'a> {
        let program = guest.path("/usr/local/bin/workerctl");
        fs::copy(env!("CARGO_BIN_EXE_workerctl"), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let shell = "/usr/sbin/nologin";
        guest.expect(&[
            "useradd",
            "--system",
            "--home-dir",
            STATE,
            "--shell",
            shell,
            USER,
        ]);
        let owned = ["-d", "-o", USER, "-g", USER, "-m", "0750", WORKSPACE];
        guest.expect(&[&["install"], &owned[..]].concat());
        let installed = Installed {
            socket: Some(ACTIVATED),
            ..Installed::by_package(guest)
        };
        installed.clone_workspace(source);
        installed.install(&[]);
        for unit in [SERVICE, SOCKET] {
            let text = fs::read_to_string(guest.path(&format!("/etc/systemd/system/{unit}")));
            let shipped = format!("{}/systemd/{unit}", env!("CARGO_MANIFEST_DIR"));
            if unit == SERVICE {
                assert_eq!(text.unwrap(), fs::read_to_string(shipped).unwrap());
            } else {
                assert!(text.is_err(), "it was not asked for");
            }
        }
        installed
    }

    /// What a package has installed.
    pub(crate) fn by_package(guest: &'a Guest<'a>) -> Installed<'a> {
        Installed {
            guest,
            socket: None,
            submitted: BTreeSet::new(),
        }
    }

    /// Has the service's user clone the workspace to its place, and says who commits.
    pub(crate) fn clone_workspace(&self, source: &Workspace) {
        let bundle = self.guest.path("/tmp/source");
        source.git(&["bundle", "create", bundle.to_str().unwrap(), "HEAD", "main"]);
        self.git(&["clone", "-q", "/tmp/source", WORKSPACE]);
        for (key, value) in [
            ("user.name", "Workers"),
            ("user.email", "workers@example.org"),
        ] {
            self.git(&["-C", WORKSPACE, "config", key, value]);
        }
    }

    fn git(&self, arguments: &[&str]) -> String {
        let done = self.guest.run_as(USER, &[&["git"], arguments].concat());
        done.expect_code(0).stdout
    }

    /// Has the program install its units, and does what it says comes next but for starting them.
    pub(crate) fn install(&self, options: &[&str]) {
        let command = ["workerctl", "-C", WORKSPACE, "unit", "install"];
        let next = self.guest.expect(&[&command, options].concat());
        assert!(
            next.contains("systemctl enable --now workerctl\n"),
            "{next}"
        );
        assert!(!next.contains("useradd"), "the account is there: {next}");
        self.systemctl(&["daemon-reload"]);
    }

    /// Adds settings to the service until the next call; empty: none.
    pub(crate) fn settings(&self, text: &str) {
        self.guest.write(DROP_IN, &format!("[Service]\n{text}"));
        self.systemctl(&["daemon-reload"]);
    }

    /// Runs `systemctl`, which must succeed.
    pub(crate) fn systemctl(&self, arguments: &[&str]) {
        self.guest.expect(&[&["systemctl"], arguments].concat());
    }

    /// A property of a unit.
    pub(crate) fn property(&self, unit: &str, name: &str) -> String {
        let show = ["systemctl", "show", "--value", "-p", name, unit];
        self.guest.expect(&show).trim().to_owned()
    }

    /// Waits until a property of the service is as wanted.
    pub(crate) fn await_property(&self, name: &str, wanted: &str) {
        eventually(&format!("{name}={wanted} of the service"), || {
            (self.property(SERVICE, name) == wanted).then_some(())
        });
    }

    /// Waits until the service is stopping and has told systemd what it does.
    pub(crate) fn await_draining(&self) {
        self.await_property("SubState", "stop-sigterm");
        eventually("it tells that it drains", || {
            let text = self.property(SERVICE, "StatusText");
            text.ends_with("draining").then_some(())
        });
    }

    /// Asserts that the service is stopped and ended in order.
    pub(crate) fn expect_stopped(&self) {
        self.await_property("ActiveState", "inactive");
        assert_eq!(self.property(SERVICE, "Result"), "success");
        assert_eq!(self.property(SERVICE, "ExecMainStatus"), "0");
        self.expect_ended_in_order();
    }

    /// Asserts that nothing of the shutdown's way was left out.
    pub(crate) fn expect_ended_in_order(&self) {
        eventually("the last line of the log tells of the end", || {
            let log = self.log(&["-t", "workerctl"]);
            log.trim_end().ends_with("ended in order").then_some(())
        });
    }

    /// The daemon's process; 0: none.
    pub(crate) fn main_process(&self) -> u32 {
        self.property(SERVICE, "MainPID").parse().unwrap()
    }

    /// How often systemd has started it again by itself.
    pub(crate) fn restarts(&self) -> u32 {
        self.property(SERVICE, "NRestarts").parse().unwrap()
    }

    /// Sends the daemon alone a signal.
    pub(crate) fn signal(&self, signal: &str) {
        let text = format!("kill -{signal} {}", self.main_process());
        self.guest.expect(&["sh", "-c", &text]);
    }

    /// Waits until systemd has replaced the process `former` by one that is ready.
    pub(crate) fn await_other_than(&self, former: u32) {
        eventually(&format!("another process than {former}"), || {
            let ready = self.property(SERVICE, "ActiveState") == "active";
            (ready && ![0, former].contains(&self.main_process())).then_some(())
        });
    }

    /// What the journal has of the service, systemd's own lines included, or less.
    fn log(&self, less: &[&str]) -> String {
        let journal = ["journalctl", "--no-pager", "-o", "cat", "-u", SERVICE];
        self.guest.expect(&[&journal, less].concat())
    }

    /// Waits until the journal has this of the service.
    pub(crate) fn await_log(&self, wanted: &str) {
        eventually(&format!("`{wanted}` in the log"), || {
            self.log(&[]).contains(wanted).then_some(())
        });
    }

    /// Asserts that systemd took every notice at once.
    pub(crate) fn expect_heard(&self) {
        let log = self.log(&["-p", "warning", "-t", "workerctl"]);
        assert!(!log.contains("service manager"), "{log}");
    }

    /// Mode and owner of a path.
    pub(crate) fn mode_and_owner(&self, path: &str) -> (u32, String) {
        let found = fs::symlink_metadata(self.guest.path(path)).unwrap();
        let name = |kind: &str| self.guest.expect(&["id", kind, USER]).trim().to_owned();
        let owners = (found.uid().to_string(), found.gid().to_string());
        let owner = if owners == (name("-u"), name("-g")) {
            USER.to_owned()
        } else {
            format!("{owners:?}")
        };
        (found.mode() & 0o7777, owner)
    }

    /// Runs the program as a user, with the daemon's state directory.
    pub(crate) fn workerctl_as(&self, user: &str, arguments: &[&str]) -> Done {
        let state = format!("WORKERCTL_STATE_DIR={STATE}");
        let command = ["env", &state, "workerctl", "-C", WORKSPACE];
        self.guest.run_as(user, &[&command, arguments].concat())
    }

    /// Runs the program as the service's user.
    pub(crate) fn workerctl(&self, arguments: &[&str]) -> Done {
        let socket: Vec<&str> = self
            .socket
            .iter()
            .flat_map(|path| ["--socket", path])
            .collect();
        self.workerctl_as(USER, &[&socket, arguments].concat())
    }

    /// Submits a run and answers its id.
    pub(crate) fn submit(&mut self, skill: &str) -> String {
        let done = self.workerctl(&["run", "--no-wait", skill]).expect_code(0);
        let run = done.stdout.trim().to_owned();
        self.submitted.insert(run.clone());
        run
    }

    /// Runs a skill to its end; answers its run, its exit code and its log.
    pub(crate) fn complete(&mut self, skill: &str) -> (String, i32, String) {
        let run = self.submit(skill);
        let code = self.workerctl(&["wait", &run]).code;
        let log = self.workerctl(&["logs", &run]).expect_code(0).stdout;
        (run, code, log)
    }

    /// The run ids that the repository has commits of, one for each commit.
    pub(crate) fn committed(&self) -> Vec<String> {
        let form = "--format=%(trailers:key=Run-Id,valueonly)";
        let text = self.git(&["-C", WORKSPACE, "log", form]);
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Asserts that every run that was accepted is known.
    pub(crate) fn expect_all_known(&self) {
        self.expect_all_in(self.workerctl(&LISTING));
    }

    /// Asserts that every run that was accepted stands in what `LISTING` printed.
    pub(crate) fn expect_all_in(&self, listing: Done) {
        let listed = listing.expect_code(0).stdout;
        let lost: Vec<_> = self
            .submitted
            .iter()
            .filter(|run| !listed.contains(*run))
            .collect();
        assert!(lost.is_empty(), "accepted and lost: {lost:?}");
    }

    /// Waits until a skill has written this file of the state directory; answers and removes it.
    pub(crate) fn await_file(&self, name: &str) -> String {
        let path = self.guest.path(&format!("{STATE}/{name}"));
        let text = eventually(name, || fs::read_to_string(&path).ok());
        fs::remove_file(path).unwrap();
        text
    }
}
