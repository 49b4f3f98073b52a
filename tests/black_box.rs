//! Tests of the program from the outside: the real binary, each test with a workspace of its own.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "what prepares a test fails by panicking, and says when it skips"
)]

mod agent;
mod agent_programs;
mod api_engine;
mod api_runs;
mod api_schedules;
mod approval;
mod daily_questions;
mod full_disk;
mod kills;
mod limits;
mod main_job;
mod many_runs;
mod mcp;
mod mcp_http;
mod notices;
mod notify;
mod notify_forms;
mod notify_runs;
mod person;
mod phases;
mod power_cuts;
mod program_faults;
mod repository_states;
mod retention;
mod retries;
mod roles;
mod schedule_alarm;
mod schedule_commands;
mod schedule_damage;
mod schedule_edits;
mod schedule_events;
mod schedule_pages;
mod schedules;
#[expect(
    dead_code,
    reason = "shared with tests of the client, which use more of it"
)]
#[path = "../src/agent/tests/server/mod.rs"]
mod server;
mod skills;
mod systemd_boot;
mod walls;
mod web;
#[path = "../src/agent/tests/web/mod.rs"]
mod web_server;
mod why;
mod worker_paths;
mod workspace;
mod zones;
