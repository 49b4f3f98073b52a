//! Commands without a shell: one value is one argument.

use super::environment::{
    LIST_ITEMS_MAX, VALUE_BYTES_MAX, VALUES_BYTES_MAX, ValueProblem, check_kind, path_operand,
    project,
};
use super::names::{Kind, Names, Projection, Reference, Scope};
use super::problem::{Compiled, Severity, TextProblem};
use super::segment::{Segment, Setting, is_list, list_needs_a_word, segments};
use super::shell::{DashGuard, Use, argument_problems};
use super::value::{Value, Values};

/// Most arguments that a definition may list.
pub const ARGUMENTS_MAX: usize = 1024;

/// A problem of one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentProblem {
    /// Which argument, counted from 0.
    pub argument: usize,
    /// What is wrong with it.
    pub problem: TextProblem,
}

#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    Value(Slot),
}

#[derive(Debug, Clone)]
struct Slot {
    scope: Scope,
    name: String,
    kind: Kind,
    projection: Projection,
    is_attempt: bool,
}

/// The arguments to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arguments {
    /// Each word, the program first.
    pub words: Vec<String>,
    /// Where the value of `{attempt}` stands, which differs from one attempt to the next: number of the
    /// word and first byte.
    pub attempt_at: Vec<(usize, usize)>,
}

/// A command as a list of arguments, with placeholders.
#[derive(Debug, Clone)]
pub struct ArgvTemplate {
    arguments: Vec<Vec<Piece>>,
    names: Names,
    uses: Vec<Use>,
    guards: Vec<DashGuard>,
}

impl ArgvTemplate {
    /// Reads the arguments of a command, the first of which is the program.
    ///
    /// # Errors
    /// All problems of all arguments, if one of them is an error.
    pub fn compile(
        arguments: &[String],
        names: &Names,
    ) -> Result<Compiled<Self>, Vec<ArgumentProblem>> {
        let mut found = Vec::new();
        let whole = |code, message: String, hint: &str| {
            let problem = TextProblem::error(code, 0..0, message, hint);
            Err(vec![ArgumentProblem {
                argument: 0,
                problem,
            }])
        };
        if arguments.is_empty() {
            return whole(
                "empty_command",
                "the command has no words".to_owned(),
                "name a program",
            );
        }
        if arguments.len() > ARGUMENTS_MAX {
            let message = format!("the command has {} arguments", arguments.len());
            return whole(
                "too_many_arguments",
                message,
                "at most 1024 are read; use a script",
            );
        }
        let cut: Vec<_> = arguments
            .iter()
            .map(|a| segments(a, names, Setting::Argument))
            .collect();
        for (argument, ((pieces, problems), text)) in cut.iter().zip(arguments).enumerate() {
            let own = problems
                .iter()
                .cloned()
                .chain(problems_of(pieces, text, names));
            found.extend(own.map(|problem| ArgumentProblem { argument, problem }));
        }
        let cut: Vec<Vec<Segment>> = cut.into_iter().map(|(pieces, _)| pieces).collect();
        let judged = argument_problems(&cut, arguments, names);
        let judgements = judged.problems.into_iter();
        found.extend(judgements.map(|(argument, problem)| ArgumentProblem { argument, problem }));
        found.sort_by_key(|p| (p.argument, p.problem.offset.start));
        if found.iter().any(|p| p.problem.severity == Severity::Error) {
            return Err(found);
        }
        let pieces = |cut: &Vec<Segment>| cut.iter().map(|p| piece(p, names)).collect();
        let template = Self {
            arguments: cut.iter().map(pieces).collect(),
            names: names.clone(),
            uses: judged.uses,
            guards: judged.guards,
        };
        let notes = found.into_iter().map(|p| p.problem).collect();
        Ok(Compiled { template, notes })
    }

    /// The arguments to run.
    ///
    /// # Errors
    /// Every value that cannot be an argument.
    pub fn render(&self, values: &Values) -> Result<Arguments, Vec<ValueProblem>> {
        let mut rendered = Vec::new();
        let mut attempt_at = Vec::new();
        let mut problems = Vec::new();
        let mut sum = 0;
        let mut largest = (0, String::new());
        for pieces in &self.arguments {
            if let [Piece::Value(slot)] = pieces.as_slice()
                && slot.kind == Kind::List
                && slot.projection == Projection::Value
            {
                let value = values.get(slot.scope, &slot.name);
                match self.checked(slot, value) {
                    Ok(()) => {
                        let texts = value.map(Value::texts).unwrap_or_default();
                        rendered.extend(texts.iter().cloned());
                    }
                    Err(problem) => problems.push(problem),
                }
                continue;
            }
            let mut argument = String::new();
            for piece in pieces {
                match piece {
                    Piece::Text(text) => argument.push_str(text),
                    Piece::Value(slot) => match self.text(slot, values) {
                        Ok(text) => {
                            sum += text.len();
                            if text.len() > largest.0 {
                                largest = (text.len(), slot.name.clone());
                            }
                            if slot.is_attempt {
                                attempt_at.push((rendered.len(), argument.len()));
                            }
                            argument.push_str(&text);
                        }
                        Err(problem) => problems.push(problem),
                    },
                }
            }
            rendered.push(argument);
        }
        let lists: usize = rendered.iter().map(String::len).sum();
        let bytes = sum.max(lists);
        if bytes > VALUES_BYTES_MAX {
            let (largest, limit) = (largest.1, VALUES_BYTES_MAX);
            problems.push(ValueProblem::TooLargeTogether {
                largest,
                bytes,
                limit,
            });
        }
        if problems.is_empty() {
            Ok(Arguments {
                words: rendered,
                attempt_at,
            })
        } else {
            Err(problems)
        }
    }

