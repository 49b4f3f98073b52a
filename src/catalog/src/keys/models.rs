//! Keys of workerctl.yaml about models: which there are, and what they may call.

use super::KEY_REFUSED;
use super::DefaultValue::{Millis, Told, Value, Whole as Number};
use super::Form::{Duration, List, Map, Money, Named, NumberIn, Object, String, Whole, Words};
use super::shared::{ADDRESS, KEY_SOURCE, TEXTS};
use super::{Table, key, table};
use crate::bounds::{CALL_MS, COMMAND_MS, OUTPUT_TOKENS, OUTPUT_TOKENS_MAX, START_MS};

const INPUT_PRICE: super::DefaultValue = Told("`input`");

/// A model of workerctl.yaml.
pub(crate) static CONFIG_MODEL: Table = table("ModelMap", "A model.", &[
    key("provider", Words(&["anthropic", "openai", "openai_responses", "gemini", "ollama"]), "the protocol of its server: `anthropic`, `openai`, which most other servers offer too, `openai_responses`, `gemini` or `ollama`").required().never_null(),
    key("model", String, "the name by which its server knows it").required().never_null(),
    key("base_url", ADDRESS, "`http` or `https`, a host and a path; no user, no password, no query").default(Told("the provider's public address")),
    key("key", KEY_SOURCE, "where its key is: `env:NAME` in the engine's environment, `credential:NAME` in `$CREDENTIALS_DIRECTORY`, `file:/path` or `file:~/path`; never the key itself"),
    key("max_output_tokens", Whole(1, OUTPUT_TOKENS_MAX as u64), "tokens that one answer may have, 1 to 1,000,000").default(Number(OUTPUT_TOKENS as u64)),
    key("temperature", NumberIn(0, 2), "from 0 to 2, with at most three decimals").default(Told("the server's own")),
    key("timeouts", Map(&CONFIG_MODEL_TIMEOUTS), "deadlines of one turn"),
    key("prices", Map(&CONFIG_PRICES), "money per million tokens, in a currency of yours"),
]).refuses(KEY_REFUSED);

/// `timeouts` of a model.
pub(crate) static CONFIG_MODEL_TIMEOUTS: Table = table("ModelTimeoutsMap", "Deadlines of one turn.", &[
    key("connect", Duration, "name lookup, connection and TLS handshake together; at most `headers`").default(Value("10s")),
    key("headers", Duration, "until the head of the answer; at most `turn`").default(Value("2m")),
    key("silence", Duration, "between two pieces of the answer; at most `turn`").default(Value("2m")),
    key("turn", Duration, "the whole turn with its retries").default(Value("10m")),
]).refuses(KEY_REFUSED);

/// `prices` of a model.
pub(crate) static CONFIG_PRICES: Table = table("PricesMap", "Money per million tokens.", &[
    key("input", Money, "of a request").required(),
    key("output", Money, "of an answer").required(),
    key("cache_read", Money, "of a request, read from a cache").default(INPUT_PRICE),
    key("cache_write", Money, "of a request, written to a cache").default(INPUT_PRICE),
]).refuses(KEY_REFUSED);

/// A tool set of workerctl.yaml.
pub(crate) static CONFIG_TOOLSET: Table = table("ToolsetMap", "What models may call.", &[
    key("builtin", TEXTS, "some of `bash`, `read_file`, `write_file`, `edit_file`, `list_directory`, `glob`, `grep`, `loadSkillFile`, `list_skills`, `use_skill`, `submit_output`"),
    key("commands", Named(&Map(&CONFIG_TOOL)), "commands by name: letters, digits, `_`, `-`, and no name of a built-in tool"),
    key("mcp", Map(&CONFIG_TOOL_MCP), "a server of the Model Context Protocol"),
    key("read_only", TEXTS, "names of those of its tools that change nothing: skills that are not mutating get these alone. One that the set has not is a warning, where it has no `mcp`"),
]).refuses(KEY_REFUSED);

/// A command of a tool set.
pub(crate) static CONFIG_TOOL: Table = table("ToolMap", "A command that a model may call; its arguments arrive as a JSON object on standard input.", &[
    key("run", TEXTS, "shell text, or a program with its arguments").required(),
    key("description", String, "what it does and when to use it").required().never_null(),
    key("schema", Object, "JSON Schema of its arguments, of `type: object`").default(Told("no arguments")),
    key("timeout", Duration, "its limit").default(Millis(COMMAND_MS)),
]).refuses(KEY_REFUSED);

/// `mcp` of a tool set: `command` or `url`, each with keys of its own.
pub(crate) static CONFIG_TOOL_MCP: Table = table("McpServerMap", "A server of the Model Context Protocol: `command` or `url`.", &[
    key("command", List(&String), "program with its arguments, started for each run"),
    key("env", List(&String), "names of the secret variables that the program is given"),
    key("url", ADDRESS, "address of a server that runs"),
    key("key", KEY_SOURCE, "where the bearer token of the server is, as `key` of a model"),
    key("start", Duration, "limit of its start").default(Millis(START_MS)),
    key("call", Duration, "limit of one call").default(Millis(CALL_MS)),
]);

/// The schema of `instances`, whose keys are ids with placeholders.
pub(super) fn instances() -> serde_json::Value {
    serde_json::json!({
        "type": "object",
        "propertyNames": {"pattern": r"\{[A-Za-z_][A-Za-z0-9_-]*\}"},
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
