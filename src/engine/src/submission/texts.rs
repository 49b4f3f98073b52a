//! Texts of a run: compiled with the names of its skill, rendered, with the environment that they refer to.

use sha2::{Digest, Sha256};

use super::super::{names, secrets};
use super::Submitting;
use crate::model::definition::{CheckText, HookText, PlainVariable, RunText, Shell, Skill};
use crate::model::legible::hex;
use crate::model::spec::{AttemptPlace, CheckSpec, HookSpec, Program, WakeSpec};
use crate::model::{Diagnostic, Kind, SecretText, Value};
use crate::store::secrets::Secrets;
use crate::template::{
    ArgvTemplate, Compiled, MessageTemplate, Projection, Scope, ShellText, TextProblem, Use,
    ValueProblem, Values,
};

/// Rendered texts of a run, with what they use.
#[derive(Default)]
pub(super) struct Rendered {
    pub(super) uses: Vec<Use>,
    pub(super) refusals: Vec<ValueProblem>,
}

impl Submitting<'_> {
    /// The program, and whether its text names the output that standard output could become.
    pub(super) fn program(
        &self,
        values: &Values,
        rendered: &mut Rendered,
        requires: &mut Vec<(String, Option<String>)>,
        in_place: &dyn Fn(&str) -> String,
    ) -> Result<(Program, bool), Diagnostic> {
        match &self.skill.run {
            RunText::Shell(text) => {
                let program = self.shell(text, values, rendered)?;
                let named = rendered.uses.iter().any(|used| used.scope == Scope::Output);
                Ok((program, named))
            }
            RunText::Argv(argv) => {
                let (argv, attempt_at) = self.argv(argv, values, rendered)?;
                let named = rendered.uses.iter().any(|used| used.scope == Scope::Output);
                Ok((Program::Argv { argv, attempt_at }, named))
            }
            RunText::Script {
                path,
                interpreter,
                args,
            } => {
                let content = std::fs::read(path).map_err(|error| {
                    Diagnostic::new(
                        Kind::Definition,
                        "script_missing",
                        format!("the script `{path}` cannot be read: {error}"),
                    )
                })?;
                requires.push((path.clone(), Some(hex(&Sha256::digest(&content)))));
                let mut argv = interpreter.clone();
                argv.push(in_place(path));
                let mut with_script = vec!["script".to_owned()];
                with_script.extend(args.iter().cloned());
                let (arguments, mut attempt_at) = self.argv(&with_script, values, rendered)?;
                // The script stands in the place of the word before its arguments.
                for place in &mut attempt_at {
                    place.argument += argv.len() - 1;
                }
                argv.extend(arguments.into_iter().skip(1));
                let named = rendered.uses.iter().any(|used| used.scope == Scope::Output);
                Ok((Program::Argv { argv, attempt_at }, named))
            }
            RunText::Instructions => {
                let agent = self.agent(self.input.cloned())?;
                Ok((Program::Agent(Box::new(agent)), false))
            }
        }
    }

    pub(super) fn argv(
        &self,
        argv: &[String],
        values: &Values,
        rendered: &mut Rendered,
    ) -> Result<(Vec<String>, Vec<AttemptPlace>), Diagnostic> {
        let compiled = ArgvTemplate::compile(argv, self.names).map_err(|found| {
            let problems: Vec<TextProblem> = found.into_iter().map(|one| one.problem).collect();
            definition_error(self.skill, &problems)
        })?;
        let compiled = compiled.template;
        rendered.refusals.extend(crate::template::dash_refusals(
            compiled.dash_guards(),
            values,
        ));
        rendered.uses.extend(compiled.uses().iter().cloned());
        let arguments = compiled
            .render(values)
            .map_err(|found| refused_values(&found))?;
        let place = |&(argument, offset): &(usize, usize)| AttemptPlace { argument, offset };
        let attempt_at = arguments.attempt_at.iter().map(place).collect();
        Ok((arguments.words, attempt_at))
    }

    pub(super) fn shell(
        &self,
        text: &str,
        values: &Values,
        rendered: &mut Rendered,
    ) -> Result<Program, Diagnostic> {
        let dialect = names::dialect(self.skill.shell);
        let compiled = self.compiled(ShellText::compile(text, self.names, dialect))?;
        rendered.refusals.extend(crate::template::dash_refusals(
            compiled.dash_guards(),
            values,
        ));
        rendered.uses.extend(compiled.uses().iter().cloned());
        Ok(Program::Shell {
            shell: names::shell_program(self.skill.shell).to_owned(),
            text: compiled.render(&values.lengths()),
        })
    }

    pub(super) fn checks(
        &self,
        checks: &[CheckText],
        values: &Values,
        rendered: &mut Rendered,
    ) -> Result<Vec<CheckSpec>, Diagnostic> {
        let mut specs = Vec::new();
        for check in checks {
            let program = match &check.command {
                Some(command) => Some(self.shell(command, values, rendered)?),
                None => None,
            };
            specs.push(CheckSpec {
                description: check.description.clone(),
                program,
                must_pass: check.must_pass,
                timeout_ms: check.timeout_ms,
            });
        }
        Ok(specs)
    }

    pub(super) fn wake(
        &self,
        values: &Values,
        rendered: &mut Rendered,
    ) -> Result<Option<WakeSpec>, Diagnostic> {
        let Some(wake) = &self.skill.wake else {
            return Ok(None);
        };
        Ok(Some(WakeSpec {
            program: self.shell(&wake.command, values, rendered)?,
            timeout_ms: wake.timeout_ms,
        }))
    }

    pub(super) fn environment(
        &self,
        values: &Values,
        rendered: &Rendered,
    ) -> Result<(Vec<(String, String)>, Secrets), Diagnostic> {
        if !rendered.refusals.is_empty() {
            return Err(refused_values(&rendered.refusals));
        }
        let all = crate::template::environment(self.names, values, &rendered.uses)
            .map_err(|found| refused_values(&found))?;
        let mut secrets = Secrets::default();
        for name in &self.bound.secrets {
            let texts = match self.bound.values.get(name) {
                Some(Value::List(items)) => items.iter().map(SecretText::new).collect(),
                Some(other) => vec![SecretText::new(other.to_text())],
                None => Vec::new(),
            };
            for text in texts.into_iter().filter(|text| !text.expose().is_empty()) {
                secrets::refuse_unmaskable(name, &text)?;
                secrets.values.push(text);
            }
        }
        let sensitive: Vec<String> = self
            .bound
            .secrets
            .iter()
            .map(|name| format!("WORKERCTL_INPUT_{}", name.replace('-', "_")))
            .collect();
        let mut environment = Vec::new();
        for (variable, value) in all {
            let secret = sensitive.iter().any(|stem| {
                variable
                    .strip_prefix(stem)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
            });
            if secret {
                secrets.environment.push((variable, SecretText::new(value)));
            } else {
                environment.push((variable, value));
            }
        }
        files(values, rendered, &mut secrets);
        secrets::check(self.skill, self.around.environment)?;
        Ok((environment, secrets))
    }

    /// The variables of the definition that are no secrets, with their values.
    pub(super) fn plain_variables(&self) -> Result<Vec<(String, String)>, Diagnostic> {
        let variables = self.skill.variables.iter();
        let valued = variables.map(|(name, variable)| {
            let value = match variable {
                PlainVariable::Value(value) => Some(value),
                PlainVariable::Inherited => self.around.environment.get(name),
            };
            let value = value.cloned().ok_or_else(|| {
                let text = format!("the variable `{name}` is not set where the engine runs");
                let refused = Diagnostic::new(Kind::Blocked, "variable_missing", text)
                    .hint("set it there, for a service with `Environment=`");
                secrets::with_place(refused, self.skill)
            })?;
            Ok((name.clone(), value))
        });
        valued.collect()
    }

    pub(super) fn commit_message(&self, values: &Values) -> Result<String, Diagnostic> {
        if !self.skill.mutating {
            return Ok(String::new());
        }
        let text = self
            .skill
            .commit_message
            .as_ref()
            .unwrap_or(&self.around.config.commit_message);
        let fields = message_fields(&self.skill.name);
        let compiled = self.compiled(MessageTemplate::compile(text, self.names, &fields))?;
        compiled
            .render(values, &fields)
            .map_err(|error| Diagnostic::new(Kind::Definition, "commit_message", error.to_string()))
    }

    pub(super) fn compiled<T>(
        &self,
        compiled: Result<Compiled<T>, Vec<TextProblem>>,
    ) -> Result<T, Diagnostic> {
        match compiled {
            Ok(compiled) => Ok(compiled.template),
            Err(found) => Err(definition_error(self.skill, &found)),
        }
    }
}

