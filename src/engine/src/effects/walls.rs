//! The walls around the commands of a run. Raising them takes as long as a short command runs, and most runs have the
//! same: so they are kept for a few seconds.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::super::key_files;
use super::super::walls::{Grounds, Readable};
use super::super::work::Work;
use super::place::Place;
use super::{Performer, lock};
use crate::clock::Clock;
use crate::git::{self, TrackedChanges};
use crate::model::RunId;
use crate::model::diagnostic::chain;
use crate::model::evidence::CHANGES_SHOWN_MAX;
use crate::model::outcome::{Failure, Step};
use crate::model::sandbox::{Level, Sandbox};
use crate::process::{self, RaisedWall};

/// How long looking for changed files may take, in milliseconds; in a repository where it takes longer, it is left out.
const STATUS_MS_MAX: u64 = 200;

/// How long nobody looks after that, in milliseconds: a look cannot be cut short, so each run would pay for one.
const STATUS_REST_MS: u64 = 60_000;

/// How many kinds of walls are kept.
const KINDS_MAX: usize = 64;

/// Walls that were raised a moment ago.
///
/// They are given up every few seconds, because the kernel keeps files that are granted until then. They only ever
/// grant what was there when they were raised, so one that is out of date refuses more than it has to.
#[derive(Default)]
pub(super) struct Walls {
    kinds: Mutex<Vec<Kind>>,
    /// Which tracked files had changed before the command of a run that may change none, and has no walls.
    watched: Mutex<HashMap<RunId, TrackedChanges>>,
    looks: BoundedLooks,
    /// Files of keys that were named since the engine started: a definition that breaks, or that is edited while what it
    /// named is in use, must not uncover them.
    keys: Mutex<BTreeSet<PathBuf>>,
}

/// Looks that are given up where they take too long.
#[derive(Default)]
struct BoundedLooks {
    /// On the monotonic clock, in milliseconds.
    rest_until: Mutex<u64>,
}

impl BoundedLooks {
    /// What a look finds; `None` where it took too long, or where one did a short while ago.
    fn look<T>(
        &self,
        clock: &dyn Clock,
        ms_max: u64,
        look: impl FnOnce() -> Option<T>,
    ) -> Option<T> {
        let begun = clock.monotonic_ms();
        if begun < *lock(&self.rest_until) {
            return None;
        }
        let found = look();
        let ended = clock.monotonic_ms();
        if ended.saturating_sub(begun) <= ms_max {
            return found;
        }
        *lock(&self.rest_until) = ended.saturating_add(STATUS_REST_MS);
        None
    }
}

/// What may be read for one `sandbox`, and the walls around one directory for temporary files each.
struct Kind {
    sandbox: Sandbox,
    readable: Arc<Readable>,
    stamps: Vec<Option<DirStamp>>,
    raised: Vec<(Vec<Option<DirStamp>>, Arc<RaisedWall>)>,
}

/// Tells whether the entries of a directory are what they were: device, inode, and in nanoseconds the time of the
/// last change of its entries, which is left out where those do not matter.
type DirStamp = (u64, u64, Option<(i64, i64)>);

impl Walls {
    /// Keeps nothing any more.
    pub(super) fn let_go(&self) {
        lock(&self.kinds).clear();
    }

