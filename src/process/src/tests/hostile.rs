//! Trees of processes that do not want to end.

use super::*;

/// Name and text of each tree. `S` is a long sleep.
const TREES: [(&str, &str); 11] = [
    ("background", "S & S & echo ready; wait"),
    (
        "setsid",
        "setsid S & setsid sh -c 'S & S ' & echo ready; wait",
    ),
    (
        "double fork",
        "( ( S & ) & ) ; ( setsid sh -c '( S & ) ' & ) ; echo ready; S",
    ),
    (
        "ignores TERM",
        "trap '' TERM; S & setsid S & echo ready; while :; do S ; done",
    ),
    (
        "halted",
        "sh -c 'kill -STOP $$; S ' & setsid sh -c 'kill -STOP $$; S ' & echo ready; kill -STOP $$",
    ),
    (
        "200 wide",
        "i=0; while [ $i -lt 200 ]; do S & i=$((i+1)); done; echo ready; wait",
    ),
    ("nohup", "nohup S >/dev/null 2>&1 & echo ready; wait"),
    (
        "no environment",
        "env -i setsid S & env -i setsid -f S ; env -i setsid -f sh -c 'S & S '; echo ready; wait",
    ),
    (
        "grows at TERM",
        "trap 'S & setsid S & ' TERM; echo ready; while :; do S ; done",
    ),
    (
        "respawns",
        "setsid sh -c 'trap \"\" TERM; while :; do S ; done' & echo ready; while :; do S ; done",
    ),
    (
        "deep",
        "sh -c 'sh -c \"setsid sh -c \\\"S & S \\\" & S \" & S ' & echo ready; wait",
    ),
];

fn hostile(text: &str) -> (Sleeper, Command) {
    let sleeper = Sleeper::new();
    let mut command = sh(&sleeper.text(text));
    command.limits.grace = Duration::from_millis(100);
    (sleeper, command)
}

#[test]
fn no_tree_survives_being_stopped() {
    for round in 0..env_rounds(20) {
        for (name, text) in TREES {
            let kind = if round % 2 == 0 {
                StopKind::Graceful
            } else {
                StopKind::Now
            };
            let (sleeper, command) = hostile(text);
            let stop = never();
            let mut sink = Kept::stopping("ready", kind, &stop);
            let finished = run(&command, &stop, &mut sink).unwrap();
            assert_eq!(finished.ended, EndCause::Stopped(kind), "{name}");
            assert_eq!(sleeper.alive(), [0; 0], "{name}, {kind:?}, {finished:?}");
        }
    }
}

#[test]
fn no_tree_survives_its_time_limit() {
    for (name, text) in TREES {
        let (sleeper, mut command) = hostile(text);
        command.limits.timeout = Some(Duration::from_millis(300));
        let (finished, _) = run_kept(&command);
        assert_eq!(finished.ended, EndCause::TimedOut, "{name}");
        assert_eq!(sleeper.alive(), [0; 0], "{name}, {finished:?}");
    }
}

#[test]
fn no_tree_survives_the_exit_of_its_first_process() {
    for (name, text) in TREES {
        let text = text.rsplit_once("echo ready").unwrap().0;
        let (sleeper, command) = hostile(&format!("{text}: ; exit 7"));
        let (finished, _) = run_kept(&command);
        assert_eq!(finished.status, ExitStatus::Exited(7), "{name}");
        assert_eq!(finished.ended, EndCause::ByItself, "{name}");
        assert_eq!(sleeper.alive(), [0; 0], "{name}, {finished:?}");
    }
}

#[test]
fn survivors_are_counted() {
    let sleeper = Sleeper::new();
    let directory = xtest::tempdir();
    let gate = directory.path().join("gate");
    // One that has not come as far as its sleep goes with its group, and nobody sees it.
    let text = sleeper
        .text("S & setsid S & env -i setsid S >/dev/null 2>&1 & until [ -e GATE ]; do :; done");
    let command = sh(&text.replace("GATE", &gate.display().to_string()));
    let finished = std::thread::scope(|scope| {
        scope.spawn(|| {
            while sleeper.asleep() < 3 {
                std::thread::yield_now();
            }
            std::fs::write(&gate, "").unwrap();
        });
        run_kept(&command).0
    });
    assert_eq!(finished.survivors_ended, 3, "{finished:?}");
    assert_eq!(sleeper.alive(), [0; 0]);
}

