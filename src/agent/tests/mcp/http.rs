//! Servers over HTTP. Deadlines are short only where they are what ends the wait.

use std::net::TcpListener;

use serde_json::{Value, json};
use workerctl_agent::mcp::{Connection, McpError, ServerDeadlines, ToolServer};
use workerctl_agent::{Key, Stop};

use crate::http_rig::{Answer, End, HttpServer, KEY, Seen, at};
use crate::rig::{LONG, PATIENT, SHORT, bounds, call, echoes, reply, result, start, text, usual};

type Script = fn(&Seen) -> Answer;

/// Answers as usual, by JSON; `slow` is never answered.
fn by_json(seen: &Seen) -> Answer {
    match usual(&seen.body) {
        Some(answer) => Answer::Json(answer),
        None if seen.body["method"] == "tools/call" => Answer::Nothing,
        None => Answer::Accepted,
    }
}

/// The same by events, after others.
fn by_events(seen: &Seen) -> Answer {
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
    let sampling = json!({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage"});
    match usual(&seen.body) {
        Some(answer) => Answer::Events(vec![notice, sampling, answer], End::Silent),
        None if seen.body["method"] == "tools/call" => Answer::Events(vec![notice], End::Silent),
        None => Answer::Accepted,
    }
}

fn is_call(seen: &Seen) -> bool {
    seen.body["method"] == "tools/call"
}

/// Neither the key nor a part of it is in what people see of an error.
fn holds_no_key(failed: &McpError) {
    let shown = format!("{failed} {failed:?} {:?}", failed.hint());
    for piece in KEY.as_bytes()["Bearer ".len()..].windows(8) {
        let piece = std::str::from_utf8(piece).unwrap();
        assert!(!shown.contains(piece), "{piece:?} is in {shown}");
    }
}

#[test]
fn tools_are_listed_and_called() {
    let scripts: [Script; 2] = [by_json, by_events];
    for script in scripts {
        let peer = HttpServer::start(script);
        let server = start(peer.connection()).unwrap();
        assert_eq!(server.tools().len(), 5);
        echoes(&server);
        let failed = call(&server, "fail", &json!({}));
        assert_eq!(failed, Ok(reply("no such file", true)));
        server.close();
        let requests = peer.requests();
        let header = |seen: &Seen, name: &str| {
            let value = seen.headers.get(name).map(|value| value.to_str().unwrap());
            value.unwrap_or("none").to_owned()
        };
        for (index, seen) in requests.iter().enumerate() {
            let (session, version) = match index {
                0 => ("none", "none"),
                _ => ("session-1", "2025-11-25"),
            };
            // A reply may be sent while the first answer is still being read.
            if seen.body["id"] != "s" {
                assert_eq!(header(seen, "mcp-session-id"), session, "{index}");
                assert_eq!(header(seen, "mcp-protocol-version"), version, "{index}");
            }
            assert_eq!(header(seen, "authorization"), KEY, "{index}");
        }
        assert_eq!(requests.last().unwrap().method, "DELETE");
        let declined = requests.iter().filter(|seen| seen.body["id"] == "s");
        for seen in declined {
            assert_eq!(seen.body["error"]["code"], -32601);
        }
    }
}

/// All that a careless server could repeat.
fn careless(status: u16, seen: &Seen) -> Answer {
    let body = json!({"error": {"message": format!("{:?}", seen.headers)}});
    Answer::raw(status, "application/json", body.to_string())
}

fn event(data: &str) -> Answer {
    Answer::raw(200, "text/event-stream", format!("data: {data}\n\n"))
}

#[test]
fn starts_that_fail_are_named() {
    let cases: [(&str, Script); 13] = [
        ("mcp_refused", |seen| careless(400, seen)),
        ("mcp_refused", |seen| careless(401, seen)),
        ("mcp_refused", |seen| careless(403, seen)),
        ("mcp_refused", |seen| careless(404, seen)),
        ("mcp_refused", |seen| careless(500, seen)),
        ("mcp_protocol", |_| Answer::raw(200, "text/html", "<html>")),
        ("mcp_protocol", |_| Answer::Accepted),
        ("mcp_not_json", |seen| {
            Answer::raw(200, "application/json", format!("{:?}", seen.headers))
        }),
        ("mcp_not_json", |_| event("hello")),
        ("mcp_too_large", |_| {
            Answer::raw(200, "application/json", "x".repeat(65 * 1024))
        }),
        ("mcp_too_large", |_| event(&"x".repeat(65 * 1024))),
        ("mcp_closed", |_| Answer::Events(Vec::new(), End::Whole)),
        ("mcp_closed", |_| Answer::Events(Vec::new(), End::Reset)),
    ];
    for (index, (code, script)) in cases.into_iter().enumerate() {
        let peer = HttpServer::start(script);
        let failed = start(peer.connection()).err().unwrap();
        assert_eq!(failed.code(), code, "{index}: {failed}");
        holds_no_key(&failed);
    }
}

#[test]
fn a_silent_server_ends_by_the_deadline() {
    for script in [
        |_: &Seen| Answer::Nothing,
        |_: &Seen| Answer::Events(Vec::new(), End::Silent),
    ] {
        let peer = HttpServer::start(script);
        let deadlines = ServerDeadlines {
            start: SHORT,
            ..PATIENT
        };
        let started = ToolServer::start("s", peer.connection(), deadlines, bounds(), &Stop::new());
        assert_eq!(started.err().unwrap().code(), "mcp_start_timeout");
    }
}

#[test]
fn refusals_name_the_header_and_the_remedy() {
    let peer = HttpServer::start(|_| Answer::raw(401, "text/plain", "no"));
    let failed = start(peer.connection()).err().unwrap();
    assert_eq!(
        failed.to_string(),
        "tool server `s`: it refused the request (status 401): the values of `TEST_MCP_KEY` were sent"
    );
    assert_eq!(
        failed.hint(),
        Some("check the values of the server's headers")
    );
}

#[test]
fn redirects_are_not_followed() {
    let elsewhere = HttpServer::start(by_json);
    for status in [301, 302, 307, 308] {
        let location = elsewhere.url();
        let peer = HttpServer::start(move |_| Answer::Raw {
            status,
            headers: vec![("location", location.clone())],
            body: String::new(),
        });
        let failed = start(peer.connection()).err().unwrap();
        assert_eq!(failed.code(), "redirected");
        let to = elsewhere.url().replace("/mcp", "");
        assert!(failed.to_string().contains(&to), "{failed}");
        holds_no_key(&failed);
    }
    assert_eq!(elsewhere.requests().len(), 0);
}

#[test]
fn addresses_and_headers_that_cannot_be_used_are_named() {
    let http = |url: &str, name: &str, value: &str| Connection::Http {
        url: url.into(),
        headers: vec![(name.into(), Key::new("X", value))],
        proxy_from_environment: false,
    };
    for (connection, code) in [
        (http("ftp://x/", "a", "b"), "settings"),
        (http("nowhere", "a", "b"), "settings"),
        (http("http://user:secret@127.0.0.1/", "a", "b"), "settings"),
        (http("http://127.0.0.1/", "a b", "c"), "settings"),
        (http("http://127.0.0.1/", "a", "se\ncret"), "settings"),
    ] {
        let failed = start(connection).err().unwrap();
        assert_eq!(failed.code(), code, "{failed}");
        assert!(!format!("{failed:?}").contains("secret"), "{failed:?}");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    assert_eq!(start(at(url)).err().unwrap().code(), "mcp_connect");
}

#[test]
fn a_server_that_breaks_off_in_a_call_is_named_at_once_and_stays_usable() {
    for end in [End::Whole, End::Reset] {
        let peer = HttpServer::start(move |seen| match &seen.body["params"]["name"] {
            Value::String(name) if name == "slow" => Answer::Events(Vec::new(), end),
            _ => by_json(seen),
        });
        let server = start(peer.connection()).unwrap();
        let failed = call(&server, "slow", &json!({})).unwrap_err();
        assert_eq!(failed.code(), "mcp_closed", "{failed}");
        echoes(&server);
    }
}

#[test]
fn a_server_that_dies_in_a_call_is_named_at_once() {
    let scripts: [Script; 2] = [by_json, by_events];
    for script in scripts {
        let peer = HttpServer::start(script);
        let server = start(peer.connection()).unwrap();
        let failed = std::thread::scope(|scope| {
            let calling = scope.spawn(|| call(&server, "slow", &json!({})));
            peer.wait_for(is_call);
            drop(peer);
            calling.join().unwrap()
        });
        assert_eq!(failed.unwrap_err().code(), "mcp_closed");
        let failed = call(&server, "echo", &json!({})).unwrap_err();
        assert_eq!(failed.code(), "mcp_connect", "{failed}");
    }
}

#[test]
fn a_call_that_takes_too_long_or_is_stopped_is_cancelled_and_the_server_stays_usable() {
    let scripts: [Script; 2] = [by_json, by_events];
    for script in scripts {
        let peer = HttpServer::start(script);
        let server = start(peer.connection()).unwrap();
        let failed = server.call("mcp__s__slow", &json!({}), SHORT, &Stop::new());
        assert_eq!(failed.unwrap_err().code(), "mcp_call_timeout");
        let asked = peer.wait_for(is_call).body["id"].clone();
        let cancelled = |seen: &Seen| seen.body["params"]["requestId"] == asked;
        peer.wait_for(cancelled);

        let stop = Stop::new();
        let failed = std::thread::scope(|scope| {
            let calling = scope.spawn(|| {
                let arguments = json!({"second": true});
                server.call("mcp__s__slow", &arguments, LONG, &stop)
            });
            peer.wait_for(|seen| seen.body["params"]["arguments"]["second"] == true);
            stop.stop();
            calling.join().unwrap()
        });
        assert_eq!(failed.unwrap_err().code(), "stopped");
        echoes(&server);
    }
}

#[test]
fn a_session_that_the_server_forgot_is_named() {
    let peer = HttpServer::start(|seen| {
        if !is_call(seen) {
            return by_json(seen);
        }
        let body = json!({"message": "gone"}).to_string();
        Answer::raw(404, "application/json", body)
    });
    let server = start(peer.connection()).unwrap();
    let failed = call(&server, "echo", &json!({})).unwrap_err();
    let expect = "tool server `s`: it refused the request (status 404): gone";
    assert_eq!(failed.to_string(), expect);
}

#[test]
fn an_error_without_an_id_answers_what_was_sent() {
    let peer = HttpServer::start(|seen| {
        if is_call(seen) {
            let error = json!({"code": -1, "message": "no"});
            return Answer::Json(json!({"jsonrpc": "2.0", "error": error}));
        }
        let other = result(&json!({"id": 999}), &text("for nobody"));
        match usual(&seen.body) {
            Some(answer) => Answer::Events(vec![other, answer], End::Whole),
            None => Answer::Accepted,
        }
    });
    let server = start(peer.connection()).unwrap();
    let replied = call(&server, "echo", &json!({}));
    assert_eq!(replied, Ok(reply("error -1: no", true)));
}
