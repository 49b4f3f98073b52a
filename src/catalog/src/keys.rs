//! The keys that are known, and what is said about others.

mod unknown;

pub(crate) use unknown::{refuse_unknown, report_unknown, report_unknown_but, suggest};

/// Top level of worker.yaml.
pub(crate) const WORKER_FILE: &[&str] = &[
    "worker",
    "id",
    "name",
    "type",
    "version",
    "company",
    "description",
    "team",
    "status",
    "execution",
    "schedule",
    "cron",
    "state_machine",
    "context",
    "verification",
    "output",
    "instructions",
    "skills",
    "env",
    "cwd",
    "shell",
    "hooks",
    "notify",
    "commit",
    "retry",
    "timeout",
    "max_runtime",
    "limits",
    "budget",
    "agent",
    "sandbox",
    "isolation",
    "approval",
    "branch",
    "keep",
    "local",
    "push",
    "mcp",
    "cli",
    "reporting",
    "tasks",
    "audit",
    "tags",
    "external_skills",
    "identity",
    "knowledge",
    "integrations",
    "exports",
    "capabilities",
    "adapters",
    "metadata",
];

/// The `worker` map.
pub(crate) const IDENTITY: &[&str] = &[
    "id",
    "name",
    "type",
    "version",
    "description",
    "team",
    "status",
    "company",
    "visibility",
    "tags",
    "created",
    "author",
];

/// The `execution` map.
pub(crate) const EXECUTION: &[&str] = &[
    "mode",
    "schedule",
    "timezone",
    "max_runtime",
    "timeout",
    "retry_attempts",
    "retry",
    "model",
    "sandbox",
    "isolation",
    "spawn_method",
    "codex_model",
    "codex_flags",
];

/// The `state_machine` map.
pub(crate) const STATE_MACHINE: &[&str] = &["enabled", "max_retries", "hooks", "states"];

/// The worker's `verification` map, and a skill's where it is a map.
pub(crate) const VERIFICATION: &[&str] = &[
    "pre_execute",
    "post_execute",
    "approval_required",
    "human_checkpoints",
];

/// An item of a list of checks.
pub(crate) const CHECK: &[&str] = &[
    "check",
    "name",
    "command",
    "description",
    "must_pass",
    "timeout",
    "when",
    "max",
    "min",
];

/// A skill, inline or in the frontmatter of a file of its own.
pub(crate) const SKILL: &[&str] = &[
    "id",
    "name",
    "description",
    "file",
    "path",
    "trigger",
    "interface",
    "run",
    "verification",
    "mutating",
    "idempotent",
    "on_crash",
    "timeout",
    "max_runtime",
    "limits",
    "budget",
    "retry",
    "cwd",
    "shell",
    "env",
    "hooks",
    "commit",
    "instructions",
    "agent",
    "model",
    "sandbox",
    "isolation",
    "branch",
    "writes",
    "keep",
    "local",
    "parallel",
    "push",
    "filtered",
    "workerctl",
    "approval",
    "approval_required",
    "human_checkpoints",
    "schedule",
    "cron",
    "tags",
    "version",
    "metadata",
    "license",
    "compatibility",
    "allowed-tools",
    "required_tools",
    "disable-model-invocation",
    "user-invocable",
    "argument-hint",
    "preferred_model",
    "max_iterations",
    "input_schema",
    "toolsets",
    "files",
    "context",
];

/// Keys of a skill that are evaluated; all others are kept as data.
pub(crate) const SKILL_EVALUATED: &[&str] = &[
    "id",
    "name",
    "description",
    "file",
    "path",
    "interface",
    "run",
    "verification",
    "mutating",
    "idempotent",
    "on_crash",
    "timeout",
    "max_runtime",
    "limits",
    "retry",
    "cwd",
    "shell",
    "env",
    "hooks",
    "commit",
    "instructions",
    "schedule",
    "cron",
    "isolation",
    "approval",
    "approval_required",
    "human_checkpoints",
    "branch",
    "writes",
    "keep",
    "local",
    "parallel",
    "push",
    "filtered",
    "workerctl",
];

/// The `interface` map.
pub(crate) const INTERFACE: &[&str] = &["inputs", "outputs"];

/// An input.
pub(crate) const INPUT: &[&str] = &[
    "name",
    "type",
    "required",
    "default",
    "description",
    "enum",
    "pattern",
    "min",
    "max",
    "integer",
    "min_length",
    "max_length",
    "items",
    "sensitive",
    "allow_dash",
];

/// An output.
pub(crate) const OUTPUT: &[&str] = &["name", "type", "destination", "description"];

/// `run` as a map.
pub(crate) const RUN: &[&str] = &["script", "interpreter", "args"];

/// The `retry` map.
pub(crate) const RETRY: &[&str] = &["max_attempts", "backoff", "on"];

/// The `backoff` map.
pub(crate) const BACKOFF: &[&str] = &["initial", "factor", "max"];

/// The `hooks` map.
pub(crate) const HOOKS: &[&str] = &["post_tools", "post_commit"];

/// A hook as a map.
pub(crate) const HOOK: &[&str] = &["command", "timeout"];

/// The `notify` map of the configuration, a worker or a schedule.
pub(crate) const NOTIFY: &[&str] = &["on_failure", "on_recovery", "on_missed", "on_approval"];

/// An item of `env` that is a map.
pub(crate) const ENV: &[&str] = &["name", "credential"];

