//! The current definitions, and the check of their texts while they are loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::config_acceptance::ConfigAcceptance;
use super::syntax::{self, Syntax};
use super::{names, shared_destinations, tool_rules};
use crate::catalog::{self, Catalog, Options, TextChecker, TextFinding, TextKind};
use crate::clock::zones;
use crate::clock::{Clock, SystemClock};
use crate::inputs;
use crate::model::config::CONFIG_FILE;
use crate::model::definition::RunText;
use crate::model::{Channel, Config, Place, Problem, Severity, Skill, Worker};
use crate::template::{
    ArgvTemplate, Compiled, MessageTemplate, Names, NamesProblem, PathTemplate, ShellText,
    TextProblem,
};

/// Looks at the texts of a skill with the same code that renders them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checker;

impl TextChecker for Checker {
    fn check(&self, skill: &Skill, texts: &[(TextKind, &str)]) -> Vec<Vec<TextFinding>> {
        let names = names::names(skill);
        let check = |(kind, text): &(TextKind, &str)| match (kind, &names) {
            (TextKind::Pattern, _) => pattern_findings(skill, text),
            (_, Ok(names)) => text_findings(skill, names, *kind, text),
            (_, Err(problems)) => problems.iter().map(name_finding).collect(),
        };
        let mut found: Vec<_> = texts.iter().map(check).collect();
        shared_destinations::add_repeated(skill, texts, &mut found);
        found
    }

    fn check_all(&self, workers: &[Arc<Worker>]) -> Vec<Problem> {
        let mut found = shared_destinations::problems(workers);
        found.extend(tool_rules::problems(workers));
        found
    }
}

/// Returns true if `env` of the skill sets the shell variable that a finding is about.
fn env_sets(skill: &Skill, text: &str, finding: &TextFinding) -> bool {
    let written = text.get(finding.offset..).unwrap_or_default();
    let name = written.trim_start_matches(['$', '{']);
    let end = name.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
    let name = &name[..end.unwrap_or(name.len())];
    skill.env.iter().any(|known| known == name) || skill.variables.contains_key(name)
}

fn text_findings(skill: &Skill, names: &Names, kind: TextKind, text: &str) -> Vec<TextFinding> {
    let dialect = names::dialect(skill.shell);
    match kind {
        TextKind::Run | TextKind::Check | TextKind::PreCheck => {
            let mut found = findings(ShellText::compile(text, names, dialect));
            found.retain(|finding| {
                finding.code != "shell-variable" || !env_sets(skill, text, finding)
            });
            found
        }
        TextKind::Argument => argument_findings(skill, text, names),
        TextKind::Destination => findings(PathTemplate::compile(text, names)),
        TextKind::CommitMessage => {
            let fields = super::submission::texts::message_fields(&skill.name);
            findings(MessageTemplate::compile(text, names, &fields))
        }
        TextKind::Hook => hook_findings(text, names, dialect),
        TextKind::Pattern => Vec::new(),
    }
}

fn name_finding(problem: &NamesProblem) -> TextFinding {
    TextFinding {
        code: "name".to_owned(),
        severity: Severity::Error,
        offset: 0,
        message: problem.to_string(),
        hint: Some("rename the input or the output".to_owned()),
    }
}

fn findings<T>(compiled: Result<Compiled<T>, Vec<TextProblem>>) -> Vec<TextFinding> {
    let problems = match compiled {
        Ok(compiled) => compiled.notes,
        Err(problems) => problems,
    };
    problems.iter().map(finding).collect()
}

/// An argument is read behind the program that it is given to; a program stands alone.
fn argument_findings(skill: &Skill, text: &str, names: &Names) -> Vec<TextFinding> {
    let (argv, place) = match &skill.run {
        RunText::Argv(argv) if argv.first().is_some_and(|first| first == text) => {
            (vec![text.to_owned()], 0)
        }
        RunText::Argv(argv) => {
            let program = argv.first().cloned().unwrap_or_default();
            (vec![program, text.to_owned()], 1)
        }
        _ => (vec!["script".to_owned(), text.to_owned()], 1),
    };
    match ArgvTemplate::compile(&argv, names) {
        Ok(compiled) => compiled.notes.iter().map(finding).collect(),
        Err(found) => {
            let own = found.iter().filter(|one| one.argument == place);
            own.map(|one| finding(&one.problem)).collect()
        }
    }
}

