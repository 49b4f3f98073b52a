//! Asks the shell that will run a text whether it can read it, running nothing of it.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::names;
use crate::catalog::{TextFinding, TextKind};
use crate::model::definition::{Shell, Skill};
use crate::model::spec::Program;
use crate::model::{Diagnostic, Kind, Place, RunSpec, Severity};
use crate::process::{self, ARGUMENT_BYTES_MAX, EndCause, ExitStatus, Owner, SpawnError, Stdin};
use crate::template::{Dialect, Names, ShellText};

/// Longest time that a shell may read.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of what a shell says that are read.
const SAID_BYTES_MAX: usize = 4 * 1024;

/// Texts that are known to be good; the oldest makes room.
const KNOWN_MAX: usize = 4_096;

/// What a shell finds wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxFault {
    /// Line of the text from 1, where the shell names one.
    pub line: Option<u32>,
    /// What the shell says, without its own name.
    pub message: String,
}

/// What looking at a text gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The shell can read it.
    Good,
    /// It cannot.
    Broken(SyntaxFault),
    /// There is no such shell here.
    ShellMissing,
    /// The shell gave no answer, which says nothing of the text.
    Unknown(String),
}

#[derive(Default)]
struct CachedChecks {
    digests: HashSet<[u8; 32]>,
    order: VecDeque<[u8; 32]>,
}

/// Checks shell texts; each good one costs one process.
pub(super) struct Syntax {
    /// Where shells are looked for.
    path: Option<String>,
    known: Mutex<CachedChecks>,
    asked: AtomicU32,
}

impl Syntax {
    /// Shells are looked for in the `PATH` of `environment`, as for runs.
    pub(super) fn new(environment: &BTreeMap<String, String>) -> Syntax {
        Syntax {
            path: environment.get("PATH").cloned(),
            known: Mutex::default(),
            asked: AtomicU32::new(0),
        }
    }

    /// Whether `shell` can read `text`.
    pub(super) fn check(&self, shell: &str, text: &str) -> Answer {
        let digest = digest(shell, text);
        if self.known().digests.contains(&digest) {
            return Answer::Good;
        }
        let answer = self.ask(shell, text);
        if answer == Answer::Good {
            let mut known = self.known();
            if known.digests.insert(digest) {
                known.order.push_back(digest);
            }
            if known.order.len() > KNOWN_MAX
                && let Some(oldest) = known.order.pop_front()
            {
                known.digests.remove(&oldest);
            }
        }
        answer
    }

    fn known(&self) -> std::sync::MutexGuard<'_, CachedChecks> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, shell: &str, text: &str) -> Answer {
        let mut env = vec![("LC_ALL".to_owned(), "C".to_owned())];
        env.extend(self.path.clone().map(|path| ("PATH".to_owned(), path)));
        let (argv, stdin) = command_line(shell, text);
        let command = process::Command {
            program: process::Program::Argv(argv),
            cwd: PathBuf::from("/"),
            env,
            stdin,
            stdout_file: None,
            scratch: None,
            limits: process::Limits {
                timeout: Some(TIMEOUT),
                grace: Duration::from_millis(100),
                output_bytes_max: SAID_BYTES_MAX as u64,
                ..process::Limits::default()
            },
            owner: Owner {
                run: "syntax".to_owned(),
                attempt: self.asked.fetch_add(1, Ordering::Relaxed),
            },
            may_control: false,
            wall: None,
        };
        let stop = process::StopHandle::new();
        let mut said = StderrHead::default();
        match process::run(&command, &stop, &mut said) {
            Err(SpawnError::ProgramNotFound { .. } | SpawnError::ProgramNotExecutable { .. }) => {
                Answer::ShellMissing
            }
            Err(error) => Answer::Unknown(crate::model::diagnostic::chain(&error)),
            Ok(finished) => match (finished.ended, finished.status) {
                (EndCause::ByItself, ExitStatus::Exited(0)) => Answer::Good,
                (EndCause::ByItself, ExitStatus::Exited(_)) => Answer::Broken(fault(&said.text())),
                (
                    EndCause::ByItself
                    | EndCause::TimedOut
                    | EndCause::Silent
                    | EndCause::Enough
                    | EndCause::LimitReached { .. }
                    | EndCause::Stopped(_),
                    _,
                ) => Answer::Unknown(format!("`{shell} -n` was ended before it answered")),
            },
        }
    }
}

