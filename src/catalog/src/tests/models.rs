//! `models` of workerctl.yaml.

use super::*;
use crate::model::agent::{ModelTimeouts, Money, Provider};
use crate::model::{Config, Skill};

/// A model without a key, and one with prices.
pub(super) const MODELS: &str = "models:\n  default: {provider: ollama, model: m}\n  dear: {provider: ollama, model: m, prices: {input: 3, output: 15}}\n";

pub(super) fn configured(text: &str) -> Catalog {
    let workspace = Workspace::new(&[("workerctl.yaml", text)]);
    workspace.load()
}

pub(super) fn accepted(text: &str) -> Config {
    let catalog = configured(text);
    let none: [&str; 0] = [];
    assert_eq!(codes(&catalog), none, "{text}: {}", show(&catalog.problems));
    catalog.config
}

/// Skills of one worker `w`, whose keys stand before them, beside a configuration.
pub(super) fn of_worker(config: &str, worker: &str, skills: &str) -> Catalog {
    let yaml = format!("worker: {{id: w}}\n{worker}skills:\n{skills}");
    let workspace = Workspace::new(&[("workerctl.yaml", config), ("workers/w/worker.yaml", &yaml)]);
    workspace.load()
}

pub(super) fn first(catalog: &Catalog) -> &Skill {
    &catalog.workers[0].skills[0]
}

#[track_caller]
pub(super) fn problem(catalog: &Catalog, code: &str) -> Problem {
    let found = catalog.problems.iter().find(|one| one.code == code);
    let found = found.unwrap_or_else(|| panic!("no {code}: {}", show(&catalog.problems)));
    found.clone()
}

/// The cells of a row of a table.
pub(super) fn cells<const N: usize>(row: &str) -> [&str; N] {
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    cells.try_into().unwrap_or_else(|_| panic!("{row}"))
}

#[test]
fn a_model_is_read_in_full_with_its_origin() {
    let config = accepted(
        "models:\n  default:\n    provider: anthropic\n    model: some-name\n    base_url: http://127.0.0.1:8080/v1\n    key: env:API_KEY\n    max_output_tokens: 4_096\n    temperature: 0.25\n    timeouts: {connect: 5s, headers: 1m, silence: 30s, turn: 5m}\n    prices: {input: 3.00, output: '15.00', cache_read: 0.30, cache_write: 3.75}\n  fast: {provider: ollama, model: small}\n",
    );
    let model = &config.models["default"];
    assert_eq!(
        (model.alias.as_str(), model.provider),
        ("default", Provider::Anthropic)
    );
    assert_eq!(model.name, "some-name");
    assert_eq!(model.base_url.as_deref(), Some("http://127.0.0.1:8080/v1"));
    assert_eq!(model.key.as_ref().unwrap().to_string(), "env:API_KEY");
    assert_eq!(
        (model.max_output_tokens, model.temperature_milli),
        (4_096, Some(250))
    );
    let timeouts = ModelTimeouts {
        connect_ms: 5_000,
        headers_ms: 60_000,
        silence_ms: 30_000,
        turn_ms: 300_000,
    };
    assert_eq!(model.timeouts, timeouts);
    let prices = model.prices.unwrap();
    let millionths = [
        prices.input,
        prices.output,
        prices.cache_read,
        prices.cache_write,
    ];
    assert_eq!(
        millionths.map(|price| price.0),
        [3_000_000, 15_000_000, 300_000, 3_750_000]
    );
    let fast = &config.models["fast"];
    assert_eq!(
        (fast.max_output_tokens, fast.temperature_milli),
        (8_192, None)
    );
    assert_eq!(fast.timeouts, ModelTimeouts::default());
    assert_eq!(
        (&fast.key, &fast.base_url, &fast.prices),
        (&None, &None, &None)
    );
    for (key, origin) in [
        ("models", "workerctl.yaml:2"),
        ("models.default", "workerctl.yaml:2"),
        ("models.fast", "workerctl.yaml:11"),
        ("budget.tokens", "default"),
        ("toolsets", "default"),
    ] {
        assert_eq!(config.origins[key], origin, "{key}");
    }
    assert!(config.kept.is_empty());
}