    /// Every substitution; the offsets are those within each argument.
    pub fn uses(&self) -> &[Use] {
        &self.uses
    }

    /// The uses whose values must not begin with `-`.
    pub fn dash_guards(&self) -> &[DashGuard] {
        &self.guards
    }

    fn checked(&self, slot: &Slot, value: Option<&Value>) -> Result<(), ValueProblem> {
        let Some(value) = value else {
            return Ok(());
        };
        let of_slot = |n: &&super::names::Name| n.scope == slot.scope && n.name == slot.name;
        if let Some(name) = self.names.entries().iter().find(of_slot) {
            check_kind(name, value)?;
        }
        let field = || slot.name.clone();
        let texts = value.texts();
        if texts.len() > LIST_ITEMS_MAX {
            let (field, count, limit) = (field(), texts.len(), LIST_ITEMS_MAX);
            return Err(ValueProblem::TooManyItems {
                field,
                count,
                limit,
            });
        }
        if texts.iter().any(|t| t.contains('\0')) {
            return Err(ValueProblem::Nul { field: field() });
        }
        let bytes = texts.iter().map(String::len).max().unwrap_or_default();
        if bytes > VALUE_BYTES_MAX && slot.projection != Projection::File {
            return Err(ValueProblem::TooLarge {
                field: field(),
                bytes,
                limit: VALUE_BYTES_MAX,
            });
        }
        Ok(())
    }

    fn text(&self, slot: &Slot, values: &Values) -> Result<String, ValueProblem> {
        if slot.projection == Projection::File {
            let path = values.file(slot.scope, &slot.name).map(path_operand);
            return path.ok_or_else(|| ValueProblem::NoFile {
                field: slot.name.clone(),
            });
        }
        let value = values.get(slot.scope, &slot.name);
        self.checked(slot, value)?;
        let text = project(value, slot.kind, slot.projection);
        if text.len() > VALUE_BYTES_MAX {
            let (field, bytes) = (slot.name.clone(), text.len());
            return Err(ValueProblem::TooLarge {
                field,
                bytes,
                limit: VALUE_BYTES_MAX,
            });
        }
        Ok(match slot.kind {
            Kind::Path | Kind::OutputFile if slot.projection == Projection::Value => {
                path_operand(&text)
            }
            _ => text,
        })
    }
}

/// What is wrong with an argument, whatever the command does with it.
fn problems_of(pieces: &[Segment], text: &str, names: &Names) -> Vec<TextProblem> {
    let nul = text.find('\0').map(|at| {
        TextProblem::error(
            "nul_byte",
            at..at + 1,
            "the argument holds a NUL",
            "remove it",
        )
    });
    let lists = pieces.iter().filter_map(|piece| match piece {
        Segment::Slot(range, reference) if is_list(names, *reference) && pieces.len() > 1 => {
            Some(list_needs_a_word(range.clone(), &text[range.clone()]))
        }
        Segment::Slot(..) | Segment::Text(_) | Segment::Handlebars(_) => None,
    });
    nul.into_iter().chain(lists).collect()
}

fn piece(segment: &Segment, names: &Names) -> Piece {
    match segment {
        Segment::Text(text) | Segment::Handlebars(text) => Piece::Text(text.clone()),
        Segment::Slot(_, reference) => Piece::Value(slot(*reference, names)),
    }
}

fn slot(reference: Reference, names: &Names) -> Slot {
    let name = names.get(reference);
    let (kind, projection) = (name.kind, reference.projection);
    Slot {
        scope: name.scope,
        name: name.name.clone(),
        kind,
        projection,
        is_attempt: name.is_attempt(),
    }
}

#[cfg(test)]
mod tests {
    use super::ArgvTemplate;
    use crate::template::{Kind, Name, Names, Scope, Severity, Value, Values, dash_refusals};

    fn names() -> Names {
        let input = |name, kind| Name::new(Scope::Input, name, kind);
        let declared = vec![
            input("x", Kind::Text),
            input("n", Kind::Integer),
            input("mode", Kind::Enumeration),
            input("list", Kind::List),
            input("source", Kind::Path),
            Name::new(Scope::Output, "report", Kind::OutputFile),
        ];
        Names::new(declared, "worker", "skill").unwrap()
    }

