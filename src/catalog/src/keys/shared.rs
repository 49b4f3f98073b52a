//! Keys that several files share.

use super::DefaultValue::{Millis, Told, Value};
use super::Form::{
    AnyOf, Anything, Count, Duration, Filled, Flag, List, Map, Money, Number, NumberIn, Pattern, Size, String, Text, Whole, Words, Named,
};
use super::{Form, Key, Table, kept, key, table};
use crate::bounds::{ATTEMPTS_MAX, BACKOFF_INITIAL_MS, CHECK_TIMEOUT_MS, HOOK_TIMEOUT_MS, PROCESSES_MAX, RATE_LIMIT_WAITS_MAX, SECRET_TIMEOUT_MS};
use crate::model::spec::Retry;

/// A text or a list of texts.
pub(super) const TEXTS: Form = AnyOf(&[String, List(&String)]);

/// Failures in a row, or failures among the last runs.
const THRESHOLD: Form = Pattern("^ *[0-9]+( +of +[0-9]+)? *$");

/// An address without user, password and query.
pub(super) const ADDRESS: Form = Pattern(r"^https?://[^@?#\s]+$");

/// Where a key is.
pub(super) const KEY_SOURCE: Form = Pattern("^(env:|credential:|file:(/|~/)).+$");

/// Checks, each a map or prose for people.
pub(super) const CHECKS: Form = List(&AnyOf(&[Map(&CHECK), String]));

/// `verification` of a worker or a skill.
pub(super) const VERIFICATIONS: Form = AnyOf(&[CHECKS, Map(&VERIFICATION)]);

/// `sandbox`: a word, or a map.
pub(super) const SANDBOXES: Form = AnyOf(&[String, Form::False, Map(&SANDBOX)]);

/// `branch`: a name, or a map.
pub(super) const BRANCHES: Form = AnyOf(&[String, Number, Map(&BRANCH)]);

/// `local`: a path, or a list of them.
pub(super) const LOCALS: Form = AnyOf(&[ONE_LOCAL, List(&ONE_LOCAL)]);
const ONE_LOCAL: Form = AnyOf(&[String, Map(&LOCAL)]);

/// `env`: variables, each a name or a map; or a map of values.
pub(super) const VARIABLES: Form = AnyOf(&[List(&AnyOf(&[String, Map(&ENV)])), Named(&Text)]);

/// One hook: a command, or a map.
const ONE_HOOK: Form = AnyOf(&[String, Map(&HOOK)]);
const SEVERAL_HOOKS: Form = AnyOf(&[ONE_HOOK, List(&ONE_HOOK)]);

const STEP: Form = Words(&["execution", "verification"]);

/// The worker's `verification` map, and a skill's where it is a map.
pub(crate) static VERIFICATION: Table = table("VerificationMap", "Checks, by the time at which they run.", &[
    key("pre_execute", CHECKS, "checks before execution; a failure ends the run"),
    key("post_execute", CHECKS, "checks after execution"),
    key("approval_required", Flag, "every run needs approval").see("approval", "skill.md#approval").default(Value("false")),
    key("human_checkpoints", CHECKS, "text for the user who approves the run; listed among the checks as not run, never blocks"),
]);

/// An item of a list of checks.
pub(crate) static CHECK: Table = table("Check", "A check: a command or a manual review point.", &[
    key("check", String, "short name"),
    key("name", String, "same as `check`"),
    key("command", String, "shell text with placeholders; exit code 0 passes. Without it, the check is manual: recorded as not run"),
    key("description", String, "what it verifies"),
    key("must_pass", Flag, "`true`: a failure fails the attempt; `false`: a failure is only a warning").default(Value("true")),
    key("timeout", Duration, "time limit").default(Millis(CHECK_TIMEOUT_MS)),
    key("when", String, "accepted for compatibility, without effect; a value other than `always` and `exists` is a warning"),
    kept("max"),
    kept("min"),
]);

/// `wake` as a map.
pub(crate) static WAKE: Table = table("Wake", "A command that decides whether there is work.", &[
    key("command", String, "shell text. With exit code 0, empty output ends the run and any other output continues it. Other exit codes fail it").required().never_null(),
    key("timeout", Duration, "time limit").default(Millis(CHECK_TIMEOUT_MS)),
]);

/// The `retry` map.
pub(crate) static RETRY: Table = table("Retry", "Retry policy.", &[
    key("max_attempts", Whole(1, ATTEMPTS_MAX), "total attempts, 1 to 100").required().never_null(),
    key("backoff", AnyOf(&[Map(&BACKOFF), Duration]), "delay between attempts: a map, or one duration"),
    key("on", AnyOf(&[STEP, List(&STEP)]), "what to retry: `execution`, `verification` or both").never_null().default(Told("both")),
]);

