//! What `Prepared`, `Restored` and `ResultRecorded` carry for the output rooms and for trees; opaque to the machine.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use workerctl_trees::{HeadState, RunResult, Start};

use super::outputs::OutputStamp;
use super::work::Work;
use crate::git::Oid;
use crate::machine::{Entry, Event, Run};

/// The state before an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AttemptBaseline {
    /// Stamps of declared outputs with a path, in the order of the specification.
    pub outputs: Vec<Option<OutputStamp>>,
    /// Stamps of the files at their destinations, if the run writes its outputs elsewhere; in the same order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<Option<OutputStamp>>,
    /// What the run's tree started from, for a mutating run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeBase>,
}

/// A tree that was made equal to its base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TreeBase {
    /// The tree and what it held.
    pub start: Start,
    /// Where the branch was; `None` where it did not exist.
    pub from: Option<Oid>,
}

/// The state when the last process of an attempt was dead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AttemptTree {
    /// For a mutating run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<KeptResult>,
}

/// What a mutating run changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KeptResult {
    /// The base that it was changed against: another one than that of the start where the branch has moved.
    pub base: TreeBase,
    /// The change.
    pub change: RunResult,
    /// The commit that keeps it in the repository; `None` where nothing was changed.
    pub kept: Option<Oid>,
}

/// The commit that the small repository's branch is at.
pub(super) fn head_of(change: &RunResult) -> Option<&Oid> {
    match &change.head {
        HeadState::OnTarget { commit } => commit.as_ref(),
        HeadState::Moved { .. } => None,
    }
}

impl Work {
    /// What the newest attempt started from.
    pub(super) fn baseline(&self) -> Option<AttemptBaseline> {
        let mut entries = self.entries.iter().rev();
        entries.find_map(|entry| match &entry.event {
            Event::Prepared { baseline } => serde_json::from_value(baseline.clone()).ok(),
            Event::Restored { report } => serde_json::from_value(report.baseline.clone()?).ok(),
            _ => None,
        })
    }

    /// What the newest attempt changed.
    pub(super) fn kept_result(&self) -> Option<KeptResult> {
        kept_result(&self.run, &self.entries)
    }
}

/// Returns what the newest attempt of a run changed, as its journal has it.
pub(super) fn kept_result(run: &Run, entries: &[Arc<Entry>]) -> Option<KeptResult> {
    if !run.facts.recorded {
        return None;
    }
    let recorded = entries.iter().rev().find_map(|entry| match &entry.event {
        Event::ResultRecorded { result, .. } => Some(result.tree.clone()),
        _ => None,
    })?;
    let recorded: AttemptTree = serde_json::from_value(recorded).ok()?;
    recorded.result
}
