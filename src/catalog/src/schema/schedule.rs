//! Keys of a schedule.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::shared::{Hook, Notify, duration, hook, text, texts};

/// When a skill is due, and what becomes of its slots. Exactly one of `cron`, `every`, `at`, `after`,
/// `watch` and `on_commit` says when.
#[derive(Debug, Clone, JsonSchema)]
pub struct ScheduleMap {
    /// Minute, hour, day of the month, month and day of the week; or `@hourly`, `@daily`, `@weekly`,
    /// `@monthly`, `@yearly`; or `@reboot`: once after each start of the machine.
    #[schemars(schema_with = "text")]
    pub cron: Option<String>,
    /// The same as `cron`.
    #[schemars(schema_with = "text")]
    pub schedule: Option<String>,
    /// A period, at least one second: it is due that long after it was first seen, and so on.
    #[schemars(schema_with = "duration")]
    pub every: Option<String>,
    /// Times of the schedule's zone, such as `2026-12-24T18:00`, or RFC 3339.
    #[schemars(schema_with = "texts")]
    pub at: Option<Vec<String>>,
    /// It is due when a run of another skill has ended.
    #[schemars(schema_with = "after")]
    pub after: Option<Follows>,
    /// It is due when files change.
    #[schemars(schema_with = "watch")]
    pub watch: Option<Watch>,
    /// It is due when a branch has got new commits.
    #[schemars(schema_with = "on_commit")]
    pub on_commit: Option<OnCommit>,
    /// Whether the first of six fields of the expression is seconds.
    pub seconds: Option<bool>,
    /// IANA zone of its times; the worker's, else that of the configuration, where nothing is said.
    #[schemars(schema_with = "text")]
    pub timezone: Option<String>,
    /// What becomes of times that a change of the clock skips or repeats.
    pub dst: Option<ShiftOfClock>,
    /// Name of the schedule, which is then `worker/skill#name` whatever stands before it.
    #[schemars(schema_with = "text")]
    pub id: Option<String>,
    /// What it runs: `skill` of this worker or `worker/skill`. May be left out where the worker has only
    /// one.
    #[schemars(schema_with = "text")]
    pub skill: Option<String>,
    /// Values of the skill's inputs.
    #[schemars(schema_with = "inputs")]
    pub inputs: Option<String>,
    /// What happens at a slot while an earlier run of the schedule has not ended; `skip` where
    /// nothing is said.
    #[schemars(schema_with = "overlap")]
    pub overlap: Option<String>,
    /// 1: as `overlap: skip`; more: as `overlap: allow_all`.
    #[schemars(range(min = 1, max = 1_024))]
    pub max_concurrent: Option<u32>,
    /// Which slots run later when no engine was there; `last` where nothing is said.
    #[schemars(schema_with = "catch_up")]
    pub catch_up: Option<CatchUpMap>,
    /// Most by which a run starts later than its slot, so that not all start at once.
    #[schemars(schema_with = "duration")]
    pub jitter: Option<String>,
    /// Hours and dates of the schedule's zone on which nothing is due.
    pub blackout: Option<Blackout>,
    /// The same as `blackout: {hours}`.
    #[schemars(schema_with = "hours")]
    pub blocked_hours: Option<String>,
    /// Before it nothing is due: RFC 3339, or a date or time of the schedule's zone.
    #[schemars(schema_with = "text")]
    pub start: Option<String>,
    /// After it nothing is due; a date counts to its end.
    #[schemars(schema_with = "text")]
    pub end: Option<String>,
    /// How often it runs in all.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub max_actions: Option<u64>,
    /// After how many failures in a row it pauses; `true` is the first.
    #[schemars(schema_with = "failures")]
    pub pause_on_failure: Option<u32>,
    /// Span within which it is to succeed; its next slot and an hour where nothing is said.
    #[schemars(schema_with = "duration")]
    pub expected_within: Option<String>,
    /// Command that is told when it has not.
    #[schemars(schema_with = "hook")]
    pub on_missed: Option<Hook>,
    /// Commands that are told how it goes, instead of the worker's and the configuration's.
    pub notify: Option<Notify>,
    /// `false` switches it off.
    pub enabled: Option<bool>,
}

/// The skill that it follows.
#[derive(Debug, Clone, JsonSchema)]
pub struct Follows {
    /// `skill` of this worker or `worker/skill`.
    #[schemars(schema_with = "text")]
    pub skill: String,
    /// Which ends count; `succeeded` where nothing is said.
    #[schemars(schema_with = "ends")]
    pub on: Option<String>,
}

