//! Reads the YAML of one file into values with places, or says why it cannot be read.

use std::ops::Range;

use super::align::align;
use super::repair::{quote_listed, quote_prose};
use super::report::Report;
use super::source::Source;
use super::syntax;
use super::tree::{self, Data, Entry, Node, TOO_MANY_VALUES, Tree};
use crate::model::Place;

/// Brackets that may be open at once before the parser is not even asked: its time grows with the square.
const BRACKETS_MAX: usize = 500;

/// How many lines of one file may be quoted for their author.
const REPAIRS_MAX: usize = 16;

/// Values that merge keys may copy within one file.
const MERGED_MAX: usize = 10_000;

/// A file whose YAML was read; the source is the repaired text where something was quoted.
#[derive(Debug)]
pub(crate) struct Document {
    /// The text that the places count in.
    pub(crate) source: Source,
    /// The value of the whole document.
    pub(crate) root: Node,
}

/// Reads `source.text()[range]`. Every problem is reported; `None` when an error was among them.
pub(crate) fn read(source: Source, range: Range<usize>, report: &mut Report) -> Option<Document> {
    if let Some(at) = too_deep(source.text(), range.clone()) {
        let message = format!("more than {BRACKETS_MAX} brackets are open at once");
        report.error(
            "yaml-nesting",
            source.place(at),
            message,
            "nest less deeply",
        );
        return None;
    }
    let mut source = source;
    let mut end = range.end;
    let mut repairs = Vec::new();
    let tree = loop {
        let yaml = source.text().get(range.start..end).unwrap_or_default();
        match tree::parse(yaml) {
            Ok(tree) => {
                let lines = source.line_index(range.start)..=source.line_index(end);
                let repaired = quote_listed(&source, lines, &tree)
                    .filter(|(_, line)| repairs.len() < REPAIRS_MAX && !repairs.contains(line));
                let Some((text, line)) = repaired else {
                    break tree;
                };
                end += text.len() - source.text().len();
                source = Source::new(source.path(), text);
                repairs.push(line);
            }
            Err(error) => {
                let line = error
                    .location()
                    .map(|at| source.line_index(range.start) + at.line().saturating_sub(1));
                let repaired = line
                    .filter(|_| repairs.len() < REPAIRS_MAX)
                    .and_then(|line| quote_prose(&source, line, &repairs));
                let Some((text, line)) = repaired else {
                    report_syntax(&source, range.start..end, &error, report);
                    return None;
                };
                end += text.len() - source.text().len();
                source = Source::new(source.path(), text);
                repairs.push(line);
            }
        }
    };
    for line in repairs {
        let range = source.line_range(line);
        let blank = source.line(line).len() - source.line(line).trim_start().len();
        report.warning(
            "prose-quoted",
            source.place(range.start + blank),
            "the value is not valid YAML without quotes and was read as if it had them".to_owned(),
            &format!("write `{}`", source.line(line).trim()),
        );
    }
    place_values(source, range.start, end, tree, report)
}

fn place_values(
    source: Source,
    start: usize,
    end: usize,
    tree: Tree,
    report: &mut Report,
) -> Option<Document> {
    let before = report.errors();
    let (mut root, tags) = align(source.text(), start, end, tree);
    for tag in tags {
        report.error(
            "yaml-tag",
            source.place(tag),
            "tags such as `!name` have no meaning here".to_owned(),
            "remove the tag, or quote the value when the `!` belongs to it",
        );
    }
    report_duplicates(&source, &root, false, report);
    if report.errors() > before {
        return None;
    }
    let mut budget = MERGED_MAX;
    if let Err(at) = merge_keys(&mut root, &mut budget) {
        report.error(
            "merge-key",
            source.place(at),
            "`<<` does not name a map or a list of maps".to_owned(),
            "write `<<: *anchor` with the anchor on a map",
        );
        return None;
    }
    Some(Document { source, root })
}

fn too_deep(text: &str, range: Range<usize>) -> Option<usize> {
    let mut open: usize = 0;
    for (at, byte) in text.bytes().enumerate().take(range.end).skip(range.start) {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        if open > BRACKETS_MAX {
            return Some(at);
        }
    }
    None
}

