//! The file of a declared output of a run, for people: from the run's commit, from where it waits for a person, or from
//! its destination.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::approval::held_place;
use super::outputs::{CONTENT_BYTES_MAX, OutputError, SandboxedDir};
use super::patches;
use super::reading;
use super::view::RunSnapshot;
use crate::git::{self, CommittedFile};
use crate::model::diagnostic::chain;
use crate::model::evidence::OutputState;
use crate::model::legible::hex;
use crate::model::spec::{OutputKind, OutputSpec};
use crate::model::{Diagnostic, Kind};
use crate::protocol::{OutputFile, OutputSource};

/// Largest file that is given, in bytes; one of a commit is held in memory and ends at [`CONTENT_BYTES_MAX`].
const FILE_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// The file of an output.
///
/// # Errors
/// There is none: the run has no such output, did not write it, or it is gone; or it is too large.
pub(super) fn output(
    shown: &RunSnapshot,
    name: &str,
    state_dir: &Path,
) -> Result<OutputFile, Diagnostic> {
    let (spec, short) = (&shown.spec, shown.spec.run.short());
    let declared = spec.outputs.iter().find(|output| output.name == name);
    let Some(declared) = declared else {
        let names: Vec<&str> = spec.outputs.iter().map(|one| one.name.as_str()).collect();
        let message = format!("{short} has no output `{name}`");
        let hint = format!("its outputs: {}", names.join(", "));
        return Err(Diagnostic::new(Kind::NotFound, "no_such_output", message).hint(hint));
    };
    let Some(path) = &declared.path else {
        return Err(no_file(declared));
    };
    let states = reading::detail(shown).outputs;
    let state = states.iter().find(|state| state.name == name);
    let Some(state) = state.filter(|state| state.written) else {
        let why = state.and_then(|state| state.problem.as_deref());
        let message = format!("{short} has not written `{path}`");
        let refused = Diagnostic::new(Kind::NotFound, "output_not_written", message);
        return Err(why.map_or(refused.clone(), |why| refused.hint(why)));
    };
    if let Some(file) = of_commit(shown, path)? {
        return Ok(file);
    }
    let held = shown.run.asked().and(shown.run.facts.held.as_ref());
    if held.is_some_and(|held| held.outputs.iter().any(|one| one.path == *path)) {
        let (file, bytes) = opened(&held_place(state_dir, spec.run), path)?;
        return Ok(file_of(path, OutputSource::Held, file, bytes));
    }
    let (mut file, bytes) = opened(Path::new(&spec.workspace), path)?;
    let changed = is_changed(&mut file, bytes, state).map_err(|error| unreadable(path, &error))?;
    let source = OutputSource::Destination { changed };
    Ok(file_of(path, source, file, bytes))
}

fn no_file(declared: &OutputSpec) -> Diagnostic {
    let what = match declared.kind {
        OutputKind::GitCommit => "consists of the commits of the run: `workerctl diff` shows them",
        _ => "is what its command prints: `workerctl logs` shows it",
    };
    let message = format!("the output `{}` is not a file; it {what}", declared.name);
    Diagnostic::new(Kind::NotFound, "output_no_file", message)
}

/// The file as the run's commit has it, or what is kept of a run that was put back; `None` where git does not have it.
fn of_commit(shown: &RunSnapshot, path: &str) -> Result<Option<OutputFile>, Diagnostic> {
    let Some(tree) = &shown.spec.tree else {
        return Ok(None);
    };
    let workdir = Path::new(&tree.workdir);
    let place = Path::new(&shown.spec.workspace).join(path);
    let Ok(relative) = place.strip_prefix(workdir) else {
        return Ok(None);
    };
    let Some(span) = patches::span(shown)? else {
        return Ok(None);
    };
    let found = git::committed_file(workdir, &span.after, relative, CONTENT_BYTES_MAX);
    match found.map_err(|error| unreadable(path, &error))? {
        None => Ok(None),
        Some(CommittedFile::TooLarge(bytes)) => Err(too_large(path, bytes, CONTENT_BYTES_MAX)),
        Some(CommittedFile::Content(content)) => {
            let bytes = content.len() as u64;
            let source = OutputSource::Commit(span.after.to_string());
            Ok(Some(file_of(path, source, Cursor::new(content), bytes)))
        }
    }
}

fn file_of(
    path: &str,
    source: OutputSource,
    content: impl Read + Send + 'static,
    bytes: u64,
) -> OutputFile {
    OutputFile {
        path: path.to_owned(),
        source,
        bytes,
        // It may grow while it is read.
        content: Box::new(content.take(bytes)),
    }
}

/// A regular file below a directory, reached through no link, and its length.
fn opened(root: &Path, path: &str) -> Result<(File, u64), Diagnostic> {
    let found = SandboxedDir::open(root).and_then(|root| root.open_file(path));
    let file = found.map_err(|error| match error {
        OutputError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            let message = format!("`{path}` is no longer there");
            Diagnostic::new(Kind::NotFound, "output_gone", message)
        }
        OutputError::Escapes { .. } | OutputError::NotAFile { .. } => {
            Diagnostic::new(Kind::NotFound, "output_gone", error.to_string())
        }
        error @ OutputError::Io { .. } => unreadable(path, &error),
    })?;
    let found = file.metadata().map_err(|error| unreadable(path, &error))?;
    match found.len() {
        bytes if bytes > FILE_BYTES_MAX => Err(too_large(path, bytes, FILE_BYTES_MAX)),
        bytes => Ok((file, bytes)),
    }
}

/// Whether it is another file than the run left, as far as its content was looked into then.
fn is_changed(file: &mut File, bytes: u64, state: &OutputState) -> io::Result<Option<bool>> {
    if state.bytes != Some(bytes) {
        return Ok(Some(true));
    }
    let Some(digest) = &state.digest else {
        return Ok(None);
    };
    let (found, _) = sha256(Read::by_ref(file).take(CONTENT_BYTES_MAX))?;
    file.rewind()?;
    Ok(Some(found != *digest))
}

/// Returns the SHA-256 digest of all that a reader returns, in hexadecimal, and the number of bytes.
pub(super) fn sha256(from: impl Read) -> io::Result<(String, u64)> {
    let mut from = BufReader::with_capacity(64 * 1024, from);
    let (mut digest, mut bytes) = (Sha256::new(), 0);
    loop {
        let part = from.fill_buf()?;
        if part.is_empty() {
            return Ok((hex(&digest.finalize()), bytes));
        }
        digest.update(part);
        let read = part.len();
        bytes += read as u64;
        from.consume(read);
    }
}

fn unreadable(path: &str, error: &(dyn std::error::Error + 'static)) -> Diagnostic {
    let message = format!("cannot read `{path}`: {}", chain(error));
    Diagnostic::new(Kind::Internal, "output_unreadable", message)
}

fn too_large(path: &str, bytes: u64, bytes_max: u64) -> Diagnostic {
    let message = format!("`{path}` has {bytes} bytes, and at most {bytes_max} are given");
    Diagnostic::new(Kind::Blocked, "output_too_large", message)
        .hint("copy it where the engine runs")
}
