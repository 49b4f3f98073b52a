//! The question to the person at a client, before a skill that changes things runs for it (elicitation).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CancelledNotificationParam, ClientResult, ElicitRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequiredResult, ProtocolVersion, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext, RoleServer, ServiceError};
use serde_json::Value;

use super::consents;
use crate::model::legible::{exact, legible, legible_lines};
use crate::protocol::Rendered;

/// How long a person may take: their client gives up the call itself if it wants to.
const PATIENCE: Duration = Duration::from_mins(10);

/// Under which name the question stands among the inputs that a client has to give (2026-07-28).
const KEY: &str = "run";

/// Characters of one value or line, and lines of the command, that the question shows.
const LINE_CHARS: usize = 200;
const COMMAND_LINES: usize = 20;

/// Characters of one input. A longer one cannot be shown whole, so the call is refused without a question.
const VALUE_CHARS: usize = 4_000;

/// Blanks in a row that are shown as such; more could move what follows out of sight.
const BLANKS: usize = 8;

/// What became of the question.
pub(super) enum Answer {
    /// The person agreed to what has this digest.
    Yes(String),
    /// They did not.
    No(&'static str),
    /// The client has to ask and to call again.
    Pending(Box<InputRequiredResult>),
}

/// What a client that calls again says of the question.
pub(super) struct Given {
    answer: Option<ElicitResult>,
    state: Option<String>,
}

impl Given {
    /// What stands in a call.
    pub(super) fn of(request: &mut CallToolRequestParams) -> Given {
        let answers = request.input_responses.take();
        let answer = answers.and_then(|mut answers| answers.remove(KEY));
        Given {
            answer: answer.and_then(|answer| serde_json::from_value(answer).ok()),
            state: request.request_state.take(),
        }
    }
}

/// Whether the client can ask its person with a form.
pub(super) fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let declared = context.client_capabilities();
    // Before 2025-11-25 there was one kind, which had no name.
    declared
        .and_then(|client| client.elicitation)
        .is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
}

/// Asks. An answer counts for exactly what was shown: its digest goes with the run, which is refused where it is another
/// one by then.
pub(super) async fn ask(
    rendered: &Rendered,
    given: Given,
    context: &RequestContext<RoleServer>,
) -> Answer {
    if rendered.inputs.iter().any(|(_, value)| is_too_long(value)) {
        return Answer::No(
            "an input is too long for the confirmation prompt; a user can run it: `workerctl run`",
        );
    }
    let question = ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question(rendered),
        // Agreeing is all: there is nothing to fill in.
        requested_schema: ElicitationSchema::new(BTreeMap::new()),
    });
    let digest = rendered.digest.clone();
    if context.protocol_version() < Some(ProtocolVersion::V_2026_07_28) {
        return match asked(question, context).await {
            Ok(answer) => verdict(&answer, digest),
            Err(ServiceError::Timeout { .. }) => {
                Answer::No("the person who was asked did not answer")
            }
            Err(error) => {
                let error = error.to_string();
                let error = legible(&error);
                tracing::warn!(%error, "the person at the client cannot be asked");
                Answer::No("the client did not ask its user")
            }
        };
    }
    // An answer counts once, and only for what was shown: otherwise one consent would start many runs.
    let answered = given.answer.zip(given.state);
    let answered = answered.filter(|(_, state)| consents::take(state).as_ref() == Some(&digest));
    if let Some((answer, _)) = answered {
        return verdict(&answer, digest);
    }
    let requests = BTreeMap::from([(KEY.to_owned(), InputRequest::Elicitation(question))]);
    let state = consents::state_of_question(&digest);
    let pending = InputRequiredResult::new(Some(requests), Some(state));
    Answer::Pending(Box::new(pending))
}

