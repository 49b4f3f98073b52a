use super::*;
use std::ops::ControlFlow;
use std::os::unix::net::UnixListener;
use std::time::Instant;

use workerctl::daemon::{connect, dial as dial_engine};
use workerctl::model::{Diagnostic, Kind};
use workerctl::protocol::{
    CancelRequest, Control, DiffQuery, LogsQuery, OutputSource, ProbeRequest, ResolveRequest,
    RunsQuery, SignedRequest, SubmitRequest, WatchEvent,
};

/// The file of an output, read.
fn output(control: &dyn Control, run: &str) -> (String, OutputSource, u64, String) {
    let mut file = control.output(run, "a b/ü").expect("it is there");
    let mut content = String::new();
    file.content.read_to_string(&mut content).expect("a text");
    (file.path, file.source, file.bytes, content)
}

fn logs(limit: u32) -> LogsQuery {
    LogsQuery {
        from: 1,
        limit,
        search: Some("a&b".to_owned()),
        ..LogsQuery::default()
    }
}

#[test]
fn every_method_of_the_interface_crosses_the_socket() {
    let served = Served::start(Limits::default());
    let here: &dyn Control = served.engine.as_ref();
    let there = connect(&served.options()).expect("connected");
    let run = served.engine.run.to_string();
    let request = SubmitRequest {
        skill: "weekly".into(),
        input: vec![("a".into(), "\u{0}\u{1b} ü{output}".into())],
        chat_id: Some("mcp-1".into()),
        // Whoever asks cannot say who they are.
        user_id: Some(77),
        ..SubmitRequest::default()
    };
    assert_eq!(there.submit(&request), here.submit(&request));
    let heard = SubmitRequest {
        user_id: Some(rustix::process::geteuid().as_raw()),
        by: Some(workerctl::process::own_name()),
        ..request.clone()
    };
    assert_eq!(served.engine.submitted.lock().expect("a lock")[0], heard);
    assert_eq!(there.render(&request), here.render(&request));
    let query = RunsQuery {
        worker: Some("a b&c=d/ü%".into()),
        since_ms: Some(-5),
        limit: 3,
        ..RunsQuery::default()
    };
    assert_eq!(there.runs(&query), here.runs(&query));
    assert_eq!(served.engine.queries.lock().expect("a lock")[0], query);
    assert_eq!(there.run(&run), here.run(&run));
    for now in [true, false] {
        let request = CancelRequest {
            now,
            by: Some("me".into()),
            ..CancelRequest::default()
        };
        assert_eq!(there.cancel(&run, &request), here.cancel(&run, &request));
    }
    let signed = SignedRequest::default();
    assert_eq!(there.retry(&run, &signed), here.retry(&run, &signed));
    for resolution in ["failed", "perhaps"] {
        let request = ResolveRequest {
            resolution: resolution.into(),
            note: "line\nline".into(),
            by: None,
        };
        assert_eq!(there.resolve(&run, &request), here.resolve(&run, &request));
    }
    assert_eq!(there.land(&run, &signed), here.land(&run, &signed));
    assert_eq!(there.discard(&run, &signed), here.discard(&run, &signed));
    let query = DiffQuery {
        path: Some("a b/ü".to_owned()),
    };
    assert_eq!(there.diff(&run, &query), here.diff(&run, &query));
    assert_eq!(there.changes(&run), here.changes(&run));
    assert_eq!(there.thread(&run), here.thread(&run));
    assert_eq!(output(there.as_ref(), &run), output(here, &run));
    for limit in [0, 1] {
        let query = logs(limit);
        assert_eq!(there.logs_page(&run, &query), here.logs_page(&run, &query));
    }
    assert_eq!(there.status(), here.status());
    assert_eq!(there.workers(), here.workers());
    let asked = ProbeRequest::default();
    assert_eq!(there.probe(&asked), here.probe(&asked));
    assert_eq!(there.reload(), here.reload());
    assert_eq!(there.run("ZZZZZ"), here.run("ZZZZZ"));
    assert_eq!(there.drain(), Ok(()));
}

