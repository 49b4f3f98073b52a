//! What the double shows of its run and of schedules.

use std::collections::BTreeMap;

use workerctl::model::evidence::CommitsMade;
use workerctl::model::outcome::{Outcome, Phase, Results};
use workerctl::model::schedule::{Overlap, Policy, Trigger};
use workerctl::model::{RunId, SkillRef, ThreadId};
use workerctl::protocol::{RunDetail, RunSummary, SchedulePlan, ScheduleView};

/// The run's line in lists.
pub(crate) fn summary(run: RunId) -> RunSummary {
    let skill = SkillRef {
        worker: "steward".into(),
        skill: "weekly".into(),
    };
    let submitted_at = run.timestamp();
    RunSummary {
        parent: None,
        by_command: false,
        schedule: None,
        slot: None,
        title: String::new(),
        by: String::new(),
        decided: false,
        day: None,
        spent: None,
        run,
        phase: Phase::Finished,
        outcome: Some(Outcome::Succeeded),
        unverified: false,
        nothing_to_do: false,
        reconciled: false,
        mutating: true,
        attempts: 1,
        submitted_at,
        started_at: Some(submitted_at),
        finished_at: Some(submitted_at),
        duration_ms: None,
        working_since: None,
        retry_at: None,
        commit: Some("0".repeat(40)),
        commits_made: CommitsMade::default(),
        kept_commit: None,
        push_error: None,
        thread: ThreadId::of(run, &skill, submitted_at),
        waiting_for: None,
        retry_of: None,
        skill,
    }
}

/// The run in full.
pub(crate) fn detail(run: RunId, summary: RunSummary) -> RunDetail {
    RunDetail {
        message: None,
        answer: None,
        turns: Vec::new(),
        children: Vec::new(),
        parent_skill: None,
        summary,
        title: "Weekly".into(),
        results: Results::default(),
        inputs: BTreeMap::from([("weeks".to_owned(), serde_json::json!(1))]),
        attempts: Vec::new(),
        pre_checks: Vec::new(),
        outputs: Vec::new(),
        changed: vec!["a\u{1b}b".into()],
        changed_count: 1,
        protected_changes: Vec::new(),
        not_restored: Vec::new(),
        warnings: Vec::new(),
        thread_path: "/t.json".into(),
        log_path: "/t.jsonl".into(),
        timeline: vec![(run.timestamp(), "Submitted".into())],
        phases: Vec::new(),
        audit: Vec::new(),
        definition_digest: "0".repeat(64),
        submitted_by: "test".into(),
        approval: None,
        branch: None,
        push: None,
    }
}

pub(crate) fn schedule(id: &str) -> ScheduleView {
    ScheduleView {
        id: id.to_owned(),
        skill: "w/s".to_owned(),
        when: "every minute".to_owned(),
        timezone: "UTC".to_owned(),
        defined_at: "workers/w/worker.yaml:1:1".to_owned(),
        observed: false,
        next: None,
        waiting: Vec::new(),
        paused: None,
        overlap: Overlap::Skip,
        known: true,
        last: None,
        succeeded_at: None,
        failures: 0,
        blocked: None,
        expected_by: None,
        overdue: false,
        fallback_reason: None,
        inactive_reason: None,
        restored: None,
        actions: 0,
        totals: BTreeMap::new(),
        plan: SchedulePlan {
            trigger: Trigger::Every { period_ms: 60_000 },
            policy: Policy::default(),
            anchor: None,
            cursor: None,
            attempts: Some(1),
            blocked: None,
        },
    }
}
