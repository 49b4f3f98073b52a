//! Placeholders, shell contexts, references, Handlebars.
//!
//! A value is never pasted into shell text: it travels in the environment, and its placeholder
//! becomes a reference that is quoted for the place where it stands ([`ShellText`]). Everything
//! here is pure: texts and values in, texts and problems out.

mod argv;
mod environment;
mod handlebars_engine;
mod handlebars_guard;
mod message;
mod names;
mod path;
mod path_pattern;
mod pattern;
mod problem;
mod segment;
mod shell;
mod tag;
mod text;
mod token;
mod value;
mod variables;

#[cfg(test)]
mod text_tests;

pub use argv::{ARGUMENTS_MAX, ArgumentProblem, Arguments, ArgvTemplate};
pub use environment::{
    LIST_ITEMS_MAX, VALUE_BYTES_MAX, VALUES_BYTES_MAX, ValueProblem, dash_refusals, environment,
    file_content,
};
pub use handlebars_engine::RENDERED_BYTES_MAX;
pub use handlebars_guard::HANDLEBARS_BYTES_MAX;
pub use message::MessageTemplate;
pub use names::{
    Kind, NAME_BYTES_MAX, NAMES_MAX, Name, Names, NamesProblem, Projection, Reference, Scope,
};
pub use path::PathTemplate;
pub use path_pattern::{PathPattern, PathValue};
pub use problem::{Compiled, Severity, TextProblem};
pub use shell::{DashGuard, Dialect, SHELL_TEXT_BYTES_MAX, ShellText, Use};
pub use text::RenderProblem;
pub use value::{Value, Values, canonical_integer};
