//! `models` of workerctl.yaml: what executes instructions.

use super::amounts::{is_name, money, small, thousandths};
use super::keys::{CONFIG_MODEL, CONFIG_MODEL_TIMEOUTS, CONFIG_PRICES, has_near_miss, suggest};
use super::report::Report;
use super::tree::Data;
use super::view::View;
use crate::bounds::{OUTPUT_TOKENS, OUTPUT_TOKENS_MAX};
use crate::keys::KEY_REFUSED;
use crate::model::agent::{KeySource, KeySourceError, Model, ModelTimeouts, Prices, Provider};
use crate::model::duration::exact_millis;

/// Models that may be configured.
const MODELS_MAX: usize = 64;

/// Code of a key that is written where its place belongs.
pub(crate) const KEY_LITERAL: &str = "key-literal";

/// Code of an address that is none.
pub(crate) const ADDRESS: &str = "server-address";

/// Code of the address of a webhook that is written where it can be read.
pub(crate) const WEBHOOK_LITERAL: &str = "webhook-literal";

/// Code of a way of telling people that is none, or more than one.
pub(crate) const NOTIFY_FORM: &str = "notify-form";

/// Problems whose lines may hold a secret: no line with one of them is shown.
pub(crate) const HIDDEN: [&str; 5] = [
    KEY_LITERAL,
    ADDRESS,
    KEY_REFUSED,
    WEBHOOK_LITERAL,
    NOTIFY_FORM,
];

/// Reads all models; those that are rejected are left out.
pub(crate) fn read<'a>(view: View<'a>, report: &mut Report) -> Vec<(View<'a>, Model)> {
    let named = named(view, "models", MODELS_MAX, report);
    let read = named.filter_map(|(alias, view)| Some((view, model(alias, view, report)?)));
    read.collect()
}

/// Names and values of a map whose keys are people's own.
pub(crate) fn named<'a>(
    view: View<'a>,
    key: &str,
    max: usize,
    report: &mut Report,
) -> impl Iterator<Item = (&'a str, View<'a>)> + use<'a> {
    let count = view.entries().count();
    if !matches!(view.data(), Data::Map(_)) {
        view.wrong_type(key, "a map of names", report);
    } else if count > max {
        let message = format!("more than {max} of `{key}`");
        report.error("too-many", view.place(), message, "keep fewer");
    }
    for (name, value) in view.entries().filter(|(name, _)| !is_name(name, ".")) {
        let message = format!("`{}` is no name for one of `{key}`", name.escape_debug());
        let hint = "write at most 64 letters, digits, `_`, `-` and `.`";
        report.error("name-invalid", value.key_place(), message, hint);
    }
    let fits = move |(name, _): &(&str, View<'_>)| count <= max && is_name(name, ".");
    view.entries().filter(fits)
}

/// The value of a key that has to be there.
pub(crate) fn required<'a>(
    view: View<'a>,
    key: &str,
    example: &str,
    report: &mut Report,
) -> Option<View<'a>> {
    let found = view.written(key);
    if found.is_none() && !has_near_miss(view, key) {
        let message = format!("`{key}` is missing");
        report.error(
            "missing-key",
            view.key_place(),
            message,
            &format!("add `{key}: {example}`"),
        );
    }
    found
}

fn model(alias: &str, view: View<'_>, report: &mut Report) -> Option<Model> {
    let before = report.errors();
    if !CONFIG_MODEL.is_map(view, alias, "a map with `provider` and `model`", report) {
        return None;
    }
    let provider =
        required(view, "provider", "anthropic", report).and_then(|view| provider(view, report));
    let name = required(view, "model", "the name that its server knows", report)
        .and_then(|view| view.filled_text("model", report));
    let max_output_tokens = view
        .written("max_output_tokens")
        .and_then(|view| small(view, "max_output_tokens", OUTPUT_TOKENS_MAX, report));
    let model = Model {
        alias: alias.to_owned(),
        provider: provider.unwrap_or(Provider::Anthropic),
        name: name.unwrap_or_default(),
        base_url: view
            .written("base_url")
            .and_then(|view| url(view, "base_url", report)),
        key: view.written("key").and_then(|view| key(view, report)),
        max_output_tokens: max_output_tokens.unwrap_or(OUTPUT_TOKENS),
        temperature_milli: view
            .written("temperature")
            .and_then(|view| thousandths(view, "temperature", 2, report)),
        timeouts: view
            .written("timeouts")
            .map_or_else(ModelTimeouts::default, |view| timeouts(view, report)),
        prices: view.written("prices").and_then(|view| prices(view, report)),
    };
    if report.errors() > before {
        return None;
    }
    if model.provider.wants_key() && model.key.is_none() && model.base_url.is_none() {
        report.warning(
            "model-key-missing",
            view.key_place(),
            format!(
                "`{alias}` has no `key`, which the public API of `{}` requires",
                model.provider.name()
            ),
            "add `key: env:NAME`, or the `base_url` of a server that requires no key",
        );
    }
    Some(model)
}

