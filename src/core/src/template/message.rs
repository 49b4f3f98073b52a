//! Templates of commit messages, titles and reports.

use super::names::{Names, Scope};
use super::problem::{Compiled, TextProblem};
use super::text::{Purpose, RenderProblem, TextTemplate};
use super::value::Values;
use serde_json::{Map, Value};

/// A message with `{name}` and Handlebars in it: strict, unescaped, bounded.
#[derive(Debug, Clone)]
pub struct MessageTemplate(TextTemplate);

impl MessageTemplate {
    /// Understands `text`. `fields` are further names that Handlebars may use, each with a sample
    /// of its value.
    ///
    /// # Errors
    /// All problems of the text, if one of them is an error.
    pub fn compile(
        text: &str,
        names: &Names,
        fields: &Map<String, Value>,
    ) -> Result<Compiled<Self>, Vec<TextProblem>> {
        let compiled = TextTemplate::compile(text, names, Purpose::Message, fields)?;
        Ok(Compiled {
            template: Self(compiled.template),
            notes: compiled.notes,
        })
    }

    /// The message for `values` and `fields`, of at most 256 KiB.
    pub fn render(
        &self,
        values: &Values,
        fields: &Map<String, Value>,
    ) -> Result<String, RenderProblem> {
        self.0.render(values, fields)
    }

    /// The names that the message mentions.
    pub fn uses(&self) -> Vec<(Scope, String)> {
        self.0.uses()
    }
}
