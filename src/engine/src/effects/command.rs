//! Commands of a run: their environment, their limits, where their output goes.

use std::borrow::Cow;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat, unlinkat};

use super::super::work::Work;
use super::Performer;
use super::log::RunLog;
use super::notes::Note;
use super::place::Place;
use crate::model::evidence::Ended;
use crate::model::spec::{Program, arguments_in};
use crate::process::{self, Owner, SpawnError, Stdin};
use crate::protocol::{LogLine, LogStream};
use crate::sandbox;
use crate::thread::mask::Masker;

/// How much of a command's output is kept as evidence, in bytes.
pub(super) const TAIL_BYTES_MAX: usize = 4 * 1024;

/// The variable that tells the commands of a run what its wake gate found.
const WAKE: &str = "WORKERCTL_WAKE";

/// Most bytes of that.
const WAKE_BYTES_MAX: usize = 8 * 1024;

/// How one command is to be run.
pub(super) struct Invocation<'a> {
    /// What runs.
    pub program: &'a Program,
    /// What it reads.
    pub stdin: Stdin,
    /// Its limit in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Which attempt it belongs to.
    pub attempt: u32,
    /// Under which stream its output is logged; `None`: standard output and error apart.
    pub logged_as: Option<LogStream>,
    /// A file that standard output is copied to.
    pub stdout_file: Option<PathBuf>,
    /// Whether its process is noted on disk, so that it is found after a crash.
    pub noted: bool,
    /// Variables beyond those of the run, or instead of them.
    pub more: Vec<(String, String)>,
    /// Whether it sees the variables of the run, secrets included.
    pub sees_run: bool,
    /// Whether it is the engine's own, which has no walls.
    pub ours: bool,
    /// How many bytes of its output are kept as evidence.
    pub tail_bytes: usize,
}

/// What became of one command.
pub(super) struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// The rest, when it started.
    pub finished: Option<process::Finished>,
    /// Bytes of both streams that the log does not hold.
    pub omitted_bytes: u64,
    /// The last of both streams, masked.
    pub tail: String,
    /// The last of standard error, masked.
    pub stderr_tail: String,
    /// The last of standard output as it was, masked; absent where that was nothing but blanks.
    pub printed: Option<String>,
    /// The level of its walls, when it started.
    pub level: Option<u32>,
}

impl Ran {
    /// Wall time in milliseconds.
    pub(super) fn duration_ms(&self) -> u64 {
        let duration = self.finished.as_ref().map(|finished| finished.duration);
        duration.map_or(0, |duration| {
            u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
        })
    }
}

impl Performer {
    /// Runs one command of a run to its end.
    pub(super) fn command(&self, work: &Work, mut invocation: Invocation<'_>) -> Ran {
        let log = self.logs.of(work);
        let (command, level) = match self.prepared(work, &log, &mut invocation) {
            Ok(prepared) => prepared,
            Err(ran) => return *ran,
        };
        let mut sink = Sink {
            log: &log,
            attempt: invocation.attempt,
            logged_as: invocation.logged_as,
            note: invocation.noted.then(|| self.notes.take()),
            tail: Tail::of(invocation.tail_bytes),
            printed: Printed::of(invocation.tail_bytes),
            stderr_tail: Tail::of(TAIL_BYTES_MAX),
        };
        let outcome = process::run(&command, &work.stop, &mut sink);
        let (held_back, omitted) = log.end_output(invocation.attempt, invocation.logged_as);
        sink.keep_held_back(&held_back);
        let (tail, stderr_tail) = (sink.tail.text(), sink.stderr_tail.text());
        let printed = sink.printed.text(log.masker());
        match outcome {
            Ok(finished) => Ran {
                ended: ended(&finished),
                finished: Some(finished),
                omitted_bytes: omitted.bytes,
                tail,
                stderr_tail,
                printed,
                level: Some(level),
            },
            Err(error) => self.not_ended(work, &error),
        }
    }

    /// Returns the outcome of a command that could not be started or ended, and retires the worktree and `TMPDIR` if
    /// processes remain in them.
    pub(super) fn not_ended(&self, work: &Work, error: &SpawnError) -> Ran {
        if let SpawnError::Remain { .. } = error {
            self.retire_tree(work);
            self.scratch.retire(work.spec.run);
        }
        refused(error)
    }

