//! Templates of paths: destinations and namings.

use super::names::{Names, Scope};
use super::problem::{Compiled, TextProblem};
use super::text::{Purpose, RenderProblem, TextTemplate};
use super::value::Values;
use serde_json::Map;

/// A path with `{name}` and Handlebars in it. What it becomes is only text: whether that path may
/// be used is for others to say.
#[derive(Debug, Clone)]
pub struct PathTemplate(TextTemplate);

impl PathTemplate {
    /// Understands `text`.
    ///
    /// # Errors
    /// All problems of the text, if one of them is an error.
    pub fn compile(text: &str, names: &Names) -> Result<Compiled<Self>, Vec<TextProblem>> {
        let compiled = TextTemplate::compile(text, names, Purpose::Path, &Map::new())?;
        Ok(Compiled {
            template: Self(compiled.template),
            notes: compiled.notes,
        })
    }

    /// The path for `values`. Only an input that is a path itself may hold `/`; the others can
    /// never lead into another directory.
    pub fn render(&self, values: &Values) -> Result<String, RenderProblem> {
        self.0.render(values, &Map::new())
    }

    /// The names that the path depends on.
    pub fn uses(&self) -> Vec<(Scope, String)> {
        self.0.uses()
    }
}
