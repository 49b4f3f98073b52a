//! Why a command could not be run, and the way from the kernel's answers to these reasons.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;

use super::command::ARGUMENT_BYTES_MAX;
use super::stop::StopKind;
use super::wall::WallError;

/// Hint for a program that exists and cannot be executed.
pub(crate) const NOT_EXECUTABLE_HINT: &str = "check its mode bits, that its file system allows execution, and that `reads` of the sandbox, if set, contains the program, its interpreter and its libraries";

/// Why a command was not run to its end. Whenever this is returned, no process of it is left
/// running, except after `Remain`.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// Neither the program nor, for a script, its interpreter exists.
    #[error("program `{program}` not found; hint: {hint}")]
    ProgramNotFound {
        /// The program as it was asked for.
        program: String,
        /// What to look at.
        hint: &'static str,
    },
    /// The program exists and cannot be executed.
    #[error("program `{program}` cannot be executed; hint: {hint}")]
    ProgramNotExecutable {
        /// The program as it was asked for.
        program: String,
        /// What to look at.
        hint: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The working directory is missing, no directory, or closed to this user.
    #[error("working directory `{}` cannot be entered", .path.display())]
    WorkingDirectory {
        /// The directory.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Arguments and environment do not fit into what the kernel accepts.
    #[error(
        "arguments and environment are too long (longest {longest_bytes} bytes of at most \
         {ARGUMENT_BYTES_MAX}, {total_bytes} in all); hint: pass large values through a file"
    )]
    ArgumentTooLong {
        /// Longest single argument or variable, in bytes.
        longest_bytes: usize,
        /// All arguments and variables together, in bytes.
        total_bytes: usize,
    },
    /// No process, memory or file descriptor is to be had at present; later it may work.
    #[error("no resources to {step}")]
    ResourceExhausted {
        /// What was being done.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The description itself cannot be run: no program, a NUL byte, a bad variable name.
    #[error("command cannot be run: {reason}")]
    Malformed {
        /// What is wrong.
        reason: String,
    },
    /// It was stopped before it was started, so nothing has happened.
    #[error("stopped before the start")]
    StoppedBeforeStart {
        /// The kind that was asked for.
        kind: StopKind,
    },
    /// It cannot be kept within its wall, so it was not started.
    #[error("the sandbox of the command cannot be set up")]
    Wall {
        /// Why.
        #[from]
        source: WallError,
    },
    /// Processes of the command are still there after KILL, so what it leaves may still change.
    #[error(
        "processes {pids:?} of the command are still there after KILL; hint: they belong to another user or hang in \
         the kernel, see `ps -o pid,user,stat,wchan,args -p PID`"
    )]
    Remain {
        /// Their ids.
        pids: Vec<u32>,
    },
    /// Anything else that the kernel refused.
    #[error("cannot {step}")]
    Io {
        /// What was being done.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl SpawnError {
    /// The reason for a failed `step` that has nothing to do with the program itself.
    pub(super) fn of_step(step: &'static str, source: io::Error) -> Self {
        match Errno::from_io_error(&source) {
            Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => {
                Self::ResourceExhausted { step, source }
            }
            _ => Self::Io { step, source },
        }
    }

    /// The reason for a failed start of `program`, which was found at `path`.
    pub(super) fn of_start(
        program: &str,
        path: &Path,
        cwd: &Path,
        sizes: (usize, usize),
        source: io::Error,
    ) -> Self {
        match Errno::from_io_error(&source) {
            Some(Errno::TOOBIG) => Self::ArgumentTooLong {
                longest_bytes: sizes.0,
                total_bytes: sizes.1,
            },
            Some(
                Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP | Errno::NAMETOOLONG,
            ) => {
                if let Some(source) = cannot_enter(cwd) {
                    return Self::WorkingDirectory {
                        path: cwd.to_owned(),
                        source,
                    };
                }
                if Errno::from_io_error(&source) == Some(Errno::ACCESS) {
                    return Self::ProgramNotExecutable {
                        program: program.to_owned(),
                        hint: NOT_EXECUTABLE_HINT,
                        source,
                    };
                }
                let hint = if path.exists() {
                    "the interpreter on its first line or its loader is missing"
                } else {
                    "give a path, or a name that is in the command's `PATH`"
                };
                Self::ProgramNotFound {
                    program: program.to_owned(),
                    hint,
                }
            }
            Some(Errno::NOEXEC) => Self::ProgramNotExecutable {
                program: program.to_owned(),
                hint: "a script needs an interpreter line such as `#!/bin/sh`",
                source,
            },
            None if source.kind() == io::ErrorKind::InvalidInput => Self::Malformed {
                reason: source.to_string(),
            },
            _ => Self::of_step("start the command", source),
        }
    }
}

/// Why a process cannot have `cwd` as its working directory; `None` if it can.
fn cannot_enter(cwd: &Path) -> Option<io::Error> {
    match std::fs::metadata(cwd) {
        Err(error) => Some(error),
        Ok(meta) if !meta.is_dir() => Some(Errno::NOTDIR.into()),
        Ok(_) => access(cwd, Access::EXEC_OK).err().map(io::Error::from),
    }
}
