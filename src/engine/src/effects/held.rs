//! What a person is asked about: put aside, so that the run holds no tree while it waits.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::super::approval;
use super::super::baseline::KeptResult;
use super::super::output_files::sha256;
use super::super::outputs::{OutputError, SandboxedDir};
use super::super::work::Work;
use super::place::{temporary_beside, tree_spec};
use super::{Performer, failure, git_failure};
use crate::git::{self, RepoPath};
use crate::machine::Event;
use crate::model::RunId;
use crate::model::evidence::{HeldOutput, HeldResult};
use crate::model::outcome::{Failure, Step};

/// Most bytes of an output that waits for approval. Its digest is computed several times. A sparse file of terabytes takes
/// no space on the disk, but its digest would keep the engine busy for hours.
const BYTES_MAX: u64 = 16 << 30;

impl Performer {
    /// Puts the result aside for a person; `None` where there is nothing of it to ask about.
    pub(super) fn hold(
        &self,
        work: &Work,
        commit: Option<String>,
    ) -> Result<Option<Event>, Failure> {
        // An engine that was lost after this point may have emptied the tree already.
        if let Some(result) = self.noted(work) {
            return Ok(Some(Event::Held { result }));
        }
        let outputs = self.put_aside(work)?;
        if commit.is_none() && outputs.is_empty() {
            return Ok(None);
        }
        let result = HeldResult { commit, outputs };
        self.note(work, &result)
            .map_err(|error| failure(Step::Commit, "output_not_held", &error))?;
        self.empty_tree(work);
        Ok(Some(Event::Held { result }))
    }

    fn noted(&self, work: &Work) -> Option<HeldResult> {
        let text = fs::read(self.held_note(work.spec.run)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Notes, durably, that all that is held has been put aside.
    fn note(&self, work: &Work, result: &HeldResult) -> io::Result<()> {
        let note = self.held_note(work.spec.run);
        let place = note.parent().unwrap_or(&note);
        fs::create_dir_all(place)?;
        rustix::fs::syncfs(File::open(place)?)?;
        let part = note.with_extension("part");
        let mut file = File::create(&part)?;
        file.write_all(&serde_json::to_vec(result)?)?;
        file.sync_all()?;
        fs::rename(&part, &note)?;
        File::open(place)?.sync_all()
    }

    fn held_note(&self, run: RunId) -> PathBuf {
        self.held_place(run).with_extension("json")
    }

    /// Copies declared outputs that git ignores out of the tree: the commit has the others.
    fn put_aside(&self, work: &Work) -> Result<Vec<HeldOutput>, Failure> {
        let refused = |error: OutputError| failure(Step::Commit, "output_not_held", &error);
        let io = |error: io::Error| failure(Step::Commit, "output_not_held", &error);
        let ignored = self.ignored_outputs(work)?;
        if ignored.is_empty() {
            return Ok(Vec::new());
        }
        let place = self.held_place(work.spec.run);
        // Left where an engine ended half-way.
        self.forget_held(work.spec.run);
        fs::create_dir_all(&place).map_err(io)?;
        let (from, to) = (
            self.sandboxed_dir(work)?,
            SandboxedDir::open(&place).map_err(refused)?,
        );
        let mut outputs = Vec::new();
        for path in ignored {
            let Some(stamp) = from.stamp(path).map_err(refused)? else {
                continue;
            };
            if stamp.bytes > BYTES_MAX {
                let message = format!(
                    "`{path}` has {} bytes; an output that git ignores can have at most 16 GiB if the result waits for approval",
                    stamp.bytes
                );
                return Err(Failure::new(Step::Commit, "output_not_held", message));
            }
            copy(&from, &to, path, work.spec.run).map_err(refused)?;
            outputs.push(measured(&place, path).map_err(io)?);
        }
        Ok(outputs)
    }

    /// Declared outputs that git ignores, of a run that has its tree.
    pub(super) fn ignored_outputs<'a>(&self, work: &'a Work) -> Result<Vec<&'a String>, Failure> {
        let spec = tree_spec(work)?;
        let mut ignored = Vec::new();
        for path in work.spec.outputs.iter().filter_map(|o| o.path.as_ref()) {
            let tree = self.tree(work)?;
            let place = Path::new(&work.spec.workspace).join(path);
            let Ok(relative) = place.strip_prefix(&spec.workdir) else {
                continue;
            };
            let in_tree = |kept: &KeptResult| {
                let path = RepoPath::from_bytes(relative.as_os_str().as_bytes()).ok()?;
                let mut tree = super::lock(&tree);
                tree.is_ignored(&kept.base.start, &kept.change, &path).ok()
            };
            // A tree that a power cut has torn says nothing; its files were synced.
            let found = work
                .kept_result()
                .as_ref()
                .and_then(in_tree)
                .map_or_else(|| git::is_ignored(Path::new(&spec.workdir), relative), Ok)
                .map_err(|error| git_failure(Step::Land, work, &error))?;
            if found {
                ignored.push(path);
            }
        }
        Ok(ignored)
    }