/// The `backoff` map.
pub(crate) static BACKOFF: Table = table("Backoff", "Wait between attempts.", &[
    key("initial", Duration, "delay before the second attempt").default(Millis(BACKOFF_INITIAL_MS)),
    key("factor", NumberIn(1, 100), "multiplier of each further delay, 1 to 100").default(Value("2")),
    key("max", Duration, "longest delay").default(Millis(Retry::ONCE.max_ms)),
]);

/// `on_rate_limit`: a map, or `false`.
pub(super) const RATE_LIMITS: Form = AnyOf(&[Form::False, Map(&RATE_LIMIT)]);

/// The `on_rate_limit` map of the configuration, a worker or a skill.
pub(crate) static RATE_LIMIT: Table = table("RateLimit", "Waits at the rate limit of a model.", &[
    key("wait", Duration, "longest wait; a limit that ends later, or at an unknown time, fails the attempt").required().never_null(),
    key("times", Whole(1, RATE_LIMIT_WAITS_MAX), "waits per run, 1 to 100").default(Value("1")),
]);

/// The `hooks` map.
pub(crate) static HOOKS: Table = table("Hooks", "Commands that receive events of a run as JSON on standard input.", &[
    key("post_tools", SEVERAL_HOOKS, "after the checks of a mutating run: exit code 0 passes; 2 blocks, and so does a hook that cannot start, is killed or reaches a limit; other codes are warnings"),
    key("post_commit", SEVERAL_HOOKS, "after the commit is durable; a failure is a warning"),
]);

/// A hook as a map.
pub(crate) static HOOK: Table = table("Hook", "A hook with a time limit.", &[
    key("command", String, "shell text without placeholders").required().never_null(),
    key("timeout", Duration, "time limit").default(Millis(HOOK_TIMEOUT_MS)),
]);

/// The `notify` map of the configuration, a worker or a schedule.
pub(crate) static NOTIFY: Table = table("Notify", "Notifications about runs: by command, webhook or e-mail.", &[
    key("on_failure", CHANNELS, "when a streak of failed, timed-out or `unknown` runs begins, or a schedule pauses itself"),
    key("on_recovery", CHANNELS, "when a run succeeds after a streak, or a commit lands that could not land earlier"),
    key("on_missed", CHANNELS, "when a schedule has not succeeded in time; not repeated until it has succeeded"),
    key("on_approval", CHANNELS, "when a run needs approval, or the time to approve has expired"),
    key("after", AnyOf(&[Whole(1, 100), THRESHOLD]), "failures before `on_failure`: `3` in a row, or `2 of 5` (last five runs); at most 100").default(Told("`1`")),
    key("foreground", Flag, "notify also of runs followed in a terminal (`on_failure`, `on_recovery`)").default(Told("`false`")),
]);

/// A way of telling people.
pub(super) const CHANNELS: Form = AnyOf(&[String, Map(&CHANNEL)]);

/// A way of telling people as a map.
pub(crate) static CHANNEL: Table = table("NotifyChannel", "A notification channel: `command`, `webhook` or `sendmail`.", &[
    key("command", String, "shell text without placeholders; the event is JSON on standard input"),
    key("timeout", Duration, "time limit of `command`").default(Millis(HOOK_TIMEOUT_MS)),
    key("webhook", String, "URL `https://…`, or its location: `env:NAME`, `credential:NAME`, `file:/path`"),
    key("form", Words(&["json", "slack", "ntfy", "healthchecks"]), "webhook format: `json`, `slack`, `ntfy` or `healthchecks`").default(Value("json")),
    key("sendmail", TEXTS, "one e-mail address, or up to 20"),
]);

/// An item of `env` that is a map.
pub(crate) static ENV: Table = table("Env", "A variable: a secret and its location, or a plain value.", &[
    key("name", String, "variable name").never_null(),
    key("secret", Map(&SECRET), "location of the value: `credential`, `file` or `command`").default(Told("the engine's variable of that name, else the credential")),
    key("credential", String, "same as `secret: {credential: NAME}`"),
    key("as", Words(&["variable", "file"]), "`variable`: the value; `file`: path of a private file with the value").default(Value("variable")),
    key("value", Text, "non-secret value: shown, not masked"),
    key("plain", Flag, "pass the engine's variable, such as `HOME`, unmasked").default(Value("false")),
]);

/// `secret` of an item of `env`.
pub(crate) static SECRET: Table = table("Secret", "Location of a secret: exactly one of `credential`, `file` and `command`.", &[
    key("credential", String, "credential name, as in `LoadCredential=`"),
    key("file", String, "absolute or below `~/`; at most 16 KiB of text"),
    key("command", Filled(&String), "program with arguments that prints it, such as `[pass, show, stripe]`; no shell, no sandbox"),
    key("timeout", Duration, "time limit of `command`").default(Millis(SECRET_TIMEOUT_MS)),
]);

