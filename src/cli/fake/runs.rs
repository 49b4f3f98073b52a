//! The one run of the fake engine, ended well and ended badly.

use std::collections::BTreeMap;

use crate::model::evidence::{CheckRecord, CommitsMade, Ended, Execution, OutputState, Verdict};
use crate::model::{
    Failure, Outcome, Phase, Results, RunId, SkillRef, Step, StepResult, ThreadId, Timestamp,
};
use crate::protocol::{AttemptView, LogLine, LogStream, RunDetail, RunSummary};

/// When everything happens: 2026-11-18T11:06:40Z.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_795_000_000_000);

/// The one run of the fake engine.
pub(crate) fn run_id() -> RunId {
    RunId::following(None, NOW, 0xfeed_beef)
}

pub(super) fn skill() -> SkillRef {
    "repo-steward/weekly-changes".parse().unwrap()
}

/// A run that has succeeded.
pub(crate) fn summary() -> RunSummary {
    RunSummary {
        run: run_id(),
        skill: skill(),
        phase: Phase::Finished,
        outcome: Some(Outcome::Succeeded),
        unverified: false,
        nothing_to_do: false,
        reconciled: false,
        mutating: true,
        attempts: 1,
        submitted_at: NOW,
        started_at: Some(NOW.plus_millis(100)),
        finished_at: Some(NOW.plus_millis(4_300)),
        duration_ms: Some(4_200),
        working_since: None,
        retry_at: None,
        commit: Some("3f2a1bc4d5e6f708192a3b4c5d6e7f8091a2b3c4".to_owned()),
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
        thread: ThreadId::of(run_id(), &skill(), NOW),
        waiting_for: None,
        retry_of: None,
    }
}

fn check(description: &str, verdict: Verdict) -> CheckRecord {
    CheckRecord {
        description: description.to_owned(),
        command: Some("test -s report\u{1b}[2J".to_owned()),
        must_pass: true,
        verdict,
        ended: Some(Ended::Exited {
            code: i32::from(verdict == Verdict::Failed),
        }),
        message: None,
        output_tail: String::new(),
        duration_ms: 12,
        sandbox_level: None,
    }
}

/// That run in full.
pub(crate) fn detail() -> RunDetail {
    RunDetail {
        summary: summary(),
        title: "Weekly changes".to_owned(),
        results: Results {
            execution: StepResult::Passed,
            verification: StepResult::Passed,
            hook: StepResult::skipped("no_hooks"),
            save: StepResult::Passed,
            commit: StepResult::Passed,
        },
        inputs: BTreeMap::from([("weeks".to_owned(), serde_json::json!(2))]),
        message: None,
        answer: None,
        turns: Vec::new(),
        children: Vec::new(),
        parent_skill: None,
        attempts: vec![AttemptView {
            attempt: 1,
            started_at: NOW.plus_millis(100),
            execution: Some(Execution {
                ended: Ended::Exited { code: 0 },
                duration_ms: 3_000,
                stdout_bytes: 1_300,
                stderr_bytes: 0,
                dropped_bytes: 0,
                survivors_ended: 0,
                stderr_tail: String::new(),
                sandbox_level: None,
            }),
            checks: vec![check("the report is not empty", Verdict::Passed)],
            failure: None,
        }],
        pre_checks: Vec::new(),
        outputs: vec![OutputState {
            name: "report".to_owned(),
            path: Some("workspace/reports/weekly.md".to_owned()),
            bytes: Some(1_300),
            digest: None,
            written: true,
            problem: None,
            commits: Vec::new(),
        }],
        changed: vec!["workspace/reports/weekly.md".to_owned()],
        changed_count: 1,
        protected_changes: Vec::new(),
        not_restored: Vec::new(),
        warnings: Vec::new(),
        thread_path: "/w/workspace/threads/T-1.json".to_owned(),
        log_path: "/w/workspace/threads/T-1.jsonl".to_owned(),
        timeline: vec![
            (NOW, "submitted".to_owned()),
            (NOW.plus_millis(4_300), "closed".to_owned()),
        ],
        phases: Vec::new(),
        audit: Vec::new(),
        definition_digest: "e88ecd89".to_owned(),
        submitted_by: "ada".to_owned(),
        approval: None,
        branch: None,
        push: None,
    }
}

/// The same run, ended by a check that did not pass.
pub(crate) fn failed_detail() -> RunDetail {
    let failure = Failure::new(Step::Verify, "check_failed", "the report is not empty");
    let mut failed = check("the report is not empty", Verdict::Failed);
    failed.output_tail = "first\u{7}\nlast".to_owned();
    let mut not_run = check("every commit is listed", Verdict::NotRun);
    not_run.message = Some("after the first failure".to_owned());
    let mut detail = detail();
    detail.summary.outcome = Some(Outcome::Failed {
        failure: failure.clone(),
    });
    detail.summary.commit = None;
    detail.results.verification = StepResult::Failed {
        message: "1 check".to_owned(),
    };
    detail.results.commit = StepResult::skipped("failed");
    detail.attempts[0].failure = Some(failure);
    detail.attempts[0].checks = vec![failed, not_run];
    detail.not_restored = vec!["a/b: permission denied".to_owned()];
    detail
}

/// A line of the log.
pub(crate) fn log_line(line: u64, stream: LogStream, text: &str) -> LogLine {
    LogLine {
        line,
        at: NOW.plus_millis(line * 1_000),
        attempt: 1,
        stream,
        text: text.to_owned(),
        continued: false,
        carriage_returns: 0,
    }
}
