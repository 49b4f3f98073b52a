//! Landings that an earlier engine did not finish: completed or taken back, so that git works again in the
//! checkouts.
//!
//! A landing is recorded in a file, because it has to be found without the store. The file alone proves nothing: it
//! is acted on only if the store knows the run and its commit.

use std::path::{Path, PathBuf};

use workerctl_landing::{
    Expected, FileJournal, LandError, Plan, PreparedCommit, Record, Recovered, Unobserved, clear,
    held_locks, late_edits, recover,
};

use crate::git::{self, GitError};
use crate::machine::Event;
use crate::model::RunId;
use crate::store::Store;

/// Directory of the records of landings in the state directory, one file for each run.
pub(super) const DIRECTORY: &str = "landings";

/// Extension of a record that differs from what the store knows. It is removed with old records.
const REFUSED: &str = "refused";

/// A landing that was begun and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftLanding {
    /// The branch, as a full name.
    pub branch: String,
    /// The run.
    pub run: String,
    /// Git's lock files that it holds.
    pub locks: Vec<PathBuf>,
}

/// Returns the landings in the repository of the workspace that were begun and have not ended, except for those that
/// another process is working on.
pub fn left_landings(workspace: &Path, state_dir: &Path) -> Vec<LeftLanding> {
    let open = open_landings(state_dir).into_iter();
    let left = open.filter(|landing| {
        let run = landing.run.to_string().parse();
        let is_here = run.is_ok_and(|run| landing.plan.verify_place(workspace, &run).is_ok());
        is_here && git::RepositoryLease::of_repository(&landing.plan.common_dir, "looking").is_ok()
    });
    let left = left.map(|landing| LeftLanding {
        locks: held_locks(&landing.plan),
        branch: landing.plan.target,
        run: landing.run.to_string(),
    });
    left.collect()
}

/// A recorded landing that has not ended.
struct OpenLanding {
    run: RunId,
    path: PathBuf,
    plan: Plan,
}

fn open_landings(state_dir: &Path) -> Vec<OpenLanding> {
    let entries = std::fs::read_dir(state_dir.join(DIRECTORY));
    let paths = entries.into_iter().flatten().flatten().map(|e| e.path());
    let open = paths.filter_map(|path| {
        let run = run_of(&path)?;
        match FileJournal::new(&path).open_plan() {
            Ok(plan) => plan.map(|plan| OpenLanding { run, path, plan }),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the record of a landing cannot be read");
                None
            }
        }
    });
    open.collect()
}

/// The run that a record is named after; `None` for other files.
pub(super) fn run_of(path: &Path) -> Option<RunId> {
    path.file_name()?.to_str()?.parse().ok()
}

/// What the store knows of landings.
pub(super) struct KnownLandings<'a> {
    /// The store, which has the commits that runs prepared.
    pub store: &'a dyn Store,
    /// Absolute path of the workspace.
    pub workspace: &'a Path,
    /// Absolute path of the state directory.
    pub state_dir: &'a Path,
}

