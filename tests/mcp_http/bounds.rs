//! How much one client may take.

use std::io::Write;

use serde_json::json;

use crate::mcp_http::host::Host;
use crate::mcp_http::session::{Session, initialize, let_in};
use crate::mcp_http::wire::Answer;
use crate::workspace::eventually;

/// The longest body that is read.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

#[test]
fn the_session_that_is_unused_for_longest_gives_way() {
    let host = Host::start(", sessions: 2");
    let one = Session::over_tcp(&host);
    let two = Session::begin(&host, &host.socket, "2025-06-18");
    assert_eq!(one.status(), 200);
    let three = Session::over_tcp(&host);
    assert_eq!(
        (one.status(), two.status(), three.status()),
        (200, 404, 200)
    );
    // Those that somebody listens to stay.
    let (first, third) = (one.listen(), three.listen());
    let hello = initialize("2025-11-25").to_string();
    let refused = host
        .tcp
        .open("POST", &let_in(&host, &host.tcp), hello.as_bytes());
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!((one.status(), three.status()), (200, 200));
    drop(third);
    let four = eventually("a place", || {
        let again = host
            .tcp
            .open("POST", &let_in(&host, &host.tcp), hello.as_bytes());
        (again.status == 200).then_some(again)
    });
    assert!(four.header("mcp-session-id").is_some());
    assert_eq!((one.status(), three.status()), (200, 404));
    drop(first);
}

#[test]
fn a_session_that_nobody_uses_ends() {
    let mut host = Host::start(", idle: 500ms");
    let listening = Session::over_tcp(&host);
    let stream = listening.listen();
    let calling = Session::over_tcp(&host);
    let call = json!({"name": "use_skill", "arguments": {"skill": "gated"}});
    let (_, answer) = calling.request("tools/call", &call);
    host.gate.reached();
    let unused = Session::over_tcp(&host);
    // Longer than it may be unused; to look earlier would be to use it.
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert_eq!(unused.status(), 404);
    assert_eq!((listening.status(), calling.status()), (200, 200));
    host.gate.pass();
    let mut events = answer.events();
    while let Some(event) = events.next() {
        assert!(event.message.get("error").is_none(), "{event:?}");
    }
    drop(stream);
}

#[test]
fn bodies_that_do_not_end_leave_room_for_others() {
    let host = Host::start("");
    let session = Session::over_tcp(&host);
    let head = format!("POST /mcp HTTP/1.1\nHost: localhost\n{}", session.headers);
    // The last of them wait for room, those before them for the rest of the body.
    let stuck: Vec<_> = (0..12)
        .map(|_| host.tcp.begin(&head, BODY_BYTES_MAX, b"{"))
        .collect();
    assert_eq!(session.status(), 200);
    drop(stuck);
    let refused = Answer::read(host.tcp.begin(&head, BODY_BYTES_MAX + 1, b"{"));
    assert_eq!(refused.status, 413, "what is announced is believed");
}

#[test]
fn many_call_at_once() {
    let host = Host::start("");
    let session = Session::over_tcp(&host);
    std::thread::scope(|scope| {
        for number in 0..64 {
            let session = &session;
            scope.spawn(move || {
                let input = json!({"skill": "hello", "input": {"who": number.to_string()}});
                let said = session.call("use_skill", &input);
                assert_eq!(said["content"], format!("hello {number}"), "{said}");
            });
        }
    });
    let status = host.command(&["runs", "--limit", "100"]);
    assert_eq!(status["runs"].as_array().unwrap().len(), 64);
}

#[test]
fn who_never_reads_stops_nobody() {
    let host = Host::start("");
    let session = Session::over_tcp(&host);
    let _stream = session.listen();
    let call = json!({"name": "use_skill", "arguments": {"skill": "loud"}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
    let mut unread = Vec::new();
    for number in 0..30 {
        let mut call = call.clone();
        call["id"] = json!(1_000 + number);
        let head = format!("POST /mcp HTTP/1.1\nHost: localhost\n{}", session.headers);
        unread.push(host.tcp.send(&head, call.to_string().as_bytes()));
    }
    // Nor who never says all of it, though they take every connection there is.
    let mut silent = Vec::new();
    for _ in 0..300 {
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";
        let mut stream = std::net::TcpStream::connect(match host.tcp {
            crate::mcp_http::wire::Place::Tcp(port) => ("127.0.0.1", port),
            crate::mcp_http::wire::Place::Socket(_) => panic!("no port"),
        })
        .unwrap();
        let _ = stream.write_all(head.as_bytes());
        silent.push(stream);
    }
    assert_eq!(session.status(), 200);
    let said = session.call("use_skill", &json!({"skill": "hello"}));
    assert_eq!(said["content"], "hello you", "{said}");
    let head = "GET /v1/version HTTP/1.1\nHost: localhost";
    assert_eq!(Answer::read(host.socket.send(head, b"")).status, 200);
    drop((unread, silent));
    host.daemon.stop();
}

#[test]
fn streams_leave_places_for_the_api() {
    let host = Host::start(", sessions: 200");
    let begin = || Session::begin(&host, &host.socket, "2025-11-25");
    let sessions: Vec<Session> = std::iter::repeat_with(begin).take(129).collect();
    let open = |session: &Session| host.socket.open("GET", &session.headers, b"");
    let (last, others) = sessions.split_last().unwrap();
    let streams: Vec<Answer> = others.iter().map(open).collect();
    assert!(streams.iter().all(|stream| stream.status == 200));
    let refused = open(last);
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), Some("1"));
    let head = "GET /v1/status HTTP/1.1\nHost: localhost";
    assert_eq!(Answer::read(host.socket.send(head, b"")).status, 200);
    drop(streams);
    eventually("a place", || (open(last).status == 200).then_some(()));
}
