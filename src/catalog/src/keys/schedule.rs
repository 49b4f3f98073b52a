//! Keys of a schedule.

use super::DefaultValue::{Millis, Told, Value};
use super::Form::{AnyOf, Duration, Flag, Map, Object, String, Text, Whole, Words};
use super::shared::{CHANNELS, HOURS, TEXTS};
use super::{Form, NOTIFY, Table, key, table};
use crate::bounds::{CONCURRENT_MAX, COUNT_MAX, SETTLE_MS};

const CATCH_UP_MODE: Form = Words(&["last", "all", "none"]);

/// A schedule as a map.
pub(crate) static SCHEDULE: Table = table("ScheduleMap",
    "When a skill runs. Set exactly one of `cron`, `every`, `at`, `after`, `watch` and `on_commit`.", &[
    key("cron", Text, "cron expression of five fields; `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`; `@reboot`: once per boot"),
    key("schedule", Text, "same as `cron`"),
    key("every", Duration, "interval, at least `1s`, from when the schedule was first seen"),
    key("at", TEXTS, "one or more times: local, such as `2026-12-24T18:00`, or RFC 3339"),
    key("after", AnyOf(&[Map(&AFTER), String]), "when another skill's run ends: `{skill: worker/skill, on: succeeded}`, or only the skill"),
    key("watch", AnyOf(&[Map(&WATCH), TEXTS]), "when files change: `{paths: [docs/, \"**/*.md\"], settle: 2s}`, or only the paths"),
    key("on_commit", AnyOf(&[Map(&ON_COMMIT), String]), "when a branch has new commits: `{branch: main}`, or only the branch"),
    key("seconds", Flag, "the expression has six fields, seconds first").default(Value("false")),
    key("timezone", Text, "IANA time zone").default(Told("`execution.timezone`, else `timezone` of `workerctl.yaml`")),
    key("dst", Map(&DST), "what happens to times that do not exist, or occur twice, when clocks change").default(Told("depends on the expression")),
    key("id", Text, "stable name: the id becomes `worker/skill#NAME`; letters, digits, `-`, `_`, `.`"),
    key("skill", Text, "ID of a skill of this worker, or `worker/skill`; not needed in a schedule of a skill").default(Told("the worker's only skill")),
    key("inputs", Object, "the skill's input values"),
    key("overlap", Words(&["skip", "buffer_one", "buffer_all", "cancel_other", "allow_all"]), "if the previous run is active: `skip`: skip the slot; `buffer_one`: start it afterwards, at most one waits; `buffer_all`: the same, all wait; `cancel_other`: cancel the previous run; `allow_all`: run concurrently").default(Value("skip")),
    key("max_concurrent", Whole(1, CONCURRENT_MAX), "alias of `overlap`: `1` means `skip`, a larger number `allow_all`"),
    key("catch_up", AnyOf(&[Map(&CATCH_UP), CATCH_UP_MODE]), "slots missed while no daemon ran: run `last`, `all` or `none`, or `{mode, window}`").default(Value("{mode: last, window: 24h}")),
    key("jitter", Duration, "maximum random delay of the start, fixed for each slot, never later than the next slot; must be shorter than `every`").default(Told("none")),
    key("blackout", Map(&BLACKOUT), "local hours and dates in which no slot is due and no delayed run starts"),
    key("blocked_hours", HOURS, "same as `blackout: {hours}`").default(Told("`blocked_hours` of `workerctl.yaml`")),
    key("start", Text, "no slots before: RFC 3339, or local date or time"),
    key("end", Text, "no slots after; a date includes that day"),
    key("max_actions", Whole(1, COUNT_MAX), "maximum runs in total, at least 1").default(Told("no limit")),
    key("pause_on_failure", AnyOf(&[Flag, Whole(1, COUNT_MAX)]), "consecutive failures before it pauses; `true`: 1").default(Told("never")),
    key("expected_within", Duration, "time after a slot within which a run must succeed").default(Told("one hour after the next slot")),
    key("on_missed", CHANNELS, "notification if it does not succeed in time; also allowed in `notify`").default(Told("the worker's")),
    key("notify", Map(&NOTIFY), "notifications about its runs").see("notifications", "notifications.md").default(Told("the worker's")),
    key("enabled", Flag, "`false` disables it").default(Value("true")),
]);

/// `after` of a schedule.
pub(crate) static AFTER: Table = table("Follows", "The skill that it follows.", &[
    key("skill", Text, "`skill` of this worker, or `worker/skill`").required(),
    key("on", Words(&["succeeded", "failed", "always"]), "outcomes: `succeeded`, `failed` or `always`").default(Value("succeeded")),
]);

/// `watch` of a schedule.
pub(crate) static WATCH: Table = table("Watch", "Files whose changes trigger the schedule.", &[
    key("paths", TEXTS, "paths or patterns, relative to the workspace").required(),
    key("settle", Duration, "time without changes before it is due").default(Millis(SETTLE_MS)),
]);

/// `on_commit` of a schedule.
pub(crate) static ON_COMMIT: Table = table("OnCommit", "The branch whose commits trigger the schedule.", &[
    key("branch", Text, "short branch name").required(),
]);

/// `dst` of a schedule.
pub(crate) static DST: Table = table("ShiftOfClock", "Local times that clock changes skip or repeat.", &[
    key("gap", Words(&["run_after", "skip"]), "times that do not exist: `run_after` the gap, or `skip`").default(Value("run_after")),
    key("fold", Words(&["first", "second", "both"]), "times that occur twice: `first`, `second` or `both`").default(Value("first")),
]);

/// `catch_up` of a schedule.
pub(crate) static CATCH_UP: Table = table("CatchUpMap", "Which missed slots run later.", &[
    key("mode", CATCH_UP_MODE, "`last`, `all` in sequence, or `none`").default(Value("last")),
    key("window", Duration, "how long after its slot a missed run may still start").default(Value("24h")),
]);

/// `blackout` of a schedule.
pub(crate) static BLACKOUT: Table = table("Blackout", "Hours and dates without slots.", &[
    key("hours", HOURS, "hours from 0 to 23: `[2, 3]`, or inclusive ranges such as `\"22-5\"` (until 05:59)"),
    key("dates", TEXTS, "dates, `YYYY-MM-DD`"),
]);
