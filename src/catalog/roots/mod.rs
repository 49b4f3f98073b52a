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
pub(crate) mod scan;
pub(crate) mod settings;
pub mod trust;
pub mod validate;
mod views;
pub mod worker_page;

use std::path::PathBuf;
use std::sync::Arc;

use super::folded::Folded;
use super::open::Stamp;
use crate::model::{Place, Problem};
pub use order::SkillRoot;
pub use scan::Form;
pub use validate::{at_path, validate, validate_empty};
pub use views::{list, show, show_of_worker};

/// A skill of a root, as a list needs it.
#[derive(Debug, Clone, PartialEq)]
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
    /// `false`: it breaks the contract of its root; listed, and not handed out.
    pub valid: bool,
    /// The place of the skill that has its name; `None`: it is found by it.
    pub shadowed_by: Option<Place>,
    /// The directory that it is opened beneath, without links, and its path there.
    base: PathBuf,
    inner: String,
    stem: String,
}

impl RootSkill {
    /// Names it whatever shadows it: `~/.claude:git`.
    pub fn qualified(&self) -> String {
        format!("{}:{}", self.root.label, self.name)
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
    units: Vec<Arc<Unit>>,
    names: Folded<usize>,
    qualified: Folded<usize>,
}

/// One file with what reading it gave.
#[derive(Debug)]
struct Unit {
    shown: String,
    stamp: Option<Stamp>,
    root: Arc<SkillRoot>,
    skill: Option<Arc<RootSkill>>,
    problems: Vec<Problem>,
    place: Place,
    stem: String,
}

pub(crate) use assemble::{Known, is_stale, load};
#[cfg(test)]
pub(crate) use read::{Definition, of_bytes};

impl RootSkills {
    /// Skills that are found by their name.
    pub fn visible(&self) -> impl Iterator<Item = &Arc<RootSkill>> {
        self.skills
            .iter()
            .filter(|skill| skill.shadowed_by.is_none())
    }

    /// The skill of that name, or of a qualified one; case does not matter.
    pub fn find(&self, name: &str) -> Option<&Arc<RootSkill>> {
        let wanted = name.trim().to_lowercase();
        let all = || self.skills.iter().enumerate();
        let visible = || all().filter(|(_, skill)| skill.shadowed_by.is_none());
        let names = || visible().map(|(at, skill)| (skill.name.clone(), at));
        let qualified = || all().map(|(at, skill)| (skill.qualified(), at));
        let found = self.names.find(&wanted, names).first();
        let found = found.or_else(|| self.qualified.find(&wanted, qualified).first());
        self.skills.get(*found?)
    }

    /// The file that was left out where a skill of that name would stand.
    pub fn find_refused(&self, name: &str) -> Option<&Refused> {
        let wanted = name.trim().to_lowercase();
        self.refused
            .iter()
            .find(|one| one.stem.to_lowercase() == wanted)
    }
}
