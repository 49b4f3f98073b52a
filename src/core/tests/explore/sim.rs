//! A world that remembers what was really done, and an engine that may be lost at any moment.

use std::collections::BTreeMap;

use workerctl_core::machine::{
    Action, Admission, Approval, Entry, Event, HookVerdict, MACHINE_VERSION, Run, State,
};
use workerctl_core::model::Timestamp;
use workerctl_core::model::evidence::{
    CheckRecord, CommitsMade, Ended, Execution, HeldResult, OutputState, Recorded, RestoreReport,
    Verdict,
};
use workerctl_core::model::outcome::{Failure, Outcome, Step};
use workerctl_core::model::spec::{Gate, Plan};

use crate::representatives::check;

/// A small generator: the same walks on every machine.
#[derive(Clone)]
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound
    }

    pub(crate) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// What was really done, whether anybody remembers it or not.
#[derive(Default)]
pub(crate) struct World {
    /// How often the command of each attempt was started.
    pub(crate) started: BTreeMap<u32, u32>,
    /// Commits on the branch that carry the run's id.
    pub(crate) commits: Vec<String>,
    /// How often the branch was moved by others.
    pub(crate) moved: u64,
    pub(crate) restored: u32,
    pub(crate) post_commit_hooks: u32,
    pub(crate) closed: u32,
}

/// One run with its journal and its world.
pub(crate) struct Engine {
    pub(crate) journal: Vec<Entry>,
    pub(crate) run: Run,
    pub(crate) world: World,
    pub(crate) random: Random,
    /// One in so many steps goes wrong; 0: none does.
    pub(crate) trouble: u64,
    now: i64,
}

impl Engine {
    pub(crate) fn submit(plan: &Plan, seed: u64, trouble: u64) -> Engine {
        let event = Event::Submitted {
            machine: MACHINE_VERSION,
            plan: plan.clone(),
        };
        let run = Run::submitted(&event).unwrap();
        let at = Timestamp::from_millis(1_000);
        Engine {
            journal: vec![Entry { seq: 0, at, event }],
            run,
            world: World::default(),
            random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            trouble,
            now: 1_000,
        }
    }

    /// Commits an event; a refused one changes nothing.
    pub(crate) fn record(&mut self, event: Event) -> bool {
        self.now += 10;
        let at = Timestamp::from_millis(self.now);
        match self.run.apply(at, &event) {
            Ok(next) => {
                let seq = u32::try_from(self.journal.len()).unwrap();
                self.journal.push(Entry { seq, at, event });
                self.run = next;
                true
            }
            Err(_) => false,
        }
    }

    /// The engine is lost: only what was committed is known to the next one, which records that.
    pub(crate) fn crash(&mut self) {
        let stored = serde_json::to_vec(&self.journal).unwrap();
        self.journal = serde_json::from_slice(&stored).unwrap();
        let folded = Run::fold(&self.journal).unwrap();
        assert_eq!(folded, self.run, "the journal folds to another run");
        self.run = folded;
        if self.run.next_action().is_some() {
            assert!(self.record(Event::OwnerLost), "{:?}", self.run.state);
        }
    }

    /// What comes next without anybody's request: an effect with its result, or the end of a wait.
    pub(crate) fn step(&mut self) -> Option<Event> {
        match (self.run.next_action(), &self.run.state) {
            (Some(action), _) => Some(self.perform(&action)),
            (None, State::Queued) => Some(Event::Admitted {
                admission: Admission {
                    owner: "engine".into(),
                    fence: 1,
                },
            }),
            (None, State::AwaitingApproval { .. }) => Some(self.answer()),
            (None, State::BackingOff { attempt, .. }) => {
                Some(Event::BackoffElapsed { attempt: *attempt })
            }
            (None, _) => None,
        }
    }

