//! Every step of a landing, with every action of a person, and a kill.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use workerctl_landing::{Outcome, Record};

use crate::person::{ACTIONS, remove_locks};
use crate::rig::{MAIN, Orders, Running, Said, Scene, Task};

/// When the person acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// At a step of a landing that goes on, and is killed a few steps later.
    BeforeTheKill,
    /// After the kill, with the locks as they are.
    AfterTheKill,
    /// After the kill and after all locks were removed by hand.
    AfterRemovingLocks,
    /// At a step of a landing that nobody kills.
    Beside,
    /// The same, after all locks were removed by hand.
    BesideRemovingLocks,
}

const WHENS: [When; 5] = [
    When::BeforeTheKill,
    When::AfterTheKill,
    When::AfterRemovingLocks,
    When::Beside,
    When::BesideRemovingLocks,
];

/// Steps of a landing that nobody disturbs.
pub(crate) fn steps(task: Task) -> usize {
    let scene = Scene::new();
    if task == Task::Recover {
        let orders = Orders {
            kill_at: steps(Task::Land) / 2,
            ..Orders::default()
        };
        assert_eq!(Running::start(&scene, orders).wait(), Said::Killed);
    }
    let orders = Orders {
        task,
        ..Orders::default()
    };
    let said = Running::start(&scene, orders).wait();
    let Said::Done(text) = said else {
        unreachable!("{said:?}")
    };
    text.split(' ').next().unwrap().parse().unwrap()
}

/// `None`: all of them.
pub(crate) fn rounds() -> Option<usize> {
    match std::env::var("WORKERCTL_TEST_ROUNDS") {
        Ok(all) if all == "all" => None,
        Ok(number) => Some(number.parse().unwrap()),
        Err(_) => Some(40),
    }
}

/// The numbers below `count`, or so many of them as there are rounds, spread by a seed.
pub(crate) fn chosen(count: usize, seed: u64) -> Vec<usize> {
    match rounds() {
        Some(rounds) => chosen_of(count, rounds, seed),
        None => (0..count).collect(),
    }
}

fn chosen_of(count: usize, rounds: usize, seed: u64) -> Vec<usize> {
    let mut dice = seed;
    let mut roll = || {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        usize::try_from(dice % count as u64).unwrap()
    };
    (0..rounds.min(count)).map(|_| roll()).collect()
}