impl KnownLandings<'_> {
    /// Finishes each landing that was left. One that cannot be finished now is tried again by its run.
    pub(super) fn recover(&self) {
        for landing in open_landings(self.state_dir) {
            let OpenLanding { run, path, plan } = landing;
            // First, because taking the lock writes into the repository that the record names.
            let recovered = self.verify(run, &plan).and_then(|()| {
                let _lease = git::RepositoryLease::of_repository(&plan.common_dir, "recovering")?;
                Ok(recover(&plan, &mut FileJournal::new(&path), &Unobserved)?)
            });
            report(&plan, &path, recovered);
        }
    }

    /// Checks a recorded landing against what the store knows of the run.
    fn verify(&self, run: RunId, plan: &Plan) -> Result<(), Box<dyn std::error::Error>> {
        let entries = self.store.journal(run)?;
        let events = entries.iter().map(|entry| &entry.event);
        Ok(verify(plan, run, events, self.workspace)?)
    }

    /// Logs late edits of a landing that has ended, and removes its staged files and its record.
    pub(super) fn remove(&self, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
        let Some(run) = run_of(path) else {
            return Ok(std::fs::remove_file(path)?);
        };
        let journal = FileJournal::new(path);
        let records = journal.records()?;
        if journal.open_plan()?.is_some() {
            return Ok(());
        }
        for record in records {
            if let Record::LandingStarted { plan } = record {
                self.clear(run, &plan)?;
            }
        }
        Ok(std::fs::remove_file(path)?)
    }

    fn clear(&self, run: RunId, plan: &Plan) -> Result<(), Box<dyn std::error::Error>> {
        let place = plan.verify_place(self.workspace, &run.to_string().parse()?);
        if !plan.staging.is_dir() {
            return Ok(());
        }
        if let Err(error) = place {
            let staging = plan.staging.display();
            tracing::warn!(%run, %staging, %error, "the directory is not removed");
            return Ok(());
        }
        // The run may be forgotten by now: then nothing is known to compare the files with.
        if self.verify(run, plan).is_ok() {
            for kept in late_edits(plan)? {
                tracing::warn!(path = %kept.path, "was written to while a commit replaced it; the old version is removed now");
            }
        }
        Ok(clear(plan)?)
    }
}

/// Checks a recorded landing against the journal of its run.
///
/// # Errors
/// It differs, or the repository cannot be read.
pub(super) fn verify<'a>(
    plan: &Plan,
    run: RunId,
    events: impl Iterator<Item = &'a Event>,
    workspace: &Path,
) -> Result<(), LandError> {
    let commits = events.filter_map(prepared);
    let run = run.to_string().parse().map_err(GitError::from)?;
    plan.verify(&Expected {
        repository: workspace,
        run: &run,
        commits: &commits.collect::<Vec<_>>(),
    })
}

fn prepared(event: &Event) -> Option<PreparedCommit> {
    let Event::CommitPrepared {
        oid,
        parent,
        reference,
    } = event
    else {
        return None;
    };
    Some(PreparedCommit {
        target: reference.clone(),
        from: parent.as_ref().map(|oid| oid.parse()).transpose().ok()?,
        to: oid.parse().ok()?,
    })
}

/// Renames a record that differs from what is known of its run, so that nothing acts on it.
pub(super) fn put_aside(path: &Path, error: &LandError) {
    let aside = path.with_extension(REFUSED);
    let shown = path.display();
    match std::fs::rename(path, &aside) {
        Ok(()) => {
            tracing::error!(path = %aside.display(), %error, "the record of a landing was ignored and renamed");
        }
        Err(why) => {
            tracing::error!(path = %shown, %error, %why, "the record of a landing was ignored");
        }
    }
}

fn report(plan: &Plan, path: &Path, recovered: Result<Recovered, Box<dyn std::error::Error>>) {
    let branch = &plan.target;
    match recovered {
        Ok(Recovered::Landed { commit, .. }) => {
            tracing::info!(%commit, branch, "completed a landing of a crashed engine");
        }
        Ok(Recovered::TakenBack { obstacle, .. }) => {
            tracing::info!(branch, %obstacle, "rolled back a landing of a crashed engine");
        }
        Ok(Recovered::Blocked { obstacle }) => {
            tracing::warn!(branch, %obstacle, "a landing of a crashed engine is blocked");
        }
        Err(error) => match error.downcast_ref() {
            Some(differs) if is_different(differs) => put_aside(path, differs),
            _ if is_held(error.as_ref()) => {}
            _ => {
                tracing::warn!(branch, %error, "a landing of a crashed engine cannot be completed or rolled back yet");
            }
        },
    }
}

/// Returns true if a record differs from what is known of its run.
pub(super) fn is_different(error: &LandError) -> bool {
    error.code() == "record_differs"
}

/// Returns true if another process holds the repository's lock; it finishes the landing itself.
fn is_held(error: &(dyn std::error::Error + 'static)) -> bool {
    let error = error.downcast_ref::<GitError>();
    matches!(error, Some(GitError::Locked { .. }))
}
