//! What people say to runs that wait for their approval, and what becomes of those to which nobody says anything.

use super::super::approval;
use super::super::refusals::no_such_run;
use super::{Core, Reply, Turn};
use crate::machine::{AfterSave, Approval, Event, State};
use crate::model::{Diagnostic, Kind, News, RunId, Timestamp};

impl Core {
    /// Somebody approves what they were shown.
    pub(super) fn approve(
        &mut self,
        turn: &mut Turn,
        run: RunId,
        approval: &Approval,
    ) -> Result<Reply, Diagnostic> {
        self.refuse_not_asked(turn, run)?;
        let live = self.live.get(&run);
        let is_shown =
            live.is_some_and(|live| approval::digest(&live.spec, &live.run) == approval.digest);
        if !is_shown {
            let message = format!("{} changed after it was reviewed", run.short());
            let refused = Diagnostic::new(Kind::Conflict, "approval_changed", message);
            return Err(refused.hint(format!("review it again: `workerctl show {}`", run.short())));
        }
        let approval = approval.clone();
        self.record(turn, run, Event::Approved { approval });
        Ok(Reply::Summary(run))
    }

    /// Somebody refuses.
    pub(super) fn deny(
        &mut self,
        turn: &mut Turn,
        run: RunId,
        by: &str,
        note: &str,
    ) -> Result<Reply, Diagnostic> {
        self.refuse_not_asked(turn, run)?;
        let (by, note) = (by.to_owned(), note.to_owned());
        self.record(turn, run, Event::Denied { by, note });
        Ok(Reply::Summary(run))
    }

    /// Denies what nobody has answered in time.
    pub(super) fn expire_approvals(&mut self, turn: &mut Turn, now: Timestamp) {
        while let Some((_, run)) = self.asked.first().filter(|(by, _)| *by <= now).copied() {
            let asked = self.live.get(&run).and_then(|live| {
                let by = live.run.asked()?;
                Some((std::sync::Arc::clone(&live.spec), by))
            });
            self.record(turn, run, Event::ApprovalExpired);
            if let Some((spec, by)) = asked {
                self.notice_approval(turn, &spec, News::Expired, by);
            }
        }
    }

    /// Refuses an answer to a run that does not wait for one, and says what it does instead.
    fn refuse_not_asked(&mut self, turn: &mut Turn, run: RunId) -> Result<(), Diagnostic> {
        self.expire_approvals(turn, self.expiry.now());
        let short = run.short();
        let refused = |why: String| {
            let told = Diagnostic::new(Kind::Conflict, "not_awaiting_approval", why);
            Err(told.hint(format!("`workerctl show {short}` tells what became of it")))
        };
        let Some(live) = self.live.get(&run) else {
            return match self.view.run(run) {
                None if self.store.spec(run).is_ok_and(|spec| spec.is_none()) => {
                    Err(no_such_run(&run.to_string()))
                }
                _ => refused(format!("{short} has ended")),
            };
        };
        if live.run.asked().is_some() {
            return Ok(());
        }
        let coming = match &live.run.state {
            State::Saving {
                next: AfterSave::Finish(outcome),
                ..
            } => Some(outcome),
            _ => live.run.outcome(),
        };
        match (&live.run.facts.approval, coming) {
            (_, Some(outcome)) => refused(match outcome.detail() {
                Some(why) => format!("{short} has ended, {}: {why}", outcome.name()),
                None => format!("{short} has ended, {}", outcome.name()),
            }),
            (Some(approval), None) => {
                refused(format!("{short} was approved already, by {}", approval.by))
            }
            (None, None) => refused(format!(
                "{short} does not wait for approval: it is {}",
                live.run.phase()
            )),
        }
    }
}

/// When a wait is over that was set at a time, for a length in milliseconds.
pub(super) fn deadline((since, for_ms): (Timestamp, u64)) -> Timestamp {
    since.plus_millis(for_ms)
}
