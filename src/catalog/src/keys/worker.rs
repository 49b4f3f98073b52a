//! Keys of worker.yaml.

use super::DefaultValue::{Told, Value};
use super::Form::{AnyOf, Duration, Flag, List, Map, String, Text, Whole, Words};
use super::shared::{
    ANYTHING, BRANCHES, INSTRUCTIONS, LOCALS, RATE_LIMITS, SANDBOXES, SCHEDULES, TEXTS, VARIABLES, VERIFICATIONS,
};
use super::{APPROVAL, BUDGET, COMMIT, Form, HOOKS, LIMITS, NOTIFY, RETRY, SKILL, Table, kept, key, table};
use crate::bounds::ATTEMPTS_MAX;

const CONFIGURED: super::DefaultValue = Told("from `workerctl.yaml`");
const SKILLS: Form = List(&AnyOf(&[Map(&SKILL), String]));

/// Top level of worker.yaml.
pub(crate) static WORKER_FILE: Table = table("WorkerFile", "A worker with its skills.", &[
    key("worker", Map(&IDENTITY), "identity of the worker"),
    key("id", Text, "the id, if `worker` is missing"),
    key("name", Text, "the name, and the id if `worker` and `id` are missing"),
    key("type", Text, "`worker.type`, if `worker` is missing"),
    key("version", Text, "`worker.version`, if `worker` is missing"),
    kept("company"),
    key("description", Text, "`worker.description`, if `worker` is missing"),
    kept("team"),
    kept("status"),
    key("execution", Map(&EXECUTION), "when and how skills run").and_kept(),
    key("schedule", SCHEDULES, "when a skill is due: cron expression, map or list").see("schedules", "schedule.md").and_kept(),
    key("cron", SCHEDULES, "alias of `schedule`; if both are set, the schedules of both apply").and_kept(),
    key("state_machine", Map(&STATE_MACHINE), "accepted for compatibility with HQ, another worker format; only `max_retries` has an effect").and_kept(),
    key("context", ANYTHING, "workspace files that a model gets: first the list `base`, then `dynamic`. An item is a path or `{pattern: PATH}`. Other keys have no effect").and_kept(),
    key("verification", VERIFICATIONS, "checks of every skill, before its own").see("checks", "checks-retries.md#checks"),
    kept("output"),
    INSTRUCTIONS,
    key("skills", AnyOf(&[SKILLS, Map(&INSTALLED)]), "skills besides the files in `skills/`").default(Told("only those files")),
    key("env", VARIABLES, "variables for every skill: secret names, `{name, secret}`, or values (`{CI: \"1\"}`)").see("environment", "skill.md#environment"),
    key("cwd", String, "working directory, relative to the workspace; its repository receives the commits").default(Told("the workspace")),
    key("shell", Words(&["sh", "bash"]), "`sh` or `bash`").default(Value("sh")),
    key("hooks", Map(&HOOKS), "hooks, before each skill's own").see("hooks", "skill.md#hooks"),
    key("notify", Map(&NOTIFY), "notifications about runs").see("notifications", "notifications.md").default(CONFIGURED),
    key("commit", Map(&COMMIT), "commit settings").see("commits", "skill.md#commits").default(CONFIGURED),
    key("retry", Map(&RETRY), "retry policy; overrides `retry_attempts` and `max_retries`").see("retries", "checks-retries.md#retries"),
    key("timeout", Duration, "time limit of one attempt's command").default(Told("from `workerctl.yaml`")),
    key("on_rate_limit", RATE_LIMITS, "wait at rate limits: `{wait, times}`, or `false`").see("rate limits", "models-agents.md#rate-limits").default(CONFIGURED),
    key("max_runtime", Duration, "time limit from first execution to end of verification, including delays between attempts; starts again after a rate limit"),
    key("limits", Map(&LIMITS), "resource limits per command, check and hook; the innermost value of each key applies").see("limits", "skill.md#limits").default(CONFIGURED).and_kept(),
    key("budget", Map(&BUDGET), "spending limits: `{tokens, money, turns}` per run, `per_day` for all runs")
        .see("budgets", "models-agents.md#limits-and-budgets").default(CONFIGURED).and_kept(),
    key("agent", AnyOf(&[Map(&super::AGENT), String]), "agent program that executes instructions. A plain string has no effect").see("agent programs", "models-agents.md#agent-clis").default(Told("`cli.binary`, else from `workerctl.yaml`")).and_kept(),
    key("sandbox", SANDBOXES, "sandbox of commands: `auto`, `required`, `private`, `off`, or a map").see("sandbox", "sandbox.md").default(CONFIGURED).and_kept(),
    key("approval", Map(&APPROVAL), "approval settings: `{before, expires}`").see("approval", "skill.md#approval").default(CONFIGURED).and_kept(),
    key("branch", BRANCHES, "branch that results land on: its name, or `{name, create}`").see("branch", PLACEMENT).default(CONFIGURED),
    key("keep", TEXTS, "git-ignored paths, such as `node_modules/`, kept between runs"),
    key("local", LOCALS, "checkout paths, such as `.env`, provided in worktrees"),
    key("push", Text, "remote to push landed results to; `true`: `origin`").default(CONFIGURED),
    kept("mcp"),
    key("cli", ANYTHING, "key of HQ: `cli: {binary: NAME}` has the same effect as `agent: {cli: NAME}`").and_kept(),
    kept("reporting"),
    kept("tasks"),
    kept("audit"),
    kept("tags"),
    kept("external_skills"),
    kept("identity"),
    kept("knowledge"),
    kept("integrations"),
    kept("exports"),
    kept("capabilities"),
    kept("adapters"),
    kept("metadata"),
])
.removed(&["isolation"]);

