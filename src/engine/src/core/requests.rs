//! Requests: each becomes an event, or is refused.

use super::super::given_up::missing_end;
use super::super::live::Live;
use super::super::request::{Answer, Envelope, Request, Submission};
use super::super::view::Condition;
use super::{Core, Reply, Turn};
use crate::machine::{AfterSave, CancelKind, Entry, Event, MACHINE_VERSION, Run, State};
use crate::model::outcome::Outcome;
use crate::model::{Diagnostic, Kind, RunId};
use crate::protocol::Submitted;
use crate::queue::Refused;
use crate::scheduler::Scheduler;
use crate::store::Write;

/// How long an idempotency key answers the same run.
pub(super) const KEY_MS: u64 = 24 * 3_600_000;

impl Core {
    pub(super) fn on_request(&mut self, turn: &mut Turn, envelope: Envelope) {
        let reply = match &envelope.request {
            Request::Submit(submission) => self.submit(turn, submission),
            Request::Cancel { run, kind, by } => self.cancel(turn, *run, *kind, by),
            Request::Approve { run, approval } => self.approve(turn, *run, approval),
            Request::Deny { run, by, note } => self.deny(turn, *run, by, note),
            Request::Settled { run, event } => self.add(turn, *run, event.clone()),
            Request::Reloaded {
                parallel_max,
                waiting_max,
            } => {
                self.queue.set_limits(*parallel_max, *waiting_max);
                self.try_now();
                Ok(done())
            }
            Request::Schedules(definitions) => {
                self.set_schedules(turn, definitions).map(|()| done())
            }
            Request::CloseAbsent => self
                .ask_scheduler(turn, Scheduler::close_absent_schedules)
                .map(|()| done()),
            Request::Pause { schedule, pause } => self
                .ask_scheduler(turn, |scheduler, context| {
                    scheduler.pause(context, schedule, pause.clone())
                })
                .map(|()| done()),
            Request::Trigger(trigger) => self.trigger(turn, trigger),
            Request::Hint(schedule) => {
                self.ask_scheduler(turn, |scheduler, context| {
                    scheduler.hinted(context, schedule.as_deref());
                });
                Ok(done())
            }
            Request::WebSessions(changes) => {
                let ended = changes.ended.iter().cloned().map(Write::EndWebSession);
                turn.before.extend(ended);
                let begun = changes.begun.clone().map(Box::new).map(Write::WebSession);
                turn.before.extend(begun);
                Ok(done())
            }
            Request::Settle => Ok(done()),
            // Answered when the loop has ended.
            Request::Drain => {
                self.start_draining(envelope);
                return;
            }
        };
        match reply {
            Ok(reply) => turn.answers.push((envelope, reply)),
            Err(refused) => envelope.answer(Err(refused)),
        }
    }

    fn submit(&mut self, turn: &mut Turn, submission: &Submission) -> Result<Reply, Diagnostic> {
        let spec = &submission.spec;
        if self.view.condition() == Condition::Draining {
            return Err(
                Diagnostic::new(Kind::Conflict, "draining", "the engine is ending")
                    .hint("submit again once it has been started again"),
            );
        }
        if let Some(existing) = self.existing(turn, submission)? {
            self.queue.want(existing.run);
            return Ok(Reply::Now(Box::new(Answer::Submitted(existing))));
        }
        self.enqueue(turn, submission)?;
        if let Some(key) = &submission.key {
            let (key, run, at) = (key.clone(), spec.run, spec.submitted_at);
            turn.keys.insert(key.clone(), (run, at));
            turn.before.push(Write::Key { key, run, at });
        }
        Ok(Reply::Now(Box::new(Answer::Submitted(Submitted {
            run: spec.run,
            thread: spec.thread.clone(),
            existing: false,
        }))))
    }

