//! Branches whose last push failed: stored with the event that says so, and pushed again by a daemon with growing
//! waits until the remote takes them.

use std::collections::BTreeMap;

use super::super::work::{PushResult, Pushing};
use super::{Core, Turn};
use crate::machine::{Event, HookVerdict};
use crate::model::{Diagnostic, FailedPush, Kind, News, Notice, RunId, RunSpec, Timestamp};
use crate::process::{StopHandle, StopKind};
use crate::store::{Store, StoreError, Write};

/// Every branch whose last push failed, by [`FailedPush::key`].
#[derive(Default)]
pub(crate) struct FailedPushes {
    known: BTreeMap<String, FailedPush>,
    /// Pushes under way, each with the handle that ends it.
    running: BTreeMap<String, StopHandle>,
}

impl FailedPushes {
    /// Reads those of the store. A record that cannot be read is logged and left out.
    pub(crate) fn stored(store: &dyn Store, now: Timestamp) -> Result<FailedPushes, StoreError> {
        let mut known = BTreeMap::new();
        store.failed_pushes(&mut |read| match read {
            Ok(push) => {
                known.insert(push.key(), push);
            }
            Err(error) => tracing::error!(%error, "the record of a failed push cannot be read"),
        })?;
        let mut pushes = FailedPushes {
            known,
            running: BTreeMap::new(),
        };
        pushes.try_now(now);
        Ok(pushes)
    }

    /// Makes all pushes due, because a user may have removed the cause.
    pub(super) fn try_now(&mut self, now: Timestamp) {
        for push in self.known.values_mut() {
            push.next_attempt_at = Some(now);
        }
    }

    /// Returns when the next push is due.
    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        let waiting = self.known.iter();
        let waiting = waiting.filter(|(key, _)| !self.running.contains_key(*key));
        waiting.filter_map(|(_, push)| push.next_attempt_at).min()
    }

    /// Returns whether no push is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }
}

/// Returns the key of the branch that a run pushes; `None` if it pushes none.
fn key_of(spec: &RunSpec) -> Option<String> {
    let tree = spec.tree.as_ref()?;
    let remote = tree.push.as_deref()?;
    Some(FailedPush::key_of(&tree.workdir, remote, tree.branch()))
}

impl Core {
    /// Records the result of the push that a run does itself, its first hook after the commit.
    pub(super) fn run_pushed(&mut self, turn: &mut Turn, run: RunId, event: &Event) {
        let Event::PostCommitHookFinished {
            index: 0, verdict, ..
        } = event
        else {
            return;
        };
        let Some(live) = self.live.get(&run) else {
            return;
        };
        let spec = live.spec.clone();
        let (Some(key), Some(tree)) = (key_of(&spec), &spec.tree) else {
            return;
        };
        let message = match verdict {
            HookVerdict::Passed => return self.end_push(turn, &key),
            HookVerdict::Blocked { message }
            | HookVerdict::Changed { message }
            | HookVerdict::Warned { message } => message,
        };
        let Some(commit) = live.run.facts.commit.clone() else {
            return;
        };
        let is_cancelled = live.push_cancelled;
        let now = self.clock.now();
        let mut push = self.pushes.known.get(&key).cloned().unwrap_or(FailedPush {
            repository: tree.workdir.clone(),
            remote: tree.push.clone().unwrap_or_default(),
            branch: tree.branch().to_owned(),
            commit: String::new(),
            runs: Vec::new(),
            skill: spec.skill.clone(),
            schedule: None,
            since: now,
            tries: 0,
            next_attempt_at: None,
            message: String::new(),
            notified: false,
        });
        push.commit = commit;
        push.skill = spec.skill.clone();
        push.schedule = spec.scheduled.as_ref().map(|due| due.schedule.clone());
        push.add(run);
        push.failed(message, is_cancelled, now);
        let is_watched = spec.foreground && !self.view.has_lost_client(run);
        if !is_watched && !is_cancelled {
            self.notice_push(turn, &mut push);
        }
        self.put_push(turn, push);
    }

