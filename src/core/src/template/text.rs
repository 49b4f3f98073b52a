//! Texts of ours with `{name}` and Handlebars: destinations, namings, commit messages, reports.
//!
//! One pass: a value is never read as a template again, whatever it holds.

use super::environment::{LIST_ITEMS_MAX, ValueProblem, check_kind, project};
use super::handlebars_engine::{PLACEHOLDER, RENDERED_BYTES_MAX, write};
use super::handlebars_guard;
use super::names::{Kind, Name, Names, Projection, Reference, Scope};
use super::problem::{Compiled, TextProblem, verdict};
use super::segment::{Segment, Setting, is_list, list_needs_a_word, segments};
use super::tag::{attempt_in_text, mentions, names_the_attempt};
use super::value::{Value, Values};
use handlebars::{RenderError, RenderErrorReason, Template};
use serde_json::{Map, Value as Json};
use std::ops::Range;

/// Why a template did not become a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderProblem {
    /// Handlebars refused, for example because a name has no value.
    #[error("the template cannot be filled in: {reason}")]
    Handlebars {
        /// What the library said.
        reason: String,
    },
    /// The text would be longer than the limit.
    #[error("the text would be longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// A value would change which directory a path leads to.
    #[error("`{name}` cannot be part of a path: {why}")]
    UnsafeInPath {
        /// The input.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A value is not what its declaration promises.
    #[error(transparent)]
    Value(#[from] ValueProblem),
}

/// What a text is for; it decides what a value may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Path,
    Message,
}

#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    Value(Reference),
}

/// A text with placeholders, understood.
#[derive(Debug, Clone)]
pub(super) struct TextTemplate {
    pieces: Vec<Piece>,
    /// The whole text for the library, when it has Handlebars in it; the pieces that are values
    /// are calls of [`PLACEHOLDER`] there.
    handlebars: Option<Template>,
    /// Names that Handlebars may use.
    mentioned: Vec<usize>,
    names: Names,
    purpose: Purpose,
}

impl TextTemplate {
    /// Understands `text`; `fields` are further names for Handlebars, each with a sample value.
    pub(super) fn compile(
        text: &str,
        names: &Names,
        purpose: Purpose,
        fields: &Map<String, Json>,
    ) -> Result<Compiled<Self>, Vec<TextProblem>> {
        let mut found = handlebars_guard::problems(text);
        if !found.is_empty() {
            return Err(found);
        }
        if let Some(at) = text.find('\0') {
            found.push(TextProblem::error(
                "nul_byte",
                at..at + 1,
                "the text holds a NUL",
                "remove it",
            ));
        }
        let (cut, problems) = segments(text, names, Setting::Text);
        found.extend(problems);
        let mut pieces = Vec::new();
        let mut library = String::new();
        let mut mentioned = Vec::new();
        let (mut tags, mut attempt) = (false, false);
        for segment in &cut {
            match segment {
                Segment::Text(plain) => {
                    library.push_str(plain);
                    pieces.push(Piece::Text(plain.clone()));
                }
                Segment::Slot(range, reference) => {
                    found.extend(misuse(text, range, *reference, names, purpose));
                    let number = pieces.len();
                    if library.ends_with('\\') {
                        // Before braces the library would take the backslash for an escape.
                        library.pop();
                        library += &call("\"\\\\\"");
                    }
                    library += &call(&number.to_string());
                    pieces.push(Piece::Value(*reference));
                }
                Segment::Handlebars(tag) => {
                    tags = true;
                    attempt |= names_the_attempt(tag, names);
                    library.push_str(tag);
                    mentioned.extend(mentions(tag, names));
                }
            }
        }
        let mut template = Self {
            pieces,
            handlebars: None,
            mentioned,
            names: names.clone(),
            purpose,
        };
        if tags {
            match Template::compile(&library) {
                Ok(compiled) => template.handlebars = Some(compiled),
                Err(error) => found.push(syntax(text, &error)),
            }
            found.extend(template.secrets(text));
            if attempt {
                found.push(attempt_in_text(0..text.len()));
            } else {
                found.extend(template.trial(text, fields));
            }
        }
        verdict(template, found)
    }

    /// Fills in the values and, for Handlebars, the further `fields`.
    pub(super) fn render(
        &self,
        values: &Values,
        fields: &Map<String, Json>,
    ) -> Result<String, RenderProblem> {
        let mut texts = Vec::new();
        for piece in &self.pieces {
            texts.push(match piece {
                Piece::Text(text) => text.clone(),
                Piece::Value(reference) => self.value(*reference, values)?,
            });
        }
        let limit = RENDERED_BYTES_MAX;
        let Some(template) = &self.handlebars else {
            let bytes: usize = texts.iter().map(String::len).sum();
            return if bytes > limit {
                Err(RenderProblem::TooLong { limit })
            } else {
                Ok(texts.concat())
            };
        };
        for index in &self.mentioned {
            let name = &self.names.entries()[*index];
            if let Some(value) = values.get(name.scope, &name.name) {
                self.check(name, value)?;
            }
        }
        fill(template, texts, &self.context(values, fields))
    }

