use super::*;
use workerctl::daemon::{Route, routes};

/// The path of a route with `run` in the place of its run.
fn path_of(route: &Route, run: &str) -> String {
    route
        .path
        .replace("{run}", run)
        .replace("{output}", "report")
}

fn of_page(route: &Route) -> bool {
    route.path.starts_with("/v1/web/")
}

#[test]
fn every_operation_answers_as_documented() {
    let served = Served::start(Limits::default());
    let document = served.ask("GET", "/v1/openapi.json", "", b"").value();
    let run = served.engine.run.short();
    // The web page has a daemon around it, and tests of its own.
    for route in routes().iter().filter(|route| !of_page(route)) {
        let id = route.id;
        let body = match id {
            "submit_run" | "render" => r#"{"skill": "weekly"}"#,
            "cancel_run" => r#"{"now": true}"#,
            "resolve_run" => r#"{"as": "failed", "note": "seen", "by": "somebody else"}"#,
            "retry_run" | "land_run" => r#"{"by": "somebody else"}"#,
            "approve_run" => r#"{"digest": "d1", "by": "somebody else"}"#,
            "deny_run" => r#"{"note": "no", "by": "somebody else"}"#,
            "pause_schedule" => r#"{"schedule": "w/s", "reason": "seen"}"#,
            "resume_schedule" | "trigger_schedule" => r#"{"schedule": "w/s"}"#,
            _ => "",
        };
        let method = &route.method;
        let query = match id {
            "backfill" => "?schedule=w%2Fs&from_ms=0&to_ms=1",
            "explain_schedule" => "?schedule=w%2Fs",
            _ => "",
        };
        let path = path_of(route, &run) + query;
        let answer = served.json(method.as_str(), &path, body);
        assert!((200..300).contains(&answer.status), "{id}: {answer:?}");
        let lower = method.as_str().to_ascii_lowercase();
        let described = &document["paths"][route.path][&lower];
        let response = &described["responses"][answer.status.to_string()];
        assert!(
            response.is_object(),
            "{id} answers {} undocumented",
            answer.status
        );
    }
    // Who answers is whom the system knows, whatever the request says.
    let answered_by = served.engine.answered_by.lock().expect("a lock").clone();
    assert_eq!(answered_by.len(), 6);
    for by in answered_by {
        assert_eq!(by, workerctl::process::own_name());
    }
    for (path, described) in document["paths"].as_object().expect("paths") {
        for method in described.as_object().expect("methods").keys() {
            assert!(
                routes().iter().any(|known| known.path == path
                    && known.method.as_str().eq_ignore_ascii_case(method)),
                "{method} {path} is documented and not served"
            );
        }
    }
}

#[test]
fn undeclared_methods_and_paths_are_refused_in_the_same_form() {
    let served = Served::start(Limits::default());
    for route in &routes() {
        let path = path_of(route, "ABC");
        for method in [
            "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW",
        ] {
            let declared = routes()
                .iter()
                .any(|other| other.path == route.path && other.method.as_str() == method);
            if declared {
                continue;
            }
            let answer = served.ask(method, &path, "", b"");
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (405, "method_not_allowed"),
                "{method} {path}"
            );
            assert!(
                answer.head.contains("allow: "),
                "{method} {path}: {answer:?}"
            );
        }
    }
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v1/runs/",
        "/v2/status",
        "/v1/status/",
        "/v1/runs/a/b",
        "/v1//status",
        "/../etc/passwd",
    ] {
        let answer = served.ask("GET", path, "", b"");
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (404, "no_such_path"),
            "{path}"
        );
    }
}

#[test]
fn malformed_bodies_are_refused_by_every_operation() {
    let served = Served::start(Limits::default());
    let deep = "[".repeat(100_000);
    let unknown = r#"{"skill": "a", "as": "failed", "note": "", "now": true, "unknown": 1}"#;
    let bodies: [&[u8]; 13] = [
        b"{",
        b"[]",
        b"null",
        b"7",
        b"\"x\"",
        b"\0",
        b"\xff\xfe",
        b"{\"unknown\": 1}",
        deep.as_bytes(),
        unknown.as_bytes(),
        b"{\"skill\": \"a\", \"skill\": \"b\"}",
        b"{\"skill\": \"a\", \"inputs\": {\"n\": 1, \"n\": 2}}",
        b"{} {}",
    ];
    for route in &routes() {
        let id = route.id;
        if route.method.as_str() != "POST" || ["web_login", "web_logout"].contains(&id) {
            continue;
        }
        let path = path_of(route, &served.engine.run.short());
        for body in bodies {
            let answer = served.ask("POST", &path, "Content-Type: application/json\r\n", body);
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (400, "bad_body"),
                "{id} {:?}",
                String::from_utf8_lossy(&body[..body.len().min(40)])
            );
        }
        let answer = served.ask("POST", &path, "Content-Type: text/yaml\r\n", b"{}");
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (415, "not_json"),
            "{id}"
        );
        let answer = served.ask("POST", &format!("{path}?x=1"), "", b"");
        assert_eq!(answer.status, 400, "{id}");
    }
    assert!(served.engine.submitted.lock().expect("a lock").is_empty());
    assert_eq!(
        served
            .engine
            .drains
            .load(std::sync::atomic::Ordering::SeqCst),
        0
    );
}

