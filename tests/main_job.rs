//! What the program is for, end to end with the real program: skills that succeed, fail, are cut off,
//! are put back, are committed once; every exit code; what belongs to the person stays as it is.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "what prepares a test fails by panicking, and says when it skips"
)]

#[expect(dead_code, reason = "shared with other tests, which use more of it")]
mod workspace;

#[path = "main_job/bounds.rs"]
mod bounds;
#[path = "main_job/broken_config.rs"]
mod broken_config;
#[path = "main_job/commits.rs"]
mod commits;
#[path = "main_job/context.rs"]
mod context;
#[path = "main_job/destinations.rs"]
mod destinations;
#[path = "main_job/exit_codes.rs"]
mod exit_codes;
#[path = "main_job/failed_pushes.rs"]
mod failed_pushes;
#[path = "main_job/forged_history.rs"]
mod forged_history;
#[path = "main_job/forged_landings.rs"]
mod forged_landings;
#[path = "main_job/git_settings.rs"]
mod git_settings;
#[path = "main_job/health.rs"]
mod health;
#[path = "main_job/housekeeping.rs"]
mod housekeeping;
#[path = "main_job/isolation.rs"]
mod isolation;
#[path = "main_job/landing.rs"]
mod landing;
#[path = "main_job/lent.rs"]
mod lent;
#[path = "main_job/links.rs"]
mod links;
#[path = "main_job/long_output.rs"]
mod long_output;
#[path = "main_job/merges.rs"]
mod merges;
#[path = "main_job/misuse.rs"]
mod misuse;
#[path = "main_job/moved.rs"]
mod moved;
#[path = "main_job/outputs.rs"]
mod outputs;
#[path = "main_job/planted_state.rs"]
mod planted_state;
#[path = "main_job/process_limits.rs"]
mod process_limits;
#[path = "main_job/protected_paths.rs"]
mod protected_paths;
#[path = "main_job/pushes.rs"]
mod pushes;
#[path = "main_job/readiness.rs"]
mod readiness;
#[path = "main_job/repository.rs"]
mod repository;
#[path = "main_job/rule_files.rs"]
mod rule_files;
#[path = "main_job/saved_definitions.rs"]
mod saved_definitions;
#[path = "main_job/scripts.rs"]
mod scripts;
#[path = "main_job/secret_sources.rs"]
mod secret_sources;
#[path = "main_job/secrets.rs"]
mod secrets;
#[path = "main_job/stores.rs"]
mod stores;
#[path = "main_job/strangers.rs"]
mod strangers;
#[path = "main_job/targets.rs"]
mod targets;
#[path = "main_job/threads.rs"]
mod threads;
#[path = "main_job/torn_trees.rs"]
mod torn_trees;
#[path = "main_job/traces.rs"]
mod traces;
#[path = "main_job/tree_places.rs"]
mod tree_places;
#[path = "main_job/wake.rs"]
mod wake;
