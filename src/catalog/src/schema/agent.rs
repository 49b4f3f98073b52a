//! Keys about models: which there are, what they may call and spend.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::shared::{duration, texts};
use crate::model::agent::Provider;

/// A model.
#[derive(Debug, Clone, JsonSchema)]
pub struct ModelMap {
    /// The protocol of its server.
    pub provider: Provider,
    /// The name by which its server knows it.
    pub model: String,
    /// Address of its server, without user, password and query; the provider's public one where nothing is said.
    #[schemars(schema_with = "address")]
    pub base_url: Option<String>,
    /// Where its key is: `env:NAME`, `credential:NAME` or `file:/path`; never the key itself.
    #[schemars(schema_with = "key")]
    pub key: Option<String>,
    /// Tokens that one answer may have; 8,192 where nothing is said.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_output_tokens: Option<u32>,
    /// From 0 to 2, with at most three decimals; the server's own where nothing is said.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// Deadlines of one turn.
    pub timeouts: Option<ModelTimeoutsMap>,
    /// Money per million tokens.
    pub prices: Option<PricesMap>,
}

/// Deadlines of one turn.
#[derive(Debug, Clone, JsonSchema)]
pub struct ModelTimeoutsMap {
    /// Name lookup, connection and TLS handshake together; 10s.
    #[schemars(schema_with = "duration")]
    pub connect: Option<String>,
    /// Until the head of the answer; 2m.
    #[schemars(schema_with = "duration")]
    pub headers: Option<String>,
    /// Between two pieces of the answer; 2m.
    #[schemars(schema_with = "duration")]
    pub silence: Option<String>,
    /// The whole turn with its retries; 10m.
    #[schemars(schema_with = "duration")]
    pub turn: Option<String>,
}

/// Money per million tokens.
#[derive(Debug, Clone, JsonSchema)]
pub struct PricesMap {
    /// Of a request.
    #[schemars(schema_with = "money")]
    pub input: String,
    /// Of an answer.
    #[schemars(schema_with = "money")]
    pub output: String,
    /// Of a request, read from a cache; as `input` where nothing is said.
    #[schemars(schema_with = "money")]
    pub cache_read: Option<String>,
    /// Of a request, written to a cache; as `input` where nothing is said.
    #[schemars(schema_with = "money")]
    pub cache_write: Option<String>,
}

/// What runs with a model may spend; of each key the innermost level counts.
#[derive(Debug, Clone, JsonSchema)]
pub struct BudgetMap {
    /// Tokens of one run, those read from a cache left out.
    #[schemars(schema_with = "count")]
    pub tokens: Option<u64>,
    /// Money of one run.
    #[schemars(schema_with = "money")]
    pub money: Option<String>,
    /// Turns of one run, all attempts together.
    #[schemars(schema_with = "count")]
    pub turns: Option<u32>,
    /// What the runs of a day may spend; each level counts its own.
    pub per_day: Option<DayBudgetMap>,
}

/// What the runs of a day may spend.
#[derive(Debug, Clone, JsonSchema)]
pub struct DayBudgetMap {
    /// Money of all of them.
    #[schemars(schema_with = "money")]
    pub money: Option<String>,
    /// How many there may be.
    #[schemars(schema_with = "count")]
    pub runs: Option<u32>,
}

/// What models may call.
#[derive(Debug, Clone, JsonSchema)]
pub struct ToolsetMap {
    /// Names of built-in tools.
    #[schemars(schema_with = "texts")]
    pub builtin: Option<Vec<String>>,
    /// Commands by name.
    #[schemars(schema_with = "commands")]
    pub commands: Option<String>,
    /// A server of the Model Context Protocol.
    pub mcp: Option<McpServerMap>,
    /// Names of those of its tools that change nothing: skills that are not mutating get these alone.
    #[schemars(schema_with = "texts")]
    pub read_only: Option<Vec<String>>,
}

/// A command that a model may call; its arguments arrive as a JSON object on standard input.
#[derive(Debug, Clone, JsonSchema)]
pub struct ToolMap {
    /// Shell text, or a program with its arguments.
    #[schemars(schema_with = "texts")]
    pub run: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments, of `type: object`.
    #[schemars(schema_with = "object")]
    pub schema: Option<String>,
    /// Its limit; 2m where nothing is said.
    #[schemars(schema_with = "duration")]
    pub timeout: Option<String>,
}

/// A server of the Model Context Protocol: `command` or `url`.
#[derive(Debug, Clone, JsonSchema)]
pub struct McpServerMap {
    /// Program with its arguments, started for each run.
    pub command: Option<Vec<String>>,
    /// Names of the secret variables that the program is given.
    pub env: Option<Vec<String>>,
    /// Address of a server that runs.
    #[schemars(schema_with = "address")]
    pub url: Option<String>,
    /// Where the bearer token of the server is: `env:NAME`, `credential:NAME` or `file:/path`.
    #[schemars(schema_with = "key")]
    pub key: Option<String>,
    /// Limit of its start; 30s where nothing is said.
    #[schemars(schema_with = "duration")]
    pub start: Option<String>,
    /// Limit of one call; 60s where nothing is said.
    #[schemars(schema_with = "duration")]
    pub call: Option<String>,
}

fn address(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "pattern": "^https?://[^@?#\\s]+$"})
}

fn key(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "pattern": "^(env:|credential:|file:(/|~/)).+$"})
}

fn money(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "pattern": "^[0-9_]+(\\.[0-9]{0,6})?$"},
            {"type": "null"},
        ],
    })
}

fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "anyOf": [
            {"type": "integer", "minimum": 1},
            {"type": "string", "pattern": "^[0-9][0-9_]*$"},
            {"type": "null"},
        ],
    })
}

fn object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["object", "null"]})
}

fn commands(generator: &mut SchemaGenerator) -> Schema {
    let tool = generator.subschema_for::<ToolMap>();
    json_schema!({"type": ["object", "null"], "additionalProperties": tool})
}

pub(super) fn models(generator: &mut SchemaGenerator) -> Schema {
    let model = generator.subschema_for::<ModelMap>();
    json_schema!({"type": ["object", "null"], "additionalProperties": model})
}

pub(super) fn toolsets(generator: &mut SchemaGenerator) -> Schema {
    let set = generator.subschema_for::<ToolsetMap>();
    json_schema!({"type": ["object", "null"], "additionalProperties": set})
}

pub(super) fn instances(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "propertyNames": {"pattern": "\\{[A-Za-z_][A-Za-z0-9_-]*\\}"},
        "additionalProperties": {
            "type": "array",
            "maxItems": 100,
            "items": {
                "type": "object",
                "additionalProperties": {"type": ["string", "number", "boolean"]},
            },
        },
    })
}
