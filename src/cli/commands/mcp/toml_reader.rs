//! What a TOML file holds and where, so that one table of it can be set while every other byte stays.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::{Map, Value};

/// Values within each other that are read.
const DEPTH_MAX: usize = 100;

/// A header or a key with its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// The whole path of its key, that of its table included.
    pub(super) path: Vec<String>,
    pub(super) what: What,
    /// From its first to behind its last character, without blanks and comments around it.
    pub(super) range: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// `[a.b]`
    Table,
    /// `[[a.b]]`
    OneOfSeveral,
    /// `a.b = value`; times stand as texts.
    Value(Value),
}

/// Why a text is no TOML.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// From 1.
    pub(super) line: usize,
    pub(super) why: String,
}

/// What a text holds, in its order.
pub(super) fn items(text: &str) -> Result<Vec<Item>, Fault> {
    let mut reader = Reader { text, at: 0 };
    reader.items().map_err(|(at, why)| Fault {
        line: line_of(text, at),
        why,
    })
}

/// The line that a character stands in.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().iter().take(at);
    before.filter(|byte| **byte == b'\n').count() + 1
}

/// Where it stands, and what is wrong.
type Wrong = (usize, String);

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn sign(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn wrong<T>(&self, why: &str) -> Result<T, Wrong> {
        Err((self.at, why.to_owned()))
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
    }

    /// Passes over blanks, ends of lines and comments.
    fn gap(&mut self) {
        loop {
            self.blanks();
            if self.sign() == Some('#') {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            }
            if !self.take("\n") {
                return;
            }
        }
    }

    fn items(&mut self) -> Result<Vec<Item>, Wrong> {
        let mut found: Vec<Item> = Vec::new();
        let mut table: Vec<String> = Vec::new();
        let mut several: HashSet<Vec<String>> = HashSet::new();
        let mut once: HashSet<Vec<String>> = HashSet::new();
        self.take("\u{feff}");
        loop {
            self.gap();
            let start = self.at;
            let (path, what) = match self.sign() {
                None => return Ok(found),
                Some('[') => {
                    let one_of_several = self.rest().starts_with("[[");
                    table = self.header(one_of_several)?;
                    let what = if one_of_several {
                        What::OneOfSeveral
                    } else {
                        What::Table
                    };
                    (table.clone(), what)
                }
                Some(_) => {
                    let key = self.key()?;
                    if !self.take("=") {
                        return self.wrong("a key has no `=` behind it");
                    }
                    let path = [table.clone(), key].concat();
                    (path, What::Value(self.value(0)?))
                }
            };
            let range = start..self.at;
            self.blanks();
            if !matches!(self.sign(), None | Some('\n' | '#')) {
                return self.wrong("something stands behind the end of a value or header");
            }
            // What stands in one of several tables may stand in the next one too.
            if what == What::OneOfSeveral {
                if once.contains(&path) {
                    return Err((start, format!("`{}` is no list", path.join("."))));
                }
                several.insert(path.clone());
            } else {
                let repeats = (1..=path.len()).any(|end| several.contains(&path[..end]));
                if !repeats && !once.insert(path.clone()) {
                    return Err((start, format!("`{}` is there twice", path.join("."))));
                }
                if what == What::Table && several.contains(&path) {
                    return Err((start, format!("`{}` is a list", path.join("."))));
                }
            }
            found.push(Item { path, what, range });
        }
    }

    fn header(&mut self, one_of_several: bool) -> Result<Vec<String>, Wrong> {
        let (open, close) = if one_of_several {
            ("[[", "]]")
        } else {
            ("[", "]")
        };
        self.take(open);
        let path = self.key()?;
        if self.take(close) {
            Ok(path)
        } else {
            self.wrong(&format!("a header is not closed with `{close}`"))
        }
    }

    /// `a."b".c`, with the blanks around it.
    fn key(&mut self) -> Result<Vec<String>, Wrong> {
        let mut path = Vec::new();
        loop {
            self.blanks();
            let part = if let Some(quote @ ('"' | '\'')) = self.sign() {
                if self.rest().starts_with("\"\"\"") || self.rest().starts_with("'''") {
                    return self.wrong("a key is in one line");
                }
                self.quoted(quote)?
            } else {
                let plain = |sign: char| sign.is_ascii_alphanumeric() || "-_".contains(sign);
                let rest = self.rest();
                let end = rest.find(|sign| !plain(sign)).unwrap_or(rest.len());
                if end == 0 {
                    return self.wrong("no key stands where one belongs");
                }
                let part = rest[..end].to_owned();
                self.at += end;
                part
            };
            path.push(part);
            self.blanks();
            if !self.take(".") {
                return Ok(path);
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Wrong> {
        self.blanks();
        if depth > DEPTH_MAX {
            return self.wrong("too many values stand within each other");
        }
        match self.sign() {
            Some(quote @ ('"' | '\'')) => {
                let triple = quote.to_string().repeat(3);
                let text = if self.rest().starts_with(&triple) {
                    self.lines(quote, &triple)
                } else {
                    self.quoted(quote)
                };
                text.map(Value::from)
            }
            Some('[') => self.list(depth),
            Some('{') => self.map(depth),
            _ => self.plain(),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Value, Wrong> {
        let start = self.at;
        self.take("[");
        let mut all = Vec::new();
        loop {
            self.gap();
            if self.take("]") {
                return Ok(Value::from(all));
            }
            if self.sign().is_none() {
                return Err((start, "a list is not closed with `]`".to_owned()));
            }
            all.push(self.value(depth + 1)?);
            self.gap();
            if !self.take(",") && !self.rest().starts_with(']') {
                let why = "a list is not closed with `]`, or lacks a comma";
                return Err((start, why.to_owned()));
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Wrong> {
        let start = self.at;
        self.take("{");
        let mut all = Map::new();
        loop {
            self.gap();
            if self.take("}") {
                return Ok(Value::Object(all));
            }
            if self.sign().is_none() {
                return Err((start, "a table is not closed with `}`".to_owned()));
            }
            let at = self.at;
            let path = self.key()?;
            if !self.take("=") {
                return self.wrong("a key has no `=` behind it");
            }
            let value = self.value(depth + 1)?;
            if !set(&mut all, &path, value) {
                return Err((at, format!("`{}` is there twice", path.join("."))));
            }
            self.gap();
            if !self.take(",") && !self.rest().starts_with('}') {
                let why = "a table is not closed with `}`, or lacks a comma";
                return Err((start, why.to_owned()));
            }
        }
    }

    /// A number, a truth value or a time.
    fn plain(&mut self) -> Result<Value, Wrong> {
        let part = |sign: char| sign.is_ascii_alphanumeric() || "+-_.:".contains(sign);
        let end = |text: &str| text.find(|sign| !part(sign)).unwrap_or(text.len());
        let rest = self.rest();
        let mut length = end(rest);
        let date = |text: &str| text.len() == 10 && text.matches('-').count() == 2;
        // A date and a time may have a blank between them.
        if date(&rest[..length])
            && let Some(time) = rest[length..].strip_prefix(' ')
            && time.starts_with(|sign: char| sign.is_ascii_digit())
        {
            length += 1 + end(time);
        }
        let text = rest[..length].to_owned();
        let unsigned = text.trim_start_matches(['+', '-']);
        let value = match text.as_str() {
            "" => return self.wrong("a key has no value"),
            "true" => Value::from(true),
            "false" => Value::from(false),
            _ if unsigned.starts_with(|sign: char| sign.is_ascii_digit())
                || ["inf", "nan"].contains(&unsigned) =>
            {
                let number = text.replace('_', "").parse::<i64>();
                number.map_or_else(|_| Value::from(text.as_str()), Value::from)
            }
            _ => return self.wrong("a text stands in no quotes"),
        };
        self.at += length;
        Ok(value)
    }

    /// A text in one line.
    fn quoted(&mut self, quote: char) -> Result<String, Wrong> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.sign() {
                None | Some('\n') => {
                    return Err((start, format!("a text is not closed with `{quote}`")));
                }
                Some(sign) if sign == quote => {
                    self.at += 1;
                    return Ok(text);
                }
                Some('\\') if quote == '"' => text.push(self.escape()?),
                Some(sign) => {
                    text.push(sign);
                    self.at += sign.len_utf8();
                }
            }
        }
    }

    /// A text in several lines.
    fn lines(&mut self, quote: char, triple: &str) -> Result<String, Wrong> {
        let start = self.at;
        self.at += triple.len();
        self.take("\r");
        self.take("\n");
        let mut text = String::new();
        loop {
            if self.take(triple) {
                // Up to two more belong to the text.
                for _ in 0..2 {
                    if self.take(&quote.to_string()) {
                        text.push(quote);
                    }
                }
                return Ok(text);
            }
            match self.sign() {
                None => return Err((start, format!("a text is not closed with `{triple}`"))),
                Some('\\') if quote == '"' => {
                    let behind = self.rest()[1..].trim_start_matches([' ', '\t', '\r']);
                    if behind.starts_with('\n') {
                        self.at = self.text.len() - behind.trim_start().len();
                    } else {
                        text.push(self.escape()?);
                    }
                }
                Some(sign) => {
                    text.push(sign);
                    self.at += sign.len_utf8();
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Wrong> {
        let mut signs = self.rest()[1..].chars();
        let kind = signs.next().unwrap_or(' ');
        let digits = match kind {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => 0,
        };
        let simple = match kind {
            'b' => Some('\u{8}'),
            't' => Some('\t'),
            'n' => Some('\n'),
            'f' => Some('\u{c}'),
            'r' => Some('\r'),
            'e' => Some('\u{1b}'),
            '"' | '\\' => Some(kind),
            _ => None,
        };
        let coded = || {
            let code = self.rest().get(2..2 + digits).filter(|_| digits > 0)?;
            u32::from_str_radix(code, 16).ok().and_then(char::from_u32)
        };
        let Some(sign) = simple.or_else(coded) else {
            return self.wrong("`\\` is followed by what it does not escape");
        };
        self.at += 2 + digits;
        Ok(sign)
    }
}

/// Sets what a dotted key leads to; whether nothing was there.
pub(super) fn set(map: &mut Map<String, Value>, path: &[String], value: Value) -> bool {
    match path {
        [] => false,
        [key] => map.insert(key.clone(), value).is_none(),
        [key, rest @ ..] => {
            let inner = map
                .entry(key.clone())
                .or_insert_with(|| Value::Object(Map::new()));
            inner
                .as_object_mut()
                .is_some_and(|inner| set(inner, rest, value))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_all_kinds_are_read_with_their_places() {
        let text = "\u{feff}# c\r\na.'b c'.\"d\\u0041\" = [1, 'x', {y = 1_000, z.w = \"q\\n\"},\n # in it\n]\r\n[t] # x\nl = \"\"\"\n[no.header]\n\\\n  b\"\"\"\"\nm='''\\'''\nd = 1979-05-27 07:32:00Z\nf = -inf\ng=+1.5e3\n[[s]]\nk = true\n[[s]]\nk = false\n";
        let found = items(text).unwrap();
        let values: Vec<(String, Value)> = found
            .iter()
            .filter_map(|item| match &item.what {
                What::Value(value) => Some((item.path.join("/"), value.clone())),
                What::Table | What::OneOfSeveral => None,
            })
            .collect();
        let expected = [
            ("a/b c/dA", json!([1, "x", {"y": 1000, "z": {"w": "q\n"}}])),
            ("t/l", json!("[no.header]\nb\"")),
            ("t/m", json!("\\")),
            ("t/d", json!("1979-05-27 07:32:00Z")),
            ("t/f", json!("-inf")),
            ("t/g", json!("+1.5e3")),
            ("s/k", json!(true)),
            ("s/k", json!(false)),
        ]
        .map(|(path, value)| (path.to_owned(), value));
        assert_eq!(values, expected);
        let table = found.iter().find(|item| item.what == What::Table).unwrap();
        assert_eq!(&text[table.range.clone()], "[t]");
    }

    #[test]
    fn what_is_no_toml_is_told_with_its_line() {
        for (text, line, why) in [
            ("a = 1\nbad = [\n", 2, "list is not closed"),
            ("bad = [1 2]", 1, "lacks a comma"),
            ("a = {b = 1", 1, "not closed with `}`"),
            ("\na = \"x\nb = 1\n", 2, "not closed with `\"`"),
            ("a = '''\n\n", 1, "not closed with `'''`"),
            ("a = hello", 1, "in no quotes"),
            ("a =\n", 1, "no value"),
            ("a\n", 1, "no `=`"),
            ("[a\nb = 1", 1, "not closed with `]`"),
            ("[[a]\n", 1, "not closed with `]]`"),
            ("[]\n", 1, "no key"),
            ("= 1", 1, "no key"),
            ("a = 1 b = 2", 1, "behind the end"),
            ("a = \"\\q\"", 1, "does not escape"),
            ("a = \"\\u00é\"", 1, "does not escape"),
            ("[a]\n[b]\n[a]\n", 3, "`a` is there twice"),
            ("a = 1\na = 2\n", 2, "`a` is there twice"),
            ("a = {b = 1, b = 2}", 1, "`b` is there twice"),
            ("[[a]]\n[a]\n", 2, "`a` is a list"),
            ("[a]\n[[a]]\n", 2, "`a` is no list"),
            ("\"\"\"a\"\"\" = 1", 1, "in one line"),
        ] {
            let fault = items(text).unwrap_err();
            assert_eq!(fault.line, line, "{text:?}: {fault:?}");
            assert!(fault.why.contains(why), "{text:?}: {fault:?}");
        }
        let deep = format!("a = {}", "[".repeat(100_000));
        assert!(items(&deep).unwrap_err().why.contains("too many"));
    }
}
