//! A web server on the loopback device that does what a script says, below HTTP too: it hangs, closes, stammers.
//!
//! Tests of other packages include this file by `#[path]`; it needs nothing but the standard library.
#![expect(
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it at once"
)]

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer than any machine needs for what a test waits for.
const LONG: Duration = Duration::from_mins(2);

/// What becomes of one request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// A status, further headers, a body.
    Answer(u16, Vec<(&'static str, String)>, String),
    /// A status whose body repeats the whole request line.
    Echo(u16),
    /// The connection is closed without an answer.
    Close,
    /// Nothing, until the server is dropped.
    Hang,
    /// A status, and then one byte of the body again and again without end.
    Stammer(u16),
    /// A status, and then as much of a body as anybody takes.
    Flood(u16),
}

impl Act {
    pub(crate) fn status(status: u16) -> Act {
        Act::Answer(status, Vec::new(), String::new())
    }
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    /// Method, path and query.
    pub(crate) line: String,
    /// Headers, their names in small letters.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

struct Shared {
    /// What is left of the script; the last act is done again and again.
    script: Mutex<VecDeque<Act>>,
    came: Mutex<Vec<Came>>,
    changed: Condvar,
    over: AtomicBool,
}

/// A server that runs until it is dropped.
pub(crate) struct WebServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl WebServer {
    pub(crate) fn start(script: Vec<Act>) -> WebServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Mutex::new(script.into()),
            came: Mutex::default(),
            changed: Condvar::new(),
            over: AtomicBool::new(false),
        });
        let serving = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.over.load(Ordering::SeqCst) {
                    return;
                }
                let (stream, shared) = (stream.unwrap(), Arc::clone(&serving));
                // Whoever hangs up early is what is tested.
                std::thread::spawn(move || drop(serve(stream, &shared)));
            }
        });
        WebServer {
            address,
            shared,
            thread: Some(thread),
        }
    }

    /// `http://HOST:PORT`
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Replaces what is left of the script.
    pub(crate) fn follow(&self, script: Vec<Act>) {
        *self.shared.script.lock().unwrap() = script.into();
    }

    /// All requests so far.
    pub(crate) fn came(&self) -> Vec<Came> {
        self.shared.came.lock().unwrap().clone()
    }

    /// Blocks until so many requests came, and answers all of them.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Came> {
        let came = self.shared.came.lock().unwrap();
        let few = |came: &mut Vec<Came>| came.len() < count;
        let (came, waited) = self
            .shared
            .changed
            .wait_timeout_while(came, LONG, few)
            .unwrap();
        assert!(!waited.timed_out(), "fewer than {count} requests: {came:?}");
        came.clone()
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        {
            // Whoever hangs looks at `over` with this held.
            let _script = self.shared.script.lock();
            self.shared.changed.notify_all();
        }
        // Wakes the listener.
        _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map(|text| text.parse());
    let mut body = vec![0; length.map_or(0, Result::unwrap)];
    reader.read_exact(&mut body)?;
    let act = {
        let mut script = shared.script.lock().unwrap();
        let next = script.front().cloned().unwrap();
        if script.len() > 1 {
            script.pop_front();
        }
        next
    };
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    shared.came.lock().unwrap().push(Came {
        line: line.clone(),
        headers,
        body: String::from_utf8(body).unwrap(),
    });
    shared.changed.notify_all();
    perform(stream, shared, act, &line)
}

fn perform(mut stream: TcpStream, shared: &Shared, act: Act, line: &str) -> std::io::Result<()> {
    let mut answer = |status: u16, headers: &[(&str, String)], body: &str| {
        let mut head = format!(
            "HTTP/1.1 {status} Told\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes())
    };
    match act {
        Act::Answer(status, headers, body) => answer(status, &headers, &body),
        Act::Echo(status) => answer(status, &[], &format!("nothing at {line}")),
        Act::Close => Ok(()),
        Act::Hang => {
            let script = shared.script.lock().unwrap();
            let goes_on = |_: &mut _| !shared.over.load(Ordering::SeqCst);
            drop(shared.changed.wait_while(script, goes_on).unwrap());
            Ok(())
        }
        Act::Stammer(status) => {
            stream.write_all(format!("HTTP/1.1 {status} Told\r\n\r\n").as_bytes())?;
            while !shared.over.load(Ordering::SeqCst) {
                stream.write_all(b"x")?;
                std::thread::sleep(Duration::from_millis(20));
            }
            Ok(())
        }
        Act::Flood(status) => {
            stream.write_all(format!("HTTP/1.1 {status} Told\r\n\r\n").as_bytes())?;
            while !shared.over.load(Ordering::SeqCst) {
                stream.write_all(&[b'x'; 4_096])?;
            }
            Ok(())
        }
    }
}
