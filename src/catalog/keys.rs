//! The keys that are known, and what is said about others.

use super::report::Report;
use super::view::View;

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
];

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

/// What people write for another key, though it looks nothing like it.
const SYNONYMS: &[(&str, &str)] = &[
    ("command", "run"),
    ("cmd", "run"),
    ("inputs", "interface"),
    ("outputs", "interface"),
    ("checks", "verification"),
    ("max_retries", "retry"),
    ("retries", "retry"),
    ("tz", "timezone"),
    ("zone", "timezone"),
    ("expression", "cron"),
    ("secrets", "env"),
    ("environment", "env"),
    ("worktree", "isolation"),
    ("use_worktree", "isolation"),
];

/// Says which keys of a map are not known, and which of them look like one that is.
pub(crate) fn report_unknown(map: View<'_>, known: &[&str], report: &mut Report) {
    report_unknown_but(map, known, None, report);
}

/// The same where one key restricts: what looks like it is an error, since what it was to restrict would go free.
pub(crate) fn report_unknown_but(
    map: View<'_>,
    known: &[&str],
    restricting: Option<&str>,
    report: &mut Report,
) {
    for (key, value) in map.entries() {
        if known.contains(&key) || key.starts_with("x-") {
            continue;
        }
        if let Some(meant) = restricting.filter(|name| may_mean(key, name)) {
            report.error(
                "restriction-malformed",
                value.key_place(),
                format!("`{key}` is not a known key: what it is to restrict is not known"),
                &format!("did you mean `{meant}`?"),
            );
        } else if let Some(suggestion) = suggest(key, known) {
            report.warning(
                "key-misspelled",
                value.key_place(),
                format!("`{key}` is not a known key and has no effect"),
                &format!("did you mean `{suggestion}`?"),
            );
        } else {
            report.note(
                "unknown-key",
                value.key_place(),
                format!("`{key}` is kept and not evaluated"),
                "",
            );
        }
    }
}

/// Whether a key may be another one that restricts, misspelt or under another name.
fn may_mean(key: &str, restricting: &str) -> bool {
    let of_trust = |text: &str| text.to_lowercase().contains("trust");
    suggest(key, &[restricting]).is_some() || (of_trust(restricting) && of_trust(key))
}

/// The known key that `key` most likely means.
pub(crate) fn suggest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let wanted = plain(key);
    if let Some(same) = known.iter().find(|name| plain(name) == wanted) {
        return Some(same);
    }
    if let Some((_, meant)) = SYNONYMS.iter().find(|(word, _)| plain(word) == wanted) {
        return known.iter().find(|name| *name == meant).copied();
    }
    known
        .iter()
        .filter(|name| name.len() >= 4 && wanted.len() >= 4)
        .map(|name| (strsim::osa_distance(&wanted, &plain(name)), *name))
        .filter(|(distance, name)| *distance <= if name.len() >= 7 { 2 } else { 1 })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_recognised_and_strangers_are_not() {
        let table = [
            ("descriptipn", Some("description")),
            ("Name", Some("name")),
            ("allowed_tools", Some("allowed-tools")),
            ("user-invokable", Some("user-invocable")),
            ("mutatng", Some("mutating")),
            ("command", Some("run")),
            ("persona", None),
            ("rum", None),
            ("colour", None),
        ];
        for (key, expected) in table {
            assert_eq!(suggest(key, SKILL), expected, "{key}");
        }
        for key in ["tz", "zone"] {
            assert_eq!(suggest(key, SCHEDULE), Some("timezone"));
        }
    }
}