fn report_duplicates(source: &Source, node: &Node, is_item: bool, report: &mut Report) {
    match &node.data {
        Data::Map(entries) => {
            let mut seen = std::collections::HashMap::with_capacity(entries.len());
            for entry in entries {
                if let Some(first) = seen.insert(entry.key.as_str(), entry.start) {
                    let line = source.place(first).line;
                    // All keys of the second item stand twice.
                    let begins_item = is_item && entry.key == "id";
                    let hint = if begins_item {
                        "write `- ` before this `id` if another item of the list begins here, or keep one of them"
                    } else {
                        "keep one of them"
                    };
                    report.error(
                        "duplicate-key",
                        source.place(entry.start),
                        format!("`{}` appears twice, first in line {line}", entry.key),
                        hint,
                    );
                    if begins_item {
                        return;
                    }
                }
                report_duplicates(source, &entry.value, false, report);
            }
        }
        Data::List(items) => {
            for item in items {
                report_duplicates(source, item, true, report);
            }
        }
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::Text(_) => {}
    }
}

/// Gives maps with a `<<` key the entries of the maps that it names; own entries win.
fn merge_keys(node: &mut Node, budget: &mut usize) -> Result<(), usize> {
    match &mut node.data {
        Data::List(items) => {
            for item in items {
                merge_keys(item, budget)?;
            }
        }
        Data::Map(entries) => {
            for entry in entries.iter_mut() {
                merge_keys(&mut entry.value, budget)?;
            }
            let Some(at) = entries.iter().position(|entry| entry.key == "<<") else {
                return Ok(());
            };
            let merge = entries.remove(at);
            let start = merge.start;
            let sources = match merge.value.data {
                Data::List(items) => items,
                _ => vec![merge.value],
            };
            for source in sources {
                let Data::Map(inherited) = source.data else {
                    return Err(start);
                };
                add_inherited(entries, inherited, budget).map_err(|()| start)?;
            }
        }
        Data::Null | Data::Bool(_) | Data::Number(_) | Data::Text(_) => {}
    }
    Ok(())
}

fn add_inherited(
    entries: &mut Vec<Entry>,
    inherited: Vec<Entry>,
    budget: &mut usize,
) -> Result<(), ()> {
    for entry in inherited {
        *budget = budget.checked_sub(1).ok_or(())?;
        if entries.iter().all(|own| own.key != entry.key) {
            entries.push(entry);
        }
    }
    Ok(())
}

fn report_syntax(
    source: &Source,
    range: Range<usize>,
    error: &serde_yaml::Error,
    report: &mut Report,
) {
    let text = error.to_string();
    let message = [" at line ", " at position "]
        .iter()
        .fold(text.as_str(), |text, mark| {
            text.split(mark).next().unwrap_or(text)
        })
        .to_owned();
    let offset = if message.contains("control characters") {
        control_character(source, range.clone())
    } else {
        error.location().map(|at| {
            let line = source.line_index(range.start) + at.line().saturating_sub(1);
            source.offset_of(line, at.column().saturating_sub(1))
        })
    };
    let place = offset.map_or_else(|| source.place(range.start), |at| source.place(at));
    if message.contains(TOO_MANY_VALUES) || message.contains("repetition limit") {
        let place = offset
            .or_else(|| first_alias(source, range.clone()))
            .map_or(place, |at| source.place(at));
        let message = "aliases expand to too many values".to_owned();
        report.error("yaml-aliases", place, message, "write the values out");
    } else if message.contains("recursion limit") && refers_to_itself(source, range.clone()) {
        let message = "an alias names a value that it is in".to_owned();
        report.error("yaml-aliases", place, message, "write the values out");
    } else if message.contains("recursion limit") {
        report.error("yaml-nesting", place, message, "nest less deeply");
    } else if message.contains("more than one document") && has_mark(source, range.clone()) {
        let message = "a second document follows".to_owned();
        let hint = "keep one definition in a file";
        report.error("multiple-documents", place, message, hint);
    } else {
        let yaml = source.text().get(range.clone()).unwrap_or_default();
        let stopped = offset.unwrap_or(range.end).saturating_sub(range.start);
        if let Some(end) = syntax::lines::end_of_block(yaml, stopped) {
            report_end_of_block(source, range.start, &end, report);
            return;
        }
        let line = offset.map_or(0, |at| source.line_index(at));
        if let Some(at) = unquoted_placeholder(source, line) {
            report.error(
                "quote-placeholder",
                source.place(at),
                "YAML reads a value that begins with `{` as a map".to_owned(),
                "quote the placeholder: put the whole value into double quotes",
            );
            return;
        }
        if let Some(at) = syntax::unclosed_quote(yaml) {
            let place = source.place(range.start + at);
            let (plain, hint) = syntax::UNCLOSED_QUOTE;
            report.error("yaml-syntax", place, plain.to_owned(), hint);
            return;
        }
        if let Some(mistake) = syntax::lines::locate(yaml, stopped, &message) {
            let place = source.place(range.start + mistake.at);
            report.error("yaml-syntax", place, mistake.message, &mistake.hint);
            return;
        }
        let (plain, hint) = syntax::explain(source, offset, &message);
        report.error(
            "yaml-syntax",
            place,
            format!("{plain} (parser: {message})"),
            &hint,
        );
    }
}

