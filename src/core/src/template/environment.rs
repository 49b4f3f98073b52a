//! The environment variables that carry the values of a run.

use super::names::{Kind, Name, Names, Projection, Reference, is_safe_text};
use super::shell::{DashGuard, Use};
use super::value::{Value, Values, canonical_integer, is_canonical_number};
use std::collections::BTreeSet;

/// Largest value in the environment, in bytes: half of what Linux admits for one string.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Largest sum of all values of a run in the environment, in bytes: a quarter of what Linux
/// admits at the usual stack limit, because a value may also become an argument.
pub const VALUES_BYTES_MAX: usize = 512 * 1024;
/// Most elements of one list.
pub const LIST_ITEMS_MAX: usize = 4096;

/// Why values cannot be handed over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueProblem {
    /// A value holds a NUL byte, which no environment variable and no argument can.
    #[error("`{field}` holds a NUL byte")]
    Nul {
        /// The name, with the number of the element for a list.
        field: String,
    },
    /// A value is larger than [`VALUE_BYTES_MAX`].
    #[error(
        "`{field}` has {bytes} bytes, at most {limit} can be handed to a command; use `{{{field}.file}}`"
    )]
    TooLarge {
        /// The name, with the number of the element for a list.
        field: String,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// All values together are larger than [`VALUES_BYTES_MAX`].
    #[error(
        "the values have {bytes} bytes together, at most {limit} can be handed to a command; `{largest}` is the largest"
    )]
    TooLargeTogether {
        /// The name of the largest value.
        largest: String,
        /// The size of all values.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A list has more elements than [`LIST_ITEMS_MAX`].
    #[error("`{field}` has {count} elements, at most {limit} can be handed to a command")]
    TooManyItems {
        /// The name.
        field: String,
        /// The number of elements.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// A value is not what its declaration promises.
    #[error("`{field}` is not {expected}")]
    NotCanonical {
        /// The name.
        field: String,
        /// The promise, with its article.
        expected: &'static str,
    },
    /// A value would be taken for an option of a command.
    #[error(
        "`{field}` begins with `-` and would be taken for an option; write `--` before `{{{field}}}`, or declare `allow_dash: true`"
    )]
    Dash {
        /// The name, with the number of the element for a list.
        field: String,
    },
    /// `{x.file}` is used, and no file was given.
    #[error("no file holds the value of `{field}`")]
    NoFile {
        /// The name.
        field: String,
    },
}

/// The variables for a run: one for every name, whether it has a value or not, and those that
/// `uses` ask for besides. A name that is used as a file alone has no variable of its own when its
/// value is too large for one.
///
/// # Errors
/// Every value that cannot be handed over.
pub fn environment(
    names: &Names,
    values: &Values,
    uses: &[Use],
) -> Result<Vec<(String, String)>, Vec<ValueProblem>> {
    let mut build = Build {
        names,
        values,
        variables: Vec::new(),
        problems: Vec::new(),
        sum: 0,
        largest: (0, String::new()),
    };
    for (index, name) in names.entries().iter().enumerate() {
        let of_name = |u: &&Use| u.scope == name.scope && u.name == name.name;
        let asked: BTreeSet<_> = uses.iter().filter(of_name).map(|u| u.projection).collect();
        build.name(index, name, &asked);
    }
    if build.sum > VALUES_BYTES_MAX {
        let (bytes, limit) = (build.sum, VALUES_BYTES_MAX);
        let largest = build.largest.1;
        build.problems.push(ValueProblem::TooLargeTogether {
            largest,
            bytes,
            limit,
        });
    }
    if build.problems.is_empty() {
        Ok(build.variables)
    } else {
        Err(build.problems)
    }
}

/// The values that begin with `-` where one of `guards` forbids it.
pub fn dash_refusals(guards: &[DashGuard], values: &Values) -> Vec<ValueProblem> {
    let mut found = Vec::new();
    for guard in guards {
        let Some(value) = values.get(guard.scope, &guard.name) else {
            continue;
        };
        let list = matches!(value, Value::List(_)) && guard.projection == Projection::Value;
        for (i, text) in value.texts().iter().enumerate() {
            if text.starts_with('-') && (list || i == 0) {
                let problem = ValueProblem::Dash {
                    field: field(&guard.name, value, i),
                };
                if !found.contains(&problem) {
                    found.push(problem);
                }
            }
        }
    }
    found
}

/// The text that a projection of a value is.
pub(super) fn project(value: Option<&Value>, kind: Kind, projection: Projection) -> String {
    let texts = value.map(Value::texts).unwrap_or_default();
    match (projection, value) {
        (Projection::Json, None) => "null".to_owned(),
        (Projection::Json, Some(Value::List(texts))) => {
            serde_json::Value::from(texts.clone()).to_string()
        }
        (Projection::Json, Some(Value::Scalar(text))) => match kind {
            Kind::Integer | Kind::Number | Kind::Boolean if !text.is_empty() => text.clone(),
            _ => serde_json::Value::from(text.as_str()).to_string(),
        },
        (Projection::Value | Projection::Lines | Projection::File, _) => texts.join("\n"),
    }
}

