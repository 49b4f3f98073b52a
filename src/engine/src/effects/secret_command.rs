//! Secrets that a command prints, such as `pass show stripe`: asked when a run needs them, kept nowhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::model::duration::show_millis;
use crate::model::legible::legible;
use crate::model::schedule::cut;
use crate::model::{Diagnostic, Kind, RunId, SecretSource, SecretText, SecretUse, diagnostic};
use crate::process::{
    self, EndCause, ExitStatus, Finished, OutputSink, Owner, Stdin, StopHandle, Stream,
};
use crate::thread::mask::{Masker, SECRET_BYTES_MAX};

/// How much of its last line on standard error is told, in bytes.
const SAID_BYTES_MAX: usize = 300;

/// What is said of a command that prints more than [`SECRET_BYTES_MAX`].
const TOO_MUCH: &str = "printed more than 16 KiB";

/// Asks commands for secrets, on behalf of a run and outside of its walls.
pub(super) struct Asker<'a> {
    /// The engine's environment, of which the command sees the base.
    pub environment: &'a BTreeMap<String, String>,
    /// Where it runs.
    pub workspace: &'a Path,
    /// Holds its directory for temporary files.
    pub state_dir: &'a Path,
    /// Time between TERM and KILL.
    pub grace: Duration,
    /// The run that needs it: what an engine that was lost has left of the command is found by this.
    pub run: RunId,
    /// Ends it with the run.
    pub stop: &'a StopHandle,
}

impl Asker<'_> {
    /// What the command of the variable `name` prints, without one newline at its end.
    ///
    /// # Errors
    /// It prints no secret: says where it is written, why, and with the last line of its standard error.
    pub(super) fn ask(
        &self,
        name: &str,
        one: &SecretUse,
    ) -> Result<Option<SecretText>, Diagnostic> {
        let Some(SecretSource::Command { argv, timeout_ms }) = &one.source else {
            return Ok(None);
        };
        let mut heard = Heard::default();
        let ran = process::run(&self.command(argv, *timeout_ms), self.stop, &mut heard);
        let said = heard.said(name);
        let refused = |why: &str| {
            let text = format!(
                "{}: the secret `{name}`: its command `{}` {why}{said}",
                one.place,
                argv.join(" ")
            );
            Diagnostic::new(Kind::Blocked, "secret_command", text).hint(
                "run it as the engine's user without input: it has to print the secret and exit with 0",
            )
        };
        let finished = ran.map_err(|error| {
            let why = diagnostic::chain(&error);
            refused(&format!("was not started: {why}"))
        })?;
        why_failed(&finished, *timeout_ms).map_or(Ok(()), |why| Err(refused(&why)))?;
        heard.secret().map(Some).map_err(refused)
    }

    fn command(&self, argv: &[String], timeout_ms: u64) -> process::Command {
        let scratch = self.state_dir.join("scratch");
        let owner = Owner {
            run: self.run.to_string(),
            attempt: 0,
        };
        process::Command {
            program: process::Program::Argv(argv.to_vec()),
            cwd: self.workspace.to_owned(),
            env: process::environment(self.environment, &scratch, [], &owner),
            stdin: Stdin::Null,
            stdout_file: None,
            scratch: Some(scratch),
            limits: process::Limits {
                timeout: Some(Duration::from_millis(timeout_ms)),
                grace: self.grace,
                ..process::Limits::default()
            },
            owner,
            may_control: false,
            wall: None,
        }
    }
}

/// Why what it printed is no secret, whatever it is.
fn why_failed(finished: &Finished, timeout_ms: u64) -> Option<String> {
    match (finished.ended, finished.status) {
        (EndCause::ByItself, ExitStatus::Exited(0)) => None,
        (EndCause::ByItself, ExitStatus::Exited(code)) => {
            Some(format!("ended with exit code {code}"))
        }
        (EndCause::ByItself, ExitStatus::Signalled(signal)) => {
            Some(format!("was ended by signal {signal}"))
        }
        (EndCause::Enough, _) => Some(TOO_MUCH.to_owned()),
        (EndCause::Stopped(_), _) => Some("was stopped with the run".to_owned()),
        (
            EndCause::LimitReached {
                resource,
                limit,
                counted,
            },
            _,
        ) => Some(format!("was ended: {}", resource.describe(limit, counted))),
        (EndCause::TimedOut | EndCause::Silent, _) => {
            Some(format!("did not end within {}", show_millis(timeout_ms)))
        }
    }
}

/// What it printed, and the last line that it said besides.
#[derive(Default)]
struct Heard {
    printed: Vec<u8>,
    line_ended: bool,
    last: Vec<u8>,
}

impl Heard {
    fn secret(self) -> Result<SecretText, &'static str> {
        if self.has_enough() {
            return Err(TOO_MUCH);
        }
        let text = String::from_utf8(self.printed).map_err(|_| "printed what is no text")?;
        match text.as_str() {
            "" => Err("printed nothing"),
            found if found.contains('\0') => Err("printed a NUL, which no variable can hold"),
            _ => Ok(SecretText::new(text)),
        }
    }

    /// What it said, without what it printed; nothing where that cannot be told apart.
    fn said(&self, name: &str) -> String {
        let last = String::from_utf8_lossy(&self.last);
        let masked = Masker::new([(name, self.printed.as_slice())])
            .map(|masker| masker.mask_text(last.trim()).into_owned())
            .unwrap_or_default();
        match legible(cut(&masked, SAID_BYTES_MAX)).as_ref() {
            "" => String::new(),
            said => format!(": {said}"),
        }
    }
}

impl OutputSink for Heard {
    fn line(&mut self, stream: Stream, bytes: &[u8], more: bool) {
        if stream == Stream::Stdout {
            if self.printed.len() <= SECRET_BYTES_MAX {
                if self.line_ended {
                    self.printed.push(b'\n');
                }
                self.printed.extend_from_slice(bytes);
            }
            self.line_ended = !more;
        } else if !bytes.trim_ascii().is_empty() {
            self.last = bytes.to_vec();
        }
    }

    fn has_enough(&self) -> bool {
        self.printed.len() > SECRET_BYTES_MAX
    }
}
