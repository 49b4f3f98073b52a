//! Which tools there are, what they take, and how they are described.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::skills::{Lists, Skills};
use super::typed::{self, Typed};

/// The description of `skill` around its list, as its contract writes it.
const TEMPLATE: (&str, &str) = (
    "Execute a skill within the main conversation

<skills_instructions>
When users ask you to perform tasks, check if any of the available skills below can help complete the task more effectively. Skills provide specialized capabilities and domain knowledge.

How to use skills:
- Invoke skills using this tool with the skill name only (no arguments)
- When you invoke a skill, you will see <command-message>The \"{name}\" skill is loading</command-message>
- The skill's prompt will expand and provide detailed instructions on how to complete the task
- Examples:
  - `command: \"pdf\"` - invoke the pdf skill
  - `command: \"xlsx\"` - invoke the xlsx skill
  - `command: \"ms-office-suite:pdf\"` - invoke using fully qualified name

Important:
- Only use skills listed in <available_skills> below
- Do not invoke a skill that is already running
- Do not use this tool for built-in CLI commands (like /help, /clear, etc.)
</skills_instructions>

<available_skills>
",
    "
</available_skills>",
);

/// The same where there is none to be used: how to use one need not be told.
const EMPTY: (&str, &str) = (
    "Execute a skill within the main conversation

<available_skills>
",
    TEMPLATE.1,
);

/// The tools that the configuration lists, with the skills of the moment in their descriptions; then skills that are tools
/// of their own.
pub(super) fn all(skills: &Skills) -> Vec<Tool> {
    let listed = &skills.catalog.config.mcp.tools;
    let known = of_skills(skills)
        .into_iter()
        .chain(of_runs(skills.may_change));
    let mut tools: Vec<Tool> = known
        .filter(|tool| listed.iter().any(|name| *name == tool.name))
        .collect();
    tools.extend(typed::all(skills).iter().map(of_typed));
    tools
}

fn of_skills(skills: &Skills) -> Vec<Tool> {
    let listed = skills.listed();
    let Lists {
        xml,
        dashes,
        is_empty,
    } = listed.as_ref();
    let (before, after) = if *is_empty { EMPTY } else { TEMPLATE };
    let name = || text("Name of the skill (case-insensitive)");
    vec![
        tool(
            "skill",
            "Load Skill",
            format!("{before}{xml}{after}"),
            skill_input(),
            READS,
        )
        .with_meta(always_loaded()),
        tool(
            "Skill",
            "Invoke a skill to apply specialized expertise and capabilities",
            format!("Invoke skills based on available skill metadata. Skills: {dashes}"),
            strict(
                &json!({"skill_name": text("Name of the skill to invoke from available skills")}),
                &["skill_name"],
            ),
            READS,
        ),
        tool(
            "loadSkill",
            "Load a skill with its list of files",
            "Load a skill: its content, its toolsets, and the files that `loadSkillFile` can load on demand, each with a description.",
            strict(&json!({"skillName": name()}), &["skillName"]),
            READS,
        ),
        tool(
            "loadSkillFile",
            "Load a file of a skill",
            "Load the full content of one file of a skill, by its path relative to the skill's directory.",
            strict(
                &json!({"skillName": name(), "path": text("Path of the file as `loadSkill` lists it")}),
                &["skillName", "path"],
            ),
            READS,
        ),
        tool(
            "list_skills",
            "List skills",
            "List available skills with their full descriptions as JSON, with their input schema, and why one is unavailable. Other lists may be cut; this one is complete, a page at a time.",
            strict(
                &json!({
                    "query": text("Words that the name or the description holds"),
                    "offset": {"type": "integer", "minimum": 0, "description": "Skills to leave out at the beginning"},
                }),
                &[],
            ),
            READS,
        )
        .with_meta(always_loaded()),
    ]
}

