//! Notices: what is to be told is written in the commit of what it tells of, and tried until it is delivered.
//!
//! Every engine writes them, the daemon delivers: also what happened while none ran. What was being told when an
//! engine was lost is told again.

use std::collections::{BTreeMap, BTreeSet};

use super::super::work::{NoticeResult, Telling};
use super::{Core, Turn};
use crate::model::notice::subject;
use crate::model::outcome::Outcome;
use crate::model::schedule::Schedule;
use crate::model::{News, Notice, Notices, RunSpec, SkillRef, Timestamp};
use crate::process::{StopHandle, StopKind};
use crate::store::{Store, StoreError, Write};

/// Notices that are told at once; each has a limit, so that one more waits no longer than that.
const TELLING_MAX: usize = 4;

/// Everything that is to be told.
#[derive(Default)]
pub(crate) struct Board {
    known: BTreeMap<String, Notices>,
    /// What waits and is not being told, by the time of its next try.
    tries: BTreeSet<(Timestamp, String)>,
    /// Commands to be started after the commit.
    to_tell: Vec<String>,
    /// Commands that run, with what they are told.
    telling: BTreeMap<String, (StopHandle, Notice)>,
}

impl Board {
    /// What the store has, to be tried now; a record that cannot be read is told of and left out.
    pub(crate) fn stored(store: &dyn Store, now: Timestamp) -> Result<Board, StoreError> {
        let mut board = Board::default();
        store.notices(&mut |read| match read {
            Ok(notices) => board.put(notices),
            Err(error) => tracing::error!(%error, "notices cannot be read, and are not delivered"),
        })?;
        board.try_now(now);
        Ok(board)
    }

    /// Tries all that waits at once: a person may have repaired what was in the way.
    pub(super) fn try_now(&mut self, now: Timestamp) {
        let known = self.known.values();
        let later = known.filter(|one| one.next_attempt_at.is_some_and(|at| at > now));
        for mut notices in later.cloned().collect::<Vec<_>>() {
            notices.next_attempt_at = Some(now);
            self.put(notices);
        }
    }

    /// When something is to be tried next.
    pub(super) fn next_wake(&self) -> Option<Timestamp> {
        let (at, _) = self.tries.first()?;
        (self.telling.len() < TELLING_MAX).then_some(*at)
    }

    /// Whether no command runs.
    pub(super) fn is_silent(&self) -> bool {
        self.telling.is_empty() && self.to_tell.is_empty()
    }

    fn put(&mut self, notices: Notices) {
        let subject = notices.subject();
        if let Some(at) = self
            .known
            .get(&subject)
            .and_then(|known| known.next_attempt_at)
        {
            self.tries.remove(&(at, subject.clone()));
        }
        let is_told = self.telling.contains_key(&subject) || self.to_tell.contains(&subject);
        if let Some(at) = notices.next_attempt_at.filter(|_| !is_told) {
            self.tries.insert((at, subject.clone()));
        }
        if notices.is_over() {
            self.known.remove(&subject);
        } else {
            self.known.insert(subject, notices);
        }
    }
}

impl Core {
    /// A run has ended, or what was kept of it has landed since.
    pub(super) fn notice_end(&mut self, turn: &mut Turn, spec: &RunSpec, outcome: &Outcome) {
        let due = spec.scheduled.as_ref();
        let is_watched = spec.foreground && !self.view.has_lost_client(spec.run);
        if is_watched || due.is_some_and(|due| due.uncounted) {
            return;
        }
        let (schedule, now) = (due.map(|due| due.schedule.as_str()), self.clock.now());
        self.notice(turn, &spec.skill, schedule, |notices| {
            notices.ended(spec.run, outcome, now, spec.notify_after)
        });
    }

    /// A run waits for a person, or did so in vain.
    pub(super) fn notice_approval(
        &mut self,
        turn: &mut Turn,
        spec: &RunSpec,
        news: News,
        (since, for_ms): (Timestamp, u64),
    ) {
        let due = spec.scheduled.as_ref();
        let notice = Notice {
            run: Some(spec.run),
            expected_by: Some(since.plus_millis(for_ms)),
            ..Notice::of(news, self.clock.now())
        };
        let schedule = due.map(|due| due.schedule.as_str());
        self.add_notice(turn, &spec.skill, schedule, notice);
    }

