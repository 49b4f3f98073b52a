//! `protected_files`: files that decide what agents and later runs may do, by patterns as in a `.gitignore`.

use serde::{Deserialize, Serialize};

/// Patterns that always come first: instructions and settings of agent programs, and files that git, editors and
/// build servers execute or obey.
pub const PROTECTED_FILES: [&str; 47] = [
    ".agent",
    ".agents",
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".opencode",
    ".clinerules",
    ".continue",
    ".qwen",
    ".roo",
    ".wave",
    ".windsurf",
    ".cursorrules",
    ".mcp.json",
    "opencode.json",
    "opencode.jsonc",
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    "QWEN.md",
    ".github/workflows",
    ".github/agents",
    ".github/prompts",
    ".github/actions",
    ".github/instructions",
    ".github/copilot-instructions.md",
    ".gitlab-ci.yml",
    ".circleci",
    ".forgejo/workflows",
    ".gitea/workflows",
    "Jenkinsfile",
    ".devcontainer",
    ".envrc",
    "lefthook.yml",
    ".gitattributes",
    ".gitmodules",
    ".githooks",
    ".husky",
    ".pre-commit-config.yaml",
    ".vscode",
    "workerctl.yaml",
    "worker.yaml",
    "worker.yml",
    "**/workspace/skills",
];

/// What stands for any number of directories in a pattern.
const ANY_DEPTH: &str = "**";

/// Which files a result changes only with a person's approval: [`PROTECTED_FILES`], then the patterns of the
/// configuration. The last pattern that matches a path decides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProtectedFiles(Vec<String>);

impl ProtectedFiles {
    /// Takes patterns for which [`pattern_problem`] found nothing.
    pub fn new(patterns: Vec<String>) -> ProtectedFiles {
        ProtectedFiles(patterns)
    }

    /// Returns the patterns of the configuration, without the defaults.
    pub fn patterns(&self) -> &[String] {
        &self.0
    }

    /// Compiles the patterns, for many paths.
    pub fn matcher(&self) -> ProtectedMatcher {
        let defaults = PROTECTED_FILES.iter().copied();
        let all = defaults.chain(self.0.iter().map(String::as_str));
        ProtectedMatcher(all.map(Pattern::compile).collect())
    }
}

/// The compiled patterns.
#[derive(Debug)]
pub struct ProtectedMatcher(Vec<Pattern>);

impl ProtectedMatcher {
    /// Returns true if the path, relative to the repository, or a directory above it is protected.
    ///
    /// Case is ignored, because git and file systems ignore it where `core.ignorecase` is set.
    pub fn protect(&self, path: &str) -> bool {
        self.last(path, Pattern::covers)
    }

    /// Returns true if a link or a submodule at this path could lead to a protected file below it.
    pub fn lead_through(&self, path: &str) -> bool {
        self.last(path, |pattern, names| {
            if pattern.excepts {
                pattern.covers(names)
            } else {
                pattern.begins_with(names)
            }
        })
    }

    fn last(&self, path: &str, matches: impl Fn(&Pattern, &[&str]) -> bool) -> bool {
        let path = fold_case(path);
        let names: Vec<&str> = path.split('/').collect();
        let found = self.0.iter().rev().find(|pattern| matches(pattern, &names));
        found.is_some_and(|pattern| !pattern.excepts)
    }
}

/// Returns what is wrong with a pattern.
pub fn pattern_problem(pattern: &str) -> Option<&'static str> {
    let plain = pattern.strip_prefix('!').unwrap_or(pattern);
    let names = || plain.trim_matches('/').split('/');
    if plain.trim_matches('/').is_empty() {
        return Some("names no file");
    }
    if plain.contains(['[', ']', '{', '}', '\\']) || plain.chars().any(char::is_control) {
        return Some("has a character that no pattern has here; `*`, `?` and `**` are known");
    }
    if names().any(|name| matches!(name, "" | "." | "..")) {
        return Some("has an empty, `.` or `..` component");
    }
    let is_odd = |name: &str| name.contains(ANY_DEPTH) && name != ANY_DEPTH;
    names()
        .any(is_odd)
        .then_some("has `**` next to other characters")
}

/// Returns a path or pattern without differences of case, which some file systems ignore.
///
/// They fold case fully: there, `ſ` and the sign of the kelvin are the letters `s` and `k`.
#[must_use]
pub fn fold_case(text: &str) -> String {
    text.to_uppercase().to_lowercase()
}

/// A pattern in lower case.
#[derive(Debug)]
struct Pattern {
    excepts: bool,
    names: Vec<String>,
}

