//! Attempts of a run, and what may have kept one from succeeding.

use super::hint;
use crate::cli::io::Stream;
use crate::cli::render::line::{BAD, BOLD, CARE, DIM, GOOD, Line};
use crate::cli::render::times;
use crate::model::Zone;
use crate::model::duration::show_millis;
use crate::model::evidence::{Ended, Verdict};
use crate::protocol::{AttemptView, RunDetail};

pub(super) fn attempts(out: &mut Stream<'_>, detail: &RunDetail, zone: Zone) {
    if !detail.attempts.is_empty() {
        out.line(Line::of(BOLD, format!("  attempts ({zone})")));
    }
    for attempt in &detail.attempts {
        out.line(attempt_line(attempt, zone));
        if let Some(failure) = &attempt.failure {
            out.folded(Line::from("       ").output(BAD, &failure.to_string()));
        }
    }
}

fn attempt_line(attempt: &AttemptView, zone: Zone) -> Line {
    let began = times::instant(attempt.started_at, zone);
    let line = Line::from(format!("    {:>2} ", attempt.attempt)).styled(DIM, began);
    let Some(execution) = &attempt.execution else {
        return line.styled(CARE, "  its end was not recorded");
    };
    let style = if execution.ended.is_success() {
        GOOD
    } else {
        BAD
    };
    let mut line = line
        .text("  ")
        .styled(style, execution.ended.describe())
        .styled(DIM, format!("  {}", show_millis(execution.duration_ms)));
    let of_model = matches!(
        execution.ended,
        Ended::Answered { .. } | Ended::Unfinished { .. } | Ended::Failed { .. }
    );
    if !of_model {
        line = line.styled(
            DIM,
            format!(
                "  stdout {}, stderr {}",
                times::bytes(execution.stdout_bytes),
                times::bytes(execution.stderr_bytes)
            ),
        );
    }
    if execution.dropped_bytes > 0 {
        line = line.styled(
            CARE,
            format!("  {} not kept", times::bytes(execution.dropped_bytes)),
        );
    }
    if let Some(level) = execution.sandbox_level {
        line = line.styled(of_level(level), format!("  sandbox level {level}"));
    }
    if execution.survivors_ended > 0 {
        line = line.styled(
            CARE,
            format!(
                "  {} processes left behind were ended",
                execution.survivors_ended
            ),
        );
    }
    line
}

/// How a level of walls is shown.
pub(super) fn of_level(level: u32) -> anstyle::Style {
    if level == 0 { CARE } else { DIM }
}

/// Programs say the same of a sandbox as of modes: whoever wrote the skill may look for the wrong one.
pub(super) fn refused_by_sandbox(out: &mut Stream<'_>, detail: &RunDetail) {
    const REFUSALS: [&str; 7] = [
        "Permission denied",
        "permission denied",
        "Operation not permitted",
        "Read-only file system",
        "EACCES",
        "readonly database",
        "Couldn't connect to server",
    ];
    let Some(attempt) = detail.attempts.last() else {
        return;
    };
    let Some(execution) = attempt.execution.as_ref() else {
        return;
    };
    let level = execution.sandbox_level.unwrap_or(0);
    let failed = attempt
        .checks
        .iter()
        .filter(|check| check.verdict == Verdict::Failed);
    let mut told = failed
        .map(|check| check.output_tail.as_str())
        .chain([execution.stderr_tail.as_str()]);
    let refused = told.any(|text| REFUSALS.iter().any(|word| text.contains(word)));
    let text = match level {
        0 => return,
        1 if !refused => return,
        1 => {
            "it ran in the sandbox (level 1), which may have caused this; `sandbox: {write: [DIR]}` in its definition allows writing to an existing directory; `reads`, `network` and `unix_sockets` lift other restrictions, `off` lifts all: docs/reference/sandbox.md"
        }
        _ => {
            "it ran in a container (level 2): its home, `/tmp` and `/var/tmp` are empty, and only paths that `sandbox` grants are visible there: docs/reference/sandbox.md"
        }
    };
    hint(out, text);
}
