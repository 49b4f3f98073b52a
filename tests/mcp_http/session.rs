//! A session as a client has it.

use serde_json::{Value, json};

use crate::mcp_http::host::Host;
use crate::mcp_http::wire::{Answer, Events, Place};

/// What every request that is sent says.
pub(crate) const KINDS: &str =
    "Content-Type: application/json\nAccept: application/json, text/event-stream";

/// A session.
pub(crate) struct Session {
    pub(crate) place: Place,
    pub(crate) headers: String,
    pub(crate) result: Value,
    last: std::sync::atomic::AtomicU64,
}

/// The first message of a session.
pub(crate) fn initialize(version: &str) -> Value {
    let client = json!({"name": "tests", "version": "1"});
    let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

/// What lets a client in.
pub(crate) fn let_in(host: &Host, place: &Place) -> String {
    match place {
        Place::Socket(_) => KINDS.to_owned(),
        Place::Tcp(_) => format!("{KINDS}\nAuthorization: Bearer {}", host.token),
    }
}

impl Session {
    /// A session over TCP, of the newest version that has sessions.
    pub(crate) fn over_tcp(host: &Host) -> Session {
        Session::begin(host, &host.tcp, "2025-11-25")
    }

    /// The handshake.
    pub(crate) fn begin(host: &Host, place: &Place, version: &str) -> Session {
        Session::opened(host, place, version, &initialize(version))
    }

    /// A session over TCP of a client that can ask its person.
    pub(crate) fn of_a_person(host: &Host) -> Session {
        let version = "2025-11-25";
        let mut first = initialize(version);
        first["params"]["capabilities"] = json!({"elicitation": {"form": {}}});
        Session::opened(host, &host.tcp, version, &first)
    }

    fn opened(host: &Host, place: &Place, version: &str, first: &Value) -> Session {
        let known = let_in(host, place);
        let answer = place.open("POST", &known, first.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.head);
        let id = answer.header("mcp-session-id").unwrap().to_owned();
        let result = answer.events().message()["result"].clone();
        assert_eq!(result["protocolVersion"], version, "{result}");
        let session = Session {
            place: place.clone(),
            headers: format!("{known}\nMcp-Session-Id: {id}\nMCP-Protocol-Version: {version}"),
            result,
            last: std::sync::atomic::AtomicU64::new(0),
        };
        let told = session.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(told.status, 202, "{}", told.head);
        session
    }

    /// Sends one message; how it is answered.
    pub(crate) fn tell(&self, message: &Value) -> Answer {
        let text = message.to_string();
        self.place.open("POST", &self.headers, text.as_bytes())
    }

    /// Sends a request; its id, and how it is answered.
    pub(crate) fn request(&self, method: &str, params: &Value) -> (u64, Answer) {
        let id = 1 + self.last.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        (id, self.tell(&message))
    }

    /// Sends a request and reads its answer.
    pub(crate) fn ask(&self, method: &str, params: &Value) -> Value {
        let (id, answer) = self.request(method, params);
        assert_eq!(answer.status, 200, "{}", answer.head);
        let mut events = answer.events();
        loop {
            let message = events.message();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Calls a tool; the structured content of its result.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        answer["result"]["structuredContent"].clone()
    }

    /// Opens the stream of what belongs to no request.
    pub(crate) fn listen(&self) -> Events {
        let answer = self.place.open("GET", &self.headers, b"");
        assert_eq!(answer.status, 200, "{}", answer.head);
        answer.events()
    }

    /// Goes on with a stream.
    pub(crate) fn resume(&self, id: &str) -> Events {
        let headers = format!("{}\nLast-Event-ID: {id}", self.headers);
        let answer = self.place.open("GET", &headers, b"");
        assert_eq!(answer.status, 200, "{}", answer.head);
        answer.events()
    }

    /// Whether it has not ended; asking uses it.
    pub(crate) fn status(&self) -> u16 {
        self.request("ping", &json!({})).1.status
    }

    /// Ends it; with which status.
    pub(crate) fn end(&self) -> u16 {
        self.place.open("DELETE", &self.headers, b"").status
    }
}
