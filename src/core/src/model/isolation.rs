//! What a run tree is given and where the result of a run lands.

use serde::{Deserialize, Serialize};

/// The branch that a result lands on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchChoice {
    /// Short name, such as `reports`.
    pub name: String,
    /// Whether it is made where it is missing.
    #[serde(default)]
    pub create: bool,
}

/// A path of the checkout that a tree is given besides what its base holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalEntry {
    /// Relative to the workspace, without a slash at its end.
    pub path: String,
    /// Whether it is a link to the checkout instead of a copy.
    #[serde(default)]
    pub link: bool,
}

/// Bounds of the trees that runs work in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeLimits {
    /// How many there may be at once.
    pub max: u32,
    /// Bytes of their file system that stay free.
    pub min_free_bytes: u64,
    /// A tree that is not used for this long is removed.
    pub idle_ms: u64,
}

impl Default for TreeLimits {
    fn default() -> TreeLimits {
        TreeLimits {
            max: 8,
            min_free_bytes: 1024 * 1024 * 1024,
            idle_ms: 14 * 24 * 3_600_000,
        }
    }
}

/// Why git refuses the name of a branch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BranchNameError {
    /// Git means something else by it.
    #[error("it is a name reserved by git")]
    Reserved,
    /// It would be taken for an option.
    #[error("it begins with `-`")]
    Dash,
    /// It holds what no name may hold.
    #[error("it holds {0}")]
    Holds(&'static str),
    /// One of the parts between slashes is wrong.
    #[error("a part of it {0}")]
    Part(&'static str),
    /// It ends with a dot.
    #[error("it ends with `.`")]
    Dot,
}

/// The short name of a branch, written so or as `refs/heads/<name>`, under the rules of
/// `git check-ref-format --branch` (git-check-ref-format(1)); `@` is refused too, which git takes for `HEAD`.
///
/// # Errors
/// Git refuses the name.
pub fn branch_name(text: &str) -> Result<&str, BranchNameError> {
    let name = text.strip_prefix("refs/heads/").unwrap_or(text);
    if matches!(name, "HEAD" | "@") {
        return Err(BranchNameError::Reserved);
    }
    if name.starts_with('-') {
        return Err(BranchNameError::Dash);
    }
    let held = [
        (name.contains(' '), "a blank"),
        (
            name.contains(|c: char| c.is_ascii_control()),
            "a control character",
        ),
        (
            name.contains(['~', '^', ':', '?', '*', '[', '\\']),
            "one of `~^:?*[\\`",
        ),
        (name.contains(".."), "`..`"),
        (name.contains("@{"), "`@{`"),
    ];
    if let Some((_, what)) = held.into_iter().find(|(holds, _)| *holds) {
        return Err(BranchNameError::Holds(what));
    }
    for part in name.split('/') {
        let wrong = [
            (part.is_empty(), "is empty"),
            (part.starts_with('.'), "begins with `.`"),
            (part.strip_suffix(".lock").is_some(), "ends with `.lock`"),
        ];
        if let Some((_, what)) = wrong.into_iter().find(|(is, _)| *is) {
            return Err(BranchNameError::Part(what));
        }
    }
    if name.ends_with('.') {
        return Err(BranchNameError::Dot);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_branches_follow_the_rules_of_git() {
        for name in [
            "main", "a/b.c", "käse", "a./b", "@a", "a@", "1", "a-b", "{x}", "refs",
        ] {
            assert_eq!(branch_name(name), Ok(name), "{name}");
        }
        assert_eq!(branch_name("refs/heads/a/b"), Ok("a/b"));
        for (name, why) in [
            ("HEAD", "it is a name reserved by git"),
            ("refs/heads/HEAD", "it is a name reserved by git"),
            ("@", "it is a name reserved by git"),
            ("-b", "it begins with `-`"),
            ("refs/heads/-b", "it begins with `-`"),
            ("a b", "it holds a blank"),
            ("a\tb", "it holds a control character"),
            ("a\u{7f}", "it holds a control character"),
            ("a:b", "it holds one of `~^:?*[\\`"),
            ("a\\b", "it holds one of `~^:?*[\\`"),
            ("a..b", "it holds `..`"),
            ("a@{1}", "it holds `@{`"),
            ("", "a part of it is empty"),
            ("/a", "a part of it is empty"),
            ("a//b", "a part of it is empty"),
            ("a/", "a part of it is empty"),
            ("a/.b", "a part of it begins with `.`"),
            ("a.lock/b", "a part of it ends with `.lock`"),
            ("a.", "it ends with `.`"),
        ] {
            let said = branch_name(name).map_err(|error| error.to_string());
            assert_eq!(said, Err(why.to_owned()), "{name}");
        }
    }
}