    /// Takes a run in, if there is room for it.
    pub(super) fn enqueue(
        &mut self,
        turn: &mut Turn,
        submission: &Submission,
    ) -> Result<(), Diagnostic> {
        let spec = &submission.spec;
        // A run that another one started uses that one's place.
        let queued = match spec.parent {
            Some(_) => Ok(()),
            None => self.queue.submit(spec.run, submission.needs.clone()),
        };
        queued.map_err(|refused| match refused {
            Refused::Full(most) => Diagnostic::new(
                Kind::Blocked,
                "queue_full",
                format!("{most} runs are waiting already"),
            )
            .hint("raise `queue.max` in workerctl.yaml, or submit later"),
            Refused::Known => Diagnostic::new(Kind::Conflict, "run_known", refused.to_string()),
        })?;
        let event = Event::Submitted {
            machine: MACHINE_VERSION,
            plan: spec.plan.clone(),
        };
        let run = Run::submitted(&event).map_err(|error| {
            Diagnostic::new(
                Kind::Internal,
                "machine",
                crate::model::diagnostic::chain(&error),
            )
        })?;
        let entry = Entry {
            seq: 0,
            at: spec.submitted_at,
            event,
        };
        let live = Live::new(spec.clone(), run, vec![entry.clone()]);
        self.live.insert(spec.run, live);
        self.hold_until_time(spec.run);
        turn.before.push(Write::Spec(spec.clone()));
        turn.entries.entry(spec.run).or_default().push(entry);
        if spec.parent.is_some() {
            let admission = self.admission.clone();
            self.record(turn, spec.run, Event::Admitted { admission });
        }
        turn.changed.insert(spec.run);
        Ok(())
    }

    /// The answer that an earlier submission with the same key was given.
    fn existing(
        &self,
        turn: &Turn,
        submission: &Submission,
    ) -> Result<Option<Submitted>, Diagnostic> {
        let Some(key) = &submission.key else {
            return Ok(None);
        };
        let known = match turn.keys.get(key) {
            Some(known) => Some(*known),
            None => self.store.key(key)?,
        };
        let Some((run, at)) = known else {
            return Ok(None);
        };
        if self.expiry.now().millis_since(at) > KEY_MS {
            return Ok(None);
        }
        let earlier = match self.live.get(&run) {
            Some(live) => Some(live.spec.as_ref().clone()),
            None => self.store.spec(run)?,
        };
        let Some(earlier) = earlier else {
            return Ok(None);
        };
        let spec = &submission.spec;
        if earlier.skill != spec.skill || earlier.inputs != spec.inputs {
            return Err(Diagnostic::new(
                Kind::Conflict,
                "key_reused",
                format!(
                    "the key `{}` was used for another skill or other inputs",
                    given(key)
                ),
            )
            .hint("use a new key for a new request"));
        }
        Ok(Some(Submitted {
            run,
            thread: earlier.thread,
            existing: true,
        }))
    }