    fn put_push(&mut self, turn: &mut Turn, push: FailedPush) {
        turn.before.push(Write::FailedPush(Box::new(push.clone())));
        self.pushes.known.insert(push.key(), push);
    }

    fn end_push(&mut self, turn: &mut Turn, key: &str) {
        let Some(push) = self.pushes.known.remove(key) else {
            return;
        };
        turn.before.push(Write::EndFailedPush(key.to_owned()));
        if push.notified {
            let notice = Notice {
                run: push.runs.last().copied(),
                failing_since: Some(push.since),
                ..Notice::of(News::Pushed, self.clock.now())
            };
            self.add_notice(turn, &push.skill, push.schedule.as_deref(), notice);
        }
    }

    /// Notifies a failure once, until a push of the branch has succeeded.
    fn notice_push(&mut self, turn: &mut Turn, push: &mut FailedPush) {
        if std::mem::replace(&mut push.notified, true) {
            return;
        }
        let why = FailedPush::describe(&push.remote, &push.branch, &push.message);
        let notice = Notice {
            run: push.runs.last().copied(),
            message: Some(why),
            failing_since: Some(push.since),
            ..Notice::of(News::PushFailed, self.clock.now())
        };
        self.add_notice(turn, &push.skill, push.schedule.as_deref(), notice);
    }

    /// Starts due pushes. Only a daemon does: a command lets them wait for one.
    pub(super) fn push_again(&mut self) {
        if self.draining.is_some() {
            for stop in self.pushes.running.values() {
                stop.stop(StopKind::Graceful);
            }
            return;
        }
        if !self.starts_queued {
            return;
        }
        let now = self.clock.now();
        let pushes = &mut self.pushes;
        let is_due = |push: &FailedPush| push.next_attempt_at.is_some_and(|at| at <= now);
        let due = pushes.known.iter().filter(|(_, push)| is_due(push));
        let due: Vec<_> = due.map(|(key, push)| (key.clone(), push.clone())).collect();
        for (key, push) in due {
            if pushes.running.contains_key(&key) {
                continue;
            }
            let stop = StopHandle::new();
            pushes.running.insert(key, stop.clone());
            self.pool.push_branch(Pushing { push, stop });
        }
    }

    /// Records the result of a push without a run.
    pub(super) fn on_pushed(&mut self, turn: &mut Turn, tried: &FailedPush, result: PushResult) {
        let key = tried.key();
        self.pushes.running.remove(&key);
        let Some(mut push) = self.pushes.known.get(&key).cloned() else {
            return;
        };
        match result {
            // A run has landed a newer commit meanwhile, and its own push failed.
            PushResult::Pushed if push.commit != tried.commit => {}
            PushResult::Pushed => {
                tracing::info!(push.remote, push.branch, "pushed at last");
                self.end_push(turn, &key);
            }
            PushResult::Stopped => {}
            PushResult::Failed { message } => {
                tracing::warn!(push.remote, push.branch, message, "the push failed again");
                let is_cancelled = push.next_attempt_at.is_none();
                push.failed(&message, is_cancelled, self.clock.now());
                self.notice_push(turn, &mut push);
                self.put_push(turn, push);
            }
        }
    }

    /// Ends the push of a run, or the repeated pushes of its branch.
    pub(super) fn cancel_push(&mut self, turn: &mut Turn, run: RunId) -> Result<(), Diagnostic> {
        let mut known = self.pushes.known.values();
        let is_of_run =
            |push: &&FailedPush| push.next_attempt_at.is_some() && push.runs.contains(&run);
        let Some(mut push) = known.find(is_of_run).cloned() else {
            let message = format!("{} has ended", run.short());
            return Err(Diagnostic::new(Kind::Conflict, "ended", message));
        };
        if let Some(stop) = self.pushes.running.get(&push.key()) {
            stop.stop(StopKind::Graceful);
        }
        push.next_attempt_at = None;
        self.put_push(turn, push);
        Ok(())
    }
}