    /// A command that only has to be started, and the level of its walls.
    pub(super) fn prepared(
        &self,
        work: &Work,
        log: &RunLog,
        invocation: &mut Invocation<'_>,
    ) -> Result<(process::Command, u32), Box<Ran>> {
        let refused = |code: &str, message: &str| Box::new(not_started(code, message));
        if let Some(why) = log.refusal() {
            return Err(refused("secrets_unreadable", why));
        }
        let scratch = self.scratch.of(work.spec.run);
        let scratch = scratch.map_err(|message| refused("scratch", &message))?;
        let place = self.place(work);
        let place = place.map_err(|failure| refused(&failure.code, &failure.message))?;
        write_input_files(log, &place).map_err(|message| refused("scratch", &message))?;
        let cwd = place.of(&work.spec.cwd);
        if let Some((_, root)) = &place.mapped {
            create_empty_directory(root, &cwd);
        }
        let program = program_of(invocation, &place);
        let owner = Owner {
            run: work.spec.run.to_string(),
            attempt: invocation.attempt,
        };
        let variables = variables(work, log, &place, invocation);
        let env = process::environment(&self.parts.environment, &scratch, variables, &owner);
        let wall = self.wall(work, &scratch, &place);
        let wall = wall.map_err(|why| refused("sandbox", &why))?;
        let wall = wall.filter(|_| !invocation.ours);
        let level = wall.as_ref().map_or(0, |wall| wall.level());
        let command = process::Command {
            program,
            cwd,
            env,
            stdin: std::mem::replace(&mut invocation.stdin, Stdin::Null),
            stdout_file: invocation.stdout_file.take(),
            scratch: Some(scratch),
            limits: self.limits(work, invocation.timeout_ms),
            owner,
            may_control: work.spec.may_control,
            wall,
        };
        Ok((command, level))
    }

    fn limits(&self, work: &Work, timeout_ms: Option<u64>) -> process::Limits {
        process::Limits {
            timeout: timeout_ms.map(Duration::from_millis),
            resources: work.spec.limits.unwrap_or_default(),
            grace: Duration::from_millis(self.parts.grace_ms),
            ..process::Limits::default()
        }
    }
}

/// Creates the working directory of a command if no commit has it because it holds no tracked file.
///
/// Does nothing if a link leads out of the tree, because an earlier command of the run may have put it there.
fn create_empty_directory(tree: &Path, cwd: &Path) {
    if cwd.symlink_metadata().is_ok() {
        return;
    }
    let existing = cwd.ancestors().find(|path| path.symlink_metadata().is_ok());
    let existing = existing.and_then(|path| path.canonicalize().ok());
    let tree = tree.canonicalize().ok();
    if let (Some(existing), Some(tree)) = (existing, tree)
        && existing.starts_with(tree)
    {
        // The command fails to start in a missing directory, with its path in the message.
        let _ = std::fs::create_dir_all(cwd);
    }
}

/// What a command is given besides what all of them are.
fn variables(
    work: &Work,
    log: &RunLog,
    place: &Place,
    invocation: &mut Invocation<'_>,
) -> Vec<(String, String)> {
    let mut given = Vec::new();
    if invocation.sees_run {
        given.extend(work.spec.environment.iter().cloned());
        let secrets = log.environment().iter();
        given.extend(secrets.map(|(name, value)| (name.clone(), value.expose().to_owned())));
        given.extend(found_to_do(work));
    }
    given.append(&mut invocation.more);
    let filled = |(name, value): (String, String)| (name, place.fill(&value).into_owned());
    given.into_iter().map(filled).collect()
}

/// What the wake gate found, the last of it where there is much: all variables together have little room.
fn found_to_do(work: &Work) -> Option<(String, String)> {
    let found = work.found_to_do()?.trim_end_matches('\n');
    let from = found.ceil_char_boundary(found.len().saturating_sub(WAKE_BYTES_MAX));
    Some((WAKE.to_owned(), found[from..].to_owned()))
}

