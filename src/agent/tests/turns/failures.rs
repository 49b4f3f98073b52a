//! Turns that do not count, in each dialect: the code, the number of requests, and the waits between them.

use std::net::TcpListener;
use std::time::Duration;

use workerctl_agent::{Deadlines, Delta, Dialect, Failure, Model};

use crate::rig::{DIALECTS, StillPace, base, client, holds_no_secret, model, model_at, turn};
use crate::server::ModelServer;
use crate::server::script::{End, Ending, Reply, Say};

/// Sets one deadline.
type Set = fn(&mut Deadlines, Duration);

struct Case {
    name: &'static str,
    reply: Reply,
    code: &'static str,
    /// Milliseconds between requests; one request more than waits was sent.
    waits_ms: &'static [u128],
}

const NONE: &[u128] = &[];
/// Without a wait that the server asked for.
const OWN: &[u128] = &[500, 2_000];

fn case(
    name: &'static str,
    reply: impl Into<Reply>,
    code: &'static str,
    waits_ms: &'static [u128],
) -> Case {
    Case {
        name,
        reply: reply.into(),
        code,
        waits_ms,
    }
}

fn echo(status: u16) -> Reply {
    Reply::Status {
        status,
        headers: Vec::new(),
        echo: true,
    }
}

fn after(status: u16, value: &str) -> Reply {
    Reply::status_with(status, "retry-after", value)
}

fn statuses() -> Vec<Case> {
    let date = "Sun, 06 Nov 1994 08:49:42 GMT";
    vec![
        case("429", echo(429), "rate_limited", OWN),
        case(
            "429 in 3 s",
            after(429, "3"),
            "rate_limited",
            &[3_000, 3_000],
        ),
        case(
            "429 until a date",
            after(429, date),
            "rate_limited",
            &[5_000, 5_000],
        ),
        case(
            "429 in 750 ms",
            Reply::status_with(429, "retry-after-ms", "750"),
            "rate_limited",
            &[750, 750],
        ),
        case(
            "429 in a minute",
            after(429, "60"),
            "rate_limited",
            &[60_000, 60_000],
        ),
        case("429 in an hour", after(429, "3600"), "rate_limited", NONE),
        case("529", echo(529), "rate_limited", OWN),
        case("529 in an hour", after(529, "3600"), "rate_limited", NONE),
        case("503", echo(503), "server", OWN),
        case(
            "503 in 2 s",
            after(503, "2"),
            "rate_limited",
            &[2_000, 2_000],
        ),
        case("503 in an hour", after(503, "3600"), "rate_limited", NONE),
        case("500", echo(500), "server", OWN),
        case("502", echo(502), "server", OWN),
        case("408", echo(408), "server", OWN),
        case("401", echo(401), "auth", NONE),
        case("403", echo(403), "auth", NONE),
        case("404", echo(404), "model_not_found", NONE),
        case("400", echo(400), "request_refused", NONE),
        case("413", echo(413), "request_refused", NONE),
        case("422", echo(422), "request_refused", NONE),
        case(
            "redirect",
            Reply::status_with(307, "location", "http://127.0.0.1:9/x"),
            "redirected",
            NONE,
        ),
        case(
            "redirect to nowhere",
            Reply::status(301),
            "redirected",
            NONE,
        ),
        case("no content", Reply::status(204), "not_a_model_server", NONE),
    ]
}