    /// The names that the text uses.
    pub(super) fn uses(&self) -> Vec<(Scope, String)> {
        let direct = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(reference) => Some(reference.index),
            Piece::Text(_) => None,
        });
        let mut all: Vec<_> = direct.chain(self.mentioned.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        let entry = |i: usize| &self.names.entries()[i];
        all.into_iter()
            .map(|i| (entry(i).scope, entry(i).name.clone()))
            .collect()
    }

    fn value(&self, reference: Reference, values: &Values) -> Result<String, RenderProblem> {
        let name = self.names.get(reference);
        let value = values.get(name.scope, &name.name);
        if let Some(value) = value {
            self.check(name, value)?;
        }
        Ok(project(value, name.kind, reference.projection))
    }

    fn check(&self, name: &Name, value: &Value) -> Result<(), RenderProblem> {
        check_kind(name, value)?;
        let (field, texts) = (name.name.clone(), value.texts());
        if texts.len() > LIST_ITEMS_MAX {
            let (count, limit) = (texts.len(), LIST_ITEMS_MAX);
            return Err(ValueProblem::TooManyItems {
                field,
                count,
                limit,
            }
            .into());
        }
        if texts.iter().any(|t| t.contains('\0')) {
            return Err(ValueProblem::Nul { field }.into());
        }
        let free = matches!(name.kind, Kind::Path | Kind::OutputFile);
        if self.purpose == Purpose::Message || free {
            return Ok(());
        }
        match texts.iter().find_map(|text| unsafe_in_path(text)) {
            Some(why) => Err(RenderProblem::UnsafeInPath { name: field, why }),
            None => Ok(()),
        }
    }

    /// What Handlebars sees: every name that has one meaning, and all of them by scope as
    /// `inputs`, `outputs` and `builtins`. Secrets are left out.
    fn context(&self, values: &Values, fields: &Map<String, Json>) -> Json {
        let mut top = Map::new();
        for (list, scope) in [
            ("inputs", Scope::Input),
            ("outputs", Scope::Output),
            ("builtins", Scope::Builtin),
        ] {
            let of_scope = self
                .names
                .entries()
                .iter()
                .filter(|n| n.scope == scope && !n.secret && !n.is_attempt());
            let entries = of_scope.map(|n| (n.name.clone(), json(n, values.get(n.scope, &n.name))));
            top.insert(list.to_owned(), Json::Object(entries.collect()));
        }
        for (name, index) in self.names.unambiguous() {
            let entry = &self.names.entries()[index];
            if !entry.secret && !entry.is_attempt() {
                top.insert(
                    name.to_owned(),
                    json(entry, values.get(entry.scope, &entry.name)),
                );
            }
        }
        top.extend(fields.iter().map(|(k, v)| (k.clone(), v.clone())));
        Json::Object(top)
    }

    fn secrets(&self, text: &str) -> Vec<TextProblem> {
        let secret = |i: &&usize| self.names.entries()[**i].secret;
        let found = self.mentioned.iter().filter(secret);
        found
            .map(|i| secret_in_text(0..text.len(), &self.names.entries()[*i].name))
            .collect()
    }

    /// Fills in sample values, so that a name that does not exist is found before any run.
    fn trial(&self, text: &str, fields: &Map<String, Json>) -> Vec<TextProblem> {
        let Some(template) = &self.handlebars else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for sample in [sample_value, empty_value] {
            let mut values = Values::new();
            for name in self.names.entries() {
                values.set(name.scope, name.name.clone(), sample(name.kind));
            }
            let context = self.context(&values, fields);
            let texts = vec![String::new(); self.pieces.len()];
            let Some(error) = write(template, texts, &context).err() else {
                continue;
            };
            let missing = matches!(error.reason(), RenderErrorReason::MissingVariable(_));
            let helper = matches!(error.reason(), RenderErrorReason::HelperNotFound(_));
            if missing && is_known(error.reason(), &context) {
                continue; // a member of a list or of a field, which real values may have
            }
            if missing || helper {
                found.push(unknown_variable(text, &error));
                break;
            }
        }
        found
    }
}

/// Whether the name that was missing has at least a beginning that is known.
fn is_known(reason: &RenderErrorReason, context: &Json) -> bool {
    let RenderErrorReason::MissingVariable(Some(path)) = reason else {
        return true;
    };
    let mut parts = path.split(['.', '/']);
    let root = parts.next().unwrap_or_default();
    let scope = matches!(root, "inputs" | "outputs" | "builtins");
    let root = if scope {
        context.get(root).and_then(|c| c.get(parts.next()?))
    } else {
        context.get(root)
    };
    root.is_some() || path.starts_with(['@', '.']) || path == "this"
}

/// A call of the helper that stands for a placeholder.
fn call(parameter: &str) -> String {
    format!("{{{{{PLACEHOLDER} {parameter}}}}}")
}

