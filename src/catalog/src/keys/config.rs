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
const PLACEMENT: &str = "skill.md#branch-worktree-and-push";

/// Top level of workerctl.yaml.
pub(crate) static CONFIG: Table = table("ConfigFile", "Engine configuration.", &[
    key("timezone", String, "IANA time zone of dates, displayed times and commands (`TZ`)").default(Value("UTC")),
    key("max_parallel", Whole(0, PARALLEL_MAX), "maximum concurrent runs; `0`: the number of CPUs, at least 2").default(Value("0")),
    key("queue", Map(&CONFIG_QUEUE), "limits of the queue"),
    key("commit", Map(&CONFIG_COMMIT), "commits of runs"),
    key("threads", Map(&CONFIG_DIRECTORY), "where threads are stored"),
    key("metrics", Map(&CONFIG_METRICS), "where metrics are stored"),
    key("hooks", Map(&HOOKS), "hooks for all skills; they run first"),
    key("notify", Map(&NOTIFY), "notifications about runs"),
    key("approval", Map(&APPROVAL), "how approvals work"),
    key("sandbox", SANDBOXES, "sandbox of commands: `auto`, `required`, `private`, `off`, or a map").see("sandbox", "sandbox.md").default(Value("auto")),
    key("branch", BRANCHES, "branch that results land on: its name, or `{name, create}`").see("branch", PLACEMENT),
    key("push", Text, "remote to push landed results to; `true`: `origin`").default(Value("false")),
    key("push_timeout", Duration, "time limit of one push").default(Value("5m")),
    key("land_wait", Duration, "how long landing waits for locks and locally changed files").default(Value("10m")),
    key("trees", Map(&CONFIG_TREES), "limits of worktrees"),
    key("on_rate_limit", RATE_LIMITS, "wait at rate limits: `{wait, times}`, or `false`").see("rate limits", "models-agents.md#rate-limits").default(Value("false")),
    key("timeout", Duration, "default time limit of one attempt").default(Value("1h")),
    key("grace", Duration, "time between SIGTERM and SIGKILL").default(Value("5s")),
    key("drain_grace", Duration, "how long draining waits for active runs").default(Value("60s")),
    key("output_bytes_max", Whole(1_024, OUTPUT_BYTES_MAX), "logged bytes per stream of a command, 1 KiB to 1 GiB; the middle of longer output is omitted").default(Value("10485760")),
    key("limits", Map(&LIMITS), "resource limits per command; the innermost value of each key applies"),
    key("keep_refs", Duration, "how long changes of unsuccessful runs can be shown").default(Value("14d")),
    key("retention", Map(&CONFIG_RETENTION), "how long data is kept").see("retention", "configuration.md#retention"),
    key("blocked_hours", HOURS, "hours (0 to 23) without slots: `[2, 3]`, `\"22-5\"`; a schedule's own value wins").default(Value("[]")),
    key("workers", Map(&CONFIG_WORKERS), "where workers are read from").see("workers", "configuration.md#workers"),
    key("skills", Map(&CONFIG_SKILLS), "skill directories outside of workers").see("skill files", "skill-files.md"),
    key("protected_files", List(&String), "more patterns of files that runs change only with `approval_required`; a pattern such as `!CLAUDE.md` makes an exception").see("protected files", "configuration.md#protected-files").never_null().default(Value("[]")),
    key("mcp", Map(&CONFIG_MCP), "MCP server").see("MCP", "mcp.md"),
    key("web", Map(&CONFIG_WEB), "web UI").see("web UI", "web.md"),
    key("access", Map(&CONFIG_ACCESS), "roles of users other than root and the engine's user").see("access", "configuration.md#access"),
    key("models", Named(&Map(&CONFIG_MODEL)), "models by alias; `default` replaces a missing or unknown alias").see("models", "models-agents.md#models").default(Value("{}")),
    key("budget", Map(&BUDGET), "spending limits per run and per day").see("budgets", "models-agents.md#limits-and-budgets"),
    key("agent", Map(&super::AGENT), "agent program that executes instructions").see("agent programs", "models-agents.md#agent-clis"),
    key("toolsets", Named(&Map(&CONFIG_TOOLSET)), "tools for models besides the built-in ones, by name of the set").see("tool sets", "models-agents.md#tool-sets").default(Value("{}")),
    key("instances", Form::Schema(instances), "values of placeholders in worker ids, by id").see("instances", "worker.md#instances").default(Value("{}")),
]);

