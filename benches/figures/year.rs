//! A year of a thousand runs a day on a clock of its own, with the real engine, store and threads.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use workerctl::clock::FakeClock;
use workerctl::engine::{Engine, EngineOptions, Host};
use workerctl::model::{ThreadId, Timestamp};
use workerctl::protocol::{ForgetRequest, RunsQuery, StatsQuery};
use workerctl::store::{Batch, OpenOptions, SledStore, Store};

use crate::Scale;
use crate::history::{RUNS_PER_COMMIT, Sample};
use crate::report::{Report, Target};
use crate::workspace::Workspace;

const DAY_MS: u64 = 24 * 3_600_000;

/// What one day looked like at its end.
#[derive(Debug, Clone, Copy, Default)]
struct Evening {
    start_ms: f64,
    runs_ms: f64,
    status_ms: f64,
    stats_ms: f64,
    forget_ms: f64,
    database_bytes: u64,
    thread_files: usize,
    resident_bytes: u64,
}

/// A workspace that is used for so many days.
struct Year {
    workspace: Workspace,
    sample: Sample,
    begins: Timestamp,
    runs_a_day: u64,
}

impl Year {
    fn threads(&self) -> PathBuf {
        self.workspace.root().join("workspace/threads")
    }

    /// The runs of a day, in the store and with their threads.
    fn pass(&self, day: u64) {
        let options = OpenOptions::default();
        let store = SledStore::open(&self.workspace.state().join("store"), options).unwrap();
        let apart_ms = DAY_MS / self.runs_a_day;
        let mut writes = Vec::new();
        for nth in 0..self.runs_a_day {
            let at = self.begins.plus_millis(day * DAY_MS + nth * apart_ms);
            let thread = self.sample.at(at, day * self.runs_a_day + nth, &mut writes);
            self.write_thread(&thread);
            if nth % RUNS_PER_COMMIT == RUNS_PER_COMMIT - 1 || nth + 1 == self.runs_a_day {
                let writes = std::mem::take(&mut writes);
                store.commit(&Batch { writes }).unwrap();
            }
        }
    }

    /// As long as those of the sample.
    fn write_thread(&self, thread: &ThreadId) {
        for (kind, bytes) in [("jsonl", 3_500), ("json", 1_500)] {
            let path = self.threads().join(format!("{thread}.{kind}"));
            fs::write(path, "x".repeat(bytes)).unwrap();
        }
    }

    /// An engine in the evening: what it shows, and what it forgets.
    fn evening(&self, day: u64) -> Evening {
        let clock = FakeClock::at(self.begins.plus_millis((day + 1) * DAY_MS));
        let options = EngineOptions {
            workspace: self.workspace.root(),
            state_dir: self.workspace.state(),
            socket: None,
            host: Host::InProcess,
            environment: self.workspace.environment(),
        };
        let (engine, start_ms) = timed(|| Engine::start_by(options, Arc::new(clock)).unwrap());
        let control = engine.control();
        let newest = RunsQuery {
            limit: 20,
            ..RunsQuery::default()
        };
        let (_, runs_ms) = timed(|| control.runs(&newest).unwrap());
        let (_, status_ms) = timed(|| control.status().unwrap());
        let (_, counts_ms) = timed(|| control.stats(&StatsQuery::default()).unwrap());
        let ((), forget_ms) =
            timed(
                || {
                    while control.forget(&ForgetRequest::default()).unwrap().more {}
                },
            );
        let resident_bytes = resident();
        control.drain().unwrap();
        drop(control);
        engine.join().unwrap();
        let database = self.workspace.state().join("store/db/db");
        Evening {
            start_ms,
            runs_ms,
            status_ms,
            stats_ms: counts_ms,
            forget_ms,
            database_bytes: fs::metadata(database).unwrap().len(),
            thread_files: fs::read_dir(self.threads()).unwrap().count(),
            resident_bytes,
        }
    }
}

/// What it answers, and how many milliseconds that took.
fn timed<T>(what: impl FnOnce() -> T) -> (T, f64) {
    let begun = Instant::now();
    let answer = what();
    (answer, begun.elapsed().as_secs_f64() * 1_000.0)
}

fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1_024
}

/// The middle of some evenings, figure by figure.
fn middle(evenings: &[Evening], figure: impl Fn(&Evening) -> f64) -> f64 {
    let mut all: Vec<f64> = evenings.iter().map(figure).collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

pub(crate) fn measure(scale: Scale, report: &mut Report) {
    let workspace = Workspace::of_trivial_skills(2);
    let retention = format!("retention: {{runs: {}d}}\n", scale.kept_days);
    let path = workspace.root().join("workerctl.yaml");
    let settings = fs::read_to_string(path).unwrap();
    workspace.write("workerctl.yaml", &format!("{settings}{retention}"));
    let sample = Sample::of(&workspace);
    let year = Year {
        begins: sample.submitted_at().plus_millis(DAY_MS),
        sample,
        workspace,
        runs_a_day: scale.runs_a_day,
    };
    let mut evenings = Vec::new();
    for day in 0..scale.days {
        year.pass(day);
        evenings.push(year.evening(day));
        if day % 30 == 29 {
            eprintln!("  day {}: {:?}", day + 1, evenings.last().unwrap());
        }
    }
    // The first week of it, the week when runs began to go, and the last one.
    let full = usize::try_from(scale.kept_days).unwrap() + 2;
    let (first, then) = (&evenings[..7.min(full)], &evenings[full..full + 7]);
    let last = &evenings[evenings.len() - 7..];
    let how = format!(
        "{} days of {} runs, kept for {}",
        scale.days, scale.runs_a_day, scale.kept_days
    );
    let mut ratio = |name: &str, before: &[Evening], most: f64, figure: fn(&Evening) -> f64| {
        let (was, is) = (middle(before, figure), middle(last, figure));
        let how = format!("{how}: {was:.1} and {is:.1}");
        report.add(name, is / was, "x", Target::AtMost(most), &how);
    };
    ratio("year: database, by then", then, 1.25, |one| {
        one.database_bytes as f64 / 1e6
    });
    ratio("year: thread files, by then", then, 1.01, |one| {
        one.thread_files as f64
    });
    ratio("year: resident memory, by then", then, 1.25, |one| {
        one.resident_bytes as f64 / 1e6
    });
    ratio("year: `runs`, by the first week", first, 2.0, |one| {
        one.runs_ms
    });
    ratio("year: `status`, by the first week", first, 2.0, |one| {
        one.status_ms
    });
    ratio("year: `stats`, by then", then, 2.0, |one| one.stats_ms);
    ratio("year: start, by then", then, 1.5, |one| one.start_ms);
    ratio("year: start, by the first week", first, 4.0, |one| {
        one.start_ms
    });
    ratio("year: a day forgotten, by then", then, 2.0, |one| {
        one.forget_ms
    });
}
