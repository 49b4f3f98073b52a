//! Finds the place of every value by walking the text in step with what the parser read.
//!
//! The parser tells values but not where they stand. The walk knows what comes next, so it only has
//! to skip what is between: it never decides what a text means. Where the two disagree the walk is
//! lost, and everything after takes the place of the nearest key before it.

use super::tree::{Data, Entry, Node, Tree};

/// A value that carries a tag, such as `!secret`; offset of the `!`.
pub(crate) type TagAt = usize;

/// Lays `tree` over `text[start..]`.
pub(crate) fn align(text: &str, start: usize, end: usize, tree: Tree) -> (Node, Vec<TagAt>) {
    let mut walk = AlignWalk {
        text: &text.as_bytes()[..end.min(text.len())],
        at: start,
        lost: false,
        tags: Vec::new(),
    };
    let node = walk.node(tree, Context::block(-1), start);
    (node, walk.tags)
}

#[derive(Clone, Copy)]
struct Context {
    /// Column of the collection around, -1 at the top.
    indent: isize,
    flow: bool,
    key: bool,
}

impl Context {
    fn block(indent: isize) -> Context {
        Context {
            indent,
            flow: false,
            key: false,
        }
    }
}

struct AlignWalk<'t> {
    text: &'t [u8],
    at: usize,
    lost: bool,
    tags: Vec<TagAt>,
}

