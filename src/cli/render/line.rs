//! One line of output: styled pieces whose control characters cannot reach a terminal.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub(crate) use crate::model::legible::{is_hidden, legible};
use crate::thread::sgr::{self, Part};

/// No style.
pub(crate) const PLAIN: Style = Style::new();
/// Names that matter.
pub(crate) const BOLD: Style = Style::new().bold();
/// What is there only for completeness.
pub(crate) const DIM: Style = Style::new().dimmed();
/// As it should be.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Not as it should be.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// To be looked at.
pub(crate) const CARE: Style = AnsiColor::Yellow.on_default();
/// What to do, and what is going on.
pub(crate) const ACTIVE: Style = AnsiColor::Cyan.on_default();

/// Begins what a terminal was too narrow for.
pub(crate) const CONTINUED: &str = "↪ ";

/// Ends every colour.
const RESET: &str = "\u{1b}[0m";

/// A line, or a part of one, in pieces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Style, String),
    /// A sequence of a skill's own that changes colours.
    Sgr(String),
}

impl Line {
    /// An empty line.
    pub(crate) fn new() -> Line {
        Line::default()
    }

    /// A line of one styled piece.
    pub(crate) fn of(style: Style, text: impl AsRef<str>) -> Line {
        Line::new().styled(style, text)
    }

    /// Adds text as it is, control characters escaped.
    #[must_use]
    pub(crate) fn text(self, text: impl AsRef<str>) -> Line {
        self.styled(PLAIN, text)
    }

    /// Adds styled text, control characters escaped.
    #[must_use]
    pub(crate) fn styled(mut self, style: Style, text: impl AsRef<str>) -> Line {
        let text = legible(text.as_ref()).into_owned();
        self.pieces.push(Piece::Text(style, text));
        self
    }

    /// Adds what a skill printed: in its own colours, which end with it, or styled where it has none. Every
    /// other control character is escaped.
    #[must_use]
    pub(crate) fn output(mut self, style: Style, text: &str) -> Line {
        let mut open = false;
        for part in sgr::parts(text) {
            match part {
                Part::Sgr(sequence) => {
                    open = true;
                    self.pieces.push(Piece::Sgr(sequence.to_owned()));
                }
                Part::Text(text) => self = self.styled(if open { PLAIN } else { style }, text),
            }
        }
        if open {
            self.pieces.push(Piece::Sgr(RESET.to_owned()));
        }
        self
    }

    /// Adds all pieces of another line.
    #[must_use]
    pub(crate) fn then(mut self, other: Line) -> Line {
        self.pieces.extend(other.pieces);
        self
    }

    /// Columns that it takes on a terminal.
    pub(crate) fn width(&self) -> usize {
        let text = |piece: &Piece| match piece {
            Piece::Text(_, text) => text.width(),
            Piece::Sgr(_) => 0,
        };
        self.pieces.iter().map(text).sum()
    }

    /// The line with a blank for each tab, so that its width does not depend on where it stands.
    #[must_use]
    pub(crate) fn on_one_column_each(mut self) -> Line {
        for piece in &mut self.pieces {
            if let Piece::Text(_, text) = piece
                && text.contains('\t')
            {
                *text = text.replace('\t', " ");
            }
        }
        self
    }

    /// The line cut to `width` columns, the last of them `…` when something was cut.
    #[must_use]
    pub(crate) fn cut(self, width: usize) -> Line {
        if self.width() <= width {
            return self;
        }
        let mut left = width.saturating_sub(1);
        let mut kept = Line::new();
        let mut complete = true;
        for piece in self.pieces {
            let (style, text) = match piece {
                // Those that end a colour count, wherever the text was cut.
                Piece::Sgr(sequence) => {
                    kept.pieces.push(Piece::Sgr(sequence));
                    continue;
                }
                Piece::Text(style, text) => (style, text),
            };
            if complete {
                let fits = prefix(&text, left);
                left = left.saturating_sub(fits.width());
                complete = fits.len() == text.len();
                kept.pieces.push(Piece::Text(style, fits.to_owned()));
            }
        }
        if width > 0 {
            kept.pieces.push(Piece::Text(PLAIN, "…".to_owned()));
        }
        kept
    }

