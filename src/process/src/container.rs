//! A command in a container of bubblewrap's: a home, a `/tmp` and processes of its own. Its walls go up inside, by this
//! program itself, which starts the command last: a command within walls may no longer move what is mounted.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::filter::Network;
use super::wall::{Wall, WallError};

/// Where distributions install it.
const PROGRAMS: [&str; 3] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/// The first argument of this program where it is to put walls around a command.
const LAUNCH: &str = "__within-container";

/// What it is called in the container, whose `/dev` is always its own; `/tmp` can be granted.
const LAUNCHER: &str = "/dev/.workerctl";

/// Directories whose content is the command's own in there.
const OWN_DIRECTORIES: [&str; 2] = ["/tmp", "/var/tmp"];

/// A container: the machine for reading, but for a home directory and temporary files of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// The home directory, which is an empty one in there.
    pub home: PathBuf,
    /// What can be read although it lies in what is replaced.
    pub shown: Vec<PathBuf>,
    /// Symbolic links next to that.
    pub links: Vec<Link>,
    /// Directories of which nothing exists in there but what is shown or may be written, and that cannot be changed.
    pub sealed: Vec<PathBuf>,
    /// Unix sockets that can be connected to although they lie in what is replaced.
    pub sockets: Vec<PathBuf>,
}

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Where it lies.
    pub path: PathBuf,
    /// What it says, as it is written.
    pub target: PathBuf,
}

/// A container that only has to be started.
#[derive(Clone, Debug)]
pub(super) struct ReadyContainer {
    program: &'static str,
    arguments: Vec<OsString>,
    /// What the launcher is told.
    pub(super) wall: String,
}

impl Container {
    /// Finds out that containers can be had, and describes this one.
    pub(super) fn prepare(&self, wall: &Wall) -> Result<ReadyContainer, WallError> {
        let bubblewrap = working()?;
        let own_program = std::env::current_exe().map_err(|source| WallError::Path {
            path: "/proc/self/exe".into(),
            source,
        })?;
        let mut replaced: Vec<&Path> = OWN_DIRECTORIES.map(Path::new).to_vec();
        replaced.push(&self.home);
        replaced.retain(|path| path.parent().is_some() && path.is_dir());
        let mut inside = wall.clone();
        inside.container = None;
        inside.ipc = true;
        inside.write.push("/dev/shm".into());
        inside
            .write
            .extend(replaced.iter().map(|path| path.to_path_buf()));
        let told = serde_json::to_string(&inside);
        let told = told.map_err(|error| WallError::Refused(error.to_string()))?;
        let mut arguments = bubblewrap.arguments();
        if wall.network == Network::None {
            arguments.push("--unshare-net".into());
        }
        arguments.extend(self.mounts(wall, &replaced));
        arguments.extend(["--ro-bind".into(), own_program.into(), LAUNCHER.into()]);
        Ok(ReadyContainer {
            program: bubblewrap.program,
            arguments,
            wall: told,
        })
    }

    /// Outer directories first, since a mount covers what is mounted below it already; they are made read-only at last,
    /// because places for mounts are made in them. The wall allows everything in what is replaced, so only what may be
    /// read at level 1 is mounted there, and for reading.
    fn mounts(&self, wall: &Wall, replaced: &[&Path]) -> Vec<OsString> {
        let in_replaced = |path: &Path| replaced.iter().any(|outer| path.starts_with(outer));
        let sealed = self.sealed.iter().filter(|path| in_replaced(path));
        let own = replaced.iter().copied();
        let own = own.chain(sealed.clone().map(PathBuf::as_path));
        let own = own.map(|path| (path, vec!["--tmpfs".into(), path.into()]));
        let shown = self.shown.iter().chain(&self.sockets);
        let shown = shown.filter(|path| in_replaced(path));
        let bound =
            |option: &str, path: &PathBuf| [option.into(), path.into(), path.into()].to_vec();
        let shown = shown.map(|path| (path.as_path(), bound("--ro-bind-try", path)));
        let links = self.links.iter().filter(|link| in_replaced(&link.path));
        let links = links.map(|link| {
            let words = [(&link.target).into(), (&link.path).into()];
            (
                link.path.as_path(),
                [vec!["--symlink".into()], words.to_vec()].concat(),
            )
        });
        let write = wall.write.iter();
        let write = write.map(|path| (path.as_path(), bound("--bind-try", path)));
        let mounts = own.chain(shown).chain(links).chain(write);
        let mut mounts: Vec<(&Path, Vec<OsString>)> = mounts.collect();
        mounts.sort_by_key(|(path, _)| path.components().count());
        let mut arguments: Vec<OsString> =
            mounts.into_iter().flat_map(|(_, words)| words).collect();
        arguments.extend(sealed.flat_map(|path| ["--remount-ro".into(), path.into()]));
        arguments
    }
}

