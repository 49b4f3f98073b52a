//! Whether git's files are sound, and whether a lock stands in the way of runs.

use std::path::PathBuf;

use super::{Finding, State};
use crate::cli::engine::LeftLanding;
use crate::cli::globals::Site;
use crate::cli::repository::{self, GitLock};
use crate::model::Timestamp;
use crate::model::duration::show_millis;

/// A lock of git that is younger, in milliseconds, is taken for that of a command at work.
const AT_WORK_MS: i64 = 60_000;

/// Locks and damage; nothing where there is no repository, of which others tell.
pub(super) fn sound(site: &Site, left: &[LeftLanding], now: Timestamp) -> Vec<Finding> {
    let mut locks = repository::git_locks(&site.workspace);
    // Those of a landing are told with it, and must not be removed by hand.
    let held: Vec<&PathBuf> = left.iter().flat_map(|one| &one.locks).collect();
    locks.retain(|one| !held.iter().any(|path| **path == *one.path));
    let damage = repository::damage(&site.workspace).unwrap_or_default();
    let locks = locks.iter().map(|one| lock(one, now));
    let damage = damage
        .into_iter()
        .map(|(what, remedy)| Finding::new("git", State::Bad, what).hint(&remedy));
    locks.chain(damage).collect()
}

fn lock(lock: &GitLock, now: Timestamp) -> Finding {
    let age_ms = now.millis().saturating_sub(lock.since.millis()).max(0);
    let age = show_millis(age_ms.unsigned_abs());
    let text = format!("`{}` has been there for {age}", lock.path);
    let remove = format!("`rm '{}'`", lock.path);
    if lock.left {
        let text = format!("{text}: an engine that was killed has left it");
        let hint = format!("the next engine removes it; by hand: {remove}");
        return Finding::new("git lock", State::Hint, text).hint(&hint);
    }
    if age_ms < AT_WORK_MS {
        let text = format!("{text}: git is at work, or was killed");
        return Finding::new("git lock", State::Hint, text)
            .hint("look again in a minute: a lock that stays keeps mutating runs from starting");
    }
    let text = format!("{text}: another program, such as git, was killed or still runs");
    let hint = format!("where no git command runs any more: {remove}");
    Finding::new("git lock", State::Care, text).hint(&hint)
}
