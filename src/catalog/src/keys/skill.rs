//! Keys of a skill, in worker.yaml or in a file of its own.

use super::DefaultValue::{Told, Value, Whole as Number};
use super::Form::{AnyOf, Duration, Filled, Flag, List, Map, String, Text, Whole, Words};
use super::shared::{
    ANYTHING, BRANCHES, INSTRUCTIONS, LOCALS, RATE_LIMITS, SANDBOXES, SCHEDULES, TEXTS, VARIABLES, VERIFICATIONS,
};
use super::worker::PLACEMENT;
use crate::bounds::ITERATIONS_MAX;
use crate::model::agent::ITERATIONS_DEFAULT;
use super::{APPROVAL, BUDGET, COMMIT, DefaultValue, Form, HOOKS, LIMITS, RETRY, Table, WAKE, kept, kept_as, key, table};

const WORKERS: DefaultValue = Told("the worker's");

/// A file of a skill, where the keys stand below `skill`.
pub(crate) static SKILL_FILE: Table = table("SkillFile", "Frontmatter of a skill file: the keys below `skill:`, or at the top level.", &[
    key("skill", Map(&SKILL), "the skill").never_null(),
]);

/// A skill, inline or in the frontmatter of a file of its own.
pub(crate) static SKILL: Table = table("SkillKeys", "A skill.", &[
    key("id", Text, "unique in the worker: lower-case letters, digits and dashes").default(Told("the name, else the file's name")),
    key("name", Text, "name for people").default(Told("the heading of the file, else the id")),
    key("description", Text, "one sentence that says what it does, at most 1,024 characters").default(Told("the first paragraph of the file, else the id")),
    key("file", String, "the skill's own file, relative to worker.yaml"),
    key("path", String, "the same as `file`"),
    kept("trigger"),
    key("interface", Map(&INTERFACE), "what goes in and what comes out").see("inputs", "definitions.md#inputs"),
    key("run", AnyOf(&[String, Filled(&Text), Map(&RUN)]), "what is executed: shell text, a program with its arguments, or a script. Without it a model executes the instructions; where none is configured the skill is unavailable")
        .see("what runs", "definitions.md#what-runs"),
    key("verification", VERIFICATIONS, "checks after execution, or a map of checks as in worker.yaml").see("checks", "definitions.md#checks"),
    key("wake", AnyOf(&[String, Map(&WAKE)]), "command that decides before anything executes whether there is anything to do: its text, or a map").see("wake gate", "definitions.md#wake-gate"),
    key("mutating", Flag, "whether it changes the repository: it works in a tree of its own, hooks fire, and its result lands as a commit").default(Value("false")),
    key("idempotent", Flag, "whether its command may be started again: after a crash, and for further attempts").see("after a crash", "definitions.md#after-a-crash")
        .default(Told("true where it is not mutating, false where it is")),
    key("on_crash", Words(&["verify", "restore"]), "what happens when the engine dies while a skill executes that may not be started again: `verify` looks whether its work was done, `restore` does not")
        .see("after a crash", "definitions.md#after-a-crash").default(Value("verify")),
    key("timeout", Duration, "limit of one attempt's command").default(WORKERS),
    key("max_runtime", Duration, "limit of all attempts together, from the first execution to the end of verification").default(WORKERS),
    key("limits", Map(&LIMITS), "what the processes of each command, check and hook may use; each of its keys counts before the worker's").see("limits", "definitions.md#limits").default(WORKERS),
    key("budget", Map(&BUDGET), "what its runs may spend; `per_day` is that of its own runs. Of a skill with `run` only `per_day.runs` has an effect")
        .see("budgets", "configuration.md#budgets").default(WORKERS).and_kept(),
    key("retry", Map(&RETRY), "attempts").see("retries", "definitions.md#retries").default(WORKERS),
    key("on_rate_limit", RATE_LIMITS, "whether its runs wait in the queue where the server of a model takes no more requests: `{wait, times}`, or `false`").see("rate limits", "agents.md#rate-limits").default(WORKERS),
    key("cwd", String, "directory of its commands, relative to the workspace").default(WORKERS),
    key("shell", Words(&["sh", "bash"]), "shell of its texts: `sh` or `bash`").default(WORKERS),
    key("env", VARIABLES, "variables that it sees besides the worker's: names of secrets, `{name, secret}` with where the value is, or values such as `{CI: \"1\"}`; an entry of the same name wins").see("environment", "definitions.md#environment"),
    key("hooks", Map(&HOOKS), "commands that are told about its runs, after the worker's").see("hooks", "definitions.md#hooks"),
    key("commit", Map(&COMMIT), "its commit").see("commits", "definitions.md#commits").default(WORKERS),
    INSTRUCTIONS,
    key("agent", AnyOf(&[Map(&super::AGENT), String]), "the agent program that executes its instructions; each key counts before the worker's, unless that names another program. Text is kept as data").see("agent programs", "agents.md#agent-programs").default(WORKERS).and_kept(),
    key("model", Text, "alias of the model that executes its instructions; `preferred_model` counts before").and_kept(),
    key("sandbox", SANDBOXES, "what its commands may touch, enforced by the kernel: `auto`, `required`, `private`, `off`, or a map").see("sandbox", "definitions.md#sandbox").default(WORKERS).and_kept(),
    key("branch", BRANCHES, "the branch that its results land on: its short name, or `{name, create}`").see("where a result lands", PLACEMENT).default(WORKERS),
    key("keep", TEXTS, "ignored directories and files, such as `node_modules/`, that stay in its tree from run to run").see("where a run works", PLACEMENT).default(WORKERS),
    key("local", LOCALS, "paths of the checkout that its tree is given, such as `.env`").see("where a run works", PLACEMENT).default(WORKERS),
    key("parallel", Flag, "whether its runs may go beside other mutating runs of the repository").see("where a run works", PLACEMENT).default(Value("false")),
    key("push", Text, "the remote that its landed results are pushed to; `true` is `origin`").see("where a result lands", PLACEMENT).default(WORKERS),
    key("filtered", Words(&["stored"]), "`stored`: it can work on files as git stores them, where git filters them").see("where a run works", PLACEMENT),
    key("workerctl", Flag, "whether its commands may ask the engine that runs them, by `workerctl` or over the socket, and use Unix sockets; else the socket refuses them")
        .see("who may do what", "operations.md#who-may-do-what").default(Value("false")),
    key("approval", Map(&APPROVAL), "how a person is asked: `{before, expires}`").see("approval", "definitions.md#approval").default(WORKERS),
    key("approval_required", Flag, "whether a person has to approve every run; `false` takes nothing back that its worker asks for").see("approval", "definitions.md#approval").default(Value("false")),
    key("human_checkpoints", List(&String), "what a person looks at: recorded as not run, never as passed"),
    key("schedule", SCHEDULES, "when it is due: a cron expression, a map, or a list of them").see("schedules", "definitions.md#schedules"),
    key("cron", SCHEDULES, "the same as `schedule`; both may stand"),
    kept("tags"),
    kept_as("version", Text),
    kept("metadata"),
    kept("license"),
    kept("compatibility"),
    key("allowed-tools", TEXTS, "the only tools that a model may call").see("tools", "agents.md#tools").default(Told("all that it is offered")).and_kept(),
    key("disallowed-tools", TEXTS, "tools that a model may not call, whatever else allows them").see("tools", "agents.md#tools").and_kept(),
    key("required_tools", TEXTS, "tools without which it does not start").see("tools", "agents.md#tools").and_kept(),
    key("disable-model-invocation", Flag, "whether models may not start it").see("runs over MCP", "mcp.md#runs-over-mcp").default(Value("false")).and_kept(),
    key("user-invocable", Flag, "whether it is offered to people").see("runs over MCP", "mcp.md#runs-over-mcp").default(Value("true")).and_kept(),
    kept_as("argument-hint", TEXTS),
    key("preferred_model", Text, "alias of the model that executes its instructions. One that is not configured stands for `default`, with a warning")
        .see("models", "configuration.md#models").default(Told("`model`, else `execution.model` of the worker, else `default`")).and_kept(),
    key("max_iterations", AnyOf(&[Whole(1, ITERATIONS_MAX), Form::Pattern(r"^\s*[0-9]+\s*$")]), "turns of the model in one attempt, 1 to 1,000").see("limits", "agents.md#limits")
        .default(Number(ITERATIONS_DEFAULT as u64)).and_kept(),
    key("input_schema", ANYTHING, "JSON Schema of what instructions are given, in place of `interface.inputs`").see("runs over MCP", "mcp.md#runs-over-mcp").and_kept(),
    key("toolsets", TEXTS, "names of tool sets of workerctl.yaml, which a model may call too. One that is not configured is a warning").see("tool sets", "configuration.md#tool-sets").and_kept(),
    key("files", ANYTHING, "files beside a `SKILL.md` of its own that a model may load: maps with `path` and `description`").see("other skills", "skills.md#how-they-are-written").default(Told("all")).and_kept(),
    kept("context"),
])
.removed(&["isolation", "writes"]);

