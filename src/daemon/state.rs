//! What the handlers of the API share: the engine, asked off the server's thread and within bounds.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::access_control::AccessControl;
use super::limits::Limits;
use super::mcp::Mounted;
use super::reply::HttpRefusal;
use super::socket::canonical;
use super::web::doors::Doors;
use super::web::logins::Logins;
use super::wire::{VersionReply, starting};
use crate::engine::{ENDED_OPEN, Host};
use crate::model::{Diagnostic, Kind};
use crate::protocol::{API_VERSION, Control};
use crate::web::DIGEST;

/// Files and whole logs that are read at once: each may hold some megabytes.
const DOWNLOADS_MAX: usize = 8;

/// For whom the server answers.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Absolute path of the workspace.
    pub workspace: PathBuf,
    /// The user whose requests are heard, beside root's.
    pub uid: u32,
    /// What the engine runs in.
    pub host: Host,
}

impl Identity {
    /// The user of this process serves `workspace`.
    pub fn of_process(workspace: &Path, host: Host) -> Identity {
        Identity {
            host,
            workspace: canonical(workspace),
            uid: rustix::process::geteuid().as_raw(),
        }
    }
}

/// What the server tells its host. Told twice before it is heard counts once.
#[derive(Debug, Default)]
pub struct Notices {
    /// Runs or definitions may have changed.
    pub changed: Notify,
    /// Definitions were read again for a client.
    pub reloaded: Notify,
    /// The engine has ended: a client drained it, or was told so by its answer.
    pub ended: Notify,
}

/// What every request needs.
pub(super) struct ApiState {
    pub(super) identity: Identity,
    pub(super) access: Arc<AccessControl>,
    pub(super) limits: Limits,
    control: OnceLock<Arc<dyn Control>>,
    reads: Arc<Semaphore>,
    writes: Arc<Semaphore>,
    drains: Arc<Semaphore>,
    pub(super) watchers: Arc<Semaphore>,
    pub(super) watch_threads: Arc<Semaphore>,
    downloads: Arc<Semaphore>,
    notices: Option<Arc<Notices>>,
    /// The Model Context Protocol, where it is served.
    pub(super) mounted: OnceLock<Mounted>,
    /// Who is logged in to the web page.
    pub(super) logins: Arc<Logins>,
    /// Where that is served.
    pub(super) doors: Arc<Doors>,
}

impl ApiState {
    pub(super) fn new(
        identity: Identity,
        limits: Limits,
        notices: Option<Arc<Notices>>,
    ) -> ApiState {
        let access = Arc::<AccessControl>::default();
        let logins = Arc::new(Logins::new(identity.uid, Arc::clone(&access)));
        let doors = Arc::new(Doors::new(limits.of_page(), Arc::clone(&logins)));
        ApiState::sharing(identity, limits, notices, (access, logins, doors))
    }

    /// The same engine for the door of the web page, with bounds of its own, so that browsers take nothing from commands.
    pub(super) fn of_page(&self) -> ApiState {
        let shared = (
            Arc::clone(&self.access),
            Arc::clone(&self.logins),
            Arc::clone(&self.doors),
        );
        let limits = self.limits.of_page();
        ApiState::sharing(self.identity.clone(), limits, self.notices.clone(), shared)
    }

    fn sharing(
        identity: Identity,
        limits: Limits,
        notices: Option<Arc<Notices>>,
        (access, logins, doors): (Arc<AccessControl>, Arc<Logins>, Arc<Doors>),
    ) -> ApiState {
        ApiState {
            identity,
            access,
            logins,
            doors,
            control: OnceLock::new(),
            reads: Arc::new(Semaphore::new(limits.calls)),
            writes: Arc::new(Semaphore::new(limits.calls)),
            drains: Arc::new(Semaphore::new(1)),
            watchers: Arc::new(Semaphore::new(limits.watchers)),
            // A watcher that left keeps its thread until the engine asks whether it is still there.
            watch_threads: Arc::new(Semaphore::new(limits.watchers.saturating_mul(2))),
            downloads: Arc::new(Semaphore::new(DOWNLOADS_MAX)),
            notices,
            mounted: OnceLock::new(),
            limits,
        }
    }