/// The `commit` map of a worker or a skill.
pub(crate) const COMMIT: &[&str] = &["message"];

/// The `approval` map of the configuration, a worker or a skill.
pub(crate) const APPROVAL: &[&str] = &["before", "expires"];

/// `sandbox` as a map.
pub(crate) const SANDBOX: &[&str] = &["level", "write", "reads", "network", "unix_sockets"];

/// The `limits` map of the configuration, a worker or a skill.
pub(crate) const LIMITS: &[&str] = &["processes", "written"];

/// The `budget` map of the configuration, a worker or a skill.
pub(crate) const BUDGET: &[&str] = &["tokens", "money", "turns", "per_day"];

/// `per_day` of a budget.
pub(crate) const PER_DAY: &[&str] = &["money", "runs"];

/// `branch` as a map.
pub(crate) const BRANCH: &[&str] = &["name", "create"];

/// An item of `local` as a map.
pub(crate) const LOCAL: &[&str] = &["path", "link"];

/// A schedule as a map.
pub(crate) const SCHEDULE: &[&str] = &[
    "cron",
    "schedule",
    "every",
    "at",
    "after",
    "watch",
    "on_commit",
    "seconds",
    "timezone",
    "dst",
    "id",
    "skill",
    "inputs",
    "overlap",
    "max_concurrent",
    "catch_up",
    "jitter",
    "blackout",
    "blocked_hours",
    "start",
    "end",
    "max_actions",
    "pause_on_failure",
    "expected_within",
    "on_missed",
    "notify",
    "enabled",
];

/// `after` of a schedule.
pub(crate) const AFTER: &[&str] = &["skill", "on"];

/// `watch` of a schedule.
pub(crate) const WATCH: &[&str] = &["paths", "settle"];

/// `on_commit` of a schedule.
pub(crate) const ON_COMMIT: &[&str] = &["branch"];

/// `dst` of a schedule.
pub(crate) const DST: &[&str] = &["gap", "fold"];

/// `catch_up` of a schedule.
pub(crate) const CATCH_UP: &[&str] = &["mode", "window"];

/// `blackout` of a schedule.
pub(crate) const BLACKOUT: &[&str] = &["hours", "dates"];

/// Top level of workerctl.yaml.
pub(crate) const CONFIG: &[&str] = &[
    "timezone",
    "max_parallel",
    "queue",
    "commit",
    "threads",
    "metrics",
    "hooks",
    "notify",
    "approval",
    "sandbox",
    "branch",
    "push",
    "land_wait",
    "trees",
    "timeout",
    "grace",
    "drain_grace",
    "output_bytes_max",
    "limits",
    "keep_refs",
    "blocked_hours",
    "skills",
    "mcp",
    "access",
    "models",
    "budget",
    "toolsets",
    "instances",
];

/// A model of workerctl.yaml.
pub(crate) const CONFIG_MODEL: &[&str] = &[
    "provider",
    "model",
    "base_url",
    "key",
    "max_output_tokens",
    "temperature",
    "timeouts",
    "prices",
];

/// `timeouts` of a model.
pub(crate) const CONFIG_MODEL_TIMEOUTS: &[&str] = &["connect", "headers", "silence", "turn"];

/// `prices` of a model.
pub(crate) const CONFIG_PRICES: &[&str] = &["input", "output", "cache_read", "cache_write"];

/// A tool set of workerctl.yaml.
pub(crate) const CONFIG_TOOLSET: &[&str] = &["builtin", "commands", "mcp", "read_only"];

/// A command of a tool set.
pub(crate) const CONFIG_TOOL: &[&str] = &["run", "description", "schema", "timeout"];

/// `mcp` of a tool set that starts a program.
pub(crate) const CONFIG_TOOL_PROGRAM: &[&str] = &["command", "env", "start", "call"];

/// `mcp` of a tool set that reaches a server.
pub(crate) const CONFIG_TOOL_SERVER: &[&str] = &["url", "key", "start", "call"];

/// `commit` of workerctl.yaml.
pub(crate) const CONFIG_COMMIT: &[&str] = &["author", "message"];

/// `queue` of workerctl.yaml.
pub(crate) const CONFIG_QUEUE: &[&str] = &["max"];

/// `trees` of workerctl.yaml.
pub(crate) const CONFIG_TREES: &[&str] = &["max", "min_free", "idle"];

/// `skills` of workerctl.yaml.
pub(crate) const CONFIG_SKILLS: &[&str] = &["families", "personal", "roots", "untrusted"];

/// `mcp` of workerctl.yaml.
pub(crate) const CONFIG_MCP: &[&str] = &["mutating", "list_bytes", "wait", "refresh", "http"];

/// `mcp.http` of workerctl.yaml.
pub(crate) const CONFIG_MCP_HTTP: &[&str] =
    &["listen", "token_file", "origins", "sessions", "idle"];

/// `access` of workerctl.yaml.
pub(crate) const CONFIG_ACCESS: &[&str] = &["admin", "read"];

/// Those who have a role.
pub(crate) const CONFIG_MEMBERS: &[&str] = &["users", "groups"];

/// An item of `roots` as a map.
pub(crate) const CONFIG_SKILL_ROOT: &[&str] = &["path", "dialect", "trusted"];

/// `threads` and `metrics` of workerctl.yaml.
pub(crate) const CONFIG_DIRECTORY: &[&str] = &["directory"];