impl AlignWalk<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn node(&mut self, tree: Tree, context: Context, near: usize) -> Node {
        if self.lost {
            return lay(tree, near);
        }
        if matches!(tree, Tree::Null) && !self.null_stands_here(context) {
            return lay(tree, near);
        }
        self.skip_trivia();
        self.skip_properties(context);
        let start = self.at;
        if self.peek(0) == Some(b'*') {
            self.skip_word(true);
            return lay(tree, start);
        }
        let data = match tree {
            Tree::Map(entries) => self.map(entries, context),
            Tree::List(items) => self.list(items, context),
            Tree::Text(text) => {
                self.text_value(&text, context);
                Data::Text(text)
            }
            Tree::Null => {
                if self.null_word(context).is_some() {
                    self.skip_word(context.flow);
                }
                Data::Null
            }
            Tree::Bool(value) => {
                self.skip_scalar(context);
                Data::Bool(value)
            }
            Tree::Number(value) => {
                self.skip_scalar(context);
                Data::Number(value)
            }
        };
        if self.lost {
            return Node {
                start: near.max(start.min(self.text.len())),
                end: near.max(start.min(self.text.len())),
                data,
            };
        }
        Node {
            start,
            end: self.at.max(start),
            data,
        }
    }

    fn map(&mut self, pairs: Vec<(Tree, Tree)>, context: Context) -> Data {
        let braces = self.peek(0) == Some(b'{');
        let inner = if braces {
            self.at += 1;
            Context {
                flow: true,
                ..context
            }
        } else {
            Context {
                indent: self.column(),
                ..context
            }
        };
        let mut entries = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            self.skip_separators(braces);
            if self.peek(0) == Some(b'?') && self.peek(1).is_none_or(is_space) {
                self.at += 1;
            }
            let key_near = self.at;
            let key = self.node(key, Context { key: true, ..inner }, key_near);
            self.skip_trivia();
            if self.peek(0) == Some(b':') {
                self.at += 1;
            } else if !matches!(value, Tree::Null) {
                self.lost = true;
            }
            let value = self.node(
                value,
                Context {
                    key: false,
                    ..inner
                },
                key.start,
            );
            entries.push(Entry {
                key: self.key_text(&key),
                start: key.start,
                value,
            });
        }
        if braces {
            self.skip_separators(true);
            self.expect(b'}');
        }
        Data::Map(entries)
    }

    fn list(&mut self, items: Vec<Tree>, context: Context) -> Data {
        let brackets = self.peek(0) == Some(b'[');
        let column = self.column();
        if brackets {
            self.at += 1;
        }
        let inner = Context {
            indent: if brackets { context.indent } else { column },
            flow: context.flow || brackets,
            key: false,
        };
        let mut nodes = Vec::with_capacity(items.len());
        for item in items {
            self.skip_separators(brackets);
            let near = self.at;
            if !brackets {
                self.expect(b'-');
            }
            nodes.push(self.node(item, inner, near));
        }
        if brackets {
            self.skip_separators(true);
            self.expect(b']');
        }
        Data::List(nodes)
    }

    fn key_text(&self, key: &Node) -> String {
        match &key.data {
            Data::Text(text) => text.clone(),
            _ => self
                .text
                .get(key.start..key.end)
                .map(|raw| String::from_utf8_lossy(raw).into_owned())
                .unwrap_or_default(),
        }
    }

    fn text_value(&mut self, value: &str, context: Context) {
        match self.peek(0) {
            Some(b'"') => self.skip_quoted(b'"'),
            Some(b'\'') => self.skip_quoted(b'\''),
            Some(b'|' | b'>') if !context.flow => self.skip_block_text(value, context.indent),
            _ => self.skip_plain(value),
        }
    }

    /// A plain text may be folded over lines; its visible characters are the same in both.
    fn skip_plain(&mut self, value: &str) {
        let mut at = self.at;
        for byte in value.bytes().filter(|byte| !is_space(*byte)) {
            while self.text.get(at).copied().is_some_and(is_space) {
                at += 1;
            }
            if self.text.get(at) != Some(&byte) {
                self.lost = true;
                return;
            }
            at += 1;
        }
        self.at = at;
    }

    fn skip_quoted(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            if byte == b'\\' && quote == b'"' {
                self.at += 1;
            } else if byte == quote {
                if quote == b'\'' && self.peek(0) == Some(b'\'') {
                    self.at += 1;
                    continue;
                }
                return;
            }
        }
        self.lost = true;
    }

    fn skip_block_text(&mut self, value: &str, parent: isize) {
        let header_end = self.line_end(self.at);
        let explicit = self.text[self.at..header_end]
            .iter()
            .take_while(|byte| **byte != b'#')
            .find(|byte| byte.is_ascii_digit())
            .map(|digit| parent.max(0) + isize::from(digit - b'0'));
        let blank = value.trim_matches(['\n', ' ', '\t', '\r']).is_empty();
        let mut content = explicit;
        let mut end = header_end;
        let mut line = header_end + 1;
        while line <= self.text.len() {
            let line_end = self.line_end(line);
            let bytes = &self.text[line..line_end];
            let spaces = bytes.iter().take_while(|byte| **byte == b' ').count();
            let empty = bytes.iter().all(|byte| is_space(*byte));
            if !empty {
                let indent = isize::try_from(spaces).unwrap_or(isize::MAX);
                if blank || indent < *content.get_or_insert(indent) {
                    break;
                }
                end = line_end;
            }
            line = line_end + 1;
        }
        self.at = end.min(self.text.len());
    }

    /// A number or truth value, quoted where a tag made it one.
    fn skip_scalar(&mut self, context: Context) {
        match self.peek(0) {
            Some(b'"') => self.skip_quoted(b'"'),
            Some(b'\'') => self.skip_quoted(b'\''),
            _ => self.skip_word(context.flow),
        }
    }

    /// Goes past a word: to a blank, to `: `, and within brackets to their signs.
    fn skip_word(&mut self, flow: bool) {
        let start = self.at;
        while let Some(byte) = self.peek(0) {
            let ends = is_space(byte)
                || (flow && matches!(byte, b',' | b']' | b'}' | b'[' | b'{'))
                || (byte == b':' && self.peek(1).is_none_or(|next| is_space(next) || flow));
            if ends {
                break;
            }
            self.at += 1;
        }
        if self.at == start {
            self.lost = true;
        }
    }

    /// Length of a word that means null at this place.
    fn null_word(&self, context: Context) -> Option<usize> {
        let rest = &self.text[self.at.min(self.text.len())..];
        let word = ["~", "null", "Null", "NULL"]
            .into_iter()
            .find(|word| rest.starts_with(word.as_bytes()))?;
        let mut after = rest[word.len()..].iter().copied();
        let next = after.next();
        let ends = match next {
            None => true,
            Some(b':') => context.key,
            Some(b',' | b']' | b'}') => context.flow,
            Some(byte) => is_space(byte),
        };
        let colon = rest[word.len()..]
            .iter()
            .copied()
            .find(|byte| !matches!(byte, b' ' | b'\t'))
            == Some(b':');
        (ends && (context.key || context.flow || !colon)).then_some(word.len())
    }

    /// Whether a null is written out here, or is what stands between two other things.
    fn null_stands_here(&mut self, context: Context) -> bool {
        let before = self.at;
        self.skip_trivia();
        let same_line = !self.text[before..self.at].contains(&b'\n');
        let here = match self.peek(0) {
            Some(b'&' | b'!' | b'*') => same_line,
            _ => self.null_word(context).is_some(),
        };
        self.at = before;
        here
    }

    fn skip_properties(&mut self, context: Context) {
        while let Some(byte @ (b'&' | b'!')) = self.peek(0) {
            if byte == b'!' {
                self.tags.push(self.at);
            }
            let start = self.at;
            while self
                .peek(0)
                .is_some_and(|b| !(is_space(b) || context.flow && b",[]{}".contains(&b)))
            {
                self.at += 1;
            }
            if self.at == start {
                self.lost = true;
                return;
            }
            // A property of nothing must not swallow what follows on the next line.
            while self.peek(0).is_some_and(|b| b == b' ' || b == b'\t') {
                self.at += 1;
            }
            if self.peek(0).is_none_or(|b| b"\r\n#".contains(&b)) {
                self.skip_trivia();
            }
        }
    }

    fn skip_separators(&mut self, flow: bool) {
        self.skip_trivia();
        while flow && self.peek(0) == Some(b',') {
            self.at += 1;
            self.skip_trivia();
        }
    }

    /// Skips blanks, comments, document marks and directives.
    fn skip_trivia(&mut self) {
        while let Some(byte) = self.peek(0) {
            let line_start = self.at == 0 || self.text[self.at - 1] == b'\n';
            if is_space(byte) {
                self.at += 1;
            } else if byte == b'#' || (byte == b'%' && line_start) {
                self.at = self.line_end(self.at);
            } else if (line_start
                && self.text[self.at..].starts_with(b"---")
                && self.peek(3).is_none_or(is_space))
                || self.text[self.at..].starts_with("\u{feff}".as_bytes())
            {
                // Both are three bytes long.
                self.at += 3;
            } else {
                return;
            }
        }
    }

    fn expect(&mut self, byte: u8) {
        if self.peek(0) == Some(byte) {
            self.at += 1;
        } else {
            self.lost = true;
        }
    }

    fn line_end(&self, from: usize) -> usize {
        self.text
            .get(from..)
            .and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
            .map_or(self.text.len(), |length| from + length)
    }

    fn column(&self) -> isize {
        let start = self.text[..self.at.min(self.text.len())]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |newline| newline + 1);
        isize::try_from(self.at.saturating_sub(start)).unwrap_or(isize::MAX)
    }
}

