//! The live commands of this process, and which adopted process belongs to which of them.
//!
//! A process that outlives its parent becomes our child (see [`become_subreaper`]). So once the
//! first process of a command has exited, whatever is left of it hangs below children of ours
//! that nobody registered here. Several commands run at once; each takes only what is its own,
//! and what cannot be told apart waits until no other command can be its origin.

pub(super) mod adopted;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::process::{Pid, getpid, set_child_subreaper};
use rustix::thread::gettid;

use super::command::{ATTEMPT_VARIABLE, Command, RUN_VARIABLE};
use super::descriptors;
use super::owner::{Origin, Owner};
use super::procfs::{self, Families, Stat};
use super::tag::{self, Mark};

static LIVE: Mutex<Vec<Arc<Live>>> = Mutex::new(Vec::new());

/// One command from just before its start to the reaping of its first process.
///
/// It is listed before it exists because its processes may be adopted before its start returns.
/// No lock is held over a start instead: it lasts as long as a dead network file system likes,
/// and nobody else's end may wait for that.
#[derive(Debug)]
pub(super) struct Live {
    /// Names the command; also the tag of its processes, once it is attached.
    tag: u64,
    owner: Owner,
    may_control: bool,
    /// The clock tick in which it was announced; none of its processes started earlier.
    announced_at: u64,
    /// The thread that starts it, whose newest child may be its first process.
    thread: Pid,
    /// Its first process; 0 until that is known.
    pid: AtomicU32,
    /// Inode numbers of its output pipes.
    pipes: [u64; 2],
    /// The clock tick from which on all its processes were born with the tag; [`NEVER`] if the
    /// tag could not be attached, or not yet.
    tagged_at: AtomicU64,
    /// Bytes that those of its processes wrote which were reaped here, after their parents had gone.
    reaped_bytes: AtomicU64,
    /// Their number.
    reaped: AtomicU64,
    /// Whether its first process may still run; once it has exited, nothing new stems from it but
    /// through processes that are left.
    running: AtomicBool,
}

const NEVER: u64 = u64::MAX;

/// Most looks at what was forked before the first process was marked. One is the rule.
const TAG_ROUNDS_MAX: usize = 16;

impl Live {
    fn pid(&self) -> Option<u32> {
        Some(self.pid.load(Ordering::SeqCst)).filter(|pid| *pid != 0)
    }

    /// Reaps the child `pid`, a process of this command, if it has exited. Returns true if it had.
    fn reap(&self, pid: u32) -> bool {
        // What a child wrote is returned only to the call that reaps it.
        let written = procfs::reap(pid);
        if let Some(bytes) = written {
            self.reaped.fetch_add(1, Ordering::SeqCst);
            self.reaped_bytes.fetch_add(bytes, Ordering::SeqCst);
        }
        written.is_some()
    }

    fn is_running(&self) -> bool {
        self.running.load(Ordering::SeqCst)
    }

    /// Whether a process of which nothing but its birth is known may stem from this command.
    fn may_have_started(&self, evidence: &Evidence) -> bool {
        let tick = evidence.identity.1;
        // Whoever still carries our own mark was forked before its command was marked.
        let forked_early =
            evidence.mark != Mark::Own || tick <= self.tagged_at.load(Ordering::SeqCst);
        self.announced_at <= tick && forked_early
    }
}

fn live() -> MutexGuard<'static, Vec<Arc<Live>>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes this process the parent of every descendant whose own parent has died, once and for the
/// rest of its life. [`run`](super::run()) does this by itself; calling it early does no harm.
///
/// All child processes have to be started by this room from then on, or to stay in the process
/// group of this process: others are taken for what a command has left behind.
///
/// # Errors
/// The kernel refuses (before Linux 3.4).
pub fn become_subreaper() -> io::Result<()> {
    static DONE: OnceLock<()> = OnceLock::new();
    if DONE.get().is_none() {
        set_child_subreaper(Some(getpid()))?;
        tag::set_own();
        descriptors::refuse_core_dumps();
        let _ = DONE.set(());
    }
    Ok(())
}

/// Keeps a command registered; dropped after its first process was reaped.
#[derive(Debug)]
pub(super) struct Registration {
    live: Arc<Live>,
}

impl Registration {
    /// Announces that the calling thread is about to start a command.
    pub(super) fn announce(tag: u64, command: &Command, pipes: [u64; 2]) -> Self {
        let entry = Arc::new(Live {
            tag,
            announced_at: tag::tick_now(),
            owner: command.owner.clone(),
            may_control: command.may_control,
            pipes,
            thread: gettid(),
            pid: AtomicU32::new(0),
            tagged_at: AtomicU64::new(NEVER),
            reaped_bytes: AtomicU64::new(0),
            reaped: AtomicU64::new(0),
            running: AtomicBool::new(true),
        });
        live().push(Arc::clone(&entry));
        Self { live: entry }
    }

