//! Skills that belong to no worker: those of the workspace, of agent programs, and of roots that are added.
//!
//! Discovery reads every definition and keeps what a list needs; the rest is read anew for each use.

mod assemble;
pub mod beside;
pub mod files;
pub mod links;
pub mod loaded;
pub(crate) mod order;
mod read;
mod runnable;
pub(crate) mod scan;
pub(crate) mod settings;
pub mod trust;
pub mod validate;
mod views;
pub mod worker_page;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::executor::{Named, READ_ONLY_ROOT};
use super::folded::Folded;
use super::open::DefinitionStamp;
use crate::model::{Place, Problem};
pub use order::SkillRoot;
pub use scan::Form;
pub use validate::{at_path, validate};
pub use views::{list, of_root, of_worker, problems_of_roots, show, show_of_worker};

/// Colons of a name that may be the one behind its source: each is tried.
const COLONS_MAX: usize = 16;

/// A skill of a root, as a list needs it.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent thing that a list says of a skill"
)]
pub struct RootSkill {
    /// Its name, as written; looked up without regard to case.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// Where it was found.
    pub root: Arc<SkillRoot>,
    /// Where its definition stands.
    pub place: Place,
    /// Whether it is a directory or one file.
    pub form: Form,
    /// Whether a model may start it by itself.
    pub model_invocable: bool,
    /// Whether a person may start it.
    pub user_invocable: bool,
    /// Whether it says that it changes things.
    pub mutating: bool,
    /// Whether a person has to approve what it does.
    pub approval_required: bool,
    /// What it names of the configuration.
    pub(crate) named: Named,
    /// What it lacks to be executed.
    lack: Option<String>,
    /// `false`: its definition violates the rules of its skill directory; listed, and not handed out.
    pub valid: bool,
    /// The place of the skill that has its name; `None`: none stands before it.
    pub shadowed_by: Option<Place>,
    /// Whether its name reads like the qualified name of another skill: then only its own qualified name finds it.
    pub reads_as_qualified: bool,
    /// The directory that it is opened below, without links, and its path there.
    base: PathBuf,
    inner: String,
    stem: String,
}

impl RootSkill {
    /// Names it whatever shadows it: `~/.claude:git`.
    pub fn qualified(&self) -> String {
        format!("{}:{}", self.root.label, self.name)
    }

    /// Whether its name finds it, as far as skills of roots and of workers stand before it.
    pub fn has_own_name(&self) -> bool {
        self.shadowed_by.is_none() && !self.reads_as_qualified
    }

    /// The shortest name that is its own.
    pub fn address(&self) -> String {
        if self.has_own_name() {
            self.name.clone()
        } else {
            self.qualified()
        }
    }

    /// Why its instructions are not executed; `None`: a model executes them.
    pub fn lack(&self) -> Option<&str> {
        if self.is_executed() {
            return self.lack.as_deref();
        }
        Some(READ_ONLY_ROOT)
    }

    /// Name of its own file.
    pub(super) fn file_name(&self) -> &str {
        self.inner.rsplit('/').next().unwrap_or(&self.inner)
    }

    /// Directory of its file, absolute and without links.
    pub fn directory(&self) -> PathBuf {
        let path = self.base.join(&self.inner);
        path.parent().map_or(path.clone(), PathBuf::from)
    }
}

/// A file that is no skill that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The name that its place gives it.
    pub stem: String,
    /// Where it was found.
    pub root: Arc<SkillRoot>,
    /// Where it stands.
    pub place: Place,
}

/// All skills of all roots.
#[derive(Debug, Default)]
pub struct RootSkills {
    /// Roots that are there, those that cannot be read included, in their order.
    pub roots: Vec<Arc<SkillRoot>>,
    /// Every skill, shadowed ones included, in the order of the roots.
    pub skills: Vec<Arc<RootSkill>>,
    /// Files that were left out.
    pub refused: Vec<Refused>,
    /// Everything that was found outside of the workspace; the rest is among the catalog's.
    pub problems_outside: Vec<Problem>,
    /// Every link in the roots, absolute.
    pub(crate) links: Vec<PathBuf>,
    units: Vec<Arc<Unit>>,
    /// What may stand before the colon of a qualified name, folded: labels of roots, and ids of workers.
    sources: HashSet<String>,
    names: Folded<usize>,
    qualified: Folded<usize>,
}

