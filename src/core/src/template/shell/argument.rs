//! Commands without a shell: what the program itself does with a value.

use super::lint::{fill, guarded};
use super::messages;
use super::operands::{Role, roles};
use super::reading::{Form, Part, Place, Slot, UnboundName, Word};
use super::{DashGuard, Use};
use crate::template::names::{Names, Projection};
use crate::template::problem::{Severity, TextProblem};
use crate::template::segment::Segment;
use crate::template::token;

/// What is to be said about the arguments of a command that no shell reads.
#[derive(Default)]
pub(crate) struct Arguments {
    /// Each with the number of its argument.
    pub(crate) problems: Vec<(usize, TextProblem)>,
    pub(crate) uses: Vec<Use>,
    pub(crate) guards: Vec<DashGuard>,
}

/// Judges the placeholders of `arguments`, which were taken apart into `segments`.
pub(crate) fn argument_problems(
    segments: &[Vec<Segment>],
    arguments: &[String],
    names: &Names,
) -> Arguments {
    let mut slots: Vec<Slot> = Vec::new();
    let words: Vec<Word> = segments
        .iter()
        .map(|pieces| word(pieces, &mut slots))
        .collect();
    let roles = roles(&words);
    let mut found = Arguments::default();
    for (argument, (word, role)) in words.iter().zip(&roles.of).enumerate() {
        if !matches!(role, Role::Code(_)) {
            let left = unknown_names(&arguments[argument], names);
            let message = left.map(|left| (argument, messages::left(&arguments[argument], &left)));
            found.problems.extend(message);
        }
        for index in word.slots() {
            let slot = &slots[index];
            let role = match role {
                Role::Argument if word.first_slot() != Some(index) => Role::Operand,
                role => role.clone(),
            };
            lint(
                slot,
                &role,
                argument,
                &arguments[argument],
                names,
                roles.external,
                &mut found,
            );
        }
    }
    found
}

fn lint(
    slot: &Slot,
    role: &Role,
    argument: usize,
    text: &str,
    names: &Names,
    external: bool,
    found: &mut Arguments,
) {
    let name = names.get(slot.reference);
    let (kind, inert) = (names.kind(slot.reference), names.is_inert(slot.reference));
    let message = |severity, message| {
        let (code, message, hint) = fill(message, text, names, slot);
        (
            argument,
            TextProblem::new(severity, code, slot.range.clone(), message, hint),
        )
    };
    if let Some(refusal) = messages::role(role, kind, inert) {
        found.problems.push(message(Severity::Error, refusal));
    }
    if name.secret && external && slot.reference.projection != Projection::File {
        found
            .problems
            .push(message(Severity::Warning, messages::secret()));
    }
    let (offset, projection) = (slot.range.clone(), slot.reference.projection);
    if guarded(names, slot.reference, role) {
        found
            .problems
            .push(message(Severity::Note, messages::dash()));
        let (name, scope, offset) = (name.name.clone(), name.scope, offset.clone());
        found.guards.push(DashGuard {
            name,
            scope,
            projection,
            offset,
        });
    }
    let context = messages::context(slot, Some(role));
    let becomes = text.get(offset.clone()).unwrap_or_default().to_owned();
    let (name, scope) = (name.name.clone(), name.scope);
    found.uses.push(Use {
        name,
        scope,
        projection,
        offset,
        context,
        becomes,
    });
}

/// Words in braces that nothing is named.
fn unknown_names<'a>(text: &'a str, names: &'a Names) -> impl Iterator<Item = UnboundName> + 'a {
    let opening = text.match_indices('{').map(|(at, _)| at);
    let unknown = opening.filter(|at| token::braces(text, *at, names).is_none());
    unknown.filter_map(|at| {
        let range = token::unknown(text, at)?;
        Some(UnboundName {
            range,
            is_built_in: false,
        })
    })
}

fn word(pieces: &[Segment], slots: &mut Vec<Slot>) -> Word {
    let mut word = Word {
        quoted: true,
        ..Word::default()
    };
    for piece in pieces {
        match piece {
            Segment::Text(text) | Segment::Handlebars(text) => word.push_text(text),
            Segment::Slot(range, reference) => {
                word.parts.push(Part::Slot(slots.len()));
                let (range, reference) = (range.clone(), *reference);
                let (form, place) = (Form::Bare, Place::Argument);
                slots.push(Slot {
                    range,
                    reference,
                    form,
                    place,
                    whole: pieces.len() == 1,
                });
            }
        }
    }
    word
}
