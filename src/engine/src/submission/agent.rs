//! Instructions: which model executes them, and with which tools.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::super::tool_rules::tool_rules;
use super::Submitting;
use crate::catalog::Conditions;
use crate::catalog::input_schema::InputSchema;
use crate::catalog::roots::worker_page::WorkerPage;
use crate::inputs::{Bound, RawInputs};
use crate::model::agent::{
    AgentProgram, AgentSpec, Budget, CONFIGURE_A_MODEL, DEFAULT_MODEL, Executor,
    ITERATIONS_DEFAULT, ListedFile, Model, PROGRAM_ITERATIONS, Toolset, built_in_tool,
};
use crate::model::definition::{RunText, Skill};
use crate::model::spec::OutputKind;
use crate::model::{Config, Diagnostic, Kind, Value};
use crate::process;

/// Tools of every skill.
const READING: [&str; 4] = ["read_file", "list_directory", "glob", "grep"];

/// Those of skills that are mutating.
const WRITING: [&str; 2] = ["write_file", "edit_file"];

impl Submitting<'_> {
    /// The instructions with all that is needed to execute them.
    pub(super) fn agent(&self, input: Option<Json>) -> Result<AgentSpec, Diagnostic> {
        let (skill, config) = (self.skill, self.around.config);
        let conditions = Conditions::of(skill);
        let (executor, asked) = if let Some(program) = &skill.agent.program {
            check_program(skill, program, &conditions)?;
            (Executor::Program(program.clone()), None)
        } else {
            let (model, asked) = model_of(skill, config)?;
            (Executor::Model(model), asked)
        };
        let by_program = skill.agent.program.is_some();
        let files = self.listed_files();
        let toolsets = toolsets(&conditions.toolsets, config)?;
        tool_rules(
            conditions.allowed_tools.as_deref(),
            &conditions.disallowed_tools,
        )
        .map_err(|why| {
            let message = format!("`{}`: {why}", skill.address);
            Diagnostic::new(Kind::Definition, "allowed_tools", message)
        })?;
        // A program has tools of its own.
        let mut tools = if by_program {
            Vec::new()
        } else {
            offered(skill, &toolsets)
        };
        if !by_program && !files.is_empty() {
            tools.push("loadSkillFile");
        }
        Ok(AgentSpec {
            executor,
            asked,
            // Of the contract's own samples some have nothing but a description.
            instructions: (skill.instructions.clone()).unwrap_or_else(|| skill.description.clone()),
            max_iterations: skill.agent.max_iterations.unwrap_or(if by_program {
                PROGRAM_ITERATIONS
            } else {
                ITERATIONS_DEFAULT
            }),
            budget: skill
                .agent
                .budget
                .within(config.budget)
                .within(Budget::default()),
            per_day: [
                skill.agent.per_day,
                skill.agent.worker_per_day,
                config.per_day,
            ],
            tools: tools.into_iter().map(str::to_owned).collect(),
            required: conditions.required_tools,
            allowed: conditions.allowed_tools,
            disallowed: conditions.disallowed_tools,
            toolsets,
            files_directory: (!files.is_empty()).then(|| skill.directory.clone()),
            files,
            context: skill.agent.context.clone(),
            input,
        })
    }

    fn listed_files(&self) -> Vec<ListedFile> {
        let page = WorkerPage::of(self.around.workspace, self.skill);
        let found = page.and_then(|page| page.files().ok()).unwrap_or_default();
        let listed = found.files.into_iter().filter_map(|file| {
            Some(ListedFile {
                description: file.description?,
                path: file.path,
            })
        });
        listed.collect()
    }
}

/// Refuses what an agent program cannot be given: nothing runs with less than it asks for.
fn check_program(
    skill: &Skill,
    program: &AgentProgram,
    conditions: &Conditions,
) -> Result<(), Diagnostic> {
    let refused = |what: &str, hint: &str| {
        let message = format!("`{}` asks for {what}", skill.address);
        let message = format!("{message}, which `{}` does not support", program.cli);
        Err(Diagnostic::new(Kind::Blocked, "program_lacks", message).hint(hint))
    };
    if !conditions.toolsets.is_empty() {
        return refused(
            "tool sets",
            "remove `toolsets`, or let a model execute it: `agent: {cli: none}`",
        );
    }
    let restricts = conditions.allowed_tools.is_some() || !conditions.disallowed_tools.is_empty();
    if restricts && !program.restricts_tools() {
        return refused(
            "`allowed-tools` or `disallowed-tools`",
            "use an agent program that supports them, such as `claude`",
        );
    }
    Ok(())
}

/// The model of a skill, and the alias that it names where there is none.
fn model_of(skill: &Skill, config: &Config) -> Result<(Model, Option<String>), Diagnostic> {
    let wanted = skill.agent.model.as_deref().unwrap_or(DEFAULT_MODEL);
    if let Some(model) = config.models.get(wanted) {
        return Ok((model.clone(), None));
    }
    match config.models.get(DEFAULT_MODEL) {
        Some(model) => Ok((model.clone(), Some(wanted.to_owned()))),
        None => Err(Diagnostic::new(
            Kind::Blocked,
            "no_model",
            format!("`{}` needs a model, and none is configured", skill.address),
        )
        .hint(CONFIGURE_A_MODEL)
        .hint("or give the skill a command: `run`")),
    }
}

