//! What it costs that a run may change the repository: a tree before, a durable commit after, against what git
//! takes for a look at the same work tree.

use std::time::Instant;

use workerctl::model::Phase;
use workerctl::protocol::Control;

use crate::Scale;
use crate::limits::{median, wait_until};
use crate::report::{Report, Target};
use crate::workspace::{PATIENCE, Workspace, settle};
use workerctl::protocol::SubmitRequest;

/// Runs of which the middle one counts.
const RUNS: usize = 15;

/// Looks of git at the whole work tree that a run may cost, in all.
const LOOKS: f64 = 2.0;

/// What a run with a tree may take in a small repository beyond one without, in milliseconds.
const SMALL_MS: f64 = 30.0;

/// How many files a small repository has at most.
const SMALL_FILES: usize = 10_000;

pub(crate) fn measure(scale: Scale, report: &mut Report) {
    for files in scale.repository_files {
        let workspace = repository(files);
        let added = added_ms(&workspace);
        let daemon = workspace.daemon();
        let control = workspace.dial();
        let plain = whole_ms(&control, "w0/read", RUNS);
        let (_, first) = mutating_ms(&control, 1);
        let prepared = first.iter().find(|(step, _)| step == "prepared");
        let (mutating, steps) = mutating_ms(&control, RUNS);
        let status = status_ms(&workspace);
        daemon.end();
        let told: Vec<String> = steps
            .iter()
            .map(|(step, ms)| format!("{step} {ms:.0}"))
            .collect();
        report.add(
            &format!("mutating run, {files} files"),
            mutating,
            " ms",
            Target::None,
            &format!("submit to end, steps in ms: {}", told.join(", ")),
        );
        report.add(
            &format!("non-mutating run, {files} files"),
            plain,
            " ms",
            Target::None,
            "submit to end",
        );
        let first_ms = prepared.map_or(0.0, |(_, ms)| *ms);
        report.add(
            &format!("first tree against `git worktree add`, {files} files"),
            first_ms / added,
            "x",
            Target::AtMost(2.0),
            &format!("{first_ms:.0} ms of {added:.0} ms"),
        );
        let beyond = mutating - plain;
        if files <= SMALL_FILES {
            report.add(
                &format!("what a tree costs beyond a run without, {files} files"),
                beyond,
                " ms",
                Target::AtMost(SMALL_MS),
                "",
            );
        }
        report.add(
            &format!("what a tree costs against {LOOKS} `git status`, {files} files"),
            beyond / (LOOKS * status),
            "x",
            if files > SMALL_FILES {
                Target::AtMost(1.5)
            } else {
                Target::None
            },
            &format!("{beyond:.0} ms of {:.0} ms", LOOKS * status),
        );
    }
}

/// The median of looks of git at a work tree that it knows.
fn status_ms(workspace: &Workspace) -> f64 {
    let times = (0..RUNS).map(|_| {
        let begun = Instant::now();
        workspace.git(&["status", "--porcelain"]);
        begun.elapsed().as_secs_f64() * 1e3
    });
    median(times.collect())
}

/// What git takes for a second work tree. It stays: after many files were removed, ext4 looks long for a free
/// inode, and the tree that is made next would pay for that.
fn added_ms(workspace: &Workspace) -> f64 {
    let place = workspace.root().with_extension("beside");
    let place = place.to_string_lossy().into_owned();
    let begun = Instant::now();
    workspace.git(&["worktree", "add", "-q", "--detach", &place]);
    begun.elapsed().as_secs_f64() * 1e3
}

fn repository(files: usize) -> Workspace {
    let workspace = Workspace::new(2);
    workspace.worker(
        "w0",
        "  - {id: write, name: W, description: d, mutating: true, run: \"echo $WORKERCTL_RUN > changed.txt\"}\n  - {id: read, name: R, description: d, run: [\"true\"]}\n",
    );
    for file in 0..files {
        workspace.write(
            &format!("d{}/f{file}.txt", file / 100),
            &format!("file {file}\n"),
        );
    }
    workspace.write("changed.txt", "0\n");
    workspace.write(".gitignore", "workspace/\n.workerctl/\n");
    workspace.git(&["init", "-q", "-b", "main"]);
    workspace.git(&["add", "-A"]);
    workspace.git(&["commit", "-q", "-m", "all"]);
    workspace
}

fn perform(control: &dyn Control, skill: &str) -> workerctl::protocol::RunDetail {
    let request = SubmitRequest {
        skill: skill.to_owned(),
        ..SubmitRequest::default()
    };
    let run = control.submit(&request).unwrap().run.to_string();
    wait_until("the run", PATIENCE, || {
        control.run(&run).unwrap().summary.phase == Phase::Finished
    });
    let detail = control.run(&run).unwrap();
    let outcome = detail.summary.outcome.as_ref();
    assert!(
        matches!(outcome, Some(workerctl::model::Outcome::Succeeded)),
        "{outcome:?}"
    );
    settle(control);
    detail
}

fn whole_ms(control: &dyn Control, skill: &str, runs: usize) -> f64 {
    let times = (0..runs).map(|_| {
        let summary = perform(control, skill).summary;
        summary
            .finished_at
            .unwrap()
            .millis_since(summary.submitted_at) as f64
    });
    median(times.collect())
}

/// The whole, and from each event of the timeline to the next.
fn mutating_ms(control: &dyn Control, runs: usize) -> (f64, Vec<(String, f64)>) {
    let (mut whole, mut steps): (Vec<f64>, Vec<(String, Vec<f64>)>) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let detail = perform(control, "w0/write");
        assert!(detail.summary.commit.is_some(), "nothing was committed");
        let summary = &detail.summary;
        whole.push(
            summary
                .finished_at
                .unwrap()
                .millis_since(summary.submitted_at) as f64,
        );
        for (place, pair) in detail.timeline.windows(2).enumerate() {
            let [(from, _), (to, name)] = pair else {
                continue;
            };
            if place >= steps.len() {
                let name = name.split([':', ',', ';']).next().unwrap_or_default();
                steps.push((name.to_owned(), Vec::new()));
            }
            steps[place].1.push(to.millis_since(*from) as f64);
        }
    }
    let steps = steps
        .into_iter()
        .map(|(name, times)| (name, median(times)))
        .collect();
    (median(whole), steps)
}
