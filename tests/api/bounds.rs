use super::*;
use std::sync::atomic::Ordering;
use std::time::Instant;

fn quick() -> Limits {
    Limits {
        read_patience: Duration::from_millis(300),
        write_patience: Duration::from_millis(300),
        call_patience: Duration::from_millis(100),
        ..Limits::default()
    }
}

#[test]
fn a_body_beyond_the_limit_is_refused() {
    let served = Served::start(Limits::default());
    let body = format!(r#"{{"skill": "{}"}}"#, "x".repeat(1024 * 1024));
    let answer = served.json("POST", "/v1/runs", &body);
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, "body_too_large")
    );
    // One that does not say how long it is, and never ends, is cut at the same place.
    let chunk = format!("{:x}\r\n{}\r\n", 65_536, "x".repeat(65_536));
    let endless = format!(
        "POST /v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        chunk.repeat(20)
    );
    let answer = served.raw(endless.as_bytes());
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (413, "body_too_large")
    );
    assert_eq!(served.ask("GET", "/v1/status", "", b"").status, 200);
}

#[test]
fn a_head_beyond_the_limit_is_refused() {
    let served = Served::start(Limits::default());
    let long = format!("X-Long: {}\r\n", "x".repeat(64 * 1024));
    let many = "X-Many: x\r\n".repeat(100);
    for headers in [long, many] {
        let answer = served.ask("GET", "/v1/status", &headers, b"");
        assert!((400..500).contains(&answer.status), "{answer:?}");
    }
    // A buffer takes more at once than it may hold.
    for (bytes, status) in [(40_000, 431), (33_000, 431), (32_000, 200)] {
        let head = format!("X-Long: {}\r\n", "x".repeat(bytes));
        let answer = served.ask("GET", "/v1/status", &head, b"");
        assert_eq!(answer.status, status, "{bytes}: {answer:?}");
    }
    let answer = served.ask("GET", &format!("/v1/{}", "x".repeat(100_000)), "", b"");
    assert!((400..500).contains(&answer.status), "{answer:?}");
    assert_eq!(served.ask("GET", "/v1/status", "", b"").status, 200);
}

#[test]
fn whatever_is_not_http_is_answered_or_dropped_and_nothing_breaks() {
    let served = Served::start(quick());
    let hostile: [&[u8]; 9] = [
        b"\0\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\n\r\n", b"{\"jsonrpc\": \"2.0\"}\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"GET http://[::1/ HTTP/1.1\r\n\r\n",
    ];
    for bytes in hostile {
        let answer = served.raw(bytes);
        assert!(
            answer.status == 0 || (400..506).contains(&answer.status),
            "{answer:?}"
        );
        assert_ne!(answer.status, 500, "{answer:?}");
    }
    assert_eq!(served.ask("GET", "/v1/status", "", b"").status, 200);
}

#[test]
fn a_request_that_trickles_is_ended() {
    let served = Served::start(quick());
    let answer = served.raw(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{");
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (408, "body_too_slow")
    );
    let mut silent = dial(&served.socket);
    silent.write_all(b"GET /v1/sta").expect("written");
    // Its end is what is waited for; what is said with it is up to the HTTP library.
    let answer = Answer::read(&mut silent);
    assert!(answer.status == 0 || answer.status == 408, "{answer:?}");
}

#[test]
fn clients_that_say_nothing_shut_out_nobody() {
    let served = Served::start(Limits {
        connections: 16,
        read_patience: Duration::from_mins(10),
        ..Limits::default()
    });
    let silent: Vec<UnixStream> = (0..100)
        .map(|number| {
            let mut stream = dial(&served.socket);
            if number % 2 == 0 {
                let _ = stream
                    .write_all(b"POST /v1/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{");
            }
            stream
        })
        .collect();
    for _ in 0..50 {
        assert_eq!(served.ask("GET", "/v1/status", "", b"").status, 200);
    }
    drop(silent);
}

#[test]
fn a_question_that_hangs_holds_up_only_its_own_kind() {
    let served = Served::start(Limits {
        calls: 2,
        ..quick()
    });
    served.engine.diff.shut();
    let path = format!("/v1/runs/{}/diff", served.engine.run);
    let hanging: Vec<UnixStream> = (0..2)
        .map(|_| {
            let mut stream = dial(&served.socket);
            stream
                .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
                .expect("written");
            stream
        })
        .collect();
    // Both places of the lane are taken once a third question is told so.
    let started = Instant::now();
    let busy = loop {
        let answer = served.ask("GET", "/v1/status", "", b"");
        if answer.status != 200 || started.elapsed() > Duration::from_secs(30) {
            break answer;
        }
    };
    assert_eq!((busy.status, busy.code().as_str()), (503, "busy"));
    assert!(busy.head.contains("retry-after"), "{busy:?}");
    assert_eq!(served.ask("GET", "/v1/version", "", b"").status, 200);
    assert_eq!(
        served.json("POST", "/v1/runs", r#"{"skill": "a"}"#).status,
        201
    );
    served.engine.diff.open();
    for mut stream in hanging {
        assert_eq!(Answer::read(&mut stream).status, 200);
    }
}

#[test]
fn two_hundred_clients_at_once_are_all_answered() {
    let served = Served::start(Limits::default());
    let mut slowest = Duration::ZERO;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..200)
            .map(|number| {
                let served = &served;
                scope.spawn(move || {
                    let started = Instant::now();
                    let answer =
                        served.json("POST", "/v1/runs", &format!(r#"{{"skill": "s{number}"}}"#));
                    assert_eq!(answer.status, 201, "{answer:?}");
                    started.elapsed()
                })
            })
            .collect();
        for client in clients {
            slowest = slowest.max(client.join().expect("answered"));
        }
    });
    println!("slowest of 200 parallel submissions: {slowest:?}");
    assert_eq!(served.engine.submitted.lock().expect("a lock").len(), 200);
}

#[test]
fn watchers_are_bounded_and_give_their_place_back() {
    let served = Served::start(Limits {
        watchers: 2,
        ..quick()
    });
    served.engine.end.shut();
    let path = format!("/v1/runs/{}/events", served.engine.run);
    let watch = || {
        let mut stream = dial(&served.socket);
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes())
            .expect("written");
        stream
    };
    let head = |stream: &mut UnixStream| {
        let mut start = [0_u8; 12];
        stream.read_exact(&mut start).expect("an answer");
        String::from_utf8_lossy(&start).into_owned()
    };
    let (mut first, mut second) = (watch(), watch());
    assert_eq!(head(&mut first), "HTTP/1.1 200");
    assert_eq!(head(&mut second), "HTTP/1.1 200");
    assert_eq!(head(&mut watch()), "HTTP/1.1 503");
    drop(first);
    let started = Instant::now();
    while head(&mut watch()) != "HTTP/1.1 200" {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "the place was not given back"
        );
    }
}