/// Built-in tools that a skill may have. Without walls a command of a model could change anything, so a skill that is
/// not mutating has none then.
/// Where its tool sets name built-in tools, it has no others.
fn offered(skill: &Skill, sets: &[Toolset]) -> Vec<&'static str> {
    let mut tools = READING.to_vec();
    if skill.mutating {
        tools.extend(WRITING);
    }
    if skill.mutating || (skill.sandbox.is_some() && process::walls_stand()) {
        tools.push("bash");
    }
    tools.extend(["list_skills", "use_skill"]);
    let named: Vec<&String> = sets.iter().flat_map(|set| &set.builtin).collect();
    tools.retain(|tool| named.is_empty() || named.iter().any(|name| name == tool));
    let is_file = |kind: OutputKind| !matches!(kind, OutputKind::Console | OutputKind::GitCommit);
    if skill.outputs.iter().any(|output| is_file(output.kind)) {
        tools.push("submit_output");
    }
    tools
}

fn toolsets(names: &[String], config: &Config) -> Result<Vec<Toolset>, Diagnostic> {
    let found = names.iter().map(|name| {
        let set = config.toolsets.get(name).cloned();
        set.ok_or_else(|| {
            let known: Vec<&str> = config.toolsets.keys().map(String::as_str).collect();
            let hint = match known.as_slice() {
                [] => "`toolsets` of workerctl.yaml has none".to_owned(),
                known => format!("`toolsets` of workerctl.yaml has {}", known.join(", ")),
            };
            missing("toolset", name).hint(hint)
        })
    });
    found.collect()
}

fn missing(what: &str, name: &str) -> Diagnostic {
    let message = format!("Skill requires {what} '{name}' which is not available");
    Diagnostic::new(Kind::Blocked, "tool_unavailable", message)
}

/// Refuses a skill that requires a tool or a tool set that there is not, whoever asks for it and whatever it runs.
pub fn check_tools(skill: &Skill, config: &Config) -> Result<(), Diagnostic> {
    let conditions = Conditions::of(skill);
    let sets = toolsets(&conditions.toolsets, config)?;
    let mut offered = offered(skill, &sets);
    offered.push("loadSkillFile");
    let of_sets: Vec<&str> = sets
        .iter()
        .flat_map(|set| {
            let commands = set.commands.iter().map(|command| command.name.as_str());
            commands.filter(|name| skill.mutating || set.read_only.iter().any(|one| one == name))
        })
        .collect();
    // Which tools a server has is known when it has started; the run ends then before its first turn.
    let of_server = |name: &str| {
        let set = name
            .strip_prefix("mcp__")
            .and_then(|rest| rest.split_once("__"));
        set.is_some_and(|(set, _)| sets.iter().any(|one| one.name == set && one.mcp.is_some()))
    };
    for name in &conditions.required_tools {
        let built_in = built_in_tool(name).is_some_and(|own| offered.contains(&own));
        if !built_in && !of_sets.contains(&name.as_str()) && !of_server(name) {
            return Err(missing("tool", name));
        }
    }
    Ok(())
}

/// The input of a skill that a JSON Schema describes instead of an `interface`, complete with defaults; `None`: there is
/// no such schema.
pub(super) fn of_schema(
    skill: &Skill,
    given: &RawInputs,
) -> Result<Option<(Bound, Json)>, Diagnostic> {
    let schema = skill
        .kept
        .get("input_schema")
        .filter(|schema| !schema.is_null());
    let schema = schema.filter(|_| skill.run == RunText::Instructions && skill.inputs.is_empty());
    let Some(schema) = schema else {
        return Ok(None);
    };
    let refused = |why: String| {
        Diagnostic::new(Kind::Usage, "input", format!("Invalid input: {why}")).hint(format!(
            "`workerctl skill show {}` shows its `input_schema`",
            skill.address
        ))
    };
    let prepared = InputSchema::new(schema).map_err(refused)?;
    let mut input = given.json.clone().unwrap_or_default();
    for (name, text) in &given.pairs {
        if input.contains_key(name) {
            return Err(refused(format!("`{name}` is given twice")));
        }
        input.insert(name.clone(), as_schema_wants(schema, name, text));
    }
    let bound = prepared.bind(Json::Object(input)).map_err(|faults| {
        let told = faults.iter().map(|fault| match fault.at.as_str() {
            "" => fault.message.clone(),
            at => format!("{at}: {}", fault.message),
        });
        refused(told.collect::<Vec<_>>().join("; "))
    })?;
    let values = bound.as_object().map(shown).unwrap_or_default();
    let secrets = Vec::new();
    Ok(Some((Bound { values, secrets }, bound)))
}

/// The text of `-i name=text` as the type that the schema gives it.
fn as_schema_wants(schema: &Json, name: &str, text: &str) -> Json {
    let types = schema.pointer("/properties").and_then(|all| all.get(name));
    let kind = types
        .and_then(|property| property.get("type"))
        .and_then(Json::as_str);
    let text_itself = || Json::String(text.to_owned());
    match kind {
        Some("string") | None => text_itself(),
        // Where it is none of that type, the schema says so.
        Some(_) => serde_json::from_str(text).unwrap_or_else(|_| text_itself()),
    }
}

/// The input as lists of runs show it.
fn shown(input: &Map<String, Json>) -> BTreeMap<String, Value> {
    let value = |json: &Json| match json {
        Json::String(text) => Value::Text(text.clone()),
        Json::Bool(flag) => Value::Boolean(*flag),
        Json::Number(number) => Value::Number(number.to_string()),
        Json::Null => Value::Unset,
        Json::Array(_) | Json::Object(_) => Value::Text(json.to_string()),
    };
    let values = input.iter().map(|(name, json)| (name.clone(), value(json)));
    values.collect()
}
