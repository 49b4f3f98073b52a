//! Keys of a schedule.

use super::DefaultValue::{Millis, Told, Value};
use super::Form::{AnyOf, Duration, Flag, Map, Object, String, Text, Whole, Words};
use super::shared::{CHANNELS, HOURS, TEXTS};
use super::{Form, NOTIFY, Table, key, table};
use crate::bounds::{CONCURRENT_MAX, COUNT_MAX, SETTLE_MS};

const CATCH_UP_MODE: Form = Words(&["last", "all", "none"]);
const FATE: &str = "schedules.md#what-becomes-of-a-slot";

/// A schedule as a map.
pub(crate) static SCHEDULE: Table = table("ScheduleMap",
    "When a skill is due, and what becomes of its slots. Exactly one of `cron`, `every`, `at`, `after`, `watch` and `on_commit` says when.", &[
    key("cron", Text, "it is due at the times of an expression: minute, hour, day of the month, month and day of the week; or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`; or `@reboot`: once after each start of the machine")
        .see("expressions", "schedules.md#expressions"),
    key("schedule", Text, "the same as `cron`"),
    key("every", Duration, "it is due every so often, at least `1s`: that long after it was first seen, and so on").see("`every` and `at`", "schedules.md#every-and-at"),
    key("at", TEXTS, "it is due at one or more times of its zone, such as `2026-12-24T18:00`, or RFC 3339").see("`every` and `at`", "schedules.md#every-and-at"),
    key("after", AnyOf(&[Map(&AFTER), String]), "it is due when a run of another skill has ended: `{skill: worker/skill, on: succeeded}`; `after: skill` is short for successes").see("events", "schedules.md#events"),
    key("watch", AnyOf(&[Map(&WATCH), TEXTS]), "it is due when files have changed: `{paths: [docs/, \"**/*.md\"], settle: 2s}`, or the paths alone").see("events", "schedules.md#events"),
    key("on_commit", AnyOf(&[Map(&ON_COMMIT), String]), "it is due when a branch has new commits: `{branch: main}`, or the branch alone").see("events", "schedules.md#events"),
    key("seconds", Flag, "whether the expression has six fields, of which the first is seconds").default(Value("false")),
    key("timezone", Text, "IANA zone of its times").default(Told("`execution.timezone`, else `timezone` of the configuration")),
    key("dst", Map(&DST), "for `cron` and `at`: what becomes of times that a change of the clock skips or repeats").see("zones", "schedules.md#zones-and-daylight-saving").default(Told("by the expression")),
    key("id", Text, "its name, letters, digits, `-`, `_`, `.`: the schedule is then `worker/skill#name` whatever stands before it"),
    key("skill", Text, "what it runs: `skill` of this worker, or `worker/skill`. Among the keys of a skill it is that skill").default(Told("the worker's only skill")),
    key("inputs", Object, "values of the skill's inputs, checked as for a request"),
    key("overlap", Words(&["skip", "buffer_one", "buffer_all", "cancel_other", "allow_all"]), "what happens at a slot while its earlier run has not ended: `skip`, `buffer_one`, `buffer_all`, `cancel_other`, `allow_all`").see("slots", FATE).default(Value("skip")),
    key("max_concurrent", Whole(1, CONCURRENT_MAX), "1: as `overlap: skip`; more: as `overlap: allow_all`"),
    key("catch_up", AnyOf(&[Map(&CATCH_UP), CATCH_UP_MODE]), "which slots run later when no daemon ran at them: `last`, `all` or `none`; or `{mode, window}`").see("slots", FATE).default(Value("{mode: last, window: 24h}")),
    key("jitter", Duration, "most by which it starts later, always by the same for a slot, and before the next; shorter than the period of `every`").default(Told("none")),
    key("blackout", Map(&BLACKOUT), "hours and dates of its zone on which nothing is due or put off to"),
    key("blocked_hours", HOURS, "the same as `blackout: {hours}`").default(Told("`blocked_hours` of the configuration")),
    key("start", Text, "before it nothing is due: RFC 3339, or a date or time of its zone"),
    key("end", Text, "after it nothing is due; a date counts to its end"),
    key("max_actions", Whole(1, COUNT_MAX), "how often it runs in all, at least once").default(Told("no limit")),
    key("pause_on_failure", AnyOf(&[Flag, Whole(1, COUNT_MAX)]), "failures in a row after which it pauses; `true` is the first").default(Told("never")),
    key("expected_within", Duration, "span after a slot within which it is to succeed").see("when it did not run", "schedules.md#when-it-did-not-run").default(Told("until an hour after the next slot")),
    key("on_missed", CHANNELS, "how people are told when it has not succeeded in time; may also stand in `notify`").default(Told("the worker's")),
    key("notify", Map(&NOTIFY), "how people are told how its runs went").see("when runs fail", "definitions.md#when-runs-fail-and-succeed-again").default(Told("the worker's")),
    key("enabled", Flag, "`false` switches it off").default(Value("true")),
]);

/// `after` of a schedule.
pub(crate) static AFTER: Table = table("Follows", "The skill that it follows.", &[
    key("skill", Text, "`skill` of this worker or `worker/skill`").required(),
    key("on", Words(&["succeeded", "failed", "always"]), "which ends count: `succeeded`, `failed` or `always`").default(Value("succeeded")),
]);

/// `watch` of a schedule.
pub(crate) static WATCH: Table = table("Watch", "Files whose change makes it due.", &[
    key("paths", TEXTS, "paths or patterns relative to the workspace").required(),
    key("settle", Duration, "how long nothing may change before it counts").default(Millis(SETTLE_MS)),
]);

/// `on_commit` of a schedule.
pub(crate) static ON_COMMIT: Table = table("OnCommit", "The branch whose commits make it due.", &[
    key("branch", Text, "short name of the branch").required(),
]);

/// `dst` of a schedule.
pub(crate) static DST: Table = table("ShiftOfClock", "What becomes of times that a change of the clock skips or repeats.", &[
    key("gap", Words(&["run_after", "skip"]), "times that do not exist: `run_after` the gap, or `skip`").default(Value("run_after")),
    key("fold", Words(&["first", "second", "both"]), "times that exist twice: the `first`, the `second`, or `both`").default(Value("first")),
]);

/// `catch_up` of a schedule.
pub(crate) static CATCH_UP: Table = table("CatchUpMap", "Which slots run later when no engine was there.", &[
    key("mode", CATCH_UP_MODE, "the `last` of them, `all` one after the other, or `none`").default(Value("last")),
    key("window", Duration, "how long after its slot a run may still start").default(Value("24h")),
]);

/// `blackout` of a schedule.
pub(crate) static BLACKOUT: Table = table("Blackout", "Hours and dates on which nothing is due.", &[
    key("hours", HOURS, "hours from 0 to 23: `[2, 3]`, or a range with both ends such as `\"22-5\"`, which is until 05:59"),
    key("dates", TEXTS, "dates, `YYYY-MM-DD`"),
]);
