//! What executes instructions: models, tool sets, what may be spent, and workers that are made from templates.

use serde_json::{Value, json};

use super::{Setting, list};
use crate::model::Config;
use crate::model::agent::{AgentProgram, McpTransport, Model, Money, Toolset};
use crate::model::duration::exact_millis;

pub(super) fn settings(config: &Config) -> Vec<Setting> {
    let (run, day) = (&config.budget, &config.per_day);
    let aliases: Vec<String> = config.models.keys().cloned().collect();
    let sets: Vec<String> = config.toolsets.keys().cloned().collect();
    let templates: Vec<String> = config.instances.keys().cloned().collect();
    let fixed = [
        limit("budget.tokens", run.tokens),
        money("budget.money", run.money),
        limit("budget.turns", run.turns.map(u64::from)),
        money("budget.per_day.money", day.money),
        limit("budget.per_day.runs", day.runs.map(u64::from)),
        list("models", &aliases),
        list("toolsets", &sets),
        list("instances", &templates),
    ];
    let models = config.models.values().map(model);
    let sets = config.toolsets.values().map(toolset);
    let made = config.instances.iter().map(|(template, made)| {
        let ids: Vec<&str> = made.iter().map(|one| one.id.as_str()).collect();
        Setting {
            key: format!("instances.{template}").into(),
            shown: ids.join(", "),
            value: json!(made),
        }
    });
    let fixed = fixed.into_iter().chain(models).chain(sets);
    let program = program(config.program.as_deref());
    fixed.chain(made).chain(program).collect()
}

fn limit(key: &'static str, limit: Option<u64>) -> Setting {
    Setting {
        key: key.into(),
        shown: limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string()),
        value: json!(limit),
    }
}

fn money(key: &'static str, limit: Option<Money>) -> Setting {
    let text = limit.map(|limit| limit.to_string());
    Setting {
        key: key.into(),
        value: json!(text),
        shown: text.unwrap_or_else(|| "no limit".to_owned()),
    }
}

/// Of a key it is told where it is, never what it is: more is not known here.
fn model(model: &Model) -> Setting {
    let mut shown = vec![format!("{} {}", model.provider.name(), model.name)];
    let mut value = json!(model);
    if let Some(url) = &model.base_url {
        shown.push(format!("at {url}"));
    }
    if let Some(key) = &model.key {
        shown.push(format!("key {key}"));
    }
    if let Some(prices) = &model.prices {
        let (input, output) = (prices.input.to_string(), prices.output.to_string());
        shown.push(format!("prices {input} and {output}"));
        let cache = |money: Money| Value::String(money.to_string());
        value["prices"] = json!({
            "input": input, "output": output,
            "cache_read": cache(prices.cache_read), "cache_write": cache(prices.cache_write),
        });
    }
    Setting {
        key: format!("models.{}", model.alias).into(),
        shown: shown.join(", "),
        value,
    }
}

fn toolset(set: &Toolset) -> Setting {
    let commands = set.commands.iter().map(|tool| tool.name.clone());
    let server = set.mcp.as_ref().map(|server| match &server.transport {
        McpTransport::Stdio { argv, .. } => format!("mcp: {}", argv.join(" ")),
        McpTransport::Http { url, .. } => format!("mcp: {url}"),
    });
    let tools: Vec<String> = set
        .builtin
        .iter()
        .cloned()
        .chain(commands)
        .chain(server)
        .collect();
    Setting {
        key: format!("toolsets.{}", set.name).into(),
        shown: tools.join(", "),
        value: json!(set),
    }
}

/// Where each key of `agent` stands in what is kept of it.
const PROGRAM: [(&str, &str); 19] = [
    ("agent.cli", "/cli"),
    ("agent.binary", "/binary"),
    ("agent.model", "/model"),
    ("agent.base_url", "/base_url"),
    ("agent.key", "/key"),
    ("agent.login", "/lends_login"),
    ("agent.args", "/args"),
    ("agent.env", "/env"),
    ("agent.may_be_denied", "/may_be_denied"),
    ("agent.silence", "/silence_ms"),
    ("agent.prompt", "/described/prompt"),
    ("agent.output", "/described/output"),
    ("agent.done.at", "/described/done/0"),
    ("agent.done.is", "/described/done/1"),
    ("agent.result", "/described/result"),
    ("agent.failure", "/described/failure"),
    ("agent.denials", "/described/denials"),
    ("agent.usage.input", "/described/input_tokens"),
    ("agent.usage.output", "/described/output_tokens"),
];

/// The agent program that executes instructions where nothing else is said.
fn program(program: Option<&AgentProgram>) -> Vec<Setting> {
    let kept = json!(program);
    let cost = ("agent.usage.cost", "/described/cost");
    let each = PROGRAM.iter().chain([&cost]).map(|(key, pointer)| {
        let value = kept.pointer(pointer).cloned().unwrap_or_default();
        let shown = match (&value, *key) {
            (Value::Bool(true), "agent.login") => "host".to_owned(),
            (Value::Number(millis), "agent.silence") => {
                exact_millis(millis.as_u64().unwrap_or_default())
            }
            (Value::Null, "agent.cli") => "none: models execute instructions".to_owned(),
            (Value::Null, _) => "–".to_owned(),
            (Value::String(text), _) => text.clone(),
            (other, _) => other.to_string(),
        };
        Setting {
            key: (*key).into(),
            shown,
            value,
        }
    });
    each.collect()
}
