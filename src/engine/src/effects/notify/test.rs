//! Notices that people ask for, to see whether they arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use super::super::super::work::{OfSchedule, Telling};
use super::super::super::{lookup, schedules};
use super::super::Performer;
use crate::catalog::Catalog;
use crate::model::schedule::Schedule;
use crate::model::{Channel, Diagnostic, Kind, News, Notice, Notices, Notify, SkillRef, Timestamp};
use crate::process::{StopHandle, StopKind};
use crate::protocol::{NotifyTest, Probe};

/// Ways of telling that are tried at once.
const TRIED_MAX: usize = 16;

/// Longest that all of it takes: whoever asks over the socket waits a minute for an answer.
const TEST: Duration = Duration::from_secs(50);

/// What happens in a test where nobody says it.
const NEWS: [News; 4] = [News::Failed, News::Recovered, News::Missed, News::Awaiting];

/// Somebody who may be told something.
struct Subject {
    skill: SkillRef,
    schedule: Option<Arc<Schedule>>,
}

/// One way of telling, with what it is tried with.
struct Trial {
    channel: Channel,
    news: News,
    subject: Arc<Subject>,
}

impl Performer {
    /// Tells a test in each way that is configured, once, and says what was answered.
    pub(in super::super) fn test_notify(
        &self,
        test: &NotifyTest,
    ) -> Result<Vec<Probe>, Diagnostic> {
        let trials = self.trials(test)?;
        let stop = StopHandle::new();
        let mut probes = Vec::new();
        thread::scope(|scope| {
            let (done, all_done) = std::sync::mpsc::channel::<()>();
            let tried: Vec<_> = trials
                .iter()
                .map(|trial| {
                    let (stop, done) = (stop.clone(), done.clone());
                    let tried = scope.spawn(move || {
                        let probe = self.try_out(trial, &stop);
                        drop(done);
                        probe
                    });
                    (trial, tried)
                })
                .collect();
            drop(done);
            // Nothing is sent: it is disconnected when the last one is done.
            if all_done.recv_timeout(TEST) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                stop.stop(StopKind::Now);
            }
            for (trial, tried) in tried {
                let lost = || told_of(trial, Err("trying it panicked".to_owned()));
                probes.push(tried.join().unwrap_or_else(|_| lost()));
            }
        });
        Ok(probes)
    }

    fn try_out(&self, trial: &Trial, stop: &StopHandle) -> Probe {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        // Another one at each call, so that no test ends the command of another.
        let owner = format!(
            "test {} of {} of notices of {}",
            NEXT.fetch_add(1, Ordering::Relaxed),
            std::process::id(),
            self.parts.state_dir.display()
        );
        let now = self.parts.clock.now();
        let telling = telling(trial, now, stop.clone());
        let Some(notice) = telling.notices.waiting.first() else {
            return told_of(trial, Err("there is nothing to tell".to_owned()));
        };
        let answered = self.deliver(&telling, notice, &trial.channel, owner);
        let answered = answered.map_err(|failed| match stop.requested() {
            Some(_) => format!("not done within {} s", TEST.as_secs()),
            None => failed.why,
        });
        told_of(trial, answered)
    }

    /// Each way once, in the order of the files.
    fn trials(&self, test: &NotifyTest) -> Result<Vec<Trial>, Diagnostic> {
        let catalog = self.parts.definitions.current();
        let levels = match &test.subject {
            Some(name) => vec![of_subject(&catalog, name)?],
            None => all(&catalog),
        };
        let asked = test.event.map(|event| vec![event.news()]);
        let news = asked.unwrap_or_else(|| NEWS.to_vec());
        let mut trials: Vec<Trial> = Vec::new();
        for (subject, notifies) in levels {
            for &news in &news {
                let mut named = notifies.iter().filter_map(|notify| news.channel(notify));
                let Some(channel) = named.next() else {
                    continue;
                };
                if trials.iter().all(|trial| trial.channel != *channel) {
                    trials.push(Trial {
                        channel: channel.clone(),
                        news,
                        subject: Arc::clone(&subject),
                    });
                }
            }
        }
        if trials.is_empty() {
            let message = "no notification is sent for this: `notify` has no channel";
            let hint = "`notify: {on_failure: {webhook: env:NAME, form: slack}}` in workerctl.yaml names one";
            return Err(Diagnostic::new(Kind::NotFound, "notify_nobody", message).hint(hint));
        }
        if trials.len() > TRIED_MAX {
            let message = format!(
                "there are {} notification channels, and at most {TRIED_MAX} can be tested at once",
                trials.len()
            );
            let hint = "name the skill or the schedule: `--for NAME`";
            return Err(Diagnostic::new(Kind::Usage, "notify_many", message).hint(hint));
        }
        Ok(trials)
    }
}