pub(super) fn hooks(hooks: &[HookText]) -> Vec<HookSpec> {
    let program = |hook: &HookText| Program::Shell {
        shell: names::shell_program(Shell::Sh).to_owned(),
        text: hook.command.clone(),
    };
    hooks
        .iter()
        .map(|hook| HookSpec {
            program: program(hook),
            timeout_ms: hook.timeout_ms,
        })
        .collect()
}

/// Content of the files that `{x.file}` asks for; kept apart like secrets, because it may be large.
fn files(values: &Values, rendered: &Rendered, secrets: &mut Secrets) {
    let asked = rendered
        .uses
        .iter()
        .filter(|used| used.projection == Projection::File);
    for used in asked {
        let Some(path) = values.file(used.scope, &used.name) else {
            continue;
        };
        if secrets.files.iter().any(|(known, _)| known == path) {
            continue;
        }
        let content = crate::template::file_content(values.get(used.scope, &used.name));
        secrets
            .files
            .push((path.to_owned(), SecretText::new(content)));
    }
}

/// What commit messages may name beyond the names of every text.
pub(crate) fn message_fields(title: &str) -> serde_json::Map<String, serde_json::Value> {
    let title = serde_json::Value::String(title.to_owned());
    std::iter::once(("title".to_owned(), title)).collect()
}

pub(super) fn refused_values(found: &[ValueProblem]) -> Diagnostic {
    let first = found.first().map(ToString::to_string).unwrap_or_default();
    let mut refused = Diagnostic::new(Kind::Usage, "input_value", first);
    refused.details = found.iter().map(ToString::to_string).collect();
    refused
}

pub(super) fn definition_error<E: DefinitionFault>(skill: &Skill, found: &[E]) -> Diagnostic {
    let first = found.first().map(DefinitionFault::text).unwrap_or_default();
    let mut refused = Diagnostic::new(
        Kind::Definition,
        "definition",
        format!("{}: {first}", skill.place),
    )
    .hint("`workerctl check` shows every problem with its line");
    refused.details = found.iter().map(DefinitionFault::text).collect();
    refused
}

pub(super) trait DefinitionFault {
    fn text(&self) -> String;
}

impl DefinitionFault for TextProblem {
    fn text(&self) -> String {
        format!("{}; {}", self.message, self.hint)
    }
}

impl DefinitionFault for crate::template::NamesProblem {
    fn text(&self) -> String {
        self.to_string()
    }
}
