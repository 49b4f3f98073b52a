//! How a program is started: its arguments, its variables, its files in a home of its own.

use serde_json::{Value, json};

use super::Known;

/// What a start is to be like. It holds a key, so nothing shows it.
#[derive(Clone, Copy)]
pub struct Launch<'a> {
    /// Its program: a name on the path, or an absolute path.
    pub binary: &'a str,
    /// The model, by the name that the program knows.
    pub model: Option<&'a str>,
    /// Another server than the program's own.
    pub base_url: Option<&'a str>,
    /// Its key.
    pub key: Option<&'a str>,
    /// Whether the skill changes the repository.
    pub mutating: bool,
    /// Whether the kernel keeps it to its places; then its own sandbox, which cannot stand inside ours, is off.
    pub walled: bool,
    /// The only tools that it may use, as the skill lists them.
    pub allowed: Option<&'a [String]>,
    /// Tools and commands that it may not use, as the skill lists them.
    pub disallowed: &'a [String],
    /// Whether it has files to write, though it does not change the repository.
    pub writes: bool,
    /// Turns that are left.
    pub turns: u32,
    /// Millionths of a dollar that are left.
    pub money: Option<u64>,
    /// The longest silence of its server in milliseconds.
    pub silence_ms: u64,
    /// Directories beside the working directory that it may write to.
    pub directories: &'a [String],
    /// Further arguments.
    pub arguments: &'a [String],
}

/// What is started. It holds a key, so nothing shows it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Launched {
    /// Program first.
    pub argv: Vec<String>,
    /// Variables, of which some hold the key.
    pub environment: Vec<(String, String)>,
    /// Files with their paths below its home.
    pub files: Vec<(&'static str, String)>,
    /// What people should know of it.
    pub notes: Vec<&'static str>,
}

impl Known {
    /// Whether a list of allowed tools can be enforced; where not, a skill with one is refused.
    pub const fn restricts_tools(self) -> bool {
        matches!(self, Known::Claude)
    }

    /// How it is started; nothing of the prompt stands in it.
    ///
    /// # Errors
    /// It cannot do what is asked: says so.
    pub fn launch(self, launch: &Launch<'_>) -> Result<Launched, String> {
        let restricted = launch.allowed.is_some() || !launch.disallowed.is_empty();
        if restricted && !self.restricts_tools() {
            return Err(format!(
                "`{}` does not support `allowed-tools` and `disallowed-tools`; use `claude`, which does",
                self.name()
            ));
        }
        let mut launched = match self {
            Known::Claude => claude(launch),
            Known::Codex => codex(launch),
            Known::Opencode => opencode(launch),
            Known::Gemini => gemini(launch),
            Known::Qwen => qwen(launch),
        };
        launched.argv.extend(launch.arguments.iter().cloned());
        if self == Known::Codex {
            // Says that the prompt comes from standard input.
            launched.argv.push("-".to_owned());
        }
        Ok(launched)
    }
}

impl Launched {
    fn of(binary: &str, arguments: &[&str]) -> Launched {
        let arguments = arguments.iter().map(|text| (*text).to_owned());
        Launched {
            argv: std::iter::once(binary.to_owned())
                .chain(arguments)
                .collect(),
            ..Launched::default()
        }
    }

    fn arguments(&mut self, arguments: impl IntoIterator<Item = impl Into<String>>) {
        self.argv.extend(arguments.into_iter().map(Into::into));
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.environment.push((name.to_owned(), value.into()));
    }
}

/// Tools that a skill has without a list of its own.
fn claude_tools(launch: &Launch<'_>) -> Vec<String> {
    let mut tools = vec!["Read", "Glob", "Grep"];
    if launch.mutating || launch.walled {
        tools.push("Bash");
    }
    if launch.mutating || launch.writes {
        tools.extend(["Edit", "Write"]);
    }
    tools.into_iter().map(str::to_owned).collect()
}