/// Runs cases on as many threads as there are processors; fails with all that went wrong.
pub(crate) fn try_all(cases: &[usize], case: impl Fn(usize) -> Result<(), String> + Sync) {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let _kept = crate::rig::template();
    // Most of a case is waiting for other processes.
    let threads = 3 * std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(number) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(what) = case(*number) {
                        wrong.lock().unwrap().push(what);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    let (bad, all) = (wrong.len(), cases.len());
    assert!(
        wrong.is_empty(),
        "{bad} of {all} cases:\n{}",
        wrong.join("\n")
    );
    println!("{all} cases");
}

/// Recovers what is open in the journal, in a process that may be killed.
fn recover(scene: &Scene, kill_at: usize) -> Result<Said, String> {
    if scene.journal().open_plan().unwrap().is_none() {
        return Ok(Said::Done("nothing to recover".into()));
    }
    let orders = Orders {
        task: Task::Recover,
        kill_at,
        pause_at: 0,
    };
    match Running::start(scene, orders).wait() {
        Said::Done(text) if text.contains("Err(") => Err(text),
        said => Ok(said),
    }
}

/// Recovers; where a lock of git's that nobody holds any more is in the way, a person removes it.
pub(crate) fn recover_wholly(scene: &Scene) -> Result<String, String> {
    let said = recover(scene, 0)?;
    if matches!(&said, Said::Done(text) if text.contains("Blocked")) {
        remove_locks(scene);
        return recover_wholly(scene);
    }
    Ok(format!("{said:?}"))
}

/// The paths that the journal names as left.
fn left(scene: &Scene) -> BTreeSet<String> {
    let records = scene.journal().records().unwrap();
    let all = records.into_iter().flat_map(|record| match record {
        Record::TakenBack { left } => left,
        _ => Vec::new(),
    });
    all.map(|kept| kept.path.to_string()).collect()
}

fn land_again(scene: &Scene) -> Result<Outcome, String> {
    scene.land_on(MAIN).map_err(|e| e.to_string())
}

/// One case: the person acts at a step, somebody kills it, it recovers and lands again.
fn case(step: usize, action: usize, when: When) -> Result<(), String> {
    let scene = Scene::new();
    let action = &ACTIONS[action];
    let mut at = String::new();
    let result = (|| {
        let is_killed_first = matches!(when, When::AfterTheKill | When::AfterRemovingLocks);
        let orders = Orders {
            task: Task::Land,
            pause_at: if is_killed_first { 0 } else { step },
            kill_at: match when {
                When::BeforeTheKill => step + 1 + step % 4,
                When::AfterTheKill | When::AfterRemovingLocks => step,
                When::Beside | When::BesideRemovingLocks => 0,
            },
        };
        let mut running = Running::start(&scene, orders);
        let first = running.wait();
        if let Said::Paused(name) = &first {
            at.clone_from(name);
        }
        if matches!(when, When::AfterRemovingLocks | When::BesideRemovingLocks) {
            remove_locks(&scene);
        }
        let deed = action.perform(&scene, None);
        if matches!(first, Said::Paused(_)) {
            running.go_on();
            if let Said::Done(text) = running.wait()
                && text.contains("Err(")
            {
                return Err(text);
            }
        }
        let recovered = recover_wholly(&scene)?;
        let named = left(&scene);
        let checked = deed.check(&scene, &named);
        checked.map_err(|what| format!("{what} ({recovered})"))?;
        let again = land_again(&scene)?;
        let checked = deed.check(&scene, &left(&scene));
        checked.map_err(|what| format!("{what} ({recovered}, then {again:?})"))
    })();
    result.map_err(|what| format!("{} {when:?} step {step} {at}: {what}", action.name))
}

#[test]
fn beside_a_person_nothing_is_lost_wherever_it_is_killed() {
    let steps = steps(Task::Land);
    let count = steps * ACTIONS.len() * WHENS.len();
    println!("{steps} steps, {} actions, {count} cases", ACTIONS.len());
    try_all(&chosen(count, 0x9e37_79b9), |number| {
        let (rest, when) = (number / WHENS.len(), WHENS[number % WHENS.len()]);
        case(1 + rest / ACTIONS.len(), rest % ACTIONS.len(), when)
    });
}

#[test]
fn killed_at_any_step_and_while_it_recovers_it_ends_the_same() {
    let (steps, more) = (steps(Task::Land), steps(Task::Recover) + 8);
    println!("{steps} steps, {more} of recovery");
    try_all(&chosen(steps * more, 77), |number| {
        let (first, second) = (1 + number / more, 1 + number % more);
        let scene = Scene::new();
        let orders = Orders {
            kill_at: first,
            ..Orders::default()
        };
        let result = (|| {
            Running::start(&scene, orders).wait();
            recover(&scene, second)?;
            let recovered = recover_wholly(&scene)?;
            scene.is_sound()?;
            let status = scene.status();
            if !status.is_empty() {
                return Err(format!("{recovered}: {status}"));
            }
            match land_again(&scene)? {
                Outcome::Landed { .. } => {}
                other => return Err(format!("{other:?}")),
            }
            scene.is_sound()?;
            let (tip, status) = (scene.tip("main"), scene.status());
            if tip != Some(scene.to.to_string()) || !status.is_empty() {
                return Err(format!("{tip:?} {status}"));
            }
            Ok(())
        })();
        result.map_err(|what| format!("killed at {first}, then at {second}: {what}"))
    });
}

/// How many cases of two actions and two kills are tried where all are wanted.
const TWICE: usize = 3000;

#[test]
fn killed_again_while_it_recovers_beside_a_person_nothing_is_lost() {
    let (steps, more) = (steps(Task::Land), steps(Task::Recover));
    let all = steps * more * ACTIONS.len() * ACTIONS.len() * 2;
    let mut cases = chosen_of(all, rounds().unwrap_or(TWICE), 4711);
    cases.dedup();
    try_all(&cases, |number| {
        let (number, removes) = (number / 2, number % 2 == 1);
        let (number, second) = (number / ACTIONS.len(), &ACTIONS[number % ACTIONS.len()]);
        let (number, first) = (number / ACTIONS.len(), &ACTIONS[number % ACTIONS.len()]);
        let (landing, recovery) = (1 + number / more, 1 + number % more);
        let scene = Scene::new();
        let orders = Orders {
            kill_at: landing,
            ..Orders::default()
        };
        let result = (|| {
            Running::start(&scene, orders).wait();
            if removes {
                remove_locks(&scene);
            }
            let deed = first.perform(&scene, None);
            recover(&scene, recovery)?;
            if removes {
                remove_locks(&scene);
            }
            let deed = second.perform(&scene, Some(deed));
            let recovered = recover_wholly(&scene)?;
            let checked = deed.check(&scene, &left(&scene));
            checked.map_err(|what| format!("{what} ({recovered})"))?;
            let again = land_again(&scene)?;
            let checked = deed.check(&scene, &left(&scene));
            checked.map_err(|what| format!("{what} ({recovered}, then {again:?})"))
        })();
        let (first, second) = (first.name, second.name);
        let place = format!("killed at {landing}, then at {recovery}, locks removed: {removes}");
        result.map_err(|what| format!("{first}, {second}, {place}: {what}"))
    });
}

/// The number of the first step of a landing with this name.
fn step_named(name: &str) -> usize {
    let Said::Done(text) = Running::start(&Scene::new(), Orders::default()).wait() else {
        unreachable!("nobody kills it")
    };
    let (_, names) = text.split_once("@steps ").unwrap();
    1 + names.split('|').position(|step| step == name).unwrap()
}

#[test]
fn a_landing_that_an_earlier_version_began_is_completed() {
    for step in ["lock index", "replace the index", "sync the index"] {
        let scene = Scene::new();
        let orders = Orders {
            kill_at: step_named(step),
            ..Orders::default()
        };
        Running::start(&scene, orders).wait();
        let plan = scene.journal().open_plan().unwrap().unwrap();
        let place = plan.staging.join("checkout-0");
        // It had a second name of the index that it had seen, where a note of it is now.
        let seen = match step {
            "sync the index" => place.join("index"),
            _ => scene.repo().join(".git/index"),
        };
        std::fs::remove_file(place.join("index-seen")).unwrap();
        std::fs::hard_link(seen, place.join("index-seen")).unwrap();
        let recovered = recover_wholly(&scene).unwrap();
        assert!(recovered.contains("Landed"), "{step}: {recovered}");
        assert_eq!(scene.tip("main"), Some(scene.to.to_string()));
        assert_eq!(scene.status(), "");
        scene.is_sound().unwrap();
    }
}

#[test]
fn what_went_wrong_once_stays_right() {
    let _kept = crate::rig::template();
    for (step, when, actions) in [
        (
            "replace the index",
            When::BesideRemovingLocks,
            &[
                "git switch",
                "git pull",
                "git merge",
                "git reset --hard HEAD~1",
            ][..],
        ),
        (
            "move the branch",
            When::Beside,
            &["git switch -c", "git switch to the same commit"],
        ),
        (
            "move the branch",
            When::BesideRemovingLocks,
            &["git commit -am", "git switch -c", "edit the same file"],
        ),
        (
            "lock branch",
            When::Beside,
            &["git switch -c", "git switch to the same commit"],
        ),
        (
            "create a file",
            When::Beside,
            &["create the file that the commit creates"],
        ),
        (
            "sync the branch",
            When::AfterRemovingLocks,
            &["git commit -am", "git commit --amend"],
        ),
    ] {
        let number = step_named(step);
        for name in actions {
            let action = ACTIONS
                .iter()
                .position(|action| action.name == *name)
                .unwrap();
            case(number, action, when).unwrap();
        }
    }
}

#[test]
fn an_edit_at_any_moment_before_the_branch_moves_keeps_it_from_moving() {
    let _kept = crate::rig::template();
    for action in ["save the same file", "edit the same file"] {
        let action = ACTIONS.iter().find(|one| one.name == action).unwrap();
        let (first, last) = (step_named("lock index"), step_named("replace the index"));
        for step in first..last {
            let scene = Scene::new();
            let orders = Orders {
                pause_at: step,
                ..Orders::default()
            };
            let mut running = Running::start(&scene, orders);
            assert!(matches!(running.wait(), Said::Paused(_)));
            let seen = scene.read("shared.txt").unwrap();
            let deed = action.perform(&scene, None);
            running.go_on();
            let said = running.wait();
            deed.check(&scene, &left(&scene)).unwrap();
            // An edit on top of the commit's own content may stay in the work tree.
            let is_on_top = seen.contains("RUN") && action.name.starts_with("edit");
            let landed = scene.tip("main") == Some(scene.to.to_string());
            assert_eq!(landed, is_on_top, "{} at {step}: {said:?}", action.name);
        }
    }
}

#[test]
fn a_commit_between_two_recoveries_meets_no_index_ahead_of_its_files() {
    let _kept = crate::rig::template();
    let landing = step_named("move the branch");
    for step in 1..=steps(Task::Recover) {
        let scene = Scene::new();
        let orders = Orders {
            kill_at: landing,
            ..Orders::default()
        };
        assert_eq!(Running::start(&scene, orders).wait(), Said::Killed);
        remove_locks(&scene);
        scene.git(&["checkout", "-q", "--detach"]);
        recover(&scene, step).unwrap();
        remove_locks(&scene);
        scene.git(&["commit", "-q", "--amend", "--allow-empty", "-m", "amended"]);
        let recovered = recover_wholly(&scene).unwrap();
        assert_eq!(scene.status(), "", "killed at {step}: {recovered}");
        scene.is_sound().unwrap();
    }
}
