//! Hosts the engine: API server, signals, systemd, locks; dials it as a client.
//!
//! Two faces: [`connect`] gives a command the one interface to an engine, wherever it runs, and
//! [`run_daemon`] is the daemon's main. Between them lies one HTTP/JSON API on a Unix socket.

mod access_control;
mod answer;
mod client;
mod dialling;
mod event_loop;
mod events;
mod exchange;
mod extract;
mod host;
mod hosted;
mod logging;
mod mcp;
mod metrics;
mod notices;
mod openapi;
mod operation;
mod paths;
mod peer;
mod reached;
mod reply;
mod search;
mod sensors;
mod server;
mod settling;
mod socket;
mod sse;
mod stalling;
mod takeover;
mod tcp;

pub use client::HttpControl;
pub use dialling::{ConnectMode, ConnectOptions, connect, dial};
pub use host::{
    DaemonOptions, HostSignal, Hosted, StartEngine, process_environment, run_daemon, serve_daemon,
};
pub use logging::{LogFormat, start_logging};
pub use notices::Announcer;
pub use openapi::document as openapi_document;
pub use operation::Operation;
pub use server::{Identity, Limits, Notices, Server};
pub use socket::{Endpoint, SOCKET_PATH_BYTES_MAX, SocketPlaces};
