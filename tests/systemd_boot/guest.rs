//! A system of its own: a real systemd as the first process of fresh namespaces, over a view of the
//! machine's `/usr` whose writes stay in memory.
//!
//! Nothing of it outlives the test: its processes die with its first one, its mounts with its namespace,
//! and the first process dies with the test.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::workspace::{Done, PATIENCE, Started, Workspace, eventually, skip, wait_for};

/// Where programs are looked for inside.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin";
/// Name of the control group, before the process id of the test and the number of the guest.
const CGROUP: &str = "workerctl-boot-";
/// Programs that the test and the installation use; they are taken from the machine.
const TOOLS: [&str; 7] = [
    "git", "mount", "nsenter", "setpriv", "setsid", "unshare", "useradd",
];
/// Enters the control group `$0`, makes it the root of what can be seen of them, and goes on. The process
/// that waits outside is not in it: systemd wants the root for itself.
const ENTER: &str = r#"echo 0 > "$0/cgroup.procs" || exit 75; exec unshare --cgroup sh "$@""#;
/// Guests of this process so far.
static GUESTS: AtomicU32 = AtomicU32::new(0);
/// `boot.sh` ends with this where the machine lacks something.
const LACKS: i32 = 75;
/// What systemd sets at start and no namespace keeps apart.
const SYSCTLS: [&str; 8] = [
    "fs/file-max",
    "fs/nr_open",
    "fs/protected_fifos",
    "fs/protected_hardlinks",
    "fs/protected_regular",
    "fs/protected_symlinks",
    "kernel/core_pattern",
    "kernel/sysrq",
];

/// A system that runs; halted with the test.
pub(crate) struct Guest<'a> {
    workspace: &'a Workspace,
    /// Waits for the first process.
    outer: Child,
    first: Option<First>,
    cgroup: PathBuf,
    directory: xtest::TempDir,
    sysctls: Vec<String>,
}

/// The first process, as the machine sees it.
struct First {
    pid: Pid,
    handle: OwnedFd,
    /// Its namespace of processes, by which whatever is left of it can be told.
    namespace: PathBuf,
}

