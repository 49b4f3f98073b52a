//! What `Prepared` and `ResultRecorded` carry for the git and output rooms; opaque to the machine.

use serde::{Deserialize, Serialize};

use super::outputs::Stamp;
use super::work::Work;
use crate::git;
use crate::machine::Event;

/// The state before the first attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Groundwork {
    /// Stamps of declared outputs with a path, in the order of the specification.
    pub outputs: Vec<Option<Stamp>>,
    /// The repository, for a mutating run.
    pub repository: Option<git::Baseline>,
}

/// The state when the last process of an attempt was dead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AttemptTree {
    /// The repository, for a mutating run.
    pub repository: Option<git::ResultTree>,
    /// Paths of ours and of other runs, which are nobody's change.
    pub excluded: git::Exclusions,
}

impl Work {
    /// What `Prepared` recorded, the newest one.
    pub(super) fn groundwork(&self) -> Option<Groundwork> {
        self.entries
            .iter()
            .rev()
            .find_map(|entry| match &entry.event {
                Event::Prepared { baseline } => serde_json::from_value(baseline.clone()).ok(),
                _ => None,
            })
    }

    /// What `ResultRecorded` recorded for the newest attempt.
    pub(super) fn attempt_tree(&self) -> Option<AttemptTree> {
        if !self.run.facts.recorded {
            return None;
        }
        self.entries
            .iter()
            .rev()
            .find_map(|entry| match &entry.event {
                Event::ResultRecorded { result, .. } => {
                    serde_json::from_value(result.tree.clone()).ok()
                }
                _ => None,
            })
    }
}
