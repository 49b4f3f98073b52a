//! Starts the first process of a command.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Access, OFlags, access};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use super::command::{ARGUMENT_BYTES_MAX, Command, Program, Stdin};
use super::error::{NOT_EXECUTABLE_HINT, SpawnError};
use super::registry::Registration;
use super::usage::Urgency;
use super::{signal, tag};

/// Where programs are looked for when the command's environment has no `PATH`.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How often a program is tried that is open for writing, and how long it is waited for each time.
const BUSY_TRIES_MAX: u32 = 200;
const BUSY_WAIT: std::time::Duration = std::time::Duration::from_millis(5);

/// The first process of a command.
pub(super) struct Child {
    pub(super) handle: duct::Handle,
    pub(super) pid: Pid,
    pub(super) pidfd: OwnedFd,
    pub(super) registration: Registration,
    pub(super) tag: Option<u64>,
    /// Of this thread, at first and whenever it is called late.
    pub(super) urgency: Option<Urgency>,
    /// Have to stay as long as they may be read.
    _files: Vec<PrivateFile>,
}

/// Our ends of a command's pipes, and the file that its standard output goes to.
pub(super) struct Pipes {
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout_file: Option<File>,
}

/// What is to be executed, in full.
struct Image<'c> {
    /// As it was asked for; becomes the first argument.
    name: String,
    path: PathBuf,
    arguments: Vec<OsString>,
    environment: &'c [(String, String)],
    files: Vec<PrivateFile>,
}

/// Starts `command` in a process group of its own.
pub(super) fn start(command: &Command) -> Result<(Child, Pipes), SpawnError> {
    let image = Image::of(command)?;
    let Some(path) = command.stdout_file.as_deref() else {
        return start_within(command, image);
    };
    let file = create_new(path, 0o644)
        .map_err(|source| SpawnError::of_step("create the file for standard output", source))?;
    match start_within(command, image) {
        Ok((child, pipes)) => Ok((
            child,
            Pipes {
                stdout_file: Some(file),
                ..pipes
            },
        )),
        Err(error) => {
            // Nothing ran, so nothing of it may be left; the reason for that is worth more than
            // a failure to remove the empty file.
            let _ = std::fs::remove_file(path);
            Err(error)
        }
    }
}

/// Starts the command within its wall, if it has one, and marks it.
fn start_within(command: &Command, image: Image<'_>) -> Result<(Child, Pipes), SpawnError> {
    let (mut child, pipes) = match &command.wall {
        None => start_image(command, image)?,
        Some(wall) if wall.container.is_some() => start_image(command, image.within(command)?)?,
        Some(wall) => {
            let start = move || {
                wall.apply()?;
                start_image(command, image)
            };
            std::thread::scope(|scope| {
                let thread = std::thread::Builder::new().name("wall".to_owned());
                let started = thread
                    .spawn_scoped(scope, start)
                    .map_err(|source| SpawnError::of_step("start a thread", source))?;
                let gone = || io::Error::other("the thread that started it is gone");
                let joined = started.join();
                joined.unwrap_or_else(|_| Err(SpawnError::of_step("start the command", gone())))
            })?
        }
    };
    child.urgency = Some(Urgency::raise());
    // Only now can it be marked, since `posix_spawn` sets no limits; what it has forked so far is marked with it.
    if child.registration.attach_tag() {
        child.tag = Some(child.registration.tag());
    }
    Ok((child, pipes))
}

