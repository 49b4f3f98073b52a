//! What `retention` keeps and what it does not, with the real program and the real store.
//!
//! `WORKERCTL_TEST_ROUNDS=<n>` sets the number of histories and of kills (5 and 15 by default).

mod clock;
mod past;
use crate::workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use past::{DAY_MS, PastRun, Sample, files, is_there, put, store, unknown};
use rustix::process::Signal;
use serde_json::json;
use workerctl::clock::{Clock, FakeClock};
use workerctl::engine::{Engine, EngineOptions, Host};
use workerctl::model::schedule::{ScheduleState, SlotRow, SlotStatus};
use workerctl::model::{News, Notice, Notices, RunId, Timestamp};
use workerctl::protocol::ForgetRequest;
use workerctl::store::{Batch, Store, Write};
use workspace::daemon::Daemon;
use workspace::disk::Small;
use workspace::{Dice, Workspace, eventually, rounds};

const SKILLS: &str =
    "  - {id: one, description: d, run: 'true'}\n  - {id: two, description: d, run: 'false'}\n";

/// Now, as the machine's clock says.
fn now() -> Timestamp {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

/// A workspace whose newest two runs of each skill stay.
fn with_settings(retention: &str) -> Workspace {
    let workspace = Workspace::with_skills(SKILLS);
    workspace.write(
        "workerctl.yaml",
        &format!("retention: {retention}\nnotify: {{on_failure: 'exit 1'}}\n"),
    );
    workspace
}

/// The store has no fault; threads of the past are no real ones.
fn is_sound(workspace: &Workspace) {
    let done = workspace.run(&["store", "verify"]);
    let is_clean = !done.stdout.contains("no record names");
    assert!(done.stdout.starts_with("✓ sound") && is_clean, "{done:?}");
}

fn gone(workspace: &Workspace, runs: &[PastRun]) -> Vec<usize> {
    let store = store(workspace);
    let left = runs.iter().enumerate();
    left.filter(|(_, past)| !is_there(workspace, &store, past))
        .map(|(nth, _)| nth)
        .collect()
}

#[test]
fn what_is_over_goes_with_journal_and_thread_and_is_counted_for_ever() {
    let workspace = with_settings("{runs_min: 2}");
    let (one, two) = (Sample::of(&workspace, "one"), Sample::of(&workspace, "two"));
    let now = now();
    let day = |sample: &Sample, days: u64| sample.before(now, days * DAY_MS, |_| {});
    let decided = |days: u64| one.before(now, days * DAY_MS, |run| run.decided = true);
    let runs = vec![
        // The newest two of each skill, the samples among them.
        day(&one, 200),
        day(&two, 300), // 1: the second newest of its skill
        day(&two, 301), // 2
        day(&one, 89 + 120),
        day(&one, 89),                          // 4: newer than the two above
        decided(364),                           // 5
        decided(366),                           // 6: goes
        one.before(now, 399 * DAY_MS, unknown), // 7: nobody has resolved it
        one.before(now, 398 * DAY_MS, |_| {}),  // 8: is to be told
    ];
    let runs = put(&workspace, runs, 10_000);
    let mut notices = Notices::new(runs[8].summary.skill.clone(), None);
    notices.add(Notice {
        run: Some(runs[8].run),
        ..Notice::of(News::Failed, now)
    });
    notices.undelivered("it was out of order", None, now);
    let writes = vec![Write::Notices(Box::new(notices))];
    store(&workspace).commit(&Batch { writes }).unwrap();

    let wide = ["stats", "--since", "2020-01-01"];
    let counted = workspace.json(&wide);
    let shown = workspace.json(&["store", "gc", "--dry-run"]);
    assert_eq!(gone(&workspace, &runs), [0_usize; 0]);
    assert_eq!(
        (&shown["run_count"], &shown["early_run_count"]),
        (&json!(4), &json!(0))
    );
    assert_eq!(shown["thread_bytes"], 4 * 10_002);

    let done = workspace.run(&["store", "gc"]).expect_code(0);
    assert!(done.stdout.contains("4 runs deleted"), "{done:?}");
    assert_eq!(gone(&workspace, &runs), [0, 2, 3, 6]);
    for past in [1, 4, 5, 7, 8].map(|nth| &runs[nth]) {
        assert!(files(&workspace, past).iter().all(|file| file.exists()));
    }
    assert_eq!(workspace.json(&wide), counted);
    let refused = workspace.run(&["show", &runs[0].run.to_string(), "--json"]);
    assert_eq!(refused.refusal(), "run_not_found");
    is_sound(&workspace);
    let again = workspace.json(&["store", "gc"]);
    assert_eq!(again["run_count"], 0);
}

#[test]
fn a_kill_at_any_moment_forgets_no_run_by_halves_and_none_that_stays() {
    let workspace = with_settings("{runs_min: 2}");
    let sample = Sample::of(&workspace, "one");
    let now = now();
    let past = (0..400_u64).map(|n| sample.before(now, (91 * DAY_MS) + n * 60_000, |_| {}));
    let stay = (0..20_u64).map(|n| sample.before(now, (50 * DAY_MS) + n * 60_000, |_| {}));
    let over = put(&workspace, past.collect(), 100);
    let stay = put(&workspace, stay.collect(), 100);
    let counted = workspace.json(&["stats", "--since", "2020-01-01"]);
    let (mut dice, mut killed) = (Dice(7), 0);
    for _ in 0..rounds(15) {
        let mut gc = workspace.start(&mut workspace.workerctl(&["store", "gc"]));
        let was_early = !gc.ends_within(Duration::from_millis(dice.below(400)));
        if was_early {
            gc.signal(Signal::KILL);
            killed += 1;
        }
        drop(gc);
        gone(&workspace, &over);
        assert_eq!(gone(&workspace, &stay), [0_usize; 0]);
    }
    workspace.run(&["store", "gc"]).expect_code(0);
    assert_eq!(gone(&workspace, &over).len(), 400, "{killed} kills");
    assert_eq!(gone(&workspace, &stay), [0_usize; 0]);
    assert_eq!(workspace.json(&["stats", "--since", "2020-01-01"]), counted);
    is_sound(&workspace);
}

/// An engine in this process, by a clock of its own.
fn engine_by(workspace: &Workspace, clock: Arc<dyn Clock>) -> Engine {
    let path = std::env::var("PATH").unwrap();
    let home = workspace.home.display().to_string();
    let options = EngineOptions {
        workspace: workspace.root.clone(),
        state_dir: workspace.state().to_owned(),
        socket: None,
        host: Host::InProcess,
        environment: BTreeMap::from([("PATH".to_owned(), path), ("HOME".to_owned(), home)]),
    };
    Engine::start_by(options, clock).unwrap()
}

fn forget(workspace: &Workspace, at: Timestamp) -> workerctl::protocol::Forgot {
    let engine = engine_by(workspace, Arc::new(FakeClock::at(at)));
    let control = engine.control();
    let request = ForgetRequest {
        trust_clock: true,
        ..ForgetRequest::default()
    };
    let forgot = control.forget(&request).unwrap();
    control.drain().unwrap();
    engine.join().unwrap();
    forgot
}

/// The rules once more, as somebody would write them who reads the page: of all runs, not in one pass.
fn wanted(runs: &[PastRun], now: Timestamp) -> BTreeSet<RunId> {
    let mut stays = BTreeSet::new();
    for past in runs {
        let line = &past.summary;
        let newer = runs
            .iter()
            .filter(|other| other.summary.skill == line.skill && other.run > past.run);
        let ended = line.finished_at.unwrap();
        let is_within = |days: u64| now.millis_since(ended) <= days * DAY_MS;
        let is_unknown = line.outcome.as_ref().unwrap().name() == "unknown";
        if newer.count() < 3 || is_within(30) || is_unknown || (line.decided && is_within(60)) {
            stays.insert(past.run);
        }
    }
    stays
}

#[test]
fn random_histories_lose_nothing_that_the_rules_keep() {
    let settings = "{runs: 30d, runs_min: 3, approvals: 60d}";
    for round in 0..rounds(5) {
        let workspace = with_settings(settings);
        let mut dice = Dice(11 + round as u64);
        let samples = [Sample::of(&workspace, "one"), Sample::of(&workspace, "two")];
        // Everything of the history is later than the samples, which are left out of it.
        let base = now().plus_millis(1_000 * DAY_MS);
        let mut runs = Vec::new();
        for n in 0..60 + dice.below(60) {
            let ago_ms = dice.below(90) * DAY_MS + n;
            let kind = dice.below(6);
            let sample = &samples[usize::try_from(dice.below(2)).unwrap()];
            runs.push(sample.before(base, ago_ms, |run| match kind {
                0 => unknown(run),
                1 => run.decided = true,
                _ => {}
            }));
        }
        let mut runs = put(&workspace, runs, 10);
        runs.sort_by_key(|past| past.run);
        for later in [1, 20, 40] {
            let at = base.plus_millis(later * DAY_MS);
            let kept = wanted(&runs, at);
            forget(&workspace, at);
            let store = store(&workspace);
            runs.retain(|past| {
                let is_there = is_there(&workspace, &store, past);
                assert_eq!(is_there, kept.contains(&past.run), "round {round} {past:?}");
                is_there
            });
        }
    }
}

#[test]
fn a_clock_that_is_behind_is_told_and_forgets_nothing() {
    let workspace = with_settings("{runs_min: 0}");
    let sample = Sample::of(&workspace, "one");
    let now = now();
    let over = (0..9_u64).map(|n| sample.before(now, 200 * DAY_MS + n, |_| {}));
    let over = put(&workspace, over.collect(), 10);
    let to_come = sample.before(now.plus_millis(3 * DAY_MS), 0, |_| {});
    put(&workspace, vec![to_come], 10);
    let done = workspace.run(&["store", "gc"]).expect_code(1);
    assert!(
        done.stdout.contains("the clock precedes the newest record"),
        "{done:?}"
    );
    assert_eq!(gone(&workspace, &over), [0_usize; 0]);
}

#[test]
fn threads_beyond_their_bytes_take_the_oldest_runs_with_them() {
    let workspace = with_settings("{runs_min: 1, threads: 1MiB}");
    let settings = workspace.read("workerctl.yaml").unwrap();
    workspace.write(
        "workerctl.yaml",
        &format!("output_bytes_max: 65536\n{settings}"),
    );
    let sample = Sample::of(&workspace, "one");
    let now = now();
    let runs = (1..=9_u64).map(|days| {
        sample.before(now, days * DAY_MS, |run| {
            // Its commit can still land.
            run.kept_commit = (days == 6).then(|| "0".repeat(40));
        })
    });
    let runs = put(&workspace, runs.collect(), 300_000);
    let shown = workspace.json(&["store", "gc"]);
    assert_eq!(shown["early_run_count"], shown["run_count"]);
    // Three fit beside the samples' own small threads; what is younger than two days stays whatever it takes.
    assert_eq!(gone(&workspace, &runs), [3, 4, 6, 7, 8]);
}

/// Rows of a schedule, one a day from so many days ago on, and its state.
fn rows_of(schedule: &str, now: Timestamp, days: std::ops::Range<u64>) -> Vec<Write> {
    let state = ScheduleState::new("d".to_owned(), now);
    let row = |day| {
        let at = now.minus_millis(day * DAY_MS);
        Write::Slot {
            schedule: schedule.to_owned(),
            row: SlotRow::one(at, SlotStatus::Missed, at),
        }
    };
    let mut writes: Vec<Write> = days.map(row).collect();
    writes.push(Write::Schedule {
        id: schedule.to_owned(),
        state: Box::new(state),
    });
    writes
}

#[test]
fn a_schedule_that_is_defined_no_more_goes_when_its_last_row_does() {
    let workspace = Workspace::with_skills(
        "  - {id: one, description: d, run: 'true', schedule: {cron: '0 0 1 1 *'}}\n",
    );
    workspace.run(&["run", "one"]).expect_code(0);
    let now = now();
    let mut writes = rows_of("w/gone", now, 366..2_000);
    writes.extend(rows_of("w/young", now, 300..500));
    writes.extend(rows_of("w/one", now, 366..370));
    store(&workspace).commit(&Batch { writes }).unwrap();
    let gc = || workspace.json(&["store", "gc"])["schedules"].clone();
    // A definition that cannot be read may be that of any schedule.
    workspace.write("workers/v/worker.yaml", "worker: [\n");
    assert_eq!(gc(), json!([]));
    std::fs::remove_dir_all(workspace.root.join("workers/v")).unwrap();
    assert_eq!(gc(), json!(["w/gone"]));
    let store = store(&workspace);
    let mut left = Vec::new();
    store
        .schedules(&mut |id, _| left.push(id.to_owned()))
        .unwrap();
    assert_eq!(left, ["w/one", "w/young"]);
    let rows = |id: &str| {
        let mut rows = 0;
        let mut count = |_| {
            rows += 1;
            std::ops::ControlFlow::Continue(())
        };
        store.slots(id, None, &mut count).unwrap();
        rows
    };
    assert_eq!(["w/gone", "w/young", "w/one"].map(rows), [0, 200, 4]);
}

#[test]
fn a_database_that_needs_little_of_its_file_is_compacted_while_nothing_runs() {
    let workspace = with_settings("{runs_min: 0}");
    let sample = Sample::of(&workspace, "one");
    let now = now();
    let over = (0..60_u64).map(|n| sample.before(now, 100 * DAY_MS + n * 1_000, |_| {}));
    let over = put(&workspace, over.collect(), 10);
    let key = |n: u64| Write::Key {
        key: format!("{n:01000}"),
        run: over[0].run,
        at: now.minus_millis(DAY_MS * 9),
    };
    let open = store(&workspace);
    for part in 0..100 {
        let writes = (0..100).map(|n| key(part * 100 + n)).collect();
        open.commit(&Batch { writes }).unwrap();
    }
    let writes = vec![Write::ForgetKeys(now)];
    open.commit(&Batch { writes }).unwrap();
    drop(open);
    let size = || {
        std::fs::metadata(workspace.state().join("store/db/db"))
            .unwrap()
            .len()
    };
    let before = size();
    assert!(before > 8 << 20, "{before}");
    let looked = workspace.state().join("forgotten");
    std::fs::remove_file(&looked).unwrap();
    let daemon = Daemon::start(&workspace);
    // The files of each run are synced a moment after it, and then is looked, and forgotten the next time.
    workspace.run(&["run", "one"]).expect_code(0);
    eventually("it is looked", || looked.exists().then_some(()));
    workspace.run(&["run", "one"]).expect_code(0);
    let is_told = || daemon.log().contains("the database was compacted");
    eventually("the database is compacted", || is_told().then_some(()));
    assert!(size() * 2 < before);
    daemon.stop();
    assert_eq!(gone(&workspace, &over).len(), 60);
    is_sound(&workspace);
}

#[test]
fn a_daemon_forgets_beside_its_work() {
    let workspace = with_settings("{runs_min: 2}");
    let sample = Sample::of(&workspace, "one");
    let now = now();
    let over = (0..100_u64).map(|n| sample.before(now, 100 * DAY_MS + n * 1_000, |_| {}));
    let over = put(&workspace, over.collect(), 100);
    // An engine has looked for what is over a moment ago, and the next one would only tomorrow.
    std::fs::remove_file(workspace.state().join("forgotten")).unwrap();
    let daemon = Daemon::start(&workspace);
    eventually("everything is forgotten", || {
        workspace.run(&["run", "one"]).expect_code(0);
        let threads = over.iter().flat_map(|past| files(&workspace, past));
        (threads.filter(|file| file.exists()).count() == 0).then_some(())
    });
    daemon.stop();
    assert_eq!(gone(&workspace, &over).len(), 100);
}

#[test]
fn without_space_the_database_stays_as_it_is_and_with_space_it_shrinks() {
    let Some(disk) = Small::create(96) else {
        return;
    };
    let workspace = Workspace::on(disk.path());
    workspace.furnish(SKILLS);
    workspace.write("workerctl.yaml", "retention: {runs_min: 0}\n");
    let sample = Sample::of(&workspace, "one");
    let now = now();
    let database = workspace.state().join("store/db/db");
    let size = || std::fs::metadata(&database).unwrap().len();
    let mut over = Vec::new();
    for part in 0..20_u64 {
        let ago_ms = |n: u64| (100 + part) * DAY_MS + n * 1_000;
        let runs = (0..200).map(|n| sample.before(now, ago_ms(n), |_| {}));
        over.extend(put(&workspace, runs.collect(), 10));
    }
    let before = size();
    assert!(
        before > 12 << 20,
        "{before} bytes are too few to be compacted"
    );
    // What their threads take would be space enough.
    for file in over.iter().flat_map(|past| files(&workspace, past)) {
        std::fs::remove_file(file).unwrap();
    }
    let ballast = disk.path().join("ballast");
    let filled = workspace
        .program("sh")
        .arg("-c")
        .arg(format!("head -c 1G /dev/zero > {}", ballast.display()))
        .output();
    assert!(!filled.unwrap().status.success());
    // What is freed of the ballast is enough to forget by, and not for another database.
    let filled = std::fs::metadata(&ballast).unwrap().len();
    let file = std::fs::File::options().write(true).open(&ballast).unwrap();
    file.set_len(filled - (3 << 20)).unwrap();
    // Open it would keep its space.
    drop(file);
    let done = workspace.run(&["store", "gc"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(
        done.stdout.contains("the database is not compacted"),
        "{done:?}"
    );
    assert_eq!(gone(&workspace, &over).len(), over.len());
    std::fs::remove_file(ballast).unwrap();
    let done = workspace.run(&["store", "gc"]).expect_code(0);
    assert!(size() * 2 < before, "{done:?}");
    is_sound(&workspace);
    workspace.run(&["run", "one"]).expect_code(0);
}