impl ReadyContainer {
    /// The program and the arguments that start `program` in there, as `name` and with its walls as the file says.
    pub(super) fn around(
        &self,
        (name, program): (&str, &Path),
        cwd: &Path,
        wall: &Path,
    ) -> (PathBuf, Vec<OsString>) {
        let mut arguments = self.arguments.clone();
        arguments.extend(["--chdir".into(), cwd.into(), "--".into()]);
        arguments.extend([LAUNCHER.into(), LAUNCH.into(), wall.into()]);
        arguments.extend([name.into(), program.into()]);
        (self.program.into(), arguments)
    }
}

/// Whether commands can be started in containers here.
///
/// # Errors
/// Why not.
pub fn containers_stand() -> Result<(), WallError> {
    working().map(drop)
}

/// Bubblewrap as it works here.
#[derive(Clone, Copy)]
struct Bubblewrap {
    program: &'static str,
    /// Whether a container has processes and a `/proc` of its own: the kernel mounts no whole one for those who are
    /// shown a part only, as in another container or under `ProtectKernelTunables=` of a unit.
    own_processes: bool,
}

impl Bubblewrap {
    fn arguments(self) -> Vec<OsString> {
        let mut words = vec!["--unshare-ipc", "--ro-bind", "/", "/", "--dev", "/dev"];
        if self.own_processes {
            words.extend(["--unshare-pid", "--proc", "/proc"]);
        } else {
            words.extend(["--ro-bind", "/proc", "/proc"]);
        }
        words.into_iter().map(OsString::from).collect()
    }

    /// Starts something in a container; answers why that did not work.
    fn try_out(self) -> Result<(), String> {
        let mut arguments = self.arguments();
        arguments.extend(["--tmpfs", "/tmp", "true"].map(OsString::from));
        let tried = duct::cmd(self.program, arguments)
            .stdin_null()
            .stdout_null()
            .stderr_capture()
            .unchecked()
            .run();
        match tried {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Bubblewrap, once it has shown that it can start something here.
fn working() -> Result<Bubblewrap, WallError> {
    static FOUND: OnceLock<Bubblewrap> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(*found);
    }
    let installed = PROGRAMS.into_iter().find(|path| Path::new(path).exists());
    let Some(program) = installed else {
        let why = "bubblewrap is not installed; install the package `bubblewrap`";
        return Err(WallError::Container(why.to_owned()));
    };
    let kinds = [true, false].map(|own_processes| Bubblewrap {
        program,
        own_processes,
    });
    let mut why = String::new();
    for found in kinds {
        match found.try_out() {
            Ok(()) => return Ok(*FOUND.get_or_init(|| found)),
            Err(error) => why = error,
        }
    }
    let hint = "it needs user namespaces: docs/reference/sandbox.md says how to allow them";
    let why = format!("bubblewrap cannot start anything here: {why}; {hint}");
    Err(WallError::Container(why))
}

/// Does what this program was started for in a container, if it was: puts walls around itself and becomes the command.
pub fn launched_within_container() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(LAUNCH.as_ref()) {
        return None;
    }
    let [wall, name, program] = [(); 3].map(|()| arguments.next().unwrap_or_default());
    let error = match walled_in(Path::new(&wall)) {
        Ok(()) => {
            let mut command = std::process::Command::new(&program);
            command.arg0(&name).args(arguments).exec().to_string()
        }
        Err(error) => error,
    };
    let program = program.display();
    // Standard error is the command's own; where it is closed nobody is left to tell.
    let _ = io::Write::write_fmt(
        &mut io::stderr(),
        format_args!("workerctl: `{program}` was not started in its container: {error}\n"),
    );
    Some(ExitCode::from(126))
}

fn walled_in(wall: &Path) -> Result<(), String> {
    let told = std::fs::read(wall).map_err(|error| error.to_string())?;
    let wall: Wall = serde_json::from_slice(&told).map_err(|error| error.to_string())?;
    let chain = |error: WallError| crate::model::diagnostic::chain(&error);
    wall.raise().map_err(chain)?.apply().map_err(chain)
}
