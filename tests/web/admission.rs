//! Requests that a browser sends for somebody else's page.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::web::host::Host;
use crate::web::wire::Request;

fn runs(host: &Host) -> usize {
    let runs = host.workspace.json(&["runs"]);
    runs["runs"].as_array().unwrap().len()
}

#[test]
fn a_page_of_another_address_may_not_ask_even_with_a_token() {
    let host = Host::start("");
    let token = host.token(&[]);
    let port = host.port;
    let status = || Request::get("/v1/status").token(&token);
    let refused = |request: &Request, code: &str| {
        let answer = host.ask(request);
        assert_eq!(answer.told(), (403, code.to_owned()), "{request:?}");
    };
    // A name that was made to resolve to this machine.
    for foreign in [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "192.168.0.1",
        "user@127.0.0.1",
        "",
    ] {
        refused(&status().host(foreign), "foreign_host");
        refused(&Request::get("/").host(foreign), "foreign_host");
        refused(
            &Request::post("/v1/web/login", r#"{"code": "x"}"#).host(foreign),
            "foreign_host",
        );
    }
    for own in ["127.0.0.1", "localhost:9000", "[::1]:8930", "LOCALHOST"] {
        assert_eq!(host.ask(&status().host(own)).status, 200, "{own}");
    }
    // Another site, another port of this machine, a page in a sandbox, and another scheme.
    for origin in [
        "http://evil.example".to_owned(),
        format!("http://127.0.0.1:{}", port ^ 1),
        format!("http://localhost:{port}"),
        "null".to_owned(),
        format!("https://127.0.0.1:{port}"),
    ] {
        refused(
            &status().header(&format!("Origin: {origin}")),
            "foreign_origin",
        );
    }
    let own = format!("Origin: http://127.0.0.1:{port}");
    assert_eq!(host.ask(&status().header(&own)).status, 200);
    for site in ["cross-site", "same-site", "anything"] {
        refused(
            &status().header(&format!("Sec-Fetch-Site: {site}")),
            "foreign_origin",
        );
        // Somebody may follow a link to the page.
        let page = Request::get("/").header(&format!("Sec-Fetch-Site: {site}"));
        assert_eq!(host.ask(&page).status, 200);
    }
    for site in ["same-origin", "none"] {
        let request = status().header(&format!("Sec-Fetch-Site: {site}"));
        assert_eq!(host.ask(&request).status, 200, "{site}");
    }
    host.daemon.stop();
}

#[test]
fn a_form_of_another_page_changes_nothing() {
    let host = Host::start("");
    let token = host.token(&[]);
    let body = json!({"skill": "hello"}).to_string();
    let submit = Request::post("/v1/runs", &body).token(&token);
    for kind in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data; boundary=x"),
        Some("text/plain;application/json"),
    ] {
        let answer = host.ask(&submit.clone().of_kind(kind));
        assert_eq!(answer.told(), (415, "not_json".to_owned()), "{kind:?}");
    }
    let refused = host.ask(
        &submit
            .clone()
            .of_kind(Some("text/plain"))
            .header("Origin: http://evil.example"),
    );
    assert_eq!(refused.status, 403);
    assert_eq!(runs(&host), 0);
    // A cookie is nothing, and neither is another way to log in.
    for header in [
        format!("Cookie: token={token}"),
        format!("Authorization: Basic {token}"),
        format!("X-Token: {token}"),
    ] {
        let request = Request::post("/v1/runs", &body).header(&header);
        assert_eq!(
            host.ask(&request).told(),
            (401, "login".to_owned()),
            "{header}"
        );
    }
    assert_eq!(host.ask(&submit).status, 201);
    assert_eq!(runs(&host), 1);
    host.daemon.stop();
}

#[test]
fn neither_tokens_nor_codes_are_taken_from_an_address_or_told() {
    let host = Host::start("");
    let (token, code) = (host.token(&[]), host.code(&[]));
    for name in ["token", "access_token", "code", "login", "TOKEN", "to%6ben"] {
        for path in ["/v1/status", "/", "/v1/web/login"] {
            let request = Request::get(&format!("{path}?{name}={token}"));
            let answer = host.ask(&request);
            assert_eq!(
                answer.told(),
                (400, "secret_in_address".to_owned()),
                "{name}"
            );
            assert!(!answer.text().contains(&token), "{answer:?}");
        }
    }
    let wrong = format!("{code}0");
    let answer = host.log_in(&wrong);
    assert_eq!(answer.told(), (401, "login".to_owned()));
    assert!(!answer.text().contains(&code), "{answer:?}");
    let answer = host.get("/v1/status", &format!("{token}0"));
    assert_eq!(answer.told(), (401, "login".to_owned()));
    assert!(!answer.text().contains(&token), "{answer:?}");
    assert_eq!(host.log_in(&code).status, 200);
    let log = host.daemon.log();
    assert!(!log.contains(&token) && !log.contains(&code), "{log}");
    host.daemon.stop();
}

#[test]
fn a_second_request_in_the_first_ones_body_is_never_read() {
    let host = Host::start("");
    let token = host.token(&[]);
    let inner = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n{{\"skill\":\"hello\"}}"
    );
    for framing in [
        format!("Content-Length: 2\r\n\r\n{{}}{inner}"),
        format!(
            "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n{inner}"
        ),
        format!("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n{inner}"),
        format!("Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}{inner}"),
    ] {
        let mut stream = TcpStream::connect(("127.0.0.1", host.port)).unwrap();
        let head = format!(
            "POST /v1/web/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{framing}"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        // What is left unread resets the connection.
        let _ = stream.read_to_string(&mut answer);
        assert!(answer.matches("HTTP/1.1 ").count() <= 1, "{answer}");
        assert!(!answer.contains("200 OK"), "{answer}");
    }
    assert_eq!(runs(&host), 0);
    host.daemon.stop();
}