    /// The start has succeeded.
    pub(super) fn started(&self, pid: Pid) {
        self.live
            .pid
            .store(pid.as_raw_nonzero().get().cast_unsigned(), Ordering::SeqCst);
    }

    /// The mark of its processes.
    pub(super) fn tag(&self) -> u64 {
        self.live.tag
    }

    pub(super) fn first_process_exited(&self) {
        self.live.running.store(false, Ordering::SeqCst);
    }

    /// Marks the first process, a child of ours that has not been reaped, and whatever it has
    /// forked before it was marked. Whether all of its processes carry the tag from now on.
    pub(super) fn attach_tag(&self) -> bool {
        let tag = self.live.tag;
        let Some(first) = self.live.pid() else {
            return false;
        };
        if !tag::set(first, tag) {
            return false;
        }
        let marked: RefCell<HashSet<(u32, u64)>> = RefCell::default();
        for _ in 0..TAG_ROUNDS_MAX {
            let forked = Cell::new(false);
            // It is marked before its children are looked for. What was born with the mark has no others; what was
            // marked here may be in the midst of a fork, and is looked at again.
            let mark = |process: &Stat| {
                let is_new = tag::of(process.pid) != Mark::Command(tag) && !process.is_zombie();
                forked.set(forked.get() || is_new);
                // It may have gone by itself, or become another user's; the next round tells.
                if is_new && tag::set(process.pid, tag) {
                    marked.borrow_mut().insert(process.identity());
                }
                marked.borrow().contains(&process.identity())
            };
            if nothing_left() {
                Families::now().walk(&[first], usize::MAX, mark);
            } else {
                self.family(|_| false, usize::MAX, mark);
            }
            if !forked.get() {
                self.live.tagged_at.store(tag::tick_now(), Ordering::SeqCst);
                return true;
            }
        }
        false
    }

    /// The living processes of this command without its first one. Reaps adopted ones that are
    /// dead. `known` gathers every process of the command ever seen, by pid and start time, so
    /// that it is recognised after it has lost its parents. Each is shown to `visit` before its
    /// children are looked for: who halts it then misses none of them.
    pub(super) fn members(
        &self,
        known: &mut HashSet<(u32, u64)>,
        visit: impl Fn(&Stat),
    ) -> Vec<Stat> {
        let visit = |process: &Stat| {
            visit(process);
            true
        };
        let mut found = self.family(|process| known.contains(process), usize::MAX, visit);
        let first = self.live.pid();
        found.retain(|process| !process.is_zombie() && Some(process.pid) != first);
        known.extend(found.iter().map(Stat::identity));
        found
    }

    /// Processes of this command, all of them or somewhat more than `most`, parents before their children, with those
    /// that are dead and that nobody has waited for. All but the first one are shown to `visit`, which says whether the
    /// children of one that was not adopted are looked for. Reaps adopted ones that are dead.
    pub(super) fn family(
        &self,
        known: impl Fn(&(u32, u64)) -> bool,
        most: usize,
        visit: impl Fn(&Stat) -> bool,
    ) -> Vec<Stat> {
        let mut found = Vec::new();
        if !nothing_left() {
            let is_ours = |process: &Stat, mark, commands: &[Arc<Live>]| {
                known(&process.identity())
                    || belongs(&Evidence::of(process, mark, commands), &self.live, commands)
            };
            found = adopted::list(most, |process, mark, commands| {
                let is_ours = is_ours(process, mark, commands);
                if is_ours {
                    visit(process);
                }
                is_ours
            });
        }
        found.extend(self.live.pid().and_then(procfs::stat));
        let roots: Vec<u32> = found.iter().map(|process| process.pid).collect();
        let more = most.saturating_sub(found.len());
        found.extend(Families::now().walk(&roots, more, visit));
        found
    }

    /// Bytes that processes of it wrote which were reaped here.
    pub(super) fn reaped_bytes(&self) -> u64 {
        self.live.reaped_bytes.load(Ordering::SeqCst)
    }

    /// Number of processes of it that were reaped here.
    pub(super) fn reaped(&self) -> u64 {
        self.live.reaped.load(Ordering::SeqCst)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        live().retain(|command| command.tag != self.live.tag);
    }
}

/// Whether nothing was left behind by anybody, asked at the price of one system call. `false`
/// means that it has to be looked at more closely.
pub(super) fn nothing_left() -> bool {
    let live = live();
    procfs::no_orphans_but(|pid| live.iter().any(|command| command.pid() == Some(pid)))
}

/// Whether no command runs and none has left anything.
pub(super) fn is_quiet() -> bool {
    live().is_empty() && procfs::no_orphans_but(|_| false)
}

