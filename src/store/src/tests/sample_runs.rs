//! Runs to store.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::machine::{Admission, Entry, Event};
use crate::model::evidence::{CommitsMade, Recorded};
use crate::model::outcome::{Outcome, Phase};
use crate::model::spec::{OnCrash, Plan, Program, Retry, SPEC_VERSION};
use crate::model::{RunId, RunSpec, SkillRef, ThreadId, Timestamp, Value};
use crate::protocol::RunSummary;
use crate::{Batch, Write};

/// The instant of the first run.
pub(crate) const BEGAN_MS: i64 = 1_795_203_296_789;

/// The `n`th run; ids grow with `n`.
pub(crate) fn run(n: u64) -> RunId {
    RunId::following(
        None,
        at(n),
        u128::from(n).wrapping_mul(0x9E37_79B9_7F4A_7C15),
    )
}

pub(crate) fn at(n: u64) -> Timestamp {
    Timestamp::from_millis(BEGAN_MS).plus_millis(n)
}

pub(crate) fn skill() -> SkillRef {
    SkillRef {
        worker: "repo-steward".to_owned(),
        skill: "weekly-report".to_owned(),
    }
}

pub(crate) fn plan() -> Plan {
    Plan {
        mutating: false,
        idempotent: true,
        once: false,
        validates: true,
        prepares: true,
        verifies: true,
        proves: None,
        on_crash: OnCrash::Verify,
        retry: Retry::ONCE,
        hooks: 0,
        post_commit_hooks: 0,
        begins_anew: false,
        restores_outputs: false,
        max_runtime_ms: Some(900_000),
        approval: None,
        on_rate_limit: None,
    }
}

/// A specification whose command has `command_bytes` bytes.
pub(crate) fn spec(n: u64, command_bytes: usize) -> RunSpec {
    let run = run(n);
    RunSpec {
        version: SPEC_VERSION,
        run,
        thread: ThreadId::of(run, &skill(), at(n)),
        skill: skill(),
        title: "Weekly report".to_owned(),
        definition_digest: "ab".repeat(32),
        submitted_at: at(n),
        zone: "Europe/Berlin".to_owned(),
        workspace: "/home/ada/notes".to_owned(),
        cwd: "/home/ada/notes".to_owned(),
        repository: None,
        tree: None,
        inputs: BTreeMap::from([("weeks".to_owned(), Value::Number("1".to_owned()))]),
        sensitive: Vec::new(),
        message: None,
        program: Program::Shell {
            shell: "/bin/sh".to_owned(),
            text: "x".repeat(command_bytes),
        },
        requires: Vec::new(),
        environment: Vec::new(),
        env_names: Vec::new(),
        secrets: BTreeMap::new(),
        outputs: Vec::new(),
        stdout_to: None,
        input_paths: Vec::new(),
        pre_checks: Vec::new(),
        wake: None,
        checks: Vec::new(),
        hooks: Vec::new(),
        post_commit: Vec::new(),
        plan: plan(),
        timeout_ms: Some(60_000),
        limits: None,
        commit_message: String::new(),
        commit_author: None,
        threads_dir: "workspace/threads".to_owned(),
        retry_of: None,
        scheduled: None,
        not_before: None,
        may_control: false,
        sandbox: None,
        parent: None,
        submitted_by: "cli uid 1000".to_owned(),
        user_id: None,
        submitter_run: None,
        chat_id: None,
        foreground: false,
        notify_after: crate::model::Threshold::default(),
    }
}

pub(crate) fn summary(n: u64) -> RunSummary {
    let run = run(n);
    RunSummary {
        run,
        skill: skill(),
        phase: Phase::Finished,
        outcome: Some(Outcome::Succeeded),
        unverified: false,
        nothing_to_do: false,
        reconciled: false,
        mutating: false,
        attempts: 1,
        submitted_at: at(n),
        started_at: Some(at(n + 5)),
        finished_at: Some(at(n + 1_000)),
        duration_ms: None,
        working_since: None,
        retry_at: None,
        commit: None,
        commits_made: CommitsMade::default(),
        kept_commit: None,
        push_error: None,
        spent: None,
        parent: None,
        by_command: false,
        schedule: None,
        slot: None,
        title: String::new(),
        by: String::new(),
        decided: false,
        day: None,
        thread: ThreadId::of(run, &skill(), at(n)),
        waiting_for: None,
        retry_of: None,
    }
}

pub(crate) fn submitted(n: u64) -> Entry {
    entry(
        n,
        0,
        Event::Submitted {
            // As the first version of the machine wrote it.
            machine: 1,
            plan: plan(),
        },
    )
}

pub(crate) fn admitted(n: u64, seq: u32) -> Entry {
    let admission = Admission {
        owner: "engine".to_owned(),
        fence: 3,
    };
    entry(n, seq, Event::Admitted { admission })
}

/// An event with `bytes` bytes of content.
pub(crate) fn recorded(n: u64, seq: u32, bytes: usize) -> Entry {
    let result = Recorded {
        outputs: Vec::new(),
        changed: vec!["x".repeat(bytes)],
        changed_count: 1,
        tree: serde_json::json!({"tree": "0123"}),
        commits: CommitsMade::default(),
        warnings: Vec::new(),
        incomplete: None,
    };
    entry(n, seq, Event::ResultRecorded { attempt: 1, result })
}

pub(crate) fn entry(n: u64, seq: u32, event: Event) -> Entry {
    Entry {
        seq,
        at: at(n + u64::from(seq)),
        event,
    }
}

/// What is committed when run `n` is accepted and starts at once.
pub(crate) fn accepted(n: u64) -> Batch {
    batch(vec![
        Write::Spec(Arc::new(spec(n, 40))),
        Write::Entries {
            run: run(n),
            entries: vec![submitted(n), admitted(n, 1)],
        },
    ])
}

pub(crate) fn batch(writes: Vec<Write>) -> Batch {
    Batch { writes }
}
