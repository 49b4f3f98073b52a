//! Which placeholders are right where they stand.

use super::Dialect;
use super::messages;
use super::operands::{Role, Roles, roles};
use super::plain::COMPUTES;
use super::reading::{Command, Part, Place, Reading, Slot, Word};
use crate::template::names::{Kind, Names, Projection, Reference};
use crate::template::problem::{Severity, TextProblem};
use crate::template::token::{Token, What};
use std::collections::BTreeSet;
use std::ops::Range;

/// Characters that word processors put in the place of quotes.
const CURLY: [char; 4] = ['“', '”', '‘', '’'];

/// The verdict on a whole text.
pub(crate) struct Linted {
    pub(crate) problems: Vec<TextProblem>,
    /// For each slot of the reading, what kind of place it stands in.
    pub(crate) contexts: Vec<&'static str>,
    pub(crate) guards: Vec<(Reference, Range<usize>)>,
}

/// Returns false if a text without placeholders cannot have slips. This is faster than to read it.
pub(super) fn may_have_slips(text: &str) -> bool {
    text.contains(['$', '[']) || text.contains(CURLY)
}

/// What is to be said about a text without placeholders: only slips in writing one.
pub(super) fn slips(text: &str, reading: &Reading, dialect: Dialect) -> Vec<TextProblem> {
    let slip = |p: &&TextProblem| p.code == "unknown_name";
    let mut found: Vec<_> = reading.problems.iter().filter(slip).cloned().collect();
    let commands: Vec<Roles> = reading.commands.iter().map(|c| roles(&c.words)).collect();
    found.extend(shell_variables(text, reading, &commands));
    found.extend(bashism(text, dialect, reading));
    for (command, roles) in reading.commands.iter().zip(&commands) {
        found.extend(trap(command));
        for (word, role) in command.words.iter().zip(&roles.of) {
            found.extend(left(text, word, role));
        }
    }
    found
}

/// Names in braces that stay as they are, unless a program reads the text, and knows braces of its own.
fn left<'a>(
    text: &'a str,
    word: &'a Word,
    role: &Role,
) -> impl Iterator<Item = TextProblem> + use<'a> {
    let is_read = matches!(role, Role::Code(_) | Role::Replaced(_));
    let left = word.left.iter().filter(move |_| !is_read);
    left.map(|left| messages::left(text, left))
}

/// Judges every placeholder of `reading`; `mentions` are all that the text holds anywhere.
pub(super) fn lint(
    (text, dialect): (&str, Dialect),
    names: &Names,
    reading: &Reading,
    mentions: &[Token],
) -> Linted {
    let limit = reading.doubt.map_or(usize::MAX, |doubt| doubt.at);
    let mut linter = Linter {
        text,
        names,
        reading,
        problems: Vec::new(),
        guards: Vec::new(),
    };
    let commands: Vec<Roles> = reading.commands.iter().map(|c| roles(&c.words)).collect();
    let mut of_slot: Vec<Option<(Role, bool)>> = vec![None; reading.slots.len()];
    for (command, roles) in reading.commands.iter().zip(&commands) {
        linter.command(command, roles);
        linter.problems.extend(trap(command));
        for (word, role) in command.words.iter().zip(&roles.of) {
            linter.problems.extend(left(text, word, role));
            for slot in word.slots() {
                let leads = word.first_slot() == Some(slot);
                let role = match role {
                    // Only a value that begins the word can make it an option.
                    Role::Argument if !leads => Role::Operand,
                    role => role.clone(),
                };
                of_slot[slot] = Some((role, roles.external));
            }
        }
    }
    linter.inputs(&commands);
    let computed: BTreeSet<&str> = computed(&commands);
    let mut contexts = Vec::new();
    for (slot, role) in reading.slots.iter().zip(&of_slot) {
        contexts.push(messages::context(slot, role.as_ref().map(|(role, _)| role)));
        let code = (Role::Code(COMPUTES), false);
        let role = match assigned_to(slot, role.as_ref()) {
            Some(name) if computed.contains(name) => Some(&code),
            _ => role.as_ref(),
        };
        if slot.range.start < limit {
            linter.slot(slot, role);
        }
    }
    linter.problems.extend(
        reading
            .problems
            .iter()
            .filter(|p| p.offset.start < limit)
            .cloned(),
    );
    linter
        .problems
        .extend(shell_variables(text, reading, &commands));
    if let Some(doubt) = reading.doubt {
        let behind = |t: &&Token| t.range.end > doubt.at && !matches!(t.what, What::Near(_));
        let line = text
            .get(..doubt.at)
            .map_or(1, |before| before.matches('\n').count() + 1);
        if !mentions.iter().any(|token| behind(&token)) {
            linter.problems.extend(bashism(text, dialect, reading));
        }
        for token in mentions.iter().filter(behind) {
            linter
                .problems
                .push(messages::doubtful(text, token.range.clone(), doubt, line));
        }
    }
    Linted {
        problems: linter.problems,
        contexts,
        guards: linter.guards,
    }
}

