//! Committing in two durable steps: objects first, then the branch by compare-and-swap.

use std::path::Path;

use super::super::work::Work;
use super::prepare::git_run;
use super::verify::attribution;
use super::{Performer, failure, git_failure};
use crate::git::{self, Found, IndexRefresh, Moved, Prepared};
use crate::machine::Event;
use crate::model::Timestamp;
use crate::model::outcome::{Failure, Step};

impl Performer {
    pub(super) fn prepare_commit(&self, work: &Work) -> Event {
        match self.build_commit(work) {
            Ok(Prepared::Nothing) => {
                settle_index(work);
                self.release_repository(work.spec.run);
                Event::NothingToCommit
            }
            Ok(Prepared::Commit(commit)) => Event::CommitPrepared {
                oid: commit.oid.as_str().to_owned(),
                parent: commit.parent.map(|parent| parent.as_str().to_owned()),
                reference: commit.refname,
            },
            Err(failure) => Event::CommitFailed { failure },
        }
    }

    fn build_commit(&self, work: &Work) -> Result<Prepared, Failure> {
        let unreadable = || {
            Failure::new(
                Step::Commit,
                "internal",
                "baseline or result of the run cannot be read",
            )
        };
        let baseline = work
            .groundwork()
            .and_then(|g| g.repository)
            .ok_or_else(unreadable)?;
        let result = work
            .attempt_tree()
            .and_then(|t| t.repository)
            .ok_or_else(unreadable)?;
        self.hold_repository(work)
            .map_err(|error| git_failure(Step::Commit, work, &error))?;
        let attribution = attribution(work, &baseline, &result)?;
        if attribution.commit_paths.is_empty() {
            return Ok(Prepared::Nothing);
        }
        let cwd = Path::new(&work.spec.cwd);
        let author = author(work)?;
        let (at, offset_min) = recorded_time(work);
        let request = git::CommitRequest {
            refname: baseline.head.refname(),
            baseline: &baseline,
            result: &result,
            paths: &attribution.commit_paths,
            message: &message(work),
            author: &author,
            time_s: at.millis().div_euclid(1_000),
            offset_min,
        };
        let time = self.time_to_commit(work);
        let is_over = || time.is_over();
        let deadline = git::Deadline::when(&is_over);
        git::prepare_commit(cwd, &request, deadline).map_err(|error| match &error {
            git::PrepareError::Git(error) => time.failure(Step::Commit, error),
            _ => failure(Step::Commit, error.code(), &error),
        })
    }

    pub(super) fn publish_commit(
        &self,
        work: &Work,
        oid: &str,
        parent: Option<&str>,
        reference: &str,
    ) -> Event {
        match self.move_branch(work, oid, parent, reference) {
            Ok(event) => {
                if matches!(event, Event::Committed { .. }) {
                    settle_index(work);
                    drop_refs(work);
                    self.release_repository(work.spec.run);
                }
                event
            }
            Err(failure) => Event::CommitFailed { failure },
        }
    }

    fn move_branch(
        &self,
        work: &Work,
        oid: &str,
        parent: Option<&str>,
        reference: &str,
    ) -> Result<Event, Failure> {
        let refused = |error: git::GitError| git_failure(Step::Commit, work, &error);
        let malformed = |error: git::NameError| failure(Step::Commit, "internal", &error);
        self.hold_repository(work).map_err(refused)?;
        let cwd = Path::new(&work.spec.cwd);
        let run = git_run(work)?;
        let commit = git::PreparedCommit {
            refname: reference.to_owned(),
            oid: oid.parse().map_err(malformed)?,
            parent: parent.map(str::parse).transpose().map_err(malformed)?,
        };
        let found = git::find_commit(
            cwd,
            reference,
            Some(&commit.oid),
            &run,
            commit.parent.as_ref(),
        );
        match found.map_err(refused)? {
            Found::Done { oid } => return Ok(found_done(cwd, &commit, &oid)),
            Found::Absent { .. } => return Ok(Event::CommitOvertaken),
            Found::BranchGone => return Err(branch_gone(reference)),
            Found::AtParent => {}
        }
        // The last moment at which it can be given up: from here on the branch may have moved.
        let time = self.time_to_commit(work);
        if time.is_over() {
            return Err(time.exceeded(Step::Commit));
        }
        let (at, offset) = recorded_time(work);
        let author = author(work)?;
        let note = format!("workerctl: {} {}", work.spec.skill, work.spec.run);
        let seconds = at.millis().div_euclid(1_000);
        let moved = git::move_ref(cwd, &commit, &author, seconds, offset, &note);
        let moved = match moved {
            Ok(moved) => moved,
            // Whatever failed may have failed after the branch had moved: only then nothing is put back.
            Err(error) => {
                let found = git::find_commit(
                    cwd,
                    reference,
                    Some(&commit.oid),
                    &run,
                    commit.parent.as_ref(),
                );
                return match found {
                    Ok(Found::Done { oid }) => Ok(found_done(cwd, &commit, &oid)),
                    _ => Err(refused(error)),
                };
            }
        };
        match moved {
            Moved::Done { index } | Moved::AlreadyThere { index } => {
                Ok(committed(&commit.oid, Some(&index)))
            }
            Moved::TipMoved { .. } => Ok(Event::CommitOvertaken),
            Moved::BranchGone => Err(branch_gone(reference)),
            Moved::BranchSwitched => Err(Failure::new(
                Step::Commit,
                "branch_switched",
                "another branch was checked out while the run was under way",
            )),
        }
    }
}

