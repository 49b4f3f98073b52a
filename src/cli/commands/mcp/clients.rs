//! The clients that are known: how they are recognised, and what each reads where.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json_file;
use super::toml_file;
use crate::cli::globals::Site;
use crate::model::{Diagnostic, Kind};

/// The name of our server in every configuration.
pub(super) const SERVER: &str = "workerctl";

/// A program that starts MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Client {
    /// Claude Code: `.mcp.json`
    Claude,
    /// Codex: `config.toml` of `$CODEX_HOME` or `~/.codex`
    Codex,
    /// opencode: `opencode.json` or `opencode.jsonc`
    Opencode,
    /// Gemini CLI: `.gemini/settings.json`
    Gemini,
    /// Cursor: `.cursor/mcp.json`
    Cursor,
    /// Visual Studio Code: `.vscode/mcp.json`
    Vscode,
}

/// Where the configuration of a client stands.
pub(super) struct ConfigFile {
    /// Absolute path.
    pub(super) path: PathBuf,
    /// Whether it belongs to the project, and to everybody who checks it out.
    pub(super) of_project: bool,
}

impl Client {
    /// The name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Client::Claude => "claude",
            Client::Codex => "codex",
            Client::Opencode => "opencode",
            Client::Gemini => "gemini",
            Client::Cursor => "cursor",
            Client::Vscode => "vscode",
        }
    }

    /// Its program, and what of a project tells that it is used there.
    fn traces(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Client::Claude => ("claude", &[".mcp.json", ".claude"]),
            Client::Codex => ("codex", &[".codex"]),
            Client::Opencode => (
                "opencode",
                &["opencode.json", "opencode.jsonc", ".opencode"],
            ),
            Client::Gemini => ("gemini", &[".gemini"]),
            Client::Cursor => ("cursor", &[".cursor"]),
            Client::Vscode => ("code", &[".vscode"]),
        }
    }

    /// Whether its program is there, or the project has a configuration of it.
    pub(super) fn is_used(self, site: &Site) -> bool {
        let (program, traces) = self.traces();
        let in_project = traces.iter().any(|name| site.workspace.join(name).exists());
        in_project || has_program(site, program)
    }

    /// The file that our entry belongs into.
    pub(super) fn file(self, site: &Site) -> Result<ConfigFile, Diagnostic> {
        let of_project = |name: &str| ConfigFile {
            path: site.workspace.join(name),
            of_project: true,
        };
        match self {
            Client::Claude => Ok(of_project(".mcp.json")),
            // One of the project counts only where the person has trusted that project.
            Client::Codex => Ok(ConfigFile {
                path: codex_home(site)?.join("config.toml"),
                of_project: false,
            }),
            Client::Opencode => {
                let with_comments = of_project("opencode.jsonc");
                let is_there = |name| site.workspace.join(name).symlink_metadata().is_ok();
                if is_there("opencode.jsonc") && !is_there("opencode.json") {
                    return Ok(with_comments);
                }
                Ok(of_project("opencode.json"))
            }
            Client::Gemini => Ok(of_project(".gemini/settings.json")),
            Client::Cursor => Ok(of_project(".cursor/mcp.json")),
            Client::Vscode => Ok(of_project(".vscode/mcp.json")),
        }
    }

    /// The key that its servers stand under, and our entry; `None`: it reads TOML.
    pub(super) fn json_entry(self) -> Option<(&'static str, Value)> {
        match self {
            Client::Codex => None,
            Client::Claude | Client::Gemini => {
                Some(("mcpServers", json!({"command": SERVER, "args": ["mcp"]})))
            }
            // It does not promise to start servers in the project, but to replace this variable.
            Client::Cursor => Some((
                "mcpServers",
                json!({"command": SERVER, "args": ["-C", "${workspaceFolder}", "mcp"]}),
            )),
            Client::Opencode => Some((
                "mcp",
                json!({"type": "local", "command": [SERVER, "mcp"], "enabled": true}),
            )),
            Client::Vscode => Some((
                "servers",
                json!({"type": "stdio", "command": SERVER, "args": ["mcp"]}),
            )),
        }
    }

    /// A file with our entry alone.
    pub(super) fn document(self) -> String {
        match self.json_entry() {
            Some((section, entry)) => json_file::document(section, SERVER, &entry),
            None => toml_file::TABLE.to_owned(),
        }
    }

    /// What a person has to know before they start it.
    pub(super) fn notice(self) -> &'static str {
        match self {
            Client::Claude => "Claude Code asks once whether servers of this project may start",
            Client::Codex => "Codex starts it in every project, for the skills of that project",
            Client::Opencode => "opencode starts it with its next session here",
            Client::Gemini => "Gemini CLI starts it in folders that it trusts",
            Client::Cursor => "Cursor has the server in its settings, where it is switched on",
            Client::Vscode => "Visual Studio Code asks whether you trust the server",
        }
    }
}

fn codex_home(site: &Site) -> Result<PathBuf, Diagnostic> {
    let named = |variable: &str| {
        let value = site.environment.get(variable)?;
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    named("CODEX_HOME")
        .or_else(|| named("HOME").map(|home| home.join(".codex")))
        .ok_or_else(|| {
            let text = "neither `HOME` nor `CODEX_HOME` says where Codex has its configuration";
            Diagnostic::new(Kind::Usage, "no_home", text).hint("set `HOME`")
        })
}

/// Whether a program is found by its name.
pub(super) fn has_program(site: &Site, name: &str) -> bool {
    let path = site.environment.get("PATH").map_or("", String::as_str);
    let is_program = |directory: &str| {
        let found = Path::new(directory).join(name).metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    path.split(':').any(is_program)
}