fn cuts() -> Vec<Case> {
    let say = || Say::text("a").and("b").and("c");
    vec![
        case("reset", say().end(End::Reset(2)), "incomplete", OWN),
        case("early", say().end(End::Early(2)), "incomplete", OWN),
        case("no frame", say().end(End::Early(0)), "incomplete", OWN),
        case("malformed", say().malformed(), "incomplete", OWN),
        case(
            "half a call",
            Say::nothing().call("read", r#"{"path": "a"#),
            "incomplete",
            OWN,
        ),
        case(
            "arguments that are no JSON",
            Say::text("a").call("read", "{path: a}"),
            "incomplete",
            OWN,
        ),
        case(
            "a call without a name",
            Say::text("a").call("", "{}"),
            "incomplete",
            OWN,
        ),
    ]
}

fn refusals() -> Vec<Case> {
    let say = || Say::text("a").and("b").and("c");
    let raw = |content_type, body: &str| Reply::Raw {
        content_type,
        body: body.to_owned(),
    };
    vec![
        case("empty", Say::nothing(), "empty", NONE),
        case("blank", Say::text(" \n"), "empty", NONE),
        case("length", say().ending(Ending::Length), "length", NONE),
        case(
            "length in a call",
            Say::nothing().call("read", "{}").ending(Ending::Length),
            "length",
            NONE,
        ),
        case("refusal", say().ending(Ending::Refusal), "refusal", NONE),
        case(
            "refusal without a word",
            Say::nothing().ending(Ending::Refusal),
            "refusal",
            NONE,
        ),
        case(
            "overloaded in the stream",
            say().error("overloaded_error"),
            "rate_limited",
            OWN,
        ),
        case(
            "failed in the stream",
            say().error("server_error"),
            "server",
            OWN,
        ),
        case(
            "refused in the stream",
            say().error("invalid_request_error"),
            "request_refused",
            NONE,
        ),
        case(
            "HTML",
            raw("text/html", "<!DOCTYPE html><html></html>"),
            "not_a_model_server",
            NONE,
        ),
        case(
            "text",
            raw("text/plain", "hello"),
            "not_a_model_server",
            NONE,
        ),
        case(
            "an answer at once",
            raw("application/json", "[]"),
            "not_a_model_server",
            NONE,
        ),
        case(
            "an error at once",
            raw(
                "text/plain",
                r#"[{"error": {"code": 400, "message": "x"}}]"#,
            ),
            "request_refused",
            NONE,
        ),
    ]
}

#[test]
fn a_failure_has_its_code_and_its_tries_in_every_dialect() {
    let pace = StillPace::new();
    let client = client(&pace);
    for case in [statuses(), cuts(), refusals()].into_iter().flatten() {
        for dialect in DIALECTS {
            let name = format!("{} of {dialect:?}", case.name);
            let server = ModelServer::start(vec![case.reply.clone()]);
            let (turn, deltas) = turn(&client, &model(dialect, &server));
            let error = turn.expect_err(&name);
            assert_eq!(error.code(), case.code, "{name}: {error}");
            assert_eq!(pace.waits_ms(), case.waits_ms, "{name}");
            assert_eq!(server.requests().len(), case.waits_ms.len() + 1, "{name}");
            assert_eq!(error.tries as usize, case.waits_ms.len() + 1, "{name}");
            let again =
                |delta: &&Delta| matches!(delta, Delta::Again { code, .. } if *code == case.code);
            assert_eq!(
                deltas.iter().filter(again).count(),
                case.waits_ms.len(),
                "{name}"
            );
        }
    }
}

#[test]
fn a_limit_names_the_time_to_come_back() {
    for dialect in DIALECTS {
        for (reply, seconds) in [
            (after(429, "3600"), Some(3600)),
            (after(429, "7"), Some(7)),
            (echo(429), None),
        ] {
            let server = ModelServer::start(vec![reply]);
            let pace = StillPace::new();
            let (turn, _) = turn(&client(&pace), &model(dialect, &server));
            let until = seconds.map(|seconds| pace.now + Duration::from_secs(seconds));
            assert_eq!(
                *turn.unwrap_err().failure,
                Failure::RateLimited { status: 429, until }
            );
        }
    }
}

#[test]
fn messages_of_servers_are_shown_where_they_help() {
    for dialect in DIALECTS {
        for (status, expect) in [
            (
                400,
                "model `fast`: the request was refused (status 400): it went wrong".to_owned(),
            ),
            (
                500,
                "model `fast`: the server failed (status 500): it went wrong".to_owned(),
            ),
            (
                401,
                "model `fast`: the key of `TEST_API_KEY` was not accepted (status 401)".to_owned(),
            ),
        ] {
            let server = ModelServer::start(vec![Reply::status(status)]);
            let (turn, _) = turn(&client(&StillPace::new()), &model(dialect, &server));
            assert_eq!(turn.unwrap_err().to_string(), expect, "{dialect:?}");
        }
    }
}

#[test]
fn an_empty_account_is_not_asked_again() {
    let body = r#"{"error": {"code": "insufficient_quota", "message": "no money"}}"#;
    let frames = Reply::Raw {
        content_type: "application/json",
        body: body.into(),
    };
    let server = ModelServer::start(vec![frames]);
    let (turn, _) = turn(
        &client(&StillPace::new()),
        &model(Dialect::OpenAiChat, &server),
    );
    assert_eq!(turn.unwrap_err().code(), "request_refused");
    assert_eq!(server.requests().len(), 1);
}

/// The server's side never ends, so that reaching the deadline is all that can happen.
#[test]
fn deadlines_end_a_turn() {
    let short = Duration::from_millis(100);
    let say = || Say::text("a").and("b").and("c").and("d");
    let rows: [(Reply, Set, &str); 5] = [
        (
            Reply::Nothing,
            |it, short| it.headers = short,
            "headers_timeout",
        ),
        (Reply::Nothing, |it, short| it.turn = short, "turn_timeout"),
        (
            say().end(End::Silent(0)).into(),
            |it, short| it.silence = short,
            "silence",
        ),
        (
            say().end(End::Silent(2)).into(),
            |it, short| it.silence = short,
            "silence",
        ),
        (
            say().end(End::Silent(2)).into(),
            |it, short| it.turn = short,
            "turn_timeout",
        ),
    ];
    for (reply, set, code) in rows {
        for dialect in DIALECTS {
            let server = ModelServer::start(vec![reply.clone()]);
            let mut model = model(dialect, &server);
            set(&mut model.deadlines, short);
            let (turn, _) = turn(&client(&StillPace::new()), &model);
            assert_eq!(turn.unwrap_err().code(), code, "{dialect:?}");
            assert!(server.requests().len() <= 1, "{dialect:?}");
        }
    }
}

#[test]
fn a_wait_beyond_the_deadline_of_the_turn_is_not_begun() {
    for dialect in DIALECTS {
        let server = ModelServer::start(vec![after(429, "50")]);
        let pace = StillPace::new();
        let mut model = model(dialect, &server);
        model.deadlines.turn = Duration::from_secs(50);
        let (turn, _) = turn(&client(&pace), &model);
        assert_eq!(turn.unwrap_err().code(), "rate_limited");
        assert_eq!(pace.waits_ms(), NONE);
    }
}

#[test]
fn no_connection_is_tried_again_and_named() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    for dialect in DIALECTS {
        let pace = StillPace::new();
        let (turn, _) = turn(
            &client(&pace),
            &model_at(dialect, &format!("http://127.0.0.1:{port}")),
        );
        let error = turn.unwrap_err();
        assert_eq!(error.code(), "connect");
        assert_eq!(pace.waits_ms(), OWN);
        assert!(
            error.to_string().contains(&format!("`127.0.0.1:{port}`")),
            "{error}"
        );
    }
}

