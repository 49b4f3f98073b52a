//! All skills of one state of the definitions, as clients see them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::listing::{Form, Line, list};
use crate::catalog::roots::trust::{Trust, TrustFiles};
use crate::catalog::{Catalog, Conditions, Lookup, RootSkill};
use crate::engine::check_tools;
use crate::model::definition::RunText;
use crate::model::legible::{legible, legible_lines};
use crate::model::{Config, McpMutating, Scope, Skill, SkillRef, Worker};

/// Why a mutating skill is not run for a client. A model reads this, so it does not name the setting that decides.
pub(super) fn not_allowed(setting: McpMutating) -> &'static str {
    match setting {
        McpMutating::Ask => {
            "it changes things, and this client cannot ask a person first. \
             A user can run it: `workerctl run`"
        }
        McpMutating::Allow | McpMutating::Refuse => {
            "it changes things, which clients of this server may not. \
             A user can run it: `workerctl run`"
        }
    }
}

/// Why a model is not given a skill that is for people.
pub(super) const PEOPLE_ONLY: &str = "it is for people: a model may not start it by itself";

/// Why instructions cannot be carried out, as the catalog names it.
pub(super) const NO_EXECUTOR: &str = "no-executor";

/// What a client knows as one skill.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// The name that finds it, with what is hidden in it escaped.
    pub(super) name: String,
    /// What it is.
    pub(super) what: What,
    /// Whether a model may start it by itself.
    for_models: bool,
    /// Whether a person may start it.
    for_people: bool,
    /// The name, folded, that it would have if nothing stood before it.
    aside: Option<String>,
    /// Its description where that holds what a client must not be shown as it is.
    legible: Option<Arc<str>>,
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
    /// To nobody: its definition violates the rules of its skill directory.
    Invalid,
    /// To nobody until somebody trusts it as it is.
    Untrusted(Trust),
}

impl Standing {
    /// Why it is not handed out to a model; `None`: it is.
    pub(super) fn reason(self) -> Option<Cow<'static, str>> {
        match self {
            Standing::Ready => None,
            Standing::PeopleOnly => Some(PEOPLE_ONLY.into()),
            Standing::Invalid => Some("it breaks the rules of its root".into()),
            Standing::Untrusted(trust) => trust.reason(),
        }
    }
}

/// All skills.
pub(super) struct Skills {
    /// The definitions.
    pub(super) catalog: Arc<Catalog>,
    /// Whether skills that change things may run for the client, be it after a question.
    pub(super) may_change: bool,
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
        if let Some(legible) = &self.legible {
            return legible;
        }
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
            aside: None,
            legible: escaped(&skill.description),
        }
    }

    /// A skill of a root under the name that finds it: its own, unless something else has that.
    pub(super) fn of_root(catalog: &Catalog, skill: &Arc<RootSkill>) -> Entry {
        let own = skill.has_own_name() && finds(catalog, &skill.name, skill);
        let stands_aside = !own && !skill.reads_as_qualified;
        let name = if own {
            skill.name.clone()
        } else {
            skill.qualified()
        };
        Entry {
            name: legible(&name).into_owned(),
            aside: stands_aside.then(|| legible(&skill.name).to_lowercase()),
            legible: escaped(&skill.description),
            what: What::Root(Arc::clone(skill)),
            for_models: skill.model_invocable,
            for_people: skill.user_invocable,
        }
    }

    /// Whether it changes things.
    pub(super) fn is_mutating(&self) -> bool {
        match &self.what {
            What::Worker(_, skill) => skill.mutating,
            What::Root(skill) => skill.mutating,
        }
    }

    /// Why nobody can use it as it is, not even as instructions; `None`: somebody can.
    pub(super) fn unusable(&self) -> Option<String> {
        let What::Worker(worker, skill) = &self.what else {
            return None;
        };
        let reasons = skill.unavailable.iter();
        let reasons: Vec<&str> = reasons
            .filter(|one| one.code != NO_EXECUTOR)
            .map(|one| one.reason.as_str())
            .chain(worker.template.then_some("its worker is a template"))
            .collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

impl Entry {
    /// Why no model executes its instructions; `None`: one does, or it has a command.
    pub(super) fn lack(&self) -> Option<&str> {
        match &self.what {
            What::Worker(_, skill) => {
                let mut reasons = skill.unavailable.iter();
                let found = reasons.find(|one| one.code == NO_EXECUTOR);
                found.map(|one| one.reason.as_str())
            }
            What::Root(skill) => skill.lack(),
        }
    }

    /// Why its instructions are handed to no model of a client, which would follow them without asking anybody; `None`:
    /// they are.
    pub(super) fn withheld(&self) -> Option<&'static str> {
        let asks = match &self.what {
            What::Worker(_, skill) => {
                skill.approval.is_some() && skill.run == RunText::Instructions
            }
            What::Root(skill) => skill.approval_required && skill.is_executed(),
        };
        asks.then_some("a user must approve it; `use_skill` asks for approval")
    }
}

