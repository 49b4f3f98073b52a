//! A mark on processes that survives `env -i`, `setsid` and double forks.
//!
//! Linux has accepted a limit on file locks (`RLIMIT_LOCKS`) since 2.4 without enforcing it. The
//! soft limit is inherited by every fork and kept by every exec, and `/proc/<pid>/limits` shows it.
//! So a number set there right after the start names the command that a process stems from; only
//! a process that changes this very limit loses it. This process carries a number itself, so that
//! what a command forks before it was marked can be told from a process that has shed its mark.
//! Where the limit cannot be set, processes are told apart by their group, their environment,
//! their pipes and their start time alone.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::procfs::{lock_limit_of, pids_in_namespaces};

/// The upper 16 bits of the tags of commands, so that a limit that somebody set is not taken for one.
const SIGNATURE: u64 = 0x5743 << 48;

/// The upper 16 bits of the tags of engines: a process that carries one is not a command of a run.
const ENGINE_SIGNATURE: u64 = 0x5745 << 48;

/// The lower bits of an engine's tag: its process ID in its own namespace.
const PID_MASK: u64 = 0xffff_ffff;

/// The limit that this process was started with.
static INHERITED: OnceLock<Option<u64>> = OnceLock::new();

/// The lower bits are random.
const RANDOM_MASK: u64 = (1 << 48) - 1;

/// Clock ticks of `/proc/<pid>/stat` in a second (`USER_HZ` is 100 on Linux), and nanoseconds in one.
const TICKS_IN_SECOND: u64 = 100;
const TICK_NS: u64 = 10_000_000;

/// A tag that nothing else carries, whatever other engines of this machine tag at this moment: one that was
/// killed and starts again ends whatever carries the tags that it finds recorded.
pub(super) fn next() -> u64 {
    SIGNATURE | random()
}

fn random() -> u64 {
    // The keys of the hasher stem from the operating system's source of randomness.
    RandomState::new().hash_one(tick_now()) & RANDOM_MASK
}

/// The present clock tick, counted from boot, suspended time included, as start times of processes are.
pub(super) fn tick_now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * TICKS_IN_SECOND + nanos / TICK_NS
}

/// Marks `pid`; whether that worked.
pub(super) fn set(pid: u32, tag: u64) -> bool {
    let limit = Rlimit {
        current: Some(tag),
        maximum: getrlimit(Resource::Locks).maximum,
    };
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| prlimit(Some(pid), Resource::Locks, limit).is_ok())
}

/// Marks this process, and with it whatever is born before it is marked itself.
pub(super) fn set_own() {
    let limit = getrlimit(Resource::Locks);
    let _ = INHERITED.set(limit.current);
    // Where it is refused, own() answers so, and everything is told apart without it.
    let _ = setrlimit(
        Resource::Locks,
        Rlimit {
            current: Some(ENGINE_SIGNATURE | random() & !PID_MASK | u64::from(std::process::id())),
            maximum: limit.maximum,
        },
    );
}

/// The tag that this process carries.
pub(super) fn own() -> Option<u64> {
    getrlimit(Resource::Locks)
        .current
        .filter(|value| is_tag(*value))
}

/// What a process is marked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A command's tag.
    Command(u64),
    /// Our own: it was forked before its command was marked.
    Own,
    /// None, or it cannot be read.
    Absent,
}

/// The mark of `pid`.
pub(super) fn of(pid: u32) -> Mark {
    match lock_limit_of(pid).filter(|value| is_tag(*value)) {
        None => Mark::Absent,
        value if value == own() => Mark::Own,
        Some(tag) => Mark::Command(tag),
    }
}

/// Returns true if `pid` carries the tag of a command, of this engine or another one.
///
/// False for the run that this engine was itself started by: there, engine and caller are parts of one command.
pub(super) fn is_of_command(pid: u32) -> bool {
    let tag = lock_limit_of(pid);
    let is_command = tag.is_some_and(|value| value & !RANDOM_MASK == SIGNATURE);
    // Without a mark of its own, it still carries the tag of the engine that has forked it or one of its ancestors, which
    // may have died since.
    let is_unmarked = tag.is_some_and(|tag| is_engine_tag(tag) && !is_tag_of(tag, pid));
    (is_command || is_unmarked) && tag != INHERITED.get().copied().flatten()
}

/// Returns true if this process was started by an engine or by a command of one.
///
/// A command is marked only after its start, so its first children may find the tag of the engine.
pub(super) fn is_started_by_engine() -> bool {
    let inherited = INHERITED.get().copied();
    let limit = inherited.unwrap_or_else(|| getrlimit(Resource::Locks).current);
    limit.is_some_and(is_tag)
}

/// Returns true if `pid` is an engine.
pub(super) fn is_engine(pid: u32) -> bool {
    lock_limit_of(pid).is_some_and(|tag| is_engine_tag(tag) && is_tag_of(tag, pid))
}

fn is_engine_tag(tag: u64) -> bool {
    tag & !RANDOM_MASK == ENGINE_SIGNATURE
}

/// Returns true if this tag of an engine was set by `pid` itself and not inherited.
fn is_tag_of(tag: u64, pid: u32) -> bool {
    let is_in_tag = |pid: u32| u64::from(pid) == tag & PID_MASK;
    is_in_tag(pid) || pids_in_namespaces(pid).into_iter().any(is_in_tag)
}

fn is_tag(value: u64) -> bool {
    [SIGNATURE, ENGINE_SIGNATURE].contains(&(value & !RANDOM_MASK))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn tags_are_unique_and_tell_nothing_of_the_moment_that_engines_share() {
        let tags: Vec<u64> = (0..10_000).map(|_| next()).collect();
        assert!(tags.iter().all(|tag| is_tag(*tag)));
        let different: HashSet<u64> = tags.iter().copied().collect();
        assert_eq!(different.len(), tags.len());
        let falling = tags.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!((4_000..6_000).contains(&falling), "{falling}");
    }

    /// An engine can be killed before it has marked the command that it has just started.
    #[test]
    fn what_carries_the_tag_of_another_process_is_no_engine() {
        let mut engine = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = engine.id();
        let tag_of = |pid| ENGINE_SIGNATURE | 7 << 32 | u64::from(pid);
        assert!(set(pid, tag_of(std::process::id())));
        assert!(is_of_command(pid) && !is_engine(pid));
        assert!(set(pid, tag_of(pid)));
        assert!(is_engine(pid) && !is_of_command(pid));
        engine.kill().unwrap();
        engine.wait().unwrap();
    }

    #[test]
    fn a_tag_survives_an_emptied_environment() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read go; exec env -i setsid sleep 60"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let tag = next();
        assert!(set(child.id(), tag));
        drop(child.stdin.take());
        assert_eq!(of(child.id()), Mark::Command(tag));
        let started = crate::procfs::stat(child.id()).unwrap().start;
        assert!(started <= tick_now());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