#[test]
fn a_run_is_followed_from_its_first_line_to_its_end() {
    let served = Served::start(Limits::default());
    let watch = |control: &dyn Control| {
        let mut told = Vec::new();
        let ended = control.watch(served.engine.run, &mut |event| {
            if event != (WatchEvent::Lagged { lost: 0 }) {
                told.push(event);
            }
            ControlFlow::Continue(())
        });
        (ended, told)
    };
    let there = connect(&served.options()).expect("connected");
    let (ended, told) = watch(there.as_ref());
    assert_eq!((ended, told.len()), (Ok(()), 5));
    assert_eq!(told, watch(served.engine.as_ref()).1);
    let mut changes = Vec::new();
    let ended = there.watch_changes(served.engine.run, &mut |event| {
        changes.push(event);
        ControlFlow::Continue(())
    });
    let no_line = |event: &WatchEvent| !matches!(event, WatchEvent::Line(_));
    let expected: Vec<WatchEvent> = told
        .iter()
        .filter(|event| no_line(event))
        .cloned()
        .collect();
    changes.retain(|event| *event != (WatchEvent::Lagged { lost: 0 }));
    assert_eq!((ended, changes), (Ok(()), expected));
    let mut calls = 0;
    let ended = there.watch(served.engine.run, &mut |_| {
        calls += 1;
        // Other questions may be asked meanwhile.
        assert!(there.status().is_ok());
        ControlFlow::Break(())
    });
    assert_eq!((ended, calls), (Ok(()), 1));
}

#[test]
fn each_event_has_an_id_and_a_stream_can_be_taken_up_again() {
    let served = Served::start(Limits::default());
    let path = format!("/v1/runs/{}/events", served.engine.run);
    let whole = served.ask("GET", &path, "", b"");
    assert!(
        whole.head.contains("content-type: text/event-stream"),
        "{whole:?}"
    );
    let ids: Vec<&str> = whole
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .collect();
    assert_eq!(ids, ["1", "2", "3", "3", "3", "3"], "{whole:?}");
    assert!(whole.body.contains("event: end\ndata: {}"), "{whole:?}");
    assert_eq!(whole.body.matches("event: lagged").count(), 1);
    let rest = served.ask("GET", &path, "Last-Event-ID: 2\r\n", b"");
    assert_eq!(rest.body.matches("event: line").count(), 1, "{rest:?}");
}

#[test]
fn a_silent_run_keeps_its_watchers_alive() {
    let served = Served::start(Limits {
        keep_alive: Duration::from_millis(50),
        ..Limits::default()
    });
    served.engine.end.shut();
    let there = connect(&served.options()).expect("connected");
    let mut quiet = 0;
    let ended = there.watch(served.engine.run, &mut |event| {
        quiet += u32::from(event == WatchEvent::Lagged { lost: 0 });
        if quiet == 3 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!((ended, quiet), (Ok(()), 3));
}

#[test]
fn where_nobody_listens_that_is_said() {
    let directory = xtest::tempdir();
    let socket = directory.path().join("s.sock");
    for socket in [None, Some(socket.as_path())] {
        let refused = connect(&options(directory.path(), socket))
            .err()
            .expect("nobody");
        assert_eq!(
            (refused.kind, refused.code.as_str()),
            (Kind::Unreachable, "no_engine")
        );
        assert!(!refused.hints.is_empty());
    }
    drop(UnixListener::bind(&socket).expect("bound"));
    let refused = dial_engine(&options(directory.path(), Some(&socket))).expect_err("stale");
    assert_eq!(refused.code, "no_engine");
}

/// What a client makes of a listener that answers everything with `bytes`, or with silence.
fn foreign(bytes: Option<&'static [u8]>) -> (Diagnostic, Duration) {
    let directory = xtest::tempdir();
    let socket = directory.path().join("s.sock");
    let listener = UnixListener::bind(&socket).expect("bound");
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accepted");
        if let Some(bytes) = bytes {
            let mut asked = [0; 1024];
            let _ = stream.read(&mut asked);
            let _ = stream.write_all(bytes);
            return;
        }
        let _ = wait.recv();
    });
    let started = Instant::now();
    let refused = dial_engine(&options(directory.path(), Some(&socket))).expect_err("foreign");
    drop(done);
    answering.join().expect("ended");
    (refused, started.elapsed())
}

#[test]
fn a_foreign_service_is_recognised() {
    let answers: [&[u8]; 7] = [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\0\0\0\0\xff\xff",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 76\r\n\r\n{\"name\":\"dockerd\",\"version\":\"1\",\"api\":\"v1\",\"workspace\":\"/w\",\"pid\":1}        ",
    ];
    for bytes in answers {
        let (refused, _) = foreign(Some(bytes));
        assert_eq!(refused.kind, Kind::Unreachable, "{refused:?}");
        assert!(
            matches!(refused.code.as_str(), "foreign_service" | "answer_cut_off"),
            "{:?}: {refused:?}",
            String::from_utf8_lossy(bytes)
        );
    }
}

