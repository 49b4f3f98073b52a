//! `kill -9` of a daemon at random moments while several clients submit runs to it.
//!
//! Nothing that was acknowledged is forgotten, no run is committed twice, no run stays stuck, no process
//! is left, no command that may not be repeated starts twice, the repository is whole, and each
//! commit that a run claims is there.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` sets the number of kills (12 by default, 1,000 before a release);
//! `WORKERCTL_TEST_SEED=<n>` another sequence of moments. What was found is printed: `-- --nocapture`.

use crate::workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use workspace::daemon::Daemon;
use workspace::{Dice, Workspace, eventually, rounds};

/// Clients that submit at the same time.
const CLIENTS: usize = 3;

/// Runs of one round at most, so that what waits does not grow from kill to kill.
const RUNS_MAX: usize = 8;

const SKILLS: &str = r#"
  - id: read
    description: changes nothing
    interface: {outputs: [{name: r, type: markdown, destination: "workspace/reports/{run}.md"}]}
    run: "echo x >> \"$HOME/starts/read.$WORKERCTL_RUN\"; sleep 0.02; echo '# read'"
  - id: once
    description: changes nothing, and may not be repeated
    idempotent: false
    run: "echo x >> \"$HOME/starts/once.$WORKERCTL_RUN\"; sleep 0.02"
  - id: write
    description: changes one file of its own
    mutating: true
    interface: {outputs: [{name: r, type: markdown, destination: "notes/{run}.md"}]}
    run: |
      echo x >> "$HOME/starts/write.$WORKERCTL_RUN"
      echo '# begun' > {r}; sleep 0.02; echo '# done' >> {r}
    verification: [{command: "grep -q done {r}"}]
    hooks: {post_tools: ["cat > /dev/null"], post_commit: ["cat > /dev/null"]}
  - id: rewrite
    description: changes a file that others change too
    mutating: true
    run: |
      echo x >> "$HOME/starts/rewrite.$WORKERCTL_RUN"
      echo "$WORKERCTL_RUN" >> shared.txt; sleep 0.02
    verification: [{command: "test -s shared.txt"}]
  - id: repeat
    description: may be repeated
    mutating: true
    idempotent: true
    run: |
      echo x >> "$HOME/starts/repeat.$WORKERCTL_RUN"
      sleep 0.02; echo "$WORKERCTL_RUN" >> shared.txt
  - id: retry
    description: its first attempt leaves a draft and fails its check
    retry: {max_attempts: 5, backoff: 10ms}
    interface: {outputs: [{name: r, type: markdown, destination: "workspace/reports/{run}.md"}]}
    run: |
      echo x >> "$HOME/starts/retry.$WORKERCTL_RUN"
      test ! -e "$TMPDIR/left" || exit 9
      echo x > "$TMPDIR/left"
      if [ "$WORKERCTL_ATTEMPT" = 1 ]; then echo '# draft' >> {r}; else echo '# read' >> {r}; fi
      sleep 0.02
    verification: [{command: 'test "$WORKERCTL_ATTEMPT" -ge 2'}]
  - id: merge
    description: merges a branch of its own
    mutating: true
    run: |
      echo x >> "$HOME/starts/merge.$WORKERCTL_RUN"
      set -e
      git switch -q -c side; mkdir -p merged; echo x > "merged/$WORKERCTL_RUN"
      git add merged; git commit -q -m side; git switch -q -
      git merge -q --no-ff --no-edit side; sleep 0.02
      mkdir -p merges; echo x > "merges/$WORKERCTL_RUN.md"
"#;

const NAMES: [&str; 7] = [
    "read", "once", "write", "rewrite", "repeat", "retry", "merge",
];

/// After so many kills a daemon is left alone until everything is done.
const CATCH_UP_EVERY: usize = 50;

/// What was acknowledged, by run.
type Acknowledged = Mutex<BTreeMap<String, &'static str>>;

/// Submits until the round is over.
fn submit(workspace: &Workspace, seed: u64, round: &Round, acknowledged: &Acknowledged) {
    let mut dice = Dice(seed);
    while !round.over.load(Ordering::Relaxed) {
        if round.begun.fetch_add(1, Ordering::Relaxed) >= RUNS_MAX {
            break;
        }
        let name = NAMES[usize::try_from(dice.below(NAMES.len() as u64)).unwrap()];
        let done = workspace.run(&["run", "--no-wait", name]);
        if done.code == 0 {
            let run = done.stdout.trim().to_owned();
            acknowledged.lock().unwrap().insert(run, name);
        } else if !round.over.load(Ordering::Relaxed) && done.code != 7 {
            panic!("refused: {done:?}");
        }
    }
}

#[derive(Default)]
struct Round {
    over: AtomicBool,
    begun: AtomicUsize,
}

fn one_kill(workspace: &Workspace, dice: &mut Dice, acknowledged: &Acknowledged) -> Duration {
    let daemon = Daemon::start(workspace);
    let ready_after = daemon.ready_after;
    let round = Round::default();
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let seed = dice.below(u64::MAX >> 1);
            let round = &round;
            scope.spawn(move || submit(workspace, seed, round, acknowledged));
        }
        // The moment is what varies: in the middle of whatever is under way then.
        std::thread::sleep(Duration::from_micros(dice.below(600_000)));
        round.over.store(true, Ordering::Relaxed);
        daemon.kill();
    });
    ready_after
}

