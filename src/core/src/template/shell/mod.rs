//! Shell text with placeholders: each becomes a reference to an environment variable, quoted for
//! the place where it stands, so that no value is ever parsed by the shell that runs the text.

mod argument;
mod command;
mod compound;
mod expansion;
mod lint;
mod lists;
mod messages;
mod operands;
mod plain;
mod reader;
mod reading;
mod redirect;
mod tools;
mod word;

#[cfg(test)]
mod tests;

pub(super) use argument::argument_problems;
pub(super) use reader::{ambiguous, unknown};

use super::names::{Kind, Names, Projection, Reference, Scope};
use super::problem::{Compiled, TextProblem, verdict};
use super::token;
use std::collections::BTreeMap;
use std::ops::Range;

/// Longest shell text that is accepted, in bytes.
pub const SHELL_TEXT_BYTES_MAX: usize = 256 * 1024;

/// The shell that will run a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// POSIX shell, as every `/bin/sh` reads it.
    Sh,
    /// GNU bash.
    Bash,
}

/// One placeholder of a text and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// The known name.
    pub name: String,
    /// Where the name comes from.
    pub scope: Scope,
    /// The part of the value that is asked for.
    pub projection: Projection,
    /// Where the placeholder stands, in bytes of the text.
    pub offset: Range<usize>,
    /// What kind of place that is, in a few words.
    pub context: &'static str,
    /// What stands there when the text is run; of a list, one element.
    pub becomes: String,
}

/// A value that begins with `-` where a command would take it for an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DashGuard {
    /// The known name.
    pub name: String,
    /// Where the name comes from.
    pub scope: Scope,
    /// The part of the value that is asked for.
    pub projection: Projection,
    /// Where the placeholder stands, in bytes of the text.
    pub offset: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The stem of the variables of a list's elements, and the list.
    List(String, Scope, String),
}

/// Shell text whose placeholders are understood.
#[derive(Debug, Clone)]
pub struct ShellText {
    pieces: Vec<Piece>,
    uses: Vec<Use>,
    guards: Vec<DashGuard>,
}

/// Finds `${{ … }}` where the shell would expand it: an expression of CI systems, which no shell can read.
fn foreign_expression(text: &str, reading: &reading::Reading) -> Option<TextProblem> {
    let at = reading.doubt?.at;
    let expression = text.get(at..)?.strip_prefix("${{")?;
    let length = expression.find("}}").map_or(0, |end| end + "}}".len());
    let hint = if expression[..length].contains("secrets.") {
        "write `$NAME`, and `env: [NAME]` with the name of the secret in the skill"
    } else {
        "write `{title}` for an input `title`, `{date}` or another built-in name, and `$NAME` for a variable of `env`"
    };
    Some(TextProblem::error(
        "foreign_expression",
        at..at + "${{".len() + length,
        "`${{ … }}` is not an expression of workerctl",
        hint,
    ))
}

impl ShellText {
    /// Reads `text` as the shell will. The result depends on the definition alone.
    ///
    /// # Errors
    /// All problems of the text, if one of them is an error.
    pub fn compile(
        text: &str,
        names: &Names,
        dialect: Dialect,
    ) -> Result<Compiled<Self>, Vec<TextProblem>> {
        let plain = Self {
            pieces: vec![Piece::Text(text.to_owned())],
            uses: Vec::new(),
            guards: Vec::new(),
        };
        if text.len() > SHELL_TEXT_BYTES_MAX {
            let message = format!("the text has {} bytes", text.len());
            let hint =
                format!("at most {SHELL_TEXT_BYTES_MAX} are read; put it into a script file");
            return Err(vec![TextProblem::error(
                "text_too_long",
                0..0,
                message,
                hint,
            )]);
        }
        if let Some(at) = text.find('\0') {
            let hint = "remove it: no shell can be given one";
            return Err(vec![TextProblem::error(
                "nul_byte",
                at..at + 1,
                "the text holds a NUL",
                hint,
            )]);
        }
        let mentions = token::mentions(text, names);
        let known = |t: &token::Token| !matches!(t.what, token::What::Near(_));
        if mentions.is_empty() && !lint::may_have_slips(text) && !token::has_unknown(text) {
            return Ok(Compiled {
                template: plain,
                notes: Vec::new(),
            });
        }
        let reading = reader::Reader::read(text, names, dialect);
        if let Some(problem) = foreign_expression(text, &reading) {
            return Err(vec![problem]);
        }
        if !mentions.iter().any(known) {
            // Without a placeholder the text is run as it is, whatever was made of it here.
            return verdict(plain, lint::slips(text, &reading, dialect));
        }
        let linted = lint::lint((text, dialect), names, &reading, &mentions);
        verdict(assemble(text, names, &reading, &linted), linted.problems)
    }

