//! The API over a real socket, with an engine's double behind it.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "what prepares a test fails by panicking"
)]

mod scripted;

#[path = "api/bounds.rs"]
mod bounds;
#[path = "api/client.rs"]
mod client;
#[path = "api/host.rs"]
mod host;
#[path = "api/hosted.rs"]
mod hosted;
#[path = "api/peers.rs"]
mod peers;
#[path = "api/routes.rs"]
mod routes;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use scripted::Scripted;
use workerctl::daemon::{ConnectMode, ConnectOptions, Endpoint, Identity, Limits, Server};
use workerctl::engine::Host;

/// A served double in a directory of its own.
struct Served {
    engine: Arc<Scripted>,
    server: Option<Server>,
    _endpoint: Endpoint,
    socket: PathBuf,
    directory: xtest::TempDir,
}

impl Served {
    fn start(limits: Limits) -> Served {
        let directory = xtest::tempdir();
        let socket = directory.path().join("s.sock");
        let endpoint = Endpoint::bind(&socket).expect("bound");
        let engine = Scripted::new();
        let server = Server::start(
            endpoint.listener().expect("a listener"),
            Identity::of_process(directory.path(), Host::Daemon),
            limits,
            None,
        )
        .expect("served");
        server.open(Arc::clone(&engine) as _);
        Served {
            engine,
            server: Some(server),
            _endpoint: endpoint,
            socket,
            directory,
        }
    }

    fn options(&self) -> ConnectOptions {
        options(self.directory.path(), Some(&self.socket))
    }

    /// Sends one request and reads the whole answer.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        self.raw(&[head.as_bytes(), body].concat())
    }

    fn json(&self, method: &str, path: &str, body: &str) -> Answer {
        self.ask(
            method,
            path,
            "Content-Type: application/json\r\n",
            body.as_bytes(),
        )
    }

    fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = dial(&self.socket);
        // A server that refuses early closes before it has read everything.
        let _ = stream.write_all(bytes);
        Answer::read(&mut stream)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.engine.diff.open();
        self.engine.end.open();
        self.engine.drain.open();
        drop(self.server.take());
    }
}

fn options(workspace: &Path, socket: Option<&Path>) -> ConnectOptions {
    ConnectOptions {
        workspace: workspace.to_path_buf(),
        state_dir: workspace.join("state"),
        socket: socket.map(Path::to_path_buf),
        environment: BTreeMap::new(),
        mode: ConnectMode::RunningOnly,
    }
}

fn dial(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).expect("connected");
    stream
        .set_read_timeout(Some(Duration::from_mins(1)))
        .expect("set");
    stream
}

/// An answer as it came.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn read(stream: &mut UnixStream) -> Answer {
        let mut bytes = Vec::new();
        // What was read before a reset still counts.
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        Answer {
            status: head
                .split(' ')
                .nth(1)
                .and_then(|status| status.parse().ok())
                .unwrap_or(0),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    fn value(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a refusal, after its form was checked.
    fn code(&self) -> String {
        let value = self.value();
        for field in ["kind", "code", "message"] {
            assert!(value[field].is_string(), "{field} of {self:?}");
        }
        assert!(value["hints"].is_array(), "{self:?}");
        assert!(
            self.head.contains("content-type: application/json"),
            "{self:?}"
        );
        value["code"].as_str().expect("text").to_owned()
    }
}
