//! What very many schedules cost: the start, memory, processor time while nothing is due, and how late a run
//! starts when some are due.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use chrono::{Datelike, Utc};
use serde_json::Value;

use crate::Scale;
use crate::idle::{resident_kb, watch};
use crate::limits::{median, median_of, processor_seconds_of, wait_until};
use crate::report::{Report, Target};
use crate::start::ready_ms;
use crate::workspace::{Daemon, PATIENCE, Workspace};

/// Skills of a worker, and schedules of a skill.
const SKILLS: usize = 10;
const OF_SKILL: usize = 10;

/// Zones of them, in turn.
const ZONES: [&str; 8] = [
    "Europe/Berlin",
    "America/New_York",
    "Asia/Tokyo",
    "UTC",
    "Asia/Kolkata",
    "America/Sao_Paulo",
    "Australia/Sydney",
    "Africa/Cairo",
];

/// What all of it may hold: 150 MB, in MiB.
const RESIDENT_MIB: f64 = 143.0;

/// First starts of which the middle one counts; each writes a new store.
const FIRST_STARTS: usize = 3;

/// Schedules that are due at the same instants, and how many seconds lie between two of those.
const AT_ONCE: usize = 10;
const BETWEEN_SECONDS: u32 = 5;

/// A daemon has looked at everything when it used no more than this of a second.
const QUIET_SECONDS: f64 = 0.02;

pub(crate) fn measure(scale: Scale, report: &mut Report) {
    let without = workspace(scale, false);
    let with = workspace(scale, true);
    let many = format!("{} schedules", scale.schedules);
    starts(&with, &without, &many, report);
    memory_of_a_first_start(&with, &many, report);
    idle(scale, &with, &many, report);
    commands(&with, &many, report);
    punctuality(scale, &with, &many, report);
}

/// Workers with ten skills each, and ten schedules for each skill unless `scheduled` is false.
fn workspace(scale: Scale, scheduled: bool) -> Workspace {
    let this = Workspace::new(AT_ONCE as u64);
    let workers = scale.schedules.div_ceil(SKILLS * OF_SKILL);
    for worker in 0..workers {
        write_worker(&this, worker, scheduled);
    }
    this
}

pub(crate) fn write_worker(workspace: &Workspace, worker: usize, scheduled: bool) {
    let mut skills = String::new();
    for skill in 0..SKILLS {
        let _ = writeln!(
            skills,
            "  - id: s{skill}\n    name: S\n    description: what changed\n    run: [\"true\"]"
        );
        if scheduled {
            skills.push_str("    schedule:\n");
        }
        for number in 0..OF_SKILL {
            let nth = (worker * SKILLS + skill) * OF_SKILL + number;
            if scheduled {
                let _ = writeln!(skills, "      - {}", schedule(nth));
            }
        }
    }
    workspace.worker(&format!("w{worker}"), &skills);
}

/// The n-th schedule, as unkind as people write them: an id, a zone and an expression that no other has, and now and
/// then a policy. None is due for months.
fn schedule(nth: usize) -> String {
    let (minute, hour, day) = (nth % 60, nth / 60 % 24, 1 + nth / 1_440 % 28);
    let month = (Utc::now().month0() as usize + 4 + nth / 40_320) % 12 + 1;
    let zone = ZONES[nth % ZONES.len()];
    let policy = match nth % 10 {
        8 => ", overlap: buffer_one",
        9 => ", catch_up: {mode: all, window: 2h}, jitter: 5m",
        _ => "",
    };
    format!(
        "{{id: job-{nth}, cron: \"{minute} {hour} {day} {month} *\", timezone: {zone}{policy}}}"
    )
}

fn starts(with: &Workspace, without: &Workspace, many: &str, report: &mut Report) {
    let [first, first_without] = [with, without].map(first_start_ms);
    let [known, known_without] = [with, without].map(ready_ms);
    let how = |with: f64, without: f64| format!("{with:.0} ms against {without:.0} ms; {many}");
    report.add(
        "schedules, what they add to the first start",
        first - first_without,
        " ms",
        Target::None,
        &how(first, first_without),
    );
    report.add(
        "schedules, what they add to a start",
        known - known_without,
        " ms",
        Target::AtMost(1_000.0),
        &how(known, known_without),
    );
}

/// Of a workspace that no daemon has seen. The last of them leaves its store.
fn first_start_ms(workspace: &Workspace) -> f64 {
    let starts = (0..FIRST_STARTS).map(|_| {
        workspace.forget_state();
        let daemon = workspace.daemon();
        let ready_after = daemon.ready_after.as_secs_f64() * 1e3;
        daemon.end();
        ready_after
    });
    median(starts.collect())
}

/// Which has stored the states of all of them.
fn memory_of_a_first_start(workspace: &Workspace, many: &str, report: &mut Report) {
    workspace.forget_state();
    let daemon = workspace.daemon();
    wait_until_quiet(&daemon);
    let resident_mb = resident_kb(daemon.pid()) / 1024.0;
    daemon.end();
    report.add(
        "schedules, resident memory after the first start",
        resident_mb,
        " MiB",
        Target::AtMost(RESIDENT_MIB),
        many,
    );
}

