//! Plans and events that the tests of the machine are made of.

use workerctl_core::machine::*;
use workerctl_core::model::agent::{Spent, TurnRecord};
use workerctl_core::model::evidence::{
    CommitsMade, Ended, OutputState, Recorded, RestoreReport, Verdict,
};
use workerctl_core::model::outcome::{Failure, Step};
use workerctl_core::model::spec::{OnCrash, Plan, Retry};

use crate::page::label;
use crate::representatives::{AT, check, execution, queued};

pub(super) fn mutating() -> Plan {
    Plan {
        mutating: true,
        idempotent: false,
        once: false,
        validates: true,
        prepares: true,
        verifies: true,
        proves: Some(true),
        on_crash: OnCrash::Verify,
        retry: Retry::ONCE,
        hooks: 2,
        post_commit_hooks: 1,
        begins_anew: false,
        restores_outputs: false,
        max_runtime_ms: Some(1_000),
        approval: None,
        on_rate_limit: None,
    }
}

pub(super) fn retrying() -> Plan {
    Plan {
        idempotent: true,
        retry: Retry {
            max_attempts: 3,
            initial_ms: 10,
            ..Retry::ONCE
        },
        ..mutating()
    }
}

pub(super) fn reading() -> Plan {
    Plan {
        mutating: false,
        hooks: 0,
        post_commit_hooks: 0,
        ..mutating()
    }
}

pub(super) fn turn_taken(attempt: u32, number: u32) -> Event {
    let turn = TurnRecord {
        number,
        request: String::new(),
        answer: serde_json::Value::Null,
        spent: Spent::default(),
    };
    Event::TurnTaken { attempt, turn }
}

pub(super) fn ended(attempt: u32, ended: Ended) -> Event {
    let execution = execution(ended);
    Event::ExecutionFinished { attempt, execution }
}

pub(super) fn ok(attempt: u32) -> Event {
    ended(attempt, Ended::Exited { code: 0 })
}

pub(super) fn bad(attempt: u32) -> Event {
    ended(attempt, Ended::Exited { code: 1 })
}

pub(super) fn recorded(attempt: u32, written: bool) -> Event {
    let output = OutputState {
        name: "o".into(),
        path: None,
        bytes: None,
        digest: None,
        written,
        problem: None,
        commits: Vec::new(),
    };
    let result = Recorded {
        outputs: vec![output],
        changed: vec![],
        changed_count: 0,
        tree: serde_json::Value::Null,
        commits: CommitsMade::default(),
        warnings: Vec::new(),
        incomplete: None,
    };
    Event::ResultRecorded { attempt, result }
}

pub(super) fn checked(attempt: u32, verdict: Verdict) -> Event {
    Event::ChecksFinished {
        attempt,
        checks: vec![check(verdict)],
        failure: None,
        changed: false,
    }
}

pub(super) fn restored(complete: bool) -> Event {
    let edited_since = if complete { vec![] } else { vec!["x".into()] };
    let report = RestoreReport {
        edited_since,
        ..RestoreReport::default()
    };
    Event::Restored { report }
}

pub(super) fn admitted() -> Event {
    let owner = "engine".to_owned();
    Event::Admitted {
        admission: Admission { owner, fence: 1 },
    }
}

pub(super) fn hooked(index: u32, verdict: HookVerdict) -> Event {
    Event::HookFinished {
        index,
        verdict,
        sandbox_level: None,
    }
}

pub(super) fn followed(index: u32, verdict: HookVerdict) -> Event {
    Event::PostCommitHookFinished {
        index,
        verdict,
        sandbox_level: None,
    }
}

pub(super) fn failure(step: Step) -> Failure {
    Failure::new(step, "limit", "too slow")
}

pub(super) fn cancel() -> Event {
    Event::CancelRequested {
        kind: CancelKind::Graceful,
        by: "me".into(),
    }
}

pub(super) const VALIDATED: Event = Event::Validated {
    checks: vec![],
    wake: None,
};

pub(super) fn prepared() -> Event {
    Event::Prepared {
        baseline: serde_json::Value::Null,
    }
}

pub(super) fn committing() -> Event {
    Event::CommitPrepared {
        oid: "a".into(),
        parent: None,
        reference: "refs/heads/main".into(),
    }
}

pub(super) fn committed() -> Event {
    Event::Committed {
        oid: "a".into(),
        warning: None,
    }
}

/// The run after `events`, each of which must be accepted.
pub(super) fn after(plan: &Plan, events: &[Event]) -> Run {
    events.iter().fold(queued(plan), |run, event| {
        run.apply(AT, event)
            .unwrap_or_else(|error| panic!("{error}: {:?}", run.state))
    })
}

/// The way of a good mutating run up to, and not including, the event named.
pub(super) fn way(until: &str) -> Vec<Event> {
    let all = vec![
        admitted(),
        VALIDATED,
        prepared(),
        ok(1),
        recorded(1, true),
        checked(1, Verdict::Passed),
        hooked(0, HookVerdict::Passed),
        hooked(1, HookVerdict::Passed),
        Event::Saved,
        committing(),
        committed(),
    ];
    let end = all.iter().position(|event| event.name() == until);
    all[..end.unwrap_or(all.len())].to_vec()
}

pub(super) fn with(mut events: Vec<Event>, more: &[Event]) -> Vec<Event> {
    events.extend_from_slice(more);
    events
}

/// One row: the plan, the way there, what is expected then.
#[track_caller]
pub(super) fn row(plan: &Plan, events: &[Event], expected: &str) -> Run {
    let run = after(plan, events);
    assert_eq!(label(&run.state), expected);
    run
}
