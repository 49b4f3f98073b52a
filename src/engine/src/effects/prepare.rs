//! Preparing: makes the run's tree, and notes the outputs as they were.

use std::path::Path;

use super::super::baseline::AttemptBaseline;
use super::super::outputs::{OutputStamp, SandboxedDir};
use super::super::work::Work;
use super::{Performer, failure};
use crate::machine::Event;
use crate::model::outcome::{Failure, Step};

impl Performer {
    pub(super) fn prepare(&self, work: &Work) -> Event {
        let prepared = self.lay_groundwork(work).and_then(|baseline| {
            serde_json::to_value(&baseline)
                .map_err(|error| failure(Step::Prepare, "internal", &error))
        });
        match prepared {
            Ok(baseline) => Event::Prepared { baseline },
            Err(failure) => {
                self.give_back_tree(work.spec.run);
                Event::PreparationFailed { failure }
            }
        }
    }

    /// Makes the tree equal to its base, and stamps the declared outputs. An attempt that continues a conversation
    /// keeps what its earlier turns wrote, and with it the baseline of the attempt in which it began.
    pub(super) fn lay_groundwork(&self, work: &Work) -> Result<AttemptBaseline, Failure> {
        if work.run.continues_conversation()
            && let Some(baseline) = work.baseline()
        {
            return Ok(baseline);
        }
        self.refuse_hidden_outputs(work)?;
        let tree = if work.spec.plan.mutating {
            Some(self.start_tree(work)?)
        } else {
            None
        };
        self.stage_outputs(work)?;
        let outputs = stamps(work, &self.sandboxed_dir(work)?)?;
        let destinations = if work.spec.stages_outputs() {
            stamps(work, &destinations(work)?)?
        } else {
            Vec::new()
        };
        Ok(AttemptBaseline {
            outputs,
            destinations,
            tree,
        })
    }
}

/// Opens the workspace, below which the outputs of a run have their destinations.
pub(super) fn destinations(work: &Work) -> Result<SandboxedDir, Failure> {
    SandboxedDir::open(Path::new(&work.spec.workspace))
        .map_err(|error| failure(Step::Prepare, "output_path", &error))
}

pub(super) fn stamps(
    work: &Work,
    root: &SandboxedDir,
) -> Result<Vec<Option<OutputStamp>>, Failure> {
    let stamp = |path: &String| {
        root.stamp(path)
            .map_err(|error| failure(Step::Prepare, "output_path", &error))
    };
    let outputs = work.spec.outputs.iter();
    outputs
        .map(|output| output.path.as_ref().map_or(Ok(None), stamp))
        .collect()
}
