//! Events and the search that stand for all of them: what differs decides nothing else.

use std::collections::{HashMap, HashSet, VecDeque};

use workerctl_core::machine::{
    Admission, Approval, CancelKind, Event, Facts, HookVerdict, MACHINE_VERSION, Resolution, Run,
    State, TREE_LOST,
};
use workerctl_core::model::agent::{Spent, TurnRecord};
use workerctl_core::model::evidence::{
    CheckRecord, CommitsMade, Ended, Execution, HeldResult, OutputState, Recorded, RestoreReport,
    Verdict,
};
use workerctl_core::model::outcome::{Failure, Results, Step};
use workerctl_core::model::spec::Plan;
use workerctl_core::model::{Resource, RunId, Timestamp};

/// The instant of every event here: no decision of the machine depends on it.
pub(crate) const AT: Timestamp = Timestamp::from_millis(1_000);

/// Attempts beyond this are not explored: draining may add attempts without end, each like the one before.
pub(crate) const ATTEMPTS_EXPLORED_MAX: u32 = 4;

/// The run that `plan` begins with.
pub(crate) fn queued(plan: &Plan) -> Run {
    Run {
        plan: plan.clone(),
        state: State::Queued,
        facts: Facts::default(),
    }
}

pub(crate) fn execution(ended: Ended) -> Execution {
    Execution {
        ended,
        duration_ms: 1,
        stdout_bytes: 0,
        stderr_bytes: 0,
        dropped_bytes: 0,
        survivors_ended: 0,
        stderr_tail: String::new(),
        sandbox_level: None,
    }
}

fn recorded(written: bool) -> Recorded {
    Recorded {
        outputs: vec![OutputState {
            name: "report".to_owned(),
            path: Some("report.md".to_owned()),
            bytes: Some(1),
            digest: None,
            written,
            problem: None,
            commits: Vec::new(),
        }],
        changed: Vec::new(),
        changed_count: 0,
        tree: serde_json::Value::Null,
        commits: CommitsMade::default(),
        warnings: Vec::new(),
        incomplete: None,
    }
}

/// A check of this verdict, with a command.
pub(crate) fn check(verdict: Verdict) -> CheckRecord {
    CheckRecord {
        description: "check".to_owned(),
        command: Some("true".to_owned()),
        must_pass: verdict != Verdict::Warned,
        verdict,
        ended: None,
        message: None,
        output_tail: String::new(),
        duration_ms: 1,
        sandbox_level: None,
    }
}

/// What is verified of an output, and proves nothing of a command whose end nobody saw.
fn of_output() -> CheckRecord {
    CheckRecord {
        command: None,
        ..check(Verdict::Passed)
    }
}

fn failure(step: Step) -> Failure {
    Failure::new(step, "code", "message")
}

/// The attempt and the place of a hook that the state waits for: representative events depend on these.
pub(crate) fn due(run: &Run) -> (u32, u32) {
    let index = match &run.state {
        State::PostHook { index, .. } | State::Announcing { index } => *index,
        _ => 0,
    };
    match &run.state {
        State::BackingOff { attempt, .. } => (*attempt, index),
        _ => (run.facts.attempts, index),
    }
}

/// Every event in each variant that the machine tells apart, those of other attempts and hooks included.
pub(crate) fn representatives(run: &Run) -> Vec<Event> {
    let mut events = of_run(run);
    events.extend(with_variants(run));
    events.extend(of_approval());
    events.extend(of_attempt(run));
    events
}

/// A rate limit that ends then, in milliseconds.
pub(crate) fn rate_limited(until: i64) -> Ended {
    Ended::Failed {
        code: "rate_limited".to_owned(),
        message: "rate limited".to_owned(),
        again: true,
        until: Some(Timestamp::from_millis(until)),
    }
}

