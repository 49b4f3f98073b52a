//! A schedule, as the double shows every one.

use std::collections::BTreeMap;

use workerctl::model::schedule::{Overlap, Policy, Trigger};
use workerctl::protocol::{SchedulePlan, ScheduleView};

pub(super) fn schedule(id: &str) -> ScheduleView {
    ScheduleView {
        id: id.to_owned(),
        skill: "w/s".to_owned(),
        when: "every minute".to_owned(),
        timezone: "UTC".to_owned(),
        defined_at: "workers/w/worker.yaml:1:1".to_owned(),
        seen: false,
        next: None,
        waiting: Vec::new(),
        paused: None,
        overlap: Overlap::Skip,
        known: true,
        last: None,
        succeeded_at: None,
        failures: 0,
        expected_by: None,
        overdue: false,
        kept: None,
        held: None,
        restored: None,
        actions: 0,
        totals: BTreeMap::new(),
        plan: SchedulePlan {
            trigger: Trigger::Every { period_ms: 60_000 },
            policy: Policy::default(),
            anchor: None,
            cursor: None,
            attempts: Some(1),
            blocked: None,
        },
    }
}