fn program_of(invocation: &Invocation<'_>, place: &Place) -> process::Program {
    match invocation.program {
        Program::Shell { shell, text } => process::Program::Shell {
            shell: PathBuf::from(shell),
            text: text.clone(),
        },
        Program::Argv { argv, attempt_at } => process::Program::Argv(
            place.fill_all(&arguments_in(argv, attempt_at, invocation.attempt)),
        ),
        // They are no command: starting them as one is refused for want of a program.
        Program::Agent(_) => process::Program::Argv(Vec::new()),
    }
}

pub(super) fn ended(finished: &process::Finished) -> Ended {
    match (finished.ended, finished.status) {
        // Only agent programs are ended for the last two, whose end is told in other words.
        (
            process::EndCause::TimedOut | process::EndCause::Silent | process::EndCause::Enough,
            _,
        ) => Ended::TimedOut,
        (
            process::EndCause::LimitReached {
                resource,
                limit,
                counted,
            },
            _,
        ) => Ended::LimitReached {
            resource,
            limit,
            counted,
        },
        (process::EndCause::Stopped(_), _) => Ended::Stopped,
        (process::EndCause::ByItself, process::ExitStatus::Exited(code)) => Ended::Exited { code },
        (process::EndCause::ByItself, process::ExitStatus::Signalled(signal)) => {
            Ended::Signalled { signal }
        }
    }
}

/// Code of a command with processes that could not be ended.
const PROCESSES_REMAIN: &str = "processes_remain";

fn refused(error: &SpawnError) -> Ran {
    if let SpawnError::StoppedBeforeStart { .. } = error {
        return never_ran(Ended::Stopped);
    }
    if let SpawnError::Remain { .. } = error {
        return never_ran(Ended::Failed {
            code: PROCESSES_REMAIN.to_owned(),
            message: error.to_string(),
            again: false,
            until: None,
        });
    }
    let code = match error {
        SpawnError::ProgramNotFound { .. } => "program_not_found",
        SpawnError::ProgramNotExecutable { .. } => "program_not_executable",
        SpawnError::WorkingDirectory { .. } => "working_directory",
        SpawnError::ArgumentTooLong { .. } => "argument_too_long",
        SpawnError::ResourceExhausted { .. } => "resource_exhausted",
        SpawnError::Malformed { .. } => "malformed",
        SpawnError::StoppedBeforeStart { .. } => "stopped",
        SpawnError::Wall { .. } => "sandbox",
        SpawnError::Remain { .. } => PROCESSES_REMAIN,
        SpawnError::Io { .. } => "io",
    };
    not_started(code, &crate::model::diagnostic::chain(error))
}

/// A command of which there is no result.
pub(super) fn not_started(code: &str, message: &str) -> Ran {
    never_ran(Ended::NotStarted {
        code: code.to_owned(),
        message: message.to_owned(),
    })
}

fn never_ran(ended: Ended) -> Ran {
    Ran {
        ended,
        finished: None,
        omitted_bytes: 0,
        tail: String::new(),
        stderr_tail: String::new(),
        printed: None,
        level: None,
    }
}

/// Writes the files that hold values too large or too secret for the environment.
pub(super) fn write_input_files(log: &RunLog, place: &Place) -> Result<(), String> {
    for (path, content) in log.files() {
        let path = Path::new(path);
        let filled = place.fill(content.expose());
        let is_fixed = matches!(filled, Cow::Borrowed(_));
        let written = write_input_file(path, filled.as_bytes(), is_fixed);
        written.map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    }
    Ok(())
}

/// Writes a file in a directory of the run's temporary files, which its commands may have replaced: no link is followed.
fn write_input_file(path: &Path, content: &[u8], is_fixed: bool) -> std::io::Result<()> {
    let place = path
        .parent()
        .and_then(|dir| Some((dir.parent()?, dir.file_name()?)));
    let ((temporary, dir), Some(name)) = (
        place.ok_or(std::io::ErrorKind::InvalidInput)?,
        path.file_name(),
    ) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let root = std::fs::File::open(temporary)?;
    sandbox::make_directories_below(&root, Path::new(dir))?;
    let dir = sandbox::open_below(&root, Path::new(dir), OFlags::DIRECTORY)?;
    if let Ok(found) = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        if is_fixed && FileType::from_raw_mode(found.st_mode).is_file() {
            return Ok(());
        }
        unlinkat(&dir, name, AtFlags::empty())?;
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&dir, name, flags, Mode::RUSR | Mode::WUSR)?;
    std::fs::File::from(file).write_all(content)
}

