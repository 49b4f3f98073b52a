//! `workerctl daemon`: starts the engine, serves it, listens to signals, feeds the watchdog, ends in order.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::engine_port::{HostSignal, Hosted, StartEngine};
use super::event_loop::{Daemon, every};
use super::faults::internal;
use super::limits::Limits;
use super::mcp::Mounted;
use super::server::Server;
use super::socket::{Endpoint, SocketPlaces};
use super::state::{Identity, Notices};
use super::systemd::{Announcer, EXTEND_BY, EXTEND_EVERY};
use super::takeover::Takeover;
use super::tcp::TcpDoor;
use super::web::doors;
use crate::catalog::{self, watch::Watch};
use crate::clock::SystemClock;
use crate::engine::{self, Engine, EngineOptions, Host};
use crate::model::{Access, Diagnostic, Severity};

/// How often recovery may ask for more time: after an hour it counts as hanging.
const EXTENSIONS_MAX: u32 = 720;

/// What a daemon is started with.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    /// Absolute path of the workspace.
    pub workspace: PathBuf,
    /// Absolute path of the state directory.
    pub state_dir: PathBuf,
    /// The socket that was asked for.
    pub socket: Option<PathBuf>,
    /// The process's environment.
    pub environment: BTreeMap<String, String>,
}

/// The process's environment; variables that are not UTF-8 are left out, as are those of the service manager's protocol.
pub fn process_environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| {
            !name.starts_with("LISTEN_")
                && !name.starts_with("WATCHDOG_")
                && name != "NOTIFY_SOCKET"
        })
        .collect()
}

/// Runs the daemon until it has been drained by a signal or a client. `Ok`: it ended in order.
pub fn run_daemon(options: &DaemonOptions) -> Result<(), Diagnostic> {
    run(options).map_err(engine::unless_it_passes)
}

fn run(options: &DaemonOptions) -> Result<(), Diagnostic> {
    let clock = Arc::new(SystemClock::default());
    let takeover = Takeover::new(clock, &options.workspace, &options.state_dir);
    let mut endpoint = if let Some(endpoint) = Endpoint::passed()? {
        endpoint
    } else {
        let places = SocketPlaces {
            workspace: &options.workspace,
            state_dir: &options.state_dir,
            explicit: options.socket.as_deref(),
            environment: &options.environment,
        };
        let path = if configured_access(&options.workspace).is_empty() {
            places.of_engine()?
        } else {
            places.of_shared_engine()?
        };
        takeover.take_over(Some(&path), || {
            // Refused before anything is made in a state directory that is not the other's.
            engine::refuse_unfit(&options.workspace, &options.state_dir)?;
            Endpoint::bind(&path)
        })?
    };
    // Refused before anything is made or runs; a socket that was passed was not looked at above.
    engine::check_store(&options.workspace, &options.state_dir)?;
    let tcp = TcpDoor::open(&options.workspace, &options.state_dir, &options.environment)?;
    // Runs and schedules do not wait for a page, whose port anybody on the machine can have taken.
    let page = doors::configured(&options.workspace).unwrap_or_else(|refused| {
        let hints = refused.hints.join("; ");
        tracing::error!(hints, "the web page is not served: {}", refused.message);
        None
    });
    let engine_options = EngineOptions {
        workspace: options.workspace.clone(),
        state_dir: options.state_dir.clone(),
        socket: endpoint.path().map(PathBuf::from),
        host: Host::Daemon,
        environment: options.environment.clone(),
    };
    let start: StartEngine = Box::new(move || {
        let engine = takeover.take_over(None, || Engine::start(engine_options.clone()))?;
        Ok(Arc::new(engine) as Arc<dyn Hosted>)
    });
    let (heard, signals) = mpsc::channel(8);
    let runtime = runtime()?;
    // Handlers stand before anything is started, so that no signal finds the default.
    let (listening, announcer) = {
        let _inside = runtime.enter();
        (listen(&heard), Announcer::of_process())
    };
    let places = Places {
        workspace: options.workspace.clone(),
        home: engine::definitions::home(&options.environment),
        state_dir: options.state_dir.clone(),
        tcp,
        page,
    };
    let ended = listening
        .and_then(|()| runtime.block_on(host(&mut endpoint, places, announcer, signals, start)));
    // What still blocks must not keep the process alive: the engine has ended.
    runtime.shutdown_background();
    ended
}

/// Runs a daemon around any engine, told what to do through `signals`.
pub fn serve_daemon(
    endpoint: &mut Endpoint,
    workspace: PathBuf,
    announcer: Announcer,
    signals: mpsc::Receiver<HostSignal>,
    start: StartEngine,
) -> Result<(), Diagnostic> {
    let runtime = runtime()?;
    let places = Places {
        state_dir: workspace.join(".workerctl"),
        workspace,
        home: None,
        tcp: None,
        page: None,
    };
    let ended = runtime.block_on(host(endpoint, places, announcer, signals, start));
    runtime.shutdown_background();
    ended
}

fn runtime() -> Result<tokio::runtime::Runtime, Diagnostic> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| internal("daemon_not_started", "the daemon could not start", &error))
}

/// Arrives each second beyond the soft limit of processor time, until the hard one kills.
const PROCESSOR_TIME_USED: SignalKind =
    SignalKind::from_raw(rustix::process::Signal::XCPU.as_raw());