pub(super) const PLACEMENT: &str = "skill.md#branch-worktree-and-push";

/// The `worker` map.
pub(crate) static IDENTITY: Table = table("Identity", "Identity of a worker.", &[
    key("id", Text, "unique in the workspace: lowercase letters, digits, dashes. With placeholders (`cfo-{company}`), a template: listed and checked, never run")
        .see("instances", "worker.md#instances").required(),
    key("name", Text, "display name").default(Told("the id")),
    key("type", Text, "any word, such as `CodeWorker`; only shown"),
    key("version", Text, "text: `1.10` stays `1.10`"),
    key("description", Text, "its purpose"),
    kept("team"),
    kept("status"),
    kept("company"),
    kept("visibility"),
    kept("tags"),
    kept("created"),
    kept("author"),
]);

/// The `execution` map.
pub(crate) static EXECUTION: Table = table("Execution", "When and how skills run.", &[
    key("mode", Words(&["on_demand", "on-demand", "scheduled", "event_triggered", "event-triggered"]),
        "`on_demand`, `scheduled` or `event_triggered`; the last two need a schedule").default(Told("`scheduled` with a schedule, else `on_demand`")),
    key("schedule", SCHEDULES, "alias of the worker's `schedule`; if both are set, the schedules of both apply"),
    key("timezone", Text, "IANA time zone of schedules without one").default(CONFIGURED),
    key("max_runtime", Duration, "same as the worker's `max_runtime`, which wins"),
    key("timeout", Duration, "same as the worker's `timeout`, which wins"),
    key("retry_attempts", Whole(0, ATTEMPTS_MAX - 1), "number of retries; mutating skills are retried only if `idempotent: true`").default(Value("0")),
    key("retry", Map(&RETRY), "same as the worker's `retry`, which wins"),
    key("model", Text, "model alias for skills without one").see("models", "models-agents.md#models").default(Value("default")),
    key("sandbox", SANDBOXES, "same as the worker's `sandbox`, which wins"),
    kept("spawn_method"),
    kept("codex_model"),
    kept("codex_flags"),
])
.removed(&["isolation"]);

/// The `state_machine` map.
pub(crate) static STATE_MACHINE: Table = table("StateMachine", "Settings of `state_machine`, which cannot be disabled.", &[
    key("enabled", Flag, "always `true`; cannot be disabled").default(Value("true")),
    key("max_retries", Whole(0, ATTEMPTS_MAX - 1), "retries, if `execution.retry_attempts` is missing").default(Value("0")),
    key("hooks", Map(&HOOK_NAMES), "accepted without effect: `post_execute: [auto_checkpoint, log_metrics]`, `on_error: [log_error, checkpoint_error_state]`"),
    kept("states"),
]);

/// What saving and finishing always do.
pub(crate) const AFTER_EXECUTION: [&str; 2] = ["auto_checkpoint", "log_metrics"];

/// What is always done about an error.
pub(crate) const AFTER_ERROR: [&str; 2] = ["log_error", "checkpoint_error_state"];

/// `hooks` of `state_machine`.
pub(crate) static HOOK_NAMES: Table = table("HookNames", "Names of built-in actions.", &[
    key("post_execute", List(&Words(&AFTER_EXECUTION)), "actions after execution"),
    key("on_error", List(&Words(&AFTER_ERROR)), "actions after an error"),
]);

/// `skills` as a map.
pub(crate) static INSTALLED: Table = table("InstalledSkills", "Skills as HQ lists them.", &[
    key("installed", SKILLS, "the skills").never_null(),
]);
