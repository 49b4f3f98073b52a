//! Runs over HTTP: durable, with progress, and what becomes of them when connections go.

use serde_json::{Value, json};

use crate::mcp_http::host::Host;
use crate::mcp_http::session::{Session, let_in};
use crate::mcp_http::wire::Answer;
use crate::workspace::eventually;

fn gated(token: &str) -> Value {
    json!({"name": "use_skill", "arguments": {"skill": "gated"}, "_meta": {"progressToken": token}})
}

fn outcome(host: &Host) -> String {
    host.runs()[0]["outcome"].to_string()
}

#[test]
fn progress_comes_on_the_stream_of_its_call() {
    let mut host = Host::start("");
    let session = Session::over_tcp(&host);
    let (id, answer) = session.request("tools/call", &gated("p1"));
    let (run, _) = host.gate.reached();
    assert_eq!(host.runs()[0]["run"], run, "it is a run like any other");
    let mut events = answer.events();
    let first = events.message();
    assert_eq!(first["method"], "notifications/progress", "{first}");
    assert_eq!(first["params"]["progressToken"], "p1", "{first}");
    host.gate.pass();
    let mut last = Value::Null;
    while let Some(event) = events.next() {
        if event.message["method"] == "notifications/progress" {
            assert!(last.is_null(), "progress after the answer");
        } else {
            last = event.message;
        }
    }
    assert_eq!(last["id"], id, "{last}");
    let said = &last["result"]["structuredContent"];
    assert_eq!(
        (&said["run"], &said["content"]),
        (&json!(run), &json!("before\nafter"))
    );
    assert_eq!(host.runs()[0]["outcome"]["kind"], "succeeded");
}

#[test]
fn an_id_that_is_under_way_is_not_taken_by_another_request() {
    let mut host = Host::start("");
    let session = Session::over_tcp(&host);
    let (id, answer) = session.request("tools/call", &gated("p1"));
    host.gate.reached();
    let again = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let refused = session.tell(&again);
    assert_eq!(refused.status, 400, "{}", refused.head);
    assert_eq!(refused.value()["error"]["code"], -32_600);
    host.gate.pass();
    let mut events = answer.events();
    let last = loop {
        let message = events.message();
        if message["id"] == id {
            break message;
        }
    };
    let said = &last["result"]["structuredContent"];
    assert_eq!(said["content"], "before\nafter", "{last}");
    assert_eq!(host.runs()[0]["outcome"]["kind"], "succeeded");
    assert_eq!(session.tell(&again).status, 200, "it is free again");
}

#[test]
fn a_call_goes_on_without_its_connection_and_can_be_taken_up_again() {
    let mut host = Host::start("");
    let session = Session::over_tcp(&host);
    let (id, answer) = session.request("tools/call", &gated("p1"));
    let mut events = answer.events();
    let first = events.next().unwrap();
    assert!(
        first.message.is_null() && first.id.ends_with("-0"),
        "{first:?}"
    );
    host.gate.reached();
    drop(events);
    host.gate.pass();
    eventually("the end of the run", || {
        outcome(&host).contains("succeeded").then_some(())
    });
    // What came meanwhile was kept, also after the answer.
    for _ in 0..2 {
        let mut again = session.resume(&first.id);
        let mut messages = Vec::new();
        let answered = eventually("the answer", || {
            messages.push(again.next()?);
            (messages.last()?.message["id"] == id).then_some(messages.len())
        });
        let numbers: Vec<&str> = messages.iter().map(|event| event.id.as_str()).collect();
        assert!(answered > 1, "progress too: {numbers:?}");
        assert!(again.next().is_none(), "the stream ends with the answer");
        let mut rest = session.resume(&messages[answered - 2].id);
        assert_eq!(rest.next().unwrap().id, messages[answered - 1].id);
    }
    // Nobody waits for what is not kept: it is to be asked again.
    for unknown in ["99-0", "nonsense", "1-4000", ""] {
        let headers = format!("{}\nLast-Event-ID: {unknown}", session.headers);
        let refused = host.tcp.open("GET", &headers, b"");
        assert_eq!(refused.status, 400, "{unknown}: {}", refused.head);
        let value = refused.value();
        assert_eq!(value["error"]["code"], -32_600, "{value}");
        assert!(
            value.to_string().contains("send the request again"),
            "{value}"
        );
    }
    assert_eq!(session.status(), 200, "the session goes on");
}

