//! Sessions and messages, and what is none.

use serde_json::{Value, json};

use crate::host::Host;
use crate::session::{KINDS, Session, initialize, let_in};
use crate::workspace::PATIENCE;

#[test]
fn the_same_tools_are_served_on_the_socket_and_over_tcp() {
    let host = Host::start("");
    for place in [&host.socket, &host.tcp] {
        for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let session = Session::begin(&host, place, version);
            assert_eq!(session.result["serverInfo"]["name"], "workerctl");
            let tools = session.ask("tools/list", &json!({}));
            let tools = tools["result"]["tools"].as_array().unwrap();
            assert_eq!(tools.len(), 9, "{tools:?}");
            assert_eq!(session.end(), 202);
            assert_eq!(session.status(), 404, "a session that was ended");
        }
        let session = Session::begin(&host, place, "2025-11-25");
        let said = session.call(
            "use_skill",
            &json!({"skill": "hello", "input": {"who": "them"}}),
        );
        assert_eq!(said["content"], "hello them", "{said}");
        let run = &host.runs()[0];
        assert_eq!(
            (&run["run"], &run["outcome"]["kind"]),
            (&said["run"], &json!("succeeded")),
            "{run}"
        );
        let text = session.ask(
            "tools/call",
            &json!({"name": "skill", "arguments": {"name": "git"}}),
        );
        assert!(text.to_string().contains("# Git"), "{text}");
    }
    host.daemon.stop();
}

#[test]
fn the_newest_version_needs_no_session() {
    let host = Host::start("");
    let ask = |method: &str, params: &Value, more: &str| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let mut params = params.clone();
        params["_meta"] = meta;
        let message = json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params});
        let headers = format!(
            "{}\nMCP-Protocol-Version: 2026-07-28\nMcp-Method: {method}{more}",
            let_in(&host, &host.tcp)
        );
        host.tcp
            .open("POST", &headers, message.to_string().as_bytes())
    };
    let found = ask("server/discover", &json!({}), "").events().message();
    assert!(
        found["result"]["supportedVersions"]
            .to_string()
            .contains("2026-07-28"),
        "{found}"
    );
    let call = json!({"name": "use_skill", "arguments": {"skill": "hello"}});
    let said = ask("tools/call", &call, "\nMcp-Name: use_skill")
        .events()
        .message();
    assert_eq!(
        said["result"]["structuredContent"]["content"], "hello you",
        "{said}"
    );
    let other = ask("tools/call", &call, "\nMcp-Name: skill");
    assert_eq!(other.status, 400, "a header that contradicts the message");
    assert_eq!(ask("initialize", &json!({}), "").status, 404);
}

#[test]
fn what_is_no_request_is_refused_by_name() {
    let host = Host::start("");
    let session = Session::over_tcp(&host);
    let own = &session.headers;
    let authorized = let_in(&host, &host.tcp);
    let bare = authorized.replace(KINDS, "").trim().to_owned();
    let id = own
        .lines()
        .find(|line| line.starts_with("Mcp-Session-Id"))
        .unwrap();
    let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let json = "Content-Type: application/json";
    let both = "Accept: application/json, text/event-stream";
    let table: [(&str, String, &[u8], u16, Value); 14] = [
        ("POST", own.clone(), b"{", 400, json!(-32_700)),
        ("POST", own.clone(), b"", 400, json!(-32_700)),
        ("POST", own.clone(), b"\xff\xfe", 400, json!(-32_700)),
        ("POST", own.clone(), b"1", 400, json!(-32_600)),
        ("POST", own.clone(), b"[]", 400, json!(-32_600)),
        (
            "POST",
            own.clone(),
            br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            400,
            json!(-32_600),
        ),
        (
            "POST",
            own.clone(),
            br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            400,
            json!(-32_600),
        ),
        (
            "POST",
            format!("{bare}\n{id}\n{both}\nContent-Type: text/plain"),
            ping,
            415,
            Value::Null,
        ),
        (
            "POST",
            format!("{bare}\n{id}\n{json}\nAccept: application/json"),
            ping,
            406,
            Value::Null,
        ),
        (
            "GET",
            format!("{bare}\n{id}\nAccept: application/json"),
            b"",
            406,
            Value::Null,
        ),
        ("POST", authorized.clone(), ping, 400, Value::Null),
        (
            "POST",
            format!("{authorized}\nMcp-Session-Id: none"),
            ping,
            404,
            Value::Null,
        ),
        (
            "POST",
            format!("{authorized}\n{id}\nMCP-Protocol-Version: 1999-01-01"),
            ping,
            400,
            Value::Null,
        ),
        ("PUT", own.clone(), ping, 405, Value::Null),
    ];
    for (method, headers, body, status, code) in table {
        let answer = host.tcp.open(method, &headers, body);
        let shown = String::from_utf8_lossy(body).into_owned();
        assert_eq!(answer.status, status, "{method} {headers} {shown}");
        if !code.is_null() {
            let value = answer.value();
            assert_eq!(
                (&value["error"]["code"], &value["jsonrpc"]),
                (&code, &json!("2.0"))
            );
        }
    }
    let huge = vec![b' '; 5 * 1024 * 1024];
    assert_eq!(host.tcp.open("POST", own, &huge).status, 413);
    assert_eq!(session.status(), 200, "none of it ended the session");
}

#[test]
fn several_messages_at_once_are_of_one_version_alone() {
    let host = Host::start("");
    let session = Session::begin(&host, &host.socket, "2025-03-26");
    let call = json!({"name": "use_skill", "arguments": {"skill": "hello"}});
    let batch = json!([
        {"jsonrpc": "2.0", "id": "one", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        {"jsonrpc": "2.0", "id": "two", "method": "tools/call", "params": call},
        {"id": "three"},
    ]);
    let mut events = session.tell(&batch).events();
    let mut answered = Vec::new();
    while let Some(event) = events.next() {
        answered.push(event.message);
    }
    let of = |id: &str| answered.iter().find(|one| one["id"] == id).unwrap();
    assert_eq!(of("one")["result"], json!({}));
    assert_eq!(
        of("two")["result"]["structuredContent"]["content"],
        "hello you"
    );
    assert_eq!(of("three")["error"]["code"], -32_600);
    assert_eq!(answered.len(), 3, "{answered:?}");
    let told = json!([{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}]);
    assert_eq!(session.tell(&told).status, 202);
    let again = json!([initialize("2025-03-26")]);
    assert_eq!(session.tell(&again).status, 400);
}

#[test]
fn changed_definitions_are_told_on_the_stream_of_the_session() {
    let host = Host::start("");
    let session = Session::over_tcp(&host);
    let mut stream = session.listen();
    let names = |session: &Session| session.ask("prompts/list", &json!({})).to_string();
    assert!(!names(&session).contains("fresh"));
    host.workspace.write(
        ".claude/skills/fresh/SKILL.md",
        "---\nname: fresh\ndescription: New here\n---\n\n# Fresh\n",
    );
    let began = std::time::Instant::now();
    for list in ["tools", "prompts", "resources"] {
        let message = stream.message();
        assert_eq!(
            message["method"],
            format!("notifications/{list}/list_changed"),
            "{message}"
        );
    }
    assert!(began.elapsed() < PATIENCE);
    assert!(names(&session).contains("fresh"));
    // Who was not there hears of it when it comes.
    drop(stream);
}
