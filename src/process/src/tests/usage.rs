//! Commands that use more than they may. Every bomb stops by itself, at a number far above its limit.

use super::*;
use crate::model::Resource;

/// How many processes a bomb may make before it stops by itself.
const BOMB_MAX: usize = 4_000;

/// Grows as fast as it can: each process starts others, which do the same, until [`BOMB_MAX`] tickets are used up.
/// Detached ones have sessions of their own, and parents that are gone.
fn bomb(detached: bool, dir: &std::path::Path, sleeper: &Sleeper) -> Command {
    let tickets = dir.join("tickets");
    std::fs::write(&tickets, vec![b'.'; BOMB_MAX]).unwrap();
    let detach = if detached {
        "POSIX::setsid(); fork and POSIX::_exit(0);"
    } else {
        ""
    };
    let program = format!(
        "use POSIX; $SIG{{TERM}} = 'IGNORE'; open my $tickets, '<', $ARGV[0]; \
         while (sysread $tickets, $_, 1) {{ unless (fork) {{ {detach} }} }} sleep 1000"
    );
    let tickets = tickets.to_string_lossy();
    argv(&["perl", "-e", &program, &tickets, &sleeper.argument])
}

fn reached(finished: &Finished) -> Option<(Resource, u64)> {
    match finished.ended {
        EndCause::LimitReached {
            resource, limit, ..
        } => Some((resource, limit)),
        EndCause::ByItself
        | EndCause::TimedOut
        | EndCause::Silent
        | EndCause::Enough
        | EndCause::Stopped(_) => None,
    }
}

#[test]
fn a_bomb_ends_at_its_limit_and_nothing_of_it_is_left() {
    for detached in [false, true] {
        let dir = xtest::tempdir();
        let sleeper = Sleeper::new();
        let mut command = bomb(detached, dir.path(), &sleeper);
        command.limits.resources.processes = 50;
        let (finished, _) = run_kept(&command);
        assert_eq!(reached(&finished), Some((Resource::Processes, 50)));
        assert_eq!(sleeper.alive(), [0; 0]);
    }
}

#[test]
fn a_bomb_that_was_left_behind_is_not_given_time_to_grow() {
    let sleeper = Sleeper::new();
    let text = "(trap '' TERM; i=0; while [ $i -lt 300 ]; do S & i=$((i+1)); done; S ) & exit 0";
    let mut command = sh(&sleeper.text(text));
    command.limits.resources.processes = 20;
    command.limits.drain = LONG;
    let (finished, _) = run_kept(&command);
    assert_eq!(finished.status, ExitStatus::Exited(0));
    assert_eq!(reached(&finished), Some((Resource::Processes, 20)));
    assert_eq!(sleeper.alive(), [0; 0]);
}

#[test]
fn the_dead_whom_nobody_waits_for_count_and_threads_do_not() {
    let zombies = "$SIG{CHLD} = 'DEFAULT'; for (1..60) { fork or exit } sleep 1000";
    let mut command = argv(&["perl", "-e", zombies]);
    command.limits.resources.processes = 50;
    let (finished, _) = run_kept(&command);
    assert_eq!(reached(&finished), Some((Resource::Processes, 50)));
    let threads = "import threading, time\n\
        [threading.Thread(target=time.sleep, args=(1,)).start() for _ in range(60)]";
    let mut command = argv(&["python3", "-c", threads]);
    command.limits.resources.processes = 10;
    let (finished, kept) = run_kept(&command);
    assert_eq!(finished.ended, EndCause::ByItself, "{}", kept.stderr());
}

/// Whether the kernel counts what is written to the directory: it does so for disks, not for memory.
fn counts_writes(dir: &std::path::Path) -> bool {
    let before = procfs::written_by(std::process::id());
    std::fs::write(dir.join("probe"), vec![1; 1 << 20]).unwrap();
    let counts = procfs::written_by(std::process::id()) > before;
    if !counts {
        xtest::skip(&format!("writing to `{}` is not counted", dir.display()));
    }
    counts
}

/// Each writes 32 MiB in all, in its own way, and then sleeps as `$S` says.
const WRITERS: [(&str, &str); 5] = [
    ("one file", "head -c 32M /dev/zero > one; $S"),
    (
        "pieces",
        "for i in $(seq 32); do head -c 1M /dev/zero >> one; done; $S",
    ),
    (
        "children that go on",
        "for i in $(seq 8); do (head -c 4M /dev/zero > $i; $S) & done; wait",
    ),
    (
        "children that are waited for late",
        "for i in $(seq 8); do head -c 4M /dev/zero > $i & done; $S",
    ),
    (
        "orphans",
        "for i in $(seq 8); do setsid -f sh -c \"head -c 4M /dev/zero > $i\"; done; $S",
    ),
];

#[test]
fn whoever_writes_too_much_is_ended_and_others_are_not() {
    let dir = xtest::tempdir_in(env!("CARGO_MANIFEST_DIR").as_ref());
    if !counts_writes(dir.path()) {
        return;
    }
    for (name, text) in WRITERS {
        let sleeper = Sleeper::new();
        let writer = |sleep: &str| {
            let mut command = sh(&format!("S='sleep {sleep}'; {text}"));
            command.cwd = dir.path().to_owned();
            command
        };
        let mut command = writer(&sleeper.argument);
        command.limits.resources.written_bytes = 30 << 20;
        let (finished, kept) = run_kept(&command);
        let wanted = Some((Resource::Written, 30 << 20));
        assert_eq!(reached(&finished), wanted, "{name}: {}", kept.stderr());
        assert_eq!(sleeper.alive(), [0; 0], "{name}");
        let mut command = writer("0.3");
        command.limits.resources.written_bytes = 34 << 20;
        let (finished, kept) = run_kept(&command);
        assert_eq!(
            finished.ended,
            EndCause::ByItself,
            "{name}: {}",
            kept.stderr()
        );
    }
}

#[test]
fn children_of_one_that_does_not_wait_are_counted_as_last_seen() {
    let dir = xtest::tempdir_in(env!("CARGO_MANIFEST_DIR").as_ref());
    if !counts_writes(dir.path()) {
        return;
    }
    // Each lives for several counts, and its parent has nothing of it.
    let program = "$SIG{CHLD} = 'IGNORE'; for my $n (1..1000) { unless (fork) { open my $f, '>', \"u$n\"; \
        syswrite $f, 'x' x 2_000_000; close $f; select undef, undef, undef, 0.5; unlink \"u$n\"; exit } \
        select undef, undef, undef, 0.6 }";
    let mut command = argv(&["perl", "-e", program]);
    command.cwd = dir.path().to_owned();
    command.limits.resources.written_bytes = 5 << 20;
    let (finished, kept) = run_kept(&command);
    let wanted = Some((Resource::Written, 5 << 20));
    assert_eq!(reached(&finished), wanted, "{}", kept.stderr());
}

#[test]
fn a_program_that_crashes_leaves_no_core() {
    let (_, kept) = run_kept(&sh("ulimit -c; ulimit -c unlimited && echo may"));
    assert_eq!(kept.stdout().lines().next(), Some("0"));
}
