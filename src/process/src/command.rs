//! What is asked of this room, and what it answers: plain data.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::live::LiveRecord;
use super::owner::Owner;
use super::stop::StopKind;
use super::wall::RaisedWall;
use crate::model::{Resource, ResourceLimits};

/// The variable that tells every process of a run which run it belongs to.
pub const RUN_VARIABLE: &str = "WORKERCTL_RUN";

/// The variable that tells every process of a run which attempt it belongs to.
pub const ATTEMPT_VARIABLE: &str = "WORKERCTL_ATTEMPT";

/// Longest single argument or variable that Linux accepts, in bytes, without its final NUL
/// (`MAX_ARG_STRLEN` is 32 pages of 4 KiB).
pub const ARGUMENT_BYTES_MAX: usize = 131_071;

/// One command, described completely: nothing of the caller's own environment reaches it.
#[derive(Clone)]
pub struct Command {
    /// What is started.
    pub program: Program,
    /// Working directory of the command; relative program paths are taken from here.
    pub cwd: PathBuf,
    /// The whole environment, as [`environment`](super::environment()) puts it together.
    pub env: Vec<(String, String)>,
    /// What the command reads.
    pub stdin: Stdin,
    /// A file that receives standard output byte for byte, whatever the sink is shown.
    ///
    /// It is created here with mode 0644 and must not exist. Making it durable, renaming it and
    /// removing it after a failure are the caller's business.
    pub stdout_file: Option<PathBuf>,
    /// A directory of the caller's for a shell text too long for one argument.
    pub scratch: Option<PathBuf>,
    /// Bounds of time and bytes.
    pub limits: Limits,
    /// The run and attempt on whose behalf the command runs.
    pub owner: Owner,
    /// Whether its processes may ask the engine in this process for something.
    pub may_control: bool,
    /// What it may touch; absent: whatever its user may.
    pub wall: Option<Arc<RaisedWall>>,
}

/// The environment and the bytes of standard input may hold secrets, so they are counted only.
impl std::fmt::Debug for Command {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Command")
            .field("program", &self.program)
            .field("cwd", &self.cwd)
            .field("env", &format_args!("{} variables", self.env.len()))
            .field("stdin", &self.stdin)
            .field("stdout_file", &self.stdout_file)
            .field("limits", &self.limits)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

/// What a command starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// Text for a shell, passed as one argument after `-c`. A text above
    /// [`ARGUMENT_BYTES_MAX`] is written to a file of mode 0600 in [`Command::scratch`].
    Shell {
        /// The shell: a path, or a name looked up in the command's own `PATH`.
        shell: PathBuf,
        /// The text, which the shell parses.
        text: String,
    },
    /// A program and its arguments, no shell in between. A program without a slash is looked up
    /// in the command's own `PATH`.
    Argv(Vec<String>),
}

/// What a command reads from its standard input.
#[derive(Clone, PartialEq, Eq)]
pub enum Stdin {
    /// `/dev/null`.
    Null,
    /// These bytes and then the end of input. A command that does not read them loses them.
    Bytes(Vec<u8>),
    /// What somebody else writes into a pipe: the end that is read from.
    Pipe(PipeEnd),
}

/// One end of a pipe; equal is only the same one.
#[derive(Clone, Debug)]
pub struct PipeEnd(Arc<OwnedFd>);

impl PipeEnd {
    /// An end that was opened already.
    pub fn new(end: impl Into<OwnedFd>) -> PipeEnd {
        PipeEnd(Arc::new(end.into()))
    }

    pub(super) fn again(&self) -> std::io::Result<OwnedFd> {
        self.0.try_clone()
    }
}

impl PartialEq for PipeEnd {
    fn eq(&self, other: &PipeEnd) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for PipeEnd {}

impl std::fmt::Debug for Stdin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Pipe(_) => f.write_str("Pipe"),
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
        }
    }
}

