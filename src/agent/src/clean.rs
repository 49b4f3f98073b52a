//! Server messages made safe to show: shortened, without control characters, and with anything repeated from
//! the request masked.

use std::collections::HashSet;

use crate::error::Failure;
use crate::model::Key;
use crate::request::Request;

/// Characters of a message that are kept.
const MESSAGE_CHARS_MAX: usize = 300;
/// Bytes of a message that are looked at.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Bytes in a row that make a repetition of a text. Shorter texts are masked whole.
const TEXT_WINDOW: usize = 16;
/// Shorter texts are words like any other.
const TEXT_BYTES_MIN: usize = 6;
/// Likewise for keys, of which less must be seen.
const KEY_WINDOW: usize = 6;

/// Holds what must not be shown.
pub(crate) struct Mask<'a> {
    request: &'a Request,
    key: Option<&'a Key>,
}

impl<'a> Mask<'a> {
    pub(crate) fn new(request: &'a Request, key: Option<&'a Key>) -> Self {
        Self { request, key }
    }

    /// Cleans the parts of a failure that a server wrote. Every failure passes through here.
    pub(crate) fn clean(&self, mut failure: Failure) -> Failure {
        match &mut failure {
            Failure::RequestRefused { message, .. } | Failure::Server { message, .. } => {
                *message = self.text(message);
                if message.is_empty() {
                    "it does not say why".clone_into(message);
                }
            }
            Failure::Empty { stop } | Failure::Length { stop } | Failure::Refusal { stop } => {
                *stop = self.text(stop);
            }
            Failure::Connect { why, .. } | Failure::NotAModelServer { why, .. } => {
                *why = self.text(why);
            }
            Failure::Redirected { to, .. } => *to = self.text(to),
            Failure::Settings(_)
            | Failure::HeadersTimeout(_)
            | Failure::Silence(_)
            | Failure::TurnTimeout(_)
            | Failure::Stopped
            | Failure::Halted(_)
            | Failure::Incomplete(_)
            | Failure::TooLarge { .. }
            | Failure::Auth { .. }
            | Failure::ModelNotFound { .. }
            | Failure::RateLimited { .. } => {}
        }
        failure
    }

    /// Cleans one text.
    pub(crate) fn text(&self, text: &str) -> String {
        hidden_and_shown(text, self.key.as_slice(), &self.request.texts())
    }
}

/// Cleans a text that has nothing to do with a request.
pub(crate) fn text(text: &str, keys: &[&Key]) -> String {
    hidden_and_shown(text, keys, &[])
}

/// Cleans a text in which these stand: of keys no part is shown, of texts none that is long, or all of a short one.
pub(crate) fn hidden_and_shown(text: &str, keys: &[&Key], prompts: &[&str]) -> String {
    let mut end = text.len().min(MESSAGE_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    let mut hidden = vec![false; text.len()];
    for key in keys {
        hide(
            text.as_bytes(),
            key.value().as_bytes(),
            KEY_WINDOW,
            &mut hidden,
        );
    }
    for prompt in prompts {
        if prompt.len() >= TEXT_BYTES_MIN {
            hide(text.as_bytes(), prompt.as_bytes(), TEXT_WINDOW, &mut hidden);
        }
    }
    shown(text, &hidden)
}

/// Hides each run of `window` bytes of `text` that `secret` has too; if `secret` is shorter, the whole of it.
fn hide(text: &[u8], secret: &[u8], window: usize, hidden: &mut [bool]) {
    let window = window.min(secret.len());
    if window == 0 || text.len() < window {
        return;
    }
    // The message is short and the secret may be long, so the set holds pieces of the message.
    let mine: HashSet<&[u8]> = text.windows(window).collect();
    let both: HashSet<&[u8]> = secret
        .windows(window)
        .filter(|piece| mine.contains(piece))
        .collect();
    for (at, piece) in text.windows(window).enumerate() {
        if both.contains(piece) {
            hidden[at..at + window].fill(true);
        }
    }
}

/// The text with what is hidden as `[..]`, blanks in a row as one, and without characters that control a
/// terminal or turn text around.
fn shown(text: &str, hidden: &[bool]) -> String {
    let mut out = String::new();
    let mut chars = 0;
    let mut in_hidden = false;
    for (at, c) in text.char_indices() {
        if hidden[at] {
            if !in_hidden {
                out.push_str("[..]");
                chars += 4;
            }
            in_hidden = true;
            continue;
        }
        in_hidden = false;
        let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
        if c.is_whitespace() || c.is_control() || turns {
            if !out.is_empty() && !out.ends_with(' ') {
                out.push(' ');
                chars += 1;
            }
        } else {
            out.push(c);
            chars += 1;
        }
        if chars >= MESSAGE_CHARS_MAX {
            out.truncate(out.trim_end().len());
            out.push_str(" ..");
            break;
        }
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Message;

    #[test]
    fn what_a_server_says_is_cleaned() {
        let request = Request {
            system: "You are a careful librarian of secrets.".into(),
            messages: vec![
                Message::user("open the pod bay doors"),
                Message::user("sesame"),
            ],
            ..Request::default()
        };
        let key = Key::new("X", "sk-0123456789abcdef");
        let mask = Mask::new(&request, Some(&key));
        for (text, expect) in [
            ("plain  words\n", "plain words"),
            ("\u{1b}[31mred\u{202e}", "[31mred"),
            ("bad input: open the pod bay doors!", "bad input: [..]!"),
            ("bad input: open the pod bay d..", "bad input: [..].."),
            ("say 'sesame' again", "say '[..]' again"),
            ("key sk-0123456789abcdef", "key [..]"),
            ("key ..789abcdef", "key ..[..]"),
            ("max_tokens: 99999 > 8192", "max_tokens: 99999 > 8192"),
            ("careful librarian", "careful librarian"),
        ] {
            let expect = if text == "careful librarian" {
                "[..]"
            } else {
                expect
            };
            assert_eq!(mask.text(text), expect, "{text}");
        }
        let long = mask.text(&"ä ".repeat(5000));
        assert_eq!(long.chars().count(), 300 - 1 + 3, "{long}");
    }
}