#[test]
fn what_is_not_said_of_a_model_follows_from_what_is() {
    let config = accepted(
        "models:\n  a: {provider: ollama, model: m, prices: {input: 2, output: 0}, timeouts: {turn: 5s}}\n  b.c-d_E: {provider: openai_responses, model: 7, key: file:~/.key, base_url: 'https://[::1]:80/'}\n  d: {provider: gemini, model: m, key: credential:g, temperature: 2}\n  e: {provider: openai, model: m, base_url: 'http://host'}\n",
    );
    let model = &config.models["a"];
    let prices = model.prices.unwrap();
    assert_eq!(
        (prices.cache_read, prices.cache_write),
        (Money(2_000_000), Money(2_000_000))
    );
    let timeouts = &model.timeouts;
    let all = [
        timeouts.connect_ms,
        timeouts.headers_ms,
        timeouts.silence_ms,
        timeouts.turn_ms,
    ];
    assert_eq!(all, [5_000; 4]);
    assert_eq!(config.models["b.c-d_E"].name, "7");
    assert_eq!(config.models["d"].temperature_milli, Some(2_000));
}

/// A model's lines, divided by `;`, behind `+` after those that are required; the code, its line, and a part of
/// the hint.
const NO_MODELS: &str =
    "provider: ollama                              | missing-key       | 2 | add `model