/// Our names of tools as Claude Code has them; its own stay.
fn claude_name(item: &str) -> String {
    let (name, rest) = item.split_at(item.find('(').unwrap_or(item.len()));
    let own = match name {
        "bash" => "Bash",
        "read_file" => "Read",
        "write_file" => "Write",
        "edit_file" => "Edit",
        "list_directory" => "LS",
        "glob" => "Glob",
        "grep" => "Grep",
        other => other,
    };
    format!("{own}{rest}")
}

fn claude(launch: &Launch<'_>) -> Launched {
    let mut launched = Launched::of(
        launch.binary,
        &[
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            // Only with the pieces of its answers it tells what they cost before it has ended.
            "--include-partial-messages",
            "--permission-mode",
            "dontAsk",
            "--no-session-persistence",
            "--strict-mcp-config",
        ],
    );
    let allowed: Vec<String> = match launch.allowed {
        Some(list) => list.iter().map(|item| claude_name(item.trim())).collect(),
        None => claude_tools(launch),
    };
    // What it is not offered, it cannot be refused.
    let offered: Vec<&str> = allowed
        .iter()
        .map(|item| item.split('(').next().unwrap_or(item))
        .filter(|name| !name.starts_with("mcp__"))
        .collect();
    launched.arguments(["--tools", &offered.join(",")]);
    launched.arguments(["--allowedTools", &allowed.join(",")]);
    if !launch.disallowed.is_empty() {
        let forbidden = launch.disallowed.iter();
        let forbidden: Vec<String> = forbidden.map(|item| claude_name(item.trim())).collect();
        launched.arguments(["--disallowedTools", &forbidden.join(",")]);
    }
    launched.arguments(["--max-turns", &launch.turns.to_string()]);
    if let Some(money) = launch.money {
        let dollars = format!("{}.{:06}", money / 1_000_000, money % 1_000_000);
        launched.arguments(["--max-budget-usd", &dollars]);
    }
    if let Some(model) = launch.model {
        launched.arguments(["--model", model]);
    }
    for directory in launch.directories {
        launched.arguments(["--add-dir", directory.as_str()]);
    }
    launched.set("CLAUDE_CODE_MAX_RETRIES", "2");
    // So that it tells of a server without an answer before it is ended for its silence.
    launched.set("API_TIMEOUT_MS", (launch.silence_ms / 2).to_string());
    launched.set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    launched.set("DISABLE_AUTOUPDATER", "1");
    if launch.walled {
        launched.set("IS_SANDBOX", "1");
    }
    if let Some(url) = launch.base_url {
        launched.set("ANTHROPIC_BASE_URL", url);
    }
    if let Some(key) = launch.key {
        launched.set("ANTHROPIC_API_KEY", key);
    }
    launched
}

/// The variable that holds the key of Codex' server.
const CODEX_KEY: &str = "WORKERCTL_AGENT_KEY";

fn codex(launch: &Launch<'_>) -> Launched {
    let mut launched = Launched::of(
        launch.binary,
        &[
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--ephemeral",
            "--ignore-user-config",
            "-c",
            "check_for_update_on_startup=false",
            "-c",
            "analytics.enabled=false",
        ],
    );
    if launch.walled {
        launched.arguments(["--dangerously-bypass-approvals-and-sandbox"]);
    } else {
        let mode = if launch.mutating || launch.writes {
            "workspace-write"
        } else {
            "read-only"
        };
        launched.arguments(["-s", mode]);
        launched.arguments(["-c", "sandbox_workspace_write.exclude_slash_tmp=true"]);
        for directory in launch.directories {
            launched.arguments(["--add-dir", directory.as_str()]);
        }
        launched
            .notes
            .push("codex does not report what its own sandbox denies");
    }
    if let Some(model) = launch.model {
        launched.arguments(["-m", model]);
    }
    if let Some(url) = launch.base_url {
        let text = |text: &str| Value::from(text).to_string();
        launched.arguments(["-c", "model_provider=\"workerctl\"", "-c"]);
        // Values are TOML, whose basic strings are those of JSON here.
        launched.arguments([format!(
            "model_providers.workerctl={{name=\"workerctl\",base_url={},env_key=\"{CODEX_KEY}\",wire_api=\"responses\",\
             request_max_retries=1,stream_max_retries=1,stream_idle_timeout_ms={}}}",
            text(url),
            launch.silence_ms
        )]);
    }
    if let Some(key) = launch.key {
        let name = if launch.base_url.is_some() {
            CODEX_KEY
        } else {
            "CODEX_API_KEY"
        };
        launched.set(name, key);
    }
    launched
}

