//! What a Handlebars text must not hold: forms that end the process or never end.

use super::problem::TextProblem;

/// Longest Handlebars text, in bytes.
pub const HANDLEBARS_BYTES_MAX: usize = 256 * 1024;
/// Most tags in one text; each may be one level of the stack.
const TAGS_MAX: usize = 1024;
/// Deepest nesting of blocks.
const BLOCKS_MAX: usize = 64;
/// Deepest nesting of loops: the work grows with the power of it.
const LOOPS_MAX: usize = 2;
/// Deepest nesting of parentheses and brackets inside a tag.
const BRACKETS_MAX: usize = 8;

/// The problems of `text`; with none, it can be given to the library.
pub(super) fn problems(text: &str) -> Vec<TextProblem> {
    if text.len() > HANDLEBARS_BYTES_MAX {
        return vec![TextProblem::error(
            "text_too_long",
            0..0,
            format!("the template has {} bytes", text.len()),
            format!("at most {HANDLEBARS_BYTES_MAX} are read"),
        )];
    }
    let mut guard = Guard {
        text,
        blocks: Vec::new(),
        found: Vec::new(),
    };
    let mut at = 0;
    let mut tags = 0;
    while let Some(step) = text.get(at..).and_then(|rest| rest.find("{{")) {
        at += step;
        tags += 1;
        if tags > TAGS_MAX {
            guard.refuse(
                at,
                "too_many_tags",
                "the template has more than 1024 tags",
                "split it",
            );
        }
        if guard.found.len() > 8 || tags > TAGS_MAX {
            break;
        }
        at = guard.tag(at);
    }
    guard.found
}

struct Guard<'a> {
    text: &'a str,
    /// The open blocks; whether each is a loop.
    blocks: Vec<bool>,
    found: Vec<TextProblem>,
}

impl Guard<'_> {
    fn refuse(&mut self, at: usize, code: &'static str, message: &str, hint: &str) {
        self.found
            .push(TextProblem::error(code, at..at + 2, message, hint));
    }

    /// Looks at the tag at `at` and says where to go on.
    fn tag(&mut self, at: usize) -> usize {
        let rest = &self.text[at..];
        let inside = rest.trim_start_matches(['{', '~', '&', ' ', '\t', '\r', '\n']);
        let start = at + rest.len() - inside.len();
        if rest.starts_with("{{{{") {
            self.refuse(
                at,
                "handlebars_raw_block",
                "raw blocks are not supported",
                "write `\\{{` for braces that are meant",
            );
        }
        let mut chars = inside.chars();
        match chars.next() {
            Some('>') => self.partial(at),
            Some('*') => self.decorator(at),
            Some(mark @ ('#' | '^')) => {
                let name = chars
                    .as_str()
                    .trim_start_matches([' ', '\t', '\r', '\n', '~']);
                match name.chars().next() {
                    Some('>') => self.partial(at),
                    Some('*') => self.decorator(at),
                    _ if mark == '#' => self.block(at, name),
                    _ => {}
                }
            }
            Some('/') => {
                self.blocks.pop();
            }
            _ => {}
        }
        self.brackets(start)
    }

    fn partial(&mut self, at: usize) {
        self.refuse(
            at,
            "handlebars_partial",
            "partials are not supported",
            "write the text itself",
        );
    }

    fn decorator(&mut self, at: usize) {
        self.refuse(
            at,
            "handlebars_decorator",
            "decorators are not supported",
            "write the text itself",
        );
    }

    fn block(&mut self, at: usize, name: &str) {
        let rest = name.strip_prefix("each");
        let loops = rest.is_some_and(|r| {
            !r.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        });
        self.blocks.push(loops);
        if self.blocks.len() > BLOCKS_MAX {
            self.refuse(
                at,
                "handlebars_too_deep",
                "blocks are nested more than 64 deep",
                "nest them less",
            );
        }
        if self.blocks.iter().filter(|l| **l).count() > LOOPS_MAX {
            self.refuse(
                at,
                "handlebars_too_deep",
                "loops are nested more than 2 deep",
                "nest them less",
            );
        }
    }

    /// Passes over the inside of a tag, counting brackets.
    fn brackets(&mut self, from: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut open = 0_usize;
        let mut at = from;
        while at < bytes.len() {
            match bytes[at] {
                b'}' if bytes.get(at + 1) == Some(&b'}') => return at + 2,
                b'(' | b'[' | b'{' => open += 1,
                b')' | b']' | b'}' => open = open.saturating_sub(1),
                _ => {}
            }
            if open > BRACKETS_MAX {
                self.refuse(
                    at,
                    "handlebars_too_deep",
                    "brackets are nested more than 8 deep",
                    "nest them less",
                );
                return bytes.len();
            }
            at += 1;
        }
        at
    }
}
