//! Which store is a workspace's: a workspace that had a store never gets an empty one in silence.
//!
//! A store has an id in `store/id`; the workspace notes it in `.workerctl/store`, with the place where the store
//! was last. Both are compared before anything is made. The store gets its id first and the workspace notes it
//! then, so that whoever is killed in between leaves a workspace that knows of no store and takes this one. Only
//! a store that is made on request, in place of one that is lost, is noted first: until it has the id that is
//! noted, the workspace misses its store as before.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Shortage;
use super::files::{Durability, FileError, open_regular, write_atomically};
use super::lock::{WORKSPACE_FOLDER, made_folder};
use super::sled_open::{DATABASE, moved_aside};
use super::witness;
use crate::model::{Diagnostic, Kind};

/// Name of the id in a store's directory.
const ID: &str = "id";
/// Name of the note in a workspace's folder.
const NOTE: &str = "store";
/// Most bytes that are read of either.
const BYTES_MAX: u64 = 64 * 1024;
/// Code of the refusal of a store that is not the one of the workspace.
pub const OTHER: &str = "store_other";

/// What a workspace notes of its store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    /// The store's id.
    store: String,
    /// The state directory that it was last in.
    #[serde(default)]
    state_dir: String,
    /// The workspace itself: a copy of it has the note too.
    #[serde(default)]
    workspace: String,
}

/// What is known of the store of a workspace.
enum StoreNote {
    /// It had none, as far as is known here.
    Nothing,
    /// It had one, and the note cannot be read.
    Unreadable,
    This(Note),
}

/// The id of the store in a state directory, where it has one.
pub(super) fn id_of(store: &Path) -> Option<String> {
    let text = String::from_utf8(read(&store.join(ID)).ok()??).ok()?;
    let id = text.trim();
    let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}

/// Refuses where the workspace had a store, and the state directory holds none or another. Changes nothing.
///
/// # Errors
/// Says where the store was, and what can be done.
pub fn check(workspace: &Path, state_dir: &Path) -> Result<(), Diagnostic> {
    let store = state_dir.join("store");
    let (note, missing) = (noted(workspace)?, !is_there(&store)?);
    match note {
        StoreNote::Unreadable if missing => Err(store_missing(state_dir, None)),
        StoreNote::This(note) if missing => Err(store_missing(state_dir, Some(&note))),
        StoreNote::This(note) => match id_of(&store) {
            Some(id) if id == note.store => Ok(()),
            // An earlier version wrote it, or whoever made it on request was killed.
            None if Path::new(&note.state_dir) == state_dir => Ok(()),
            _ => Err(other_store(workspace, state_dir, &note)),
        },
        // What cannot be read is written anew.
        StoreNote::Nothing | StoreNote::Unreadable => Ok(()),
    }
}

/// Refuses a state directory in which git tracks a file, given as `tracked`: a commit brought it here, and its store would
/// make the engine execute what somebody else has written.
///
/// # Errors
/// A path is given.
pub fn refuse_tracked(state_dir: &Path, tracked: Option<&Path>) -> Result<(), Diagnostic> {
    let Some(tracked) = tracked else {
        return Ok(());
    };
    let (state_dir, tracked) = (state_dir.display(), tracked.display());
    let message = format!(
        "git tracks `{tracked}` in the state directory `{state_dir}`: a commit may have put a store there"
    );
    Err(Diagnostic::new(Kind::Blocked, "state_tracked", message)
        .hint(format!(
            "if you do not recognize the files, delete them; if they are your own store, untrack them with `git rm -r --cached '{state_dir}'` and add the directory to `.gitignore`"
        ))
        .hint("or use another directory: `--state-dir DIR`"))
}

/// Gives the store its id where it has none, and notes it in the workspace. The caller holds both.
///
/// # Errors
/// As [`check`], or one of them cannot be written.
pub fn settle(workspace: &Path, state_dir: &Path) -> Result<(), Diagnostic> {
    check(workspace, state_dir)?;
    let store = state_dir.join("store");
    let (noted, id) = (noted(workspace)?, id_of(&store));
    let note = Note {
        store: match (&id, &noted) {
            (Some(id), _) => id.clone(),
            (None, StoreNote::This(note)) => note.store.clone(),
            (None, _) => fresh()?,
        },
        state_dir: shown(state_dir),
        workspace: shown(&real(workspace)),
    };
    // The id before the note; the head of this file says why.
    if id.is_none() {
        write_id(&store, &note.store)?;
    }
    match noted {
        StoreNote::This(known) if known == note => Ok(()),
        _ => write_note(workspace, &note),
    }
}

/// Notes a store that is about to be made on request, where there is none. The caller holds both.
///
/// # Errors
/// A store is there, or the note cannot be written.
pub fn announce(workspace: &Path, state_dir: &Path) -> Result<(), Diagnostic> {
    if is_there(&state_dir.join("store"))? {
        let message = format!("there is a store in `{}`", state_dir.display());
        return Err(Diagnostic::new(Kind::Conflict, "store_exists", message)
            .hint("`workerctl runs` uses it, `workerctl store rebuild` rebuilds a damaged one")
            .hint("to start afresh, move that directory away first, or name another with `--state-dir`"));
    }
    let note = Note {
        store: fresh()?,
        state_dir: shown(state_dir),
        workspace: shown(&real(workspace)),
    };
    write_note(workspace, &note)
}

