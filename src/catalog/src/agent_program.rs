//! `agent`: the program of others that executes instructions.

use std::path::Path;

use super::bounds::SILENCE_MS;
use super::keys::{AGENT, AGENT_DONE, AGENT_USAGE, suggest};
use super::models::{key, url};
use super::report::Report;
use super::tree::Data;
use super::view::View;
use crate::model::Config;
use crate::model::agent::{
    AgentProgram, Answers, DESCRIBED, Described, KeySource, PROGRAM_SILENCE_MS, PROGRAMS, PromptBy,
};

const EXPECTED: &str = "a map such as `{cli: claude}`";

/// The value of `cli` that goes back to models.
const NONE: &str = "none";

/// What one level of a definition says; what is absent, an outer level says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct DeclaredProgram {
    cli: Option<String>,
    binary: Option<String>,
    model: Option<String>,
    base_url: Option<String>,
    key: Option<KeySource>,
    lends_login: Option<bool>,
    args: Option<Vec<String>>,
    env: Option<Vec<(String, String)>>,
    may_be_denied: Option<Vec<String>>,
    silence_ms: Option<u64>,
    described: Option<Described>,
}

impl DeclaredProgram {
    /// What holds where an outer level says something too. Another program shares nothing with the outer one.
    pub(crate) fn within(self, outer: &DeclaredProgram) -> DeclaredProgram {
        let is_other = self.cli.is_some() && self.cli != outer.cli;
        let outer = if is_other {
            DeclaredProgram::default()
        } else {
            outer.clone()
        };
        DeclaredProgram {
            cli: self.cli.or(outer.cli),
            binary: self.binary.or(outer.binary),
            model: self.model.or(outer.model),
            base_url: self.base_url.or(outer.base_url),
            key: self.key.or(outer.key),
            lends_login: self.lends_login.or(outer.lends_login),
            args: self.args.or(outer.args),
            env: self.env.or(outer.env),
            may_be_denied: self.may_be_denied.or(outer.may_be_denied),
            silence_ms: self.silence_ms.or(outer.silence_ms),
            described: self.described.or(outer.described),
        }
    }

    /// Reads `agent` of one level, where it stands, within the outer level.
    pub(crate) fn read_within(
        view: Option<View<'_>>,
        outer: &DeclaredProgram,
        report: &mut Report,
    ) -> DeclaredProgram {
        let own = view.map(|view| read(view, report)).unwrap_or_default();
        let is_map = |view: &View<'_>| matches!(view.data(), Data::Map(_));
        let found = own.within(outer);
        if let Some(view) = view.filter(|view| is_map(view) && found.cli.is_none()) {
            let message =
                "neither this `agent` nor an outer level sets the program to use".to_owned();
            report.error(
                "missing-key",
                view.key_place(),
                message,
                "add `cli: claude`",
            );
        }
        found
    }

    /// The levels of a resolved program, for a level within it.
    pub(crate) fn of(program: Option<&AgentProgram>) -> DeclaredProgram {
        let Some(program) = program else {
            return DeclaredProgram::default();
        };
        let program = program.clone();
        DeclaredProgram {
            cli: Some(program.cli),
            binary: Some(program.binary),
            model: program.model,
            base_url: program.base_url,
            key: program.key,
            lends_login: Some(program.lends_login),
            args: Some(program.args),
            env: Some(program.env),
            may_be_denied: Some(program.may_be_denied),
            silence_ms: Some(program.silence_ms),
            described: program.described,
        }
    }

    /// The program, where one is named; `model` is what the definition calls its model in other ways.
    pub(crate) fn resolved(self, model: Option<&str>, config: &Config) -> Option<AgentProgram> {
        let cli = self.cli.filter(|cli| cli != NONE)?;
        // An alias means nothing to a program.
        let model = model.filter(|model| !config.models.contains_key(*model));
        Some(AgentProgram {
            binary: self.binary.unwrap_or_else(|| cli.clone()),
            model: self.model.or_else(|| model.map(str::to_owned)),
            base_url: self.base_url,
            key: self.key,
            lends_login: self.lends_login.unwrap_or(false),
            args: self.args.unwrap_or_default(),
            env: self.env.unwrap_or_default(),
            may_be_denied: self.may_be_denied.unwrap_or_default(),
            silence_ms: self.silence_ms.unwrap_or(PROGRAM_SILENCE_MS),
            described: self.described.filter(|_| cli == DESCRIBED),
            cli,
        })
    }

    /// Whether a program executes instructions at this level.
    pub(crate) fn names_program(&self) -> bool {
        self.cli.as_deref().is_some_and(|cli| cli != NONE)
    }
}

/// Reads `agent`. Text is what other agents keep there, the kind of a subagent, and says nothing of a program.
fn read(view: View<'_>, report: &mut Report) -> DeclaredProgram {
    let mut asked = DeclaredProgram::default();
    if !matches!(view.data(), Data::Map(_)) {
        return asked;
    }
    AGENT.is_map(view, "agent", EXPECTED, report);
    let get = |key: &str| view.written(key);
    let text =
        |key: &str, report: &mut Report| get(key).and_then(|view| view.filled_text(key, report));
    asked.cli = get("cli").and_then(|view| word(view, "cli", &names(), report));
    asked.binary = get("binary").and_then(|view| binary(view, report));
    asked.model = text("model", report);
    asked.base_url = get("base_url").and_then(|view| url(view, "base_url", report));
    asked.key = get("key").and_then(|view| key(view, report));
    let login = get("login").and_then(|view| word(view, "login", &["own", "host"], report));
    asked.lends_login = login.map(|login| login == "host");
    asked.args = get("args").and_then(|view| view.texts("args", report));
    asked.env = get("env").map(|view| variables(view, report));
    asked.may_be_denied = get("may_be_denied").and_then(|view| view.texts("may_be_denied", report));
    asked.silence_ms = get("silence").and_then(|view| view.millis("silence", report));
    asked.described = described(view, report);
    let is_generic = asked.cli.as_deref() == Some(DESCRIBED);
    if is_generic && asked.binary.is_none() {
        let hint = "add `binary:` with a program on the path, or an absolute path";
        report.error(
            "missing-key",
            view.place(),
            "a described program has no `binary`".to_owned(),
            hint,
        );
    }
    if let Some(found) = asked.silence_ms.filter(|found| *found < SILENCE_MS) {
        let message = format!("`silence` of {found} ms ends a program before its model can answer");
        report.error("value-range", view.place(), message, "write at least `1s`");
    }
    asked
}