/// One file with what reading it gave.
#[derive(Debug)]
struct Unit {
    shown: String,
    stamp: Option<DefinitionStamp>,
    root: Arc<SkillRoot>,
    skill: Option<Arc<RootSkill>>,
    problems: Vec<Problem>,
    place: Place,
    stem: String,
}

pub(crate) use assemble::{RootsContext, is_stale, load};
#[cfg(test)]
pub(crate) use read::{Definition, of_bytes};

impl RootSkills {
    /// None, beside the workers of these ids.
    pub(crate) fn beside(workers: impl Iterator<Item = String>) -> RootSkills {
        RootSkills {
            sources: workers.collect(),
            ..RootSkills::default()
        }
    }

    /// Skills that are found by their name.
    pub fn visible(&self) -> impl Iterator<Item = &Arc<RootSkill>> {
        self.skills.iter().filter(|skill| skill.has_own_name())
    }

    /// The skill of that name, or of a qualified one; case does not matter.
    pub fn find(&self, name: &str) -> Option<&Arc<RootSkill>> {
        let wanted = name.trim().to_lowercase();
        let all = self.skills.iter().enumerate();
        let visible = all.filter(|(_, skill)| skill.has_own_name());
        let names = || visible.map(|(at, skill)| (skill.name.clone(), at));
        let found = self.names.find(&wanted, names).first();
        match found {
            Some(at) => self.skills.get(*at),
            None => self.find_qualified(&wanted),
        }
    }

    /// The skill of that qualified name, or whose runs have that address, in lower case. Of several in one root the one that comes first there,
    /// of several roots the one with the longest label.
    pub(super) fn find_qualified(&self, wanted: &str) -> Option<&Arc<RootSkill>> {
        let qualified = || {
            let mut all: Vec<(usize, &Arc<RootSkill>)> = self.skills.iter().enumerate().collect();
            let is_placed = |skill: &RootSkill| skill.stem == skill.name;
            all.sort_by_key(|(_, skill)| {
                let longest = Reverse(skill.root.label.len());
                (longest, !skill.valid, !is_placed(skill))
            });
            all.into_iter().flat_map(|(at, skill)| {
                let executed = skill.is_executed();
                let address = executed.then(|| skill.run_address().to_string());
                let names = std::iter::once(skill.qualified()).chain(address);
                names.map(move |name| (name, at))
            })
        };
        let found = self.qualified.find(wanted, qualified).first();
        self.skills.get(*found?)
    }

    /// Whether a name, in lower case, is a qualified one: what stands before a colon is the label of a root, or
    /// a worker.
    pub(super) fn is_qualified(&self, wanted: &str) -> bool {
        parts(wanted).any(|(source, _)| self.sources.contains(source))
    }

    /// The file that was left out where a skill of that name would stand.
    pub fn find_refused(&self, name: &str) -> Option<&Refused> {
        let wanted = name.trim().to_lowercase();
        let qualified =
            |one: &Refused| [':', '/'].map(|sign| format!("{}{sign}{}", one.root.label, one.stem));
        self.refused.iter().find(|one| {
            let names = qualified(one).map(|name| name.to_lowercase());
            one.stem.to_lowercase() == wanted || names.contains(&wanted)
        })
    }
}

/// The ways to read a name as `a:b`, with something on both sides.
pub(super) fn parts(wanted: &str) -> impl Iterator<Item = (&str, &str)> {
    let colons = wanted.match_indices(':').take(COLONS_MAX);
    let split = colons.map(|(at, _)| (&wanted[..at], &wanted[at + 1..]));
    split.filter(|(source, bare)| !source.is_empty() && !bare.is_empty())
}
