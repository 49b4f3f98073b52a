//! The keys of definition files, each declared once: what may be written, what it does, and what is evaluated.
//!
//! Readers, the remarks about unknown keys, the JSON Schemas and the tables of the documentation follow from
//! these tables; tests hold the readers and the pages to them.

// Each key is a row of a table, which would be five lines the way code is laid out.
#[rustfmt::skip]
mod config;
#[rustfmt::skip]
mod models;
#[rustfmt::skip]
mod schedule;
#[rustfmt::skip]
mod shared;
#[rustfmt::skip]
mod skill;
#[rustfmt::skip]
mod worker;

mod foreign;
mod listed;
mod places;
mod scheduled;
mod unknown;

pub(crate) use config::*;
#[cfg(test)]
pub(crate) use foreign::rows as foreign_rows;
pub(crate) use listed::not_a_list;
pub(crate) use models::*;
pub(crate) use places::is_any;
#[cfg(test)]
pub(crate) use places::{COMMON, misplaced_in};
pub(crate) use schedule::*;
pub(crate) use shared::*;
pub(crate) use skill::*;
pub(crate) use unknown::{has_near_miss, refuse_unknown, report_unknown, suggest};
pub(crate) use worker::*;

use crate::model::duration::exact_millis;
use crate::report::Report;
use crate::tree::Data;
use crate::view::View;

/// Code of a key of a model or a tool set that is not known.
pub(crate) const KEY_REFUSED: &str = "key-refused";

/// The keys of one map.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its name in the schemas.
    pub(crate) name: &'static str,
    /// What the map is.
    pub(crate) what: &'static str,
    /// Its keys.
    pub(crate) keys: &'static [Key],
    /// The code of the error that a key which is not known is, where one that is misspelt must not be without effect.
    refuses: Option<&'static str>,
    /// Keys that only earlier versions evaluate; whoever reads the map reports them.
    pub(crate) removed: &'static [&'static str],
}

/// A key that is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// What may be written.
    pub(crate) form: Form,
    /// What it does: a sentence without its capital letter and its full stop.
    pub(crate) what: &'static str,
    /// What holds where it is absent.
    pub(crate) default: DefaultValue,
    /// Words of the documentation and the place that they link to.
    #[cfg_attr(not(test), expect(dead_code, reason = "a test renders the pages"))]
    pub(crate) see: Option<(&'static str, &'static str)>,
    /// What becomes of it.
    pub(crate) role: Role,
    /// Whether it must stand.
    pub(crate) required: bool,
    /// Whether null is taken as if it were absent.
    pub(crate) nullable: bool,
}

/// What becomes of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is evaluated.
    Evaluated,
    /// It is evaluated, and the data that a worker or a skill is shown with has it as it was written.
    EvaluatedAndKept,
    /// It is kept as data and not evaluated.
    Kept,
}