type Level<'a> = (Arc<Subject>, Vec<&'a Notify>);

/// The nearest first.
fn of_subject<'a>(catalog: &'a Catalog, name: &str) -> Result<Level<'a>, Diagnostic> {
    let schedule = catalog.schedules.iter().find(|one| *one.id == *name);
    let skill = match schedule {
        Some(schedule) => (*schedule.skill).clone(),
        None if name.contains('#') => return Err(schedules::unknown(name)),
        None => lookup::find_skill(catalog, name)?.address.clone(),
    };
    let worker = catalog.workers.iter().find(|one| one.id == skill.worker);
    let subject = Subject {
        skill,
        schedule: schedule.cloned(),
    };
    let levels = [
        schedule.map(|one| &one.policy.notify),
        worker.map(|one| &one.notify),
        Some(&catalog.config.notify),
    ];
    Ok((Arc::new(subject), levels.into_iter().flatten().collect()))
}

/// Every level by itself.
fn all(catalog: &Catalog) -> Vec<Level<'_>> {
    let of_worker = |worker: &str| SkillRef {
        worker: worker.into(),
        skill: "example".into(),
    };
    let config = (of_worker("example"), None, &catalog.config.notify);
    let workers = catalog
        .workers
        .iter()
        .map(|one| (of_worker(&one.id), None, &one.notify));
    let schedules = catalog
        .schedules
        .iter()
        .map(|one| ((*one.skill).clone(), Some(one), &one.policy.notify));
    let levels = [config].into_iter().chain(workers).chain(schedules);
    let level = |(skill, schedule, notify): (_, Option<&Arc<Schedule>>, _)| {
        let schedule = schedule.cloned();
        (Arc::new(Subject { skill, schedule }), vec![notify])
    };
    levels.map(level).collect()
}

/// What the way is told.
fn telling(trial: &Trial, now: Timestamp, stop: StopHandle) -> Telling {
    let Subject { skill, schedule } = &*trial.subject;
    let id = schedule.as_ref().map(|one| one.id.to_string());
    let mut notices = Notices::new(skill.clone(), id);
    notices.add(Notice {
        failures: 1,
        failing_since: Some(now),
        expected_by: Some(now),
        message: Some("this is a test".to_owned()),
        ..Notice::of(trial.news, now)
    });
    let schedule = schedule.as_ref().map(|definition| OfSchedule {
        definition: Arc::clone(definition),
        succeeded_at: None,
        pause: None,
        newest: None,
    });
    Telling {
        notices,
        schedule,
        stop,
        is_test: true,
    }
}

fn told_of(trial: &Trial, answered: Result<String, String>) -> Probe {
    let (key, channel) = (trial.news.key(), &trial.channel);
    let works = answered.is_ok();
    let (Ok(said) | Err(said)) = answered;
    let hint = "a mail server brings `sendmail`, and msmtp does for a machine without one";
    let is_mail = matches!(channel, Channel::Mail { .. });
    Probe {
        subject: "notify".to_owned(),
        ok: works,
        message: format!("`{key}`: {channel}: {said}"),
        hints: (is_mail && !works)
            .then(|| hint.to_owned())
            .into_iter()
            .collect(),
    }
}
