//! Finds files that may be skills: which exist, not what they say.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::order::SkillRoot;
use crate::entries::{self, Bound, Entry};
use crate::model::{Dialect, Problem, Scope};
use crate::open::{self, DefinitionStamp, Root};
use crate::report::Report;
use crate::source::whole_file;

/// Directories that may lie between a root and a skill.
const DEPTH_MAX: usize = 6;

/// Name of the file that makes a directory a skill.
pub(crate) const SKILL_FILE: &str = "SKILL.md";

/// Entries of one root that are looked at before the search gives up.
const ENTRIES_MAX: usize = 100_000;

/// Whether a skill is a directory or one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// `<name>/SKILL.md`, with whatever stands beside it.
    Directory,
    /// `<name>.md`.
    Page,
    /// `<name>.yaml` or `<name>.yml`.
    Yaml,
}

/// A file that may be a skill.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// The root that it was found in.
    pub(crate) root: Arc<SkillRoot>,
    /// The directory that it is opened below: its root, or the one that a link leads to.
    pub(crate) base: Arc<Root>,
    /// Its path there.
    pub(crate) inner: String,
    /// Its path in places of problems.
    pub(crate) shown: String,
    /// Name of its directory, or its own without the ending.
    pub(crate) stem: String,
    /// Its form.
    pub(crate) form: Form,
    /// What changes when it changes.
    pub(crate) stamp: Option<DefinitionStamp>,
}

/// What a search found.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// In the order of the roots; within a root by path.
    pub(crate) candidates: Vec<Candidate>,
    /// What stood in the way, by root.
    pub(crate) problems: Vec<(Arc<SkillRoot>, Problem)>,
    /// Roots that are there, those that cannot be read included.
    pub(crate) present: Vec<Arc<SkillRoot>>,
    /// Every link in the roots, absolute.
    pub(crate) links: Vec<PathBuf>,
}

/// Searches all roots.
pub(crate) fn search(workspace: &Root, roots: &[Arc<SkillRoot>]) -> Scan {
    let mut search = Search {
        allowed: Vec::new(),
        entered: HashSet::new(),
        links: Vec::new(),
        entries: Bound::new(
            ENTRIES_MAX,
            "in one root of skills",
            "keep data out of directories of skills",
        ),
        scan: Scan::default(),
        report: Report::default(),
    };
    let opened = search.open_all(workspace, roots);
    if opened.is_empty() {
        return search.finish(roots);
    }
    for (root, base) in opened {
        search.entries.restart();
        search.root(&root, &base);
        search.settle(&root);
    }
    // Links come last, so that a skill is known by its own path and not by a link to it.
    while let Some(link) = search.links.pop() {
        search.entries.restart();
        search.follow(&link);
        search.settle(&link.root);
    }
    search.finish(roots)
}

struct Link {
    root: Arc<SkillRoot>,
    path: PathBuf,
    shown: String,
    name: String,
    depth: usize,
}

/// A directory that is being searched.
#[derive(Clone, Copy)]
struct At<'a> {
    root: &'a Arc<SkillRoot>,
    base: &'a Arc<Root>,
    inner: &'a str,
    shown: &'a str,
    depth: usize,
}

struct Search {
    allowed: Vec<Arc<Root>>,
    /// Directories by their path without links.
    entered: HashSet<PathBuf>,
    links: Vec<Link>,
    entries: Bound,
    scan: Scan,
    report: Report,
}

impl Search {
    /// Opens every root that is there. A root of the project may lead into the workspace and other roots only;
    /// those of the person and of the configuration are where they were put.
    fn open_all(
        &mut self,
        workspace: &Root,
        roots: &[Arc<SkillRoot>],
    ) -> Vec<(Arc<SkillRoot>, Arc<Root>)> {
        let mut opened = Vec::new();
        for root in roots {
            match Root::open(&root.directory) {
                Ok(base) => opened.push((Arc::clone(root), Arc::new(base))),
                Err(error) if is_absent(&error) && root.scope != Scope::Extra => {}
                Err(error) => {
                    entries::unreadable(&root.shown, &error, &mut self.report);
                    self.scan.present.push(Arc::clone(root));
                    self.settle(root);
                }
            }
        }
        if opened.is_empty() {
            return opened;
        }
        self.allowed.extend(workspace.again().map(Arc::new));
        let own = |root: &SkillRoot| matches!(root.scope, Scope::Personal | Scope::Extra);
        self.allowed.extend(
            opened
                .iter()
                .filter(|(root, _)| own(root))
                .map(|(_, base)| Arc::clone(base)),
        );
        opened.retain(|(root, base)| {
            let inside = self.base_of(base.path()).is_some();
            if !inside {
                self.report.error(
                    "link-outside",
                    whole_file(&root.shown),
                    format!("leads to `{}`, out of the workspace", base.path().display()),
                    "name the directory under `skills.roots` of workerctl.yaml",
                );
                self.scan.present.push(Arc::clone(root));
                self.settle(root);
            } else if !self.entered.insert(base.path().to_owned()) {
                self.report.note(
                    "link-repeats",
                    whole_file(&root.shown),
                    format!("`{}` is read already", base.path().display()),
                    "",
                );
                self.settle(root);
                return false;
            }
            inside
        });
        opened
    }

