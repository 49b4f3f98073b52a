//! Sending signals to exactly the processes that are meant.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};

use super::procfs::{self, Stat};

/// A descriptor of this very process, readable when it ends. `None`: it is gone, or no
/// descriptor is to be had.
pub(super) fn open(process: &Stat) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(process.pid).ok()?)?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    // The descriptor pins whoever has the number now. Only the start time shows that this is
    // still the process that was looked at.
    let now = procfs::stat(process.pid)?;
    (now.start == process.start && !now.is_zombie()).then_some(pidfd)
}

/// Sends `signal` to this very process. A refusal is not reported: a process that may not be
/// signalled shows by not going away.
pub(super) fn send(process: &Stat, signal: Signal) {
    if let Some(pidfd) = open(process) {
        let _ = pidfd_send_signal(pidfd, signal);
    }
}

/// Kills the process that has the number `pid` at this moment, if it carries the tag of a command.
fn kill_tagged(pid: u32, tag: u64) {
    let is_tagged = || procfs::lock_limit_of(pid) == Some(tag);
    // Most numbers are unused or another process's, so the tag is read before a descriptor pins the process.
    if !is_tagged() {
        return;
    }
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pidfd = number.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    if let Some(pidfd) = pidfd.filter(|_| is_tagged()) {
        let _ = pidfd_send_signal(pidfd, Signal::KILL);
    }
}

/// Duration of one chase.
const CHASE: Duration = Duration::from_millis(3);

/// How far ahead of the newest process a chase tries numbers, and how often before it asks for the newest one again.
const CHASE_AHEAD: u32 = 6;
const CHASE_ROUNDS: usize = 8;

/// Kills a chain of processes with a tag, each of which starts the next one and ends, so that none lives long enough to
/// be looked up. The kernel hands out numbers in order, so the next ones are tried until they carry the tag.
pub(super) fn chase(tag: u64) {
    let until = Instant::now() + CHASE;
    while Instant::now() < until {
        let Some(newest) = procfs::newest_pid() else {
            return;
        };
        for _ in 0..CHASE_ROUNDS {
            for pid in newest..newest.saturating_add(CHASE_AHEAD) {
                kill_tagged(pid, tag);
            }
        }
    }
}

/// Sends `signal` to the group of a child of ours that was not yet reaped, which is what keeps
/// the group's number from being used again.
pub(super) fn send_to_group(leader: Pid, signal: Signal) {
    let sent = kill_process_group(leader, signal);
    debug_assert!(
        matches!(sent, Ok(()) | Err(Errno::SRCH | Errno::PERM)),
        "the group of an unreaped child exists: {sent:?}"
    );
}