    /// Fails where what would happen is not what was approved.
    pub(super) fn refuse_unapproved(&self, work: &Work, step: Step) -> Result<(), Failure> {
        let changed = |message: String| Err(Failure::new(step, "approval_changed", message));
        if !approval::stands(&work.spec, &work.run) {
            return changed("what is stored of the run is not what was approved".to_owned());
        }
        let Some(held) = &work.run.facts.held else {
            return Ok(());
        };
        let place = self.held_place(work.spec.run);
        for output in &held.outputs {
            if !measured(&place, &output.path).is_ok_and(|found| found == *output) {
                let path = place.join(&output.path);
                return changed(format!("`{}` is not what was approved", path.display()));
            }
        }
        Ok(())
    }

    /// Gives a tree, made anew, what was put aside: checks look at it.
    pub(super) fn bring_back(&self, work: &Work) -> Result<(), Failure> {
        let Some(held) = &work.run.facts.held else {
            return Ok(());
        };
        self.refuse_unapproved(work, Step::Record)?;
        let refused = |error: OutputError| failure(Step::Record, "output_not_held", &error);
        let from = SandboxedDir::open(&self.held_place(work.spec.run));
        let to = self.sandboxed_dir(work)?;
        for output in &held.outputs {
            let from = from
                .as_ref()
                .map_err(|error| failure(Step::Record, "output_not_held", error))?;
            copy(from, &to, &output.path, work.spec.run).map_err(refused)?;
        }
        Ok(())
    }

    /// Where outputs of a run wait.
    pub(super) fn held_place(&self, run: RunId) -> PathBuf {
        approval::held_place(&self.parts.state_dir, run)
    }

    /// Nothing of the run waits any more.
    pub(super) fn forget_held(&self, run: RunId) {
        let removed = [
            fs::remove_file(self.held_note(run)),
            fs::remove_dir_all(self.held_place(run)),
        ];
        for error in removed.into_iter().filter_map(Result::err) {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(%run, %error, "the outputs that were stored for the approval of the run could not be removed");
            }
        }
    }
}

/// Copies an output from one workspace to another, durably and by rename.
pub(super) fn copy(
    from: &SandboxedDir,
    to: &SandboxedDir,
    path: &str,
    run: RunId,
) -> Result<(), OutputError> {
    let temporary = temporary_beside(path, run);
    to.make_parents(path)?;
    to.discard(&temporary)?;
    to.copy_from(from, path, &temporary)?;
    to.publish(&temporary, path)
}

fn measured(place: &Path, path: &str) -> io::Result<HeldOutput> {
    let (digest, bytes) = sha256(fs::File::open(place.join(path))?)?;
    Ok(HeldOutput {
        path: path.to_owned(),
        bytes,
        digest,
    })
}
