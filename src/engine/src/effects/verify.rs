//! Verifying: declared outputs first, then the checks in order, each with its evidence.

use super::super::outputs::OutputStamp;
use super::super::work::Work;
use super::command::{Invocation, TAIL_BYTES_MAX};
use super::tree_failure;
use super::{Performer, lock};
use crate::git::RepoPath;
use crate::machine::Event;
use crate::model::evidence::{CheckRecord, OutputState, Verdict};
use crate::model::outcome::{Failure, Step};
use crate::model::spec::{CheckSpec, OutputKind};
use crate::process::Stdin;
use crate::protocol::LogStream;

impl Performer {
    pub(super) fn verify(&self, work: &Work, attempt: u32) -> Event {
        if let Err(failure) = self.stand_on_result(work) {
            return Event::ChecksFinished {
                attempt,
                checks: Vec::new(),
                failure: Some(failure),
                changed: false,
            };
        }
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
        let before = self.output_stamps(work);
        let mut ran = self.checks(work, &work.spec.checks, attempt);
        let drift = (!ran.is_empty())
            .then(|| self.drift(work, "a check", "check_changed_result", Step::Verify))
            .flatten();
        let broken = ran
            .iter_mut()
            .find(|check| check.verdict == Verdict::Failed);
        let is_broken = broken.is_some();
        if let Some(broken) = broken {
            broken.message = self.lacking_note(work);
        }
        checks.extend(ran);
        let changed = drift.is_some();
        let failure = if is_broken {
            None
        } else {
            let who = ("a check", "check_changed_result", Step::Verify);
            let changed = self.outputs_changed(work, &before, who).or(drift);
            changed.or_else(|| self.checkout_changed(work))
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
                            sees_run: true,
                            ours: false,
                            tail_bytes: TAIL_BYTES_MAX,
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
                        sandbox_level: ran.level,
                        message: None,
                        output_tail: ran.tail,
                        ended: Some(ran.ended),
                    }
                }
            });
        }
        records
    }

    /// Makes the tree hold the recorded result where an engine was lost since: its last command may have been
    /// killed half-way.
    pub(super) fn stand_on_result(&self, work: &Work) -> Result<(), Failure> {
        let Some(kept) = work.kept_result() else {
            return Ok(());
        };
        if self.has_tree(work.spec.run) {
            return Ok(());
        }
        let tree = self.tree(work)?;
        let differs = lock(&tree).drift(&kept.base.start, &kept.change);
        match differs {
            Ok(paths) if paths.is_empty() => Ok(()),
            _ => self.make_again(work, &kept.base, &kept.change),
        }
    }

    /// What commands changed in a mutating run's tree after its result was recorded, as a failure.
    pub(super) fn drift(&self, work: &Work, who: &str, code: &str, step: Step) -> Option<Failure> {
        let kept = work.kept_result()?;
        let found = self.tree(work).and_then(|tree| {
            lock(&tree)
                .drift(&kept.base.start, &kept.change)
                .map_err(|error| tree_failure(step, work, &error))
        });
        match found {
            Ok(paths) if paths.is_empty() => None,
            Ok(paths) => {
                let what = quoted(&paths);
                let message = format!("{who} changed {what}, after the result was recorded");
                Some(Failure::new(step, code, message))
            }
            Err(mut failure) => {
                failure.step = step;
                Some(failure)
            }
        }
    }

    /// Returns a failure if commands changed a declared output after it was recorded. What git tracks is part of the
    /// result, see [`Performer::drift`]; all others would be published without a check. `before`: stamps of the outputs
    /// from before these commands, because large outputs have no digest.
    pub(super) fn outputs_changed(
        &self,
        work: &Work,
        before: &[Option<OutputStamp>],
        (who, code, step): (&str, &str, Step),
    ) -> Option<Failure> {
        let recorded = recorded_outputs(work)?;
        let sandboxed_dir = match self.sandboxed_dir(work) {
            Ok(directory) => directory,
            Err(failure) => return Some(Failure { step, ..failure }),
        };
        let recorded = work.spec.outputs.iter().zip(&recorded).enumerate();
        for (nth, (output, recorded)) in recorded {
            let Some(path) = &output.path else { continue };
            let now = sandboxed_dir.state(output, None);
            let is_same = (&now.digest, now.bytes) == (&recorded.digest, recorded.bytes);
            let is_touched =
                || sandboxed_dir.stamp(path).ok().flatten() != before.get(nth).copied().flatten();
            if !is_same || now.digest.is_none() && is_touched() {
                let message = format!("{who} changed the output `{path}`");
                return Some(Failure::new(step, code, message));
            }
        }
        None
    }

    /// Returns the stamps of all declared outputs.
    pub(super) fn output_stamps(&self, work: &Work) -> Vec<Option<OutputStamp>> {
        let found = self.sandboxed_dir(work);
        let found = found.and_then(|directory| super::prepare::stamps(work, &directory));
        found.unwrap_or_default()
    }
}

fn quoted(paths: &[RepoPath]) -> String {
    let named: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
    named.join(", ")
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
                sandbox_level: None,
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
        sandbox_level: None,
    }
}
