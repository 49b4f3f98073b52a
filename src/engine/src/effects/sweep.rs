//! Sweeping: hidden refs of runs that did not succeed go when their time is over.

use std::collections::HashSet;
use std::path::Path;
use std::time::SystemTime;

use workerctl_trees::Trees;

use super::super::expiry::SWEEP_MS;
use super::super::landings::{DIRECTORY, KnownLandings};
use super::{Performer, lock};
use crate::git;
use crate::model::{RunId, Timestamp};
use crate::store::{Store, StoreError};

/// Landings of which what they replaced is kept: a skill that runs every minute would else hold a day's versions.
const LANDINGS_KEPT: usize = 32;

/// Refs of runs that this store does not know are kept at least this long, and at least
/// [`UNKNOWN_FACTOR`] times as long as others: another workspace's engine may have other settings.
const UNKNOWN_MS_MIN: u64 = 365 * 24 * 3_600_000;

const UNKNOWN_FACTOR: u64 = 10;

/// What the store of this engine knows of a run that has refs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunStatus {
    /// It was accepted here and is not closed.
    Open,
    /// It ended here.
    Ended,
    /// Another workspace of this repository had it, or the store was lost.
    Nothing,
}

impl Performer {
    /// Once a day: drops what is kept whose time is over.
    pub(super) fn sweep(&self) {
        let now = self.parts.expiry.now();
        let mut swept = lock(&self.swept);
        let is_recent = swept.is_some_and(|at| now.millis_since(at) < SWEEP_MS);
        if is_recent || self.parts.expiry.is_doubted() {
            return;
        }
        *swept = Some(now);
        drop(swept);
        self.sweep_trees(now);
        let count = self.sweep_landings(|changed| now.millis_since(changed) >= SWEEP_MS);
        if count > 0 {
            tracing::info!(
                count,
                "files that landings replaced more than a day ago were removed"
            );
        }
        let kept_ms = self.parts.keep_refs_ms;
        let expired = git::expired_refs(&self.parts.workspace, before_s(now, kept_ms));
        let (ended, unknown) = match self.sorted(expired.unwrap_or_default()) {
            Ok(sorted) => sorted,
            Err(error) => {
                tracing::warn!(%error, "expired refs are left: the store could not be read");
                return;
            }
        };
        self.drop_each(&ended);
        let far_s = before_s(now, unknown_kept_ms(kept_ms));
        let far: Vec<git::RunId> = unknown
            .into_iter()
            .filter(|run| run.accepted_at_s() < far_s)
            .collect();
        if far.is_empty() {
            return;
        }
        // Whoever holds the lease may be the run itself; then it is looked again tomorrow.
        let lease = git::locate(&self.parts.workspace)
            .and_then(|facts| git::RepositoryLease::acquire(&facts, &self.parts.owner));
        if lease.is_ok() {
            self.drop_each(&far);
        }
    }

    fn sweep_trees(&self, now: Timestamp) {
        let Ok(root) = &self.parts.trees else {
            return;
        };
        let now_s = now.millis().div_euclid(1_000);
        match Trees::at(root).sweep(&self.parts.tree_limits, now_s) {
            Ok(removed) if removed.is_empty() => {}
            Ok(removed) => {
                let idle_s = self.parts.tree_limits.idle_s;
                tracing::info!(?removed, idle_s, "trees beyond `trees` were removed");
            }
            Err(error) => {
                tracing::warn!(%error, "trees that are not used could not be removed");
            }
        }
    }

    /// Drops at once what is kept of landings that have ended: the disk is full, and this is ours.
    pub(super) fn free_landings(&self) {
        self.sweep_landings(|_| true);
    }

    /// Drops what is kept of all but the newest landings.
    pub(super) fn bound_landings(&self) {
        self.sweep_landings(|_| false);
    }

