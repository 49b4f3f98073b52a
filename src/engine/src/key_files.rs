//! Files that hold keys, tokens and secrets.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{broken_definitions, model_keys, secrets};
use crate::catalog::Catalog;

/// Returns the files that definitions and the configuration name: keys of models and of servers, the token of MCP over
/// TCP, addresses of webhooks, and secrets of skills.
pub(super) fn named(catalog: &Catalog, environment: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let of_workers = catalog.workers.iter().map(|worker| &worker.notify);
    let of_schedules = catalog
        .schedules
        .iter()
        .map(|schedule| &schedule.policy.notify);
    let mut files = model_keys::files(&catalog.config, environment);
    files.extend(model_keys::files_of_notify(
        of_workers.chain(of_schedules),
        environment,
    ));
    let skills = catalog.workers.iter().flat_map(|worker| &worker.skills);
    let programs = skills
        .clone()
        .filter_map(|skill| skill.agent.program.as_deref());
    files.extend(model_keys::files_of_programs(programs, environment));
    files.extend(skills.flat_map(|skill| secrets::files(skill, environment)));
    files.extend(broken_definitions::named_files(catalog, environment));
    files
}
