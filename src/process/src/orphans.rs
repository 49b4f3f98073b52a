//! Ends what is left of a run whose engine has died: processes that are not our children.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use super::command::RUN_VARIABLE;
use super::live::LiveRecord;
use super::owner::Owner;
use super::procfs::{self, Stat};
use super::{registry, signal, tag};

/// Longest wait for processes to vanish after KILL.
const KILLED_WAIT: Duration = Duration::from_secs(5);

/// Longest wait on one process before all are looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// What was found of a run and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrphansEnded {
    /// Number of processes.
    pub ended: u32,
}

/// Processes of a run that could not be ended.
#[derive(Debug, thiserror::Error)]
#[error(
    "processes {pids:?} of run `{run}` are still there after KILL; hint: they belong to another \
     user or hang in the kernel, see `ps -o pid,user,stat,wchan,args -p PID`"
)]
pub struct OrphansRemain {
    /// The run.
    pub run: String,
    /// The processes, by id.
    pub pids: Vec<u32>,
}

/// Finds every process of `owner`'s run, of whatever attempt, and ends it: TERM, `grace`, KILL.
/// Returns when all are gone.
///
/// A process is found by `records` (the recorded processes themselves, their groups, the tags of their
/// commands), by the marker in its environment, and by descending from one that was found. To be called
/// only while the run has no command running in this process.
///
/// # Errors
/// Some are still there 5 s after KILL.
pub fn find_and_end_orphans(
    records: &[&LiveRecord],
    owner: &Owner,
    grace: Duration,
) -> Result<OrphansEnded, OrphansRemain> {
    let search = Search::of(records, &owner.run);
    let mut seen = HashSet::new();
    let mut left = search.find(&mut seen);
    if !left.is_empty() && !grace.is_zero() {
        for what in [Signal::TERM, Signal::CONT] {
            for process in &left {
                signal::send(process, what);
            }
        }
        left = search.wait_until_gone(&mut seen, Instant::now().checked_add(grace), &[]);
    }
    if !left.is_empty() {
        // Halted first: a tree that is killed while it grows would have to be chased.
        left = search.wait_until_gone(
            &mut seen,
            Instant::now().checked_add(KILLED_WAIT),
            &[Signal::STOP, Signal::KILL],
        );
    }
    if left.is_empty() {
        return Ok(OrphansEnded {
            ended: u32::try_from(seen.len()).unwrap_or(u32::MAX),
        });
    }
    let pids = left.iter().map(|process| process.pid).collect();
    Err(OrphansRemain {
        run: owner.run.clone(),
        pids,
    })
}

/// Whether this process stems from the run: whoever ended what is left of it would end itself, or would leave
/// it running.
pub fn is_within(records: &[&LiveRecord], run: &str) -> bool {
    let search = Search::of(records, run);
    let all = procfs::all();
    let by_pid: HashMap<u32, &Stat> = all.iter().map(|process| (process.pid, process)).collect();
    let above = ourselves_and_above(&by_pid);
    let mut above = above.iter().filter_map(|pid| by_pid.get(pid));
    above.any(|process| process.pid != 1 && search.is_marked(process, &by_pid))
}

/// What is looked for.
struct Search<'a> {
    /// The records that stem from this boot.
    records: Vec<&'a LiveRecord>,
    /// The marks of the commands and of the engines that have died.
    tags: Vec<u64>,
    run: &'a str,
}