/// `queue` of workerctl.yaml.
pub(crate) static CONFIG_QUEUE: Table = table("Queue", "The queue.", &[
    key("max", Whole(1, QUEUE_MAX), "maximum waiting runs; more are refused with `queue_full`").default(Value("10000")),
]);

/// `commit` of workerctl.yaml.
pub(crate) static CONFIG_COMMIT: Table = table("ConfigCommit", "Commits of runs.", &[
    key("author", String, "`Name <mail>`").default(Told("git's `author.*` and `user.*`")),
    key("message", String, "template with `{{ … }}`").default(Value("\"{{skill}}: {{title}}\"")),
]);

/// `threads` of workerctl.yaml.
pub(crate) static CONFIG_DIRECTORY: Table = table("Directory", "A directory.", &[
    key("directory", String, "directory of the run logs, relative to the workspace").default(Value("workspace/threads")),
]);

/// `metrics` of workerctl.yaml.
pub(crate) static CONFIG_METRICS: Table = table("MetricsDirectory", "A directory.", &[
    key("directory", String, "path relative to the workspace").default(Value("workspace/metrics")),
]);

/// `trees` of workerctl.yaml.
pub(crate) static CONFIG_TREES: Table = table("Trees", "Limits of worktrees.", &[
    key("max", Whole(1, TREES_MAX), "maximum worktrees, at most 1,024").default(Value("8")),
    key("min_free", Size, "bytes kept free on their file system").default(Value("1GiB")),
    key("idle", Duration, "worktrees unused for this long are removed").default(Value("14d")),
]);

/// `retention` of workerctl.yaml.
pub(crate) static CONFIG_RETENTION: Table = table("Retention", "How long data is kept.", &[
    key("runs", Duration, "how long ended runs and their logs are kept; at least `2d`").default(Value("90d")),
    key("runs_min", Whole(0, RUNS_MIN_MAX), "newest runs of each skill kept regardless of age").default(Value("20")),
    key("approvals", Duration, "how long approved or denied runs are kept; at least `runs`").default(Value("365d")),
    key("threads", Size, "maximum total size, at least twice `output_bytes_max`; beyond it, the oldest runs are deleted early").default(Value("10GiB")),
    key("slots", Duration, "how long slots, and states of removed schedules, are kept").default(Value("365d")),
]);

/// `workers` of workerctl.yaml.
pub(crate) static CONFIG_WORKERS: Table = table("Workers", "Where workers are read from.", &[
    key("paths", Filled(&String), "directories read instead of `workers`; `*` matches one name: `packages/*/workers`").never_null().default(Value("[workers]")),
]);

/// `skills` of workerctl.yaml.
pub(crate) static CONFIG_SKILLS: Table = table("Skills", "Skill directories outside of workers.", &[
    key("families", SOME_FAMILIES, "directories in workspace and home whose `skills/` are read, in this order; `[]`: none").never_null().default(Value("[.agents, .agent, .claude, .wave]")),
    key("personal", Flag, "read skills of the home directory").default(Value("true")),
    key("roots", List(&AnyOf(&[String, Map(&CONFIG_SKILL_ROOT)])), "more skill directories, searched last: paths, or `{path, dialect, trusted}`").never_null().default(Value("[]")),
    key("untrusted", SOME_FAMILIES, "`families` whose skills in the workspace need `workerctl skill trust` before use. If this value is invalid, or no valid configuration is known, all need it")
        .never_null().default(Value("[]")),
]);

