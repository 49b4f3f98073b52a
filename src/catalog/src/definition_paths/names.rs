//! The names of a path in a repository: each link on the way to it, and where it leads.

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use crate::model::protected_files;

/// Links that lead to each other on the way to one path, as many as the kernel follows.
const LINKS_MAX: usize = 40;

/// Returns the names of absolute paths within a repository, relative to it and in lower case: the paths that they lead
/// to, whether anything is there or not, and each link on the way.
pub fn names_within<P: AsRef<Path>>(
    repository: &Path,
    paths: impl IntoIterator<Item = P>,
) -> Vec<PathBuf> {
    let mut names = Names::new(repository);
    for path in paths {
        names.add(path.as_ref());
    }
    names.found.into_iter().collect()
}

/// Returns where each absolute path leads, whether anything is there or not. Common directories are resolved once.
pub fn real_paths<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Vec<PathBuf> {
    let mut names = Names::new(Path::new("/"));
    let real = |path: P| names.walk(path.as_ref(), 0).real.clone();
    paths.into_iter().map(real).collect()
}

/// Returns where an absolute path leads, whether anything is there or not, and the symbolic links on the way, each where
/// it lies without links. Both are of one moment, so that a link which comes and goes cannot change one of them.
pub fn without_links(path: &Path) -> (PathBuf, Vec<PathBuf>) {
    let walked = Names::new(Path::new("/")).walk(path, 0);
    (walked.real.clone(), walked.links.clone())
}

/// Collects names, and remembers where directories lead.
#[derive(Debug)]
pub(super) struct Names<'r> {
    repository: &'r Path,
    walked: HashMap<PathBuf, Rc<Walked>>,
    pub(super) found: BTreeSet<PathBuf>,
}

/// Where a path leads, and the links on the way.
#[derive(Debug)]
struct Walked {
    real: PathBuf,
    links: Vec<PathBuf>,
}

impl<'r> Names<'r> {
    pub(super) fn new(repository: &'r Path) -> Names<'r> {
        Names {
            repository,
            walked: HashMap::new(),
            found: BTreeSet::new(),
        }
    }

    /// Adds the names of an absolute path; returns where it leads.
    pub(super) fn add(&mut self, path: &Path) -> PathBuf {
        let walked = self.walk(path, 0);
        for name in walked.links.iter().chain([&walked.real]) {
            let inside = relative(self.repository, name);
            let inside = inside.filter(|path| !path.as_os_str().is_empty());
            self.found.extend(inside);
        }
        walked.real.clone()
    }

    /// Returns each link on the way to a path, with where it leads.
    pub(super) fn links_of(&mut self, path: &Path) -> Vec<(PathBuf, PathBuf)> {
        let walked = self.walk(path, 0);
        let links = walked.links.iter();
        let led = links.map(|link| (link.clone(), self.walk(link, 0).real.clone()));
        led.collect()
    }

    /// Walks a path as the kernel does, and goes on by name where nothing is there.
    fn walk(&mut self, path: &Path, depth: usize) -> Rc<Walked> {
        if let Some(known) = self.walked.get(path) {
            return Rc::clone(known);
        }
        let mut parts = path.components();
        let last = parts.next_back();
        let walked = match last {
            Some(Component::Normal(name)) => {
                let above = self.walk(parts.as_path(), depth);
                self.enter(&above, above.real.join(name), depth)
            }
            Some(Component::ParentDir) => {
                let above = self.walk(parts.as_path(), depth);
                let real = above.real.parent().unwrap_or(&above.real).to_owned();
                let links = above.links.clone();
                Walked { real, links }
            }
            _ => Walked {
                real: PathBuf::from("/"),
                links: Vec::new(),
            },
        };
        let walked = Rc::new(walked);
        self.walked.insert(path.to_owned(), Rc::clone(&walked));
        walked
    }

    /// Goes on to an entry of a directory, and through it if it is a link.
    fn enter(&mut self, above: &Walked, entry: PathBuf, depth: usize) -> Walked {
        let target = std::fs::read_link(&entry).ok();
        let Some(target) = target.filter(|_| depth < LINKS_MAX) else {
            let links = above.links.clone();
            return Walked { real: entry, links };
        };
        let led = self.walk(&above.real.join(target), depth + 1);
        let mut links = above.links.clone();
        links.push(entry);
        links.extend(led.links.iter().cloned());
        let real = led.real.clone();
        Walked { real, links }
    }
}

/// The path within a repository, as it is compared; `None`: it lies elsewhere.
pub(super) fn relative(repository: &Path, path: &Path) -> Option<PathBuf> {
    path.strip_prefix(repository).ok().map(fold_case)
}

/// Returns the path without differences of case, which some file systems ignore.
pub fn fold_case(path: &Path) -> PathBuf {
    PathBuf::from(protected_files::fold_case(&path.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_as_file_systems_without_case_fold_them() {
        for name in ["WORKERS/a", "Worker\u{17f}/A"] {
            assert_eq!(fold_case(Path::new(name)), Path::new("workers/a"), "{name}");
        }
        let kelvin = "\u{212a}eep";
        assert_eq!(fold_case(Path::new(kelvin)), Path::new("keep"));
    }
}
