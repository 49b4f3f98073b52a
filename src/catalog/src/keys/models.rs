//! Keys of workerctl.yaml about models: which there are, and what they may call.

use super::KEY_REFUSED;
use super::DefaultValue::{Millis, Told, Value, Whole as Number};
use super::Form::{Duration, List, Map, Money, Named, NumberIn, Object, String, Whole, Words};
use super::shared::{ADDRESS, KEY_SOURCE, TEXTS};
use super::{Table, key, table};
use crate::model::agent::PROGRAM_SILENCE_MS;
use crate::bounds::{CALL_MS, COMMAND_MS, OUTPUT_TOKENS, OUTPUT_TOKENS_MAX, START_MS};

const INPUT_PRICE: super::DefaultValue = Told("`input`");

/// `agent` of a skill, a worker or workerctl.yaml.
pub(crate) static AGENT: Table = table("AgentMap", "Agent program that executes instructions.", &[
    key("cli", Words(&["claude", "codex", "opencode", "gemini", "qwen", "generic", "none"]), "`claude`, `codex`, `opencode`, `gemini`, `qwen`, `generic` (set the keys below) or `none` (use `models`)"),
    key("binary", String, "name on the engine's `PATH`, or absolute path").default(Told("the name of `cli`")),
    key("model", String, "model name for the program").default(Told("`preferred_model`, else `execution.model`, unless it is the name of an entry in `models`")),
    key("base_url", ADDRESS, "server to use instead of the program's own"),
    key("key", KEY_SOURCE, "location of the API key, as in `models`"),
    key("login", Words(&["own", "host"]), "`own`: the program has an empty home and no login, so set `key`; `host`: copy the login of the engine's user into the run, and copy it back if it was refreshed").default(Told("`own`")),
    key("args", TEXTS, "additional arguments"),
    key("env", Named(&super::Form::Text), "additional variables; secrets belong in the skill's `env`"),
    key("may_be_denied", TEXTS, "tools whose refusal does not fail the attempt"),
    key("silence", Duration, "longest time without output, at least `1s`").default(Millis(PROGRAM_SILENCE_MS)),
    key("prompt", Words(&["stdin", "argument", "file"]), "`generic`: `stdin`: the prompt is standard input; `argument`: its text replaces `{prompt}` in `args`; `file`: the path of a file that contains it replaces `{prompt}`").default(Told("`stdin`")),
    key("output", Words(&["text", "json", "jsonl"]), "`generic`: `text`, `json` or `jsonl`").default(Told("`text`")),
    key("done", Map(&AGENT_DONE), "`generic`: event that ends the work").default(Told("the last event")),
    key("result", String, "`generic`: JSON pointer to the answer"),
    key("failure", String, "`generic`: JSON pointer to an error; there is no error if it is missing, null, false or empty"),
    key("denials", String, "`generic`: JSON pointer to the list of refused tools"),
    key("usage", Map(&AGENT_USAGE), "`generic`: JSON pointers to tokens and cost"),
]).refuses(KEY_REFUSED);

/// `done` of a described program.
pub(crate) static AGENT_DONE: Table = table("AgentDoneMap", "The event that ends the work.", &[
    key("at", String, "`generic`: JSON pointer to the field that marks the final event").required(),
    key("is", super::Form::Text, "`generic`: value of this field in the final event").required(),
]).refuses(KEY_REFUSED);

/// `usage` of a described program.
pub(crate) static AGENT_USAGE: Table = table("AgentUsageMap", "JSON pointers to tokens and cost.", &[
    key("input", String, "JSON pointer to the number of input tokens"),
    key("output", String, "JSON pointer to the number of output tokens"),
    key("cost", String, "JSON pointer to the cost in dollars"),
]).refuses(KEY_REFUSED);

