//! The commit of a turn: whole, tried again while the disk is full, run by run where the store refuses it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::request::{Answer, Envelope, Request};
use super::{Core, Reply, Turn};
use crate::model::diagnostic::chain;
use crate::model::{Diagnostic, Kind, RunId};
use crate::scheduler::blocked;
use crate::store::{Batch, Shortage, StoreError, Write};

/// How often a full disk is tried again.
const RETRY_FULL: Duration = Duration::from_secs(5);

/// How often old idempotency keys are forgotten.
const FORGET_EVERY_MS: u64 = 3_600_000;

impl Core {
    /// Commits everything that the turn gathered. On return it is durable, or the engine has to end.
    pub(super) fn commit(&mut self, turn: &mut Turn) -> Result<(), Diagnostic> {
        let mut writes = std::mem::take(&mut turn.before);
        for (run, entries) in std::mem::take(&mut turn.entries) {
            writes.push(Write::Entries { run, entries });
        }
        writes.append(&mut turn.after);
        if writes.is_empty() {
            return self.commit_lazily(turn);
        }
        writes.append(&mut turn.lazy);
        let of_schedule =
            |write: &Write| matches!(write, Write::Slot { .. } | Write::Schedule { .. });
        turn.schedules = writes.iter().any(of_schedule);
        writes.extend(self.forget_keys());
        let batch = Batch { writes };
        match self.commit_batch(&batch) {
            Err(StoreError::Refused { reason, .. }) => self.commit_apart(turn, batch, &reason),
            committed => committed.map_err(|error| broken(&error)),
        }
    }

    /// Once an hour: idempotency keys that no longer answer anything go.
    fn forget_keys(&mut self) -> Option<Write> {
        let now_ms = self.clock.monotonic_ms();
        if now_ms.saturating_sub(self.keys_forgotten_ms) < FORGET_EVERY_MS {
            return None;
        }
        self.keys_forgotten_ms = now_ms;
        let before = self.expiry.now().minus_millis(super::requests::KEY_MS);
        Some(Write::ForgetKeys(before))
    }

    /// What may be lost without harm waits for the next sync.
    fn commit_lazily(&mut self, turn: &mut Turn) -> Result<(), Diagnostic> {
        if turn.lazy.is_empty() {
            return Ok(());
        }
        let batch = Batch {
            writes: std::mem::take(&mut turn.lazy),
        };
        self.unsynced = true;
        match self.store.commit_lazily(&batch) {
            Err(StoreError::Full { .. }) => self.commit_batch(&batch),
            committed => committed,
        }
        .map_err(|error| broken(&error))
    }

    /// Commits a batch; while the disk is full it is kept and tried again.
    fn commit_batch(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.view
            .set_committing_since(self.clock.monotonic_ms() + 1);
        let mut committed = self.store.commit(batch);
        while let Err(StoreError::Full { path, shortage }) = committed {
            if self.gives_up(holds_new_runs_only(batch)) {
                return Err(StoreError::Full { path, shortage });
            }
            self.view.set_shortage(Some(shortage));
            let remedy = shortage.remedy();
            tracing::error!(
                path,
                remedy,
                "{shortage}: nothing is accepted until there is space"
            );
            self.pool.let_go();
            for envelope in self.inbox.take_requests(RETRY_FULL) {
                match envelope.request {
                    Request::Drain => self.start_draining(envelope),
                    _ => envelope.answer(Err(refused_for(shortage))),
                }
            }
            self.view.turned(self.clock.monotonic_ms());
            self.view
                .set_committing_since(self.clock.monotonic_ms() + 1);
            committed = self.store.reopen().and_then(|()| self.store.commit(batch));
        }
        self.view.set_shortage(None);
        self.view.set_committing_since(0);
        self.unsynced &= committed.is_err();
        committed
    }

    /// One bad run never stops the engine: each run's part is committed by itself, and a run whose part
    /// is refused again is given up.
    fn commit_apart(&mut self, turn: &mut Turn, batch: Batch, why: &str) -> Result<(), Diagnostic> {
        let mut parts: BTreeMap<Option<RunId>, Vec<Write>> = BTreeMap::new();
        for write in batch.writes {
            parts.entry(run_of(&write)).or_default().push(write);
        }
        for (run, writes) in parts {
            let known = !writes.iter().any(|write| matches!(write, Write::Spec(_)));
            match (self.commit_batch(&Batch { writes }), run) {
                (Err(StoreError::Refused { reason, .. }), Some(run)) => {
                    tracing::error!(%run, reason, "what the run recorded cannot be stored");
                    self.refuse_run(turn, run, known, &reason)?;
                }
                (Err(StoreError::Refused { .. }), None) => {
                    tracing::error!(why, "a record of no run cannot be stored");
                }
                (committed, _) => committed.map_err(|error| broken(&error))?,
            }
        }
        Ok(())
    }