fn opencode(launch: &Launch<'_>) -> Launched {
    let mut launched = Launched::of(
        launch.binary,
        &[
            "run",
            "--format",
            "json",
            "--title",
            "workerctl",
            // The only place where it tells of its server.
            "--print-logs",
            "--log-level",
            "ERROR",
        ],
    );
    let may = |yes: bool| if yes { "allow" } else { "deny" };
    let mut config = json!({
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": false,
        "share": "disabled",
        "permission": {
            "edit": may(launch.mutating || launch.writes),
            "bash": may(launch.mutating || launch.walled),
            "webfetch": "deny",
            "external_directory": may(!launch.directories.is_empty()),
        },
    });
    match (launch.base_url, launch.model) {
        (Some(url), model) => {
            let model = model.unwrap_or("default");
            let mut options = json!({ "baseURL": url });
            if launch.key.is_some() {
                options["apiKey"] = json!("{env:WORKERCTL_AGENT_KEY}");
            }
            config["model"] = json!(format!("workerctl/{model}"));
            config["provider"] = json!({ "workerctl": {
                "npm": "@ai-sdk/openai-compatible",
                "models": { model: {} },
                "options": options,
            }});
        }
        (None, Some(model)) => config["model"] = json!(model),
        (None, None) => {}
    }
    if let Some(key) = launch.key {
        launched.set("WORKERCTL_AGENT_KEY", key);
    }
    launched.set("OPENCODE_DISABLE_AUTOUPDATE", "1");
    launched.set("OPENCODE_DISABLE_MODELS_FETCH", "1");
    launched
        .files
        .push((".config/opencode/opencode.json", config.to_string()));
    launched
}

fn gemini(launch: &Launch<'_>) -> Launched {
    let mode = if launch.mutating || launch.walled {
        "yolo"
    } else {
        "default"
    };
    let mut launched = Launched::of(
        launch.binary,
        &["-o", "stream-json", "--skip-trust", "--approval-mode", mode],
    );
    if let Some(model) = launch.model {
        launched.arguments(["-m", model]);
    }
    for directory in launch.directories {
        launched.arguments(["--include-directories", directory.as_str()]);
    }
    let mut settings = json!({
        "general": { "disableAutoUpdate": true, "disableUpdateNag": true },
        "privacy": { "usageStatisticsEnabled": false },
        "model": { "maxSessionTurns": launch.turns },
    });
    if launch.key.is_some() {
        settings["security"] = json!({ "auth": { "selectedType": "gemini-api-key" } });
    }
    launched
        .files
        .push((".gemini/settings.json", settings.to_string()));
    launched.set("GEMINI_CLI_TRUST_WORKSPACE", "true");
    if let Some(url) = launch.base_url {
        launched.set("GOOGLE_GEMINI_BASE_URL", url);
    }
    if let Some(key) = launch.key {
        launched.set("GEMINI_API_KEY", key);
    }
    launched
}

fn qwen(launch: &Launch<'_>) -> Launched {
    let mode = if launch.mutating || launch.walled {
        "yolo"
    } else {
        "plan"
    };
    let mut launched = Launched::of(
        launch.binary,
        &["-o", "stream-json", "--approval-mode", mode],
    );
    launched.arguments(["--max-session-turns", &launch.turns.to_string()]);
    if launch.key.is_some() {
        launched.arguments(["--auth-type", "openai"]);
    }
    for (name, value) in [
        ("OPENAI_BASE_URL", launch.base_url),
        ("OPENAI_API_KEY", launch.key),
        ("OPENAI_MODEL", launch.model),
    ] {
        if let Some(value) = value {
            launched.set(name, value);
        }
    }
    launched
}
