//! The Model Context Protocol over HTTP: a real daemon, spoken to on its socket and over TCP.

mod bounds;
mod doors;
mod ends;
mod host;
mod protocol;
mod runs;
mod session;
mod wire;
