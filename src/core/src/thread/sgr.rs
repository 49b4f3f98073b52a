//! Colours in output: SGR, `ESC [ … m`, the one kind of control sequence that may reach a terminal.

use std::borrow::Cow;

/// Most bytes of one such sequence.
const BYTES_MAX: usize = 64;

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// Text, with whatever other control characters it has.
    Text(&'a str),
    /// A sequence that changes colours and the like, and nothing else.
    Sgr(&'a str),
}

/// Takes a text apart; joined again, the parts are the text.
pub fn parts(text: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let begin = rest
            .match_indices('\u{1b}')
            .find_map(|(at, _)| length(&rest[at..]).map(|length| (at, length)));
        let (part, after) = match begin {
            _ if rest.is_empty() => return None,
            Some((0, length)) => (Part::Sgr(&rest[..length]), length),
            Some((at, _)) => (Part::Text(&rest[..at]), at),
            None => (Part::Text(rest), rest.len()),
        };
        rest = &rest[after..];
        Some(part)
    })
}

/// How many bytes the sequence has that `text` begins with.
fn length(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters
        .bytes()
        .take(BYTES_MAX)
        .position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':'))?;
    (parameters.as_bytes()[end] == b'm').then_some(end + 3)
}

/// The text without its colours.
pub fn without_sgr(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let kept = parts(text).filter_map(|part| match part {
        Part::Text(text) => Some(text),
        Part::Sgr(_) => None,
    });
    Cow::Owned(kept.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sequences_that_colour_are_told_apart() {
        use Part::{Sgr, Text};
        let table: [(&str, &[Part<'_>]); 8] = [
            ("", &[]),
            ("plain", &[Text("plain")]),
            (
                "\u{1b}[1;31mred\u{1b}[m",
                &[Sgr("\u{1b}[1;31m"), Text("red"), Sgr("\u{1b}[m")],
            ),
            (
                "é\u{1b}[38:2::1:2:3mx",
                &[Text("é"), Sgr("\u{1b}[38:2::1:2:3m"), Text("x")],
            ),
            ("\u{1b}[2J\u{1b}[K", &[Text("\u{1b}[2J\u{1b}[K")]),
            ("\u{1b}[31", &[Text("\u{1b}[31")]),
            // The same letter, and a private parameter: keyboard modes, not colours.
            ("\u{1b}[>4;2m", &[Text("\u{1b}[>4;2m")]),
            ("\u{1b}\u{1b}[0m", &[Text("\u{1b}"), Sgr("\u{1b}[0m")]),
        ];
        for (text, expected) in table {
            assert_eq!(parts(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
        let endless = format!("\u{1b}[{}m", "1;".repeat(BYTES_MAX));
        assert_eq!(parts(&endless).collect::<Vec<_>>(), [Text(&endless)]);
        assert_eq!(
            without_sgr("a\u{1b}[31mb\u{1b}[0m\u{1b}[2Jc"),
            "ab\u{1b}[2Jc"
        );
    }
}