fn idle(scale: Scale, workspace: &Workspace, many: &str, report: &mut Report) {
    let daemon = workspace.daemon();
    wait_until_quiet(&daemon);
    let before = processor_seconds_of(daemon.pid());
    let begun = Instant::now();
    watch(daemon.pid(), scale.idle_seconds);
    let used = processor_seconds_of(daemon.pid()) - before;
    let share = used / begun.elapsed().as_secs_f64() * 100.0;
    let resident_mb = resident_kb(daemon.pid()) / 1024.0;
    daemon.end();
    report.add(
        "schedules, resident memory",
        resident_mb,
        " MiB",
        Target::AtMost(RESIDENT_MIB),
        many,
    );
    report.add(
        "schedules, of a core while nothing is due",
        share,
        " %",
        Target::AtMost(1.0),
        &format!("{used:.2} s in {} s; {many}", scale.idle_seconds),
    );
}

/// After its start it looks at every schedule, and slots that have passed meanwhile are late.
fn wait_until_quiet(daemon: &Daemon) {
    wait_until("a quiet daemon", PATIENCE, || {
        let before = processor_seconds_of(daemon.pid());
        std::thread::sleep(Duration::from_secs(1));
        processor_seconds_of(daemon.pid()) - before <= QUIET_SECONDS
    });
}

fn commands(workspace: &Workspace, many: &str, report: &mut Report) {
    let daemon = workspace.daemon();
    wait_until_quiet(&daemon);
    let status = median_of(5, || drop(workspace.cli(&["status", "--json"])));
    report.add(
        "schedules, `status --json`",
        status * 1e3,
        " ms",
        Target::None,
        many,
    );
    let mut changes = 0;
    let reload = median_of(5, || {
        changes += 1;
        let text = format!(
            "worker: {{id: changed, name: C, description: d}}\nexecution: {{mode: on_demand}}\nskills:\n  - {{id: s, name: S, description: d{changes}, run: [\"true\"]}}\n"
        );
        workspace.write("workers/changed/worker.yaml", &text);
        workspace.cli(&["reload"]);
    });
    report.add(
        "schedules, `reload` of one file",
        reload * 1e3,
        " ms",
        Target::None,
        many,
    );
    let resident_mb = resident_kb(daemon.pid()) / 1024.0;
    report.add(
        "schedules, resident memory after reloads",
        resident_mb,
        " MiB",
        Target::AtMost(RESIDENT_MIB),
        many,
    );
    daemon.end();
}

/// Ten more schedules are due at the same instants, whose runs say when they have begun.
fn punctuality(scale: Scale, workspace: &Workspace, many: &str, report: &mut Report) {
    for worker in 0..AT_ONCE {
        let skill = format!(
            "  - id: go\n    name: Go\n    description: says when it begins\n    run: [date, \"+%s%3N {{scheduled_at}}\"]\n    schedule: {{cron: \"*/{BETWEEN_SECONDS} * * * * *\", seconds: true}}\n"
        );
        workspace.worker(&format!("due{worker}"), &skill);
    }
    let daemon = workspace.daemon();
    wait_until_quiet(&daemon);
    let wanted = scale.due_rounds * AT_ONCE;
    let due = || runs_of_due_times(workspace);
    wait_until("runs of slots", PATIENCE, || {
        std::thread::sleep(Duration::from_secs(u64::from(BETWEEN_SECONDS)));
        due().len() >= wanted
    });
    let mut late = late_ms(workspace, &due());
    daemon.end();
    late.sort_by(f64::total_cmp);
    let at = |percent: usize| late[(late.len() * percent).div_ceil(100).max(1) - 1];
    report.add(
        "schedules, from the slot to the run's command, ten at once, p99",
        at(99),
        " ms",
        Target::AtMost(50.0),
        &format!(
            "median {:.0} ms, latest {:.0} ms, {} runs; {many}",
            at(50),
            at(100),
            late.len()
        ),
    );
}

/// Ids of finished runs.
fn runs_of_due_times(workspace: &Workspace) -> Vec<String> {
    let told = workspace
        .cli(&["runs", "--limit", "10000", "--json"])
        .stdout;
    let told: Value = serde_json::from_slice(&told).unwrap();
    let runs = told["runs"].as_array().unwrap().iter();
    runs.filter(|run| !run["outcome"].is_null())
        .map(|run| run["run"].as_str().unwrap().to_owned())
        .collect()
}

/// How late each run began, by what its command said first.
fn late_ms(workspace: &Workspace, runs: &[String]) -> Vec<f64> {
    let late = |run: &String| {
        let said = workspace.cli(&["logs", run]).stdout;
        let said = String::from_utf8(said).unwrap();
        let line = said.lines().find(|line| line.contains(" out ")).unwrap();
        let told = line.rsplit_once('│').unwrap().1;
        let (began, slot) = told.trim().split_once(' ').unwrap();
        let slot = chrono::DateTime::parse_from_rfc3339(slot).unwrap();
        began.parse::<f64>().unwrap() - slot.timestamp_millis() as f64
    };
    runs.iter().map(late).collect()
}
