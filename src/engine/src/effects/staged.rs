//! Outputs of a run within walls that changes nothing: written apart from the checkout, published at its good end.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::outputs::{OutputError, SandboxedDir};
use super::super::work::Work;
use super::held::copy;
use super::{Performer, failure};
use crate::machine::{AfterSave, State};
use crate::model::RunId;
use crate::model::outcome::{Failure, Outcome, Step};

/// Below the state directory.
const DIRECTORY: &str = "outputs";

impl Performer {
    /// Where outputs of a run are written within walls.
    pub(super) fn staged_place(&self, run: RunId) -> PathBuf {
        self.parts.state_dir.join(DIRECTORY).join(run.to_string())
    }

    /// Where the outputs of a run are looked for: its workspace, or the place apart.
    pub(super) fn outputs_root(&self, work: &Work) -> Result<PathBuf, Failure> {
        if work.spec.stages_outputs() {
            return Ok(self.staged_place(work.spec.run));
        }
        self.workspace_of(work)
    }

    /// Makes the place, with outputs as they are now: a command may add to what is there.
    pub(super) fn stage_outputs(&self, work: &Work) -> Result<(), Failure> {
        if !work.spec.stages_outputs() {
            return Ok(());
        }
        let refused = |error: OutputError| failure(Step::Prepare, "output_path", &error);
        let place = self.staged_place(work.spec.run);
        self.forget_staged(work.spec.run);
        fs::create_dir_all(&place)
            .map_err(|error| failure(Step::Prepare, "output_path", &error))?;
        let from = SandboxedDir::open(Path::new(&work.spec.workspace)).map_err(refused)?;
        let to = SandboxedDir::open(&place).map_err(refused)?;
        for path in work.spec.outputs.iter().filter_map(|one| one.path.as_ref()) {
            if from.stamp(path).map_err(refused)?.is_some() {
                copy(&from, &to, path, work.spec.run).map_err(refused)?;
            }
        }
        Ok(())
    }

    /// Puts outputs in their places where the run is about to end well.
    pub(super) fn publish_staged(&self, work: &Work) -> Result<(), Failure> {
        let ends_well = matches!(
            &work.run.state,
            State::Saving {
                next: AfterSave::Finish(Outcome::Succeeded),
                cancelled: false,
            }
        );
        if !ends_well || !work.spec.stages_outputs() {
            return Ok(());
        }
        let refused = |error: OutputError| failure(Step::Save, "output_not_published", &error);
        let place = self.staged_place(work.spec.run);
        let from = SandboxedDir::open(&place).map_err(refused)?;
        let to = SandboxedDir::open(Path::new(&work.spec.workspace)).map_err(refused)?;
        let before = work
            .baseline()
            .map(|found| found.outputs)
            .unwrap_or_default();
        let mut changed = Vec::new();
        for (nth, output) in work.spec.outputs.iter().enumerate() {
            let Some(path) = &output.path else { continue };
            let now = from.stamp(path).map_err(refused)?;
            if now.is_some() && now != before.get(nth).copied().flatten() {
                changed.push(path);
            }
        }
        self.refuse_outputs(work, &changed, Step::Save)?;
        for path in changed {
            copy(&from, &to, path, work.spec.run).map_err(refused)?;
        }
        Ok(())
    }

    /// Nothing of the place is left.
    pub(super) fn forget_staged(&self, run: RunId) {
        match fs::remove_dir_all(self.staged_place(run)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::warn!(%run, %error, "outputs that were put aside were left");
            }
            Ok(()) | Err(_) => {}
        }
    }
}
