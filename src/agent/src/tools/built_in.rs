//! Names, descriptions and arguments of the built-in tools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::arguments::{CheckedArguments, FieldType, ToolField, schema};
use crate::request::ToolSpec;

/// A tool that comes with the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuiltIn {
    /// Shows lines of a text file.
    ReadFile,
    /// Creates or replaces a file.
    WriteFile,
    /// Replaces an exact text in a file.
    EditFile,
    /// Names what one directory holds.
    ListDirectory,
    /// Finds files by their path.
    Glob,
    /// Finds lines by a regular expression.
    Grep,
    /// Runs a shell command. It is only specified here: [`perform`](super::perform) refuses it.
    Bash,
    /// Shows a file that the skill lists. Only specified here.
    #[serde(rename = "loadSkillFile")]
    LoadSkillFile,
    /// Hands in a declared output. Only specified here.
    SubmitOutput,
    /// Names the skills that may be started. Only specified here.
    ListSkills,
    /// Starts one of them and waits for its answer. Only specified here.
    UseSkill,
}

impl BuiltIn {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Self; 11] = [
        Self::ReadFile,
        Self::WriteFile,
        Self::EditFile,
        Self::ListDirectory,
        Self::Glob,
        Self::Grep,
        Self::Bash,
        Self::LoadSkillFile,
        Self::SubmitOutput,
        Self::ListSkills,
        Self::UseSkill,
    ];

    /// The name that a model calls it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
            Self::EditFile => "edit_file",
            Self::ListDirectory => "list_directory",
            Self::Glob => "glob",
            Self::Grep => "grep",
            Self::Bash => "bash",
            Self::LoadSkillFile => "loadSkillFile",
            Self::SubmitOutput => "submit_output",
            Self::ListSkills => "list_skills",
            Self::UseSkill => "use_skill",
        }
    }

    /// The tool with exactly this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// The tool that people mean by this name in an `allowed-tools` list: its own name or the one that it
    /// has elsewhere.
    pub fn parse_alias(name: &str) -> Option<Self> {
        match name {
            "Read" => Some(Self::ReadFile),
            "Write" => Some(Self::WriteFile),
            "Edit" | "MultiEdit" => Some(Self::EditFile),
            "LS" => Some(Self::ListDirectory),
            "Glob" => Some(Self::Glob),
            "Grep" => Some(Self::Grep),
            "Bash" | "Shell" => Some(Self::Bash),
            _ => Self::parse(name),
        }
    }

    /// What a model is told about it.
    pub fn spec(self) -> ToolSpec {
        ToolSpec {
            name: self.name().to_owned(),
            description: self.description().to_owned(),
            schema: schema(&self.fields()),
        }
    }

    /// The arguments of a call, if they fit.
    ///
    /// # Errors
    /// They do not: says what is wrong and what the tool takes, for the model to read.
    pub fn check(self, arguments: &Value) -> Result<&Map<String, Value>, String> {
        self.checked(arguments).map(CheckedArguments::all)
    }

    /// As [`BuiltIn::check`], to read them by their names.
    pub(super) fn checked(self, arguments: &Value) -> Result<CheckedArguments<'_>, String> {
        CheckedArguments::check(self.name(), &self.fields(), arguments)
    }

    fn description(self) -> &'static str {
        match self {
            Self::ReadFile => {
                "Read a text file. Returns its lines as they are, without line numbers. A long file is cut, \
                 and a notice in brackets at the end says which `offset` continues it. Read a file before \
                 you edit it."
            }
            Self::WriteFile => {
                "Create a file or replace its whole content; missing parent directories are created. To \
                 change a part of an existing file, use edit_file instead."
            }
            Self::EditFile => {
                "Replace an exact text in a file. `old_text` has to match character by character, blanks \
                 and line ends included, and to occur exactly once: add surrounding lines until it does, or \
                 set `replace_all` to replace every occurrence."
            }
            Self::ListDirectory => {
                "List what one directory holds, sorted by name: directories end in `/`, files have their \
                 size in bytes. Use glob to look deeper."
            }
            Self::Glob => {
                "Find files by their path, sorted. `*` matches within one name, `**` any number of \
                 directories, `?` one character, `{a,b}` either. `*.rs` matches in `path` itself only, \
                 `**/*.rs` at any depth."
            }
            Self::Grep => {
                "Search the lines of text files for a regular expression in the syntax of Rust's regex \
                 (no look-around, no back-references). Prints `path:line:text`, and `path-line-text` for \
                 lines of context. Binary files are skipped."
            }
            Self::Bash => {
                "Run a shell command in the working directory and return its output and exit \
                 status. The command gets no input and no terminal. Prefer the file tools for reading, \
                 searching and editing files."
            }
            Self::LoadSkillFile => {
                "Load one of the files that belong to your instructions, by the path under which they list it."
            }
            Self::ListSkills => {
                "List the skills that you may start, as JSON with name and description each."
            }
            Self::UseSkill => {
                "Start another skill, wait until it has ended, and read its answer. It is executed on its own: \
                 it knows nothing of your task but its input. list_skills names those that there are."
            }
            Self::SubmitOutput => {
                "Hand in a declared output: its whole content, which replaces what was handed in before."
            }
        }
    }

    /// Its arguments: the schema is made from them and calls are checked against them.
    fn fields(self) -> Vec<ToolField> {
        match self {
            Self::ReadFile => vec![
                FILE,
                optional("offset", FROM_ONE, "first line to return, counted from 1"),
                optional("limit", FROM_ONE, "how many lines to return at most"),
            ],
            Self::WriteFile => vec![
                FILE,
                required("content", "the whole new content of the file"),
            ],
            Self::EditFile => vec![
                FILE,
                required("old_text", "the exact text to replace"),
                required("new_text", "what to put in its place"),
                optional(
                    "replace_all",
                    FieldType::Flag,
                    "replace every occurrence; false unless given",
                ),
            ],
            Self::ListDirectory => vec![DIRECTORY],
            Self::Glob => vec![
                required("pattern", "pattern of paths relative to `path`"),
                DIRECTORY,
            ],
            Self::Grep => vec![
                required("pattern", "regular expression that a line has to match"),
                optional(
                    "path",
                    FieldType::Text,
                    "directory or file to search; the working directory unless given",
                ),
                optional(
                    "glob",
                    FieldType::Text,
                    "search only files that match, e.g. `*.rs` or `src/**/*.rs`",
                ),
                optional(
                    "ignore_case",
                    FieldType::Flag,
                    "ignore upper and lower case",
                ),
                optional(
                    "context",
                    FieldType::Number { min: 0, max: 20 },
                    "lines to show before and after each match",
                ),
            ],
            Self::Bash
            | Self::LoadSkillFile
            | Self::ListSkills
            | Self::UseSkill
            | Self::SubmitOutput => self.other_fields(),
        }
    }

    /// Those of what is only specified here.
    fn other_fields(self) -> Vec<ToolField> {
        match self {
            Self::Bash => vec![
                required("command", "the command line"),
                optional(
                    "timeout_seconds",
                    FROM_ONE,
                    "end the command after so many seconds",
                ),
            ],
            Self::LoadSkillFile => vec![
                required("path", "path of the file, as your instructions list it"),
                optional(
                    "skillName",
                    FieldType::Text,
                    "name of the skill; your own unless given",
                ),
            ],
            Self::UseSkill => vec![
                required("skill", "name of the skill"),
                optional("input", FieldType::Object, "input of the skill, by name"),
            ],
            Self::SubmitOutput => vec![
                required("name", "name of the output"),
                required("content", "its whole content"),
            ],
            _ => Vec::new(),
        }
    }
}

const FROM_ONE: FieldType = FieldType::Number {
    min: 1,
    max: u32::MAX as u64,
};

const FILE: ToolField = required(
    "path",
    "path of the file, absolute or relative to the working directory",
);

const DIRECTORY: ToolField = optional(
    "path",
    FieldType::Text,
    "directory, absolute or relative to the working directory, which it is unless given",
);

const fn required(name: &'static str, about: &'static str) -> ToolField {
    ToolField {
        name,
        of: FieldType::Text,
        required: true,
        about,
    }
}

const fn optional(name: &'static str, of: FieldType, about: &'static str) -> ToolField {
    ToolField {
        name,
        of,
        required: false,
        about,
    }
}
