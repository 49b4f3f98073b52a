//! What the tests have in common: models of the scripted server, a clock that does not wait, and a check of
//! every failure for what must not be in it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use workerctl_agent::{
    Client, ClientSettings, Deadlines, Delta, Dialect, Key, Message, Model, ModelLimits, Pace,
    Request, Stop, Turn, TurnError,
};

use crate::server::ModelServer;

pub(crate) const DIALECTS: [Dialect; 5] = [
    Dialect::Anthropic,
    Dialect::OpenAiChat,
    Dialect::OpenAiResponses,
    Dialect::Gemini,
    Dialect::Ollama,
];

pub(crate) const KEY: &str = "sk-test-9f8e7d6c5b4a39281706";
pub(crate) const SYSTEM: &str = "The vault is behind the third painting.";
pub(crate) const PROMPT: &str = "Count the silver spoons, then whisper the total.";

/// Longer than any test takes.
pub(crate) const LONG: Duration = Duration::from_mins(10);

/// A clock that stands still, and notes waits instead of waiting.
pub(crate) struct StillPace {
    pub(crate) now: SystemTime,
    waits: Mutex<Vec<Duration>>,
}

impl StillPace {
    pub(crate) fn new() -> Arc<Self> {
        // 1994-11-06T08:49:37Z, the example of RFC 9110.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        Arc::new(Self {
            now,
            waits: Mutex::default(),
        })
    }

    /// The waits since it was asked last, in milliseconds.
    pub(crate) fn waits_ms(&self) -> Vec<u128> {
        let waits = std::mem::take(&mut *self.waits.lock().unwrap());
        waits.iter().map(Duration::as_millis).collect()
    }
}

impl Pace for StillPace {
    fn now(&self) -> SystemTime {
        self.now
    }

    fn wait(&self, span: Duration, stop: &Stop) -> bool {
        self.waits.lock().unwrap().push(span);
        stop.is_stopped()
    }

    fn jitter(&self) -> f64 {
        0.5
    }
}

pub(crate) fn settings() -> ClientSettings {
    ClientSettings {
        proxy_from_environment: false,
        ..ClientSettings::default()
    }
}

pub(crate) fn client(pace: &Arc<StillPace>) -> Client {
    Client::with_pace(settings(), Arc::clone(pace) as Arc<dyn Pace>).unwrap()
}

/// The vendor's form of a base address.
pub(crate) fn base(dialect: Dialect, url: &str) -> String {
    match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiResponses => format!("{url}/v1"),
        Dialect::Anthropic | Dialect::Gemini | Dialect::Ollama => url.to_owned(),
    }
}

/// A model with deadlines that no test reaches.
pub(crate) fn model_at(dialect: Dialect, url: &str) -> Model {
    Model {
        alias: "fast".into(),
        dialect,
        name: "scripted-1".into(),
        base_url: Some(base(dialect, url)),
        key: Some(Key::new("TEST_API_KEY", KEY)),
        limits: ModelLimits {
            max_output_tokens: 1_000,
            temperature: None,
        },
        deadlines: Deadlines {
            connect: LONG,
            headers: LONG,
            silence: LONG,
            turn: LONG,
        },
    }
}

pub(crate) fn model(dialect: Dialect, server: &ModelServer) -> Model {
    model_at(dialect, &server.url())
}

pub(crate) fn request() -> Request {
    Request {
        system: SYSTEM.into(),
        messages: vec![Message::user(PROMPT)],
        ..Request::default()
    }
}

/// A turn with the usual request, and all that was told.
pub(crate) fn turn(client: &Client, model: &Model) -> (Result<Turn, TurnError>, Vec<Delta>) {
    let mut deltas = Vec::new();
    let turn = client.turn(
        model,
        &request(),
        &mut |delta| deltas.push(delta),
        &Stop::new(),
    );
    if let Err(error) = &turn {
        holds_no_secret(error);
    }
    (turn, deltas)
}

/// Neither the key nor a run of the prompts is in what people see of an error.
pub(crate) fn holds_no_secret(error: &TurnError) {
    let shown = format!(
        "{error} {error:?} {error:#?} {:?} {}",
        error.hint(),
        error.code()
    );
    for secret in [KEY, SYSTEM, PROMPT] {
        for piece in secret.as_bytes().windows(12) {
            let piece = std::str::from_utf8(piece).unwrap();
            assert!(!shown.contains(piece), "{piece:?} is in {shown}");
        }
    }
}

/// The text that was told, of the last try.
pub(crate) fn told_text(deltas: &[Delta]) -> String {
    let from = deltas
        .iter()
        .rposition(|delta| matches!(delta, Delta::Again { .. }));
    let text = |delta: &Delta| match delta {
        Delta::Text(text) => text.clone(),
        Delta::Reasoning(_) | Delta::Call { .. } | Delta::Again { .. } => String::new(),
    };
    deltas[from.map_or(0, |at| at + 1)..]
        .iter()
        .map(text)
        .collect()
}
