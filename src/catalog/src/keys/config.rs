//! Keys of workerctl.yaml, but for those about models.

use super::DefaultValue::{Told, Value};
use super::Form::{AnyOf, Duration, Filled, Flag, List, Map, Named, Size, String, Text, Whole, Words};
use super::models::instances;
use super::shared::{BRANCHES, HOURS, RATE_LIMITS, SANDBOXES};
use super::{APPROVAL, BUDGET, CONFIG_MODEL, CONFIG_TOOLSET, Form, HOOKS, LIMITS, NOTIFY, Table, key, table};
use crate::bounds::{ID_MAX, LIST_BYTES_MAX, LIST_BYTES_MIN, OUTPUT_BYTES_MAX, PARALLEL_MAX, QUEUE_MAX, RUNS_MIN_MAX, SESSIONS_MAX, TREES_MAX};
use crate::model::{MCP_TOOLS, MCP_TYPED_MAX};
use crate::model::skill_roots::FAMILIES;

const SOME_FAMILIES: Form = List(&Words(&FAMILIES));
const PLACEMENT: &str = "definitions.md#where-a-run-works-and-where-its-result-lands";

/// Top level of workerctl.yaml.
pub(crate) static CONFIG: Table = table("ConfigFile", "The engine's configuration.", &[
    key("timezone", String, "IANA zone of dates in texts, of displayed times, and of commands (`TZ`)").default(Value("UTC")),
    key("max_parallel", Whole(0, PARALLEL_MAX), "how many runs may be active at once; 0: the number of processors, at least 2").default(Value("0")),
    key("queue", Map(&CONFIG_QUEUE), "the queue"),
    key("commit", Map(&CONFIG_COMMIT), "commits of runs"),
    key("threads", Map(&CONFIG_DIRECTORY), "where threads lie"),
    key("metrics", Map(&CONFIG_METRICS), "where metrics lie"),
    key("hooks", Map(&HOOKS), "commands that are told about runs, before those of workers and skills"),
    key("notify", Map(&NOTIFY), "how people are told how runs went"),
    key("approval", Map(&APPROVAL), "how a person is asked where `approval_required` says that one must approve"),
    key("sandbox", SANDBOXES, "what commands may touch, enforced by the kernel, where neither skill nor worker says: `auto`, `required`, `private`, `off`, or a map").see("sandbox", "definitions.md#sandbox").default(Value("auto")),
    key("branch", BRANCHES, "the branch that results land on where neither skill nor worker names one: `reports`, or `{name: reports, create: true}`").see("where a result lands", PLACEMENT),
    key("push", Text, "the remote that landed results are pushed to where neither skill nor worker names one; `true` is `origin`").see("where a result lands", PLACEMENT).default(Value("false")),
    key("push_timeout", Duration, "limit of one push").default(Value("5m")),
    key("land_wait", Duration, "how long a result waits to land while a lock or a changed file is in its way").default(Value("10m")),
    key("trees", Map(&CONFIG_TREES), "bounds of the trees that runs work in"),
    key("on_rate_limit", RATE_LIMITS, "whether runs wait in the queue where the server of a model takes no more requests and neither skill nor worker says: `{wait, times}`, or `false`").see("rate limits", "agents.md#rate-limits").default(Value("false")),
    key("timeout", Duration, "limit of one attempt, where the skill has none").default(Value("1h")),
    key("grace", Duration, "time between TERM and KILL").default(Value("5s")),
    key("drain_grace", Duration, "how long an engine that drains waits for what runs").default(Value("60s")),
    key("output_bytes_max", Whole(1_024, OUTPUT_BYTES_MAX), "bytes of each stream of a command that its log keeps, of more the first and the last half: 1 KiB to 1 GiB").default(Value("10485760")),
    key("limits", Map(&LIMITS), "what one command may use; of each key the innermost level counts").see("limits", "definitions.md#limits"),
    key("keep_refs", Duration, "how long the change of a run that did not succeed can be shown").default(Value("14d")),
    key("retention", Map(&CONFIG_RETENTION), "how long what is recorded stays").see("retention", "operations.md#what-is-kept-and-for-how-long"),
    key("blocked_hours", HOURS, "hours from 0 to 23 in which no schedule is due that names none of its own: `[2, 3]` or `\"22-5\"`").default(Value("[]")),
    key("workers", Map(&CONFIG_WORKERS), "where workers are").see("workers", "configuration.md#workers"),
    key("skills", Map(&CONFIG_SKILLS), "where skills are that belong to no worker").see("skills", "configuration.md#skills"),
    key("protected_files", List(&String), "patterns of further files that a run changes only with `approval_required`, and exceptions (`!CLAUDE.md`)").see("protected files", "configuration.md#protected-files").never_null().default(Value("[]")),
    key("mcp", Map(&CONFIG_MCP), "what clients of the Model Context Protocol may do").see("settings", "mcp.md#settings"),
    key("web", Map(&CONFIG_WEB), "where the web page is served").see("the web page", "web.md"),
    key("access", Map(&CONFIG_ACCESS), "who may ask the engine for what over its socket, beside its own user and root").see("access", "configuration.md#access"),
    key("models", Named(&Map(&CONFIG_MODEL)), "models by alias; `default` counts for skills that name none, or one that is not there").see("models", "configuration.md#models").default(Value("{}")),
    key("budget", Map(&BUDGET), "what runs with a model may spend: one run where neither skill nor worker says, and all runs of a day").see("budgets", "configuration.md#budgets"),
    key("agent", Map(&super::AGENT), "the agent program that executes instructions where neither skill nor worker says").see("agent programs", "agents.md#agent-programs"),
    key("toolsets", Named(&Map(&CONFIG_TOOLSET)), "tool sets by name: what models may call beside the built-in tools").see("tool sets", "configuration.md#tool-sets").default(Value("{}")),
    key("instances", Form::Schema(instances), "workers that are made from a worker whose id holds placeholders: by its id, the values for each").see("instances", "configuration.md#instances").default(Value("{}")),
]);

