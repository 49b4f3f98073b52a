//! What stands in the directory of a skill, told apart without reading any file.

use std::collections::hash_map::DefaultHasher;
use std::fs::DirEntry;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::files::{DEPTH_MAX, ENTRIES_MAX};
use super::scan::is_passed_over;
use super::{Form, RootSkill};

/// What differs when the directory of a skill differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Surrounding {
    /// When a file comes, goes, or is named otherwise.
    pub names: u64,
    /// When what a file holds may have changed too; 0 where it was not asked for.
    pub stamps: u64,
}

impl Surrounding {
    /// Looks at a skill; with `stamps` at each of its files too.
    pub fn of(skill: &RootSkill, stamps: bool) -> Surrounding {
        let mut walk = DirectoryWalk {
            stamps,
            entries: 0,
            found: Surrounding::default(),
        };
        match skill.form {
            Form::Directory => walk.directory(&skill.directory(), "", 0),
            Form::Page | Form::Yaml if stamps => {
                walk.found.stamps = stamp(&skill.base.join(&skill.inner));
            }
            Form::Page | Form::Yaml => {}
        }
        walk.found
    }
}

struct DirectoryWalk {
    stamps: bool,
    entries: usize,
    found: Surrounding,
}

impl DirectoryWalk {
    fn directory(&mut self, path: &Path, below: &str, depth: usize) {
        let Ok(entries) = std::fs::read_dir(path) else {
            return;
        };
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > ENTRIES_MAX || depth > DEPTH_MAX {
                return;
            }
            self.entry(&entry, below, depth);
        }
    }

    fn entry(&mut self, entry: &DirEntry, below: &str, depth: usize) {
        let name = entry.file_name();
        let kind = entry.file_type().ok();
        let path = entry.path();
        let shown = format!("{below}/{}", name.to_string_lossy());
        if kind.is_some_and(|kind| kind.is_dir()) {
            if !name.to_str().is_some_and(is_passed_over) {
                self.directory(&path, &shown, depth + 1);
            }
            return;
        }
        // Whether it may be read is told by where it leads.
        let link = kind
            .is_some_and(|kind| kind.is_symlink())
            .then(|| (std::fs::read_link(&path).ok(), path.is_file()));
        // Added up, since a directory has no order.
        let own = hash_of(&(&shown, link));
        self.found.names = self.found.names.wrapping_add(own);
        if self.stamps {
            let stamp = hash_of(&(&shown, stamp(&path)));
            self.found.stamps = self.found.stamps.wrapping_add(stamp);
        }
    }
}

/// What changes when a file changes, links followed.
fn stamp(path: &Path) -> u64 {
    let metadata = std::fs::metadata(path).ok();
    hash_of(&metadata.map(|one| {
        let times = (one.mtime(), one.mtime_nsec(), one.ctime(), one.ctime_nsec());
        (one.dev(), one.ino(), one.len(), times)
    }))
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