fn finding(problem: &TextProblem) -> TextFinding {
    TextFinding {
        code: problem.code.replace('_', "-"),
        severity: match problem.severity {
            crate::template::Severity::Error => Severity::Error,
            crate::template::Severity::Warning => Severity::Warning,
            crate::template::Severity::Note => Severity::Note,
        },
        offset: problem.offset.start,
        message: problem.message.clone(),
        hint: (!problem.hint.is_empty()).then(|| problem.hint.clone()),
    }
}

/// A hook's text is run as it is, so that a placeholder in it would stay one.
fn hook_findings(text: &str, names: &Names, dialect: crate::template::Dialect) -> Vec<TextFinding> {
    let Ok(compiled) = ShellText::compile(text, names, dialect) else {
        return Vec::new();
    };
    let uses = compiled.template.uses().iter();
    uses.map(|used| TextFinding {
        code: "placeholder-in-hook".to_owned(),
        severity: Severity::Warning,
        offset: used.offset.start,
        message: format!(
            "`{{{}}}` is not replaced in commands of `hooks` and `notify`",
            used.name
        ),
        hint: Some(
            "read the value from the event, JSON on standard input: `jq -r .skill`".to_owned(),
        ),
    })
    .collect()
}

fn pattern_findings(skill: &Skill, pattern: &str) -> Vec<TextFinding> {
    let with_pattern = skill
        .inputs
        .iter()
        .find(|input| input.pattern.as_deref() == Some(pattern));
    let found = with_pattern
        .map(inputs::check_declaration)
        .unwrap_or_default();
    let finding = |problem: inputs::InputProblem| TextFinding {
        code: problem.code.name().to_owned(),
        severity: Severity::Error,
        offset: 0,
        message: problem.message,
        hint: problem.hint,
    };
    found.into_iter().map(finding).collect()
}

/// As [`Checker`], and asks the shells themselves.
struct Thorough<'a> {
    syntax: &'a Syntax,
}

impl TextChecker for Thorough<'_> {
    fn check(&self, skill: &Skill, texts: &[(TextKind, &str)]) -> Vec<Vec<TextFinding>> {
        let mut found = Checker.check(skill, texts);
        let good = |one: &TextFinding| one.severity != Severity::Error;
        for (findings, (kind, text)) in found.iter_mut().zip(texts) {
            if findings.iter().all(good) {
                findings.extend(syntax::findings(self.syntax, skill, *kind, text));
            }
        }
        found
    }

    fn check_all(&self, workers: &[Arc<Worker>]) -> Vec<Problem> {
        Checker.check_all(workers)
    }
}

/// Reads a workspace with its texts checked, and every shell text read by the shell of the `PATH` in
/// `environment` that would run it.
pub fn load_thoroughly(workspace: &Path, environment: &BTreeMap<String, String>) -> Catalog {
    let syntax = Syntax::new(environment);
    let thorough = Thorough { syntax: &syntax };
    let home = home(environment);
    let options = Options {
        text_checker: Some(&thorough),
        ..options(home.as_deref())
    };
    let mut catalog = catalog::load(workspace, options);
    let own = [
        ("hooks.post_tools", &catalog.config.post_tools_hooks),
        ("hooks.post_commit", &catalog.config.post_commit_hooks),
    ];
    let mut found = Vec::new();
    let notify = &catalog.config.notify;
    let told = [
        ("notify.on_failure", &notify.on_failure),
        ("notify.on_recovery", &notify.on_recovery),
        ("notify.on_missed", &notify.on_missed),
        ("notify.on_approval", &notify.on_approval),
    ];
    let own = own.into_iter().map(|(key, hooks)| (key, hooks.as_slice()));
    let told = told
        .iter()
        .map(|(key, channel)| (*key, channel.as_ref().and_then(Channel::command)));
    let own = own.flat_map(|(key, hooks)| hooks.iter().map(move |hook| (key, hook)));
    let told = told.filter_map(|(key, hook)| Some((key, hook?)));
    for (key, hook) in own.chain(told) {
        let place = config_place(&catalog.config, key);
        found.extend(syntax::hook_problem(&syntax, &hook.command, place));
    }
    catalog.problems.extend(found);
    // One missing shell is one thing to know of each skill.
    let mut missing = BTreeSet::new();
    catalog.problems.retain(|problem| {
        problem.code != "shell-missing"
            || missing.insert((problem.worker.clone(), problem.skill.clone()))
    });
    catalog
        .problems
        .sort_by(|one, other| one.place.cmp(&other.place));
    catalog
}