#[test]
fn a_call_is_cancelled_by_saying_so() {
    let mut host = Host::start("");
    let session = Session::over_tcp(&host);
    let (id, answer) = session.request("tools/call", &gated("p1"));
    host.gate.reached();
    let params = json!({"requestId": id});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    assert_eq!(session.tell(&told).status, 202);
    eventually("the end of the run", || {
        outcome(&host).contains("cancelled").then_some(())
    });
    let mut events = answer.events();
    while let Some(event) = events.next() {
        assert_ne!(event.message["id"], id, "{event:?}");
    }
    assert_eq!(session.status(), 200);
}

#[test]
fn a_session_that_ends_cancels_nothing() {
    let mut host = Host::start("");
    let session = Session::over_tcp(&host);
    let (_, answer) = session.request("tools/call", &gated("p1"));
    host.gate.reached();
    assert_eq!(session.end(), 204);
    let mut events = answer.events();
    while let Some(event) = events.next() {
        assert!(event.message.get("result").is_none(), "{event:?}");
    }
    host.gate.pass();
    eventually("the end of the run", || {
        outcome(&host).contains("succeeded").then_some(())
    });
}

/// A call of the version that has no sessions, with this in its `_meta` beside what that takes.
fn alone(host: &Host, meta: Value) -> Answer {
    let mut call = gated("");
    call["_meta"] = meta;
    call["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    call["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
    let headers = format!(
        "{}\nMCP-Protocol-Version: 2026-07-28\nMcp-Method: tools/call\nMcp-Name: use_skill",
        let_in(host, &host.tcp)
    );
    host.tcp
        .open("POST", &headers, message.to_string().as_bytes())
}

#[test]
fn without_a_session_closing_the_stream_cancels_the_call() {
    let mut host = Host::start("");
    let mut events = alone(&host, json!({"progressToken": "p1"})).events();
    assert_eq!(events.message()["method"], "notifications/progress");
    host.gate.reached();
    drop(events);
    eventually("the end of the run", || {
        outcome(&host).contains("cancelled").then_some(())
    });
}

#[test]
fn a_call_without_a_session_is_heard_before_there_is_an_answer() {
    let mut host = Host::start("");
    // The head has come while the run cannot end.
    let answer = alone(&host, json!({}));
    assert_eq!(answer.status, 200, "{}", answer.head);
    host.gate.reached();
    host.gate.pass();
    let said = answer.events().message();
    let content = &said["result"]["structuredContent"]["content"];
    assert_eq!(content, "before\nafter", "{said}");
    // Closing it cancels the call all the same.
    let answer = alone(&host, json!({}));
    host.gate.reached();
    drop(answer);
    eventually("the end of the run", || {
        outcome(&host).contains("cancelled").then_some(())
    });
}

#[test]
fn a_question_to_the_person_comes_on_the_stream_of_its_call_and_not_to_others() {
    let host = Host::start("");
    let (session, other) = (Session::of_a_person(&host), Session::over_tcp(&host));
    let wanted = json!({"name": "use_skill", "arguments": {"skill": "writes"}});
    let refused = other.ask("tools/call", &wanted)["result"].clone();
    assert!(
        refused.to_string().contains("cannot ask a person first"),
        "{refused}"
    );
    let (id, answer) = session.request("tools/call", &wanted);
    let mut events = answer.events();
    let question = events.message();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    assert!(host.workspace.read("f.txt").is_none());
    let yes = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}});
    assert_eq!(session.tell(&yes).status, 202);
    let last = events.message();
    assert_eq!(last["id"], id, "{last}");
    assert_eq!(
        last["result"]["structuredContent"]["outcome"], "succeeded",
        "{last}"
    );
    assert_eq!(host.workspace.read("f.txt").as_deref(), Some("x\n"));
}
