//! The schemas explain each key, and accept what the loader accepts.

use serde_json::{Value, json};

use crate::model::Dialect;
use crate::model::agent::Provider;
use crate::model::schedule::Overlap;
use crate::tests::contract::{EVERY_KEY, INLINE, MUTATING, READ_ONLY, STANDALONE};
use crate::tests::yaml_to_json;

fn resolve<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|path| root.pointer(path.trim_start_matches('#')))
        .unwrap_or(schema)
}

#[test]
fn words_that_a_type_has_are_those_of_the_schema() {
    let config = super::config();
    let words = |root: &Value, pointer: &str| root.pointer(pointer).expect("words").to_string();
    let overlaps = json!(Overlap::ALL.map(Overlap::name)).to_string();
    let pointer = "/$defs/ScheduleMap/properties/overlap/anyOf/0/enum";
    assert_eq!(words(&super::worker(), pointer), overlaps);
    let providers = json!(Provider::ALL.map(Provider::name)).to_string();
    let pointer = "/$defs/ModelMap/properties/provider/enum";
    assert_eq!(words(&config, pointer), providers);
    let dialects = json!(Dialect::ALL.map(Dialect::name)).to_string();
    let pointer = "/$defs/SkillRoot/properties/dialect/anyOf/0/enum";
    assert_eq!(words(&config, pointer), dialects);
}

#[test]
fn every_key_is_explained() {
    for root in [super::worker(), super::skill(), super::config()] {
        let definitions = root["$defs"].as_object().into_iter().flatten();
        for (name, schema) in definitions.chain([(&"top".to_owned(), &root)]) {
            for (key, property) in schema["properties"].as_object().into_iter().flatten() {
                assert!(property["description"].is_string(), "{name}.{key}");
            }
        }
    }
}