#[test]
fn runs_side_by_side_end_their_own_processes_and_no_others() {
    let bystander = Sleeper::new();
    let stop_bystander = never();
    std::thread::scope(|scope| {
        let text = bystander.text("env -i setsid S & setsid S & S & echo up; wait");
        let stop = &stop_bystander;
        let watched = scope.spawn(move || {
            let mut sink = Kept::new();
            run(&sh(&text), stop, &mut sink).unwrap()
        });
        bystander.await_count(3);
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                scope.spawn(move || {
                    for (name, text) in TREES.iter().cycle().skip(thread * 3).take(TREES.len()) {
                        let (sleeper, command) = hostile(text);
                        let stop = never();
                        let mut sink = Kept::stopping("ready", StopKind::Graceful, &stop);
                        let finished = run(&command, &stop, &mut sink).unwrap();
                        assert_eq!(sleeper.alive(), [0; 0], "{name}, {finished:?}");
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(bystander.asleep(), 3);
        stop_bystander.stop(StopKind::Now);
        assert_eq!(
            watched.join().unwrap().ended,
            EndCause::Stopped(StopKind::Now)
        );
    });
    assert_eq!(bystander.alive(), [0; 0]);
}

#[test]
fn stopping_now_does_not_wait_for_the_grace_period() {
    let (sleeper, mut command) = hostile("trap '' TERM; S & echo ready; while :; do S ; done");
    command.limits.grace = LONG;
    let stop = never();
    let mut sink = Kept::stopping("ready", StopKind::Graceful, &stop);
    let finished = std::thread::scope(|scope| {
        scope.spawn(|| {
            // The first request has been taken once TERM has ended nothing; the second one has to
            // wake the runner out of its grace period whenever it comes.
            while stop.requested().is_none() {
                std::thread::yield_now();
            }
            stop.stop(StopKind::Now);
        });
        run(&command, &stop, &mut sink).unwrap()
    });
    assert_eq!(finished.ended, EndCause::Stopped(StopKind::Now));
    assert_eq!(finished.status, ExitStatus::Signalled(9));
    assert!(finished.duration < LONG, "it waited for the grace period");
    assert_eq!(sleeper.alive(), [0; 0]);
}

#[test]
fn a_sink_that_panics_leaves_nothing_running() {
    struct Panics;
    impl OutputSink for Panics {
        fn line(&mut self, _: Stream, _: &[u8], _: bool) {
            panic!("on purpose");
        }
    }
    let (sleeper, command) = hostile("setsid S & S & echo ready; wait");
    let caught = std::panic::catch_unwind(|| run(&command, &never(), &mut Panics));
    assert!(caught.is_err());
    assert_eq!(sleeper.alive(), [0; 0]);
}

/// Starts chains of processes, each of which starts the next one and ends, for ten seconds. A chain that is not ended
/// before makes a file.
#[test]
#[ignore = "a program of the test below"]
#[expect(unsafe_code, reason = "it is about forks without a program")]
fn chains_of_processes() {
    let until = Instant::now() + Duration::from_secs(10);
    let [chains, file] = ["CHAINS", "FILE"].map(|name| std::env::var(name).unwrap());
    let file = std::ffi::CString::new(file).unwrap();
    // SAFETY: the children only look at the clock, start a session, fork and make a file, which all may be done after a
    // fork of a process with threads.
    unsafe {
        libc::signal(libc::SIGTERM, libc::SIG_IGN);
        for _ in 0..chains.parse().unwrap() {
            if libc::fork() != 0 {
                continue;
            }
            while Instant::now() < until {
                match libc::fork() {
                    0 => libc::setsid(),
                    // There are too many processes at the moment.
                    -1 => continue,
                    _ => libc::_exit(0),
                };
            }
            libc::close(libc::creat(file.as_ptr(), 0o600));
            libc::_exit(0);
        }
        libc::_exit(0);
    }
}

/// The number that the kernel gave to the newest process of this pid namespace.
fn newest_pid() -> u32 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap();
    let number = text.split_ascii_whitespace().next_back();
    number.unwrap().parse().unwrap()
}

#[test]
fn no_chain_of_processes_survives() {
    let own = std::env::current_exe().unwrap();
    let name = "tests::hostile::chains_of_processes";
    let directory = xtest::tempdir();
    let file = directory.path().join("survived");
    // Other tests run meanwhile: more chains than this can be as fast as the engine then. Alone, it ends far more.
    for chains in [1, 2, env_rounds(4)] {
        let mut command = sh(&format!(
            "CHAINS={chains} FILE={} {} --ignored --exact {name} > /dev/null",
            file.display(),
            own.display()
        ));
        command.limits.grace = Duration::from_millis(50);
        let sink = &mut Kept::new();
        let finished = run(&command, &never(), sink).unwrap();
        assert!(finished.survivors_ended > 0, "{finished:?}");
        let tag = sink.record.as_ref().unwrap().tag.unwrap();
        let newest = newest_pid();
        std::thread::sleep(Duration::from_millis(20));
        // A chain that goes on would have used up hundreds of numbers.
        for pid in newest.saturating_sub(50)..newest + 5_000 {
            assert_ne!(procfs::lock_limit_of(pid), Some(tag), "{finished:?}");
        }
        assert!(!file.exists(), "{chains} chains, {finished:?}");
    }
}

#[test]
#[ignore = "a program of the test below"]
#[expect(unsafe_code, reason = "no program makes itself not dumpable")]
fn a_hidden_process() {
    // SAFETY: the child only calls the kernel, which may be done after a fork of a process with threads.
    unsafe {
        if libc::fork() != 0 {
            libc::_exit(0);
        }
        libc::setsid();
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
        libc::sleep(60);
        libc::_exit(0);
    }
}

#[test]
#[ignore = "run by `no_hidden_process_survives`, as an ordinary user from whom `/proc` hides"]
fn no_hidden_process_survives_alone() {
    let name = "tests::hostile::a_hidden_process";
    let own = std::env::current_exe().unwrap();
    let text = format!("{} --ignored --exact {name} > /dev/null", own.display());
    let mut command = sh(&text);
    command.limits.grace = Duration::ZERO;
    let sink = &mut Kept::new();
    let finished = run(&command, &never(), sink).unwrap();
    assert_eq!(finished.survivors_ended, 1, "{finished:?}");
    let tag = sink.record.as_ref().unwrap().tag;
    for pid in 2..=newest_pid() {
        assert_ne!(procfs::lock_limit_of(pid), tag, "process {pid}");
    }
}

#[test]
fn no_hidden_process_survives() {
    let within = "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid 65534 --regid 65534 --clear-groups";
    as_ordinary_user(within, "no_hidden_process_survives_alone");
}

#[test]
#[ignore = "a program of the test below"]
#[expect(
    unsafe_code,
    reason = "no program takes over the user that its file gives it"
)]
fn a_process_of_root() {
    // SAFETY: the child only calls the kernel, which may be done after a fork of a process with threads.
    unsafe {
        libc::setresuid(0, 0, 0);
        if libc::fork() == 0 {
            libc::setsid();
            libc::sleep(20);
        }
        libc::_exit(0);
    }
}

