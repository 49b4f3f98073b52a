//! Which tools and calls a list such as `allowed-tools` allows.

use std::path::Path;

use globset::GlobMatcher;
use serde_json::Value;

use super::built_in::BuiltIn;
use super::command::{is_literal, simple_command};
use super::patterns::path_pattern;
use super::root::places;

/// What a model may call, as a list of items says it. An empty list allows nothing.
///
/// - `Read`, `read_file`: the tool, by our name or the one it has elsewhere.
/// - `Bash(git status)`: exactly this command.
/// - `Bash(git add:*)`, `Bash(git add *)`: commands that begin with these words.
/// - `Read(src/**)`, `Edit(/docs/*.md)`: the tool, for paths relative to the root that match; only `**`
///   passes a `/`. If links are on the way, the path that they lead to has to match too. `Glob` and `Grep` see whole directories, so for them a pattern ends in `/**` or names one
///   file or directory.
/// - `mcp__server`, `mcp__server__*`, `mcp__server__tool`: tools of a server.
/// - Other names, with or without brackets, are tools that there are not here, and allow nothing.
///
/// Where commands are restricted, a command is allowed only if it is surely one simple command.
///
/// # Limits
///
/// A rule of words does not know what the command does with the words behind them: `git -c core.pager=x log`
/// runs `x` under `Bash(git:*)`, as `find`, `xargs`, `env` and any interpreter run what they are given.
#[derive(Debug, Clone, Default)]
pub struct Allowed {
    rules: Vec<AllowRule>,
}

/// An item of the list cannot be understood; nothing should be allowed then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{item}` in the list of allowed tools is not understood: {why}")]
pub struct NotUnderstood {
    /// The item.
    pub item: String,
    /// What is wrong with it, and the remedy.
    pub why: String,
}

#[derive(Debug, Clone)]
struct AllowRule {
    /// As it was written.
    item: String,
    grant: Grant,
}

#[derive(Debug, Clone)]
pub(super) enum Grant {
    /// Every call of a tool.
    Tool(BuiltIn),
    /// Commands that begin with the words, or consist of them.
    Command { words: Vec<String>, more: bool },
    /// Calls of a tool with certain paths.
    Paths(BuiltIn, PathRule),
    /// A tool of a server, by its full name.
    ServerTool(String),
    /// All tools of a server: what their names begin with.
    Server(String),
}

#[derive(Debug, Clone)]
pub(super) struct PathRule {
    matcher: GlobMatcher,
    /// Matches the directories whose whole content the rule covers.
    tree: Option<GlobMatcher>,
}

impl Allowed {
    /// Reads the items of a list.
    pub fn parse(items: &[String]) -> Result<Self, NotUnderstood> {
        let mut rules = Vec::new();
        for item in items {
            let grant = read_grant(item, false)?;
            rules.extend(grant.map(|grant| AllowRule {
                item: item.trim().to_owned(),
                grant,
            }));
        }
        Ok(Self { rules })
    }

    /// Whether any call of the tool may be allowed, so that it is to be offered.
    pub fn allows_tool(&self, name: &str) -> bool {
        self.rules.iter().any(|rule| rule.grant.names(name))
    }

    /// Whether this call is allowed, and if not, why, in words for the model. Paths are taken from `cwd`,
    /// and rules from `root`, both absolute.
    pub fn allows_call(
        &self,
        name: &str,
        arguments: &Value,
        root: &Path,
        cwd: &Path,
    ) -> Result<(), String> {
        let rules: Vec<_> = self.rules.iter().filter(|r| r.grant.names(name)).collect();
        if rules.is_empty() {
            let items = quoted(&self.rules.iter().collect::<Vec<_>>());
            return Err(format!("`{name}` is not allowed here: {items}"));
        }
        let restricted =
            |rule: &&AllowRule| matches!(rule.grant, Grant::Command { .. } | Grant::Paths(..));
        let Some(tool) = BuiltIn::parse(name).filter(|_| rules.iter().all(restricted)) else {
            return Ok(());
        };
        let arguments = tool.checked(arguments)?;
        let refusal = if tool == BuiltIn::Bash {
            refused_command(&rules, arguments.text("command"))
        } else {
            refused_path(&rules, arguments.text("path"), root, cwd)
        };
        refusal.map_or(Ok(()), |why| Err(format!("{why}; {}", quoted(&rules))))
    }
}

impl Grant {
    /// Whether it is about this command.
    pub(super) fn covers_command(&self, words: &[String]) -> bool {
        match self {
            Self::Command { words: begin, more } if *more => words.starts_with(begin),
            Self::Command { words: all, .. } => words == *all,
            _ => false,
        }
    }

    /// Whether it is about this path, relative to the root.
    pub(super) fn covers_path(&self, place: &Path) -> bool {
        match self {
            Self::Paths(tool, paths) => paths.covers(*tool, place),
            _ => false,
        }
    }

    /// Whether it is about the tool with this name.
    pub(super) fn names(&self, name: &str) -> bool {
        match self {
            Self::Tool(tool) | Self::Paths(tool, _) => tool.name() == name,
            Self::Command { .. } => BuiltIn::Bash.name() == name,
            Self::ServerTool(full) => full == name,
            Self::Server(prefix) => name.len() > prefix.len() && name.starts_with(prefix),
        }
    }
}

/// Why no rule allows the command.
fn refused_command(rules: &[&AllowRule], command: &str) -> Option<String> {
    let words = match simple_command(command) {
        Ok(words) => words,
        Err(why) => return Some(format!("the command is not one simple command: {why}")),
    };
    let allowed = rules.iter().any(|rule| rule.grant.covers_command(&words));
    (!allowed).then(|| "the command is not among those that are allowed".to_owned())
}