/// Variables that compute whatever they are set to.
fn computed(commands: &[Roles]) -> BTreeSet<&str> {
    let names = commands.iter().flat_map(|roles| &roles.computes);
    names.map(String::as_str).collect()
}

/// The variable that a placeholder is assigned to.
fn assigned_to<'a>(slot: &'a Slot, role: Option<&'a (Role, bool)>) -> Option<&'a str> {
    match (&slot.place, role) {
        (_, Some((Role::Assigned(name), _))) | (Place::Assignment(name), _) => Some(name),
        _ => None,
    }
}

/// `[[` in a text that is not for bash.
fn bashism(text: &str, dialect: Dialect, reading: &Reading) -> Option<TextProblem> {
    let at = reading.doubt?.at;
    let is_condition = dialect == Dialect::Sh && text.get(at..)?.starts_with("[[");
    let (code, message, hint) = messages::double_brackets();
    is_condition.then(|| TextProblem::new(Severity::Warning, code, at..at + 2, message, hint))
}

/// A command that every shell reads, and that cannot do what it says.
fn trap(command: &Command) -> Option<TextProblem> {
    let first = command.words.first()?;
    let last = command.words.last()?;
    let is_glued = last.fixed() != Some("]")
        && matches!(last.parts.last(), Some(Part::Text(text)) if text.ends_with(']'));
    let is_curly = |word: &&Word| matches!(word.parts.first(), Some(Part::Text(text)) if !word.quoted && text.starts_with(CURLY));
    let (word, (code, message, hint)) = match first.fixed() {
        Some("[") if is_glued => (first, messages::unclosed_test()),
        _ => (
            command.words.iter().find(is_curly)?,
            messages::curly_quotes(),
        ),
    };
    let range = word.at..word.at + 1;
    Some(TextProblem::new(
        Severity::Warning,
        code,
        range,
        message,
        hint,
    ))
}

/// `$x` or `${x}` where `{x}` was probably meant.
fn shell_variables(text: &str, reading: &Reading, commands: &[Roles]) -> Vec<TextProblem> {
    let set: BTreeSet<&str> = commands
        .iter()
        .flat_map(|c| c.sets.iter().map(|(name, _)| name.as_str()))
        .collect();
    let sets = |name: &str| set.contains(name);
    let unset =
        |(_, name): &&(Range<usize>, String)| !reading.assigned.contains(name) && !sets(name);
    let found = reading.variables.iter().filter(unset);
    found
        .map(|(range, name)| messages::shell_variable(text, range.clone(), name))
        .collect()
}

struct Linter<'a> {
    text: &'a str,
    names: &'a Names,
    reading: &'a Reading,
    problems: Vec<TextProblem>,
    guards: Vec<(Reference, Range<usize>)>,
}