impl<'a> Guest<'a> {
    /// Boots a system; `None`, and said so, where that is not possible. Commands that are run in it leave
    /// what they say with `workspace`.
    pub(crate) fn boot(workspace: &'a Workspace) -> Option<Guest<'a>> {
        let cgroup = match place() {
            Ok(cgroup) => cgroup,
            Err(why) => {
                skip(&why);
                return None;
            }
        };
        let directory = xtest::tempdir();
        let root = directory.path().join("root");
        fs::create_dir(&root).unwrap();
        let file = |name: &str| File::create(directory.path().join(name)).unwrap();
        let outer = Command::new("setpriv")
            .args([
                "--pdeathsig",
                "KILL",
                "unshare",
                "--mount",
                "--uts",
                "--ipc",
            ])
            .args(["--net", "--pid", "--propagation", "private", "--fork"])
            .args(["--kill-child", "sh", "-c", ENTER])
            .arg(&cgroup)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/systemd_boot/boot.sh"))
            .arg(&root)
            .stdin(Stdio::null())
            .stdout(file("said"))
            .stderr(file("complaint"))
            .spawn()
            .unwrap();
        let mut guest = Guest {
            workspace,
            outer,
            first: None,
            cgroup,
            directory,
            sysctls: sysctls(),
        };
        guest.first = Some(guest.begun()?);
        guest.expect_running();
        Some(guest)
    }

    /// Waits until the first process has become systemd.
    fn begun(&mut self) -> Option<First> {
        let read = |name: &str| fs::read_to_string(self.directory.path().join(name)).unwrap();
        let pid = eventually("systemd is started", || {
            if let Some(status) = self.outer.try_wait().unwrap() {
                let complaint = read("complaint");
                let lacks = status.code() == Some(LACKS) || complaint.contains("unshare failed");
                assert!(lacks, "{status}: {complaint}");
                return Some(None);
            }
            let said = read("said");
            let pid = said.strip_suffix("\nbooting\n")?;
            Some(Some(Pid::from_raw(pid.parse().unwrap()).unwrap()))
        });
        let Some(pid) = pid else {
            skip(read("complaint").trim());
            return None;
        };
        let namespace = fs::read_link(format!("/proc/{pid}/ns/pid")).unwrap();
        assert_ne!(
            namespace,
            fs::read_link("/proc/self/ns/pid").unwrap(),
            "that is the machine itself"
        );
        Some(First {
            pid,
            handle: pidfd_open(pid, PidfdFlags::empty()).unwrap(),
            namespace,
        })
    }

    fn expect_running(&self) {
        eventually("the system runs", || {
            let state = self.run(&["systemctl", "is-system-running"]).stdout;
            assert_ne!(
                state.trim(),
                "degraded",
                "{}",
                self.run(&["systemctl", "--failed"]).stdout
            );
            (state.trim() == "running").then_some(())
        });
    }

    /// A path inside, as the machine sees it.
    pub(crate) fn path(&self, inside: &str) -> PathBuf {
        let pid = self.first.as_ref().unwrap().pid;
        PathBuf::from(format!("/proc/{pid}/root{inside}"))
    }

    /// Its network, as a name space.
    pub(crate) fn network(&self) -> PathBuf {
        let pid = self.first.as_ref().unwrap().pid;
        PathBuf::from(format!("/proc/{pid}/ns/net"))
    }

    /// Writes a file inside.
    pub(crate) fn write(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A command inside, as root.
    fn command(&self, arguments: &[&str]) -> Command {
        let pid = self.first.as_ref().unwrap().pid.to_string();
        let mut command = self.workspace.program("nsenter");
        command
            .args(["-t", &pid, "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w"])
            .args(["env", "-i", "LANG=C.UTF-8", "SYSTEMD_PAGER=cat"])
            .arg(format!("PATH={PATH}"))
            .args(arguments);
        command
    }

    /// Starts a command inside as root.
    pub(crate) fn start(&self, arguments: &[&str]) -> Started {
        self.workspace.start(&mut self.command(arguments))
    }

    /// Runs a command inside as root, to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        self.start(arguments).end()
    }

    /// Runs a command inside as another user, to its end.
    pub(crate) fn run_as(&self, user: &str, arguments: &[&str]) -> Done {
        let become_user = ["setpriv", "--reuid", user, "--regid", user, "--init-groups"];
        self.run(&[&become_user, arguments].concat())
    }

    /// Runs a command inside as root, which must succeed, and answers what it printed.
    pub(crate) fn expect(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(done.code, 0, "{arguments:?}: {done:?}");
        done.stdout
    }

    /// Halts it and asserts that the machine is as it was before.
    pub(crate) fn halt(mut self) {
        let namespace = self.first.as_ref().unwrap().namespace.clone();
        let place = self.directory.path().to_owned();
        self.end();
        eventually("its last process is gone", || {
            in_namespace(&namespace).is_empty().then_some(())
        });
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let left: Vec<_> = mounts
            .lines()
            .filter(|line| line.contains(place.to_str().unwrap()))
            .collect();
        assert!(left.is_empty(), "still mounted: {left:?}");
        assert!(!self.cgroup.exists(), "{}", self.cgroup.display());
        assert_eq!(self.sysctls, sysctls());
    }

    fn end(&mut self) {
        if let Some(first) = self.first.take() {
            // With the first process of a namespace the kernel ends all others.
            let _ = pidfd_send_signal(&first.handle, Signal::KILL);
            wait_for(&mut self.outer, PATIENCE);
        }
        let _ = self.outer.kill();
        let _ = self.outer.wait();
        // It can be removed a moment after its last process has gone.
        let end = Instant::now() + PATIENCE;
        while !removed(&self.cgroup) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && self.first.is_some() {
            let journal = ["timeout", "20", "journalctl", "--no-pager", "-n", "200"];
            if let Ok(output) = self.command(&journal).output() {
                println!("{}", String::from_utf8_lossy(&output.stdout));
            }
        }
        self.end();
    }
}

/// A control group for the system; the reason where the machine lacks something.
fn place() -> Result<PathBuf, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("namespaces and mounts need root".to_owned());
    }
    for tool in TOOLS {
        if !PATH
            .split(':')
            .any(|bin| Path::new(bin).join(tool).exists())
        {
            return Err(format!("`{tool}` is not installed below /usr"));
        }
    }
    if !Path::new("/usr/lib/systemd/systemd").exists() {
        return Err("there is no /usr/lib/systemd/systemd".to_owned());
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let tree = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let place = fields.next()?;
        (fields.next()? == "cgroup2").then_some(place)
    });
    let Some(tree) = tree else {
        return Err("no cgroup2 tree is mounted".to_owned());
    };
    clear(Path::new(tree));
    let guest = GUESTS.fetch_add(1, Ordering::Relaxed);
    let cgroup = Path::new(tree).join(format!("{CGROUP}{}-{guest}", std::process::id()));
    match fs::create_dir(&cgroup) {
        Ok(()) => Ok(cgroup),
        Err(error) => Err(format!("no control group can be made in {tree}: {error}")),
    }
}

/// Removes what tests left that were killed: control groups without processes.
fn clear(tree: &Path) {
    for entry in fs::read_dir(tree).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(CGROUP).unwrap_or_default();
        let owner = owner.split('-').next().unwrap_or_default();
        let ended = !owner.is_empty() && !Path::new("/proc").join(owner).exists();
        if ended {
            removed(&entry.path());
        }
    }
}

/// Removes a control group and those below it; whether it is gone.
fn removed(cgroup: &Path) -> bool {
    if let Ok(entries) = fs::read_dir(cgroup) {
        let below = entries.flatten().map(|entry| entry.path());
        for child in below.filter(|path| path.is_dir()) {
            removed(&child);
        }
    }
    let _ = fs::remove_dir(cgroup);
    !cgroup.exists()
}

/// Every process of a namespace.
fn in_namespace(namespace: &Path) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter(|entry| fs::read_link(entry.path().join("ns/pid")).is_ok_and(|it| it == namespace))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

fn sysctls() -> Vec<String> {
    SYSCTLS
        .iter()
        .map(|name| {
            let value = fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default();
            format!("{name} = {}", value.trim())
        })
        .collect()
}