/// A model of workerctl.yaml.
pub(crate) static CONFIG_MODEL: Table = table("ModelMap", "A model.", &[
    key("provider", Words(&["anthropic", "openai", "openai_responses", "gemini", "ollama"]), "API: `anthropic`, `openai` (also most other servers), `openai_responses`, `gemini` or `ollama`").required().never_null(),
    key("model", String, "model name on the server").required().never_null(),
    key("base_url", ADDRESS, "`http` or `https` URL without user, password and query").default(Told("the provider's public URL, for `ollama` `http://127.0.0.1:11434`")),
    key("key", KEY_SOURCE, "location of the API key, never the key itself: `env:NAME`, `credential:NAME` in `$CREDENTIALS_DIRECTORY`, `file:/path`, `file:~/path`"),
    key("max_output_tokens", Whole(1, OUTPUT_TOKENS_MAX as u64), "maximum tokens per answer, 1 to 1,000,000").default(Number(OUTPUT_TOKENS as u64)),
    key("temperature", NumberIn(0, 2), "0 to 2, at most three decimals").default(Told("the server's")),
    key("timeouts", Map(&CONFIG_MODEL_TIMEOUTS), "time limits of one turn"),
    key("prices", Map(&CONFIG_PRICES), "prices per million tokens, in your currency"),
]).refuses(KEY_REFUSED);

/// `timeouts` of a model.
pub(crate) static CONFIG_MODEL_TIMEOUTS: Table = table("ModelTimeoutsMap", "Time limits of one turn.", &[
    key("connect", Duration, "DNS, connection and TLS; must not exceed `headers`").default(Value("10s")),
    key("headers", Duration, "until the response headers; must not exceed `turn`").default(Value("2m")),
    key("silence", Duration, "between chunks of the response; must not exceed `turn`").default(Value("2m")),
    key("turn", Duration, "whole turn with retries").default(Value("10m")),
]).refuses(KEY_REFUSED);

/// `prices` of a model.
pub(crate) static CONFIG_PRICES: Table = table("PricesMap", "Money per million tokens.", &[
    key("input", Money, "per million input tokens").required(),
    key("output", Money, "per million output tokens").required(),
    key("cache_read", Money, "per million input tokens read from a cache").default(INPUT_PRICE),
    key("cache_write", Money, "per million input tokens written to a cache").default(INPUT_PRICE),
]).refuses(KEY_REFUSED);

/// A tool set of workerctl.yaml.
pub(crate) static CONFIG_TOOLSET: Table = table("ToolsetMap", "Tools for models.", &[
    key("builtin", TEXTS, "`bash`, `read_file`, `write_file`, `edit_file`, `list_directory`, `glob`, `grep`, `loadSkillFile`, `list_skills`, `use_skill`, `submit_output`"),
    key("commands", Named(&Map(&CONFIG_TOOL)), "commands by name: letters, digits, `_`, `-`; no built-in names"),
    key("mcp", Map(&CONFIG_TOOL_MCP), "MCP server"),
    key("read_only", TEXTS, "tools of this set that non-mutating skills may use; unknown names are a warning, except with `mcp`"),
]).refuses(KEY_REFUSED);

/// A command of a tool set.
pub(crate) static CONFIG_TOOL: Table = table("ToolMap", "A command that a model may call; its arguments arrive as a JSON object on standard input.", &[
    key("run", TEXTS, "shell text, or program with arguments").required(),
    key("description", String, "what it does and when to use it").required().never_null(),
    key("schema", Object, "JSON Schema of its arguments, `type: object`").default(Told("no arguments")),
    key("timeout", Duration, "time limit").default(Millis(COMMAND_MS)),
]).refuses(KEY_REFUSED);

/// `mcp` of a tool set: `command` or `url`, each with keys of its own.
pub(crate) static CONFIG_TOOL_MCP: Table = table("McpServerMap", "A server of the Model Context Protocol: `command` or `url`.", &[
    key("command", List(&String), "program with arguments, started for each attempt"),
    key("env", List(&String), "names of secret variables for the program"),
    key("url", ADDRESS, "URL of a running server"),
    key("key", KEY_SOURCE, "location of the bearer token, as in `models`"),
    key("start", Duration, "time limit of the start").default(Millis(START_MS)),
    key("call", Duration, "time limit of one call").default(Millis(CALL_MS)),
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
