//! Servers at the other ends of two pipes. Deadlines are short only where they are what ends the wait.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Write as _, pipe};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use workerctl_agent::Stop;
use workerctl_agent::mcp::{Connection, ServerBounds, ServerDeadlines, ToolServer};

use crate::rig::{
    Goes, LONG, PATIENT, SHORT, bounds, call, echoes, error, piped, react, reply, result, say,
    start, text, usual,
};

type React = fn(&Value, &mut PipeWriter) -> Goes;

#[test]
fn tools_are_listed_and_called() {
    let (connection, peer) = piped(react);
    let server = start(connection).unwrap();
    let names: Vec<_> = server
        .tools()
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let expect = ["echo", "slow", "fail", "refuse", "long"].map(|name| format!("mcp__s__{name}"));
    assert_eq!(names, expect);
    assert_eq!(server.notes(), ["a tool without a name is left out"]);
    let asked = peer.wait_for("initialize");
    assert_eq!(asked["params"]["capabilities"], json!({}));
    assert_eq!(asked["params"]["clientInfo"]["name"], "workerctl");

    let none = json!({});
    for (tool, arguments, expect) in [
        (
            "echo",
            json!({"a": [1, "ü"]}),
            reply(r#"{"a":[1,"ü"]}"#, false),
        ),
        ("fail", none.clone(), reply("no such file", true)),
        (
            "refuse",
            none.clone(),
            reply(
                "error -32602: `path` is missing\n{\"hint\":\"try again\"}",
                true,
            ),
        ),
        (
            "nothing",
            none,
            reply("there is no tool `mcp__s__nothing`", true),
        ),
        (
            "echo",
            json!([1]),
            reply("the arguments are no object", true),
        ),
    ] {
        assert_eq!(call(&server, tool, &arguments), Ok(expect), "{tool}");
    }
    server.close();
    peer.thread.join().unwrap();
}

#[test]
fn a_long_reply_is_cut() {
    let (connection, _peer) = piped(react);
    let few = ServerBounds {
        reply_bytes_max: 101,
        ..bounds()
    };
    let server = ToolServer::start("s", connection, PATIENT, few, &Stop::new()).unwrap();
    let expect = format!("{}\n[59900 bytes more are left out]", "é".repeat(50));
    assert_eq!(call(&server, "long", &json!({})), Ok(reply(&expect, false)));
}

#[test]
fn starts_that_fail_are_named() {
    let cases: [(&str, Duration, React); 12] = [
        ("mcp_start_timeout", SHORT, |_, _| true),
        ("mcp_closed", LONG, |_, _| false),
        ("mcp_not_json", LONG, |_, out| {
            out.write_all(b"Error: the key is missing\n").unwrap();
            false
        }),
        ("mcp_not_json", LONG, |_, out| {
            while out.write_all(b"{\"level\":\"info\"}\n").is_ok() {}
            false
        }),
        ("mcp_too_large", LONG, |_, out| {
            while out.write_all(&[b'x'; 1024]).is_ok() {}
            false
        }),
        ("mcp_protocol", LONG, |message, out| {
            say(out, &error(message, -32600, "not you"));
            true
        }),
        ("mcp_protocol", LONG, |message, out| {
            say(out, &result(message, &text("hello")));
            true
        }),
        ("mcp_protocol", LONG, |message, out| {
            say(out, &json!({"id": message["id"], "error": "no"}));
            true
        }),
        ("mcp_protocol", LONG, |message, out| {
            let mut answer = usual(message).unwrap_or_default();
            answer["result"]["protocolVersion"] = json!("2099-01-01");
            say(out, &answer);
            true
        }),
        ("mcp_protocol", LONG, |message, out| {
            if message["method"] == "tools/list" {
                say(out, &error(message, -32601, "no tools"));
                return true;
            }
            react(message, out)
        }),
        ("mcp_protocol", LONG, |message, out| {
            if message["method"] == "tools/list" {
                say(out, &result(message, &json!({"tools": 7})));
                return true;
            }
            react(message, out)
        }),
        ("mcp_closed", LONG, |message, out| {
            message["method"] != "tools/list" && react(message, out)
        }),
    ];
    for (index, (code, limit, script)) in cases.into_iter().enumerate() {
        let (connection, _peer) = piped(script);
        let deadlines = ServerDeadlines {
            start: limit,
            ..PATIENT
        };
        let started = ToolServer::start("s", connection, deadlines, bounds(), &Stop::new());
        let failed = started.err().unwrap();
        assert_eq!(failed.code(), code, "{index}: {failed}");
        assert!(
            failed.to_string().starts_with("tool server `s`: "),
            "{failed}"
        );
    }
}

#[test]
fn the_first_text_is_shown_cleaned() {
    let (connection, _peer) = piped(|_, out| {
        out.write_all(b"\x1b[31mError:\x1b[0m no key\nat line 1\n")
            .unwrap();
        false
    });
    let failed = start(connection).err().unwrap();
    let expect = "tool server `s`: it writes text instead of JSON: [31mError: [0m no key";
    assert_eq!(failed.to_string(), expect);
}

/// The text is there before the start, so that the deadline cannot come first.
#[test]
fn text_instead_of_messages_explains_a_deadline() {
    let (_its_input, input) = pipe().unwrap();
    let (output, mut its_output) = pipe().unwrap();
    its_output
        .write_all(b"Listening on port 3000 ...\n")
        .unwrap();
    let deadlines = ServerDeadlines {
        start: Duration::from_secs(1),
        ..PATIENT
    };
    let connection = Connection::Pipes { input, output };
    let started = ToolServer::start("s", connection, deadlines, bounds(), &Stop::new());
    assert_eq!(started.err().unwrap().code(), "mcp_not_json");
}

#[test]
fn only_pipes_are_taken() {
    let null = || {
        OwnedFd::from(
            File::options()
                .read(true)
                .write(true)
                .open("/dev/null")
                .unwrap(),
        )
    };
    let connection = Connection::Pipes {
        input: PipeWriter::from(null()),
        output: PipeReader::from(null()),
    };
    assert_eq!(start(connection).err().unwrap().code(), "settings");
}

#[test]
fn a_banner_and_messages_that_nobody_asked_for_do_no_harm() {
    let (connection, peer) = piped(|message, out| {
        // Not upon replies, of which each would call for five more.
        if message.get("method").is_none() {
            return true;
        }
        out.write_all(b"Welcome!\n\n{\"level\":\"info\"}\n[]\n")
            .unwrap();
        for (id, method) in [
            ("p", "ping"),
            ("s", "sampling/createMessage"),
            ("r", "roots/list"),
            ("e", "elicitation/create"),
            ("x", "x/unheard-of"),
        ] {
            say(
                out,
                &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}),
            );
        }
        for method in ["tools/list_changed", "progress", "message", "unheard_of"] {
            let method = format!("notifications/{method}");
            say(
                out,
                &json!({"jsonrpc": "2.0", "method": method, "params": {"level": 3}}),
            );
        }
        if message["method"] == "tools/list" {
            say(out, &result(&json!({"id": 999}), &text("for nobody")));
        }
        react(message, out)
    });
    let server = start(connection).unwrap();
    assert_eq!(server.tools().len(), 5);
    echoes(&server);
    assert_eq!(peer.wait_for_reply("p")["result"], json!({}));
    for id in ["s", "r", "e", "x"] {
        assert_eq!(peer.wait_for_reply(id)["error"]["code"], -32601, "{id}");
    }
}