/// Something that takes connections and does not speak TLS.
#[test]
fn a_handshake_has_a_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    for dialect in DIALECTS {
        let pace = StillPace::new();
        let mut model = model_at(dialect, &url);
        model.deadlines.connect = Duration::from_millis(50);
        let (turn, _) = turn(&client(&pace), &model);
        let error = turn.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "model `fast`: no connection to `{}`: nothing within 0.05 s",
                &url[8..]
            )
        );
        assert_eq!(pace.waits_ms(), OWN);
    }
}

#[test]
fn what_cannot_be_sent_is_refused_without_a_request() {
    let server = ModelServer::start(vec![Reply::Nothing]);
    let good = || model(Dialect::OpenAiChat, &server);
    let at = |base_url: &str| Model {
        base_url: Some(base_url.to_owned()),
        ..good()
    };
    let key = |value: &str| Model {
        key: Some(workerctl_agent::Key::new("K", value)),
        ..good()
    };
    for (model, expect) in [
        (at("nonsense"), "`base_url` is no address"),
        (
            at("ftp://x/"),
            "`base_url` is neither `http://` nor `https://` with a host",
        ),
        (
            at("http://me:pass@x/"),
            "`base_url` holds a password; give it as a `key`",
        ),
        (key(" \n"), "the key of `K` is empty"),
        (
            key("a\nb"),
            "the key of `K` has characters that no header may have",
        ),
        (
            Model {
                name: " ".into(),
                ..good()
            },
            "the model has no name",
        ),
    ] {
        let (turn, _) = turn(&client(&StillPace::new()), &model);
        let error = turn.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("model `fast`: cannot be used: {expect}")
        );
        assert_eq!((error.code(), error.tries), ("settings", 0));
    }
    assert_eq!(server.requests().len(), 0);
}

/// Servers that put what they were sent everywhere they can.
#[test]
fn no_error_repeats_a_key_or_a_prompt() {
    use crate::rig::{KEY, PROMPT, SYSTEM};
    let all = format!("{SYSTEM} {PROMPT} {KEY}");
    let location = Reply::status_with(302, "location", &format!("http://{KEY}.test/?{KEY}"));
    let raw = |content_type: &'static str, body: String| Reply::Raw { content_type, body };
    for dialect in DIALECTS {
        let stop = match dialect {
            Dialect::Anthropic => format!(
                "data: {{\"type\": \"message_delta\", \"delta\": {{\"stop_reason\": \"{all}\"}}}}\n\ndata: {{\"type\": \"message_stop\"}}\n\n"
            ),
            Dialect::OpenAiChat => format!(
                "data: {{\"choices\": [{{\"finish_reason\": \"{all}\"}}]}}\n\ndata: [DONE]\n\n"
            ),
            Dialect::OpenAiResponses => format!(
                "data: {{\"type\": \"response.incomplete\", \"response\": {{\"incomplete_details\": {{\"reason\": \"{all}\"}}}}}}\n\n"
            ),
            Dialect::Gemini => {
                format!("data: {{\"promptFeedback\": {{\"blockReason\": \"{all}\"}}}}\n\n")
            }
            Dialect::Ollama => format!("{{\"done\": true, \"done_reason\": \"{all}\"}}\n"),
        };
        let malformed = format!("data: {{\"{all}\n\n");
        for reply in [
            location.clone(),
            raw("text/event-stream", stop),
            raw("text/event-stream", malformed),
            raw("text/html", all.clone()),
            raw("application/json", format!("{{\"error\": \"{all}\"}}")),
        ] {
            let server = ModelServer::start(vec![reply]);
            let (turn, _) = turn(&client(&StillPace::new()), &model(dialect, &server));
            holds_no_secret(&turn.unwrap_err());
        }
        let model = model_at(dialect, &base(dialect, "http://127.0.0.1:1"));
        assert!(!format!("{model:?}").contains(KEY));
    }
}
