//! The power fails at a step of a landing: of what was not synced nothing is there afterwards.

use std::sync::Mutex;

use workerctl_landing::{Observer, Outcome, Request, land};

use crate::disk::Disk;
use crate::killed::{chosen, recover_wholly, rounds, steps};
use crate::rig::{MAIN, Orders, RUN, Running, Said, Scene, Task, log_line};

/// One power cut takes as long as ten kills.
const KILLS_FOR_A_CUT: usize = 10;

#[test]
fn after_a_power_cut_at_any_step_a_landing_is_whole_or_taken_back() {
    let Some(disk) = Disk::create(64) else {
        return;
    };
    let steps = steps(Task::Land);
    let cases = match rounds() {
        None => (0..steps).collect(),
        Some(rounds) => chosen(steps, 5)[..(rounds / KILLS_FOR_A_CUT).clamp(1, steps)].to_vec(),
    };
    for step in cases {
        let scene = Scene::below(disk.path());
        let directory = std::fs::File::open(disk.path()).unwrap();
        rustix::fs::syncfs(&directory).unwrap();
        drop(directory);
        let orders = Orders {
            pause_at: step + 1,
            kill_at: step + 1,
            ..Orders::default()
        };
        let mut running = Running::start(&scene, orders);
        let Said::Paused(name) = running.wait() else {
            unreachable!("step {step}")
        };
        disk.cut();
        running.go_on();
        assert_eq!(running.wait(), Said::Killed);
        assert!(disk.unmount() && disk.mount(), "before `{name}`");
        let recovered = recover_wholly(&scene).unwrap();
        let place = format!("before `{name}`: {recovered}");
        assert_eq!(scene.status(), "", "{place}");
        scene.is_sound().unwrap();
        let again = scene.land_on(MAIN).unwrap();
        assert!(
            matches!(again, Outcome::Landed { .. }),
            "{place}: {again:?}"
        );
        assert_eq!(scene.tip("main"), Some(scene.to.to_string()), "{place}");
        assert_eq!(scene.status(), "", "{place}");
        scene.is_sound().unwrap();
    }
}

/// Notes each step.
#[derive(Default)]
struct Noted(Mutex<Vec<String>>);

impl Observer for Noted {
    fn before(&self, step: &str) {
        self.0.lock().unwrap().push(step.to_owned());
    }
}

/// Whether a cut takes what was not synced is up to the disk; that it was synced in time is not.
#[test]
fn files_are_durable_before_the_index_and_the_index_before_the_branch() {
    let (scene, noted) = (Scene::new(), Noted::default());
    let request = Request {
        repository: &scene.repo(),
        run: &RUN.parse().unwrap(),
        target: MAIN,
        from: Some(&scene.from),
        to: &scene.to,
        earlier: &[],
        log: &log_line(),
    };
    let outcome = land(&request, &mut scene.journal(), &noted).unwrap();
    assert!(matches!(outcome, Outcome::Landed { .. }), "{outcome:?}");
    let steps = noted.0.into_inner().unwrap();
    let wanted = [
        "exchange a file",
        "sync directories",
        "replace the index",
        "sync the index",
        "move the branch",
        "sync the branch",
        "record that it landed",
    ];
    let known = steps.iter().map(String::as_str);
    let order: Vec<&str> = known.filter(|step| wanted.contains(step)).collect();
    let mut each = order.clone();
    each.dedup();
    assert_eq!(each, wanted, "{steps:?}");
    let placed = ["create a file", "take a file away", "make a directory"];
    let synced = steps.iter().position(|step| step == "sync directories");
    let last = steps
        .iter()
        .rposition(|step| placed.contains(&step.as_str()));
    assert!(last < synced, "{steps:?}");
}
