//! `threads verify`, and the same check for every command that tells of threads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use crate::cli::commands::check::counted;
use crate::cli::definitions::Definitions;
use crate::cli::exit::Exit;
use crate::cli::globals::Site;
use crate::cli::io::Stream;
use crate::cli::maintenance::{self, CheckedThread, Journal, Soundness};
use crate::cli::render::line::{BAD, GOOD, Line};
use crate::cli::session::{Accept, Session, run_named};
use crate::cli::suggest;
use crate::model::{Diagnostic, RunId};
use crate::protocol::{Control, RunDetail, RunsQuery};

/// Threads that are verified where nobody asks for all, the newest ones.
pub(crate) const NEWEST: usize = 20;

/// Most runs of a list.
const RUNS_MAX: u32 = 10_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run ids, unique prefixes or suffixes of them, or `latest` [default: the newest 20 threads]
    #[arg(value_name = "RUN")]
    runs: Vec<String>,
    /// Every thread, including those missing from the store
    #[arg(long, conflicts_with = "runs")]
    all: bool,
}

/// What checking threads came to.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    /// How many were checked.
    #[serde(rename = "verified_count")]
    verified: usize,
    /// Of them, those that are not what was written.
    #[serde(rename = "damaged_count")]
    pub(crate) damaged: usize,
    /// Those whose run goes on, or whose engine was lost.
    #[serde(rename = "unfinished_count")]
    unfinished: usize,
    /// Those whose end is not recorded.
    #[serde(rename = "end_unknown_count")]
    end_unknown: usize,
    threads: Vec<Row>,
    /// How many there are.
    #[serde(skip)]
    present: usize,
}

#[derive(Debug, Serialize)]
struct Row {
    run: Option<RunId>,
    #[serde(flatten)]
    checked: CheckedThread,
}

pub(crate) fn perform(session: &mut Session<'_>, args: &Args) -> Result<Exit, Diagnostic> {
    let site = session.site()?;
    let control = session.connect(Accept::RunningElseHosted)?;
    let report = if args.runs.is_empty() {
        let most = (!args.all).then_some(NEWEST);
        newest(&site, Some(control.as_ref()), most)?
    } else {
        let mut report = Report::default();
        for run in &args.runs {
            let run = run_named(control.as_ref(), run)?;
            let (detail, checked) =
                of_run(&site, control.as_ref(), &run).map_err(suggest::run_meant)?;
            report.add(Some(detail.summary.run), checked);
        }
        report
    };
    if session.json() {
        session.print_json(&report, "threads");
    } else if report.verified == 0 {
        session.io.err.line("no threads");
    } else {
        report.print(&mut session.io.out);
    }
    Ok(report.exit())
}

/// Checks the thread of a run.
pub(crate) fn of_run(
    site: &Site,
    control: &dyn Control,
    run: &str,
) -> Result<(RunDetail, CheckedThread), Diagnostic> {
    let check = || {
        let detail = control.run(run)?;
        let log = Path::new(&detail.log_path);
        let checked = maintenance::check_thread(&site.workspace, log, Some(&journal_of(&detail)));
        Ok((detail, checked))
    };
    let (detail, checked) = check()?;
    if checked.damage.is_none() {
        return Ok((detail, checked));
    }
    // The journal may have gone on since it was read, as when somebody settles the run.
    check()
}

fn journal_of(detail: &RunDetail) -> Journal {
    let outcome = detail.summary.outcome.as_ref();
    Journal {
        run: detail.summary.run.to_string(),
        outcome: outcome.map(|outcome| outcome.name().to_owned()),
        timeline: detail.timeline.clone(),
    }
}

/// Checks the newest threads, or all; those of runs that `control` knows against their journals.
pub(crate) fn newest(
    site: &Site,
    control: Option<&dyn Control>,
    most: Option<usize>,
) -> Result<Report, Diagnostic> {
    let directory = Definitions::load(&site.workspace)
        .config()
        .threads_dir
        .clone();
    let mut report = Report::default();
    let found = maintenance::threads_in(&site.workspace, &directory);
    let mut threads = found.unwrap_or_else(|damage| {
        report.add(
            None,
            CheckedThread {
                thread: directory.clone(),
                state: Soundness::Damaged,
                lines: 0,
                damage: Some(damage),
            },
        );
        BTreeSet::new()
    });
    let mut runs = BTreeMap::new();
    if let Some(control) = control {
        let query = RunsQuery {
            limit: RUNS_MAX,
            ..RunsQuery::default()
        };
        let listed = control.runs(&query)?;
        runs.extend(
            listed
                .into_iter()
                .map(|run| (run.thread.to_string(), run.run)),
        );
        threads.extend(runs.keys().cloned());
    }
    report.present = threads.len();
    for thread in threads.iter().rev().take(most.unwrap_or(usize::MAX)) {
        let run = runs.get(thread).copied();
        let known = control.zip(run);
        // A run whose journal cannot be read has its files nevertheless.
        let of_run = known.and_then(|(control, run)| of_run(site, control, &run.to_string()).ok());
        let checked = of_run.map_or_else(
            || {
                let log = site
                    .workspace
                    .join(&directory)
                    .join(format!("{thread}.jsonl"));
                maintenance::check_thread(&site.workspace, &log, None)
            },
            |(_, checked)| checked,
        );
        report.add(run, checked);
    }
    Ok(report)
}

impl Report {
    fn add(&mut self, run: Option<RunId>, checked: CheckedThread) {
        self.verified += 1;
        match checked.state {
            Soundness::Verified => {}
            Soundness::Damaged => self.damaged += 1,
            Soundness::Unfinished => self.unfinished += 1,
            Soundness::EndUnknown => self.end_unknown += 1,
        }
        self.threads.push(Row { run, checked });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.verified == 0
    }

    pub(crate) fn exit(&self) -> Exit {
        if self.damaged > 0 {
            Exit::Failed
        } else {
            Exit::Ok
        }
    }

    /// All of it in one line.
    pub(crate) fn headline(&self) -> String {
        let mut text = format!("{} verified", counted(self.verified, "thread"));
        if self.verified < self.present {
            text = format!("{text}, the newest of {}", self.present);
        }
        for (number, what) in [
            (self.damaged, "damaged"),
            (self.unfinished, "not finished"),
            (self.end_unknown, "without a recorded end"),
        ] {
            if number > 0 {
                text = format!("{text}, {number} {what}");
            }
        }
        text
    }

    /// Each thread that is damaged, and how.
    pub(crate) fn damages(&self) -> impl Iterator<Item = String> + '_ {
        self.threads.iter().filter_map(|row| {
            let damage = row.checked.damage.as_ref()?;
            Some(format!("{}: {damage}", row.checked.thread))
        })
    }

    pub(crate) fn print(&self, out: &mut Stream<'_>) {
        let sign = if self.damaged > 0 {
            Line::of(BAD, "✗")
        } else {
            Line::of(GOOD, "✓")
        };
        out.line(sign.text(" ").text(self.headline()));
        for damage in self.damages() {
            out.line(Line::from("  ").text(damage));
        }
    }
}