fn starts(workspace: &Workspace, name: &str, run: &str) -> usize {
    let path = workspace.home.join("starts").join(format!("{name}.{run}"));
    std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// Asserts of one run what holds for every run; answers its outcome.
fn check_run(workspace: &Workspace, run: &str, summary: &Value, commits: &[String]) -> String {
    let name = summary["skill"]["skill"].as_str().unwrap();
    let outcome = summary["outcome"]["kind"].as_str();
    let outcome = outcome.unwrap_or_else(|| panic!("{run} is stuck: {summary}"));
    let started = starts(workspace, name, run);
    match name {
        "once" | "write" | "rewrite" | "merge" => {
            assert!(started <= 1, "{run} ran {started} times: {summary}");
        }
        "retry" => assert!(started <= 8, "{run} ran {started} times: {summary}"),
        _ => assert!(started <= 4, "{run} ran {started} times: {summary}"),
    }
    if let Some(commit) = summary["commit"].as_str() {
        workspace.git(&["cat-file", "-e", commit]);
        assert!(commits.iter().any(|other| other == run), "{run}: {summary}");
    } else {
        let committed = commits.iter().any(|other| other == run);
        assert!(
            !committed,
            "{run} has a commit that it does not know: {summary}"
        );
    }
    if matches!(name, "read" | "retry") {
        let report = workspace.read(&format!("workspace/reports/{run}.md"));
        let expected = (outcome == "succeeded").then_some("# read\n");
        assert_eq!(report.as_deref(), expected, "{run}: {summary}");
    }
    if outcome == "succeeded" {
        assert!(started >= 1, "{run} never ran: {summary}");
        let mutating = !matches!(name, "read" | "once" | "retry");
        assert_eq!(summary["commit"].is_string(), mutating, "{summary}");
    }
    outcome.to_owned()
}

/// Asserts what holds once everything has come to rest.
fn check_all(workspace: &Workspace, acknowledged: &BTreeMap<String, &'static str>) {
    let runs = workspace.runs();
    let lost: Vec<_> = acknowledged
        .keys()
        .filter(|run| !runs.contains_key(*run))
        .collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    let commits = workspace.committed_runs();
    let distinct: BTreeSet<_> = commits.iter().collect();
    assert_eq!(distinct.len(), commits.len(), "a run was committed twice");
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for (run, summary) in &runs {
        let outcome = check_run(workspace, run, summary, &commits);
        let code = summary["outcome"]["failure"]["code"].as_str().unwrap_or("");
        *outcomes.entry(format!("{outcome} {code}")).or_default() += 1;
        if outcome == "unknown" {
            let note = ["resolve", run, "--as", "failed", "--note", "after a kill"];
            workspace.run(&note).expect_code(0);
        }
    }
    let named = runs
        .values()
        .filter(|summary| summary["outcome"]["kind"] == "unknown");
    println!(
        "{} runs, {} acknowledged, 0 lost; {} commits, none twice; {} unknown, all resolved; {outcomes:?}",
        runs.len(),
        acknowledged.len(),
        commits.len(),
        named.count()
    );
    workspace.git(&["fsck", "--strict"]);
    check_tree(workspace, &runs);
}

/// Asserts that each commit holds its own run's change and nothing else, and that the work tree holds
/// what is committed and the reports of runs that commit nothing.
fn check_tree(workspace: &Workspace, runs: &BTreeMap<String, Value>) {
    for (run, summary) in runs {
        let Some(commit) = summary["commit"].as_str() else {
            continue;
        };
        let paths = workspace.git(&["show", "--format=", "--name-only", commit]);
        let own = match summary["skill"]["skill"].as_str().unwrap() {
            "write" => format!("notes/{run}.md"),
            "merge" => {
                workspace.git(&["cat-file", "-e", &format!("{commit}:merged/{run}")]);
                format!("merges/{run}.md")
            }
            _ => "shared.txt".to_owned(),
        };
        assert_eq!(paths.trim(), own, "{summary}");
    }
    let status = workspace.git(&["status", "--porcelain", "-uall"]);
    for line in status.lines() {
        let report = line.strip_prefix("?? workspace/reports/");
        let run = report.and_then(|name| name.strip_suffix(".md"));
        let known = run.and_then(|run| runs.get(run)).is_some();
        assert!(known, "left in the work tree: {line}\nof\n{status}");
    }
}

#[test]
fn kills_at_random_moments_lose_and_repeat_nothing() {
    let workspace = Workspace::with_skills(SKILLS);
    std::fs::create_dir(workspace.home.join("starts")).unwrap();
    workspace.write("shared.txt", "begin\n");
    workspace.write("notes/README.md", "# Notes\n");
    workspace.commit_all("more");
    let seed = std::env::var("WORKERCTL_TEST_SEED").ok();
    let mut dice = Dice(seed.and_then(|seed| seed.parse().ok()).unwrap_or(17));
    let acknowledged = Acknowledged::default();
    let mut ready = Vec::new();
    let kills = rounds(12);
    let began = Instant::now();
    for kill in 1..=kills {
        ready.push(one_kill(&workspace, &mut dice, &acknowledged));
        // Clients ask for more than a daemon does that is killed all the time.
        if kill % CATCH_UP_EVERY == 0 {
            let daemon = Daemon::start(&workspace);
            workspace.wait_until_idle();
            daemon.stop();
        }
    }
    let daemon = Daemon::start(&workspace);
    ready.push(daemon.ready_after);
    workspace.wait_until_idle();
    ready.sort();
    let at = |percent: usize| ready[(ready.len() - 1) * percent / 100];
    println!(
        "{kills} kills in {:?}; ready after {:?} (median), {:?} (p99), {:?} (most)",
        began.elapsed(),
        at(50),
        at(99),
        at(100)
    );
    check_all(&workspace, &acknowledged.into_inner().unwrap());
    let pid = u32::try_from(daemon.pid().as_raw_nonzero().get()).unwrap();
    eventually("only the daemon is left", || {
        workspace
            .processes()
            .iter()
            .all(|(left, _)| *left == pid)
            .then_some(())
    });
    daemon.stop();
    workspace.expect_no_process();
}