#[test]
#[ignore = "run by `a_command_whose_processes_cannot_be_ended_fails`, as an ordinary user"]
fn a_command_whose_processes_cannot_be_ended_fails_alone() {
    let of_root = std::env::current_exe().unwrap().with_extension("root");
    let name = "tests::hostile::a_process_of_root";
    let text = format!("{} --ignored --exact {name} > /dev/null", of_root.display());
    let mut command = sh(&text);
    command.limits.grace = Duration::ZERO;
    let refused = run(&command, &never(), &mut Kept::new()).unwrap_err();
    assert!(
        matches!(&refused, SpawnError::Remain { pids } if pids.len() == 1),
        "{refused}"
    );
}

#[test]
fn a_command_whose_processes_cannot_be_ended_fails() {
    let within = "exec setpriv --reuid 65534 --regid 65534 --clear-groups";
    as_ordinary_user(
        within,
        "a_command_whose_processes_cannot_be_ended_fails_alone",
    );
}

/// Runs a test as an ordinary user, in mounts of its own, with a copy of this program that runs as root beside it.
fn as_ordinary_user(within: &str, test: &str) {
    let directory = xtest::tempdir();
    let program = directory.path().join("tests");
    let of_root = program.with_extension("root");
    for path in [&program, &of_root] {
        // By another process: a program that is open for writing, here or in a child of another test, cannot be executed.
        let mut copying = std::process::Command::new("cp");
        copying.arg(std::env::current_exe().unwrap()).arg(path);
        assert!(copying.status().unwrap().success());
    }
    for (path, mode) in [
        (directory.path(), 0o755),
        (&program, 0o755),
        (&of_root, 0o4755),
    ] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(path, mode).unwrap();
    }
    let within = format!("{within} \"$0\" --ignored --exact tests::hostile::{test}");
    let mut inner = std::process::Command::new("unshare");
    inner.args(["--mount", "sh", "-c", &within]).arg(&program);
    let output = inner.current_dir("/").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    if !printed.contains("running 1 test") {
        let why = String::from_utf8_lossy(&output.stderr);
        return xtest::skip(&format!(
            "no other user can run a test here: {}",
            why.trim()
        ));
    }
    assert!(output.status.success(), "{printed}");
}
