//! Every operation of the API, asked for by somebody who may read.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;
use workerctl::daemon::routes;

use crate::roles::{Bed, NOBODY, Person};

const READER: Person = Person::new(54_002, &[]);

/// What who may read may ask for. All others are for admins: a new one is none of these until it is written here.
const READABLE: [&str; 33] = [
    "version",
    "openapi",
    "status",
    "metrics",
    "follow",
    "workers",
    "skills",
    "problems",
    "doctor",
    "schedules",
    "calendar",
    "next_slots",
    "explain_schedule",
    "slots",
    "stats",
    "backfill",
    "list_runs",
    "show_run",
    "diff",
    "changes",
    "output",
    "thread",
    "logs",
    "log_text",
    "events",
    "render",
    "probe",
    "web_open",
    "web_code",
    "web_logout_all",
    "web_login",
    "web_session",
    "web_logout",
];

/// The status and the body of an answer.
fn ask(who: Person, socket: &Path, method: &str, path: &str) -> (u16, String) {
    ask_with(who, socket, (method, path), "{}")
}

fn ask_with(who: Person, socket: &Path, (method, path): (&str, &str), body: &str) -> (u16, String) {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let answer = who.does(|| {
        let mut stream = UnixStream::connect(socket).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // The answer of what holds the web page open does not end.
        let ends = path != "/v1/web/open";
        while ends || !answer.windows(2).any(|pair| pair == b"\n\n") {
            let mut piece = [0; 4_096];
            let count = stream.read(&mut piece).unwrap();
            answer.extend_from_slice(&piece[..count]);
            if count == 0 {
                break;
            }
        }
        String::from_utf8(answer).unwrap()
    });
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n").unwrap().1.to_owned();
    (status, body)
}

#[test]
fn each_operation_needs_the_role_that_the_table_and_the_document_say() {
    let access = "access: {admin: {users: [nobody]}, read: {users: [54002]}}\n";
    let Some(bed) = Bed::new(access) else { return };
    let daemon = bed.daemon();
    let socket = bed.socket();
    let (_, document) = ask(READER, &socket, "GET", "/v1/openapi.json");
    let document: Value = serde_json::from_str(&document).unwrap();
    for route in routes() {
        let (method, id) = (&route.method, route.id);
        // What it is about is not there, so that whoever may ask is told so, and nothing happens.
        let mut path = route
            .path
            .replace("{run}", "ZZZZZZZZ")
            .replace("{output}", "o");
        if id == "follow" {
            path.push_str("?runs=none");
        }
        let described = &document["paths"][route.path][method.as_str().to_lowercase()];
        let readable = READABLE.contains(&id);
        let role = if readable { "read" } else { "admin" };
        assert_eq!(described["x-role"], role, "{id}");
        assert_eq!(route.role.name(), role, "{id}");
        let (status, body) = ask(READER, &socket, method.as_str(), &path);
        let is_refused = status == 403 && body.contains(r#""code":"role""#);
        assert_eq!(is_refused, !readable, "{id}: {status} {body}");
        if id != "drain" {
            let (_, body) = ask(Person::new(NOBODY, &[]), &socket, method.as_str(), &path);
            assert!(!body.contains(r#""code":"role""#), "{id}: {body}");
        }
    }
    // Who may probe may not wake people.
    let wakes = |who| ask_with(who, &socket, ("POST", "/v1/probe"), r#"{"notify":{}}"#);
    let (status, body) = wakes(READER);
    assert!(status == 403 && body.contains(r#""code":"role""#), "{body}");
    let (_, body) = wakes(Person::new(NOBODY, &[]));
    assert!(body.contains(r#""code":"notify_nobody""#), "{body}");
    // Nor run the programs of models.
    let asks = |who| ask_with(who, &socket, ("POST", "/v1/probe"), r#"{"model":"none"}"#);
    let (status, body) = asks(READER);
    assert!(status == 403 && body.contains(r#""code":"role""#), "{body}");
    let (_, body) = asks(Person::new(NOBODY, &[]));
    assert!(!body.contains(r#""code":"role""#), "{body}");
    for method in ["GET", "POST", "DELETE"] {
        let (status, body) = ask(READER, &socket, method, "/mcp");
        assert!(status == 403 && body.contains(r#""code":"role""#), "{body}");
        let (_, body) = ask(Person::new(NOBODY, &[]), &socket, method, "/mcp");
        assert!(!body.contains(r#""code":"role""#), "{body}");
    }
    daemon.stop();
}