    /// The open directory that a path without links lies in, the innermost one.
    fn base_of(&self, path: &Path) -> Option<Arc<Root>> {
        self.allowed
            .iter()
            .filter(|base| path.starts_with(base.path()))
            .max_by_key(|base| base.path().as_os_str().len())
            .map(Arc::clone)
    }

    /// Gives the problems so far to a root.
    fn settle(&mut self, root: &Arc<SkillRoot>) {
        let report = std::mem::take(&mut self.report);
        let problems = report.finish(whole_file(&root.shown));
        self.scan
            .problems
            .extend(problems.into_iter().map(|one| (Arc::clone(root), one)));
    }

    fn finish(mut self, roots: &[Arc<SkillRoot>]) -> Scan {
        let rank = |root: &Arc<SkillRoot>| roots.iter().position(|one| one == root);
        self.scan.present.sort_by_key(&rank);
        self.scan.candidates.sort_by(|a, b| {
            (rank(&a.root), a.form, &a.shown).cmp(&(rank(&b.root), b.form, &b.shown))
        });
        self.scan
    }

    fn root(&mut self, root: &Arc<SkillRoot>, base: &Arc<Root>) {
        self.scan.present.push(Arc::clone(root));
        self.directory(At {
            root,
            base,
            inner: "",
            shown: &root.shown,
            depth: 0,
        });
    }

    fn directory(&mut self, at: At<'_>) {
        let listed = self.list(&at.base.path().join(at.inner), at.shown);
        self.entries_of(at, listed);
    }

    fn entries_of(&mut self, at: At<'_>, listed: Vec<Entry>) {
        for entry in listed {
            if is_passed_over(&entry.name) {
                continue;
            }
            let shown = format!("{}/{}", at.shown, entry.name);
            let inner = below(at.inner, &entry.name);
            if entry.link {
                let path = at.base.path().join(&inner);
                self.scan.links.push(path.clone());
                // What has the name of a skill's file is told when that is read.
                let is_file = at.depth == 0 && at.root.dialect == Dialect::Workspace;
                if let Err(error) = path.metadata()
                    && !(is_file && form_of(&entry.name).is_some())
                {
                    self.leads_nowhere(&path, &shown, &error);
                    continue;
                }
                if path.is_dir() {
                    self.links.push(Link {
                        root: Arc::clone(at.root),
                        path,
                        shown,
                        name: entry.name,
                        depth: at.depth,
                    });
                    continue;
                }
            }
            if entry.directory {
                let below = At {
                    inner: &inner,
                    shown: &shown,
                    ..at
                };
                self.below(below, &entry.name);
            } else if at.depth == 0 {
                self.file(at, &entry.name, inner, shown);
            }
        }
    }

