//! The door at which the page is served: open where the configuration says so, or while somebody holds it open.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::logins::{Door, Logins, no_web};
use crate::catalog;
use crate::daemon::limits::Limits;
use crate::daemon::tcp;
use crate::model::{Diagnostic, Kind};

/// How many commands of one user may hold it open at once.
const OF_USER_MAX: usize = 16;
/// How many of all users.
const HOLDERS_MAX: usize = 256;

/// What names its port where no command does.
const CONFIGURED: &str = "`web: {listen: …}` in workerctl.yaml";

/// What the door is called in the log.
const WHAT: &str = "the web page";

/// The door, open or not.
pub(crate) struct Doors {
    limits: Limits,
    logins: Arc<Logins>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What answers; absent once the server ends.
    router: Option<Router>,
    /// Where the server's tasks run.
    runtime: Option<Handle>,
    open: Option<Open>,
}

struct Open {
    address: SocketAddr,
    /// Whether the configuration holds it open.
    stays: bool,
    /// Whose commands hold it open.
    holders: Vec<u32>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
}

/// Somebody holds the door open for as long as this lives.
pub(crate) struct Hold {
    doors: Arc<Doors>,
    uid: u32,
    /// Where it is.
    pub(crate) address: SocketAddr,
    /// Whether it stays open without them.
    pub(crate) stays: bool,
    /// Turns once the door is closed.
    pub(crate) closed: watch::Receiver<bool>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.doors.state();
        // It may have been closed, and another one opened.
        let own = state
            .open
            .take_if(|open| open.stop.subscribe().same_channel(&self.closed));
        if let Some(mut open) = own {
            let own = open.holders.iter().position(|uid| *uid == self.uid);
            own.map(|at| open.holders.swap_remove(at));
            if !open.holders.is_empty() || open.stays {
                state.open = Some(open);
            } else {
                open.stop.send_replace(true);
                self.doors.logins.served_at(Door::default());
                tracing::info!(address = %open.address, "the web page is not served any more");
            }
        }
    }
}

impl Doors {
    pub(crate) fn new(limits: Limits, logins: Arc<Logins>) -> Doors {
        Doors {
            limits,
            logins,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What answers at the door, and where.
    pub(crate) fn serve(&self, router: Router, runtime: Handle) {
        let mut state = self.state();
        state.router = Some(router);
        state.runtime = Some(runtime);
    }

    /// Opens it for as long as the server lives.
    pub(crate) fn open_for_good(&self, listener: TcpListener) -> Result<(), Diagnostic> {
        let mut state = self.state();
        let open = self.open(&state, listener, true)?;
        state.open = Some(open);
        Ok(())
    }

    /// Holds it open for a user, at this port where one is wanted.
    pub(crate) fn hold(self: &Arc<Doors>, uid: u32, port: Option<u16>) -> Result<Hold, Diagnostic> {
        let mut state = self.state();
        if state.open.is_none() {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(0)));
            let listener = TcpListener::bind(address)
                .map_err(|error| taken(&address.to_string(), &error, "`--port`"))?;
            state.open = Some(self.open(&state, listener, false)?);
        }
        let Some(open) = &mut state.open else {
            return Err(no_web());
        };
        let served = open.address.port();
        if port.is_some_and(|port| port != 0 && port != served) {
            let why = format!("the web page is served at port {served} already");
            return Err(Diagnostic::new(Kind::Conflict, "web_port", why)
                .hint("omit `--port`, or stop what keeps it open on that port"));
        }
        // One that stays open is not held.
        if !open.stays {
            let own = open.holders.iter().filter(|holder| **holder == uid).count();
            if own >= OF_USER_MAX || open.holders.len() >= HOLDERS_MAX {
                let why = format!("{} commands hold the web page open", open.holders.len());
                return Err(Diagnostic::new(Kind::Conflict, "busy", why)
                    .hint(format!("end one of them; {own} are yours")));
            }
            open.holders.push(uid);
        }
        Ok(Hold {
            doors: Arc::clone(self),
            uid,
            address: open.address,
            stays: open.stays,
            closed: open.stop.subscribe(),
        })
    }

    /// Where the page is served; refused where it is not.
    pub(crate) fn address(&self) -> Result<SocketAddr, Diagnostic> {
        let state = self.state();
        state.open.as_ref().map(|open| open.address).ok_or_else(|| {
            Diagnostic::new(Kind::Conflict, "web_closed", "the web page is not served")
                .hint("run `workerctl web` to serve it temporarily, or set `web: {listen: …}` in workerctl.yaml to serve it permanently")
        })
    }

    fn open(&self, state: &State, listener: TcpListener, stays: bool) -> Result<Open, Diagnostic> {
        let (Some(router), Some(runtime)) = (state.router.clone(), &state.runtime) else {
            return Err(no_web());
        };
        let _inside = runtime.enter();
        let address = listener
            .local_addr()
            .map_err(|error| taken("?", &error, CONFIGURED))?;
        let (stop, stopped) = watch::channel(false);
        let serving = tcp::serve(listener, router, self.limits.clone(), stopped, WHAT)
            .map_err(|error| taken(&address.to_string(), &error, CONFIGURED))?;
        self.logins.served_at(Door {
            port: address.port(),
            stays,
        });
        Ok(Open {
            address,
            stays,
            holders: Vec::new(),
            stop,
            serving: runtime.spawn(serving),
        })
    }

    /// Closes it, lets requests under way end for a moment, and opens it no more.
    pub(crate) async fn end(&self, patience: Duration) {
        let open = {
            let mut state = self.state();
            // It holds what holds this.
            state.router = None;
            state.open.take()
        };
        if let Some(open) = open {
            self.logins.served_at(Door::default());
            open.stop.send_replace(true);
            // How its connections ended was logged.
            let _ = tokio::time::timeout(patience, open.serving).await;
        }
    }
}

/// Listens where the configuration says so. What is wrong with the configuration is logged elsewhere.
///
/// # Errors
/// Somebody else listens there.
pub(crate) fn configured(workspace: &Path) -> Result<Option<TcpListener>, Diagnostic> {
    let Ok((config, _)) = catalog::config(workspace) else {
        return Ok(None);
    };
    let Some(listen) = config.web.listen else {
        return Ok(None);
    };
    let listener = TcpListener::bind(&listen);
    listener
        .map(Some)
        .map_err(|error| taken(&listen, &error, CONFIGURED))
}

fn taken(address: &str, error: &io::Error, named_by: &str) -> Diagnostic {
    tcp::taken(address, error).hint(format!(
        "choose another port with {named_by}; `ss -ltnp` shows which process uses this one"
    ))
}
