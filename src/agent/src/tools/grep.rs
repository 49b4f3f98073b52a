//! `grep`.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::path::Path;

use globset::GlobMatcher;
use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::FileType;

use super::arguments::CheckedArguments;
use super::patterns::path_pattern;
use super::reply::{ReplyLines, ToolError, cut};
use super::resolve::Opened;
use super::root::{FileRoot, open_regular, read_whole};
use super::walk::{DirectoryWalk, shown_path};

/// What is shown of one line.
const LINE_BYTES_MAX: usize = 500;

pub(super) fn grep(root: &FileRoot, arguments: CheckedArguments) -> Result<String, ToolError> {
    let pattern = RegexBuilder::new(arguments.text("pattern"))
        .case_insensitive(arguments.flag("ignore_case"))
        .build()
        .map_err(|error| ToolError::Arguments(format!("`pattern` is not usable: {error}")))?;
    let filter = FileFilter::new(arguments.text("glob"))?;
    let start = arguments.text("path");
    let bounds = root.bounds();
    let mut search = LineSearch {
        pattern,
        context: arguments.number("context").unwrap_or(0),
        lines: ReplyLines::new(bounds.reply_bytes_max, bounds.entries_max),
        found: false,
        full: false,
    };
    let mut skipped = 0_usize;
    let mut notices = match root.open_any(start)? {
        Opened::File(file) => {
            _ = search.file(start, &read_whole(file, bounds, start)?);
            Vec::new()
        }
        Opened::Directory(directory) => DirectoryWalk::run(root, &directory, &mut |visited| {
            if visited.kind != FileType::RegularFile || !filter.accepts(visited.path) {
                return ControlFlow::Continue(());
            }
            let shown = shown_path(start, visited.path);
            let content = open_regular(visited.directory, visited.name, &shown)
                .map_err(ToolError::from)
                .and_then(|file| read_whole(file, bounds, &shown));
            let Ok(content) = content else {
                skipped += 1;
                return ControlFlow::Continue(());
            };
            search.file(&shown, &content)
        }),
    };
    if search.full {
        notices.push("there are more: narrow `pattern`, `path` or `glob`".to_owned());
    }
    if skipped > 0 {
        notices.push(format!(
            "{skipped} files were skipped: too large or not readable"
        ));
    }
    Ok(search.lines.finish("no line matches", &notices))
}

/// Which files are searched.
struct FileFilter {
    pattern: Option<GlobMatcher>,
    /// Whether the pattern is of names in any directory.
    by_name: bool,
}

impl FileFilter {
    fn new(glob: &str) -> Result<Self, ToolError> {
        let compiled = (!glob.is_empty())
            .then(|| path_pattern(glob, false))
            .transpose();
        let pattern = compiled
            .map_err(|problem| ToolError::Arguments(format!("`glob` is not usable: {problem}")))?;
        Ok(Self {
            pattern,
            by_name: !glob.contains('/'),
        })
    }

    fn accepts(&self, path: &Path) -> bool {
        let Some(pattern) = &self.pattern else {
            return true;
        };
        match path.file_name() {
            Some(name) if self.by_name => pattern.is_match(name),
            _ => pattern.is_match(path),
        }
    }
}

/// A search through files, line by line.
struct LineSearch {
    pattern: Regex,
    context: usize,
    lines: ReplyLines,
    /// Whether any line was shown.
    found: bool,
    full: bool,
}

impl LineSearch {
    /// Shows the lines of one file that match, with their context. Breaks when the reply is full.
    fn file(&mut self, shown: &str, content: &[u8]) -> ControlFlow<()> {
        if content.is_empty() || content.contains(&0) {
            return ControlFlow::Continue(());
        }
        let content = content.strip_suffix(b"\n").unwrap_or(content);
        let mut before: VecDeque<(usize, &[u8])> = VecDeque::new();
        let mut after = 0;
        let mut last_shown = None;
        for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if self.pattern.is_match(line) {
                let first = before.front().map_or(index, |(index, _)| *index);
                let adjoins = last_shown.is_some_and(|last| last + 1 == first);
                if self.context > 0 && self.found && !adjoins {
                    self.push("--")?;
                }
                for (index, line) in before.drain(..) {
                    self.push(&shown_line(shown, index, '-', line))?;
                }
                self.push(&shown_line(shown, index, ':', line))?;
                self.found = true;
                last_shown = Some(index);
                after = self.context;
            } else if after > 0 {
                self.push(&shown_line(shown, index, '-', line))?;
                last_shown = Some(index);
                after -= 1;
            } else if self.context > 0 {
                if before.len() == self.context {
                    before.pop_front();
                }
                before.push_back((index, line));
            }
        }
        ControlFlow::Continue(())
    }

    fn push(&mut self, line: &str) -> ControlFlow<()> {
        if self.lines.push(line) {
            return ControlFlow::Continue(());
        }
        self.full = true;
        ControlFlow::Break(())
    }
}

fn shown_line(path: &str, index: usize, mark: char, line: &[u8]) -> String {
    // More than is shown may become longer or shorter where it is not UTF-8, by three bytes for one.
    let text = String::from_utf8_lossy(&line[..line.len().min(LINE_BYTES_MAX + 4)]);
    let shown = cut(&text, LINE_BYTES_MAX);
    let rest = if line.len() > LINE_BYTES_MAX {
        format!(" [cut: the line has {} bytes]", line.len())
    } else {
        String::new()
    };
    format!("{path}{mark}{}{mark}{shown}{rest}", index + 1)
}
