//! From which command of this process another process stems.

use std::collections::HashSet;

use super::owner::Origin;
use super::{procfs, registry};

/// Most generations that are looked at.
const GENERATIONS_MAX: usize = 1 << 16;

/// Whether nothing that this process starts can become another user, so that a process of another user is none of its
/// commands. It has to be known where `/proc` hides other users' processes, as under the unit that we ship, for what
/// cannot be seen has no ancestors.
pub fn user_is_kept() -> bool {
    // Both are a thread's: what holds before the program starts holds for all threads and children, for good.
    rustix::thread::no_new_privs().unwrap_or(false)
        && rustix::thread::capabilities(None).is_ok_and(|sets| sets.permitted.is_empty())
}

/// The command of this process that `pid` stems from, however far, and whatever it has done to its group, session
/// and environment: who outlives its parent becomes a child of this process.
pub fn origin_of(pid: u32) -> Origin {
    let own = std::process::id();
    if registry::is_quiet() {
        return Origin::Elsewhere;
    }
    let mut seen = HashSet::new();
    let mut next = pid;
    while next > 1 && next != own && seen.len() < GENERATIONS_MAX && seen.insert(next) {
        let Some(process) = procfs::stat(next) else {
            return Origin::Unknown;
        };
        if process.parent == own {
            return registry::origin_of_child(&process);
        }
        next = process.parent;
    }
    Origin::Elsewhere
}