/// Products and companies, and the provider that serves their models.
const PRODUCTS: [(&str, &str); 4] = [
    ("claude", "anthropic"),
    ("google", "gemini"),
    ("gpt", "openai"),
    ("chatgpt", "openai"),
];

fn provider(view: View<'_>, report: &mut Report) -> Option<Provider> {
    let text = view.filled_text("provider", report)?;
    let found = Provider::ALL.into_iter().find(|one| one.name() == text);
    if found.is_none() {
        let known = Provider::ALL.map(Provider::name);
        let product = PRODUCTS
            .iter()
            .find(|(name, _)| text.eq_ignore_ascii_case(name));
        let meant = product
            .map(|(_, provider)| *provider)
            .or_else(|| suggest(&text, &known));
        let hint = meant.map_or_else(
            || format!("write one of `{}`", known.join("`, `")),
            |meant| format!("did you mean `{meant}`?"),
        );
        let message = format!("`provider: {}` is not known", text.escape_debug());
        report.error("unknown-value", view.place(), message, &hint);
    }
    found
}

/// Reads where a key is. What stands there instead may be the key: it is never repeated.
pub(crate) fn key(view: View<'_>, report: &mut Report) -> Option<KeySource> {
    let found = view.scalar_text().and_then(|text| text.parse().ok());
    if found.is_none() {
        let message = KeySourceError.to_string();
        let hint = "read it from the environment or a file; revoke a key that was written here";
        report.error(KEY_LITERAL, view.place(), message, hint);
    }
    found
}

/// Reads the address of a server. What stands there may hold a password: it is never repeated.
pub(crate) fn url(view: View<'_>, key: &str, report: &mut Report) -> Option<String> {
    let text = view.scalar_text().unwrap_or_default();
    if is_url(&text) {
        return Some(text);
    }
    report.error(
        ADDRESS,
        view.place(),
        format!("`{key}` is no address of a server"),
        "write `https://` or `http://`, the host and a path: no user, no password, no query",
    );
    None
}

fn is_url(text: &str) -> bool {
    let rest = ["https://", "http://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    let authority = rest
        .and_then(|rest| rest.split('/').next())
        .unwrap_or_default();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse::<u16>().ok()),
        _ => (authority, Some(0)),
    };
    let plain = |c: char| c.is_ascii_graphic() && !"?#\\\"<>^`{|}".contains(c);
    !host.is_empty() && port.is_some() && !authority.contains('@') && text.chars().all(plain)
}

/// Reads `timeouts`. What is not said there gives way to what is.
fn timeouts(view: View<'_>, report: &mut Report) -> ModelTimeouts {
    let usual = ModelTimeouts::default();
    if !CONFIG_MODEL_TIMEOUTS.is_map(view, "timeouts", "a map such as `{turn: 10m}`", report) {
        return usual;
    }
    let mut within = |key: &str, usual: u64, outer: Option<(&str, u64)>| {
        let limit = outer.map_or(u64::MAX, |(_, limit)| limit);
        let written = view.written(key);
        let Some((view, millis)) = written.and_then(|view| Some((view, view.millis(key, report)?)))
        else {
            return usual.min(limit);
        };
        if let Some((outer, limit)) = outer.filter(|(_, limit)| millis > *limit) {
            let message = format!(
                "`{key}` is longer than `{outer}`, which is {}",
                exact_millis(limit)
            );
            let hint = format!("write less, or more for `{outer}`");
            report.error("limits-contradict", view.place(), message, &hint);
        }
        millis
    };
    let turn_ms = within("turn", usual.turn_ms, None);
    let headers_ms = within("headers", usual.headers_ms, Some(("turn", turn_ms)));
    ModelTimeouts {
        connect_ms: within("connect", usual.connect_ms, Some(("headers", headers_ms))),
        silence_ms: within("silence", usual.silence_ms, Some(("turn", turn_ms))),
        headers_ms,
        turn_ms,
    }
}

fn prices(view: View<'_>, report: &mut Report) -> Option<Prices> {
    if !CONFIG_PRICES.is_map(
        view,
        "prices",
        "a map such as `{input: 3.00, output: 15.00}`",
        report,
    ) {
        return None;
    }
    let input =
        required(view, "input", "3.00", report).and_then(|view| money(view, "input", report));
    let output =
        required(view, "output", "15.00", report).and_then(|view| money(view, "output", report));
    let mut cache = |key: &str| match view.written(key) {
        Some(view) => money(view, key, report),
        None => input,
    };
    Some(Prices {
        cache_read: cache("cache_read")?,
        cache_write: cache("cache_write")?,
        input: input?,
        output: output?,
    })
}
