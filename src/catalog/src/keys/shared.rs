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
pub(crate) static VERIFICATION: Table = table("VerificationMap", "Checks by the moment at which they run.", &[
    key("pre_execute", CHECKS, "checks before anything is touched; one that fails ends the run"),
    key("post_execute", CHECKS, "checks after execution"),
    key("approval_required", Flag, "whether a person has to approve every run").see("approval", "definitions.md#approval").default(Value("false")),
    key("human_checkpoints", CHECKS, "what a person looks at: recorded as not run, never as passed; whoever approves is shown it, alone it holds nothing up"),
]);

/// An item of a list of checks.
pub(crate) static CHECK: Table = table("Check", "A check: a command, or something that a person looks at.", &[
    key("check", String, "short name of the check"),
    key("name", String, "the same as `check`"),
    key("command", String, "shell text; exit code 0 passes. Placeholders such as `{output}` are allowed. Without it the check is for people and is recorded as not run"),
    key("description", String, "what it verifies"),
    key("must_pass", Flag, "whether its failure fails the run; `false` makes it a warning").default(Value("true")),
    key("timeout", Duration, "its limit").default(Millis(CHECK_TIMEOUT_MS)),
    key("when", String, "`always` or `exists`; with any other condition the check always runs"),
    kept("max"),
    kept("min"),
]);

/// `wake` as a map.
pub(crate) static WAKE: Table = table("Wake", "A command that decides whether there is anything to do.", &[
    key("command", String, "shell text. Exit code 0 without output: there is nothing to do; with output: the run goes on; anything else fails it").required().never_null(),
    key("timeout", Duration, "its limit").default(Millis(CHECK_TIMEOUT_MS)),
]);

/// The `retry` map.
pub(crate) static RETRY: Table = table("Retry", "How often and when a failed attempt is followed by another.", &[
    key("max_attempts", Whole(1, ATTEMPTS_MAX), "all attempts together, the first included; at most 100").required().never_null(),
    key("backoff", AnyOf(&[Map(&BACKOFF), Duration]), "wait between attempts: a map, or one span of time"),
    key("on", AnyOf(&[STEP, List(&STEP)]), "what is tried again: `execution`, `verification` or both").never_null().default(Told("both")),
]);

/// The `backoff` map.
pub(crate) static BACKOFF: Table = table("Backoff", "Wait between attempts.", &[
    key("initial", Duration, "wait before the second attempt").default(Millis(BACKOFF_INITIAL_MS)),
    key("factor", NumberIn(1, 100), "factor from wait to wait").default(Value("2")),
    key("max", Duration, "longest wait").default(Millis(Retry::ONCE.max_ms)),
]);

/// `on_rate_limit`: a map, or `false`.
pub(super) const RATE_LIMITS: Form = AnyOf(&[Form::False, Map(&RATE_LIMIT)]);

/// The `on_rate_limit` map of the configuration, a worker or a skill.
pub(crate) static RATE_LIMIT: Table = table("RateLimit", "What a run does whose model takes no more requests for a while.", &[
    key("wait", Duration, "longest wait; a limit that ends later, or of which the server does not say when it ends, fails the attempt").required().never_null(),
    key("times", Whole(1, RATE_LIMIT_WAITS_MAX), "how often one run waits, at most 100").default(Value("1")),
]);

/// The `hooks` map.
pub(crate) static HOOKS: Table = table("Hooks", "Commands that are told about a run; the event is JSON on their standard input.", &[
    key("post_tools", SEVERAL_HOOKS, "after a mutating run passed its checks: exit code 0 passes, 2 blocks, anything else is a warning"),
    key("post_commit", SEVERAL_HOOKS, "after the commit is durable; a failure is a warning"),
]);

/// A hook as a map.
pub(crate) static HOOK: Table = table("Hook", "A hook with its limit.", &[
    key("command", String, "shell text without placeholders").required().never_null(),
    key("timeout", Duration, "its limit").default(Millis(HOOK_TIMEOUT_MS)),
]);

