//! The loop on a bench: a store in memory, a clock that is set by hand, effects that only pretend.

use std::sync::Mutex;

pub(super) use super::samples::{plan, rate_limited, spec};
use crate::clock::FakeClock;
use crate::core::sealing::SEAL_AFTER_MS;
use crate::core::*;
use crate::inbox::Answered;
use crate::machine::{Action, Run};
use crate::model::evidence::{
    CheckRecord, CommitsMade, Ended, Execution, Recorded, RestoreReport, Verdict,
};
use crate::model::schedule::{Occurrence, Overlap, Schedule};
use crate::model::spec::{ScheduledSlot, WakeSpec};
use crate::model::{News, Notice, Notices, RunSpec, Timestamp};
use crate::prepares::Prepares;
use crate::protocol::RunSummary;
use crate::queue::Needs;
use crate::request::{Request, Submission};
use crate::store::{MemoryStore, Store};
use crate::stored_schedules::{StoredSchedule, StoredSchedules};
use crate::trigger_probe::ProbeResult;
use crate::work::{NoticeResult, PushResult, Pushing, Telling, Work};

/// What the fake effects have done to the world; it survives engines.
#[derive(Default)]
pub(super) struct World {
    pub(super) executed: Vec<(RunId, u32)>,
    pub(super) committed: Vec<RunId>,
    pub(super) closed: Vec<RunId>,
    pub(super) out_of_order: Vec<String>,
    pub(super) execution_code: i32,
    /// How long the web server asks to wait that is told in vain.
    pub(super) wait_ms: Option<u64>,
    /// What each command was told.
    pub(super) told: Vec<Notice>,
    /// Whether there are commands for all notices, not only for missed schedules.
    pub(super) wants_all: bool,
    /// Whether those commands fail.
    pub(super) deaf: bool,
    /// When the rate limits end that executions meet, the next last.
    pub(super) limits: Vec<Timestamp>,
    /// How often a wake gate was asked.
    pub(super) asked: u64,
}

/// A wake gate finds something to do each time that it was asked so often.
pub(super) const FINDS_EVERY: u64 = 100;

pub(super) struct FakeEffects {
    pub(super) world: Arc<Mutex<World>>,
    pub(super) store: MemoryStore,
    /// Actions named here wait until they are stopped.
    pub(super) hangs: Vec<&'static str>,
}

impl Effects for FakeEffects {
    fn perform(&self, work: &Work) -> Event {
        let run = work.spec.run;
        let journal = self.store.journal(run).unwrap_or_default();
        let committed = Run::fold(&journal).ok().and_then(|run| run.next_action());
        let mut world = self.world.lock().unwrap();
        if committed.as_ref() != Some(&work.action)
            && !work.action.may_precede_commit()
            && work.action != Action::Close
        {
            world
                .out_of_order
                .push(format!("{} before its commit", work.action.name()));
        }
        if let Action::Execute { attempt } = &work.action {
            world.executed.push((run, *attempt));
        }
        if let Action::PublishCommit { .. } = &work.action
            && !world.committed.contains(&run)
        {
            world.committed.push(run);
        }
        if work.action == Action::Close {
            world.closed.push(run);
        }
        if work.action == Action::Validate && work.spec.wake.is_some() {
            world.asked += 1;
            if !world.asked.is_multiple_of(FINDS_EVERY) {
                return Event::NothingToDo { checks: Vec::new() };
            }
        }
        if let Action::Execute { attempt } = &work.action
            && let Some(until) = world.limits.pop()
        {
            return rate_limited(*attempt, until);
        }
        let code = world.execution_code;
        drop(world);
        let mut stopped = false;
        if self.hangs.contains(&work.action.name()) {
            while work.stop.requested().is_none() {
                std::thread::yield_now();
            }
            stopped = true;
        }
        result(&work.action, code, stopped)
    }

    fn land_kept(
        &self,
        _: &Work,
        _: &str,
        _: Option<&str>,
    ) -> Result<Event, crate::model::outcome::Failure> {
        Ok(Event::LandingStopped)
    }

    fn push(&self, _pushing: &Pushing) -> PushResult {
        PushResult::Pushed
    }

    fn tell(&self, telling: &Telling) -> NoticeResult {
        let notice = telling.notices.waiting.first().unwrap();
        let mut stored = false;
        let mut take = |one: Result<Notices, _>| stored |= one.unwrap().waiting.contains(notice);
        self.store.notices(&mut take).unwrap();
        let mut world = self.world.lock().unwrap();
        if !stored {
            let early = "a notice before its commit".to_owned();
            world.out_of_order.push(early);
        }
        if notice.news != News::Missed && !world.wants_all {
            return NoticeResult::Unwanted;
        }
        world.told.push(notice.clone());
        let succeeded = world.execution_code == 0 && !world.deaf;
        let wait_ms = world.wait_ms;
        drop(world);
        if self.hangs.contains(&"tell") {
            while telling.stop.requested().is_none() {
                std::thread::yield_now();
            }
            return NoticeResult::Stopped;
        }
        if succeeded {
            NoticeResult::Delivered
        } else {
            NoticeResult::Failed {
                why: "exited with 1".to_owned(),
                wait_ms,
            }
        }
    }

