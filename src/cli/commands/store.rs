//! `store info|verify|gc|rebuild|init`

use serde_json::json;

use super::check::counted;
use super::threads::verify;
use crate::cli::definitions::Definitions;
use crate::cli::exit::Exit;
use crate::cli::globals::{Site, expect_person};
use crate::cli::maintenance::{self, Rebuilding, StoreInfo, VerifyReport};
use crate::cli::render::line::{BAD, CARE, GOOD, Line};
use crate::cli::render::{diagnostic, times};
use crate::cli::session::{Accept, Session};
use crate::model::Diagnostic;
use crate::protocol::{ForgetRequest, Forgot};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show the size and contents of the store, without opening it (the default)
    Info,
    /// Read everything and list damage; no engine may be running
    Verify,
    /// Delete expired runs now, and return the space to the file system
    Gc {
        /// Only show what would be deleted
        #[arg(long)]
        dry_run: bool,
        /// Trust the clock although it has jumped
        #[arg(long)]
        trust_clock: bool,
    },
    /// Move the store away and rebuild it from the threads
    Rebuild,
    /// Create an empty store in a workspace that has none or has lost it
    Init,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let site = session.site()?;
    match args.what.as_ref().unwrap_or(&What::Info) {
        What::Info => {
            let info = maintenance::info(&site.state_dir)?;
            if session.json() {
                session.print_json(&info, "store");
            } else {
                print_info(session, &info);
            }
            Ok(Exit::Ok)
        }
        What::Verify => {
            maintenance::check_identity(&site.workspace, &site.state_dir)?;
            let report = maintenance::verify(&site.state_dir)?;
            let threads = verify::newest(&site, None, None)?;
            if session.json() {
                let mut shown = json!(report);
                shown["threads"] = json!(threads);
                session.print_json(&shown, "store");
            } else {
                print_verified(session, &report);
                print_threads(session, &threads);
            }
            Ok(if report.fault_count == 0 {
                threads.exit()
            } else {
                Exit::Failed
            })
        }
        What::Gc {
            dry_run,
            trust_clock,
        } => forget(
            session,
            &ForgetRequest {
                dry_run: *dry_run,
                trust_clock: *trust_clock,
            },
        ),
        What::Rebuild => rebuild(session, &site),
        What::Init => {
            session.engines.init_store(&site)?;
            let place = site.state_dir.display().to_string();
            if session.json() {
                session.print_json(&json!({"state_dir": place}), "store");
            } else {
                let line = Line::of(GOOD, "✓").text(format!(" an empty store in {place}"));
                session.io.out.line(line);
            }
            Ok(Exit::Ok)
        }
    }
}

fn rebuild(session: &mut Session<'_>, site: &Site) -> Result<Exit, Diagnostic> {
    expect_person("workerctl store rebuild")?;
    let definitions = Definitions::load(&site.workspace);
    definitions.expect_known_config()?;
    let done = maintenance::rebuild_from(
        &site.workspace,
        &site.state_dir,
        &definitions.config().threads_dir,
        session.clock.now(),
    )?;
    let threads = verify::newest(site, None, None)?;
    if session.json() {
        let shown = json!({"moved_to": done.aside, "report": done.report, "threads": threads});
        session.print_json(&shown, "store");
    } else {
        print_rebuilt(session, &done);
        print_threads(session, &threads);
    }
    Ok(Exit::Ok)
}

/// Asks as often as it takes: one request forgets no more than keeps others waiting for a moment.
fn forget(session: &mut Session<'_>, request: &ForgetRequest) -> Result<Exit, Diagnostic> {
    let control = session.connect(Accept::RunningElseHosted)?;
    let mut all = control.forget(request)?;
    let whole = all.clone();
    while all.more {
        let next = control.forget(request)?;
        all = Forgot {
            database_bytes_after: next.database_bytes_after,
            more: next.more,
            notes: next.notes,
            ..whole.clone()
        };
    }
    if session.json() {
        session.print_json(&all, "gc");
    } else {
        print_forgotten(session, &all, request.dry_run);
    }
    let is_done = all.notes.is_empty() && all.clock_doubt.is_none();
    Ok(if is_done { Exit::Ok } else { Exit::Failed })
}

