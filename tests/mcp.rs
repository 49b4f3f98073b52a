//! The Model Context Protocol over pipes: the real program, spoken to as a client does.
//!
//! What the contracts of the skill tools say is quoted here; deliberate differences stand in
//! `docs/dev/contracts.md`.

mod acceptance;
mod any_directory;
pub(crate) mod client;
mod contract_rules;
mod elicitation;
mod files;
mod freshness;
mod hostile;
mod legible;
mod offered;
mod pages;
mod pipes;
mod prompts_resources;
mod protocol;
mod runs;
mod skill_tool;
mod surface;
mod trust;
mod use_skill;
mod wave_tool;
mod worker_files;