    /// The line in lines of at most `width` columns, broken between words; all but the first are indented. A
    /// word that is longer stays whole, so that it can be copied.
    pub(crate) fn wrapped(self, width: usize, indent: usize) -> Vec<Line> {
        if self.width() <= width {
            return vec![self];
        }
        let (mut lines, mut line, mut is_empty) = (Vec::new(), Line::new(), true);
        for (blanks, word) in self.words() {
            if !is_empty && line.width() + blanks + word.width() > width {
                let next = Line::from(" ".repeat(indent)).then(word);
                lines.push(std::mem::replace(&mut line, next));
            } else {
                line = line.text(" ".repeat(blanks)).then(word);
            }
            is_empty = false;
        }
        lines.push(line);
        lines
    }

    /// The line in lines of at most `width` columns, broken anywhere; all but the first begin with [`CONTINUED`].
    pub(crate) fn folded(self, width: usize) -> Vec<Line> {
        let (mut lines, mut line, mut used) = (Vec::new(), Line::new(), 0);
        for piece in self.pieces {
            let Piece::Text(style, mut text) = piece else {
                line.pieces.push(piece);
                continue;
            };
            loop {
                let fits = fitting(&text, width.saturating_sub(used), used <= CONTINUED.width());
                let rest = text.split_off(fits);
                used += columns(&text);
                line.pieces.push(Piece::Text(style, text));
                if rest.is_empty() {
                    break;
                }
                lines.push(std::mem::replace(&mut line, Line::of(DIM, CONTINUED)));
                (text, used) = (rest, CONTINUED.width());
            }
        }
        lines.push(line);
        lines
    }

    /// Columns of the longest word.
    pub(crate) fn longest_word(&self) -> usize {
        let words = self.clone().words();
        words
            .iter()
            .map(|(_, word)| word.width())
            .max()
            .unwrap_or(0)
    }

    /// The words, each with the number of blanks before it; one word may have pieces of several styles.
    fn words(self) -> Vec<(usize, Line)> {
        let (mut words, mut blanks, mut word) = (Vec::new(), 0, Line::new());
        for piece in self.pieces {
            let (style, text) = match piece {
                Piece::Text(style, text) => (style, text),
                sequence @ Piece::Sgr(_) => {
                    word.pieces.push(sequence);
                    continue;
                }
            };
            for (nth, part) in text.split(' ').enumerate() {
                if nth > 0 && word.width() > 0 {
                    words.push((blanks, std::mem::take(&mut word)));
                    blanks = 0;
                }
                blanks += usize::from(nth > 0);
                if !part.is_empty() {
                    word = word.styled(style, part);
                }
            }
        }
        words.push((blanks, word));
        words
    }

    /// The text, with the escape sequences of its styles when `color` is set.
    pub(crate) fn paint(&self, color: bool) -> String {
        let mut painted = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(style, text) if color && *style != PLAIN && !text.is_empty() => {
                    // Writing to a string does not fail.
                    let _ = write!(painted, "{style}{text}{style:#}");
                }
                Piece::Text(_, text) => painted.push_str(text),
                Piece::Sgr(sequence) if color => painted.push_str(sequence),
                Piece::Sgr(_) => {}
            }
        }
        painted
    }
}

impl From<&str> for Line {
    fn from(text: &str) -> Line {
        Line::new().text(text)
    }
}

impl From<String> for Line {
    fn from(text: String) -> Line {
        Line::new().text(text)
    }
}

/// Columns that a text takes at most: a tab leads to the next of the terminal's stops.
fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

fn columns_of(c: char) -> usize {
    match c {
        '\t' => 8,
        _ => c.width().unwrap_or(0),
    }
}

/// Bytes of `text` that fit into `width` columns; one character at least if `at_least_one`.
fn fitting(text: &str, width: usize, at_least_one: bool) -> usize {
    let mut used = 0;
    let mut places = text.char_indices().skip_while(|(at, c)| {
        used += columns_of(*c);
        used <= width || (*at == 0 && at_least_one)
    });
    places.next().map_or(text.len(), |(at, _)| at)
}

