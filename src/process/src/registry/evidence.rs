//! Decides which command an adopted process belongs to.

use std::sync::Arc;

use super::{Live, own_group};
use crate::command::{ATTEMPT_VARIABLE, RUN_VARIABLE};
use crate::owner::Owner;
use crate::procfs::{self, Stat};
use crate::tag::{self, Mark};

/// What speaks for the origin of an adopted process.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    pub(super) identity: (u32, u64),
    pub(super) group: u32,
    pub(super) in_own_group: bool,
    pub(super) mark: Mark,
    pub(super) run: Option<String>,
    pub(super) attempt: Option<u32>,
    pub(super) pipes: Vec<u64>,
}

impl Evidence {
    pub(super) fn of(process: &Stat, mark: Mark, commands: &[Arc<Live>]) -> Self {
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
pub(super) fn belongs(evidence: &Evidence, me: &Live, commands: &[Arc<Live>]) -> bool {
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
pub(crate) fn is_foreign(mark: Mark, own_pid: u32) -> bool {
    own_pid == 1 && mark == Mark::Absent && tag::own().is_some()
}
