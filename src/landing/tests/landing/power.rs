//! The power fails at a step of a landing: of what was not synced nothing is there afterwards.

use workerctl_landing::Outcome;

use crate::disk::Disk;
use crate::killed::{chosen, recover_wholly, rounds, steps};
use crate::rig::{MAIN, Orders, Running, Said, Scene, Task};

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