/// Bounds of one command; at the limit of time it is asked to end, at those of what it uses it is killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest time that the command may run; then it is ended.
    pub timeout: Option<Duration>,
    /// Longest time without output; then it is ended. Absent: it may be silent.
    pub silence: Option<Duration>,
    /// What all of its processes may use.
    pub resources: ResourceLimits,
    /// Time between TERM and KILL.
    pub grace: Duration,
    /// Longest time that output is still awaited after the command has exited by itself while
    /// another process holds its pipes open.
    pub drain: Duration,
    /// Longest piece of a line that the sink is given at once, in bytes.
    pub line_bytes_max: usize,
    /// Most bytes of *each* stream that the sink is given; what follows is read and counted. By default it is given all.
    pub output_bytes_max: u64,
    /// Most bytes that are written to [`Command::stdout_file`]; more is reported as
    /// [`io::ErrorKind::FileTooLarge`] in [`Finished::stdout_file_error`].
    pub stdout_file_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: None,
            silence: None,
            resources: ResourceLimits::default(),
            grace: Duration::from_secs(10),
            drain: Duration::from_millis(200),
            line_bytes_max: 64 * 1024,
            output_bytes_max: u64::MAX,
            stdout_file_bytes_max: 1024 * 1024 * 1024,
        }
    }
}

/// One of the two streams that a command writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Receives what a command does while it runs, on the thread that called
/// [`run`](super::run()).
///
/// A sink that blocks holds up the command through its full pipes, and the observation of
/// deadlines with it; it must not wait for anything unbounded.
pub trait OutputSink {
    /// The command was started. Called once, before any line.
    fn spawned(&mut self, child: &Spawned) {
        let _ = child;
    }

    /// A line as raw bytes without its line feed. With `more`, the line goes on in the next call
    /// for this stream, because it is longer than [`Limits::line_bytes_max`] or because it was
    /// cut at [`Limits::output_bytes_max`]. Order holds within a stream, not between the two.
    fn line(&mut self, stream: Stream, bytes: &[u8], more: bool);

    /// Whether nothing more is to be had of the command: it is ended then, as at its limit of time.
    fn has_enough(&self) -> bool {
        false
    }
}

/// A command that was just started.
#[derive(Clone, Debug)]
pub struct Spawned {
    /// Process id, which is also the id of its process group.
    pub pid: u32,
    pub(super) tag: Option<u64>,
    pub(super) owner: Owner,
}

impl Spawned {
    /// What to keep on disk so that the processes can be found after a crash of this one.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn live_record(&self) -> io::Result<LiveRecord> {
        LiveRecord::of(self.pid, &self.owner, self.tag)
    }
}

/// How the first process of a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    /// It exited with this code, 0 to 255.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
}

/// Why a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndCause {
    /// Nobody asked it to.
    ByItself,
    /// [`Limits::timeout`] had passed.
    TimedOut,
    /// It had written nothing for [`Limits::silence`].
    Silent,
    /// It had used more than [`Limits::resources`] allow.
    LimitReached {
        /// What it used.
        resource: Resource,
        /// How much of it is allowed: processes, or bytes.
        limit: u64,
        /// How much was counted.
        counted: u64,
    },
    /// Its sink had enough of it.
    Enough,
    /// Somebody stopped it; the strongest kind that was asked for.
    Stopped(StopKind),
}

/// What became of a command, once no process of it is left.
#[derive(Debug)]
pub struct Finished {
    /// How its first process ended.
    pub status: ExitStatus,
    /// Why it ended.
    pub ended: EndCause,
    /// From the start to the exit of its first process.
    pub duration: Duration,
    /// Bytes written to standard output, passed on or not.
    pub stdout_bytes: u64,
    /// Bytes written to standard error, passed on or not.
    pub stderr_bytes: u64,
    /// Bytes of both streams that the sink was not given.
    pub dropped_bytes: u64,
    /// Processes that outlived the first one and were ended here.
    pub survivors_ended: u32,
    /// Why [`Command::stdout_file`] is incomplete, if it is.
    pub stdout_file_error: Option<io::Error>,
}
