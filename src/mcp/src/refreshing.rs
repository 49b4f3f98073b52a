//! Reads the definitions beside the conversation, and again when they have changed.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::sleep;

use super::engines::Engines;
use super::offered::Offered;
use crate::catalog::Catalog;
use crate::catalog::watch::Watch;
use crate::engine::definitions::{self, Definitions};
use crate::model::{Problem, Severity};

/// Problems of one reading that are logged.
const TOLD_MAX: usize = 100;

/// How often an engine that is not needed any more is looked for.
const GIVING_BACK: Duration = Duration::from_secs(1);

/// How long after a hint is waited for more of them: a program that writes one file may write others too.
const GATHERED_FOR: Duration = Duration::from_millis(50);

/// Where definitions are read from.
pub(super) struct Source {
    pub(super) workspace: PathBuf,
    pub(super) state_dir: PathBuf,
    pub(super) environment: BTreeMap<String, String>,
}

/// The current definitions; nothing until they have been read for the first time.
pub(super) type Catalogs = watch::Receiver<Option<Arc<Catalog>>>;

/// Begins to read. Everything ends with the runtime.
pub(super) fn start(source: Source, engines: Arc<Engines>) -> Catalogs {
    let (sender, catalogs) = watch::channel(None);
    tokio::spawn(async move {
        if let Err(error) = keep_reading(source, sender).await {
            tracing::error!(%error, "definitions are not read any more");
        }
    });
    tokio::spawn(async move {
        loop {
            sleep(GIVING_BACK).await;
            let engines = Arc::clone(&engines);
            // A loop that ended would keep an engine for ever.
            let given_back = tokio::task::spawn_blocking(move || engines.give_back_idle()).await;
            if let Err(error) = given_back {
                tracing::error!(%error, "the engine was not given back");
            }
        }
    });
    catalogs
}

async fn keep_reading(
    source: Source,
    sender: watch::Sender<Option<Arc<Catalog>>>,
) -> Result<(), tokio::task::JoinError> {
    let Source {
        workspace,
        state_dir,
        environment,
    } = source;
    let home = definitions::home(&environment);
    let place = workspace.clone();
    let first = move || {
        let definitions = Arc::new(Definitions::load(&place, &state_dir, &environment));
        Arc::new(Looked::first(definitions, &state_dir))
    };
    let looked = tokio::task::spawn_blocking(first).await?;
    let mut known = HashSet::new();
    let mut catalog = looked.definitions.current();
    let mut changes = None;
    loop {
        report_problems(&catalog, &mut known);
        let refresh = Duration::from_millis(catalog.config.mcp.refresh_ms);
        sender.send_replace(Some(catalog));
        // Only now, so that the first answer does not wait for it; it hints at what changed since.
        let changes = changes.get_or_insert_with(|| Changes::of(&workspace, home.clone()));
        catalog = loop {
            changes.wait(refresh).await;
            let begun = tokio::time::Instant::now();
            let looked = Arc::clone(&looked);
            let news = tokio::task::spawn_blocking(move || looked.again()).await?;
            // What changes without end must not take a whole processor.
            changes.rest = begun.elapsed();
            if let Some(catalog) = news {
                break catalog;
            }
        };
    }
}

/// Tells of what is listed otherwise under definitions that somebody else keeps fresh: the catalog is sent once
/// more. `first` has looked already; everything ends with the runtime.
pub(super) async fn report_offers(first: Looked, sender: Arc<watch::Sender<Option<Arc<Catalog>>>>) {
    let looked = Arc::new(first);
    let mut catalogs = sender.subscribe();
    loop {
        let refresh = Duration::from_millis(looked.definitions.current().config.mcp.refresh_ms);
        tokio::select! {
            // What is new is looked at once, so that a change of it is noticed later.
            _ = catalogs.changed() => {}
            () = sleep(refresh) => {}
        }
        catalogs.mark_unchanged();
        let look = Arc::clone(&looked);
        match tokio::task::spawn_blocking(move || look.offers_changed()).await {
            Ok(true) => sender.send_modify(|_| {}),
            Ok(false) => {}
            Err(error) => {
                tracing::error!(%error, "changes of lists are no longer reported");
                return;
            }
        }
    }
}

/// Definitions with what was last seen of all that is listed beside them.
pub(super) struct Looked {
    definitions: Arc<Definitions>,
    offered: Mutex<Offered>,
}

impl Looked {
    /// Looks for the first time: before anybody can ask, so that no change after an answer is missed.
    pub(super) fn first(definitions: Arc<Definitions>, state_dir: &Path) -> Looked {
        let looked = Looked {
            definitions,
            offered: Mutex::new(Offered::of(state_dir)),
        };
        looked.offers_changed();
        looked
    }

    /// The definitions where clients are to be told of them: they, or what is listed beside them, have changed.
    fn again(&self) -> Option<Arc<Catalog>> {
        let fresh = self.definitions.reload_if_stale();
        let changed = self.offers_changed();
        fresh.or_else(|| changed.then(|| self.definitions.current()))
    }

    fn offers_changed(&self) -> bool {
        let mut offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner);
        offered.look(&self.definitions.current())
    }
}

/// Hints that definitions have changed.
struct Changes {
    hinted: Arc<Notify>,
    /// The least time between a hint and the next look.
    rest: Duration,
    _watch: Option<Watch>,
}

impl Changes {
    fn of(workspace: &Path, home: Option<PathBuf>) -> Changes {
        let hinted = Arc::new(Notify::new());
        let told = Arc::clone(&hinted);
        let watch = Watch::start(workspace, home, move || told.notify_one());
        let watch = watch.inspect_err(|error| {
            tracing::warn!(%error, "file watching is not available; definitions are checked every `mcp.refresh`");
        });
        Changes {
            hinted,
            rest: Duration::ZERO,
            _watch: watch.ok(),
        }
    }

    /// Waits for a hint, at most so long.
    async fn wait(&self, at_most: Duration) {
        tokio::select! {
            () = sleep(at_most) => {}
            () = self.hinted.notified() => sleep(GATHERED_FOR.max(self.rest)).await,
        }
    }
}

/// Logs what is wrong and has not been told before.
fn report_problems(catalog: &Catalog, known: &mut HashSet<String>) {
    let all = catalog
        .problems
        .iter()
        .chain(&catalog.root_skills.problems_outside);
    let weighty = |one: &&Problem| one.severity > Severity::Note;
    let text = |one: &Problem| format!("{}: {}", one.place, one.message);
    let now: HashSet<String> = all.clone().filter(weighty).map(text).collect();
    let mut fresh = all
        .filter(weighty)
        .filter(|one| !known.contains(&text(one)));
    for one in fresh.by_ref().take(TOLD_MAX) {
        match one.severity {
            Severity::Error => tracing::error!(code = one.code, "{}", text(one)),
            Severity::Warning | Severity::Note => tracing::warn!(code = one.code, "{}", text(one)),
        }
    }
    let more = fresh.count();
    if more > 0 {
        tracing::warn!("{more} more problems; `workerctl check` shows all");
    }
    *known = now;
}
