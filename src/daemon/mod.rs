//! Hosts the engine: API server, signals, systemd, locks; dials it as a client.
//!
//! Two faces: [`connect`] gives a command the one interface to an engine, wherever it runs, and
//! [`run_daemon`] is the daemon's main. Between them lies one HTTP/JSON API on a Unix socket.
//!
//! Files import what stands to their left here, and nothing back:
//!
//! - the API: `limits · wire · description` (what types say in the document) → `reply` → `state` (what handlers share) →
//!   `checks · extract` (what they take) · `pieces` (what they write bit by bit) → `handlers` → `route` → `openapi` → `routes` (the table) → `server`;
//! - its ways in, which know a router and no handler: `connections` → `unix · tcp` → `mcp` → `server`;
//! - the web page: `tcp` → `web/logins` (who is logged in), `web/doors` (what listens) → `state`, `routes` → `web/serve` → `server`;
//! - the daemon: `server · engine_port · systemd · sensors` → `event_loop` (its loop) → `host`;
//! - a client: `wire · exchange` → `client`, `server` → `hosted` → `dialling` → `reached`.

mod access_control;
mod checks;
mod client;
mod connect_options;
mod connections;
mod description;
mod dialling;
mod engine_port;
mod event_loop;
mod exchange;
mod extract;
mod faults;
mod handlers;
mod host;
mod hosted;
mod limits;
mod logging;
mod mcp;
mod openapi;
mod paths;
mod peer;
mod pieces;
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
mod systemd;
mod takeover;
mod tcp;
mod unix;
mod web;
mod while_allowed;
mod wire;

pub use client::HttpControl;
pub use connect_options::{ConnectMode, ConnectOptions};
pub use dialling::{dial, dial_patiently};
pub use engine_port::{HostSignal, Hosted, StartEngine};
pub use host::{DaemonOptions, process_environment, run_daemon, serve_daemon};
pub use limits::Limits;
pub use logging::{LogFormat, start_logging};
pub use reached::connect;
pub use route::Route;
pub use routes::routes;
pub use server::Server;
pub use socket::{Endpoint, SOCKET_PATH_BYTES_MAX, SocketPlaces};
pub use state::{Identity, Notices};
pub use systemd::Announcer;