/// The live command that `pid` is the first process of, or whose tag it carries.
pub(super) fn origin_by_tag(pid: u32) -> Option<Origin> {
    let commands = live().clone();
    let mark = tag::of(pid);
    let is_its = |live: &&Arc<Live>| live.pid() == Some(pid) || mark == Mark::Command(live.tag);
    let live = commands.iter().find(is_its)?;
    Some(Origin::Command {
        owner: live.owner.clone(),
        may_control: live.may_control,
    })
}

/// The children that threads have just started whose commands are not registered yet. Where the
/// kernel does not say whose child it is, every child may be one.
struct Newborn {
    of_threads: Vec<Option<Vec<u32>>>,
}

impl Newborn {
    fn among(commands: &[Arc<Live>]) -> Self {
        let starting = commands.iter().filter(|command| command.pid().is_none());
        let thread = |command: &Arc<Live>| command.thread.as_raw_nonzero().get();
        Self {
            of_threads: starting
                .map(|command| procfs::children_of_own_thread(thread(command)))
                .collect(),
        }
    }

    fn may_include(&self, child: u32) -> bool {
        self.of_threads
            .iter()
            .any(|list| list.as_ref().is_none_or(|list| list.contains(&child)))
    }
}

/// The number of our process group; 0 where the group is of another pid namespace, which `getpgrp` of rustix
/// takes for impossible.
fn own_group() -> u32 {
    static OWN: OnceLock<u32> = OnceLock::new();
    *OWN.get_or_init(|| procfs::stat(std::process::id()).map_or(0, |own| own.group))
}

/// What speaks for the origin of an adopted process.
#[derive(Clone, Debug)]
struct Evidence {
    identity: (u32, u64),
    group: u32,
    in_own_group: bool,
    mark: Mark,
    run: Option<String>,
    attempt: Option<u32>,
    pipes: Vec<u64>,
}

impl Evidence {
    fn of(process: &Stat, mark: Mark, commands: &[Arc<Live>]) -> Self {
        let mut evidence = Self {
            identity: process.identity(),
            group: process.group,
            in_own_group: process.group == own_group(),
            mark,
            run: None,
            attempt: None,
            pipes: Vec::new(),
        };
        let is_named =
            |live: &Arc<Live>| Mark::Command(live.tag) == mark || live.pid() == Some(process.group);
        // An environment is read last: it lies in the process's own memory, which a process that
        // is stuck may have locked.
        if !commands.iter().any(is_named) {
            let markers = [RUN_VARIABLE, ATTEMPT_VARIABLE];
            let [run, attempt] = procfs::environment_of(process.pid, markers);
            evidence.run = run;
            evidence.attempt = attempt.and_then(|text| text.parse().ok());
            evidence.pipes = procfs::pipes_of(process.pid);
        }
        evidence
    }

    fn has_pipe_of(&self, live: &Live) -> bool {
        live.pipes.iter().any(|pipe| self.pipes.contains(pipe))
    }

    fn carries_marker_of(&self, owner: &Owner) -> bool {
        self.run.as_ref() == Some(&owner.run) && self.attempt == Some(owner.attempt)
    }
}

/// Whether an adopted process belongs to the command `me`: by its tag, its group, its marker, its
/// pipes; and when these say nothing, if no other running command can have started it.
fn belongs(evidence: &Evidence, me: &Live, commands: &[Arc<Live>]) -> bool {
    let others = || commands.iter().filter(|command| command.tag != me.tag);
    let possible = |other: &&Arc<Live>| other.is_running() && other.may_have_started(evidence);
    if evidence.mark == Mark::Command(me.tag) {
        return true;
    }
    if others().any(|other| evidence.mark == Mark::Command(other.tag)) {
        return false;
    }
    if me.pid() == Some(evidence.group) {
        return true;
    }
    if others().any(|other| other.pid() == Some(evidence.group)) {
        return false;
    }
    if evidence.carries_marker_of(&me.owner) {
        // Two commands of one attempt at a time: the later one to end takes what is undecided.
        return !others()
            .filter(possible)
            .any(|other| other.owner == me.owner);
    }
    if others().any(|other| evidence.carries_marker_of(&other.owner)) || evidence.in_own_group {
        return false;
    }
    if evidence.has_pipe_of(me) {
        return true;
    }
    if others().any(|other| evidence.has_pipe_of(other)) {
        return false;
    }
    let is_foreign = is_foreign(evidence.mark, std::process::id());
    !is_foreign && me.announced_at <= evidence.identity.1 && !others().any(|other| possible(&other))
}

/// Whether a process without a mark may stem from none of our commands: the first process of a container is given
/// whatever others have started in it.
pub(super) fn is_foreign(mark: Mark, own_pid: u32) -> bool {
    own_pid == 1 && mark == Mark::Absent && tag::own().is_some()
}

#[cfg(test)]
mod tests;