fn print_forgotten(session: &mut Session<'_>, all: &Forgot, dry_run: bool) {
    let out = &mut session.io.out;
    let verb = if dry_run {
        "would be deleted"
    } else {
        "deleted"
    };
    if let Some(doubt) = all.clock_doubt {
        let why = match all.clock_behind {
            Some(newest) => format!(
                "the clock precedes the newest record, of {}",
                newest.rfc3339()
            ),
            None => format!(
                "the clock has jumped since the last sweep, to {}",
                doubt.steady_since.rfc3339()
            ),
        };
        let text = format!(" nothing is deleted: {why}");
        out.line(Line::of(CARE, "!").text(text));
        session.io.out.flush();
        let hint = format!(
            "the clock is trusted again from {} on if it does not jump again; if it is correct now, run `workerctl store gc --trust-clock`",
            doubt.believed_at.rfc3339()
        );
        diagnostic::hint(&mut session.io.err, &hint);
        return;
    }
    let runs = usize::try_from(all.run_count).unwrap_or(usize::MAX);
    let newest = all.newest.map_or_else(String::new, |at| {
        format!(", the newest of {}", at.rfc3339())
    });
    let bytes = times::bytes(all.thread_bytes);
    out.line(format!(
        "runs       {} {verb}, with {bytes} of threads{newest}",
        counted(runs, "run")
    ));
    if all.early_run_count > 0 {
        out.line(format!(
            "           {} of them early, because threads exceed `retention.threads`",
            all.early_run_count
        ));
    }
    for id in &all.schedules {
        out.line(
            Line::from("schedule   ")
                .text(id)
                .text(format!(" {verb}: it is no longer defined")),
        );
    }
    let before = times::bytes(all.database_bytes_before);
    out.line(match all.database_bytes_after {
        Some(after) => format!("database   {before}, now {}", times::bytes(after)),
        None => format!("database   {before}"),
    });
    for note in &all.notes {
        out.line(Line::of(CARE, "!").text(" ").text(note));
    }
}

fn print_info(session: &mut Session<'_>, info: &StoreInfo) {
    let out = &mut session.io.out;
    let unknown = || "unknown".to_owned();
    out.line(format!(
        "version   {}",
        info.version.map_or_else(unknown, |v| v.to_string())
    ));
    out.line(format!(
        "id        {}",
        info.id.as_deref().unwrap_or("none")
    ));
    out.line(format!(
        "commits   {}",
        info.commits.map_or_else(unknown, |c| c.to_string())
    ));
    out.line(format!(
        "in use    {}",
        if info.in_use { "yes" } else { "no" }
    ));
    let database = info
        .database_bytes
        .map_or_else(|| "none".to_owned(), times::bytes);
    out.line(format!("database  {database}"));
    out.line(format!(
        "payloads  {} in {} files",
        times::bytes(info.payload_bytes),
        info.payload_files
    ));
    out.line(format!("reserve   {}", times::bytes(info.reserve_bytes)));
    for name in &info.aside {
        out.line(Line::of(CARE, "aside     ").text(name));
    }
}

fn print_verified(session: &mut Session<'_>, report: &VerifyReport) {
    let out = &mut session.io.out;
    if report.fault_count == 0 {
        out.line(Line::of(GOOD, "✓").text(format!(
            " sound: {} records, {} runs ({} active), {} events",
            report.records, report.runs, report.active, report.events
        )));
    } else {
        let faults = usize::try_from(report.fault_count).unwrap_or(usize::MAX);
        out.line(Line::of(BAD, "✗").text(format!(" {}", counted(faults, "fault"))));
        for fault in &report.faults {
            let run = fault
                .run
                .map_or_else(String::new, |run| format!("run {run}: "));
            out.line(Line::from("  ").text(run).text(&fault.reason));
        }
    }
    if report.orphan_count > 0 {
        let text = format!(
            "{} files that no record names; they do no harm",
            report.orphan_count
        );
        out.line(Line::of(CARE, "!").text(" ").text(text));
    }
    if report.fault_count > 0 {
        session.io.out.flush();
        let text =
            "`workerctl store rebuild` moves the store aside and rebuilds it from the threads";
        diagnostic::hint(&mut session.io.err, text);
    }
}

/// What the logs and summaries are worth that a store would be built from.
fn print_threads(session: &mut Session<'_>, threads: &verify::Report) {
    if !threads.is_empty() {
        threads.print(&mut session.io.out);
    }
}

fn print_rebuilt(session: &mut Session<'_>, done: &Rebuilding) {
    let out = &mut session.io.out;
    let report = &done.report;
    if let Some(aside) = &done.aside {
        out.line(Line::from("former store moved to ").text(aside));
    }
    let vouches = match report.vouches_until {
        Some(at) => format!("; complete up to {}", at.rfc3339()),
        None => String::new(),
    };
    out.line(Line::of(GOOD, "✓").text(format!(
        " {} runs are in the store again{vouches}",
        report.runs
    )));
    for run in &report.unfinished {
        out.line(
            Line::of(CARE, "  unknown  ")
                .text(run.short())
                .text(" had not ended; resolve it with `workerctl resolve`"),
        );
    }
    for problem in &report.problems {
        out.line(Line::of(CARE, "  left out  ").text(problem));
    }
}
