//! Sending signals to exactly the processes that are meant.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal, test_kill_process,
};

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

/// Returns true if a process that was sent KILL ends as soon as it gets a processor.
pub(super) fn waits_for_processor(process: &Stat) -> bool {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    process.state == b'R' && pid.is_some_and(|pid| test_kill_process(pid).is_ok())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_run_waits_for_a_processor() {
        for (text, expected) in [("while :; do :; done", true), ("exec sleep 60", false)] {
            let mut shell = std::process::Command::new("sh")
                .args(["-c", text])
                .spawn()
                .unwrap();
            let until = std::time::Instant::now() + std::time::Duration::from_mins(1);
            while waits_for_processor(&procfs::stat(shell.id()).unwrap()) != expected {
                assert!(std::time::Instant::now() < until, "{text}");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            shell.kill().unwrap();
            shell.wait().unwrap();
        }
    }
}
