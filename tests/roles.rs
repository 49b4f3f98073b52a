//! Roles on the control socket: a real daemon, and commands of other users, who are told apart by the kernel alone.

use crate::workspace;

mod configured;
mod heard;
mod operations;
mod page;
mod taken;
mod ways;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use workspace::daemon::Daemon;
use workspace::{Done, Workspace, skip};

/// Has a name everywhere.
const NOBODY: u32 = 65_534;

const SKILLS: &str = "
  - {id: say, description: d, run: 'echo hello'}
  - {id: asks, description: d, approval_required: true, run: 'echo approved'}
";

/// Somebody on this machine.
#[derive(Debug, Clone, Copy)]
struct Person {
    uid: u32,
    /// Their further groups.
    groups: &'static [u32],
}

/// A user whom no configuration of these tests names.
const STRANGER: Person = Person {
    uid: 54_001,
    groups: &[],
};

impl Person {
    const fn new(uid: u32, groups: &'static [u32]) -> Person {
        Person { uid, groups }
    }

    /// Does this on a thread that is this person; what it starts is theirs too.
    fn does<T: Send>(self, what: impl FnOnce() -> T + Send) -> T {
        let become_them = move || {
            let groups: Vec<Gid> = self.groups.iter().map(|id| Gid::from_raw(*id)).collect();
            set_thread_groups(&groups).unwrap();
            set_thread_gid(Gid::from_raw(54_999)).unwrap();
            set_thread_uid(Uid::from_raw(self.uid)).unwrap();
        };
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                become_them();
                what()
            });
            thread.join().unwrap()
        })
    }
}

/// A workspace that others may look into, and a copy of the program that they may run.
struct Bed {
    workspace: Workspace,
    program: PathBuf,
}

impl Bed {
    /// `None`, and said so, where nobody can become somebody else.
    fn new(access: &str) -> Option<Bed> {
        if !rustix::process::geteuid().is_root() {
            skip("only root can become another user");
            return None;
        }
        let workspace = Workspace::with_skills(SKILLS);
        let base = workspace.home.parent().unwrap().to_owned();
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).unwrap();
        // Where the tests keep what commands print.
        let everybody = fs::Permissions::from_mode(0o777);
        fs::set_permissions(base.join("outputs"), everybody).unwrap();
        let program = base.join("workerctl");
        let built = Path::new(env!("CARGO_BIN_EXE_workerctl"));
        if fs::hard_link(built, &program).is_err() {
            fs::copy(built, &program).unwrap();
        }
        let bed = Bed { workspace, program };
        bed.configure(access);
        Some(bed)
    }

    /// Writes the configuration; an empty text gives nobody a role.
    fn configure(&self, access: &str) {
        self.workspace.configure(access);
    }

    /// The daemon, with its socket in a directory that it makes.
    fn daemon(&self) -> Daemon {
        self.daemon_at(&self.socket())
    }

    fn daemon_at(&self, socket: &Path) -> Daemon {
        let mut command = self.workspace.workerctl(&["-v", "daemon"]);
        command.arg("--socket").arg(socket);
        Daemon::start_by(&self.workspace, command)
    }

    fn socket(&self) -> PathBuf {
        self.program.with_file_name("made").join("s.sock")
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    /// A command of somebody, who names the socket.
    fn run(&self, who: Person, arguments: &[&str]) -> Done {
        let socket = self.socket();
        let named = ["--socket", socket.to_str().unwrap()];
        self.run_anywhere(who, &[arguments, &named[..]].concat())
    }

    /// A command of somebody with what everybody has: the path of the workspace.
    fn run_anywhere(&self, who: Person, arguments: &[&str]) -> Done {
        let mut command = self.workspace.program(self.program.to_str().unwrap());
        command.arg("-C").arg(&self.workspace.root).args(arguments);
        command.env_remove("XDG_RUNTIME_DIR").current_dir("/");
        who.does(|| self.workspace.start(&mut command)).end()
    }
}
