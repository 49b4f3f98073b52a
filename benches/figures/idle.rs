//! What a daemon costs that has nothing to do.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use crate::Scale;
use crate::report::{Report, Target};
use crate::workspace::Workspace;

/// How long a daemon is left alone before it is watched.
const SETTLING: Duration = Duration::from_secs(2);

/// Names of the threads that sled starts begin so.
const OF_SLED: &str = "sled";

pub(crate) fn measure(scale: Scale, report: &mut Report) {
    let workspace = Workspace::new(2);
    for worker in 0..scale.skills.div_ceil(10) {
        let mut skills = String::new();
        for skill in 0..10 {
            skills.push_str(
                "  - {description: \"What changed\", run: \"git log --since={weeks}.weeks\", ",
            );
            skills.push_str("interface: {inputs: [{name: weeks, type: number, default: 1}]}, ");
            skills.push_str(&["id: s", &skill.to_string(), ", name: S}\n"].concat());
        }
        workspace.worker(&format!("w{worker}"), &skills);
    }
    // A store that exists already is the rule.
    workspace.daemon().end();
    let daemon = workspace.daemon();
    std::thread::sleep(SETTLING);
    let pid = daemon.pid();
    let activity = watch(pid, scale.idle_seconds);
    let resident_mb = resident_kb(pid) / 1024.0;
    daemon.end();
    report.add(
        "idle, resident memory",
        resident_mb,
        " MiB",
        Target::AtMost(15.0),
        &format!("{} skills", scale.skills),
    );
    let told: Vec<String> = activity
        .by_name
        .iter()
        .map(|(name, woken)| format!("{name} {woken}"))
        .collect();
    // The tick wakes the loop, the thread that looks through the definitions, and the daemon that hears of
    // it: one moment, which may stand on the border of two seconds.
    let ticks = 1 + scale.idle_seconds / 30;
    report.add(
        &format!("idle, seconds of {} in which we woke", scale.idle_seconds),
        activity.seconds as f64,
        "",
        Target::AtMost(ticks as f64 * 2.0),
        &format!("context switches: {}", told.join(", ")),
    );
    report.add(
        "idle, context switches of sled's threads a second",
        activity.of_sled as f64 / scale.idle_seconds as f64,
        "",
        Target::None,
        "",
    );
}

/// What the threads of a process did while it was watched.
#[derive(Default)]
pub(crate) struct Activity {
    /// In how many seconds a thread of ours ran.
    pub(crate) seconds: u64,
    /// Context switches of sled's threads.
    of_sled: u64,
    /// Context switches by the thread's name.
    by_name: BTreeMap<String, u64>,
}

pub(crate) fn watch(pid: u32, seconds: u64) -> Activity {
    let mut activity = Activity::default();
    let mut before = switches(pid);
    for _ in 0..seconds {
        std::thread::sleep(Duration::from_secs(1));
        let after = switches(pid);
        let mut ours = 0;
        for ((thread, name), count) in &after {
            let woken = count - before.get(&(*thread, name.clone())).unwrap_or(&0);
            if name.starts_with(OF_SLED) {
                activity.of_sled += woken;
            } else {
                ours += woken;
            }
            if woken > 0 {
                *activity.by_name.entry(name.clone()).or_default() += woken;
            }
        }
        activity.seconds += u64::from(ours > 0);
        before = after;
    }
    activity
}

/// Context switches of each thread.
fn switches(pid: u32) -> BTreeMap<(u32, String), u64> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let entry = entry.unwrap();
        let Ok(thread) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let Ok(status) = fs::read_to_string(entry.path().join("status")) else {
            continue;
        };
        let name = field(&status, "Name:").to_owned();
        let voluntary: u64 = field(&status, "voluntary_ctxt_switches:")
            .parse()
            .unwrap_or(0);
        found.insert((thread, name), voluntary);
    }
    found
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim()
}

pub(crate) fn resident_kb(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    field(&status, "VmRSS:")
        .trim_end_matches("kB")
        .trim()
        .parse()
        .unwrap()
}
