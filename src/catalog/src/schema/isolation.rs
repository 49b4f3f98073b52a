//! Keys that say where runs work and where their result lands.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::shared::{duration, size};

/// The branch that results land on.
#[derive(Debug, Clone, JsonSchema)]
pub struct Branch {
    /// Its short name.
    #[schemars(schema_with = "super::shared::text")]
    pub name: String,
    /// Whether it is made where it is missing.
    pub create: Option<bool>,
}

/// A path of the checkout that a tree is given.
#[derive(Debug, Clone, JsonSchema)]
pub struct Local {
    /// Relative to the workspace.
    pub path: String,
    /// `true`: a link to the checkout instead of a copy; what is behind it is outside of every promise.
    pub link: Option<bool>,
}

/// Bounds of the trees that runs work in.
#[derive(Debug, Clone, JsonSchema)]
pub struct Trees {
    /// How many there may be at once.
    #[schemars(range(min = 1, max = 1_024))]
    pub max: Option<u32>,
    /// Bytes of their file system that stay free, such as `1GiB`.
    #[schemars(schema_with = "size")]
    pub min_free: Option<String>,
    /// A tree that is not used for this long is removed.
    #[schemars(schema_with = "duration")]
    pub idle: Option<String>,
}

/// A name, or a map with `name`.
pub(super) fn branch(generator: &mut SchemaGenerator) -> Schema {
    let map = generator.subschema_for::<Branch>();
    json_schema!({"anyOf": [{"type": ["string", "number", "null"]}, map]})
}

pub(super) fn isolation(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["worktree", "in_place", "in-place", "none", "off", false, null]})
}

/// One path of the checkout, or a list of them.
pub(super) fn local(generator: &mut SchemaGenerator) -> Schema {
    let map = generator.subschema_for::<Local>();
    let one = json_schema!({"anyOf": [{"type": "string"}, map]});
    json_schema!({"anyOf": [one, {"type": "array", "items": one}, {"type": "null"}]})
}

/// The name of a remote; `true` is `origin`.
pub(super) fn push(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "number", "boolean", "null"]})
}

pub(super) fn filtered(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["stored", null]})
}
