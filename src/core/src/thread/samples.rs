//! One specification and a few journals for the tests of this room.

use std::collections::BTreeMap;

use crate::machine::{Admission, Entry, Event, HookVerdict, MACHINE_VERSION};
use crate::model::evidence::{
    CheckRecord, CommitsMade, Ended, Execution, OutputState, Recorded, Verdict,
};
use crate::model::spec::{HookSpec, OnCrash, OutputKind, OutputSpec, Plan, Program, Retry};
use crate::model::{RunId, RunSpec, SkillRef, ThreadId, Timestamp, Value};

pub(crate) const START: i64 = 1_795_000_000_000;

const RETRY: Retry = Retry {
    max_attempts: 2,
    initial_ms: 1_000,
    ..Retry::ONCE
};

#[expect(clippy::too_many_lines, reason = "one literal that names every field")]
pub(crate) fn spec() -> RunSpec {
    let (at, retry) = (Timestamp::from_millis(START), RETRY);
    let run = RunId::following(None, at, 42);
    let skill = SkillRef {
        worker: "repo-steward".into(),
        skill: "weekly-report".into(),
    };
    RunSpec {
        version: 1,
        run,
        thread: ThreadId::of(run, &skill, at),
        skill,
        title: "Weekly report".into(),
        definition_digest: "d1".into(),
        submitted_at: at,
        zone: "UTC".into(),
        workspace: "/w".into(),
        cwd: "/w/sub".into(),
        repository: None,
        tree: None,
        inputs: BTreeMap::from([("weeks".into(), Value::Number("1".into()))]),
        sensitive: vec![],
        message: None,
        program: Program::Shell {
            shell: "/bin/sh".into(),
            text: "git log".into(),
        },
        requires: vec![],
        environment: vec![("WORKERCTL_INPUT_WEEKS".into(), "1".into())],
        env_names: vec!["STRIPE_KEY".into()],
        secrets: BTreeMap::new(),
        outputs: vec![OutputSpec {
            name: "report".into(),
            kind: OutputKind::Markdown,
            path: Some("reports/r.md".into()),
        }],
        stdout_to: Some(0),
        input_paths: vec![],
        pre_checks: vec![],
        wake: None,
        checks: vec![],
        hooks: vec![HookSpec {
            program: Program::Shell {
                shell: "/bin/sh".into(),
                text: "notify".into(),
            },
            timeout_ms: 60_000,
        }],
        post_commit: vec![],
        plan: Plan {
            mutating: true,
            idempotent: true,
            once: false,
            validates: true,
            prepares: true,
            verifies: true,
            proves: Some(true),
            on_crash: OnCrash::Verify,
            retry,
            hooks: 1,
            post_commit_hooks: 0,
            begins_anew: false,
            restores_outputs: false,
            max_runtime_ms: None,
            approval: None,
            on_rate_limit: None,
        },
        timeout_ms: None,
        limits: None,
        commit_message: "weekly-report: Weekly report".into(),
        commit_author: None,
        threads_dir: "workspace/threads".into(),
        retry_of: None,
        scheduled: None,
        not_before: None,
        may_control: false,
        sandbox: None,
        parent: None,
        submitted_by: "cli uid 1000".into(),
        user_id: None,
        submitter_run: None,
        chat_id: None,
        foreground: false,
        notify_after: crate::model::Threshold::default(),
    }
}

/// Entries one second apart.
pub(crate) fn journal(events: Vec<Event>) -> Vec<Entry> {
    events
        .into_iter()
        .enumerate()
        .map(|(seq, event)| Entry {
            seq: u32::try_from(seq).unwrap(),
            at: Timestamp::from_millis(START + 1_000 * i64::try_from(seq).unwrap()),
            event,
        })
        .collect()
}

pub(crate) fn submitted(spec: &RunSpec) -> Event {
    Event::Submitted {
        machine: MACHINE_VERSION,
        plan: spec.plan.clone(),
    }
}

pub(crate) fn admitted() -> Event {
    Event::Admitted {
        admission: Admission {
            owner: "host".into(),
            fence: 1,
        },
    }
}

pub(crate) fn executed(attempt: u32, code: i32) -> Event {
    Event::ExecutionFinished {
        attempt,
        execution: Execution {
            ended: Ended::Exited { code },
            duration_ms: 900,
            stdout_bytes: 10,
            stderr_bytes: 5,
            dropped_bytes: 0,
            survivors_ended: 0,
            stderr_tail: "boom\n".into(),
            sandbox_level: None,
        },
    }
}

pub(crate) fn recorded(attempt: u32) -> Event {
    Event::ResultRecorded {
        attempt,
        result: Recorded {
            outputs: vec![OutputState {
                name: "report".into(),
                path: Some("reports/r.md".into()),
                bytes: Some(3),
                digest: Some("ab".into()),
                written: true,
                problem: None,
                commits: Vec::new(),
            }],
            changed: vec!["reports/r.md".into(), "x.txt".into()],
            changed_count: 2,
            tree: serde_json::json!({"tree": "t"}),
            commits: CommitsMade::default(),
            warnings: Vec::new(),
            incomplete: None,
        },
    }
}

pub(crate) fn checked(attempt: u32, verdict: Verdict) -> Event {
    Event::ChecksFinished {
        attempt,
        checks: vec![CheckRecord {
            description: "not empty".into(),
            command: Some("test -s reports/r.md".into()),
            must_pass: true,
            verdict,
            ended: Some(Ended::Exited { code: 0 }),
            message: None,
            output_tail: "checked\n".into(),
            duration_ms: 12,
            sandbox_level: None,
        }],
        failure: None,
        changed: false,
    }
}

pub(crate) fn validated() -> Event {
    Event::Validated {
        checks: vec![],
        wake: None,
    }
}

pub(crate) fn prepared() -> Event {
    Event::Prepared {
        baseline: serde_json::json!({"head": "h"}),
    }
}

/// A first attempt that fails, a second that succeeds and is committed.
pub(crate) fn succeeded(spec: &RunSpec) -> Vec<Entry> {
    journal(vec![
        submitted(spec),
        admitted(),
        validated(),
        prepared(),
        executed(1, 3),
        recorded(1),
        Event::Restored {
            report: crate::model::evidence::RestoreReport {
                put_back: 2,
                ..Default::default()
            },
        },
        Event::BackoffElapsed { attempt: 2 },
        executed(2, 0),
        recorded(2),
        checked(2, Verdict::Passed),
        Event::HookFinished {
            index: 0,
            verdict: HookVerdict::Passed,
            sandbox_level: None,
        },
        Event::Saved,
        Event::CommitPrepared {
            oid: "0123456789abcdef".into(),
            parent: None,
            reference: "refs/heads/main".into(),
        },
        Event::Committed {
            oid: "0123456789abcdef".into(),
            warning: None,
        },
        Event::Closed,
    ])
}