/// `queue` of workerctl.yaml.
pub(crate) static CONFIG_QUEUE: Table = table("Queue", "The queue.", &[
    key("max", Whole(1, QUEUE_MAX), "how many runs may wait; beyond, they are refused with `queue_full`").default(Value("10000")),
]);

/// `commit` of workerctl.yaml.
pub(crate) static CONFIG_COMMIT: Table = table("ConfigCommit", "Commits of runs.", &[
    key("author", String, "`Name <mail>` of their author").default(Told("git's `author.*` and `user.*`")),
    key("message", String, "template of their message, with `{{ … }}`").default(Value("\"{{skill}}: {{title}}\"")),
]);

/// `threads` of workerctl.yaml.
pub(crate) static CONFIG_DIRECTORY: Table = table("Directory", "A directory.", &[
    key("directory", String, "path relative to the workspace").default(Value("workspace/threads")),
]);

/// `metrics` of workerctl.yaml.
pub(crate) static CONFIG_METRICS: Table = table("MetricsDirectory", "A directory.", &[
    key("directory", String, "path relative to the workspace").default(Value("workspace/metrics")),
]);

/// `trees` of workerctl.yaml.
pub(crate) static CONFIG_TREES: Table = table("Trees", "Bounds of the trees that runs work in.", &[
    key("max", Whole(1, TREES_MAX), "how many there may be at once, at most 1,024").default(Value("8")),
    key("min_free", Size, "bytes of their file system that stay free").default(Value("1GiB")),
    key("idle", Duration, "a tree that is not used for this long is removed").default(Value("14d")),
]);

/// `retention` of workerctl.yaml.
pub(crate) static CONFIG_RETENTION: Table = table("Retention", "How long what is recorded stays.", &[
    key("runs", Duration, "how long a run stays after its end, with its journal and its thread; at least `2d`").default(Value("90d")),
    key("runs_min", Whole(0, RUNS_MIN_MAX), "how many of the newest runs of each skill stay, however old").default(Value("20")),
    key("approvals", Duration, "how long a run stays that a person approved or denied; at least `runs`").default(Value("365d")),
    key("threads", Size, "bytes that threads may have together; beyond, the oldest runs go before their time; at least twice `output_bytes_max`").default(Value("10GiB")),
    key("slots", Duration, "how long rows of slots stay, and the stored state of a schedule that is defined no more").default(Value("365d")),
]);

/// `workers` of workerctl.yaml.
pub(crate) static CONFIG_WORKERS: Table = table("Workers", "Where workers are.", &[
    key("paths", Filled(&String), "directories of the workspace that workers are read from, instead of `workers`; `*` stands for one name, such as in `packages/*/workers`").never_null().default(Value("[workers]")),
]);