    /// Nothing is watched for this run any more.
    pub(super) fn forget(&self, run: RunId) {
        lock(&self.watched).remove(&run);
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

    fn kind(&self, sandbox: &Sandbox) -> Option<(Arc<Readable>, Vec<Option<DirStamp>>)> {
        let kinds = lock(&self.kinds);
        let kind = kinds.iter().find(|kind| kind.sandbox == *sandbox)?;
        Some((Arc::clone(&kind.readable), kind.stamps.clone()))
    }

    fn raised(
        &self,
        readable: &Arc<Readable>,
        write: &[Option<DirStamp>],
    ) -> Option<Arc<RaisedWall>> {
        let kinds = lock(&self.kinds);
        let kind = kinds
            .iter()
            .find(|kind| Arc::ptr_eq(&kind.readable, readable))?;
        let found = kind.raised.iter().find(|(stamps, _)| stamps == write)?;
        Some(Arc::clone(&found.1))
    }

    fn keep(&self, readable: &Arc<Readable>, write: Vec<Option<DirStamp>>, wall: &Arc<RaisedWall>) {
        let mut kinds = lock(&self.kinds);
        if let Some(kind) = kinds
            .iter_mut()
            .find(|kind| Arc::ptr_eq(&kind.readable, readable))
        {
            kind.raised.push((write, Arc::clone(wall)));
        }
    }
}

fn stamps(paths: &[PathBuf], entries: bool) -> Vec<Option<DirStamp>> {
    let stamp = |path: &PathBuf| {
        let found = fs::metadata(path).ok()?;
        let changed = entries.then(|| (found.mtime(), found.mtime_nsec()));
        Some((found.dev(), found.ino(), changed))
    };
    paths.iter().map(stamp).collect()
}

impl Performer {
    /// Returns the files that hold keys of models and of servers, the token of MCP over TCP, addresses of webhooks, and
    /// secrets of skills.
    pub(super) fn key_files(&self) -> Vec<PathBuf> {
        let (catalog, environment) = (self.parts.definitions.current(), &self.parts.environment);
        let files = key_files::named(&catalog, environment);
        let mut keys = lock(&self.walls.keys);
        keys.extend(files);
        keys.iter().cloned().collect()
    }

    /// Where the kernel keeps nothing from a run that may change nothing: notes what is changed already.
    pub(super) fn watch_checkout(&self, work: &Work) {
        let asks = work.spec.sandbox.is_some() && !work.spec.plan.mutating;
        if !asks || process::walls_stand() {
            return;
        }
        let look = || git::tracked_changes(&self.parts.workspace).ok().flatten();
        let found = self
            .walls
            .looks
            .look(&*self.parts.clock, STATUS_MS_MAX, look);
        if let Some(changes) = found {
            lock(&self.walls.watched).insert(work.spec.run, changes);
        }
    }

    /// Fails where tracked files have changed since then. Nothing is put back: it may have been a person.
    pub(super) fn checkout_changed(&self, work: &Work) -> Option<Failure> {
        let before = lock(&self.walls.watched).remove(&work.spec.run)?;
        let now = git::tracked_changes(&self.parts.workspace);
        let now = now.ok().flatten()?;
        let changed = now
            .iter()
            .filter(|(path, how)| before.get(*path) != Some(how));
        let restored = before.keys().filter(|path| !now.contains_key(*path));
        let changed: Vec<String> = changed
            .map(|(path, _)| path)
            .chain(restored)
            .map(|path| format!("`{path}`"))
            .collect();
        if changed.is_empty() {
            return None;
        }
        let shown = changed.iter().take(CHANGES_SHOWN_MAX);
        let shown: Vec<&str> = shown.map(String::as_str).collect();
        let message = format!(
            "{} of the checkout changed, but the skill is not mutating; nothing was reverted",
            shown.join(", ")
        );
        Some(Failure::new(Step::Verify, "tree_changed", message))
    }
}

/// Where git finds the objects that the tree of a run does not have itself; of interest where not all is readable.
fn borrowed_by(work: &Work) -> Vec<PathBuf> {
    let narrow = work
        .spec
        .sandbox
        .as_ref()
        .is_some_and(|sandbox| sandbox.reads.is_some() || sandbox.level == Level::Private);
    let tree = work.spec.tree.as_ref().filter(|_| narrow);
    let facts = tree.and_then(|tree| git::locate(Path::new(&tree.workdir)).ok());
    let objects = facts.map(|facts| facts.common_dir.join("objects"));
    objects.into_iter().collect()
}

impl Performer {
    /// Refuses a sandboxed run with an output that leads to a hidden file, because the engine would read or replace it
    /// with its own rights.
    pub(super) fn refuse_hidden_outputs(&self, work: &Work) -> Result<(), Failure> {
        let spec = &work.spec;
        let outputs = spec
            .outputs
            .iter()
            .filter_map(|output| output.path.as_ref());
        let outputs = outputs.map(|path| (Path::new(&spec.workspace).join(path), true));
        self.refuse_hidden(work, &outputs.collect::<Vec<_>>())
    }