/// The program that HQ names below `cli` of a worker: `{binary: gemini}`.
pub(crate) fn of_hq(view: View<'_>) -> DeclaredProgram {
    let binary = view.written("binary").and_then(|view| view.scalar_text());
    let name = binary
        .as_deref()
        .and_then(|binary| Path::new(binary).file_name()?.to_str());
    DeclaredProgram {
        // Its path is that of another machine.
        cli: name
            .filter(|name| PROGRAMS.contains(name))
            .map(str::to_owned),
        ..DeclaredProgram::default()
    }
}

/// Variables by name, with their values.
fn variables(view: View<'_>, report: &mut Report) -> Vec<(String, String)> {
    if !matches!(view.data(), Data::Map(_)) {
        view.wrong_type("env", "a map of names and values", report);
        return Vec::new();
    }
    let mut found = Vec::new();
    for (name, value) in view.entries() {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(fits) || name.starts_with("WORKERCTL_") {
            let message = format!("`{}` is no name of a variable here", name.escape_debug());
            let hint = "use letters, digits and `_`; names such as `WORKERCTL_…` are reserved for the engine";
            report.error("name-invalid", value.key_place(), message, hint);
        } else if let Some(text) = value.text(name, report) {
            found.push((name.to_owned(), text));
        }
    }
    found
}

fn names() -> Vec<&'static str> {
    PROGRAMS.into_iter().chain([DESCRIBED, NONE]).collect()
}

/// One of several words.
fn word(view: View<'_>, key: &str, words: &[&str], report: &mut Report) -> Option<String> {
    let text = view.filled_text(key, report)?;
    if words.contains(&text.as_str()) {
        return Some(text);
    }
    let hint = suggest(&text, words).map_or_else(
        || format!("write one of `{}`", words.join("`, `")),
        |meant| format!("did you mean `{meant}`?"),
    );
    let message = format!("`{key}: {}` is not known", text.escape_debug());
    report.error("unknown-value", view.place(), message, &hint);
    None
}

fn binary(view: View<'_>, report: &mut Report) -> Option<String> {
    let text = view.filled_text("binary", report)?;
    if text.contains('/') && !text.starts_with('/') {
        let message = format!(
            "`binary: {}` is neither a name nor an absolute path",
            text.escape_debug()
        );
        report.error(
            "path-relative",
            view.place(),
            message,
            "write a name that is on the path of the engine, or an absolute path",
        );
        return None;
    }
    Some(text)
}

fn described(view: View<'_>, report: &mut Report) -> Option<Described> {
    const OWN: [&str; 7] = [
        "prompt", "output", "done", "result", "failure", "denials", "usage",
    ];
    OWN.iter().find_map(|key| view.written(key))?;
    let get = |key: &str| view.written(key);
    let at = |view: Option<View<'_>>, key: &str, report: &mut Report| {
        view.and_then(|view| pointer(view, key, report))
    };
    let prompt =
        get("prompt").and_then(|view| word(view, "prompt", &["stdin", "argument", "file"], report));
    let output =
        get("output").and_then(|view| word(view, "output", &["text", "json", "jsonl"], report));
    let done = get("done")
        .filter(|view| AGENT_DONE.is_map(*view, "done", "a map with `at` and `is`", report));
    let usage = get("usage").filter(|view| {
        AGENT_USAGE.is_map(*view, "usage", "a map with `input` and `output`", report)
    });
    let of_usage =
        |key: &str, report: &mut Report| at(usage.and_then(|view| view.written(key)), key, report);
    Some(Described {
        prompt: match prompt.as_deref() {
            Some("argument") => PromptBy::Argument,
            Some("file") => PromptBy::File,
            _ => PromptBy::Stdin,
        },
        output: match output.as_deref() {
            Some("json") => Answers::Json,
            Some("jsonl") => Answers::Jsonl,
            _ => Answers::Text,
        },
        done: done.and_then(|view| {
            let place = at(view.written("at"), "at", report)?;
            Some((place, view.written("is")?.scalar_text()?))
        }),
        result: at(get("result"), "result", report),
        failure: at(get("failure"), "failure", report),
        denials: at(get("denials"), "denials", report),
        input_tokens: of_usage("input", report),
        output_tokens: of_usage("output", report),
        cost: of_usage("cost", report),
    })
}

/// A pointer of RFC 6901.
fn pointer(view: View<'_>, key: &str, report: &mut Report) -> Option<String> {
    let text = view.filled_text(key, report)?;
    if text.starts_with('/') {
        return Some(text);
    }
    let message = format!("`{key}: {}` is no pointer into JSON", text.escape_debug());
    report.error(
        "value-invalid",
        view.place(),
        message,
        "write a path such as `/usage/input_tokens`",
    );
    None
}
