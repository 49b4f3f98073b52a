//! Figures of the whole program, each next to what this machine can do at best in the same minute.
//!
//! `cargo bench` measures everything, `cargo bench -- throughput start` only what is named, and
//! `cargo bench -- profile` runs the durable loop alone, for a profiler to look at.
//! `WORKERCTL_BENCH_QUICK=1` takes small numbers, for a smoke test; with `WORKERCTL_BENCH_STRICT=1` a
//! missed figure makes the exit code 1. `WORKERCTL_BENCH_DIR` names a directory on the disk to measure. `docs/dev/benchmarks.md` explains each figure.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    reason = "a benchmark that cannot go on ends, and what it finds is printed"
)]

mod history;
mod idle;
mod latency;
mod limits;
mod mutating;
mod page;
mod parked;
mod report;
mod schedules;
#[path = "../../src/agent/tests/server/mod.rs"]
#[expect(dead_code, reason = "shared with tests, which use more of it")]
mod server;
mod skills;
mod speaking;
mod start;
mod syncs;
mod throughput;
mod turns;
mod walls;
mod workspace;
mod year;

use std::process::ExitCode;

use report::Report;

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// Runs of one round.
    pub runs: u64,
    /// Rounds; the middle one counts.
    pub rounds: usize,
    /// Samples of what takes a moment.
    pub samples: usize,
    /// Finished runs of a store that has been in use for long.
    pub history_runs: u64,
    /// Definition files of a large workspace.
    pub definition_files: usize,
    /// Files of a small and of a large repository.
    pub repository_files: [usize; 2],
    /// Skills that an idle daemon has loaded.
    pub skills: usize,
    /// How many skills of roots are found and handed out.
    pub skills_found: &'static [usize],
    /// For how many seconds an idle daemon is watched.
    pub idle_seconds: u64,
    /// Schedules of a large workspace.
    pub schedules: usize,
    /// How often some are due at once.
    pub due_rounds: usize,
    /// Days that a workspace is used, runs of each, and for how many days they are kept.
    pub days: u64,
    pub runs_a_day: u64,
    pub kept_days: u64,
}

const FULL: Scale = Scale {
    runs: 1_000,
    rounds: 5,
    samples: 100,
    history_runs: 100_000,
    definition_files: 10_000,
    repository_files: [1_000, 50_000],
    skills: 1_000,
    skills_found: &[10, 100, 1_000, 10_000],
    idle_seconds: 35,
    schedules: 100_000,
    due_rounds: 20,
    days: 365,
    runs_a_day: 1_000,
    kept_days: 90,
};

const QUICK: Scale = Scale {
    runs: 100,
    rounds: 1,
    samples: 10,
    history_runs: 1_000,
    definition_files: 200,
    repository_files: [100, 1_000],
    skills: 100,
    skills_found: &[10, 100],
    idle_seconds: 3,
    schedules: 1_000,
    due_rounds: 3,
    days: 40,
    runs_a_day: 50,
    kept_days: 10,
};

/// A benchmark with the name by which it is chosen.
type Benchmark = (&'static str, fn(Scale, &mut Report));

/// Measured only when it is named.
const PROFILE: Benchmark = ("profile", throughput::profile);

const BENCHMARKS: [Benchmark; 13] = [
    ("throughput", throughput::measure),
    ("latency", latency::measure),
    ("syncs", syncs::measure),
    ("start", start::measure),
    ("idle", idle::measure),
    ("mutating", mutating::measure),
    ("schedules", schedules::measure),
    ("skills", skills::measure),
    ("walls", walls::measure),
    ("parked", parked::measure),
    ("turns", turns::measure),
    ("year", year::measure),
    ("page", page::measure),
];

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

fn main() -> ExitCode {
    let scale = if is_set("WORKERCTL_BENCH_QUICK") {
        QUICK
    } else {
        FULL
    };
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let mut report = Report::default();
    if wanted.iter().any(|word| word == PROFILE.0) {
        PROFILE.1(scale, &mut report);
        workspace::remove_all();
        return ExitCode::SUCCESS;
    }
    for (name, measure) in BENCHMARKS {
        if wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())) {
            eprintln!("measuring {name} (load {})", limits::load());
            measure(scale, &mut report);
        }
    }
    workspace::remove_all();
    report.print();
    if report.missed() > 0 && is_set("WORKERCTL_BENCH_STRICT") {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
