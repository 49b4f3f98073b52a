//! Sessions and messages, and what is none.

use serde_json::{Value, json};

use crate::mcp_http::host::{Host, workspace};
use crate::mcp_http::session::{KINDS, Session, initialize, let_in};
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
            assert_eq!(tools.len(), 10, "{tools:?}");
            assert_eq!(session.end(), 204);
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

const PING: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[test]
fn what_is_no_message_is_refused_by_name() {
    let host = Host::start("");
    let session = Session::over_tcp(&host);
    let table: [(&[u8], i64); 10] = [
        (b"{", -32_700),
        (b"", -32_700),
        (b"\xff\xfe", -32_700),
        (b"1", -32_600),
        (b"[]", -32_600),
        (
            br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\ud800"}}"#,
            -32_600,
        ),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32_600),
        (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32_600),
        (br#"{"id":1,"method":"ping"}"#, -32_600),
        (
            br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
            -32_600,
        ),
    ];
    for (body, code) in table {
        let answer = host.tcp.open("POST", &session.headers, body);
        let shown = String::from_utf8_lossy(body).into_owned();
        assert_eq!(answer.status, 400, "{shown}");
        let value = answer.value();
        assert_eq!(value["error"]["code"], code, "{shown}: {value}");
        assert_eq!(value["jsonrpc"], "2.0");
    }
    // The first message says what it takes to begin.
    let hello = br#"{"jsonrpc":"2.0","id":"a","method":"initialize"}"#;
    let answer = host.tcp.open("POST", &let_in(&host, &host.tcp), hello);
    assert_eq!(answer.status, 400);
    let value = answer.value();
    assert_eq!(value["error"]["code"], -32_602, "{value}");
    assert_eq!(value["id"], "a", "{value}");
    assert!(
        value.to_string().contains("`clientInfo` are missing"),
        "{value}"
    );
    let huge = vec![b' '; 5 * 1024 * 1024];
    let refused = host.tcp.open("POST", &session.headers, &huge);
    assert_eq!(refused.status, 413);
    assert_eq!(session.status(), 200, "none of it ended the session");
}

#[test]
fn requests_of_another_form_are_refused() {
    let host = Host::start("");
    let session = Session::over_tcp(&host);
    let own = &session.headers;
    let let_in = let_in(&host, &host.tcp);
    let bare = let_in.replace(KINDS, "").trim().to_owned();
    let id = own
        .lines()
        .find(|line| line.starts_with("Mcp-Session-Id"))
        .unwrap();
    let json = "Content-Type: application/json";
    let both = "Accept: application/json, text/event-stream";
    let other = format!("{let_in}\n{id}\nMCP-Protocol-Version: 1999-01-01");
    let table = [
        ("POST", format!("{bare}\n{id}\n{both}"), 415),
        (
            "POST",
            format!("{bare}\n{id}\n{both}\nContent-Type: text/plain"),
            415,
        ),
        ("POST", format!("{bare}\n{id}\n{json}"), 406),
        (
            "POST",
            format!("{bare}\n{id}\n{json}\nAccept: application/json"),
            406,
        ),
        (
            "GET",
            format!("{bare}\n{id}\nAccept: application/json"),
            406,
        ),
        ("POST", let_in.clone(), 400),
        ("POST", format!("{let_in}\nMcp-Session-Id: none"), 404),
        ("GET", format!("{let_in}\nMcp-Session-Id: none"), 404),
        ("POST", other, 400),
        ("PUT", own.clone(), 405),
        ("PATCH", own.clone(), 405),
    ];
    for (method, headers, status) in table {
        let answer = host.tcp.open(method, &headers, PING);
        assert_eq!(answer.status, status, "{method} {headers}");
    }
    assert_eq!(session.status(), 200, "none of it ended the session");
}

#[test]
fn a_client_may_ask_before_it_says_that_it_is_ready() {
    let host = Host::start("");
    let known = let_in(&host, &host.tcp);
    let hello = initialize("2025-06-18").to_string();
    let answer = host.tcp.open("POST", &known, hello.as_bytes());
    let id = answer.header("mcp-session-id").unwrap().to_owned();
    let headers = format!("{known}\nMcp-Session-Id: {id}");
    for method in ["ping", "tools/list"] {
        let message = json!({"jsonrpc": "2.0", "id": method, "method": method});
        let answer = host
            .tcp
            .open("POST", &headers, message.to_string().as_bytes());
        assert_eq!(answer.status, 200);
        let message = answer.events().message();
        assert!(message.get("result").is_some(), "{method}: {message}");
    }
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

#[test]
fn trust_that_is_given_is_told_too() {
    let (workspace, gate) = workspace("");
    let config =
        "skills: {untrusted: [.claude]}\nmcp: {refresh: 100ms, http: {listen: '127.0.0.1:0'}}\n";
    workspace.write("workerctl.yaml", config);
    let host = Host::of(workspace, gate);
    let session = Session::over_tcp(&host);
    let mut stream = session.listen();
    let listed = || session.ask("tools/list", &json!({})).to_string();
    assert!(!listed().contains("<name>git</name>"));
    assert_eq!(host.workspace.run(&["skill", "trust", "git"]).code, 0);
    let message = stream.message();
    let method = "notifications/tools/list_changed";
    assert_eq!(message["method"], method, "{message}");
    assert!(listed().contains("<name>git</name>"));
}
