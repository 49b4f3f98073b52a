//! Where a mutating run works, and where its result lands.

use serde::{Deserialize, Serialize};

/// What is laid over the base in a run tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaidOver {
    /// Relative to the work tree of the repository.
    pub path: String,
    /// Whether it is a link to the checkout's instead of a copy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub link: bool,
    /// Whether its absence is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

/// Where a mutating run works, and where its result lands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeSpec {
    /// The branch, as a full name.
    pub target: String,
    /// Whether the branch is made where it does not exist.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub create: bool,
    /// Absolute path of the checkout's work tree, whose place the run tree takes.
    pub workdir: String,
    /// Ignored paths that stay in the tree for the next run of the same worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
    /// What the checkout has and the base need not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub laid_over: Vec<LaidOver>,
    /// Whether files with a `filter` attribute are worked on as git stores them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stored_bytes: bool,
    /// Whether it may go beside other runs of the repository.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel: bool,
    /// How long the landing waits for what is in its way, in milliseconds.
    pub land_wait_ms: u64,
    /// The remote that the branch is pushed to, by the first hook that follows the landing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<String>,
    /// What an earlier version stored of a run that worked in the checkout itself; such a run is not executed any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place: Option<serde_json::Value>,
}

impl TreeSpec {
    /// The short name of the branch.
    pub fn branch(&self) -> &str {
        let target = &self.target;
        target.strip_prefix("refs/heads/").unwrap_or(target)
    }
}
