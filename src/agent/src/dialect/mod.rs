//! The five dialects: writing requests and reading answers.
//!
//! Frames are read into types, so that a field of another type than it should have is a malformed frame and
//! not one that is missing. Unknown events and fields are passed over, as the vendors ask for.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::answer::{Answer, BrokenAnswer};
use crate::error::Failure;
use crate::frames::Framing;
use crate::model::{Dialect, Key, Model};
use crate::request::{CACHE_MARKS_MAX, CacheMark, Request};
use crate::status::status_of;
use crate::wire::Wire;

/// Reads the frames of one answer.
pub(crate) trait Decode: Send {
    /// Takes the data of one frame; whether the answer ends with it.
    fn frame(&mut self, data: &[u8], answer: &mut Answer) -> Result<bool, BrokenAnswer>;

    /// The body ended cleanly without a final frame. By default that is a cut. Dialects that have no final
    /// frame, or servers that omit it, override this; an answer without a stop reason stays incomplete.
    fn end(&mut self, answer: &mut Answer) {
        answer.stop = None;
    }
}

impl Dialect {
    pub(crate) fn framing(self) -> Framing {
        match self {
            Self::Ollama => Framing::Lines,
            Self::Anthropic | Self::OpenAiChat | Self::OpenAiResponses | Self::Gemini => {
                Framing::Events
            }
        }
    }

    pub(crate) fn decoder(self) -> Box<dyn Decode> {
        match self {
            Self::Anthropic => Box::<anthropic::Decoder>::default(),
            Self::OpenAiChat => Box::<chat::Decoder>::default(),
            Self::OpenAiResponses => Box::new(responses::Decoder),
            Self::Gemini => Box::<gemini::Decoder>::default(),
            Self::Ollama => Box::<ollama::Decoder>::default(),
        }
    }
}

/// Writes a request in the model's dialect.
pub(crate) fn wire(model: &Model, request: &Request) -> Result<Wire, Failure> {
    check(model, request)?;
    let (url, body) = match model.dialect {
        Dialect::Anthropic => anthropic::request(model, request)?,
        Dialect::OpenAiChat => chat::request(model, request)?,
        Dialect::OpenAiResponses => responses::request(model, request)?,
        Dialect::Gemini => gemini::request(model, request)?,
        Dialect::Ollama => ollama::request(model, request)?,
    };
    let body = serde_json::to_vec(&body)
        .map_err(|_| Failure::Settings("the request cannot be written as JSON".into()))?;
    Ok(Wire {
        dialect: model.dialect,
        name: model.name.clone(),
        host: host(&url),
        url,
        headers: headers(model)?,
        body: body.into(),
        key_reference: model.key.as_ref().map(|key| key.reference().to_owned()),
    })
}

fn check(model: &Model, request: &Request) -> Result<(), Failure> {
    let problem =
        if model.name.trim().is_empty() {
            "the model has no name"
        } else if model.limits.max_output_tokens == 0 {
            "`max_output_tokens` is 0"
        } else if request.messages.is_empty() {
            "the request has no message"
        } else if request.cache.len() > CACHE_MARKS_MAX {
            "the request has more than four cache marks"
        } else if request.cache.iter().any(
            |mark| matches!(mark, CacheMark::Message(index) if *index >= request.messages.len()),
        ) {
            "a cache mark follows the last message"
        } else {
            return Ok(());
        };
    Err(Failure::Settings(problem.into()))
}

fn headers(model: &Model) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert(
        "accept",
        HeaderValue::from_static("text/event-stream, application/x-ndjson"),
    );
    if model.dialect == Dialect::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    let (name, prefix) = match model.dialect {
        Dialect::Anthropic => ("x-api-key", ""),
        Dialect::Gemini => ("x-goog-api-key", ""),
        Dialect::OpenAiChat | Dialect::OpenAiResponses | Dialect::Ollama => {
            ("authorization", "Bearer ")
        }
    };
    if let Some(key) = &model.key {
        headers.insert(HeaderName::from_static(name), secret(key, prefix)?);
    }
    Ok(headers)
}

fn secret(key: &Key, prefix: &str) -> Result<HeaderValue, Failure> {
    let refused = |why| Failure::Settings(format!("the key of `{}` {why}", key.reference()));
    if key.value().is_empty() {
        return Err(refused("is empty"));
    }
    let mut value = HeaderValue::from_str(&format!("{prefix}{}", key.value()))
        .map_err(|_| refused("has characters that no header may have"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The address of an operation: the model's base, or the public one, and `path` behind it. Of a version in
/// `path` that the base ends with already, one is left out.
fn address(model: &Model, public: &str, path: &[&str]) -> Result<Url, Failure> {
    let base = model.base_url.as_deref().unwrap_or(public);
    let refused = |why: &str| Failure::Settings(format!("`base_url` {why}"));
    let mut url = Url::parse(base).map_err(|_| refused("is no address"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(refused("is neither `http://` nor `https://` with a host"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("holds a password; give it as a `key`"));
    }
    let there = url
        .path()
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    let path = match path {
        [version, rest @ ..] if *version == there && !there.is_empty() => rest,
        all => all,
    };
    url.path_segments_mut()
        .map_err(|()| refused("cannot have a path"))?
        .pop_if_empty()
        .extend(path);
    Ok(url)
}

/// Host and port of an address, without anything that could be a secret.
pub(crate) fn host(url: &Url) -> String {
    let name = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{name}:{port}"),
        None => name.to_owned(),
    }
}

/// Parses a frame.
fn parse<'de, T: serde::Deserialize<'de>>(data: &'de [u8]) -> Result<T, BrokenAnswer> {
    serde_json::from_slice(data).map_err(|_| BrokenAnswer::Malformed("a part of it is malformed"))
}

/// An error that a server reports within its stream.
fn provider_error(error: &Value) -> BrokenAnswer {
    let (status, message) = status_of(error);
    BrokenAnswer::Provider { status, message }
}

/// A result's text in dialects that have no mark for errors.
fn marked(result: &crate::request::ToolResult) -> String {
    if result.is_error {
        format!("error: {}", result.content)
    } else {
        result.content.clone()
    }
}

/// The parts to send back, if they came from this model.
fn continued<'a>(
    model: &Model,
    continuation: Option<&'a crate::turn::Continuation>,
) -> Option<&'a [Value]> {
    continuation
        .filter(|it| it.dialect == model.dialect && it.model == model.name)
        .map(|it| it.parts.as_slice())
}

/// Arguments to send back. What was no object is sent as an empty one: the dialects take objects only, and
/// the result of the call says what was wrong.
fn object(call: &crate::turn::Call) -> Value {
    call.arguments
        .clone()
        .unwrap_or_else(|_| Value::Object(serde_json::Map::new()))
}

/// Tools in the form that OpenAI began and Ollama took over.
fn function_tools(request: &Request) -> Value {
    let tool = |tool: &crate::request::ToolSpec| {
        serde_json::json!({
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
            },
        })
    };
    request.tools.iter().map(tool).collect()
}
