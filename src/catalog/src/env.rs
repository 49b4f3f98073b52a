//! Reads `env`: names of secret variables and where the value of each is kept, and values that are no secrets.

use std::collections::BTreeMap;

use super::keys::{ENV, SECRET, not_a_list, report_unknown};
use super::report::Report;
use super::run::is_command_line;
use super::texts::refuse_foreign;
use super::tree::Data;
use super::view::View;
use crate::bounds::SECRET_TIMEOUT_MS;
use crate::model::definition::PlainVariable;
use crate::model::{Place, SecretSource, SecretUse, SecretUses};

/// Longest name of a credential in bytes, as systemd has it.
const CREDENTIAL_NAME_BYTES_MAX: usize = 255;

/// What is said of a `secret` that does not say where its value is.
const ONE_SOURCE: &str = "write one of `{credential: NAME}`, `{file: /path}` and `{command: [program, argument]}`; the value does not belong here";

/// Variables that commands are given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Env {
    /// Names of secret variables, each once.
    pub(crate) names: Vec<String>,
    /// By name of a secret variable, where its value is.
    pub(crate) secrets: SecretUses,
    /// Variables that are no secrets.
    pub(crate) variables: BTreeMap<String, PlainVariable>,
}

impl Env {
    /// Adds the entries of `other`, which win.
    pub(crate) fn extend(&mut self, other: Env) {
        for name in other.names {
            self.secrets.remove(&name);
            self.variables.remove(&name);
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
        for name in other.variables.keys() {
            self.secrets.remove(name);
            self.names.retain(|known| known != name);
        }
        self.secrets.extend(other.secrets);
        self.variables.extend(other.variables);
    }

    fn plain(name: String, variable: PlainVariable) -> Env {
        Env {
            variables: BTreeMap::from([(name, variable)]),
            ..Env::default()
        }
    }
}

/// Reads `env`: a list of names and entries, or a map of values.
pub(crate) fn env(view: View<'_>, report: &mut Report) -> Env {
    let mut found = Env::default();
    match view.data() {
        Data::Null => return found,
        Data::List(_) => {}
        Data::Map(_) => {
            if view
                .entries()
                .any(|(_, value)| matches!(value.data(), Data::Map(_)))
            {
                not_a_list(view, "env", "name", report);
                return found;
            }
            for (name, value) in view.entries() {
                let is_valid = is_variable_name(name, value.key_place(), report);
                let value = plain_text(value, &format!("env.{name}"), report);
                if let Some(value) = value.filter(|_| is_valid) {
                    found.extend(Env::plain(name.to_owned(), PlainVariable::Value(value)));
                }
            }
            return found;
        }
        _ => {
            report.error(
                "wrong-type",
                view.place(),
                format!("`env` must be a list or a map, not {}", view.kind()),
                "write `env: [API_KEY]` for secrets of the engine's environment, or `env: {CI: \"1\"}` for values that are no secrets",
            );
            return found;
        }
    }
    for item in view.items() {
        found.extend(entry(item, report).unwrap_or_default());
    }
    found
}

fn entry(item: View<'_>, report: &mut Report) -> Option<Env> {
    let Some(named) = item.get("name") else {
        if let Some((name, _)) = item.entries().next() {
            let message = "an item of `env` is a name, or a map with `name`".to_owned();
            let name = if ENV.has(name) { "NAME" } else { name };
            let hint = format!(
                "write `- {name}` for a secret, or `- {{name: {name}, value: TEXT}}` for a value that is not one"
            );
            report.error("wrong-type", item.place(), message, &hint);
            return None;
        }
        let names = vec![variable_name(item, report)?];
        return Some(Env {
            names,
            ..Env::default()
        });
    };
    report_unknown(item, &ENV, report);
    let name = variable_name(named, report)?;
    if let Some(variable) = plain_variable(item, report) {
        return Some(Env::plain(name, variable));
    }
    let source = match (item.written("credential"), item.written("secret")) {
        (None, None) => None,
        (Some(credential), None) => Some(SecretSource::Credential(credential_name(
            credential, report,
        )?)),
        (None, Some(secret)) => Some(source(secret, report)?),
        (Some(_), Some(secret)) => {
            let message = format!("`{name}` has two places of its value");
            report.error("secret-source", secret.place(), message, ONE_SOURCE);
            return None;
        }
    };
    let as_file = match item.written("as") {
        None => false,
        Some(view) => is_file(view, report)?,
    };
    let mut found = Env {
        names: vec![name.clone()],
        ..Env::default()
    };
    if source.is_some() || as_file {
        let place = item.place().to_string();
        let one = SecretUse {
            source,
            as_file,
            place,
        };
        found.secrets.insert(name, one);
    }
    Some(found)
}

/// Reads `value` or `plain: true` of an entry; `None` if the entry is a secret.
fn plain_variable(item: View<'_>, report: &mut Report) -> Option<PlainVariable> {
    let is_secret = ["secret", "credential", "as"]
        .into_iter()
        .any(|key| item.written(key).is_some());
    let value = item.written("value");
    let plain = item.written("plain");
    let is_plain = plain.and_then(|view| view.flag("plain", report));
    if let Some(view) = value.or(plain.filter(|_| is_plain == Some(true)))
        && is_secret
    {
        report.error(
            "env-plain",
            view.key_place(),
            "the variable has both a plain value and keys of a secret".to_owned(),
            "remove `value` and `plain`, or `secret`, `credential` and `as`",
        );
        return None;
    }
    match value {
        Some(value) => plain_text(value, "value", report).map(PlainVariable::Value),
        None if is_plain == Some(true) => Some(PlainVariable::Inherited),
        None => None,
    }
}

fn plain_text(view: View<'_>, what: &str, report: &mut Report) -> Option<String> {
    let text = view.text(what, report)?;
    if refuse_foreign(view, &text, report) {
        return None;
    }
    if is_token(&text) {
        report.error(
            "secret-in-definition",
            view.place(),
            "this value looks like an access token, and definitions are in git".to_owned(),
            "revoke the token; write `env: [NAME]`, and set the variable for the engine or give it as a credential",
        );
        return None;
    }
    if let Some(name) = expansion(&text) {
        report.warning(
            "env-not-expanded",
            view.place(),
            format!("`{name}` is passed as it is: values of `env` are not expanded"),
            "write the value, or set the variable in `run`",
        );
    }
    Some(text)
}

/// Returns true if a text looks like an access token of a common service.
fn is_token(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    TOKENS.iter().any(|prefix| text.starts_with(prefix))
        && text.len() >= TOKEN_BYTES_MIN
        && text.chars().all(is_part)
        && text.contains(|c: char| c.is_ascii_digit())
}

/// How access tokens of common services begin, and the length of the shortest.
const TOKENS: [&str; 14] = [
    "AKIA",
    "AIza",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "hf_",
    "npm_",
    "sk-ant-",
    "sk-proj-",
    "sk_live_",
    "xoxb-",
    "xoxp-",
];
const TOKEN_BYTES_MIN: usize = 20;

/// The first `$NAME`, `${NAME}` or `$(` of a text.
fn expansion(text: &str) -> Option<&str> {
    text.match_indices('$').find_map(|(at, _)| {
        let rest = &text[at + 1..];
        let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let length = match rest.as_bytes().first()? {
            b'(' => 1,
            b'{' => rest.find('}')? + 1,
            byte if byte.is_ascii_alphabetic() => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
            _ => return None,
        };
        Some(&text[at..=at + length])
    })
}

fn source(view: View<'_>, report: &mut Report) -> Option<SecretSource> {
    let named = ["credential", "file", "command"].map(|key| view.written(key));
    if matches!(view.data(), Data::Map(_)) {
        report_unknown(view, &SECRET, report);
    }
    match named {
        [Some(credential), None, None] => {
            credential_name(credential, report).map(SecretSource::Credential)
        }
        [None, Some(file), None] => path(file, report).map(SecretSource::File),
        [None, None, Some(command)] => {
            let timeout_ms = match view.written("timeout") {
                None => SECRET_TIMEOUT_MS,
                Some(timeout) => timeout.millis("timeout", report)?,
            };
            let argv = program(command, "command", report)?;
            Some(SecretSource::Command { argv, timeout_ms })
        }
        _ => {
            let message = "`secret` does not say where the value is".to_owned();
            report.error("secret-source", view.place(), message, ONE_SOURCE);
            None
        }
    }
}

fn is_file(view: View<'_>, report: &mut Report) -> Option<bool> {
    match view.text("as", report)?.as_str() {
        "file" => Some(true),
        "variable" => Some(false),
        other => {
            let message = format!("`as: {}` is not known", other.escape_debug());
            let hint = "write `variable` or `file`";
            report.error("unknown-value", view.place(), message, hint);
            None
        }
    }
}

fn path(view: View<'_>, report: &mut Report) -> Option<String> {
    let path = view.filled_text("file", report)?;
    let is_whole = path.starts_with('/') || path.starts_with("~/");
    if !is_whole || path.chars().any(char::is_control) {
        let message = "`file` is no absolute path".to_owned();
        let hint = "write `/path` or `~/path`: a secret does not lie in the workspace";
        report.error("secret-source", view.place(), message, hint);
        return None;
    }
    Some(path)
}

/// Reads a program and its arguments.
pub(crate) fn program(view: View<'_>, key: &str, report: &mut Report) -> Option<Vec<String>> {
    if !matches!(view.data(), Data::List(_)) {
        view.wrong_type(key, "a list with a program and its arguments", report);
        return None;
    }
    let argv = view.texts(key, report)?;
    if argv.first().is_none_or(|program| program.trim().is_empty()) {
        let message = format!("`{key}` names no program");
        report.error("blank", view.place(), message, "write the program first");
        return None;
    }
    if is_command_line(&argv) {
        let message = format!(
            "`{key}` must list a program and its arguments, but the first item is a whole command line"
        );
        let words: Vec<&str> = argv
            .iter()
            .flat_map(|item| item.split_whitespace())
            .collect();
        let hint = format!("make each word an item: `[{}]`", words.join(", "));
        report.error("wrong-type", view.place(), message, &hint);
        return None;
    }
    Some(argv)
}

/// Reads the name of a secret variable.
pub(crate) fn variable_name(view: View<'_>, report: &mut Report) -> Option<String> {
    let name = view.text("env", report)?;
    is_variable_name(&name, view.place(), report).then_some(name)
}

fn is_variable_name(name: &str, place: Place, report: &mut Report) -> bool {
    let first = name.bytes().next().unwrap_or(b'0');
    let valid = !first.is_ascii_digit()
        && name.len() <= 128
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let reserved = name.starts_with("WORKERCTL_") || name.starts_with("LD_") || name == "TMPDIR";
    if let Some((name, _)) = name.split_once('=') {
        // The value may be a secret.
        report.error(
            "env-name",
            place,
            format!("`{name}=…` is not the name of a variable"),
            &format!("write `{{name: {name}, value: TEXT}}` for a value, or `{name}` for a secret of the engine's environment"),
        );
        return false;
    }
    if !valid {
        report.error(
            "env-name",
            place,
            format!("`{name}` is not the name of a variable"),
            "use letters, digits and `_` only. A value is written as `{name: CI, value: \"1\"}`; a credential with another name is read with `{name: API_KEY, credential: api-key}`",
        );
    } else if reserved {
        report.error(
            "env-name",
            place,
            format!("`{name}` cannot be set by a definition"),
            "`TMPDIR` and names that begin with `WORKERCTL_` or `LD_` are set by the engine only",
        );
    }
    valid && !reserved
}

/// The id of a credential as systemd takes it: the name of a file.
fn credential_name(view: View<'_>, report: &mut Report) -> Option<String> {
    let name = view.text("credential", report)?;
    let valid = (1..=CREDENTIAL_NAME_BYTES_MAX).contains(&name.len())
        && name != "."
        && name != ".."
        && name
            .bytes()
            .all(|b| b.is_ascii_graphic() && !b"/:".contains(&b));
    if !valid {
        report.error(
            "credential-name",
            view.place(),
            format!("`{name}` is not the name of a credential"),
            "write the part before the `:` of `LoadCredential=`, such as `stripe-key`",
        );
    }
    valid.then_some(name)
}
