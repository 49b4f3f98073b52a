//! Where workers are: directories of the workspace, some of them by pattern.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Directory of workers where the configuration names none.
pub const WORKERS_DIR: &str = "workers";

/// What stands for any one directory in a path of workers.
pub const ANY_DIRECTORY: &str = "*";

/// Name of the file that says which of two definitions of one worker counts.
const REGISTRY_FILE: &str = "registry.yaml";

/// Directories that hold workers, relative to the workspace; a part `*` stands for any one directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerPaths(Vec<String>);

impl Default for WorkerPaths {
    fn default() -> WorkerPaths {
        WorkerPaths(vec![WORKERS_DIR.to_owned()])
    }
}

impl WorkerPaths {
    /// These paths, in normal form: parts with one `/` between them.
    pub fn new(paths: Vec<String>) -> WorkerPaths {
        WorkerPaths(paths)
    }

    /// The paths as they are written.
    pub fn patterns(&self) -> &[String] {
        &self.0
    }

    /// The directory of new workers: `workers` where that is read, else the first path that is no pattern.
    pub fn of_new_workers(&self) -> Option<&str> {
        let mut plain = self.0.iter().filter(|path| !is_pattern(path));
        let first = plain.clone().next();
        let usual = plain.find(|path| *path == WORKERS_DIR);
        usual.or(first).map(String::as_str)
    }

    /// Where a registry may stand; the first that is there counts.
    pub fn registries(&self) -> Vec<String> {
        let first = self.0.first().filter(|path| !is_pattern(path));
        let mut directories = vec![WORKERS_DIR];
        directories.extend(
            first
                .map(String::as_str)
                .filter(|path| *path != WORKERS_DIR),
        );
        let file = |directory: &str| format!("{directory}/{REGISTRY_FILE}");
        directories.into_iter().map(file).collect()
    }

    /// Whether what stands at a path of the workspace says what workers are.
    pub fn define(&self, path: &Path) -> bool {
        let begins = |pattern: &String| matched(pattern, path) == Some(pattern.split('/').count());
        self.0.iter().any(begins) || self.registries().iter().any(|file| path == Path::new(file))
    }

    /// Whether a path of the workspace lies in a directory of workers, or may hold one.
    pub fn meet(&self, path: &Path) -> bool {
        let registries = self.registries();
        let mut all = self.0.iter().chain(&registries);
        all.any(|pattern| matched(pattern, path).is_some())
    }
}

fn is_pattern(path: &str) -> bool {
    path.split('/').any(|part| part == ANY_DIRECTORY)
}

/// How many parts a pattern and a path have in common, unless they differ before one of them ends.
fn matched(pattern: &str, path: &Path) -> Option<usize> {
    let mut count = 0;
    for (part, name) in pattern.split('/').zip(path) {
        if part != ANY_DIRECTORY && name != part {
            return None;
        }
        count += 1;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> WorkerPaths {
        WorkerPaths::new(paths.iter().map(|path| (*path).to_owned()).collect())
    }

    #[test]
    fn definitions_are_what_lies_in_a_path_and_the_registry() {
        let paths = paths(&["core/workers", "packages/*/workers"]);
        for (path, defines, meets) in [
            ("core/workers", true, true),
            ("core/workers/a/worker.yaml", true, true),
            ("core", false, true),
            ("core/lib", false, false),
            ("packages/a/workers/x", true, true),
            ("packages/a", false, true),
            ("packages/a/lib", false, false),
            ("packages", false, true),
            ("workers/registry.yaml", true, true),
            ("workers/a/worker.yaml", false, false),
            ("workers", false, true),
            ("", false, true),
        ] {
            let path = Path::new(path);
            let found = (paths.define(path), paths.meet(path));
            assert_eq!(found, (defines, meets), "{}", path.display());
        }
    }

    #[test]
    fn new_workers_and_the_registry_have_their_place() {
        for (written, new, registries) in [
            (
                &["workers"][..],
                Some("workers"),
                &["workers/registry.yaml"][..],
            ),
            (
                &["core/workers", "workers"],
                Some("workers"),
                &["workers/registry.yaml", "core/workers/registry.yaml"],
            ),
            (&["a/*/b", "c"], Some("c"), &["workers/registry.yaml"]),
            (&["a/*/b"], None, &["workers/registry.yaml"]),
        ] {
            let paths = paths(written);
            assert_eq!(paths.of_new_workers(), new);
            assert_eq!(paths.registries(), registries);
        }
        assert_eq!(WorkerPaths::default().patterns(), [WORKERS_DIR]);
    }
}
