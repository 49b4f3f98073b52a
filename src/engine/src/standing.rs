//! What the engine does at the moment, as `status` tells it.

use std::ops::ControlFlow;

use rustix::fs::Access;

use super::control::{EngineControl, to_u32};
use super::schedules::{self, OVERDUE_SHOWN_MAX};
use super::{Host, trees};
use crate::catalog::Catalog;
use crate::git;
use crate::model::outcome::Outcome;
use crate::model::{Diagnostic, FailedPush, Severity};
use crate::protocol::{RunSummary, Status, UndeliveredView};

/// How many active runs `status` lists.
const ACTIVE_SHOWN_MAX: usize = 200;

/// How many of the newest runs are searched for those that await a decision.
const LOOKED_AT_MAX: usize = 2_000;

/// How many of them are listed.
const KEPT_SHOWN_MAX: usize = 5;

impl EngineControl {
    pub(super) fn standing(&self) -> Result<Status, Diagnostic> {
        let catalog = self.factory.definitions.current();
        let open = self.view.open(ACTIVE_SHOWN_MAX);
        let counters = self.store.counters();
        let held = catalog
            .schedules_held()
            .filter(|_| !catalog.schedules.is_empty());
        // The loop of a command knows of no schedules, nor does one that fires none.
        let agenda = match self.host {
            Host::Daemon if held.is_none() => self.view.agenda(),
            Host::Daemon | Host::InProcess => {
                let all = schedules::all(&self.factory, &self.view, self.store.as_ref())?;
                schedules::agenda(&all)
            }
        };
        let count = |weight: Severity| to_u32(catalog.count(weight));
        let mut status = Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            host: self.host.name().to_owned(),
            workspace: self.factory.workspace.display().to_string(),
            state_dir: self.factory.state_dir.display().to_string(),
            condition: self.view.condition().name().to_owned(),
            running: to_u32(open.running),
            queued: to_u32(open.queued),
            awaiting: to_u32(open.awaiting),
            backing_off: to_u32(open.backing_off),
            active: open.first,
            max_parallel: super::parallel_max(&catalog.config),
            workers: to_u32(catalog.workers.len()),
            skills: to_u32(catalog.skill_count()),
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            schedules: to_u32(agenda.schedules),
            fallback_schedules: to_u32(catalog.fallback_schedules.len()),
            config_fallback_reason: catalog
                .config_fallback_reason()
                .map(|problem| problem.message.clone()),
            inactive_reason: held.map(str::to_owned),
            next_due: agenda.next,
            overdue: agenda.overdue,
            failing: agenda.failing,
            undelivered: self.undelivered(),
            git_problem: self.git_problem(&catalog),
            failed_pushes: self.failed_pushes(OVERDUE_SHOWN_MAX),
            kept_commits: 0,
            kept_runs: Vec::new(),
            unresolved: 0,
            unresolved_runs: Vec::new(),
            trees: Some(trees::view(
                &self.trees,
                catalog.config.trees.min_free_bytes,
            )),
            timezone: catalog.config.timezone.clone(),
            uptime_ms: self.clock.monotonic_ms().saturating_sub(self.started_ms),
            syncs: counters.syncs,
            commits: counters.commits,
        };
        self.add_undecided(&mut status, catalog.config.keep_refs_ms);
        Ok(status)
    }

    /// A store that cannot be read for want of space says nothing: that stands in the condition.
    fn undelivered(&self) -> Vec<UndeliveredView> {
        let mut shown = Vec::new();
        let read = self.store.notices(&mut |notices| {
            let view = notices.ok().as_ref().and_then(UndeliveredView::of);
            shown.extend(view.filter(|_| shown.len() < OVERDUE_SHOWN_MAX));
        });
        if let Err(error) = read {
            tracing::debug!(%error, "notices are not shown");
        }
        shown
    }

    /// Returns why nothing can be committed to the repository of the workspace.
    fn git_problem(&self, catalog: &Catalog) -> Option<String> {
        let mut skills = catalog.workers.iter().flat_map(|worker| &worker.skills);
        if !skills.any(|skill| skill.mutating) {
            return None;
        }
        let (_, common_dir) = git::directories(&self.factory.workspace)?;
        ["objects", "refs"].into_iter().find_map(|name| {
            let path = common_dir.join(name);
            let writable = rustix::fs::access(&path, Access::WRITE_OK | Access::EXEC_OK);
            let error = writable.err()?;
            Some(format!(
                "no result can be committed: `{}` cannot be written: {error}",
                path.display()
            ))
        })
    }

    /// Returns at most `count` branches whose last push failed. A store that cannot be read returns none.
    fn failed_pushes(&self, count: usize) -> Vec<FailedPush> {
        let mut shown = Vec::new();
        let read = self.store.failed_pushes(&mut |push| {
            shown.extend(push.ok().filter(|_| shown.len() < count));
        });
        if let Err(error) = read {
            tracing::debug!(%error, "failed pushes are not shown");
        }
        shown
    }

    /// Sets why the commits of these runs were not pushed.
    pub(super) fn add_push_errors<'a>(&self, runs: impl Iterator<Item = &'a mut RunSummary>) {
        let pushes = self.failed_pushes(usize::MAX);
        for run in runs.filter(|run| run.commit.is_some()) {
            let push = pushes.iter().find(|push| push.runs.contains(&run.run));
            run.push_error = push.map(|push| push.message.clone());
        }
    }

    /// Adds the newest runs that await a decision: those with a commit that is on no branch, and those whose outcome is
    /// unknown.
    fn add_undecided(&self, status: &mut Status, keep_refs_ms: u64) {
        let now = self.clock.now();
        let mut looked_at = 0;
        let looked = self.store.summaries(None, &mut |summary| {
            looked_at += 1;
            let is_kept = now.millis_since(summary.submitted_at) <= keep_refs_ms;
            if summary.kept_commit.is_some() && is_kept {
                add(&mut status.kept_commits, &mut status.kept_runs, summary);
            } else if matches!(summary.outcome, Some(Outcome::Unknown { .. })) {
                add(&mut status.unresolved, &mut status.unresolved_runs, summary);
            }
            if looked_at < LOOKED_AT_MAX {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        if let Err(error) = looked {
            // On a full disk the store may refuse to be read, and status is what tells of that.
            tracing::debug!(%error, "runs that await a decision are not counted");
        }
    }
}

/// Counts a run, and lists it if there is room.
fn add(count: &mut u32, listed: &mut Vec<RunSummary>, run: RunSummary) {
    *count += 1;
    if listed.len() < KEPT_SHOWN_MAX {
        listed.push(run);
    }
}