#[test]
fn a_list_without_an_end_is_read_in_part() {
    let cases: [(React, &str); 2] = [
        (
            |message, out| {
                let page = json!({"tools": [], "nextCursor": "again"});
                match message["method"].as_str() {
                    Some("tools/list") => say(out, &result(message, &page)),
                    _ => _ = react(message, out),
                }
                true
            },
            "its list of tools has no end; 2 pages were read",
        ),
        (
            |message, out| {
                let page = json!({"tools": [], "nextCursor": message["id"].to_string()});
                match message["method"].as_str() {
                    Some("tools/list") => say(out, &result(message, &page)),
                    _ => _ = react(message, out),
                }
                true
            },
            "its list of tools has no end; 100 pages were read",
        ),
    ];
    for (script, note) in cases {
        let (connection, _peer) = piped(script);
        assert_eq!(start(connection).unwrap().notes(), [note]);
    }
}

#[test]
fn a_call_that_takes_too_long_is_cancelled_and_the_server_stays_usable() {
    let (connection, peer) = piped(react);
    let server = start(connection).unwrap();
    let arguments = json!({});
    let failed = server.call("mcp__s__slow", &arguments, SHORT, &Stop::new());
    let failed = failed.unwrap_err();
    assert_eq!(failed.code(), "mcp_call_timeout");
    assert_eq!(
        failed.to_string(),
        "tool server `s`: `slow` was not done within 0.2 s"
    );
    let asked = peer.wait_for("tools/call");
    let cancelled = peer.wait_for("notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
    echoes(&server);
}

#[test]
fn a_stop_ends_a_start_and_a_call_at_once() {
    let (connection, peer) = piped(|_, _| true);
    let stop = Stop::new();
    let failed = std::thread::scope(|scope| {
        let starting = scope.spawn(|| ToolServer::start("s", connection, PATIENT, bounds(), &stop));
        peer.wait_for("initialize");
        stop.stop();
        starting.join().unwrap()
    });
    assert_eq!(failed.err().unwrap().code(), "stopped");

    let (connection, peer) = piped(react);
    let server = start(connection).unwrap();
    let stop = Stop::new();
    let slow = || server.call("mcp__s__slow", &json!({}), LONG, &stop);
    let failed = std::thread::scope(|scope| {
        let calling = scope.spawn(slow);
        peer.wait_for("tools/call");
        stop.stop();
        calling.join().unwrap()
    });
    assert_eq!(failed.unwrap_err().code(), "stopped");
    peer.wait_for("notifications/cancelled");
    assert_eq!(slow().unwrap_err().code(), "stopped");
    echoes(&server);
}

#[test]
fn connections_that_end_in_a_call_are_named_and_stay_ended() {
    let cases: [(&str, React); 4] = [
        ("mcp_closed", |_, _| false),
        ("mcp_closed", |message, out| {
            let answer = result(message, &text("half")).to_string();
            out.write_all(&answer.as_bytes()[..20]).unwrap();
            false
        }),
        ("mcp_too_large", |_, out| {
            while out.write_all(&[b'x'; 1024]).is_ok() {}
            false
        }),
        ("mcp_protocol", |message, out| {
            say(out, &json!({"id": message["id"], "error": 7}));
            true
        }),
    ];
    for (index, (code, script)) in cases.into_iter().enumerate() {
        let (connection, _peer) = piped(move |message, out| match message["method"].as_str() {
            Some("tools/call") => script(message, out),
            _ => react(message, out),
        });
        let server = start(connection).unwrap();
        for _ in 0..2 {
            let failed = call(&server, "echo", &json!({})).unwrap_err();
            assert_eq!(failed.code(), code, "{index}: {failed}");
        }
    }
}

#[test]
fn calls_run_beside_each_other() {
    let mut waiting = None;
    let (connection, _peer) = piped(move |message, out| {
        if message["method"] != "tools/call" {
            return react(message, out);
        }
        // The first is answered after the second, with its number written as text.
        match waiting.take() {
            None => waiting = usual(message),
            Some(mut first) => {
                first["id"] = json!(first["id"].to_string());
                say(out, &usual(message).unwrap());
                say(out, &first);
            }
        }
        true
    });
    let server = start(connection).unwrap();
    std::thread::scope(|scope| {
        for number in 0..2 {
            let server = &server;
            scope.spawn(move || {
                let arguments = json!({"number": number});
                let expect = reply(&arguments.to_string(), false);
                assert_eq!(call(server, "echo", &arguments), Ok(expect));
            });
        }
    });
}

/// Its requests fill our queue and then its own output, in which it gets stuck.
#[test]
fn a_server_that_asks_without_reading_holds_nobody_up() {
    let (connection, _peer) = piped(|message, out| {
        if message["method"] != "tools/call" {
            return react(message, out);
        }
        let ping = json!({"jsonrpc": "2.0", "id": "x".repeat(1000), "method": "ping"});
        while out.write_all(format!("{ping}\n").as_bytes()).is_ok() {}
        false
    });
    let server = start(connection).unwrap();
    let called = server.call("mcp__s__slow", &json!({}), SHORT, &Stop::new());
    assert_eq!(called.unwrap_err().code(), "mcp_call_timeout");
    let before = Instant::now();
    server.close();
    assert!(before.elapsed() < Duration::from_mins(1));
}

#[test]
fn a_server_that_does_not_exit_is_given_up() {
    let (its_input, input) = pipe().unwrap();
    let (output, mut its_output) = pipe().unwrap();
    let answering = std::thread::spawn(move || {
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(its_input));
        while let Some(Ok(line)) = lines.next() {
            react(&serde_json::from_str(&line).unwrap(), &mut its_output);
        }
        its_output
    });
    let server = start(Connection::Pipes { input, output }).unwrap();
    server.close();
    // Its input ended, and its output is still open.
    drop(answering.join().unwrap());
}
