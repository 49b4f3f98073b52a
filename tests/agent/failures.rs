//! Servers that fail: each in its own words, and no more requests than help.

use super::server::script::{End, Ending, Reply, Say};
use super::{PROVIDERS, Rig, failure, outcome, reading, text};

/// How a server fails, and what people read of it.
struct Row {
    name: &'static str,
    reply: fn() -> Reply,
    code: &'static str,
    requests: usize,
    says: &'static [&'static str],
}

const fn row(
    name: &'static str,
    reply: fn() -> Reply,
    code: &'static str,
    requests: usize,
    says: &'static [&'static str],
) -> Row {
    Row {
        name,
        reply,
        code,
        requests,
        says,
    }
}

/// A status with all that a careless server could repeat.
fn echoed(status: u16) -> Reply {
    Reply::Status {
        status,
        headers: Vec::new(),
        echo: true,
    }
}

/// A status that is worth another try at once.
fn soon(status: u16) -> Reply {
    Reply::status_with(status, "retry-after-ms", "1")
}

/// What no repetition helps against.
const FINAL: [Row; 11] = [
    row(
        "401",
        || Reply::status(401),
        "auth",
        1,
        &["file:~/key", "401"],
    ),
    row(
        "403",
        || Reply::status(403),
        "auth",
        1,
        &["file:~/key", "403"],
    ),
    row(
        "401 with the request",
        || echoed(401),
        "auth",
        1,
        &["file:~/key"],
    ),
    row(
        "404",
        || Reply::status(404),
        "model_not_found",
        1,
        &["`default`", "scripted-1"],
    ),
    row(
        "400",
        || Reply::status(400),
        "request_refused",
        1,
        &["`default`", "it went wrong"],
    ),
    row(
        "400 with the request",
        || echoed(400),
        "request_refused",
        1,
        &["`default`"],
    ),
    row(
        "429",
        || Reply::status_with(429, "retry-after", "3600"),
        "rate_limited",
        1,
        &["until 20"],
    ),
    row(
        "HTML",
        html,
        "not_a_model_server",
        1,
        &["text/html", "base_url"],
    ),
    row("empty", || Say::nothing().into(), "empty", 1, &["empty"]),
    row(
        "length",
        || Say::text("Half").ending(Ending::Length).into(),
        "length",
        1,
        &["max_output_tokens"],
    ),
    row(
        "refusal",
        || Say::text("No").ending(Ending::Refusal).into(),
        "refusal",
        1,
        &["refused"],
    ),
];

/// What another try may help against.
const AGAIN: [Row; 6] = [
    row("500", || soon(500), "server", 3, &["500", "it went wrong"]),
    row("529", || soon(529), "rate_limited", 3, &["529"]),
    row(
        "half a frame",
        || Say::text("Half").malformed().into(),
        "incomplete",
        3,
        &["incomplete"],
    ),
    row(
        "half a call",
        || Say::nothing().call("read_file", "{\"path\": \"tra").into(),
        "incomplete",
        3,
        &["incomplete"],
    ),
    row(
        "the stream ends early",
        || Say::text("Half").end(End::Early(1)).into(),
        "incomplete",
        3,
        &["incomplete"],
    ),
    row(
        "reset",
        || Say::text("Half").and("more").end(End::Reset(1)).into(),
        "incomplete",
        3,
        &["incomplete"],
    ),
];

fn html() -> Reply {
    Reply::Raw {
        content_type: "text/html",
        body: "<html><title>Login</title></html>".to_owned(),
    }
}

/// A run against this server fails as the row says, and all places tell the same.
fn expect(provider: &str, row: &Row) {
    let name = format!("{provider}, {}", row.name);
    let rig = Rig::spoken(provider, &reading(""), "", vec![(row.reply)()]);
    let shown = rig.fails(&["mrr"]);
    let ended = failure(&shown);
    assert_eq!(ended["step"], "execute", "{name}: {shown:#}");
    assert_eq!(ended["code"], row.code, "{name}: {shown:#}");
    let message = ended["message"].as_str().unwrap();
    for said in row.says {
        assert!(
            message.contains(said),
            "{name}: `{said}` is not in {message}"
        );
    }
    assert_eq!(rig.asked(), row.requests, "{name}: {shown:#}");
    let run = shown["summary"]["run"].as_str().unwrap();
    assert_eq!(failure(&rig.workspace.show(run)), ended, "{name}");
    let logs = rig.logs();
    assert!(logs.contains(message), "{name}: {message} is not in {logs}");
    rig.holds_no_key(&logs);
}

