use super::*;
use crate::cli::fake;
use crate::model::Step;
use crate::model::{Failure, Zone};

fn shown(detail: &RunDetail) -> String {
    let mut text = Vec::new();
    ending(&mut Stream::new(&mut text, false, false), detail);
    String::from_utf8(text).unwrap()
}

#[test]
fn a_success_says_what_holds_and_where_it_is() {
    xtest::assert_text!(shown(&fake::detail()), @r"
    ✓ repo-steward/weekly-changes succeeded in 4.2s  run 03zevfqf
      checks
        ✓ the report is not empty  12ms
      outputs
        workspace/reports/weekly.md  1.2 KiB
      commit     3f2a1bc4d5e6f708192a3b4c5d6e7f8091a2b3c4
      thread     /w/workspace/threads/T-1.json
    ");
}

#[test]
fn a_failed_check_shows_its_evidence_and_where_there_is_more() {
    xtest::assert_text!(shown(&fake::failed_detail()), @r"
    ✗ repo-steward/weekly-changes failed (verify) in 4.2s  run 03zevfqf
      verify failed (check_failed): the report is not empty
      checks
        ✗ the report is not empty
          $ test -s report\x1b[2J
          exit code 1
          │ first\x07
          │ last
        – every commit is listed  after the first failure
      hint: `workerctl logs 03zevfqf --stream check` has all of their output
      outputs
        workspace/reports/weekly.md  1.2 KiB
      changed (1), not landed: `workerctl diff 03zevfqf` shows it
      not restored  a/b: permission denied
      thread     /w/workspace/threads/T-1.json
    ");
}

#[test]
fn the_level_of_a_check_is_shown_where_its_attempt_had_another() {
    let mut detail = fake::detail();
    let level_of = |detail: &mut RunDetail, attempt, check| {
        let newest = &mut detail.attempts[0];
        newest.execution.as_mut().unwrap().sandbox_level = attempt;
        newest.checks[0].sandbox_level = check;
        shown(detail)
    };
    assert!(!level_of(&mut detail, Some(1), Some(1)).contains("sandbox"));
    assert!(!level_of(&mut detail, Some(1), None).contains("sandbox"));
    let text = level_of(&mut detail, Some(1), Some(0));
    assert!(
        text.contains("not empty  12ms  sandbox level 0\n"),
        "{text}"
    );
}

#[test]
fn what_was_not_verified_is_never_shown_as_if_it_were() {
    let mut detail = fake::detail();
    detail.summary.unverified = true;
    detail.attempts[0].checks.clear();
    detail.summary.mutating = false;
    detail.summary.commit = None;
    detail.results.commit = StepResult::skipped("not_mutating");
    xtest::assert_text!(shown(&detail), @r"
    ✓ repo-steward/weekly-changes succeeded, unverified in 4.2s  run 03zevfqf
      unverified: no required check ran
      outputs
        workspace/reports/weekly.md  1.2 KiB
      commit     none: the skill is not mutating, its outputs stay in the work tree
      thread     /w/workspace/threads/T-1.json
    ");
}

#[test]
fn a_failed_command_shows_the_end_of_its_errors() {
    let mut detail = fake::detail();
    let failure = Failure::new(Step::Execute, "exit_code", "exit code 3");
    detail.summary.outcome = Some(Outcome::Failed {
        failure: failure.clone(),
    });
    let attempt = &mut detail.attempts[0];
    attempt.failure = Some(failure);
    attempt.checks.clear();
    detail.outputs.clear();
    detail.changed.clear();
    let lines: Vec<String> = (1..=25).map(|n| format!("line {n}")).collect();
    let execution = attempt.execution.as_mut().unwrap();
    execution.ended = crate::model::evidence::Ended::Exited { code: 3 };
    execution.stderr_tail = lines.join("\n");
    let text = shown(&detail);
    assert!(
        text.contains("(5 lines before)")
            && text.contains("│ line 25")
            && !text.contains("│ line 5\n"),
        "{text}"
    );
    assert!(text.contains("hint: `workerctl logs"), "{text}");
}

#[test]
fn an_unknown_outcome_says_how_to_settle_it() {
    let mut detail = fake::detail();
    detail.summary.outcome = Some(Outcome::Unknown {
        why: "owner_lost".to_owned(),
    });
    let text = shown(&detail);
    assert!(
        text.starts_with("? repo-steward/weekly-changes unknown"),
        "{text}"
    );
    assert!(text.contains("workerctl resolve"), "{text}");
}

#[test]
fn every_outcome_has_a_sign_and_a_word() {
    let mut summary = fake::summary();
    let failure = Failure::new(Step::Hook, "x", "x");
    let text = String::new;
    let table = [
        (None, "finished"),
        (Some(Outcome::Succeeded), "succeeded"),
        (Some(Outcome::Failed { failure }), "failed (hook)"),
        (Some(Outcome::Cancelled), "cancelled"),
        (Some(Outcome::TimedOut { message: text() }), "timed out"),
        (Some(Outcome::Denied { message: text() }), "denied"),
        (Some(Outcome::Unknown { why: text() }), "unknown"),
    ];
    for (outcome, word) in table {
        summary.outcome = outcome;
        assert_eq!(state_of(&summary).2, word);
    }
}

#[test]
fn a_run_in_full_has_all_of_it() {
    let mut text = Vec::new();
    full(
        &mut Stream::new(&mut text, false, false),
        &fake::detail(),
        Zone::compiled_in("Europe/Berlin").unwrap(),
    );
    xtest::assert_text!(String::from_utf8(text).unwrap(), @r"
    ✓ repo-steward/weekly-changes succeeded in 4.2s  run 03zevfqf
      checks
        ✓ the report is not empty  12ms
      outputs
        workspace/reports/weekly.md  1.2 KiB
      commit     3f2a1bc4d5e6f708192a3b4c5d6e7f8091a2b3c4
      thread     /w/workspace/threads/T-1.json
      log        /w/workspace/threads/T-1.jsonl
      run        01M7Q5CQG00000000003ZEVFQF
      title      Weekly changes
      by         ada
      definition e88ecd89
      inputs
        weeks = 2
      results
        execution     passed
        verification  passed
        hook          skipped  no_hooks
        save          passed
        commit        passed
      attempts (Europe/Berlin)
         1 2026-11-18 12:06:40  exit code 0  3.0s  stdout 1.2 KiB, stderr 0 B
      timeline (Europe/Berlin)
        12:06:40.000  submitted
        12:06:44.300  closed
    ");
}