struct Sink<'a> {
    log: &'a RunLog,
    attempt: u32,
    logged_as: Option<LogStream>,
    note: Option<std::io::Result<Note<'a>>>,
    tail: Tail,
    stderr_tail: Tail,
    printed: Printed,
}

impl Sink<'_> {
    fn keep(&mut self, stream: process::Stream, lines: &[LogLine]) {
        for line in lines {
            self.tail.push(&line.text, line.continued);
            if stream == process::Stream::Stderr {
                self.stderr_tail.push(&line.text, line.continued);
            }
        }
    }

    fn keep_held_back(&mut self, lines: &[LogLine]) {
        for line in lines {
            let stderr = line.stream == LogStream::Stderr;
            let stream = if stderr {
                process::Stream::Stderr
            } else {
                process::Stream::Stdout
            };
            self.keep(stream, std::slice::from_ref(line));
        }
    }
}

impl process::OutputSink for Sink<'_> {
    fn spawned(&mut self, child: &process::Spawned) {
        let written = match &self.note {
            None => return,
            Some(Ok(note)) => child.live_record().and_then(|record| note.write(&record)),
            Some(Err(error)) => Err(error.kind().into()),
        };
        if let Err(error) = written {
            tracing::warn!(%error, "the live process could not be noted");
        }
    }

    fn line(&mut self, stream: process::Stream, bytes: &[u8], more: bool) {
        if stream == process::Stream::Stdout {
            self.printed.push(bytes, more);
        }
        let lines = self
            .log
            .output(self.attempt, self.logged_as, stream, bytes, more);
        self.keep(stream, &lines);
    }
}

/// The last of standard output apart from standard error, which a log may hold in one stream with it.
struct Printed {
    bytes: Vec<u8>,
    bytes_max: usize,
    is_blank: bool,
}

impl Printed {
    const fn of(bytes_max: usize) -> Printed {
        Printed {
            bytes: Vec::new(),
            bytes_max,
            is_blank: true,
        }
    }

    fn push(&mut self, line: &[u8], more: bool) {
        self.is_blank &= line.iter().all(u8::is_ascii_whitespace);
        self.bytes.extend_from_slice(line);
        if !more {
            self.bytes.push(b'\n');
        }
        // Twice as much as is asked for: a secret that begins before the cut has to be whole to be masked.
        let surplus = self.bytes.len().saturating_sub(2 * self.bytes_max);
        if surplus > self.bytes_max {
            self.bytes.drain(..surplus);
        }
    }

    fn text(self, masker: &Masker) -> Option<String> {
        if self.is_blank {
            return None;
        }
        let text = String::from_utf8_lossy(&self.bytes);
        let shown = masker.mask_text(&text);
        let from = shown.ceil_char_boundary(shown.len().saturating_sub(self.bytes_max));
        shown.get(from..).map(str::to_owned)
    }
}

/// The last bytes of a text, cut at a line where one is near.
#[derive(Clone)]
pub(super) struct Tail {
    text: String,
    bytes_max: usize,
}

impl Tail {
    /// Nothing yet, and not more than so many bytes.
    pub(super) const fn of(bytes_max: usize) -> Tail {
        Tail {
            text: String::new(),
            bytes_max,
        }
    }

    pub(super) fn push(&mut self, line: &str, more: bool) {
        let line = line.get(line.ceil_char_boundary(line.len().saturating_sub(self.bytes_max))..);
        self.text.push_str(line.unwrap_or_default());
        if !more {
            self.text.push('\n');
        }
        if self.text.len() > 2 * self.bytes_max {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let from = self.text.len().saturating_sub(self.bytes_max);
        let from = self.text.ceil_char_boundary(from);
        let line = self.text[from..]
            .find('\n')
            .map_or(from, |offset| from + offset + 1);
        let from = if line < self.text.len() { line } else { from };
        self.text.drain(..from);
    }

    pub(super) fn text(mut self) -> String {
        if self.text.len() > self.bytes_max {
            self.cut();
        }
        self.text
    }
}
