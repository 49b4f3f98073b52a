//! What actions do in the world: processes, files, git. One file per step of a run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use workerctl_landing::LandError;
use workerctl_trees::TreeError;

use super::definitions::Definitions;
use super::expiry::Expiry;
use super::inbox::Inbox;
use super::view::View;
use super::work::{Effects, NoticeResult, PushResult, Pushing, Telling, Work};
use crate::clock::Clock;
use crate::git;
use crate::machine::{Action, Event};
use crate::model::outcome::{Failure, Step};
use crate::model::{Diagnostic, RunId, Timestamp};
use crate::protocol::{ForgetRequest, Forgot, NotifyTest, Probe};
use crate::store::Store;
use crate::thread::metrics::RefusalLine;

#[cfg(feature = "llm")]
pub(super) mod agent;
mod causes;
mod command;
mod commit;
mod compact;
mod definitions;
mod execute;
mod forget;
mod held;
mod hooks;
mod land;
mod log;
mod masking;
pub(super) mod notes;
mod notify;
mod place;
mod prepare;
pub(super) mod push;
mod record;
mod restore;
mod result_notes;
mod save;
mod scratch;
mod script;
mod secret_command;
mod staged;
mod sweep;
mod tree;
mod turn;
mod unwritten;
mod validate;
mod verify;
mod wake;
mod walls;

pub(super) use log::Logs;
use notes::Notes;
use scratch::Scratch;

/// What effects need of the engine.
pub(super) struct EffectParts {
    /// Absolute path of the workspace.
    pub workspace: PathBuf,
    /// Absolute path of the state directory.
    pub state_dir: PathBuf,
    /// Absolute path of the engine's socket.
    pub socket: Option<PathBuf>,
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
    /// Where trees of runs lie, or why they can lie nowhere.
    pub trees: Result<PathBuf, String>,
    /// When trees go that nobody uses.
    pub tree_limits: workerctl_trees::SweepLimits,
    /// How long hidden refs of runs that did not succeed are kept, in milliseconds.
    pub keep_refs_ms: u64,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// By which time things expire.
    pub expiry: Arc<Expiry>,
    /// What readers see.
    pub view: Arc<View>,
    /// Where is recorded what an action learns that goes on.
    pub inbox: Arc<Inbox>,
    /// Which runs the engine knows.
    pub store: Arc<dyn Store>,
    /// Who is to be told how runs went.
    pub definitions: Arc<Definitions>,
}

/// Performs actions in the world.
pub(super) struct Performer {
    parts: EffectParts,
    logs: Logs,
    notes: Notes,
    scratch: Scratch,
    walls: walls::Walls,
    trees: Mutex<HashMap<RunId, tree::HeldTree>>,
    turns: Mutex<HashMap<turn::Branch, RunId>>,
    swept: Mutex<Option<Timestamp>>,
    overdue: Mutex<forget::Overdue>,
    /// Ended runs whose threads found no space.
    unwritten: Mutex<BTreeMap<RunId, Work>>,
    /// The client of language models, once one was needed.
    #[cfg(feature = "llm")]
    client: Mutex<Option<Arc<workerctl_agent::Client>>>,
    /// What starts runs for runs; set once the engine is put together.
    #[cfg(feature = "llm")]
    children: std::sync::OnceLock<super::children::Children>,
    /// Held by landings; what they leave is removed while none goes on.
    landing: RwLock<()>,
}

impl Performer {
    /// A performer without trees.
    pub(super) fn new(parts: EffectParts) -> Performer {
        Performer {
            logs: Logs::new(&parts),
            notes: Notes::new(&parts.state_dir),
            scratch: Scratch::new(&parts.state_dir),
            walls: walls::Walls::default(),
            parts,
            trees: Mutex::default(),
            turns: Mutex::default(),
            swept: Mutex::default(),
            overdue: Mutex::default(),
            unwritten: Mutex::default(),
            #[cfg(feature = "llm")]
            client: Mutex::default(),
            #[cfg(feature = "llm")]
            children: std::sync::OnceLock::new(),
            landing: RwLock::default(),
        }
    }
}

#[cfg(feature = "llm")]
impl Performer {
    /// Lets runs start runs.
    pub(super) fn with_children(&self, children: super::children::Children) {
        let _ = self.children.set(children);
    }