fn author(work: &Work) -> Result<git::Author, Failure> {
    git::author(
        Path::new(&work.spec.cwd),
        work.spec.commit_author.as_deref(),
    )
    .map_err(|error| {
        let hint = error
            .hint()
            .map(|hint| format!("; {hint}"))
            .unwrap_or_default();
        Failure::new(Step::Commit, error.code(), format!("{error}{hint}"))
    })
}

/// What the skill staged is staged no more than its commit says.
fn settle_index(work: &Work) {
    let baseline = work.groundwork().and_then(|g| g.repository);
    let result = work.attempt_tree().and_then(|t| t.repository);
    let (Some(baseline), Some(result)) = (baseline, result) else {
        return;
    };
    match git::settle_index(Path::new(&work.spec.cwd), &baseline, &result) {
        Ok(IndexRefresh::Skipped { why }) => {
            tracing::warn!(run = %work.spec.run, why, "what the skill staged stays staged");
        }
        Ok(IndexRefresh::Done { .. } | IndexRefresh::NotOurs) => {}
        Err(error) => {
            tracing::warn!(run = %work.spec.run, %error, "what the skill staged stays staged");
        }
    }
}

/// Hidden refs of a run go with its success.
fn drop_refs(work: &Work) {
    let Ok(run) = git_run(work) else { return };
    if let Err(error) = git::drop_refs(Path::new(&work.spec.cwd), &run) {
        tracing::warn!(run = %work.spec.run, %error, "hidden refs could not be dropped");
    }
}

/// The same at every rebuild: when the checks ended, in the run's zone.
fn recorded_time(work: &Work) -> (Timestamp, i32) {
    let at = work
        .entries
        .iter()
        .rev()
        .find(|entry| matches!(entry.event, Event::ResultRecorded { .. }))
        .map_or(work.spec.submitted_at, |entry| entry.at);
    let zone: chrono_tz::Tz = work.spec.zone.parse().unwrap_or(chrono_tz::Tz::UTC);
    (at, at.offset_minutes_in(zone))
}

fn message(work: &Work) -> String {
    let spec = &work.spec;
    let (run, thread) = (spec.run.to_string(), spec.thread.to_string());
    git::message_with_trailers(
        &spec.commit_message,
        &[
            ("Run-Id", &run),
            ("Worker", &spec.skill.worker),
            ("Skill", &spec.skill.skill),
            ("Thread", &thread),
        ],
    )
}

/// The branch holds the commit already; all that is left is the index, which may fail without harm.
fn found_done(cwd: &Path, commit: &git::PreparedCommit, oid: &git::Oid) -> Event {
    match git::refresh_index(cwd, commit) {
        Ok(index) => committed(oid, Some(&index)),
        Err(_) => committed(oid, None),
    }
}

fn committed(oid: &git::Oid, index: Option<&IndexRefresh>) -> Event {
    let skipped = matches!(index, None | Some(IndexRefresh::Skipped { .. }));
    let warning = "the index could not be refreshed: until `git reset` runs, `git status` shows the commit reversed";
    Event::Committed {
        oid: oid.as_str().to_owned(),
        warning: skipped.then(|| warning.to_owned()),
    }
}

fn branch_gone(reference: &str) -> Failure {
    Failure::new(
        Step::Commit,
        "branch_gone",
        format!("the branch `{reference}` is gone"),
    )
}