fn start_image(command: &Command, image: Image<'_>) -> Result<(Child, Pipes), SpawnError> {
    let pipe_step = |error: rustix::io::Errno| SpawnError::of_step("make a pipe", error.into());
    let (stdout, stdout_end) = pipe_with(PipeFlags::CLOEXEC).map_err(pipe_step)?;
    let (stderr, stderr_end) = pipe_with(PipeFlags::CLOEXEC).map_err(pipe_step)?;
    let (stdin_end, stdin) = match &command.stdin {
        Stdin::Null => (None, None),
        Stdin::Pipe(end) => {
            let again = |source| SpawnError::of_step("pass on a pipe", source);
            (Some(end.again().map_err(again)?), None)
        }
        Stdin::Bytes(_) => {
            let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC).map_err(pipe_step)?;
            // Only our end: a command may expect that reading its input waits.
            rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK).map_err(pipe_step)?;
            (Some(theirs), Some(ours))
        }
    };
    let name = image.name.clone();
    let mut expression = duct::cmd(image.path.as_os_str(), &image.arguments)
        .dir(&command.cwd)
        .full_env(image.environment.iter().map(|(name, value)| (name, value)))
        .stdout_file(stdout_end)
        .stderr_file(stderr_end)
        .unchecked()
        // Both settings keep the standard library on posix_spawn, which does not copy our page
        // tables as a fork would.
        .before_spawn(move |child| {
            child.process_group(0).arg0(&name);
            Ok(())
        });
    expression = match stdin_end {
        None => expression.stdin_null(),
        Some(end) => expression.stdin_file(end),
    };

    let tag = tag::next();
    let pipes = [inode(&stdout), inode(&stderr)];
    // Before the start: a child of ours that another thread finds meanwhile may be this one, and must not be taken
    // for something that another command has left behind.
    let registration = Registration::announce(tag, command, pipes);
    let handle =
        start_when_closed(&expression).map_err(|source| image.refused(&command.cwd, source))?;
    // The expression holds the child's ends of the pipes; while we keep them there is no end of
    // output.
    drop(expression);
    let (pid, pidfd) = watch(&handle)?;
    registration.started(pid);
    let child = Child {
        handle,
        pid,
        pidfd,
        registration,
        tag: None,
        urgency: None,
        _files: image.files,
    };
    Ok((
        child,
        Pipes {
            stdout,
            stderr,
            stdin,
            stdout_file: None,
        },
    ))
}

/// Starts a command. A program that was written a moment ago may still be open for writing in a child that another thread
/// has forked meanwhile, until that child executes something.
fn start_when_closed(expression: &duct::Expression) -> io::Result<duct::Handle> {
    let mut tries = 0;
    loop {
        match expression.start() {
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES_MAX =>
            {
                tries += 1;
                std::thread::sleep(BUSY_WAIT);
            }
            started => return started,
        }
    }
}

/// The number by which `/proc` names a pipe; 0, which none has, if it cannot be asked for.
fn inode(pipe: &OwnedFd) -> u64 {
    rustix::fs::fstat(pipe).map_or(0, |stat| stat.st_ino)
}

/// The process of a handle and a descriptor of it; without a descriptor it is ended at once.
fn watch(handle: &duct::Handle) -> Result<(Pid, OwnedFd), SpawnError> {
    let step = "watch the command";
    let pid = handle
        .pids()
        .first()
        .and_then(|pid| Pid::from_raw(pid.cast_signed()));
    let Some(pid) = pid else {
        let source = io::Error::other("the command has no process");
        return Err(SpawnError::Io { step, source });
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => Ok((pid, pidfd)),
        Err(error) => {
            // Without a descriptor its number is safe only until it is waited for: it is ended and waited for here,
            // or nobody could tell it from the next process with this number.
            signal::send_to_group(pid, Signal::KILL);
            let _ = handle.wait();
            Err(SpawnError::of_step(step, error.into()))
        }
    }
}

