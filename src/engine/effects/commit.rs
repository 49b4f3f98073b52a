//! Committing: one commit of ours on the base, with the same id however often it is made.

use std::path::Path;

use workerctl_landing::{Import, KeptAs, Unobserved, import};

use super::super::groundwork::{KeptResult, head_of};
use super::super::work::Work;
use super::place::Place;
use super::tree::tree_spec;
use super::{Performer, git_failure, git_run, land_failure, lock};
use crate::git::{self, Oid};
use crate::machine::Event;
use crate::model::Timestamp;
use crate::model::outcome::{Failure, Step};

impl Performer {
    pub(super) fn prepare_commit(&self, work: &Work) -> Event {
        match self.build_commit(work) {
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

    fn build_commit(&self, work: &Work) -> Result<Option<Event>, Failure> {
        let kept = work.kept_result().ok_or_else(unreadable)?;
        let Some(result) = &kept.kept else {
            return Ok(None);
        };
        let spec = tree_spec(work)?;
        let workdir = Path::new(&spec.workdir);
        let refused = |error: git::GitError| git_failure(Step::Commit, work, &error);
        if spec.in_place.is_some() {
            self.settle_in_place(work, &kept)?;
        }
        let source = match self.tree(work) {
            Ok(tree) => lock(&tree).git_dir(),
            // The repository has everything since the result was recorded.
            Err(_) => git::locate(workdir).map_err(refused)?.git_dir,
        };
        let oid = Self::own_commit(work, &kept, &source)?;
        let hide: Vec<&Oid> = kept.base.start.base.iter().chain([result]).collect();
        let run = git_run(work)?;
        let request = Import {
            repository: workdir,
            source: &source,
            run: &run,
            hide: &hide,
            commit: &oid,
            kept_as: KeptAs::Commit,
        };
        import(&request, &Unobserved).map_err(|error| land_failure(Step::Commit, work, &error))?;
        Ok(Some(Event::CommitPrepared {
            oid: oid.as_str().to_owned(),
            parent: kept.base.from.map(|from| from.as_str().to_owned()),
            reference: spec.target.clone(),
        }))
    }

    /// The commit on top of those that the skill made; theirs, where nothing is left to commit.
    fn own_commit(work: &Work, kept: &KeptResult, source: &Path) -> Result<Oid, Failure> {
        let refused = |error: git::GitError| git_failure(Step::Commit, work, &error);
        let parent = head_of(&kept.change).or(kept.base.start.base.as_ref());
        if let Some(parent) = head_of(&kept.change)
            && git::tree_at(source, parent).map_err(refused)? == kept.change.tree
        {
            return Ok(parent.clone());
        }
        let (at, offset_min) = recorded_time(work);
        let commit = git::NewCommit {
            git_dir: source,
            tree: &kept.change.tree,
            parents: &parent.into_iter().collect::<Vec<_>>(),
            author: &author(work, Step::Commit)?,
            time_s: at.millis().div_euclid(1_000),
            offset_min,
            message: &message(work),
        };
        git::write_commit(&commit).map_err(refused)
    }
}

pub(super) fn author(work: &Work, step: Step) -> Result<git::Author, Failure> {
    let configured = work.spec.commit_author.as_deref();
    git::author(Path::new(&work.spec.cwd), configured).map_err(|error| {
        let hint = error.hint().map(|hint| format!("; {hint}"));
        let message = format!("{error}{}", hint.unwrap_or_default());
        Failure::new(step, error.code(), message)
    })
}

/// The same however often the commit is made: when the result was recorded, in the run's zone.
pub(super) fn recorded_time(work: &Work) -> (Timestamp, i32) {
    let mut entries = work.entries.iter().rev();
    let recorded = entries.find(|entry| matches!(entry.event, Event::ResultRecorded { .. }));
    let at = recorded.map_or(work.spec.submitted_at, |entry| entry.at);
    let zone: chrono_tz::Tz = work.spec.zone.parse().unwrap_or(chrono_tz::Tz::UTC);
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
