//! Reads the definitions beside the conversation, and again when they have changed.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;

use super::engines::Engines;
use crate::catalog::Catalog;
use crate::engine::definitions::Definitions;
use crate::model::{Problem, Severity};

/// Problems of one reading that are logged.
const TOLD_MAX: usize = 100;

/// How often an engine that is not needed any more is looked for.
const GIVING_BACK: Duration = Duration::from_secs(1);

/// Where definitions are read from.
pub(super) struct Source {
    pub(super) workspace: PathBuf,
    pub(super) environment: BTreeMap<String, String>,
}

/// The definitions in force; nothing until they have been read for the first time.
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
    let first = move || Arc::new(Definitions::load(&source.workspace, &source.environment));
    let definitions = tokio::task::spawn_blocking(first).await?;
    let mut known = HashSet::new();
    let mut catalog = definitions.current();
    loop {
        tell_problems(&catalog, &mut known);
        let refresh = Duration::from_millis(catalog.config.mcp.refresh_ms);
        sender.send_replace(Some(catalog));
        catalog = loop {
            sleep(refresh).await;
            let definitions = Arc::clone(&definitions);
            let look = move || definitions.reload_if_stale();
            if let Some(fresh) = tokio::task::spawn_blocking(look).await? {
                break fresh;
            }
        };
    }
}

/// Logs what is wrong and has not been told before.
fn tell_problems(catalog: &Catalog, known: &mut HashSet<String>) {
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