impl<'c> Image<'c> {
    fn of(command: &'c Command) -> Result<Self, SpawnError> {
        let environment = command.env.as_slice();
        if let Some((name, _)) = environment
            .iter()
            .find(|(name, _)| name.is_empty() || name.contains('='))
        {
            return Err(SpawnError::Malformed {
                reason: format!("no variable can be named `{name}`"),
            });
        }
        let search = environment.iter().rev().find(|(name, _)| name == "PATH");
        let search = search.map_or(PATH_DEFAULT, |(_, value)| value.as_str());
        let mut files = Vec::new();
        let (name, arguments) = match &command.program {
            Program::Argv(words) => {
                let Some((name, rest)) = words.split_first() else {
                    return Err(SpawnError::Malformed {
                        reason: "no program is named".to_owned(),
                    });
                };
                (name.clone(), rest.iter().map(OsString::from).collect())
            }
            Program::Shell { shell, text } => {
                let arguments = if let (true, Some(scratch)) =
                    (text.len() > ARGUMENT_BYTES_MAX, &command.scratch)
                {
                    let file = PrivateFile::create(scratch, text)?;
                    let path = file.path.clone().into_os_string();
                    files.push(file);
                    vec![path]
                } else {
                    vec![OsString::from("-c"), OsString::from(text)]
                };
                (shell.to_string_lossy().into_owned(), arguments)
            }
        };
        let path = find_program(&name, &command.cwd, search)?;
        Ok(Self {
            name,
            path,
            arguments,
            environment,
            files,
        })
    }

    /// The same in the container of its wall.
    fn within(mut self, command: &Command) -> Result<Self, SpawnError> {
        let container = command
            .wall
            .as_ref()
            .and_then(|wall| wall.container.as_ref());
        let (Some(container), Some(scratch)) = (container, &command.scratch) else {
            let reason = "a container needs a directory for temporary files".to_owned();
            return Err(SpawnError::Malformed { reason });
        };
        let wall = PrivateFile::create(scratch, &container.wall)?;
        let image = (self.name.as_str(), self.path.as_path());
        let (path, mut arguments) = container.around(image, &command.cwd, &wall.path);
        arguments.append(&mut self.arguments);
        self.files.push(wall);
        Ok(Self {
            name: path.display().to_string(),
            path,
            arguments,
            ..self
        })
    }

    fn refused(&self, cwd: &Path, source: io::Error) -> SpawnError {
        let arguments = self.arguments.iter().map(|argument| argument.len());
        let variables = self
            .environment
            .iter()
            .map(|(name, value)| name.len() + 1 + value.len());
        let sizes = arguments
            .chain(variables)
            .fold((0, 0), |(longest, total), bytes| {
                (bytes.max(longest), bytes.saturating_add(total))
            });
        SpawnError::of_start(&self.name, &self.path, cwd, sizes, source)
    }
}

/// Finds `name` as execvp(3) does, but in the command's `PATH` and seen from its directory.
fn find_program(name: &str, cwd: &Path, search: &str) -> Result<PathBuf, SpawnError> {
    if name.is_empty() {
        return Err(SpawnError::Malformed {
            reason: "the program's name is empty".to_owned(),
        });
    }
    if name.contains('/') {
        return Ok(cwd.join(name));
    }
    let mut refused = None;
    for directory in search.split(':') {
        let path = cwd.join(directory).join(name);
        match access(&path, Access::EXEC_OK) {
            Ok(()) if path.is_file() => return Ok(path),
            Err(error @ rustix::io::Errno::ACCESS) => refused = Some(error),
            Ok(()) | Err(_) => {}
        }
    }
    Err(match refused {
        None => SpawnError::ProgramNotFound {
            program: name.to_owned(),
            hint: "give a path, or a name that is in the command's `PATH`",
        },
        Some(error) => SpawnError::ProgramNotExecutable {
            program: name.to_owned(),
            hint: NOT_EXECUTABLE_HINT,
            source: error.into(),
        },
    })
}

/// A new file; `O_EXCL` also refuses a symbolic link in the last place.
fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .custom_flags(flags)
        .mode(mode)
        .open(path)
}

/// A text in a file, for the command or its launcher; removed when the command is over.
pub(super) struct PrivateFile {
    path: PathBuf,
}

impl PrivateFile {
    fn create(scratch: &Path, text: &str) -> Result<Self, SpawnError> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = scratch.join(format!(".command-{}-{number}", std::process::id()));
        let failed = |source| SpawnError::of_step("write the command's text to a file", source);
        // A file of this name is left from a crash of an earlier process with our number.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let mut file = create_new(&path, 0o600).map_err(failed)?;
        let written = Self { path };
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(written)
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        // It lies in a scratch directory that its owner removes as a whole.
        let _ = std::fs::remove_file(&self.path);
    }
}
