//! Verifies all objects of a store that a run can have written, before the git library reads one of them.
//!
//! The git library trusts what is on the disk: a stream that is cut off, or a delta that leads to itself, keeps it in an
//! endless loop that nothing can interrupt.

use std::fs;
use std::path::{Path, PathBuf};

use crate::loose::loose_length;
use crate::packs::pack_length;

/// Most bytes that the objects of a store may unpack to: some kilobytes can unpack to megabytes.
const STORE_BYTES_MAX: u64 = 16 << 30;

/// Returns what is wrong with the first damaged loose object or pack of a git directory; `None` if all are complete.
///
/// Objects of other stores that it borrows from are not verified. Symbolic links must have been refused before.
pub fn damaged_object(git_dir: &Path) -> Option<String> {
    let objects = git_dir.join("objects");
    let mut left = STORE_BYTES_MAX;
    let mut verify = |file: &Path, length_within: &dyn Fn(u64) -> Option<u64>| {
        if let Some(length) = length_within(left) {
            left = left.saturating_sub(length);
            return None;
        }
        let name = file.strip_prefix(git_dir).unwrap_or(file);
        let name = name.to_string_lossy().escape_debug().to_string();
        Some(format!(
            "`{name}` is damaged, or all objects together are larger than 16 GiB"
        ))
    };
    for fan in files_in(&objects) {
        for file in files_in(&fan) {
            let oid = loose_id(&fan, &file);
            let found = oid.and_then(|oid| verify(&file, &|most| loose_length(&file, oid, most)));
            if found.is_some() {
                return found;
            }
        }
    }
    // The git library finds packs by their indexes, and passes over an index without its pack.
    let packs = files_in(&objects.join("pack")).into_iter();
    let indexes = packs.filter(|file| file.extension().is_some_and(|end| end == "idx"));
    let packs = indexes.map(|index| index.with_extension("pack"));
    let mut packs = packs.filter(|pack| pack.exists());
    packs.find_map(|pack| verify(&pack, &|most| pack_length(&pack, most)))
}

/// Returns the id of a loose object by its path; `None` for other files.
fn loose_id(fan: &Path, file: &Path) -> Option<git2::Oid> {
    let (first, rest) = (fan.file_name()?.to_str()?, file.file_name()?.to_str()?);
    let is_name = first.len() == 2 && rest.len() == 38;
    is_name.then(|| git2::Oid::from_str(&format!("{first}{rest}")).ok())?
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(dir).into_iter().flatten().flatten();
    listed.map(|entry| entry.path()).collect()
}