#[test]
fn hostile_ids_are_refused_by_every_operation_that_names_a_run() {
    let served = Served::start(Limits::default());
    let long = "A".repeat(27);
    let longer = "A".repeat(20_000);
    let hostile = [
        "%00",
        "a%00b",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e",
        "-x",
        "@%7B-1%7D",
        "a%2Fb",
        "%F0%9F%92%A9",
        "%ff",
        "%zz",
        "%0d%0aX:%20y",
        "a.lock",
        "a:b",
        "null%20",
        "%27%20OR%201=1",
        "{run}",
        "*",
        long.as_str(),
        longer.as_str(),
        "%E2%80%AE",
    ];
    for route in routes().iter().filter(|route| route.path.contains("{run}")) {
        let id = route.id;
        for run in hostile {
            let answer = served.json(route.method.as_str(), &path_of(route, run), "");
            assert!(
                (400..500).contains(&answer.status),
                "{id} {run}: {answer:?}"
            );
            assert_eq!(answer.code(), "bad_run_id", "{id} {run}");
        }
        let body = match id {
            "resolve_run" => r#"{"as": "failed", "note": "x"}"#,
            "approve_run" => r#"{"digest": "d1"}"#,
            "deny_run" => r#"{"note": "x"}"#,
            _ => "",
        };
        let answer = served.json(route.method.as_str(), &path_of(route, "ZZZZZ"), body);
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (404, "no_such_run"),
            "{id}"
        );
    }
}

#[test]
fn hostile_parameters_and_heads_are_refused() {
    let served = Served::start(Limits::default());
    for query in [
        "limit=-1",
        "limit=x",
        "limit=99999999999",
        "limit=1&limit=2",
        "unknown=1",
        "worker=%00",
        "worker=%0a",
        "since_ms=1e3",
    ] {
        let answer = served.ask("GET", &format!("/v1/runs?{query}"), "", b"");
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        answer.code();
    }
    let answer = served.ask("GET", "/v1/runs?worker=a%20b%2Fc&limit=5", "", b"");
    assert_eq!(answer.status, 200);
    let asked = served
        .engine
        .queries
        .lock()
        .expect("a lock")
        .pop()
        .expect("asked");
    assert_eq!((asked.worker.as_deref(), asked.limit), (Some("a b/c"), 5));
    for heads in [
        "Idempotency-Key: a\r\nIdempotency-Key: b\r\n",
        "Idempotency-Key: \r\n",
        "Idempotency-Key: \u{e9}\r\n",
    ] {
        let answer = served.ask("POST", "/v1/runs", heads, br#"{"skill": "a"}"#);
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "bad_key"),
            "{heads:?}"
        );
    }
    let answer = served.ask(
        "POST",
        "/v1/runs",
        "Idempotency-Key: a\r\n",
        br#"{"skill": "a", "key": "b"}"#,
    );
    assert_eq!(answer.code(), "bad_key");
    for text in ["a\\u0000b", "a\\nb", &"x".repeat(256)] {
        let answer = served.json("POST", "/v1/runs", &format!(r#"{{"skill": "{text}"}}"#));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (400, "bad_text"),
            "{text}"
        );
    }
    let answer = served.ask("GET", "/v1/runs/ABC/events", "Last-Event-ID: x\r\n", b"");
    assert_eq!(answer.code(), "bad_event_id");
}

#[test]
fn a_submission_says_whether_it_is_new_and_where_it_is() {
    let served = Served::start(Limits::default());
    let body = br#"{"skill": "weekly", "input": [["weeks", "2"]]}"#;
    let first = served.ask("POST", "/v1/runs", "Idempotency-Key: k 1\r\n", body);
    let run = served.engine.run;
    assert_eq!(first.status, 201);
    assert!(
        first
            .head
            .contains(&format!("location: /v1/runs/{run}").to_ascii_lowercase()),
        "{first:?}"
    );
    assert_eq!(first.value()["run"], run.to_string());
    let second = served.ask("POST", "/v1/runs", "Idempotency-Key: k 1\r\n", body);
    assert_eq!(
        (second.status, second.value()["existing"].as_bool()),
        (200, Some(true))
    );
    let asked = served.engine.submitted.lock().expect("a lock");
    assert_eq!(asked[0].key.as_deref(), Some("k 1"));
    assert_eq!(asked[0].input, [("weeks".to_owned(), "2".to_owned())]);
}

#[test]
fn refusals_carry_their_status() {
    let served = Served::start(Limits::default());
    let full = served.json("POST", "/v1/runs", r#"{"skill": "full"}"#);
    assert_eq!((full.status, full.code().as_str()), (503, "queue_full"));
    assert!(full.head.contains("retry-after: 1"), "{full:?}");
    let run = served.engine.run;
    let late = served.json("POST", &format!("/v1/runs/{run}/cancel"), "");
    assert_eq!((late.status, late.code().as_str()), (409, "too_late"));
    let panicked = served.json("POST", "/v1/runs", r#"{"skill": "panic"}"#);
    assert_eq!(
        (panicked.status, panicked.code().as_str()),
        (500, "request_failed")
    );
    assert_eq!(
        served.ask("GET", "/v1/status", "", b"").status,
        200,
        "and the server goes on"
    );
}

#[test]
fn until_the_engine_is_there_the_server_says_that_it_starts() {
    let directory = xtest::tempdir();
    let socket = directory.path().join("s.sock");
    let endpoint = Endpoint::bind(&socket).expect("bound");
    let identity = Identity::of_process(directory.path(), Host::Daemon);
    let server = Server::start(
        endpoint.listener().expect("a listener"),
        identity,
        Limits::default(),
        None,
    )
    .expect("served");
    let ask = |path: &str| {
        let mut stream = dial(&socket);
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
            .expect("written");
        Answer::read(&mut stream)
    };
    assert_eq!(ask("/v1/version").status, 200);
    let starting = ask("/v1/status");
    assert_eq!(
        (starting.status, starting.code().as_str()),
        (503, "starting")
    );
    server.open(Scripted::new());
    assert_eq!(ask("/v1/status").status, 200);
}