/// A description without what is hidden in it; `None`: nothing is.
fn escaped(description: &str) -> Option<Arc<str>> {
    match legible_lines(description) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text.into()),
    }
}

/// Whether a name leads to a skill of a root.
fn finds(catalog: &Catalog, name: &str, skill: &RootSkill) -> bool {
    matches!(lookup(catalog, name), Some(Lookup::OfRoot(one)) if one.place == skill.place)
}

impl Skills {
    /// Arranges what a catalog holds, for clients whose person can be asked or for others.
    pub(super) fn of(catalog: Arc<Catalog>, can_ask: bool, state_dir: &Path) -> Skills {
        // Each name is looked up once: thousands may share one.
        let mut owners: HashMap<String, Option<SkillRef>> = HashMap::new();
        let of_workers = catalog.skills().map(|(worker, skill)| {
            let bare = skill.address.skill.as_str();
            let owner =
                owners
                    .entry(bare.to_lowercase())
                    .or_insert_with(|| match lookup(&catalog, bare) {
                        Some(Lookup::Found(_, one)) => Some(one.address.clone()),
                        _ => None,
                    });
            let own = owner.as_ref() == Some(&skill.address);
            let name = if own {
                bare.to_owned()
            } else {
                format!("{}:{bare}", worker.id)
            };
            Entry::of_worker(name, worker, skill)
        });
        // What shares even its qualified name with another one in its root is found by no name.
        let of_roots = catalog.root_skills.skills.iter();
        let of_roots = of_roots
            .map(|skill| (skill, Entry::of_root(&catalog, skill)))
            .filter(|(skill, _)| skill.has_own_name() || finds(&catalog, &skill.qualified(), skill))
            .map(|(_, one)| one);
        let mut entries: Vec<Entry> = of_workers.chain(of_roots).collect();
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
            may_change: match catalog.config.mcp.mutating {
                McpMutating::Allow => true,
                McpMutating::Ask => can_ask,
                McpMutating::Refuse => false,
            },
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

    /// Whether it is offered at all: what can be used, and what changes things only where the configuration
    /// says so.
    fn is_offered(&self, entry: &Entry) -> bool {
        let may_run = self.may_change || !entry.is_mutating();
        may_run && entry.unusable().is_none() && entry.withheld().is_none()
    }

    /// Whether a model may use it.
    pub(super) fn is_for_models(&self, entry: &Entry) -> bool {
        self.is_offered(entry) && self.standing(entry) == Standing::Ready
    }

    /// Whether another skill has its name and is offered instead of it.
    fn stands_aside(&self, entry: &Entry, is_offered: impl Fn(&Entry) -> bool) -> bool {
        let first = entry.aside.as_deref().and_then(|name| self.named(name));
        first.is_some_and(is_offered)
    }

    /// Skills that a model may use, each name once.
    pub(super) fn for_models(&self) -> impl Iterator<Item = &Entry> {
        let aside = |one: &Entry| self.stands_aside(one, |first| self.is_for_models(first));
        let all = self.entries.iter();
        all.filter(move |one| !aside(one) && self.is_for_models(one))
    }

    /// Skills that a person may use, each name once.
    pub(super) fn for_people(&self) -> impl Iterator<Item = &Entry> {
        let aside = |one: &Entry| self.stands_aside(one, |first| self.is_for_people(first));
        let all = self.entries.iter();
        all.filter(move |one| !aside(one) && self.is_for_people(one))
    }

    /// Why a client cannot use it now; `None`: it can.
    pub(super) fn unavailable(&self, entry: &Entry) -> Option<String> {
        let standing = || self.standing(entry).reason().map(Cow::into_owned);
        let refused = entry.is_mutating() && !self.may_change;
        let not_allowed = || refused.then(|| self.not_allowed().to_owned());
        let What::Worker(_, skill) = &entry.what else {
            return standing().or_else(not_allowed);
        };
        let reasons: Vec<&str> = skill
            .unavailable
            .iter()
            .map(|one| one.reason.as_str())
            .collect();
        (!reasons.is_empty())
            .then(|| reasons.join("; "))
            .or_else(not_allowed)
            .or_else(|| entry.unusable())
            .or_else(standing)
            .or_else(|| not_run(skill, &self.catalog.config))
    }

    /// Why a mutating skill is not run.
    pub(super) fn not_allowed(&self) -> &'static str {
        not_allowed(self.catalog.config.mcp.mutating)
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
            Cow::Borrowed(self.listed.get_or_init(|| Lists::of(self, None)))
        } else {
            Cow::Owned(Lists::of(self, None))
        }
    }

    /// The same as lines, without one that is not there any more.
    pub(super) fn listed_without(&self, gone: &Entry) -> Lists {
        Lists::of(self, Some(gone))
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
    /// Whether they hold no skill, and say so instead.
    pub(super) is_empty: bool,
}

