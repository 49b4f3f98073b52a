//! Intake, core loop, executor, recovery, hooks: the engine behind [`Control`].

use workerctl_catalog as catalog;
use workerctl_clock as clock;
use workerctl_core::{
    inputs, machine, model, protocol, queue, retention, schedule, template, thread, upcoming,
};
use workerctl_git as git;
use workerctl_process as process;
use workerctl_sandbox as sandbox;
use workerctl_store as store;

mod approval;
mod at_end;
mod baseline;
mod broken_definitions;
mod calendar;
mod changes;
#[cfg(feature = "llm")]
mod children;
mod config_acceptance;
mod control;
mod core;
mod decisions;
pub mod definitions;
mod due;
mod effects;
mod expiry;
mod following;
mod freshness;
mod given_up;
pub mod hidden;
mod hold;
mod host;
mod in_force;
mod inbox;
mod kept;
mod key_files;
mod landings;
mod listing;
mod live;
mod lookup;
mod manual_trigger;
mod model_keys;
mod model_test;
mod names;
mod output_files;
mod outputs;
mod patches;
mod path_programs;
mod pool;
mod prepares;
mod probe;
mod programs;
mod reading;
mod recovery;
mod refusals;
mod relocation;
mod rendering;
mod request;
mod restricted;
mod retries;
mod run_factory;
mod scheduler;
mod schedules;
mod secrets;
mod shared_destinations;
mod skill_pages;
mod slot_pages;
mod spending;
mod standing;
mod stats;
mod stored_schedules;
mod submission;
mod syntax;
mod tool_rules;
mod trees;
mod trigger_probe;
mod unusable;
mod view;
mod walls;
mod web_sessions;
mod work;

use std::collections::BTreeMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

pub use host::Host;

use crate::catalog::Catalog;
use crate::clock::{Clock, SystemClock};
use crate::machine::Admission;
use crate::model::{Config, Diagnostic, Kind, RunId};
use crate::protocol::Control;
use crate::store::{OpenOptions, SledStore, Store, StoreError, identity};

use at_end::AtEnd;
use control::EngineControl;
use core::{Board, Core, CoreParts, FailedPushes};
use definitions::Definitions;
use effects::{EffectParts, Performer, notes};
use expiry::Expiry;
use hold::Hold;
use inbox::Inbox;
use prepares::Prepares;
use recovery::{LeftBehind, Recovery};
use run_factory::RunFactory;
use view::View;

pub use hold::{check_store, init_store, refuse_unfit};
pub use landings::{LeftLanding, left_landings};
pub use listing::expect_known_outcome;
pub use programs::{InstalledProgram, installed_programs};
pub use request::ENDED_OPEN;
pub use submission::agent::check_tools;
pub use trigger_probe::{Hints, Watched};
pub use unusable::{unless_it_passes, unusable};
pub use walls::links::grant_through_link;
pub use web_sessions::WebSessionStore;

/// Code of the refusal where another engine has the workspace or the state directory.
pub const ENGINE_RUNNING: &str = "engine_running";

/// What an engine is started with.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Absolute path of the workspace.
    pub workspace: PathBuf,
    /// Absolute path of the state directory.
    pub state_dir: PathBuf,
    /// Absolute path of the socket, recorded in the locks so that others find the engine.
    pub socket: Option<PathBuf>,
    /// Who hosts it.
    pub host: Host,
    /// The environment that commands' base environment is taken from.
    pub environment: BTreeMap<String, String>,
}

/// Signs of life of the core loop, for a watchdog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// Milliseconds since the loop last turned.
    pub loop_lag_ms: u64,
    /// Milliseconds since the commit that is under way began; `None` when none is.
    pub committing_for_ms: Option<u64>,
}

/// A running engine. Its locks go with it.
pub struct Engine {
    control: Arc<EngineControl>,
    thread: JoinHandle<Result<(), Diagnostic>>,
    hold: Hold,
}

impl Engine {
    /// Takes the locks, opens the store, recovers, starts the core loop.
    pub fn start(options: EngineOptions) -> Result<Engine, Diagnostic> {
        Engine::start_by(options, Arc::new(SystemClock::default()))
    }