/// Tests each row with the next protocol; the tests of `workerctl-agent` combine each failure with each protocol.
fn expect_all(rows: &[Row]) {
    for (row, (provider, _)) in rows.iter().zip(PROVIDERS.iter().cycle()) {
        expect(provider, row);
    }
}

#[test]
fn what_no_repetition_helps_against_is_asked_once() {
    expect_all(&FINAL);
}

#[test]
fn what_another_try_may_help_against_is_asked_three_times() {
    expect_all(&AGAIN);
}

#[test]
fn a_key_that_is_not_there_is_named_and_nothing_is_asked() {
    for (provider, _) in PROVIDERS {
        let rig = Rig::spoken(provider, &reading(""), "", vec![text("never")]);
        std::fs::remove_file(rig.workspace.home.join("key")).unwrap();
        let shown = rig.fails(&["mrr"]);
        let ended = failure(&shown);
        assert_eq!(ended["code"], "auth", "{provider}: {shown:#}");
        let message = ended["message"].as_str().unwrap();
        assert!(message.contains("file:~/key"), "{provider}: {message}");
        assert_eq!(rig.asked(), 0, "{provider}");
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let target = super::ModelServer::start(vec![text("never")]);
    let to = format!("{}/v1/messages", target.url());
    for status in [301, 302, 307, 308] {
        let reply = Reply::status_with(status, "location", &to);
        let rig = Rig::new(&reading(""), vec![reply]);
        let shown = rig.fails(&["mrr"]);
        assert_eq!(failure(&shown)["code"], "redirected", "{shown:#}");
        assert_eq!(rig.asked(), 1, "{status}");
    }
    assert!(target.requests().is_empty());
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let rig = Rig::new(&reading(""), vec![text("never")]);
    let Rig { workspace, server } = rig;
    let url = server.url();
    drop(server);
    let done = workspace.run(&["run", "mrr", "--json"]);
    assert_ne!(done.code, 0, "{done:?}");
    let shown = done.value();
    assert_eq!(failure(&shown)["code"], "connect", "{shown:#}");
    let message = failure(&shown)["message"].as_str().unwrap();
    let place = url.strip_prefix("http://").unwrap();
    assert!(
        message.contains(place) && message.contains("base_url"),
        "{message}"
    );
}

#[test]
fn a_silent_server_ends_by_the_timeouts_of_its_model() {
    let silent = || Say::text("Half").and("more").end(End::Silent(1)).into();
    let rows = [
        ("{headers: 200ms}", Reply::Nothing, "headers_timeout"),
        ("{silence: 200ms}", silent(), "silence"),
        ("{turn: 300ms}", silent(), "turn_timeout"),
    ];
    for (timeouts, reply, code) in rows {
        let more = format!("    timeouts: {timeouts}\n");
        let rig = Rig::configured(&reading(""), &more, vec![reply]);
        let shown = rig.fails(&["mrr"]);
        assert_eq!(failure(&shown)["code"], code, "{timeouts}: {shown:#}");
    }
}

#[test]
fn the_timeout_of_a_skill_ends_its_conversation() {
    let sleeping = super::call("bash", &serde_json::json!({"command": "sleep 1000"}));
    let rows: [(&str, Reply); 3] = [
        ("no answer", Reply::Nothing),
        (
            "half an answer",
            Say::text("Half").and("more").end(End::Silent(1)).into(),
        ),
        ("a command", sleeping),
    ];
    for (name, reply) in rows {
        let rig = Rig::new(&reading("    timeout: 2s\n"), vec![reply]);
        let shown = rig.fails(&["mrr"]);
        assert_eq!(outcome(&shown)["kind"], "timed_out", "{name}: {shown:#}");
        assert_eq!(rig.asked(), 1, "{name}");
        rig.workspace.expect_no_process();
    }
}
