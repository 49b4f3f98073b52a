//! Which tools and calls a list such as `disallowed-tools` forbids.

use std::path::Path;

use serde_json::Value;

use super::allowed::{Grant, NotUnderstood, read_grant};
use super::built_in::BuiltIn;
use super::command::simple_command;
use super::root::places;

/// What a model may not call, whatever else allows it. Items are those of [`Allowed`](super::Allowed).
///
/// A path is forbidden if its names or what its links lead to match, in any case: some file systems compare names without it.
/// A tool without a pattern is not offered. `Edit` forbids `Write` too, and `Read` forbids `Grep`, because these do the
/// same. If commands are forbidden by their words, a command that is not surely one simple command is refused.
///
/// # Limits
///
/// A rule of words or paths is about its tool: `Read(secret/**)` says nothing about `Bash`.
#[derive(Debug, Clone, Default)]
pub struct Disallowed {
    rules: Vec<Grant>,
}

impl Disallowed {
    /// Reads the items of a list.
    ///
    /// # Errors
    /// An item cannot be understood; nothing should be started then.
    pub fn parse(items: &[String]) -> Result<Self, NotUnderstood> {
        let mut rules = Vec::new();
        for item in items {
            let found = read_grant(item, true)?;
            let more = found.as_ref().and_then(does_the_same);
            rules.extend(found.into_iter().chain(more));
        }
        Ok(Self { rules })
    }

    /// Whether no call of the tool is allowed, so that it is not to be offered.
    pub fn forbids_tool(&self, name: &str) -> bool {
        let is_whole = |rule: &&Grant| !matches!(rule, Grant::Command { .. } | Grant::Paths(..));
        self.rules
            .iter()
            .filter(is_whole)
            .any(|rule| rule.names(name))
    }

    /// Whether this call is forbidden, and why, in words for the model. Paths are taken from `cwd`, and rules from
    /// `root`, both absolute.
    ///
    /// # Errors
    /// It is.
    pub fn check_call(
        &self,
        name: &str,
        arguments: &Value,
        root: &Path,
        cwd: &Path,
    ) -> Result<(), String> {
        let forbidden = || Err(format!("this call of `{name}` is not allowed here"));
        if self.forbids_tool(name) {
            return forbidden();
        }
        let rules = || self.rules.iter().filter(|rule| rule.names(name));
        let Some(tool) = BuiltIn::parse(name).filter(|_| rules().next().is_some()) else {
            return Ok(());
        };
        let arguments = tool.checked(arguments)?;
        let is_forbidden = if tool == BuiltIn::Bash {
            let words = simple_command(arguments.text("command")).map_err(|why| {
                format!(
                    "some commands are not allowed here, and this is not one simple command: {why}"
                )
            })?;
            rules().any(|rule| rule.covers_command(&words))
        } else {
            let mut places = places(root, cwd, arguments.text("path"))
                .into_iter()
                .flatten();
            places.any(|place| rules().any(|rule| rule.covers_path(&place)))
        };
        if is_forbidden { forbidden() } else { Ok(()) }
    }
}

/// The rule for the other tool that does what a rule forbids.
fn does_the_same(rule: &Grant) -> Option<Grant> {
    match rule {
        Grant::Tool(BuiltIn::EditFile) => Some(Grant::Tool(BuiltIn::WriteFile)),
        Grant::Paths(BuiltIn::EditFile, paths) => {
            Some(Grant::Paths(BuiltIn::WriteFile, paths.clone()))
        }
        // A search shows lines of every file below its directory.
        Grant::Tool(BuiltIn::ReadFile) | Grant::Paths(BuiltIn::ReadFile, _) => {
            Some(Grant::Tool(BuiltIn::Grep))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(items: &[&str]) -> Disallowed {
        let items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
        Disallowed::parse(&items).unwrap()
    }

    fn may(list: &Disallowed, tool: &str, arguments: &Value) -> bool {
        let (root, cwd) = (Path::new("/w"), Path::new("/w/src"));
        list.check_call(tool, arguments, root, cwd).is_ok()
    }

    #[test]
    fn tools_commands_and_paths_are_forbidden() {
        let list = parse(&[
            "Edit",
            "Bash(rm:*)",
            "Bash(git push)",
            "mcp__web",
            "WebFetch",
        ]);
        for (name, forbidden) in [
            ("edit_file", true),
            ("write_file", true),
            ("mcp__web__get", true),
            ("mcp__other__get", false),
            ("bash", false),
            ("read_file", false),
        ] {
            assert_eq!(list.forbids_tool(name), forbidden, "{name}");
        }
        for (command, allowed) in [
            ("ls", true),
            ("rm x", false),
            ("git push", false),
            ("git push origin", true),
            ("ls; rm x", false),
            ("$(echo rm) x", false),
        ] {
            assert_eq!(
                may(&list, "bash", &json!({"command": command})),
                allowed,
                "{command}"
            );
        }
        let list = parse(&["Read(/secret/**)", "Write(*.lock)"]);
        for (path, allowed) in [
            ("x", true),
            ("../secret/key", false),
            ("/w/secret/key", false),
        ] {
            assert_eq!(
                may(&list, "read_file", &json!({"path": path})),
                allowed,
                "{path}"
            );
        }
        assert!(list.forbids_tool("grep") && !list.forbids_tool("read_file"));
        let write = json!({"path": "/w/a.lock", "content": ""});
        assert!(!may(&list, "write_file", &write));
        assert!(Disallowed::parse(&["Bash(git".to_owned()]).is_err());
    }
}
