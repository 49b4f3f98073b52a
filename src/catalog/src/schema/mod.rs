//! JSON Schemas of definition files, so that editors complete, explain and check while typing.
//!
//! The types exist for their schemas only: the loader reads values by hand, because it reports every
//! problem with its place and accepts more than a schema can say. A test holds both to the same keys.

mod agent;
mod config;
mod isolation;
mod sandbox;
mod schedule;
mod shared;
mod skill;
mod worker;

pub use agent::{
    BudgetMap, DayBudgetMap, McpServerMap, ModelMap, ModelTimeoutsMap, PricesMap, ToolMap,
    ToolsetMap,
};
pub use config::ConfigFile;
pub use isolation::{Branch, Local, Trees};
pub use sandbox::{SandboxLevel, SandboxMap};
pub use schedule::{Blackout, CatchUpMap, Follows, OnCommit, ScheduleMap, ShiftOfClock, Watch};
pub use shared::{Backoff, Check, Commit, Hook, Hooks, ResourceLimitsMap, Retry, VerificationMap};
pub use skill::{Input, Interface, Output, RunScript, SkillFile, SkillKeys};
pub use worker::{Execution, Identity, StateMachine, WorkerFile};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// Schema of `worker.yaml`.
pub fn worker() -> serde_json::Value {
    of::<WorkerFile>("worker.yaml")
}

/// Schema of a skill file's frontmatter.
pub fn skill() -> serde_json::Value {
    of::<SkillFile>("frontmatter of a skill file")
}

/// Schema of `workerctl.yaml`.
pub fn config() -> serde_json::Value {
    of::<ConfigFile>("workerctl.yaml")
}

fn of<T: JsonSchema>(title: &str) -> serde_json::Value {
    let mut schema: Schema = SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    let mut schema = schema.to_value();
    set_required(&mut schema, &[]);
    if let Some(definitions) = schema
        .get_mut("$defs")
        .and_then(serde_json::Value::as_object_mut)
    {
        for (name, definition) in definitions {
            let keys = REQUIRED.iter().find(|(owner, _)| owner == name);
            set_required(definition, keys.map_or(&[], |(_, keys)| keys));
        }
    }
    schema
}

/// Keys that must stand. They are named here because a field whose schema is written by hand counts as
/// required, whatever its type says.
const REQUIRED: &[(&str, &[&str])] = &[
    ("Branch", &["name"]),
    ("Hook", &["command"]),
    ("Identity", &["id"]),
    ("Input", &["name"]),
    ("Follows", &["skill"]),
    ("Local", &["path"]),
    ("ModelMap", &["provider", "model"]),
    ("OnCommit", &["branch"]),
    ("PricesMap", &["input", "output"]),
    ("Retry", &["max_attempts"]),
    ("RunScript", &["script"]),
    ("ToolMap", &["run", "description"]),
    ("Watch", &["paths"]),
];

fn set_required(schema: &mut serde_json::Value, keys: &[&str]) {
    if let Some(map) = schema.as_object_mut() {
        map.remove("required");
        if !keys.is_empty() {
            map.insert("required".to_owned(), keys.into());
        }
    }
}

#[cfg(test)]
mod tests;
