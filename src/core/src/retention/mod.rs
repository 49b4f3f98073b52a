//! Which runs are forgotten: decided from what is recorded and the time alone, and done by somebody else.

mod clock;

pub use clock::{BootTime, ClockRecord, Observation, STEADY_MS, STEP_MS_MAX};

use std::collections::BTreeMap;

use crate::model::retention::RUNS_MS_MIN;
use crate::model::{Retention, RunId, SkillRef, Timestamp};

/// What is known of a run that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedRun<'a> {
    /// The run.
    pub run: RunId,
    /// What was invoked.
    pub skill: &'a SkillRef,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Whether a person approved or denied it: then its journal is the record of that.
    pub approved: bool,
    /// Why it stays whatever its age.
    pub kept_for: Option<KeptFor>,
    /// Bytes of its thread.
    pub thread_bytes: u64,
}

/// Why a run stays, whatever its age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptFor {
    /// It is not closed: something is still to be done or written.
    Work,
    /// Nobody has said yet what became of it.
    Resolution,
    /// A commit of it can still land.
    Landing,
    /// It is to be told to somebody and that is not delivered.
    Notice,
}

/// Why a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its time is over.
    Age,
    /// Threads have too many bytes.
    Bytes,
}

/// A run that goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Going {
    /// The run.
    pub run: RunId,
    /// Why.
    pub reason: Reason,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Bytes of its thread.
    pub thread_bytes: u64,
}

/// Takes the runs that have ended, the newest first, and says which of them go.
#[derive(Debug)]
pub struct Selection {
    rules: Retention,
    now: Timestamp,
    seen: BTreeMap<SkillRef, u32>,
    thread_bytes: u64,
    going: Vec<Going>,
}

impl Selection {
    /// By these rules, at this time, which is [`Observation::expiry`].
    pub fn new(rules: Retention, now: Timestamp) -> Selection {
        Selection {
            rules,
            now,
            seen: BTreeMap::new(),
            thread_bytes: 0,
            going: Vec::new(),
        }
    }

    /// The next run; each is older than the one before.
    pub fn take(&mut self, run: &EndedRun<'_>) {
        self.thread_bytes = self.thread_bytes.saturating_add(run.thread_bytes);
        let newer = match self.seen.get_mut(run.skill) {
            Some(seen) => seen,
            None => self.seen.entry(run.skill.clone()).or_default(),
        };
        *newer = newer.saturating_add(1);
        if *newer <= self.rules.runs_min || run.kept_for.is_some() {
            return;
        }
        let age_ms = self.now.millis_since(run.ended_at);
        // What a person decided is on record for its time, however many bytes there are.
        if run.approved && age_ms <= self.rules.approvals_ms {
            return;
        }
        let reason = if age_ms > self.rules.runs_ms {
            Reason::Age
        } else if self.thread_bytes > self.rules.threads_bytes && age_ms > RUNS_MS_MIN {
            Reason::Bytes
        } else {
            return;
        };
        self.going.push(Going {
            run: run.run,
            reason,
            ended_at: run.ended_at,
            thread_bytes: run.thread_bytes,
        });
        self.thread_bytes = self.thread_bytes.saturating_sub(run.thread_bytes);
    }

    /// The runs that go, newest first.
    pub fn decide(self) -> Vec<Going> {
        self.going
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 24 * 3_600_000;

    fn now() -> Timestamp {
        Timestamp::from_millis(1_900_000_000_000)
    }

    fn rules() -> Retention {
        Retention {
            runs_min: 2,
            threads_bytes: 1_000,
            ..Retention::default()
        }
    }

    /// A run that ended so many days ago.
    fn run(skill: &SkillRef, days: u64) -> EndedRun<'_> {
        let ended_at = now().minus_millis(days * DAY_MS);
        EndedRun {
            run: RunId::following(None, ended_at, u128::from(days)),
            skill,
            ended_at,
            approved: false,
            kept_for: None,
            thread_bytes: 1,
        }
    }

    fn decided(rules: Retention, runs: &[EndedRun<'_>]) -> Vec<Going> {
        let mut selection = Selection::new(rules, now());
        for run in runs {
            selection.take(run);
        }
        selection.decide()
    }

    fn going(runs: &[EndedRun<'_>]) -> Vec<RunId> {
        let decided = decided(rules(), runs);
        decided.iter().rev().map(|going| going.run).collect()
    }

    #[test]
    fn what_is_older_goes_but_the_newest_of_each_skill_stay() {
        let (one, two): (SkillRef, SkillRef) = ("w/one".parse().unwrap(), "w/two".parse().unwrap());
        let runs = [
            run(&one, 1),
            run(&two, 100),
            run(&two, 101),
            run(&one, 90),
            run(&one, 91),
            run(&two, 400),
        ];
        assert_eq!(going(&runs), [runs[5].run, runs[4].run]);
    }

    #[test]
    fn what_waits_was_never_told_or_was_decided_by_a_person_stays() {
        let skill: SkillRef = "w/s".parse().unwrap();
        for why in [
            KeptFor::Work,
            KeptFor::Resolution,
            KeptFor::Landing,
            KeptFor::Notice,
        ] {
            let mut runs: Vec<_> = (200..205).map(|days| run(&skill, days)).collect();
            runs[3].kept_for = Some(why);
            assert_eq!(going(&runs), [runs[4].run, runs[2].run]);
        }
        let mut runs: Vec<_> = [200, 201, 202, 366].map(|days| run(&skill, days)).into();
        (runs[2].approved, runs[3].approved) = (true, true);
        assert_eq!(going(&runs), [runs[3].run]);
    }

    #[test]
    fn beyond_the_bytes_the_oldest_go_before_their_time() {
        let skill: SkillRef = "w/s".parse().unwrap();
        let mut runs: Vec<_> = (1..=6).map(|days| run(&skill, days * 3)).collect();
        for run in &mut runs {
            run.thread_bytes = 300;
        }
        runs[4].approved = true;
        // The approved one counts and stays, so that the one before it in age goes.
        assert_eq!(going(&runs), [runs[5].run, runs[3].run]);
        let mut decided = decided(rules(), &runs).into_iter();
        assert!(decided.all(|going| going.reason == Reason::Bytes));
    }
}