impl Lists {
    fn of(skills: &Skills, gone: Option<&Entry>) -> Lists {
        // Nothing to list is said in words, for who reads an empty list looks for the rest of it.
        let none = if skills.entries.is_empty() {
            "There are no skills here."
        } else {
            "No skill can be used here; `list_skills` says why."
        };
        let lines: Vec<Line<'_>> = skills
            .for_models()
            .filter(|entry| gone.is_none_or(|gone| entry.name != gone.name))
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
        if lines.is_empty() {
            return Lists {
                xml: none.to_owned(),
                dashes: none.to_owned(),
                is_empty: true,
            };
        }
        let budget = skills.list_bytes();
        Lists {
            is_empty: false,
            xml: list(&lines, Form::Xml, budget),
            dashes: list(&lines, Form::Dashes, budget),
        }
    }
}

/// Why `use_skill` does not run a worker's skill; `None`: it does, or only a model is missing.
pub(super) fn not_run(skill: &Skill, config: &Config) -> Option<String> {
    if skill.unavailable.iter().any(|one| one.code == NO_EXECUTOR) {
        return None;
    }
    let lacks = check_tools(skill, config).err();
    lacks
        .map(|refused| refused.message)
        .or_else(|| held_to_tools(skill))
}

/// Why a command is run for no client; `None`: it may be, or there is none.
pub(super) fn held_to_tools(skill: &Skill) -> Option<String> {
    let conditions = Conditions::of(skill);
    let is_command = skill.run != RunText::Instructions;
    let restricts = conditions.allowed_tools.is_some() || !conditions.disallowed_tools.is_empty();
    (is_command && restricts).then(|| {
        "it restricts the tools, which cannot be enforced for its command. A user can run it: `workerctl run`".to_owned()
    })
}

/// What a name leads to that is no address, by the rule that commands have too.
pub(super) fn lookup(catalog: &Catalog, name: &str) -> Option<Lookup> {
    let wanted = name.trim().to_lowercase();
    let (source, bare) = wanted.rsplit_once(':').unwrap_or(("", &wanted));
    if wanted.is_empty() || odd(bare) {
        return None;
    }
    // The label of a source may hold separators, which are no addresses here.
    let fits =
        |found: &Lookup| !odd(source) || matches!(found, Lookup::OfRoot(_) | Lookup::Refused(..));
    catalog.find_exactly(&wanted).filter(fits)
}

/// Whether a text could be taken for a path, or shown as something else.
pub(super) fn odd(text: &str) -> bool {
    text.contains(['/', '\\']) || text.contains("..") || text.chars().any(char::is_control)
}
