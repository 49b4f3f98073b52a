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
pub(crate) static AGENT: Table = table("AgentMap", "The program of others that executes instructions.", &[
    key("cli", Words(&["claude", "codex", "opencode", "gemini", "qwen", "generic", "none"]), "which: `claude`, `codex`, `opencode`, `gemini`, `qwen`; `generic`, one that the keys below describe; `none`, a model of `models`"),
    key("binary", String, "its program: a name on the engine's path, or an absolute path").default(Told("the name of `cli`")),
    key("model", String, "the model, by the name that the program knows").default(Told("`execution.model` or `preferred_model`, where that is no alias of `models`")),
    key("base_url", ADDRESS, "another server than the program's own"),
    key("key", KEY_SOURCE, "where its key is, as of a model"),
    key("login", Words(&["own", "host"]), "`host` lends it the login of the engine's user, and takes a refreshed one back").default(Told("`own`")),
    key("args", TEXTS, "further arguments"),
    key("env", Named(&super::Form::Text), "further variables by name, no secrets: those are named by `env` of the skill"),
    key("may_be_denied", TEXTS, "tools that it may refuse without failing the attempt"),
    key("silence", Duration, "the longest time without a word of it, at least `1s`").default(Millis(PROGRAM_SILENCE_MS)),
    key("prompt", Words(&["stdin", "argument", "file"]), "of `generic`: how it gets its prompt; `argument` and `file` take the place of `{prompt}` in `args`").default(Told("`stdin`")),
    key("output", Words(&["text", "json", "jsonl"]), "of `generic`: how it answers").default(Told("`text`")),
    key("done", Map(&AGENT_DONE), "of `generic`: what the event has that ends the work").default(Told("the last one ends it")),
    key("result", String, "of `generic`: where the answer stands, as a JSON pointer"),
    key("failure", String, "of `generic`: where a failure stands: it has failed where that is neither absent, null, false nor empty"),
    key("denials", String, "of `generic`: where a list of refused tools stands"),
    key("usage", Map(&AGENT_USAGE), "of `generic`: where tokens and cost stand"),
]).refuses(KEY_REFUSED);

/// `done` of a described program.
pub(crate) static AGENT_DONE: Table = table("AgentDoneMap", "What the event has that ends the work.", &[
    key("at", String, "a JSON pointer").required(),
    key("is", super::Form::Text, "what stands there").required(),
]).refuses(KEY_REFUSED);

/// `usage` of a described program.
pub(crate) static AGENT_USAGE: Table = table("AgentUsageMap", "Where a program reports what it has used, as JSON pointers.", &[
    key("input", String, "tokens of requests"),
    key("output", String, "tokens of answers"),
    key("cost", String, "dollars"),
]).refuses(KEY_REFUSED);

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