fn report_end_of_block(
    source: &Source,
    start: usize,
    end: &syntax::lines::EndOfBlock,
    report: &mut Report,
) {
    let line = source.place(start + end.block_at).line;
    let message = format!("this line ends the text of `{}` in line {line}", end.block);
    let hint = format!("indent it by at least {} spaces", end.indentation);
    report.error("yaml-syntax", source.place(start + end.at), message, &hint);
}

/// Whether a line begins another document: the parser says so too where the first key alone is indented.
fn has_mark(source: &Source, range: Range<usize>) -> bool {
    let text = source.text().get(range).unwrap_or_default();
    text.lines()
        .any(|line| line.starts_with("---") || line.starts_with("..."))
}

/// Offset of a value such as `{month}-report.md` in the line or the one before it.
fn unquoted_placeholder(source: &Source, line: usize) -> Option<usize> {
    [line, line.saturating_sub(1)].into_iter().find_map(|line| {
        let text = source.line(line);
        let is_flow = text.trim_start().trim_start_matches("- ").starts_with('{');
        // In a block, only the first `: ` ends a key.
        let found = text
            .find(": {")
            .filter(|at| is_flow || text.find(": ") == Some(*at));
        let value_at = found.map(|at| at + 2).or_else(|| {
            text.trim_start()
                .starts_with("- {")
                .then(|| text.find('{'))?
        })?;
        let close = text[value_at..].find('}')? + value_at;
        let name = &text[value_at + 1..close];
        let word = !name.is_empty()
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-. ".contains(&b));
        let more = !text[close + 1..].trim_start().is_empty();
        (word && more).then(|| source.line_range(line).start + value_at)
    })
}

/// The first character that YAML allows nowhere; the parser tells no place for it.
fn control_character(source: &Source, range: Range<usize>) -> Option<usize> {
    let text = source.text().get(range.clone())?;
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | '\u{85}') || !c.is_control();
    let at = text.find(|c| !allowed(c) || matches!(c, '\u{fffe}' | '\u{ffff}'))?;
    Some(range.start + at)
}

/// Whether the nesting comes from an alias: neither brackets nor indentation account for it.
fn refers_to_itself(source: &Source, range: Range<usize>) -> bool {
    let text = source.text().get(range.clone()).unwrap_or_default();
    let indented = text
        .lines()
        .map(|line| line.len() - line.trim_start().len());
    let brackets = text.bytes().filter(|byte| b"[{".contains(byte)).count();
    first_alias(source, range).is_some() && indented.max().unwrap_or(0) + brackets < 100
}

fn first_alias(source: &Source, range: Range<usize>) -> Option<usize> {
    let text = source.text().get(range.clone())?;
    text.find(" *").map(|at| range.start + at + 1)
}

/// Place of the first line of a source, for problems of the document as a whole.
pub(crate) fn start_of(source: &Source) -> Place {
    source.place(0)
}
