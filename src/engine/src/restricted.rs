//! Files that a sandboxed run changes only with approval: definitions, programs of `PATH`, and protected files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{key_files, path_programs};
use crate::catalog::Catalog;
use crate::catalog::definition_paths::{DefinitionPaths, fold_case, names_within};
use crate::catalog::interpreters;
use crate::git::Checkout;
use crate::model::protected_files::ProtectedMatcher;

/// Git's modes of what brings more than its own name: a symbolic link and a submodule.
const MODES_OF_WAYS: [u32; 2] = [LINK, 0o160_000];

/// Git's mode of a symbolic link.
const LINK: u32 = 0o120_000;

/// The restricted files of a repository.
pub(super) struct Restricted {
    /// One item for each checkout of the repository: a result is written to the checkout of its branch.
    checkouts: Vec<CheckoutPaths>,
    protected: ProtectedMatcher,
}

/// The restricted files of one checkout, relative to it.
struct CheckoutPaths {
    definitions: DefinitionPaths,
    /// Directories and programs of `PATH`, and interpreters of the programs.
    programs: Vec<PathBuf>,
    /// Targets of protected links, and files of keys and tokens.
    protected: Vec<PathBuf>,
}

impl Restricted {
    /// Reads the definitions in force; `environment` is that of the engine.
    pub(super) fn new(
        catalog: &Catalog,
        environment: &BTreeMap<String, String>,
        checkouts: &[Checkout],
    ) -> Restricted {
        let protected = catalog.config.protected_files.matcher();
        let keys = key_files::named(catalog, environment);
        let programs = programs(environment, &catalog.root);
        let paths = |checkout: &Checkout| {
            let root = &checkout.workdir;
            let links = checkout.links().into_iter();
            let links =
                links.filter(|link| protected.protect(link) || protected.lead_through(link));
            let links = links
                .map(|link| root.join(link))
                .chain(keys.iter().cloned());
            CheckoutPaths {
                definitions: catalog.definition_paths(root),
                programs: names_within(root, &programs),
                protected: names_within(root, links),
            }
        };
        Restricted {
            checkouts: checkouts.iter().map(paths).collect(),
            protected,
        }
    }

    /// Returns the code with which a change at a path, relative to the repository, is refused without approval. `mode` is
    /// that of the new file; 0 if it is deleted.
    pub(super) fn code(&self, path: &Path, mode: u32) -> Option<&'static str> {
        let is_way = MODES_OF_WAYS.contains(&mode);
        let text = path.to_string_lossy();
        let folded = fold_case(path);
        let meets =
            |named: &PathBuf| folded.starts_with(named) || is_way && named.starts_with(&folded);
        let defines = |checkout: &CheckoutPaths| {
            checkout.definitions.include(path, is_way, mode == LINK)
                || checkout.programs.iter().any(meets)
        };
        if self.checkouts.iter().any(defines) {
            return Some("definitions_changed");
        }
        let mut named = self
            .checkouts
            .iter()
            .flat_map(|checkout| &checkout.protected);
        let is_protected = self.protected.protect(&text)
            || is_way && self.protected.lead_through(&text)
            || named.any(meets);
        is_protected.then_some("protected_files")
    }
}

/// Returns the directories of the engine's `PATH`, the programs in them that can lead to a repository, and the interpreters
/// of these: the engine and skills with more rights would execute what a result puts there.
fn programs(environment: &BTreeMap<String, String>, workspace: &Path) -> Vec<PathBuf> {
    let path = environment.get("PATH").map_or("", String::as_str);
    let directories = path.split(':').filter(|entry| entry.starts_with('/'));
    let directories: BTreeSet<PathBuf> = directories.map(real).collect();
    let programs = directories
        .iter()
        .flat_map(|directory| path_programs::in_directory(directory));
    let programs: Vec<PathBuf> = programs.collect();
    let interpreters = interpreters(programs.clone(), workspace);
    let all = directories.into_iter().chain(programs).chain(interpreters);
    all.collect()
}

/// Resolves symbolic links; returns the path unchanged if it does not exist.
pub(super) fn real(path: impl AsRef<Path>) -> PathBuf {
    std::fs::canonicalize(&path).unwrap_or_else(|_| path.as_ref().to_owned())
}