    fn refuse_run(
        &mut self,
        turn: &mut Turn,
        run: RunId,
        known: bool,
        reason: &str,
    ) -> Result<(), Diagnostic> {
        let mut ending = Turn::default();
        let due = self
            .live
            .get(&run)
            .and_then(|live| live.spec.scheduled.clone());
        self.give_up(&mut ending, run, "not_storable");
        turn.changed.remove(&run);
        turn.dropped.push(run);
        let mut writes = ending.before;
        writes.extend(ending.after.into_iter().filter(|_| known));
        // A slot has its row, though it has no run.
        let why = format!("the run cannot be stored: {reason}");
        writes.extend(due.map(|due| Write::Slot {
            schedule: due.schedule,
            row: blocked(due.slot, self.clock.now(), why),
        }));
        self.commit_batch(&Batch { writes })
            .map_err(|error| broken(&error))?;
        if known {
            return Ok(());
        }
        let answers = std::mem::take(&mut turn.answers);
        for (envelope, reply) in answers {
            if answers_with(&reply, run) {
                refuse(envelope, reason);
            } else {
                turn.answers.push((envelope, reply));
            }
        }
        Ok(())
    }
}

fn answers_with(reply: &Reply, run: RunId) -> bool {
    match reply {
        Reply::Summary(other) => *other == run,
        Reply::Now(answer) => {
            matches!(answer.as_ref(), Answer::Submitted(submitted) if submitted.run == run)
        }
    }
}

fn refuse(envelope: Envelope, reason: &str) {
    let message = format!("the run cannot be stored: {reason}");
    let refused = Diagnostic::new(Kind::Usage, "not_storable", message)
        .hint("pass large values through a file in the workspace");
    envelope.answer(Err(refused));
}

/// Whether nothing but requests led to it.
fn holds_new_runs_only(batch: &Batch) -> bool {
    let is_new = |run| {
        let spec_of = |write: &Write| matches!(write, Write::Spec(spec) if spec.run == run);
        batch.writes.iter().any(spec_of)
    };
    batch.writes.iter().filter_map(run_of).all(is_new)
}

fn run_of(write: &Write) -> Option<RunId> {
    match write {
        Write::Spec(spec) => Some(spec.run),
        Write::Entries { run, .. } | Write::Closed(run) | Write::Key { run, .. } => Some(*run),
        Write::Finished(summary) => Some(summary.run),
        Write::Slot { row, .. } => row.run,
        // Those come from no turn of the loop.
        Write::Forget(_)
        | Write::ForgetSchedule(_)
        | Write::ForgetCounts(_)
        | Write::ForgetKeys(_)
        | Write::WebSession(_)
        | Write::EndWebSession(_)
        | Write::FailedPush(_)
        | Write::EndFailedPush(_)
        | Write::Schedule { .. }
        | Write::ForgetHours(_)
        | Write::DropSlot { .. }
        | Write::UndoSlot { .. }
        | Write::Notices(_) => None,
    }
}

fn broken(error: &StoreError) -> Diagnostic {
    if let StoreError::Full { shortage, .. } = error {
        return Diagnostic::new(Kind::Blocked, shortage.code(), chain(error)).hint(format!(
            "{} and start the engine again: it recovers from what was committed",
            shortage.remedy()
        ));
    }
    if let StoreError::Gone { .. } = error {
        return super::super::unusable::gone(chain(error));
    }
    Diagnostic::new(Kind::Internal, "store_broken", chain(error))
        .hint("start the engine again: it recovers from what was committed")
}

fn refused_for(shortage: Shortage) -> Diagnostic {
    let (message, hint) = match shortage {
        Shortage::Disk => (
            "the disk is full: nothing new is accepted".to_owned(),
            "free some space; work goes on by itself within seconds",
        ),
        Shortage::Inodes => (
            format!("{shortage} for the store: nothing new is accepted"),
            "delete files on that file system (`df -i` shows its inodes); work goes on by itself within seconds",
        ),
        Shortage::FileSize => (
            format!("the store cannot grow, {shortage}: nothing new is accepted"),
            "raise the limit: run `prlimit --fsize=unlimited --pid` with the process id of the engine, and work resumes by itself within seconds; to make it permanent, set `LimitFSIZE=infinity` in its unit",
        ),
    };
    Diagnostic::new(Kind::Blocked, shortage.code(), message).hint(hint)
}