    /// Refuses paths of a sandboxed run that lead to a hidden file, or that are taken whole (`true`) and hold one.
    pub(super) fn refuse_hidden(
        &self,
        work: &Work,
        paths: &[(PathBuf, bool)],
    ) -> Result<(), Failure> {
        if work.spec.sandbox.is_none() || paths.is_empty() {
            return Ok(());
        }
        let (keys, catalog) = (self.key_files(), self.parts.definitions.current());
        let grounds = Grounds {
            workspace: &self.parts.workspace,
            state_dir: &self.parts.state_dir,
            trees: self.parts.trees.as_deref().ok(),
            repository: &[],
            keys: &keys,
            environment: &self.parts.environment,
            catalog: &catalog,
        };
        let mut paths = paths.iter();
        match paths.find(|(path, is_whole)| grounds.hides(path, *is_whole)) {
            None => Ok(()),
            Some((path, _)) => {
                let message = format!(
                    "`{}` leads to a file that is hidden from runs; name another path",
                    path.display()
                );
                Err(Failure::new(Step::Prepare, "hidden_path", message))
            }
        }
    }

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
        let mut own = vec![scratch.to_owned()];
        own.extend(place.tree().map(Path::to_owned));
        if work.spec.stages_outputs() {
            own.push(self.staged_place(work.spec.run));
        }
        // Directories for temporary files serve one run after the other; all else is made for one run.
        let of_many = own.len() == 1;
        for path in &mut own {
            if let Ok(real) = path.canonicalize() {
                *path = real;
            }
        }
        let repository = borrowed_by(work);
        let keys = self.key_files();
        let definitions = self.parts.definitions.current();
        let grounds = Grounds {
            workspace: &self.parts.workspace,
            state_dir: &self.parts.state_dir,
            trees: self.parts.trees.as_deref().ok(),
            repository: &repository,
            keys: &keys,
            environment: &self.parts.environment,
            catalog: &definitions,
        };
        let abi = process::landlock_abi();
        if !process::walls_stand() && grounds.lacking(sandbox, abi).is_none() {
            return Ok(None);
        }
        let readable = self.walls.readable(&grounds, sandbox)?;
        let mut wall = grounds.wall(sandbox, &readable, own)?;
        if let Some(container) = wall.container.as_mut().filter(|_| work.spec.may_control) {
            container.sockets.extend(self.parts.socket.clone());
        }
        let write = stamps(&wall.write, false);
        if let Some(raised) = self.walls.raised(&readable, &write) {
            return Ok(Some(raised));
        }
        let raised = Arc::new(wall.raise().map_err(|error| chain(&error))?);
        // A container is told paths, which are the run's own.
        if of_many && raised.level() == 1 {
            self.walls.keep(&readable, write, &raised);
        }
        Ok(Some(raised))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::FakeClock;
    use crate::model::Timestamp;

    #[test]
    fn a_look_that_takes_too_long_counts_for_nothing_and_is_not_repeated_at_once() {
        let (clock, looks) = (
            FakeClock::at(Timestamp::from_millis(0)),
            BoundedLooks::default(),
        );
        let took = |ms: u64| {
            looks.look(&clock, 200, || {
                clock.advance(ms);
                Some(ms)
            })
        };
        assert_eq!((took(0), took(200)), (Some(0), Some(200)));
        assert_eq!(took(201), None);
        let before = clock.monotonic_ms();
        assert_eq!(took(1), None);
        assert_eq!(clock.monotonic_ms(), before, "nobody looked");
        clock.advance(STATUS_REST_MS);
        assert_eq!(took(1), Some(1));
    }
}