    /// The same by another clock than the machine's.
    pub fn start_by(options: EngineOptions, clock: Arc<dyn Clock>) -> Result<Engine, Diagnostic> {
        let workspace = std::fs::canonicalize(&options.workspace).map_err(|error| {
            let shown = options.workspace.display();
            Diagnostic::new(Kind::NotFound, "workspace", format!("`{shown}`: {error}"))
        })?;
        hold::check_store(&workspace, &options.state_dir)?;
        let hold = Hold::take(&workspace, &options)?;
        keep_out_of_git(&workspace, &options.state_dir);
        make_directories(&options.state_dir)?;
        let reading = {
            let workspace = workspace.clone();
            let state_dir = options.state_dir.clone();
            let environment = options.environment.clone();
            std::thread::spawn(move || Definitions::load(&workspace, &state_dir, &environment))
        };
        let store: Arc<dyn Store> = Arc::new(open_store(&options.state_dir)?);
        identity::settle(&workspace, &options.state_dir)?;
        let definitions = Arc::new(reading.join().map_err(|_| {
            Diagnostic::new(
                Kind::Internal,
                "internal",
                "reading the definitions panicked",
            )
        })?);
        let parts = Parts {
            workspace,
            options,
            store,
            definitions,
            clock,
        };
        parts.start(hold)
    }

    /// The interface to it.
    pub fn control(&self) -> Arc<dyn Control> {
        Arc::clone(&self.control) as Arc<dyn Control>
    }

    /// Where sessions of the web page are kept.
    pub fn web_sessions(&self) -> Arc<dyn WebSessionStore> {
        Arc::clone(&self.control) as Arc<dyn WebSessionStore>
    }

    /// Its definitions.
    pub fn definitions(&self) -> Arc<Definitions> {
        Arc::clone(&self.control.factory.definitions)
    }

    /// Reads definitions again if any of them changed, or the rules of a zone; answers whether any did.
    pub fn reload_if_stale(&self) -> Result<bool, Diagnostic> {
        self.control.reload_if_stale()
    }

    /// Where changes hint that a schedule may be due.
    pub fn watched(&self) -> Vec<Watched> {
        trigger_probe::watched(&self.control.factory)
    }

    /// Takes hints that what a schedule waits for may have changed: it is looked at then.
    pub fn hints(&self) -> Hints {
        let control = Arc::clone(&self.control);
        Arc::new(move |schedule| control.hint(Some(schedule)))
    }

    /// Has everything looked at that schedules wait for, whether anything hints at a change or not.
    ///
    /// # Errors
    /// The engine has ended.
    pub fn look_at_all(&self) -> Result<(), Diagnostic> {
        let catalog = self.control.factory.definitions.current();
        if catalog.schedules.iter().any(|one| one.trigger.is_seen()) {
            self.control.hint(None)?;
        }
        Ok(())
    }

    /// Makes the file of the workspace's lock anew where somebody removed it; answers whether that was so.
    ///
    /// # Errors
    /// It cannot be made, or another engine has taken the workspace, or that is no longer there.
    pub fn keep_hold(&self) -> Result<bool, Diagnostic> {
        self.hold.keep()
    }

    /// Signs of life of the core loop.
    pub fn heartbeat(&self) -> Heartbeat {
        let now = self.control.clock.monotonic_ms();
        let view = &self.control.view;
        Heartbeat {
            loop_lag_ms: now.saturating_sub(view.turned_at_ms()),
            committing_for_ms: view
                .committing_since()
                .map(|since| now.saturating_sub(since)),
        }
    }

    /// Whether the core loop has ended: drained, or its store broken.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Does this, briefly, once the core loop ends; at once, if it has already.
    pub fn on_end(&self, told: Box<dyn FnOnce() + Send>) {
        self.control.view.on_end(told);
    }

    /// Does this, briefly, whenever something else is due next or a schedule is overdue or no longer.
    pub fn on_agenda(&self, told: Box<dyn Fn() + Send + Sync>) {
        self.control.view.on_agenda(told);
    }

