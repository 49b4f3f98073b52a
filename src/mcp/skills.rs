//! All skills of one state of the definitions, as clients see them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::finding::lookup;
use super::listing::{Form, Line, list};
use crate::catalog::roots::trust::{Trust, TrustFiles};
use crate::catalog::{Catalog, Conditions, Lookup, RootSkill};
use crate::model::{Scope, Skill, Worker};

/// What a client knows as one skill.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The name that finds it.
    pub(super) name: String,
    /// What it is.
    pub(super) what: What,
    /// Whether a model may start it by itself.
    for_models: bool,
    /// Whether a person may start it.
    for_people: bool,
}

/// Whose skill it is.
#[derive(Debug, Clone)]
pub(super) enum What {
    /// A worker's: it runs.
    Worker(Arc<Worker>, Arc<Skill>),
    /// One of a root: instructions for a model.
    Root(Arc<RootSkill>),
}

/// Whether a skill is handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// To anybody.
    Ready,
    /// To people only.
    PeopleOnly,
    /// To nobody: it breaks the contract of its root.
    Invalid,
    /// To nobody until somebody trusts it as it is.
    Untrusted(Trust),
}

impl Standing {
    /// Why it is not handed out to a model; `None`: it is.
    pub(super) fn reason(self) -> Option<&'static str> {
        match self {
            Standing::Ready => None,
            Standing::PeopleOnly => Some("it is for people: a model may not start it by itself"),
            Standing::Invalid => Some("it breaks the rules of its root"),
            Standing::Untrusted(trust) => trust.reason(),
        }
    }
}

/// All skills.
pub(super) struct Skills {
    /// The definitions.
    pub(super) catalog: Arc<Catalog>,
    /// Every skill that is found by a name, in the order of names.
    pub(super) entries: Vec<Entry>,
    index: HashMap<String, usize>,
    trust: TrustFiles,
    /// Whether every root is trusted as a whole, so that what is listed cannot change by itself.
    all_trusted: bool,
    listed: OnceLock<Lists>,
}

impl Entry {
    /// What it does.
    pub(super) fn description(&self) -> &str {
        match &self.what {
            What::Worker(_, skill) => &skill.description,
            What::Root(skill) => &skill.description,
        }
    }

    /// Whether it belongs to the person and not to the workspace.
    pub(super) fn is_personal(&self, workspace: &Path) -> bool {
        match &self.what {
            What::Worker(..) => false,
            What::Root(skill) => match skill.root.scope {
                Scope::Workspace | Scope::Project => false,
                Scope::Personal => true,
                Scope::Extra => !skill.root.directory.starts_with(workspace),
            },
        }
    }

    /// Where it comes from: the label of its root, or its worker.
    pub(super) fn source(&self) -> &str {
        match &self.what {
            What::Worker(worker, _) => &worker.id,
            What::Root(skill) => &skill.root.label,
        }
    }

    /// A skill of a worker.
    pub(super) fn of_worker(name: String, worker: &Arc<Worker>, skill: &Arc<Skill>) -> Entry {
        let conditions = Conditions::of(skill);
        Entry {
            name,
            what: What::Worker(Arc::clone(worker), Arc::clone(skill)),
            for_models: conditions.model_invocable,
            for_people: conditions.user_invocable,
        }
    }

    /// A skill of a root under the name that finds it: its own, unless something else has that.
    pub(super) fn of_root(catalog: &Catalog, skill: &Arc<RootSkill>) -> Entry {
        let own = skill.shadowed_by.is_none()
            && matches!(lookup(catalog, &skill.name), Some(Lookup::OfRoot(one)) if one.place == skill.place);
        Entry {
            name: if own {
                skill.name.clone()
            } else {
                skill.qualified()
            },
            what: What::Root(Arc::clone(skill)),
            for_models: skill.model_invocable,
            for_people: skill.user_invocable,
        }
    }

    /// Whether it changes things.
    fn is_mutating(&self) -> bool {
        matches!(&self.what, What::Worker(_, skill) if skill.mutating)
    }
}

