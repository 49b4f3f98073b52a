//! Commands that a model runs: of a shell, and of tool sets.

use std::path::Path;
use std::time::Duration;

use workerctl_agent::tools::BuiltIn;

use super::Tools;
use crate::effects::command::{Invocation, Ran};
use crate::model::agent::CommandTool;
use crate::model::evidence::Ended;
use crate::model::spec::Program;
use crate::process::Stdin;
use crate::protocol::LogStream;

/// Bytes of a command's output that a model is given: the last of them.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Time of a command that sets none.
const COMMAND_LIMIT: Duration = Duration::from_mins(10);

impl Tools<'_> {
    pub(super) fn bash(
        &self,
        arguments: &serde_json::Value,
        left: Duration,
    ) -> Result<String, String> {
        let arguments = BuiltIn::Bash.check(arguments)?;
        let text = arguments.get("command").and_then(|text| text.as_str());
        let asked = arguments
            .get("timeout_seconds")
            .and_then(serde_json::Value::as_u64);
        let limit = asked.map_or(COMMAND_LIMIT, Duration::from_secs);
        let shell = if Path::new("/bin/bash").exists() {
            "/bin/bash"
        } else {
            "/bin/sh"
        };
        let program = Program::Shell {
            shell: shell.to_owned(),
            text: text.unwrap_or_default().to_owned(),
        };
        self.run(&program, Stdin::Null, limit.min(left))
    }

    pub(super) fn command_tool(
        &self,
        tool: &CommandTool,
        arguments: &serde_json::Value,
        left: Duration,
    ) -> Result<String, String> {
        let schema = crate::catalog::input_schema::InputSchema::new(&tool.schema)?;
        let arguments = schema.bind(arguments.clone()).map_err(|faults| {
            let told = faults
                .iter()
                .map(|fault| format!("{} {}", fault.at, fault.message));
            told.collect::<Vec<_>>().join("; ").trim().to_owned()
        })?;
        let program = Program::Argv {
            argv: tool.argv.clone(),
            attempt_at: Vec::new(),
        };
        let limit = Duration::from_millis(tool.timeout_ms).min(left);
        let stdin = Stdin::Bytes(arguments.to_string().into_bytes());
        self.run(&program, stdin, limit)
    }

    /// Runs a command as the skill's own would run; its output is its answer.
    fn run(&self, program: &Program, stdin: Stdin, limit: Duration) -> Result<String, String> {
        let ran = self.performer.command(
            self.work,
            Invocation {
                program,
                stdin,
                timeout_ms: Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
                attempt: self.attempt,
                logged_as: Some(LogStream::Tool),
                stdout_file: None,
                noted: true,
                more: Vec::new(),
                sees_run: true,
                ours: false,
                tail_bytes: OUTPUT_BYTES_MAX,
            },
        );
        told(ran)
    }
}

/// What a model reads of a command: its output, and how it ended.
fn told(ran: Ran) -> Result<String, String> {
    let all = ran.finished.as_ref().map_or(0, |finished| {
        finished.stdout_bytes.saturating_add(finished.stderr_bytes)
    });
    let mut text = ran.tail;
    let shown = u64::try_from(text.len()).unwrap_or(u64::MAX);
    if all > shown.saturating_mul(2).max(shown.saturating_add(1_024)) {
        text = format!("[only the last of {all} bytes]\n{text}");
    }
    if ran.ended.is_success() {
        if text.trim().is_empty() {
            text.push_str("(no output)");
        }
        return Ok(text);
    }
    let ended = match &ran.ended {
        Ended::TimedOut => "ended: it took too long".to_owned(),
        other => other.describe(),
    };
    Err(format!("{text}({ended})"))
}