fn of_attempt(run: &Run) -> Vec<Event> {
    let (attempt, _) = due(run);
    let mut events = Vec::new();
    for attempt in [attempt, attempt + 7] {
        for ended in [
            Ended::Exited { code: 0 },
            Ended::Exited { code: 1 },
            Ended::TimedOut,
            Ended::LimitReached {
                resource: Resource::Processes,
                limit: 1_000,
                counted: 1_001,
            },
            Ended::Stopped,
            Ended::NotStarted {
                code: "not_found".to_owned(),
                message: "no such program".to_owned(),
            },
            Ended::Answered { turns: 1 },
            Ended::Unfinished {
                code: "iteration_limit".to_owned(),
                message: "no turns left".to_owned(),
            },
            Ended::Failed {
                code: "auth".to_owned(),
                message: "no such key".to_owned(),
                again: false,
                until: None,
            },
            rate_limited(2_000),
            rate_limited(1_000_000),
        ] {
            let execution = execution(ended);
            events.push(Event::ExecutionFinished { attempt, execution });
        }
        events.extend(of_conversation(attempt));
        let incomplete = Recorded {
            incomplete: Some("`notes.txt` is not a declared output".to_owned()),
            ..recorded(true)
        };
        for result in [recorded(true), recorded(false), incomplete] {
            events.push(Event::ResultRecorded { attempt, result });
        }
        let failed = failure(Step::Verify);
        for failure in [
            failed.clone(),
            Failure::new(Step::Record, TREE_LOST, "torn"),
        ] {
            events.push(Event::RecordingFailed { attempt, failure });
        }
        for (checks, failure) in [
            (vec![check(Verdict::Passed)], None),
            (vec![check(Verdict::Passed), check(Verdict::Warned)], None),
            (vec![check(Verdict::Failed)], None),
            (vec![check(Verdict::NotRun)], None),
            (vec![check(Verdict::Passed)], Some(failed)),
            (vec![of_output()], None),
        ] {
            for changed in [false, true] {
                events.push(Event::ChecksFinished {
                    attempt,
                    checks: checks.clone(),
                    failure: failure.clone(),
                    changed,
                });
            }
        }
        events.push(Event::BackoffElapsed { attempt });
    }
    events
}

fn of_conversation(attempt: u32) -> [Event; 6] {
    let run = RunId::following(None, AT, 1);
    let turn = TurnRecord {
        number: 1,
        request: String::new(),
        answer: serde_json::Value::Null,
        spent: Spent::default(),
    };
    [
        Event::RequestSent {
            attempt,
            spent: Spent::default(),
        },
        Event::TurnTaken { attempt, turn },
        Event::TurnFailed {
            attempt,
            code: "server".to_owned(),
            spent: Spent::default(),
        },
        Event::ToolsFinished {
            attempt,
            turn: 0,
            results: serde_json::Value::Null,
        },
        Event::ChildStarted { attempt, run },
        Event::ChildEnded {
            attempt,
            run,
            turns: 1,
            spent: Spent::default(),
            failed: None,
        },
    ]
}

fn of_run(run: &Run) -> Vec<Event> {
    let oid = "a1".to_owned();
    vec![
        Event::Submitted {
            machine: MACHINE_VERSION,
            plan: run.plan.clone(),
        },
        Event::Admitted {
            admission: Admission {
                owner: "engine".to_owned(),
                fence: 1,
            },
        },
        Event::Validated {
            checks: Vec::new(),
            wake: None,
        },
        Event::NothingToDo { checks: Vec::new() },
        Event::ValidationFailed {
            failure: failure(Step::Validate),
            checks: Vec::new(),
        },
        Event::Prepared {
            baseline: serde_json::Value::Null,
        },
        Event::PreparationFailed {
            failure: failure(Step::Prepare),
        },
        Event::Saved,
        Event::SaveFailed {
            failure: failure(Step::Save),
        },
        Event::CommitPrepared {
            oid: "a1".to_owned(),
            parent: None,
            reference: "refs/heads/main".to_owned(),
        },
        Event::NothingToCommit,
        Event::CommitOvertaken,
        Event::TargetMoved {
            tip: "b2".to_owned(),
        },
        Event::Conflicted {
            failure: failure(Step::Land),
        },
        Event::LandingWaiting {
            code: "busy".to_owned(),
            why: "a rebase is in progress".to_owned(),
        },
        Event::LandingStopped,
        Event::LandedIn {
            tip: "b2".to_owned(),
        },
        Event::Committed {
            oid: "a1".to_owned(),
            warning: None,
        },
        Event::CommitFailed {
            failure: failure(Step::Commit),
        },
        Event::RuntimeExhausted,
        Event::Interrupted,
        Event::OwnerLost,
        Event::GivenUp {
            why: "store_rebuilt".to_owned(),
        },
        Event::LandedLater { oid, by: None },
        Event::Discarded { by: None },
        Event::Closed,
    ]
}