/// Why a text cannot be part of a path, if it cannot.
fn unsafe_in_path(text: &str) -> Option<&'static str> {
    if text.contains('/') {
        Some("it holds `/`; only an input of `type: path` may")
    } else if matches!(text, "." | "..") {
        Some("it names a directory")
    } else if text.chars().any(char::is_control) {
        Some("it holds a control character")
    } else {
        None
    }
}

fn misuse(
    text: &str,
    range: &Range<usize>,
    reference: Reference,
    names: &Names,
    purpose: Purpose,
) -> Option<TextProblem> {
    let written = text.get(range.clone()).unwrap_or_default();
    let name = names.get(reference);
    if name.secret {
        return Some(secret_in_text(range.clone(), &name.name));
    }
    if name.is_attempt() {
        return Some(attempt_in_text(range.clone()));
    }
    if is_list(names, reference) {
        return Some(list_needs_a_word(range.clone(), written));
    }
    if purpose == Purpose::Path && name.kind == Kind::Path {
        return Some(TextProblem::error(
            "path_in_destination",
            range.clone(),
            format!(
                "`{written}` becomes an absolute path, and a destination is relative to the workspace"
            ),
            "declare it as `type: string`, for the name of one file or directory; a `path` names what is read",
        ));
    }
    let file = reference.projection == Projection::File;
    let projected = reference.projection != Projection::Value && purpose == Purpose::Path;
    (file || projected).then(|| {
        TextProblem::error(
            "projection_in_text",
            range.clone(),
            format!("`{written}` has no meaning here"),
            "write the name alone",
        )
    })
}

fn secret_in_text(range: Range<usize>, name: &str) -> TextProblem {
    TextProblem::error(
        "secret_in_text",
        range,
        format!("`{name}` is a secret, and this text can be read by everyone"),
        "leave it out",
    )
}

fn json(name: &Name, value: Option<&Value>) -> Json {
    match value {
        None => Json::Null,
        Some(Value::List(texts)) => Json::from(texts.clone()),
        Some(Value::Scalar(text)) => {
            let typed: Option<Json> = match name.kind {
                Kind::Integer | Kind::Number | Kind::Boolean => serde_json::from_str(text).ok(),
                _ => None,
            };
            // A number that would be written differently stays the text it is.
            typed
                .filter(|typed| &typed.to_string() == text)
                .unwrap_or_else(|| Json::from(text.as_str()))
        }
    }
}

fn sample_value(kind: Kind) -> Value {
    match kind {
        Kind::Integer | Kind::Number => Value::text("1"),
        Kind::Boolean => Value::boolean(true),
        Kind::List => Value::List(vec!["a".to_owned()]),
        Kind::Text
        | Kind::Enumeration
        | Kind::Date
        | Kind::Path
        | Kind::OutputFile
        | Kind::SafeText => Value::text("a"),
    }
}

fn empty_value(kind: Kind) -> Value {
    match kind {
        Kind::Integer | Kind::Number => Value::text("0"),
        Kind::Boolean => Value::boolean(false),
        Kind::List => Value::List(Vec::new()),
        Kind::Text
        | Kind::Enumeration
        | Kind::Date
        | Kind::Path
        | Kind::OutputFile
        | Kind::SafeText => Value::text(""),
    }
}

fn syntax(text: &str, error: &handlebars::TemplateError) -> TextProblem {
    let at = error
        .pos()
        .map_or(0, |(line, column)| offset(text, line, column));
    TextProblem::error(
        "handlebars_syntax",
        at..at,
        format!(
            "the Handlebars cannot be read: {}",
            error.reason().to_string().trim()
        ),
        "close every tag and block; write `\\{{` for braces that are meant",
    )
}

fn unknown_variable(text: &str, error: &RenderError) -> TextProblem {
    let line = error.line_no.unwrap_or(1);
    let at = offset(text, line, error.column_no.unwrap_or(1));
    let what = match error.reason() {
        RenderErrorReason::MissingVariable(Some(name))
        | RenderErrorReason::HelperNotFound(name) => {
            format!("nothing here is named `{name}`")
        }
        reason => reason.to_string(),
    };
    TextProblem::error(
        "handlebars_unknown_name",
        at..at,
        what,
        "use the name of an input, an output or a built-in",
    )
}

/// The byte offset of a line and column that count from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    (start + column.saturating_sub(1)).min(text.len())
}

fn fill(template: &Template, texts: Vec<String>, context: &Json) -> Result<String, RenderProblem> {
    let bytes = write(template, texts, context).map_err(|error| match error.reason() {
        RenderErrorReason::IOError(io) if io.kind() == std::io::ErrorKind::FileTooLarge => {
            RenderProblem::TooLong {
                limit: RENDERED_BYTES_MAX,
            }
        }
        reason => RenderProblem::Handlebars {
            reason: reason.to_string(),
        },
    })?;
    String::from_utf8(bytes).map_err(|e| RenderProblem::Handlebars {
        reason: e.to_string(),
    })
}