/// Turns the process's signals into requests.
fn listen(heard: &mpsc::Sender<HostSignal>) -> Result<(), Diagnostic> {
    let kinds = [
        (SignalKind::terminate(), HostSignal::Stop),
        (SignalKind::interrupt(), HostSignal::Stop),
        (PROCESSOR_TIME_USED, HostSignal::Stop),
        (SignalKind::hangup(), HostSignal::Reload),
    ];
    for (kind, meaning) in kinds {
        let mut arrived = signal(kind)
            .map_err(|error| internal("no_signals", "signals cannot be handled", &error))?;
        let heard = heard.clone();
        tokio::spawn(async move {
            while arrived.recv().await.is_some() {
                if kind == PROCESSOR_TIME_USED {
                    tracing::error!(
                        "the limit of processor time (`ulimit -t`, `LimitCPU=`) is reached: the daemon ends"
                    );
                }
                if heard.send(meaning).await.is_err() {
                    break;
                }
            }
        });
    }
    Ok(())
}

/// Where definitions are.
struct Places {
    workspace: PathBuf,
    /// The directory whose skills count.
    home: Option<PathBuf>,
    /// Where the engine keeps its state.
    state_dir: PathBuf,
    /// The way in over TCP, where one is asked for.
    tcp: Option<TcpDoor>,
    /// Where the web page is to be served.
    page: Option<TcpListener>,
}

async fn host(
    endpoint: &mut Endpoint,
    places: Places,
    announcer: Announcer,
    mut signals: mpsc::Receiver<HostSignal>,
    start: StartEngine,
) -> Result<(), Diagnostic> {
    let Places {
        workspace,
        home,
        state_dir,
        tcp,
        page,
    } = places;
    let notices = Arc::new(Notices::default());
    let server = Server::start(
        endpoint.listener()?,
        Identity::of_process(&workspace, Host::Daemon),
        Limits::default(),
        Some(Arc::clone(&notices)),
    )?;
    let access = server.access();
    if let Some(files) = endpoint.files() {
        access.guard(files);
    }
    access.set(&configured_access(&workspace));
    let (engine, stop) = recover(&announcer, &mut signals, start).await?;
    server.open(engine.control());
    if let Some(definitions) = engine.definitions() {
        let logins = server.logins();
        definitions.on_change(Box::new(move |catalog| {
            access.set(&catalog.config.access);
            // What an unknown configuration allows is not known either.
            logins.set_read_only(catalog.config.web.read_only || !catalog.config_is_known);
        }));
        let mounted = Mounted::new(engine.control(), definitions, state_dir);
        server.mount(mounted, tcp)?;
    }
    if let Some(sessions) = engine.web_sessions() {
        server.logins().keep_in(sessions)?;
    }
    if let Some(page) = page {
        server.open_page(page)?;
    }
    let told = Arc::clone(&notices);
    engine.on_end(Box::new(move || told.ended.notify_one()));
    let told = Arc::clone(&notices);
    engine.on_agenda(Box::new(move || told.changed.notify_one()));
    let (hints, hinted) = mpsc::channel(1);
    let watched = watch(&workspace, home, hints);
    let socket = endpoint.path().unwrap_or(Path::new("")).to_path_buf();
    let mut daemon = Daemon::new(engine, announcer, notices, endpoint, &server);
    daemon.ready();
    tracing::info!(workspace = %workspace.display(), socket = %socket.display(), "ready");
    if stop {
        daemon.stop();
    }
    daemon.turn(signals, hinted).await;
    drop(watched);
    daemon.end(server).await
}

/// The roles that hold while the engine starts; nobody has one while the configuration is not sound.
fn configured_access(workspace: &Path) -> Access {
    match catalog::config(workspace) {
        Ok((config, problems)) if problems.iter().all(|one| one.severity != Severity::Error) => {
            config.access
        }
        Ok(_) | Err(_) => Access::default(),
    }
}

/// Hints that definitions have changed; without it the rescan of the tick finds them.
fn watch(workspace: &Path, home: Option<PathBuf>, hints: mpsc::Sender<()>) -> Option<Watch> {
    let hint = move || {
        // A full channel holds a hint already.
        let _ = hints.try_send(());
    };
    Watch::start(workspace, home, hint)
        .inspect_err(|error| tracing::warn!(%error, "definitions are not watched; the rescan every 30 s remains"))
        .ok()
}

/// Starts the engine while the service manager is kept patient. The flag: it is to stop at once.
async fn recover(
    announcer: &Announcer,
    signals: &mut mpsc::Receiver<HostSignal>,
    start: StartEngine,
) -> Result<(Arc<dyn Hosted>, bool), Diagnostic> {
    announcer.status("recovering");
    let mut starting = tokio::task::spawn_blocking(start);
    let mut extend = every(EXTEND_EVERY);
    let (mut extensions, mut stop, mut listening) = (0, false, true);
    loop {
        tokio::select! {
            started = &mut starting => {
                let engine = started.map_err(|error| {
                    internal("engine_not_started", "the engine failed while it started", &error)
                })??;
                return Ok((engine, stop));
            }
            _ = extend.tick(), if extensions < EXTENSIONS_MAX => {
                extensions += 1;
                announcer.extend(EXTEND_BY);
            }
            asked = signals.recv(), if listening => match asked {
                Some(HostSignal::Stop) => stop = true,
                // It reads everything at this moment anyway.
                Some(HostSignal::Reload) => {}
                None => listening = false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_become_requests() {
        let runtime = runtime().expect("a runtime");
        runtime.block_on(async {
            let (heard, mut signals) = mpsc::channel(8);
            listen(&heard).expect("handlers");
            let own = rustix::process::getpid();
            for (signal, expected) in [
                (rustix::process::Signal::TERM, HostSignal::Stop),
                (rustix::process::Signal::INT, HostSignal::Stop),
                (rustix::process::Signal::XCPU, HostSignal::Stop),
                (rustix::process::Signal::HUP, HostSignal::Reload),
            ] {
                rustix::process::kill_process(own, signal).expect("sent");
                assert_eq!(signals.recv().await, Some(expected));
            }
        });
    }
}
