//! Which paths of a repository say what is run: the files that the definitions were read from, under each of their
//! names, the places where a new file would be read, and the directories where a link would lead a run elsewhere.

mod names;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use names::{Names, relative};
pub use names::{fold_case, names_within, real_paths, without_links};

use super::{Catalog, commands};
use crate::model::WorkerPaths;
use crate::model::config::CONFIG_FILE;
use crate::model::definition::RunText;
use crate::model::protected_files;
use crate::model::worker_paths::ANY_DIRECTORY;
use crate::roots::Form;

/// Entries of one directory that a `*` of `workers.paths` may stand for.
const ENTRIES_MAX: usize = 100_000;

/// How often a path is looked up below what a link leads to.
const ALIASES_MAX: usize = 64;

/// What makes a directory a worker or a skill, in lower case.
const FOUND_BY_NAME: [&str; 3] = ["worker.yaml", "worker.yml", "skill.md"];

/// The paths of a repository that say what is run, relative to it and in lower case.
///
/// They are those of the definitions in force. A definition that names another file is itself one of these paths, so
/// that no result adds a path unseen.
#[derive(Debug)]
pub struct DefinitionPaths {
    /// The workspace in the repository; empty where it is the repository, or holds it.
    workspace: PathBuf,
    /// The repository in the workspace, where that holds it.
    repository: PathBuf,
    workers: WorkerPaths,
    /// Files that are read, the links on the way to them, and files that would be read if they were there.
    files: BTreeSet<PathBuf>,
    /// Directories in which every file belongs to a definition.
    directories: BTreeSet<PathBuf>,
    /// Directories in which definitions are looked for by name.
    searched: BTreeSet<PathBuf>,
    /// What links on the way to workers lead to, and the links.
    aliases: Vec<(PathBuf, PathBuf)>,
    /// Working directories and paths of grants. Their content is free, but a link would lead later runs elsewhere.
    ways: BTreeSet<PathBuf>,
}

/// Returns the absolute path of a grant of `sandbox`, as it is written.
pub fn grant_path(workspace: &Path, home: Option<&Path>, text: &str) -> PathBuf {
    match text.strip_prefix('~') {
        Some(rest) => home
            .unwrap_or(Path::new("/"))
            .join(rest.trim_start_matches('/')),
        None => workspace.join(text),
    }
}

impl Catalog {
    /// Returns the paths of a repository, which is absolute and without links, that say what is run.
    pub fn definition_paths(&self, repository: &Path) -> DefinitionPaths {
        let lower = |pattern: &String| protected_files::fold_case(pattern);
        let patterns = self.config.workers.patterns().iter().map(lower).collect();
        let mut collector = Collector {
            catalog: self,
            repository,
            names: Names::new(repository),
            paths: DefinitionPaths {
                workspace: relative(repository, &self.root).unwrap_or_default(),
                repository: relative(&self.root, repository).unwrap_or_default(),
                workers: WorkerPaths::new(patterns),
                files: BTreeSet::new(),
                directories: BTreeSet::new(),
                searched: BTreeSet::new(),
                aliases: Vec::new(),
                ways: BTreeSet::new(),
            },
        };
        collector.workers();
        collector.read_files();
        collector.skills();
        for path in commands::executed_paths(self) {
            collector.names.add(&path);
        }
        collector.paths.files.extend(collector.names.found);
        collector.paths.ways = self.ways(repository);
        collector.paths
    }

    /// Returns the names in a repository of all working directories and grants.
    fn ways(&self, repository: &Path) -> BTreeSet<PathBuf> {
        let mut paths = BTreeSet::new();
        for skill in self.workers.iter().flat_map(|worker| &worker.skills) {
            paths.insert(self.root.join(&skill.cwd));
            let sandbox = skill.sandbox.iter();
            let grants = sandbox.flat_map(|own| own.write.iter().chain(own.reads.iter().flatten()));
            paths.extend(grants.map(|text| grant_path(&self.root, self.home.as_deref(), text)));
        }
        let mut names = Names::new(repository);
        for path in &paths {
            names.add(path);
        }
        names.found
    }
}

impl DefinitionPaths {
    /// Returns true if a change at this path changes what is run. `is_way`: a link or a submodule is put there, which
    /// brings more than its own name. `is_link`: it is a link. A submodule does not move a grant or a working directory.
    pub fn include(&self, path: &Path, is_way: bool, is_link: bool) -> bool {
        self.define(path, is_way) || is_link && holds_one(&self.ways, &names::fold_case(path))
    }

    fn define(&self, path: &Path, is_way: bool) -> bool {
        let path = &names::fold_case(path);
        let is_searched = |directory: &Path| {
            let below = path.strip_prefix(directory).unwrap_or(path);
            is_way || is_discovered(below)
        };
        self.files.contains(path)
            || holds_one(&self.files, path)
            || holds_one(&self.directories, path)
            || path
                .ancestors()
                .any(|above| self.directories.contains(above))
            || path
                .ancestors()
                .any(|above| self.searched.contains(above) && is_searched(above))
            || self.defines_worker(path, is_way)
    }

    /// Returns true if what may write below a directory, relative to the repository, may change what is run.
    pub fn meet(&self, directory: &Path) -> bool {
        let folded = names::fold_case(directory);
        self.define(directory, true) || holds_one(&self.searched, &folded)
    }

