//! Mistakes of YAML that the parser notices below the line that has them, found in that line.

use super::{closing_quote, value_at};
use crate::keys;

/// A mistake with its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    /// Offset in the YAML text.
    pub(crate) at: usize,
    /// What is wrong. It never has a value, which may be a secret.
    pub(crate) message: String,
    /// What to do.
    pub(crate) hint: String,
}

/// Returns the mistake that made the parser stop at `stopped` with this message, if it is one that can be located.
pub(crate) fn locate(yaml: &str, stopped: usize, message: &str) -> Option<Mistake> {
    if message.contains("expected ',' or") {
        unclosed_flow(yaml).filter(|mistake| mistake.at < stopped)
    } else if message.contains("expected ':'") {
        not_a_key(yaml, stopped)
    } else if message.contains("unknown anchor") {
        unknown_anchor(yaml, stopped)
    } else if message.contains("alphabetic or numeric") {
        not_a_name(yaml, stopped)
    } else {
        misplaced_key(yaml, stopped, message)
    }
}

/// An alias such as `*defaults` whose anchor is not defined. Only that of a merge key is named: others may be secrets.
fn unknown_anchor(yaml: &str, stopped: usize) -> Option<Mistake> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let (above, alias) = (yaml.get(..stopped)?, yaml.get(stopped..)?);
    let name = alias.trim_start_matches('*').split(|c| !is_name(c)).next();
    let name = name.unwrap_or_default();
    let (message, hint) = if above.trim_end().ends_with("<<:") {
        let message = format!("no anchor `{name}` is defined above");
        let hint = format!(
            "define it at the top of the file, such as `x-{name}: &{name} {{timeout: 5m}}`, or write its keys here instead of `<<`"
        );
        (message, hint)
    } else {
        (
            "the value begins with `*`, which refers to an anchor, and no such anchor is defined above".to_owned(),
            "put the value in double quotes if it is text".to_owned(),
        )
    };
    Some(Mistake {
        at: stopped,
        message,
        hint,
    })
}

/// A value such as `*/5`, which the parser reads as an alias. It stops behind the `*`.
fn not_a_name(yaml: &str, stopped: usize) -> Option<Mistake> {
    let at = stopped.checked_sub(1)?;
    let sign = yaml
        .get(at..stopped)
        .filter(|sign| matches!(*sign, "*" | "&"))?;
    let line = yaml.get(..at)?.lines().last().unwrap_or_default();
    let key = Line {
        start: 0,
        text: line,
    }
    .content()
    .1
    .split(':')
    .next();
    let key = key.filter(|key| keys::is_any(key));
    let whose = key.map_or_else(String::new, |key| format!(" of `{key}`"));
    Some(Mistake {
        at,
        message: format!(
            "a value without quotes begins with `{sign}`, which YAML reads as an alias or an anchor"
        ),
        hint: format!("put the value{whose} in double quotes"),
    })
}

/// A key that the parser does not expect: a space is missing before it or in the line above, or it is indented too far.
fn misplaced_key(yaml: &str, stopped: usize, message: &str) -> Option<Mistake> {
    let lines = lines(yaml);
    let at = lines.iter().rposition(|line| line.start <= stopped)?;
    let (line, above) = (lines[at], at.checked_sub(1).map(|above| lines[above]));
    if let Some(mistake) = [Some(line), above].into_iter().flatten().find_map(dash) {
        return Some(mistake);
    }
    if message.contains("expected key") && after_quote(line) {
        return Some(Mistake {
            at: stopped,
            message: "text follows the closing quote of this value".to_owned(),
            hint: "end the value at its closing quote, and write `\\\"` for a quote within double quotes".to_owned(),
        });
    }
    if message.contains("expected '-'") {
        return shallow_key(line, &lines[..at]);
    }
    let is_about_keys = ["mapping values", "expected key"]
        .iter()
        .any(|words| message.contains(words));
    if message.contains("mapping values")
        && let Some(mistake) = colon_in_command(yaml, stopped, line)
    {
        return Some(mistake);
    }
    let above = above.filter(|_| is_about_keys)?;
    let (key_at, content) = above.content();
    let key = content.split(':').next().filter(|key| keys::is_any(key))?;
    if !content[key.len()..].starts_with(": ") {
        return mistake_in(above, None);
    }
    let is_deeper = line.indentation() > key_at - above.start;
    is_deeper.then(|| Mistake {
        at: line.start + line.indentation(),
        message: "this line is indented too far".to_owned(),
        hint: format!("begin it in the column of `{key}` in the line above"),
    })
}