/// `skills` of workerctl.yaml.
pub(crate) static CONFIG_SKILLS: Table = table("Skills", "Where skills are that belong to no worker.", &[
    key("families", SOME_FAMILIES, "directories of the workspace, and of the home directory, whose `skills/` are read, in this order; `[]` reads none").never_null().default(Value("[.agents, .agent, .claude, .wave]")),
    key("personal", Flag, "whether those of the home directory are read").default(Value("true")),
    key("roots", List(&AnyOf(&[String, Map(&CONFIG_SKILL_ROOT)])), "further directories of skills, after all others: paths, or maps with `path`, `dialect` and `trusted`").never_null().default(Value("[]")),
    key("untrusted", SOME_FAMILIES, "families whose skills in the workspace are listed, and not handed out until `workerctl skill trust`. A value that cannot be read means all, and so does an error anywhere in the file while no good one is known")
        .never_null().default(Value("[]")),
]);

/// An item of `roots` as a map.
pub(crate) static CONFIG_SKILL_ROOT: Table = table("SkillRoot", "A further directory of skills.", &[
    key("path", String, "relative to the workspace, absolute, or below `~/`").never_null(),
    key("dialect", Words(&["agent", "wave", "workspace"]), "which files are skills there, and what holds for them: `agent`, `<name>/SKILL.md`; `wave`, the same under the rules of Wave; `workspace`, also `<name>.md` and `<name>.yaml`").default(Value("agent")),
    key("trusted", Flag, "`false`: its skills are listed and not run until `workerctl skill trust`").default(Value("true")),
]);

/// `mcp` of workerctl.yaml.
pub(crate) static CONFIG_MCP: Table = table("Mcp", "What clients of the Model Context Protocol may do.", &[
    key("mutating", Words(&["ask", "allow", "refuse"]), "what happens when they ask for a skill that changes things: `ask` the person at the client, and refuse where the client cannot; `allow`; `refuse`. A value that cannot be read means `refuse`").default(Value("ask")),
    key("list_bytes", Whole(LIST_BYTES_MIN, LIST_BYTES_MAX), "bytes of the list of skills in the description of a tool; beyond, descriptions are shortened, then names left out").default(Value("900")),
    key("tools", AnyOf(&[Words(&["all", "small"]), List(&Words(&MCP_TOOLS))]), "which tools are listed: `all`, `small` (without `Skill` and `loadSkill`), or their names").default(Value("all")),
    key("typed", Whole(0, MCP_TYPED_MAX), "how many skills that run are tools of their own, with their inputs, at most").default(Value("0")),
    key("wait", Duration, "how long a call waits for its run before it answers with the run's id").default(Value("45s")),
    key("refresh", Duration, "how often changed definitions are looked for; at most 30s").default(Value("30s")),
    key("http", Map(&CONFIG_MCP_HTTP), "the protocol over HTTP, on the daemon's socket and where TCP is asked for"),
]);

/// `mcp.http` of workerctl.yaml.
pub(crate) static CONFIG_MCP_HTTP: Table = table("McpHttp", "The protocol over HTTP.", &[
    key("listen", String, "where it is served over TCP too, such as `127.0.0.1:8931`; a loopback address"),
    key("token_file", String, "the file that holds the bearer token of TCP: absolute, below `~/` or `$CREDENTIALS_DIRECTORY/`").default(Told("`mcp-token` of the state directory")),
    key("origins", List(&String), "origins whose pages may ask, such as `http://localhost:6274`").default(Value("[]")),
    key("sessions", Whole(1, SESSIONS_MAX), "sessions at once").default(Value("64")),
    key("idle", Duration, "after how long a session ends that nobody uses; at most 24h").default(Value("30m")),
]);

/// `web` of workerctl.yaml.
pub(crate) static CONFIG_WEB: Table = table("Web", "Where the web page is served.", &[
    key("listen", String, "where the daemon serves the web page, such as `127.0.0.1:8930`; a loopback address").default(Told("only while `workerctl web` runs")),
    key("read_only", Flag, "whether nobody changes anything there. A value that cannot be read means `true`").default(Value("false")),
]);

/// `access` of workerctl.yaml.
pub(crate) static CONFIG_ACCESS: Table = table("ConfigAccess", "Who may ask the engine for what.", &[
    key("admin", Map(&CONFIG_MEMBERS), "who may do everything"),
    key("read", Map(&CONFIG_MEMBERS), "who may do what changes nothing"),
]);

const PRINCIPALS: Form = List(&AnyOf(&[String, Whole(0, ID_MAX)]));

/// Those who have a role.
pub(crate) static CONFIG_MEMBERS: Table = table("RoleMembers", "Those who have a role; nobody has both.", &[
    key("users", PRINCIPALS, "names or numbers of users").never_null().default(Value("[]")),
    key("groups", PRINCIPALS, "names or numbers of groups, the further ones of a user included").never_null().default(Value("[]")),
]);