/// Makes a store that was just built the workspace's, whichever that was before.
///
/// # Errors
/// The id or the note cannot be written.
pub fn claim(workspace: &Path, state_dir: &Path) -> Result<(), Diagnostic> {
    let note = Note {
        // In its old place it stays the same store: whoever is killed between the two writes has nothing to mend.
        store: match noted(workspace)? {
            StoreNote::This(note) if Path::new(&note.state_dir) == state_dir => note.store,
            _ => fresh()?,
        },
        state_dir: shown(state_dir),
        workspace: shown(&real(workspace)),
    };
    write_id(&state_dir.join("store"), &note.store)?;
    write_note(workspace, &note)
}

/// Whether a store is there, or what is left of one, which is for others to judge.
fn is_there(store: &Path) -> Result<bool, Diagnostic> {
    let parts = [DATABASE, witness::NAME];
    if parts
        .iter()
        .any(|part| store.join(part).symlink_metadata().is_ok())
    {
        return Ok(true);
    }
    match moved_aside(store) {
        Ok(aside) => Ok(!aside.is_empty()),
        Err(error) if is_absent(&error.source) => Ok(false),
        Err(error) => Err(unusable(&error)),
    }
}

/// What the workspace notes. In a copy whose original is still there, the store that is noted is the original's.
fn noted(workspace: &Path) -> Result<StoreNote, Diagnostic> {
    let workspace = real(workspace);
    let noted = note_in(&workspace)?;
    let StoreNote::This(note) = &noted else {
        return Ok(noted);
    };
    let original = Path::new(&note.workspace);
    let is_copy = original != workspace
        && original.is_absolute()
        && matches!(note_in(original), Ok(StoreNote::This(same)) if same.store == note.store);
    Ok(if is_copy { StoreNote::Nothing } else { noted })
}

fn note_in(workspace: &Path) -> Result<StoreNote, Diagnostic> {
    let path = workspace.join(WORKSPACE_FOLDER).join(NOTE);
    let Some(json) = read(&path).map_err(|error| unusable(&FileError::at(&path)(error)))? else {
        return Ok(StoreNote::Nothing);
    };
    Ok(serde_json::from_slice(&json).map_or(StoreNote::Unreadable, StoreNote::This))
}

/// A small file of ours; `None` where there is none.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    match open_regular(path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes)) {
        Ok(_) => Ok(Some(bytes)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn write_id(store: &Path, id: &str) -> Result<(), Diagnostic> {
    let written = write_atomically(
        &store.join(ID),
        format!("{id}\n").as_bytes(),
        0o600,
        Durability::Power,
    );
    written.map(drop).map_err(|error| unusable(&error))
}

fn write_note(workspace: &Path, note: &Note) -> Result<(), Diagnostic> {
    let written = made_folder(workspace).and_then(|folder| {
        let path = folder.join(NOTE);
        let json = serde_json::to_vec(note).map_err(|e| FileError::at(&path)(e.into()))?;
        write_atomically(&path, &json, 0o600, Durability::Power)
    });
    written.map(drop).map_err(|error| unusable(&error))
}

/// An id that no other store has.
fn fresh() -> Result<String, Diagnostic> {
    let mut bytes = [0_u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Diagnostic::new(Kind::Internal, "random", error.to_string()))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

fn real(workspace: &Path) -> PathBuf {
    workspace
        .canonicalize()
        .unwrap_or_else(|_| workspace.to_path_buf())
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn unusable(error: &FileError) -> Diagnostic {
    let message = crate::model::diagnostic::chain(error);
    if let Some(shortage) = Shortage::of_error(&error.source, &error.path) {
        return Diagnostic::new(Kind::Blocked, shortage.code(), message).hint(shortage.remedy());
    }
    let kind = match error.source.kind() {
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Kind::Blocked,
        _ => Kind::Internal,
    };
    Diagnostic::new(kind, "store_id", message)
        .hint("make it writable for this user, or move the existing file away: it is recreated")
}

fn store_missing(state_dir: &Path, note: Option<&Note>) -> Diagnostic {
    let message = format!(
        "the store of this workspace is missing from `{}`, so its runs cannot be read",
        state_dir.display()
    );
    refused("store_missing", &message, state_dir, note)
        .hint("`workerctl store rebuild` rebuilds it from the threads")
        .hint("`workerctl store init` starts afresh with an empty one")
}

fn other_store(workspace: &Path, state_dir: &Path, note: &Note) -> Diagnostic {
    let shown = state_dir.display();
    let message = format!("the store in `{shown}` is not the one of this workspace");
    let noted = workspace.join(WORKSPACE_FOLDER).join(NOTE);
    refused(OTHER, &message, state_dir, Some(note))
        .hint("`workerctl store init --state-dir DIR` starts afresh in an empty place")
        .hint(format!(
            "to use this store for the workspace from now on, remove `{}`",
            noted.display()
        ))
}

/// A refusal that begins with the place where the store still is, or was.
fn refused(code: &str, message: &str, state_dir: &Path, note: Option<&Note>) -> Diagnostic {
    let refused = Diagnostic::new(Kind::Blocked, code, message);
    let Some(note) = note.filter(|note| Path::new(&note.state_dir) != state_dir) else {
        return refused.hint("if you can, restore the original directory: then nothing is lost");
    };
    let place = &note.state_dir;
    let is_in_place = id_of(&Path::new(place).join("store")).is_some_and(|id| id == note.store);
    if is_in_place {
        return refused.hint(format!(
            "its store is in `{place}`: give `--state-dir {place}`, or set `WORKERCTL_STATE_DIR` for the shells that use this workspace"
        ));
    }
    refused.hint(format!(
        "its store was in `{place}`: put that back, if you can"
    ))
}

#[cfg(test)]
mod tests;
