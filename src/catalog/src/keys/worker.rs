//! Keys of worker.yaml.

use super::DefaultValue::{Told, Value};
use super::Form::{AnyOf, Duration, Flag, List, Map, String, Text, Whole, Words};
use super::shared::{
    ANYTHING, BRANCHES, INSTRUCTIONS, LOCALS, RATE_LIMITS, SANDBOXES, SCHEDULES, TEXTS, VARIABLES, VERIFICATIONS,
};
use super::{APPROVAL, BUDGET, COMMIT, Form, HOOKS, LIMITS, NOTIFY, RETRY, SKILL, Table, kept, key, table};
use crate::bounds::ATTEMPTS_MAX;

const CONFIGURED: super::DefaultValue = Told("the configuration's");
const SKILLS: Form = List(&AnyOf(&[Map(&SKILL), String]));

/// Top level of worker.yaml.
pub(crate) static WORKER_FILE: Table = table("WorkerFile", "A worker with its skills.", &[
    key("worker", Map(&IDENTITY), "who the worker is"),
    key("id", Text, "the id, where there is no `worker`"),
    key("name", Text, "the name, and the id where there is neither `worker` nor `id`"),
    key("type", Text, "kind of worker, any word; below `worker` where there is one"),
    key("version", Text, "version as text; below `worker` where there is one"),
    kept("company"),
    key("description", Text, "what the worker is for; below `worker` where there is one"),
    kept("team"),
    kept("status"),
    key("execution", Map(&EXECUTION), "when and how its skills run").and_kept(),
    key("schedule", SCHEDULES, "when a skill is due: a cron expression, a map, or a list of them").see("schedules", "definitions.md#schedules").and_kept(),
    key("cron", SCHEDULES, "the same as `schedule`; both may stand").and_kept(),
    key("state_machine", Map(&STATE_MACHINE), "settings of HQ's state machine").and_kept(),
    key("context", ANYTHING, "`base` and `dynamic`: lists of files that a model is given before its task, those of `base` first. Paths of single files in the workspace count, also as `pattern` of a map; what else stands there is kept").and_kept(),
    key("verification", VERIFICATIONS, "checks of every skill, before the skill's own").see("checks", "definitions.md#checks"),
    kept("output"),
    INSTRUCTIONS,
    key("skills", AnyOf(&[SKILLS, Map(&INSTALLED)]), "its skills, in addition to the files in `skills/`").see("skills", "definitions.md#skills").default(Told("the files in `skills/`")),
    key("env", VARIABLES, "variables that every skill sees: names of secrets, `{name, secret}` with where the value is, or values such as `{CI: \"1\"}`").see("environment", "definitions.md#environment"),
    key("cwd", String, "directory of the commands, relative to the workspace; a mutating run commits to the repository that it lies in").default(Told("the workspace")),
    key("shell", Words(&["sh", "bash"]), "shell of the texts: `sh` or `bash`").default(Value("sh")),
    key("hooks", Map(&HOOKS), "commands that are told about runs, before each skill's own").see("hooks", "definitions.md#hooks"),
    key("notify", Map(&NOTIFY), "how people are told how runs of its skills went").see("when runs fail", "definitions.md#when-runs-fail-and-succeed-again").default(CONFIGURED),
    key("commit", Map(&COMMIT), "commits of its skills").see("commits", "definitions.md#commits").default(CONFIGURED),
    key("retry", Map(&RETRY), "attempts of its skills; wins over `retry_attempts` and `max_retries`").see("retries", "definitions.md#retries"),
    key("timeout", Duration, "limit of one attempt's command").default(Told("`timeout` of the configuration")),
    key("on_rate_limit", RATE_LIMITS, "whether runs of its skills wait in the queue where the server of a model takes no more requests: `{wait, times}`, or `false`").see("rate limits", "agents.md#rate-limits").default(CONFIGURED),
    key("max_runtime", Duration, "limit from the first execution to the end of verification, waits between attempts included"),
    key("limits", Map(&LIMITS), "what the processes of each command, check and hook may use; of each key the innermost level counts").see("limits", "definitions.md#limits").default(CONFIGURED).and_kept(),
    key("budget", Map(&BUDGET), "what runs of its skills may spend: `{tokens, money, turns}` of one run where the skill does not say, and `per_day` of all of them together")
        .see("budgets", "configuration.md#budgets").default(CONFIGURED).and_kept(),
    key("agent", AnyOf(&[Map(&super::AGENT), String]), "the agent program that executes instructions of its skills; text is kept as data").see("agent programs", "agents.md#agent-programs").default(Told("`cli.binary`, else the configuration's")).and_kept(),
    key("sandbox", SANDBOXES, "what commands may touch, enforced by the kernel: `auto`, `required`, `private`, `off`, or a map").see("sandbox", "definitions.md#sandbox").default(CONFIGURED).and_kept(),
    key("approval", Map(&APPROVAL), "how a person is asked where `approval_required` says that one must approve: `{before, expires}`").see("approval", "definitions.md#approval").default(CONFIGURED).and_kept(),
    key("branch", BRANCHES, "the branch that results of its skills land on: its short name, or `{name, create}`").see("where a result lands", PLACEMENT).default(CONFIGURED),
    key("keep", TEXTS, "ignored directories and files, such as `node_modules/`, that stay in a tree from run to run").see("where a run works", PLACEMENT),
    key("local", LOCALS, "paths of the checkout that trees are given, such as `.env`").see("where a run works", PLACEMENT),
    key("push", Text, "the remote that landed results are pushed to; `true` is `origin`").see("where a result lands", PLACEMENT).default(CONFIGURED),
    kept("mcp"),
    key("cli", ANYTHING, "of HQ: `binary` may name an agent program, as `agent: {cli: …}` does").and_kept(),
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

pub(super) const PLACEMENT: &str = "definitions.md#where-a-run-works-and-where-its-result-lands";

/// The `worker` map.
pub(crate) static IDENTITY: Table = table("Identity", "Who a worker is.", &[
    key("id", Text, "how it is addressed, unique in the workspace: lower-case letters, digits and dashes. With a placeholder such as `cfo-{company}` the worker is a template: listed and checked, never run")
        .see("instances", "configuration.md#instances").required(),
    key("name", Text, "name for people").default(Told("the id")),
    key("type", Text, "CodeWorker, OpsWorker, ContentWorker, ResearchWorker, SocialWorker, Library or any other word"),
    key("version", Text, "version as text: `1.10` stays `1.10`"),
    key("description", Text, "what the worker is for"),
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
        "`on_demand`, when somebody asks; `scheduled`, at slots; `event_triggered`, when something happens").default(Told("`scheduled` with a schedule, else `on_demand`")),
    key("schedule", SCHEDULES, "the same as `schedule` of the worker; both may stand").see("schedules", "definitions.md#schedules"),
    key("timezone", Text, "IANA zone of the worker's schedules that name none").default(CONFIGURED),
    key("max_runtime", Duration, "the same as `max_runtime` of the worker, which wins"),
    key("timeout", Duration, "the same as `timeout` of the worker, which wins"),
    key("retry_attempts", Whole(0, ATTEMPTS_MAX - 1), "attempts after the first; for mutating skills only where they are `idempotent`").default(Value("0")),
    key("retry", Map(&RETRY), "the same as `retry` of the worker, which wins").see("retries", "definitions.md#retries"),
    key("model", Text, "alias of the model for its skills that name none").see("models", "configuration.md#models").default(Value("default")),
    key("sandbox", SANDBOXES, "the same as `sandbox` of the worker, which wins").see("sandbox", "definitions.md#sandbox"),
    kept("spawn_method"),
    kept("codex_model"),
    kept("codex_flags"),
])
.removed(&["isolation"]);

/// The `state_machine` map.
pub(crate) static STATE_MACHINE: Table = table("StateMachine", "Settings of HQ's state machine; it cannot be switched off.", &[
    key("enabled", Flag, "always true: the state machine cannot be switched off").default(Value("true")),
    key("max_retries", Whole(0, ATTEMPTS_MAX - 1), "attempts after the first, where `execution.retry_attempts` is absent").default(Value("0")),
    key("hooks", Map(&HOOK_NAMES), "names for what always happens: `post_execute: [auto_checkpoint, log_metrics]`, `on_error: [log_error, checkpoint_error_state]`"),
    kept("states"),
]);

/// What saving and finishing always do.
pub(crate) const AFTER_EXECUTION: [&str; 2] = ["auto_checkpoint", "log_metrics"];

/// What is always done about an error.
pub(crate) const AFTER_ERROR: [&str; 2] = ["log_error", "checkpoint_error_state"];

/// `hooks` of HQ's state machine.
pub(crate) static HOOK_NAMES: Table = table("HookNames", "Names of what saving and finishing always do.", &[
    key("post_execute", List(&Words(&AFTER_EXECUTION)), "what happens after execution"),
    key("on_error", List(&Words(&AFTER_ERROR)), "what happens after an error"),
]);

/// `skills` as a map.
pub(crate) static INSTALLED: Table = table("InstalledSkills", "Skills as HQ lists them.", &[
    key("installed", SKILLS, "the skills").never_null(),
]);
