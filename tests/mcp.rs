//! The Model Context Protocol over pipes: the real program, spoken to as a client does.
//!
//! What the contracts of the skill tools say is quoted here; deliberate differences stand in
//! `docs/dev/contracts.md`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "what prepares a test fails by panicking, and says when it skips"
)]

#[path = "mcp/acceptance.rs"]
mod acceptance;
#[path = "mcp/any_directory.rs"]
mod any_directory;
#[path = "mcp/client.rs"]
mod client;
#[path = "mcp/contract_rules.rs"]
mod contract_rules;
#[path = "mcp/elicitation.rs"]
mod elicitation;
#[path = "mcp/files.rs"]
mod files;
#[path = "mcp/freshness.rs"]
mod freshness;
#[path = "mcp/hostile.rs"]
mod hostile;
#[path = "mcp/legible.rs"]
mod legible;
#[path = "mcp/offered.rs"]
mod offered;
#[path = "mcp/pages.rs"]
mod pages;
#[path = "mcp/pipes.rs"]
mod pipes;
#[path = "mcp/prompts_resources.rs"]
mod prompts_resources;
#[path = "mcp/protocol.rs"]
mod protocol;
#[path = "mcp/runs.rs"]
mod runs;
#[path = "mcp/skill_tool.rs"]
mod skill_tool;
#[path = "mcp/surface.rs"]
mod surface;
#[path = "mcp/trust.rs"]
mod trust;
#[path = "mcp/use_skill.rs"]
mod use_skill;
#[path = "mcp/wave_tool.rs"]
mod wave_tool;
#[path = "mcp/worker_files.rs"]
mod worker_files;
#[expect(dead_code, reason = "shared with other tests, which use more of it")]
mod workspace;