/// Files whose change makes it due.
#[derive(Debug, Clone, JsonSchema)]
pub struct Watch {
    /// Paths or patterns relative to the workspace.
    #[schemars(schema_with = "texts")]
    pub paths: Vec<String>,
    /// How long nothing may change before it counts; two seconds where nothing is said.
    #[schemars(schema_with = "duration")]
    pub settle: Option<String>,
}

/// The branch whose commits make it due.
#[derive(Debug, Clone, JsonSchema)]
pub struct OnCommit {
    /// Short name of the branch.
    #[schemars(schema_with = "text")]
    pub branch: String,
}

/// What becomes of times that a change of the clock skips or repeats.
#[derive(Debug, Clone, JsonSchema)]
pub struct ShiftOfClock {
    /// Times that do not exist: `run_after` the gap, which is the default, or `skip`.
    #[schemars(schema_with = "gap")]
    pub gap: Option<String>,
    /// Times that exist twice: the `first`, which is the default, the `second`, or `both`.
    #[schemars(schema_with = "fold")]
    pub fold: Option<String>,
}

/// Which slots run later when no engine was there.
#[derive(Debug, Clone, JsonSchema)]
pub struct CatchUpMap {
    /// The `last` of them, `all` one after the other, or `none`.
    #[schemars(schema_with = "catch_up_mode")]
    pub mode: Option<String>,
    /// How long after its slot a run may still start; a day where nothing is said.
    #[schemars(schema_with = "duration")]
    pub window: Option<String>,
}

/// Hours and dates on which nothing is due.
#[derive(Debug, Clone, JsonSchema)]
pub struct Blackout {
    /// Hours from 0 to 23: `[2, 3]`, or a range with both ends such as `"22-5"`.
    #[schemars(schema_with = "hours")]
    pub hours: Option<String>,
    /// Dates, `YYYY-MM-DD`.
    #[schemars(schema_with = "texts")]
    pub dates: Option<Vec<String>>,
}

/// A schedule or a list of them.
pub(super) fn schedules(generator: &mut SchemaGenerator) -> Schema {
    let map = generator.subschema_for::<ScheduleMap>();
    let one = json_schema!({
        "anyOf": [
            {"type": "string", "description": "a cron expression such as `0 9 * * 1-5`, or `@daily`"},
            map,
        ],
    });
    json_schema!({"anyOf": [one, {"type": "array", "items": one}, {"type": "null"}]})
}

/// Hours, ranges of hours, or a list of them.
pub(super) fn hours(_: &mut SchemaGenerator) -> Schema {
    let one = json_schema!({
        "anyOf": [
            {"type": "integer", "minimum": 0, "maximum": 23},
            {"type": "string", "description": "an hour or a range such as `22-5`"},
        ],
    });
    json_schema!({"anyOf": [one, {"type": "array", "items": one}, {"type": "null"}]})
}

fn after(generator: &mut SchemaGenerator) -> Schema {
    let map = generator.subschema_for::<Follows>();
    json_schema!({"anyOf": [map, {"type": ["string", "null"]}]})
}

fn watch(generator: &mut SchemaGenerator) -> Schema {
    let map = generator.subschema_for::<Watch>();
    let paths = texts(generator);
    json_schema!({"anyOf": [map, paths]})
}

fn on_commit(generator: &mut SchemaGenerator) -> Schema {
    let map = generator.subschema_for::<OnCommit>();
    json_schema!({"anyOf": [map, {"type": ["string", "null"]}]})
}

fn catch_up(generator: &mut SchemaGenerator) -> Schema {
    let map = generator.subschema_for::<CatchUpMap>();
    let mode = catch_up_mode(generator);
    json_schema!({"anyOf": [map, mode]})
}

fn inputs(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["object", "null"]})
}

fn failures(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            {"type": ["boolean", "null"]},
            {"type": "integer", "minimum": 1, "maximum": 1_000_000_000},
        ],
    })
}

fn overlap(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "enum": [
            "skip", "buffer_one", "buffer_all", "cancel_other", "allow_all", null,
        ],
    })
}

fn catch_up_mode(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["last", "all", "none", null]})
}

fn ends(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["succeeded", "failed", "always", null]})
}

fn gap(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["run_after", "skip", null]})
}

fn fold(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["first", "second", "both", null]})
}
