//! What the reader finds in shell text: placeholders with their places, and the commands around
//! them.

use crate::template::names::Reference;
use crate::template::problem::TextProblem;
use std::collections::BTreeSet;
use std::ops::Range;

/// How a reference has to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Outside quotes: `"R"`.
    Bare,
    /// Where double quotes are in force, or where quotes are ordinary characters: `R`.
    Double,
    /// Inside single quotes: `'"R"'`.
    Single,
    /// Inside `$'…'`: `'"R"$'`.
    AnsiC,
    /// Inside arithmetic: `(R)`.
    Arithmetic,
}

/// Where a placeholder stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A word of a simple command.
    Argument,
    /// A word behind `for … in`.
    LoopWord,
    /// An element of an array literal.
    ArrayElement,
    /// The word behind `case`.
    CaseSubject,
    /// A pattern of a `case` clause.
    CasePattern,
    /// The value given to this variable.
    Assignment(String),
    /// The file of a redirection.
    Redirect,
    /// The body of a here-document whose delimiter is not quoted.
    HereDoc,
    /// The word of a here-string.
    HereString,
    /// An operand inside `[[ ]]`.
    Condition,
    /// An operand of a numeric comparison inside `[[ ]]`.
    NumericCondition,
    /// Inside `$(( ))` or `(( ))`.
    Arithmetic,
    /// A place where no placeholder can be right.
    Refused(Refusal),
}

/// Why no placeholder can stand in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    VariableName,
    Subscript,
    Operator,
    Descriptor,
    Delimiter,
    QuotedHereDoc,
    Backticks,
    AngleAmbiguous,
    EscapeInExpansion,
}

/// One placeholder.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) range: Range<usize>,
    pub(crate) reference: Reference,
    pub(crate) form: Form,
    pub(crate) place: Place,
    /// It is a word of its own, outside quotes.
    pub(crate) whole: bool,
}

/// A piece of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text that is what it says, quotes removed.
    Text(String),
    /// A placeholder, by its number in [`Reading::slots`].
    Slot(usize),
    /// An expansion of the shell's own, as written.
    Dynamic(String),
}

/// One word of a command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Word {
    /// Where it begins.
    pub(crate) at: usize,
    pub(crate) parts: Vec<Part>,
    /// Whether anything in it is quoted.
    pub(crate) quoted: bool,
    /// The commands inside its substitutions, as numbers in [`Reading::commands`].
    pub(crate) inner: Range<usize>,
    /// Names in braces that stay as they are.
    pub(crate) left: Vec<UnboundName>,
}

/// A name in braces that is no placeholder where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnboundName {
    pub(crate) range: Range<usize>,
    /// It is a built-in between single quotes, not a name that nothing has.
    pub(crate) is_built_in: bool,
}

impl Word {
    pub(crate) fn push_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            Some(Part::Text(last)) => last.push_str(text),
            _ => self.parts.push(Part::Text(text.to_owned())),
        }
    }

    /// The text, if the word has no expansion in it.
    pub(crate) fn fixed(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether the word is the expansion of this one variable.
    pub(crate) fn is_variable(&self, name: &str) -> bool {
        self.parts.iter().any(
            |part| matches!(part, Part::Dynamic(raw) if raw.trim_matches(['$', '{', '}']) == name),
        )
    }

    /// Whether the word is `<(…)`.
    pub(crate) fn is_process(&self) -> bool {
        matches!(self.parts.first(), Some(Part::Dynamic(raw)) if raw.starts_with("<("))
    }

    /// The text before the first expansion.
    pub(crate) fn lead(&self) -> &str {
        match self.parts.first() {
            Some(Part::Text(text)) => text,
            _ => "",
        }
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().filter_map(|part| match part {
            Part::Slot(slot) => Some(*slot),
            Part::Text(_) | Part::Dynamic(_) => None,
        })
    }

    pub(crate) fn has_slot(&self) -> bool {
        self.slots().next().is_some()
    }

    /// The placeholder that the word begins with.
    pub(crate) fn first_slot(&self) -> Option<usize> {
        let empty = |part: &&Part| !matches!(part, Part::Text(text) if text.is_empty());
        match self.parts.iter().find(empty) {
            Some(Part::Slot(slot)) => Some(*slot),
            _ => None,
        }
    }
}

/// The words of one simple command; of a compound command, none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Command {
    pub(crate) words: Vec<Word>,
}

/// Placeholders whose values commands read on standard input.
#[derive(Debug, Clone)]
pub(crate) struct Feed {
    pub(crate) slots: Vec<usize>,
    /// The commands that may read them, as numbers in [`Reading::commands`].
    pub(crate) into: Range<usize>,
}

/// The point from which the text cannot be read with certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Doubt {
    pub(crate) at: usize,
    pub(crate) why: &'static str,
    pub(crate) hint: &'static str,
}

/// Everything found in one text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    pub(crate) slots: Vec<Slot>,
    pub(crate) commands: Vec<Command>,
    /// Left and right side of each pipe.
    pub(crate) pipes: Vec<(Range<usize>, Range<usize>)>,
    pub(crate) feeds: Vec<Feed>,
    /// Text to put in the place of other text, for the escapes.
    pub(crate) edits: Vec<(Range<usize>, &'static str)>,
    /// Replacements for escaped `<output>`.
    pub(crate) requoted: Vec<Range<usize>>,
    /// `$x` and `${x}` with a known name.
    pub(crate) variables: Vec<(Range<usize>, String)>,
    /// Variables that the text itself sets.
    pub(crate) assigned: BTreeSet<String>,
    pub(crate) problems: Vec<TextProblem>,
    pub(crate) doubt: Option<Doubt>,
}

/// How much of a [`Reading`] there was at some point.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark([usize; 8]);

impl Reading {
    pub(crate) fn mark(&self) -> Mark {
        Mark([
            self.slots.len(),
            self.commands.len(),
            self.pipes.len(),
            self.feeds.len(),
            self.edits.len(),
            self.requoted.len(),
            self.variables.len(),
            self.problems.len(),
        ])
    }

    /// Forgets what was found since `mark`. Variables that were seen to be set stay: they only
    /// spare a warning.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        let [
            slots,
            commands,
            pipes,
            feeds,
            edits,
            requoted,
            variables,
            problems,
        ] = mark.0;
        self.slots.truncate(slots);
        self.commands.truncate(commands);
        self.pipes.truncate(pipes);
        self.feeds.truncate(feeds);
        self.edits.truncate(edits);
        self.requoted.truncate(requoted);
        self.variables.truncate(variables);
        self.problems.truncate(problems);
    }
}
