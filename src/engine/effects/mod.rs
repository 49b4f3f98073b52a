//! What actions do in the world: processes, files, git. One file per step of a run.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::outputs::Beneath;
use super::view::View;
use super::work::{Alarm, Effects, Work};
use crate::clock::Clock;
use crate::git;
use crate::machine::{Action, Event};
use crate::model::outcome::{Failure, Step};
use crate::model::schedule::Told;
use crate::model::{RunId, Timestamp};
use crate::store::Store;

mod alarm;
mod command;
mod commit;
mod execute;
mod hooks;
mod log;
mod neighbours;
pub(super) mod notes;
mod prepare;
mod record;
mod restore;
mod save;
mod scratch;
mod step_limit;
mod sweep;
mod validate;
mod verify;

pub(super) use execute::destinations;
pub(super) use log::Logs;
use notes::Notes;
use scratch::Scratch;
pub use step_limit::StepLimits;

/// What effects need of the engine.
pub(super) struct EffectParts {
    /// Absolute path of the workspace.
    pub workspace: PathBuf,
    /// Absolute path of the state directory.
    pub state_dir: PathBuf,
    /// The engine's environment, from which commands' base environment is taken.
    pub environment: BTreeMap<String, String>,
    /// Name of the engine in leases.
    pub owner: String,
    /// Time between TERM and KILL in milliseconds.
    pub grace_ms: u64,
    /// Bytes of one command's output that are kept.
    pub output_bytes_max: u64,
    /// Directory of metrics relative to the workspace.
    pub metrics_dir: String,
    /// How long steps may take that run no command.
    pub step_limits: StepLimits,
    /// How long hidden refs of runs that did not succeed are kept, in milliseconds.
    pub keep_refs_ms: u64,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What readers see.
    pub view: Arc<View>,
    /// Which runs the engine knows.
    pub store: Arc<dyn Store>,
}

/// Performs actions in the world.
pub(super) struct Performer {
    parts: EffectParts,
    logs: Logs,
    notes: Notes,
    scratch: Scratch,
    leases: Mutex<HashMap<RunId, git::RepositoryLease>>,
    foreign: Mutex<HashMap<RunId, Vec<String>>>,
    swept: Mutex<Option<Timestamp>>,
}

impl Performer {
    /// A performer without leases.
    pub(super) fn new(parts: EffectParts) -> Performer {
        Performer {
            logs: Logs::new(&parts),
            notes: Notes::new(&parts.state_dir),
            scratch: Scratch::new(&parts.state_dir),
            parts,
            leases: Mutex::default(),
            foreign: Mutex::default(),
            swept: Mutex::default(),
        }
    }

    fn beneath(&self) -> Result<Beneath, super::outputs::OutputError> {
        Beneath::open(&self.parts.workspace)
    }

    /// Takes the lease on the run's repository unless this run holds it already.
    fn hold_repository(&self, work: &Work) -> Result<(), git::GitError> {
        let mut leases = lock(&self.leases);
        if leases.contains_key(&work.spec.run) {
            return Ok(());
        }
        let facts = git::locate(Path::new(&work.spec.cwd))?;
        let owner = format!("{} run {}", self.parts.owner, work.spec.run);
        leases.insert(
            work.spec.run,
            git::RepositoryLease::acquire(&facts, &owner)?,
        );
        Ok(())
    }

    fn release_repository(&self, run: RunId) {
        lock(&self.leases).remove(&run);
        lock(&self.foreign).remove(&run);
    }

    /// From now on the destinations of every other run are nobody's change for this one.
    fn watch_foreign(&self, run: RunId) {
        let live = self.parts.view.runs();
        let others = live.iter().filter(|shown| shown.spec.run != run);
        let destinations = others.flat_map(|shown| destinations(&shown.spec)).collect();
        self.add_foreign(run, destinations);
    }

    /// These paths are nobody's change for this run.
    pub(super) fn add_foreign(&self, run: RunId, destinations: Vec<String>) {
        lock(&self.foreign)
            .entry(run)
            .or_default()
            .extend(destinations);
    }

    /// Tells every mutating run under way about the destinations of one that starts.
    fn announce_destinations(&self, work: &Work) {
        let destinations = destinations(&work.spec);
        if destinations.is_empty() {
            return;
        }
        for (run, foreign) in lock(&self.foreign).iter_mut() {
            if *run != work.spec.run {
                foreign.extend(destinations.iter().cloned());
            }
        }
    }
}

impl Effects for Performer {
    fn perform(&self, work: &Work) -> Event {
        self.logs.events(work);
        match &work.action {
            Action::Validate => self.validate(work),
            Action::Prepare => self.prepare(work),
            Action::Execute { attempt } => self.execute(work, *attempt),
            Action::Record { attempt } => self.record(work, *attempt),
            Action::Verify { attempt, .. } => self.verify(work, *attempt),
            Action::RunHook { index } => self.run_hook(work, *index),
            Action::Save { last } => self.save(work, *last),
            Action::PrepareCommit => self.prepare_commit(work),
            Action::PublishCommit {
                oid,
                parent,
                reference,
            } => self.publish_commit(work, oid, parent.as_deref(), reference),
            Action::RunPostCommitHook { index } => self.run_post_commit_hook(work, *index),
            Action::Restore => self.restore(work),
            Action::Close => self.close(work),
        }
    }

    fn tell_missed(&self, alarm: &Alarm) -> Option<Told> {
        self.run_on_missed(alarm)
    }

    fn sync_files(&self) {
        self.logs.sync();
        self.sweep_refs();
    }

    fn flush_log(&self, run: RunId) {
        self.logs.flush(run);
    }
}

fn failure(step: Step, code: &str, error: &dyn std::error::Error) -> Failure {
    Failure::new(step, code, crate::model::diagnostic::chain(error))
}

fn git_failure(step: Step, work: &Work, error: &git::GitError) -> Failure {
    Failure::new(step, error.code(), git_message(work, error))
}

/// What went wrong and what helps; of a damaged repository, which file it is.
fn git_message(work: &Work, error: &git::GitError) -> String {
    let message = crate::model::diagnostic::chain(error);
    if let Some(found) = git::damage_behind(Path::new(&work.spec.cwd), error) {
        return format!("{message}: {found}; {}", found.remedy);
    }
    match error.hint() {
        Some(hint) => format!("{message}; {hint}"),
        None => message,
    }
}

/// Why nothing can be said of the run's repository any more: a command removed it. Git would then take
/// another one for it, further up.
fn repository_gone(step: Step, work: &Work) -> Option<Failure> {
    let expected = work.spec.repository.as_ref()?;
    let found = git::locate(Path::new(&work.spec.cwd));
    let is_gone = match &found {
        Ok(facts) => facts.common_dir.to_string_lossy() != expected.as_str(),
        Err(error) => matches!(error, git::GitError::NotARepository(_)),
    };
    is_gone.then(|| {
        let message = format!(
            "the repository `{expected}` is gone or damaged since the run began: what the run changed cannot \
             be told, and its files are left as they are; get the repository back from a clone or a backup"
        );
        Failure::new(step, "repository_gone", message)
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