/// As much of `text` from its beginning as fits into `width` columns.
fn prefix(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folded_line_fits_and_its_continuations_are_marked() {
        let text = "日本語 ab\tcd e\u{301}f".repeat(3);
        for width in [1, 2, 3, 10, 40] {
            let lines = Line::of(BOLD, "> ").output(GOOD, &text).folded(width);
            let shown: Vec<String> = lines.iter().map(|line| line.paint(false)).collect();
            for (nth, line) in shown.iter().enumerate() {
                assert!(
                    columns(line) <= width.max(CONTINUED.width() + 8),
                    "{width}: {line}"
                );
                assert_eq!(line.starts_with(CONTINUED), nth > 0, "{width}: {line}");
            }
            let whole: Vec<_> = shown
                .iter()
                .map(|line| line.trim_start_matches(CONTINUED))
                .collect();
            assert_eq!(whole.concat(), format!("> {text}"), "{width}");
        }
    }

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        let table = [
            ("plain äß 日本 👩‍💻\tend", "plain äß 日本 👩‍💻\tend"),
            ("\u{1b}]0;title\u{7}", r"\x1b]0;title\x07"),
            ("\u{1b}[2J\u{1b}[H", r"\x1b[2J\x1b[H"),
            ("\u{1b}]52;c;ZXZpbA==\u{7}", r"\x1b]52;c;ZXZpbA==\x07"),
            ("a\rb", r"a\rb"),
            ("abc\u{8}\u{8}\u{8}", r"abc\x08\x08\x08"),
            ("a\nb", r"a\nb"),
            ("a\u{2028}b", r"a\u{2028}b"),
            ("\u{202e}txt.exe", r"\u{202e}txt.exe"),
            ("\u{9b}31m", r"\x9b31m"),
            ("\u{fffd}", "\u{fffd}"),
            ("::add-mask::x", "::add-mask::x"),
            ("-\u{200b}x", r"-\u{200b}x"),
        ];
        for (text, shown) in table {
            assert_eq!(legible(text), shown, "{text:?}");
            let painted = Line::of(BAD, text).paint(false);
            assert!(
                !painted.chars().any(|c| c.is_control() && c != '\t'),
                "{painted:?}"
            );
        }
    }

    #[test]
    fn colour_is_only_where_it_is_wanted() {
        let line = Line::of(GOOD, "done").text(" in 3s");
        assert_eq!(line.paint(false), "done in 3s");
        assert_eq!(line.paint(true), "\u{1b}[32mdone\u{1b}[0m in 3s");
    }

    #[test]
    fn colours_of_a_skill_pass_alone_and_end_with_its_line() {
        let told = "plain \u{1b}[31mred\u{1b}[2J\u{1b}[1;42m bold";
        let line = Line::of(DIM, "│ ").output(PLAIN, told);
        assert_eq!(line.paint(false), r"│ plain red\x1b[2J bold");
        assert_eq!(
            line.paint(true),
            "\u{1b}[2m│ \u{1b}[0mplain \u{1b}[31mred\\x1b[2J\u{1b}[1;42m bold\u{1b}[0m"
        );
        assert_eq!(line.width(), line.paint(false).chars().count());
        assert_eq!(
            line.cut(11).paint(true),
            "\u{1b}[2m│ \u{1b}[0mplain \u{1b}[31mre\u{1b}[1;42m\u{1b}[0m…"
        );
        let plain = Line::new().output(DIM, "none of its own");
        assert_eq!(plain, Line::of(DIM, "none of its own"));
        // A name that somebody gave is no output: what stands in it is shown.
        assert_eq!(Line::from("\u{1b}[31mx").paint(true), r"\x1b[31mx");
    }

    #[test]
    fn a_line_is_broken_between_words_only() {
        let line = Line::from("  ")
            .styled(GOOD, "name")
            .styled(BOLD, "s ")
            .text("of a-long-one  two");
        let shown = |width| {
            let lines = line.clone().wrapped(width, 4);
            lines
                .iter()
                .map(|line| line.paint(false))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(80), ["  names of a-long-one  two"]);
        assert_eq!(shown(20), ["  names of", "    a-long-one  two"]);
        assert_eq!(shown(14), ["  names of", "    a-long-one", "    two"]);
        assert_eq!(shown(3), ["  names", "    of", "    a-long-one", "    two"]);
        assert_eq!(line.longest_word(), 10);
        assert_eq!(Line::new().longest_word(), 0);
    }

    #[test]
    fn cutting_counts_columns_not_bytes() {
        assert_eq!(Line::from("日本語です").cut(7).paint(false), "日本語…");
        assert_eq!(Line::from("日本語です").cut(6).paint(false), "日本…");
        assert_eq!(Line::from("abc").cut(3).paint(false), "abc");
        assert_eq!(Line::from("abcd").cut(3).paint(false), "ab…");
        assert_eq!(Line::from("abcd").cut(1).paint(false), "…");
        assert_eq!(Line::from("abcd").cut(0).paint(false), "");
    }
}