/// The `interface` map.
pub(crate) static INTERFACE: Table = table("Interface", "What goes into a skill and what comes out.", &[
    key("inputs", List(&Map(&INPUT)), "values that a run is given"),
    key("outputs", List(&Map(&OUTPUT)), "what a run leaves; verified without being asked"),
]);

/// An input.
pub(crate) static INPUT: Table = table("Input", "An input.", &[
    key("name", String, "its name: a letter or `_`, then letters, digits, `_`, `-`; at most 64. `{name}` stands for its value in texts").required().never_null(),
    key("type", Words(&["string", "number", "boolean", "array", "date", "path", "str", "text", "int", "integer", "float", "num", "bool", "list", "file"]), "`string`, `number`, `boolean`, `array`, `date` (`2026-01-23`) or `path`").default(Value("string")),
    key("required", Flag, "whether a value must be given").default(Value("false")),
    key("default", ANYTHING, "value where none is given"),
    key("description", String, "what it is for, for people"),
    key("enum", Filled(&Text), "the only values that are accepted, 1 to 1,000"),
    key("pattern", String, "of a string, a path or an array: regular expression that the whole value, or each item, must match; linear in time, no back-references"),
    key("min", Form::Number, "least number"),
    key("max", Form::Number, "greatest number"),
    key("integer", Flag, "of a number: whether only whole ones are accepted").default(Value("false")),
    key("min_length", Whole(0, u64::MAX), "of a string, a path or an array: least length in characters, or in items"),
    key("max_length", Whole(0, u64::MAX), "of a string, a path or an array: greatest length in characters, or in items"),
    key("items", ANYTHING, "of an array: type of its items").default(Value("string")),
    key("sensitive", Flag, "whether the value is a secret, of 6 bytes to 16 KiB: masked everywhere, kept in a private file, forgotten at the end").default(Value("false")),
    key("allow_dash", Flag, "whether a value may begin with `-` where a command would take it for an option").default(Value("false")),
]);

/// An output.
pub(crate) static OUTPUT: Table = table("Output", "An output.", &[
    key("name", String, "its name; `{name}` stands for its path in texts").default(Told("its type")),
    key("type", Words(&["markdown", "json", "file", "git_commit", "console"]), "what it is and how it is verified: `markdown`, `json`, `file`, `git_commit` or `console`").default(Value("file")),
    key("destination", String, "path relative to the workspace; `{date}` and other placeholders are allowed"),
    key("description", String, "what it is for, for people"),
]);

/// `run` as a map.
pub(crate) static RUN: Table = table("RunScript", "A script beside the definition.", &[
    key("script", String, "path relative to the file that names it").required().never_null(),
    key("interpreter", TEXTS, "program that executes it, with its options; without one the script is executable itself"),
    key("args", List(&String), "arguments; placeholders are allowed"),
]);
