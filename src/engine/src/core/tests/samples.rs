//! Runs that differ in their plan alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::machine::Event;
use crate::model::evidence::{Ended, Execution};
use crate::model::spec::{OnCrash, Plan, Program, Retry, SPEC_VERSION};
use crate::model::{RunId, RunSpec, SkillRef, ThreadId, Timestamp};

pub(super) fn plan(mutating: bool) -> Plan {
    Plan {
        mutating,
        idempotent: false,
        once: false,
        validates: mutating,
        prepares: mutating,
        verifies: true,
        proves: Some(true),
        on_crash: OnCrash::Verify,
        retry: Retry::ONCE,
        hooks: u32::from(mutating),
        post_commit_hooks: u32::from(mutating),
        begins_anew: false,
        restores_outputs: false,
        max_runtime_ms: None,
        approval: None,
        on_rate_limit: None,
    }
}

pub(super) fn spec(number: u128, plan: Plan) -> Arc<RunSpec> {
    let submitted_at = Timestamp::from_millis(1_800_000_000_000);
    let run = RunId::following(None, submitted_at, number);
    let skill = SkillRef {
        worker: "w".into(),
        skill: format!("s{number}"),
    };
    Arc::new(RunSpec {
        version: SPEC_VERSION,
        run,
        thread: ThreadId::of(run, &skill, submitted_at),
        skill,
        title: "Test".into(),
        definition_digest: String::new(),
        submitted_at,
        zone: "UTC".into(),
        workspace: "/nowhere".into(),
        cwd: "/nowhere".into(),
        repository: plan.mutating.then(|| "/nowhere/.git".to_owned()),
        tree: None,
        inputs: BTreeMap::new(),
        sensitive: Vec::new(),
        message: None,
        program: Program::Argv {
            attempt_at: Vec::new(),
            argv: vec!["true".into()],
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
        plan,
        timeout_ms: None,
        limits: None,
        commit_message: String::new(),
        commit_author: None,
        threads_dir: "threads".into(),
        retry_of: None,
        scheduled: None,
        not_before: None,
        may_control: false,
        sandbox: None,
        parent: None,
        submitted_by: "test".into(),
        user_id: None,
        submitter_run: None,
        chat_id: None,
        foreground: false,
        notify_after: crate::model::Threshold::default(),
    })
}

/// An execution that a rate limit ended.
pub(super) fn rate_limited(attempt: u32, until: Timestamp) -> Event {
    let ended = Ended::Failed {
        code: "rate_limited".to_owned(),
        message: "rate limited".to_owned(),
        again: true,
        until: Some(until),
    };
    let execution = Execution {
        ended,
        duration_ms: 1,
        stdout_bytes: 0,
        stderr_bytes: 0,
        dropped_bytes: 0,
        survivors_ended: 0,
        stderr_tail: String::new(),
        sandbox_level: None,
    };
    Event::ExecutionFinished { attempt, execution }
}
