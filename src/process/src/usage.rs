//! Counts what the processes of one command use while it runs.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Resource as Limited, getrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities};

use super::command::EndCause;
use super::procfs;
use super::registry::Registration;
use crate::model::{Resource, ResourceLimits};

/// From the start to the first count, and from count to count. A command that is over by then is never looked at.
const SOON: Duration = Duration::from_millis(100);

/// The same where there is much to count, and no limit near.
const LATE: Duration = Duration::from_secs(2);

/// The time until the next count is this many times what one takes.
const SHARE: u32 = 50;

/// If more processes were reaped during one count, others follow and are to be reaped soon.
const MANY_REAPED: u64 = 256;

/// How many of [`SOON`] are in [`LATE`].
const SOON_IN_LATE: u64 = 20;

/// Puts the thread that watches a command before what the command starts, where the kernel allows that: between a
/// thousand busy processes it would be given a thousandth of the processors to count and to end them. Processes in
/// sessions of their own may be scheduled as groups of equal weight, so a lower nice value would not suffice.
pub(super) struct Urgency {
    /// The kernel allowed it.
    pub(super) is_raised: bool,
}

impl Urgency {
    pub(super) fn raise() -> Self {
        Self {
            is_raised: may_be_urgent() && schedule(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1),
        }
    }
}

impl Drop for Urgency {
    fn drop(&mut self) {
        if self.is_raised {
            // A lower priority is never refused; to clear the flag would be.
            schedule(libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0);
        }
    }
}

/// Sets the scheduling policy of this thread. Returns false if that is refused.
fn schedule(policy: i32, priority: i32) -> bool {
    let mut parameters = libc::sched_param {
        sched_priority: priority,
    };
    #[expect(unsafe_code, reason = "rustix does not offer sched_setscheduler")]
    // SAFETY: the kernel reads one structure.
    let result = unsafe { libc::sched_setscheduler(0, policy, &raw mut parameters) };
    result == 0
}

/// Returns true if this process may use a real-time policy. Without the right it is not tried: a service may be killed
/// for trying.
fn may_be_urgent() -> bool {
    static MAY: OnceLock<bool> = OnceLock::new();
    *MAY.get_or_init(|| {
        let has = |sets: CapabilitySets| sets.effective.contains(CapabilitySet::SYS_NICE);
        let limit = getrlimit(Limited::Rtprio).current.unwrap_or(u64::MAX);
        capabilities(None).is_ok_and(has) || limit > 0
    })
}

/// What was counted of one process.
#[derive(Clone, Copy)]
struct ProcessUsage {
    parent: u32,
    /// Bytes, with those of the children that it has waited for.
    written: u64,
}

/// What the processes of a command use.
pub(super) struct Usage {
    next: Instant,
    /// Those that lived when it was last counted.
    seen: HashMap<(u32, u64), ProcessUsage>,
    /// Bytes of those that are gone though their parents, which go on, never waited for them.
    unwaited_bytes: u64,
    processes: u64,
    written: u64,
    /// More than [`MANY_REAPED`] processes were reaped during the last count.
    has_chains: bool,
}

impl Usage {
    pub(super) fn new(started_at: Instant) -> Self {
        Self {
            next: started_at + SOON,
            seen: HashMap::new(),
            unwaited_bytes: 0,
            processes: 0,
            written: 0,
            has_chains: false,
        }
    }

    /// When it is to be counted next.
    pub(super) fn next(&self) -> Instant {
        self.next
    }

    /// Returns true if the command takes so much of the processors that counting it needs precedence: the time to count
    /// has passed for long, or processes replace themselves all the time.
    pub(super) fn is_urgent(&self, now: Instant) -> bool {
        self.has_chains || now >= self.next + SOON
    }

    /// Counts, and says which limit is exceeded.
    pub(super) fn count(&mut self, of: &Registration, limits: &ResourceLimits) -> Option<EndCause> {
        let began = Instant::now();
        let before = (self.processes, self.written);
        let reaped = of.reaped();
        self.take(of, limits.processes);
        let took = began.elapsed();
        let soon = |before: u64, now: u64, limit: u64| {
            let growth = now.saturating_sub(before).saturating_mul(SOON_IN_LATE);
            now.saturating_add(growth) > limit
        };
        let is_near = soon(before.0, self.processes, limits.processes)
            || soon(before.1, self.written, limits.written_bytes);
        self.has_chains = of.reaped() - reaped > MANY_REAPED;
        let wait = if is_near || self.has_chains {
            SOON
        } else {
            (took * SHARE).clamp(SOON, LATE)
        };
        self.next = Instant::now() + wait;
        let counts = [
            (Resource::Processes, limits.processes, self.processes),
            (Resource::Written, limits.written_bytes, self.written),
        ];
        let exceeded = counts
            .into_iter()
            .find(|(_, limit, counted)| counted > limit);
        exceeded.map(|(resource, limit, counted)| EndCause::LimitReached {
            resource,
            limit,
            counted,
        })
    }

    /// The kernel adds what a process wrote to its parent when that waits for it. So the sum over all that live never
    /// loses what was waited for; and as parents are read before their children, and what was reaped here before
    /// both, nothing is in it twice.
    fn take(&mut self, of: &Registration, processes_max: u64) {
        // What is too much already is ended, not counted: a bomb grows while it is walked through.
        let most = usize::try_from(processes_max).unwrap_or(usize::MAX);
        let family = of.family(|process| self.seen.contains_key(process), most, |_| true);
        self.processes = u64::try_from(family.len()).unwrap_or(u64::MAX);
        if self.processes > processes_max {
            return;
        }
        let reaped = of.reaped_bytes();
        let mut now = HashMap::with_capacity(family.len());
        let mut living_bytes = 0_u64;
        for process in &family {
            let seen = match procfs::written_by(process.pid) {
                Some(written) => {
                    living_bytes = living_bytes.saturating_add(written);
                    Some(ProcessUsage {
                        parent: process.parent,
                        written,
                    })
                }
                // It went just now: whether it was waited for, the next count tells.
                None => self.seen.get(&process.identity()).copied(),
            };
            now.extend(seen.map(|seen| (process.identity(), seen)));
        }
        self.unwaited_bytes = self.unwaited_bytes.saturating_add(self.unwaited(&now));
        self.seen = now;
        self.written = living_bytes
            .saturating_add(reaped)
            .saturating_add(self.unwaited_bytes);
    }

    /// Bytes of those that are gone since the last count and were not added to their parents: a parent that ignores
    /// SIGCHLD gets nothing. Of what such a parent writes itself as much goes uncounted here.
    fn unwaited(&self, now: &HashMap<(u32, u64), ProcessUsage>) -> u64 {
        let mut gone: HashMap<u32, u64> = HashMap::new();
        for (process, was) in &self.seen {
            if !now.contains_key(process) {
                *gone.entry(was.parent).or_default() += was.written;
            }
        }
        let lost = |(process, is): (&(u32, u64), &ProcessUsage)| {
            let was = self.seen.get(process)?;
            let of_children = gone.get(&process.0)?;
            Some(of_children.saturating_sub(is.written.saturating_sub(was.written)))
        };
        now.iter().filter_map(lost).sum()
    }
}