async fn asked(
    question: ElicitRequest,
    context: &RequestContext<RoleServer>,
) -> Result<ElicitResult, ServiceError> {
    let request = ServerRequest::ElicitRequest(question);
    let options = PeerRequestOptions::with_timeout(PATIENCE);
    let asked = context
        .peer
        .send_cancellable_request(request, options)
        .await?;
    let (peer, id) = (asked.peer.clone(), asked.id.clone());
    let answered = tokio::select! {
        answered = asked.await_response() => answered?,
        () = context.ct.cancelled() => {
            let withdrawn = CancelledNotificationParam::new(Some(id), Some("the call was cancelled".to_owned()));
            peer.notify_cancelled(withdrawn).await?;
            return Err(ServiceError::Cancelled { reason: None });
        }
    };
    match answered {
        ClientResult::ElicitResult(answer) => Ok(answer),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

fn verdict(answer: &ElicitResult, digest: String) -> Answer {
    match answer.action {
        ElicitationAction::Accept => Answer::Yes(digest),
        ElicitationAction::Decline => Answer::No("the person who was asked declined"),
        _ => Answer::No("the person who was asked gave no answer"),
    }
}

/// What a person has to know before they agree.
fn question(rendered: &Rendered) -> String {
    let mut text = format!("Run `{}`? It changes things.\n", rendered.skill);
    let mut line = |key: &str, said: &str| {
        // Writing into a string cannot fail.
        let _ = writeln!(text, "{key}: {said}");
    };
    for (name, value) in &rendered.inputs {
        line(&format!("input {name}"), &shown(value));
    }
    match &rendered.branch {
        Some(branch) => line(
            "branch",
            &format!("{}, where its result lands as a commit", exact(branch)),
        ),
        None => line("branch", "none: it works directly in the checkout"),
    }
    if let Some(remote) = &rendered.push {
        line("pushes", &format!("the branch to `{}`", exact(remote)));
    }
    for hook in &rendered.hooks {
        line("hook", &cut(hook));
    }
    let outputs = rendered.outputs.iter();
    let outputs = outputs.filter_map(|(_, path)| path.as_deref().map(exact));
    let outputs: Vec<String> = outputs.collect();
    if !outputs.is_empty() {
        line("writes", &outputs.join(", "));
    }
    if !rendered.writes.is_empty() {
        let writes: Vec<String> = rendered.writes.iter().map(|path| exact(path)).collect();
        line("may also write", &writes.join(", "));
    }
    line("sandbox", &exact(&rendered.sandbox));
    match &rendered.instructions {
        Some(instructions) => line("instructions for", &exact(&instructions.model)),
        None => line("command", &command(&rendered.argv)),
    }
    legible_lines(text.trim_end()).into_owned()
}

fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}

fn is_too_long(value: &Value) -> bool {
    text_of(value).chars().nth(VALUE_CHARS).is_some()
}

/// Returns a whole value; many blanks in a row are replaced by their count. The single backslash before it cannot come
/// from the value, whose backslashes are doubled.
fn shown(value: &Value) -> String {
    let text = visible(&text_of(value), VALUE_CHARS);
    let mut shown = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(' ') {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let after = from.trim_start_matches(' ');
        let count = from.len() - after.len();
        if count > BLANKS {
            // Writing into a string cannot fail.
            let _ = write!(shown, "\\{{{count} blanks}}");
        } else {
            shown.push_str(&from[..count]);
        }
        rest = after;
    }
    shown + rest
}

/// Its first lines, indented so that none can pose as another line of the question.
fn command(argv: &[String]) -> String {
    let text = match argv {
        // A shell reads the text again, so it is shown as it is written.
        [shell, option, text] if option == "-c" => format!("{shell} -c {text}"),
        words => {
            let words: Vec<Cow<'_, str>> = words.iter().map(|word| quoted(word)).collect();
            words.join(" ")
        }
    };
    let mut lines: Vec<String> = text.split('\n').take(COMMAND_LINES).map(cut).collect();
    if text.split('\n').nth(COMMAND_LINES).is_some() {
        lines.push("…".to_owned());
    }
    lines.join("\n  ")
}

/// Returns a word in quotes if it would look like several words, or like none.
fn quoted(word: &str) -> Cow<'_, str> {
    if !word.is_empty() && !word.contains(|c: char| c.is_whitespace() || c == '\'' || c == '"') {
        return word.into();
    }
    let escaped = word.replace('\'', "'\\''");
    format!("'{escaped}'").into()
}

fn cut(text: &str) -> String {
    visible(text, LINE_CHARS)
}

/// Text without what could pose as another line of the question, and not too long.
fn visible(text: &str, chars_max: usize) -> String {
    let mut shown = match text.char_indices().nth(chars_max) {
        Some((end, _)) => exact(&text[..end]),
        None => exact(text),
    };
    if text.chars().nth(chars_max).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_words_of_a_command_are_shown_differently() {
        for (words, shown) in [
            (&["git", "log"][..], "git log"),
            (&["git log"], "'git log'"),
            (&["a", ""], "a ''"),
            (&["a", "b'c"], r"a 'b'\\''c'"),
            (&["sh", "-c", "a b\nc"], "sh -c a b\n  c"),
        ] {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            assert_eq!(command(&words), shown);
        }
    }
}