    /// Waits until the engine has ended: drained, or its store broken.
    pub fn join(self) -> Result<(), Diagnostic> {
        match self.thread.join() {
            Ok(result) => result,
            Err(_) => Err(at_end::panicked()),
        }
    }
}

struct Parts {
    workspace: PathBuf,
    options: EngineOptions,
    store: Arc<dyn Store>,
    definitions: Arc<Definitions>,
    clock: Arc<dyn Clock>,
}

impl Parts {
    fn performer(
        &self,
        config: &Config,
        owner: &str,
        expiry: &Arc<Expiry>,
        (view, inbox): (&Arc<View>, &Arc<Inbox>),
    ) -> Performer {
        Performer::new(EffectParts {
            workspace: self.workspace.clone(),
            state_dir: self.options.state_dir.clone(),
            socket: self.options.socket.clone(),
            environment: self.options.environment.clone(),
            owner: owner.to_owned(),
            grace_ms: config.grace_ms,
            output_bytes_max: config.output_bytes_max,
            metrics_dir: config.metrics_dir.clone(),
            trees: self.trees(),
            tree_limits: trees::limits(config),
            keep_refs_ms: config.keep_refs_ms,
            clock: Arc::clone(&self.clock),
            expiry: Arc::clone(expiry),
            view: Arc::clone(view),
            inbox: Arc::clone(inbox),
            store: Arc::clone(&self.store),
            definitions: Arc::clone(&self.definitions),
        })
    }

    fn start(self, hold: Hold) -> Result<Engine, Diagnostic> {
        let config = self.definitions.current().config.clone();
        let broken = |error: StoreError| unusable::of_store(&error);
        let fence = self.store.next_fence().map_err(broken)?;
        let newest = self.store.newest().map_err(broken)?;
        let (view, inbox) = (Arc::new(View::default()), Arc::new(Inbox::default()));
        let owner = format!("engine {fence} pid {}", std::process::id());
        let (dir, at) = (&self.options.state_dir, newest.map(RunId::timestamp));
        let expiry = Arc::new(Expiry::open(dir, Arc::clone(&self.clock), at));
        let performer = Arc::new(self.performer(&config, &owner, &expiry, (&view, &inbox)));
        let effects = Arc::clone(&performer) as Arc<dyn work::Effects>;
        let factory = self.factory(&view, newest);
        #[cfg(feature = "llm")]
        performer.with_children(children::Children {
            factory: Arc::clone(&factory),
            view: Arc::clone(&view),
            inbox: Arc::clone(&inbox),
        });
        let (catalog, now) = (self.definitions.current(), self.clock.now());
        let mut core = Core::new(CoreParts {
            store: Arc::clone(&self.store),
            clock: Arc::clone(&self.clock),
            expiry,
            view: Arc::clone(&view),
            inbox: Arc::clone(&inbox),
            effects: Arc::clone(&effects),
            prepares: Arc::clone(&factory) as Arc<dyn Prepares>,
            schedules: match self.options.host {
                Host::Daemon => stored_schedules::schedules(
                    self.store.as_ref(),
                    &self.options.state_dir,
                    now,
                    catalog.fired(),
                )
                .map_err(broken)?,
                Host::InProcess => stored_schedules::StoredSchedules::default(),
            },
            board: Board::stored(self.store.as_ref(), now).map_err(broken)?,
            pushes: FailedPushes::stored(self.store.as_ref(), now).map_err(broken)?,
            admission: Admission { owner, fence },
            parallel_max: parallel_max(&config),
            waiting_max: config.queue_max,
            starts_queued: self.options.host == Host::Daemon,
            drain_grace_ms: config.drain_grace_ms,
            slots_kept_ms: config.retention.slots_ms,
        });
        self.recover(&mut core, &catalog, config.grace_ms)?;
        let at_end = AtEnd::of(&inbox, &view);
        let control = Arc::new(EngineControl {
            inbox,
            view,
            store: Arc::clone(&self.store),
            clock: Arc::clone(&self.clock),
            factory,
            host: self.options.host,
            started_ms: self.clock.monotonic_ms(),
            effects,
            trees: self.trees(),
            settling: Mutex::default(),
            rereading: Mutex::default(),
            due: due::DueCache::default(),
        });
        let thread = std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || at_end.tell(core.run()))
            .map_err(|error| Diagnostic::new(Kind::Internal, "thread", error.to_string()))?;
        Ok(Engine {
            control,
            thread,
            hold,
        })
    }
}