    fn children(&self) -> Result<&super::children::Children, String> {
        let children = self.children.get();
        children.ok_or_else(|| "the engine is only starting".to_owned())
    }
}

impl Performer {
    fn act(&self, work: &Work) -> Event {
        match &work.action {
            Action::Validate => self.validate(work),
            Action::Prepare => self.prepare(work),
            Action::Execute { attempt } => self.execute(work, *attempt),
            Action::Record { attempt } => self.record(work, *attempt),
            Action::Verify { attempt, .. } => self.verify(work, *attempt),
            Action::RunHook { index } => self.run_hook(work, *index),
            Action::Save { last } => self.save(work, *last),
            Action::PrepareCommit => self.prepare_commit(work),
            Action::PublishCommit { oid, parent, .. } => {
                self.publish_commit(work, oid, parent.as_deref())
            }
            Action::RunPostCommitHook { index } => self.run_post_commit_hook(work, *index),
            Action::Restore => self.restore(work),
            Action::Close => self.close(work),
        }
    }
}

impl Effects for Performer {
    fn perform(&self, work: &Work) -> Event {
        let masker = self.logs.events(work);
        let EffectParts {
            workspace,
            state_dir,
            trees,
            ..
        } = &self.parts;
        let trees = trees.as_ref().unwrap_or(state_dir);
        let event = causes::with_cause(self.act(work), &[state_dir, trees, workspace]);
        masking::of_event(event, &masker)
    }

    fn land_kept(&self, work: &Work, oid: &str, parent: Option<&str>) -> Result<Event, Failure> {
        self.land_once(work, oid, parent)
    }

    fn tell(&self, telling: &Telling) -> NoticeResult {
        self.run_notify(telling)
    }

    fn push(&self, pushing: &Pushing) -> PushResult {
        self.push_branch(pushing)
    }

    fn test_notify(&self, test: &NotifyTest) -> Result<Vec<Probe>, Diagnostic> {
        Performer::test_notify(self, test)
    }

    fn sync_files(&self) -> BTreeSet<RunId> {
        let waiting = self.write_waiting();
        self.logs.sync();
        self.walls.let_go();
        self.bound_landings();
        self.sweep();
        self.forget_piece();
        waiting
    }

    fn forget(&self, request: &ForgetRequest) -> Result<Forgot, Diagnostic> {
        self.forget_now(request)
    }

    fn let_go(&self) {
        self.walls.let_go();
    }

    fn refused(&self, line: &RefusalLine) {
        self.logs.refused(line);
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
    if let Some(found) = damage_behind(work, error) {
        return format!("{message}: {found}; {}", found.remedy);
    }
    match error.hint() {
        Some(hint) => format!("{message}; {hint}"),
        None => message,
    }
}

/// What is damaged of the repository itself, where a step failed with this error.
fn damage_behind(work: &Work, error: &git::GitError) -> Option<git::Damage> {
    let base = work.baseline().and_then(|found| found.tree?.from);
    git::damage_behind(Path::new(&work.spec.cwd), base.as_ref(), error)
}

fn tree_failure(step: Step, work: &Work, error: &TreeError) -> Failure {
    match error {
        TreeError::Git(error) => return git_failure(step, work, error),
        // It borrows the objects of the repository, so that this one may be what is damaged.
        TreeError::Damaged {
            torn: None, source, ..
        } if damage_behind(work, source).is_some() => {
            return git_failure(step, work, source);
        }
        _ => {}
    }
    let mut found = failure(step, error.code(), error);
    if let Some(hint) = error.hint() {
        found.message = format!("{}; {hint}", found.message);
    }
    found
}

fn land_failure(step: Step, work: &Work, error: &LandError) -> Failure {
    match error {
        LandError::Source(error) | LandError::Git(error) => git_failure(step, work, error),
        _ => failure(step, error.code(), error),
    }
}

/// The run's id as the git room spells it.
fn git_run(work: &Work) -> Result<git::RunId, Failure> {
    let parsed = work.spec.run.to_string().parse();
    parsed.map_err(|error: git::NameError| failure(Step::Prepare, "internal", &error))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