/// A key of a list item that is indented less than the first key of the item.
fn shallow_key(line: Line<'_>, above: &[Line<'_>]) -> Option<Mistake> {
    let is_item = |above: &&Line<'_>| {
        above.text.trim_start().starts_with("- ") && above.indentation() <= line.indentation()
    };
    let item = above.iter().rfind(is_item)?;
    let (first_at, first) = item.content();
    let first = first.split(':').next().filter(|key| keys::is_any(key))?;
    let key = line.text.trim_start().split(':').next()?;
    let is_shallow = line.indentation() < first_at - item.start;
    (keys::is_any(key) && is_shallow).then(|| Mistake {
        at: line.start + line.indentation(),
        message: "this line is not indented far enough".to_owned(),
        hint: format!("begin it in the column of `{first}` in the list item above"),
    })
}

/// A colon in a command without quotes, which usually has quotes of its own.
fn colon_in_command(yaml: &str, stopped: usize, line: Line<'_>) -> Option<Mistake> {
    let key = line.content().1.split(':').next()?;
    let is_command = matches!(key, "run" | "command" | "wake");
    let colon = yaml.get(stopped..)?.starts_with(':') && stopped > line.start + line.indentation();
    let is_value = line.content().1[key.len()..].matches(": ").count() > 1;
    (is_command && colon && is_value).then(|| Mistake {
        at: stopped,
        message: "a value without quotes contains a colon followed by a space".to_owned(),
        hint: format!("write `{key}: |`, and the command in the next line, indented further"),
    })
}

/// A list item without a space after its dash, such as `-id: a`.
fn dash(line: Line<'_>) -> Option<Mistake> {
    let key = line.text.trim_start().strip_prefix('-')?;
    let key = key.split_once(':')?.0;
    keys::is_any(key).then(|| Mistake {
        at: line.start + line.indentation(),
        message: "a space is missing after `-`".to_owned(),
        hint: format!("write `- {key}: …`"),
    })
}

/// Returns true if text follows the closing quote of a value in a line.
fn after_quote(line: Line<'_>) -> bool {
    let value = value_at(line.text).map_or("", |at| &line.text[at..]);
    if !value.starts_with(['"', '\'']) {
        return false;
    }
    let rest = closing_quote(value).map_or("", |end| value[end..].trim());
    !rest.is_empty() && !rest.starts_with('#')
}

/// A line of the text: its offset and its text without trailing space.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    start: usize,
    text: &'a str,
}

impl<'a> Line<'a> {
    fn indentation(self) -> usize {
        self.text.len() - self.text.trim_start().len()
    }

    /// The text behind the dashes of lists, with its offset.
    fn content(self) -> (usize, &'a str) {
        let mut content = self.text.trim_start();
        while let Some(rest) = content.strip_prefix("- ") {
            content = rest.trim_start();
        }
        (self.start + self.text.len() - content.len(), content)
    }
}

/// Lines that are neither blank nor comments.
fn lines(yaml: &str) -> Vec<Line<'_>> {
    let mut start = 0;
    let mut found = Vec::new();
    for line in yaml.split_inclusive('\n') {
        let text = line.trim_end();
        if !text.is_empty() && !text.trim_start().starts_with('#') {
            found.push(Line { start, text });
        }
        start += line.len();
    }
    found
}