/// The `notify` map of the configuration, a worker or a schedule.
pub(crate) static NOTIFY: Table = table("Notify", "How people are told how runs went: by a command, a webhook or a mail.", &[
    key("on_failure", CHANNELS, "how people are told of the first of a streak of runs that failed, reached a limit or ended as `unknown`; and that a schedule paused itself"),
    key("on_recovery", CHANNELS, "how people are told that a run succeeded after it, or a kept commit landed"),
    key("on_missed", CHANNELS, "how people are told that a schedule has not succeeded in time, once until it does").see("when it did not run", "schedules.md#when-it-did-not-run"),
    key("on_approval", CHANNELS, "how people are told that a run waits for a person, and that nobody answered in time").see("approval", "definitions.md#approval"),
    key("after", AnyOf(&[Whole(1, 100), THRESHOLD]), "how many runs must fail before `on_failure`: `3` in a row, or `2 of 5`, the last five runs; at most 100").see("threshold", "notices.md#threshold").default(Told("`1`")),
    key("foreground", Flag, "whether `on_failure` and `on_recovery` include runs that a person follows in a terminal with `workerctl run`").see("foreground runs", "notices.md#foreground-runs").default(Told("`false`")),
]);

/// A way of telling people.
pub(super) const CHANNELS: Form = AnyOf(&[String, Map(&CHANNEL)]);

/// A way of telling people as a map.
pub(crate) static CHANNEL: Table = table("NotifyChannel", "One way of telling people: `command`, `webhook` or `sendmail`.", &[
    key("command", String, "shell text without placeholders; the event is JSON on its standard input"),
    key("timeout", Duration, "limit of `command`").default(Millis(HOOK_TIMEOUT_MS)),
    key("webhook", String, "where the address of a web server is that is sent a request: `env:NAME`, `credential:NAME`, `file:/path`; or the address itself, `https://…`"),
    key("form", Words(&["json", "slack", "ntfy", "healthchecks"]), "what `webhook` is sent").default(Value("json")),
    key("sendmail", TEXTS, "who gets a mail by way of `sendmail`: an address, or a list of up to 20"),
]);

/// An item of `env` that is a map.
pub(crate) static ENV: Table = table("Env", "A variable: a secret and where its value is, or a value that is no secret.", &[
    key("name", String, "name of the variable").never_null(),
    key("secret", Map(&SECRET), "where its value is: one of `credential`, `file` and `command`").default(Told("the engine's variable of that name, else the credential that is called so")),
    key("credential", String, "the same as `secret: {credential: NAME}`"),
    key("as", Words(&["variable", "file"]), "what the variable holds: the value, or the path of a private `file` with the value").default(Value("variable")),
    key("value", Text, "the value, if it is no secret: it is shown and not masked"),
    key("plain", Flag, "whether the engine's own variable of that name is passed on without masking, such as `HOME`").default(Value("false")),
]);

/// `secret` of an item of `env`.
pub(crate) static SECRET: Table = table("Secret", "Where the value of a secret variable is; one of the first three.", &[
    key("credential", String, "name of the credential as `LoadCredential=` of the service has it"),
    key("file", String, "the file that holds it: absolute, or below `~/`; at most 16 KiB of text"),
    key("command", Filled(&String), "program and arguments of the command that prints it, such as `[pass, show, stripe]`: no shell is between, and it runs outside of the sandbox"),
    key("timeout", Duration, "limit of the command").default(Millis(SECRET_TIMEOUT_MS)),
]);

/// The `commit` map of a worker or a skill.
pub(crate) static COMMIT: Table = table("Commit", "The commit of a mutating run.", &[
    key("message", String, "template of the message, with `{{ … }}`").see("commits", "definitions.md#commits").default(Told("the configuration's")),
]);

/// The `approval` map of the configuration, a worker or a skill.
pub(crate) static APPROVAL: Table = table("Approval", "How a person is asked for approval.", &[
    key("before", Words(&["execution", "landing"]), "before what a person is asked: `execution` of the command, or `landing` of what it changed")
        .default(Told("`landing` of a mutating skill in a tree of its own, `execution` of all others")),
    key("expires", Duration, "how long they have to answer; then it is denied").default(Value("7d")),
]);