#[test]
fn a_watcher_that_does_not_read_loses_its_connection() {
    let served = Served::start(quick());
    let text = "x".repeat(64 * 1024);
    *served.engine.lines.lock().expect("a lock") = (0..400)
        .map(|number| workerctl::protocol::LogLine {
            text: text.clone(),
            ..crate::scripted::line(number)
        })
        .collect();
    let mut stream = dial(&served.socket);
    stream
        .write_all(
            format!(
                "GET /v1/runs/{}/events HTTP/1.1\r\nHost: x\r\n\r\n",
                served.engine.run
            )
            .as_bytes(),
        )
        .expect("written");
    let started = Instant::now();
    while served.engine.watching.load(Ordering::SeqCst) == 0 {
        assert!(started.elapsed() < Duration::from_secs(30));
        std::thread::yield_now();
    }
    // Others are served meanwhile, and the stream ends before it has told everything.
    assert_eq!(served.ask("GET", "/v1/status", "", b"").status, 200);
    std::thread::sleep(Duration::from_secs(1));
    let mut told = Vec::new();
    let _ = stream.read_to_end(&mut told);
    assert!(told.len() < 400 * text.len(), "{}", told.len());
}

#[test]
fn a_stopped_server_lets_requests_under_way_end() {
    let mut served = Served::start(Limits {
        stop_patience: Duration::from_secs(30),
        ..quick()
    });
    served.engine.diff.shut();
    let mut stream = dial(&served.socket);
    stream
        .write_all(
            format!(
                "GET /v1/runs/{}/diff HTTP/1.1\r\nHost: x\r\n\r\n",
                served.engine.run
            )
            .as_bytes(),
        )
        .expect("written");
    // The server has read it once it answers one that came later.
    assert_eq!(served.ask("GET", "/v1/version", "", b"").status, 200);
    let running = served.server.take().expect("running");
    let engine = Arc::clone(&served.engine);
    let stopping = std::thread::spawn(move || running.stop());
    engine.diff.open();
    assert_eq!(Answer::read(&mut stream).status, 200);
    stopping.join().expect("stopped");
}

/// How often this process's server was woken up so far.
fn wake_ups() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("tasks");
    let api = tasks
        .map(|task| task.expect("a task").path())
        .find(|task| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == "api")
        })
        .expect("the server's thread");
    std::fs::read_to_string(api.join("status"))
        .expect("its status")
        .lines()
        .find_map(|line| {
            line.strip_prefix("voluntary_ctxt_switches:")?
                .trim()
                .parse()
                .ok()
        })
        .expect("a count")
}

/// Measures in a process that has one server only; nothing unless it is asked to.
#[test]
fn probe_of_an_idle_server() {
    if std::env::var_os("WORKERCTL_TEST_IDLE").is_none() {
        return;
    }
    let served = Served::start(Limits::default());
    assert_eq!(served.ask("GET", "/v1/status", "", b"").status, 200);
    // Let what the request left behind end first.
    std::thread::sleep(Duration::from_millis(500));
    let before = wake_ups();
    std::thread::sleep(Duration::from_secs(2));
    println!("woken up {} times in 2 s", wake_ups() - before);
}

#[test]
fn an_idle_server_is_not_woken_up() {
    let output = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "bounds::probe_of_an_idle_server", "--nocapture"])
        .env("WORKERCTL_TEST_IDLE", "1")
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("woken up 0 times"), "{said}");
}