/// What holds where a key is absent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DefaultValue {
    /// Nothing.
    Nothing,
    /// A span of time.
    Millis(u64),
    /// A number.
    Whole(u64),
    /// A value as it would be written.
    Value(&'static str),
    /// What is said in words.
    Told(&'static str),
}

/// What may be written as a value, where null is not spoken of.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    Anything,
    /// Text, also where YAML reads a number or a truth value.
    Text,
    String,
    /// Text of a regular expression of JSON Schema.
    Pattern(&'static str),
    Flag,
    False,
    /// A whole number with both its bounds.
    Whole(u64, u64),
    Number,
    /// A number with both its bounds.
    NumberIn(u32, u32),
    Duration,
    Size,
    Money,
    /// A number from 1 on, which may have underscores between its digits.
    Count,
    Words(&'static [&'static str]),
    Map(&'static Table),
    /// A map whose keys are people's own.
    Named(&'static Form),
    /// A map that another party reads.
    Object,
    List(&'static Form),
    /// A list with at least one item.
    Filled(&'static Form),
    AnyOf(&'static [Form]),
    /// A schema that is nothing of these.
    Schema(fn() -> serde_json::Value),
}

impl Table {
    const fn refuses(self, code: &'static str) -> Table {
        let refuses = Some(code);
        Table { refuses, ..self }
    }

    const fn removed(self, removed: &'static [&'static str]) -> Table {
        Table { removed, ..self }
    }

    /// Whether a value is a map; tells what else it is, and which of its keys are not known.
    pub(crate) fn is_map(
        &self,
        view: View<'_>,
        what: &str,
        expected: &str,
        report: &mut Report,
    ) -> bool {
        let is_map = matches!(view.data(), Data::Map(_));
        if is_map {
            report_unknown(view, self, report);
        } else {
            view.wrong_type(what, expected, report);
        }
        is_map
    }

    /// Whether a key is known.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|one| one.name == key)
    }

    /// The names of all keys.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.keys.iter().map(|key| key.name).collect()
    }

    /// The names of the keys that are evaluated.
    pub(crate) fn evaluated(&self) -> impl Iterator<Item = &'static str> {
        let evaluated = self.keys.iter().filter(|key| key.role != Role::Kept);
        evaluated.map(|key| key.name)
    }

    /// Whether a key belongs to the data that a definition is shown with; keys that are not known do.
    pub(crate) fn keeps(&self, key: &str) -> bool {
        let known = self.keys.iter().find(|one| one.name == key);
        known.is_none_or(|key| key.role != Role::Evaluated)
    }

    /// The dotted path of each value, through maps that are written in one way only.
    pub(crate) fn paths(&self) -> Vec<(String, &'static Key)> {
        let of = |key: &'static Key| match key.form {
            Form::Map(inner) => {
                let below = inner.paths().into_iter();
                let below = below.map(|(path, leaf)| (format!("{}.{path}", key.name), leaf));
                below.collect()
            }
            _ => vec![(key.name.to_owned(), key)],
        };
        self.keys.iter().flat_map(of).collect()
    }
}

const fn table(name: &'static str, what: &'static str, keys: &'static [Key]) -> Table {
    Table {
        name,
        what,
        keys,
        refuses: None,
        removed: &[],
    }
}

/// Declares a key that is evaluated, may be left out, and may be null.
const fn key(name: &'static str, form: Form, what: &'static str) -> Key {
    Key {
        name,
        form,
        what,
        default: DefaultValue::Nothing,
        see: None,
        role: Role::Evaluated,
        required: false,
        nullable: true,
    }
}

/// Declares a key that is kept as data and not evaluated.
const fn kept(name: &'static str) -> Key {
    kept_as(name, Form::Anything)
}

const fn kept_as(name: &'static str, form: Form) -> Key {
    Key {
        role: Role::Kept,
        ..key(name, form, "kept and not evaluated")
    }
}

impl Key {
    const fn default(self, default: DefaultValue) -> Key {
        Key { default, ..self }
    }

    const fn see(self, words: &'static str, place: &'static str) -> Key {
        let see = Some((words, place));
        Key { see, ..self }
    }

    const fn and_kept(self) -> Key {
        let role = Role::EvaluatedAndKept;
        Key { role, ..self }
    }

    const fn required(self) -> Key {
        let required = true;
        Key { required, ..self }
    }

    const fn never_null(self) -> Key {
        let nullable = false;
        Key { nullable, ..self }
    }
}

impl DefaultValue {
    /// As people would write it, or say it; `None` where there is none.
    pub(crate) fn shown(self) -> Option<String> {
        match self {
            DefaultValue::Nothing => None,
            DefaultValue::Millis(millis) => Some(format!("`{}`", exact_millis(millis))),
            DefaultValue::Whole(number) => Some(format!("`{number}`")),
            DefaultValue::Value(value) => Some(format!("`{value}`")),
            DefaultValue::Told(words) => Some(words.to_owned()),
        }
    }
}
