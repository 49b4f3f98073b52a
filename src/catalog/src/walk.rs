//! Finds definition files below the directories of workers: which exist, not what they say.

use std::collections::HashSet;
use std::path::Path;

use super::entries::{self, Bound, Entry};
use super::open::{DefinitionStamp, Root};
use super::report::Report;
use super::source::whole_file;
use super::unread;
use super::worker_paths;
use crate::model::Config;
use crate::model::config::CONFIG_FILE;

/// How many directories may lie between a directory of workers and a worker.yaml.
pub const DEPTH_MAX: usize = 6;

/// Entries of directories that are looked at before the search gives up.
const ENTRIES_MAX: usize = 500_000;

/// One worker's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitFiles {
    /// Directory relative to the workspace.
    pub(crate) directory: String,
    /// The worker's own file, relative to the workspace.
    pub(crate) definition: String,
    /// Skill files beside it that may be skills, relative to the workspace, sorted.
    pub(crate) skills: Vec<String>,
    /// Stamp of each, the definition first.
    pub(crate) stamps: Vec<Option<DefinitionStamp>>,
}

/// What a search found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Workers, sorted by directory.
    pub(crate) units: Vec<UnitFiles>,
    /// Stamp of workerctl.yaml.
    pub(crate) config: Option<DefinitionStamp>,
    /// Stamps of the files that may be the registry.
    pub(crate) registries: Vec<Option<DefinitionStamp>>,
    /// Links in directories of workers and of their skills; `true`: everything in what one leads to belongs to a skill.
    pub(crate) links: Vec<(String, bool)>,
    /// What stood in the way.
    pub(crate) problems: Vec<crate::model::Problem>,
}

/// Searches the directories of workers that a configuration names.
pub(crate) fn search(root: &Root, config: &Config) -> Found {
    let mut report = Report::default();
    let directories = worker_paths::directories(root, config, &mut report);
    let mut search = Search {
        root,
        registries: config.workers.registries(),
        entries: Bound::new(
            ENTRIES_MAX,
            "below the directories of workers",
            "keep data outside of the workers' directories",
        ),
        visited: HashSet::new(),
        links: Vec::new(),
        met: Vec::new(),
        units: Vec::new(),
        report,
    };
    // All of them first: one that lies in another is known as itself, with its own depth.
    let directories: Vec<String> = directories
        .into_iter()
        .filter(|path| search.visit(path))
        .collect();
    unread::report_config(root, &mut search.report);
    if directories.iter().any(|path| path == "workers") && root.path().join("worker").is_dir() {
        let listed = search.list("worker");
        unread::report_singular(root, "worker", &listed, &mut search.report);
    }
    for path in &directories {
        search.directory(path, 0);
    }
    // Links come last, so that a directory is known by its own path and not by a link to it.
    while let Some((path, depth)) = search.links.pop() {
        search.linked_directory(&path, depth);
    }
    search.units.sort_by(|a, b| a.directory.cmp(&b.directory));
    let registries = search.registries.iter();
    let registries = registries.map(|file| root.stamp(file)).collect();
    Found {
        units: search.units,
        config: root.stamp(CONFIG_FILE),
        registries,
        links: search.met,
        problems: search.report.finish(whole_file(CONFIG_FILE)),
    }
}

struct Search<'r> {
    root: &'r Root,
    /// Files that may be the registry.
    registries: Vec<String>,
    entries: Bound,
    visited: HashSet<(u64, u64)>,
    links: Vec<(String, usize)>,
    met: Vec<(String, bool)>,
    units: Vec<UnitFiles>,
    report: Report,
}

