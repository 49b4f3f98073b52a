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
    let before = switches(pid);
    std::thread::sleep(Duration::from_secs(scale.idle_seconds));
    let after = switches(pid);
    let resident_mb = resident_kb(pid) / 1024.0;
    daemon.end();
    report.add(
        "idle, resident memory",
        resident_mb,
        " MiB",
        Target::AtMost(15.0),
        &format!("{} skills", scale.skills),
    );
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    let (mut ours, mut of_sled) = (0, 0);
    for ((thread, name), count) in &after {
        let woken = count - before.get(&(*thread, name.clone())).unwrap_or(&0);
        if name.starts_with(OF_SLED) {
            of_sled += woken;
        } else {
            ours += woken;
        }
        if woken > 0 {
            *by_name.entry(name.clone()).or_default() += woken;
        }
    }
    let told: Vec<String> = by_name
        .iter()
        .map(|(name, woken)| format!("{name} {woken}"))
        .collect();
    // The tick wakes the loop, the thread that looks through the definitions, and the daemon that hears of it.
    let ticks = 1 + scale.idle_seconds / 30;
    report.add(
        &format!(
            "idle, context switches of our threads in {} s",
            scale.idle_seconds
        ),
        ours as f64,
        "",
        Target::AtMost(ticks as f64 * 12.0),
        &told.join(", "),
    );
    report.add(
        "idle, context switches of sled's threads a second",
        of_sled as f64 / scale.idle_seconds as f64,
        "",
        Target::None,
        "",
    );
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

fn resident_kb(pid: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    field(&status, "VmRSS:")
        .trim_end_matches("kB")
        .trim()
        .parse()
        .unwrap()
}
