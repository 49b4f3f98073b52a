//! What many skills cost: finding and reading them, and handing them out over the Model Context Protocol.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use workerctl::catalog::{Catalog, Lookup};
use workerctl::engine::definitions::{self, Definitions};

use crate::Scale;
use crate::idle::resident_kb;
use crate::limits::{median, processor_seconds, processor_seconds_of};
use crate::report::{Report, Target};
use crate::speaking::{Spoken, call_of};
use crate::workspace::Workspace;

/// Where the skills lie.
const ROOT: &str = ".claude/skills";

/// Bytes of a skill and of its description, at the tenths of real ones: the lengths that 221 published skills of
/// fourteen repositories have.
const FILE_BYTES: [usize; 11] = [
    600, 1_800, 2_700, 3_600, 4_600, 5_600, 6_700, 7_900, 9_400, 11_500, 26_000,
];
const DESCRIPTION_BYTES: [usize; 11] = [40, 90, 130, 170, 200, 240, 290, 360, 460, 630, 1_020];

/// Starts and readings of which the middle one counts.
const ROUNDS: usize = 7;

/// Calls whose time is taken one by one.
const CALLS: usize = 4_000;

/// Calls that are sent before the first answer is read.
const AT_ONCE: usize = 64;

/// wave-skill-tool.md: "Skill discovery initialization: < 500ms", and mcp-skill-tool.md: "Discovery Time: <1 second for
/// initial scan".
const DISCOVERY_MS: f64 = 500.0;

/// mcp-skill-tool.md: "Refresh Time: <1 second for 30s refresh cycle".
const REFRESH_MS: f64 = 1_000.0;

/// wave-skill-tool.md: "Individual skill loading: < 100ms", and mcp-skill-tool.md: "Lookup Time: <100ms per tool
/// invocation". What is wanted here is far less.
const LOADING_MS: f64 = 0.5;

/// wave-skill-tool.md: "Tool description generation: < 50ms".
const DESCRIPTION_MS: f64 = 50.0;

/// wave-skill-tool.md: "Error message generation: < 10ms".
const ERROR_MS: f64 = 10.0;

/// wave-skill-tool.md: "Metadata cache: < 10MB for 1000 skills", and mcp-skill-tool.md: "Memory: <10MB for typical skill
/// count (<100 skills)".
const KEPT_MIB: f64 = 10.0;

/// wave-skill-tool.md: "Content cache: < 50MB for 100 loaded skills".
const LOADED_MIB: f64 = 50.0;

/// The number of skills that the figures of one process are wanted for.
const USUAL: usize = 1_000;

pub(crate) fn measure(scale: Scale, report: &mut Report) {
    let none = served_kb(&workspace(0), 0).resident;
    for count in scale.skills_found {
        let workspace = workspace(*count);
        found(&workspace, *count, report);
        spoken(&workspace, *count, none, report);
    }
    at_once(report);
}

/// A length in the way that real ones are spread, for the `at`-th of many.
fn spread(tenths: &[usize; 11], at: usize) -> usize {
    // A stride that shares no factor with 1,000 visits each thousandth once.
    let thousandth = (at * 617) % 1_000;
    let (low, high) = (tenths[thousandth / 100], tenths[thousandth / 100 + 1]);
    low + (high - low) * (thousandth % 100) / 100
}

fn filled(words: &str, bytes: usize) -> String {
    let mut text = words.repeat(bytes / words.len() + 1);
    text.truncate(bytes);
    text.truncate(text.trim_end().len());
    text
}

fn page(at: usize) -> String {
    let description = filled(
        "Use this when the figures of a week are to be put together, or when somebody asks what has changed. ",
        spread(&DESCRIPTION_BYTES, at),
    );
    let mut text = format!(
        "---\nname: skill-{at:05}\ndescription: {description}\nallowed-tools: Read, Grep, Bash\nmetadata:\n  version: \"1.{at}\"\n---\n\n# Skill {at}\n\n"
    );
    let wanted = spread(&FILE_BYTES, at * 7 + 3);
    let mut section = 0;
    while text.len() < wanted {
        section += 1;
        let _ = write!(
            text,
            "## Step {section}\n\n{}\n\n```sh\ngit log --oneline --since=1.week | head -n {section}\n```\n\n",
            filled(
                "Read what stands there before anything is changed, then say what it is. ",
                400
            )
        );
    }
    text
}

fn path_of(at: usize) -> String {
    format!("{ROOT}/skill-{at:05}/SKILL.md")
}

fn workspace(count: usize) -> Workspace {
    let this = Workspace::new(2);
    for at in 0..count {
        this.write(&path_of(at), &page(at));
    }
    this
}

