//! What a person is asked about a run, and what they have said.

use super::super::times;
use super::{ACTIVE, BOLD, CARE, DIM, Line, checks, field, files, headline, hint};
use crate::cli::io::Stream;
use crate::model::legible::exact;
use crate::model::spec::Gate;
use crate::protocol::{ApprovalView, RunDetail};

/// Digits of a digest that are shown: `approve --digest` takes as many.
const DIGEST_CHARS: usize = 12;

/// What `run` ends with where a person has to approve it first.
pub(crate) fn asked(out: &mut Stream<'_>, detail: &RunDetail) {
    out.line(headline(&detail.summary));
    inputs(out, detail);
    checks(out, detail);
    files(out, detail);
    question(out, detail);
}

/// Inputs with their values, secrets masked.
pub(super) fn inputs(out: &mut Stream<'_>, detail: &RunDetail) {
    if let Some(message) = &detail.message {
        out.line(Line::of(BOLD, "  message"));
        let message = message.trim();
        for line in message.split('\n') {
            out.folded(Line::from("    ").text(exact(line)));
        }
    }
    if !detail.inputs.is_empty() {
        out.line(Line::of(BOLD, "  inputs"));
    }
    for (name, value) in &detail.inputs {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        out.folded(
            Line::from("    ")
                .text(exact(name))
                .text(" = ")
                .text(exact(&value)),
        );
    }
}

/// What is asked, or what was said.
pub(super) fn question(out: &mut Stream<'_>, detail: &RunDetail) {
    let Some(view) = &detail.approval else {
        return;
    };
    for (answer, by, at) in [
        ("approved", &view.approved_by, view.approved_at),
        ("denied", &view.denied_by, view.denied_at),
    ] {
        if let Some(by) = by {
            let at = at.map(|at| format!(" at {}", at.rfc3339()));
            let note = view.note.as_ref().map(|note| format!(": {note}"));
            let (at, note) = (at.unwrap_or_default(), note.unwrap_or_default());
            return field(out, answer, &format!("by {by}{at}{note}"));
        }
    }
    let Some(digest) = &view.digest else {
        return;
    };
    let (what, run) = (what(view), detail.summary.run.short());
    out.line(Line::of(CARE, format!("  {what} waits for approval")));
    if let Some(command) = &view.command {
        for line in command.trim_end().split('\n') {
            out.folded(Line::of(DIM, "      $ ").text(exact(line)));
        }
    }
    let held = view.result.iter().flat_map(|result| &result.outputs);
    for output in held {
        let size = format!(
            "  {}, published when it is approved",
            times::bytes(output.bytes)
        );
        out.folded(
            Line::from("    ")
                .text(exact(&output.path))
                .styled(DIM, size),
        );
    }
    field(out, "sandbox", &view.sandbox);
    if let Some(branch) = &detail.branch {
        field(out, "branch", &exact(branch));
    }
    if let Some(remote) = &detail.push {
        field(out, "pushes to", &exact(remote));
    }
    if let Some(place) = &view.outputs_in {
        super::place(out, "look at", place);
    }
    if !view.checkpoints.is_empty() {
        out.line(Line::of(BOLD, "  checkpoints"));
        for one in &view.checkpoints {
            out.folded(Line::of(ACTIVE, "    ☐ ").text(exact(one)));
        }
    }
    let short: String = digest.chars().take(DIGEST_CHARS).collect();
    field(out, "digest", &short);
    if let Some(until) = view.expires_at {
        field(out, "until", &until.rfc3339());
    }
    let look = match view.before {
        Gate::Landing => format!("`workerctl diff {run}` shows what would land; then "),
        Gate::Execution => String::new(),
    };
    hint(
        out,
        &format!("{look}`workerctl approve {run}`, or `workerctl deny {run} --note …`"),
    );
}

fn what(view: &ApprovalView) -> &'static str {
    match view.before {
        Gate::Execution => "its command",
        Gate::Landing => "its result",
    }
}