/// An item of `roots` as a map.
pub(crate) static CONFIG_SKILL_ROOT: Table = table("SkillRoot", "An additional skill directory.", &[
    key("path", String, "absolute, below `~/`, or relative to the workspace").never_null(),
    key("dialect", Words(&["agent", "wave", "workspace"]), "`agent`: `<name>/SKILL.md`; `wave`: the same with the rules of the agent tool Wave; `workspace`: also `<name>.md`, `<name>.yaml`").default(Value("agent")),
    key("trusted", Flag, "`false`: skills are listed, but run only after `workerctl skill trust`").default(Value("true")),
]);

/// `mcp` of workerctl.yaml.
pub(crate) static CONFIG_MCP: Table = table("Mcp", "MCP server.", &[
    key("mutating", Words(&["ask", "allow", "refuse"]), "for mutating skills: `ask` the user (refused if the client cannot), `allow` or `refuse`; an invalid value means `refuse`").default(Value("ask")),
    key("list_bytes", Whole(LIST_BYTES_MIN, LIST_BYTES_MAX), "bytes of the skill list in a tool description; beyond, descriptions are shortened, then names omitted").default(Value("900")),
    key("tools", AnyOf(&[Words(&["all", "small"]), List(&Words(&MCP_TOOLS))]), "tools offered: `all`, `small` (without `Skill` and `loadSkill`), or names").default(Value("all")),
    key("typed", Whole(0, MCP_TYPED_MAX), "maximum runnable skills offered as separate tools").default(Value("0")),
    key("wait", Duration, "how long a call waits before it returns the run's id").default(Value("45s")),
    key("refresh", Duration, "interval of checks for changed definitions; at most `30s`").default(Value("30s")),
    key("http", Map(&CONFIG_MCP_HTTP), "MCP over HTTP, on the daemon's socket and optionally TCP"),
]);

/// `mcp.http` of workerctl.yaml.
pub(crate) static CONFIG_MCP_HTTP: Table = table("McpHttp", "MCP over HTTP.", &[
    key("listen", String, "loopback address for TCP, such as `127.0.0.1:8931`"),
    key("token_file", String, "file with the bearer token for TCP: absolute, below `~/` or `$CREDENTIALS_DIRECTORY/`").default(Told("`mcp-token` in the state directory")),
    key("origins", List(&String), "allowed web origins, such as `http://localhost:6274`").default(Value("[]")),
    key("sessions", Whole(1, SESSIONS_MAX), "maximum concurrent sessions").default(Value("64")),
    key("idle", Duration, "idle time after which a session ends; at most `24h`").default(Value("30m")),
]);

/// `web` of workerctl.yaml.
pub(crate) static CONFIG_WEB: Table = table("Web", "Web UI.", &[
    key("listen", String, "loopback address of the web UI, such as `127.0.0.1:8930`").default(Told("a free port, only while `workerctl web` runs")),
    key("read_only", Flag, "refuse all changes; an invalid value means `true`").default(Value("false")),
]);

/// `access` of workerctl.yaml.
pub(crate) static CONFIG_ACCESS: Table = table("ConfigAccess", "Roles of users on the control socket.", &[
    key("admin", Map(&CONFIG_MEMBERS), "full access"),
    key("read", Map(&CONFIG_MEMBERS), "read-only access"),
]);

const PRINCIPALS: Form = List(&AnyOf(&[String, Whole(0, ID_MAX)]));

/// Those who have a role.
pub(crate) static CONFIG_MEMBERS: Table = table("RoleMembers", "Users and groups with a role; no user has both roles.", &[
    key("users", PRINCIPALS, "user names or ids").never_null().default(Value("[]")),
    key("groups", PRINCIPALS, "group names or ids, supplementary groups included").never_null().default(Value("[]")),
]);
