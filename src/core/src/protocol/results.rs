//! What a run left: paths that it changed, and files that it was to write.

use std::io::Read;

use serde::{Deserialize, Serialize};

/// Which part of a run's patch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiffQuery {
    /// Only this path, relative to the root of the repository, or what lies below it; a renamed file has two.
    #[serde(default)]
    pub path: Option<String>,
}

/// What a run did to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeStatus {
    /// It was not there before.
    Added,
    /// It has another content or another mode.
    Modified,
    /// It is no longer there.
    Deleted,
    /// It was at another path before.
    Renamed,
}

/// A path that a run changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PathChange {
    /// Relative to the root of the repository; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// What was done to it.
    pub status: ChangeStatus,
    /// Where it was before, if it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Lines that came; null: it is no text, or too large to be compared.
    pub added: Option<u64>,
    /// Lines that went; null likewise.
    pub removed: Option<u64>,
    /// Whether it is no text, before or after.
    pub binary: bool,
    /// Git's mode before, in octal, such as `100644`; missing if there was no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_mode: Option<String>,
    /// Git's mode after, in octal; missing if the file was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Whether a sandboxed run needs approval to change it, as it is a definition or a protected file.
    #[serde(default)]
    pub protected: bool,
}

/// The paths that a run changed, protected ones first, bounded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The first of them.
    pub paths: Vec<PathChange>,
    /// How many there are.
    pub total: u64,
}

/// Where the content of an output was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutputSource {
    /// In this commit of the run, in hex.
    Commit(String),
    /// Where it waits until a person has approved it.
    Held,
    /// At its destination, where it may have been written since.
    Destination {
        /// Whether it is another than the run left; absent where that cannot be told.
        changed: Option<bool>,
    },
}

/// The file of an output.
pub struct OutputFile {
    /// Its path relative to the workspace.
    pub path: String,
    /// Where it was read.
    pub source: OutputSource,
    /// How many bytes it has.
    pub bytes: u64,
    /// Its content, read as it is asked for.
    pub content: Box<dyn Read + Send>,
}