    pub(super) fn cancel(
        &mut self,
        turn: &mut Turn,
        run: RunId,
        kind: CancelKind,
        by: &str,
    ) -> Result<Reply, Diagnostic> {
        let Some(live) = self
            .live
            .get_mut(&run)
            .filter(|live| !live.run.is_finished())
        else {
            self.cancel_push(turn, run)?;
            return Ok(done());
        };
        let refused = match &live.run.state {
            State::Announcing { index: 0 } if live.pushes() => {
                live.push_cancelled = true;
                if let Some(outstanding) = &live.outstanding {
                    outstanding.stop.stop(crate::process::StopKind::Graceful);
                }
                return Ok(Reply::Summary(run));
            }
            // It waits for people, and its commit is kept.
            State::Publishing { .. } if live.run.facts.waits_for.is_some() => None,
            State::Committing { .. } | State::Publishing { .. } | State::Announcing { .. } => Some(
                Diagnostic::new(
                    Kind::Conflict,
                    "committing",
                    format!(
                        "{} is being committed and can no longer be cancelled",
                        run.short()
                    ),
                )
                .hint("wait for it, then `git revert` its commit"),
            ),
            State::Saving {
                next: AfterSave::Finish(Outcome::Succeeded),
                ..
            } if live.spec.stages_outputs() => Some(Diagnostic::new(
                Kind::Conflict,
                "publishing",
                format!(
                    "{} has passed its checks and is publishing its outputs, so it can no longer be cancelled",
                    run.short()
                ),
            )),
            _ => None,
        };
        if let Some(refused) = refused {
            return Err(refused);
        }
        let event = Event::CancelRequested {
            kind,
            by: by.to_owned(),
        };
        let asked_before = live.entries.iter().any(|entry| match &entry.event {
            Event::CancelRequested { kind: earlier, .. } => *earlier >= kind,
            _ => false,
        });
        let accepted = live.run.apply(self.clock.now(), &event).is_ok();
        if accepted && !asked_before {
            if live.run.is_queued() {
                self.queue.release(run);
            }
            self.record(turn, run, event);
        }
        Ok(Reply::Summary(run))
    }

    /// Adds an event to the journal of a run that has ended, where it takes one.
    fn add(&mut self, turn: &mut Turn, run: RunId, event: Event) -> Result<Reply, Diagnostic> {
        let revived = match self.live.get(&run) {
            Some(_) => None,
            None => Some(self.revived(run)?),
        };
        let known = revived.as_ref().map(|(live, _)| live);
        let takes = |live: &Live| {
            live.run.is_finished() && live.run.apply(self.clock.now(), &event).is_ok()
        };
        if !known.or(self.live.get(&run)).is_some_and(takes) {
            let short = run.short();
            let (code, message) = match event {
                Event::Resolved { .. } => (
                    "not_unknown",
                    format!("the outcome of {short} is not unknown"),
                ),
                _ => (
                    "nothing_kept",
                    format!("nothing is kept of {short} that could land"),
                ),
            };
            return Err(Diagnostic::new(Kind::Conflict, code, message));
        }
        if let Some((live, missing)) = revived {
            turn.before.push(Write::Spec(live.spec.clone()));
            turn.entries.entry(run).or_default().extend(missing);
            self.live.insert(run, live);
        }
        self.flush_closing(turn, run);
        let landed = matches!(event, Event::LandedLater { .. });
        self.record(turn, run, event);
        let spec = self.live.get(&run).map(|live| live.spec.clone());
        if let Some(spec) = spec.filter(|_| landed) {
            self.notice_end(turn, &spec, &Outcome::Succeeded);
            self.ask_scheduler(turn, |scheduler, context| {
                scheduler.on_run_landed(context, &spec);
            });
        }
        Ok(Reply::Summary(run))
    }

    /// A closed run from the store, so that an event may be added to it; and the end that its journal
    /// lacks if it was given up.
    fn revived(&self, run: RunId) -> Result<(Live, Option<Entry>), Diagnostic> {
        let spec = self.store.spec(run)?;
        let mut entries = self.store.journal(run)?;
        let (Some(spec), Ok(mut folded)) = (spec, Run::fold(&entries)) else {
            return Err(Diagnostic::new(
                Kind::Conflict,
                "journal_unreadable",
                format!(
                    "the journal of {} cannot be read, so nothing can be added to it",
                    run.short()
                ),
            ));
        };
        let summary = self.store.summary(run)?;
        let missing = missing_end(&mut folded, &entries, summary.as_ref());
        entries.extend(missing.clone());
        let live = Live::new(std::sync::Arc::new(spec), folded, entries);
        Ok((live, missing))
    }
}

fn done() -> Reply {
    Reply::Now(Box::new(Answer::Done))
}

/// Returns the key as its caller gave it, without the run that is prefixed to keys of runs.
fn given(key: &str) -> &str {
    key.rsplit('\n').next().unwrap_or(key)
}
