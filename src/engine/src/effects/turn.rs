//! Turns: a run whose branch has moved under it again and again lands alone in its last round, so that among many
//! runs beside each other none ends without its commit on the branch only because the others were quicker.

use std::path::{Path, PathBuf};

use super::{Performer, lock};
use crate::machine::LANDING_ROUNDS_MAX;
use crate::model::RunId;

/// A repository's common directory, and a branch in it.
pub(super) type Branch = (PathBuf, String);

pub(super) fn branch(common_dir: &Path, target: &str) -> Branch {
    (common_dir.to_owned(), target.to_owned())
}

impl Performer {
    /// The other run that lands alone on the branch for now. One that has ended has no tree any more.
    pub(super) fn whose_turn(&self, branch: &Branch, run: RunId) -> Option<RunId> {
        let holder = lock(&self.turns).get(branch).copied();
        holder.filter(|holder| *holder != run && self.has_tree(*holder))
    }

    /// Gives the run the branch for itself where its next round is its last.
    pub(super) fn take_turn(&self, branch: Branch, run: RunId, rounds: u32) {
        if rounds + 2 >= LANDING_ROUNDS_MAX {
            lock(&self.turns).insert(branch, run);
        }
    }

    /// Lets others go first: what is in this run's way need not be in theirs.
    pub(super) fn pass_turn(&self, branch: &Branch, run: RunId) {
        let mut turns = lock(&self.turns);
        if turns.get(branch) == Some(&run) {
            turns.remove(branch);
        }
    }
}