    fn values() -> Values {
        let mut values = Values::new();
        values
            .set(Scope::Input, "x", Value::text("-a {n} $(b)\n"))
            .set(Scope::Input, "n", Value::text("5"))
            .set(Scope::Input, "mode", Value::text("tool"))
            .set(
                Scope::Input,
                "list",
                Value::List(vec!["a b".into(), String::new()]),
            )
            .set(Scope::Input, "source", Value::text("-rf"))
            .set(Scope::Output, "report", Value::text("/w/r.md"))
            .set(Scope::Builtin, "attempt", Value::text("1"));
        values
    }

    fn render(arguments: &[&str]) -> Vec<String> {
        let arguments: Vec<_> = arguments.iter().map(|a| (*a).to_owned()).collect();
        ArgvTemplate::compile(&arguments, &names())
            .unwrap()
            .template
            .render(&values())
            .unwrap()
            .words
    }

    fn codes(arguments: &[&str]) -> Vec<(usize, &'static str)> {
        let arguments: Vec<_> = arguments.iter().map(|a| (*a).to_owned()).collect();
        let found = ArgvTemplate::compile(&arguments, &names()).unwrap_err();
        let errors = found
            .iter()
            .filter(|p| p.problem.severity == Severity::Error);
        errors.map(|p| (p.argument, p.problem.code)).collect()
    }

    #[test]
    fn one_value_is_one_argument() {
        let x = "-a {n} $(b)\n";
        assert_eq!(
            render(&["f", "{x}", "a{x}{n}"]),
            ["f", x, &format!("a{x}5")]
        );
        assert_eq!(
            render(&["f", "{list}", "{list.json}"]),
            ["f", "a b", "", "[\"a b\",\"\"]"]
        );
        assert_eq!(
            render(&["f", "{source}", "{output}", "<output>", "--o=<report>"]),
            ["f", "./-rf", "/w/r.md", "/w/r.md", "--o=/w/r.md"]
        );
        assert_eq!(
            render(&["{mode}", "\\{x}", "\\\\{n}", "${x}", "{other}", "{a,b}"]),
            ["tool", "{x}", "\\5", "${x}", "{other}", "{a,b}"]
        );
        assert_eq!(render(&["sh", "-c", "f \"$1\"", "sh", "{x}"])[4], x);
    }

    #[test]
    fn the_places_of_the_attempt_are_known() {
        let arguments = [
            "f",
            "{attempt}",
            "{list}",
            "ä{n}-{attempt}.{builtin.attempt}",
            "{x}",
        ];
        let arguments: Vec<_> = arguments.iter().map(|a| (*a).to_owned()).collect();
        let compiled = ArgvTemplate::compile(&arguments, &names()).unwrap();
        let rendered = compiled.template.render(&values()).unwrap();
        assert_eq!(rendered.words[4], "ä5-1.1");
        assert_eq!(rendered.attempt_at, [(1, 0), (4, 4), (4, 6)]);
    }

    #[test]
    fn what_would_be_read_again_is_refused() {
        assert_eq!(codes(&[]), [(0, "empty_command")]);
        assert_eq!(codes(&["{x}"]), [(0, "placeholder_as_command")]);
        assert_eq!(codes(&["sh", "-c", "f {x}"]), [(2, "placeholder_in_code")]);
        assert_eq!(
            codes(&["env", "A=1", "awk", "/{x}/"]),
            [(3, "placeholder_in_code")]
        );
        assert_eq!(
            codes(&["f", "a{list}", "{{x}}", "see <output>"]),
            [
                (1, "list_needs_a_word"),
                (2, "handlebars_in_argument"),
                (3, "ambiguous_angle_brackets")
            ]
        );
        assert_eq!(codes(&["f", "{sorce}"]), [(1, "unknown_name")]);
        assert_eq!(codes(&["f", "${{x}}"]), [(1, "handlebars_in_argument")]);
        assert_eq!(codes(&["f", "a\0"]), [(1, "nul_byte")]);
    }

    #[test]
    fn values_are_bounded_and_guarded() {
        let template = ArgvTemplate::compile(
            &["f".into(), "{x}".into(), "--".into(), "{list}".into()],
            &names(),
        )
        .unwrap()
        .template;
        assert_eq!(dash_refusals(template.dash_guards(), &values()).len(), 1);
        let mut large = values();
        large.set(Scope::Input, "x", Value::text("x".repeat(65_537)));
        assert!(template.render(&large).is_err());
        large.set(Scope::Input, "x", Value::text("a\0"));
        assert!(template.render(&large).is_err());
        large.set(Scope::Input, "x", Value::text("")).set(
            Scope::Input,
            "list",
            Value::List(vec!["y".repeat(60_000); 9]),
        );
        assert!(template.render(&large).is_err());
    }
}
