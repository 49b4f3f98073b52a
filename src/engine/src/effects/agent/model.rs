//! The model of a skill, as the client wants it.

use std::collections::BTreeMap;
use std::time::Duration;

use workerctl_agent::{Deadlines, Dialect, Key, Model, ModelLimits};

use super::super::super::model_keys;
use crate::model::agent::{self, Provider};

/// The model with its key.
///
/// # Errors
/// The key is not there: says which, never its value.
pub(crate) fn of(
    model: &agent::Model,
    environment: &BTreeMap<String, String>,
) -> Result<Model, String> {
    let key = match &model.key {
        None => None,
        Some(source) => {
            let value = model_keys::value(source, environment)
                .map_err(|why| format!("model `{}`: its key cannot be used: {why}", model.alias))?;
            Some(Key::new(source.to_string(), value.expose()))
        }
    };
    let span = Duration::from_millis;
    Ok(Model {
        alias: model.alias.clone(),
        dialect: match model.provider {
            Provider::Anthropic => Dialect::Anthropic,
            Provider::Openai => Dialect::OpenAiChat,
            Provider::OpenaiResponses => Dialect::OpenAiResponses,
            Provider::Gemini => Dialect::Gemini,
            Provider::Ollama => Dialect::Ollama,
        },
        name: model.name.clone(),
        base_url: model.base_url.clone(),
        key,
        limits: ModelLimits {
            max_output_tokens: model.max_output_tokens,
            temperature: model
                .temperature_milli
                .map(|thousandths| f64::from(thousandths) / 1_000.0),
        },
        deadlines: Deadlines {
            connect: span(model.timeouts.connect_ms),
            headers: span(model.timeouts.headers_ms),
            silence: span(model.timeouts.silence_ms),
            turn: span(model.timeouts.turn_ms),
        },
    })
}