impl Pattern {
    fn compile(text: &str) -> Pattern {
        let (excepts, plain) = match text.strip_prefix('!') {
            Some(plain) => (true, plain),
            None => (false, text),
        };
        let plain = fold_case(plain);
        let is_anchored = plain.trim_end_matches('/').contains('/');
        let names = plain.trim_matches('/').split('/').map(str::to_owned);
        let anywhere = (!is_anchored).then(|| ANY_DEPTH.to_owned());
        Pattern {
            excepts,
            names: anywhere.into_iter().chain(names).collect(),
        }
    }

    /// Whether it matches the path or a directory above it.
    fn covers(&self, path: &[&str]) -> bool {
        (1..=path.len()).any(|end| names_match(&self.names, &path[..end]))
    }

    /// Whether the path is that of a directory that the pattern passes through; any may be for `**`, so that only the
    /// names behind it count.
    fn begins_with(&self, path: &[&str]) -> bool {
        (1..self.names.len())
            .any(|end| self.names[end - 1] != ANY_DEPTH && names_match(&self.names[..end], path))
    }
}

fn names_match(pattern: &[String], path: &[&str]) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return path.is_empty();
    };
    if first == ANY_DEPTH {
        // At the end it stands for everything below.
        let least = usize::from(rest.is_empty());
        return (least..=path.len()).any(|skipped| names_match(rest, &path[skipped..]));
    }
    let Some((name, below)) = path.split_first() else {
        return false;
    };
    name_matches(first.as_bytes(), name.as_bytes()) && names_match(rest, below)
}

/// Matches one name; `*` and `?` stand for any bytes and any byte of it.
fn name_matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(sign) if *sign == b'?' || *sign == name[read] => {
                at += 1;
                read += 1;
            }
            _ => {
                // The last star takes one byte more.
                let Some((star_at, taken)) = star else {
                    return false;
                };
                star = Some((star_at, taken + 1));
                at = star_at + 1;
                read = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|sign| *sign == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(patterns: &[&str]) -> ProtectedMatcher {
        assert!(
            patterns
                .iter()
                .all(|pattern| pattern_problem(pattern).is_none())
        );
        ProtectedFiles::new(
            patterns
                .iter()
                .map(|pattern| (*pattern).to_owned())
                .collect(),
        )
        .matcher()
    }

    #[test]
    fn defaults_apply_in_any_directory_and_case() {
        for (path, expected) in [
            ("CLAUDE.md", true),
            ("docs/Claude.md", true),
            ("CLAUDE.md.txt", false),
            (".claude", true),
            ("a/.Claude/settings.json", true),
            (".claudex", false),
            (".github/workflows/a.yml", true),
            (".GitHub/WORKFLOWS", true),
            ("a/.github/workflows/a.yml", false),
            (".github/ISSUE_TEMPLATE.md", false),
            ("src/.gitattributes", true),
            (".gitignore", false),
            ("src/agents.rs", false),
            ("workspace/skills/deploy/SKILL.md", true),
            ("a/b/Workspace/skills/deploy.md", true),
            ("a/workspace/data", false),
        ] {
            assert_eq!(with(&[]).protect(path), expected, "{path}");
        }
        for (path, expected) in [
            (".github", true),
            (".GitHub", true),
            ("docs", false),
            ("a/workspace", true),
        ] {
            assert_eq!(with(&[]).lead_through(path), expected, "{path}");
        }
    }

    #[test]
    fn the_last_pattern_that_matches_decides() {
        let own = with(&[
            "!CLAUDE.md",
            "docs/CLAUDE.md",
            "*.lock",
            "a/**/b?",
            "!.claude/commands",
        ]);
        for (path, expected) in [
            ("CLAUDE.md", false),
            ("docs/CLAUDE.md", true),
            ("x/docs/CLAUDE.md", false),
            ("x/Cargo.lock", true),
            ("a/b1", true),
            ("a/x/y/bc/z", true),
            ("a/b", false),
            ("AGENTS.md", true),
            (".claude/commands/x.md", false),
            (".claude/settings.json", true),
        ] {
            assert_eq!(own.protect(path), expected, "{path}");
        }
        assert!(own.lead_through("a"));
        let replaced = with(&["!**", "/only.txt"]);
        for (path, expected) in [
            ("AGENTS.md", false),
            (".github/workflows/x.yml", false),
            ("only.txt", true),
            ("a/only.txt", false),
        ] {
            assert_eq!(replaced.protect(path), expected, "{path}");
        }
        assert!(!replaced.lead_through(".github"));
    }

    #[test]
    fn patterns_that_mean_nothing_are_refused() {
        for pattern in [
            "", "!", "/", "a//b", "../a", "a/./b", "a**", "[ab]", "a\\b", "{a,b}",
        ] {
            assert!(pattern_problem(pattern).is_some(), "{pattern}");
        }
        for pattern in ["a", "!a/", "/a", "**/a", "a/**", "a*?b"] {
            assert_eq!(pattern_problem(pattern), None, "{pattern}");
        }
    }
}
