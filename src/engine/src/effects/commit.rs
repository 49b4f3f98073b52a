//! Committing: one commit of ours on the base, made when the result is recorded, with the same id however often.

use std::path::Path;

use workerctl_trees::RunResult;

use super::super::baseline::{TreeBase, head_of};
use super::super::work::Work;
use super::Performer;
use super::place::Place;
use super::place::tree_spec;
use crate::git::{self, Oid};
use crate::machine::Event;
use crate::model::outcome::{Failure, Step};
use crate::model::spec::Gate;
use crate::model::{Timestamp, Zone};
use crate::thread::mask::Masker;

impl Performer {
    pub(super) fn prepare_commit(&self, work: &Work) -> Event {
        if let Err(failure) = self.refuse_unapproved(work, Step::Commit) {
            return Event::CommitFailed { failure };
        }
        let built = Self::build_commit(work);
        if work.run.is_unapproved(Gate::Landing)
            && let Ok(built) = &built
        {
            let commit = built.as_ref().and_then(commit_of);
            match self.hold(work, commit) {
                Ok(Some(held)) => return held,
                Ok(None) => {}
                Err(failure) => return Event::CommitFailed { failure },
            }
        }
        match built {
            Ok(None) => match self.publish_ignored(work) {
                Ok(()) => {
                    self.end_tree(work);
                    Event::NothingToCommit
                }
                Err(failure) => Event::CommitFailed { failure },
            },
            Ok(Some(event)) => event,
            Err(failure) => Event::CommitFailed { failure },
        }
    }

    /// The repository has the commit since the result was recorded; from now on it is the one that lands.
    fn build_commit(work: &Work) -> Result<Option<Event>, Failure> {
        let kept = work.kept_result().ok_or_else(unreadable)?;
        let Some(commit) = &kept.kept else {
            return Ok(None);
        };
        let spec = tree_spec(work)?;
        Ok(Some(Event::CommitPrepared {
            oid: commit.as_str().to_owned(),
            parent: kept.base.from.map(|from| from.as_str().to_owned()),
            reference: spec.target.clone(),
        }))
    }
}

fn commit_of(event: &Event) -> Option<String> {
    match event {
        Event::CommitPrepared { oid, .. } => Some(oid.clone()),
        _ => None,
    }
}

/// The commit on top of those that the skill made; theirs, where nothing is left to commit.
pub(super) fn own_commit(
    work: &Work,
    (git_dir, base): (&Path, &TreeBase),
    change: &RunResult,
    masker: &Masker,
    own: &dyn Fn(git::GitError) -> Failure,
) -> Result<Oid, Failure> {
    let head = head_of(change);
    if let Some(head) = head
        && git::tree_at(git_dir, head).map_err(own)? == change.tree
    {
        return Ok(head.clone());
    }
    let (at, offset_min) = recorded_time(work);
    let message = message(work);
    let commit = git::NewCommit {
        git_dir,
        tree: &change.tree,
        parents: &head
            .or(base.start.base.as_ref())
            .into_iter()
            .collect::<Vec<_>>(),
        identity: &identity(work, Step::Record)?,
        time_s: at.millis().div_euclid(1_000),
        offset_min,
        message: &masker.mask_text(&message),
    };
    git::write_commit(&commit).map_err(own)
}

pub(super) fn identity(work: &Work, step: Step) -> Result<git::Identity, Failure> {
    let configured = work.spec.commit_author.as_deref();
    git::identity(Path::new(&work.spec.cwd), configured).map_err(|error| {
        let hint = error.hint().map(|hint| format!("; {hint}"));
        let message = format!("{error}{}", hint.unwrap_or_default());
        Failure::new(step, error.code(), message)
    })
}

/// When what the run left was looked at, in the run's zone: the end of what it did last.
pub(super) fn recorded_time(work: &Work) -> (Timestamp, i32) {
    let mut entries = work.entries.iter().rev();
    let ended = entries.find(|entry| {
        matches!(
            entry.event,
            Event::ExecutionFinished { .. } | Event::TargetMoved { .. }
        )
    });
    let at = ended.map_or(work.spec.submitted_at, |entry| entry.at);
    let zone: Zone = work.spec.zone.parse().unwrap_or(Zone::UTC);
    (at, at.offset_minutes_in(zone))
}

fn message(work: &Work) -> String {
    let spec = &work.spec;
    let (run, thread) = (spec.run.to_string(), spec.thread.to_string());
    git::message_with_trailers(
        &Place::checkout(spec).fill(&spec.commit_message),
        &[
            ("Run-Id", &run),
            ("Worker", &spec.skill.worker),
            ("Skill", &spec.skill.skill),
            ("Thread", &thread),
        ],
    )
}

fn unreadable() -> Failure {
    let message = "the result of the run cannot be read";
    Failure::new(Step::Commit, "internal", message)
}