/// The line before the one where the parser stopped, or that one, if it is no `key: value`.
fn not_a_key(yaml: &str, stopped: usize) -> Option<Mistake> {
    let lines = lines(yaml);
    let at = lines
        .iter()
        .rposition(|line| line.start <= stopped)
        .unwrap_or_default();
    let candidates = at.checked_sub(1).into_iter().chain([at]);
    let mut candidates = candidates.filter_map(|at| {
        let before = at.checked_sub(1).and_then(|before| lines.get(before));
        mistake_in(*lines.get(at)?, before.copied())
    });
    candidates.next()
}

fn mistake_in(line: Line<'_>, before: Option<Line<'_>>) -> Option<Mistake> {
    let (at, content) = line.content();
    if let Some(key) = before.and_then(|before| block_above(before, line)) {
        return Some(Mistake {
            at,
            message: format!("the text below `{key}` is not indented"),
            hint: format!("indent the text below `{key}`"),
        });
    }
    if content.contains(": ") || content.ends_with(':') {
        return None;
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let word = content.split(|c| !is_word(c)).next()?;
    let rest = &content[word.len()..];
    // A word that is no key may be a secret.
    let key = keys::is_any(word).then_some(word);
    let form = key.map_or("`key: value`".to_owned(), |key| format!("`{key}: …`"));
    let (message, hint) = if rest.len() > 1 && rest.starts_with(':') {
        let message = key.map_or_else(
            || "a space is missing after the colon of this line".to_owned(),
            |key| format!("a space is missing after the colon of `{key}:`"),
        );
        (
            message,
            format!("write {form}, with a space after the colon"),
        )
    } else if rest.starts_with(' ') {
        let message = key.map_or_else(
            || "this line lacks a colon after its key".to_owned(),
            |key| format!("a colon is missing after `{key}`"),
        );
        let hint = format!("write {form}, or indent the line if it belongs to the value above");
        (message, hint)
    } else {
        return None;
    };
    Some(Mistake { at, message, hint })
}

/// The key above, such as `run: |`, whose block of text a line was meant to be in, though it is not indented below it.
fn block_above(before: Line<'_>, line: Line<'_>) -> Option<String> {
    let (at, content) = before.content();
    let (key, mark) = content.split_once(": ")?;
    let mark = mark.trim();
    let is_mark = mark.starts_with(['|', '>']) && mark.len() <= 3;
    let column = at - before.start;
    (is_mark && line.indentation() <= column && keys::is_any(key)).then(|| format!("{key}: {mark}"))
}

/// A line that ends a block of text such as `run: |`, though it is neither a key nor an item.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EndOfBlock {
    /// Offset of the line in the YAML text.
    pub(crate) at: usize,
    /// Key and mark of the block.
    pub(crate) block: String,
    /// Offset of the key.
    pub(crate) block_at: usize,
    /// Spaces that each line of the block begins with.
    pub(crate) indentation: usize,
}

/// Returns the first line up to `stopped` that ends a block of text, such as a line of a here-document in column 1.
pub(crate) fn end_of_block(yaml: &str, stopped: usize) -> Option<EndOfBlock> {
    let mut above: Option<Line<'_>> = None;
    let mut indentation = None;
    for line in lines(yaml) {
        if line.start > stopped {
            return None;
        }
        let (at, content) = above.map_or((0, ""), Line::content);
        let column = above.map_or(0, |above| at - above.start);
        let block = content.split_once(": ").filter(|(key, mark)| {
            mark.starts_with(['|', '>']) && mark.len() <= 3 && keys::is_any(key)
        });
        if block.is_some() && line.indentation() > column {
            indentation.get_or_insert(line.indentation());
            continue;
        }
        if let (Some((key, mark)), Some(indentation)) = (block, indentation)
            && !is_entry(line.text.trim_start())
        {
            return Some(EndOfBlock {
                at: line.start,
                block: format!("{key}: {mark}"),
                block_at: at,
                indentation,
            });
        }
        (above, indentation) = (Some(line), None);
    }
    None
}