    /// A link in the place of a skill that leads to nothing.
    fn leads_nowhere(&mut self, path: &Path, shown: &str, error: &std::io::Error) {
        let target = std::fs::read_link(path).unwrap_or_default();
        let target = target.to_string_lossy();
        let (why, hint) = match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT | Errno::NOTDIR) => (
                "which is not there".to_owned(),
                "correct or remove the link",
            ),
            Some(Errno::LOOP) => ("in a circle".to_owned(), open::LOOP_HINT),
            _ => (
                error.to_string(),
                "check owner and mode of what it leads to",
            ),
        };
        self.report.warning(
            "link-dangling",
            whole_file(shown),
            format!("leads to `{}`, {why}", target.escape_debug()),
            hint,
        );
    }

    /// A directory of a root: a skill where it holds SKILL.md, else one that may hold skills.
    fn below(&mut self, at: At<'_>, name: &str) {
        let path = at.base.path().join(at.inner);
        if !self.entered.insert(path.clone()) {
            return;
        }
        let usual = below(at.inner, SKILL_FILE);
        if let Some(stamp) = at.base.stamp(&usual) {
            self.take(at, name, SKILL_FILE, Some(stamp));
            return;
        }
        let listed = self.list(&path, at.shown);
        let other = listed
            .iter()
            .find(|entry| entry.name.eq_ignore_ascii_case(SKILL_FILE));
        if let Some(other) = other {
            // A link that leads nowhere has the usual name.
            if other.name != SKILL_FILE {
                self.report.warning(
                    "file-name-case",
                    whole_file(&format!("{}/{}", at.shown, other.name)),
                    format!("read as if it were named `{SKILL_FILE}`"),
                    "rename it to `SKILL.md`",
                );
            }
            let stamp = at.base.stamp(&below(at.inner, &other.name));
            self.take(at, name, &other.name, stamp);
        } else if at.depth < DEPTH_MAX {
            let depth = at.depth + 1;
            self.entries_of(At { depth, ..at }, listed);
        }
    }

    fn take(&mut self, at: At<'_>, stem: &str, file: &str, stamp: Option<DefinitionStamp>) {
        self.scan.candidates.push(Candidate {
            root: Arc::clone(at.root),
            base: Arc::clone(at.base),
            inner: below(at.inner, file),
            shown: format!("{}/{file}", at.shown),
            stem: stem.to_owned(),
            form: Form::Directory,
            stamp,
        });
    }

    /// A file at the top of a root: a skill only where the dialect has such.
    fn file(&mut self, at: At<'_>, name: &str, inner: String, shown: String) {
        let Some((stem, form)) = form_of(name) else {
            return;
        };
        let page = ["README", "INDEX", "CHANGELOG"]
            .iter()
            .any(|page| stem.eq_ignore_ascii_case(page));
        let misplaced = name.eq_ignore_ascii_case("SKILL.md");
        if page || misplaced || at.root.dialect != Dialect::Workspace {
            if form == Form::Page {
                let hint = if page {
                    ""
                } else {
                    "put it into a directory of its own, as `SKILL.md`"
                };
                self.report.note(
                    "not-a-skill",
                    whole_file(&shown),
                    "a file of its own, which is no skill here".to_owned(),
                    hint,
                );
            }
            return;
        }
        self.scan.candidates.push(Candidate {
            root: Arc::clone(at.root),
            base: Arc::clone(at.base),
            stamp: at.base.stamp(&inner),
            inner,
            shown,
            stem: stem.to_owned(),
            form,
        });
    }

    fn follow(&mut self, link: &Link) {
        let real = match link.path.canonicalize() {
            Ok(real) => real,
            Err(error) => return entries::unreadable(&link.shown, &error, &mut self.report),
        };
        let Some(base) = self.base_of(&real) else {
            self.report.error(
                "link-outside",
                whole_file(&link.shown),
                format!("leads to `{}`, out of every root", real.display()),
                "copy the skill, or name its directory under `skills.roots` of workerctl.yaml",
            );
            return;
        };
        if self.entered.contains(&real) {
            self.report.note(
                "link-repeats",
                whole_file(&link.shown),
                format!("leads to `{}`, which is read already", real.display()),
                "",
            );
            return;
        }
        let inner = real.strip_prefix(base.path()).ok().and_then(Path::to_str);
        let Some(inner) = inner.map(str::to_owned) else {
            return entries::not_utf8(&link.shown, &real.to_string_lossy(), &mut self.report);
        };
        self.below(
            At {
                root: &link.root,
                base: &base,
                inner: &inner,
                shown: &link.shown,
                depth: link.depth,
            },
            &link.name,
        );
    }

    fn list(&mut self, path: &Path, shown: &str) -> Vec<Entry> {
        entries::list(path, shown, &mut self.entries, &mut self.report)
    }
}

/// What a file of its own is called, and its form, where its name is that of a skill.
fn form_of(name: &str) -> Option<(&str, Form)> {
    let (stem, ending) = name.rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        "md" => Some((stem, Form::Page)),
        "yaml" | "yml" => Some((stem, Form::Yaml)),
        _ => None,
    }
}

/// What a candidate holds, opened below its base.
pub(crate) fn bytes_of(candidate: &Candidate, report: &mut Report) -> Option<Vec<u8>> {
    match candidate.base.read(&candidate.inner) {
        Ok(bytes) => Some(bytes),
        Err(refusal) => {
            open::report_refusal(&refusal, &candidate.shown, report);
            None
        }
    }
}

/// Whether nothing of a directory is listed, vouched for, or read.
pub(super) fn is_passed_over(name: &str) -> bool {
    matches!(name, ".git" | "node_modules")
}

fn below(inner: &str, name: &str) -> String {
    if inner.is_empty() {
        name.to_owned()
    } else {
        format!("{inner}/{name}")
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
    )
}