impl Search<'_> {
    fn list(&mut self, path: &str) -> Vec<Entry> {
        let place = self.root.path().join(path);
        entries::list(&place, path, &mut self.entries, &mut self.report)
    }

    fn directory(&mut self, path: &str, depth: usize) {
        let listed = self.list(path);
        if depth > DEPTH_MAX {
            if listed.iter().any(|entry| entry.name == "worker.yaml") {
                self.report.warning(
                    "too-deep",
                    whole_file(&format!("{path}/worker.yaml")),
                    format!("the file is not read: it is more than {DEPTH_MAX} directories deep"),
                    "move the worker up",
                );
            }
            return;
        }
        let definition = self.definition(path, &listed);
        let is_worker = definition.is_some();
        if let Some(name) = definition {
            self.unit(path, &name, &listed);
        }
        for entry in &listed {
            self.report_unread(path, entry, (is_worker, depth));
        }
        for entry in listed {
            if matches!(entry.name.as_str(), ".git" | "node_modules") {
                continue;
            }
            let below = format!("{path}/{}", entry.name);
            let is_of_skills = entry.name == "skills";
            if entry.link {
                self.met.push((below.clone(), is_of_skills));
            }
            if is_worker && is_of_skills {
                continue;
            }
            if entry.link {
                self.link(below, &entry.name, depth);
            } else if entry.directory && self.visit(&below) {
                self.directory(&below, depth + 1);
            }
        }
    }

    /// Warns of a YAML file that looks like a worker's and is not read, because of its name or its directory.
    fn report_unread(&mut self, path: &str, entry: &Entry, (is_worker, depth): (bool, usize)) {
        let name = entry.name.to_lowercase();
        let Some((stem, "yaml" | "yml")) = name.rsplit_once('.') else {
            return;
        };
        let file = format!("{path}/{}", entry.name);
        let is_read = stem == "worker" && name == entry.name || self.registries.contains(&file);
        if entry.directory || is_read {
            return;
        }
        let is_named = stem.starts_with("worker");
        let is_meant =
            depth == 0 && !is_worker && unread::has_key(self.root, &file, &["worker:", "skills:"]);
        if !is_named && !is_meant {
            return;
        }
        let expected = if is_worker {
            let parent = path.rsplit_once('/').map_or(path, |(parent, _)| parent);
            format!("{parent}/{stem}/worker.yaml")
        } else if depth == 0 {
            format!("{path}/{stem}/worker.yaml")
        } else {
            format!("{path}/worker.yaml")
        };
        self.report.warning(
            "worker-file-unread",
            whole_file(&file),
            "the file is not read: a worker is defined in `worker.yaml` in a directory of its own".to_owned(),
            &format!("rename it to `{expected}`, or move it out of the directory of workers if it is for something else"),
        );
    }

    fn link(&mut self, path: String, name: &str, depth: usize) {
        match std::fs::metadata(self.root.path().join(&path)) {
            Ok(target) if target.is_dir() => self.links.push((path, depth + 1)),
            Ok(_) => {}
            // A definition that leads nowhere is told when it is read.
            Err(_) if matches!(name, "worker.yaml" | "worker.yml") => {}
            Err(error) => self.report.warning(
                "link-dangling",
                whole_file(&path),
                format!("the link cannot be followed: {error}"),
                "correct or remove it",
            ),
        }
    }

    fn visit(&mut self, path: &str) -> bool {
        self.root
            .stamp(path)
            .is_none_or(|stamp| self.visited.insert(stamp.identity()))
    }

    fn linked_directory(&mut self, path: &str, depth: usize) {
        match self.root.resolve(path) {
            Err(refusal) => super::open::report_refusal(&refusal, path, &mut self.report),
            Ok(_) if self.visit(path) => self.directory(path, depth),
            Ok(target) => self.report.note(
                "link-repeats",
                whole_file(path),
                format!("leads to `{}`, which is read already", target.display()),
                "",
            ),
        }
    }

    /// Name of the worker's file in a directory.
    fn definition(&mut self, path: &str, listed: &[Entry]) -> Option<String> {
        let has = |name: &str| listed.iter().any(|entry| entry.name == name);
        match (has("worker.yaml"), has("worker.yml")) {
            (true, false) => Some("worker.yaml".to_owned()),
            (true, true) => {
                self.report.warning(
                    "definition-ignored",
                    whole_file(&format!("{path}/worker.yml")),
                    "`worker.yaml` exists next to it and is read instead".to_owned(),
                    "remove one of them",
                );
                Some("worker.yaml".to_owned())
            }
            (false, true) => {
                self.report.warning(
                    "definition-name",
                    whole_file(&format!("{path}/worker.yml")),
                    "read as if it were named `worker.yaml`".to_owned(),
                    "rename it to `worker.yaml`",
                );
                Some("worker.yml".to_owned())
            }
            (false, false) => None,
        }
    }

    fn unit(&mut self, path: &str, name: &str, listed: &[Entry]) {
        let definition = format!("{path}/{name}");
        let skills = listed
            .iter()
            .find(|entry| entry.name == "skills" && (entry.directory || entry.link))
            .map(|entry| self.skill_files(&format!("{path}/skills"), entry.link))
            .unwrap_or_default();
        if listed
            .iter()
            .any(|entry| entry.name == "skill" && entry.directory)
        {
            let singular = format!("{path}/skill");
            let listed = self.list(&singular);
            unread::report_singular(self.root, &singular, &listed, &mut self.report);
        }
        let stamps = std::iter::once(&definition)
            .chain(&skills)
            .map(|file| self.root.stamp(file))
            .collect();
        self.units.push(UnitFiles {
            directory: path.to_owned(),
            definition,
            skills,
            stamps,
        });
    }

    /// Whether a directory may be entered: a link only while it stays inside the workspace.
    fn may_enter(&mut self, path: &str, link: bool) -> bool {
        if !link {
            return true;
        }
        match self.root.resolve(path) {
            Ok(_) => true,
            Err(refusal) => {
                super::open::report_refusal(&refusal, path, &mut self.report);
                false
            }
        }
    }

    fn skill_files(&mut self, path: &str, link: bool) -> Vec<String> {
        if !self.may_enter(path, link) {
            return Vec::new();
        }
        let mut files = Vec::new();
        for entry in self.list(path) {
            let below = format!("{path}/{}", entry.name);
            if entry.link {
                self.met.push((below.clone(), true));
            }
            let markdown = Path::new(&entry.name)
                .extension()
                .is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
            let is_directory = entry.directory
                || (entry.link
                    && std::fs::metadata(self.root.path().join(&below))
                        .is_ok_and(|target| target.is_dir()));
            if is_directory {
                files.extend(self.skill_in_directory(&below, entry.link));
            } else if markdown && is_page(&entry.name) {
                self.report.note(
                    "not-a-skill",
                    whole_file(&below),
                    "the file is documentation, not a skill".to_owned(),
                    "",
                );
            } else if markdown {
                files.push(below);
            } else {
                unread::report_skill(self.root, &below, &mut self.report);
            }
        }
        files
    }

    /// The `SKILL.md` of a directory, in another case only where it is the only one.
    fn skill_in_directory(&mut self, path: &str, link: bool) -> Option<String> {
        if matches!(path.rsplit('/').next(), Some(".git" | "node_modules")) {
            return None;
        }
        if !self.may_enter(path, link) {
            return None;
        }
        let listed = self.list(path);
        if listed.iter().any(|entry| entry.name == "SKILL.md") {
            return Some(format!("{path}/SKILL.md"));
        }
        let other = listed
            .into_iter()
            .find(|entry| entry.name.eq_ignore_ascii_case("SKILL.md"))?;
        let file = format!("{path}/{}", other.name);
        self.report.warning(
            "file-name-case",
            whole_file(&file),
            "read as if it were named `SKILL.md`".to_owned(),
            "rename it to `SKILL.md`",
        );
        Some(file)
    }
}

fn is_page(name: &str) -> bool {
    ["README.md", "INDEX.md", "CHANGELOG.md"]
        .iter()
        .any(|page| name.eq_ignore_ascii_case(page))
}
