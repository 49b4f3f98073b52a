//! What is left in this process after many commands; what other tests do meanwhile would be
//! counted as well, so each runs alone.

use super::*;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn children() -> Vec<u32> {
    procfs::Families::now().children(std::process::id())
}

#[test]
fn nothing_leaks() {
    alone("resources::nothing_leaks_alone", None);
}

#[test]
#[ignore = "run by `nothing_leaks` in a process of its own"]
fn nothing_leaks_alone() {
    run_kept(&argv(&["true"]));
    let before = descriptors();
    let dir = xtest::tempdir();
    for round in 0..env_rounds(20) {
        let mut command = sh("setsid sleep 1000 & sleep 1000 & (true &) ; cat; exit 3");
        command.stdin = Stdin::Bytes(vec![b'x'; 100_000]);
        command.stdout_file = Some(dir.path().join(round.to_string()));
        run_kept(&command);
        assert!(run(&argv(&["/no/such/program"]), &never(), &mut Kept::new()).is_err());
        let stop = never();
        let mut sink = Kept::stopping("ready", StopKind::Graceful, &stop);
        run(&sh("echo ready; sleep 1000"), &stop, &mut sink).unwrap();
    }
    assert_eq!(children(), [0; 0]);
    assert_eq!(descriptors(), before);
}

#[test]
fn many_commands_run_at_once() {
    alone("resources::many_commands_run_at_once_alone", None);
}

#[test]
#[ignore = "run by `many_commands_run_at_once` in a process of its own"]
fn many_commands_run_at_once_alone() {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..64)
            .map(|n| {
                scope.spawn(move || {
                    for _ in 0..3 {
                        let (finished, kept) =
                            run_kept(&sh(&format!("(sleep 1000 &); echo {n}; exit {n}")));
                        assert_eq!(finished.status, ExitStatus::Exited(n));
                        assert_eq!(kept.stdout(), format!("{n}\n"));
                        assert_eq!(finished.survivors_ended, 1);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
    assert_eq!(children(), [0; 0]);
}

#[test]
fn orphans_that_die_during_a_long_command_are_reaped() {
    alone("resources::orphans_are_reaped_alone", None);
}

#[test]
#[ignore = "run by `orphans_that_die_during_a_long_command_are_reaped`"]
fn orphans_are_reaped_alone() {
    let stop = never();
    let dir = xtest::tempdir();
    let orphan = "until test -e go; do sleep 0.01; done; echo $$ >> dying";
    let text = format!("for i in 1 2 3 4 5; do (sh -c '{orphan}' &); done; : > go; sleep 1000");
    let mut command = sh(&text);
    command.cwd = dir.path().to_owned();
    std::thread::scope(|scope| {
        let long = scope.spawn(|| run(&command, &stop, &mut Kept::new()));
        let until = Instant::now() + LONG;
        let dying = || {
            let text = std::fs::read_to_string(dir.path().join("dying")).unwrap_or_default();
            text.lines()
                .map(|line| line.parse().unwrap())
                .collect::<Vec<u32>>()
        };
        while dying().len() < 5 {
            assert!(Instant::now() < until, "{:?} of 5 orphans die", dying());
        }
        let there = |pid: &u32| procfs::stat(*pid).is_some();
        while dying().iter().any(there) {
            assert!(Instant::now() < until, "some of {:?} stay", dying());
        }
        stop.stop(StopKind::Now);
        long.join().unwrap().unwrap();
    });
}

#[test]
fn without_descriptors_the_command_is_refused_and_nothing_stays() {
    alone("resources::without_descriptors_alone", Some(64));
}

#[test]
#[ignore = "run by `without_descriptors_the_command_is_refused_and_nothing_stays`"]
fn without_descriptors_alone() {
    run_kept(&argv(&["true"]));
    let stop = never();
    let mut held = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        held.push(file);
    }
    // One more free descriptor each time, so that each step of the start fails once.
    let mut refused = 0;
    while let Err(error) = run(&argv(&["true"]), &stop, &mut Kept::new()) {
        assert!(
            matches!(error, SpawnError::ResourceExhausted { .. }),
            "{error:?}"
        );
        refused += 1;
        assert!(held.pop().is_some());
    }
    assert!(refused >= 4, "{refused}");
    assert_eq!(children(), [0; 0]);
}
