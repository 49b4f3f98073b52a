//! Keys of a skill, in worker.yaml or in a file of its own.

use super::DefaultValue::{Told, Value};
use super::Form::{AnyOf, Duration, Filled, Flag, List, Map, String, Text, Whole, Words};
use super::shared::{
    ANYTHING, BRANCHES, INSTRUCTIONS, LOCALS, RATE_LIMITS, SANDBOXES, SCHEDULES, TEXTS, VARIABLES, VERIFICATIONS,
};
use super::worker::PLACEMENT;
use crate::bounds::ITERATIONS_MAX;
use super::{APPROVAL, BUDGET, COMMIT, DefaultValue, Form, HOOKS, LIMITS, RETRY, Table, WAKE, kept, kept_as, key, table};

const WORKERS: DefaultValue = Told("the worker's");

/// A file of a skill, where the keys stand below `skill`.
pub(crate) static SKILL_FILE: Table = table("SkillFile", "Frontmatter of a skill file: the keys below `skill:`, or at the top level.", &[
    key("skill", Map(&SKILL), "the skill").never_null(),
]);

/// A skill, inline or in the frontmatter of a file of its own.
pub(crate) static SKILL: Table = table("SkillKeys", "A skill.", &[
    key("id", Text, "unique in the worker: lowercase letters, digits, dashes").default(Told("the name, else the file name")),
    key("name", Text, "display name").default(Told("the file's heading, else the id")),
    key("description", Text, "one-sentence summary, at most 1,024 characters").default(Told("the file's first paragraph, else the id")),
    key("file", String, "its own file, relative to `worker.yaml`"),
    key("path", String, "same as `file`"),
    kept("trigger"),
    key("interface", Map(&INTERFACE), "inputs and outputs").see("interface", "inputs-outputs.md"),
    key("run", AnyOf(&[String, Filled(&Text), Map(&RUN)]), "shell text, program with arguments, or script. Without it, a model executes the instructions; without a model, the skill is unavailable"),
    key("verification", VERIFICATIONS, "checks after execution, or a map of checks").see("checks", "checks-retries.md#checks"),
    key("wake", AnyOf(&[String, Map(&WAKE)]), "command that decides whether there is work: text or map").see("wake gate", "checks-retries.md#wake-gate"),
    key("mutating", Flag, "changes the repository: runs in a worktree, fires hooks, lands a commit").default(Value("false")),
    key("idempotent", Flag, "may be started again after a crash or failure").see("after a crash", "checks-retries.md#after-a-crash")
        .default(Told("`true` unless `mutating`")),
    key("on_crash", Words(&["verify", "restore"]), "after a crash of the engine during a non-idempotent run. `verify`: check its result; `restore`: discard it, and end as `unknown`").default(Value("verify")),
    key("timeout", Duration, "time limit of one attempt's command").default(WORKERS),
    key("max_runtime", Duration, "time limit of all attempts, from first execution to end of verification").default(WORKERS),
    key("limits", Map(&LIMITS), "resource limits per command, check and hook; the innermost value of each key applies").see("limits", "skill.md#limits").default(WORKERS),
    key("budget", Map(&BUDGET), "spending limits; `per_day` counts only runs of this skill. With `run`, only `per_day.runs` applies")
        .see("budgets", "models-agents.md#limits-and-budgets").default(WORKERS).and_kept(),
    key("retry", Map(&RETRY), "retry policy").see("retries", "checks-retries.md#retries").default(WORKERS),
    key("on_rate_limit", RATE_LIMITS, "wait at rate limits: `{wait, times}`, or `false`").see("rate limits", "models-agents.md#rate-limits").default(WORKERS),
    key("cwd", String, "working directory, relative to the workspace").default(WORKERS),
    key("shell", Words(&["sh", "bash"]), "`sh` or `bash`").default(WORKERS),
    key("env", VARIABLES, "additional variables: secret names, `{name, secret}`, or values (`{CI: \"1\"}`); they override the worker's").see("environment", "skill.md#environment"),
    key("hooks", Map(&HOOKS), "hooks, after the worker's").see("hooks", "skill.md#hooks"),
    key("commit", Map(&COMMIT), "commit settings").see("commits", "skill.md#commits").default(WORKERS),
    INSTRUCTIONS,
    key("agent", AnyOf(&[Map(&super::AGENT), String]), "agent program; each key overrides the same key of the worker. If the worker names another program, the worker's keys are not used. A plain string has no effect").see("agent programs", "models-agents.md#agent-clis").default(WORKERS).and_kept(),
    key("model", Text, "model alias; `preferred_model` wins").and_kept(),
    key("sandbox", SANDBOXES, "sandbox of commands: `auto`, `required`, `private`, `off`, or a map").see("sandbox", "sandbox.md").default(WORKERS).and_kept(),
    key("branch", BRANCHES, "branch that results land on: its name, or `{name, create}`").see("branch", PLACEMENT).default(WORKERS),
    key("keep", TEXTS, "git-ignored paths, such as `node_modules/`, kept between runs").default(WORKERS),
    key("local", LOCALS, "checkout paths, such as `.env`, provided in the worktree").default(WORKERS),
    key("parallel", Flag, "run concurrently with other mutating runs of the repository").default(Value("false")),
    key("push", Text, "remote to push landed results to; `true`: `origin`").default(WORKERS),
    key("filtered", Words(&["stored"]), "`stored`: allow files with git filters; the worktree contains them unfiltered, as git stores them"),
    key("workerctl", Flag, "allow its commands to call the engine (otherwise refused) and use Unix sockets")
        .see("access", "../operations.md#access").default(Value("false")),
    key("approval", Map(&APPROVAL), "approval settings: `{before, expires}`").see("approval", "skill.md#approval").default(WORKERS),
    key("approval_required", Flag, "every run needs approval; `false` does not override the worker").default(Value("false")),
    key("human_checkpoints", List(&String), "text for the user who approves the run; listed among the checks as not run"),
    key("schedule", SCHEDULES, "when it is due: cron expression, map or list").see("schedules", "schedule.md"),
    key("cron", SCHEDULES, "alias of `schedule`; if both are set, the schedules of both apply"),
    kept("tags"),
    kept_as("version", Text),
    kept("metadata"),
    kept("license"),
    kept("compatibility"),
    key("allowed-tools", TEXTS, "the only tools a model may call").see("tools", "models-agents.md#tools").default(Told("all offered")).and_kept(),
    key("disallowed-tools", TEXTS, "tools a model may not call, even if allowed").and_kept(),
    key("required_tools", TEXTS, "tools without which it does not start").and_kept(),
    key("disable-model-invocation", Flag, "models may not start it").default(Value("false")).and_kept(),
    key("user-invocable", Flag, "offered to users of MCP clients as a prompt").default(Value("true")).and_kept(),
    kept_as("argument-hint", TEXTS),
    key("preferred_model", Text, "model alias; an unknown one means `default`, with a warning")
        .see("models", "models-agents.md#models").default(Told("`model`, else `execution.model`, else `default`")).and_kept(),
    key("max_iterations", AnyOf(&[Whole(1, ITERATIONS_MAX), Form::Pattern(r"^\s*[0-9]+\s*$")]), "model turns per attempt, 1 to 1,000")
        .default(Told("`5`; `50` for an agent CLI")).and_kept(),
    key("input_schema", ANYTHING, "JSON Schema of the instructions' inputs, instead of `interface.inputs`").and_kept(),
    key("toolsets", TEXTS, "additional tool sets; an unknown one is a warning").see("tool sets", "models-agents.md#tool-sets").and_kept(),
    key("files", ANYTHING, "files next to `SKILL.md` that a model may load: `{path, description}`").see("skill files", "skill-files.md").default(Told("all")).and_kept(),
    kept("context"),
])
.removed(&["isolation", "writes"]);