    /// The text to run. `lengths` has the number of elements of each list, by scope and name; a
    /// list that is missing there has none.
    pub fn render(&self, lengths: &BTreeMap<(Scope, String), usize>) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::List(stem, scope, name) => {
                    let count = lengths
                        .get(&(*scope, name.clone()))
                        .copied()
                        .unwrap_or_default();
                    let words: Vec<_> =
                        (0..count).map(|n| format!("\"${{{stem}_{n}}}\"")).collect();
                    text.push_str(&words.join(" "));
                }
            }
        }
        text
    }

    /// Every substitution, in the order of the text.
    pub fn uses(&self) -> &[Use] {
        &self.uses
    }

    /// The uses whose values must not begin with `-`.
    pub fn dash_guards(&self) -> &[DashGuard] {
        &self.guards
    }
}

fn assemble(
    text: &str,
    names: &Names,
    reading: &reading::Reading,
    linted: &lint::Linted,
) -> ShellText {
    let mut edits: Vec<(Range<usize>, Piece)> = Vec::new();
    for (range, with) in &reading.edits {
        edits.push((range.clone(), Piece::Text((*with).to_owned())));
    }
    for range in &reading.requoted {
        let inside = text.get(range.start + 1..range.end).unwrap_or_default();
        edits.push((range.clone(), Piece::Text(format!("'{inside}'"))));
    }
    let mut uses = Vec::new();
    for (slot, context) in reading.slots.iter().zip(&linted.contexts) {
        let name = names.get(slot.reference);
        let variable = names.variable(slot.reference);
        let list = names.kind(slot.reference) == Kind::List;
        let becomes = if list {
            format!("\"${{{variable}_0}}\"")
        } else {
            slot.form.reference(&variable)
        };
        edits.push((
            slot.range.clone(),
            if list {
                Piece::List(variable, name.scope, name.name.clone())
            } else {
                Piece::Text(becomes.clone())
            },
        ));
        let (offset, projection) = (slot.range.clone(), slot.reference.projection);
        let (name, scope) = (name.name.clone(), name.scope);
        uses.push(Use {
            name,
            scope,
            projection,
            offset,
            context,
            becomes,
        });
    }
    edits.sort_by_key(|(range, _)| range.start);
    uses.sort_by_key(|u| u.offset.start);
    let mut pieces = Vec::new();
    let mut at = 0;
    for (range, piece) in edits {
        pieces.push(Piece::Text(
            text.get(at..range.start).unwrap_or_default().to_owned(),
        ));
        pieces.push(piece);
        at = range.end;
    }
    pieces.push(Piece::Text(text.get(at..).unwrap_or_default().to_owned()));
    let guard = |reference: &Reference, offset: &Range<usize>| {
        let name = names.get(*reference);
        let (projection, offset) = (reference.projection, offset.clone());
        DashGuard {
            name: name.name.clone(),
            scope: name.scope,
            projection,
            offset,
        }
    };
    let guards = linted.guards.iter().map(|(r, o)| guard(r, o)).collect();
    ShellText {
        pieces,
        uses,
        guards,
    }
}
