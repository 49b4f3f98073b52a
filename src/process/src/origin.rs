//! Decides whether a process descends from a command of this process.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::owner::{Origin, Undecided};
use super::{control_group, procfs, registry, tag};

/// Most generations that are looked at.
const GENERATIONS_MAX: usize = 1 << 16;

/// Whether nothing that this process starts can become another user, so that a process of another user is none of its
/// commands. It has to be known where `/proc` hides other users' processes, as under the unit that we ship, for what
/// cannot be seen has no ancestors.
pub fn user_is_kept() -> bool {
    has_no_new_privs()
        && rustix::thread::capabilities(None).is_ok_and(|sets| sets.permitted.is_empty())
}

/// Whether this process and all that it starts have `no_new_privs`. It is a thread's: what holds before the program
/// starts holds for all threads and children, for good.
fn has_no_new_privs() -> bool {
    rustix::thread::no_new_privs().unwrap_or(false)
}

/// Whether this process descends from a command of a run, of whichever engine. A command can hide that.
pub fn is_command_of_run() -> bool {
    tag::is_started_by_engine()
}

/// The command of this process that `pid` stems from, however far, and whatever it has done to its group, session
/// and environment: a process whose parent ends becomes a child of this process.
///
/// `pidfd` refers to the same process, if the kernel offers it: the id of a process that has ended may be reused.
pub fn origin_of(pid: u32, pidfd: Option<BorrowedFd<'_>>) -> Origin {
    if registry::is_quiet() {
        return elsewhere(pid);
    }
    // It is inherited and cannot be cleared, whatever is hidden of the ancestry.
    let never_had_it = has_no_new_privs() && procfs::no_new_privs_of(pid) == Some(false);
    let origin = if never_had_it {
        Origin::Elsewhere
    } else {
        origin_by_ancestry(pid)
    };
    match origin {
        _ if pidfd.is_some_and(has_ended) => Origin::Unknown(Undecided::Ended),
        Origin::Elsewhere => elsewhere(pid),
        // A process can hide itself from `/proc`, so an ancestor that is not seen proves nothing.
        Origin::Unknown(Undecided::Hidden(_)) if control_group::is_apart(pid) => elsewhere(pid),
        Origin::Unknown(Undecided::Hidden(_)) => registry::origin_by_tag(pid).unwrap_or(origin),
        origin => origin,
    }
}

/// The origin of a process that descends from no command of this process.
fn elsewhere(pid: u32) -> Origin {
    if tag::is_of_command(pid) {
        return Origin::OtherEngine;
    }
    Origin::Elsewhere
}

fn origin_by_ancestry(pid: u32) -> Origin {
    let own = std::process::id();
    let born = procfs::stat(own).map_or(0, |own| own.start);
    let (mut child, mut next) = (None, pid);
    for _ in 0..GENERATIONS_MAX {
        if next <= 1 || next == own {
            return Origin::Elsewhere;
        }
        let Some(process) = procfs::stat(next) else {
            // A parent that ended in between has left its child to another one.
            let parent = child.and_then(procfs::stat).map(|child| child.parent);
            match parent.filter(|parent| *parent != next) {
                Some(parent) => next = parent,
                None => return Origin::Unknown(Undecided::Hidden(next)),
            }
            continue;
        };
        if process.parent == own {
            return origin_of_child(process.pid);
        }
        // Nothing that is older than this process descends from it, such as the shell that started it.
        if process.start < born {
            return Origin::Elsewhere;
        }
        (child, next) = (Some(next), process.parent);
    }
    Origin::Unknown(Undecided::Hidden(next))
}

/// The command that a child of ours stems from: it is the first process of one, or was adopted.
fn origin_of_child(pid: u32) -> Origin {
    match registry::origin_by_tag(pid) {
        Some(origin) => origin,
        None if registry::is_foreign(tag::of(pid), std::process::id()) => Origin::Elsewhere,
        None => Origin::Unknown(Undecided::Orphan),
    }
}

fn has_ended(process: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(process.as_fd(), PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}