/// The `interface` map.
pub(crate) static INTERFACE: Table = table("Interface", "Inputs and outputs of a skill.", &[
    key("inputs", List(&Map(&INPUT)), "inputs of a run"),
    key("outputs", List(&Map(&OUTPUT)), "outputs of a run, always verified"),
]);

/// An input.
pub(crate) static INPUT: Table = table("Input", "An input.", &[
    key("name", String, "letter or `_`, then letters, digits, `_`, `-`; at most 64. `{name}` is its value").required().never_null(),
    key("type", Words(&["string", "number", "boolean", "array", "date", "path", "str", "text", "int", "integer", "float", "num", "bool", "list", "file"]), "`string`, `number`, `boolean`, `array`, `date` (`2026-01-23`) or `path`").default(Value("string")),
    key("required", Flag, "a value must be given").default(Value("false")),
    key("default", ANYTHING, "value if none is given"),
    key("description", String, "its purpose"),
    key("enum", Filled(&Text), "accepted values, 1 to 1,000"),
    key("pattern", String, "regular expression for the whole string or path, or each array item; linear time, no back-references"),
    key("min", Form::Number, "smallest number"),
    key("max", Form::Number, "largest number"),
    key("integer", Flag, "whole numbers only").default(Value("false")),
    key("min_length", Whole(0, u64::MAX), "minimum characters of a string or path, or items of an array"),
    key("max_length", Whole(0, u64::MAX), "maximum characters of a string or path, or items of an array"),
    key("items", ANYTHING, "type of array items").default(Value("string")),
    key("sensitive", Flag, "secret of 6 bytes to 16 KiB: masked, kept in a private file, deleted at the end").default(Value("false")),
    key("allow_dash", Flag, "allow a leading `-` where it could be an option").default(Value("false")),
]);

/// An output.
pub(crate) static OUTPUT: Table = table("Output", "An output.", &[
    key("name", String, "`{name}` is its path").default(Told("the type")),
    key("type", Words(&["markdown", "json", "file", "git_commit", "console"]), "`markdown`, `json`, `file`, `git_commit`, or `console` (no file, only the log)").default(Value("file")),
    key("destination", String, "path relative to the workspace, with placeholders such as `{date}`"),
    key("description", String, "its purpose"),
]);

/// `run` as a map.
pub(crate) static RUN: Table = table("RunScript", "A script next to the definition.", &[
    key("script", String, "path relative to the file that names it").required().never_null(),
    key("interpreter", TEXTS, "program with options; without it, the script must be executable"),
    key("args", List(&String), "arguments, with placeholders"),
]);
