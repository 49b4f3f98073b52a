//! Hosts the engine: API server, signals, systemd, locks; dials it as a client.
//!
//! Two faces: [`connect`] gives a command the one interface to an engine, wherever it runs, and
//! [`run_daemon`] is the daemon's main. Between them lies one HTTP/JSON API on a Unix socket.

mod access_control;
mod checks;
mod client;
mod connections;
mod description;
mod dialling;
mod event_loop;
mod exchange;
mod extract;
mod handlers;
mod host;
mod hosted;
mod limits;
mod logging;
mod mcp;
mod metrics;
mod notices;
mod openapi;
mod paths;
mod peer;
mod reached;
mod reply;
mod route;
mod routes;
mod sensors;
mod server;
mod socket;
mod sse;
mod stalling;
mod state;
mod takeover;
mod tcp;
mod wire;

pub use client::HttpControl;
pub use dialling::{ConnectMode, ConnectOptions, connect, dial};
pub use host::{
    DaemonOptions, HostSignal, Hosted, StartEngine, process_environment, run_daemon, serve_daemon,
};
pub use limits::Limits;
pub use logging::{LogFormat, start_logging};
pub use notices::Announcer;
pub use route::Route;
pub use routes::routes;
pub use server::Server;
pub use socket::{Endpoint, SOCKET_PATH_BYTES_MAX, SocketPlaces};
pub use state::{Identity, Notices};