impl Parts {
    fn factory(&self, view: &Arc<View>, newest: Option<RunId>) -> Arc<RunFactory> {
        Arc::new(RunFactory {
            store: Arc::clone(&self.store),
            view: Arc::clone(view),
            syntax: syntax::Syntax::new(&self.options.environment),
            clock: Arc::clone(&self.clock),
            definitions: Arc::clone(&self.definitions),
            workspace: self.workspace.clone(),
            state_dir: self.options.state_dir.clone(),
            environment: self.options.environment.clone(),
            newest: Mutex::new(newest),
        })
    }

    fn trees(&self) -> Result<PathBuf, String> {
        trees::place(&self.workspace, &self.options)
    }

    /// Hands what earlier engines left to the loop, and has it settled.
    fn recover(&self, core: &mut Core, catalog: &Catalog, grace_ms: u64) -> Result<(), Diagnostic> {
        let landings = landings::KnownLandings {
            store: self.store.as_ref(),
            workspace: &self.workspace,
            state_dir: &self.options.state_dir,
        };
        landings.recover();
        clear_git_locks(&self.workspace);
        let recovery = Recovery {
            store: self.store.as_ref(),
            workspace: &self.workspace,
            state_dir: &self.options.state_dir,
            now: self.clock.now(),
        };
        let recovered = recovery.recover(core)?;
        if self.options.host == Host::Daemon {
            // Before what was lost is settled: schedules count how their runs end, and follow others.
            core.begin_schedules(catalog.fired(), !catalog.has_errors())?;
        }
        let grace = Duration::from_millis(grace_ms);
        let left = LeftBehind::new(notes::read(&self.options.state_dir), grace);
        if recovered == 0 && left.is_empty() {
            return Ok(());
        }
        core.settle(Box::new(left), self.options.host == Host::Daemon)
    }
}

/// Git's locks that a lost engine left would stop people's git until the next run that commits.
fn clear_git_locks(cwd: &Path) {
    match git::clear_left_locks(cwd) {
        Ok(cleared) => {
            for lock in cleared {
                tracing::info!(lock = %lock.display(), "a lock of git that a lost engine had left was removed");
            }
        }
        // Another engine is at work in it, and clears them.
        Err(error) => tracing::debug!(%error, "locks of git are not cleared"),
    }
}

/// How many runs may be active: as configured, else the number of processors, at least 2.
fn parallel_max(config: &Config) -> u32 {
    match config.max_parallel {
        0 => {
            let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
            u32::try_from(processors).unwrap_or(2).max(2)
        }
        configured => configured,
    }
}

fn make_directories(state_dir: &Path) -> Result<(), Diagnostic> {
    for name in ["live", "scratch", "secrets", landings::DIRECTORY] {
        let path = state_dir.join(name);
        let mut builder = std::fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&path);
        made.map_err(|error| {
            let shown = path.display();
            unusable(
                "state_dir",
                format!("cannot make `{shown}`: {error}"),
                (&error, &path),
                "move the existing file away: it is recreated",
            )
        })?;
    }
    Ok(())
}

/// A state directory inside the workspace is kept out of git.
fn keep_out_of_git(workspace: &Path, state_dir: &Path) {
    let ignore = state_dir.join(".gitignore");
    let is_missing = state_dir.starts_with(workspace) && !ignore.exists();
    if is_missing && let Err(error) = std::fs::write(&ignore, "*\n") {
        tracing::warn!(%error, path = %ignore.display(), "the state could not be kept out of git");
    }
}

fn open_store(state_dir: &Path) -> Result<SledStore, Diagnostic> {
    SledStore::open(&state_dir.join("store"), OpenOptions::default())
        .map_err(|error| unusable::of_store(&error))
}
