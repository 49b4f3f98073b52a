//! Restoring: another attempt starts from the tip of its branch and from outputs as they were; a run that ends leaves its tree.

use std::time::Duration;

use super::super::work::Work;
use super::place::{stdout_path, temporary_beside};
use super::{Performer, failure};
use crate::machine::{AfterRestore, Event, State};
use crate::model::evidence::RestoreReport;
use crate::model::outcome::{Failure, Step};

/// How often a tree is made again that failed for want of space, as the store does.
const RETRY_FULL: Duration = Duration::from_secs(5);

/// How often it is looked meanwhile whether the engine ends.
const LOOK: Duration = Duration::from_millis(100);

impl Performer {
    pub(super) fn restore(&self, work: &Work) -> Event {
        if self.is_parked(work) {
            let report = RestoreReport::default();
            return Event::Restored { report };
        }
        if let (Some(path), Ok(sandboxed_dir)) = (stdout_path(&work.spec), self.sandboxed_dir(work))
        {
            let _ = sandboxed_dir.discard(&temporary_beside(path, work.spec.run));
        }
        let goes_on = matches!(
            work.run.state,
            State::Restoring {
                then: AfterRestore::Retry { .. }
            }
        );
        if !goes_on {
            if work.spec.plan.mutating {
                self.empty_tree(work);
            }
            let report = RestoreReport::default();
            return Event::Restored { report };
        }
        Event::Restored {
            report: self.begin_again(work),
        }
    }

    fn begin_again(&self, work: &Work) -> RestoreReport {
        loop {
            let baseline = self.lay_groundwork(work).and_then(|baseline| {
                serde_json::to_value(&baseline)
                    .map_err(|error| failure(Step::Prepare, "internal", &error))
            });
            match baseline {
                Ok(baseline) => {
                    return RestoreReport {
                        baseline: Some(baseline),
                        ..RestoreReport::default()
                    };
                }
                Err(failure) if is_full(&failure) && waits(work) => {}
                Err(failure) => {
                    return RestoreReport {
                        out_of_space: is_full(&failure),
                        failed: vec![failure.message],
                        ..RestoreReport::default()
                    };
                }
            }
        }
    }
}

fn is_full(failure: &Failure) -> bool {
    failure.code == "disk_full"
}

/// Waits until it is worth trying again; false: the engine ends.
fn waits(work: &Work) -> bool {
    tracing::error!(
        run = %work.spec.run,
        "there is no space for the worktree of the next attempt: retrying until there is"
    );
    for _ in 0..RETRY_FULL.as_millis() / LOOK.as_millis() {
        if work.stop.requested().is_some() {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}