/// Gives a value and everything in it the place `near`, without a text of their own.
fn lay(tree: Tree, near: usize) -> Node {
    let data = match tree {
        Tree::Null => Data::Null,
        Tree::Bool(value) => Data::Bool(value),
        Tree::Number(value) => Data::Number(value),
        Tree::Text(text) => Data::Text(text),
        Tree::List(items) => Data::List(items.into_iter().map(|item| lay(item, near)).collect()),
        Tree::Map(pairs) => Data::Map(
            pairs
                .into_iter()
                .map(|(key, value)| Entry {
                    key: match key {
                        Tree::Text(text) => text,
                        Tree::Bool(value) => value.to_string(),
                        Tree::Number(number) => show_number(number),
                        Tree::Null | Tree::List(_) | Tree::Map(_) => String::new(),
                    },
                    start: near,
                    value: lay(value, near),
                })
                .collect(),
        ),
    };
    Node {
        start: near,
        end: near,
        data,
    }
}

/// A number in decimal text.
pub(crate) fn show_number(number: super::tree::Number) -> String {
    match number {
        super::tree::Number::Signed(value) => value.to_string(),
        super::tree::Number::Unsigned(value) => value.to_string(),
        super::tree::Number::Float(value) => value.to_string(),
    }
}

/// Offset of each visible character of a text as it is written, escapes undone.
///
/// Blanks are left out because folding changes them: the n-th visible character of the value is the
/// n-th visible character of the text.
pub(crate) fn visible_offsets(raw: &str) -> Vec<usize> {
    let bytes = raw.as_bytes();
    let quote = bytes.first().copied().unwrap_or(b' ');
    let mut at = match quote {
        b'"' | b'\'' => 1,
        b'|' | b'>' => raw.find('\n').unwrap_or(raw.len()),
        _ => 0,
    };
    let mut offsets = Vec::new();
    while let Some(character) = raw.get(at..).and_then(|rest| rest.chars().next()) {
        let next = bytes.get(at + 1).copied();
        let (visible, length) = match (quote, character) {
            (b'\'', '\'') if next == Some(b'\'') => (true, 2),
            (b'"', '"') | (b'\'', '\'') => break,
            (b'"', '\\') => match next {
                Some(b'x') => (true, 4),
                Some(b'u') => (true, 6),
                Some(b'U') => (true, 10),
                Some(b'n' | b't' | b'r' | b' ' | b'\t' | b'\n' | b'\r') | None => (false, 2),
                Some(_) => (true, 2),
            },
            (_, other) => (!other.is_ascii_whitespace(), other.len_utf8()),
        };
        if visible {
            offsets.push(at);
        }
        at += length;
    }
    offsets
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}