fn of_approval() -> Vec<Event> {
    let mut events = vec![
        Event::Approved {
            approval: Approval {
                digest: "d1".to_owned(),
                by: "somebody".to_owned(),
                note: None,
            },
        },
        Event::Denied {
            by: "somebody".to_owned(),
            note: "no".to_owned(),
        },
        Event::ApprovalExpired,
    ];
    for commit in [Some("a1".to_owned()), None] {
        let outputs = Vec::new();
        let result = HeldResult { commit, outputs };
        events.push(Event::Held { result });
    }
    events
}

fn with_variants(run: &Run) -> Vec<Event> {
    let (_, index) = due(run);
    let mut events = Vec::new();
    for index in [index, index + 7] {
        for verdict in [
            HookVerdict::Passed,
            HookVerdict::Blocked {
                message: "no".to_owned(),
            },
            HookVerdict::Changed {
                message: "f".to_owned(),
            },
            HookVerdict::Warned {
                message: "hm".to_owned(),
            },
        ] {
            events.push(Event::PostCommitHookFinished {
                index,
                verdict: verdict.clone(),
                sandbox_level: None,
            });
            events.push(Event::HookFinished {
                index,
                verdict,
                sandbox_level: None,
            });
        }
    }
    for failed in [Vec::new(), vec!["path: denied".to_owned()]] {
        let report = RestoreReport {
            put_back: 1,
            failed,
            ..RestoreReport::default()
        };
        events.push(Event::Restored { report });
    }
    for kind in [CancelKind::Graceful, CancelKind::Now] {
        let by = "somebody".to_owned();
        events.push(Event::CancelRequested { kind, by });
    }
    for resolution in [Resolution::Succeeded, Resolution::Failed] {
        let note = "looked".to_owned();
        let by = None;
        events.push(Event::Resolved {
            resolution,
            note,
            by,
        });
    }
    events
}

/// The run without those facts that no decision rests on, so that equal runs count as one.
#[must_use]
pub(crate) fn reduced(mut run: Run) -> Run {
    let facts = run.facts;
    run.facts = Facts {
        attempts: facts.attempts,
        failed_attempts: facts.failed_attempts,
        crash_attempts: facts.crash_attempts,
        touched: facts.touched,
        rounds: facts.rounds,
        reconciled: facts.reconciled,
        prepared: facts.prepared,
        discarded: facts.discarded,
        held: facts.held,
        approval: facts.approval,
        executing_since: facts.executing_since,
        unfinished: facts.unfinished,
        turns: facts.turns,
        rate_waits: facts.rate_waits,
        results: Results::default(),
        ..Facts::default()
    };
    run
}

/// Visits every state that `plan` can reach with every representative event: (run, event, next or refused).
pub(crate) fn explore(plan: &Plan, visit: &mut dyn FnMut(&Run, &Event, Option<&Run>)) {
    let start = queued(plan);
    let mut seen = HashSet::from([start.clone()]);
    let mut open = VecDeque::from([start]);
    let mut events: HashMap<(u32, u32), Vec<Event>> = HashMap::new();
    while let Some(run) = open.pop_front() {
        // They depend on the plan and on what is due, and on nothing else of the run.
        let events = events
            .entry(due(&run))
            .or_insert_with(|| representatives(&run));
        for event in &*events {
            let next = run.apply(AT, event).ok();
            visit(&run, event, next.as_ref());
            let Some(next) = next.map(reduced) else {
                continue;
            };
            if next.facts.attempts <= ATTEMPTS_EXPLORED_MAX && !seen.contains(&next) {
                seen.insert(next.clone());
                open.push_back(next);
            }
        }
    }
}
