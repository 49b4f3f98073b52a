//! Second names for objects that are new.
//!
//! A `git prune` looks for references first and deletes what none of them reached a while later: an object whose
//! reference came in between goes all the same. So each has a second name, a hard link aside of the objects, from
//! which the next step gives it back. Where the file system has no hard links there is none.

use std::fs;
use std::path::PathBuf;

use super::ids::{Oid, RunId};
use super::open::Handle;

/// Directory of them in the common git directory, with one directory for each run.
const HELD: &str = "workerctl-held";

/// How many runs that have ended keep their second names: a prune that began during one may still be at work when
/// it has ended, and the next run gives back what it took.
const ENDED_RUNS_MAX: usize = 4;

impl Handle {
    fn held(&self, run: &RunId) -> PathBuf {
        self.repo.commondir().join(HELD).join(run.as_str())
    }

    fn loose(&self, oid: &str) -> PathBuf {
        let (fan, rest) = oid.split_at(2);
        self.repo.commondir().join("objects").join(fan).join(rest)
    }

    /// Gives objects of a run their second names, those that are not packed.
    pub(super) fn hold(&self, run: &RunId, oids: &[Oid]) {
        let held = self.held(run);
        if oids.is_empty() || fs::create_dir_all(&held).is_err() {
            return;
        }
        for oid in oids {
            // What is not there now is missed by whoever looks next, and written again.
            let _ = fs::hard_link(self.loose(oid.as_str()), held.join(oid.as_str()));
        }
    }

    /// Gives back what was deleted although a reference names it.
    pub(super) fn give_back(&self, run: &RunId) {
        let Ok(entries) = fs::read_dir(self.held(run)) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(Ok(oid)) = name.to_str().map(str::parse::<Oid>) else {
                continue;
            };
            let loose = self.loose(oid.as_str());
            if !loose.exists() {
                // A step that misses it after all is tried again, and comes here once more.
                let _ = loose.parent().map(fs::create_dir);
                let _ = fs::hard_link(entry.path(), loose);
            }
        }
    }

    /// Gives back what was deleted of the newest runs that have ended, and drops the second names of older ones.
    pub(super) fn give_back_of_ended(&self) {
        let entries = fs::read_dir(self.repo.commondir().join(HELD));
        let names = entries.into_iter().flatten().flatten();
        let mut runs: Vec<RunId> = names
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect();
        // Ids of runs sort by time.
        runs.sort_by(|a, b| b.as_str().cmp(a.as_str()));
        for (index, run) in runs.iter().enumerate() {
            if index < ENDED_RUNS_MAX {
                self.give_back(run);
            } else {
                self.let_go(run);
            }
        }
    }

    /// Drops the second names of a run.
    pub(super) fn let_go(&self, run: &RunId) {
        let held = self.held(run);
        // What stays costs a little space, and goes with the run's references.
        let _ = fs::remove_dir_all(&held);
        let _ = held.parent().map(fs::remove_dir);
    }
}