impl Skills {
    /// Arranges what a catalog holds.
    pub(super) fn of(catalog: Arc<Catalog>, state_dir: &Path) -> Skills {
        let mut once = HashSet::new();
        let mut several = HashSet::new();
        for (_, skill) in catalog.skills() {
            let name = skill.address.skill.to_lowercase();
            if !once.insert(name.clone()) {
                several.insert(name);
            }
        }
        let of_workers = catalog.skills().map(|(worker, skill)| {
            let bare = skill.address.skill.as_str();
            let name = if several.contains(&bare.to_lowercase()) {
                format!("{}:{bare}", worker.id)
            } else {
                bare.to_owned()
            };
            Entry::of_worker(name, worker, skill)
        });
        let of_roots = catalog.root_skills.visible();
        let mut entries: Vec<Entry> = of_workers
            .chain(of_roots.map(|skill| Entry::of_root(&catalog, skill)))
            .collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let index = entries.iter().enumerate();
        let index = index
            .map(|(at, entry)| (entry.name.to_lowercase(), at))
            .collect();
        Skills {
            entries,
            index,
            trust: TrustFiles::of(state_dir),
            all_trusted: catalog.root_skills.roots.iter().all(|root| root.trusted),
            listed: OnceLock::new(),
            catalog,
        }
    }

    /// The skill that has this name, case aside.
    pub(super) fn named(&self, lower: &str) -> Option<&Entry> {
        self.index.get(lower).and_then(|at| self.entries.get(*at))
    }

    /// Whether a skill is handed out as it is now.
    pub(super) fn standing(&self, entry: &Entry) -> Standing {
        match &entry.what {
            What::Root(skill) if !skill.valid => return Standing::Invalid,
            What::Root(skill) => {
                let trust = self.trust.state(skill);
                if !trust.holds() {
                    return Standing::Untrusted(trust);
                }
            }
            What::Worker(..) => {}
        }
        if entry.for_models {
            Standing::Ready
        } else {
            Standing::PeopleOnly
        }
    }

    /// What has been trusted.
    pub(super) fn trust(&self) -> &TrustFiles {
        &self.trust
    }

    /// Whether it is offered at all: what changes things only where the configuration says so.
    fn is_offered(&self, entry: &Entry) -> bool {
        self.catalog.config.mcp.mutating || !entry.is_mutating()
    }

    /// Skills that a model may use.
    pub(super) fn for_models(&self) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(|one| self.is_offered(one) && self.standing(one) == Standing::Ready)
    }

    /// Skills that a person may use.
    pub(super) fn for_people(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|one| self.is_for_people(one))
    }

    /// Whether a person may use it.
    pub(super) fn is_for_people(&self, entry: &Entry) -> bool {
        let usable = entry.for_people && self.is_offered(entry);
        let standing = self.standing(entry);
        usable && matches!(standing, Standing::Ready | Standing::PeopleOnly)
    }

    /// Lists of the skills that a model may use, made once where they cannot change.
    pub(super) fn listed(&self) -> Cow<'_, Lists> {
        if self.all_trusted {
            Cow::Borrowed(self.listed.get_or_init(|| Lists::of(self)))
        } else {
            Cow::Owned(Lists::of(self))
        }
    }

    /// Bytes that such a list may have.
    pub(super) fn list_bytes(&self) -> usize {
        usize::try_from(self.catalog.config.mcp.list_bytes).unwrap_or(usize::MAX)
    }
}

/// Skills that a model may use, in the forms in which they are told.
#[derive(Debug, Clone)]
pub(super) struct Lists {
    /// For the description of `skill`.
    pub(super) xml: String,
    /// For the description of `Skill`, and where a name leads nowhere.
    pub(super) dashes: String,
}

impl Lists {
    fn of(skills: &Skills) -> Lists {
        let lines: Vec<Line<'_>> = skills
            .for_models()
            .map(|entry| Line {
                name: &entry.name,
                description: entry.description(),
                location: if entry.is_personal(&skills.catalog.root) {
                    "global"
                } else {
                    "project"
                },
            })
            .collect();
        let budget = skills.list_bytes();
        Lists {
            xml: list(&lines, Form::Xml, budget),
            dashes: list(&lines, Form::Dashes, budget),
        }
    }
}
