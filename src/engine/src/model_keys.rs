//! Values of keys of models and of servers: read when they are needed, kept nowhere.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::model::agent::{AgentProgram, KeySource, McpTransport};
use crate::model::channel::AddressSource;
use crate::model::spec::Program;
use crate::model::{Config, Notify, RunSpec, SecretText};
use crate::thread::mask::check_secret;

/// Most bytes of a file that holds a key.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The value of a key, without blanks around it.
///
/// # Errors
/// It is not there, or so short that it could not be kept out of logs: says so by its name.
pub(super) fn value(
    source: &KeySource,
    environment: &BTreeMap<String, String>,
) -> Result<SecretText, String> {
    let found = match source {
        KeySource::Env(name) => environment
            .get(name)
            .cloned()
            .ok_or_else(|| format!("`{source}` is not set where the engine runs"))?,
        KeySource::Credential(name) => {
            let directory = environment.get("CREDENTIALS_DIRECTORY");
            let directory = directory.ok_or_else(|| {
                format!("`{source}` is not passed to the engine: `LoadCredential={name}:/path`")
            })?;
            read(source, &Path::new(directory).join(name))?
        }
        KeySource::File(path) => read(source, &expanded(path, environment))?,
    };
    let found = found.trim();
    if found.is_empty() {
        return Err(format!("`{source}` is empty"));
    }
    check_secret(&source.to_string(), found.as_bytes()).map_err(|error| error.to_string())?;
    Ok(SecretText::new(found))
}

/// A path that may begin with `~/`.
pub(super) fn expanded(path: &str, environment: &BTreeMap<String, String>) -> PathBuf {
    let home = environment.get("HOME").map_or("/", String::as_str);
    match path.strip_prefix("~/") {
        Some(rest) => Path::new(home).join(rest),
        None => PathBuf::from(path),
    }
}

fn read(source: &KeySource, path: &Path) -> Result<String, String> {
    let refused = |why: &str| format!("`{source}` cannot be read: {why}");
    let found = std::fs::metadata(path).map_err(|error| refused(&error.to_string()))?;
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return Err(refused("it is no file of at most 64 KiB"));
    }
    std::fs::read_to_string(path).map_err(|error| refused(&error.to_string()))
}

/// Returns the files of keys and tokens that the configuration names: no command of a skill reads them.
pub(super) fn files(config: &Config, environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let of_models = config
        .models
        .values()
        .filter_map(|model| model.key.as_ref())
        .chain(config.program.iter().filter_map(|one| one.key.as_ref()));
    let servers = config.toolsets.values().filter_map(|set| set.mcp.as_ref());
    let of_servers = servers.filter_map(|server| match &server.transport {
        McpTransport::Http { key, .. } => key.as_ref(),
        McpTransport::Stdio { .. } => None,
    });
    let keys = of_models.chain(of_servers);
    let files = keys.filter_map(|key| file(key, environment));
    // Below `$CREDENTIALS_DIRECTORY` everything is hidden.
    let token = config.mcp.http.token_file.as_deref();
    let token = token.filter(|path| !path.starts_with('$'));
    files
        .chain(token.map(|path| expanded(path, environment)))
        .chain(files_of_notify([&config.notify], environment))
        .collect()
}

/// Returns the files of keys of the agent programs that workers and skills name.
pub(super) fn files_of_programs<'a>(
    programs: impl IntoIterator<Item = &'a AgentProgram>,
    environment: &BTreeMap<String, String>,
) -> Vec<PathBuf> {
    let keys = programs
        .into_iter()
        .filter_map(|program| program.key.as_ref());
    keys.filter_map(|key| file(key, environment)).collect()
}

/// Files that hold addresses of webhooks, which no command of a skill reads either.
pub(super) fn files_of_notify<'a>(
    levels: impl IntoIterator<Item = &'a Notify>,
    environment: &BTreeMap<String, String>,
) -> Vec<PathBuf> {
    let channels = levels.into_iter().flat_map(Notify::channels);
    let files = channels.filter_map(|channel| match channel.address()? {
        AddressSource::Named(source) => file(source, environment),
        AddressSource::Written(_) => None,
    });
    files.collect()
}

fn file(key: &KeySource, environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    match key {
        KeySource::File(path) => Some(expanded(path, environment)),
        KeySource::Env(_) | KeySource::Credential(_) => None,
    }
}

/// Values of all keys that a run may use, as far as they are there, to be kept out of what it leaves.
pub(super) fn of_run(
    spec: &RunSpec,
    environment: &BTreeMap<String, String>,
) -> Vec<(String, SecretText)> {
    let Program::Agent(agent) = &spec.program else {
        return Vec::new();
    };
    let servers = agent.toolsets.iter().filter_map(|set| set.mcp.as_ref());
    let of_servers = servers.flat_map(|server| match &server.transport {
        McpTransport::Http { key, .. } => key.iter().cloned().collect(),
        McpTransport::Stdio { env, .. } => {
            let named = env.iter().cloned().map(KeySource::Env);
            named.collect::<Vec<_>>()
        }
    });
    let sources = agent.executor.key().cloned().into_iter().chain(of_servers);
    let found = sources.filter_map(|source| {
        let value = value(&source, environment).ok()?;
        Some((source.to_string(), value))
    });
    let program = agent.executor.program();
    let login = program.and_then(AgentProgram::lent_login);
    let lent = login.map_or_else(Vec::new, |file| of_login(file, environment));
    found.chain(lent).collect()
}

/// The tokens in the login of an agent program.
fn of_login(file: &str, environment: &BTreeMap<String, String>) -> Vec<(String, SecretText)> {
    let source = KeySource::File(format!("~/{file}"));
    let path = expanded(&format!("~/{file}"), environment);
    let content = read(&source, &path).ok();
    let value = content.and_then(|content| serde_json::from_str(&content).ok());
    let mut found = Vec::new();
    tokens(&value.unwrap_or_default(), &mut found);
    let named = found
        .into_iter()
        .map(|token| (source.to_string(), SecretText::new(token)));
    named.collect()
}

/// Tokens are long; the name of a plan or an address is no secret, and masking it would only blur the log.
fn tokens(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => {
            let is_token = text.len() >= 20 && !text.contains(' ') && !text.starts_with("http");
            found.extend(is_token.then(|| text.clone()));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| tokens(item, found)),
        serde_json::Value::Object(map) => map.values().for_each(|item| tokens(item, found)),
        _ => {}
    }
}
