//! Stat data of all known files, by several threads: in a large tree asking for them is what a walk takes its
//! time for, and git does the same before it looks at a work tree.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, statat};

use crate::known::{FileStamp, Manifest, RecordedPath};

/// Files for which one more thread is worth its start.
const FILES_PER_THREAD: usize = 2_000;

/// Most threads.
const THREADS_MAX: usize = 8;

/// Whether each file is as the manifest believes it to be; empty where one walk asks as quickly.
///
/// A `true` for a path below a directory that is none any more says nothing, and no walk gets there.
pub(crate) fn unchanged(root: BorrowedFd<'_>, manifest: &Manifest) -> Vec<bool> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let files = manifest.known.len();
    let threads = (files / FILES_PER_THREAD).min(cores).min(THREADS_MAX);
    if threads < 2 {
        return Vec::new();
    }
    let mut found = vec![false; files];
    let share = files.div_ceil(threads);
    std::thread::scope(|scope| {
        let shares = manifest.known.chunks(share).zip(found.chunks_mut(share));
        for (nth, (known, found)) in shares.enumerate() {
            scope.spawn(move || {
                for (at, (known, found)) in known.iter().zip(found).enumerate() {
                    *found = is_unchanged(root, manifest, (nth * share + at, known));
                }
            });
        }
    });
    found
}

fn is_unchanged(
    root: BorrowedFd<'_>,
    manifest: &Manifest,
    (at, known): (usize, &RecordedPath),
) -> bool {
    let stat = statat(
        root.as_fd(),
        known.path.as_slice(),
        AtFlags::SYMLINK_NOFOLLOW,
    );
    stat.is_ok_and(|stat| manifest.believes(at, &FileStamp::of(&stat)))
}