/// Why no rule allows the path.
fn refused_path(rules: &[&AllowRule], path: &str, root: &Path, cwd: &Path) -> Option<String> {
    let Some(places) = places(root, cwd, path) else {
        return Some(format!("`{path}` is outside the working area"));
    };
    let refused = places
        .iter()
        .find(|place| !rules.iter().any(|rule| rule.grant.covers_path(place)))?;
    let refused = refused.display();
    Some(format!(
        "`{refused}` is not among the paths that are allowed"
    ))
}

impl PathRule {
    fn covers(&self, tool: BuiltIn, place: &Path) -> bool {
        let as_tree = self.tree.as_ref().is_some_and(|tree| tree.is_match(place));
        let as_place = self.matcher.is_match(place);
        match tool {
            BuiltIn::ListDirectory => as_tree || as_place,
            // `src/*` matches the directory `src/a`, and not what they would show of it.
            BuiltIn::Glob | BuiltIn::Grep => {
                let whole = self.tree.is_some() || !self.matcher.glob().glob().contains(WILDCARDS);
                as_tree || as_place && whole
            }
            _ => as_place,
        }
    }
}

const WILDCARDS: [char; 5] = ['*', '?', '[', '{', '\\'];

/// What is allowed, for a model.
fn quoted(rules: &[&AllowRule]) -> String {
    if rules.is_empty() {
        return "no tool is".to_owned();
    }
    let items = rules.iter().map(|rule| format!("`{}`", rule.item));
    format!("allowed: {}", items.collect::<Vec<_>>().join(", "))
}

/// Reads an item of a list of tools; `None` if it names a tool of another program. `any_case`: patterns of paths match names
/// that differ only in case.
///
/// # Errors
/// The item cannot be understood.
pub(super) fn read_grant(item: &str, any_case: bool) -> Result<Option<Grant>, NotUnderstood> {
    grant(item.trim(), any_case).map_err(|why| NotUnderstood {
        item: item.to_owned(),
        why,
    })
}

fn grant(item: &str, any_case: bool) -> Result<Option<Grant>, String> {
    let (name, pattern) = match item.split_once('(') {
        None => (item, None),
        Some((name, rest)) => {
            let inner = rest.strip_suffix(')').ok_or("the bracket is not closed")?;
            (name, Some(inner.trim()))
        }
    };
    if let Some(rest) = name.strip_prefix("mcp__") {
        return match pattern {
            None => server_grant(name, rest).map(Some),
            Some(_) => Err("tools of servers have no patterns".to_owned()),
        };
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || !name.chars().all(is_name) {
        return Err("write a tool such as `Read`, `Bash(git:*)` or `mcp__server__tool`".to_owned());
    }
    let Some(tool) = BuiltIn::parse_alias(name) else {
        return Ok(None);
    };
    let grant = match pattern {
        None => Grant::Tool(tool),
        Some("") => return Err("the brackets are empty".to_owned()),
        Some("*") if tool == BuiltIn::Bash => Grant::Tool(tool),
        Some(pattern) if tool == BuiltIn::Bash => command_grant(pattern)?,
        Some(pattern) => Grant::Paths(tool, path_rule(pattern, any_case)?),
    };
    Ok(Some(grant))
}

/// `rest` is `server`, `server__tool` or `server__*`.
fn server_grant(name: &str, rest: &str) -> Result<Grant, String> {
    let (server, tool) = rest.split_once("__").unwrap_or((rest, "*"));
    if server.is_empty() || tool.is_empty() {
        return Err("write `mcp__server` or `mcp__server__tool`".to_owned());
    }
    if server.contains('*') || tool != "*" && tool.contains('*') {
        return Err("`*` stands for all tools of one server, as in `mcp__server__*`".to_owned());
    }
    Ok(match tool {
        "*" => Grant::Server(format!("mcp__{server}__")),
        _ => Grant::ServerTool(name.to_owned()),
    })
}

fn command_grant(pattern: &str) -> Result<Grant, String> {
    let begin = pattern
        .strip_suffix(":*")
        .or_else(|| pattern.strip_suffix(" *"));
    let words = simple_command(begin.unwrap_or(pattern))
        .map_err(|why| format!("the command is not one simple command: {why}"))?;
    if !words.iter().all(|word| is_literal(word)) {
        return Err(
            "`*` is allowed only at the end, as in `git:*` or `git *`; other patterns are not supported".to_owned(),
        );
    }
    Ok(Grant::Command {
        words,
        more: begin.is_some(),
    })
}

fn path_rule(pattern: &str, any_case: bool) -> Result<PathRule, String> {
    if pattern.starts_with("//") || pattern.starts_with('~') {
        return Err("paths are relative to the root: begin them with `/` or a name".to_owned());
    }
    let relative = pattern.strip_prefix('/').unwrap_or(pattern);
    // A directory means what is in it, as it does in `.gitignore`.
    let whole = if relative.is_empty() || relative.ends_with('/') {
        "**"
    } else {
        ""
    };
    let relative = format!("{relative}{whole}");
    let tree = match relative.as_str() {
        "**" => Some(""),
        other => other.strip_suffix("/**"),
    };
    Ok(PathRule {
        tree: tree.map(|tree| path_pattern(tree, any_case)).transpose()?,
        matcher: path_pattern(&relative, any_case)?,
    })
}