    /// Hands over the engine; until then every request to it is answered with `starting`.
    pub(super) fn open(&self, control: Arc<dyn Control>) {
        if self.control.set(control).is_err() {
            tracing::error!("the API was given a second engine and keeps its first");
        }
    }

    pub(super) fn control(&self) -> Result<Arc<dyn Control>, HttpRefusal> {
        self.control
            .get()
            .cloned()
            .ok_or_else(|| HttpRefusal::from(starting()))
    }

    /// A place among those who read files and whole logs.
    pub(super) fn download(&self) -> Result<OwnedSemaphorePermit, HttpRefusal> {
        let place = Arc::clone(&self.downloads).try_acquire_owned();
        place.map_err(|_| HttpRefusal::busy("too many files are being read"))
    }

    /// Who answers here.
    pub(super) fn version(&self) -> VersionReply {
        VersionReply {
            name: "workerctl".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            api: API_VERSION.to_owned(),
            workspace: self.identity.workspace.to_string_lossy().into_owned(),
            pid: Some(std::process::id()),
            ready: self.control.get().is_some(),
            host: self.identity.host.name().to_owned(),
            web: self.logins.serves().ok().map(|()| DIGEST.to_owned()),
        }
    }

    /// Asks the engine something after which nothing is different.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Control) -> Result<T, Diagnostic> + Send + 'static,
    ) -> Result<T, HttpRefusal> {
        self.ask(&self.reads, question).await
    }

    /// Asks the engine something after which runs or definitions may be different.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        question: impl FnOnce(&dyn Control) -> Result<T, Diagnostic> + Send + 'static,
    ) -> Result<T, HttpRefusal> {
        let answer = self.ask(&self.writes, question).await?;
        self.tell(|notices| &notices.changed);
        Ok(answer)
    }

    /// Has the engine end once nothing runs. It may take as long as what runs, so it takes no place from anyone else.
    pub(super) async fn drain(&self) -> Result<(), HttpRefusal> {
        self.ask(&self.drains, |control| control.drain()).await?;
        self.tell(|notices| &notices.ended);
        Ok(())
    }

    /// Tells the host, where it wants to be told.
    pub(super) fn tell(&self, of: impl FnOnce(&Notices) -> &Notify) {
        if let Some(notices) = &self.notices {
            of(notices).notify_one();
        }
    }

    async fn lane(&self, lane: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, HttpRefusal> {
        tokio::time::timeout(self.limits.call_patience, Arc::clone(lane).acquire_owned())
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| HttpRefusal::busy("too many requests are under way"))
    }

    /// Asks the engine on a thread of its own; what it does goes on when the client has left.
    async fn ask<T: Send + 'static>(
        &self,
        lane: &Arc<Semaphore>,
        question: impl FnOnce(&dyn Control) -> Result<T, Diagnostic> + Send + 'static,
    ) -> Result<T, HttpRefusal> {
        let control = self.control()?;
        let answer = self.work(lane, move || question(control.as_ref())).await?;
        answer.map_err(|error| {
            if error.kind == Kind::Unreachable || error.code == ENDED_OPEN {
                self.tell(|notices| &notices.ended);
            }
            HttpRefusal::from(error)
        })
    }

    /// Does what waits for the disk on a thread of its own; it goes on when the client has left.
    pub(super) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HttpRefusal> {
        self.work(&self.writes, work).await
    }

    async fn work<T: Send + 'static>(
        &self,
        lane: &Arc<Semaphore>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, HttpRefusal> {
        let permit = self.lane(lane).await?;
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.map_err(|error| {
            tracing::error!(%error, "a request failed inside");
            HttpRefusal::from(Diagnostic::new(
                Kind::Internal,
                "request_failed",
                "the engine failed on this request",
            ))
        })
    }
}