/// Says who it is to the first client, and to every later one nothing: it hangs up once it was asked.
fn hangs_up(listener: &UnixListener, clients: usize) {
    let version =
        r#"{"name":"workerctl","version":"1","api":"v1","workspace":"/w","pid":1,"ready":true}"#;
    for client in 0..clients {
        let (mut stream, _) = listener.accept().expect("accepted");
        let mut asked = [0; 4096];
        assert!(stream.read(&mut asked).expect("asked") > 0);
        if client == 0 {
            let length = version.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{version}");
            stream.write_all(answer.as_bytes()).expect("answered");
        }
    }
}

#[test]
fn a_change_that_was_sent_and_not_answered_is_open() {
    let directory = xtest::tempdir();
    let socket = directory.path().join("s.sock");
    let listener = UnixListener::bind(&socket).expect("bound");
    let engine = std::thread::spawn(move || hangs_up(&listener, 4));
    let there = connect(&options(directory.path(), Some(&socket))).expect("connected");
    let code = |refused: Diagnostic| (refused.kind, refused.code);
    let open = (Kind::Open, "answer_lost".to_owned());
    let submitted = there.submit(&SubmitRequest::default());
    assert_eq!(submitted.map_err(code), Err(open.clone()));
    let retried = there.retry("01JC", &SignedRequest::default());
    assert_eq!(retried.map_err(code), Err(open));
    // What only looks has changed nothing.
    let refused = there.status().expect_err("hung up");
    assert_eq!(refused.kind, Kind::Unreachable, "{refused:?}");
    engine.join().expect("ended");
    // Nobody listens any more: nothing was sent.
    let unsent = there.submit(&SubmitRequest::default());
    assert_eq!(
        unsent.map_err(code),
        Err((Kind::Unreachable, "no_engine".to_owned()))
    );
}

#[test]
fn an_engine_that_ends_before_it_answers_is_not_taken_for_something_else() {
    // With the request read the connection is closed, without it is reset.
    for read_first in [true, false] {
        let directory = xtest::tempdir();
        let socket = directory.path().join("s.sock");
        let listener = UnixListener::bind(&socket).expect("bound");
        let ending = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("accepted");
            let mut asked = [0; 1024];
            let count = if read_first {
                stream.read(&mut asked)
            } else {
                // One byte is there as soon as the request is.
                stream.read(&mut asked[..1])
            };
            count.expect("asked");
        });
        let refused = dial_engine(&options(directory.path(), Some(&socket))).expect_err("ended");
        ending.join().expect("ended");
        assert_eq!(
            (refused.kind, refused.code.as_str()),
            (Kind::Unreachable, "answer_cut_off"),
            "{refused:?}"
        );
        assert!(refused.hints[0].contains("journalctl"), "{refused:?}");
    }
}

#[test]
fn silence_is_not_waited_for_longer_than_five_seconds() {
    let (refused, took) = foreign(None);
    assert_eq!(
        (refused.kind, refused.code.as_str()),
        (Kind::Unreachable, "no_answer")
    );
    assert!(took >= Duration::from_secs(4), "{took:?}");
}

#[test]
fn another_version_and_another_workspace_are_named() {
    let (refused, _) = foreign(Some(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"name\":\"workerctl\",\"version\":\"9.0.0\",\"api\":\"v9\",\"workspace\":\"/w\",\"pid\":1,\"later\":true}",
    ));
    assert_eq!(refused.code, "version_mismatch");
    assert!(refused.message.contains("9.0.0"), "{refused:?}");

    let served = Served::start(Limits::default());
    let lock = served.directory.path().join("other/.workerctl");
    std::fs::create_dir_all(&lock).expect("made");
    let record =
        serde_json::json!({"pid": 1, "boot_id": "x", "state_dir": "/s", "socket": served.socket});
    std::fs::write(lock.join("lock"), record.to_string()).expect("written");
    let other = options(&served.directory.path().join("other"), None);
    // One that nobody holds was copied, or stems from a workspace that was moved away.
    let refused = dial_engine(&other).expect_err("nobody");
    assert_eq!(refused.code, "no_engine");
    let held = std::fs::File::open(lock.join("lock")).expect("there");
    held.lock().expect("locked");
    let refused = dial_engine(&other).expect_err("another workspace");
    assert_eq!(
        (refused.kind, refused.code.as_str()),
        (Kind::Conflict, "other_workspace")
    );
}

#[test]
fn the_engine_is_found_through_the_lock_of_its_workspace() {
    let served = Served::start(Limits::default());
    let lock = served.directory.path().join(".workerctl");
    std::fs::create_dir_all(&lock).expect("made");
    let record =
        serde_json::json!({"pid": 1, "boot_id": "x", "state_dir": "/s", "socket": served.socket});
    std::fs::write(lock.join("lock"), record.to_string()).expect("written");
    let found = dial_engine(&options(served.directory.path(), None)).expect("found");
    assert_eq!(found.socket(), served.socket);
}
