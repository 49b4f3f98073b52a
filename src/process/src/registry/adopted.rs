//! Processes whose parents have exited: they become our children, and are listed, reaped and killed here.
//!
//! A chain of processes, each of which starts the next one and exits, is faster than a look at its files in `/proc`. So
//! processes with the tag of a command are reaped and killed by system calls alone.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Evidence, Live, Newborn, belongs, live, own_group};
use crate::procfs::{self, Families, Stat};
use crate::tag::{self, Mark};

/// Locked while adopted processes are reaped or killed, so that their numbers name no other processes meanwhile.
static REAPING: Mutex<()> = Mutex::new(());

/// Longest time for which our children are listed again because some exited meanwhile.
const LISTING: Duration = Duration::from_millis(10);

/// Duration of one sweep.
const SWEEP: Duration = Duration::from_millis(200);

/// Empty looks in succession after which a sweep expects nothing more.
const EMPTY_LOOKS: usize = 3;

/// Kills the adopted processes with this tag and reaps those that are dead, until no more come up. Returns false if it met
/// none.
///
/// Each look takes three system calls for a process, so that most processes of a chain are killed before they start the
/// next one.
pub(crate) fn sweep(tag: u64) -> bool {
    let until = Instant::now() + SWEEP;
    let (mut empty, mut has_met) = (0, false);
    while empty < EMPTY_LOOKS && Instant::now() < until {
        let _reaping = REAPING.lock().unwrap_or_else(PoisonError::into_inner);
        let commands = live().clone();
        let children = procfs::orphans().unwrap_or_default().into_iter();
        let met = children.filter_map(|pid| Some((pid, command_of(pid, &commands)?)));
        let ended = met.filter(|(_, live)| live.tag == tag).map(|(pid, live)| {
            if let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(number, Signal::KILL);
            }
            live.reap(pid);
        });
        empty = if ended.count() == 0 { empty + 1 } else { 0 };
        has_met |= empty == 0;
    }
    has_met
}

/// Reaps adopted processes that are dead, so that a long command cannot fill the process table with them.
pub(crate) fn reap() {
    list(usize::MAX, |_, _, _| false);
}

/// Returns our unregistered living children for which `wanted(child, its mark, live commands)` holds, and reaps the dead
/// ones. Stops at more than `most`.
pub(super) fn list(most: usize, wanted: impl Fn(&Stat, Mark, &[Arc<Live>]) -> bool) -> Vec<Stat> {
    let _reaping = REAPING.lock().unwrap_or_else(PoisonError::into_inner);
    let until = Instant::now() + LISTING;
    loop {
        let is_last = Instant::now() >= until;
        let children = Families::now().children(std::process::id());
        // In this order: a command that is listed above has been announced by now.
        let commands = live().clone();
        let newborn = Newborn::among(&commands);
        let is_command = |pid| commands.iter().any(|command| command.pid() == Some(pid));
        let (mut found, mut dead) = (Vec::new(), Vec::new());
        for child in children {
            if is_command(child) || newborn.may_include(child) {
                continue;
            }
            match look(child, &commands) {
                Child::Alive(process, mark) if wanted(&process, mark, &commands) => {
                    found.push(process);
                    if found.len() > most {
                        return found;
                    }
                }
                Child::Dead(process, mark) => dead.push((process, mark)),
                Child::Alive(..) | Child::Other => {}
            }
        }
        // A process that exits during the listing leaves us its children, perhaps too late to be listed.
        if dead.is_empty() {
            return found;
        }
        if is_last {
            // Every listing found processes that had just exited, so each starts the next one. One of them represents its
            // successor, which was never seen alive.
            let mut dead = dead.into_iter();
            if found.is_empty()
                && let Some((process, _)) =
                    dead.find(|(process, mark)| wanted(process, *mark, &commands))
            {
                found.push(Stat {
                    state: b'S',
                    ..process
                });
            }
            return found;
        }
    }
}

/// One child, with the mark that it carries.
enum Child {
    Alive(Stat, Mark),
    /// It is reaped now.
    Dead(Stat, Mark),
    /// Another part of this program waits for it.
    Other,
}

fn look(pid: u32, commands: &[Arc<Live>]) -> Child {
    if let Some(command) = command_of(pid, commands)
        && command.reap(pid)
    {
        return Child::Dead(Stat::of_dead_child(pid), Mark::Command(command.tag));
    }
    let Some(process) = procfs::stat(pid) else {
        return Child::Other;
    };
    let mark = tag::of(pid);
    if !process.is_zombie() {
        return Child::Alive(process, mark);
    }
    // A child in our own group was started by another part of this program.
    if process.group == own_group() {
        return Child::Other;
    }
    match commands
        .iter()
        .find(|live| has_left(live, &process, mark, commands))
    {
        Some(command) => {
            command.reap(pid);
        }
        None => {
            procfs::reap(pid);
        }
    }
    Child::Dead(process, mark)
}

/// The command whose tag the child `pid` carries and whose first process it is not.
fn command_of(pid: u32, commands: &[Arc<Live>]) -> Option<&Arc<Live>> {
    let tag = procfs::lock_limit_of(pid)?;
    // The first process of a command has its tag only after its number was stored.
    let mut commands = commands.iter();
    commands.find(|live| live.tag == tag && live.pid() != Some(pid))
}

/// Returns true if a dead process was a command's. One that died before its command was marked carries our own mark.
pub(super) fn has_left(command: &Live, dead: &Stat, mark: Mark, commands: &[Arc<Live>]) -> bool {
    if mark == Mark::Own {
        let evidence = Evidence::of(dead, Mark::Own, commands);
        return command.may_have_started(&evidence) && belongs(&evidence, command, commands);
    }
    mark == Mark::Command(command.tag)
}
