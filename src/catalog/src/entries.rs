//! Lists directories for a search: bounded, sorted, and what cannot be read is told.

use std::path::Path;

use super::report::Report;
use super::source::whole_file;

/// One entry of a directory.
pub(crate) struct Entry {
    /// Its name.
    pub(crate) name: String,
    /// Whether it is a link.
    pub(crate) link: bool,
    /// Whether it is a directory itself.
    pub(crate) directory: bool,
}

/// How many entries a search looks at.
pub(crate) struct Bound {
    seen: usize,
    most: usize,
    /// Where they lie, for people.
    place: &'static str,
    /// What to do about more.
    hint: &'static str,
}

impl Bound {
    /// At most `most` entries in `place`.
    pub(crate) const fn new(most: usize, place: &'static str, hint: &'static str) -> Bound {
        Bound {
            seen: 0,
            most,
            place,
            hint,
        }
    }

    /// Counts from the beginning.
    pub(crate) fn restart(&mut self) {
        self.seen = 0;
    }

    /// Whether there is room for one more; the first that has none is told.
    fn take(&mut self, shown: &str, report: &mut Report) -> bool {
        self.seen += 1;
        if self.seen == self.most + 1 {
            let message = format!("more than {} entries {}", self.most, self.place);
            report.error("tree-too-large", whole_file(shown), message, self.hint);
        }
        self.seen <= self.most
    }
}

/// What a directory holds, by name.
pub(crate) fn list(path: &Path, shown: &str, bound: &mut Bound, report: &mut Report) -> Vec<Entry> {
    let mut listed = Vec::new();
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => {
            unreadable(shown, &error, report);
            return listed;
        }
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                unreadable(shown, &error, report);
                break;
            }
        };
        if !bound.take(shown, report) {
            break;
        }
        let kind = entry.file_type().ok();
        match entry.file_name().into_string() {
            Ok(name) => listed.push(Entry {
                name,
                link: kind.is_some_and(|kind| kind.is_symlink()),
                directory: kind.is_some_and(|kind| kind.is_dir()),
            }),
            Err(name) => not_utf8(shown, &name.to_string_lossy(), report),
        }
    }
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    listed
}

/// A name that cannot be written into a definition.
pub(crate) fn not_utf8(shown: &str, name: &str, report: &mut Report) {
    report.warning(
        "name-not-utf8",
        whole_file(shown),
        format!("`{}` is not UTF-8 and is left out", name.escape_debug()),
        "rename it",
    );
}

/// A directory that the system refuses.
pub(crate) fn unreadable(shown: &str, error: &std::io::Error, report: &mut Report) {
    report.error(
        "directory-unreadable",
        whole_file(shown),
        format!("the directory cannot be read: {error}"),
        "check its owner and mode",
    );
}
