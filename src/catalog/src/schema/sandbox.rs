//! `sandbox`: what commands may touch.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// What commands may touch besides their tree, or the place of their outputs, and a directory for temporary files.
#[derive(Debug, Clone, JsonSchema)]
pub struct SandboxMap {
    /// `auto`, where the kernel can; `required`, else nothing starts; `private`, with a home of its own besides; `off`.
    pub level: Option<SandboxLevel>,
    /// What they may change and read: absolute, below `~/`, or relative to the workspace.
    #[schemars(schema_with = "paths")]
    pub write: Option<Vec<String>>,
    /// What they may read, in the same form; `/` is all but secrets and what is the engine's, the default.
    #[schemars(schema_with = "paths")]
    pub reads: Option<Vec<String>>,
    /// `any`, `none`, or TCP to some ports: `{tcp: [53, 443]}`.
    #[schemars(schema_with = "network")]
    pub network: Option<String>,
    /// Whether they may use Unix sockets; `false` where nothing is said.
    pub unix_sockets: Option<bool>,
}

/// How firmly walls are asked for.
#[derive(Debug, Clone, Copy, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// Where the kernel can.
    Auto,
    /// Nothing starts without.
    Required,
    /// In a container with a home and a `/tmp` of its own, or nothing starts.
    Private,
    /// None.
    Off,
}

/// A word, or a map.
pub(super) fn sandbox(generator: &mut SchemaGenerator) -> Schema {
    let map = generator.subschema_for::<SandboxMap>();
    json_schema!({"anyOf": [{"type": ["string", "boolean", "null"]}, map]})
}

fn paths(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]})
}

fn network(_: &mut SchemaGenerator) -> Schema {
    let port = json_schema!({"type": "integer", "minimum": 1, "maximum": 65_535});
    let tcp = json_schema!({"type": "array", "items": port, "minItems": 1});
    json_schema!({
        "anyOf": [
            {"enum": ["any", "none", false, null]},
            {"type": "object", "properties": {"tcp": tcp}, "required": ["tcp"]},
        ],
    })
}