/// The `commit` map of a worker or a skill.
pub(crate) static COMMIT: Table = table("Commit", "The commit of a mutating run.", &[
    key("message", String, "template with `{{ … }}`").see("commits", "skill.md#commits").default(Told("from `workerctl.yaml`")),
]);

/// The `approval` map of the configuration, a worker or a skill.
pub(crate) static APPROVAL: Table = table("Approval", "Approval settings.", &[
    key("before", Words(&["execution", "landing"]), "approve `execution`, or `landing` of the changes")
        .default(Told("`landing` if `mutating`, else `execution`")),
    key("expires", Duration, "time to answer; then the run is denied").default(Value("7d")),
]);

/// `sandbox` as a map.
pub(crate) static SANDBOX: Table = table("SandboxMap", "What commands may access besides their worktree, outputs and temporary directory.", &[
    key("level", Words(&["auto", "required", "private", "off"]),
        "`auto`: use the sandbox if the kernel supports it; `required`: refuse the run if it does not; `private`: a container with private home and `/tmp`; `off`: none").default(Value("auto")),
    key("write", TEXTS, "additional writable paths: absolute, below `~/`, or relative to the workspace").default(Told("none")),
    key("reads", TEXTS, "readable paths, in the same form; `/`: everything except the [hidden files](#hidden-files)").default(Value("/")),
    key("network", AnyOf(&[Words(&["any", "none"]), Form::False, Map(&NETWORK)]), "`any`, `none`, or TCP ports: `{tcp: [53, 443]}`").default(Value("any")),
    key("unix_sockets", Flag, "allow Unix sockets, System V IPC and POSIX message queues").default(Value("false")),
]).refuses("restriction-malformed");

/// `network` of a sandbox as a map.
pub(crate) static NETWORK: Table = table("Network", "Allowed network access.", &[
    key("tcp", Form::Filled(&Whole(1, 65_535)), "reachable TCP ports").required().never_null(),
]);

/// The `limits` map of the configuration, a worker or a skill.
pub(crate) static LIMITS: Table = table("ResourceLimitsMap", "Resource limits of one command.", &[
    key("processes", Whole(1, PROCESSES_MAX),
        "concurrent processes, 1 to 4,194,304; threads do not count, zombies count while their parent lives").default(Value("1000")),
    key("written", Size, "bytes written to disks, 1 KiB to 1,024 TiB").default(Value("32GiB")),
]).refuses("restriction-malformed");

/// The `budget` map of the configuration, a worker or a skill.
pub(crate) static BUDGET: Table = table("BudgetMap", "Spending limits; the innermost value of each key applies.", &[
    key("tokens", Count, "tokens per run, without cache reads").default(Value("5000000")),
    key("money", Money, "cost per run; needs `prices` of its models").default(Told("no limit")),
    key("turns", Count, "turns per run, over all attempts").default(Value("200")),
    key("per_day", Map(&PER_DAY), "limits per day, counted for each level"),
]).refuses("restriction-malformed");

/// `per_day` of a budget.
pub(crate) static PER_DAY: Table = table("DayBudgetMap", "Spending limits per day.", &[
    key("money", Money, "cost of all runs per day").default(Told("no limit")),
    key("runs", Count, "runs per day").default(Told("no limit")),
]).refuses("restriction-malformed");

/// `branch` as a map.
pub(crate) static BRANCH: Table = table("Branch", "The branch that results land on.", &[
    key("name", Text, "short name").required(),
    key("create", Flag, "create a missing branch").default(Value("false")),
]);

/// An item of `local` as a map.
pub(crate) static LOCAL: Table = table("Local", "A path of the checkout, provided in the worktree.", &[
    key("path", String, "relative to the workspace").required().never_null(),
    key("link", Flag, "link to the checkout instead of a copy; the target is not isolated").default(Value("false")),
]);

/// `schedule` and `cron` among the keys of a skill, a worker or `execution`.
pub(super) const SCHEDULES: Form = AnyOf(&[ONE_SCHEDULE, List(&ONE_SCHEDULE)]);
const ONE_SCHEDULE: Form = AnyOf(&[String, Map(&super::SCHEDULE)]);

/// Hours, ranges of hours, or a list of them.
pub(super) const HOURS: Form = AnyOf(&[SOME_HOURS, List(&SOME_HOURS)]);
const SOME_HOURS: Form = AnyOf(&[Whole(0, 23), String]);

/// Instructions are for models wherever they stand.
pub(super) const INSTRUCTIONS: Key = key("instructions", TEXTS, "instructions for a model, sent before the text of the skill file; never used as a template or command");

/// What is evaluated beyond the schema.
pub(super) const ANYTHING: Form = Anything;