    fn sync_files(&self) -> std::collections::BTreeSet<RunId> {
        std::collections::BTreeSet::new()
    }

    fn flush_log(&self, _run: RunId) {}
}

pub(super) fn result(action: &Action, code: i32, stopped: bool) -> Event {
    let ended = [Ended::Exited { code }, Ended::Stopped][usize::from(stopped)].clone();
    match action {
        Action::Validate => Event::Validated {
            checks: Vec::new(),
            wake: None,
        },
        Action::Prepare => Event::Prepared {
            baseline: serde_json::Value::Null,
        },
        Action::Execute { attempt } => Event::ExecutionFinished {
            attempt: *attempt,
            execution: Execution {
                ended,
                duration_ms: 1,
                stdout_bytes: 0,
                stderr_bytes: 0,
                dropped_bytes: 0,
                survivors_ended: 0,
                stderr_tail: String::new(),
                sandbox_level: None,
            },
        },
        Action::Record { attempt } => Event::ResultRecorded {
            attempt: *attempt,
            result: Recorded {
                outputs: Vec::new(),
                changed: vec!["report.md".to_owned()],
                changed_count: 1,
                tree: serde_json::Value::Null,
                commits: CommitsMade::default(),
                warnings: Vec::new(),
                incomplete: None,
            },
        },
        Action::Verify { attempt, .. } => Event::ChecksFinished {
            attempt: *attempt,
            checks: vec![holding()],
            failure: None,
            changed: false,
        },
        Action::RunHook { index } => Event::HookFinished {
            index: *index,
            verdict: crate::machine::HookVerdict::Passed,
            sandbox_level: None,
        },
        Action::Save { .. } => Event::Saved,
        Action::PrepareCommit => Event::CommitPrepared {
            oid: "c0ffee".to_owned(),
            parent: None,
            reference: "refs/heads/main".to_owned(),
        },
        Action::PublishCommit { oid, .. } => Event::Committed {
            oid: oid.clone(),
            warning: None,
        },
        Action::RunPostCommitHook { index } => Event::PostCommitHookFinished {
            index: *index,
            verdict: crate::machine::HookVerdict::Passed,
            sandbox_level: None,
        },
        Action::Restore => Event::Restored {
            report: RestoreReport::default(),
        },
        Action::Close => Event::Closed,
    }
}

/// A check that passed.
fn holding() -> CheckRecord {
    CheckRecord {
        description: "holds".to_owned(),
        command: Some("true".to_owned()),
        must_pass: true,
        verdict: Verdict::Passed,
        ended: Some(Ended::Exited { code: 0 }),
        message: None,
        output_tail: String::new(),
        duration_ms: 1,
        sandbox_level: None,
    }
}

/// Makes runs of slots without reading anything; inputs with `refused` cannot be run.
pub(crate) struct FakeDesk(
    pub(crate) Arc<FakeClock>,
    pub(crate) Arc<Mutex<String>>,
    pub(crate) MemoryStore,
);

impl Prepares for FakeDesk {
    fn prepare(&self, schedule: &Schedule, due: Occurrence) -> Result<Submission, Diagnostic> {
        if schedule.inputs.contains_key("refused") {
            return Err(Diagnostic::new(Kind::Usage, "input", "no such input"));
        }
        // What a run follows is stored when the run is made.
        if let Some(run) = due.after {
            assert!(self.2.summary(run).unwrap().is_some());
        }
        let slot = due.at;
        // Two schedules may be due at once.
        let own: u128 = schedule.id.bytes().map(u128::from).sum();
        let number = u128::from(slot.millis().cast_unsigned()) + (own << 48);
        let mut made = spec(number, plan(false)).as_ref().clone();
        let longest = schedule.inputs.get("max_runtime_ms");
        made.plan.max_runtime_ms = longest.and_then(serde_json::Value::as_u64);
        if schedule.inputs.contains_key("wakes") {
            made.plan.validates = true;
            made.wake = Some(WakeSpec {
                program: made.program.clone(),
                timeout_ms: 1_000,
            });
        }
        made.skill = (*schedule.skill).clone();
        made.submitted_at = self.0.now();
        let beside = schedule.policy.overlap == Overlap::AllowAll;
        made.scheduled = Some(ScheduledSlot {
            schedule: schedule.id.to_string(),
            slot,
            beside,
            after: due.after,
            uncounted: false,
        });
        Ok(Submission {
            needs: crate::live::needs(&made),
            spec: Arc::new(made),
            key: None,
        })
    }

    fn probe(&self, schedule: &Schedule, _seen: Option<&str>) -> Result<ProbeResult, String> {
        match schedule.inputs.get("looks") {
            Some(seen) => Ok(ProbeResult {
                seen: self.1.lock().unwrap().clone(),
                counts: seen.as_bool().unwrap_or(true),
                changed_at: None,
            }),
            None => Err("nothing to see".to_owned()),
        }
    }

    fn forget(&self, _run: RunId) {}
}

