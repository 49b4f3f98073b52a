//! The text of one file and the places within it.

use std::ops::Range;
use std::sync::Arc;

use crate::model::Place;

/// What helps where something that was read before is used instead of what a file says now.
pub(super) const REPAIR: &str =
    "repair the file: it is read again within seconds, or at once by `workerctl daemon reload`";

/// The text of one definition file; offsets are bytes from its start.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    path: Arc<str>,
    text: String,
    line_starts: Vec<usize>,
}

impl Source {
    /// Takes a text; `path` is relative to the workspace.
    pub(crate) fn new(path: &str, text: String) -> Source {
        let mut line_starts = vec![0];
        line_starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
        Source {
            path: path.into(),
            text,
            line_starts,
        }
    }

    /// Path relative to the workspace.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Line (from 0) that holds the byte at `offset`.
    pub(crate) fn line_index(&self, offset: usize) -> usize {
        self.line_starts
            .partition_point(|start| *start <= offset)
            .saturating_sub(1)
    }

    /// Bytes of a line counted from 0, without its line end.
    pub(crate) fn line_range(&self, line: usize) -> Range<usize> {
        let start = self
            .line_starts
            .get(line)
            .copied()
            .unwrap_or(self.text.len());
        let end = self
            .line_starts
            .get(line + 1)
            .map_or(self.text.len(), |next| next.saturating_sub(1));
        let end = end.max(start);
        let carriage_return = self.text.as_bytes()[start..end].last() == Some(&b'\r');
        start..end - usize::from(carriage_return)
    }

    /// Text of a line counted from 0, without its line end.
    pub(crate) fn line(&self, line: usize) -> &str {
        self.text.get(self.line_range(line)).unwrap_or_default()
    }

    /// Place of the byte at `offset`.
    pub(crate) fn place(&self, offset: usize) -> Place {
        let offset = offset.min(self.text.len());
        let line = self.line_index(offset);
        let start = self.line_starts.get(line).copied().unwrap_or(0);
        let before = self.text.get(start..offset).unwrap_or_default();
        Place {
            path: Arc::clone(&self.path),
            line: count(line + 1),
            column: count(before.trim_start_matches('\u{feff}').chars().count() + 1),
        }
    }

    /// Place of the whole file.
    pub(crate) fn whole(&self) -> Place {
        whole_file(&self.path)
    }

    /// Offset of a line and column as parsers count them, both from 0, columns in characters.
    pub(crate) fn offset_of(&self, line: usize, column: usize) -> usize {
        let range = self.line_range(line);
        let text = self.text.get(range.clone()).unwrap_or_default();
        text.char_indices()
            .nth(column)
            .map_or(range.end, |(at, _)| range.start + at)
    }
}

/// The directory of a file; empty for one at the top.
pub(crate) fn directory_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Place that means a whole file.
pub(crate) fn whole_file(path: &str) -> Place {
    Place {
        path: path.into(),
        line: 0,
        column: 0,
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_line_ends_do_not_belong_to_lines() {
        let source = Source::new("a", "äb: c\r\nd\n".to_owned());
        let place = source.place(source.text().find('c').expect("c"));
        assert_eq!((place.line, place.column), (1, 5));
        assert_eq!(source.line(0), "äb: c");
        assert_eq!(source.line(1), "d");
        assert_eq!(source.line(7), "");
        assert_eq!(source.offset_of(0, 1), 2);
        assert_eq!(source.place(9_999).line, 3);
    }
}