    /// What a person says, if one is there.
    fn answer(&mut self) -> Event {
        let by = "somebody".to_owned();
        if !self.goes_wrong() {
            let (digest, note) = ("d1".to_owned(), None);
            let approval = Approval { digest, by, note };
            return Event::Approved { approval };
        }
        if self.random.one_in(2) {
            let note = "no".to_owned();
            return Event::Denied { by, note };
        }
        Event::ApprovalExpired
    }

    fn goes_wrong(&mut self) -> bool {
        self.trouble > 0 && self.random.one_in(self.trouble)
    }

    fn perform(&mut self, action: &Action) -> Event {
        let wrong = self.goes_wrong();
        let failure = |step| Failure::new(step, "trouble", "it went wrong");
        match *action {
            Action::Validate if wrong => Event::ValidationFailed {
                failure: failure(Step::Validate),
                checks: vec![],
            },
            Action::Validate if self.goes_wrong() => Event::NothingToDo { checks: vec![] },
            Action::Validate => Event::Validated {
                checks: vec![],
                wake: None,
            },
            Action::Prepare if wrong => Event::PreparationFailed {
                failure: failure(Step::Prepare),
            },
            Action::Prepare => Event::Prepared {
                baseline: serde_json::Value::Null,
            },
            Action::Execute { attempt } => {
                *self.world.started.entry(attempt).or_default() += 1;
                let code = i32::from(wrong);
                let ended = match self.run.stop_wanted() {
                    Some(_) => Ended::Stopped,
                    None => Ended::Exited { code },
                };
                let execution = execution(ended);
                Event::ExecutionFinished { attempt, execution }
            }
            Action::Record { attempt } if wrong && self.random.one_in(4) => {
                Event::RecordingFailed {
                    attempt,
                    failure: failure(Step::Verify),
                }
            }
            Action::Record { attempt } => Event::ResultRecorded {
                attempt,
                result: recorded(!wrong),
            },
            Action::Verify { attempt, .. } => Event::ChecksFinished {
                attempt,
                checks: checks(wrong),
                failure: None,
                changed: false,
            },
            Action::RunHook { index } => Event::HookFinished {
                index,
                verdict: self.verdict(wrong),
                sandbox_level: None,
            },
            Action::Save { .. }
            | Action::PrepareCommit
            | Action::PublishCommit { .. }
            | Action::RunPostCommitHook { .. }
            | Action::Restore
            | Action::Close => self.conclude(action, wrong),
        }
    }

    fn conclude(&mut self, action: &Action, wrong: bool) -> Event {
        let failure = |step| Failure::new(step, "trouble", "it went wrong");
        match *action {
            Action::Save { .. } if wrong => Event::SaveFailed {
                failure: failure(Step::Save),
            },
            Action::Save { .. } => Event::Saved,
            Action::PrepareCommit if wrong && self.random.one_in(2) => Event::CommitFailed {
                failure: failure(Step::Commit),
            },
            Action::PrepareCommit if wrong => Event::NothingToCommit,
            Action::PrepareCommit if self.run.is_unapproved(Gate::Landing) => Event::Held {
                result: HeldResult {
                    commit: Some(format!("{:040x}", self.world.moved + 1)),
                    outputs: vec![],
                },
            },
            Action::PrepareCommit => Event::CommitPrepared {
                oid: format!("{:040x}", self.world.moved + 1),
                parent: Some(format!("{:040x}", self.world.moved)),
                reference: "refs/heads/main".into(),
            },
            Action::PublishCommit { ref oid, .. } => self.publish(oid, wrong),
            Action::RunPostCommitHook { index } => {
                assert_eq!(
                    self.world.commits.len(),
                    1,
                    "announced before it is committed"
                );
                self.world.post_commit_hooks += 1;
                Event::PostCommitHookFinished {
                    index,
                    verdict: self.verdict(wrong),
                    sandbox_level: None,
                }
            }
            Action::Restore => {
                self.world.restored += 1;
                let failed = if wrong {
                    vec!["x: denied".into()]
                } else {
                    vec![]
                };
                let report = RestoreReport {
                    put_back: 1,
                    failed,
                    ..RestoreReport::default()
                };
                Event::Restored { report }
            }
            Action::Close => {
                self.world.closed += 1;
                Event::Closed
            }
            ref early => unreachable!("{early:?} is performed above"),
        }
    }

