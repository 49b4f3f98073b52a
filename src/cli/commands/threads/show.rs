//! `threads show RUN`

use serde_json::{Value, json};

use super::verify;
use crate::cli::exit::Exit;
use crate::cli::io::Stream;
use crate::cli::maintenance::{CheckedThread, Soundness};
use crate::cli::render::line::{BAD, BOLD, CARE, DIM, GOOD, Line, PLAIN};
use crate::cli::render::report;
use crate::cli::session::{Accept, Session, run_named};
use crate::cli::suggest;
use crate::model::Diagnostic;
use crate::protocol::RunDetail;

/// Files that are shown.
const FILES_SHOWN_MAX: usize = 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run id, any unique prefix or suffix of it, or `latest`
    #[arg(default_value = "latest")]
    run: String,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let site = session.site()?;
    let control = session.connect(Accept::RunningElseHosted)?;
    let run = run_named(control.as_ref(), &args.run)?;
    let (detail, checked) =
        verify::of_run(&site, control.as_ref(), &run).map_err(suggest::run_meant)?;
    let summary = control.thread(&run).ok();
    if session.json() {
        let shown = json!({
            "run": detail.summary.run,
            "check": checked,
            "summary": summary,
        });
        session.print_json(&shown, "thread");
    } else {
        print(&mut session.io.out, &detail, summary.as_ref(), &checked);
    }
    Ok(Exit::Ok)
}

fn print(
    out: &mut Stream<'_>,
    detail: &RunDetail,
    summary: Option<&Value>,
    checked: &CheckedThread,
) {
    out.line(Line::of(BOLD, detail.summary.thread.as_str()));
    if let Some(summary) = summary {
        told(out, summary);
    } else {
        out.line(Line::from("  ").then(report::headline(&detail.summary)));
        out.line(Line::of(DIM, "  its summary is written when the run ends"));
    }
    field(out, "run", &detail.summary.run.to_string());
    let (style, state) = state_of(checked);
    out.line(Line::of(DIM, "  log        ").styled(style, state));
    field(out, "", &detail.log_path);
    if summary.is_some() {
        field(out, "summary", &detail.thread_path);
    }
}

/// What a summary file tells.
fn told(out: &mut Stream<'_>, summary: &Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().map(text).collect()
    };
    for line in text(&summary["conversation_summary"]).lines() {
        out.line(Line::from("  ").output(PLAIN, line));
    }
    let worker = &summary["worker"];
    field(out, "state", &text(&worker["state"]));
    field(out, "started", &text(&worker["started_at"]));
    field(out, "ended", &text(&worker["completed_at"]));
    field(out, "branch", &text(&summary["git"]["branch"]));
    let files = list(&summary["files_touched"]);
    let more = files.len().saturating_sub(FILES_SHOWN_MAX);
    let further = (more > 0).then(|| format!("and {more} more"));
    listed(out, "commits", list(&summary["git"]["commits_made"]));
    listed(
        out,
        "files",
        files.into_iter().take(FILES_SHOWN_MAX).chain(further),
    );
    listed(out, "next", list(&summary["next_steps"]));
}

fn listed(out: &mut Stream<'_>, name: &str, values: impl IntoIterator<Item = String>) {
    let mut name = name;
    for value in values {
        field(out, name, &value);
        name = "";
    }
}

fn field(out: &mut Stream<'_>, name: &str, value: &str) {
    if !value.is_empty() {
        out.line(Line::of(DIM, format!("  {name:<10} ")).text(value));
    }
}

/// What is to be said of a log.
fn state_of(checked: &CheckedThread) -> (anstyle::Style, String) {
    let lines = checked.lines;
    match (checked.state, &checked.damage) {
        (Soundness::Damaged, damage) => {
            let damage = damage.as_deref().unwrap_or("unreadable");
            (BAD, format!("damaged: {damage}"))
        }
        (Soundness::Verified, _) => (GOOD, format!("{lines} lines, verified")),
        (Soundness::Unfinished, _) => (PLAIN, format!("{lines} lines, verified; not finished")),
        (Soundness::EndUnknown, _) => {
            let text = format!("{lines} lines, verified; where it ended is not recorded");
            (CARE, text)
        }
    }
}
