//! Verifying: declared outputs first, then the checks in order, each with its evidence.

use super::super::work::Work;
use super::command::Invocation;
use super::prepare::output_paths;
use super::{Performer, git_failure, repository_gone};
use crate::git;
use crate::machine::{Action, Event};
use crate::model::evidence::{CheckRecord, OutputState, Verdict};
use crate::model::outcome::{Failure, Step};
use crate::model::spec::{CheckSpec, OutputKind};
use crate::process::Stdin;
use crate::protocol::LogStream;

impl Performer {
    pub(super) fn verify(&self, work: &Work, attempt: u32) -> Event {
        let mut checks = output_checks(work);
        if checks.iter().any(|check| check.verdict == Verdict::Failed) {
            let skipped = work.spec.checks.iter();
            checks.extend(skipped.map(|check| not_run(check, "an output failed")));
            return Event::ChecksFinished {
                attempt,
                checks,
                failure: None,
                changed: false,
            };
        }
        let ran = self.checks(work, &work.spec.checks, attempt);
        let drift = self.drift(work, "a check", "check_changed_result", Step::Verify);
        let is_broken = ran.iter().any(|check| check.verdict == Verdict::Failed);
        checks.extend(ran);
        let changed = drift.is_some();
        let failure = if is_broken {
            None
        } else {
            let outputs = self.outputs_changed(work);
            outputs.or(drift).or_else(|| refused(work))
        };
        Event::ChecksFinished {
            attempt,
            checks,
            failure,
            changed,
        }
    }

    /// Runs checks in order until the first that must pass and does not.
    pub(super) fn checks(
        &self,
        work: &Work,
        checks: &[CheckSpec],
        attempt: u32,
    ) -> Vec<CheckRecord> {
        let mut records: Vec<CheckRecord> = Vec::new();
        for check in checks {
            let over = records
                .iter()
                .any(|record| record.verdict == Verdict::Failed)
                || work.stop.requested().is_some();
            records.push(match &check.program {
                None => not_run(check, "a person has to look"),
                Some(_) if over => not_run(check, "an earlier check failed"),
                Some(program) => {
                    let ran = self.command(
                        work,
                        Invocation {
                            program,
                            stdin: Stdin::Null,
                            timeout_ms: Some(check.timeout_ms),
                            attempt: attempt.max(1),
                            logged_as: Some(LogStream::Check),
                            stdout_file: None,
                            noted: true,
                            more: Vec::new(),
                        },
                    );
                    let passed = ran.ended.is_success();
                    CheckRecord {
                        description: check.description.clone(),
                        command: Some(program.show()),
                        must_pass: check.must_pass,
                        verdict: match (passed, check.must_pass) {
                            (true, _) => Verdict::Passed,
                            (false, true) => Verdict::Failed,
                            (false, false) => Verdict::Warned,
                        },
                        duration_ms: ran.duration_ms(),
                        message: None,
                        output_tail: ran.tail,
                        ended: Some(ran.ended),
                    }
                }
            });
        }
        records
    }

    /// What commands changed of a mutating run's repository after its result was recorded, as a failure.
    pub(super) fn drift(&self, work: &Work, who: &str, code: &str, step: Step) -> Option<Failure> {
        if !work.spec.plan.mutating {
            return None;
        }
        let (baseline, result) = recorded_trees(work)?;
        let excluded = work.attempt_tree()?.excluded;
        if let Some(gone) = repository_gone(step, work) {
            return Some(gone);
        }
        if let Err(error) = self.hold_repository(work) {
            return Some(git_failure(step, work, &error));
        }
        match self.own_drift(work, &baseline, &result, &excluded) {
            Ok(drift) if drift.is_none() => None,
            Ok(drift) => {
                let what = drift.describe();
                let message = format!("{who} changed {what}, after the result was recorded");
                Some(Failure::new(step, code, message))
            }
            Err(mut failure) => {
                failure.step = step;
                Some(failure)
            }
        }
    }

    fn outputs_changed(&self, work: &Work) -> Option<Failure> {
        let recorded = recorded_outputs(work)?;
        let beneath = self.beneath().ok()?;
        for (output, before) in work.spec.outputs.iter().zip(&recorded) {
            if output.path.is_none() {
                continue;
            }
            let now = beneath.state(output, None);
            if (now.digest.as_ref(), now.bytes) != (before.digest.as_ref(), before.bytes) {
                let path = output.path.as_deref().unwrap_or(&output.name);
                let message = format!("a check changed the output `{path}`");
                return Some(Failure::new(Step::Verify, "check_changed_result", message));
            }
        }
        None
    }
}

/// Why the recorded change cannot be committed as the run's own.
fn refused(work: &Work) -> Option<Failure> {
    let (baseline, result) = recorded_trees(work)?;
    attribution(work, &baseline, &result).err()
}

fn recorded_trees(work: &Work) -> Option<(git::Baseline, git::ResultTree)> {
    let (groundwork, tree) = (work.groundwork()?, work.attempt_tree()?);
    Some((groundwork.repository?, tree.repository?))
}

/// Which paths are the run's to commit.
pub(super) fn attribution(
    work: &Work,
    baseline: &git::Baseline,
    result: &git::ResultTree,
) -> Result<git::Attribution, Failure> {
    let outputs = output_paths(work)?;
    let reconciling = work.run.facts.reconciled
        || matches!(
            work.action,
            Action::Verify {
                reconciling: true,
                ..
            }
        );
    let only = reconciling.then_some(&outputs[..]);
    git::attribute(baseline, result, only).map_err(|error| {
        let message = format!("{error}; {}", error.hint());
        Failure::new(Step::Commit, error.code(), message)
    })
}

fn recorded_outputs(work: &Work) -> Option<Vec<OutputState>> {
    work.entries
        .iter()
        .rev()
        .find_map(|entry| match &entry.event {
            Event::ResultRecorded { result, .. } => Some(result.outputs.clone()),
            _ => None,
        })
}

/// One check per declared output that has a promise to keep.
fn output_checks(work: &Work) -> Vec<CheckRecord> {
    let recorded = recorded_outputs(work).unwrap_or_default();
    let outputs = work.spec.outputs.iter().zip(&recorded);
    outputs
        .filter(|(output, _)| output.kind != OutputKind::Console)
        .map(|(output, state)| {
            let what = match &output.path {
                Some(path) => format!("output `{}` at {path}", output.name),
                None => format!("output `{}`", output.name),
            };
            CheckRecord {
                description: what,
                command: None,
                must_pass: true,
                verdict: if state.problem.is_none() {
                    Verdict::Passed
                } else {
                    Verdict::Failed
                },
                ended: None,
                message: state.problem.clone(),
                output_tail: String::new(),
                duration_ms: 0,
            }
        })
        .collect()
}

fn not_run(check: &CheckSpec, why: &str) -> CheckRecord {
    CheckRecord {
        description: check.description.clone(),
        command: check
            .program
            .as_ref()
            .map(crate::model::spec::Program::show),
        must_pass: check.must_pass,
        verdict: Verdict::NotRun,
        ended: None,
        message: Some(why.to_owned()),
        output_tail: String::new(),
        duration_ms: 0,
    }
}
