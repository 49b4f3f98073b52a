//! Whether an engine has the definitions as they are now, and reading them again.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

use super::control::{EngineControl, to_u32};
use super::definitions::Reload;
use super::request::Request;
use super::{Host, definitions};
use crate::catalog::Catalog;
use crate::model::Diagnostic;
use crate::process::give_back_memory;
use crate::protocol::{Change, ReloadReport};

impl EngineControl {
    /// Reads definitions again if any of them changed, or the rules of a zone; answers whether any did.
    pub(super) fn reload_if_stale(&self) -> Result<bool, Diagnostic> {
        let _alone = self
            .rereading
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        definitions::look_at_zones();
        if self.factory.definitions.is_stale() {
            self.reloaded(Reload::Automatic).map(|_| true)
        } else {
            Ok(false)
        }
    }

    /// Nobody watches the files for an engine in a command, which may live for long: other commands and the clients of a
    /// server find it, and know the definitions as they are now.
    pub(super) fn see_changes(&self) -> Result<(), Diagnostic> {
        match self.host {
            Host::InProcess => self.reload_if_stale().map(drop),
            Host::Daemon => Ok(()),
        }
    }

    /// Reads definitions and configuration again.
    pub(super) fn reloaded(&self, reload: Reload) -> Result<ReloadReport, Diagnostic> {
        definitions::look_at_zones();
        let before = self.factory.definitions.current();
        let catalog = self.factory.definitions.reload(reload);
        self.ask(Request::Reloaded {
            parallel_max: super::parallel_max(&catalog.config),
            waiting_max: catalog.config.queue_max,
        })?;
        let is_repaired = before.has_errors() && !catalog.has_errors();
        let are_due_otherwise =
            before.fired() != catalog.fired() || before.zones() != catalog.zones();
        if are_due_otherwise || is_repaired {
            self.put_schedules_in_force()?;
        }
        self.view.changes.other(Change::Definitions);
        let report = ReloadReport {
            workers: to_u32(catalog.workers.len()),
            skills: to_u32(catalog.skill_count()),
            problems: catalog.problems.clone(),
            reloaded: reloaded(&before, &catalog),
        };
        drop((before, catalog));
        // All schedules were put together anew, and there may be very many.
        give_back_memory();
        Ok(report)
    }
}

/// Workers that a reload did not take over as they were.
fn reloaded(before: &Catalog, after: &Catalog) -> u32 {
    let earlier: HashSet<_> = before.workers.iter().map(Arc::as_ptr).collect();
    to_u32(
        after
            .workers
            .iter()
            .filter(|worker| !earlier.contains(&Arc::as_ptr(worker)))
            .count(),
    )
}