/// Returns true if a line is a key with its value, an item of a list, or a mark of YAML.
fn is_entry(text: &str) -> bool {
    let is_item = text == "-" || text.starts_with("- ");
    let is_mark = text.starts_with("---") || text == "...";
    is_item || is_mark || text.contains(": ") || text.ends_with(':')
}

/// A value in `{}` or `[]` that is never closed, where it is opened.
fn unclosed_flow(yaml: &str) -> Option<Mistake> {
    let mut closed_until = 0;
    for line in lines(yaml) {
        if line.start < closed_until {
            continue;
        }
        let (content_at, content) = line.content();
        let opened = match value_at(line.text) {
            _ if content.starts_with(['{', '[']) => content_at,
            Some(at) => line.start + at,
            None => continue,
        };
        let Some(open) = yaml[opened..].chars().next().filter(|c| "{[".contains(*c)) else {
            continue;
        };
        if let Some(length) = flow_length(&yaml[opened..]) {
            closed_until = opened + length;
            continue;
        }
        let close = if open == '{' { '}' } else { ']' };
        let hint =
            format!("close it with `{close}`, or put the value in double quotes if it is text");
        return Some(Mistake {
            at: opened,
            message: format!("`{open}` is opened here and never closed"),
            hint,
        });
    }
    None
}

/// Length of a value in braces or brackets; `None` if it is not closed.
fn flow_length(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let before = text[..at].chars().next_back();
        match character {
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' if open.pop() != Some(character) => return None,
            '"' | '\'' if before.is_some_and(|c| " {[,:\n".contains(c)) => {
                at += closing_quote(&text[at..])?;
                continue;
            }
            '#' if before.is_some_and(char::is_whitespace) => {
                at += text[at..].find('\n')?;
                continue;
            }
            _ => {}
        }
        at += character.len_utf8();
        if open.is_empty() {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::locate;

    const FLOW: &str = "did not find expected ',' or '}'";
    const COLON: &str = "could not find expected ':'";

    /// The mistake in a text in which `^` marks its place and the parser stops at `!`.
    #[track_caller]
    fn found(text: &str, message: &str) -> String {
        let at = text.find('^');
        let text = text.replace('^', "");
        let stopped = text.find('!').unwrap_or(text.len());
        let yaml = text.replace('!', "");
        let mistake = locate(&yaml, stopped, message);
        assert_eq!(
            mistake.as_ref().map(|mistake| mistake.at),
            at,
            "{mistake:?}"
        );
        mistake.map_or_else(String::new, |mistake| {
            format!("{}: {}", mistake.message, mistake.hint)
        })
    }

    #[test]
    fn a_value_that_is_never_closed_is_found_where_it_is_opened() {
        let said = found("a:\n  - ^{b: \"}\", c: d\nouts!:\n  - {e: f}\n", FLOW);
        assert!(said.contains("close it with `}`"), "{said}");
        let said = found("a: [1,\n  2]\nb: ^[1, # ]\nc!: 3\n", FLOW);
        assert!(said.contains("close it with `]`"), "{said}");
        assert_eq!(found("a: {b: 1 c!: 2}\n", FLOW), "");
    }

    #[test]
    fn a_line_without_colon_or_space_is_found_itself() {
        let said = found("a: 1\n^timeout 1m\nb!: 2\n", COLON);
        assert!(said.contains("missing after `timeout`"), "{said}");
        let said = found("- a: 1\n  ^mutating:true\n  # c\n\n  b!: 2\n", COLON);
        assert!(
            said.contains("a space is missing after the colon of `mutating:`"),
            "{said}"
        );
        let said = found("a: 1\n^sk-secret 1m\nb!: 2\n", COLON);
        assert!(!said.contains("sk-secret"), "{said}");
    }

    #[test]
    fn text_of_a_block_that_is_not_indented_is_found_in_its_first_line() {
        let said = found("- id: a\n  run: |\n  ^printf x\n  !git y\n", COLON);
        assert!(said.contains("indent the text below `run: |`"), "{said}");
    }
}