/// The middle of some rounds: seconds on the clock, and of processor time over all threads.
fn timed(rounds: usize, mut something: impl FnMut()) -> (f64, f64) {
    let processor = processor_seconds()[0];
    let mut clock = Vec::new();
    for _ in 0..rounds {
        let begun = Instant::now();
        something();
        clock.push(begun.elapsed().as_secs_f64());
    }
    let used = (processor_seconds()[0] - processor) / rounds as f64;
    (median(clock), used)
}

/// In this process: discovery, look-ups, and looking again.
fn found(workspace: &Workspace, count: usize, report: &mut Report) {
    let root = workspace.root();
    let load = || definitions::load(&root, &BTreeMap::new());
    let catalog = load();
    assert_eq!(catalog.root_skills.skills.len(), count);
    let (clock, processor) = timed(ROUNDS, || drop(load()));
    let most = if count > USUAL { 300.0 } else { DISCOVERY_MS };
    let told = format!("{:.1} ms of processor time", processor * 1e3);
    let name = |what: &str| format!("{what}, {count} skills");
    report.add(
        &name("discovery"),
        clock * 1e3,
        " ms",
        Target::AtMost(most),
        &told,
    );
    let per_name = look_ups(&catalog, count);
    report.add(&name("a look-up"), per_name * 1e6, " µs", Target::None, "");
    let (clock, processor) = timed(ROUNDS, || assert!(!catalog.is_stale()));
    let told = format!("{:.1} ms of processor time", processor * 1e3);
    report.add(
        &name("a look that finds no change"),
        clock * 1e3,
        " ms",
        Target::AtMost(REFRESH_MS),
        &told,
    );
    refreshed(
        workspace,
        &name("a look that finds a change, until it is read"),
        report,
    );
}

/// How long a look takes that finds one changed skill and reads what there is anew.
fn refreshed(workspace: &Workspace, what: &str, report: &mut Report) {
    let kept = Definitions::load(&workspace.root(), &workspace.root(), &BTreeMap::new());
    let mut clock = Vec::new();
    for round in 0..ROUNDS {
        replace(
            &workspace.root().join(path_of(0)),
            &page(0).replace("# Skill 0", &format!("# Look {round}")),
        );
        let begun = Instant::now();
        assert!(kept.reload_if_stale().is_some());
        clock.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    report.add(what, median(clock), " ms", Target::AtMost(REFRESH_MS), "");
}

/// Seconds that finding a skill by its name takes.
fn look_ups(catalog: &Catalog, count: usize) -> f64 {
    let names: Vec<String> = (0..1_000)
        .map(|n| format!("Skill-{:05}", n * 7 % count))
        .collect();
    let (clock, _) = timed(ROUNDS, || {
        for name in &names {
            assert!(matches!(catalog.find(name), Lookup::OfRoot(_)));
        }
    });
    clock / names.len() as f64
}

/// What a server holds, in KiB.
struct Held {
    /// After `tools/list` was answered.
    resident: f64,
    /// After so many skills were handed out, too.
    loaded: f64,
}

fn served_kb(workspace: &Workspace, load: usize) -> Held {
    let mut server = Spoken::start(workspace);
    server.ask("tools/list", &json!({}));
    let resident = resident_kb(server.pid());
    for at in 0..load {
        assert!(
            server
                .load(&format!("skill-{at:05}"))
                .starts_with("Loading")
        );
    }
    let loaded = resident_kb(server.pid());
    server.leave();
    Held { resident, loaded }
}

/// Over standard input and output, with the real program.
fn spoken(workspace: &Workspace, count: usize, none_kb: f64, report: &mut Report) {
    let name = |what: &str| format!("{what}, {count} skills");
    // A figure that is wanted for the usual number of skills only.
    let wanted = |most: f64| {
        if count == USUAL {
            Target::AtMost(most)
        } else {
            Target::None
        }
    };
    let started: Vec<f64> = (0..ROUNDS * 3)
        .map(|_| {
            let server = Spoken::start(workspace);
            let after = server.answered_after.as_secs_f64() * 1e3;
            server.leave();
            after
        })
        .collect();
    let what = name("from the start of the process to the answer to `initialize`");
    report.add(&what, median(started), " ms", wanted(30.0), "");
    let held = served_kb(workspace, count.min(100));
    let mib = |kb: f64| kb / 1024.0;
    let what = name("resident memory of the server");
    report.add(&what, mib(held.resident), " MiB", wanted(20.0), "");
    let most = if count <= USUAL {
        Target::AtMost(KEPT_MIB)
    } else {
        Target::None
    };
    let what = name("of it for what is kept of the skills");
    report.add(&what, mib(held.resident - none_kb), " MiB", most, "");
    let what = name("more after 100 of them were loaded");
    report.add(
        &what,
        mib(held.loaded - held.resident),
        " MiB",
        Target::AtMost(LOADED_MIB),
        "",
    );
    calls(workspace, count, report);
}

/// The times of many calls, and how long a change takes to be told.
fn calls(workspace: &Workspace, count: usize, report: &mut Report) {
    let name = |what: &str| format!("{what}, {count} skills");
    let mut server = Spoken::start(workspace);
    let begun = Instant::now();
    server.ask("tools/list", &json!({}));
    let first = begun.elapsed().as_secs_f64() * 1e3;
    report.add(
        &name("the first `tools/list`"),
        first,
        " ms",
        Target::None,
        "waits for discovery",
    );
    let list = samples(server.pid(), 100, &mut || {
        drop(server.ask("tools/list", &json!({})));
    });
    report.add(
        &name("`tools/list` again"),
        list.median,
        " ms",
        Target::AtMost(DESCRIPTION_MS),
        &list.told(),
    );
    let mut at = 0;
    let one = samples(server.pid(), CALLS, &mut || {
        at += 1;
        server.load(&format!("skill-{:05}", at * 7 % count));
    });
    report.add(
        &name("a call of `skill`, p99"),
        one.p99,
        " ms",
        Target::AtMost(LOADING_MS),
        &one.told(),
    );
    let missed = samples(server.pid(), 200, &mut || {
        assert!(server.load("nothing").contains("not found"));
    });
    report.add(
        &name("a call for a name that is not there, p99"),
        missed.p99,
        " ms",
        Target::AtMost(ERROR_MS),
        &missed.told(),
    );
    changes(
        workspace,
        &mut server,
        &name("from a changed file to news of it"),
        report,
    );
    server.leave();
}

fn changes(workspace: &Workspace, server: &mut Spoken, what: &str, report: &mut Report) {
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        // Until the server has settled, a change is gathered together with the one before.
        std::thread::sleep(Duration::from_millis(300));
        let begun = Instant::now();
        replace(
            &workspace.root().join(path_of(0)),
            &page(0).replace("# Skill 0", &format!("# Round {round}")),
        );
        server.hear_of_change();
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        assert!(
            server
                .load("skill-00000")
                .contains(&format!("# Round {round}"))
        );
    }
    let slowest = times.iter().copied().fold(0.0, f64::max);
    let told = format!("the slowest of {ROUNDS}");
    report.add(what, slowest, " ms", Target::AtMost(REFRESH_MS), &told);
}