/// `sandbox` as a map.
pub(crate) static SANDBOX: Table = table("SandboxMap", "What commands may touch besides their tree, or the place of their outputs, and a directory for temporary files.", &[
    key("level", Words(&["auto", "required", "private", "off"]),
        "`auto`, where the kernel can; `required`, else nothing starts; `private`, with a home and a `/tmp` of its own besides; `off`").default(Value("auto")),
    key("write", TEXTS, "what they may change and read: absolute, below `~/`, or relative to the workspace").default(Told("nothing more")),
    key("reads", TEXTS, "what they may read, in the same form; `/` is everything except for hidden files").default(Value("/")),
    key("network", AnyOf(&[Words(&["any", "none"]), Form::False, Map(&NETWORK)]), "`any`, `none`, or TCP to some ports: `{tcp: [53, 443]}`").default(Value("any")),
    key("unix_sockets", Flag, "whether they may use Unix sockets, System V IPC and POSIX message queues").default(Value("false")),
]).refuses("restriction-malformed");

/// `network` of a sandbox as a map.
pub(crate) static NETWORK: Table = table("Network", "What the network lets through.", &[
    key("tcp", Form::Filled(&Whole(1, 65_535)), "ports that may be reached over TCP").required().never_null(),
]);

/// The `limits` map of the configuration, a worker or a skill.
pub(crate) static LIMITS: Table = table("ResourceLimitsMap", "What the processes of one command may use.", &[
    key("processes", Whole(1, PROCESSES_MAX),
        "how many of its processes there may be at a time, 1 to 4,194,304: its own, and dead ones whose parent has not waited for them; threads, and dead ones whose parent has ended too, do not count").default(Value("1000")),
    key("written", Size, "how much they may write to disks together, 1 KiB to 1,024 TiB").default(Value("32GiB")),
]).refuses("restriction-malformed");

/// The `budget` map of the configuration, a worker or a skill.
pub(crate) static BUDGET: Table = table("BudgetMap", "What runs with a model may spend; of each key the innermost level counts.", &[
    key("tokens", Count, "tokens of one run, those read from a cache left out").default(Value("5000000")),
    key("money", Money, "money of one run; needs `prices` of every model that it counts for").default(Told("no limit")),
    key("turns", Count, "turns of one run, all attempts together").default(Value("200")),
    key("per_day", Map(&PER_DAY), "what the runs of a day may spend; each level counts its own"),
]).refuses("restriction-malformed");

/// `per_day` of a budget.
pub(crate) static PER_DAY: Table = table("DayBudgetMap", "What the runs of a day may spend.", &[
    key("money", Money, "money of all runs of a day").default(Told("no limit")),
    key("runs", Count, "how many runs there may be in a day").default(Told("no limit")),
]).refuses("restriction-malformed");

/// `branch` as a map.
pub(crate) static BRANCH: Table = table("Branch", "The branch that results land on.", &[
    key("name", Text, "its short name").required(),
    key("create", Flag, "whether it is made where it is missing").default(Value("false")),
]);

/// An item of `local` as a map.
pub(crate) static LOCAL: Table = table("Local", "A path of the checkout that a tree is given.", &[
    key("path", String, "relative to the workspace").required().never_null(),
    key("link", Flag, "`true`: a link to the checkout instead of a copy; what is behind it is outside of every promise").default(Value("false")),
]);

/// `schedule` and `cron` among the keys of a skill, a worker or `execution`.
pub(super) const SCHEDULES: Form = AnyOf(&[ONE_SCHEDULE, List(&ONE_SCHEDULE)]);
const ONE_SCHEDULE: Form = AnyOf(&[String, Map(&super::SCHEDULE)]);

/// Hours, ranges of hours, or a list of them.
pub(super) const HOURS: Form = AnyOf(&[SOME_HOURS, List(&SOME_HOURS)]);
const SOME_HOURS: Form = AnyOf(&[Whole(0, 23), String]);

/// Instructions are for models wherever they stand.
pub(super) const INSTRUCTIONS: Key = key("instructions", TEXTS, "for a model, before the text of the file; never a template, never run as a command");

/// What is evaluated beyond the schema.
pub(super) const ANYTHING: Form = Anything;
