//! Files that a sandboxed run changes only with approval: definitions, programs of `PATH`, and protected files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::catalog::Catalog;
use crate::catalog::definition_paths::DefinitionPaths;
use crate::model::protected_files::ProtectedMatcher;

/// Git's modes of what brings more than its own name: a symbolic link and a submodule.
const MODES_OF_WAYS: [u32; 2] = [0o120_000, 0o160_000];

/// The restricted files of a repository.
pub(super) struct Restricted {
    definitions: DefinitionPaths,
    /// Directories of `PATH`, relative to the repository.
    programs: Vec<PathBuf>,
    protected: ProtectedMatcher,
}

impl Restricted {
    /// Reads the definitions in force; `environment` is that of the engine.
    pub(super) fn new(
        catalog: &Catalog,
        environment: &BTreeMap<String, String>,
        repository: &Path,
    ) -> Restricted {
        Restricted {
            definitions: catalog.definition_paths(repository),
            programs: programs_in(environment, repository),
            protected: catalog.config.protected_files.matcher(),
        }
    }

    /// Returns the code with which a change at a path, relative to the repository, is refused without approval. `mode` is
    /// that of the new file; 0 if it is deleted.
    pub(super) fn code(&self, path: &Path, mode: u32) -> Option<&'static str> {
        let is_way = MODES_OF_WAYS.contains(&mode);
        let is_program = |directory: &PathBuf| {
            path.starts_with(directory) || is_way && directory.starts_with(path)
        };
        if self.definitions.include(path, is_way) || self.programs.iter().any(is_program) {
            return Some("definitions_changed");
        }
        let text = path.to_string_lossy();
        let is_protected =
            self.protected.protect(&text) || is_way && self.protected.lead_through(&text);
        is_protected.then_some("protected_files")
    }
}

/// Returns the directories of the engine's `PATH` that lie in a repository: the engine and skills with more rights
/// would execute what a result puts there.
fn programs_in(environment: &BTreeMap<String, String>, repository: &Path) -> Vec<PathBuf> {
    let path = environment.get("PATH");
    let directories = path.map_or("", String::as_str).split(':');
    let directories = directories.filter(|one| one.starts_with('/'));
    let inside = directories.filter_map(|one| {
        let inside = real(one).strip_prefix(repository).map(Path::to_owned);
        inside.ok().filter(|inside| !inside.as_os_str().is_empty())
    });
    inside.collect()
}

/// Without links; as it is where nothing is there.
pub(super) fn real(path: impl AsRef<Path>) -> PathBuf {
    std::fs::canonicalize(&path).unwrap_or_else(|_| path.as_ref().to_owned())
}
