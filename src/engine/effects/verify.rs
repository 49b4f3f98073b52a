//! Verifying: declared outputs first, then the checks in order, each with its evidence.

use std::path::Path;

use super::super::work::Work;
use super::command::Invocation;
use super::prepare::output_paths;
use super::{Performer, git_failure};
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
            checks.extend(
                work.spec
                    .checks
                    .iter()
                    .map(|check| not_run(check, "an output failed")),
            );
            return Event::ChecksFinished {
                attempt,
                checks,
                failure: None,
            };
        }
        checks.extend(self.checks(work, &work.spec.checks, attempt));
        let failed = checks.iter().any(|check| check.verdict == Verdict::Failed);
        let failure = if failed {
            None
        } else {
            self.unverifiable(work)
        };
        Event::ChecksFinished {
            attempt,
            checks,
            failure,
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

    /// Why passed checks prove nothing: one of them changed the result.
    fn unverifiable(&self, work: &Work) -> Option<Failure> {
        if let Some(failure) = self.outputs_changed(work) {
            return Some(failure);
        }
        if !work.spec.plan.mutating {
            return None;
        }
        let (groundwork, tree) = (work.groundwork()?, work.attempt_tree()?);
        let (baseline, result) = (groundwork.repository?, tree.repository?);
        if let Err(error) = self.hold_repository(work) {
            return Some(git_failure(Step::Verify, &error));
        }
        let cwd = Path::new(&work.spec.cwd);
        let excluded = match self.excluded(work) {
            Ok(excluded) => excluded,
            Err(failure) => return Some(failure),
        };
        match git::check_unchanged(cwd, &baseline, &result, &excluded, &git::Limits::default()) {
            Ok(drift) if drift.is_none() => {}
            Ok(drift) => {
                let first: Vec<String> = drift
                    .paths
                    .iter()
                    .take(5)
                    .map(|p| format!("`{p}`"))
                    .collect();
                let what = if first.is_empty() {
                    "the branch".to_owned()
                } else {
                    first.join(", ")
                };
                let message = format!("a check changed {what} after the result was recorded");
                return Some(Failure::new(Step::Verify, "check_changed_result", message));
            }
            Err(error) => return Some(git_failure(Step::Verify, &error)),
        }
        attribution(work, &baseline, &result).err()
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
