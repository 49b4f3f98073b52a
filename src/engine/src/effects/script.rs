//! The script of a mutating run. It runs from the run's tree if the tree has the version that was accepted; otherwise
//! from a copy beside it, because the tree holds what is committed on its branch and nothing else.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::super::work::Work;
use super::Performer;
use super::place::Place;
use crate::model::legible::hex;
use crate::model::outcome::{Failure, Step};
use crate::model::spec::Program;

/// Bytes of the directory of a script that are copied at most.
const COPY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The copy, in the run's directory for temporary files.
const DIRECTORY: &str = "script";

impl Performer {
    /// Returns the program of the skill, with the script in a copy if the tree has another version of it.
    pub(super) fn program<'a>(&self, work: &'a Work) -> Result<Cow<'a, Program>, Failure> {
        let program = &work.spec.program;
        let Program::Argv { argv, attempt_at } = program else {
            return Ok(Cow::Borrowed(program));
        };
        let place = self.place(work)?;
        let Some((path, digest)) = script_outside(work, &place) else {
            return Ok(Cow::Borrowed(program));
        };
        let copy = self.copy_script(work, &path, &digest)?;
        let in_tree = place.of(&path.to_string_lossy());
        let replace = |argument: &String| {
            if Path::new(&*place.fill(argument)) == in_tree {
                copy.to_string_lossy().into_owned()
            } else {
                argument.clone()
            }
        };
        Ok(Cow::Owned(Program::Argv {
            argv: argv.iter().map(replace).collect(),
            attempt_at: attempt_at.clone(),
        }))
    }

    /// Returns a warning if the script ran from a copy: paths relative to the script lead there.
    pub(super) fn script_note(&self, work: &Work) -> Option<String> {
        let scratch = self.scratch.of(work.spec.run).ok()?;
        let (path, _) = scripts(work).find(|(path, _)| copy_of(&scratch, path).exists())?;
        let branch = work.spec.tree.as_ref()?.branch();
        Some(format!(
            "`{path}` is not committed on `{branch}` as it is in the checkout, so a copy outside of the run's tree ran"
        ))
    }

    fn copy_script(&self, work: &Work, path: &Path, digest: &str) -> Result<PathBuf, Failure> {
        let scratch = self.scratch.of(work.spec.run);
        let scratch = scratch.map_err(|why| Failure::new(Step::Execute, "scratch", why))?;
        let shown = path.display();
        let failed = |error: io::Error| {
            let message = format!("the script `{shown}` cannot be copied: {error}");
            Failure::new(Step::Execute, "script_copy", message)
        };
        let to = scratch.join(DIRECTORY);
        if to.exists() {
            fs::remove_dir_all(&to).map_err(failed)?;
        }
        let from = path.parent().unwrap_or(path);
        let mut left = COPY_BYTES_MAX;
        if !copy_directory(from, &to, &mut left).map_err(failed)? {
            let message = format!(
                "`{}` holds more than {} MiB, which is too much to copy: commit the script on the branch of the run, so \
                 that it runs in its tree, or move other files out of its directory",
                from.display(),
                COPY_BYTES_MAX >> 20
            );
            return Err(Failure::new(Step::Execute, "script_copy", message));
        }
        let copy = copy_of(&scratch, &path.to_string_lossy());
        if digest_of(&copy).map_err(failed)? != digest {
            let message = format!("the script `{shown}` changed since the run was accepted");
            return Err(Failure::new(Step::Execute, "script_changed", message));
        }
        Ok(copy)
    }
}

/// Returns the script and its accepted digest if the tree of the run has another version of it, or none.
fn script_outside(work: &Work, place: &Place) -> Option<(PathBuf, String)> {
    place.tree()?;
    let mut scripts = scripts(work);
    scripts.find_map(|(path, digest)| {
        let in_tree = place.of(path);
        let is_mapped = in_tree != Path::new(path);
        let is_same = digest_of(&in_tree).is_ok_and(|found| found == digest);
        (is_mapped && !is_same).then(|| (PathBuf::from(path), digest.to_owned()))
    })
}

fn scripts(work: &Work) -> impl Iterator<Item = (&str, &str)> {
    let requires = work.spec.requires.iter();
    requires.filter_map(|(path, digest)| Some((path.as_str(), digest.as_deref()?)))
}

fn copy_of(scratch: &Path, path: &str) -> PathBuf {
    let name = Path::new(path).file_name().unwrap_or_default();
    scratch.join(DIRECTORY).join(name)
}

fn digest_of(path: &Path) -> io::Result<String> {
    fs::read(path).map(|content| hex(&Sha256::digest(&content)))
}

/// Copies a directory without repositories in it; returns false if it holds more than `left` bytes.
fn copy_directory(from: &Path, to: &Path, left: &mut u64) -> io::Result<bool> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        let found = entry.metadata()?;
        if found.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(&path)?, &copy)?;
        } else if found.is_dir() && entry.file_name() != ".git" {
            if !copy_directory(&path, &copy, left)? {
                return Ok(false);
            }
        } else if found.is_file() {
            let Some(rest) = left.checked_sub(found.len()) else {
                return Ok(false);
            };
            *left = rest;
            fs::copy(&path, &copy)?;
        }
    }
    Ok(true)
}