impl<'a> Search<'a> {
    fn of(records: &[&'a LiveRecord], run: &'a str) -> Self {
        let boot = procfs::boot_id().ok();
        let of_boot = |record: &&&LiveRecord| Some(&record.boot_id) == boot.as_ref();
        let records: Vec<&LiveRecord> = records.iter().filter(of_boot).copied().collect();
        // A living engine carries its own mark, and so does everything that it starts, for a moment.
        let dead = records.iter().filter(|record| !record.engine_lives());
        let engines = dead.filter_map(|record| record.engine_tag);
        let engines = engines.filter(|tag| Some(*tag) != tag::own());
        let commands = records.iter().filter_map(|record| record.tag);
        Self {
            tags: commands.chain(engines).collect(),
            records,
            run,
        }
    }

    /// Looks until nothing is found or `until` has passed, sending `signals` to whatever is found
    /// each time; returns what is left.
    fn wait_until_gone(
        &self,
        seen: &mut HashSet<(u32, u64)>,
        until: Option<Instant>,
        signals: &[Signal],
    ) -> Vec<Stat> {
        loop {
            let mut left = self.find(seen);
            for what in signals {
                for process in &left {
                    signal::send(process, *what);
                }
                // What was forked before all were halted is found now.
                left = self.find(seen);
            }
            let now = Instant::now();
            let time_left = until.map_or(LOOK_AGAIN, |until| until.saturating_duration_since(now));
            if left.is_empty() || time_left.is_zero() {
                return left;
            }
            wait_for_one(&left, time_left.min(LOOK_AGAIN));
        }
    }

    /// The living processes of the run. Reaps those among our own children that are dead.
    fn find(&self, seen: &mut HashSet<(u32, u64)>) -> Vec<Stat> {
        registry::adopted::reap();
        let all = procfs::all();
        let by_pid: HashMap<u32, &Stat> =
            all.iter().map(|process| (process.pid, process)).collect();
        // Never ourselves: an engine that a skill has started descends from a run and carries its marks.
        let spared = ourselves_and_above(&by_pid);
        let mut found: HashMap<u32, Stat> = HashMap::new();
        for process in &all {
            if spared.contains(&process.pid) || process.is_zombie() {
                continue;
            }
            if seen.contains(&process.identity()) || self.is_marked(process, &by_pid) {
                found.insert(process.pid, *process);
            }
        }
        // Each round adds one generation; a parent is not always listed before its children.
        loop {
            let children: Vec<Stat> = all
                .iter()
                .filter(|process| {
                    found.contains_key(&process.parent)
                        && !found.contains_key(&process.pid)
                        && !spared.contains(&process.pid)
                        && !process.is_zombie()
                })
                .copied()
                .collect();
            if children.is_empty() {
                break;
            }
            found.extend(children.into_iter().map(|process| (process.pid, process)));
        }
        seen.extend(found.values().map(Stat::identity));
        found.into_values().collect()
    }

    fn is_marked(&self, process: &Stat, by_pid: &HashMap<u32, &Stat>) -> bool {
        for record in &self.records {
            // Without its leader a group's number proves little: it may have died out and have
            // been used again. Then only the tag or the marker counts.
            let first = by_pid.get(&record.pid);
            let first_is_there = first.is_some_and(|first| first.start == record.start_time);
            if first_is_there && (process.pid == record.pid || process.group == record.pid) {
                return true;
            }
        }
        let mark = procfs::lock_limit_of(process.pid);
        if mark.is_some_and(|mark| self.tags.contains(&mark)) {
            return true;
        }
        let [run, _] = procfs::environment_of(process.pid, [RUN_VARIABLE, RUN_VARIABLE]);
        run.as_deref() == Some(self.run)
    }
}

/// Kills commands of engines that have died if they have one of `files` open, and so may have locked it, or wait for
/// its lock. Returns their number.
///
/// They are known by the mark of a command; those that a living engine has started are spared.
pub fn end_orphans_with_open(files: &[&Path]) -> usize {
    let wanted: HashSet<(u64, u64)> = files
        .iter()
        .filter_map(|path| fs::metadata(path).ok())
        .map(|found| (found.dev(), found.ino()))
        .collect();
    let find = || -> Vec<Stat> {
        let all = procfs::all();
        let by_pid: HashMap<u32, &Stat> = all.iter().map(|stat| (stat.pid, stat)).collect();
        let spared = ourselves_and_above(&by_pid);
        all.iter()
            .filter(|process| {
                !spared.contains(&process.pid)
                    && !process.is_zombie()
                    && tag::is_of_command(process.pid)
                    && !descends_from_engine(process, &by_pid)
                    && has_open(process.pid, &wanted)
            })
            .copied()
            .collect()
    };
    let until = Instant::now() + KILLED_WAIT;
    let mut ended = HashSet::new();
    loop {
        let left = find();
        if left.is_empty() || Instant::now() >= until {
            return ended.len();
        }
        // Halted first, so that none of them is replaced by a child while the others are killed.
        for what in [Signal::STOP, Signal::KILL] {
            for process in &left {
                signal::send(process, what);
            }
        }
        ended.extend(left.iter().map(Stat::identity));
        wait_for_one(&left, LOOK_AGAIN);
    }
}

fn descends_from_engine(process: &Stat, by_pid: &HashMap<u32, &Stat>) -> bool {
    let mut seen = HashSet::new();
    let mut next = process.parent;
    while seen.insert(next)
        && let Some(parent) = by_pid.get(&next)
    {
        if tag::is_engine(next) {
            return true;
        }
        next = parent.parent;
    }
    false
}

fn has_open(pid: u32, wanted: &HashSet<(u64, u64)>) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"));
    descriptors.into_iter().flatten().flatten().any(|entry| {
        fs::metadata(entry.path()).is_ok_and(|found| wanted.contains(&(found.dev(), found.ino())))
    })
}

/// This process and those it descends from, which never are anybody's orphans.
fn ourselves_and_above(by_pid: &HashMap<u32, &Stat>) -> HashSet<u32> {
    let mut spared = HashSet::from([0, 1]);
    let mut next = std::process::id();
    while spared.insert(next) {
        next = by_pid.get(&next).map_or(1, |process| process.parent);
    }
    spared
}

/// Waits until one of the processes ends, at most for `time`.
fn wait_for_one(processes: &[Stat], time: Duration) {
    let timeout = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    let pidfd = processes.iter().find_map(signal::open);
    let mut polled: Vec<PollFd<'_>> = pidfd
        .iter()
        .map(|pidfd| PollFd::from_borrowed_fd(pidfd.as_fd(), PollFlags::IN))
        .collect();
    // Whatever the answer, the processes are looked at again.
    let _ = poll(&mut polled, Some(&timeout));
}