/// Writes a file as editors do.
fn replace(path: &Path, text: &str) {
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, text).unwrap();
    std::fs::rename(fresh, path).unwrap();
}

/// Times of one thing that was done often, in milliseconds.
struct Samples {
    median: f64,
    p99: f64,
    slowest: f64,
    /// The server's processor time for one.
    processor: f64,
}

impl Samples {
    fn told(&self) -> String {
        format!(
            "median {:.3}, p99 {:.3}, slowest {:.3}, {:.3} ms of the server's processor time",
            self.median, self.p99, self.slowest, self.processor
        )
    }
}

fn samples(pid: u32, rounds: usize, something: &mut dyn FnMut()) -> Samples {
    let processor = processor_seconds_of(pid);
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let begun = Instant::now();
            something();
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    let used = (processor_seconds_of(pid) - processor) * 1e3 / rounds as f64;
    times.sort_by(f64::total_cmp);
    Samples {
        median: times[rounds / 2],
        p99: times[(rounds * 99 / 100).min(rounds - 1)],
        slowest: times[rounds - 1],
        processor: used,
    }
}

/// Many calls at once, without and with roots in which pipes stand that nobody writes.
fn at_once(report: &mut Report) {
    let workspace = workspace(100);
    for hanging in [false, true] {
        if hanging {
            pipes(&workspace);
        }
        let mut server = Spoken::start(&workspace);
        server.ask("tools/list", &json!({}));
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            for at in 0..AT_ONCE {
                server.send("tools/call", &call_of(&format!("skill-{at:05}")));
            }
            for _ in 0..AT_ONCE {
                assert!(server.receive()["result"]["content"][0]["text"].is_string());
            }
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        server.leave();
        let beside = if hanging {
            "pipes among the skills"
        } else {
            ""
        };
        let what = format!("{AT_ONCE} calls at once, until the last answer");
        report.add(&what, median(times), " ms", Target::AtMost(100.0), beside);
    }
}

/// A pipe as a root, and one as the file of a skill.
fn pipes(workspace: &Workspace) {
    let root = workspace.root();
    for path in [
        ".agents/skills",
        ".wave/skills/pipe/SKILL.md",
        ".claude/skills/pipe/SKILL.md",
    ] {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, path, fifo, mode, 0).unwrap();
    }
}
