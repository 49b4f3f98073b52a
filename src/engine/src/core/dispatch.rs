//! Actions: handed out after the commit that asked for them, and ended when the state says so.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::live::Outstanding;
use super::super::work::Work;
use super::Core;
use crate::machine::StopKind;
use crate::model::RunId;
use crate::process::StopHandle;

impl Core {
    /// Hands out the action of every changed run that has none under way; passes on requests to end one.
    pub(super) fn dispatch(&mut self, changed: &BTreeSet<RunId>) {
        for run in changed {
            let Some(live) = self.live.get_mut(run) else {
                continue;
            };
            if live.lost {
                continue;
            }
            if let Some(outstanding) = &live.outstanding {
                match live.run.stop_wanted() {
                    Some(StopKind::Graceful) => {
                        outstanding.stop.stop(crate::process::StopKind::Graceful);
                    }
                    Some(StopKind::Now) => outstanding.stop.stop(crate::process::StopKind::Now),
                    None => {}
                }
                continue;
            }
            let Some(action) = live.run.next_action() else {
                continue;
            };
            if self
                .draining
                .as_ref()
                .is_some_and(|draining| draining.holds(&action))
            {
                continue;
            }
            let stop = StopHandle::new();
            if self.draining.as_ref().is_some_and(|d| d.hurries(&action)) {
                stop.stop(crate::process::StopKind::Graceful);
            }
            live.outstanding = Some(Outstanding {
                action: action.clone(),
                stop: stop.clone(),
            });
            self.outstanding += 1;
            self.pool.dispatch(Work {
                spec: Arc::clone(&live.spec),
                entries: Arc::clone(&live.entries),
                run: Arc::clone(&live.run),
                action,
                stop,
            });
        }
    }
}