    /// What a landing took out of checkouts stays for a day, of the newest ones: a late edit in it is named then.
    fn sweep_landings(&self, is_over: impl Fn(Timestamp) -> bool) -> usize {
        let Ok(_alone) = self.landing.try_write() else {
            return 0;
        };
        let Ok(entries) = std::fs::read_dir(self.parts.state_dir.join(DIRECTORY)) else {
            return 0;
        };
        let known = KnownLandings {
            store: self.parts.store.as_ref(),
            workspace: &self.parts.workspace,
            state_dir: &self.parts.state_dir,
        };
        let mut count = 0;
        let mut all: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        // Names of runs sort by time.
        all.sort_unstable_by(|one, other| other.cmp(one));
        for (nth, path) in all.into_iter().enumerate() {
            if nth < LANDINGS_KEPT && !is_over(changed_at(&path)) {
                continue;
            }
            match known.remove(&path) {
                Ok(()) => count += usize::from(!path.exists()),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "what is kept of a landing is not removed");
                }
            }
        }
        count
    }

    /// The runs that ended here, and those that this store does not know.
    fn sorted(
        &self,
        runs: Vec<git::RunId>,
    ) -> Result<(Vec<git::RunId>, Vec<git::RunId>), StoreError> {
        let store = self.parts.store.as_ref();
        let open: HashSet<RunId> = store.active()?.into_iter().collect();
        let (mut ended, mut unknown) = (Vec::new(), Vec::new());
        for run in runs {
            match known(store, &open, &run)? {
                RunStatus::Open => {}
                RunStatus::Ended => ended.push(run),
                RunStatus::Nothing => unknown.push(run),
            }
        }
        Ok((ended, unknown))
    }

    fn drop_each(&self, runs: &[git::RunId]) {
        if let Some(oldest) = runs.iter().map(git::RunId::as_str).min() {
            let count = runs.len();
            tracing::info!(
                count,
                oldest,
                "references of runs beyond `keep_refs` are dropped"
            );
        }
        for run in runs {
            if let Err(error) = git::drop_refs(&self.parts.workspace, run) {
                tracing::warn!(%error, "expired refs could not be dropped");
            }
        }
    }
}

/// When a file was changed last; the beginning of time where that cannot be known.
fn changed_at(path: &Path) -> Timestamp {
    let changed = std::fs::metadata(path).and_then(|found| found.modified());
    let since = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).ok();
    let changed_ms = changed.ok().and_then(since).map(|since| since.as_millis());
    let changed_ms = changed_ms.and_then(|ms| i64::try_from(ms).ok());
    Timestamp::from_millis(changed_ms.unwrap_or(0))
}

fn known(
    store: &dyn Store,
    open: &HashSet<RunId>,
    run: &git::RunId,
) -> Result<RunStatus, StoreError> {
    let Ok(run) = run.as_str().parse::<RunId>() else {
        return Ok(RunStatus::Nothing);
    };
    if open.contains(&run) {
        return Ok(RunStatus::Open);
    }
    let summary = store.summary(run)?;
    Ok(summary.map_or(RunStatus::Nothing, |_| RunStatus::Ended))
}

/// How long refs of runs are kept that this store does not know.
fn unknown_kept_ms(kept_ms: u64) -> u64 {
    kept_ms.saturating_mul(UNKNOWN_FACTOR).max(UNKNOWN_MS_MIN)
}

/// What was accepted before this second, since 1970, has been kept long enough.
fn before_s(now: Timestamp, kept_ms: u64) -> i64 {
    let kept_ms = i64::try_from(kept_ms).unwrap_or(i64::MAX);
    now.millis().saturating_sub(kept_ms).div_euclid(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    const DAY_MS: u64 = 24 * 3_600_000;

    #[test]
    fn a_run_that_is_open_is_never_over() {
        let run: git::RunId = "01M7ZZZZZZZZZZZZZZZZZZZZZZ".parse().unwrap();
        let open = HashSet::from([run.as_str().parse().unwrap()]);
        let store = MemoryStore::new();
        assert_eq!(known(&store, &open, &run).unwrap(), RunStatus::Open);
        let none = HashSet::new();
        assert_eq!(known(&store, &none, &run).unwrap(), RunStatus::Nothing);
    }

    #[test]
    fn unknown_runs_are_kept_a_year_or_ten_times_as_long_as_others() {
        assert_eq!(unknown_kept_ms(1_000), 365 * DAY_MS);
        assert_eq!(unknown_kept_ms(100 * DAY_MS), 1_000 * DAY_MS);
        assert_eq!(unknown_kept_ms(u64::MAX), u64::MAX);
    }
}