pub(super) struct Bench {
    pub(super) core: Core,
    pub(super) inbox: Arc<Inbox>,
    pub(super) view: Arc<View>,
    pub(super) clock: Arc<FakeClock>,
    /// What is seen of what schedules wait for.
    pub(super) sight: Arc<Mutex<String>>,
}

pub(super) fn bench(
    store: &MemoryStore,
    world: &Arc<Mutex<World>>,
    hangs: Vec<&'static str>,
) -> Bench {
    let (inbox, view) = (Arc::new(Inbox::default()), Arc::new(View::default()));
    let clock = Arc::new(FakeClock::at(Timestamp::from_millis(1_800_000_000_000)));
    let effects = FakeEffects {
        world: Arc::clone(world),
        store: store.clone(),
        hangs,
    };
    let sight = Arc::<Mutex<String>>::default();
    let prepares = FakeDesk(Arc::clone(&clock), Arc::clone(&sight), store.clone());
    let mut schedules = StoredSchedules::default();
    store
        .schedules(&mut |id, state| {
            let state = StoredSchedule::of(&state.unwrap());
            schedules.others.insert(id.to_owned(), state);
        })
        .unwrap();
    let core = Core::new(CoreParts {
        prepares: Arc::new(prepares),
        schedules,
        board: Board::stored(store, clock.now()).unwrap(),
        pushes: FailedPushes::default(),
        store: Arc::new(store.clone()),
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        expiry: Arc::new(Expiry::open(
            std::path::Path::new("/nonexistent"),
            Arc::clone(&clock) as Arc<dyn Clock>,
            None,
        )),
        view: Arc::clone(&view),
        inbox: Arc::clone(&inbox),
        effects: Arc::new(effects),
        admission: Admission {
            owner: "test".into(),
            fence: 1,
        },
        parallel_max: 2,
        waiting_max: 3,
        starts_queued: true,
        drain_grace_ms: 1_000,
        slots_kept_ms: u64::MAX,
    });
    Bench {
        core,
        inbox,
        view,
        clock,
        sight,
    }
}

impl Bench {
    pub(super) fn ask(&self, request: Request) -> Answered {
        self.inbox.request(request).unwrap()
    }

    pub(super) fn submit(&self, spec: &Arc<RunSpec>, key: Option<&str>) -> Answered {
        let needs = Needs {
            worker: spec.skill.worker.clone(),
            repository: spec.repository.clone(),
            destinations: Vec::new(),
            schedule: None,
        };
        let key = key.map(str::to_owned);
        self.ask(Request::Submit(Box::new(Submission {
            spec: spec.clone(),
            needs,
            key,
        })))
    }

    pub(super) fn turn(&mut self) -> Result<(), Diagnostic> {
        if self.core.outstanding + self.core.preparing > 0 || self.core.sealing.under_way.is_some()
        {
            self.inbox.wait(Duration::from_millis(20));
        }
        let mail = self.inbox.take();
        self.core.turn(mail)
    }

    /// Turns until the run has been closed and left memory.
    pub(super) fn settle(&mut self, run: RunId) -> Result<(), Diagnostic> {
        for _ in 0..10_000 {
            if !self.core.holds(run) {
                return Ok(());
            }
            // Time stands still while somebody works for it: how long that takes is the machine's affair.
            let is_worked_on = self
                .core
                .live
                .get(&run)
                .is_some_and(|live| live.outstanding.is_some());
            if !is_worked_on && self.core.preparing == 0 && self.core.sealing.under_way.is_none() {
                self.clock.advance(SEAL_AFTER_MS);
            }
            self.turn()?;
        }
        panic!(
            "the run is stuck: {:?}",
            self.view.run(run).map(|shown| shown.run.state.clone())
        );
    }

    /// Takes over what an earlier engine left, as a daemon does.
    pub(super) fn begin(
        &mut self,
        store: &MemoryStore,
        schedules: Vec<Schedule>,
    ) -> Result<(), Diagnostic> {
        self.take_in(store);
        let schedules: Vec<_> = schedules.into_iter().map(Arc::new).collect();
        self.core.begin_schedules(&schedules, true)?;
        self.core.settle(Box::new(NothingLeft), true)
    }

    pub(super) fn recover(&mut self, store: &MemoryStore) -> Result<(), Diagnostic> {
        self.take_in(store);
        self.core.settle(Box::new(NothingLeft), true)
    }

    fn take_in(&mut self, store: &MemoryStore) {
        for run in store.active().unwrap() {
            let entries = store.journal(run).unwrap();
            let spec = Arc::new(store.spec(run).unwrap().unwrap());
            self.core
                .recover(Live::new(spec, Run::fold(&entries).unwrap(), entries));
        }
    }
}

pub(super) fn stored(store: &MemoryStore, run: RunId) -> RunSummary {
    store.summary(run).unwrap().expect("the run has ended")
}

/// Lost engines that have left no process.
struct NothingLeft;

impl Orphans for NothingLeft {
    fn hold_us(&self, _: &Live) -> bool {
        false
    }

    fn end_of(&self, _: &Live) -> bool {
        true
    }

    fn end_of_others(&self, _: &dyn Fn(RunId) -> bool) {}
}