impl Linter<'_> {
    fn refuse(&mut self, slot: &Slot, (code, message, hint): (&'static str, String, String)) {
        let problem = TextProblem::error(code, slot.range.clone(), message, hint);
        self.problems.push(problem);
    }

    fn say(&mut self, severity: Severity, slot: &Slot, message: (&'static str, String, String)) {
        let (code, message, hint) = message;
        self.problems.push(TextProblem::new(
            severity,
            code,
            slot.range.clone(),
            message,
            hint,
        ));
    }

    /// What is to be said about a command as a whole.
    fn command(&mut self, command: &Command, roles: &Roles) {
        for (name, word) in &roles.sets {
            if name.starts_with("WORKERCTL_") {
                let at = command.words.get(*word).map_or(0, |w| w.at);
                self.problems.push(TextProblem::error(
                    "reserved_variable",
                    at..at + name.len(),
                    format!("the text sets `{name}`, which carries a value of the run"),
                    "use a variable of another name",
                ));
            }
        }
        let first = command.words.first().and_then(Word::fixed);
        let joined = matches!(first, Some("[" | "test"))
            && command
                .words
                .iter()
                .any(|w| matches!(w.fixed(), Some("-a" | "-o")));
        let slot = command.words.iter().flat_map(Word::slots).next();
        if let Some(slot) = slot.filter(|_| joined) {
            self.say(
                Severity::Warning,
                &self.reading.slots[slot],
                messages::joined_test(),
            );
        }
    }

    /// Values that a command reads as a program on its standard input.
    fn inputs(&mut self, commands: &[Roles]) {
        let reader = |range: &Range<usize>| {
            commands
                .get(range.clone())
                .and_then(|c| c.iter().find_map(|roles| roles.reads_code))
        };
        let mut piped = Vec::new();
        let mut printed: Vec<(&Range<usize>, &'static str)> = Vec::new();
        for (left, right) in &self.reading.pipes {
            printed.extend(reader(right).map(|remedy| (left, remedy)));
        }
        // `sh -c "$(echo …)"`, `sh <(echo …)`: what is printed inside the word is the program.
        for (command, roles) in self.reading.commands.iter().zip(commands) {
            for (word, role) in command.words.iter().zip(&roles.of) {
                let remedy = match role {
                    Role::Code(remedy) => Some(*remedy),
                    _ => roles.reads_code.filter(|_| word.is_process()),
                };
                printed.extend(remedy.map(|remedy| (&word.inner, remedy)));
            }
        }
        for (left, remedy) in printed {
            for index in left.clone().filter(|i| commands[*i].prints) {
                let words = self.reading.commands[index].words.iter().skip(1);
                piped.extend(words.flat_map(Word::slots).map(|slot| (slot, remedy)));
            }
            let fed = |range: &Range<usize>| left.start <= range.start && range.end <= left.end;
            for feed in self.reading.feeds.iter().filter(|f| fed(&f.into)) {
                piped.extend(feed.slots.iter().map(|slot| (*slot, remedy)));
            }
        }
        for feed in &self.reading.feeds {
            if let Some(remedy) = reader(&feed.into) {
                piped.extend(feed.slots.iter().map(|slot| (*slot, remedy)));
            }
        }
        for (slot, remedy) in piped {
            let slot = &self.reading.slots[slot];
            if !self.names.is_inert(slot.reference) {
                self.refuse(slot, self.message(slot, messages::piped(remedy)));
            }
        }
    }

    fn message(&self, slot: &Slot, message: messages::Message) -> messages::Message {
        fill(message, self.text, self.names, slot)
    }

    fn slot(&mut self, slot: &Slot, role: Option<&(Role, bool)>) {
        let kind = self.names.kind(slot.reference);
        let inert = self.names.is_inert(slot.reference);
        if let Some(message) = messages::place(slot, kind, inert) {
            let message = self.message(slot, message);
            return self.refuse(slot, message);
        }
        let takes_list = slot.whole
            && match role {
                Some((role, _)) => matches!(role, Role::Argument | Role::Operand | Role::Echoed),
                None => matches!(slot.place, Place::LoopWord | Place::ArrayElement),
            };
        if let Some((role, external)) = role {
            if let Some(message) = messages::role(role, kind, inert) {
                let message = self.message(slot, message);
                return self.refuse(slot, message);
            }
            self.remarks(slot, role, kind, *external);
        }
        if kind == Kind::List && !takes_list {
            let message = self.message(slot, messages::list());
            self.refuse(slot, message);
        }
    }

    /// Notes and warnings about an argument that is right where it stands.
    fn remarks(&mut self, slot: &Slot, role: &Role, kind: Kind, external: bool) {
        if !matches!(slot.place, Place::Argument) {
            return;
        }
        let name = self.names.get(slot.reference);
        let file = slot.reference.projection == Projection::File;
        if name.secret && external && !file {
            let message = self.message(slot, messages::secret());
            self.say(Severity::Warning, slot, message);
        }
        if guarded(self.names, slot.reference, role) {
            self.guards.push((slot.reference, slot.range.clone()));
            let message = self.message(slot, messages::dash());
            self.say(Severity::Note, slot, message);
        }
        if *role == Role::Echoed && matches!(kind, Kind::Text | Kind::List) {
            let message = self.message(slot, messages::echoed());
            self.say(Severity::Note, slot, message);
        }
    }
}

/// Fills the placeholder and its variable into a message.
pub(super) fn fill(
    message: messages::Message,
    text: &str,
    names: &Names,
    slot: &Slot,
) -> messages::Message {
    let (code, message, hint) = message;
    let written = text.get(slot.range.clone()).unwrap_or_default();
    let variable = names.variable(slot.reference);
    let fill = |text: String| text.replace("%N", written).replace("%V", &variable);
    (code, fill(message), fill(hint))
}

/// Whether a value must not begin with `-` in this role.
pub(super) fn guarded(names: &Names, reference: Reference, role: &Role) -> bool {
    *role == Role::Argument
        && matches!(names.kind(reference), Kind::Text | Kind::List | Kind::Date)
        && reference.projection != Projection::Json
        && !names.get(reference).allow_dash
        && !names.is_inert(reference)
}
