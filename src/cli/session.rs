//! What every command is given: streams, places, engines, clocks, signals.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::globals::{Globals, Site};
use super::interrupts::Interrupts;
use super::io::Io;
use super::render::{diagnostic, json, times};
use crate::clock::Clock;
use crate::model::{Diagnostic, Kind, RunId, Zone};
use crate::process::{own_name, with_cause};
use crate::protocol::{Control, LATEST, RunsQuery, WebControl, refuse_latest};

/// Which engine a command accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accept {
    /// The one that runs; where none runs, one hosted in this process.
    RunningElseHosted,
    /// Only one that runs.
    RunningOnly,
}

/// Where engines come from.
pub(crate) trait Engines {
    /// Finds the engine of a workspace, or hosts it.
    fn connect(&self, site: &Site, accept: Accept) -> Result<Arc<dyn Control>, Diagnostic>;
    /// Is the daemon of a workspace until it has been drained.
    fn serve(&self, site: &Site) -> Result<(), Diagnostic>;
    /// Makes an empty store for a workspace that has none.
    fn init_store(&self, site: &Site) -> Result<(), Diagnostic>;
    /// Finds the daemon of a workspace, which serves its web page.
    fn web(&self, site: &Site) -> Result<Arc<dyn WebControl>, Diagnostic>;
    /// Speaks the Model Context Protocol over standard input and output until the input ends.
    fn speak_mcp(&self, site: &Site) -> Result<(), Diagnostic>;
}

/// All that a command works with; nothing else of the process is touched.
pub(crate) struct Session<'a> {
    /// Streams.
    pub(crate) io: Io<'a>,
    /// Options of every command.
    pub(crate) globals: &'a Globals,
    /// The process's environment.
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// Absolute path of the working directory.
    pub(crate) cwd: &'a Path,
    /// Where engines come from.
    pub(crate) engines: &'a dyn Engines,
    /// Where signals come from.
    pub(crate) interrupts: &'a dyn Interrupts,
    /// Clocks.
    pub(crate) clock: &'a dyn Clock,
}

impl Session<'_> {
    /// The places for this command.
    pub(crate) fn site(&self) -> Result<Site, Diagnostic> {
        self.globals.site(self.cwd, self.environment)
    }

    /// The places for a command that opens nothing in the state directory.
    pub(crate) fn site_as_asked(&self) -> Result<Site, Diagnostic> {
        self.globals.site_as_asked(self.cwd, self.environment)
    }

    /// The places for a command that reads, which needs no workspace.
    pub(crate) fn site_anywhere(&self) -> Result<Site, Diagnostic> {
        self.globals.site_anywhere(self.cwd, self.environment)
    }

    /// Finds the engine of the workspace, or hosts it.
    pub(crate) fn connect(&self, accept: Accept) -> Result<Arc<dyn Control>, Diagnostic> {
        self.engines.connect(&self.site()?, accept)
    }

    /// Whether data is wanted as JSON.
    pub(crate) fn json(&self) -> bool {
        self.globals.json
    }

    /// Writes data as JSON; what is no object stands under `under`.
    pub(crate) fn print_json<T: Serialize>(&mut self, value: &T, under: &str) {
        let text = json::document(value, under);
        self.io.out.raw(&text);
    }

    /// Writes a diagnostic in the form that is wanted.
    pub(crate) fn print_diagnostic(&mut self, told: &Diagnostic) {
        let told = &with_cause(told.clone());
        if self.json() {
            diagnostic::print_json(&mut self.io.err, told);
        } else {
            diagnostic::print(&mut self.io.err, told);
        }
    }

    /// Who asks, for people.
    pub(crate) fn asked_by(&self) -> Option<String> {
        ["USER", "LOGNAME"]
            .iter()
            .find_map(|name| self.environment.get(*name))
            .filter(|user| !user.is_empty())
            .cloned()
            .or_else(|| Some(own_name()))
    }
}

/// The zone of displayed times.
pub(crate) fn zone_of(control: &dyn Control) -> Result<Zone, Diagnostic> {
    Ok(times::zone(&control.status()?.timezone))
}

/// The run that an argument means: `latest`, else what was given.
pub(crate) fn run_named(control: &dyn Control, given: &str) -> Result<String, Diagnostic> {
    if given != LATEST {
        return Ok(given.to_owned());
    }
    newest(control).map(|run| run.to_string())
}

/// Returns the run that a decision is about. `latest` is refused with [`refuse_latest`].
pub(crate) fn run_decided<'a>(
    control: &dyn Control,
    given: &'a str,
) -> Result<&'a str, Diagnostic> {
    if given == LATEST {
        return Err(refuse_latest(newest(control)?));
    }
    Ok(given)
}

fn newest(control: &dyn Control) -> Result<RunId, Diagnostic> {
    let newest = control.runs(&RunsQuery {
        limit: 1,
        ..RunsQuery::default()
    })?;
    newest.first().map(|run| run.run).ok_or_else(|| {
        Diagnostic::new(Kind::NotFound, "no_runs", "there are no runs yet")
            .hint("`workerctl skills` lists what can be run")
    })
}