    /// Adds a notice that changes nothing else.
    pub(super) fn add_notice(
        &mut self,
        turn: &mut Turn,
        skill: &SkillRef,
        schedule: Option<&str>,
        notice: Notice,
    ) {
        self.notice(turn, skill, schedule, |notices| {
            notices.add(notice);
            true
        });
    }

    /// A schedule has paused itself, or has not succeeded in time.
    pub(super) fn notice_of_schedule(
        &mut self,
        turn: &mut Turn,
        schedule: &Schedule,
        notice: Notice,
    ) {
        self.notice(turn, &schedule.skill, Some(&schedule.id), |notices| {
            if notice.news == News::Missed {
                notices.failing_since = notices.failing_since.or(Some(notice.at));
                notices.missed = true;
            }
            notices.add(notice);
            true
        });
    }

    fn notice(
        &mut self,
        turn: &mut Turn,
        skill: &SkillRef,
        schedule: Option<&str>,
        happens: impl FnOnce(&mut Notices) -> bool,
    ) {
        let known = self.board.known.get(&subject(skill, schedule));
        let mut notices = match known {
            Some(known) => known.clone(),
            None => Notices::new(skill.clone(), schedule.map(str::to_owned)),
        };
        if happens(&mut notices) {
            turn.before.push(Write::Notices(Box::new(notices.clone())));
            self.board.put(notices);
        }
    }

    /// Picks what is to be told now.
    pub(super) fn notices_on_time(&mut self) {
        let board = &mut self.board;
        if self.draining.is_some() {
            for (stop, _) in board.telling.values() {
                stop.stop(StopKind::Graceful);
            }
        }
        if !self.starts_queued || self.draining.is_some() {
            return;
        }
        let now = self.clock.now();
        while board.telling.len() + board.to_tell.len() < TELLING_MAX
            && board.tries.first().is_some_and(|(at, _)| *at <= now)
        {
            board
                .to_tell
                .extend(board.tries.pop_first().map(|(_, subject)| subject));
        }
    }

    /// After the commit: starts the commands.
    pub(super) fn tell(&mut self) {
        for subject in std::mem::take(&mut self.board.to_tell) {
            let known = self.board.known.get(&subject);
            let Some(notices) = known.cloned() else {
                continue;
            };
            let Some(first) = notices.waiting.first().cloned() else {
                continue;
            };
            let telling = Telling {
                schedule: notices
                    .schedule
                    .as_deref()
                    .and_then(|id| self.scheduler.told_of(self.store.as_ref(), id)),
                notices,
                stop: StopHandle::new(),
                is_test: false,
            };
            let running = (telling.stop.clone(), first);
            self.board.telling.insert(subject, running);
            self.pool.tell(telling);
        }
    }

    /// A command has ended. One that was stopped is started again by the next engine.
    pub(super) fn on_told(&mut self, turn: &mut Turn, subject: &str, told: NoticeResult) {
        let running = self.board.telling.remove(subject);
        let Some(mut notices) = self.board.known.get(subject).cloned() else {
            return;
        };
        let first = notices.waiting.first();
        if first != running.as_ref().map(|(_, notice)| notice) {
            // So much has happened meanwhile that what was told is not kept any more.
            return self.board.put(notices);
        }
        let now = self.clock.now();
        let writes = match told {
            NoticeResult::Stopped => return self.board.put(notices),
            // Should that be lost, it is found out again.
            NoticeResult::Unwanted => {
                notices.delivered(now);
                &mut turn.lazy
            }
            NoticeResult::Delivered => {
                notices.delivered(now);
                &mut turn.before
            }
            NoticeResult::Failed { why, wait_ms } => {
                notices.undelivered(&why, wait_ms, now);
                &mut turn.before
            }
        };
        writes.push(Write::Notices(Box::new(notices.clone())));
        self.board.put(notices);
    }
}
