//! The script of a run. What executes is never the file that the definition names but a copy of the bytes whose digest
//! was accepted: a name can lead to another file between a look at it and its execution.
//!
//! A copy rather than a descriptor, because `$0` has to say where the script lies: scripts find the files next to them
//! by it. In the run's tree the copy lies next to the script, so that `$0` leads to the same directory. A checkout gets
//! no files of a run, so the copy lies in the run's directory for temporary files, among links to what lies next to the
//! script and above it.

use std::borrow::Cow;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::super::work::Work;
use super::Performer;
use super::place::Place;
use super::scratch;
use crate::model::legible::hex;
use crate::model::outcome::{Failure, Step};
use crate::model::spec::Program;

/// The copy of a script of the checkout, in the run's directory for temporary files.
const DIRECTORY: &str = "script";

/// Begins the name of a copy in a tree, where git ignores it.
const PREFIX: &str = workerctl_trees::SCRIPT_COPY;

/// Links beside the copy of a script of the checkout.
const LINKS_MAX: usize = 20_000;

/// Permission bits of the directories with links: what a script writes next to itself would be lost.
const MODE: u32 = 0o555;

/// The accepted bytes of a script.
struct Accepted {
    content: Vec<u8>,
    mode: u32,
}

impl Performer {
    /// Returns the program of the skill, with the copy in the place of its script.
    pub(super) fn program<'a>(&self, work: &'a Work) -> Result<Cow<'a, Program>, Failure> {
        let program = &work.spec.program;
        let (Program::Argv { argv, attempt_at }, Some((path, digest))) = (program, script(work))
        else {
            return Ok(Cow::Borrowed(program));
        };
        let place = self.place(work)?;
        let copy = self.copy_script(work, &place, path, digest)?;
        let copy = copy.to_string_lossy().into_owned();
        let mut argv = argv.clone();
        let named = place.of(path);
        let is_script = |argument: &&mut String| Path::new(&*place.fill(argument)) == named;
        if let Some(argument) = argv.iter_mut().find(is_script) {
            *argument = copy;
        }
        let attempt_at = attempt_at.clone();
        Ok(Cow::Owned(Program::Argv { argv, attempt_at }))
    }

    /// Returns a warning if a script ran that the tree does not have: paths relative to it lead to the checkout.
    pub(super) fn script_note(&self, work: &Work) -> Option<String> {
        let scratch = self.scratch.of(work.spec.run).ok()?;
        let (path, _) = script(work)?;
        let branch = work.spec.tree.as_ref()?.branch();
        scratch.join(DIRECTORY).exists().then(|| {
            format!(
                "`{path}` in the checkout is not the version that is committed on `{branch}`, so a copy outside of the worktree was executed"
            )
        })
    }

    /// Removes the copy from the tree, before what the run left there is looked at.
    pub(super) fn forget_script(&self, work: &Work) {
        if let Some((path, _)) = script(work)
            && work.spec.tree.is_some()
            && let Ok(place) = self.place(work)
        {
            let _ = fs::remove_file(copy_beside(work, &place.of(path)));
        }
    }

    fn copy_script(
        &self,
        work: &Work,
        place: &Place,
        path: &str,
        digest: &str,
    ) -> Result<PathBuf, Failure> {
        let scratch = self.scratch.of(work.spec.run);
        let scratch = scratch.map_err(|why| Failure::new(Step::Execute, "scratch", why))?;
        let failed = |error: io::Error| {
            let message = format!("the script `{path}` cannot be copied: {error}");
            Failure::new(Step::Execute, "script_copy", message)
        };
        let named = place.of(path);
        if place.tree().is_some()
            && named != Path::new(path)
            && let Ok(Some(accepted)) = accepted(&named, digest)
        {
            let copy = copy_beside(work, &named);
            accepted.write(&copy).map_err(failed)?;
            return Ok(copy);
        }
        let path = Path::new(path);
        let Some(accepted) = accepted(path, digest).map_err(failed)? else {
            let message = format!(
                "the script `{}` changed since the run was accepted",
                path.display()
            );
            return Err(Failure::new(Step::Execute, "script_changed", message));
        };
        copy_apart(work, path, &accepted, &scratch.join(DIRECTORY)).map_err(failed)
    }
}

impl Accepted {
    fn write(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(self.mode);
        options.open(path)?.write_all(&self.content)
    }
}

/// Reads a script; `None`: it is not the one that was accepted.
fn accepted(path: &Path, digest: &str) -> io::Result<Option<Accepted>> {
    let mut file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    let is_accepted = hex(&Sha256::digest(&content)) == digest;
    Ok(is_accepted.then_some(Accepted { content, mode }))
}

/// The script of a run, and its accepted digest.
fn script(work: &Work) -> Option<(&str, &str)> {
    let mut requires = work.spec.requires.iter();
    requires.find_map(|(path, digest)| Some((path.as_str(), digest.as_deref()?)))
}

/// The copy of a script that lies in a tree.
fn copy_beside(work: &Work, script: &Path) -> PathBuf {
    let name = script.file_name().unwrap_or_default().to_string_lossy();
    script.with_file_name(format!("{PREFIX}{}-{name}", work.spec.run.short()))
}

/// Copies a script of the checkout to the same depth below a directory as it has in the workspace, among links to
/// everything that lies next to it and next to the directories above it.
fn copy_apart(work: &Work, script: &Path, accepted: &Accepted, to: &Path) -> io::Result<PathBuf> {
    scratch::remove(to)?;
    let workspace = fs::canonicalize(&work.spec.workspace)?;
    let directory = script.parent().unwrap_or(script);
    let (mut from, below) = match script.strip_prefix(&workspace) {
        Ok(below) => (workspace, below),
        Err(_) => (
            directory.to_owned(),
            Path::new(script.file_name().unwrap_or_default()),
        ),
    };
    // Git commands of a mutating run must not take the checkout for its tree.
    let hides_git = work.spec.tree.is_some();
    let (mut at, mut left, mut made) = (to.to_owned(), LINKS_MAX, Vec::new());
    for name in below {
        fs::create_dir(&at)?;
        made.push(at.clone());
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let other = entry.file_name();
            if other == name || hides_git && other == ".git" {
                continue;
            }
            left = left.checked_sub(1).ok_or_else(|| {
                io::Error::other(format!(
                    "more than {LINKS_MAX} files lie next to it and above it"
                ))
            })?;
            symlink(entry.path(), at.join(other))?;
        }
        from.push(name);
        at.push(name);
    }
    accepted.write(&at)?;
    for directory in made {
        fs::set_permissions(directory, Permissions::from_mode(MODE))?;
    }
    Ok(at)
}