/// Where the configuration says something.
fn config_place(config: &Config, key: &str) -> Place {
    let origin = config.origins.get(key);
    let line = origin.and_then(|origin| origin.rsplit_once(':')?.1.parse().ok());
    Place {
        path: CONFIG_FILE.into(),
        line: line.unwrap_or(0),
        column: 0,
    }
}

/// Reads a workspace with its texts checked, and the skills of the home directory of `environment`.
pub fn load(workspace: &Path, environment: &BTreeMap<String, String>) -> Catalog {
    catalog::load(workspace, options(home(environment).as_deref()))
}

/// Reads a workspace with its texts checked, and nothing outside of it but what its configuration names.
pub fn load_workspace(workspace: &Path) -> Catalog {
    catalog::load(workspace, options(None))
}

fn options(home: Option<&Path>) -> Options<'_> {
    Options {
        text_checker: Some(&Checker),
        now: Some(SystemClock::default().now()),
        home,
        ..Options::default()
    }
}

/// The home directory, where skills of a person are.
pub fn home(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let home = PathBuf::from(environment.get("HOME")?);
    home.is_absolute().then_some(home)
}

/// Is told of definitions that are active from now on.
pub type OnDefinitions = Box<dyn Fn(&Arc<Catalog>) + Send + Sync>;

/// Why definitions are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// A person asked for it, and accepts the configuration as it is.
    ByPerson,
    /// They have changed.
    Automatic,
}

/// The current definitions; replaced whole.
pub struct Definitions {
    home: Option<PathBuf>,
    acceptance: ConfigAcceptance,
    current: RwLock<Arc<Catalog>>,
    told: Mutex<Vec<OnDefinitions>>,
}

impl Definitions {
    /// Reads a workspace for the first time.
    pub fn load(
        workspace: &Path,
        state_dir: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Definitions {
        Definitions {
            home: home(environment),
            acceptance: ConfigAcceptance::new(workspace, state_dir),
            current: RwLock::new(Arc::new(load(workspace, environment))),
            told: Mutex::default(),
        }
    }

    /// Does this, briefly, with the current definitions now and with all that replace them.
    pub fn on_change(&self, told: OnDefinitions) {
        let mut all = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told(&self.current());
        all.push(told);
    }

    /// The current definitions.
    pub fn current(&self) -> Arc<Catalog> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads what changed; `None` when nothing did.
    pub fn reload_if_stale(&self) -> Option<Arc<Catalog>> {
        self.is_stale().then(|| self.reload(Reload::Automatic))
    }

    /// Whether anything changed, or a configuration that was not accepted is now.
    pub(super) fn is_stale(&self) -> bool {
        let current = self.current();
        current.is_stale()
            || current.config_fallback_reason().is_some() && self.acceptance.accepts_file()
    }

    /// Reads what changed, keeping the last good definition of what broke.
    pub(super) fn reload(&self, reload: Reload) -> Arc<Catalog> {
        let fresh = self.read_again(reload);
        // Held over both, so that nobody is told of them in another order than they came in.
        let all = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&fresh);
        for told in all.iter() {
            told(&fresh);
        }
        fresh
    }

    /// Returns the definitions as they are saved now, which need not be in force yet.
    pub(super) fn saved(&self) -> Arc<Catalog> {
        if self.is_stale() {
            self.read_again(Reload::Automatic)
        } else {
            self.current()
        }
    }

    fn read_again(&self, reload: Reload) -> Arc<Catalog> {
        let accepts = |text: Option<&str>, changes_rights: bool| match reload {
            Reload::ByPerson => {
                self.acceptance.accept(text);
                true
            }
            Reload::Automatic => !changes_rights || self.acceptance.accepts(text),
        };
        let options = Options {
            accepts_config: Some(&accepts),
            ..options(self.home.as_deref())
        };
        Arc::new(catalog::reload(&self.current(), options))
    }
}

/// Takes the rules of zones that an update of the machine has brought.
pub(super) fn look_at_zones() {
    let changed = zones::look_again();
    if !changed.is_empty() {
        let (zones, version) = (changed.join(", "), zones::data().version);
        tracing::info!(
            zones,
            version,
            "the machine has other rules for these zones"
        );
    }
}