    /// Moves the branch once, or finds that it was moved already.
    fn publish(&mut self, oid: &str, wrong: bool) -> Event {
        if let Some(oid) = self.world.commits.first().cloned() {
            return Event::Committed { oid, warning: None };
        }
        if wrong {
            self.world.moved += 1;
            let tip = "b2".to_owned();
            return Event::TargetMoved { tip };
        }
        self.world.commits.push(oid.to_owned());
        Event::Committed {
            oid: oid.to_owned(),
            warning: None,
        }
    }

    fn verdict(&mut self, wrong: bool) -> HookVerdict {
        let message = "no".to_owned();
        match (wrong, self.random.one_in(2)) {
            (false, _) => HookVerdict::Passed,
            (true, false) => HookVerdict::Blocked { message },
            (true, true) => HookVerdict::Warned { message },
        }
    }

    /// What must hold of the world at every moment.
    pub(crate) fn check_world(&self) {
        let (plan, world) = (&self.run.plan, &self.world);
        assert!(world.commits.len() <= 1, "committed twice");
        for (attempt, times) in &world.started {
            assert_eq!(*times, 1, "attempt {attempt} was started {times} times");
        }
        if !plan.is_repeatable() {
            assert!(world.started.len() <= 1, "a command was repeated");
        }
    }

    /// What must hold at the end.
    pub(crate) fn check_end(&self) {
        self.check_world();
        let outcome = self.run.outcome().unwrap();
        let committed = !self.world.commits.is_empty();
        assert!(self.world.closed > 0);
        assert_eq!(committed, self.run.facts.commit.is_some());
        match outcome {
            Outcome::Succeeded => {
                let nothing = self.journal.iter().any(|entry| {
                    matches!(
                        entry.event,
                        Event::NothingToCommit | Event::NothingToDo { .. }
                    )
                });
                assert_eq!(committed, self.run.plan.mutating && !nothing);
            }
            _ => assert!(!committed, "{outcome:?} with a commit"),
        }
        if committed && self.run.plan.post_commit_hooks > 0 {
            assert!(self.world.post_commit_hooks >= self.run.plan.post_commit_hooks);
        }
        let undone = *outcome != Outcome::Succeeded && !self.world.started.is_empty();
        // What is held for a person left its tree when they were asked.
        let held = self.run.facts.held.is_some();
        if self.run.plan.mutating && undone && !held {
            assert!(
                self.world.restored > 0,
                "{outcome:?} and nothing was put back"
            );
        }
    }
}

fn execution(ended: Ended) -> Execution {
    Execution {
        ended,
        duration_ms: 10,
        stdout_bytes: 1,
        stderr_bytes: 1,
        dropped_bytes: 0,
        survivors_ended: 0,
        stderr_tail: "the last line\n".into(),
        sandbox_level: None,
    }
}

fn recorded(written: bool) -> Recorded {
    Recorded {
        outputs: vec![OutputState {
            name: "report".into(),
            path: Some("r.md".into()),
            bytes: Some(1),
            digest: None,
            written,
            problem: None,
            commits: Vec::new(),
        }],
        changed: vec!["r.md".into()],
        changed_count: 1,
        tree: serde_json::json!({"tree": "t"}),
        commits: CommitsMade::default(),
        warnings: Vec::new(),
        incomplete: None,
    }
}

fn checks(wrong: bool) -> Vec<CheckRecord> {
    let verdict = if wrong {
        Verdict::Failed
    } else {
        Verdict::Passed
    };
    vec![check(verdict), check(Verdict::NotRun)]
}
