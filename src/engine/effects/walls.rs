//! The walls around the commands of a run. Raising them takes as long as a short command runs, and most runs have the
//! same: so they are kept for a few seconds.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::super::walls::{Grounds, Readable};
use super::super::work::Work;
use super::place::Place;
use super::{Performer, lock};
use crate::model::diagnostic::chain;
use crate::model::sandbox::Sandbox;
use crate::process::{self, RaisedWall};

/// How many kinds of walls are kept.
const KINDS_MAX: usize = 64;

/// Walls that were raised a moment ago.
///
/// They are given up every few seconds, because the kernel keeps files that are granted until then. They only ever
/// grant what was there when they were raised, so one that is out of date refuses more than it has to.
#[derive(Default)]
pub(super) struct Walls {
    kinds: Mutex<Vec<Kind>>,
}

/// What may be read for one `sandbox`, and the walls around one directory for temporary files each.
struct Kind {
    sandbox: Sandbox,
    readable: Arc<Readable>,
    stamps: Vec<Option<Stamp>>,
    raised: Vec<(Vec<Option<Stamp>>, Arc<RaisedWall>)>,
}

/// Tells whether the entries of a directory are what they were: device, inode, and in nanoseconds the time of the
/// last change of its entries, which is left out where those do not matter.
type Stamp = (u64, u64, Option<(i64, i64)>);

impl Walls {
    /// Keeps nothing any more.
    pub(super) fn let_go(&self) {
        lock(&self.kinds).clear();
    }

    fn readable(&self, grounds: &Grounds<'_>, sandbox: &Sandbox) -> Result<Arc<Readable>, String> {
        if let Some((readable, kept)) = self.kind(sandbox)
            && stamps(&readable.looked_through, true) == kept
        {
            return Ok(readable);
        }
        let readable = Arc::new(grounds.readable(sandbox)?);
        let mut kinds = lock(&self.kinds);
        kinds.retain(|kind| kind.sandbox != *sandbox);
        if kinds.len() < KINDS_MAX {
            kinds.push(Kind {
                sandbox: sandbox.clone(),
                stamps: stamps(&readable.looked_through, true),
                readable: Arc::clone(&readable),
                raised: Vec::new(),
            });
        }
        Ok(readable)
    }

    fn kind(&self, sandbox: &Sandbox) -> Option<(Arc<Readable>, Vec<Option<Stamp>>)> {
        let kinds = lock(&self.kinds);
        let kind = kinds.iter().find(|kind| kind.sandbox == *sandbox)?;
        Some((Arc::clone(&kind.readable), kind.stamps.clone()))
    }

    fn raised(&self, readable: &Arc<Readable>, write: &[Option<Stamp>]) -> Option<Arc<RaisedWall>> {
        let kinds = lock(&self.kinds);
        let kind = kinds
            .iter()
            .find(|kind| Arc::ptr_eq(&kind.readable, readable))?;
        let found = kind.raised.iter().find(|(stamps, _)| stamps == write)?;
        Some(Arc::clone(&found.1))
    }

    fn keep(&self, readable: &Arc<Readable>, write: Vec<Option<Stamp>>, wall: &Arc<RaisedWall>) {
        let mut kinds = lock(&self.kinds);
        if let Some(kind) = kinds
            .iter_mut()
            .find(|kind| Arc::ptr_eq(&kind.readable, readable))
        {
            kind.raised.push((write, Arc::clone(wall)));
        }
    }
}

fn stamps(paths: &[PathBuf], entries: bool) -> Vec<Option<Stamp>> {
    let stamp = |path: &PathBuf| {
        let found = fs::metadata(path).ok()?;
        let changed = entries.then(|| (found.mtime(), found.mtime_nsec()));
        Some((found.dev(), found.ino(), changed))
    };
    paths.iter().map(stamp).collect()
}

impl Performer {
    /// The walls of a run's commands; `None`: it asks for none, or does without where the kernel has none.
    pub(super) fn wall(
        &self,
        work: &Work,
        scratch: &Path,
        place: &Place,
    ) -> Result<Option<Arc<RaisedWall>>, String> {
        let Some(sandbox) = &work.spec.sandbox else {
            return Ok(None);
        };
        if !process::walls_stand() && !sandbox.required {
            return Ok(None);
        }
        let mut own = vec![scratch.to_owned()];
        own.extend(place.tree().map(Path::to_owned));
        if work.spec.stages_outputs() {
            own.push(self.staged_place(work.spec.run));
        }
        // Directories for temporary files serve one run after the other; all else is made for one run.
        let of_many = own.len() == 1;
        let grounds = Grounds {
            workspace: &self.parts.workspace,
            state_dir: &self.parts.state_dir,
            trees: self.parts.trees.as_deref().ok(),
            environment: &self.parts.environment,
        };
        let readable = self.walls.readable(&grounds, sandbox)?;
        let wall = grounds.wall(sandbox, &readable, own)?;
        let write = stamps(&wall.write, false);
        if let Some(raised) = self.walls.raised(&readable, &write) {
            return Ok(Some(raised));
        }
        let raised = Arc::new(wall.raise().map_err(|error| chain(&error))?);
        if of_many {
            self.walls.keep(&readable, write, &raised);
        }
        Ok(Some(raised))
    }
}
