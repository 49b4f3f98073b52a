//! Engines: the one place of the command line that names the daemon.

use std::sync::Arc;

use super::globals::Site;
use super::session::{Accept, Engines};
use crate::daemon::{self, ConnectMode, ConnectOptions, DaemonOptions};
use crate::model::Diagnostic;
use crate::protocol::Control;

/// Engines over the socket, or in this process.
pub(crate) struct RealEngines {
    /// How much of what an engine in this process does is logged: `-v` or `-vv`.
    pub(crate) verbose: u8,
}

impl Engines for RealEngines {
    fn connect(&self, site: &Site, accept: Accept) -> Result<Arc<dyn Control>, Diagnostic> {
        if self.verbose > 0 {
            self.log(site, "warn")?;
        }
        let control = daemon::connect(&ConnectOptions {
            workspace: site.workspace.clone(),
            state_dir: site.state_dir.clone(),
            socket: site.socket.clone(),
            environment: site.environment.clone(),
            mode: match accept {
                Accept::RunningElseHosted => ConnectMode::RunningElseHosted,
                Accept::RunningOnly => ConnectMode::RunningOnly,
            },
        })?;
        Ok(Arc::from(control))
    }

    fn serve(&self, site: &Site) -> Result<(), Diagnostic> {
        self.log(site, "info")?;
        daemon::run_daemon(&DaemonOptions {
            workspace: site.workspace.clone(),
            state_dir: site.state_dir.clone(),
            socket: site.socket.clone(),
            environment: site.environment.clone(),
        })
    }
}

impl RealEngines {
    /// Starts the log; what the environment asks for wins over `-v`.
    fn log(&self, site: &Site, least: &str) -> Result<(), Diagnostic> {
        let mut environment = site.environment.clone();
        let level = match self.verbose {
            0 => least,
            1 => "workerctl=debug,info",
            _ => "workerctl=trace,debug",
        };
        environment
            .entry("WORKERCTL_LOG".to_owned())
            .or_insert_with(|| level.to_owned());
        daemon::start_logging(&environment)
    }
}