/// As much of JSON Schema as these schemas use.
fn accepts(root: &Value, schema: &Value, value: &Value) -> bool {
    let target = resolve(root, schema);
    if !std::ptr::eq(target, schema) && !accepts(root, target, value) {
        return false;
    }
    let any_of = schema["anyOf"].as_array();
    let one_of = schema["oneOf"].as_array();
    let alternatives = any_of.or(one_of);
    if alternatives.is_some_and(|all| !all.iter().any(|one| accepts(root, one, value))) {
        return false;
    }
    let listed = schema["enum"].as_array();
    if listed.is_some_and(|all| !all.contains(value)) {
        return false;
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return false;
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let fits = types.is_empty()
        || types.iter().any(|name| match *name {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("unknown type {other}"),
        });
    let least = schema["minimum"].as_f64().zip(value.as_f64());
    if least.is_some_and(|(least, number)| number < least) {
        return false;
    }
    let items = value.as_array().into_iter().flatten().all(|item| {
        schema
            .get("items")
            .is_none_or(|items| accepts(root, items, item))
    });
    let members = value.as_object().is_none_or(|map| {
        let required = schema["required"].as_array().into_iter().flatten();
        let present = required
            .filter_map(Value::as_str)
            .all(|key| map.contains_key(key));
        present
            && map.iter().all(|(key, value)| {
                let own = schema["properties"].get(key);
                own.or(schema.get("additionalProperties"))
                    .is_none_or(|property| accepts(root, property, value))
            })
    });
    fits && items && members
}

#[test]
fn what_loads_is_accepted() {
    let worker = super::worker();
    for text in [EVERY_KEY, INLINE, MUTATING, READ_ONLY] {
        assert!(accepts(&worker, &worker, &yaml_to_json(text)), "{text}");
    }
    for text in [
        "name: w\nversion: 1.10\n",
        "worker: {id: w}\nskills: [a, {id: b, run: [x, 1]}, {id: c, run: {script: x, interpreter: [a, b]}}]\n",
        "worker: {id: w}\nskills: {installed: [a], capabilities: [b]}\n",
        "worker: {id: w}\nverification: {post_execute: [prose, {check: x, max: 3}]}\nexecution: {max_runtime: 90}\n",
        "worker: {id: w}\nschedule: \"@daily\"\ncron: [\"0 9 * * *\", {every: 5m, blackout: {hours: [2, \"22-5\"]}}]\n",
        "worker: {id: w}\nschedule: {cron: \"0 9 * * *\", catch_up: {mode: all, window: 1h}, pause_on_failure: true}\n",
        "worker: {id: w}\nschedule: {after: {skill: a/b, on: always}, overlap: buffer_one, inputs: {n: 1}}\n",
        "worker: {id: w}\nskills: [{id: a, run: x, cron: {schedule: \"@daily\", enabled: true, max_concurrent: 1}}]\n",
        "worker: {id: w}\nbranch: reports\nkeep: target\nlocal: [.env, {path: node_modules/, link: true}]\npush: true\n",
        "worker: {id: w}\nskills: [{id: a, mutating: true, branch: {name: r, create: true}, parallel: true, push: o, filtered: stored}]\n",
        "worker: {id: w}\nbudget: {tokens: 500_000, money: 2.50, per_day: {money: 10, runs: 50}}\nskills: [{id: a, preferred_model: fast, max_iterations: 3, budget: {turns: 20}, toolsets: [files]}]\n",
        "worker: {id: w}\nhooks: {post_tools: x}\nretry: {max_attempts: 2, backoff: 3s, on: execution}\n",
    ] {
        assert!(accepts(&worker, &worker, &yaml_to_json(text)), "{text}");
    }
    let skill = super::skill();
    let front = STANDALONE.split("---").nth(1).expect("frontmatter");
    assert!(accepts(&skill, &skill, &yaml_to_json(front)));
    let config = super::config();
    let text = "models: {default: {provider: openai_responses, model: m, key: env:K, temperature: 0.2, prices: {input: 3, output: '15.00'}}}\nbudget: {money: 5}\ntoolsets: {a: {builtin: [bash], commands: {lint: {run: [x], description: d, schema: {type: object}}}, mcp: {url: 'https://x/mcp'}}}\ninstances: {'cfo-{company}': [{company: acme}, {company: 7}]}\n";
    assert!(accepts(&config, &config, &yaml_to_json(text)));
    let text = "timezone: UTC\nbranch: main\npush: false\nland_wait: 5m\ntrees: {max: 2, min_free: 512MiB, idle: 1d}\nqueue: {max: 5}\nhooks: {post_commit: {command: x, timeout: 5s}}\n";
    assert!(accepts(&config, &config, &yaml_to_json(text)));
}

#[test]
fn what_is_rejected_is_refused() {
    let worker = super::worker();
    for text in [
        "worker: {name: w}\n",
        "worker: {id: w}\nexecution: {mode: weekly}\n",
        "worker: {id: w}\nskills: [{id: a, mutating: maybe}]\n",
        "worker: {id: w}\nskills: [{id: a, interface: {inputs: [{type: string}]}}]\n",
        "worker: {id: w}\nskills: [{id: a, interface: {outputs: [{type: pdf}]}}]\n",
        "worker: {id: w}\nenv: {A: [b]}\n",
        "worker: {id: w}\nhooks: {post_tools: [{timeout: 5s}]}\n",
        "worker: {id: w}\nschedule: {cron: \"@daily\", overlap: both}\n",
        "worker: {id: w}\nschedule: {after: {on: always}}\n",
        "worker: {id: w}\nschedule: [true]\n",
        "worker: {id: w}\nbranch: {create: true}\n",
        "worker: {id: w}\nlocal: [{link: true}]\n",
        "worker: {id: w}\nskills: [{id: a, filtered: true}]\n",
        "worker: {id: w}\nbudget: {turns: 0}\n",
        "worker: {id: w}\nskills: [{id: a, max_iterations: 0}]\n",
    ] {
        assert!(!accepts(&worker, &worker, &yaml_to_json(text)), "{text}");
    }
    let config = super::config();
    for text in [
        "models: {a: {model: m}}\n",
        "models: {a: {provider: other, model: m}}\n",
        "models: {a: {provider: ollama, model: m, prices: {input: 1}}}\n",
        "toolsets: {a: {commands: {x: {run: x}}}}\n",
        "instances: {'cfo-{company}': {company: acme}}\n",
    ] {
        assert!(!accepts(&config, &config, &yaml_to_json(text)), "{text}");
    }
}
