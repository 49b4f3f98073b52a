//! Text of somebody else as it may be shown: nothing in it is obeyed by a terminal or hidden from a reader.

use std::borrow::Cow;
use std::fmt::Write;

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or_default();
    let digits = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.collect()
}

/// Whether a terminal would do something else with `c` than show it where it stands.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Line and paragraph separators, zero-width characters that hide text, directions
            // that reorder it, and invisible tags. Joiners stay: scripts and emoji need them.
            '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{061c}'
            | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{e0000}'..='\u{e007f}')
}

/// `text` in one line, with everything escaped that a terminal would obey instead of showing; tabs stay.
pub fn legible(text: &str) -> Cow<'_, str> {
    escaped(text, "\t")
}

/// The same for text of several lines, whose ends stay.
pub fn legible_lines(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") {
        let plain = text.replace("\r\n", "\n");
        return Cow::Owned(escaped(&plain, "\t\n").into_owned());
    }
    escaped(text, "\t\n")
}

/// Returns `text` in one line so that two different texts never look the same, for what a person decides on.
///
/// Unlike [`legible`] it also escapes backslashes, tabs, and characters that are invisible or look like a blank.
pub fn exact(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\\' => shown.push_str("\\\\"),
            '\t' => shown.push_str("\\t"),
            c if is_hidden(c) || is_unseen(c) => {
                shown.push_str(&escaped(c.encode_utf8(&mut [0; 4]), ""));
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Returns a line of a file with control and invisible characters as symbols: a carriage return is `␍`, not the two
/// characters `\r`, which are harmless in the source of a program.
pub fn marked(line: &str) -> Cow<'_, str> {
    let is_marked = |c: char| c != '\t' && (is_hidden(c) || is_unseen(c));
    if !line.chars().any(is_marked) {
        return Cow::Borrowed(line);
    }
    let mut shown = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        let code = u32::from(c);
        // The pictures of control characters are in the order of these.
        let picture = match code {
            0..0x20 => char::from_u32(0x2400 + code),
            0x7f => Some('\u{2421}'),
            _ => None,
        };
        match picture {
            _ if !is_marked(c) => shown.push(c),
            Some(picture) => shown.push(picture),
            // Writing to a string does not fail.
            None => _ = write!(shown, "⟨U+{code:04X}⟩"),
        }
    }
    Cow::Owned(shown)
}

/// Returns whether `c` is default-ignorable (Unicode 16) or a white space other than a blank.
fn is_unseen(c: char) -> bool {
    let is_ignorable = matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}');
    // A braille pattern without dots is no white space, and looks like one.
    is_ignorable || (c.is_whitespace() && c != ' ') || c == '\u{2800}'
}

fn escaped<'t>(text: &'t str, kept: &str) -> Cow<'t, str> {
    let is_escaped =
        |c: char| (is_hidden(c) || (kept.is_empty() && is_unseen(c))) && !kept.contains(c);
    if !text.chars().any(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        // Writing to a string does not fail.
        let _ = match c {
            c if !is_escaped(c) => shown.write_char(c),
            '\n' => shown.write_str("\\n"),
            '\r' => shown.write_str("\\r"),
            c if u32::from(c) < 0x100 => write!(shown, "\\x{:02x}", u32::from(c)),
            c => write!(shown, "\\u{{{:x}}}", u32::from(c)),
        };
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_and_nothing_else_that_a_terminal_obeys() {
        for (text, shown) in [
            ("a\n\tb é 👩‍💻\n", "a\n\tb é 👩‍💻\n"),
            ("a\r\nb\rc\n", "a\nb\\rc\n"),
            (
                "\u{1b}[2J\u{0}\u{9b}x\u{202e}y\u{2066}\n",
                "\\x1b[2J\\x00\\x9bx\\u{202e}y\\u{2066}\n",
            ),
        ] {
            assert_eq!(legible_lines(text), shown, "{text:?}");
        }
        assert_eq!(legible("a\nb\tc"), "a\\nb\tc");
    }

    #[test]
    fn control_characters_of_a_file_are_symbols() {
        let line = "\tif x: # \r\u{1b}[2J \u{202e}\u{a0}\u{7f} \\r";
        assert_eq!(marked(line), "\tif x: # ␍␛[2J ⟨U+202E⟩⟨U+00A0⟩␡ \\r");
    }

    #[test]
    fn different_texts_never_look_the_same() {
        for (text, shown) in [
            ("a b é", "a b é"),
            ("a\\nb", r"a\\nb"),
            ("a\nb\tc", r"a\nb\tc"),
            (
                "\u{ad}\u{3164}\u{115f}\u{fe0f}\u{a0}",
                r"\xad\u{3164}\u{115f}\u{fe0f}\xa0",
            ),
            (r"\xad", r"\\xad"),
        ] {
            assert_eq!(exact(text), shown, "{text:?}");
        }
    }
}
