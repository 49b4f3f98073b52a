//! One file per command: its arguments, and what it does.

pub(super) mod approve;
pub(super) mod cancel;
pub(super) mod check;
pub(super) mod completions;
pub(super) mod config;
pub(super) mod daemon;
pub(super) mod demo;
pub(super) mod deny;
pub(super) mod diff;
pub(super) mod discard;
pub(super) mod doctor;
pub(super) mod drain;
pub(super) mod explain;
pub(super) mod init;
pub(super) mod land;
pub(super) mod logs;
pub(super) mod man;
pub(super) mod mcp;
pub(super) mod metrics;
pub(super) mod models;
pub(super) mod new;
pub(super) mod notify;
pub(super) mod reload;
pub(super) mod render;
pub(super) mod resolve;
pub(super) mod retry;
pub(super) mod run;
pub(super) mod runs;
pub(super) mod schedule;
pub(super) mod schema;
pub(super) mod show;
pub(super) mod skill;
pub(super) mod skills;
pub(super) mod stats;
pub(super) mod status;
pub(super) mod store;
pub(super) mod threads;
pub(super) mod unit;
pub(super) mod version;
pub(super) mod wait;
pub(super) mod web;
pub(super) mod why;
pub(super) mod workers;

#[cfg(test)]
mod tests;
