//! Clients that hang, that flood, and that guess.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use workerctl::web::DIGEST;

use crate::web::host::Host;
use crate::web::wire::{Answer, Request};
use crate::workspace::eventually;

/// How long an answer may take that waits for nobody.
const SOON: Duration = Duration::from_secs(10);

/// The socket and the page answer, whatever else goes on: soon, unless the machine is busy with other work too.
fn both_answer(host: &Host, token: &str) {
    let began = Instant::now();
    // A command gives up after 5 s.
    eventually("the socket answers", || {
        let done = host.workspace.run(&["status", "--json"]);
        (done.code == 0).then_some(())
    });
    assert_eq!(host.get("/v1/status", token).status, 200);
    assert_eq!(host.ask(&Request::get("/")).status, 200);
    let elapsed = began.elapsed();
    let bound = SOON.max(20 * start_of_a_program(host));
    assert!(elapsed < bound, "{elapsed:?} of {bound:?}");
}

/// The time that a command needs which asks no engine.
fn start_of_a_program(host: &Host) -> Duration {
    let began = Instant::now();
    host.workspace.run(&["--version"]).expect_code(0);
    began.elapsed()
}

#[test]
fn a_thousand_connections_keep_nobody_out() {
    let host = Host::start("");
    let token = host.token(&[]);
    let mut open = Vec::new();
    for number in 0..1_000 {
        let mut stream = TcpStream::connect(("127.0.0.1", host.port)).unwrap();
        // Nothing, half a head, and a head without its body.
        let sent: &[u8] = match number % 3 {
            0 => b"",
            1 => b"GET /v1/status HTTP/1.1\r\nHost: 127",
            _ => b"POST /v1/web/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n",
        };
        let _ = stream.write_all(sent);
        open.push(stream);
    }
    both_answer(&host, &token);
    drop(open);
    both_answer(&host, &token);
    host.daemon.stop();
}

#[test]
fn those_who_do_not_read_their_answers_keep_nobody_out() {
    let host = Host::start("");
    let token = host.token(&[]);
    let file = Request::get(&format!("/assets/{DIGEST}/preact.js"));
    let document = Request::get("/v1/openapi.json").token(&token);
    let unread: Vec<TcpStream> = (0..300)
        .map(|number| {
            if number % 2 == 0 {
                file.send(host.port)
            } else {
                document.send(host.port)
            }
        })
        .collect();
    both_answer(&host, &token);
    drop(unread);
    host.daemon.stop();
}

#[test]
fn streams_of_the_page_take_no_place_of_the_sockets() {
    let host = Host::start("");
    let token = host.token(&[]);
    let submitted = host
        .post("/v1/runs", &token, r#"{"skill": "asks"}"#)
        .value();
    let run = submitted["run"].as_str().unwrap().to_owned();
    let request = Request::get(&format!("/v1/runs/{run}/events")).token(&token);
    let mut busy = 0;
    let mut streams = Vec::new();
    for _ in 0..80 {
        let mut stream = request.send(host.port);
        let mut first = [0; 16];
        stream.read_exact(&mut first).unwrap();
        if first.starts_with(b"HTTP/1.1 503") {
            busy += 1;
        }
        streams.push(stream);
    }
    assert!(busy > 0, "there are only so many places");
    both_answer(&host, &token);
    // Commands still follow runs.
    let other = host.workspace.run(&["run", "hello"]).expect_code(0);
    assert!(other.stdout.contains("hello"), "{other:?}");
    host.daemon.stop();
}

#[test]
fn guessing_is_slow_and_slows_nobody_who_knows() {
    let host = Host::start("");
    let (token, code) = (host.token(&[]), host.code(&[]));
    let guess = Request::post(
        "/v1/web/login",
        r#"{"code": "00000000000000000000000000000000"}"#,
    );
    // Enough of them that each waits as long as any does.
    let mut guesses: Vec<TcpStream> = (0..100).map(|_| guess.send(host.port)).collect();
    both_answer(&host, &token);
    assert_eq!(host.log_in(&code).status, 200);
    let began = Instant::now();
    assert_eq!(guess.ask(host.port).status, 401);
    let waited = began.elapsed();
    assert!(waited >= Duration::from_millis(1_900), "{waited:?}");
    for stream in &mut guesses {
        let mut bytes = Vec::new();
        // One that gave way to somebody else has no answer.
        if stream.read_to_end(&mut bytes).is_ok()
            && let Some(answer) = Answer::of(&bytes)
        {
            assert_eq!(answer.status, 401, "{answer:?}");
        }
    }
    host.daemon.stop();
}
