//! Ending a command: everything that stems from it gets TERM, and KILL where that is not enough.

use std::cell::RefCell;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{KILLED_WAIT, Phase, Watch, after};
use crate::procfs::Stat;
use crate::registry::adopted;
use crate::signal;
use crate::usage::Urgency;

/// Most rounds of halting a tree before it is killed; a tree that forks faster is killed round by
/// round instead.
const FREEZE_ROUNDS_MAX: usize = 8;

/// Duration after which no further round begins.
const FREEZE: Duration = Duration::from_millis(100);

impl Watch<'_> {
    /// The living processes of the command but its first one, each shown to `visit` before its children are looked for.
    pub(super) fn rest(&mut self, visit: impl Fn(&Stat)) -> Vec<Stat> {
        let registration = &self.child.registration;
        let rest = registration.members(&mut self.known, visit);
        let ending = matches!(
            self.phase,
            Phase::Terminating { .. } | Phase::Killing { .. }
        );
        if ending && self.exited_at.is_some() {
            self.outlived.extend(rest.iter().map(Stat::identity));
        }
        rest
    }

    pub(super) fn terminate(&mut self, now: Instant) {
        if self.limits.grace.is_zero() {
            return self.kill(now);
        }
        self.phase = Phase::Terminating {
            until: after(now, self.limits.grace),
        };
        self.signal_all(Signal::TERM);
        // A halted process takes notice of TERM only when it goes on.
        self.signal_all(Signal::CONT);
    }

    /// Halts the whole tree, so that it cannot grow while it is looked at, and kills it.
    pub(super) fn kill(&mut self, now: Instant) {
        self.phase = Phase::Killing {
            since: now,
            until: after(now, KILLED_WAIT),
        };
        self.child.urgency.get_or_insert_with(Urgency::raise);
        let halted: RefCell<HashSet<(u32, u64)>> = RefCell::default();
        let group = self.group();
        // One call halts the whole group at once; those who left it are halted one by one below.
        signal::send_to_group(self.child.pid, Signal::STOP);
        for _ in 0..FREEZE_ROUNDS_MAX {
            let before = halted.borrow().len();
            // Halted before its children are looked for, a process gets no more of them: one round finds all but those
            // whose parents went meanwhile.
            self.rest(|process| {
                if halted.borrow_mut().insert(process.identity()) && process.group != group {
                    signal::send(process, Signal::STOP);
                }
            });
            if halted.borrow().len() == before || now.elapsed() > FREEZE {
                break;
            }
        }
        self.signal_all(Signal::KILL);
        self.awaited = None;
        // To halt very many takes its time.
        self.phase = Phase::Killing {
            since: now,
            until: after(Instant::now(), KILLED_WAIT),
        };
    }

    /// The process group of its first process.
    pub(super) fn group(&self) -> u32 {
        self.child.pid.as_raw_nonzero().get().cast_unsigned()
    }

    fn signal_all(&mut self, what: Signal) {
        let rest = self.rest(|_| {});
        signal::send_to_group(self.child.pid, what);
        self.signal_outside_group(&rest, what);
    }

    fn signal_outside_group(&self, processes: &[Stat], what: Signal) {
        let group = self.group();
        for process in processes.iter().filter(|process| process.group != group) {
            signal::send(process, what);
        }
    }

    /// Whether no process is left. If one is, its end is awaited from now on; while everything is
    /// being killed, what has come up since is killed too.
    pub(super) fn is_all_gone(&mut self) -> bool {
        if self.exited_at.is_none() || self.awaited.is_some() {
            return false;
        }
        let is_killing = matches!(self.phase, Phase::Killing { .. });
        if is_killing && adopted::sweep(self.child.registration.tag()) {
            return false;
        }
        let rest = self.rest(|_| {});
        if rest.is_empty() {
            return true;
        }
        if is_killing {
            signal::send_to_group(self.child.pid, Signal::KILL);
            self.signal_outside_group(&rest, Signal::KILL);
        }
        self.awaited = rest.iter().find_map(signal::open);
        false
    }
}