fn digest(shell: &str, text: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(shell.as_bytes());
    hash.update([0]);
    hash.update(text.as_bytes());
    hash.finalize().into()
}

/// The shell's arguments, and the text where it cannot be one of them.
fn command_line(shell: &str, text: &str) -> (Vec<String>, Stdin) {
    let mut argv = vec![shell.to_owned()];
    // With this option other patterns are read, and a text switches it on only when it runs.
    if shell.ends_with("bash") && text.contains("extglob") {
        argv.extend(["-O", "extglob"].map(str::to_owned));
    }
    argv.push("-n".to_owned());
    if text.len() > ARGUMENT_BYTES_MAX || text.starts_with(['-', '+']) {
        return (argv, Stdin::Bytes(text.as_bytes().to_vec()));
    }
    argv.push("-c".to_owned());
    argv.push(text.to_owned());
    (argv, Stdin::Null)
}

/// The beginning of what a shell says on standard error.
#[derive(Default)]
struct StderrHead {
    bytes: Vec<u8>,
}

impl StderrHead {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl process::OutputSink for StderrHead {
    fn line(&mut self, stream: process::Stream, bytes: &[u8], more: bool) {
        if stream == process::Stream::Stderr {
            self.bytes.extend_from_slice(bytes);
            if !more {
                self.bytes.push(b'\n');
            }
        }
    }
}

/// Reads `sh: 3: Syntax error: …` and `bash: -c: line 3: syntax error …`.
fn fault(said: &str) -> SyntaxFault {
    let first = said.lines().find(|line| !line.trim().is_empty());
    let first = first.unwrap_or("the shell does not say why").trim();
    let mut rest = first;
    while let Some((part, behind)) = rest.split_once(": ") {
        let number = part.strip_prefix("line ").unwrap_or(part);
        if let Ok(line) = number.parse() {
            return SyntaxFault {
                line: Some(line),
                message: lower_first(behind),
            };
        }
        rest = behind;
    }
    SyntaxFault {
        line: None,
        message: lower_first(first),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// What the shell of a definition finds wrong with one of its texts, as it would be run.
pub(super) fn findings(
    syntax: &Syntax,
    skill: &Skill,
    kind: TextKind,
    text: &str,
) -> Vec<TextFinding> {
    let shell = match kind {
        TextKind::Run | TextKind::Check | TextKind::PreCheck => skill.shell,
        TextKind::Hook => Shell::Sh,
        TextKind::Argument
        | TextKind::Destination
        | TextKind::CommitMessage
        | TextKind::Pattern => return Vec::new(),
    };
    let rendered = match kind {
        TextKind::Hook => Some(text.to_owned()),
        _ => sample(skill, text),
    };
    let Some(rendered) = rendered else {
        return Vec::new();
    };
    let shell = names::shell_program(shell);
    let found = match syntax.check(shell, &rendered) {
        Answer::Good => None,
        Answer::Broken(fault) => Some(TextFinding {
            code: "shell-syntax".to_owned(),
            severity: Severity::Error,
            offset: unclosed_quote(text, &fault.message)
                .unwrap_or_else(|| line_start(text, fault.line)),
            message: told(shell, &fault),
            hint: Some(hint(shell)),
        }),
        Answer::ShellMissing => Some(note(
            "shell-missing",
            format!("`{shell}` is not installed, so commands for it were not checked"),
        )),
        Answer::Unknown(why) => Some(note(
            "shell-silent",
            format!("the command was not checked: {why}"),
        )),
    };
    found.into_iter().collect()
}

fn note(code: &str, message: String) -> TextFinding {
    TextFinding {
        code: code.to_owned(),
        severity: Severity::Note,
        offset: 0,
        message,
        hint: None,
    }
}

/// The text as a run would give it to the shell, each list with one element.
fn sample(skill: &Skill, text: &str) -> Option<String> {
    let names: Names = names::names(skill).ok()?;
    let dialect: Dialect = names::dialect(skill.shell);
    let compiled = ShellText::compile(text, &names, dialect).ok()?.template;
    let lengths = compiled
        .uses()
        .iter()
        .map(|used| ((used.scope, used.name.clone()), 1))
        .collect();
    Some(compiled.render(&lengths))
}

/// The quote that is never closed, if the shell complains of one. The shell names the last line, where the text ends.
fn unclosed_quote(text: &str, message: &str) -> Option<usize> {
    let said = ["nterminated quoted string", "looking for matching"];
    if !said.iter().any(|part| message.contains(part)) {
        return None;
    }
    let mut open = None;
    let mut before = b'\n';
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match (open, byte) {
            (None | Some((_, b'"')), b'\\') => drop(bytes.next()),
            (None, b'#') if before.is_ascii_whitespace() => {
                bytes.find(|(_, byte)| *byte == b'\n');
            }
            (None, b'\'' | b'"') => open = Some((at, byte)),
            (Some((_, quote)), byte) if byte == quote => open = None,
            _ => {}
        }
        before = byte;
    }
    open.map(|(at, _)| at)
}

/// Byte where a line of a text begins; substitutions add and take no lines.
fn line_start(text: &str, line: Option<u32>) -> usize {
    let last = text.trim_end().lines().count().max(1);
    let line = usize::try_from(line.unwrap_or(1)).unwrap_or(last);
    let above = line.clamp(1, last) - 1;
    text.split_inclusive('\n').take(above).map(str::len).sum()
}

/// The message of a fault, without its line.
pub(super) fn told(shell: &str, fault: &SyntaxFault) -> String {
    format!("`{shell}` cannot read it: {}", fault.message)
}

/// What to do about a text that a shell cannot read.
pub(super) fn hint(shell: &str) -> String {
    if shell == names::shell_program(Shell::Bash) {
        format!("`{shell} -n` reports the same error without running anything")
    } else {
        format!(
            "`{shell} -n` reports the same error without running anything; bash syntax needs `shell: bash`"
        )
    }
}

/// Refuses a specification with a text that its shell cannot read. What cannot be found out is left
/// to the run.
pub(super) fn refuse_broken(
    syntax: &Syntax,
    skill: &Skill,
    spec: &RunSpec,
) -> Result<(), Diagnostic> {
    let checks = |specs: &[crate::model::spec::CheckSpec], what: &'static str| {
        let programs = specs.iter().filter_map(|check| check.program.clone());
        programs.map(move |program| (what, program)).collect()
    };
    let mut programs: Vec<(&'static str, Program)> = vec![("`run`", spec.program.clone())];
    let pre_checks: Vec<(&'static str, Program)> =
        checks(&spec.pre_checks, "a `pre_execute` check");
    let post_checks: Vec<(&'static str, Program)> = checks(&spec.checks, "a check");
    programs.extend(pre_checks);
    let wake = spec.wake.iter().map(|wake| wake.program.clone());
    programs.extend(wake.map(|program| ("`wake`", program)));
    programs.extend(post_checks);
    for hook in spec.hooks.iter().chain(&spec.post_commit) {
        programs.push(("a hook", hook.program.clone()));
    }
    for (what, program) in programs {
        let Program::Shell { shell, text } = &program else {
            continue;
        };
        match syntax.check(shell, text) {
            Answer::Good | Answer::ShellMissing => {}
            Answer::Unknown(why) => {
                tracing::warn!(skill = %skill.address, what, why, "a text was not looked at");
            }
            Answer::Broken(fault) => {
                let line = fault.line.map(|line| format!(", line {line} of its text"));
                let message = format!(
                    "{what} of `{}`{}: {}",
                    skill.address,
                    line.unwrap_or_default(),
                    told(shell, &fault)
                );
                return Err(Diagnostic::new(Kind::Definition, "shell_syntax", message)
                    .hint(hint(shell))
                    .hint("`workerctl check` shows it with its line"));
            }
        }
    }
    Ok(())
}

/// What `/bin/sh` finds wrong with a hook of the configuration.
pub(super) fn hook_problem(
    syntax: &Syntax,
    command: &str,
    place: Place,
) -> Option<crate::model::Problem> {
    let shell = names::shell_program(Shell::Sh);
    let Answer::Broken(fault) = syntax.check(shell, command) else {
        return None;
    };
    Some(crate::model::Problem {
        code: "shell-syntax".to_owned(),
        severity: Severity::Error,
        place,
        message: told(shell, &fault),
        hint: Some(hint(shell)),
        worker: None,
        skill: None,
    })
}

#[cfg(test)]
mod tests;