    fn defines_worker(&self, path: &Path, is_way: bool) -> bool {
        let mut paths = vec![path.to_owned()];
        let mut next = 0;
        while let Some(path) = paths.get(next).cloned() {
            next += 1;
            if let Ok(inside) = path.strip_prefix(&self.workspace) {
                let inside = self.repository.join(inside);
                if self.workers.define(&inside) || is_way && self.workers.meet(&inside) {
                    return true;
                }
            }
            for (target, link) in &self.aliases {
                let alias = path.strip_prefix(target).map(|rest| link.join(rest));
                if let Ok(alias) = alias
                    && !paths.contains(&alias)
                {
                    paths.push(alias);
                }
            }
            paths.truncate(ALIASES_MAX);
        }
        false
    }
}

/// Whether a set has a path below this one: what stands there then is in the way to it.
fn holds_one(set: &BTreeSet<PathBuf>, path: &Path) -> bool {
    let mut below = set.range(path.to_owned()..);
    below.next().is_some_and(|found| found.starts_with(path))
}

/// Whether a search finds a definition by this path below a directory.
fn is_discovered(below: &Path) -> bool {
    let named = |names: &[&str], part: &std::ffi::OsStr| names.iter().any(|name| part == *name);
    below
        .file_name()
        .is_some_and(|name| named(&FOUND_BY_NAME, name))
        || below.iter().any(|part| named(&["skills"], part))
}

struct Collector<'c> {
    catalog: &'c Catalog,
    repository: &'c Path,
    names: Names<'c>,
    paths: DefinitionPaths,
}

impl Collector<'_> {
    fn file(&mut self, path: &str) {
        self.names.add(&self.catalog.root.join(path));
    }

    /// Everything in it counts, unless it is the repository or holds the workspace: then only what is looked for.
    fn directory(&mut self, path: &Path) {
        let real = self.names.add(path);
        let is_all = self.catalog.root.starts_with(&real);
        let Some(inside) = relative(self.repository, &real) else {
            // It may hold the repository.
            if self.repository.starts_with(&real) {
                self.paths.searched.insert(PathBuf::new());
            }
            return;
        };
        if is_all {
            self.paths.searched.insert(inside);
        } else {
            self.paths.directories.insert(inside);
        }
    }

    fn searched(&mut self, path: &Path) {
        let real = self.names.add(path);
        self.paths.searched.extend(relative(self.repository, &real));
    }

    /// Directories of workers, and the links on the way, through which new ones would be found.
    fn workers(&mut self) {
        for pattern in self.catalog.config.workers.patterns() {
            let mut places = vec![self.catalog.root.clone()];
            for part in pattern.split('/') {
                places = if part == ANY_DIRECTORY {
                    places.iter().flat_map(|place| listed(place)).collect()
                } else {
                    places.iter().map(|place| place.join(part)).collect()
                };
                for place in &places {
                    self.names.add(place);
                    for (link, target) in self.names.links_of(place) {
                        let both = relative(self.repository, &target)
                            .zip(relative(self.repository, &link));
                        self.paths.aliases.extend(both);
                    }
                }
            }
            for place in places {
                self.directory(&place);
            }
        }
        self.paths.aliases.sort();
        self.paths.aliases.dedup();
        for (link, is_whole) in &self.catalog.links {
            let path = self.catalog.root.join(link);
            if *is_whole {
                self.directory(&path);
            } else {
                self.searched(&path);
            }
        }
    }

    /// What was read, and what the last good definitions name whose files broke.
    fn read_files(&mut self) {
        let catalog = self.catalog;
        self.file(CONFIG_FILE);
        for file in catalog.config.workers.registries() {
            self.file(&file);
        }
        for unit in &catalog.units {
            self.file(&unit.files.definition);
            unit.files.skills.iter().for_each(|path| self.file(path));
            let instances = unit.instances.iter().flat_map(|unit| &unit.depends);
            for (path, _) in unit.depends.iter().chain(instances) {
                self.file(path);
            }
            self.directory(&catalog.root.join(&unit.files.directory));
        }
        for worker in &catalog.workers {
            self.file(&worker.place.path);
            for skill in &worker.skills {
                self.file(&skill.place.path);
                skill.file.iter().for_each(|path| self.file(path));
                if let RunText::Script { path, .. } = &skill.run {
                    self.names.add(Path::new(path));
                }
            }
        }
    }

    /// Roots of skills and what lies in them.
    fn skills(&mut self) {
        let catalog = self.catalog;
        let home = catalog.home.as_deref();
        for root in crate::roots::order::in_order(&catalog.root, &catalog.config.skills, home) {
            self.directory(&root.directory);
        }
        for link in &catalog.root_skills.links {
            self.searched(link);
        }
        for skill in &catalog.root_skills.skills {
            if skill.form == Form::Directory {
                self.directory(&skill.directory());
            }
            self.names.add(&skill.directory().join(skill.file_name()));
        }
    }
}

/// What a `*` may stand for.
fn listed(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let entries = entries.take(ENTRIES_MAX).filter(|entry| {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        !is_file && !entry.file_name().as_encoded_bytes().starts_with(b".")
    });
    entries.map(|entry| entry.path()).collect()
}