/// A path as a command can take it: never an option, never an assignment.
pub(super) fn path_operand(text: &str) -> String {
    if text.is_empty() || text.starts_with('/') || text.starts_with("./") || text.starts_with("../")
    {
        text.to_owned()
    } else {
        format!("./{text}")
    }
}

/// Checks that `value` is what `kind` promises.
pub(super) fn check_kind(name: &Name, value: &Value) -> Result<(), ValueProblem> {
    let broken = |expected| {
        Err(ValueProblem::NotCanonical {
            field: name.name.clone(),
            expected,
        })
    };
    let text = match (name.kind, value) {
        (Kind::List, Value::List(_)) => return Ok(()),
        (Kind::List, Value::Scalar(_)) => return broken("a list"),
        (_, Value::List(_)) => return broken("a single value"),
        (_, Value::Scalar(text)) => text,
    };
    // An optional value that was left out is the empty text.
    if text.is_empty() {
        return Ok(());
    }
    match name.kind {
        Kind::Integer if canonical_integer(text).as_ref() != Some(text) => {
            broken("a whole number in canonical form")
        }
        Kind::Number if !is_canonical_number(text) => broken("a number in canonical form"),
        Kind::Boolean if !matches!(text.as_str(), "true" | "false") => broken("`true` or `false`"),
        Kind::SafeText if !is_safe_text(text) => broken("of letters, digits and `:._+-`"),
        _ => Ok(()),
    }
}

fn field(name: &str, value: &Value, item: usize) -> String {
    match value {
        Value::List(_) => format!("{name}[{item}]"),
        Value::Scalar(_) => name.to_owned(),
    }
}

struct Build<'a> {
    names: &'a Names,
    values: &'a Values,
    variables: Vec<(String, String)>,
    problems: Vec<ValueProblem>,
    sum: usize,
    largest: (usize, String),
}

impl Build<'_> {
    fn name(&mut self, index: usize, name: &Name, asked: &BTreeSet<Projection>) {
        let value = self.values.get(name.scope, &name.name);
        let variable = |projection| self.names.variable(Reference { index, projection });
        let stem = variable(Projection::Value);
        let projected = [Projection::Json, Projection::Lines, Projection::File];
        let projected = projected.map(|p| (p, variable(p)));
        if let Some(value) = value {
            if let Err(problem) = check_kind(name, value) {
                return self.problems.push(problem);
            }
            if value.texts().len() > LIST_ITEMS_MAX {
                let (field, count) = (name.name.clone(), value.texts().len());
                let limit = LIST_ITEMS_MAX;
                return self.problems.push(ValueProblem::TooManyItems {
                    field,
                    count,
                    limit,
                });
            }
        }
        let only_file = !asked.is_empty() && asked.iter().all(|p| *p == Projection::File);
        let texts = value.map(Value::texts).unwrap_or_default();
        let large = texts.iter().map(String::len).sum::<usize>() > VALUE_BYTES_MAX;
        if !(only_file && large) {
            self.value(name, &stem, value);
        }
        for (projection, variable) in projected {
            if !asked.contains(&projection) {
                continue;
            }
            if projection == Projection::File {
                match self.values.file(name.scope, &name.name) {
                    Some(path) => self.push(&name.name, variable, path_operand(path)),
                    None => self.problems.push(ValueProblem::NoFile {
                        field: name.name.clone(),
                    }),
                }
            } else {
                self.push(&name.name, variable, project(value, name.kind, projection));
            }
        }
    }

    fn value(&mut self, name: &Name, stem: &str, value: Option<&Value>) {
        if name.kind == Kind::List {
            let texts = value.map(Value::texts).unwrap_or_default();
            for (i, text) in texts.iter().enumerate() {
                self.push(
                    &format!("{}[{i}]", name.name),
                    format!("{stem}_{i}"),
                    text.clone(),
                );
            }
            self.variables
                .push((format!("{stem}_COUNT"), texts.len().to_string()));
            return;
        }
        let text = project(value, name.kind, Projection::Value);
        let text = match name.kind {
            Kind::Path | Kind::OutputFile => path_operand(&text),
            _ => text,
        };
        self.push(&name.name, stem.to_owned(), text);
    }

    fn push(&mut self, field: &str, variable: String, text: String) {
        let field = field.to_owned();
        if text.contains('\0') {
            return self.problems.push(ValueProblem::Nul { field });
        }
        if text.len() > VALUE_BYTES_MAX {
            let (bytes, limit) = (text.len(), VALUE_BYTES_MAX);
            return self.problems.push(ValueProblem::TooLarge {
                field,
                bytes,
                limit,
            });
        }
        self.sum += text.len();
        if text.len() > self.largest.0 {
            self.largest = (text.len(), field);
        }
        self.variables.push((variable, text));
    }
}

/// What the file behind `{x.file}` has to hold: the text of a scalar, the JSON text of a list.
pub fn file_content(value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::Scalar(text)) => text.clone(),
        Some(list @ Value::List(_)) => project(Some(list), Kind::List, Projection::Json),
    }
}
