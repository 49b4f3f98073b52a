//! The built-in file tools that a model may call.
//!
//! [`perform`] runs one call and blocks. It is meant for a child process of its own inside a sandbox: a
//! [`FileCall`] arrives as JSON, a [`FileReply`] leaves as JSON. Nothing here relies on that sandbox.
//!
//! # Guarantees
//!
//! - **Nothing outside `root` is reached**, neither by `..` nor by a symbolic link, whatever others rename
//!   meanwhile. `.git` and everything in `hidden` is refused by its real place, and skipped by listings and
//!   searches.
//! - **Only regular files are read and replaced**, and opening one never waits. A write replaces the whole
//!   file by renaming, so a reader sees the old or the new content.
//! - **Everything is bounded**: bytes of a reply and of a file, entries named, entries visited, and depth.
//! - **A wrong call is a reply**, with a text from which a model can correct itself.
//!
//! Which tools and commands a skill allows is a separate question, answered by [`Allowed`].

mod allowed;
mod arguments;
mod built_in;
mod command;
mod disallowed;
mod edit;
mod grep;
mod listing;
mod patterns;
mod read;
mod reply;
mod resolve;
mod root;
mod walk;
mod write;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use reply::ToolError;
use root::FileRoot;

pub use allowed::{Allowed, NotUnderstood};
pub use built_in::BuiltIn;
pub use disallowed::Disallowed;
pub use write::TEMPORARY_PREFIX;

/// One call of a file tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileCall {
    /// The tool, one that [`perform`] runs.
    pub tool: BuiltIn,
    /// What the model gave, unchecked.
    pub arguments: Value,
    /// Absolute path of the directory that holds all files.
    pub root: PathBuf,
    /// Absolute path, inside `root`, that relative paths start from.
    pub cwd: PathBuf,
    /// Absolute paths that are refused with everything in them; they need not exist. One that contains
    /// `root` hides nothing, because no call gets that far up.
    #[serde(default)]
    pub hidden: Vec<PathBuf>,
    /// How much may be read and returned.
    #[serde(default)]
    pub bounds: Bounds,
}

/// How much one call may read and return.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// Bytes of a reply, without the notices at its end.
    pub reply_bytes_max: usize,
    /// Bytes of a file that is read, edited, written or searched.
    pub file_bytes_max: u64,
    /// Entries of a listing, paths of a glob, lines of a grep.
    pub entries_max: usize,
    /// Directory entries that one call looks at.
    pub visited_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            reply_bytes_max: 64 * 1024,
            file_bytes_max: 8 * 1024 * 1024,
            entries_max: 2_000,
            visited_max: 100_000,
        }
    }
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReply {
    /// What the model gets to read.
    pub content: String,
    /// Whether the call failed.
    pub is_error: bool,
}

/// Runs one call.
pub fn perform(call: &FileCall) -> FileReply {
    let (content, is_error) = match dispatch(call) {
        Ok(content) => (content, false),
        Err(error) => (error.to_string(), true),
    };
    // Errors quote what the model gave, which has no limit of its own.
    let bytes_max = call.bounds.reply_bytes_max + reply::NOTICES_BYTES_MAX;
    let content = reply::cut(&content, bytes_max).to_owned();
    FileReply { content, is_error }
}

fn dispatch(call: &FileCall) -> Result<String, ToolError> {
    let arguments = call
        .tool
        .checked(&call.arguments)
        .map_err(ToolError::Arguments)?;
    let root = FileRoot::open(call)?;
    match call.tool {
        BuiltIn::ReadFile => read::read_file(&root, arguments),
        BuiltIn::WriteFile => write::write_file(&root, arguments),
        BuiltIn::EditFile => edit::edit_file(&root, arguments),
        BuiltIn::ListDirectory => listing::list_directory(&root, arguments),
        BuiltIn::Glob => listing::glob(&root, arguments),
        BuiltIn::Grep => grep::grep(&root, arguments),
        BuiltIn::Bash
        | BuiltIn::LoadSkillFile
        | BuiltIn::SubmitOutput
        | BuiltIn::ListSkills
        | BuiltIn::UseSkill => {
            let text = format!("{} is no file tool", call.tool.name());
            Err(ToolError::Arguments(text))
        }
    }
}
