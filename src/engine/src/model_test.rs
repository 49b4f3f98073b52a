//! Asks a model for one token, where the engine runs: its keys and its network count.

use std::collections::BTreeMap;

use super::model_keys;
use crate::clock::Clock;
use crate::model::Config;
use crate::model::agent::{CONFIGURE_A_MODEL, Model};
use crate::protocol::Probe;
use crate::thread::mask::Masker;

/// Tries a model; nothing of it stays.
pub(super) fn test(
    config: &Config,
    alias: &str,
    environment: &BTreeMap<String, String>,
    clock: &dyn Clock,
) -> Probe {
    let answer = |works, message: String, hints| Probe {
        subject: "model".to_owned(),
        ok: works,
        message,
        hints,
    };
    let Some(model) = config.models.get(alias) else {
        let known: Vec<&str> = config.models.keys().map(String::as_str).collect();
        let hint = match known.as_slice() {
            [] => CONFIGURE_A_MODEL.to_owned(),
            known => format!("there are {}", known.join(", ")),
        };
        return answer(
            false,
            format!("no model `{alias}` is configured"),
            vec![hint],
        );
    };
    // Servers may repeat what they were sent, in any form.
    let key = model
        .key
        .as_ref()
        .and_then(|key| model_keys::value(key, environment).ok());
    let masker =
        Masker::new(key.iter().map(|key| ("key", key.expose().as_bytes()))).unwrap_or_default();
    match ask(model, environment, clock) {
        Ok(told) => answer(true, told, Vec::new()),
        Err((why, hint)) => {
            let why = masker.mask_text(&why).into_owned();
            answer(false, why, hint.into_iter().collect())
        }
    }
}

#[cfg(not(feature = "llm"))]
fn ask(
    model: &Model,
    _environment: &BTreeMap<String, String>,
    _clock: &dyn Clock,
) -> Result<String, (String, Option<String>)> {
    let why = format!("model `{}`: this build has no model client", model.alias);
    Err((why, Some("build it with the feature `llm`".to_owned())))
}

/// What came of one token, or why none came and what helps.
#[cfg(feature = "llm")]
fn ask(
    model: &Model,
    environment: &BTreeMap<String, String>,
    clock: &dyn Clock,
) -> Result<String, (String, Option<String>)> {
    use std::time::Duration;
    use workerctl_agent::{Client, ClientSettings, Dialect, Failure, Message, Request, Stop};

    let mut asked = super::effects::agent::model::of(model, environment)
        .map_err(|why| (why, Some("set it where the engine runs".to_owned())))?;
    // The least that its server accepts.
    asked.limits.max_output_tokens = match asked.dialect {
        Dialect::OpenAiResponses => 16,
        _ => 1,
    };
    asked.deadlines.turn = asked.deadlines.turn.min(Duration::from_secs(30));
    let client = Client::new(ClientSettings::default())
        .map_err(|error| (format!("no thread for it: {error}"), None))?;
    let request = Request {
        messages: vec![Message::user("Say: ok")],
        ..Request::default()
    };
    let begun_ms = clock.monotonic_ms();
    let turn = client.turn(&asked, &request, &mut drop, &Stop::new());
    let took = clock.monotonic_ms().saturating_sub(begun_ms);
    let answers = format!(
        "`{}` answers as {} within {took} ms",
        model.alias, model.name
    );
    match turn {
        Ok(_) => Ok(answers),
        // One token is seldom a whole answer, and all of it may go into thinking.
        Err(error) => match *error.failure {
            Failure::Length { .. } | Failure::Empty { .. } => Ok(answers),
            _ => Err((error.to_string(), error.hint())),
        },
    }
}