fn of_runs(mutating: bool) -> Vec<Tool> {
    let run = || text("Id of the run, or a unique beginning or end of it");
    vec![
        tool(
            "use_skill",
            "Use a skill",
            "Invoke a skill by name. It runs, and its result is returned; if it takes longer, it continues, and the id of its run is returned for `get_run`, `read_thread` and `cancel_run`. `list_skills` returns the schema of its input.",
            strict(
                &json!({
                    "skill": text("Skill name"),
                    "input": {"type": "object", "description": "Skill input parameters"},
                }),
                &["skill"],
            ),
            Hints {
                destructive: mutating,
                ..RUNS
            },
        ),
        tool(
            "list_runs",
            "List runs",
            "List runs, the newest first: id, skill, and how each ended or where it is.",
            strict(
                &json!({
                    "skill": text("Only runs of this skill"),
                    "state": text("Only runs in this state: `active`, `succeeded`, `failed`, `cancelled`, `awaiting_approval` …"),
                    "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "Default 20"},
                }),
                &[],
            ),
            READS,
        ),
        tool(
            "get_run",
            "Look at a run",
            "Return the result of a run, or where it is if it has not ended. `list_runs` gives ids.",
            strict(&json!({"run": run()}), &["run"]),
            READS,
        ),
        tool(
            "read_thread",
            "Read the log of a run",
            "Read the log of a run: its events and what its commands wrote.",
            strict(
                &json!({
                    "run": run(),
                    "from": {"type": "integer", "minimum": 0, "description": "First line, from 0"},
                    "limit": {"type": "integer", "minimum": 0, "description": "Lines at most; 0: as many as one answer holds"},
                }),
                &["run"],
            ),
            READS,
        ),
        tool(
            "cancel_run",
            "Cancel a run",
            "End a run. Nothing that it changed is kept.",
            strict(
                &json!({"run": run(), "now": {"type": "boolean", "description": "End its processes at once"}}),
                &["run"],
            ),
            Hints {
                destructive: true,
                idempotent: true,
                ..RUNS
            },
        ),
    ]
}

/// A skill as a tool, with what its definition says of it.
fn of_typed(skill: &Typed<'_>) -> Tool {
    let mutating = skill.entry.is_mutating();
    let hints = Hints {
        read_only: !mutating,
        destructive: mutating,
        idempotent: skill.is_idempotent(),
        open_world: true,
    };
    let input = object(skill.input.clone());
    tool(
        skill.name.clone(),
        &skill.entry.name,
        skill.description(),
        input,
        hints,
    )
}

/// What a tool does to the world.
#[derive(Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a hint of the protocol"
)]
struct Hints {
    read_only: bool,
    destructive: bool,
    idempotent: bool,
    open_world: bool,
}

const READS: Hints = Hints {
    read_only: true,
    destructive: false,
    idempotent: true,
    open_world: false,
};

const RUNS: Hints = Hints {
    read_only: false,
    destructive: false,
    idempotent: false,
    open_world: true,
};

fn tool(
    name: impl Into<Cow<'static, str>>,
    title: &str,
    description: impl Into<String>,
    input: Arc<JsonObject>,
    hints: Hints,
) -> Tool {
    let annotations = ToolAnnotations::new()
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    Tool::new(name, description.into(), input)
        .with_title(title)
        .with_annotations(annotations)
}

/// Claude Code shows a model only the names of tools until it searches for them, and the list of skills stands in a
/// description: this keeps those that lead to a skill in every request.
fn always_loaded() -> MetaObject {
    let mut meta = MetaObject::new();
    meta.0
        .insert("anthropic/alwaysLoad".to_owned(), json!(true));
    meta
}

fn skill_input() -> Arc<JsonObject> {
    let mut name = text("Name of the skill to load (case-insensitive)");
    name["minLength"] = json!(1);
    strict(&json!({"name": name}), &["name"])
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn strict(properties: &Value, required: &[&str]) -> Arc<JsonObject> {
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema["additionalProperties"] = json!(false);
    object(schema)
}

fn object(schema: Value) -> Arc<JsonObject> {
    match schema {
        Value::Object(map) => Arc::new(map),
        _ => Arc::default(),
    }
}
