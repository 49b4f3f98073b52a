//! Engines: the one place of the command line that names the daemon, and the protocol for other programs.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::globals::{Site, expect_person, may_be_workspace};
use super::maintenance;
use super::session::{Accept, Engines};
use crate::daemon::{self, ConnectMode, ConnectOptions, DaemonOptions};
use crate::engine::{self, EngineOptions, Host};
use crate::mcp;
use crate::model::{Diagnostic, Kind};
use crate::protocol::{Control, WebControl};

pub(crate) use crate::daemon::process_environment;
pub(crate) use crate::engine::{LeftLanding, installed_programs};

/// Returns the landings that were begun here and that no process is finishing.
pub(crate) fn left_landings(site: &Site) -> Vec<LeftLanding> {
    engine::left_landings(&site.workspace, &site.state_dir)
}

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
        let mode = match accept {
            // The engine of the run around it may have been killed.
            Accept::RunningElseHosted if !site.is_around_run() => ConnectMode::RunningElseHosted,
            Accept::RunningElseHosted | Accept::RunningOnly => ConnectMode::RunningOnly,
        };
        Ok(Arc::from(daemon::connect(&places(site, mode))?))
    }

    fn serve(&self, site: &Site) -> Result<(), Diagnostic> {
        if site.is_around_run() {
            expect_person("workerctl daemon")?;
        }
        self.log(site, "info,rmcp=off")?;
        daemon::run_daemon(&DaemonOptions {
            workspace: site.workspace.clone(),
            state_dir: site.state_dir.clone(),
            socket: site.socket.clone(),
            environment: site.environment.clone(),
        })
    }

    fn init_store(&self, site: &Site) -> Result<(), Diagnostic> {
        engine::init_store(&EngineOptions {
            workspace: site.workspace.clone(),
            state_dir: site.state_dir.clone(),
            socket: None,
            host: Host::InProcess,
            environment: site.environment.clone(),
        })
    }

    fn web(&self, site: &Site) -> Result<Arc<dyn WebControl>, Diagnostic> {
        if self.verbose > 0 {
            self.log(site, "warn")?;
        }
        Ok(daemon::dial_patiently(&places(
            site,
            ConnectMode::RunningOnly,
        ))?)
    }

    fn speak_mcp(&self, site: &Site) -> Result<(), Diagnostic> {
        self.log(site, "warn,rmcp=error")?;
        let mode = if site.is_around_run() {
            ConnectMode::RunningOnly
        } else {
            ConnectMode::RunningElseHosted
        };
        let dialled = places(site, mode);
        let options = mcp::Options {
            workspace: site.workspace.clone(),
            state_dir: site.state_dir.clone(),
            environment: site.environment.clone(),
            connect: Box::new(move || {
                expect_workspace(&dialled)?;
                Ok(Arc::from(daemon::connect(&dialled)?))
            }),
        };
        // Handles of their own: those of the library are locked for as long as a command lasts.
        let input = File::from(owned(&std::io::stdin())?);
        let output = File::from(owned(&std::io::stdout())?);
        mcp::serve(options, Box::new(input), Box::new(output))
    }
}

/// Refuses where there is no workspace, which one may become at any time: an engine would make a store there, and
/// nothing of that place has ever run.
fn expect_workspace(dialled: &ConnectOptions) -> Result<(), Diagnostic> {
    if may_be_workspace(&dialled.workspace) {
        return maintenance::state_directory(&dialled.workspace, &dialled.state_dir).map(drop);
    }
    let place = dialled.workspace.display();
    let message = format!("nothing runs here: `{place}` is not a workspace, and has no runs");
    Err(Diagnostic::new(Kind::NotFound, "run_not_found", message)
        .hint("`workerctl init` makes it one"))
}

fn owned(stream: &impl AsFd) -> Result<OwnedFd, Diagnostic> {
    stream.as_fd().try_clone_to_owned().map_err(|error| {
        let message = format!("standard input and output cannot be used: {error}");
        Diagnostic::new(Kind::Internal, "streams", message)
    })
}

fn places(site: &Site, mode: ConnectMode) -> ConnectOptions {
    ConnectOptions {
        workspace: site.workspace.clone(),
        state_dir: site.state_dir.clone(),
        socket: site.socket.clone(),
        environment: site.environment.clone(),
        mode,
    }
}

impl RealEngines {
    /// Starts the log; what the environment asks for wins over `-v`.
    fn log(&self, site: &Site, least: &str) -> Result<(), Diagnostic> {
        let mut environment = site.environment.clone();
        let level = match self.verbose {
            0 => least,
            1 => "workerctl=debug,info,rmcp=warn",
            _ => "workerctl=trace,debug",
        };
        environment
            .entry("WORKERCTL_LOG".to_owned())
            .or_insert_with(|| level.to_owned());
        daemon::start_logging(&environment)
    }
}
