//! The ways to write a skill that belongs to no worker, each in a file of its own, read into one form.

pub(crate) mod agent;
pub mod convert;
pub(crate) mod portable;
pub(crate) mod tools;
pub mod toolset;
pub mod wave;
pub(crate) mod workspace;

use super::executor::Named;
use super::input_schema;
use super::report::Report;
use super::tree::Data;
use super::view::View;
use crate::model::Dialect;
use crate::model::agent::ITERATIONS_DEFAULT;
use toolset::ListedFile;
use wave::Violation;

/// Where a definition stands, as far as its name and its form depend on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// In which way it is written.
    pub(crate) dialect: Dialect,
    /// Name of its directory, or its file's name without the ending.
    pub(crate) stem: &'a str,
    /// Whether that is its name where none is written.
    pub(crate) name_optional: bool,
    /// Whether it is a file of YAML alone.
    pub(crate) yaml: bool,
}

/// The keys of a skill, parsed, every default filled in.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a key of its own that a skill may have"
)]
pub struct Keys {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// Alias of a model.
    pub model: Option<String>,
    /// Tools that must exist before it starts.
    pub required_tools: Vec<String>,
    /// The only tools that it may use; absent: any.
    pub allowed_tools: Option<Vec<String>>,
    /// Tools that it may not use.
    pub disallowed_tools: Vec<String>,
    /// Tool sets that it brings.
    pub toolsets: Vec<String>,
    /// Files that may be loaded, where it lists some.
    pub files: Option<Vec<ListedFile>>,
    /// Turns of a model at most.
    pub max_iterations: u32,
    /// JSON Schema of its input.
    pub input_schema: Option<serde_json::Value>,
    /// Whether a model may start it by itself.
    pub model_invocable: bool,
    /// Whether a person may start it.
    pub user_invocable: bool,
    /// Whether it says that it changes things.
    pub mutating: bool,
    /// Whether a person has to approve what it does.
    pub approval_required: bool,
    /// What of the contract of its root it breaks; such a skill is listed and not handed out.
    pub violations: Vec<Violation>,
    /// Model and tool sets, with places.
    pub(crate) named: Named,
    /// In which way it is written.
    pub(crate) dialect: Dialect,
    /// Instructions that stand among the keys.
    pub(crate) instructions: Option<String>,
    /// Every key as written.
    pub written: serde_json::Map<String, serde_json::Value>,
}

/// Reads the keys of a skill; `None` when an error was reported.
pub(crate) fn read(view: View<'_>, origin: Origin<'_>, report: &mut Report) -> Option<Keys> {
    let before = report.errors();
    if !matches!(view.data(), Data::Map(_)) {
        let message = format!("the definition is {}, not a map of keys", view.kind());
        let hint = "write `name` and `description`";
        report.error("definition-shape", view.place(), message, hint);
        return None;
    }
    // First, so that a near miss of what is missing is told too.
    let written = Written::of(view, origin.dialect, report);
    let name = agent::name(view, origin, report);
    let description = agent::description(view, origin.dialect, report);
    let (name, description) = (name?, description?);
    let violations = match origin.dialect {
        Dialect::Wave => wave::violations(&name, origin.stem, &description),
        Dialect::Agent | Dialect::Workspace => Vec::new(),
    };
    let restrictions = agent::restrictions(&written, report);
    let tools = workspace::tools(&written, origin.dialect, report);
    let get = |key: &str| view.written(key);
    let named = Named {
        model: workspace::model(get("preferred_model"), get("model"), report),
        toolsets: get("toolsets")
            .and_then(|view| toolset::toolsets(view, report))
            .unwrap_or_default(),
    };
    let keys = Keys {
        model: named.model.as_ref().map(|(alias, _)| alias.clone()),
        required_tools: tools.required,
        allowed_tools: tools.allowed,
        disallowed_tools: tools.disallowed,
        toolsets: named
            .toolsets
            .iter()
            .map(|(name, _)| name.clone())
            .collect(),
        files: get("files").map(|view| toolset::files(view, report)),
        max_iterations: get("max_iterations")
            .and_then(|view| workspace::max_iterations(view, report))
            .unwrap_or(ITERATIONS_DEFAULT),
        input_schema: get("input_schema").and_then(|view| input_schema::read(view, report)),
        model_invocable: restrictions.model_invocable,
        user_invocable: restrictions.user_invocable,
        mutating: restrictions.mutating,
        approval_required: restrictions.approval_required,
        violations,
        dialect: origin.dialect,
        instructions: instructions(view, origin, report),
        written: view
            .entries()
            .map(|(key, value)| (key.to_owned(), value.json()))
            .collect(),
        named,
        name,
        description,
    };
    agent::report_not_evaluated(view, report);
    (report.errors() == before).then_some(keys)
}

/// Instructions of a file of YAML; in Markdown, `content` counts where the body is blank.
fn instructions(view: View<'_>, origin: Origin<'_>, report: &mut Report) -> Option<String> {
    let keys: &[&str] = if origin.yaml {
        &["instructions", "content"]
    } else {
        &["content"]
    };
    let value = keys.iter().find_map(|key| view.written(key))?;
    let texts = value.texts("instructions", report)?;
    Some(texts.join("\n")).filter(|text| !text.trim().is_empty())
}

/// The keys of a definition, those that restrict found under their usual misspellings too.
pub(crate) struct Written<'a> {
    view: View<'a>,
    /// The key that is meant, and the one that stands there.
    meant: Vec<(&'static str, &'a str)>,
}

impl<'a> Written<'a> {
    /// Tells unknown keys; a near miss of a restriction counts as the restriction.
    fn of(view: View<'a>, dialect: Dialect, report: &mut Report) -> Written<'a> {
        let mut meant = Vec::new();
        for (key, value) in view.entries() {
            if agent::is_known(key, dialect) || key.starts_with("x-") {
                continue;
            }
            if let Some(restriction) = agent::restriction(key, dialect) {
                report.warning(
                    "key-misspelled",
                    value.key_place(),
                    format!("`{key}` is read as `{restriction}`"),
                    &format!("write `{restriction}`"),
                );
                meant.push((restriction, key));
                continue;
            }
            match super::keys::suggest(key, agent::KNOWN) {
                Some(suggestion) => report.warning(
                    "key-misspelled",
                    value.key_place(),
                    format!("`{key}` is not a known key and has no effect"),
                    &format!("did you mean `{suggestion}`?"),
                ),
                None => report.note(
                    "unknown-key",
                    value.key_place(),
                    format!("`{key}` has no effect: no such key is known here"),
                    "",
                ),
            }
        }
        Written { view, meant }
    }

    /// Every value that stands for a restricting key, null included.
    pub(crate) fn all(&self, key: &str) -> Vec<View<'a>> {
        let misspelled = self
            .meant
            .iter()
            .filter(|(meant, _)| *meant == key)
            .filter_map(|(_, written)| self.view.get(written));
        self.view.get(key).into_iter().chain(misspelled).collect()
    }
}