model: m                                      | missing-key       | 2 | add `provider
provider: antropic ; model: m                 | unknown-value     | 3 | did you mean `anthropic`?
provider: other ; model: m                    | unknown-value     | 3 | `openai_responses`
provider: ollama ; model: ''                  | blank             | 4 |
provider: ollama ; model: [m]                 | wrong-type        | 4 |
+base_ulr: http://x                           | key-refused       | 5 | did you mean `base_url`?
+api_key: sk-ant-1                            | key-refused       | 5 | did you mean `key`?
+x-note: n                                    | key-refused       | 5 | known are
+base_url: ftp://x                            | server-address    | 5 | no password
+base_url: https://u:sk-ant-1@x/v1            | server-address    | 5 |
+base_url: https://x/v1?key=sk-ant-1          | server-address    | 5 |
+base_url: https:///v1                        | server-address    | 5 |
+base_url: https://x:port/                    | server-address    | 5 |
+base_url: [https://x]                        | server-address    | 5 |
+key: sk-ant-1                                | key-literal       | 5 | environment
+key: env:sk ant                              | key-literal       | 5 |
+key: {sk-ant-1}                              | key-literal       | 5 |
+key: [sk-ant-1]                              | key-literal       | 5 |
+max_output_tokens: 0                         | out-of-range      | 5 | from 1 to 1000000
+max_output_tokens: -1                        | out-of-range      | 5 |
+max_output_tokens: 1_000_001                 | wrong-type        | 5 | from 1 to 1000000
+max_output_tokens: many                      | wrong-type        | 5 |
+temperature: 2.001                           | out-of-range      | 5 | `0.2`
+temperature: 0.2222                          | out-of-range      | 5 |
+temperature: -1                              | out-of-range      | 5 |
+temperature: warm                            | out-of-range      | 5 |
+timeouts: 5m                                 | wrong-type        | 5 |
+timeouts: {turn: 0s}                         | duration-invalid  | 5 |
+timeouts: {turn: -5s}                        | duration-invalid  | 5 |
+timeouts: {total: 5s}                        | key-refused       | 5 | `turn`
+timeouts: {headers: 11m}                     | limits-contradict | 5 | `turn`
+timeouts: {headers: 2m, turn: 1m}            | limits-contradict | 5 | `turn`
+timeouts: {silence: 2m, turn: 1m}            | limits-contradict | 5 | `turn`
+timeouts: {connect: 9s, headers: 8s}         | limits-contradict | 5 | `headers`
+prices: 5                                    | wrong-type        | 5 |
+prices: {input: 1}                           | missing-key       | 5 | add `output
+prices: {output: 1}                          | missing-key       | 5 | add `input
+prices: {input: -1, output: 1}               | money-invalid     | 5 | `2.50`
+prices: {input: 1, output: 1e3}              | money-invalid     | 5 |
+prices: {input: 1, output: 1, cache_read: x} | money-invalid     | 5 |
+prices: {input: 1.1234567, output: 1}        | money-invalid     | 5 |
+prices: {input: 1, output: 1, cached: 1}     | key-refused       | 5 | `cache_read`";

#[test]
fn what_is_no_model_is_refused_with_its_place() {
    for row in NO_MODELS.lines() {
        let [lines, code, line, hint] = cells(row);
        let lines = lines.replace('+', "provider: ollama ; model: m ; ");
        let lines = lines.replace(" ; ", "\n    ");
        let text = format!("models:\n  a:\n    {lines}\n");
        let workspace = Workspace::new(&[("workerctl.yaml", &text)]);
        let catalog = workspace.load();
        let found = problem(&catalog, code);
        let place = (found.severity, found.place.line.to_string());
        assert_eq!(place, (ERROR, line.to_owned()), "{row}");
        let said = found.hint.as_deref().unwrap_or_default();
        assert!(said.contains(hint), "{row}: {said}");
        assert!(catalog.config.models.is_empty(), "{row}");
        assert!(!catalog.config_is_known, "{row}");
        repeats_no_key(&catalog);
    }
    let many = (0..65).fold(String::new(), |all, n| {
        all + &format!("  m{n}: {{provider: ollama, model: m}}\n")
    });
    let long = format!("  {}: {{provider: ollama, model: m}}\n", "x".repeat(65));
    for (models, code, line) in [
        ("\n  a b: {provider: ollama, model: m}\n", "name-invalid", 2),
        (&format!("\n{long}"), "name-invalid", 2),
        (&format!("\n{many}"), "too-many", 2),
        (" []\n", "wrong-type", 1),
        (" {fast: some-model}\n", "wrong-type", 1),
    ] {
        let found = problem(&configured(&format!("models:{models}")), code);
        assert_eq!(
            (found.severity, found.place.line),
            (ERROR, line),
            "{models}"
        );
    }
}

/// A key that was written where it does not belong is in no message, and in no line that is shown with one.
#[track_caller]
fn repeats_no_key(catalog: &Catalog) {
    let messages = show(&catalog.problems);
    assert!(!messages.contains("sk-ant"), "{messages}");
    let shown = catalog.problems.iter();
    for line in shown.filter_map(|one| catalog.source_line(one)) {
        assert!(!line.contains("sk-ant"), "{line}");
    }
}

#[test]
fn a_key_is_not_shown_with_another_problem_of_its_line() {
    let model = "{provider: antropic, model: m, key: sk-ant-1}";
    let text = format!("models:\n  a: {model}\n  b: {{model: m}}\n");
    let workspace = Workspace::new(&[("workerctl.yaml", &text)]);
    let catalog = workspace.load();
    let found = codes(&catalog);
    assert_eq!(found, ["unknown-value", "key-literal", "missing-key"]);
    repeats_no_key(&catalog);
    let shown = catalog.source_line(&problem(&catalog, "missing-key"));
    assert_eq!(shown.as_deref(), Some("  b: {model: m}"));
}

#[test]
fn a_model_without_a_key_where_one_is_wanted_is_told() {
    for (model, told) in [
        ("{provider: anthropic, model: m}", true),
        ("{provider: gemini, model: m}", true),
        ("{provider: anthropic, model: m, key: env:K}", false),
        ("{provider: openai, model: m, base_url: http://x}", false),
        ("{provider: ollama, model: m}", false),
    ] {
        let catalog = configured(&format!("models:\n  a: {model}\n"));
        let expected: &[&str] = if told { &["model-key-missing"] } else { &[] };
        assert_eq!(codes(&catalog), expected, "{model}");
        assert!(catalog.config.models.contains_key("a"), "{model}");
        if told {
            let found = problem(&catalog, "model-key-missing");
            assert_eq!((found.severity, found.place.line), (WARNING, 2));
        }
    }
}
